/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An entry of the table of open images (kernels/place.h): who may be inside, and whose the image is.
 *
 * An entry is one word: which use of the buffer this is, 0 while it is closed, and how many workers are
 * inside: writers, and comparers, which write nothing. Orderings, by name:
 *
 *   word                     bit 63                       32 31       20 19        0
 *                            | use                         | comparers  | writers   |
 *
 * ENTER: fetch-add of one worker, acquire. What it returns says whether the use is still the one that was
 * found. Partner, CLOSE: fetch-and of the lower half, then the workers are waited for to be 0, acquire.
 * Both are on one word, so who enters sees the entry closed, or who closes sees him inside and waits. In two
 * words both could go on, and a frame would be written into an image that was handed out or is another
 * one by now.
 * SHUT: compare-and-swap that clears the use, if it still is the one that was handed out complete. Nobody is
 * waited for: all bits are set, so who is inside writes nothing.
 * LEAVE: fetch-add of minus one worker, release, after the last store into the buffer and its bitmap.
 * Partner: CLOSE's loads.
 * OPEN: fetch-add of the use, release, after the entry's number and stream, the emptied bitmap and the
 * head. Partner: the acquire load of the word by who finds the entry.
 * COMPARE: who finds a piece's bit set, and other bytes than his, turns from writer into comparer (fetch-add, release:
 * what he stored is there) and looks again, until the bytes are equal or no writer was inside before he looked: a load,
 * acquire. Partners: LEAVE, and others' turns. Comparers do not wait for each other. CLOSE waits for them as for
 * writers, and lets no writer come, so it ends with the image at the latest. Bytes that are equal while a writer is
 * inside count as equal, so that copies wait for nobody. Where two workers have the same piece at once, what the first
 * has not stored yet is what the buffer had before: only if that happens to be the second one's bytes is a difference
 * missed.
 */
#ifndef GDRCAP_PLACE_SLOT_H
#define GDRCAP_PLACE_SLOT_H

#include "kernels/place_atomic.h"

/* In a word. A GPU's group is inside as a writer once a run of its burst, and as a comparer once an image. */
#define PLACE_COMPARER 0x100000u

/* An image buffer in use. 64 bytes, a cache line's half. Writers: who has the lock, but for `users`;
 * CLOSE: whoever closes. */
struct place_slot {
	uint64_t word;		    /* ENTER, LEAVE, OPEN, CLOSE */
	uint64_t number, stream_id; /* as on the wire */
	uint32_t stream;	    /* index */
	uint32_t uses;		    /* so far */
	uint64_t short_piece;	    /* place_claim_short(); writers: workers inside */
	uint32_t source;	    /* image_source() of the frame that began the image */
	uint32_t leg;		    /* of its second sender, 0: none; writers: workers inside */
	uint32_t reserved[4];
};

GDRCAP_HD uint32_t place_word_use(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

GDRCAP_HD uint32_t place_word_users(uint64_t word)
{
	return (uint32_t)word;
}

GDRCAP_HD uint32_t place_word_writers(uint64_t word)
{
	return (uint32_t)word & (PLACE_COMPARER - 1);
}

/*
 * Whether the entry is open and this image's; *use: which use of it, and *stream: the stream's index. What it
 * says holds if ENTER finds the same use: the rest is written only between two uses.
 */
GDRCAP_HD int place_slot_is(const struct place_slot *slot, uint64_t stream_id, uint64_t number,
			    uint32_t *stream, uint32_t *use)
{
	*use = place_word_use(place_load64(&slot->word));
	if (place_load_relaxed(&slot->number) != number ||
	    place_load_relaxed(&slot->stream_id) != stream_id)
		return 0;
	*stream = place_load_relaxed32(&slot->stream);
	return *use != 0;
}

/* CLOSE: nobody enters any more, and nobody is inside. */
GDRCAP_HD void place_close(struct place_slot *slot)
{
	if (place_word_users(place_and64(&slot->word, UINT32_MAX)))
		while (place_word_users(place_load64(&slot->word)))
			place_pause();
}

/* An image that was handed out complete. */
struct place_whole {
	uint32_t slot, use;
};

/* SHUT: of an image that comes with this number nobody finds this one. */
GDRCAP_HD void place_shut(struct place_slot *slot, uint32_t use)
{
	uint64_t word = place_load64(&slot->word);

	while (place_word_use(word) == use && !place_cas64(&slot->word, &word, word & UINT32_MAX))
		;
}

/* ENTER; 0: the entry was closed since it was found, and its image is not to be touched. */
GDRCAP_HD int place_enter(struct place_slot *slot, uint32_t use)
{
	if (place_word_use(place_add64(&slot->word, 1)) == use)
		return 1;
	place_add64(&slot->word, UINT64_MAX);
	return 0;
}

/* LEAVE */
GDRCAP_HD void place_leave(struct place_slot *slot)
{
	place_add64_release(&slot->word, UINT64_MAX);
}

/* COMPARE: a writer becomes a comparer. */
GDRCAP_HD void place_turn(struct place_slot *slot)
{
	place_add64_release(&slot->word, PLACE_COMPARER - 1);
}

/* No writer is inside: what is compared from now on is what is there. */
GDRCAP_HD int place_is_still(const struct place_slot *slot)
{
	return !place_word_writers(place_load64(&slot->word));
}

/* ENTER of a comparer, which becomes a writer again; 0: the entry was closed, and he is outside. */
GDRCAP_HD int place_turn_back(struct place_slot *slot, uint32_t use)
{
	if (place_word_use(place_add64(&slot->word, 1 - (uint64_t)PLACE_COMPARER)) == use)
		return 1;
	place_add64_release(&slot->word, UINT64_MAX);
	return 0;
}

/* LEAVE of a comparer. */
GDRCAP_HD void place_leave_comparer(struct place_slot *slot)
{
	place_add64_release(&slot->word, 0 - (uint64_t)PLACE_COMPARER);
}

/* place_slot.short_piece: image_part.short_at, and above it how many bytes that piece has. */
GDRCAP_HD uint64_t place_short_word(uint32_t short_at, uint32_t bytes)
{
	return (uint64_t)bytes << 32 | short_at;
}

GDRCAP_HD uint32_t place_short_at(uint64_t short_piece)
{
	return (uint32_t)short_piece;
}

GDRCAP_HD uint32_t place_short_bytes(uint64_t short_piece)
{
	return (uint32_t)(short_piece >> 32);
}

/*
 * Whether a frame of this source is of the image, by who is inside. Without `legs` an image has one sender: of two with
 * the same ids each would fill the other's holes. The second leg is the second sender of which a frame came.
 */
GDRCAP_HD int place_source_fits(struct place_slot *slot, uint32_t legs, uint32_t source)
{
	uint32_t leg;

	if (!legs || place_load_relaxed32(&slot->source) == source)
		return 1;
	if (legs == 1)
		return 0;
	leg = place_load_relaxed32(&slot->leg);
	if (!leg)
		leg = place_cas32(&slot->leg, 0, source);
	return !leg || leg == source;
}

#ifdef __cplusplus
static_assert(sizeof(struct place_slot) == 64, "entry");
#else
_Static_assert(sizeof(struct place_slot) == 64, "entry");
#endif

#endif
