/* SPDX-License-Identifier: BSD-3-Clause */
/* app/json_file.c: whole lines, also after what others left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>

#include "json_file.h"

static char folder[] = "/tmp/gdrcap-json-file-XXXXXX";
static char path[64], moved[64];

static void put(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void holds(const char *name, const char *text)
{
	char found[256];
	FILE *file = fopen(name, "r");
	size_t bytes;

	assert_non_null(file);
	bytes = fread(found, 1, sizeof(found) - 1, file);
	found[bytes] = '\0';
	fclose(file);
	assert_string_equal(found, text);
}

/* Two lines into a file that holds `before`. */
static void write_after(const char *before)
{
	struct json_file file;

	put(before);
	assert_int_equal(json_file_open(&file, path), 0);
	assert_int_equal(json_file_write(&file, "{}\n", 3), 0);
	assert_int_equal(json_file_write(&file, "[]\n", 3), 0);
	assert_int_equal(json_file_close(&file), 0);
}

static void test_cut_line(void **state)
{
	write_after("{\"schema\":\"gdr");
	holds(path, "{\"schema\":\"gdr\n{}\n[]\n");
	write_after("{}\n");
	holds(path, "{}\n{}\n[]\n");
	write_after("");
	holds(path, "{}\n[]\n");
}

static void test_reopened(void **state)
{
	struct json_file file;

	put("");
	assert_int_equal(json_file_open(&file, path), 0);
	assert_int_equal(json_file_write(&file, "{}\n", 3), 0);
	assert_int_equal(rename(path, moved), 0);
	put("cut");
	assert_int_equal(json_file_reopen(&file), 0);
	assert_int_equal(json_file_write(&file, "[]\n", 3), 0);
	assert_int_equal(json_file_close(&file), 0);
	holds(moved, "{}\n");
	holds(path, "cut\n[]\n");
}

static void test_no_file(void **state)
{
	struct json_file file;

	assert_int_equal(json_file_open(&file, "/dev/null"), 0);
	assert_int_equal(json_file_write(&file, "{}\n", 3), 0);
	assert_int_equal(json_file_close(&file), 0);
}

/* A line for which a limit has no room is taken back, and the limit is named: no disk is full. */
static void test_too_large(void **state)
{
	const struct rlimit small = { 5, RLIM_INFINITY };
	struct json_file file;
	struct rlimit before;

	put("{}\n");
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(json_file_open(&file, path), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(json_file_write(&file, "[]\n", 3), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	holds(path, "{}\n");
	assert_int_equal(json_file_write(&file, "[]\n", 3), 0);
	assert_int_equal(json_file_close(&file), 0);
	holds(path, "{}\n[]\n");
}

static int setup(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/log", folder);
	snprintf(moved, sizeof(moved), "%s/log.1", folder);
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	unlink(moved);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_line),
		cmocka_unit_test(test_reopened),
		cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_too_large),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
