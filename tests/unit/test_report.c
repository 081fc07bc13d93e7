/* SPDX-License-Identifier: BSD-3-Clause */
/* What app/report.c and app/report_text.c print for known counts. No session, no ports. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "report.h"
#include "summary/results.h"

static struct gdrcap_config *config;
/* Too large for a stack frame of a test. */
static struct report report;
static struct results results;
static struct reasons reasons;

static void option(const char *key, const char *value)
{
	assert_int_equal(gdrcap_config_set(config, key, value, NULL), 0);
}

static int setup(void **state)
{
	gdrcap_config_free(config);
	config = gdrcap_config_new();
	option("port", "ring:wire");
	option("tx_port", "ring:wire");
	option("frame.size", "64-1518");
	option("queues", "2");

	report_free(&report);
	memset(&report, 0, sizeof(report));
	memset(&results, 0, sizeof(results));
	report.command = "loopback";
	results.version = "gdrcap 0.1.0";
	results.run = (struct results_run){ .host = "mill",
					    .pid = 4711,
					    .started_ns = 1700000000123456789 };
	report.config = results.config = config;
	results.state = RESULTS_RUNNING;
	results.summary = (struct gdrcap_summary){
		.total = { .sent = 10000000,
			   .received = 10000007,
			   .valid = 10000000,
			   .filtered = 7,
			   .bits_checked = 1000000000000,
			   .bytes = 125000000000 },
		.seconds = 12.5,
		.elapsed_seconds = 13.25,
		.known = GDRCAP_HAS_NIC_MISSED | GDRCAP_HAS_TX_STALLED | GDRCAP_HAS_VERDICT |
			 GDRCAP_HAS_LOSS,
		.tx_stalled = 42,
		.gbps = 80.5,
		.mpps = 0.8,
		.queues = 2,
		.streams = 1,
		.cores = { 0, 3 },
		.core_count = 2,
		.memory = GDRCAP_MEMORY_HOST,
		.gpu = "host: 1 CPU thread",
		.driver = "gpu_host",
		.region_bytes = 33554432,
		.slot_bytes = 2048,
		.slots = 16384,
		.blocks = 1,
	};
	results.queue_count = 2;
	results.queues[0] = (struct gdrcap_counts){ .received = 6000007,
						    .valid = 6000000,
						    .filtered = 7,
						    .bits_checked = 600000000000,
						    .bytes = 75000000000 };
	results.queues[1] = (struct gdrcap_counts){ .received = 4000000,
						    .valid = 4000000,
						    .bits_checked = 400000000000,
						    .bytes = 50000000000 };
	results.stream_count = 1;
	results.streams[0].id = 5;
	results.streams[0].counts = (struct gdrcap_counts){ .sent = 10000000,
							    .received = 10000000,
							    .valid = 10000000,
							    .bits_checked = 1000000000000 };
	return 0;
}

/* As report_collect() does. */
static void collect(void)
{
	report_free(&report);
	results_judge(&results, &reasons);
	report.object = results_to_json(&results, &reasons, GDRCAP_JSON_ALL);
	assert_non_null(report.object);
	memcpy(report.causes, results.causes, sizeof(report.causes));
	report.cause_count = results.cause_count;
}

static void judge(void)
{
	results.state = RESULTS_OVER;
	collect();
	report_judge(&report, reasons.code);
}

static void fails(const char *why)
{
	results.failure = -EIO;
	snprintf(results.failure_text, sizeof(results.failure_text), "%s", why);
}

/* The text that `print` wrote, to be freed. */
static char *printed(void (*print)(FILE *to))
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);

	assert_non_null(to);
	collect();
	print(to);
	assert_int_equal(fclose(to), 0);
	return text;
}

static void print_json(FILE *to)
{
	assert_int_equal(report_print_json(to, &report, false), 0);
}

static void print_verdict(FILE *to)
{
	report_print_verdict(to, &report, 0);
}

static void print_table(FILE *to)
{
	report_print_table(to, &report);
}

static void print_header(FILE *to)
{
	report_print_header(to, &report);
}

static json_t *parsed(void)
{
	char *text = printed(print_json);
	json_error_t error;
	json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	assert_non_null(object);
	free(text);
	return object;
}

static void assert_printed(void (*print)(FILE *to), const char *part)
{
	char *text = printed(print);

	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
	free(text);
}

static void assert_not_printed(void (*print)(FILE *to), const char *part)
{
	char *text = printed(print);

	if (strstr(text, part))
		fail_msg("\"%s\" is in:\n%s", part, text);
	free(text);
}

static void test_json_pass(void **state)
{
	char *text;

	judge();
	assert_int_equal(report.status, REPORT_EXIT_OK);
	text = printed(print_json);
	assert_string_equal(
		text,
		"{\"schema\":\"gdrcap.summary/1\",\"version\":\"gdrcap 0.1.0\","
		"\"command\":\"loopback\",\"run\":{\"host\":\"mill\",\"pid\":4711,"
		"\"started_ns\":1700000000123456789},"
		"\"result\":\"pass\",\"ports\":[\"ring:wire\"],"
		"\"tx_ports\":[\"ring:wire\"],\"pattern\":\"prbs31\",\"frame_size\":\"64-1518\","
		"\"elapsed_seconds\":13.25,\"seconds\":12.5,"
		"\"frames\":{\"sent\":10000000,\"received\":10000007,\"valid\":10000000,"
		"\"damaged\":0,\"lost\":0,\"duplicate\":0,\"reordered\":0},\"filtered\":7,"
		"\"bytes\":125000000000,"
		"\"lost_by\":{\"nic_missed\":0,\"in_run\":0,\"nic_error\":null,\"unexplained\":0,\"causes\":{}},"
		"\"tx_stalled\":42,"
		"\"bits\":{\"checked\":1000000000000,\"wrong\":0,\"ratio\":0.0},"
		"\"lock_lost\":null,\"stale\":null,\"pool_empty\":{\"times\":0,\"seconds\":0.0},"
		"\"cut\":0,\"queue_restarts\":0,\"in_flight\":0,\"streams_seen\":1,"
		"\"restarts\":0,\"untracked\":0,\"conflicts\":0,"
		"\"sender\":{\"asked\":{\"gbps\":null,\"mpps\":null,\"seconds\":null,\"frames\":null},"
		"\"gbps\":0.0,\"mpps\":0.0,\"seconds\":0.0,\"frames\":10000000,\"bytes\":0,"
		"\"gap_error_ns\":null,\"starved\":0,\"errors\":null,\"proxies\":null,\"start\":null,\"causes\":{}},"
		"\"sending\":null,"
		"\"saved\":null,\"clock\":null,\"rx_by\":null,\"tx_by\":null,\"match\":{\"rules\":[],\"applied\":\"none\"},"
		"\"steering\":null,"
		"\"ended_by_sender\":false,"
		"\"rate\":{\"gbps\":80.5,\"mpps\":0.8},"
		"\"memory\":{\"kind\":\"host\",\"gpu\":\"host: 1 CPU thread\","
		"\"driver\":\"gpu_host\",\"region_bytes\":33554432,\"slot_bytes\":2048,"
		"\"slots\":16384,\"split\":0,\"registration\":null},\"blocks\":1,\"cores\":[0,3],"
		"\"images\":null,\"queues\":[{\"queue\":0,\"received\":6000007,\"valid\":6000000,\"damaged\":0,"
		"\"duplicate\":0,\"reordered\":0,\"filtered\":7,\"bytes\":75000000000,"
		"\"bits\":{\"checked\":600000000000,\"wrong\":0,\"ratio\":0.0}},"
		"{\"queue\":1,\"received\":4000000,\"valid\":4000000,\"damaged\":0,"
		"\"duplicate\":0,\"reordered\":0,\"filtered\":0,\"bytes\":50000000000,"
		"\"bits\":{\"checked\":400000000000,\"wrong\":0,\"ratio\":0.0}}],"
		"\"streams\":[{\"stream\":5,\"frames\":{\"sent\":10000000,\"received\":10000000,"
		"\"valid\":10000000,\"damaged\":0,\"lost\":0,\"duplicate\":0,\"reordered\":0},"
		"\"bits\":{\"checked\":1000000000000,\"wrong\":0,\"ratio\":0.0},\"restarts\":0}],"
		"\"damage\":[],\"stages\":[],\"errors\":[],\"messages\":[]}\n");
	free(text);
}

static void test_json_damage(void **state)
{
	json_t *object, *damage, *item;

	results.summary.total.damaged = 2;
	results.damage_count = 4;
	results.damage[0] = (struct gdrcap_damage){ .sequence = 9000000000,
						    .stream = 3,
						    .queue = 1,
						    .wrong_bits = 2,
						    .offset = 77,
						    .expected = 0xa5,
						    .got = 0xa4,
						    .header_ok = 1,
						    .kind = "payload" };
	results.damage[1] = (struct gdrcap_damage){ .sequence = 1, .stream = 2, .kind = "header" };
	results.damage[2] = (struct gdrcap_damage){ .sequence = 8,
						    .stream = 3,
						    .offset = 14,
						    .expected = 0x67,
						    .got = 0x55,
						    .header_ok = 1,
						    .kind = "stale" };
	results.damage[3] =
		(struct gdrcap_damage){ .sequence = 9, .header_ok = 1, .kind = "stale" };
	judge();
	object = parsed();
	assert_string_equal(json_string_value(json_object_get(object, "result")), "fail");
	assert_string_equal(json_string_value(json_array_get(json_object_get(object, "errors"), 0)),
			    "2 frames damaged");
	damage = json_object_get(object, "damage");
	assert_int_equal(json_array_size(damage), 4);
	item = json_array_get(damage, 0);
	assert_int_equal(json_integer_value(json_object_get(item, "sequence")), 9000000000);
	assert_int_equal(json_integer_value(json_object_get(item, "offset")), 77);
	assert_int_equal(json_integer_value(json_object_get(item, "expected")), 0xa5);
	assert_int_equal(json_integer_value(json_object_get(item, "got")), 0xa4);
	/* An unreadable header names no frame, and nothing was compared. */
	item = json_array_get(damage, 1);
	assert_true(json_is_null(json_object_get(item, "sequence")));
	assert_true(json_is_null(json_object_get(item, "stream")));
	assert_true(json_is_null(json_object_get(item, "offset")));
	assert_true(json_is_null(json_object_get(item, "got")));
	/* Its bits are right by now. */
	item = json_array_get(damage, 2);
	assert_true(json_is_null(json_object_get(item, "wrong_bits")));
	assert_int_equal(json_integer_value(json_object_get(item, "offset")), 14);
	assert_int_equal(json_integer_value(json_object_get(item, "expected")), 0x67);
	assert_int_equal(json_integer_value(json_object_get(item, "got")), 0x55);
	item = json_array_get(damage, 3); /* nobody knows which byte it was */
	assert_true(json_is_null(json_object_get(item, "offset")));
	json_decref(object);

	assert_printed(print_table,
		       "stream 3 sequence 9,000,000,000, queue 1, payload: first wrong byte at "
		       "offset 77 of the frame: expected 0xa5, got 0xa4; 2 wrong bits\n");
	assert_printed(print_table, "sequence number unreadable, queue 0, header\n");
	assert_printed(print_table,
		       "stream 3 sequence 8, queue 0, stale: at offset 14 of the frame "
		       "0x55 was seen, and 0x67 came later\n");
	assert_printed(print_table, "stream 0 sequence 9, queue 0, stale\n");
}

static void test_json_not_run(void **state)
{
	static const char *const measured[] = {
		"seconds",    "frames",	 "filtered",	   "bytes",	"lost_by",
		"tx_stalled", "bits",	 "rate",	   "memory",	"blocks",
		"cores",      "stale",	 "queue_restarts", "clock",	"steering",
		"rx_by",      "tx_by",	 "restarts",	   "untracked", "conflicts",
		"cut",	      "sending", "elapsed_seconds"
	};
	json_t *object;

	results.state = RESULTS_NONE;
	results.queue_count = results.stream_count = 0;
	report.config = results.config = NULL;
	report_error(&report, REPORT_EXIT_USAGE, "line %d: unknown key", 3);
	object = parsed();
	for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
		json_t *value = json_object_get(object, measured[i]);

		if (!value || !json_is_null(value))
			fail_msg("%s is not null", measured[i]);
	}
	assert_true(json_is_null(json_object_get(object, "ports")));
	assert_string_equal(json_string_value(json_object_get(object, "result")), "fail");
	assert_string_equal(json_string_value(json_array_get(json_object_get(object, "errors"), 0)),
			    "line 3: unknown key");
	assert_int_equal(report.status, REPORT_EXIT_USAGE);
	json_decref(object);
}

static void test_json_stages(void **state)
{
	static const char *const causes[] = { "the cable is out: plug it in",
					      "the port is down: ip link set up", NULL };
	json_t *object, *step;

	results.step_count = 2;
	results.steps[0] = (struct gdrcap_step){ .name = "ports up" };
	results.steps[1] = (struct gdrcap_step){ .name = "frame received",
						 .state = GDRCAP_STEP_FAILED,
						 .detail = "0 frames in 1 s",
						 .causes = causes };
	object = parsed();
	step = json_array_get(json_object_get(object, "stages"), 0);
	assert_string_equal(json_string_value(json_object_get(step, "state")), "passed");
	assert_int_equal(json_array_size(json_object_get(step, "causes")), 0);
	step = json_array_get(json_object_get(object, "stages"), 1);
	assert_string_equal(json_string_value(json_object_get(step, "state")), "failed");
	assert_int_equal(json_array_size(json_object_get(step, "causes")), 2);
	json_decref(object);
}

static void print_failed_stage(FILE *to)
{
	static const char *const causes[] = { "the cable is out: plug it in",
					      "the port is down: ip link set up", NULL };
	const struct gdrcap_step step = { .name = "frame received",
					  .state = GDRCAP_STEP_FAILED,
					  .detail = "0 frames in 1 s",
					  .causes = causes };

	report_print_step(to, &step, 5, 0);
}

static void test_stage_text(void **state)
{
	assert_printed(print_failed_stage,
		       "   5  frame received .............. FAILED  0 frames in 1 s\n\n"
		       "      Likely causes, the likeliest first:\n"
		       "      1. the cable is out: plug it in\n"
		       "      2. the port is down: ip link set up\n");
}

/* Counts beyond a signed 64-bit integer, rates that are no numbers, names that are not UTF-8. */
static double number_of(json_t *object, const char *map, const char *key)
{
	json_t *value = json_object_get(json_object_get(object, map), key);

	assert_true(json_is_number(value));
	return json_number_value(value);
}

/* A run that only sends: what a receiver would know is null, and what was asked stands beside what
 * was done. */
static void test_json_sender(void **state)
{
	static const char *const unknown[] = { "received", "valid",	"damaged",
					       "lost",	   "duplicate", "reordered" };
	static const char *const absent[] = { "filtered", "bytes", "bits",	"rate",
					      "lost_by",  "saved", "lock_lost", "ended_by_sender" };
	json_t *object, *sender;

	option("port", NULL);
	results.summary.total = (struct gdrcap_counts){ .sent = 500 };
	results.summary.known = GDRCAP_HAS_TX_STALLED | GDRCAP_HAS_PACE | GDRCAP_HAS_TX_ERROR;
	results.summary.asked_mpps = 0.5;
	results.summary.tx_mpps = 0.25;
	results.summary.tx_gbps = 1.5;
	results.summary.tx_seconds = 2;
	results.summary.tx_bytes = 30000;
	results.summary.gap_p50_ns = 10;
	results.summary.gap_p99_ns = 200;
	results.summary.gap_max_ns = 3000;
	results.queue_count = 0;
	results.stream_count = 0;
	judge();
	assert_int_equal(report.status, REPORT_EXIT_OK);
	object = parsed();
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_true(json_is_null(
			json_object_get(json_object_get(object, "frames"), unknown[i])));
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		assert_true(json_is_null(json_object_get(object, absent[i])));
	assert_true(number_of(object, "frames", "sent") == 500);
	sender = json_object_get(object, "sender");
	assert_true(number_of(sender, "asked", "mpps") == 0.5);
	assert_true(json_is_null(json_object_get(json_object_get(sender, "asked"), "gbps")));
	assert_true(json_is_null(json_object_get(json_object_get(sender, "asked"), "seconds")));
	assert_true(json_is_null(json_object_get(json_object_get(sender, "asked"), "frames")));
	assert_true(number_of(object, "sender", "mpps") == 0.25);
	assert_true(number_of(object, "sender", "bytes") == 30000);
	assert_true(number_of(object, "sender", "errors") == 0);
	assert_true(number_of(sender, "gap_error_ns", "p50") == 10);
	assert_true(number_of(sender, "gap_error_ns", "p99") == 200);
	assert_true(number_of(sender, "gap_error_ns", "max") == 3000);
	json_decref(object);
	assert_printed(print_table, "p50 0.010 us, p99 0.200 us, max 3.000 us");
	assert_printed(print_verdict, "PASS: 500 frames sent\n");
}

/* Frames without numbers, phases or places: nobody can tell what was lost. */
static void test_json_unordered(void **state)
{
	json_t *object, *frames;

	results.summary.known &= ~GDRCAP_HAS_LOSS;
	option("match", "vlan=5");
	option("save", "all.pcapng");
	results.summary.software_match = 1;
	results.summary.saved = 10;
	results.summary.save_missed = 2;
	object = parsed();
	frames = json_object_get(object, "frames");
	assert_true(json_is_null(json_object_get(frames, "lost")));
	assert_true(json_is_null(json_object_get(frames, "duplicate")));
	assert_true(json_is_integer(json_object_get(frames, "valid")));
	assert_true(number_of(object, "saved", "frames") == 10);
	assert_true(number_of(object, "saved", "missed") == 2);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(object, "match"), "applied")),
		"software");
	json_decref(object);
	assert_printed(print_header, "vlan=5 (applied in software)\n");
	assert_printed(print_table, "frames that the file did not take\n");
}

/* A ConnectX: what its counters say of the loss, by side, and what its rules did. */
static void test_causes(void **state)
{
	json_t *object, *causes;

	results.cause_count = 4;
	results.causes[0] = (struct gdrcap_cause){
		.name = "out_of_buffer", .meaning = "no free slot", .count = 1234, .known = 1
	};
	results.causes[1] =
		(struct gdrcap_cause){ .name = "card_full", .meaning = "PCIe is slow", .known = 1 };
	results.causes[2] = (struct gdrcap_cause){ .name = "wire_crc", .meaning = "the cable" };
	results.causes[3] = (struct gdrcap_cause){
		.name = "pause_received", .meaning = "held up", .count = 77, .known = 1, .sender = 1
	};
	results.summary.total.lost = 1234;
	results.summary.nic_missed = 1234;
	object = parsed();
	causes = json_object_get(json_object_get(object, "lost_by"), "causes");
	assert_int_equal(json_object_size(causes), 3);
	assert_int_equal(json_integer_value(json_object_get(causes, "out_of_buffer")), 1234);
	assert_true(json_is_integer(json_object_get(causes, "card_full")));
	assert_int_equal(json_integer_value(json_object_get(causes, "card_full")), 0);
	assert_true(json_is_null(json_object_get(causes, "wire_crc")));
	causes = json_object_get(json_object_get(object, "sender"), "causes");
	assert_int_equal(json_object_size(causes), 1);
	assert_int_equal(json_integer_value(json_object_get(causes, "pause_received")), 77);
	json_decref(object);
	assert_printed(print_table,
		       "\n    out_of_buffer                         1,234  no free slot\n");
	assert_printed(print_table, "\n    pause_received                           77  held up\n");
	assert_not_printed(print_table, "PCIe is slow"); /* 0 is no cause */
	assert_not_printed(print_table, "the cable");	 /* nor is what nobody knows */
	/* a run that only sends */
	option("port", NULL);
	assert_printed(print_table, "pause_received");
	assert_not_printed(print_table, "out_of_buffer");
}

static void test_steering(void **state)
{
	json_t *object, *rules;

	option("match", "vlan=5");
	assert_int_equal(gdrcap_config_add(config, "match", "dst_port=4000", NULL), 0);
	results.summary.steered = 1;
	results.rule_count = 2;
	results.rules[0] = (struct gdrcap_rule){ .text = "vlan=5", .frames = 1000000, .known = 1 };
	results.rules[1] = (struct gdrcap_rule){ .text = "dst_port=4000" };
	object = parsed();
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(object, "match"), "applied")),
		"card");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(object, "steering"), "by")),
		"card");
	rules = json_object_get(json_object_get(object, "steering"), "rules");
	assert_int_equal(json_array_size(rules), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(rules, 0), "rule")),
			    "vlan=5");
	assert_int_equal(json_integer_value(json_object_get(json_array_get(rules, 0), "frames")),
			 1000000);
	assert_true(json_is_null(json_object_get(json_array_get(rules, 1), "frames")));
	json_decref(object);
	assert_printed(print_header, "vlan=5 (applied by the card)\n");
	assert_printed(print_table, "\n  steered                             1,000,000  "
				    "frames by the card's rule vlan=5\n"
				    "                                      not known  "
				    "frames by the card's rule dst_port=4000\n");
}

/* How the memory is reached, and what went wrong on the way there. */
static void test_memory(void **state)
{
	json_t *object, *memory, *empty, *start;

	results.summary.split = 64;
	results.summary.memory = GDRCAP_MEMORY_DEVICE;
	strcpy(results.summary.registration, "dma-buf");
	strcpy(results.summary.clock, "card");
	strcpy(results.summary.rx_by, "cpu");
	strcpy(results.summary.tx_by, "gpu");
	results.summary.tx_proxies = 2;
	results.summary.start_ns = UINT64_C(1795694400000000005);
	results.summary.start_late_ns = 1234;
	results.summary.known |= GDRCAP_HAS_START;
	strcpy(results.summary.driver, "gpu_cuda");
	results.summary.queue_restarts = 2;
	results.summary.cut = 5;
	results.summary.pool_empty = 3;
	results.summary.pool_empty_seconds = 1.5;
	results.summary.known |= GDRCAP_HAS_STALE;
	object = parsed();
	start = json_object_get(json_object_get(object, "sender"), "start");
	assert_string_equal(json_string_value(json_object_get(start, "asked")),
			    "2026-11-26T12:00:00.000000005Z");
	assert_int_equal(json_integer_value(json_object_get(start, "late_ns")), 1234);
	memory = json_object_get(object, "memory");
	assert_int_equal(json_integer_value(json_object_get(memory, "split")), 64);
	assert_string_equal(json_string_value(json_object_get(memory, "registration")), "dma-buf");
	assert_string_equal(json_string_value(json_object_get(object, "clock")), "card");
	assert_string_equal(json_string_value(json_object_get(object, "rx_by")), "cpu");
	assert_string_equal(json_string_value(json_object_get(object, "tx_by")), "gpu");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(object, "sender"), "proxies")),
		2);
	assert_int_equal(json_integer_value(json_object_get(object, "queue_restarts")), 2);
	assert_int_equal(json_integer_value(json_object_get(object, "cut")), 5);
	empty = json_object_get(object, "pool_empty");
	assert_int_equal(json_integer_value(json_object_get(empty, "times")), 3);
	assert_true(json_number_value(json_object_get(empty, "seconds")) == 1.5);
	assert_true(json_is_integer(json_object_get(object, "stale")));
	json_decref(object);
	assert_printed(print_header,
		       "  memory    device (GPU memory), via dma-buf: 16,384 slots of "
		       "2 KiB = 32 MiB; split 64 bytes\n");
	assert_printed(print_header, ", received by the CPU's own queues, sent by the GPU\n");
	assert_printed(print_table, "\n  queue restarts                              2  "
				    "receive queues in error that were started again\n");
	assert_printed(print_table, "\n    stale                                     0  frames");
	judge();
	assert_int_equal(report.status, REPORT_EXIT_OK);
	/* damage of the way to the memory is told apart from the wire's */
	results.summary.total.damaged = 3;
	results.summary.stale = 2;
	judge();
	assert_int_equal(report.status, REPORT_EXIT_FRAMES);
	assert_printed(print_verdict,
		       "FAIL: 3 frames damaged; 2 frames seen before their bytes were "
		       "there: set --flush host");
}

/* An integer, or the text of one that is too large for jansson's. */
static uint64_t count_of(const json_t *object, const char *group, const char *key)
{
	const json_t *value = json_object_get(json_object_get(object, group), key);

	if (json_is_integer(value))
		return (uint64_t)json_integer_value(value);
	assert_true(json_is_string(value));
	return strtoull(json_string_value(value), NULL, 10);
}

/* Numbers that a forged sequence number makes: the sums still hold. */
static void test_json_large(void **state)
{
	const uint64_t large[] = { INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX };
	json_t *object;

	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		results.summary.total.sent = large[i];
		results.summary.total.lost = large[i] - results.summary.total.valid;
		object = parsed();
		assert_true(count_of(object, "frames", "sent") == large[i]);
		assert_true(count_of(object, "frames", "sent") ==
			    count_of(object, "frames", "valid") +
				    count_of(object, "frames", "damaged") +
				    count_of(object, "frames", "lost"));
		assert_int_equal(
			json_is_integer(json_object_get(json_object_get(object, "frames"), "sent")),
			large[i] == INT64_MAX);
		json_decref(object);
	}
	results.damage_count = 1;
	results.damage[0] =
		(struct gdrcap_damage){ .kind = "header", .header_ok = 1, .sequence = UINT64_MAX };
	assert_printed(print_json, "\"sequence\":\"18446744073709551615\"");
}

static void test_json_hostile(void **state)
{
	json_t *object;

	results.summary.total.received = INT64_MAX;
	results.summary.gbps = 0.0 / 0.0;
	results.summary.mpps = 1.0 / 0.0;
	results.messages[0] = "port \xff\xfe\"quoted\"\n\x01";
	results.message_count = 1;
	object = parsed();
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(object, "frames"), "received")),
		INT64_MAX);
	assert_true(json_is_null(json_object_get(json_object_get(object, "rate"), "gbps")));
	assert_true(json_is_null(json_object_get(json_object_get(object, "rate"), "mpps")));
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(object, "messages"), 0)),
		"port ??\"quoted\"\n\x01");
	json_decref(object);
}

/* The caller's own frames, on their own and beside what came. */
static void test_sending(void **state)
{
	static const char counts[] =
		"\"sending\":{\"submitted\":16,\"sent\":9,\"unsent\":3,\"refused\":4,\"bytes\":900,"
		"\"stalled\":77,\"failed\":2}";

	results.summary.known |= GDRCAP_HAS_SENDING | GDRCAP_HAS_SENDING_FAILED;
	results.summary.sending_submitted = 16;
	results.summary.sending_sent = 9;
	results.summary.sending_unsent = 3;
	results.summary.sending_refused = 4;
	results.summary.sending_bytes = 900;
	results.summary.sending_stalled = 77;
	results.summary.sending_failed = 2;
	judge();
	assert_int_equal(report.result, REPORT_FAIL);
	assert_int_equal(report.status, REPORT_EXIT_FRAMES);
	assert_printed(print_json, counts);
	assert_printed(print_json, "\"2 frames submitted and taken by the port, which then could "
				   "not send them\",\"3 frames submitted and not sent\","
				   "\"4 frames submitted with a length that no frame has, and not "
				   "sent\"");
	assert_printed(print_table, " 16  frames of the caller's\n");
	assert_printed(print_table, " 3  frames that waited when the run ended\n");
	assert_printed(print_table, " 2  frames that a port took and could not send\n");
	/* A driver that does not tell. */
	results.summary.known &= ~GDRCAP_HAS_SENDING_FAILED;
	results.summary.sending_failed = 0;
	assert_printed(print_json, "\"failed\":null}");
	assert_not_printed(print_table, "a port took and could not send");
	/* Nothing else is sent or received. */
	results.summary.known &= ~GDRCAP_HAS_TX_STALLED;
	assert_int_equal(gdrcap_config_set(config, "port", NULL, NULL), 0);
	assert_printed(print_table, " 16  frames of the caller's\n");
	assert_not_printed(print_table, "tx stalled");
	results.queue_count = 0;
	assert_not_printed(print_table, "received");
}

static void test_json_running(void **state)
{
	json_t *object;

	results.summary.total.bits_checked = 0;
	results.summary.known = GDRCAP_HAS_VERDICT;
	object = parsed();
	assert_string_equal(json_string_value(json_object_get(object, "result")), "running");
	assert_true(json_is_null(json_object_get(json_object_get(object, "bits"), "ratio")));
	assert_true(json_is_null(json_object_get(object, "tx_stalled")));
	assert_true(
		json_is_null(json_object_get(json_object_get(object, "lost_by"), "nic_missed")));
	json_decref(object);
}

static void test_full_disk(void **state)
{
	FILE *full = fopen("/dev/full", "w");

	if (!full)
		skip();
	collect();
	assert_int_equal(report_print_json(full, &report, false), -ENOSPC);
	fclose(full);
}

static void judged(struct gdrcap_counts total, int failed, enum report_status status,
		   const char *verdict)
{
	setup(NULL);
	results.summary.total = total;
	if (failed)
		fails("the card failed");
	judge();
	if (report.status != status)
		fail_msg("status %d, not %d: %s", report.status, status, verdict);
	assert_int_equal(report.result, status == REPORT_EXIT_OK ? REPORT_PASS : REPORT_FAIL);
	assert_printed(print_verdict, verdict);
}

static void test_judge(void **state)
{
	const struct gdrcap_counts good = {
		.sent = 1234567, .received = 1234568, .valid = 1234567, .filtered = 1
	};
	struct gdrcap_counts bad = good;

	judged(good, 0, REPORT_EXIT_OK, "PASS: 1,234,567 frames sent, every one valid\n");
	judged(good, 1, REPORT_EXIT_NOT_RUN, "FAIL: the card failed");
	bad.damaged = 1;
	judged(bad, 0, REPORT_EXIT_FRAMES, "FAIL: 1 frame damaged\n");
	bad.lost = 1000;
	bad.duplicate = 2;
	bad.reordered = 3;
	judged(bad, 1, REPORT_EXIT_FRAMES,
	       "FAIL: the card failed; 1 frame damaged; 1,000 frames lost; 2 frames duplicated; "
	       "3 frames reordered\n");
	bad = good;
	bad.lost = 1;
	judged(bad, 0, REPORT_EXIT_FRAMES, "FAIL: 1 frame lost\n");
	bad = good;
	bad.duplicate = 1;
	judged(bad, 0, REPORT_EXIT_FRAMES, "FAIL: 1 frame duplicated\n");
	bad = good;
	bad.reordered = 1;
	judged(bad, 0, REPORT_EXIT_FRAMES, "FAIL: 1 frame reordered\n");
	judged((struct gdrcap_counts){ 0 }, 0, REPORT_EXIT_FRAMES, "FAIL: no frame was received");
	judged((struct gdrcap_counts){ .received = 9, .filtered = 9 }, 0, REPORT_EXIT_FRAMES,
	       "FAIL: no frame received was ours");
}

/* What was asked for and not done: each said, and a matter of frames however the run ended. */
static void test_judge_missing(void **state)
{
	json_t *object;

	results.summary.tx_asked = 10001234;
	results.summary.tx_missing = 1234;
	results.summary.save_missed = 1;
	fails("save: cannot write x");
	judge();
	assert_int_equal(report.status, REPORT_EXIT_FRAMES);
	assert_printed(print_verdict, "FAIL: save: cannot write x; 1,234 of 10,001,234 frames not "
				      "sent; 1 frame not saved\n");
	object = parsed();
	assert_int_equal(
		json_integer_value(json_object_get(
			json_object_get(json_object_get(object, "sender"), "asked"), "frames")),
		10001234);
	json_decref(object);
}

/* The same of one who only sends, and of frames that were to be saved for their damage. */
static void test_judge_missing_sender(void **state)
{
	option("port", NULL);
	results.summary.tx_asked = 5;
	results.summary.tx_missing = 5;
	results.summary.total.sent = 0;
	judge();
	assert_int_equal(report.status, REPORT_EXIT_FRAMES);
	assert_printed(print_verdict, "FAIL: 5 of 5 frames not sent\n");
	setup(NULL);
	results.summary.damaged_missed = 2;
	judge();
	assert_int_equal(report.status, REPORT_EXIT_FRAMES);
	assert_printed(print_verdict, "FAIL: 2 frames not saved\n");
}

/* Lost frames outrank an early end, whichever was noticed first. */
static void test_judge_order(void **state)
{
	results.summary.total.lost = 1;
	fails("the link went down");
	judge();
	assert_int_equal(report.status, REPORT_EXIT_FRAMES);
	assert_printed(print_verdict, "FAIL: the link went down; 1 frame lost\n");
}

static void test_verdict_capture(void **state)
{
	option("tx_port", NULL);
	judge();
	assert_printed(print_verdict, "PASS: 10,000,000 frames received, every one valid\n");
}

static void test_errors_bounded(void **state)
{
	for (int i = 0; i < 2 * REPORT_ERRORS_MAX; i++)
		report_error(&report, REPORT_EXIT_NOT_RUN, "%0600d", i);
	assert_int_equal(report.error_count, REPORT_ERRORS_MAX);
	assert_int_equal(strlen(report.errors[REPORT_ERRORS_MAX - 1]),
			 sizeof(report.errors[0]) - 1);
}

static void assert_count(uint64_t count, const char *expected)
{
	char text[REPORT_TEXT_BYTES];

	assert_string_equal(text_count(text, count), expected);
}

static void assert_decimal(uint64_t count, unsigned int digits, const char *expected)
{
	char text[TEXT_COUNT_BYTES];

	assert_string_equal(text_decimal(text, count, digits), expected);
}

static void assert_ratio(uint64_t wrong, uint64_t checked, const char *expected)
{
	char text[REPORT_TEXT_BYTES];

	assert_string_equal(report_text_ratio(text, wrong, checked), expected);
}

static void assert_bytes(uint64_t bytes, const char *expected)
{
	char text[REPORT_TEXT_BYTES];

	assert_string_equal(report_text_bytes(text, bytes), expected);
}

static void test_numbers(void **state)
{
	assert_count(0, "0");
	assert_count(999, "999");
	assert_count(1000, "1,000");
	assert_count(12345, "12,345");
	assert_count(100000, "100,000");
	assert_count(1000000, "1,000,000");
	assert_count(UINT64_MAX, "18,446,744,073,709,551,615");
	assert_decimal(0, 3, "0");
	assert_decimal(500, 3, "0.5");
	assert_decimal(100000, 6, "0.1");
	assert_decimal(60000, 3, "60");
	assert_decimal(10, 0, "10");
	assert_decimal(UINT64_MAX, 6, "18446744073709.551615");
	assert_ratio(0, 0, "not known");
	assert_ratio(0, 833333333333, "< 1.2e-12");
	assert_ratio(1, 810372771, "1.234e-09");
	assert_ratio(5, 5, "1.000e+00");
	assert_bytes(0, "0 bytes");
	assert_bytes(1023, "1023 bytes");
	assert_bytes(2048, "2 KiB");
	assert_bytes(33554432, "32 MiB");
	assert_bytes(1610612736, "1.5 GiB");
	assert_bytes(UINT64_MAX, "16777216.0 TiB");
}

static void test_table(void **state)
{
	assert_printed(print_table, "  sent                               10,000,000  frames\n");
	assert_printed(print_table, "\n    bad on the wire                   not known\n");
	assert_printed(print_table, "\n    no buffer                                 0  "
				    "frames that the port missed\n");
	assert_printed(print_table, "\n  bit error ratio                     < 1.0e-12  "
				    "wrong / checked payload bits\n");
	assert_printed(print_table, "\n  time                                   12.500  "
				    "s, first frame to last\n");
	assert_printed(print_table, "\n  0              6,000,007       6,000,000           "
				    "    0               0               0               7\n");
	results.summary.known = 0;
	assert_printed(print_table, "\n  lost                                not known\n");
}

static void test_table_streams(void **state)
{
	results.stream_count = 1024;
	for (uint32_t i = 0; i < results.stream_count; i++)
		results.streams[i].id = 40000 + i;
	assert_printed(print_table, "\n  40015  ");
	assert_printed(print_table, "  and 1008 more: --json lists them all\n");
}

static void test_header(void **state)
{
	assert_printed(print_header, "gdrcap 0.1.0 loopback\n");
	assert_printed(print_header, "  ports     ring:wire -> ring:wire\n");
	assert_printed(print_header, "  memory    host: 16,384 slots of 2 KiB = 32 MiB\n");
	assert_printed(print_header, "  GPU       host: 1 CPU thread (driver gpu_host)\n");
	assert_printed(print_header, "  cores     0,3\n");
}

/* 1,000,000 frames of 1494 bytes in memory in 2 s: 1518 bytes on the wire each, gap included. */
static void test_tick(void **state)
{
	struct gdrcap_summary before = { .queues = 1,
					 .total = { .received = 500, .bytes = 50000 } };
	struct gdrcap_summary now = {
		.queues = 1,
		.total = { .received = 1000500, .bytes = 50000 + 1494000000ull, .lost = 64 }
	};
	struct report_tick tick = { .elapsed = 12, .interval = 2, .now = &now, .before = &before };
	char line[256];

	report_format_tick(line, sizeof(line), &tick);
	assert_string_equal(line, "    12 s  1,000,500 frames  6.072 Gb/s  0.500 Mpps  damaged 0  "
				  "in flight or lost 64");
	tick.interval = 0; /* a clock that stands still must not print "inf" */
	report_format_tick(line, sizeof(line), &tick);
	assert_null(strstr(line, "inf Gb/s"));
	now.total.received = 1;
	before.total.received = 0;
	report_format_tick(line, sizeof(line), &tick);
	assert_non_null(strstr(line, "  1 frame  "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_json_pass, setup),
		cmocka_unit_test_setup(test_json_damage, setup),
		cmocka_unit_test_setup(test_json_not_run, setup),
		cmocka_unit_test_setup(test_json_stages, setup),
		cmocka_unit_test_setup(test_json_sender, setup),
		cmocka_unit_test_setup(test_json_unordered, setup),
		cmocka_unit_test_setup(test_causes, setup),
		cmocka_unit_test_setup(test_steering, setup),
		cmocka_unit_test_setup(test_memory, setup),
		cmocka_unit_test_setup(test_json_large, setup),
		cmocka_unit_test_setup(test_json_hostile, setup),
		cmocka_unit_test_setup(test_json_running, setup),
		cmocka_unit_test_setup(test_sending, setup),
		cmocka_unit_test_setup(test_full_disk, setup),
		cmocka_unit_test(test_judge),
		cmocka_unit_test_setup(test_judge_missing, setup),
		cmocka_unit_test_setup(test_judge_missing_sender, setup),
		cmocka_unit_test_setup(test_judge_order, setup),
		cmocka_unit_test_setup(test_verdict_capture, setup),
		cmocka_unit_test_setup(test_errors_bounded, setup),
		cmocka_unit_test_setup(test_stage_text, setup),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test_setup(test_table, setup),
		cmocka_unit_test_setup(test_table_streams, setup),
		cmocka_unit_test_setup(test_header, setup),
		cmocka_unit_test_setup(test_tick, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
