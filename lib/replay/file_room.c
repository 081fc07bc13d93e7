/* SPDX-License-Identifier: BSD-3-Clause */
/* Which frames of a file have to wait for an image buffer. */
#include "replay/file_room.h"

#include <string.h>

#include "capture/ring_producer.h"
#include "pattern/image_parse.h"

/* The first descriptor that is not accounted for. */
static uint32_t accounted_end(const struct ring_producer *ring)
{
	/* ROOM */
	const uint64_t accounted = atomic_load_explicit(&ring->accounted, memory_order_acquire);

	/* `end` is there for bursts whose slots are not back. */
	return accounted > ring->reclaimed ? ring->end[(uint32_t)(accounted - 1) & ring->burst_mask]
					   : ring->tail;
}

void file_room_look(struct file_promises *promises)
{
	uint32_t end;

	if (promises->first == promises->end)
		return;
	end = accounted_end(promises->ring);
	for (; promises->first != promises->end; promises->first++) {
		const uint32_t slot = promises->first % FILE_ROOM_PROMISES;

		if ((int32_t)(end - promises->list[slot].at) <= 0)
			return;
		atomic_fetch_sub_explicit(
			&promises->room->image[promises->list[slot].image].promised, 1,
			memory_order_release);
	}
}

/* Which description's frame it is, as workers find it; room->count: none's. */
static uint32_t image_find(const struct file_room *room, const uint8_t *frame, uint32_t len,
			   struct image_packet *packet)
{
	for (uint32_t i = 0; i < room->count; i++) {
		image_parse(room->image[i].layout, frame, len, packet);
		if (packet->what == IMAGE_MISFIT)
			return room->count;
		if (packet->what != IMAGE_FILTERED)
			return i;
	}
	return room->count;
}

/* The stream's, or the one that is to be its. */
static struct file_recent *recent_find(struct file_promises *promises, uint64_t stream,
				       uint32_t image)
{
	struct file_recent *recent;

	for (uint32_t i = 0; i < FILE_ROOM_STREAMS; i++)
		if (promises->recent[i].image == image + 1 && promises->recent[i].stream == stream)
			return &promises->recent[i];
	recent = &promises->recent[promises->turn];
	recent->image = 0;
	return recent;
}

void file_room_forget(struct file_promises *promises)
{
	memset(promises->recent, 0, sizeof(promises->recent));
}

/* ROOM */
static bool promise(struct file_room *room, uint32_t image)
{
	const uint32_t before =
		atomic_fetch_add_explicit(&room->image[image].promised, 1, memory_order_acq_rel);

	if (before < atomic_load_explicit(room->image[image].free, memory_order_acquire))
		return true;
	atomic_fetch_sub_explicit(&room->image[image].promised, 1, memory_order_relaxed);
	return false;
}

bool file_room_for(struct file_promises *promises, const uint8_t *frame, uint32_t len, uint32_t at)
{
	struct file_room *room = promises->room;
	struct image_packet packet;
	struct file_recent *recent;
	uint32_t image;

	promises->over_ns = UINT64_MAX;
	if (!room->count)
		return true;
	image = image_find(room, frame, len, &packet);
	if (image == room->count)
		return true;
	if (packet.ends)
		promises->over_ns = room->image[image].linger_ns;
	recent = recent_find(promises, packet.stream, image);
	if (recent->image &&
	    (recent->number[0] == packet.number || recent->number[1] == packet.number))
		return true;
	if (promises->end - promises->first == FILE_ROOM_PROMISES || !promise(room, image))
		return false;
	promises->list[promises->end % FILE_ROOM_PROMISES].at = at;
	promises->list[promises->end++ % FILE_ROOM_PROMISES].image = image;
	if (!recent->image)
		promises->turn = (promises->turn + 1) % FILE_ROOM_STREAMS;
	recent->number[1] = recent->image ? recent->number[0] : packet.number;
	recent->number[0] = packet.number;
	recent->stream = packet.stream;
	recent->image = image + 1;
	return true;
}
