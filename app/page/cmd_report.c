/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrcap report: one page of runs. A helper in Python writes it (docs/report.md); here is what only the
 * program knows: its command line, its version, and what causes of loss mean. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "cmd.h"
#include "flags.h"
#include "gdrcap.h"
#include "port/xstats.h"
#include "report.h"

#define COMMAND "report"
#define HELPER "page/__main__.py"
#define OPTIONS 6

struct report_options {
	const char *output, *title, *plot;
	int text;
	const char **files; /* of argc elements */
	uint32_t file_count;
};

static void help_print(const struct flag *flags)
{
	printf("Usage: gdrcap report [OPTION]... FILE...\n"
	       "One page, HTML, of what gdrcap wrote: verdict, rates and losses over time, where frames\n"
	       "were lost and what helps, damaged frames, configuration, versions. It needs no network\n"
	       "and no scripts. FILE is of --json or --json-lines of a run, of bench --save, or of\n"
	       "doctor --json; which it is, gdrcap sees. -: standard input.\n\n"
	       "Examples:\n"
	       "  A run of a night, and its page:\n"
	       "    gdrcap capture --config night.yaml --json-lines 1 > night.jsonl\n"
	       "    gdrcap report night.jsonl > night.html\n"
	       "  Sender, receiver and the machine on one page:\n"
	       "    gdrcap doctor --json > machine.json\n"
	       "    gdrcap report sender.json receiver.json machine.json --output acceptance.html\n"
	       "  Benches, as tables and as a picture:\n"
	       "    gdrcap report --text here.json; gdrcap report --plot both.svg here.json there.json\n\n"
	       "Options:\n");
	flags_print(flags, OPTIONS);
	printf("\n"
	       "It needs Python 3 with Jinja2 and matplotlib:\n"
	       "  sudo apt-get install python3-jinja2 python3-matplotlib\n\n"
	       "Exit status: 0 the page is written, whatever its verdict is; 1 it could not be; 2 command\n"
	       "line, or a file is none that this gdrcap understands.\n");
}

/* 0; 1: --help was printed; 2: a shell has its answer; -EINVAL: the error is on stderr. */
static int parse(int argc, char **argv, struct report_options *o)
{
	const struct flag flags[OPTIONS] = {
		{ NULL, "FILE", .words = o->files, .number = &o->file_count },
		{ "output", "FILE", "Write the page into this file, not to standard output.",
		  .text = &o->output },
		{ "title", "TEXT", "What the page is called.", .text = &o->title },
		{ "text", NULL, "Of bench files: print their tables with all columns, no page.",
		  .on = &o->text },
		{ "plot", "FILE",
		  "Of bench files: draw them into this .svg, .png or .pdf, no page.",
		  .text = &o->plot },
		{ "help", NULL, "Print this text.", .on = NULL },
	};
	const int rc = flags_parse(COMMAND, flags, OPTIONS, argc, argv);

	if (rc == 1)
		help_print(flags);
	if (rc == 0 && o->file_count == 0) {
		fprintf(stderr, "gdrcap report: no file: give what --json or --json-lines wrote "
				"(gdrcap report --help)\n");
		return -EINVAL;
	}
	return rc;
}

/* What the helper is told of the program, as text; NULL: no memory. */
static char *facts_text(void)
{
	json_t *causes = json_array(), *facts;
	char *text;

	for (unsigned int i = 0; i < XSTATS_CAUSES; i++)
		json_array_append_new(causes,
				      json_pack("{s:s, s:s}", "name",
						xstats_cause_name((enum xstats_cause)i), "meaning",
						xstats_cause_meaning((enum xstats_cause)i)));
	facts = json_pack("{s:s, s:o}", "version", gdrcap_version(), "causes", causes);
	text = json_dumps(facts, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(facts);
	return text;
}

/* The helper's path: where it is installed, seen from where this program is, be that moved; or in the build
 * folder, beside it. */
static int find_helper(char *to, size_t bytes)
{
	static const char *const places[] = { GDRCAP_LIBEXEC "/gdrcap/" HELPER, HELPER };
	char program[PATH_MAX], *end;
	const ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (length < 0)
		return -errno;
	program[length] = '\0';
	end = strrchr(program, '/');
	if (!end)
		return -ENOENT;
	end[1] = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const int n =
			snprintf(to, bytes, "%s%s", places[i][0] == '/' ? "" : program, places[i]);

		if (n > 0 && (size_t)n < bytes && access(to, R_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

/* Becomes the helper; returns only where that fails. */
static int become(char *helper, char *facts, const struct report_options *o)
{
	static char python[] = "python3", no_cache[] = "-B", facts_are[] = "--facts",
		    as_text[] = "--text", files_are[] = "--";
	/* python3 -B HELPER --facts TEXT --output=FILE --title=TEXT --plot=FILE --text -- FILE... NULL */
	char **argv = calloc(11 + (size_t)o->file_count, sizeof(*argv));
	char *output = NULL, *title = NULL, *plot = NULL;
	size_t n = 0;

	if (!argv || (o->output && asprintf(&output, "--output=%s", o->output) < 0) ||
	    (o->title && asprintf(&title, "--title=%s", o->title) < 0) ||
	    (o->plot && asprintf(&plot, "--plot=%s", o->plot) < 0)) {
		free(argv);
		return -ENOMEM;
	}
	argv[n++] = python;
	argv[n++] = no_cache;
	argv[n++] = helper;
	argv[n++] = facts_are;
	argv[n++] = facts;
	if (output)
		argv[n++] = output;
	if (title)
		argv[n++] = title;
	if (plot)
		argv[n++] = plot;
	if (o->text)
		argv[n++] = as_text;
	argv[n++] = files_are;
	memcpy(&argv[n], o->files, o->file_count * sizeof(*argv));
	execvp(argv[0], argv);
	n = (size_t)errno;
	free(output);
	free(title);
	free(plot);
	free(argv);
	return -(int)n;
}

static int write_page(const struct report_options *options)
{
	char helper[PATH_MAX + sizeof(HELPER)], *facts;
	int rc = find_helper(helper, sizeof(helper));

	if (rc < 0) {
		fprintf(stderr,
			"gdrcap report: its helper cannot be found from this program's place (%s): %s; "
			"install gdrcap anew (make install)\n",
			GDRCAP_LIBEXEC "/gdrcap/" HELPER, strerror(-rc));
		return REPORT_EXIT_NOT_RUN;
	}
	facts = facts_text();
	rc = facts ? become(helper, facts, options) : -ENOMEM;
	free(facts);
	fprintf(stderr,
		"gdrcap report: python3 cannot be started: %s; sudo apt-get install python3 "
		"python3-jinja2 python3-matplotlib\n",
		strerror(-rc));
	return REPORT_EXIT_NOT_RUN;
}

int cmd_report(int argc, char **argv)
{
	struct report_options options = { .files = calloc((size_t)argc, sizeof(*options.files)) };
	int rc;

	if (!options.files) {
		fprintf(stderr, "gdrcap report: %s\n", strerror(ENOMEM));
		return REPORT_EXIT_NOT_RUN;
	}
	rc = parse(argc, argv, &options);
	if (rc == 0)
		rc = write_page(&options);
	else
		rc = rc > 0 ? REPORT_EXIT_OK : REPORT_EXIT_USAGE;
	free(options.files);
	return rc;
}
