/* SPDX-License-Identifier: BSD-3-Clause */
/* What `gdrcap bench` has measured, as JSON and for people: docs/bench.md. */
#ifndef GDRCAP_APP_BENCH_H
#define GDRCAP_APP_BENCH_H

#include <stdio.h>

#include <jansson.h>

#include "bench/measure.h"

#define BENCH_ERROR_BYTES 1024

/* Those that figures depend on; which stages are chosen does not. */
struct bench_parameters {
	uint32_t quick;
	uint32_t runs;			    /* a point */
	uint32_t run_ms;		    /* 0: chosen */
	char gpu[32];			    /* "auto" where none is given */
	char cores[1024];		    /* "0-3,8": always given */
	const char *port, *tx_port, *tx_by; /* "": no ports were given */
};

struct bench_report {
	struct gdrcap_bench_machine machine;
	struct bench_parameters parameters;
	int complete;	 /* all points that were asked for are there */
	int wrong;	 /* frames were damaged or lost */
	json_t *results; /* in the order of measuring */
};

/* ---- bench_json.c ---- */

/* 0 or -ENOMEM. */
int bench_report_add(struct bench_report *report, const struct gdrcap_bench_result *result);
/* One line, ended by a line feed and flushed. 0 or a negative errno. */
int bench_print_json(FILE *to, const struct bench_report *report);
/* The same shape for a bench that did not begin. */
int bench_print_json_error(FILE *to, const char *why);
/* The whole file or nothing: a new one takes the old one's place, with a line for each result. 0 or
 * a negative errno, and then cause and remedy. */
int bench_save(const struct bench_report *report, const char *path, char error[BENCH_ERROR_BYTES]);

/* ---- bench_table.c, on standard output ---- */

void bench_print_header(const struct bench_report *report);
/* What a stage is about, and its columns. */
void bench_print_stage(const struct gdrcap_bench_stage *stage);
/* A row, and what else there is to say of it. */
void bench_print_result(const struct gdrcap_bench_result *result);
/* "64 B, burst 64, ring" */
void bench_format_point(char *to, size_t bytes, const struct gdrcap_bench_point *point);

#endif
