/* SPDX-License-Identifier: BSD-3-Clause */
/* What time does to images that are open, and when it will. */
#include "image/assembler_internal.h"

/* The counters of two CPUs may differ a little, and a thread move from one to the other. */
bool image_time_over(uint64_t now, uint64_t since, uint64_t ticks)
{
	return (int64_t)(now - since) > (int64_t)ticks;
}

/* So that nothing complete waits longer for it than `timeout`. */
static bool image_holds_up(const struct assembler *assembler, uint64_t now,
			   const struct assembler_slot *entry)
{
	for (uint32_t slot = entry->newer; slot != ASSEMBLER_NONE;
	     slot = assembler->slot[slot].newer) {
		const struct assembler_slot *newer = &assembler->slot[slot];

		if (newer->state != ASSEMBLER_OPEN && newer->end == GDRCAP_IMAGE_COMPLETE &&
		    image_time_over(now, newer->last, assembler->config.timeout))
			return true;
	}
	return false;
}

bool assembler_is_due(const struct assembler *assembler, uint64_t now,
		      const struct assembler_slot *entry)
{
	const struct assembler_config *config = &assembler->config;

	return image_time_over(now, entry->last, config->timeout) ||
	       (entry->ends && image_time_over(now, entry->ended, config->linger)) ||
	       image_holds_up(assembler, now, entry);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t assembler_stream_due(const struct assembler *assembler,
			      const struct assembler_stream *stream)
{
	const struct assembler_config *config = &assembler->config;
	uint64_t due = UINT64_MAX;
	bool open = false;

	for (uint32_t slot = stream->oldest; slot != ASSEMBLER_NONE;
	     slot = assembler->slot[slot].newer) {
		const struct assembler_slot *entry = &assembler->slot[slot];

		open |= entry->state == ASSEMBLER_OPEN;
		if (entry->state == ASSEMBLER_OPEN && entry->ends)
			due = sooner(due, entry->ended + config->linger);
		/* a complete one is held up by older ones for so long */
		if (entry->state == ASSEMBLER_OPEN || (open && entry->end == GDRCAP_IMAGE_COMPLETE))
			due = sooner(due, entry->last + config->timeout);
	}
	return due;
}

uint64_t assembler_over(const struct assembler *assembler)
{
	uint64_t due = UINT64_MAX;

	for (uint64_t left = assembler->listing; left; left &= left - 1)
		due = sooner(due, assembler_stream_due(assembler,
						       &assembler->stream[__builtin_ctzll(left)]));
	for (uint64_t left = assembler->active & ~assembler->listing; left; left &= left - 1)
		due = sooner(due, assembler->stream[__builtin_ctzll(left)].active +
					  assembler->config.timeout);
	return due == UINT64_MAX ? due : due + 1;
}

bool assembler_closes(const struct assembler *assembler)
{
	for (uint32_t slot = 0; slot < assembler->config.view->ring; slot++)
		/* one that is closed may wait for older ones in its list, and these for the time */
		if (assembler->slot[slot].state == ASSEMBLER_CLOSING &&
		    !assembler_is_closed(assembler, &assembler->slot[slot]))
			return true;
	return false;
}

bool assembler_is_full(const struct assembler *assembler)
{
	for (uint32_t slot = 0; slot < assembler->config.view->ring; slot++)
		if (assembler->slot[slot].state != ASSEMBLER_OPEN)
			return false;
	return true;
}
