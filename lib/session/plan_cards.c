/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan's part that concerns ConnectX ports, and what drivers are told. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "port/af_packet.h"
#include "session/plan_internal.h"

#define CARD_BYTES ((size_t)44 << 20)
#define CARD_RULES_BYTES ((size_t)40 << 20)
#define CARD_DESCRIPTOR_BYTES 256u
#define FRONT_BURST_MIN 4u /* so many bursts of a ring's as a front can have */

/* Two names may mean one card, which has one owner. */
static int plan_card_once(struct plan *plan, const struct settings *settings, uint32_t i,
			  struct gdrcap_error *error)
{
	for (uint32_t k = 0; k < i; k++)
		if (strcmp(plan_port_at(plan, k)->card.pci, plan_port_at(plan, i)->card.pci) == 0)
			return error_set(
				error, -EINVAL,
				"%s: \"%s\" and \"%s\" are one port, %s; give each port once",
				i < GDRCAP_PORTS_MAX ? "port" : "tx_port",
				settings_port(settings, k)->name, settings_port(settings, i)->name,
				plan_port_at(plan, i)->card.pci);
	return 0;
}

int plan_card(struct plan *plan, const struct settings *settings, uint32_t i,
	      struct gdrcap_error *error)
{
	struct connectx_card *card = &plan_port_at(plan, i)->card;
	int ret;

	ret = connectx_find(card, settings_port(settings, i)->name, NULL, error);
	if (ret < 0)
		return ret;
	if (!card->rdma[0])
		return error_set(error, -ENODEV,
				 "port %s (%s) has no RDMA device, by which it is opened; load the "
				 "kernel's driver (modprobe mlx5_ib), see rdma link",
				 settings_port(settings, i)->name, card->pci);
	plan->pci = true;
	return error_of_config(error, plan_card_once(plan, settings, i, error));
}

/* What a front on the GPU cannot serve: descriptors lie in its memory, out of a CPU's reach. */
static int plan_gpu_front(const struct settings *settings, struct gdrcap_error *error)
{
	if (settings->consumer == CONSUMER_HOST && !settings->images)
		return error_set(error, -ENOTSUP,
				 "rx_by: with gpu batches are told of in GPU memory, for kernels: "
				 "gdrcap's own, or a running one of yours (consumer: gpu); for a "
				 "consumer on the CPU use rx_by: cpu");
	for (uint32_t i = 0; i < settings->images; i++)
		if (settings->image[i].engine == IMAGE_ENGINE_LAUNCHED)
			return error_set(error, -ENOTSUP,
					 "rx_by: with gpu images are put together by a running "
					 "kernel, and image %u asks for launched ones (engine): "
					 "leave engine out, or use rx_by: cpu",
					 i);
	if (settings->burst < FRONT_BURST_MIN || settings->burst & (settings->burst - 1))
		return error_set(error, -EINVAL,
				 "rx_by: with gpu a burst is a power of two of frames, %u at "
				 "least, and not %u: give another burst, or leave it out",
				 FRONT_BURST_MIN, settings->burst);
	return 0;
}

int plan_card_only(const struct settings *settings, struct gdrcap_error *error)
{
	if (settings->rx_by == RX_BY_GPU) {
		int ret = plan_gpu_front(settings, error);

		if (ret < 0)
			return ret;
	}
	for (uint32_t i = 0; i < settings->rx.count; i++) {
		const struct port_spec *port = &settings->rx.port[i];
		const char *name = port->name, *what = port->facts->what;

		if (port->connectx)
			continue;
		if (settings->split)
			return error_set(error, -ENOTSUP,
					 "split: port %s (%s) cannot split frames in two; a "
					 "ConnectX-5 or later can: leave split out, or give its "
					 "PCI address, interface or mlx5_N",
					 name, what);
		if (settings->clock == CLOCK_CARD)
			return error_set(error, -ENOTSUP,
					 "clock: port %s (%s) has no clock of its own; leave clock "
					 "out, or receive from a ConnectX",
					 name, what);
	}
	return 0;
}

int plan_devargs(struct plan *plan, const struct settings *settings, struct gdrcap_error *error)
{
	const bool own = settings_sends(settings) && !settings->pcap[0];

	for (uint32_t i = 0; i < SETTINGS_PORTS; i++) {
		struct plan_port *port = plan_port_at(plan, i);
		const struct connectx_use use = {
			.card = &port->card,
			/* Payloads of the caller's may lie in GPU memory wherever slots do. */
			.cpu_reads =
				plan->memory != GDRCAP_MEMORY_DEVICE && !settings_lends(settings),
			.receives = i < GDRCAP_PORTS_MAX,
			.own_rx = i < GDRCAP_PORTS_MAX && settings_own_queues(settings),
			.sends = i >= GDRCAP_PORTS_MAX || settings_is_both(settings, i),
			.lengths = settings->sizes.length,
			.length_count = own ? settings->sizes.count : 0,
		};
		const char *name = settings_port(settings, i)->name;
		int ret = 0;

		if (port->card.pci[0])
			ret = connectx_devargs(name, &use, port->opened, sizeof(port->opened),
					       error);
		else if (port_name_is_af_packet(name))
			ret = error_of_config(
				error, af_packet_devargs(name, plan->frame_bytes_max, port->opened,
							 sizeof(port->opened), error));
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* What the mlx5 driver takes of EAL's memory, as measured: for a port 38 MiB, and 35 MiB more where
 * rules are made; queues come to some 150 bytes a descriptor. */
size_t plan_cards_bytes(const struct plan *plan, const struct settings *settings)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < GDRCAP_PORTS_MAX; i++) {
		if (plan->port[i].card.pci[0])
			bytes += CARD_BYTES + CARD_RULES_BYTES +
				 (size_t)settings->queues * settings->descriptors *
					 CARD_DESCRIPTOR_BYTES;
		if (plan->tx_port[i].card.pci[0])
			bytes += CARD_BYTES + (size_t)settings->queues * settings->descriptors *
						      CARD_DESCRIPTOR_BYTES;
	}
	return bytes;
}
