/* SPDX-License-Identifier: BSD-3-Clause */
/* Closing an image that misses pieces, or that may still get more. */
#include "image/assembler_internal.h"

void assembler_move_window(struct assembler *assembler, const struct assembler_slot *entry)
{
	uint64_t *last = &assembler->config.view->shared->window[entry->stream].last;

	if (!*last || entry->number >= *last ||
	    *last - 1 - entry->number > assembler->config.view->layout.late)
		__atomic_store_n(last, entry->number + 1, __ATOMIC_RELEASE);
}

bool assembler_has_all(const struct assembler *assembler)
{
	const struct assembler_config *config = &assembler->config;

	return config->has_all && config->has_all(config->context);
}

/* The run had all its images by now, and none of these is a newer one of the same stream. */
static bool is_behind(const struct assembler *assembler, const struct assembler_slot *entry)
{
	if (!assembler_has_all(assembler))
		return false;
	for (uint32_t slot = entry->newer; slot != ASSEMBLER_NONE;
	     slot = assembler->slot[slot].newer) {
		const struct assembler_slot *newer = &assembler->slot[slot];

		if (newer->state != ASSEMBLER_OPEN && newer->end == GDRCAP_IMAGE_COMPLETE &&
		    !newer->behind)
			return false;
	}
	return true;
}

void assembler_close(struct assembler *assembler, struct assembler_slot *entry,
		     enum gdrcap_image_end end)
{
	const struct assembler_config *config = &assembler->config;
	const bool dropped = entry->lost || (config->drop_incomplete && end);
	int ret;

	assembler_move_window(assembler, entry);
	entry->behind |= is_behind(assembler, entry);
	entry->end = end;
	entry->state = ASSEMBLER_CLOSING;
	entry->ones = 0;
	ret = config->close(config->context, (uint32_t)(entry - assembler->slot), entry->use,
			    assembler_expected(assembler, entry), dropped ? -1 : config->fill);
	if (ret == 0)
		return;
	assembler->failure = ret;
	entry->state = ASSEMBLER_DONE;
	entry->lost = 1;
}

void assembler_note_closed(struct assembler *assembler, struct assembler_slot *entry)
{
	const struct place_view *view = assembler->config.view;
	const uint32_t slot = (uint32_t)(entry - assembler->slot);
	uint32_t expected;

	entry->bytes = view->shared->closed[slot].bytes;
	entry->last_bytes = view->shared->closed[slot].last_bytes;
	entry->pieces = view->shared->closed[slot].pieces;
	if (entry->said && entry->said < view->layout.pieces)
		entry->past =
			image_bits_past(view->present_host + (size_t)slot * view->present_words,
					view->layout.pieces);
	expected = assembler_expected(assembler, entry);
	if (expected && entry->pieces >= expected)
		entry->end = GDRCAP_IMAGE_COMPLETE;
	else if (entry->end == GDRCAP_IMAGE_COMPLETE) /* the sender had said fewer than came */
		entry->end = GDRCAP_IMAGE_TIMEOUT;
	entry->state = ASSEMBLER_DONE;
}

bool assembler_is_closed(const struct assembler *assembler, const struct assembler_slot *entry)
{
	const struct place_shared *shared = assembler->config.view->shared;

	return entry->state == ASSEMBLER_CLOSING &&
	       __atomic_load_n(&shared->closed[entry - assembler->slot].use, __ATOMIC_ACQUIRE) ==
		       entry->use;
}
