/* SPDX-License-Identifier: BSD-3-Clause */
/* Start, live line, stop. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "privileges.h"
#include "ready.h"
#include "run_loop_collect.h"
#include "run_loop_json.h"
#include "run_loop_metrics.h"
#include "run_loop_notify.h"
#include "run_loop_ready.h"
#include "run_timer.h"
#include "run_loop.h"
#include "signals.h"

#define SECOND_NS UINT64_C(1000000000)
#define STATUS_NS (5 * SECOND_NS) /* a service manager tells others each time */

/* Any thread of the library; the fields read here do not change while there is a session. */
static void run_log(void *context, enum gdrcap_log_level level, const char *line)
{
	static const char *const names[] = {
		[GDRCAP_LOG_ERROR] = "error",	    [GDRCAP_LOG_WARNING] = "warning",
		[GDRCAP_LOG_PROGRESS] = "progress", [GDRCAP_LOG_INFO] = "info",
		[GDRCAP_LOG_DEBUG] = "debug",
	};
	const struct run *run = context;

	if ((int)level <= run->log_level)
		fprintf(stderr, "%sgdrcap: %s: %s\n", run->log_rewrite ? "\r\033[K" : "",
			names[level], line);
}

static void run_set_output(struct run *run)
{
	const struct app_options *options = run->options;
	const char *no_color = getenv("NO_COLOR");
	const int json = ((options->json || options->json_lines > 0) && !options->json_file) ||
			 (options->ready && !strcmp(options->ready, READY_STDOUT));

	if (!options->quiet)
		run->text = json || options->saves_to_stdout ? stderr : stdout;
	run->rewrite = run->text && isatty(fileno(run->text));
	run->log_rewrite = run->rewrite && isatty(STDERR_FILENO);
	run->colour = run->rewrite && !(no_color && no_color[0]);
	run->log_level = options->quiet	    ? GDRCAP_LOG_ERROR
			 : options->verbose ? GDRCAP_LOG_PROGRESS + options->verbose
					    : GDRCAP_LOG_PROGRESS;
}

/* What follows the live lines begins after an empty line. */
static void run_end_live(struct run *run)
{
	if (run->live_shown)
		fputs(run->rewrite ? "\n\n" : "\n", run->text);
	run->live_shown = 0;
}

/* What gdrcap_create() cannot know: which way this command's frames go, and who takes them. */
static int run_check(struct run *run)
{
	const struct gdrcap_config *config = run->options->config;
	const char *rx = gdrcap_config_get(config, "port", 0);
	const char *tx = gdrcap_config_get(config, "tx_port", 0);
	const struct run_command *command = run->command;
	const char *name = command->options.name;

	if (strcmp(gdrcap_config_get(config, "consumer", 0),
		   gdrcap_config_get(config, "image", 0) ? "host" : "validate"))
		report_error(&run->report, REPORT_EXIT_USAGE,
			     "consumer: %s has the built-in one only; leave consumer out", name);
	else if (strcmp(gdrcap_config_get(config, "sender", 0), "replay"))
		report_error(&run->report, REPORT_EXIT_USAGE,
			     "sender: %s has the built-in one only, the others are for programs "
			     "(docs/embedding.md, \"Sending\"); leave sender out",
			     name);
	else if (tx && !command->sends)
		report_error(
			&run->report, REPORT_EXIT_USAGE,
			"tx_port: %s only receives; leave tx_port out, or use loopback or replay",
			name);
	else if (rx && !command->receives)
		report_error(&run->report, REPORT_EXIT_USAGE,
			     "port: %s only sends; leave port out, or use loopback or capture",
			     name);
	else if (!tx && command->sends)
		report_error(
			&run->report, REPORT_EXIT_USAGE,
			"tx_port: none is given; %s needs the port that frames are sent from%s",
			name, command->receives ? ", or use capture to receive only" : "");
	else if (!rx && command->receives)
		report_error(
			&run->report, REPORT_EXIT_USAGE,
			"port: none is given; %s needs the port that frames are received on, "
			"such as net_af_packet0,iface=eth0, or a ConnectX: 0000:3b:00.0 (lspci "
			"-D) or enp59s0f0np0 (ip link)",
			name);
	return run->report.error_count ? -EINVAL : 0;
}

static enum report_status status_of(const struct gdrcap_error *error)
{
	return error->kind == GDRCAP_ERROR_CONFIG ? REPORT_EXIT_USAGE : REPORT_EXIT_NOT_RUN;
}

/* Who takes the images, where there are any. */
static int run_open_images(struct run *run)
{
	const struct app_options *options = run->options;
	const struct image_taker_config config = {
		.file = { .path = options->save_images,
			  .format = (enum image_format)options->save_format,
			  .width = options->save_width,
			  .height = options->save_height,
			  .bits = options->save_bits },
		.every = options->save_images_every,
	};
	struct report *report = &run->report;
	struct gdrcap_error error = { 0 };

	if (!gdrcap_get_images(run->session, 0))
		return 0;
	report->saves_images = config.file.path != NULL;
	run->taker = image_taker_open(run->session, &config, &error);
	if (run->taker)
		return 0;
	report_error(report, REPORT_EXIT_NOT_RUN, "%s", error.text);
	return error.code;
}

static void report_begin(struct report *report, const struct run_command *command)
{
	report->command = command->options.name;
}

/* 0, or a negative errno with the reason in run->report. */
static int run_open(struct run *run, const struct run_command *command,
		    const struct app_options *options)
{
	struct gdrcap_error error = { 0 };
	int rc;

	memset(run, 0, sizeof(*run));
	run->command = command;
	run->options = options;
	report_begin(&run->report, command);
	run->report.config = options->config;
	run_set_output(run);
	run->log = run_log;
	signals_install("\ngdrcap: stopped at once: the counts of this run are lost\n",
			options->json_file != NULL);
	run_notify_open(run);

	rc = run_json_open(run);
	if (!rc)
		rc = run_check(run);
	if (!rc)
		rc = run_metrics_open(run);
	if (rc)
		return rc;
	gdrcap_config_set_log(options->config, run_log, run);
	rc = run_ready_open(run);
	if (rc)
		return rc;
	rc = gdrcap_create(options->config, &run->session, &error);
	if (rc) {
		run->session = NULL;
		report_error(&run->report, status_of(&error), "%s", error.text);
		return rc;
	}
	rc = run_open_images(run);
	if (rc)
		return rc;
	/* Before the threads that look into frames are started, which inherit it. */
	privileges_drop(options->config, run_log, run);
	rc = run_metrics_start(run);
	if (rc)
		return rc;
	run_collect(run, GDRCAP_JSON_SETUP);
	if (run->text) {
		report_print_header(run->text, &run->report);
		fflush(run->text);
	}
	return 0;
}

static void run_take_events(struct run *run)
{
	struct gdrcap_event event;

	while (gdrcap_get_event(run->session, &event, sizeof(event)) == 1) {
		run_metrics_event(run, &event);
		run_notify_event(run, &event);
	}
}

/* A live line; *before: what the last one was of. */
static void run_tick(struct run *run, double elapsed, double interval,
		     struct gdrcap_summary *before)
{
	struct gdrcap_image_counts images;
	struct gdrcap_summary now;
	struct report_tick tick = {
		.elapsed = elapsed, .interval = interval, .now = &now, .before = before
	};
	char line[256];

	gdrcap_get_summary(run->session, &now, sizeof(now));
	if (run->taker) {
		run_images_total(run, &images);
		tick.images = &images;
		tick.images_before = &run->images_before;
	}
	report_format_tick(line, sizeof(line), &tick);
	if (run->notify) {
		run_notify_status(run, line);
	} else {
		fprintf(run->text, run->rewrite ? "\r%s\033[K" : "%s\n", line);
		fflush(run->text);
		run->live_shown = 1;
	}
	*before = now;
	if (run->taker)
		run->images_before = images;
}

/* 0, or a negative errno when nobody reads the result any more. */
static int run_wait(struct run *run)
{
	const uint64_t start = clock_ns();
	const double line_every = run->options->json_lines;
	struct run_timer tick = { .every_ns = run->notify ? STATUS_NS : SECOND_NS,
				  .at_ns = start + SECOND_NS };
	struct run_timer line = { .every_ns = (uint64_t)(line_every * 1e9), .steady = true };
	struct gdrcap_summary before;
	uint64_t last = start;
	int rc;

	line.at_ns = start + line.every_ns;
	gdrcap_get_summary(run->session, &before, sizeof(before));
	while (!signals_stop() && !gdrcap_wait_end(run->session, RUN_STEP_MS)) {
		const uint64_t now = clock_ns();

		run_take_events(run);
		if ((run->text || run->notify) && run_timer_due(&tick, now)) {
			run_tick(run, (double)(now - start) * 1e-9, (double)(now - last) * 1e-9,
				 &before);
			last = now;
			if (run->text == stdout && ferror(stdout))
				return -EIO;
		}
		run_notify_tick(run);
		run_json_reopen(run);
		run_metrics_tick(run);
		if (line_every > 0 && run_timer_due(&line, now)) {
			run_collect(run, run->options->json_compact ? 0 : GDRCAP_JSON_ALL);
			rc = run_json_line(run);
			if (rc)
				return rc;
		}
	}
	return 0;
}

static int run_loop(struct run *run)
{
	struct report *report = &run->report;
	struct gdrcap_error error = { 0 };
	int rc, stop_rc;

	if (signals_stop()) {
		report_error(report, REPORT_EXIT_NOT_RUN, "interrupted before the run began");
		return -EINTR;
	}
	rc = gdrcap_start(run->session, &error);
	if (rc) {
		report_error(report, status_of(&error), "%s", error.text);
		return rc;
	}
	if (run->taker)
		rc = image_taker_start(run->taker, &error);
	if (!rc && run->options->ready)
		rc = ready_tell(run->options->ready, run->command->options.name, run->session,
				&error);
	if (rc)
		report_error(report, REPORT_EXIT_NOT_RUN, "%s", error.text);
	else
		run_notify_ready(run);
	if (!rc)
		rc = run_wait(run);
	run_notify_stopping(run);
	run_end_live(run);
	if (rc && !report->error_count)
		report_error(report, REPORT_EXIT_NOT_RUN,
			     "the results cannot be written: standard output: %s", strerror(-rc));
	stop_rc = gdrcap_stop(run->session, NULL);
	if (run->taker && image_taker_finish(run->taker, &error))
		report_error(report, REPORT_EXIT_NOT_RUN, "%s", error.text);
	run_collect_end(run);
	return rc ? rc : stop_rc;
}

static int run_close(struct run *run)
{
	struct report *report = &run->report;
	const int json = run->options->json || run->options->json_lines > 0;
	int rc, to_file;

	if (!report_ran(report))
		report_collect(report, run->session, GDRCAP_JSON_ALL);
	if (report->error_count == 0 && !report_ran(report))
		report_error(report, REPORT_EXIT_NOT_RUN, "nothing ran");
	if (run->session)
		run_take_events(run);
	run_metrics_end(run);
	run_notify_end(run);
	to_file = run_json_to_file(run);
	rc = json ? run_json_end(run) : 0;
	if (rc)
		report_error(report, REPORT_EXIT_NOT_RUN, "the result could not be written%s%s: %s",
			     to_file ? " to " : "", to_file ? run->options->json_file : "",
			     strerror(-rc));
	if (json && !to_file) {
		if (run->text || rc || !report_ran(report))
			report_print_verdict(stderr, report, run->colour);
	} else if (report_ran(report) || report->status == REPORT_EXIT_FRAMES) {
		if (run->text && report_ran(report))
			report_print_table(run->text, report);
		report_print_verdict(run->options->saves_to_stdout ? stderr : stdout, report,
				     run->colour);
	} else {
		/* Nothing ran: this is an error, not a result. */
		report_print_verdict(stderr, report, 0);
	}
	image_taker_close(run->taker);
	run->taker = NULL;
	gdrcap_destroy(run->session);
	run->session = NULL;
	report_free(report);
	return report->status;
}

/* A program that asked for JSON gets an object even where its own words could not be read. */
static int run_refuse(int argc, char **argv, const struct run_command *command, const char *why)
{
	static struct report report;
	int json = 0;

	for (int i = 1; i < argc; i++)
		json |= !strncmp(argv[i], "--json", 6);
	report_begin(&report, command);
	report_error(&report, REPORT_EXIT_USAGE, "%s", why);
	if (json) {
		report_collect(&report, NULL, GDRCAP_JSON_ALL);
		report_print_json(stdout, &report, false);
		report_free(&report);
	}
	return report.status;
}

int run_command(int argc, char **argv, const struct run_command *command)
{
	static struct app_options options;
	static struct run run;
	int rc = options_parse(argc, argv, &command->options, &options);
	int status = REPORT_EXIT_OK;

	if (rc == 0) {
		rc = run_open(&run, command, &options);
		if (!rc && command->selftest)
			rc = command->selftest(&run);
		if (!rc)
			run_loop(&run);
		status = run_close(&run);
	} else if (rc < 0) {
		status = run_refuse(argc, argv, command, options.refused);
	}
	gdrcap_config_free(options.config);
	return status;
}
