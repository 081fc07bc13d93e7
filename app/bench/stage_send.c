/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending from the caller's own slots, through a session as a program has it: one thread reserves, sets
 * lengths and submits, one of the session's hands the frames to the port; with a source "..., caller" that
 * thread does all (sender.thread: caller). To "null" (net_null) as fast as it goes; over a "ring" every frame
 * is received and validated, too.
 *
 * What is sent was written into every slot before, as path.h says of "null": no byte of a frame is touched
 * while it is sent, as where a kernel writes them.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <rte_pause.h>

#include "base/clock.h"
#include "base/log.h"
#include "bench/bench_util.h"
#include "bench/path.h"
#include "gdrcap_tx.h"
#include "session/session.h"

#define WIRE "ring:gdrcap_bench_send"
#define SESSION_CPUS 15u
#define BURST_SMALL 64u
#define BURST_LARGE 256u
#define WARM_MS 20u
#define DRAIN_MS 20000u
#define NULL_CALLER "null, caller"
#define RING_CALLER "ring, caller"
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct own {
	const struct bench *bench;
	struct gdrcap_bench_point point; /* its source is as path.h knows it */
	bool direct;			 /* sender.thread: caller */
	struct gdrcap_config *config;
};

/* Who submits: a thread of its own. */
struct submitter {
	const struct own *own;
	struct gdrcap_tx *tx;
	pthread_t thread;
	_Atomic int stop;
	int error; /* of the thread, read after its end */
};

static uint32_t own_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	const uint32_t *sizes = bench->config->quick
					? BENCH_LIST(64, 1500)
					: BENCH_LIST(64, 128, 256, 512, 1024, 1500, 9000);
	const uint32_t *one = BENCH_LIST(1), *small = BENCH_LIST(BURST_SMALL);
	const uint32_t *large = BENCH_LIST(BURST_LARGE);
	const char *own = bench->cuda ? "device" : "host";
	const struct bench_grid grids[] = {
		{ one, sizes, large, NULL, PATH_PATTERN, own, .source = "null" },
		{ one, BENCH_LIST(64), small, NULL, PATH_PATTERN, own, .source = "null" },
		{ one, sizes, large, NULL, PATH_PATTERN, own, .source = NULL_CALLER },
		{ one, BENCH_LIST(64), small, NULL, PATH_PATTERN, own, .source = NULL_CALLER },
		{ one, BENCH_LIST(64, 1500), large, NULL, PATH_PATTERN, own, .source = "ring" },
		{ one, BENCH_LIST(64, 1500), large, NULL, PATH_PATTERN, own,
		  .source = RING_CALLER },
		/* Not of a quick bench. */
		{ one, BENCH_LIST(64, 1500), large, NULL, PATH_PATTERN, "pinned", .source = "null",
		  .needs_cuda = true },
	};
	struct bench_points to = { bench, points, 0, NULL };

	bench_points_add(&to, grids, COUNT(grids) - bench->config->quick);
	return to.count;
}

static bool is_direct(const struct gdrcap_bench_point *point)
{
	return strcmp(point->source, NULL_CALLER) == 0 || strcmp(point->source, RING_CALLER) == 0;
}

static bool is_null(const struct gdrcap_bench_point *point)
{
	return strncmp(point->source, "null", 4) == 0;
}

/* The caller's thread and, where that is not all, the session's; over a ring also receiver, accountant and, without a GPU, who
 * checks. */
static uint32_t own_cores(const struct bench *bench, const struct gdrcap_bench_point *point)
{
	return (is_null(point) ? 2 : 4 + !bench->cuda) - is_direct(point);
}

static void own_close(void *state)
{
	gdrcap_config_free(((struct own *)state)->config);
}

/* The bench's first CPU is the caller's; the session has those next to it. */
static int session_cores(const struct bench *bench, struct gdrcap_config *config, int ret,
			 struct gdrcap_error *error)
{
	char list[SESSION_CPUS * 5] = "";

	for (uint32_t i = 1; i < bench->cpu_count && i <= SESSION_CPUS; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%d", i > 1 ? "," : "",
			 bench->cpus[i]);
	return list[0] ? bench_set(config, ret, error, "cores", "%s", list) : ret;
}

static int own_open(const struct bench *bench, const struct gdrcap_bench_point *point, void *state,
		    struct gdrcap_error *error)
{
	struct own *own = state;
	struct gdrcap_config *config = gdrcap_config_new();
	int ret;

	own->bench = bench;
	own->point = *point;
	snprintf(own->point.source, sizeof(own->point.source), is_null(point) ? "null" : "ring");
	own->direct = is_direct(point);
	own->config = config;
	point = &own->point;
	ret = path_place(bench, point, config, 0, error);
	ret = session_cores(bench, config, ret, error);
	ret = path_alike(point, config, ret, error);
	ret = bench_set(config, ret, error, "sender", "host");
	ret = bench_set(config, ret, error, "sender.thread", own->direct ? "caller" : "session");
	if (path_is_null(point))
		return bench_set(config, ret, error, "tx_port", "net_null_bench_send,copy=0");
	ret = bench_set(config, ret, error, "port", WIRE);
	return bench_set(config, ret, error, "tx_port", WIRE);
}

/* ---- who submits ---- */

static void *submitter_run(void *arg)
{
	struct submitter *submitter = arg;
	const struct gdrcap_bench_point *point = &submitter->own->point;
	const uint32_t bytes = point->frame_bytes - FRAME_FCS_BYTES;
	struct gdrcap_tx_frame frames[BURST_LARGE];
	struct gdrcap_error error;

	bench_pin(submitter->own->bench, 0);
	while (!atomic_load_explicit(&submitter->stop, memory_order_relaxed)) {
		const int n = gdrcap_tx_reserve(submitter->tx, frames, point->burst);

		if (n == 0) {
			rte_pause();
			continue;
		}
		for (int i = 0; i < n; i++)
			frames[i].bytes = bytes;
		submitter->error =
			n < 0 ? n
			      : gdrcap_tx_submit(submitter->tx, frames, (unsigned int)n, &error);
		if (submitter->error < 0)
			break;
	}
	return NULL;
}

static int submitter_start(struct submitter *submitter, const struct own *own,
			   struct gdrcap_session *session, struct gdrcap_error *error)
{
	int ret;

	*submitter = (struct submitter){ .own = own, .tx = gdrcap_get_tx(session, 0) };
	ret = pthread_create(&submitter->thread, NULL, submitter_run, submitter);
	return ret ? error_set(error, -ret, "no thread that submits: %s", strerror(ret)) : 0;
}

static int submitter_stop(struct submitter *submitter, struct gdrcap_error *error)
{
	atomic_store(&submitter->stop, 1);
	pthread_join(submitter->thread, NULL);
	return submitter->error < 0
		       ? error_set(error, submitter->error,
				   "what was to be sent was not taken: error %d", submitter->error)
		       : 0;
}

/* ---- a run ---- */

static int look(struct gdrcap_session *session, struct gdrcap_tx_counts *counts, uint64_t *ns)
{
	const int ret = gdrcap_get_tx_counts(session, 0, counts, sizeof(*counts));

	*ns = bench_now_ns();
	return ret;
}

static int own_measure(const struct own *own, struct gdrcap_session *session, uint32_t run_ms,
		       struct bench_sample *sample, struct gdrcap_error *error)
{
	struct gdrcap_tx_counts from, to;
	struct submitter submitter;
	uint64_t from_ns = 0, to_ns = 0;
	int ret = submitter_start(&submitter, own, session, error), ended;

	if (ret < 0)
		return ret;
	sleep_ms(WARM_MS);
	ret = look(session, &from, &from_ns);
	sleep_ms(run_ms);
	if (ret == 0)
		ret = look(session, &to, &to_ns);
	ended = submitter_stop(&submitter, error);
	if (ret < 0)
		return error_set(error, ret, "the queue's counts cannot be read");
	if (ended < 0)
		return ended;
	sample->frames = to.sent - from.sent;
	sample->seconds = (double)(to_ns - from_ns) * 1e-9;
	sample->mpps = (double)sample->frames / sample->seconds * 1e-6;
	sample->gbps = sample->mpps * own->point.frame_bytes * 8e-3;
	sample->value = sample->mpps;
	return 0;
}

/* What is on the ring comes, so all that was sent can be compared with all that was received. */
static int own_drain(struct gdrcap_session *session, struct gdrcap_error *error)
{
	session_end(session);
	return gdrcap_wait_end(session, DRAIN_MS)
		       ? 0
		       : error_set(error, -ETIMEDOUT, "what was sent is not through after %u ms",
				   DRAIN_MS);
}

/* Replay's rate with the same frames, to the same port. */
static double replay_mpps(const struct own *own)
{
	for (size_t i = 0; i < own->bench->result_count; i++) {
		const struct gdrcap_bench_result *result = &own->bench->results[i];

		if (strcmp(result->point.stage, "sender") == 0 &&
		    strcmp(result->point.source, "null") == 0 && path_is_null(&own->point) &&
		    result->point.frame_bytes == own->point.frame_bytes &&
		    result->point.burst == own->point.burst)
			return result->median;
	}
	return 0;
}

static void own_account(const struct own *own, struct gdrcap_session *session,
			struct bench_sample *sample)
{
	struct gdrcap_tx_counts counts = { 0 };
	struct gdrcap_summary summary;

	gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts));
	gdrcap_get_summary(session, &summary, sizeof(summary));
	sample->lost = counts.failed;
	sample->limit = replay_mpps(own);
	if (path_is_null(&own->point)) {
		snprintf(sample->note, sizeof(sample->note), "%s; limit: replay to the same port",
			 own->direct ? "1 thread submits and hands over"
				     : "2 threads: one submits, one sends");
		return;
	}
	sample->frames = counts.sent;
	sample->validated = summary.total.valid;
	sample->damaged = summary.total.damaged;
	sample->lost += counts.sent - summary.total.received;
	snprintf(sample->note, sizeof(sample->note),
		 "all %llu that were sent in the run came back and were checked",
		 (unsigned long long)counts.sent);
}

static int own_run(void *state, uint32_t run_ms, struct bench_sample *sample,
		   struct gdrcap_error *error)
{
	const struct own *own = state;
	struct gdrcap_error stop = { 0 };
	struct gdrcap_session *session;
	int ret = gdrcap_create(own->config, &session, error), stopped;

	if (ret < 0)
		return ret;
	ret = path_fill(session, error);
	if (ret == 0)
		ret = gdrcap_start(session, error);
	if (ret == 0) {
		ret = own_measure(own, session, run_ms, sample, error);
		if (ret == 0)
			ret = own_drain(session, error);
		stopped = gdrcap_stop(session, &stop);
		if (ret == 0 && stopped < 0)
			ret = error_set(error, stopped, "%s", stop.text);
	}
	if (ret == 0)
		own_account(own, session, sample);
	gdrcap_destroy(session);
	return ret;
}

const struct bench_stage bench_send = {
	.about = {
		.id = "send",
		.group = "sender",
		.what = "the caller's own frames, from reserve to the port: null: to net_null, beside "
			"replay's rate with the same frames; ring: every one received and checked",
		.unit = "Mpps",
	},
	.more_limits = { "sender" },
	.cores = own_cores,
	.points = own_points,
	.state_bytes = sizeof(struct own),
	.open = own_open,
	.run = own_run,
	.close = own_close,
};
