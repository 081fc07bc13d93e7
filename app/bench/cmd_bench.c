/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrcap bench: how fast is the path on this machine, beside the limits of the machine. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench_report.h"
#include "cmd.h"
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
	const char *stages, *gpu, *cores, *save, *from;
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
	uint32_t measured, resumed;
	char error[BENCH_ERROR_BYTES];
};

/* ---- what the library calls ---- */

static void progress_clear(struct bench *bench)
{
	if (bench->shown)
		fprintf(stderr, "\r\033[K");
	bench->shown = 0;
}

/* What could not be measured is tried again: its remedy may have helped. */
static int have(void *context, const struct gdrcap_bench_point *point,
		struct gdrcap_bench_result *result)
{
	struct bench *bench = context;
	const struct gdrcap_bench_result *before = bench_report_find(&bench->report, point);

	if (!before || before->error[0])
		return 0;
	*result = *before;
	bench->resumed++;
	return 1;
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
	bench->began = 1;
	if (bench->options.quiet)
		return;
	bench_format_point(text, sizeof(text), point);
	snprintf(line, sizeof(line), "%u/%u, %u:%02u min left: %s", done + 1, points, left / 60,
		 left % 60, text);
	if (!bench->rewrite) {
		fprintf(stderr, "gdrcap bench: %s\n", line);
		return;
	}
	fprintf(stderr, "\r\033[K%.*s", LINE_BYTES, line);
	fflush(stderr);
	bench->shown = 1;
}

static void take(void *context, const struct gdrcap_bench_result *result)
{
	struct bench *bench = context;

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

#define OPTIONS_MAX 16

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
		{ "save", "FILE.json",
		  "Write what is measured, after each point. Where the file "
		  "is there, its points are not measured again.",
		  .text = &o->save },
		{ "from", "FILE.json", "Measure nothing: show a saved file.", .text = &o->from },
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
	       "  All, saved after each point; the same command again goes on where it ended:\n"
	       "    gdrcap bench --cores 2-9 --save here.json\n"
	       "  What the consumer does, in figures that settle sooner:\n"
	       "    gdrcap bench --stages consumer --runs 3 --run-time 100\n"
	       "  The table of a file that was saved here or elsewhere:\n"
	       "    gdrcap bench --from here.json\n\n"
	       "Options:\n");
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

static int check(const struct bench_options *o)
{
	if (o->from &&
	    (o->quick || o->stages || o->runs || o->run_ms || o->gpu || o->cores || o->save))
		return flags_refuse(COMMAND, "from",
				    "measures nothing: only --json and --quiet go with it");
	return 0;
}

/* 0; 1: --help was printed; -EINVAL: the error is on stderr. */
static int parse(int argc, char **argv, struct bench_options *options)
{
	struct flag flags[OPTIONS_MAX];
	const size_t count = flags_make(options, flags);
	const int rc = flags_parse(COMMAND, flags, count, argc, argv);

	if (rc > 0)
		help_print(flags, count);
	return rc ? rc : check(options);
}

/* ---- what is to be measured ---- */

static void parameters_make(struct bench_parameters *parameters,
			    const struct bench_options *options)
{
	parameters->quick = (uint32_t)options->quick;
	parameters->runs = options->runs ? options->runs : RUNS;
	parameters->run_ms = options->run_ms;
	snprintf(parameters->gpu, sizeof(parameters->gpu), "%s",
		 options->gpu ? options->gpu : "auto");
	if (options->cores)
		snprintf(parameters->cores, sizeof(parameters->cores), "%s", options->cores);
	else
		bench_cores_text(parameters->cores, sizeof(parameters->cores));
}

/* Goes on with the file where there is one. */
static int resume(struct bench *bench)
{
	struct bench_report *report = &bench->report, before;
	const char *differs;
	int rc;

	if (!bench->options.save)
		return 0;
	rc = bench_load(&before, bench->options.save, bench->error);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	differs = bench_report_difference(report, &before);
	for (size_t i = 0; rc == 0 && !differs && i < before.count; i++)
		/* What this version does not measure any more would have no row. */
		if (bench_report_row(report, before.results[i].point.stage))
			rc = bench_report_add(report, &before.results[i]);
	bench_report_free(&before);
	if (differs)
		snprintf(bench->error, sizeof(bench->error),
			 "%s: its results are %s, so those of now cannot be put beside them: give "
			 "--save a new file, or show this one with --from",
			 bench->options.save, differs);
	else if (rc < 0)
		snprintf(bench->error, sizeof(bench->error), "no memory for the results");
	return differs ? -EBADMSG : rc;
}

static int prepare(struct bench *bench)
{
	struct bench_options *options = &bench->options;
	struct gdrcap_error error = { 0 };
	int rc;

	snprintf(bench->report.version, sizeof(bench->report.version), "%s", gdrcap_version());
	parameters_make(&bench->report.parameters, options);
	bench_report_rows(&bench->report);
	bench->config = (struct gdrcap_bench_config){
		.size = sizeof(bench->config),
		.gpu = options->gpu,
		.cores = options->cores,
		.stages = options->stages,
		.quick = (uint32_t)options->quick,
		.runs = options->runs,
		.run_ms = options->run_ms,
		.have = have,
		.result = take,
		.progress = progress,
		.stop = stop,
		.context = bench,
	};
	bench->rewrite = isatty(STDERR_FILENO);
	rc = gdrcap_bench_machine(&bench->config, &bench->report.machine, &error);
	if (rc < 0)
		snprintf(bench->error, sizeof(bench->error), "%s", error.text);
	return rc < 0 ? rc : resume(bench);
}

/* ---- what is shown ---- */

static int damaged(const struct bench_report *report)
{
	for (size_t i = 0; i < report->count; i++)
		if (report->results[i].damaged || report->results[i].lost)
			return 1;
	return 0;
}

static int show(struct bench *bench)
{
	const struct bench_options *options = &bench->options;
	const char *no_color = getenv("NO_COLOR");
	int rc = 0;

	if (options->json) {
		rc = bench_print_json(stdout, &bench->report);
		if (rc < 0)
			fprintf(stderr, "gdrcap bench: the result could not be written: %s\n",
				strerror(-rc));
	} else {
		bench_print_header(stdout, &bench->report);
		bench_print_table(stdout, &bench->report,
				  isatty(STDOUT_FILENO) && !(no_color && no_color[0]));
		if (!bench->report.complete)
			printf("\nNot all points were measured.\n");
		fflush(stdout);
	}
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

static int refused(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--json") == 0) {
			bench_print_json_error(stdout, "the command line is wrong: standard error "
						       "says where");
			break;
		}
	return REPORT_EXIT_USAGE;
}

static int from_file(struct bench *bench)
{
	if (bench_load(&bench->report, bench->options.from, bench->error) < 0)
		return fail(bench, REPORT_EXIT_NOT_RUN);
	if (show(bench) < 0)
		return REPORT_EXIT_NOT_RUN;
	return damaged(&bench->report) ? REPORT_EXIT_FRAMES : REPORT_EXIT_OK;
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
		fprintf(stderr, "gdrcap bench: stopped; %s%s\n",
			file ? "the same command goes on: what was measured is in "
			     : "to go on later, save what is measured: --save FILE.json",
			file ? file : "");
		return 128 + signals_stop();
	}
	if (rc < 0) {
		fprintf(stderr, "gdrcap bench: %s\n", error->text);
		return REPORT_EXIT_NOT_RUN;
	}
	if (bench->measured + bench->resumed == 0) {
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
	if (show(bench) < 0 && status == REPORT_EXIT_OK)
		status = REPORT_EXIT_NOT_RUN;
	if (status == REPORT_EXIT_OK && damaged(&bench->report))
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
		rc = rc > 0 ? REPORT_EXIT_OK : refused(argc, argv);
	} else if (bench->options.from) {
		rc = from_file(bench);
	} else {
		signals_install(
			"\ngdrcap: stopped at once; --save has each point before this one\n");
		rc = prepare(bench);
		if (rc < 0)
			rc = fail(bench, rc == -EINVAL ? REPORT_EXIT_USAGE : REPORT_EXIT_NOT_RUN);
		else
			rc = measure(bench);
	}
	bench_report_free(&bench->report);
	free(bench);
	return rc;
}
