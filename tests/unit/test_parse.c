/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/base/parse.c at its limits, and nearest.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/nearest.h"
#include "base/parse.h"
#include "pattern/frame.h"

#define UNTOUCHED 0x1234567

/* `value` on success; -errno as `result` else, and nothing written. */
static void assert_number(int (*parse)(const char *text, uint64_t *value), const char *text,
			  int result, uint64_t value)
{
	uint64_t got = UNTOUCHED;
	int ret = parse(text, &got);

	if (ret != result || got != (result ? UNTOUCHED : value))
		fail_msg("'%s': %d, %llu instead of %d, %llu", text ? text : "(null)", ret,
			 (unsigned long long)got, result,
			 (unsigned long long)(result ? UNTOUCHED : value));
}

/* Forms that no number has. */
static void assert_junk(int (*parse)(const char *text, uint64_t *value))
{
	static const char *const junk[] = { "",	    " ",   " 1",  "1 ", "-1", "+1",    "1x", "x",
					    "1..2", "0x",  "01",  "1e", "e1", "1,000", "\n", "1\n",
					    "inf",  "nan", "--1", "1-", ".5", "1." };
	size_t i;

	for (i = 0; i < sizeof(junk) / sizeof(junk[0]); i++)
		assert_number(parse, junk[i], -EINVAL, 0);
	assert_number(parse, NULL, -EINVAL, 0);
}

static void test_u64(void **state)
{
	assert_junk(parse_u64);
	assert_number(parse_u64, "0", 0, 0);
	assert_number(parse_u64, "18446744073709551615", 0, UINT64_MAX);
	assert_number(parse_u64, "18446744073709551616", -ERANGE, 0);
	assert_number(parse_u64, "99999999999999999999999999", -ERANGE, 0);
	assert_number(parse_u64, "99999999999999999999999999x", -EINVAL, 0);
	assert_number(parse_u64, "0xffffffffffffffff", 0, UINT64_MAX);
	assert_number(parse_u64, "0X88b5", 0, 0x88b5);
	assert_number(parse_u64, "0x0000000000000000000001", 0, 1);
	assert_number(parse_u64, "0x10000000000000000", -ERANGE, 0);
	assert_number(parse_u64, "0xg", -EINVAL, 0);
	assert_number(parse_u64, "0x-1", -EINVAL, 0);
	assert_number(parse_u64, "1K", -EINVAL, 0);
}

static void test_size(void **state)
{
	assert_junk(parse_size);
	assert_number(parse_size, "0", 0, 0);
	assert_number(parse_size, "4096", 0, 4096);
	assert_number(parse_size, "64K", 0, 65536);
	assert_number(parse_size, "1MiB", 0, 1 << 20);
	assert_number(parse_size, "2G", 0, UINT64_C(2) << 30);
	assert_number(parse_size, "2GiB", 0, UINT64_C(2) << 30);
	assert_number(parse_size, "1T", 0, UINT64_C(1) << 40);
	assert_number(parse_size, "17179869183G", 0, UINT64_C(17179869183) << 30);
	assert_number(parse_size, "17179869184G", -ERANGE, 0);
	assert_number(parse_size, "18446744073709551616", -ERANGE, 0);
	assert_number(parse_size, "1KB", -EINVAL, 0);
	assert_number(parse_size, "1.5G", -EINVAL, 0);
	assert_number(parse_size, "1k", -EINVAL, 0);
	assert_number(parse_size, "1 G", -EINVAL, 0);
	assert_number(parse_size, "K", -EINVAL, 0);
}

static void test_count(void **state)
{
	assert_junk(parse_count);
	assert_number(parse_count, "0", 0, 0);
	assert_number(parse_count, "1000000", 0, 1000000);
	assert_number(parse_count, "10M", 0, 10000000);
	assert_number(parse_count, "10k", 0, 10000);
	assert_number(parse_count, "1e6", 0, 1000000);
	assert_number(parse_count, "1E+6", 0, 1000000);
	assert_number(parse_count, "2.5M", 0, 2500000);
	assert_number(parse_count, "1.25e2", 0, 125);
	assert_number(parse_count, "1.250e2", 0, 125);
	assert_number(parse_count, "1.25e1", -EINVAL, 0);
	assert_number(parse_count, "0.5", -EINVAL, 0);
	assert_number(parse_count, "1e-6", -EINVAL, 0);
	assert_number(parse_count, "1e6M", -EINVAL, 0);
	assert_number(parse_count, "1e19", 0, UINT64_C(10000000000000000000));
	assert_number(parse_count, "1.8446744073709551615e19", 0, UINT64_MAX);
	assert_number(parse_count, "1.8446744073709551616e19", -ERANGE, 0);
	assert_number(parse_count, "1e20", -ERANGE, 0);
	assert_number(parse_count, "1e99999999999999999999", -ERANGE, 0);
	assert_number(parse_count, "0e99999999999999999999", 0, 0);
	assert_number(parse_count, "18446744073709551615", 0, UINT64_MAX);
	assert_number(parse_count, "18446744073709551616", -ERANGE, 0);
	assert_number(parse_count, "18446744073G", 0, UINT64_C(18446744073000000000));
	assert_number(parse_count, "18446744074G", -ERANGE, 0);
}

static void test_duration(void **state)
{
	assert_junk(parse_duration);
	assert_number(parse_duration, "0", 0, 0);
	assert_number(parse_duration, "10", 0, 10000);
	assert_number(parse_duration, "10s", 0, 10000);
	assert_number(parse_duration, "0.25", 0, 250);
	assert_number(parse_duration, "0.2500000", 0, 250);
	assert_number(parse_duration, "0.001", 0, 1);
	assert_number(parse_duration, "0.0005", -EINVAL, 0);
	assert_number(parse_duration, "250ms", 0, 250);
	assert_number(parse_duration, "1.5ms", -EINVAL, 0);
	assert_number(parse_duration, "1.5min", 0, 90000);
	assert_number(parse_duration, "12h", 0, 43200000);
	assert_number(parse_duration, "18446744073709551.615", 0, UINT64_MAX);
	assert_number(parse_duration, "18446744073709551.616", -ERANGE, 0);
	assert_number(parse_duration, "1m", -EINVAL, 0);
	assert_number(parse_duration, "1e3", -EINVAL, 0);
}

static void test_bool(void **state)
{
	static const char *const yes[] = { "true", "yes", "on", "1" };
	static const char *const no[] = { "false", "no", "off", "0" };
	uint32_t value;
	int i;

	for (i = 0; i < 4; i++) {
		value = 7;
		assert_int_equal(0, parse_bool(yes[i], &value));
		assert_int_equal(value, 1);
		assert_int_equal(0, parse_bool(no[i], &value));
		assert_int_equal(value, 0);
	}
	assert_int_equal(-EINVAL, parse_bool("", &value));
	assert_int_equal(-EINVAL, parse_bool("2", &value));
	assert_int_equal(-EINVAL, parse_bool("TRUE", &value));
	assert_int_equal(-EINVAL, parse_bool(NULL, &value));
}

static void assert_cpus(const char *text, size_t max, int result, const char *expected)
{
	size_t count = UNTOUCHED, i;
	int cpus[16];

	assert_int_equal(result, parse_cpu_list(text, cpus, max, &count));
	if (result) {
		assert_int_equal(count, UNTOUCHED);
		return;
	}
	assert_int_equal(count, strlen(expected));
	for (i = 0; i < count; i++)
		assert_int_equal(cpus[i], expected[i] - '0');
}

static void test_cpu_list(void **state)
{
	int cpus[2];
	size_t count;

	assert_cpus("0", 16, 0, "0");
	assert_cpus("2,4-7", 16, 0, "24567");
	assert_cpus("9,1-1,0", 16, 0, "910");
	assert_cpus("4-7", 4, 0, "4567");
	assert_cpus("4-7", 3, -E2BIG, NULL);
	assert_cpus("0-8191", 16, -E2BIG, NULL);
	assert_cpus("1,1", 16, -EINVAL, NULL);
	assert_cpus("1-3,2", 16, -EINVAL, NULL);
	assert_cpus("3-1", 16, -EINVAL, NULL);
	assert_cpus("", 16, -EINVAL, NULL);
	assert_cpus(",", 16, -EINVAL, NULL);
	assert_cpus("1,", 16, -EINVAL, NULL);
	assert_cpus(",1", 16, -EINVAL, NULL);
	assert_cpus("1-", 16, -EINVAL, NULL);
	assert_cpus("-1", 16, -EINVAL, NULL);
	assert_cpus("1-2-3", 16, -EINVAL, NULL);
	assert_cpus("1 ,2", 16, -EINVAL, NULL);
	assert_cpus("8192", 16, -ERANGE, NULL);
	assert_cpus("18446744073709551617", 16, -ERANGE, NULL);
	assert_cpus("0-18446744073709551616", 16, -ERANGE, NULL);
	assert_cpus(NULL, 16, -EINVAL, NULL);
	assert_int_equal(0, parse_cpu_list("8191", cpus, 2, &count));
	assert_int_equal(cpus[0], 8191);
}

static uint16_t sizes[PARSE_FRAME_SIZES_MAX];

static int frame_sizes(const char *text, size_t max, size_t *count)
{
	*count = UNTOUCHED;
	return parse_frame_sizes(text, FRAME_MIN_BYTES, FRAME_MAX_BYTES, sizes, max, count);
}

static void test_frame_sizes(void **state)
{
	size_t count, i, of_64 = 0, of_594 = 0, of_1518 = 0, equal = 0;

	assert_int_equal(0, frame_sizes("64", 1, &count));
	assert_int_equal(count, 1);
	assert_int_equal(sizes[0], 64);
	assert_int_equal(0, frame_sizes("64,9216,512", 3, &count));
	assert_int_equal(count, 3);
	assert_int_equal(sizes[1], 9216);
	assert_int_equal(0, frame_sizes("64-1518", PARSE_FRAME_SIZES_MAX, &count));
	assert_int_equal(count, 1455);
	for (i = 0; i < count; i++)
		assert_int_equal(sizes[i], 64 + i);
	assert_int_equal(0, frame_sizes("64-9216", PARSE_FRAME_SIZES_MAX, &count));
	assert_int_equal(count, 9153);
	assert_int_equal(sizes[9152], 9216);
	assert_int_equal(0, frame_sizes("64-9216", 9153, &count));
	assert_int_equal(-E2BIG, frame_sizes("64-9216", 9152, &count));
	assert_int_equal(-E2BIG, frame_sizes("64-9216,64-9216", PARSE_FRAME_SIZES_MAX, &count));
	assert_int_equal(-E2BIG, frame_sizes("64,65", 1, &count));
	assert_int_equal(-E2BIG, frame_sizes("64", 0, &count));
	assert_int_equal(count, UNTOUCHED);

	assert_int_equal(-E2BIG, frame_sizes("imix", 11, &count));
	assert_int_equal(0, frame_sizes("imix", 12, &count));
	assert_int_equal(count, 12);
	for (i = 0; i < count; i++) {
		of_64 += sizes[i] == 64;
		of_594 += sizes[i] == 594;
		of_1518 += sizes[i] == 1518;
		equal += sizes[i] == sizes[(i + 1) % count];
	}
	assert_int_equal(of_64, 7);
	assert_int_equal(of_594, 4);
	assert_int_equal(of_1518, 1);
	assert_true(equal <= 2);

	assert_int_equal(-ERANGE, frame_sizes("63", 9, &count));
	assert_int_equal(-ERANGE, frame_sizes("9217", 9, &count));
	assert_int_equal(-ERANGE, frame_sizes("63-64", 9, &count));
	assert_int_equal(-ERANGE, frame_sizes("0", 9, &count));
	assert_int_equal(-ERANGE, frame_sizes("64,18446744073709551680", 9, &count));
	assert_int_equal(-ERANGE, frame_sizes("64-18446744073709551615", 9, &count));
	assert_int_equal(-EINVAL, frame_sizes("65-64", 9, &count));
	assert_int_equal(-EINVAL, frame_sizes("-64", 9, &count));
	assert_int_equal(-EINVAL, frame_sizes("64,", 9, &count));
	assert_int_equal(-EINVAL, frame_sizes("64, 65", 9, &count));
	assert_int_equal(-EINVAL, frame_sizes("64,imix", 9, &count));
	assert_int_equal(-EINVAL, frame_sizes("imix,64", 99, &count));
	assert_int_equal(-EINVAL, frame_sizes("0x40", 9, &count));
	assert_int_equal(-EINVAL, frame_sizes("", 9, &count));
	assert_int_equal(-EINVAL, frame_sizes(NULL, 9, &count));
}

/* As assert_number(); `after` is 1 of what begins with +. */
static void assert_moment(const char *text, int result, uint64_t ns, uint64_t after)
{
	struct parse_moment got = { UNTOUCHED, UNTOUCHED };
	const int ret = parse_moment(text, &got);

	if (ret != result || got.ns != (result ? UNTOUCHED : ns) ||
	    got.after != (result ? UNTOUCHED : after))
		fail_msg("'%s': %d, %llu, %llu", text ? text : "(null)", ret,
			 (unsigned long long)got.ns, (unsigned long long)got.after);
}

/* What is no time, and what is one that no clock of ours has. */
static void test_no_moment(void **state)
{
	static const char *const junk[] = { "",
					    " ",
					    "+",
					    "-1",
					    "++1",
					    "+-1",
					    "+ 1",
					    " 1",
					    "1 ",
					    "01",
					    "1.",
					    ".5",
					    "1e3",
					    "0x10",
					    "1.0000000001",
					    "+1.2345678901",
					    "nan",
					    "inf",
					    "now",
					    "12:00",
					    "2026-11",
					    "2026-11-26",
					    "2026-11-26T",
					    "2026-11-26T12",
					    "2026-11-26T12:00",
					    "2026-11-26T12:00:00",
					    "2026-11-26 12:00:00Z",
					    "2026-11-26T12:00:00z ",
					    "2026-11-26T12:00:00ZZ",
					    "2026-11-26T12:00:00.Z",
					    "2026-11-26T12:00:00.0000000001Z",
					    "2026-11-26T12:00:00,5Z",
					    "2026-11-26T12:00:00+1:00",
					    "2026-11-26T12:00:00+0100",
					    "2026-11-26T12:00:00+01",
					    "2026-11-26T12:00:00+01:00Z",
					    "2026-11-26T12:00:00+-1:00",
					    "2026-1-26T12:00:00Z",
					    "2026-11-6T12:00:00Z",
					    "20261126T120000Z",
					    "+2026-11-26T12:00:00Z",
					    "02026-11-26T12:00:00Z",
					    "2026/11/26T12:00:00Z",
					    "2026-11-26T1 :00:00Z",
					    "2026-11-26T12:00:00\n",
					    "2026-",
					    "202-11-26T12:00:00Z",
					    "\xff\xff\xff\xff-" };
	static const char *const outside[] = { "0",
					       "1969-12-31T23:59:59Z",
					       "0000-01-01T00:00:00Z",
					       "1970-01-01T00:00:00Z",
					       "2026-00-26T12:00:00Z",
					       "2026-13-26T12:00:00Z",
					       "2026-11-00T12:00:00Z",
					       "2026-11-31T12:00:00Z",
					       "2026-02-29T12:00:00Z",
					       "2100-02-29T12:00:00Z",
					       "2026-11-26T24:00:00Z",
					       "2026-11-26T12:60:00Z",
					       "2026-12-31T23:59:60Z",
					       "2026-11-26T12:00:00+24:00",
					       "2026-11-26T12:00:00-00:60",
					       "1970-01-01T00:30:00+01:00",
					       "2554-01-01T00:00:00Z",
					       "9999-12-31T23:59:59Z",
					       "18446744073.709551616",
					       "18446744074",
					       "99999999999999999999999999",
					       "+99999999999999999999999999" };

	for (size_t i = 0; i < sizeof(junk) / sizeof(junk[0]); i++)
		assert_moment(junk[i], -EINVAL, 0, 0);
	assert_moment(NULL, -EINVAL, 0, 0);
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
		assert_moment(outside[i], -ERANGE, 0, 0);
}

/* Seconds by date -u -d TEXT +%s. */
static void test_moment(void **state)
{
	assert_moment("2026-11-26T12:00:00Z", 0, UINT64_C(1795694400000000000), 0);
	assert_moment("2026-11-26t12:00:00.25z", 0, UINT64_C(1795694400250000000), 0);
	assert_moment("2026-11-26T12:00:00.000000001Z", 0, UINT64_C(1795694400000000001), 0);
	assert_moment("2026-11-26T13:30:00+01:30", 0, UINT64_C(1795694400000000000), 0);
	assert_moment("2026-11-26T03:30:00-08:30", 0, UINT64_C(1795694400000000000), 0);
	assert_moment("1970-01-01T00:00:01Z", 0, 1000000000, 0);
	assert_moment("1970-01-01T00:00:00-00:01", 0, UINT64_C(60000000000), 0);
	assert_moment("2000-02-29T00:00:00Z", 0, UINT64_C(951782400000000000), 0);
	assert_moment("2024-02-29T23:59:59Z", 0, UINT64_C(1709251199000000000), 0);
	assert_moment("2101-01-01T00:00:00Z", 0, UINT64_C(4133980800000000000), 0);
	assert_moment("2401-03-01T00:00:00Z", 0, UINT64_C(13606185600000000000), 0);
	assert_moment("2553-12-31T23:59:59Z", 0, UINT64_C(18429292799000000000), 0);
	assert_moment("1795694400", 0, UINT64_C(1795694400000000000), 0);
	assert_moment("1795694400.5", 0, UINT64_C(1795694400500000000), 0);
	assert_moment("0.000000001", 0, 1, 0);
	assert_moment("18446744073.709551615", 0, UINT64_MAX, 0);
	assert_moment("+0", 0, 0, 1);
	assert_moment("+2.5", 0, 2500000000, 1);
	assert_moment("+86400", 0, UINT64_C(86400000000000), 1);
}

static void test_mac(void **state)
{
	static const char *const junk[] = { "",
					    "02:00:00:00:00",
					    "02:00:00:00:00:0",
					    "02:00:00:00:00:000",
					    "02:00:00:00:00:0g",
					    "02:00-00:00:00:01",
					    "02.00.00.00.00.01",
					    "02:00:00:00:00:01:",
					    "0:02:00:00:00:001",
					    " 2:00:00:00:00:01" };
	uint8_t mac[6] = { 9 };
	size_t i;

	for (i = 0; i < sizeof(junk) / sizeof(junk[0]); i++)
		assert_int_equal(-EINVAL, parse_mac(junk[i], mac));
	assert_int_equal(-EINVAL, parse_mac(NULL, mac));
	assert_int_equal(mac[0], 9);
	assert_int_equal(0, parse_mac("02:1a:Ff:00:00:e0", mac));
	assert_memory_equal(mac, "\x02\x1a\xff\x00\x00\xe0", 6);
	assert_int_equal(0, parse_mac("ff-ff-ff-ff-ff-fe", mac));
	assert_memory_equal(mac, "\xff\xff\xff\xff\xff\xfe", 6);
}

static void test_ipv4(void **state)
{
	static const char *const junk[] = { "",		"1.2.3",     "1.2.3.4.5", "1.2.3.256",
					    "01.2.3.4", "0x1.2.3.4", "1.2.3.4 ",  "::1",
					    "-1.2.3.4", "16909060" };
	uint32_t address = UNTOUCHED;
	size_t i;

	for (i = 0; i < sizeof(junk) / sizeof(junk[0]); i++)
		assert_int_equal(-EINVAL, parse_ipv4(junk[i], &address));
	assert_int_equal(-EINVAL, parse_ipv4(NULL, &address));
	assert_int_equal(address, UNTOUCHED);
	assert_int_equal(0, parse_ipv4("1.2.3.4", &address));
	assert_int_equal(address, 0x01020304);
	assert_int_equal(0, parse_ipv4("255.255.255.255", &address));
	assert_int_equal(address, 0xffffffff);
}

/* Which of two names `name` is a slip of; NULL: neither. */
static const char *slip_of(const char *name, const char *first, const char *second)
{
	struct nearest nearest = { .name = name };

	nearest_consider(&nearest, first);
	nearest_consider(&nearest, second);
	return nearest.best;
}

static void nearest_name(void **state)
{
	struct nearest nearest = { .name = "qeues" };

	(void)state;
	assert_string_equal(nearest_hint(&nearest, "--"), "");
	nearest_consider(&nearest, "queues");
	assert_string_equal(nearest_hint(&nearest, "--"), "; did you mean '--queues'?");
	/* One letter too many, too few, another, two swapped. */
	assert_string_equal(slip_of("portt", "pool", "port"), "port");
	assert_string_equal(slip_of("por", "pool", "port"), "port");
	assert_string_equal(slip_of("pirt", "pool", "port"), "port");
	assert_string_equal(slip_of("jsno", "joins", "json"), "json");
	/* The first of equals; what is written out further. */
	assert_string_equal(slip_of("gpa", "gpu", "gpi"), "gpu");
	assert_string_equal(slip_of("frame", "flame-sizes", "frame-size"), "frame-size");
	/* A third of its letters, and one; of short names, one. */
	assert_string_equal(slip_of("kittin", "sitting", "x"), "sitting");
	assert_null(slip_of("kittxx", "sitting", "x"));
	assert_null(slip_of("gxx", "gpu", "cpu"));
	assert_null(slip_of("g", "gpu", "g"));
	assert_null(slip_of("", "gpu", ""));
	assert_null(slip_of("abcdefghijklmnopqrstuvwxyzabcdef", "abcdefghijklmnopqrstuvwxyzabcdef",
			    "abcdefghijklmnopqrstuvwxyzabcde"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),	    cmocka_unit_test(test_size),
		cmocka_unit_test(test_count),	    cmocka_unit_test(test_duration),
		cmocka_unit_test(test_bool),	    cmocka_unit_test(test_cpu_list),
		cmocka_unit_test(test_frame_sizes), cmocka_unit_test(test_no_moment),
		cmocka_unit_test(test_moment),	    cmocka_unit_test(test_mac),
		cmocka_unit_test(test_ipv4),	    cmocka_unit_test(nearest_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
