/* SPDX-License-Identifier: BSD-3-Clause */
/* app/metrics.c: what is known and nothing else, once, escaped, and counters that never fall. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../app/metrics.h"
#include "summary/results.h"

static struct metrics metrics;
static struct report report;
static struct results results;
static char *text;

static void write_at(int running, uint64_t now_ns)
{
	size_t bytes = 0;

	const struct reasons none = { 0 };

	free(text);
	report_free(&report);
	if (!results.image_count)
		results.summary.known |= GDRCAP_HAS_VERDICT;
	report.object = results_to_json(&results, &none, GDRCAP_JSON_SETUP);
	text = metrics_text(&metrics, &report, running, now_ns, &bytes);
	assert_non_null(text);
	assert_int_equal(bytes, strlen(text));
}

static void has(const char *line)
{
	const char *found = strstr(text, line);

	if (!found || (found != text && found[-1] != '\n'))
		fail_msg("no line begins with \"%s\":\n%s", line, text);
}

static void has_not(const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" is in:\n%s", part, text);
}

static int setup(void **state)
{
	struct gdrcap_error error;

	memset(&metrics, 0, sizeof(metrics));
	report_free(&report);
	memset(&report, 0, sizeof(report));
	memset(&results, 0, sizeof(results));
	report.command = "capture";
	results.version = "0.0.0";
	struct gdrcap_config *config = gdrcap_config_new();

	assert_non_null(config);
	assert_int_equal(gdrcap_config_set(config, "port", "net_null0", &error), 0);
	report.config = results.config = config;
	*state = config;
	return 0;
}

static int teardown(void **state)
{
	gdrcap_config_free(*state);
	free(text);
	text = NULL;
	return 0;
}

static void test_nothing_known(void **state)
{
	metrics.start_time = 1700000000;
	write_at(0, 1);
	assert_string_equal(
		text, "# HELP gdrcap_running 1 from the start of the run to its end, else 0.\n"
		      "# TYPE gdrcap_running gauge\n"
		      "gdrcap_running 0\n"
		      "# HELP gdrcap_start_time_seconds When the program began, in seconds "
		      "since the Unix epoch.\n"
		      "# TYPE gdrcap_start_time_seconds gauge\n"
		      "gdrcap_start_time_seconds 1700000000\n");
	report_error(&report, REPORT_EXIT_NOT_RUN, "no");
	write_at(0, 1);
	has("gdrcap_run_failed 1\n");
}

static void test_escaped(void **state)
{
	results.state = RESULTS_CREATED;
	results.version = "a\\b\"c\nd\xff";
	write_at(1, 1);
	has("gdrcap_info{version=\"a\\\\b\\\"c\\nd?\",command=\"capture\",");
	has_not("rx_by"); /* "" */
}

static void test_unknown(void **state)
{
	results.state = RESULTS_RUNNING;
	write_at(1, 1);
	has("gdrcap_received_frames_total 0\n");
	has("gdrcap_frames_total{verdict=\"valid\"} 0\n");
	has_not("duplicate");
	has_not("gdrcap_lost_total");
	has_not("in_flight_or_lost");
	has_not("stale");
	has_not("gdrcap_sent");
	has_not("link_up{");
	has_not("saved");
	has_not("image");
	has_not("since_last_frame");
	results.summary.known = GDRCAP_HAS_LOSS | GDRCAP_HAS_NIC_MISSED | GDRCAP_HAS_TX_STALLED;
	results.summary.total.lost = 5;
	write_at(1, 1);
	has("gdrcap_lost_total{cause=\"nic_missed\"} 0\n");
	has("gdrcap_frames_in_flight_or_lost 5\n");
	has_not("nic_error");
	has_not("unexplained");
	has_not("tx_errors");
	has("gdrcap_sent_frames_total 0\n");
	results.summary.unexplained = 5;
	write_at(0, 1);
	has("gdrcap_lost_total{cause=\"unexplained\"} 5\n");
}

static void test_never_falls(void **state)
{
	results.state = RESULTS_RUNNING;
	results.summary.known = GDRCAP_HAS_LOSS;
	results.summary.total = (struct gdrcap_counts){
		.received = 9, .damaged = 3, .lost = 7, .bits_checked = UINT64_C(9007199254740993)
	};
	results.summary.pool_empty_seconds = 2.5;
	write_at(1, 1);
	/* Beyond what a double has exactly. */
	has("gdrcap_bits_checked_total 9007199254740993\n");
	has("gdrcap_pool_empty_seconds_total 2.500000\n");
	results.summary.total.damaged = 2;
	results.summary.total.lost = 0;
	results.summary.pool_empty_seconds = 2;
	write_at(1, 1);
	has("gdrcap_frames_total{verdict=\"damaged\"} 3\n");
	has("gdrcap_frames_in_flight_or_lost 0\n");
	has("gdrcap_pool_empty_seconds_total 2.500000\n");
	results.summary.total.damaged = 4;
	write_at(1, 1);
	has("gdrcap_frames_total{verdict=\"damaged\"} 4\n");
}

static void test_last_frame(void **state)
{
	results.state = RESULTS_RUNNING;
	results.summary.total.received = 1;
	write_at(1, UINT64_C(5000000000));
	has("gdrcap_seconds_since_last_frame 0.000000\n");
	write_at(1, UINT64_C(7500000000));
	has("gdrcap_seconds_since_last_frame 2.500000\n");
	results.summary.total.received = 2;
	write_at(1, UINT64_C(8000000000));
	has("gdrcap_seconds_since_last_frame 0.000000\n");
}

static void test_events(void **state)
{
	struct gdrcap_event event = {
		.kind = GDRCAP_EVENT_LINK_DOWN, .port = 1, .queue = -1, .dropped = 3
	};

	results.state = RESULTS_RUNNING;
	metrics_event(&metrics, &event);
	write_at(1, 1);
	has("gdrcap_link_up{side=\"receiver\",port=\"1\"} 0\n");
	has("gdrcap_events_total{kind=\"link_down\"} 1\n");
	has("gdrcap_events_total{kind=\"not_told\"} 3\n");
	event = (struct gdrcap_event){ .kind = GDRCAP_EVENT_LINK_UP, .port = 1, .sends = 1 };
	metrics_event(&metrics, &event);
	/* Of later versions, and out of range. */
	event.kind = 1000;
	metrics_event(&metrics, &event);
	event = (struct gdrcap_event){ .kind = GDRCAP_EVENT_LINK_UP, .port = GDRCAP_PORTS_MAX };
	metrics_event(&metrics, &event);
	write_at(1, 1);
	has("gdrcap_link_up{side=\"receiver\",port=\"1\"} 0\n");
	has("gdrcap_link_up{side=\"sender\",port=\"1\"} 1\n");
	has("gdrcap_events_total{kind=\"link_up\"} 2\n");
}

static void test_causes(void **state)
{
	results.state = RESULTS_RUNNING;
	results.cause_count = 2;
	results.causes[0] = (struct gdrcap_cause){ .name = "wire_crc", .known = 1, .count = 8 };
	results.causes[1] = (struct gdrcap_cause){ .name = "tx_discard", .sender = 1 };
	write_at(1, 1);
	has("gdrcap_port_events_total{side=\"receiver\",event=\"wire_crc\"} 8\n");
	has_not("tx_discard");
}

static void test_images(void **state)
{
	results.state = RESULTS_RUNNING;
	results.image_count = 2;
	results.images[0].name = results.images[1].name = "camera";
	results.images[1].counts = (struct gdrcap_image_counts){ .complete = 4,
								 .skipped = 2,
								 .has_skipped = 1,
								 .open = 1,
								 .pieces_lost = 9,
								 .late = 6 };
	write_at(1, 1);
	has("gdrcap_images_total{image=\"1\",name=\"camera\",end=\"complete\"} 4\n");
	has("gdrcap_images_total{image=\"1\",name=\"camera\",end=\"skipped\"} 2\n");
	has("gdrcap_images_open{image=\"1\",name=\"camera\"} 1\n");
	has("gdrcap_image_frames_total{image=\"1\",name=\"camera\",verdict=\"late\"} 6\n");
	has("gdrcap_image_pieces_lost_total{image=\"1\",name=\"camera\"} 9\n");
	has_not("{image=\"0\",name=\"camera\",end=\"skipped\"}");
	has_not("gdrcap_frames_total");
	has_not("images_saved");
}

static void test_table(void **state)
{
	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metrics_row *row = &metrics_rows[i];
		const size_t length = row->name ? strlen(row->name) : 0;

		assert_true(length > 6 &&
			    strspn(row->name, "abcdefghijklmnopqrstuvwxyz_") == length);
		assert_int_equal(strcmp(row->name + length - 6, "_total") == 0, row->counter);
		assert_null(strpbrk(row->help, "\\\n"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing_known, setup, teardown),
		cmocka_unit_test_setup_teardown(test_escaped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_never_falls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_last_frame, setup, teardown),
		cmocka_unit_test_setup_teardown(test_events, setup, teardown),
		cmocka_unit_test_setup_teardown(test_causes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_images, setup, teardown),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
