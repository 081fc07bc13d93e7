/* SPDX-License-Identifier: BSD-3-Clause */
/* The cable between two cards, and what can go wrong on it. */
#include <string.h>

#include "memory.h"
#include "nic.h"

#define FCS 4

/* A frame that waits for its successor; one for each sender. */
static struct {
	uint8_t data[SOFT_FRAME_MAX + 64];
	uint32_t length; /* 0: none */
} held[SOFT_DEVICES_MAX];

bool wire_up(const struct soft_device *device)
{
	const struct soft_device *peer = device->peer;

	return device->up && peer->up && device->link && peer->link && device->faults.link != 0 &&
	       peer->faults.link != 0;
}

bool wire_ready(struct soft_device *from)
{
	struct soft_device *to = from->peer;
	bool full = to->faults.pause != 0 && !rx_has_room(to);

	if (full && !from->paused) {
		to->count.tx_pause_phy++;
		from->count.rx_pause_phy++;
	}
	from->paused = full;
	return !full && !rx_holds_back();
}

static void count_cast(struct soft_counters *count, const uint8_t *data, uint32_t length,
		       unsigned int way)
{
	if ((data[0] & 1) == 0) {
		count->unicast[way]++;
		count->unicast_bytes[way] += length;
	} else if (memcmp(data, "\xff\xff\xff\xff\xff\xff", 6) == 0) {
		count->broadcast[way]++;
		count->broadcast_bytes[way] += length;
	} else {
		count->multicast[way]++;
		count->multicast_bytes[way] += length;
	}
}

static void arrive(struct soft_device *device, uint8_t *data, uint32_t length)
{
	struct soft_counters *count = &device->count;

	if (soft_fault(&device->faults.crc)) {
		count->rx_crc_errors_phy++;
		return;
	}
	count->rx_packets_phy++;
	count->rx_bytes_phy += length + FCS;
	if (soft_fault(&device->faults.discard)) {
		count->rx_discards_phy++;
		return;
	}
	if (length > device->mtu + 14 + 2 * 4) {
		count->rx_oversize_phy++;
		return;
	}
	count_cast(count, data, length, 0);
	rx_deliver(device, data, length);
}

static void release_held(struct soft_device *from)
{
	uint32_t length = held[from->index].length;

	if (length == 0)
		return;
	held[from->index].length = 0;
	arrive(from->peer, held[from->index].data, length);
}

static void hold(struct soft_device *from, const struct soft_frame *frame)
{
	/* A DMA from this buffer may be under way. */
	soft_dma_complete();
	memcpy(held[from->index].data, frame->data, frame->length);
	held[from->index].length = frame->length;
}

static void corrupt(const struct soft_device *from, struct soft_frame *frame)
{
	uint64_t at = from->faults.corrupt_at;

	frame->data[at < frame->length ? at : frame->length / 2] ^= 0x10;
}

void wire_send(struct soft_device *from, struct soft_frame *frame)
{
	struct soft_faults *faults = &from->faults;

	if (soft_fault(&faults->link_down)) {
		from->link = false;
		from->link_back_ns =
			faults->link_ms == 0 ? 0 : nic_now_ns() + faults->link_ms * 1000000;
		soft_log("%s: link down", from->ibv.name);
	}
	if (!wire_up(from)) {
		from->count.tx_discards_phy++;
		return;
	}
	from->count.tx_packets_phy++;
	from->count.tx_bytes_phy += frame->length + FCS;
	count_cast(&from->count, frame->data, frame->length, 1);
	if (soft_fault(&faults->drop))
		return;
	if (soft_fault(&faults->corrupt))
		corrupt(from, frame);
	if (soft_fault(&faults->reorder)) {
		release_held(from);
		hold(from, frame);
		return;
	}
	/* The receiver may change its frame, by taking out a tag: hence a copy, in the room of the frame that waited. */
	if (soft_fault(&faults->duplicate)) {
		release_held(from);
		hold(from, frame);
	}
	arrive(from->peer, frame->data, frame->length);
	release_held(from);
}

bool wire_holds(void)
{
	for (unsigned int i = 0; i < soft_device_count; i++)
		if (held[i].length != 0 && wire_up(&soft_devices[i]))
			return true;
	return false;
}

void wire_poll(struct soft_device *device, uint64_t now_ns)
{
	if (!device->link && device->link_back_ns != 0 && now_ns >= device->link_back_ns) {
		device->link = true;
		device->link_back_ns = 0;
		soft_log("%s: link up", device->ibv.name);
	}
	/* With no successor, a held frame comes late, but it comes. */
	if (held[device->index].length != 0 && wire_up(device))
		release_held(device);
}
