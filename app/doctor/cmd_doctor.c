/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrcap doctor: is this machine able to, and if not, the exact remedy. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "doctor/doctor.h"
#include "flags.h"
#include "report.h"

#define REPORT_EXIT_NOT_ABLE REPORT_EXIT_FRAMES

struct doctor_options {
	int json, all, live;
	const char *root, *capture, *config;
};

#define OPTIONS 7

static int parse(int argc, char **argv, struct doctor_options *o)
{
	const struct flag flags[OPTIONS] = {
		{ "json", NULL, "Print one JSON object (schema gdrcap.doctor/1, docs/doctor.md).",
		  .on = &o->json },
		{ "all", NULL, "Each check in full, also what is fine.", .on = &o->all },
		{ "live", NULL,
		  "Live tests too, a few seconds: GPU memory is registered with each card, copies are "
		  "timed, a kernel answers.",
		  .on = &o->live },
		{ "root", "DIR", "Examine the machine that --capture has put into this folder.",
		  .text = &o->root },
		{ "capture", "DIR",
		  "Write all that was read into a new folder, for a bug report: no environment, no "
		  "addresses of other hosts.",
		  .text = &o->capture },
		{ "write-config", "FILE",
		  "Write a configuration for the best GPU and card, or for what there is.",
		  .text = &o->config },
		{ "help", NULL, "Print this text.", .on = NULL },
	};
	const int rc = flags_parse("doctor", flags, OPTIONS, argc, argv);

	if (rc == 1) {
		printf("Usage: gdrcap doctor [OPTION]...\n"
		       "Is this machine able to capture into GPU memory, and if not, what exactly is to be\n"
		       "done. Reads files and asks the CUDA driver; changes nothing, starts no shell, needs no\n"
		       "GPU, no card and no root. What only root may read is said to be unknown.\n\n"
		       "Examples:\n"
		       "  What is wrong here, and the commands that mend it:\n"
		       "    gdrcap doctor\n"
		       "  As root, which knows more, and with tests that use GPU and cards:\n"
		       "    sudo gdrcap doctor --live\n"
		       "  A configuration for this machine, and the run that proves it:\n"
		       "    gdrcap doctor --write-config gdrcap.yaml && gdrcap loopback --config gdrcap.yaml\n"
		       "  For a bug report; then what the one who got it does:\n"
		       "    sudo gdrcap doctor --capture machine && tar czf machine.tar.gz machine\n"
		       "    tar xf machine.tar.gz && gdrcap doctor --root machine\n\n"
		       "Options:\n");
		flags_print(flags, OPTIONS);
		printf("\n"
		       "Exit status: 0 able; 1 could not run; 2 command line; 3 not able.\n");
	}
	if (rc == 0 && o->root && o->live)
		return flags_refuse("doctor", "live",
				    "tests this machine; leave out --root or --live");
	return rc;
}

static void progress(const char *id)
{
	fprintf(stderr, "\r\033[K%s ...", id);
	fflush(stderr);
}

/* A program that asked for JSON gets an object in any case. */
static int fail(const struct doctor_options *options, const struct gdrcap_error *error)
{
	fprintf(stderr, "gdrcap doctor: %s\n", error->text);
	if (options->json)
		doctor_print_json_error(stdout, error->text);
	return REPORT_EXIT_NOT_RUN;
}

static int examine(const struct doctor_options *options, const struct doctor *doctor)
{
	const char *no_color = getenv("NO_COLOR");
	struct gdrcap_error error;
	int rc;

	if (options->config && doctor_write_config(doctor, options->config, &error) < 0)
		return fail(options, &error);
	if (options->capture && doctor_capture(doctor, options->capture, &error) < 0)
		return fail(options, &error);
	if (options->json) {
		rc = doctor_print_json(stdout, doctor);
		if (rc < 0) {
			fprintf(stderr, "gdrcap doctor: the result could not be written: %s\n",
				strerror(-rc));
			return REPORT_EXIT_NOT_RUN;
		}
	} else {
		doctor_print_text(stdout, doctor, options->all,
				  isatty(STDOUT_FILENO) && !(no_color && no_color[0]));
	}
	return doctor_able(doctor, NULL) ? REPORT_EXIT_OK : REPORT_EXIT_NOT_ABLE;
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_options options = { 0 };
	struct doctor_config config = { 0 };
	struct doctor *doctor;
	struct gdrcap_error error;
	int rc = parse(argc, argv, &options);
	/* Only live tests take long enough to be looked at. */
	const int lively = options.live && isatty(STDERR_FILENO);

	if (rc < 0 && flags_asked(argc, argv, "--json"))
		doctor_print_json_error(stdout, FLAGS_WRONG);
	if (rc)
		return rc > 0 ? REPORT_EXIT_OK : REPORT_EXIT_USAGE;
	config.root = options.root;
	config.live = options.live != 0;
	config.progress = lively ? progress : NULL;
	rc = doctor_create(&config, &doctor, &error);
	if (lively)
		fprintf(stderr, "\r\033[K");
	if (rc < 0)
		return fail(&options, &error);
	rc = examine(&options, doctor);
	doctor_destroy(doctor);
	return rc;
}
