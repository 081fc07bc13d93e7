/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flows of cmd_loopback() and cmd_capture() over a session that does what the test says. Each
 * command runs in a child process, as a program does: signals and static state are its own.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "cmd.h"
#include "fake_gdrcap.h"

#define ARGUMENTS_MAX 16

static struct fake_gdrcap *called; /* the child's `fake`, afterwards */
static char out[1 << 20], err[65536];

static void read_back(FILE *from, char *to, size_t bytes)
{
	size_t n;

	rewind(from);
	n = fread(to, 1, bytes - 1, from);
	to[n] = '\0';
	fclose(from);
}

static void child(int (*command)(int, char **), int argc, char **argv, FILE *to, FILE *errors)
{
	int status;

	if (dup2(fileno(to), STDOUT_FILENO) < 0 || dup2(fileno(errors), STDERR_FILENO) < 0)
		_exit(99);
	status = command(argc, argv);
	fflush(stdout);
	*called = fake;
	_exit(status);
}

/* Runs the command; its exit status, and what it wrote in `out` and `err`. NULL ends the list. */
static int run(int (*command)(int, char **), const char *name, ...)
{
	char *argv[ARGUMENTS_MAX] = { (char *)name };
	FILE *to = tmpfile(), *errors = tmpfile();
	int argc = 0, status = 0;
	va_list list;
	pid_t pid;

	assert_true(to && errors);
	va_start(list, name);
	while (argv[argc] && argc + 1 < ARGUMENTS_MAX)
		argv[++argc] = va_arg(list, char *);
	va_end(list);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child(command, argc, argv, to, errors);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	read_back(to, out, sizeof(out));
	read_back(errors, err, sizeof(err));
	if (!WIFEXITED(status))
		fail_msg("the command crashed: %s", err);
	return WEXITSTATUS(status);
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

/* The last of `lines` lines, each of which is a JSON object. */
static json_t *json_last(int lines)
{
	json_t *object = NULL;
	char *line = out;
	int seen = 0;

	while (*line) {
		char *end = strchr(line, '\n');

		assert_non_null(end);
		*end = '\0';
		json_decref(object);
		object = json_loads(line, 0, NULL);
		assert_non_null(object);
		line = end + 1;
		seen++;
	}
	if (lines >= 0)
		assert_int_equal(seen, lines);
	else
		assert_true(seen >= -lines);
	return object;
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static int setup(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.end_after = 3;
	fake.summary.total = (struct gdrcap_counts){
		.sent = 1000, .received = 1000, .valid = 1000, .bits_checked = 8000, .bytes = 60000
	};
	fake.steps[0] = (struct gdrcap_step){ .name = "ports up", .detail = "10 Gb/s" };
	fake.step_count = 1;
	return 0;
}

static void test_loopback(void **state)
{
	assert_int_equal(run(cmd_loopback, "loopback", NULL), 0);
	assert_string_equal(called->settings.rx.port[0].name, "ring:wire");
	assert_string_equal(called->settings.tx.port[0].name, "ring:wire");
	assert_int_equal(called->settings.seconds_ms, 10000);
	assert_has(out, "   1  ports up .................... passed  10 Gb/s\n");
	assert_has(out, "\nPASS: 1,000 frames sent, every one valid\n");
	assert_int_equal(called->proved, 1);
	assert_int_equal(called->started, 1);
	assert_int_equal(called->stopped, 1);
	assert_int_equal(called->destroyed, 1);
	assert_string_equal(err, "");
}

static void test_loopback_limits(void **state)
{
	assert_int_equal(run(cmd_loopback, "loopback", "--frames", "5", NULL), 0);
	assert_int_equal(called->settings.seconds_ms, 0);
	assert_int_equal(called->settings.frames, 5);
	assert_int_equal(run(cmd_loopback, "loopback", "--seconds", "0.5", NULL), 0);
	assert_int_equal(called->settings.seconds_ms, 500);
	/* Who says 0 means it. */
	assert_int_equal(run(cmd_loopback, "loopback", "--seconds", "0", NULL), 0);
	assert_int_equal(called->settings.seconds_ms, 0);
	assert_int_equal(run(cmd_loopback, "loopback", "--port", "ring:x", NULL), 0);
	assert_string_equal(called->settings.tx.port[0].name, "ring:x");
}

static void test_quiet(void **state)
{
	assert_int_equal(run(cmd_loopback, "loopback", "--quiet", NULL), 0);
	assert_string_equal(out, "PASS: 1,000 frames sent, every one valid\n");
	assert_string_equal(err, "");
}

static void test_stage_failed(void **state)
{
	static const char *const causes[] = { "no cable: plug it in", "wrong port: swap them",
					      NULL };
	json_t *object;

	fake.steps[1] = (struct gdrcap_step){ .name = "frame received",
					      .state = GDRCAP_STEP_FAILED,
					      .detail = "nothing in 1 s",
					      .causes = causes };
	fake.step_count = 2;
	fake.selftest_rc = -EIO;
	assert_int_equal(run(cmd_loopback, "loopback", NULL), 3);
	assert_has(out, "FAILED  nothing in 1 s\n");
	assert_has(out, "1. no cable: plug it in\n");
	assert_has(out, "2. wrong port: swap them\n");
	assert_has(out, "\nFAIL: selftest failed as told\n");
	assert_int_equal(called->started, 0);
	assert_int_equal(called->destroyed, 1);

	assert_int_equal(run(cmd_loopback, "loopback", "--json", "--quiet", NULL), 3);
	object = json_last(1);
	assert_string_equal(text_of(object, "result"), "fail");
	assert_true(json_is_null(json_object_get(object, "frames")));
	assert_true(json_is_object(json_object_get(object, "memory")));
	assert_int_equal(json_array_size(json_object_get(object, "stages")), 2);
	json_decref(object);
}

/* What keeps a run from running is no verdict on frames. */
static void test_cannot_run(void **state)
{
	json_t *object;

	fake.selftest_rc = -ENOMEM;
	assert_int_equal(run(cmd_loopback, "loopback", NULL), 1);
	assert_has(err, "FAIL: selftest failed as told\n");
	setup(NULL);
	fake.create_rc = -ENODEV;
	assert_int_equal(run(cmd_capture, "capture", "--port", "net_null0", NULL), 1);
	assert_string_equal(err, "FAIL: create failed as told\n");
	assert_string_equal(out, "");
	assert_int_equal(called->destroyed, 0);
	assert_int_equal(run(cmd_capture, "capture", "--port", "net_null0", "--json", NULL), 1);
	object = json_last(1);
	assert_string_equal(text_of(object, "result"), "fail");
	assert_string_equal(json_string_value(json_array_get(json_object_get(object, "errors"), 0)),
			    "create failed as told");
	assert_true(json_is_null(json_object_get(object, "memory")));
	json_decref(object);
	setup(NULL);
	fake.start_rc = -EIO;
	assert_int_equal(run(cmd_capture, "capture", "--port", "net_null0", NULL), 1);
	assert_int_equal(called->waited, 0);
	assert_int_equal(called->destroyed, 1);
}

static void test_ended_early(void **state)
{
	fake.stop_rc = -ENODEV;
	fake.summary.failed = 1;
	fake.message = "port 0: the link went down";
	assert_int_equal(run(cmd_capture, "capture", "--port", "net_null0", NULL), 1);
	assert_has(out, "  Messages of the run:\n  port 0: the link went down\n");
	assert_has(out, "\nFAIL: stop failed as told\n");
	fake.summary.total.lost = 7;
	assert_int_equal(run(cmd_capture, "capture", "--port", "net_null0", NULL), 3);
	assert_has(out, "\nFAIL: stop failed as told; 7 frames lost\n");
}

static void test_capture(void **state)
{
	assert_int_equal(run(cmd_capture, "capture", "--port", "net_null0", NULL), 0);
	assert_has(out, "\nPASS: 1,000 frames received, every one valid\n");
	assert_int_equal(called->proved, 0);
	assert_int_equal(called->settings.seconds_ms, 0);
}

static void test_replay(void **state)
{
	fake.summary.total = (struct gdrcap_counts){ .sent = 1000 };
	fake.summary.known = GDRCAP_HAS_TX_STALLED;
	assert_int_equal(run(cmd_replay, "replay", "--tx-port", "net_null0", NULL), 0);
	assert_has(out, "\nPASS: 1,000 frames sent\n");
	assert_int_equal(called->proved, 0);
	assert_string_equal(called->settings.tx.port[0].name, "net_null0");
	assert_string_equal(called->settings.rx.port[0].name, "");
	/* A port that took frames and then said it could not send them. */
	fake.summary.known |= GDRCAP_HAS_TX_ERROR;
	fake.summary.tx_error = 3;
	assert_int_equal(run(cmd_replay, "replay", "--tx-port", "net_null0", NULL), 3);
	assert_has(out, "\nFAIL: 3 frames taken by the port, which then could not send them\n");
	fake.summary.tx_error = 0;
	fake.summary.total.sent = 0;
	assert_int_equal(run(cmd_replay, "replay", "--tx-port", "net_null0", NULL), 3);
	assert_has(out, "\nFAIL: no frame was sent");
}

static void test_capture_nothing(void **state)
{
	memset(&fake.summary.total, 0, sizeof(fake.summary.total));
	assert_int_equal(run(cmd_capture, "capture", "--port", "net_null0", "--quiet", NULL), 3);
	assert_has(out, "FAIL: no frame was received");
}

static void test_usage(void **state)
{
	assert_int_equal(run(cmd_capture, "capture", NULL), 2);
	assert_has(err, "port: none is given");
	assert_int_equal(run(cmd_loopback, "loopback", "--port", "net_null0", NULL), 2);
	assert_has(err, "tx_port: none is given");
	assert_int_equal(run(cmd_replay, "replay", NULL), 2);
	assert_has(err, "tx_port: none is given");
	/* What only the other direction has. */
	assert_int_equal(run(cmd_replay, "replay", "--port", "net_null0", NULL), 2);
	assert_has(err, "--port");
	assert_int_equal(run(cmd_capture, "capture", "--tx-port", "net_null0", NULL), 2);
	assert_int_equal(
		run(cmd_capture, "capture", "--port", "net_null0", "--rate", "1gbit", NULL), 2);
	assert_int_equal(run(cmd_loopback, "loopback", "--json", "--json-lines", "1", NULL), 2);
	assert_int_equal(called->created, 0);
	json_decref(json_last(1));
	/* Nobody would know which. */
	assert_int_equal(
		run(cmd_loopback, "loopback", "--quiet", "--json", "--metrics", "[::1]:0", NULL),
		2);
	assert_has(err, "leave --quiet out");
	json_decref(json_last(1));
	/* Of what this program of a test is made of, that is no part. */
	assert_int_equal(run(cmd_loopback, "loopback", "--json", "--metrics", "9187", NULL), 2);
	assert_has(err, "built without libmicrohttpd");
	assert_int_equal(called->created, 0);
	json_decref(json_last(1));
	assert_int_equal(run(cmd_loopback, "loopback", "--json", "--no-such-option", NULL), 2);
	json_decref(json_last(1));
	assert_int_equal(run(cmd_loopback, "loopback", "--no-such-option", NULL), 2);
	assert_string_equal(out, "");
	assert_has(err, "no-such-option");
}

/* A log of runs has none that was none. */
static void test_usage_json_file(void **state)
{
	char path[] = "/tmp/gdrcap-cmd-XXXXXX";
	const int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(run(cmd_capture, "capture", "--json", "--json-file", path, NULL), 2);
	json_decref(json_last(1));
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	assert_int_equal(run(cmd_capture, "capture", "--port", "net_null0", "--json", "--json-file",
			     path, NULL),
			 0);
	assert_true(lseek(fd, 0, SEEK_END) > 0);
	assert_has(out, "PASS");
	close(fd);
	unlink(path);
}

/* One signal ends the run in order; the counts decide the exit status. */
static void test_signal(void **state)
{
	fake.end_after = 0;
	fake.signal_after = 5;
	assert_int_equal(run(cmd_capture, "capture", "--port", "net_null0", "--json", NULL), 0);
	assert_int_equal(called->waited, 5);
	assert_int_equal(called->stopped, 1);
	json_decref(json_last(1));
	assert_has(err, "PASS");
}

static void test_json_lines(void **state)
{
	json_t *object;

	fake.end_after = 400;
	assert_int_equal(run(cmd_capture, "capture", "--port", "net_null0", "--json-lines", "0.1",
			     "--quiet", NULL),
			 0);
	assert_has(out, "\"result\":\"running\"");
	object = json_last(-4);
	assert_string_equal(text_of(object, "result"), "pass");
	json_decref(object);
	assert_string_equal(err, "");
}

/* A card's rules say late what they did: the run waits for it, once, and no longer than it must. */
static void test_rules(void **state)
{
	json_t *object, *steering;

	fake.rule_count = 2;
	fake.rules[0] = (struct gdrcap_rule){ .text = "vlan=5", .frames = 600, .known = 1 };
	fake.rules[1] = (struct gdrcap_rule){ .text = "vlan=6", .frames = 400, .known = 1 };
	fake.rules_after = 4;
	assert_int_equal(run(cmd_loopback, "loopback", "--json", NULL), 0);
	object = json_last(1);
	steering = json_object_get(object, "steering");
	assert_int_equal(json_integer_value(json_object_get(
				 json_array_get(json_object_get(steering, "rules"), 1), "frames")),
			 400);
	json_decref(object);
	assert_int_equal(called->rules_asked, 5);
	/* Nothing to wait for: all is there at once; the card does not count; it never gets there. */
	fake.rules_after = 0;
	assert_int_equal(run(cmd_loopback, "loopback", "--json", NULL), 0);
	assert_int_equal(called->rules_asked, 1);
	fake.rules_after = 4;
	fake.rules[1].known = 0;
	assert_int_equal(run(cmd_loopback, "loopback", "--json", NULL), 0);
	assert_int_equal(called->rules_asked, 1);
	/* Frames that the queue missed or dropped were steered as well. */
	fake.rules[1].known = 1;
	fake.rules[1].frames = 503;
	fake.summary.nic_missed = 100;
	fake.summary.nic_error = 3;
	assert_int_equal(run(cmd_loopback, "loopback", "--json", NULL), 0);
	assert_int_equal(called->rules_asked, 5);
}

/* A rule that never gets to what came: the run ends all the same. */
static void test_rules_short(void **state)
{
	fake.rule_count = 1;
	fake.rules[0] = (struct gdrcap_rule){ .text = "vlan=5", .frames = 999, .known = 1 };
	assert_int_equal(run(cmd_loopback, "loopback", NULL), 0);
	assert_true(called->rules_asked > 2);
	assert_has(out, "999  frames by the card's rule vlan=5\n");
}

/* Cards are asked once, at the end, however many live lines there were. */
static void test_causes(void **state)
{
	fake.end_after = 1200;
	fake.cause_count = 1;
	fake.causes[0] = (struct gdrcap_cause){
		.name = "card_full", .meaning = "PCIe is slow", .count = 5, .known = 1
	};
	assert_int_equal(run(cmd_capture, "capture", "--port", "net_null0", NULL), 0);
	assert_has(out, "     1 s  1,000 frames");
	assert_has(out, "card_full                                 5  PCIe is slow\n");
	assert_int_equal(called->causes_asked, 1);
	assert_int_equal(called->rules_asked, 1);
}

static void test_reader_gone(void **state)
{
	fake.end_after = 0; /* only the write error can end it */
	FILE *full = fopen("/dev/full", "w");
	int status;
	pid_t pid;

	if (!full)
		skip();
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char *argv[] = { "capture",	 "--port", "net_null0", "--quiet",
				 "--json-lines", "0.1",	   NULL };
		FILE *errors = tmpfile();

		child(cmd_capture, 6, argv, full, errors);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	fclose(full);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_int_equal(called->stopped, 1);
	assert_int_equal(called->destroyed, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_loopback, setup),
		cmocka_unit_test_setup(test_loopback_limits, setup),
		cmocka_unit_test_setup(test_quiet, setup),
		cmocka_unit_test_setup(test_stage_failed, setup),
		cmocka_unit_test_setup(test_cannot_run, setup),
		cmocka_unit_test_setup(test_ended_early, setup),
		cmocka_unit_test_setup(test_capture, setup),
		cmocka_unit_test_setup(test_replay, setup),
		cmocka_unit_test_setup(test_capture_nothing, setup),
		cmocka_unit_test_setup(test_usage, setup),
		cmocka_unit_test_setup(test_usage_json_file, setup),
		cmocka_unit_test_setup(test_signal, setup),
		cmocka_unit_test_setup(test_json_lines, setup),
		cmocka_unit_test_setup(test_rules, setup),
		cmocka_unit_test_setup(test_rules_short, setup),
		cmocka_unit_test_setup(test_causes, setup),
		cmocka_unit_test_setup(test_reader_gone, setup),
	};

	called = mmap(NULL, sizeof(*called), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (called == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
