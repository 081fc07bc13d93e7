/* SPDX-License-Identifier: BSD-3-Clause */
/* app/merge, streams whose frames are spread over several receivers: what they have together is the truth of random
 * sites, or unknown. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "merge/merge.h"
#include "merge_play.h"
#include "verdict/ranges.h"

#define SITES 3000
#define RECEIVERS_MAX 5u
#define FRAMES_MAX 600u

static uint64_t seed;

/* xorshift64* */
static uint32_t below(uint32_t n)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (uint32_t)((seed * 0x2545f4914f6cdd1dull >> 32) % n);
}

static void give_sender(uint64_t sent)
{
	static struct text text;

	text.bytes = 0;
	add(&text,
	    "{\"schema\":\"gdrcap.summary/1\",\"command\":\"replay\",\"result\":\"pass\",\"frames\":{\"sent\":"
	    "%" PRIu64
	    ",\"received\":null,\"valid\":null,\"damaged\":null,\"lost\":null,\"duplicate\":"
	    "null,\"reordered\":null},\"filtered\":null,\"untracked\":null,\"errors\":[],\"streams\":[{"
	    "\"stream\":7,\"frames\":{\"sent\":%" PRIu64
	    ",\"received\":null,\"valid\":null,\"damaged\":"
	    "null,\"lost\":null,\"duplicate\":null,\"reordered\":null}}]}",
	    sent, sent);
	assert_string_equal(give(text.at, text.bytes)->why, "");
}

/* What a receiver says of stream 7. */
struct said {
	uint64_t sent, valid, damaged, duplicate, restarts;
	uint64_t unreadable; /* damaged, of no stream */
	const char *ranges;  /* JSON; NULL: none */
};

static void add_reasons(struct text *text, uint64_t lost, uint64_t damaged, uint64_t duplicate)
{
	static const char *const what[] = { REASON_LOST, REASON_DAMAGED, REASON_DUPLICATED };
	const uint64_t counts[] = { lost, damaged, duplicate };
	char reason[RESULTS_REASON_BYTES];
	const char *comma = "";

	for (int i = 0; i < 3; i++) {
		if (!counts[i])
			continue;
		add(text, "%s\"%s\"", comma, reason_count(reason, counts[i], "frame", what[i]));
		comma = ",";
	}
}

static struct merge_input *give_receiver(const struct said *said)
{
	static struct text text;
	const uint64_t gaps = said->sent - said->valid - said->damaged,
		       lost = gaps > said->unreadable ? gaps - said->unreadable : 0,
		       damaged = said->damaged + said->unreadable;

	text.bytes = 0;
	add(&text,
	    "{\"schema\":\"gdrcap.summary/1\",\"command\":\"capture\",\"run\":{\"host\":\"mill\",\"pid\":"
	    "%u,\"started_ns\":1},\"result\":\"%s\",\"frames\":{\"sent\":%" PRIu64
	    ",\"received\":%" PRIu64 ",\"valid\":%" PRIu64 ",\"damaged\":%" PRIu64
	    ",\"lost\":%" PRIu64 ",\"duplicate\":%" PRIu64
	    ",\"reordered\":0},\"filtered\":5,\"untracked\":0,\"errors\":[",
	    merge.input_count + 1, lost || damaged || said->duplicate ? "fail" : "pass",
	    said->valid + damaged + lost, said->valid + damaged + said->duplicate + 5, said->valid,
	    damaged, lost, said->duplicate);
	add_reasons(&text, lost, damaged, said->duplicate);
	add(&text,
	    "],\"streams\":[{\"stream\":7,\"restarts\":%" PRIu64 ",\"frames\":{\"sent\":%" PRIu64
	    ",\"received\":%" PRIu64 ",\"valid\":%" PRIu64 ",\"damaged\":%" PRIu64
	    ",\"lost\":%" PRIu64 ",\"duplicate\":%" PRIu64 ",\"reordered\":0}%s%s}]}",
	    said->restarts, said->sent, said->valid + said->damaged + said->duplicate, said->valid,
	    said->damaged, gaps, said->duplicate, said->ranges ? ",\"ranges\":" : "",
	    said->ranges ? said->ranges : "");
	return give(text.at, text.bytes);
}

static void join(void)
{
	assert_int_equal(merge_join(&merge), 0);
	assert_int_equal(merge.stream_count, 1);
	assert_int_equal(merge.error_count == 0, merge.status == REPORT_EXIT_OK);
}

static bool is_said(const char *part)
{
	for (uint32_t i = 0; i < merge.error_count; i++)
		if (strstr(merge.errors[i], part))
			return true;
	return false;
}

/* ---- random sites ---- */

/* Of one stream. */
struct site {
	uint32_t receivers, frames;
	bool sender;
	uint8_t got[RECEIVERS_MAX][FRAMES_MAX]; /* 1: it came */
	struct said said[RECEIVERS_MAX];
	bool ended[RECEIVERS_MAX]; /* it heard the stream's end */
};

static uint32_t receiver_of(const struct site *site, uint32_t way, uint32_t frame)
{
	if (way == 0)
		return below(site->receivers);
	return frame / way % site->receivers;
}

/* Frames go to one receiver each, one after the other or at random; some to none, some to two, some come twice. */
static void site_play(struct site *site)
{
	const uint32_t way = below(4) * (1 + below(6)), loss = below(3) * below(200),
		       twice = below(2) * below(200), damage = below(2) * below(60);

	memset(site, 0, sizeof(*site));
	site->receivers = 2 + below(RECEIVERS_MAX - 1);
	site->frames = 1 + below(FRAMES_MAX);
	site->sender = below(2);
	for (uint32_t i = 0; i < site->frames; i++) {
		const uint32_t first = receiver_of(site, way, i),
			       copies = 1 + (below(1000) < twice);

		if (below(1000) < loss)
			continue;
		for (uint32_t c = 0; c < copies; c++) {
			const uint32_t r = c ? below(site->receivers) : first;

			if (site->got[r][i]++) {
				site->got[r][i] = 1;
				site->said[r].duplicate++;
			} else if (below(1000) < damage) {
				site->said[r].damaged++;
			} else {
				site->said[r].valid++;
			}
		}
	}
	for (uint32_t r = 0; r < site->receivers; r++) {
		site->ended[r] = below(2);
		if (below(4) == 0)
			site->said[r].unreadable = below(5);
	}
}

/* What the receiver's library would say. */
static const char *ranges_of(const uint8_t *got, uint32_t frames)
{
	static struct ranges_pool *pool;
	static struct text text;
	static struct gdrcap_numbers rows[FRAMES_MAX];
	struct ranges *ranges;
	uint32_t count = 0;

	pool = pool ? pool : ranges_pool_create();
	assert_non_null(pool);
	pool->count = 0;
	ranges = ranges_take(pool);
	ranges_restart(ranges);
	for (uint32_t i = 0; i < frames; i++) {
		if (got[i])
			ranges_add(ranges, i, 1);
		count += got[i];
	}
	ranges_finish(ranges, count);
	assert_false(ranges->given_up);
	ranges_copy(ranges, rows, FRAMES_MAX);
	text.bytes = 0;
	add(&text, "[");
	for (uint32_t i = 0; i < ranges->count; i++) {
		add(&text, "%s[%" PRIu64 ",%" PRIu64, i ? "," : "", rows[i].first, rows[i].length);
		if (rows[i].times > 1)
			add(&text, ",%" PRIu64 ",%" PRIu64, rows[i].step, rows[i].times);
		add(&text, "]");
	}
	add(&text, "]");
	return text.at;
}

static void site_give(struct site *site)
{
	if (site->sender)
		give_sender(site->frames);
	for (uint32_t r = 0; r < site->receivers; r++) {
		struct said *said = &site->said[r];
		uint32_t first = 0, end = site->frames;

		while (first < end && !site->got[r][first])
			first++;
		while (first < end && !site->got[r][end - 1])
			end--;
		said->sent = site->ended[r] ? site->frames : end - first;
		said->ranges = ranges_of(site->got[r], site->frames);
		assert_string_equal(give_receiver(said)->why, "");
	}
}

struct truth {
	uint64_t sent, unique, valid, damaged, duplicate, unreadable;
	bool mixed; /* a frame came damaged to one, and to another too: nobody knows which is the copy */
	uint32_t holders;
};

static struct truth site_truth(const struct site *site)
{
	struct truth truth = { .sent = site->frames };
	uint32_t first = site->frames, end = 0;
	bool ended = site->sender;
	uint64_t copies = 0;

	for (uint32_t i = 0; i < site->frames; i++) {
		uint32_t has = 0;

		for (uint32_t r = 0; r < site->receivers; r++)
			has += site->got[r][i];
		copies += has;
		truth.unique += has != 0;
		if (has && first == site->frames)
			first = i;
		if (has)
			end = i + 1;
	}
	for (uint32_t r = 0; r < site->receivers; r++) {
		const struct said *said = &site->said[r];

		ended |= site->ended[r];
		truth.valid += said->valid;
		truth.damaged += said->damaged;
		truth.duplicate += said->duplicate;
		truth.unreadable += said->unreadable;
		truth.holders += said->valid || said->damaged;
	}
	if (!ended)
		truth.sent = end > first ? end - first : 0;
	copies -= truth.unique;
	truth.duplicate += copies;
	truth.mixed = copies && truth.damaged;
	if (!truth.mixed)
		truth.valid -= copies;
	return truth;
}

static void assert_of(const struct merge_counts *counts, enum merge_which which, uint64_t count)
{
	assert_true(counts->of[which].known);
	assert_int_equal(counts->of[which].count, count);
}

/* The identities of docs/json.md, of what is known. */
static void assert_adds_up(const struct merge_count *of)
{
	if (of[MERGE_VALID].known && of[MERGE_LOST].known)
		assert_int_equal(of[MERGE_SENT].count, of[MERGE_VALID].count +
							       of[MERGE_DAMAGED].count +
							       of[MERGE_LOST].count);
	if (of[MERGE_VALID].known)
		assert_int_equal(of[MERGE_RECEIVED].count,
				 of[MERGE_VALID].count + of[MERGE_DAMAGED].count +
					 of[MERGE_DUPLICATE].count + of[MERGE_FILTERED].count);
}

static void site_check(const struct site *site)
{
	const struct truth truth = site_truth(site);
	const struct merge_counts *joined = &merge.streams[0].counts;
	const uint64_t lost = truth.sent - truth.unique,
		       filled = truth.unreadable < lost ? truth.unreadable : lost,
		       left = truth.unreadable - filled;

	assert_int_equal(merge.unsettled, 0);
	assert_of(joined, MERGE_SENT, truth.sent);
	assert_of(joined, MERGE_LOST, lost);
	assert_of(joined, MERGE_DUPLICATE, truth.duplicate);
	assert_of(&merge.total, MERGE_SENT, truth.sent + (site->sender ? 0 : left));
	assert_of(&merge.total, MERGE_LOST, lost - filled);
	assert_of(&merge.total, MERGE_DUPLICATE, truth.duplicate + (site->sender ? left : 0));
	assert_int_equal(joined->of[MERGE_VALID].known, !truth.mixed);
	assert_int_equal(merge.total.of[MERGE_DAMAGED].known, !truth.mixed);
	if (!truth.mixed) {
		assert_of(joined, MERGE_VALID, truth.valid);
		assert_of(joined, MERGE_DAMAGED, truth.damaged);
		assert_of(&merge.total, MERGE_VALID, truth.valid);
		assert_of(&merge.total, MERGE_DAMAGED,
			  truth.damaged + truth.unreadable - (site->sender ? left : 0));
	}
	assert_adds_up(joined->of);
	assert_adds_up(merge.total.of);
	assert_int_equal(merge.status == REPORT_EXIT_OK,
			 lost == 0 && truth.duplicate == 0 && truth.damaged == 0 &&
				 truth.unreadable == 0 && truth.valid != 0);
}

static void test_random_sites(void **state)
{
	static struct site site;
	uint32_t passed = 0, spread = 0;

	for (uint64_t n = 1; n <= SITES; n++) {
		seed = n * 0x9e3779b97f4a7c15ull;
		setup(NULL);
		site_play(&site);
		site_give(&site);
		join();
		site_check(&site);
		passed += merge.status == REPORT_EXIT_OK;
		spread += site_truth(&site).holders > 1;
		teardown(NULL);
	}
	assert_true(passed > SITES / 20 && spread > SITES / 2);
}

/* ---- unknown rather than wrong ---- */

static const struct said evens = { 100, 50, 0, 0, 0, 0, "[[0,1,2,50]]" },
			 odds = { 99, 50, 0, 0, 0, 0, "[[1,1,2,50]]" };

static void test_one_without_ranges(void **state)
{
	struct said said = odds;

	said.ranges = NULL;
	give_sender(100);
	give_receiver(&evens);
	give_receiver(&said);
	join();
	assert_false(merge.total.of[MERGE_LOST].known);
	assert_true(is_said("c has no ranges of it"));
	assert_true(is_said("--ranges"));
	teardown(NULL);
	setup(NULL);
	said.ranges = "null";
	give_sender(100);
	give_receiver(&evens);
	give_receiver(&said);
	join();
	assert_int_equal(merge.unsettled, 1);
}

static void test_began_again(void **state)
{
	struct said said = odds;

	said.restarts = 1;
	give_sender(100);
	give_receiver(&evens);
	give_receiver(&said);
	join();
	assert_false(merge.total.of[MERGE_LOST].known);
	assert_true(is_said("its sender began again"));
}

static void test_beyond_what_was_sent(void **state)
{
	give_sender(99);
	give_receiver(&evens);
	give_receiver(&odds);
	join();
	assert_false(merge.total.of[MERGE_LOST].known);
	assert_true(is_said("receivers saw numbers of 100 frames, and 99 were sent"));
}

/* As many as were sent, but another one. */
static void test_one_receiver_beyond(void **state)
{
	give_sender(100);
	give_receiver(&(struct said){ 100, 100, 0, 0, 0, 0, "[[1,100]]" });
	join();
	assert_false(merge.total.of[MERGE_LOST].known);
	assert_true(is_said("receivers saw numbers of 101 frames, and 100 were sent"));
}

static void test_ends_differ(void **state)
{
	give_receiver(&(struct said){ 120, 50, 0, 0, 0, 0, "[[0,1,2,50]]" });
	give_receiver(&(struct said){ 130, 50, 0, 0, 0, 0, "[[1,1,2,50]]" });
	join();
	assert_false(merge.total.of[MERGE_SENT].known);
	assert_false(merge.total.of[MERGE_LOST].known);
}

/* A frame that came to both does not hide the one that came to none. */
static void test_copy_hides_nothing(void **state)
{
	give_sender(100);
	give_receiver(&evens);
	give_receiver(&(struct said){ 100, 50, 0, 0, 0, 0, "[[1,1,2,49],[98,1]]" });
	join();
	assert_of(&merge.total, MERGE_LOST, 1);
	assert_of(&merge.total, MERGE_DUPLICATE, 1);
	assert_of(&merge.total, MERGE_VALID, 99);
	assert_true(strstr(merge.messages[0], "more than one receiver: 1") != NULL);
}

/* ---- hostile ---- */

static void refused(struct said said, const char *ranges, const char *why)
{
	struct merge_input *input;

	setup(NULL);
	said.ranges = ranges;
	input = give_receiver(&said);
	if (input->state != MERGE_REFUSED || !strstr(input->why, why))
		fail_msg("%.200s: state %d: %s", ranges, input->state, input->why);
	assert_null(input->streams);
	assert_int_equal(merge_join(&merge), 0);
	assert_int_equal(merge.status, REPORT_EXIT_USAGE);
	teardown(NULL);
}

static void test_hostile(void **state)
{
	static const char *const no_row[] = {
		"[7]",
		"[[1]]",
		"[[]]",
		"[[1,2,3]]",
		"[[1,2,3,4,5]]",
		"[null]",
		"[[0,null]]",
		"[[0,-1]]",
		"[[0,1.5]]",
		"[[0,\"x\"]]",
		"[[0,0]]",
		"[[0,1,2,1]]",
		"[[0,1,2,0]]",
		"[[0,2,2,25]]",
		"[[0,1,0,50]]",
		"[[0,1,1,50]]",
		"[[\"18446744073709551615\",1]]",
		"[[0,\"18446744073709551616\"]]",
		"[[2,\"18446744073709551615\"]]",
		"[[0,1,\"18446744073709551615\",\"18446744073709551615\"]]",
		"[[1,1,\"9223372036854775808\",3]]",
	};
	static struct text many;

	for (size_t i = 0; i < sizeof(no_row) / sizeof(no_row[0]); i++)
		refused(evens, no_row[i], "its ranges have one that is not");
	refused(evens, "{}", "are no list");
	refused(evens, "true", "are no list");
	refused(evens, "[[0,10],[5,40]]", "overlap, or run backwards");
	refused(evens, "[[50,10],[0,40]]", "overlap, or run backwards");
	refused(evens, "[[0,1,2,49],[96,1]]", "overlap, or run backwards");
	refused(evens, "[[0,1,2,49]]", "have not as many");
	refused(evens, "[[0,51]]", "have not as many");
	refused(evens, "[]", "have not as many");
	refused(evens, "[[0,\"18446744073709551615\"]]", "have not as many");
	refused(evens, "[[60,50]]", "beyond those that were sent");
	refused(evens, "[[0,1],[102,49]]", "beyond those that were sent");
	add(&many, "[[0,1]");
	while (many.bytes < sizeof(many.at) / 2)
		add(&many, ",[9,1]");
	add(&many, "]");
	refused(evens, many.at, "overlap");
}

/* As many rows as a run may have, and one more. */
static void test_too_many_rows(void **state)
{
	const size_t count = GDRCAP_RANGES_STREAM_MOST + 1;
	json_t *array = json_array();
	struct merge_stream stream = { 0 };
	struct merge_input input = { 0 };

	for (size_t i = 0; i < count; i++)
		json_array_append_new(array,
				      json_pack("[I,I]", (json_int_t)(2 * i), (json_int_t)1));
	assert_int_equal(merge_ranges_read(&input, array, &stream), -EINVAL);
	assert_non_null(strstr(input.why, "more than a run has"));
	json_array_remove(array, count - 1);
	input = (struct merge_input){ .range_count = GDRCAP_RANGES_MOST - (uint32_t)count + 2 };
	assert_int_equal(merge_ranges_read(&input, array, &stream), -EINVAL);
	assert_non_null(strstr(input.why, "more than a run has"));
	assert_null(stream.ranges.rows);
	json_decref(array);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_sites),
		cmocka_unit_test_setup_teardown(test_one_without_ranges, setup, teardown),
		cmocka_unit_test_setup_teardown(test_began_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_beyond_what_was_sent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_receiver_beyond, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends_differ, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copy_hides_nothing, setup, teardown),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_too_many_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
