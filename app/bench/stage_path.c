/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole path: from the port through the rx worker, the ring and the consumer to the verdict. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench/bench_util.h"
#include "bench/path.h"
#include "session/session.h"

#define FIRST_MS 5000u /* within which the first frames have to be through */
#define WARM_PART                                                                                  \
	4u /* of a run's time: until each slot was used, and caches hold what they will            \
	    */
#define WARM_MS_LEAST 5u
#define DRAIN_MS                                                                                   \
	20000u /* for all that was sent to come, which takes no time where there are CPUs */

/* The verdict at one moment, or what was placed. */
struct look {
	uint64_t ns, received, valid;
};

static int path_open(const struct bench *bench, const struct gdrcap_bench_point *point, void *state,
		     struct gdrcap_error *error)
{
	struct path *path = state;

	if (point->queues > 1 && !path_fits(bench, point))
		return error_set(
			error, -ENOSPC,
			"%u queues from \"%s\" keep %u CPUs busy and the main thread needs "
			"one, %u are here; give more with --cores",
			point->queues, point->source, path_threads(bench, point), bench->cpu_count);
	path->bench = bench;
	path->point = *point;
	return path_config(bench, point, NULL, &path->config, error);
}

void path_close(void *state)
{
	gdrcap_config_free(((struct path *)state)->config);
}

/* ---- one session ---- */

static void look_at(struct gdrcap_session *session, struct look *look)
{
	const struct verdict *verdict;
	struct gdrcap_image_counts images;
	struct gdrcap_counts total;

	if (session->images.count) {
		gdrcap_get_image_counts(session, 0, &images, sizeof(images));
		*look = (struct look){ bench_now_ns(), images.frames, images.placed };
		return;
	}
	verdict = accountant_borrow(&session->workers.accountant);

	/* It stands still until it is returned, so time and counts belong together. */
	verdict_total(verdict, false, 0, &total);
	look->ns = bench_now_ns();
	accountant_return(&session->workers.accountant);
	look->received = total.received;
	look->valid = total.valid;
}

/* -ECANCELED: the run ended, and gdrcap_stop() knows why. */
static int session_pass(struct gdrcap_session *session, uint32_t ms)
{
	return gdrcap_wait_end(session, ms) ? -ECANCELED : 0;
}

static int first_frames(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const uint64_t until = bench_now_ns() + FIRST_MS * UINT64_C(1000000);
	struct look look = { 0 };
	int ret = 0;

	while (ret == 0 && look.received == 0 && bench_now_ns() < until) {
		ret = session_pass(session, 1);
		look_at(session, &look);
	}
	if (ret == 0 && look.received == 0)
		return error_set(error, -ETIMEDOUT,
				 "no frame was through after %u ms: is the GPU busy with another "
				 "process (nvidia-smi)?",
				 FIRST_MS);
	return ret;
}

static int session_measure(struct gdrcap_session *session, uint32_t run_ms, struct look *from,
			   struct look *to, struct gdrcap_error *error)
{
	const uint32_t warm_ms = run_ms / WARM_PART;
	int ret = first_frames(session, error);

	if (ret == 0)
		ret = session_pass(session, warm_ms > WARM_MS_LEAST ? warm_ms : WARM_MS_LEAST);
	look_at(session, from);
	if (ret == 0)
		ret = session_pass(session, run_ms);
	look_at(session, to);
	return ret;
}

/* What is on the wire when the receivers stop would count as lost, and where threads share CPUs
 * some get none for longer than a stop waits. */
static int session_drain(struct gdrcap_session *session, struct gdrcap_error *error)
{
	session_end(session);
	return gdrcap_wait_end(session, DRAIN_MS)
		       ? 0
		       : error_set(error, -ETIMEDOUT,
				   "what was sent is not through after %u ms; "
				   "give more CPUs with --cores",
				   DRAIN_MS);
}

/* Starts, measures and stops. */
static int session_run(struct gdrcap_session *session, uint32_t run_ms, struct look *from,
		       struct look *to, struct gdrcap_error *error)
{
	struct gdrcap_error stop = { 0 };
	int ret = gdrcap_start(session, error), stopped;

	if (ret < 0)
		return ret;
	ret = session_measure(session, run_ms, from, to, error);
	if (ret == 0)
		ret = session_drain(session, error);
	stopped = gdrcap_stop(session, &stop);
	/* What ended the run says more than that it did. */
	if (stopped < 0)
		return error_set(error, stopped, "%s", stop.text);
	return ret == -ECANCELED ? error_set(error, ret, "the run ended by itself") : ret;
}

/* ---- what it was ---- */

static void note(struct bench_sample *sample, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void note(struct bench_sample *sample, const char *format, ...)
{
	const size_t bytes = sizeof(sample->note), used = strlen(sample->note);
	va_list args;

	if (used)
		snprintf(sample->note + used, bytes - used, "; ");
	va_start(args, format);
	vsnprintf(sample->note + strlen(sample->note), bytes - strlen(sample->note), format, args);
	va_end(args);
}

/* The least of what was measured limits. */
static void limit_add(struct bench_sample *sample, const char **by, const char *stage, double mpps)
{
	if (mpps <= 0 || (*by && sample->limit <= mpps))
		return;
	sample->limit = mpps;
	*by = stage;
}

/* Of cores that do nothing but poll such a port, and of what reads the frames where they are not in
 * the GPU's own memory; in Mpps. */
static void limit_take(const struct path *path, struct bench_sample *sample)
{
	const struct gdrcap_bench_point *point = &path->point;
	const double len_kbit = 8e-3 * (point->frame_bytes - FRAME_FCS_BYTES);
	const double poll_ns = bench_limit_alike(path->bench, "rx_burst", point);
	const uint32_t readers = point->queues * (point->blocks ? point->blocks : 1);
	const char *by = NULL;

	if (poll_ns > 0)
		limit_add(sample, &by, "rx_burst", point->queues * 1e3 / poll_ns);
	if (strcmp(point->memory, "pinned") == 0)
		limit_add(sample, &by, "zero_copy",
			  bench_limit(path->bench, "zero_copy", "pinned") / len_kbit);
	else if (strcmp(point->memory, "host") == 0)
		limit_add(sample, &by, "memory_read",
			  bench_memory_limit(path->bench, readers) / len_kbit);
	if (by)
		note(sample, "limit: %s", by);
}

/* What could not be placed is lost, and so is an image that was not completed, but for the last. Where
 * threads share CPUs, who takes images may have none for longer than the buffers last. */
static void account_images(const struct gdrcap_session *session, struct bench_sample *sample)
{
	struct gdrcap_image_counts counts;

	gdrcap_get_image_counts(session, 0, &counts, sizeof(counts));
	sample->validated = 0;
	note(sample, "images: %" PRIu64, counts.complete);
	if (counts.no_room)
		note(sample, "frames that found no buffer: %" PRIu64, counts.no_room);
	else
		sample->lost = counts.duplicate + counts.late + counts.misfit + counts.newer +
			       counts.timeout;
}

/* The whole session's: a frame lost before the window was lost too. */
static void account_frames(const struct path *path, struct gdrcap_session *session,
			   struct bench_sample *sample)
{
	struct gdrcap_summary summary;
	uint64_t others;

	gdrcap_get_summary(session, &summary, sizeof(summary));
	sample->damaged = summary.total.damaged;
	sample->lost = summary.total.lost;
	/* Without numbers: what was received and never judged. */
	if (path_is_null(&path->point))
		sample->lost = session_received(session) - summary.total.received;
	others = summary.total.received - summary.total.valid - summary.total.damaged;
	if (others)
		note(sample, "%" PRIu64 " repeated or not ours", others);
	if (path_is_null(&path->point))
		note(sample, "slots filled before, no sequence");
	limit_take(path, sample);
}

static void account(const struct path *path, struct gdrcap_session *session,
		    struct bench_sample *sample)
{
	struct gdrcap_summary summary;
	const char *message;

	if (path->image)
		account_images(session, sample);
	else
		account_frames(path, session, sample);
	gdrcap_get_summary(session, &summary, sizeof(summary));
	if (!path->point.blocks)
		note(sample, "blocks: %u", summary.blocks);
	if (!path_fits(path->bench, &path->point))
		note(sample, "%u threads share %u CPUs", path_threads(path->bench, &path->point),
		     path->bench->cpu_count);
	message = gdrcap_get_message(session, 0);
	if (message)
		note(sample, "%s", message);
}

static void rates(const struct path *path, const struct look *from, const struct look *to,
		  struct bench_sample *sample)
{
	sample->seconds = (double)(to->ns - from->ns) * 1e-9;
	sample->frames = to->received - from->received;
	sample->validated = to->valid - from->valid;
	sample->mpps = (double)sample->validated / sample->seconds * 1e-6;
	sample->gbps = sample->mpps * path->point.frame_bytes * 8e-3;
	sample->value = sample->mpps;
	sample->sequence_checked = !path_is_null(&path->point);
}

/* A session runs once, so each run has its own, and its losses are known to the last frame. */
int path_run(void *state, uint32_t run_ms, struct bench_sample *sample, struct gdrcap_error *error)
{
	const struct path *path = state;
	struct path_taker taker;
	struct gdrcap_session *session;
	struct look from = { 0 }, to = { 0 };
	int ret = gdrcap_create(path->config, &session, error);

	if (ret < 0)
		return ret;
	if (path->image)
		ret = path_image_fill(session, error);
	else if (path_is_null(&path->point))
		ret = path_fill(session, error);
	if (ret == 0 && path->image)
		ret = path_taker_start(&taker, session, error);
	if (ret == 0) {
		ret = session_run(session, run_ms, &from, &to, error);
		if (path->image)
			path_taker_stop(&taker);
	}
	if (ret == 0) {
		rates(path, &from, &to, sample);
		account(path, session, sample);
	}
	gdrcap_destroy(session);
	return ret;
}

const struct bench_stage bench_path = {
	.about = {
		.id = "path",
		.group = "path",
		.what = "frames from the port, through receive queue, ring and consumer, to the verdict, "
			"every payload byte compared: \"ring\" written, sent and received by a "
			"loopback, \"null\" received without a sender from slots filled before, or over "
			"the ports that --port and --tx-port name",
		.unit = "Mpps",
	},
	.more_limits = { "rx_burst", "zero_copy", "memory_read" },
	.cores = path_threads,
	.points = path_points,
	.state_bytes = sizeof(struct path),
	.open = path_open,
	.run = path_run,
	.close = path_close,
};
