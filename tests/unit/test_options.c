/* SPDX-License-Identifier: BSD-3-Clause */
/* app/options.c: every option by its flag, the file's place, errors and help. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../app/options.h"

#define ARGUMENTS_MAX 24

static char output[2][65536]; /* what the last parse() wrote: stdout, stderr */
static struct app_options options;

static int complete(struct gdrcap_config *config, struct gdrcap_error *error)
{
	return gdrcap_config_get(config, "port", 0)
		       ? 0
		       : gdrcap_config_set(config, "port", "net_null0", error);
}

/* What an option came to. */
static void is(const char *key, uint32_t index, const char *value)
{
	const char *given = gdrcap_config_get(options.config, key, index);

	if (value)
		assert_string_equal(given, value);
	else
		assert_null(given);
}

static const char *const examples[] = { "Show it", "gdrcap capture --port net_null0", NULL };
static const struct options_command all = { "loopback", "send and receive", examples,
					    GDRCAP_FOR_LOOPBACK, NULL };
static const struct options_command sends = { "replay", "send", examples, GDRCAP_FOR_REPLAY, NULL };
static const struct options_command some = { "capture", "receive", examples, GDRCAP_FOR_CAPTURE,
					     complete };

/* Parses `line`, split at blanks, as arguments, with both streams kept in output[]. */
static int parse(const struct options_command *command, const char *line)
{
	char copy[512], *argv[ARGUMENTS_MAX + 1], *rest = NULL, *word;
	FILE *kept[2] = { tmpfile(), tmpfile() };
	int saved[2], argc = 0, ret, i;

	snprintf(copy, sizeof(copy), "%s %s", command->name, line);
	for (word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(argc < ARGUMENTS_MAX);
		argv[argc++] = word;
	}
	argv[argc] = NULL;
	fflush(NULL);
	for (i = 0; i < 2; i++) {
		assert_non_null(kept[i]);
		saved[i] = dup(i + 1);
		dup2(fileno(kept[i]), i + 1);
	}
	gdrcap_config_free(options.config);
	ret = options_parse(argc, argv, command, &options);
	fflush(NULL);
	for (i = 0; i < 2; i++) {
		size_t bytes;

		dup2(saved[i], i + 1);
		close(saved[i]);
		rewind(kept[i]);
		bytes = fread(output[i], 1, sizeof(output[i]) - 1, kept[i]);
		output[i][bytes] = '\0';
		fclose(kept[i]);
	}
	return ret;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

static void assert_refused(const struct options_command *command, const char *line,
			   const char *part)
{
	int ret = parse(command, line);

	if (ret >= 0)
		fail_msg("%d: %s", ret, line);
	assert_string_equal(output[0], "");
	assert_has(output[1], part);
	assert_has(output[1], command->name);
	if (!strstr(line, "--config"))
		assert_has(output[1], "--help'");
}

static void test_values(void **state)
{
	assert_int_equal(0, parse(&all, ""));
	is("queues", 0, "1");
	assert_int_equal(0,
			 parse(&all, "--port ring:a --queues=3 --port ring:b --tx-port ring:a "
				     "--guard --quiet-time 0.5 --frame-size 64-1518 --seconds 2"));
	is("port", 0, "ring:a");
	is("port", 1, "ring:b");
	is("port", 2, NULL);
	is("queues", 0, "3");
	is("guard", 0, "true");
	is("quiet", 0, "0.5");
	is("seconds", 0, "2");
	assert_int_equal(0, parse(&all, "--guard --no-guard --queues 3 --queues 4"));
	is("guard", 0, "false");
	is("queues", 0, "4");
	assert_string_equal(output[0], "");
	assert_string_equal(output[1], "");
}

static void test_own(void **state)
{
	assert_int_equal(0, parse(&all, "--json --verbose"));
	assert_int_equal(options.json, 1);
	assert_int_equal(0, parse(&all, "--json-lines 0.25 --verbose --verbose --verbose"));
	assert_true(options.json_lines == 0.25);
	assert_int_equal(options.verbose, 2);
	assert_int_equal(options.quiet, 0);
	assert_int_equal(0, parse(&all, "--quiet --json-lines 3600"));
	assert_int_equal(options.quiet, 1);
	assert_true(options.json_lines == 3600);
	assert_int_equal(0, parse(&all, "--json-lines=0.1"));
	assert_true(options.json_lines == 0.1);
	assert_int_equal(0, parse(&all, "--json-lines 250ms"));
	assert_true(options.json_lines == 0.25);
	assert_refused(&all, "--json-lines 0", "'0' is not a time");
	assert_refused(&all, "--json-lines 0.099", "0.1..3600 s");
	assert_refused(&all, "--json-lines 3600.001", "0.1..3600 s");
	assert_refused(&all, "--json-lines inf", "0.1..3600 s");
	assert_refused(&all, "--json-lines 1e1", "0.1..3600 s");
	assert_refused(&all, "--json-lines -1", "0.1..3600 s");
	assert_refused(&all, "--json-lines 1.", "0.1..3600 s");
	assert_refused(&all, "--json-lines 0.1234", "0.1..3600 s");
	assert_refused(&all, "--json-lines 99999999999999999999999", "0.1..3600 s");
	assert_refused(&all, "--quiet --verbose", "exclude each other");
	assert_int_equal(0, parse(&all, "--json-lines 1 --json-compact --json-file x.jsonl"));
	assert_string_equal(options.json_file, "x.jsonl");
	assert_int_equal(options.json_compact, 1);
	assert_refused(&all, "--json-file x", "--json-file: nothing goes there without --json");
	assert_refused(&all, "--json --json-compact", "give --json-lines SECONDS");
	assert_refused(&all, "--json --json-file -", "leave it out");
	assert_refused(&all, "--json --json-lines 1", "--json and --json-lines: give one of them");
	/* Nothing else means "at once" than to leave it out. */
	assert_refused(&all, "--start-at=", "is empty");
}

/* Of most of these nothing is there. */
static void test_one_file(void **state)
{
	assert_refused(&all, "--json --json-file x --save-damaged x",
		       "--json-file and --save-damaged are one file");
	assert_refused(&all, "--json --json-file ./x.prom --metrics-textfile x.prom",
		       "--json-file and --metrics-textfile are one file");
	assert_refused(&all, "--json --json-file /tmp/../none --ready //none",
		       "--json-file and --ready are one file");
	assert_refused(&all, "--ready ./x --metrics unix:x", "--ready and --metrics are one file");
	assert_refused(&all, "--ready ./x --save x", "--ready and --save are one file");
	assert_refused(&all, "--metrics-textfile x.prom --save-damaged ./x.prom",
		       "--metrics-textfile and --save-damaged are one file");
	assert_refused(&all, "--save x --save-damaged ./x",
		       "--save and --save-damaged are one file");
	assert_refused(&all, "--save x --tx-port net_pcap0,tx_pcap=./x",
		       "--save and --tx-port are one file");
	/* It takes all. */
	assert_int_equal(0, parse(&all, "--json --json-file /dev/null --save /dev/../dev/null"));
	assert_int_equal(0, parse(&all, "--json --json-file /none --save ./none"));
	assert_int_equal(0, parse(&all, "--json --json-file x --ready y --metrics unix:z"));
	/* Folders that are not there are none. */
	assert_int_equal(0, parse(&all, "--json --json-file /no/such/a/x --ready /no/such/b/x"));
}

/* Of an input, by all its names: itself, a hard link, a symbolic link and another spelling. */
static void assert_stays(const char *folder, const char *input, const char *option)
{
	static const char *const outputs[] = {
		"--json --json-file ",
		"--metrics-textfile ",
		"--ready ",
		"--metrics unix:",
		"--save ",
		"--save-damaged ",
		"--tx-port net_pcap0,tx_pcap=",
		"--save-images ",
	};
	char names[4][128], given[256], line[512], why[64];

	for (unsigned int n = 0; n < 4; n++)
		snprintf(names[n], sizeof(names[n]), "%s%s%s.prom", folder, n == 1 ? "//" : "/",
			 n < 2	  ? "in"
			 : n == 2 ? "hard"
				  : "soft");
	assert_int_equal(link(names[0], names[2]), 0);
	assert_int_equal(symlink(names[0], names[3]), 0);
	snprintf(given, sizeof(given), input, names[0]);
	snprintf(why, sizeof(why), "which this run reads (%s)", option);
	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++)
		for (unsigned int n = 0; n < 4; n++) {
			snprintf(line, sizeof(line), "%s %s%s", given, outputs[i], names[n]);
			if (strstr(outputs[i], "images") && !strstr(given, "image"))
				strcat(line, " --image gvsp,bytes=307200,piece=1364");
			assert_refused(strstr(given, "wait") ? &sends : &all, line, why);
		}
	unlink(names[2]);
	unlink(names[3]);
}

static void test_inputs_stay(void **state)
{
	static const char layout[] = "image: 'gvsp,bytes=307200,piece=1364'\n";
	char folder[] = "/tmp/gdrcap_test_inputs_XXXXXX", path[64], config[64], given[128];
	FILE *file;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/in.prom", folder);
	snprintf(config, sizeof(config), "%s/run.yaml", folder);
	file = fopen(path, "w");
	fputs(layout, file);
	fclose(file);
	file = fopen(config, "w");
	fprintf(file, "image: [%s]\n", path);
	fclose(file);
	assert_stays(folder, "--pcap %s", "pcap");
	assert_stays(folder, "--expect %s", "expect");
	assert_stays(folder, "--pattern-file %s", "pattern.file");
	assert_stays(folder, "--port net_pcap0,rx_pcap=/none,rx_pcap=%s", "port");
	assert_stays(folder, "--config %s", "config");
	assert_stays(folder, "--image %s", "image");
	snprintf(given, sizeof(given), "--config %s", config);
	assert_stays(folder, given, "image");
	unlink(config);
	unlink(path);
	assert_int_equal(rmdir(folder), 0);
}

static void test_refused(void **state)
{
	assert_refused(&all, "--queue 3", "unknown option '--queue'; did you mean '--queues'?");
	assert_refused(&all, "--frame=64", "did you mean '--frame-size'?");
	assert_refused(&all, "--jsno", "did you mean '--json'?");
	assert_refused(&all, "--patern prbs7", "did you mean '--pattern'?");
	assert_refused(&all, "--xyzzyplugh", "unknown option '--xyzzyplugh'\n");
	assert_refused(&all, "-q", "unknown option '-q'");
	assert_refused(&all, "--queues", "--queues needs a value");
	assert_refused(&all, "--queues 17", "--queues: '17' is out of range; allowed: 1..16");
	assert_refused(&all, "--guard=yes", "--guard takes no value");
	assert_refused(&all, "ring:a", "unexpected argument 'ring:a'");
	assert_refused(&all, "--queues 1 x", "unexpected argument 'x'");
	assert_refused(&all, "-- x", "unexpected argument 'x'");
	assert_refused(&some, "--loops 3", "--loops is not an option of this command");
	assert_refused(&some, "--no-loops", "unknown option");
	assert_refused(&all, "--config a --config b", "given twice");
	assert_refused(&all, "--config /nonexistent/f.yaml",
		       "/nonexistent/f.yaml: cannot be opened");
}

static void test_file(void **state)
{
	char path[] = "/tmp/gdrcap_test_options_XXXXXX", line[256];
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");

	assert_non_null(file);
	fputs("port: [ring:a, ring:b]\nqueues: 2\nburst: 8\nguard: true\n", file);
	fclose(file);
	/* The line overrides the file, whatever their order; a list is replaced, not extended. */
	snprintf(line, sizeof(line), "--queues 5 --port ring:c --no-guard --config %s", path);
	assert_int_equal(0, parse(&all, line));
	is("queues", 0, "5");
	is("burst", 0, "8");
	is("guard", 0, "false");
	is("port", 0, "ring:c");
	is("port", 1, NULL);
	/* What the command completes, it completes last. */
	snprintf(line, sizeof(line), "--config=%s", path);
	assert_int_equal(0, parse(&some, line));
	is("port", 0, "ring:a");
	assert_int_equal(0, parse(&some, ""));
	is("port", 0, "net_null0");

	file = fopen(path, "w");
	fputs("queues: 2\nburst: 1000\n", file);
	fclose(file);
	snprintf(line, sizeof(line), "--config %s", path);
	assert_refused(&all, line, ":2: burst: '1000' is out of range; allowed: 1..256");
	unlink(path);
}

/* What is explained is a file that gives the same layouts again, and no port is asked for. */
static void test_explain(void **state)
{
	char path[] = "/tmp/gdrcap_test_explain_XXXXXX", line[256], kept[2][4096];
	const char *const images = "--image gvsp,bytes=307200,piece=1364 --image "
				   "rtp-raw,width=64,height=2,sampling=RGB ";
	FILE *file;

	snprintf(line, sizeof(line), "%s--explain-image", images);
	assert_int_equal(1, parse(&some, line));
	assert_string_equal(output[1], "");
	assert_ptr_equal(output[0], strstr(output[0], "image:\n  - name: gvsp\n    base: udp\n"));
	assert_has(output[0], "\n    piece: 1364\n");
	assert_has(output[0], "\n  - name: rtp-raw\n");
	is("port", 0, NULL);
	for (uint32_t i = 0; i < 2; i++)
		snprintf(kept[i], sizeof(kept[i]), "%s",
			 gdrcap_config_get(options.config, "image", i));

	file = fdopen(mkstemp(path), "w");
	assert_non_null(file);
	fputs(output[0], file);
	fclose(file);
	for (uint32_t as_image = 0; as_image < 2; as_image++) {
		snprintf(line, sizeof(line), "--%s %s", as_image ? "image" : "config", path);
		assert_int_equal(0, parse(&some, line));
		is("image", 0, kept[0]);
		is("image", 1, kept[1]);
		is("image", 2, NULL);
	}
	/* what says where things are is not written over, nor are JSON and images mixed */
	for (uint32_t as_image = 0; as_image < 2; as_image++) {
		snprintf(line, sizeof(line), "--%s %s --save-images %s",
			 as_image ? "image" : "config", path, path);
		assert_refused(&some, line,
			       as_image ? "which this run reads (image)"
					: "which this run reads (config)");
	}
	unlink(path);
	snprintf(line, sizeof(line), "%s--json --save-images /dev/stdout", images);
	assert_refused(&some, line, "--json and saved images cannot both go to standard output");
	snprintf(line, sizeof(line), "%s--save-images /tmp/x --save-every 1k", images);
	assert_refused(&some, line, "--save-every: of images a plain number, not '1k'");
	assert_refused(&some, "--explain-image", "--explain-image: there is no image");
	assert_refused(&sends, "--explain-image", "unknown option '--explain-image'");
	assert_refused(&some, "--image gvsp,piece=1", "--image: bytes: is missing");
}

static void test_help(void **state)
{
	const struct gdrcap_option *option;
	char *line, *rest = NULL, flag[64];
	size_t i;

	assert_int_equal(1, parse(&all, "--queues 3 --help"));
	assert_string_equal(output[1], "");
	assert_has(output[0], "Usage: gdrcap loopback [OPTION]...\nSend and receive.\n");
	assert_has(output[0], "  # Show it\n  gdrcap capture --port net_null0\n");
	for (i = 0; (option = gdrcap_option_at(i)); i++) {
		snprintf(flag, sizeof(flag), "  --%s%s%s", option->argument ? "" : "[no-]",
			 option->flag, option->argument ? " " : "");
		if (option->commands)
			assert_has(output[0], flag);
		else
			assert_null(strstr(output[0], flag));
	}
	assert_has(output[0], "\nGPU and memory:\n");
	for (line = strtok_r(output[0], "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (strlen(line) > 80)
			fail_msg("too wide: %s", line);

	assert_int_equal(1, parse(&some, "-h"));
	assert_has(output[0], "--queues NUMBER");
	assert_null(strstr(output[0], "--loops"));
	/* The heading of a group whose first options are absent. */
	assert_has(output[0], "\nFiles and rates:\n  --pcap-memory");
	assert_has(output[0], "--config FILE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),	 cmocka_unit_test(test_own),
		cmocka_unit_test(test_one_file), cmocka_unit_test(test_inputs_stay),
		cmocka_unit_test(test_refused),	 cmocka_unit_test(test_file),
		cmocka_unit_test(test_explain),	 cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
