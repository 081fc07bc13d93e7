/* SPDX-License-Identifier: BSD-3-Clause */
/* What `gdrcap bench` has measured, in the program and in its shapes: docs/bench.md. */
#ifndef GDRCAP_APP_BENCH_H
#define GDRCAP_APP_BENCH_H

#include <stdio.h>

#include <jansson.h>

#include "bench/measure.h"

#define BENCH_SCHEMA "gdrcap.bench/1"
#define BENCH_STAGES_MAX 64
#define BENCH_RESULTS_MAX 8192
#define BENCH_ERROR_BYTES 1024

/* As struct gdrcap_bench_stage, but a file's. */
struct bench_row {
	char id[24], group[24], what[256], unit[24], limit[24];
	int less_is_better;
};

/* Those that figures depend on; which stages are chosen does not. */
struct bench_parameters {
	uint32_t quick;
	uint32_t runs;	  /* a point */
	uint32_t run_ms;  /* 0: chosen by the library */
	char gpu[32];	  /* "auto" where none is given */
	char cores[1024]; /* "0-3,8": always given */
};

struct bench_report {
	char version[256];
	struct gdrcap_bench_machine machine;
	struct bench_parameters parameters;
	int complete; /* all points that were asked for are there */
	struct bench_row rows[BENCH_STAGES_MAX];
	size_t row_count;
	struct gdrcap_bench_result *results;
	size_t count, room;
};

/* ---- bench.c ---- */

/* Adds it, or puts it in the place of the one of the same point. 0 or -ENOMEM. */
int bench_report_add(struct bench_report *report, const struct gdrcap_bench_result *result);
/* The one of that point, or NULL. */
struct gdrcap_bench_result *bench_report_find(const struct bench_report *report,
					      const struct gdrcap_bench_point *point);
const struct bench_row *bench_report_row(const struct bench_report *report, const char *id);
void bench_report_free(struct bench_report *report);
/* This program's stages. */
void bench_report_rows(struct bench_report *report);
/* What makes the figures of `b` incomparable with those of `a`: "of another version"; or NULL. */
const char *bench_report_difference(const struct bench_report *a, const struct bench_report *b);
/* "0-3,8": CPUs that this process may use. */
void bench_cores_text(char *to, size_t bytes);
/* "rx_worker, 64 B, burst 64, ring" */
void bench_format_point(char *to, size_t bytes, const struct gdrcap_bench_point *point);

/* ---- bench_json.c ---- */

/* NULL when memory is short. */
json_t *bench_to_json(const struct bench_report *report);
/* One line, ended by a line feed and flushed. 0 or a negative errno. */
int bench_print_json(FILE *to, const struct bench_report *report);
/* The same shape for a bench that did not begin. */
int bench_print_json_error(FILE *to, const char *why);

/* ---- bench_read.c: texts of `error` are cause and remedy, `path` in front ---- */

/* 0; -ENOENT: there is no such file; else a negative errno with the error. */
int bench_load(struct bench_report *report, const char *path, char error[BENCH_ERROR_BYTES]);
/* The whole file or nothing: a new one takes the old one's place, with a line for each result. 0 or
 * a negative errno. */
int bench_save(const struct bench_report *report, const char *path, char error[BENCH_ERROR_BYTES]);

/* ---- bench_text.c ---- */

void bench_print_header(FILE *to, const struct bench_report *report);
/* A table for each stage. */
void bench_print_table(FILE *to, const struct bench_report *report, int colour);

#endif
