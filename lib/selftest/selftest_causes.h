/* SPDX-License-Identifier: BSD-3-Clause */
/* For each step of the self-test: its name, and the likely causes of its failure, the
 * likeliest first, each with its remedy. */
#ifndef GDRCAP_SELFTEST_CAUSES_H
#define GDRCAP_SELFTEST_CAUSES_H

enum selftest_step {
	SELFTEST_PORTS_UP,
	SELFTEST_MEMORY,
	SELFTEST_SENT,
	SELFTEST_STEERED,
	SELFTEST_COMPLETED,
	SELFTEST_CHANGED,
	SELFTEST_RIGHT,
	SELFTEST_CONSUMER,
	SELFTEST_STAGES
};

struct selftest_text {
	const char *name;
	const char *const *causes;   /* NULL-ended */
	const char *const *software; /* the same where no port is a card's; NULL: as with one */
	const char *const *own;	     /* with receive queues of our own; NULL: the same */
};

extern const struct selftest_text selftest_texts[SELFTEST_STAGES];

#endif
