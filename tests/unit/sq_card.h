/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A card that reads a send queue, for tests: strict, written from the entries' layout and not from
 * port/sq_front.h's arithmetic. It calls back for each frame, in order, and completes what is marked.
 */
#ifndef GDRCAP_TEST_SQ_CARD_H
#define GDRCAP_TEST_SQ_CARD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "port/sq_front.h"

struct sq_card {
	uint8_t *ring, *cq;
	uint32_t *record;
	uint64_t *bell;
	uint32_t blocks, cqes, number, key;
	uint16_t next; /* block */
	uint64_t cqe;  /* completions written */
	bool awake;    /* the register was written since there was nothing to do */
	uint64_t frames, entries, multi, wrapped, nops;
	const char *wrong; /* the first thing that a card would not take */
	/* Frame number `frames`. */
	void (*frame)(void *context, uint64_t number, uint64_t address, uint32_t bytes);
	void *context;
};

static inline uint32_t sq_card_be32(const uint8_t *from)
{
	return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static inline const uint8_t *sq_card_segment(const struct sq_card *card, uint32_t n)
{
	return card->ring + ((uint64_t)card->next * 64 + n * 16) % (card->blocks * 64ull);
}

/* 16 entries: a completion of that kind for block `counter`. */
static inline void sq_card_complete(struct sq_card *card, uint32_t opcode, uint16_t counter,
				    uint32_t number, uint8_t syndrome)
{
	uint8_t *cqe = card->cq + card->cqe % card->cqes * 64;
	const uint8_t tail[8] = { 0,
				  (uint8_t)(number >> 16),
				  (uint8_t)(number >> 8),
				  (uint8_t)number,
				  (uint8_t)(counter >> 8),
				  (uint8_t)counter,
				  0,
				  (uint8_t)(opcode << 4 | (card->cqe / card->cqes & 1)) };
	uint64_t last;

	memset(cqe, 0xab, 54);
	cqe[54] = 0x77;
	cqe[55] = syndrome;
	memcpy(&last, tail, sizeof(last));
	/* All that the card did before it: partner of SENT. */
	__atomic_store_n((uint64_t *)(cqe + 56), last, __ATOMIC_RELEASE);
	card->cqe++;
}

/* The entry at card->next. */
static inline bool sq_card_entry(struct sq_card *card, uint16_t left)
{
	const uint8_t *control = sq_card_segment(card, 0), *ethernet = sq_card_segment(card, 1);
	const uint32_t word = sq_card_be32(control), ds = control[7] & 0x3f, opcode = word & 0xff;
	const uint16_t blocks = (uint16_t)((ds + 3) / 4);

	if (word >> 24 || (word >> 8 & 0xffff) != card->next)
		card->wrong = "an entry with another index";
	else if (sq_card_be32(control + 4) >> 8 != card->number || control[7] & 0xc0)
		card->wrong = "an entry of another queue";
	else if (ds < 2 || blocks > left)
		card->wrong = "an entry that is not all there";
	else if (opcode != 0x29 && !(opcode == 0x0a && ds == 3) && !(opcode == 0 && ds == 2))
		card->wrong = "an opcode";
	else if (control[8] || control[9] || control[10] || sq_card_be32(control + 12) ||
		 (control[11] != 4 && control[11] != 8))
		card->wrong = "flags";
	for (uint32_t i = 0; i < 16; i++)
		if (ethernet[i])
			card->wrong = "an Ethernet segment that asks for something";
	if (card->wrong)
		return false;
	card->entries++;
	card->multi += opcode == 0x29;
	card->nops += opcode == 0;
	card->wrapped += card->next % card->blocks + blocks > card->blocks;
	for (uint32_t n = 2; n < ds; n++) {
		const uint8_t *data = sq_card_segment(card, n);

		if (sq_card_be32(data + 4) != card->key)
			card->wrong = "a key";
		card->frame(card->context, card->frames++,
			    (uint64_t)sq_card_be32(data + 8) << 32 | sq_card_be32(data + 12),
			    sq_card_be32(data));
	}
	if (control[11] == 8)
		sq_card_complete(card, 0, card->next, card->number, 0);
	card->next = (uint16_t)(card->next + blocks);
	return true;
}

/* One look, and all that it finds. Entries run. */
static inline uint64_t sq_card_run(struct sq_card *card)
{
	const uint64_t before = card->entries;
	uint64_t bell = 0;
	uint16_t end, last;

	/* Partner of RUNG. */
	if (__atomic_load_n(card->bell, __ATOMIC_RELAXED))
		bell = __atomic_exchange_n(card->bell, 0, __ATOMIC_ACQUIRE);
	card->awake |= bell != 0;
	if (!card->awake || card->wrong)
		return 0;
	/* Partner of POSTED. */
	end = (uint16_t)sq_card_be32(
		(const uint8_t *)&(uint32_t){ __atomic_load_n(card->record, __ATOMIC_ACQUIRE) });
	/* The register names an entry, which the record has reached. */
	last = (uint16_t)(sq_card_be32((const uint8_t *)&bell) >> 8);
	if (bell && (uint16_t)(end - 1 - last) >= card->blocks)
		card->wrong = "the register before the record";
	while (card->next != end && sq_card_entry(card, (uint16_t)(end - card->next)))
		;
	card->awake = false;
	return card->entries - before;
}

#endif
