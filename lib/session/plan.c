/* SPDX-License-Identifier: BSD-3-Clause */
/* What the settings come to on this machine: memory kind, slots, pools. */
#include "session/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_bitops.h>
#include <rte_common.h>
#include <rte_mbuf_core.h>

#include "base/log.h"
#include "gpu/gpu_drivers.h"
#include "memory/region.h"
#include "pattern/frame.h"
#include "port/af_packet.h"
#include "port/cq_front_queue.h"
#include "port/devargs.h"
#include "port/port.h"
#include "session/plan_internal.h"

#define POOL_SLOTS 16384u
#define POOL_SLOTS_MIN 2048u
#define IDLE_AUTO_US 1000u
#define POOL_PAGES 64u /* a pool is so many pages, or up to twice that, or pages of REGION_ALIGN */
#define SLOT_SHIFT_MIN 8u
#define SLOT_SHIFT_MAX 14u
#define UMEM_SLOT_SHIFT 12u
#define DESCRIPTORS 1024u		   /* the option's default */
#define MEMIF_SECRET_BYTES 24u		   /* with its end */
#define EAL_BASE_BYTES ((size_t)128 << 20) /* EAL, ports' queues and rings */

const char *plan_memory_name(enum gdrcap_memory memory)
{
	static const char *const names[] = { "auto", "device", "pinned", "host" };

	return (unsigned int)memory < 4 ? names[memory] : "unknown";
}

/* Any RX or TX port whose driver needs memory that the CPU can address; NULL: none. */
static const struct port_spec *copying_port(const struct settings *settings)
{
	for (uint32_t i = 0; i < SETTINGS_PORTS; i++)
		if (settings_port(settings, i)->copies)
			return settings_port(settings, i);
	return NULL;
}

static int plan_gpu(struct plan *plan, const struct settings *settings, struct gdrcap_error *error)
{
	const bool automatic = settings->gpu.kind == GPU_AUTO;
	char why[256] = "";
	int count;

	if (settings_gpu_is_host(settings))
		return 0;
	count = gpu_cuda_count(why, sizeof(why));
	if (!automatic && settings->gpu.ordinal >= (uint32_t)RTE_MAX(count, 0))
		return error_set(
			error, -ENODEV,
			"gpu: there is no CUDA device %u (%d found%s%s); use --gpu host for none, "
			"or nvidia-smi -L to see them",
			settings->gpu.ordinal, count, why[0] ? ": " : "", why);
	plan->cuda = count > 0;
	plan->ordinal = (int)settings->gpu.ordinal;
	return 0;
}

/* Mbufs that pass from one owner to another would go back to a pool that they are not from. */
static int plan_own_memory(const struct settings *settings, struct gdrcap_error *error)
{
	for (uint32_t i = 0; i < SETTINGS_PORTS; i++) {
		const struct port_spec *port = settings_port(settings, i);

		if (port->name[0] && port->facts->shared_mbufs)
			return error_set(
				error, -ENOTSUP,
				"port %s (%s) passes frames on in their sender's memory; use "
				"ring:NAME for a wire in this process, or net_memif between two",
				port->name, port->facts->what);
	}
	return 0;
}

static int plan_memory(struct plan *plan, const struct settings *settings,
		       struct gdrcap_error *error)
{
	const struct port_spec *copies = copying_port(settings);

	plan->memory = settings->memory;
	if (plan->memory == GDRCAP_MEMORY_AUTO)
		plan->memory = !copies	    ? GDRCAP_MEMORY_DEVICE
			       : plan->cuda ? GDRCAP_MEMORY_PINNED
					    : GDRCAP_MEMORY_HOST;
	if (plan->memory == GDRCAP_MEMORY_DEVICE && copies)
		return error_set(
			error, -ENOTSUP,
			"memory: port %s (%s) copies frames with the CPU and cannot reach GPU "
			"memory; use --memory %s, or a port that can: a ConnectX, or ring:NAME",
			copies->name, copies->facts->what, plan->cuda ? "pinned" : "host");
	/* `memory` itself cannot be host memory beside a CUDA device. */
	if (settings->sender == SENDER_GPU && plan->cuda && plan->tx_memory == GDRCAP_MEMORY_HOST)
		return error_set(error, -ENOTSUP,
				 "sender.memory: a kernel (sender: gpu) cannot write host memory; "
				 "use pinned%s",
				 copies ? "" : ", or device");
	/* Of the kinds that can be asked for with it, only a chosen one is another. */
	if (settings->guard && copies)
		return error_set(
			error, -ENOTSUP,
			"guard: only device memory can be guarded, and port %s needs %s memory",
			copies->name, plan_memory_name(plan->memory));
	return 0;
}

static int plan_ports(struct plan *plan, const struct settings *settings,
		      struct gdrcap_error *error)
{
	const bool two = settings->rx.count && settings->tx.count;

	for (uint32_t i = 0; i < SETTINGS_PORTS; i++) {
		const struct port_spec *port = settings_port(settings, i);
		int ret;

		if (!port->name[0])
			continue;
		plan->umem |= port->facts->umem;
		snprintf(plan_port_at(plan, i)->opened, PLAN_OPENED_BYTES, "%s", port->name);
		if (i >= GDRCAP_PORTS_MAX && settings_is_both(settings, i - GDRCAP_PORTS_MAX))
			continue;
		ret = port->connectx ? plan_card(plan, settings, i, error) : 0;
		if (ret < 0)
			return ret;
	}
	for (uint32_t i = 0; i < settings->ports; i++)
		plan->pools += settings->queues * (two && !settings->rx.port[i].wire ? 2 : 1);
	if (settings->sender_memory != GDRCAP_MEMORY_AUTO) {
		plan->tx_memory = settings->sender_memory;
		plan->tx_pools = settings->ports * settings->queues;
		plan->pools -= plan->tx_pools;
	}
	return 0;
}

/* What the machine could give to programs now. */
static size_t memory_available(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib ? (size_t)kib << 10
		   : (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

/* Frames that no rule names are filtered, so they are not expected either; those that this run sends
 * would count as lost. */
static int plan_expect(struct plan *plan, const struct settings *settings,
		       struct gdrcap_error *error)
{
	const struct frame_match *match = &settings->layout.match;
	int ret = 0;

	if (settings->pcap[0] && match->count)
		ret = file_frames_scan(settings->pcap, match, &plan->expect, error);
	if (ret == 0 && plan->expect.refused)
		ret = error_set(error, -EINVAL,
				"match: no rule names %llu frames of %s, which this run sends to "
				"itself: they would be filtered and count as lost; name them too, "
				"or leave match out",
				(unsigned long long)plan->expect.refused, settings->pcap);
	if (ret < 0)
		return error_of_config(error, ret);
	if (strcmp(settings->expect, settings->pcap) != 0)
		return file_frames_scan(settings->expect, match, &plan->expect, error);
	plan->expect = plan->pcap;
	return 0;
}

/* Files are read once before anything is opened: slots and pools follow from their frames. */
static int plan_files(struct plan *plan, const struct settings *settings,
		      struct gdrcap_error *error)
{
	int ret = 0;

	plan->file_memory = settings->pcap_memory ? settings->pcap_memory : memory_available() / 2;
	if (settings->pcap[0])
		ret = file_frames_scan(settings->pcap, NULL, &plan->pcap, error);
	if (ret == 0 && settings->expect[0])
		ret = plan_expect(plan, settings, error);
	plan->frame_bytes_max =
		(uint16_t)(RTE_MAX(plan->pcap.len_max, plan->expect.len_max) + FRAME_FCS_BYTES);
	plan->frame_bytes_max = RTE_MAX(plan->frame_bytes_max, settings_frame_bytes(settings));
	return ret == 0 ? session_file_ports_check(settings, error) : ret;
}

/* What a driver would pass over in silence. */
static int plan_arguments(const struct settings *settings, struct gdrcap_error *error)
{
	for (uint32_t i = 0; i < SETTINGS_PORTS; i++) {
		const struct port_spec *port = settings_port(settings, i);
		char secret[MEMIF_SECRET_BYTES];

		if (!port->name[0])
			continue;
		if (port_name_is_af_packet(port->name) && settings->descriptors != DESCRIPTORS)
			log_warning("descriptors: %u means nothing to port %s (%s): its argument "
				    "framecnt says how many frames its ring holds",
				    settings->descriptors, port->name, port->facts->what);
		/* It would compare the beginning only. */
		if (port->facts->joins && devargs_value(devargs_of(port->name), "secret", 0, secret,
							sizeof(secret)) >= (int)sizeof(secret))
			return error_set(error, -EINVAL,
					 "port %s: its secret has more than the %zu letters that "
					 "memif compares; give a shorter one",
					 port->name, sizeof(secret) - 1);
	}
	return 0;
}

/* Tags that a rule asks for must reach those who apply the rule. */
static int plan_tags(const struct settings *settings, struct gdrcap_error *error)
{
	for (uint32_t p = 0; p < settings->rx.count; p++) {
		const struct port_spec *port = &settings->rx.port[p];

		for (uint32_t i = 0; port->facts->no_vlan && i < settings->match.count; i++) {
			const struct match_rule *match = &settings->match.rule[i];

			if ((match->rule.fields & FRAME_MATCH_VLAN) && match->rule.vlan)
				return error_set(
					error, -ENOTSUP,
					"match: \"%s\": port %s (%s) does not deliver VLAN tags; use "
					"net_af_xdp0,iface=... or a ConnectX",
					match->text, port->name, port->facts->what);
		}
		if (port->facts->no_vlan && (settings->save[0] || settings->expect[0]))
			log_warning("port %s (%s) does not deliver VLAN tags: tagged frames are "
				    "%s without",
				    port->name, port->facts->what,
				    settings->save[0] ? "saved" : "compared");
	}
	return 0;
}

/* Bytes after the headroom that port `i` insists on in a slot. */
static uint32_t port_room(struct plan *plan, const struct settings *settings, uint32_t i)
{
	const char *name = plan_port_at(plan, i)->opened;
	const bool fcs = settings_port(settings, i)->facts->room_fcs;

	/* A card's own demand is on what it receives into. */
	if (fcs && i >= GDRCAP_PORTS_MAX)
		return 0;
	return RTE_MAX(port_room_min(name), fcs ? (uint32_t)plan->frame_bytes_max : 0u);
}

/* `need`: of the largest frame, or what a port insists on, and the headroom. */
static int slot_fits(const struct plan *plan, const struct settings *settings, uint32_t need,
		     struct gdrcap_error *error)
{
	const uint32_t most = 1u << (plan->umem ? UMEM_SLOT_SHIFT : SLOT_SHIFT_MAX);

	if (need > most)
		return error_set(
			error, -EMSGSIZE,
			"frame.size: frames of up to %u bytes need slots of %u bytes on these "
			"ports, which can have %u at most%s; send and expect shorter ones",
			plan->frame_bytes_max, need, most,
			plan->umem ? " with an AF_XDP port" : "");
	return settings_slot_fits(settings, plan->frame_bytes_max, need, error);
}

static int plan_slots(struct plan *plan, const struct settings *settings,
		      struct gdrcap_error *error)
{
	uint32_t need = plan->frame_bytes_max - FRAME_FCS_BYTES;
	int ret;

	for (uint32_t i = 0; i < SETTINGS_PORTS; i++)
		if (settings_port(settings, i)->name[0])
			need = RTE_MAX(need, port_room(plan, settings, i));
	need += RTE_PKTMBUF_HEADROOM;
	plan->slot_shift = settings->slot_bytes ? (uint32_t)__builtin_ctz(settings->slot_bytes)
						: (uint32_t)__builtin_ctz(rte_align32pow2(need));
	plan->slot_shift = RTE_MAX(plan->slot_shift, SLOT_SHIFT_MIN);
	if (plan->umem && settings->slot_bytes && plan->slot_shift != UMEM_SLOT_SHIFT)
		return error_set(
			error, -EINVAL,
			"slot_bytes: an AF_XDP port's slots have 4096 bytes; leave it out");
	if (plan->umem)
		plan->slot_shift = UMEM_SLOT_SHIFT;
	for (uint32_t i = 0; i < SETTINGS_PORTS; i++) {
		const char *name = settings_port(settings, i)->name;
		const struct driver_facts *facts = settings_port(settings, i)->facts;

		if (!name[0])
			continue;
		if (facts->frame_max && plan->frame_bytes_max > facts->frame_max)
			return error_set(
				error, -EMSGSIZE,
				"port %s (%s) carries frames of up to %u bytes; frame.size, or the "
				"file, has %u",
				name, facts->what, facts->frame_max, plan->frame_bytes_max);
		if (facts->no_vlan && settings->frame.vlan)
			return error_set(
				error, -ENOTSUP,
				"port %s (%s) does not deliver VLAN tags; send untagged frames, or "
				"use net_af_xdp0,iface=... or a ConnectX",
				name, facts->what);
	}
	ret = plan_tags(settings, error);
	if (ret == 0)
		ret = plan_arguments(settings, error);
	if (ret < 0)
		return ret;
	return slot_fits(plan, settings, need, error);
}

/* Before EAL starts: it would spend minutes on tables for memory that is not there. */
static int plan_fits(const struct plan *plan, const struct settings *settings,
		     struct gdrcap_error *error)
{
	const size_t physical = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
	const bool elsewhere =
		settings->memory_addr || (plan->cuda && plan->memory == GDRCAP_MEMORY_DEVICE);
	const size_t need = plan->eal_bytes + plan->heads_bytes + plan->tx_bytes +
			    (elsewhere ? 0 : plan->region_bytes);

	if (need > physical)
		return error_set(
			error, -ENOMEM,
			"pool: %u slots need %zu MiB of this machine's memory, it has %zu MiB; "
			"ask for less with pool",
			plan->pool_slots * (plan->pools + plan->tx_pools), need >> 20,
			physical >> 20);
	return 0;
}

/* Slots of a page, a power of two, so that few pages make up a pool of about so many slots. Pools
 * are whole pages: none has a part of another's. */
static uint64_t pool_page(uint64_t slots, uint32_t slot_shift)
{
	const uint64_t few = slots ? rte_align64prevpow2(slots) / POOL_PAGES : 0;

	return RTE_MAX((uint64_t)REGION_ALIGN >> slot_shift, few);
}

static int plan_pools(struct plan *plan, const struct settings *settings,
		      struct gdrcap_error *error)
{
	/* What the caches of a queue's two threads can hold is nobody else's: with fewer slots than
	 * that a sender would wait for ever. */
	const uint64_t wanted = RTE_MAX((uint64_t)POOL_SLOTS_MIN,
					(uint64_t)2 * REGION_POOL_CACHE_MOST +
						2 * settings->descriptors + 4 * settings->burst);
	const uint64_t slots_min = RTE_ALIGN_CEIL(wanted, pool_page(wanted, plan->slot_shift));
	const char *key = settings->memory_addr ? "gdrcap_config_set_memory" : "pool";
	uint64_t slots = RTE_MAX(slots_min, (uint64_t)POOL_SLOTS);
	/* `pool` is of all; a region of the caller's has those that are in it. */
	const uint32_t divide =
		settings->memory_addr && plan->pools ? plan->pools : plan->pools + plan->tx_pools;
	uint32_t pools;

	if (settings->pool_bytes) {
		slots = (settings->pool_bytes >> plan->slot_shift) / divide;
		slots = RTE_ALIGN_FLOOR(slots, pool_page(slots, plan->slot_shift));
		if (slots < slots_min)
			return error_set(
				error, -EINVAL,
				"%s: these ports, queues and descriptors need at least %llu slots "
				"of %u bytes: %llu MiB",
				key, (unsigned long long)slots_min * divide, 1u << plan->slot_shift,
				(unsigned long long)((slots_min * divide << plan->slot_shift) +
						     (1u << 20) - 1) >>
					20);
		if (slots * (plan->pools + plan->tx_pools) > UINT32_MAX / 4)
			return error_set(error, -EINVAL, "%s: more than %u slots are not supported",
					 key, UINT32_MAX / 4);
	}
	if (settings_own_queues(settings)) {
		slots = RTE_MIN(rte_align64prevpow2(slots), (uint64_t)CQ_FRONT_SLOTS_MAX);
		if (slots < slots_min)
			return error_set(
				error, -EINVAL,
				"rx_by: receive queues of our own have %u slots at most, a power "
				"of two, and %llu are needed; lower descriptors, or raise pool",
				CQ_FRONT_SLOTS_MAX, (unsigned long long)slots_min);
		if (settings->rx_strides > 1 && settings->rx_strides > slots / CQ_FRONT_ENTRIES_MIN)
			return error_set(
				error, -EINVAL,
				"rx_strides: a receive queue has %llu slots here, so %llu frames a "
				"work entry at most, for %u work entries; lower rx_strides, or "
				"raise pool",
				(unsigned long long)slots,
				(unsigned long long)slots / CQ_FRONT_ENTRIES_MIN,
				CQ_FRONT_ENTRIES_MIN);
	}
	plan->pool_slots = (uint32_t)slots;
	plan->region_bytes = settings->memory_addr
				     ? settings->pool_bytes
				     : (size_t)slots * plan->pools << plan->slot_shift;
	/* Any slot of a receiving pool may hold the rest of a frame, whose beginning lies
	 * elsewhere. */
	if (settings->split)
		plan->heads_bytes = (size_t)slots * settings->ports * settings->queues
				    << REGION_HEAD_SHIFT;
	/* A send queue of the caller's has small mbufs for second pieces too. */
	plan->tx_bytes = (size_t)slots * plan->tx_pools << plan->slot_shift;
	if (!plan->region_bytes)
		plan->region_bytes = REGION_ALIGN;
	pools = plan->pools + plan->tx_pools +
		(settings_lends(settings) ? settings->ports * settings->queues : 0) +
		(settings->split ? settings->ports * settings->queues : 0);
	plan->eal_bytes = EAL_BASE_BYTES + plan_cards_bytes(plan, settings) +
			  pools * region_pool_overhead(plan->pool_slots) +
			  (size_t)pools * 2 * sizeof(void *) * rte_align32pow2(plan->pool_slots);
	return plan_fits(plan, settings, error);
}

/* Cards, and what a GPU gives back, wake no thread of ours: there idle ones poll. */
static void plan_idle(struct plan *plan, const struct settings *settings)
{
	bool sleeps = !plan->cuda && settings->sender != SENDER_GPU;

	for (uint32_t i = 0; i < SETTINGS_PORTS; i++) {
		const struct port_spec *port = settings_port(settings, i);

		sleeps &= !port->name[0] || port->facts->sleeps;
	}
	plan->idle_auto = settings->idle_sleep_us == SETTINGS_IDLE_AUTO;
	plan->idle_us = !plan->idle_auto ? settings->idle_sleep_us : sleeps ? IDLE_AUTO_US : 0;
}

/* An error is about the options where no other machine would take them: all but what the machine lacks. */
int plan_create(struct plan *plan, const struct settings *settings, struct gdrcap_error *error)
{
	int ret;

	memset(plan, 0, sizeof(*plan));
	ret = plan_ports(plan, settings, error);
	if (ret == 0)
		ret = error_of_config(error, plan_card_only(settings, error));
	if (ret == 0)
		ret = error_of_config(error, plan_own_memory(settings, error));
	if (ret == 0)
		ret = plan_gpu(plan, settings, error);
	if (ret == 0)
		ret = error_of_config(error, plan_memory(plan, settings, error));
	if (ret == 0)
		ret = plan_files(plan, settings, error);
	if (ret == 0)
		ret = plan_devargs(plan, settings, error);
	if (ret == 0)
		ret = error_of_config(error, plan_slots(plan, settings, error));
	if (ret == 0)
		ret = error_of_config(error, plan_pools(plan, settings, error));
	plan_idle(plan, settings);
	return ret;
}
