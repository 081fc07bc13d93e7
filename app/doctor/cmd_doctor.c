/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrcap doctor: is this machine able to, and if not, the exact remedy. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "doctor/doctor_report.h"
#include "base/nearest.h"
#include "report.h"

#define REPORT_EXIT_NOT_ABLE REPORT_EXIT_FRAMES

struct doctor_options {
	int json, all, live;
	const char *root, *capture, *config;
};

enum doctor_option {
	OPTION_JSON,
	OPTION_ALL,
	OPTION_LIVE,
	OPTION_ROOT,
	OPTION_CAPTURE,
	OPTION_CONFIG,
	OPTION_HELP
};

static const struct {
	const char *flag, *argument, *help;
} rows[] = {
	[OPTION_JSON] = { "json", NULL,
			  "Print one JSON object (schema gdrcap.doctor/1, docs/doctor.md)." },
	[OPTION_ALL] = { "all", NULL, "Each check in full, also what is fine." },
	[OPTION_LIVE] = { "live", NULL,
			  "Live tests too, a few seconds: GPU memory is registered with each card, "
			  "copies are timed, a kernel answers." },
	[OPTION_ROOT] = { "root", "DIR",
			  "Examine the machine that --capture has put into this folder." },
	[OPTION_CAPTURE] = { "capture", "DIR",
			     "Write all that was read into a new folder, for a bug report: no "
			     "environment, no addresses of other hosts." },
	[OPTION_CONFIG] = { "write-config", "FILE",
			    "Write a configuration for the best GPU and card, or for what there is." },
	[OPTION_HELP] = { "help", NULL, "Print this text." },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void help_print(void)
{
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
	for (size_t i = 0; i < ROWS; i++) {
		const char *text = rows[i].help;
		int column = printf("  --%s%s%s", rows[i].flag, rows[i].argument ? " " : "",
				    rows[i].argument ? rows[i].argument : "");

		column += printf("%*s", column < 24 ? 24 - column : 0, "");
		while (*text) {
			const int length = (int)strcspn(text, " ");

			if (column + 1 + length > 96)
				column = printf("\n%24s", "") - 1;
			column += printf(" %.*s", length, text);
			text += length;
			text += strspn(text, " ");
		}
		printf("\n");
	}
	printf("\n"
	       "Exit status: 0 able; 1 could not run; 2 command line; 3 not able.\n");
}

/* The row that an argument names; ROWS: none, which is said. */
static size_t row_of(const char *argument)
{
	const size_t length = strcspn(argument, "=");
	struct nearest nearest;
	char name[32];

	if (strcmp(argument, "-h") == 0)
		return OPTION_HELP;
	for (size_t i = 0; i < ROWS; i++)
		if (strncmp(argument, "--", 2) == 0 && length == strlen(rows[i].flag) + 2 &&
		    strncmp(argument + 2, rows[i].flag, length - 2) == 0)
			return i;
	snprintf(name, sizeof(name), "%.*s", (int)length, argument);
	nearest = (struct nearest){ .name = name + strspn(name, "-") };
	for (size_t i = 0; i < ROWS && argument[0] == '-'; i++)
		nearest_consider(&nearest, rows[i].flag);
	fprintf(stderr,
		"gdrcap doctor: unknown %s '%.*s'%s; 'gdrcap doctor --help' lists the "
		"options\n",
		argument[0] == '-' ? "option" : "argument", (int)length, argument,
		nearest_hint(&nearest, "--"));
	return ROWS;
}

static int refuse(size_t row, const char *what)
{
	fprintf(stderr, "gdrcap doctor: --%s %s\n", rows[row].flag, what);
	return -EINVAL;
}

/* 0; 1: --help was printed; -EINVAL: the error is on stderr. */
static int parse(int argc, char **argv, struct doctor_options *options)
{
	const char **const texts[ROWS] = {
		[OPTION_ROOT] = &options->root,
		[OPTION_CAPTURE] = &options->capture,
		[OPTION_CONFIG] = &options->config,
	};
	int *const switches[ROWS] = {
		[OPTION_JSON] = &options->json,
		[OPTION_ALL] = &options->all,
		[OPTION_LIVE] = &options->live,
	};

	for (int i = 1; i < argc; i++) {
		const size_t row = row_of(argv[i]);
		const char *value = strchr(argv[i], '=');

		if (row == ROWS)
			return -EINVAL;
		if (!rows[row].argument && value)
			return refuse(row, "takes no value");
		if (row == OPTION_HELP) {
			help_print();
			return 1;
		}
		if (!rows[row].argument) {
			*switches[row] = 1;
			continue;
		}
		if (*texts[row])
			return refuse(row, "is given twice");
		value = value ? value + 1 : ++i < argc ? argv[i] : NULL;
		if (!value || !value[0])
			return refuse(row, "needs a value");
		*texts[row] = value;
	}
	if (options->root && options->live)
		return refuse(OPTION_LIVE, "tests this machine; leave out --root or --live");
	return 0;
}

static void progress(void *context, const char *id)
{
	(void)context;
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

static int refused(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--json") == 0) {
			doctor_print_json_error(stdout, "the command line is wrong: standard error "
							"says where");
			break;
		}
	return REPORT_EXIT_USAGE;
}

static int examine(const struct doctor_options *options, const struct gdrcap_doctor *doctor)
{
	const char *no_color = getenv("NO_COLOR");
	struct gdrcap_error error;
	int rc;

	if (options->config && gdrcap_doctor_write_config(doctor, options->config, &error) < 0)
		return fail(options, &error);
	if (options->capture && gdrcap_doctor_capture(doctor, options->capture, &error) < 0)
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
	return gdrcap_doctor_able(doctor, NULL) ? REPORT_EXIT_OK : REPORT_EXIT_NOT_ABLE;
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_options options = { 0 };
	struct gdrcap_doctor_config config = { .size = sizeof(config) };
	struct gdrcap_doctor *doctor;
	struct gdrcap_error error;
	int rc = parse(argc, argv, &options);
	/* Only live tests take long enough to be looked at. */
	const int lively = options.live && isatty(STDERR_FILENO);

	if (rc)
		return rc > 0 ? REPORT_EXIT_OK : refused(argc, argv);
	config.root = options.root;
	config.live = (uint32_t)options.live;
	config.progress = lively ? progress : NULL;
	rc = gdrcap_doctor_create(&config, &doctor, &error);
	if (lively)
		fprintf(stderr, "\r\033[K");
	if (rc < 0)
		return fail(&options, &error);
	rc = examine(&options, doctor);
	gdrcap_doctor_destroy(doctor);
	return rc;
}
