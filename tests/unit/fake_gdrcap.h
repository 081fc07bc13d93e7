/* SPDX-License-Identifier: BSD-3-Clause */
/* A test double of the session half of gdrcap.h: it does what the test wrote into `fake`. */
#ifndef FAKE_GDRCAP_H
#define FAKE_GDRCAP_H

#include "config/settings.h"
#include "gdrcap.h"

struct fake_gdrcap {
	/* what the calls answer */
	int create_rc, selftest_rc, start_rc, stop_rc;
	uint32_t end_after;    /* calls of gdrcap_wait_end(); 0: never */
	uint32_t signal_after; /* calls after which SIGINT is raised; 0: never */
	struct gdrcap_step steps[4];
	uint32_t step_count;
	struct gdrcap_summary summary;
	const char *message;
	struct gdrcap_cause causes[4];
	uint32_t cause_count;
	struct gdrcap_rule rules[2];
	uint32_t rule_count;
	uint32_t rules_after; /* reads of rule 0 that find one frame less */
	/* what was called */
	struct settings settings; /* of gdrcap_create()'s configuration, each option's own */
	uint32_t created, proved, started, waited, stopped, destroyed;
	uint32_t causes_asked, rules_asked; /* how often the first of them */
};

extern struct fake_gdrcap fake;

#endif
