/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bench's stage of whole paths, on the host twin: what it counts in short runs of both sources,
 * that a wrong byte in a filled slot is seen, and which points there are on which machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "bench/bench_machine.h"
#include "bench/path.h"
#include "session/session.h"

#define RUN_MS 30u
#define TRIES 40

/* The limits' rows. Nobody runs them: their results are the test's own. */
static const struct bench_stage poll_row = {
	.about = { .id = "rx_burst", .unit = "ns/frame", .less_is_better = 1 },
};
static const struct bench_stage read_row = { .about = { .id = "memory_read", .unit = "Gb/s" } };
const struct bench_stage *const bench_stages[] = { &poll_row, &read_row, &bench_path,
						   &bench_image_path };
const size_t bench_stage_count = 4;

static struct gdrcap_bench_config config = { .gpu = "host" };
static struct bench bench;

static int machine_open(void **state)
{
	struct gdrcap_error error = { 0 };

	if (bench_open(&bench, &config, &error) < 0)
		fail_msg("%s", error.text);
	return 0;
}

static int machine_close(void **state)
{
	bench_close(&bench);
	return 0;
}

static struct gdrcap_bench_point point_of(const char *source, uint32_t frame_bytes, uint32_t burst,
					  uint32_t blocks)
{
	struct gdrcap_bench_point point = {
		.stage = "path",
		.frame_bytes = frame_bytes,
		.burst = burst,
		.blocks = blocks,
		.queues = 1,
		.pattern = PATH_PATTERN,
		.memory = "host",
	};

	snprintf(point.source, sizeof(point.source), "%s", source);
	return point;
}

/* ---- runs ---- */

static void run_once(const struct gdrcap_bench_point *point, struct bench_sample *sample)
{
	struct gdrcap_error error = { 0 };
	void *path;

	memset(sample, 0, sizeof(*sample));
	if (bench_stage_open(&bench_path, &bench, point, &path, &error) < 0)
		fail_msg("%s", error.text);
	if (bench_path.run(path, RUN_MS, sample, &error) < 0)
		fail_msg("%s", error.text);
	bench_stage_close(&bench_path, path);
}

static void all_is_validated(const struct gdrcap_bench_point *point)
{
	struct bench_sample sample = { 0 };

	/* A loaded machine may give a thread no CPU for so long. */
	for (int i = 0; i < TRIES && sample.frames == 0; i++)
		run_once(point, &sample);
	assert_true(sample.frames > 0);
	assert_int_equal(sample.validated, sample.frames);
	assert_int_equal(sample.damaged, 0);
	assert_int_equal(sample.lost, 0);
	assert_true(sample.seconds >= RUN_MS * 0.9e-3);
	assert_true(sample.value > 0 && sample.value == sample.mpps);
	assert_true(sample.value * sample.seconds * 1e6 > 0.999 * (double)sample.frames);
	assert_true(sample.gbps > 0.999e-3 * 8 * point->frame_bytes * sample.mpps);
	assert_int_equal(sample.sequence_checked, !path_is_null(point));
	assert_int_equal(strstr(sample.note, "no sequence") != NULL, path_is_null(point));
	assert_int_equal(strstr(sample.note, "share") != NULL, !path_fits(&bench, point));
	assert_null(strstr(sample.note, "repeated"));
}

static void ring(void **state)
{
	static const uint32_t sizes[] = { 64, 1500, 9000 };

	for (size_t i = 0; i < 3; i++) {
		const struct gdrcap_bench_point point = point_of("ring", sizes[i], 64, 0);

		all_is_validated(&point);
	}
}

static void null(void **state)
{
	static const uint32_t sizes[] = { 64, 128, 1500, 9000 };

	for (size_t i = 0; i < 4; i++) {
		const struct gdrcap_bench_point point =
			point_of("null", sizes[i], i % 2 ? 32 : 256, i % 2);

		all_is_validated(&point);
	}
}

/* Images, beside the same path that checks. */
static void images(void **state)
{
	static const uint32_t sizes[] = { 1500, 9000 };

	for (size_t i = 0; i < 2; i++) {
		struct gdrcap_bench_point point = point_of("threads", sizes[i], 256, 0);
		struct gdrcap_error error = { 0 };
		struct bench_sample sample = { 0 };
		void *path;

		point.pattern[0] = '\0';
		if (bench_stage_open(&bench_image_path, &bench, &point, &path, &error) < 0)
			fail_msg("%s", error.text);
		for (int n = 0; n < TRIES && (sample.value <= 0 || sample.limit <= 0); n++) {
			memset(&sample, 0, sizeof(sample));
			if (bench_image_path.run(path, RUN_MS, &sample, &error) < 0)
				fail_msg("%s", error.text);
		}
		bench_stage_close(&bench_image_path, path);
		assert_true(sample.value > 0 && sample.value == sample.gbps && sample.limit > 0);
		assert_int_equal(sample.damaged, 0);
		assert_int_equal(sample.lost, 0);
		assert_true(strncmp(sample.note, "images: ", 8) == 0 && sample.note[8] != '0');
	}
}

/* A session filled by the bench, one byte of one slot overwritten with `byte` xor what is there. */
static void run_with_byte(uint32_t at, uint8_t flip, struct gdrcap_summary *summary,
			  struct gdrcap_damage *damage)
{
	const struct gdrcap_bench_point point = point_of("null", 128, 64, 1);
	struct gdrcap_session *session;
	struct gdrcap_config *asked;
	struct gdrcap_error error = { 0 };
	uint8_t *byte;

	assert_int_equal(path_config(&bench, &point, NULL, &asked, &error), 0);
	if (gdrcap_create(asked, &session, &error) < 0 || path_fill(session, &error) < 0)
		fail_msg("%s", error.text);
	gdrcap_config_free(asked);
	byte = session->memory.region.device + ((size_t)5 << session->memory.region.slot_shift) +
	       RTE_PKTMBUF_HEADROOM + at;
	*byte ^= flip;
	if (gdrcap_start(session, &error) < 0)
		fail_msg("%s", error.text);
	/* Each slot is received at least once. */
	while (session_received(session) < 4 * (uint64_t)session->memory.region.slots)
		assert_false(gdrcap_wait_end(session, 1));
	if (gdrcap_stop(session, &error) < 0)
		fail_msg("%s", error.text);
	gdrcap_get_summary(session, summary, sizeof(*summary));
	memset(damage, 0, sizeof(*damage));
	(void)gdrcap_get_damage(session, 0, damage, sizeof(*damage));
	gdrcap_destroy(session);
}

static void a_wrong_byte_is_damage(void **state)
{
	/* The payload's first byte, one inside, and its last. */
	static const uint32_t offsets[] = { 14, 60, 123 };
	struct gdrcap_summary summary;
	struct gdrcap_damage damage;

	for (size_t i = 0; i < 3; i++) {
		run_with_byte(offsets[i], 0x10, &summary, &damage);
		assert_true(summary.total.damaged > 0);
		assert_int_equal(summary.total.valid + summary.total.damaged,
				 summary.total.received);
		assert_true(summary.total.damaged < summary.total.received / 1000);
		assert_int_equal(summary.total.bits_wrong, summary.total.damaged);
		assert_string_equal(damage.kind, "payload");
		assert_int_equal(damage.offset, offsets[i]);
		assert_int_equal(damage.got ^ damage.expected, 0x10);
	}
	run_with_byte(60, 0, &summary, &damage);
	assert_int_equal(summary.total.damaged, 0);
	assert_int_equal(summary.total.valid, summary.total.received);
	assert_int_equal(summary.total.bits_checked, 8 * (124 - 14) * summary.total.received);
}

/* Order means nothing, and yet a burst of right frames is one run: its cost is that of one. */
static void a_burst_is_one_run(void **state)
{
	const struct gdrcap_bench_point point = point_of("null", 64, 256, 1);
	struct gdrcap_session *session;
	struct gdrcap_config *asked;
	struct gdrcap_error error = { 0 };

	assert_int_equal(path_config(&bench, &point, NULL, &asked, &error), 0);
	if (gdrcap_create(asked, &session, &error) < 0 || path_fill(session, &error) < 0 ||
	    gdrcap_start(session, &error) < 0)
		fail_msg("%s", error.text);
	gdrcap_config_free(asked);
	while (session_received(session) < 4 * (uint64_t)session->memory.region.slots)
		assert_false(gdrcap_wait_end(session, 1));
	assert_int_equal(gdrcap_stop(session, &error), 0);
	assert_true(session->workers.accountant.verdict.queues[0].valid > 0);
	for (uint64_t b = session->workers.rx[0].ring.burst - 64;
	     b < session->workers.rx[0].ring.burst; b++) {
		const struct ring_producer *ring = &session->workers.rx[0].ring;

		assert_true(ring_is_done(ring, b));
		assert_int_equal(burst_word_count(ring->result[b & ring->burst_mask].done), 1);
	}
	gdrcap_destroy(session);
}

/* ---- limits ---- */

static void limits(void **state)
{
	struct gdrcap_bench_result results[] = {
		{ .point = { .stage = "rx_burst", .burst = 64, .source = "ring" }, .median = 3 },
		{ .point = { .stage = "rx_burst", .burst = 64, .source = "null" }, .median = 4 },
		{ .point = { .stage = "memory_read", .memory = "host", .queues = 1 },
		  .median = 100 },
		{ .point = { .stage = "memory_read", .memory = "host", .queues = 2 },
		  .median = 400 },
	};
	struct gdrcap_bench_point point = point_of("null", 64, 64, 1);
	struct bench_sample sample;

	run_once(&point, &sample);
	assert_true(sample.limit == 0);
	assert_null(strstr(sample.note, "limit"));
	bench.results = results;
	bench.result_count = 4;
	run_once(&point, &sample);
	/* 4 ns a frame; the 100 Gb/s of one reader are 208 million frames of 60 bytes. */
	assert_true(fabs(sample.limit - 100e3 / 480) < 1e-6);
	assert_non_null(strstr(sample.note, "limit: memory_read"));
	results[2].median = 200;
	run_once(&point, &sample);
	assert_true(fabs(sample.limit - 250) < 1e-6);
	assert_non_null(strstr(sample.note, "limit: rx_burst"));
	point = point_of("ring", 64, 64, 1);
	run_once(&point, &sample);
	assert_true(fabs(sample.limit - 1e3 / 3) < 1e-6);
	bench.result_count = 0;
}

static void what_cannot_be(void **state)
{
	struct gdrcap_bench_point point = point_of("null", 64, 64, 1);
	struct gdrcap_error error = { 0 };
	void *path;

	snprintf(point.memory, sizeof(point.memory), "paper");
	assert_int_equal(bench_stage_open(&bench_path, &bench, &point, &path, &error), -EINVAL);
	point = point_of("null", 64, 64, 0);
	point.queues = bench.cpu_count + 1;
	assert_int_equal(bench_stage_open(&bench_path, &bench, &point, &path, &error), -ENOSPC);
	assert_non_null(strstr(error.text, "--cores"));
	point = point_of("null", 64, 64, 0);
	point.frame_bytes = 20000;
	assert_int_equal(bench_stage_open(&bench_path, &bench, &point, &path, &error), -EINVAL);
	assert_non_null(strstr(error.text, "frame.size: '20000' is out of range"));
}

/* ---- points ---- */

static struct gdrcap_bench_point points[BENCH_POINTS_MAX];

static uint32_t points_of(uint32_t cpus, bool cuda, uint32_t quick)
{
	struct gdrcap_bench_config asked = { .quick = quick };
	const struct bench machine = { .config = &asked, .cpu_count = cpus, .cuda = cuda };

	memset(points, 0, sizeof(points));
	return bench_path.points(&machine, points);
}

static uint32_t having(uint32_t count, const char *source, uint32_t queues, uint32_t frame_bytes)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++)
		n += strcmp(points[i].source, source) == 0 && points[i].queues == queues &&
		     points[i].frame_bytes == frame_bytes;
	return n;
}

static void points_fit(uint32_t cpus, bool cuda, uint32_t count)
{
	const struct gdrcap_bench_config asked = { .gpu = "host" };
	const struct bench machine = { .config = &asked, .cpu_count = cpus, .cuda = cuda };

	for (uint32_t i = 0; i < count; i++) {
		const struct gdrcap_bench_point *point = &points[i];

		if (point->queues == 1 || path_fits(&machine, point))
			continue;
		/* Once, so that the result says it. */
		assert_int_equal(point->frame_bytes, 64);
		for (uint32_t k = 0; k < count; k++)
			assert_true(k == i || points[k].queues != point->queues ||
				    strcmp(points[k].source, point->source) != 0 ||
				    strcmp(points[k].memory, point->memory) != 0);
	}
}

/* What a queue receives is of its own pool: its worker gives it back there without a look. */
static void a_pool_a_queue(void **state)
{
	struct gdrcap_bench_point point = point_of("null", 64, 64, 1);
	struct gdrcap_error error = { 0 };
	struct gdrcap_session *session;
	struct gdrcap_config *of_session;

	point.queues = 4;
	assert_int_equal(path_config(&bench, &point, NULL, &of_session, &error), 0);
	if (gdrcap_create(of_session, &session, &error) < 0)
		fail_msg("%s", error.text);
	gdrcap_config_free(of_session);
	for (uint16_t q = 0; q < 4; q++) {
		struct rte_mempool *pool = session->workers.rx[q].config.pool;
		struct rte_mbuf *mbufs[64];

		for (uint16_t k = 0; k < q; k++)
			assert_ptr_not_equal(pool, session->workers.rx[k].config.pool);
		assert_int_equal(rte_eth_rx_burst(session->ports.pairs[0].rx.id, q, mbufs, 64), 64);
		for (uint32_t i = 0; i < 64; i++)
			assert_ptr_equal(mbufs[i]->pool, pool);
		rte_pktmbuf_free_bulk(mbufs, 64);
	}
	gdrcap_destroy(session);
}

static void points_of_machines(void **state)
{
	static const uint32_t cpus[] = { 1, 2, 4, 16, 64 };

	for (uint32_t i = 0; i < 5; i++)
		for (uint32_t cuda = 0; cuda < 2; cuda++) {
			const uint32_t all = points_of(cpus[i], cuda, 0);
			uint32_t quick;

			assert_true(all > 0 && all < BENCH_POINTS_MAX);
			points_fit(cpus[i], cuda, all);
			assert_true(having(all, "ring", 1, 64) && having(all, "null", 1, 9000));
			quick = points_of(cpus[i], cuda, 1);
			assert_true(quick > 0 && quick * 2 <= all);
			points_fit(cpus[i], cuda, quick);
			assert_true(having(quick, "ring", 1, 64) && having(quick, "null", 1, 1500));
		}
	/* The machine of the published figures: eight receiving cores, four that send too. */
	assert_true(having(points_of(16, true, 0), "null", 8, 64) >= 2 * 4);
	assert_true(having(points_of(16, true, 0), "ring", 4, 1500) >= 2);
	assert_int_equal(having(points_of(16, true, 0), "ring", 8, 64), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring),
		cmocka_unit_test(null),
		cmocka_unit_test(images),
		cmocka_unit_test(a_wrong_byte_is_damage),
		cmocka_unit_test(a_burst_is_one_run),
		cmocka_unit_test(limits),
		cmocka_unit_test(what_cannot_be),
		cmocka_unit_test(a_pool_a_queue),
		cmocka_unit_test(points_of_machines),
	};

	return cmocka_run_group_tests(tests, machine_open, machine_close);
}
