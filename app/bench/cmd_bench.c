/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrcap bench: how fast is the path on this machine, beside the limits of the machine. */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench_report.h"
#include "cmd.h"
#include "cpu_list.h"
#include "flags.h"
#include "options.h"
#include "report.h"
#include "signals.h"

#define COMMAND "bench"
#define RUNS 5
#define RUN_MS_MOST 60000
#define LINE_BYTES 79 /* of a terminal: a longer progress line could not be rewritten */

struct bench_options {
	int quick, json, quiet;
	uint32_t runs, run_ms;
	const char *stages, *gpu, *cores, *save;
	const char *port, *tx_port, *rx_by, *tx_by;
};

/* One `gdrcap bench`. */
struct bench {
	struct bench_options options;
	struct bench_report report;
	struct gdrcap_bench_config config;
	int rewrite; /* progress on a terminal */
	int shown;   /* a line of it is there */
	int began;   /* a point is measured, or was */
	int save_failed;
	uint32_t measured;
	char stage[24]; /* whose heading the table has last */
	char error[BENCH_ERROR_BYTES];
};

/* ---- what the runner calls ---- */

static void progress_clear(struct bench *bench)
{
	if (bench->shown)
		fprintf(stderr, "\r\033[K");
	bench->shown = 0;
}

static int save(struct bench *bench)
{
	const int rc = bench->options.save
			       ? bench_save(&bench->report, bench->options.save, bench->error)
			       : 0;

	bench->save_failed |= rc < 0;
	return rc;
}

static void progress(void *context, const struct gdrcap_bench_point *point, uint32_t done,
		     uint32_t points, double seconds_left)
{
	const unsigned int left = (unsigned int)(seconds_left + 0.5);
	struct bench *bench = context;
	char text[160], line[256];

	/* Now rather than after the first point: a file that cannot be written ends the bench. */
	if (!bench->began)
		save(bench);
	if (!bench->began && !bench->options.json)
		bench_print_header(&bench->report);
	bench->began = 1;
	if (bench->options.quiet)
		return;
	bench_format_point(text, sizeof(text), point);
	snprintf(line, sizeof(line), "%u/%u, %u:%02u min left: %s, %s", done + 1, points, left / 60,
		 left % 60, point->stage, text);
	if (!bench->rewrite) {
		fprintf(stderr, "gdrcap bench: %s\n", line);
		return;
	}
	fprintf(stderr, "\r\033[K%.*s", LINE_BYTES, line);
	fflush(stderr);
	bench->shown = 1;
}

static const struct gdrcap_bench_stage *stage_of(const char *id)
{
	const struct gdrcap_bench_stage *stage;
	size_t i = 0;

	while ((stage = gdrcap_bench_stage_at(i)) && strcmp(stage->id, id))
		i++;
	return stage;
}

/* The next row of the table. */
static void show(struct bench *bench, const struct gdrcap_bench_result *result)
{
	progress_clear(bench);
	if (strcmp(bench->stage, result->point.stage)) {
		memcpy(bench->stage, result->point.stage, sizeof(bench->stage));
		bench_print_stage(stage_of(bench->stage));
	}
	bench_print_result(result);
	fflush(stdout);
}

static void take(void *context, const struct gdrcap_bench_result *result)
{
	struct bench *bench = context;

	if (!bench->options.json)
		show(bench, result);
	if (bench_report_add(&bench->report, result) < 0) {
		snprintf(bench->error, sizeof(bench->error), "no memory for the results");
		bench->save_failed = 1;
		return;
	}
	bench->measured += !result->error[0];
	save(bench);
}

static int stop(void *context)
{
	const struct bench *bench = context;

	return bench->save_failed || signals_stop() != 0;
}

/* ---- command line ---- */

#define OPTIONS_MAX 20

/* Fills flags[] and returns their number. */
static size_t flags_make(struct bench_options *o, struct flag *flags)
{
	const struct flag made[] = {
		{ "quick", NULL, "Fewer points and shorter runs: 8 minutes at most.",
		  .on = &o->quick },
		{ "stages", "LIST",
		  "Stages or groups of them, separated by commas; those that "
		  "limit them come along. Without it: all.",
		  .text = &o->stages },
		{ "runs", "N",
		  "Runs of a point, of which the median counts, 1 to 51; 5 without "
		  "it.",
		  .number = &o->runs, .least = 1, .most = GDRCAP_BENCH_RUNS_MAX },
		{ "run-time", "MS",
		  "Length of a run; chosen without it: 500 ms, 50 to 300 with "
		  "--quick.",
		  .number = &o->run_ms, .least = 1, .most = RUN_MS_MOST },
		{ "gpu", "GPU", "auto, host (CPU threads stand in for a GPU) or a CUDA ordinal.",
		  .text = &o->gpu },
		{ "cores", "LIST",
		  "CPUs that are measured, such as 2,4-7: best those near the "
		  "GPU, one of each pair of hyperthreads. Without it: all of this process.",
		  .text = &o->cores },
		{ "port", "PORT",
		  "Receiving port, as gdrcap loopback has it. Whole paths (group "
		  "path) are then measured from --tx-port to this one, as fast as "
		  "they send, and over nothing else.",
		  .text = &o->port },
		{ "tx-port", "PORT", "Sending port, cabled to --port.", .text = &o->tx_port },
		{ "rx-by", "LIST",
		  "Who takes frames from --port: driver, cpu, gpu, or several in turn: "
		  "driver,cpu. Without it: driver.",
		  .text = &o->rx_by },
		{ "tx-by", "WHO", "Who sends through --tx-port: driver, cpu or gpu.",
		  .text = &o->tx_by },
		{ "save", "FILE.json", "Write what is measured, after each point.",
		  .text = &o->save },
		{ "json", NULL, "Print one JSON object (schema gdrcap.bench/1, docs/bench.md).",
		  .on = &o->json },
		{ "quiet", NULL, "No progress.", .on = &o->quiet },
		{ "help", NULL, "Print this text.", .on = NULL },
	};

	_Static_assert(sizeof(made) / sizeof(made[0]) <= OPTIONS_MAX, "room for all");
	memcpy(flags, made, sizeof(made));
	return sizeof(made) / sizeof(made[0]);
}

static void help_print(const struct flag *flags, size_t count)
{
	const struct gdrcap_bench_stage *stage;
	const char *group = "";

	printf("Usage: gdrcap bench [OPTION]...\n"
	       "How fast is the path on this machine: each stage alone and the whole, as medians\n"
	       "of several runs, with how many frames were validated and lost, beside the limit\n"
	       "of the machine, measured in the same run. Needs no GPU, no card, no hugepages and\n"
	       "no root.\n\n"
	       "Examples:\n"
	       "  The most important figures, in 8 minutes at most:\n"
	       "    gdrcap bench --quick\n"
	       "  All, saved after each point; gdrcap report shows and draws such files:\n"
	       "    gdrcap bench --cores 2-9 --save here.json\n"
	       "  Two cards with a cable between them, receive queues of our own beside the driver's:\n"
	       "    gdrcap bench --stages path --port 0000:3b:00.0 --tx-port 0000:5e:00.0 \\\n"
	       "        --rx-by driver,cpu\n"
	       "  What the consumer does, in figures that settle sooner:\n"
	       "    gdrcap bench --stages consumer --runs 3 --run-time 100\n"
	       "\nOptions:\n");
	flags_print(flags, count);
	printf("\nStages, in the order of measuring:\n");
	for (size_t i = 0; (stage = gdrcap_bench_stage_at(i)); i++) {
		int column;

		if (strcmp(group, stage->group))
			printf("  group %s\n", stage->group);
		group = stage->group;
		column = printf("    %s", stage->id);
		column += printf("%*s", column < 24 ? 24 - column : 0, "");
		flags_print_words(stage->what, column, 24);
	}
	printf("\n"
	       "Exit status: 0 measured; 1 could not run, not to its end, or a run failed;\n"
	       "2 command line; 3 frames were damaged or lost; 130 stopped by Ctrl-C.\n");
}

/* 0; 1: --help was printed; -EINVAL: the error is on stderr. */
static int parse(int argc, char **argv, struct bench_options *options)
{
	struct flag flags[OPTIONS_MAX];
	const size_t count = flags_make(options, flags);
	const int rc = flags_parse(COMMAND, flags, count, argc, argv);

	if (rc == 1)
		help_print(flags, count);
	return rc;
}

/* ---- what is to be measured ---- */

static void parameters_make(struct bench_parameters *parameters,
			    const struct bench_options *options)
{
	cpu_set_t set;

	parameters->quick = (uint32_t)options->quick;
	parameters->runs = options->runs ? options->runs : RUNS;
	parameters->run_ms = options->run_ms;
	snprintf(parameters->gpu, sizeof(parameters->gpu), "%s",
		 options->gpu ? options->gpu : "auto");
	parameters->port = options->port ? options->port : "";
	parameters->tx_port = options->tx_port ? options->tx_port : "";
	parameters->tx_by = options->tx_by ? options->tx_by : options->port ? "driver" : "";
	if (options->cores)
		snprintf(parameters->cores, sizeof(parameters->cores), "%s", options->cores);
	else if (sched_getaffinity(0, sizeof(set), &set) == 0)
		cpu_list_add(parameters->cores, sizeof(parameters->cores), &set, CPU_SETSIZE);
}

static int prepare(struct bench *bench)
{
	struct bench_options *options = &bench->options;
	struct gdrcap_error error = { 0 };
	int rc;

	parameters_make(&bench->report.parameters, options);
	bench->config = (struct gdrcap_bench_config){
		.gpu = options->gpu,
		.cores = options->cores,
		.stages = options->stages,
		.port = options->port,
		.tx_port = options->tx_port,
		.rx_by = options->rx_by,
		.tx_by = options->tx_by,
		.quick = (uint32_t)options->quick,
		.runs = options->runs,
		.run_ms = options->run_ms,
		.result = take,
		.progress = progress,
		.stop = stop,
		.context = bench,
	};
	bench->rewrite = isatty(STDERR_FILENO);
	rc = gdrcap_bench_machine(&bench->config, &bench->report.machine, &error);
	if (rc < 0)
		snprintf(bench->error, sizeof(bench->error), "%s", error.text);
	return rc;
}

/* ---- the end ---- */

static int show_end(const struct bench *bench)
{
	int rc;

	if (!bench->options.json) {
		if (!bench->report.complete)
			printf("\nNot all points were measured.\n");
		fflush(stdout);
		return 0;
	}
	rc = bench_print_json(stdout, &bench->report);
	if (rc < 0)
		fprintf(stderr, "gdrcap bench: the result could not be written: %s\n",
			strerror(-rc));
	return rc;
}

/* A program that asked for JSON gets an object in any case. */
static int fail(const struct bench *bench, int status)
{
	fprintf(stderr, "gdrcap bench: %s\n", bench->error);
	if (bench->options.json)
		bench_print_json_error(stdout, bench->error);
	return status;
}

/* How the bench ended, on stderr; returns the exit status. */
static int ended(struct bench *bench, int rc, const struct gdrcap_error *error)
{
	const char *file = bench->options.save;

	if (bench->save_failed) {
		fprintf(stderr, "gdrcap bench: %s\n", bench->error);
		return REPORT_EXIT_NOT_RUN;
	}
	if (rc == -EINTR) {
		fprintf(stderr, "gdrcap bench: stopped%s%s\n",
			file ? "; what was measured is in " : "", file ? file : "");
		return 128 + signals_stop();
	}
	if (rc < 0) {
		fprintf(stderr, "gdrcap bench: %s\n", error->text);
		return REPORT_EXIT_NOT_RUN;
	}
	if (bench->measured == 0) {
		fprintf(stderr, "gdrcap bench: nothing could be measured; the notes say why\n");
		return REPORT_EXIT_NOT_RUN;
	}
	return REPORT_EXIT_OK;
}

static int measure(struct bench *bench)
{
	struct gdrcap_error error = { 0 };
	int rc, status;

	rc = gdrcap_bench_run(&bench->config, &error);
	progress_clear(bench);
	/* What was asked for wrongly; nothing ran. */
	if (rc == -EINVAL && !bench->measured) {
		snprintf(bench->error, sizeof(bench->error), "%s", error.text);
		return fail(bench, REPORT_EXIT_USAGE);
	}
	/* with -EIO all points had their turn */
	bench->report.complete = (rc == 0 || rc == -EIO) && !bench->save_failed;
	if (!bench->save_failed)
		save(bench);
	status = ended(bench, rc, &error);
	if (show_end(bench) < 0 && status == REPORT_EXIT_OK)
		status = REPORT_EXIT_NOT_RUN;
	if (status == REPORT_EXIT_OK && bench->report.wrong)
		status = REPORT_EXIT_FRAMES;
	return status;
}

int cmd_bench(int argc, char **argv)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	int rc;

	if (!bench) {
		fprintf(stderr, "gdrcap bench: no memory\n");
		return REPORT_EXIT_NOT_RUN;
	}
	rc = parse(argc, argv, &bench->options);
	if (rc) {
		rc = rc > 0 ? REPORT_EXIT_OK : REPORT_EXIT_USAGE;
		if (rc == REPORT_EXIT_USAGE && flags_asked(argc, argv, "--json"))
			bench_print_json_error(stdout, FLAGS_WRONG);
	} else {
		signals_install(
			"\ngdrcap: stopped at once; --save has each point before this one\n", 0);
		rc = prepare(bench);
		if (rc < 0)
			rc = fail(bench, rc == -EINVAL ? REPORT_EXIT_USAGE : REPORT_EXIT_NOT_RUN);
		else
			rc = measure(bench);
	}
	json_decref(bench->report.results);
	free(bench);
	return rc;
}
