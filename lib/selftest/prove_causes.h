/* SPDX-License-Identifier: BSD-3-Clause */
/* For each stage of the staged first frame: its name, and the likely causes of its failure, the
 * likeliest first, each with its remedy. */
#ifndef GDRCAP_PROVE_CAUSES_H
#define GDRCAP_PROVE_CAUSES_H

enum prove_stage {
	PROVE_PORTS_UP,
	PROVE_MEMORY,
	PROVE_SENT,
	PROVE_STEERED,
	PROVE_COMPLETED,
	PROVE_CHANGED,
	PROVE_RIGHT,
	PROVE_CONSUMER,
	PROVE_STAGES
};

struct prove_text {
	const char *name;
	const char *const *causes;   /* NULL-ended */
	const char *const *software; /* the same where no port is a card's; NULL: as with one */
};

extern const struct prove_text prove_texts[PROVE_STAGES];

#endif
