/* SPDX-License-Identifier: BSD-3-Clause */
/* A set of 64-bit numbers without any window or limit, and random numbers: what the models of
 * sequence.c and verdict.c are made of. */
#ifndef GDRCAP_TEST_NUMBER_SET_H
#define GDRCAP_TEST_NUMBER_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct number_set {
	uint64_t *slot; /* number + 1; 0: empty. The set cannot hold 2^64 - 1 */
	size_t slots, used;
};

static inline uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static inline uint64_t random_next(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ull;
	return mixed(*state);
}

/* 0 .. limit - 1 */
static inline uint64_t random_below(uint64_t *state, uint64_t limit)
{
	return random_next(state) % limit;
}

static inline uint64_t *number_slot(const struct number_set *set, uint64_t number)
{
	size_t at = (size_t)(mixed(number) % set->slots);

	while (set->slot[at] && set->slot[at] != number + 1)
		at = at + 1 == set->slots ? 0 : at + 1;
	return &set->slot[at];
}

/* False when it was there. */
static inline bool number_add(struct number_set *set, uint64_t number)
{
	uint64_t *slot;

	if (2 * set->used >= set->slots) {
		struct number_set larger = { .slots = set->slots ? 4 * set->slots : 1024 };

		larger.slot = calloc(larger.slots, sizeof(*larger.slot));
		if (!larger.slot)
			abort();
		for (size_t i = 0; i < set->slots; i++)
			if (set->slot[i])
				*number_slot(&larger, set->slot[i] - 1) = set->slot[i];
		larger.used = set->used;
		free(set->slot);
		*set = larger;
	}
	slot = number_slot(set, number);
	if (*slot)
		return false;
	*slot = number + 1;
	set->used++;
	return true;
}

static inline void number_set_free(struct number_set *set)
{
	free(set->slot);
	memset(set, 0, sizeof(*set));
}

/* What sequence.h promises for one stream, number by number. */
struct sequence_model {
	struct number_set seen;
	bool any;
	uint64_t lowest, newest;
};

/* True when the number is new. */
static inline bool sequence_model_add(struct sequence_model *model, uint64_t number,
				      uint64_t window)
{
	if (number == UINT64_MAX) /* no sequence number */
		return false;
	if (model->any && number <= model->newest && model->newest - number >= window)
		return false; /* too late to tell from a duplicate */
	if (!number_add(&model->seen, number))
		return false;
	if (!model->any || number < model->lowest)
		model->lowest = number;
	if (!model->any || number > model->newest)
		model->newest = number;
	model->any = true;
	return true;
}

/* How many numbers from the first, or 0, to the newest. */
static inline uint64_t sequence_model_expected(const struct sequence_model *model, bool from_zero)
{
	if (!model->any)
		return 0;
	return model->newest + 1 - (from_zero ? 0 : model->lowest);
}

#endif
