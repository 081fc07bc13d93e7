/* SPDX-License-Identifier: BSD-3-Clause */
#include "knobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

struct fault faults[KNOBS_MAX];
unsigned int fault_count;

static const struct knob_row {
	const char *name;
	uint8_t numbers; /* at least */
	uint8_t numbers_max;
} rows[KNOBS] = {
	[KNOB_DROP] = { "drop", 1, 2 },
	[KNOB_DUP] = { "dup", 1, 2 },
	[KNOB_LATE] = { "late", 2, 2 },
	[KNOB_FLIP] = { "flip", 2, 2 },
	[KNOB_CUT] = { "cut", 2, 2 },
	[KNOB_SPLIT] = { "split", 2, 2 },
	[KNOB_GROW] = { "grow", 2, 2 },
	[KNOB_CUSTOM] = { "custom", 1, 2 },
	[KNOB_CUSTOM_EVERY] = { "custom-every", 1, 1 },
	[KNOB_GARBLE] = { "garble", 1, 2 },
	[KNOB_HOLD] = { "hold", 2, 2 },
	[KNOB_MUTE] = { "mute", 1, 1 },
	[KNOB_SILENT] = { "silent", 1, 1 },
	[KNOB_NAP] = { "nap", 2, 2 },
	[KNOB_HANG] = { "hang", 1, 2 },
	[KNOB_BABBLE] = { "babble", 0, 0 },
	[KNOB_COUNTED] = { "counted", 1, 1 },
	[KNOB_TRICKLE] = { "trickle", 0, 0 },
	[KNOB_PARTIAL] = { "partial", 0, 0 },
	[KNOB_STALL] = { "stall", 1, 1 },
	[KNOB_ABANDON] = { "abandon", 1, 1 },
	[KNOB_ABANDON_WRITER] = { "abandon-writer", 1, 1 },
	[KNOB_LEAVES_LATE] = { "leaves-late", 0, 0 },
	[KNOB_SAVED_LATE] = { "saved-late", 1, 1 },
	[KNOB_COMES_BACK] = { "comes-back", 0, 0 },
	[KNOB_DIES] = { "dies", 1, 1 },
	[KNOB_FLUSH_FAILS] = { "flush-fails", 0, 0 },
	[KNOB_LINK_DOWN] = { "link-down", 0, 0 },
	[KNOB_FILL_FAILS] = { "fill-fails", 1, 1 },
	[KNOB_MEMORY_FORGETS] = { "memory-forgets", 0, 0 },
	[KNOB_COPY_OUT_FAILS] = { "copy-out-fails", 1, 1 },
	[KNOB_COPY_IN_FAILS] = { "copy-in-fails", 1, 1 },
	[KNOB_PROOF_REFUSED] = { "proof-refused", 0, 0 },
	[KNOB_PROOF_LOST] = { "proof-lost", 0, 0 },
	[KNOB_PROOF_QUEUE] = { "proof-queue", 0, 0 },
	[KNOB_PROOF_MISSED] = { "proof-missed", 0, 0 },
	[KNOB_PROOF_ERROR] = { "proof-error", 0, 0 },
	[KNOB_PROOF_CUT] = { "proof-cut", 1, 1 },
	[KNOB_PROOF_SPLIT] = { "proof-split", 1, 1 },
	[KNOB_PROOF_FLAGGED] = { "proof-flagged", 0, 0 },
	[KNOB_PROOF_OUTSIDE] = { "proof-outside", 0, 0 },
	[KNOB_PROOF_STALE] = { "proof-stale", 1, 1 },
	[KNOB_PROOF_FLIP] = { "proof-flip", 1, 1 },
	[KNOB_CONSUMER_REFUSES] = { "consumer-refuses", 0, 0 },
	[KNOB_CONSUMER_MUTE] = { "consumer-mute", 0, 0 },
	[KNOB_CONSUMER_DIES] = { "consumer-dies", 0, 0 },
	[KNOB_CONSUMER_STALE] = { "consumer-stale", 1, 1 },
	[KNOB_CONSUMER_STAYS] = { "consumer-stays", 0, 0 },
	[KNOB_CONSUMER_ABANDONS] = { "consumer-abandons", 0, 0 },
	[KNOB_REGISTER_REFUSED] = { "register-refused", 0, 0 },
};

const struct fault *fault_of(enum knob knob)
{
	for (unsigned int i = 0; i < fault_count; i++)
		if (faults[i].knob == knob)
			return &faults[i];
	return NULL;
}

static _Noreturn void refuse(const char *entry)
{
	fprintf(stderr, "GDRCAP_FAULTS: \"%s\" is no fault\n", entry);
	_Exit(KNOBS_EXIT_REFUSED);
}

/* A decimal number at *at, which it moves on. */
static uint64_t number_at(const char **at, const char *entry)
{
	unsigned long long number;
	char *end;

	if (**at < '0' || **at > '9')
		refuse(entry);
	errno = 0;
	number = strtoull(*at, &end, 10);
	if (errno)
		refuse(entry);
	*at = end;
	return number;
}

static void entry_read(const char *entry)
{
	const size_t length = strcspn(entry, "=@");
	struct fault fault = { .knob = KNOBS, .value = 1 };
	const char *at = entry + length;
	unsigned int numbers = 0;

	for (int knob = 0; knob < KNOBS; knob++)
		if (strlen(rows[knob].name) == length && !strncmp(entry, rows[knob].name, length))
			fault.knob = (enum knob)knob;
	if (fault.knob == KNOBS || fault_count == KNOBS_MAX)
		refuse(entry);
	if (*at == '=') {
		at++;
		fault.number = number_at(&at, entry);
		numbers = 1;
		if (*at == ':') {
			at++;
			fault.value = number_at(&at, entry);
			numbers = 2;
		}
	}
	if (*at == '@') {
		const uint64_t queue = (at++, number_at(&at, entry));

		if (queue > UINT16_MAX || fault.knob >= KNOB_BABBLE)
			refuse(entry);
		fault.queue = (uint16_t)queue;
	}
	if (*at || numbers < rows[fault.knob].numbers || numbers > rows[fault.knob].numbers_max ||
	    (fault.knob == KNOB_CUSTOM_EVERY && fault.number == 0))
		refuse(entry);
	if (fault.knob == KNOB_HANG && numbers == 2)
		thread_stuck_ms = (uint32_t)fault.value;
	faults[fault_count++] = fault;
}

void knobs_read(void)
{
	const char *list = getenv("GDRCAP_FAULTS");
	char *copy, *rest, *entry;

	if (!list || !list[0])
		return;
	copy = strdup(list);
	if (!copy)
		refuse(list);
	rest = copy;
	while ((entry = strsep(&rest, ",")))
		entry_read(entry);
	free(copy);
}
