/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of loopback, capture and replay: the library's option table as flags. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/parse.h"
#include "options.h"
#include "options_inside.h"

#define NAME_BYTES 40

/* getopt_long()'s `val`: what kind, and which of them. */
#define VAL_LIBRARY 0x1000
#define VAL_NEGATED 0x2000
#define VAL_OWN 0x3000
#define VAL_KIND 0xf000

enum own {
	OWN_CONFIG,
	OWN_JSON,
	OWN_JSON_LINES,
	OWN_JSON_COMPACT,
	OWN_JSON_FILE,
	OWN_METRICS,
	OWN_METRICS_TEXTFILE,
	OWN_TELEMETRY,
	OWN_QUIET,
	OWN_VERBOSE,
	OWN_WAIT_READY, /* of a replay, from here */
	OWN_WAIT_SECONDS,
	OWN_READY, /* of who receives, from here */
	OWN_EXPLAIN_IMAGE,
	OWN_SAVE_IMAGES,
	OWN_IMAGE_FORMAT,
	OWN_IMAGE_SIZE,
	OWN_HELP
};

#define OWN(name, value, text)                                                                     \
	{                                                                                          \
		.key = "", .flag = name, .argument = value, .help = text                           \
	}

static const struct gdrcap_option own_options[] = {
	[OWN_CONFIG] = OWN("config", "FILE",
			   "YAML file with options (docs/configuration.md); the command line "
			   "overrides it."),
	[OWN_JSON] = OWN("json", NULL, "Print the result as one JSON object."),
	[OWN_JSON_LINES] = OWN("json-lines", "SECONDS",
			       "Print a line of JSON at this interval while running, 0.1..3600 s."),
	[OWN_JSON_COMPACT] = OWN("json-compact", NULL,
				 "Lines of --json-lines before the last: only what changes, in "
				 "total."),
	[OWN_JSON_FILE] = OWN("json-file", "FILE",
			      "Append what --json or --json-lines print to this file instead; "
			      "SIGHUP opens it anew, as logrotate wants."),
	[OWN_METRICS] = OWN("metrics", "WHERE",
			    "Answer Prometheus at PORT (of 127.0.0.1), ADDRESS:PORT or unix:PATH: "
			    "http://.../metrics (docs/metrics.md)."),
	[OWN_METRICS_TEXTFILE] = OWN("metrics-textfile", "FILE.prom",
				     "Keep the counts in this file, each second anew, for "
				     "node_exporter's textfile collector (docs/metrics.md)."),
	[OWN_TELEMETRY] = OWN("telemetry", NULL,
			      "Answer clients of DPDK's telemetry, such as dpdk-telemetry.py -f "
			      "gdrcap, with the counts (docs/metrics.md)."),
	[OWN_QUIET] = OWN("quiet", NULL, "Print the verdict and errors only."),
	[OWN_VERBOSE] = OWN("verbose", NULL, "Print what is chosen and done; twice: in detail."),
	[OWN_WAIT_READY] = OWN("wait-ready", "FILE[,FILE...]",
			       "Send nothing before each of these files is there and says that a "
			       "receiver is ready: its --ready FILE. Repeat the option for more."),
	[OWN_WAIT_SECONDS] =
		OWN("wait-seconds", "SECONDS",
		    "Wait for them so long at most, 0.001..86400 s; 0: for ever; default 60 s."),
	[OWN_READY] = OWN("ready", "FILE",
			  "Write a line of JSON when frames can come, into this file, which is "
			  "there as a whole or not at all, or with - to standard output."),
	[OWN_EXPLAIN_IMAGE] = OWN("explain-image", NULL,
				  "Print the images' layouts as YAML, every key written out, and "
				  "run nothing."),
	[OWN_SAVE_IMAGES] = OWN("save-images", "FILE",
				"Write the images' bytes to this file, one after the other, and "
				"where each lies to FILE.jsonl; with --save-every N the first and "
				"every N-th."),
	[OWN_IMAGE_FORMAT] = OWN("image-format", "FORMAT",
				 "Of --save-images: raw, or a file for each picture: pgm, ppm or "
				 "png; out.png becomes out-0.png, ...; default raw."),
	[OWN_IMAGE_SIZE] =
		OWN("image-size", "WIDTHxHEIGHT", "Pixels of a picture, each up to 65535."),
	[OWN_HELP] = OWN("help", NULL, "Print this help."),
};
#define OWN_COUNT (sizeof(own_options) / sizeof(own_options[0]))

/* One walk over a command line. */
struct parser {
	int argc;
	char **argv;
	const struct options_command *command;
	struct option table[2 * GDRCAP_OPTIONS_MAX + OWN_COUNT + 1];
	char negated[GDRCAP_OPTIONS_MAX][NAME_BYTES]; /* "no-guard": names in `table` */
	const char *config_path;
	int explain;
	unsigned char given[GDRCAP_OPTIONS_MAX]; /* library options already applied */
	struct app_options *options;
};

int options_refuse(struct app_options *options, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(options->refused, sizeof(options->refused), format, args);
	va_end(args);
	fprintf(stderr, "gdrcap %s: %s\nTry 'gdrcap %s --help'.\n", options->command,
		options->refused, options->command);
	return -EINVAL;
}

static int command_has(const struct options_command *command, enum own which)
{
	const unsigned int takers = which < OWN_WAIT_READY || which == OWN_HELP ? ~0u
				    : which < OWN_READY				? GDRCAP_FOR_REPLAY
							: GDRCAP_FOR_CAPTURE | GDRCAP_FOR_LOOPBACK;

	return (command->commands & takers) != 0;
}

/* The program's own options of a command; NULL: the end. */
static void own_list(const struct options_command *command,
		     const struct gdrcap_option *own[OWN_COUNT + 1])
{
	size_t count = 0;

	for (size_t i = 0; i < OWN_COUNT; i++)
		if (command_has(command, (enum own)i))
			own[count++] = &own_options[i];
	own[count] = NULL;
}

/* ---- the command line ---- */

static int refuse_unknown(const struct parser *parser, const char *argument)
{
	int length = (int)strcspn(argument, "=");
	const struct gdrcap_option *option;
	const struct option *row;
	struct nearest nearest;
	char name[NAME_BYTES];
	size_t i;

	if (strncmp(argument, "--", 2))
		return options_refuse(parser->options,
				      "unknown option '%s'; options are words: --config", argument);
	snprintf(name, sizeof(name), "%.*s", length - 2, argument + 2);
	for (i = 0; (option = gdrcap_option_at(i)); i++)
		if (!strcmp(option->flag, name))
			return options_refuse(parser->options,
					      "--%s is not an option of this command", name);
	nearest = (struct nearest){ .name = name };
	for (row = parser->table; row->name; row++)
		nearest_consider(&nearest, row->name);
	return options_refuse(parser->options, "unknown option '%.*s'%s", length, argument,
			      nearest_hint(&nearest, "--"));
}

static void table_add(struct parser *parser, size_t *rows, const char *name, int argument, int val)
{
	parser->table[(*rows)++] = (struct option){
		.name = name,
		.has_arg = argument ? required_argument : no_argument,
		.val = val,
	};
}

static void parser_init(struct parser *parser)
{
	const struct gdrcap_option *option;
	size_t rows = 0, i;

	for (i = 0; (option = gdrcap_option_at(i)) && i < GDRCAP_OPTIONS_MAX; i++) {
		if (!options_takes(parser->command, option))
			continue;
		table_add(parser, &rows, option->flag, option->argument != NULL,
			  VAL_LIBRARY | (int)i);
		if (option->argument)
			continue;
		snprintf(parser->negated[i], NAME_BYTES, "no-%s", option->flag);
		table_add(parser, &rows, parser->negated[i], 0, VAL_NEGATED | (int)i);
	}
	for (i = 0; i < OWN_COUNT; i++)
		if (command_has(parser->command, (enum own)i))
			table_add(parser, &rows, own_options[i].flag,
				  own_options[i].argument != NULL, VAL_OWN | (int)i);
}

static int apply_library(struct parser *parser, size_t index, const char *value)
{
	const struct gdrcap_option *option = gdrcap_option_at(index);
	struct gdrcap_error error = { 0 };
	int ret;

	/* The first of a list replaces what the file says, the others extend it. */
	ret = (option->is_list && parser->given[index] ? gdrcap_config_add : gdrcap_config_set)(
		parser->options->config, option->flag, value, &error);
	if (ret)
		return options_refuse(parser->options, "--%s", error.text);
	parser->given[index] = 1;
	return 0;
}

static int apply_own(struct parser *parser, enum own which, const char *value)
{
	const struct gdrcap_option *own[OWN_COUNT + 1];
	struct app_options *options = parser->options;
	uint64_t ms;

	switch (which) {
	case OWN_CONFIG:
		if (parser->config_path)
			return options_refuse(parser->options,
					      "--config is given twice; give one file");
		parser->config_path = value;
		break;
	case OWN_JSON:
		options->json = 1;
		break;
	case OWN_JSON_LINES:
		if (parse_duration(value, &ms) || ms < 100 || ms > 3600000)
			return options_refuse(parser->options,
					      "--json-lines: '%s' is not a time; allowed: "
					      "0.1..3600 s, at most three decimals",
					      value);
		options->json_lines = (double)ms / 1000;
		break;
	case OWN_JSON_COMPACT:
		options->json_compact = 1;
		break;
	case OWN_JSON_FILE:
		options->json_file = value;
		break;
	case OWN_METRICS:
		options->metrics = value;
		break;
	case OWN_METRICS_TEXTFILE:
		if (strlen(value) < 6 || strcmp(value + strlen(value) - 5, ".prom"))
			return options_refuse(parser->options,
					      "--metrics-textfile: '%s' does not end with .prom; "
					      "node_exporter reads no other files",
					      value);
		options->metrics_textfile = value;
		break;
	case OWN_TELEMETRY:
		options->telemetry = 1;
		break;
	case OWN_QUIET:
		options->quiet = 1;
		break;
	case OWN_VERBOSE:
		if (options->verbose < 2)
			options->verbose++;
		break;
	case OWN_WAIT_READY:
		return options_wait_for(options, value);
	case OWN_WAIT_SECONDS:
		return options_wait_limit(options, value);
	case OWN_READY:
		options->ready = value;
		break;
	case OWN_EXPLAIN_IMAGE:
		parser->explain = 1;
		break;
	case OWN_SAVE_IMAGES:
		options->save_images = value;
		break;
	case OWN_IMAGE_FORMAT:
		options->image_format = value;
		break;
	case OWN_IMAGE_SIZE:
		options->image_size = value;
		break;
	case OWN_HELP:
		own_list(parser->command, own);
		options_help(parser->command, own);
		return 1;
	}
	return 0;
}

/* One walk: the program's own options (0) or the library's (1). The file comes in between. */
static int parser_walk(struct parser *parser, int library)
{
	int at, val, index, ret;

	optind = 0; /* glibc: start anew */
	opterr = 0;
	for (;;) {
		const char *argument;

		at = optind ? optind : 1;
		index = -1;
		/* '-': in order, so that argv[at] is what is being read. ':': we print errors. */
		val = getopt_long(parser->argc, parser->argv, "-:h", parser->table, &index);
		if (val == -1)
			break;
		argument = parser->argv[at];
		if (val == 1)
			return options_refuse(parser->options,
					      "unexpected argument '%s'; options begin with --",
					      argument);
		if (val == '?' && !optopt)
			return refuse_unknown(parser, argument);
		if (val == '?' && optopt >= VAL_LIBRARY)
			return options_refuse(parser->options, "%.*s takes no value",
					      (int)strcspn(argument, "="), argument);
		if (val == '?')
			return refuse_unknown(parser, argument);
		if (val == ':')
			return options_refuse(parser->options, "%s needs a value", argument);
		/* getopt completes names; scripts that rely on it break with the next option. */
		if (index >= 0 && strcspn(argument + 2, "=") != strlen(parser->table[index].name))
			return refuse_unknown(parser, argument);
		ret = 0;
		if (val == 'h')
			val = VAL_OWN | OWN_HELP;
		if ((val & VAL_KIND) == VAL_OWN && !library)
			ret = apply_own(parser, (enum own)(val & ~VAL_KIND), optarg);
		else if ((val & VAL_KIND) == VAL_LIBRARY && library)
			ret = apply_library(parser, (size_t)(val & ~VAL_KIND),
					    optarg ? optarg : "true");
		else if ((val & VAL_KIND) == VAL_NEGATED && library)
			ret = apply_library(parser, (size_t)(val & ~VAL_KIND), "false");
		if (ret)
			return ret;
	}
	if (optind < parser->argc)
		return options_refuse(parser->options,
				      "unexpected argument '%s'; options begin with --",
				      parser->argv[optind]);
	return 0;
}

static int load_file(struct parser *parser)
{
	struct app_options *options = parser->options;
	struct gdrcap_error error = { 0 };
	int ret;

	if (!parser->config_path)
		return 0;
	ret = gdrcap_config_load(options->config, parser->config_path, &error);
	if (ret == 0)
		return 0;
	snprintf(options->refused, sizeof(options->refused), "%s", error.text);
	fprintf(stderr, "gdrcap %s: %s\n", parser->command->name, error.text);
	return ret;
}

int options_parse(int argc, char **argv, const struct options_command *command,
		  struct app_options *options)
{
	struct parser parser = {
		.argc = argc, .argv = argv, .command = command, .options = options
	};
	const struct gdrcap_option *own[OWN_COUNT + 1];
	struct gdrcap_error error = { 0 };
	int ret;

	memset(options, 0, sizeof(*options));
	options->command = command->name;
	options->config = gdrcap_config_new();
	if (!options->config)
		return options_refuse(options, "out of memory");
	if (argc == 2 && !strcmp(argv[1], "--complete")) {
		own_list(command, own);
		options_list(command, own);
		return 1;
	}
	parser_init(&parser);
	ret = parser_walk(&parser, 0);
	if (ret)
		return ret;
	if (options->quiet && options->verbose)
		return options_refuse(options, "--quiet and --verbose exclude each other");
	if (options->json_file && !options->json && !(options->json_lines > 0))
		return options_refuse(options, "--json-file: nothing goes there without --json or "
					       "--json-lines; give one of them");
	if (options->json_file && !strcmp(options->json_file, "-"))
		return options_refuse(options,
				      "--json-file: - is where JSON goes without it, standard "
				      "output; leave it out (a file of that name is ./-)");
	if (options->json && options->json_lines > 0)
		return options_refuse(options, "--json and --json-lines: give one of them; the "
					       "last of the lines is what --json prints");
	if (options->json_compact && !(options->json_lines > 0))
		return options_refuse(options,
				      "--json-compact is about lines before the last; give "
				      "--json-lines SECONDS");
	ret = load_file(&parser);
	if (ret == 0)
		ret = parser_walk(&parser, 1);
	if (ret == 0 && parser.explain)
		ret = options_images_explain(options);
	if (ret == 0)
		ret = options_images_complete(options);
	if (ret == 0)
		ret = options_files_stay(options);
	if (ret == 0)
		ret = options_ready_settle(options);
	if (ret)
		return ret;
	if (command->complete && command->complete(options->config, &error))
		return options_refuse(options, "%s", error.text);
	return 0;
}
