/* SPDX-License-Identifier: BSD-3-Clause */
/* What stages of the bench share: clocks, helping threads, memory. */
#include "bench/bench_util.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "session/session.h"

#define FRAME_BYTES 64u /* with FCS */
#define FRAME_LEN 60u	/* in memory */

/* ---- threads ---- */

enum crew_word { CREW_WAIT, CREW_GO, CREW_LEAVE };

struct crew {
	const struct bench *bench;
	void (*body)(void *arg, uint32_t index);
	void *arg;
	_Atomic int word; /* enum crew_word. Writer: who started them; partner: its acquire load */
	_Atomic uint32_t there; /* threads that wait for it */
	_Atomic int pin_error;	/* negative errno */
};

#define AWAY_MATTERS 0.02

struct hand {
	struct thread thread;
	struct crew *crew;
	uint32_t index;
	double away; /* part of the body's time that others had its core */
};

static void hand_work(struct hand *hand)
{
	const struct crew *crew = hand->crew;
	const uint64_t began = bench_now_ns(), cpu_began = time_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t spent, used;

	crew->body(crew->arg, hand->index);
	used = time_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_began;
	spent = bench_now_ns() - began;
	hand->away = spent > used ? (double)(spent - used) / (double)spent : 0;
}

static void hand_run(void *arg)
{
	struct hand *hand = arg;
	struct crew *crew = hand->crew;
	const int cpu = bench_pin(crew->bench, hand->index);
	int word;

	if (cpu < 0)
		atomic_store(&crew->pin_error, cpu);
	atomic_fetch_add(&crew->there, 1);
	while ((word = atomic_load_explicit(&crew->word, memory_order_acquire)) == CREW_WAIT)
		sched_yield();
	if (word == CREW_GO)
		hand_work(hand);
}

int bench_on_cores(const struct bench *bench, uint32_t count,
		   void (*body)(void *arg, uint32_t index), void *arg, double *away,
		   struct gdrcap_error *error)
{
	struct crew crew = { .bench = bench, .body = body, .arg = arg };
	struct hand *hands = calloc(count, sizeof(*hands));
	uint32_t started = 0;
	int ret = 0;

	if (!hands)
		return error_set(error, -ENOMEM, "no memory for %u threads", count);
	for (; started < count; started++) {
		struct hand *hand = &hands[started];

		hand->crew = &crew;
		hand->index = started;
		ret = thread_start(&hand->thread, "gdrcap-bench", NULL, hand_run, hand, error);
		if (ret < 0)
			break;
	}
	while (atomic_load(&crew.there) != started)
		sched_yield();
	if (ret == 0 && atomic_load(&crew.pin_error) < 0) {
		ret = atomic_load(&crew.pin_error);
		error_set(error, ret,
			  "a thread cannot be kept on its CPU: %s; choose others with "
			  "--cores",
			  strerror(-ret));
	}
	atomic_store_explicit(&crew.word, ret == 0 ? CREW_GO : CREW_LEAVE, memory_order_release);
	if (away)
		*away = 0;
	for (uint32_t i = 0; i < started; i++) {
		thread_join(&hands[i].thread);
		if (away)
			*away = RTE_MAX(*away, hands[i].away);
	}
	free(hands);
	return ret;
}

void bench_note_away(struct bench_sample *sample, double away)
{
	const size_t used = strlen(sample->note);

	if (away > AWAY_MATTERS)
		snprintf(sample->note + used, sizeof(sample->note) - used,
			 "%sothers had a core for %.0f %% of the time", used ? "; " : "",
			 away * 100);
}

/* ---- points and figures ---- */

static void point_add(struct bench_points *to, const struct bench_grid *grid,
		      const struct gdrcap_bench_point *numbers)
{
	struct gdrcap_bench_point *point = &to->points[to->count];

	if (to->count == BENCH_POINTS_MAX)
		return;
	*point = *numbers;
	snprintf(point->pattern, sizeof(point->pattern), "%s", grid->pattern ? grid->pattern : "");
	snprintf(point->memory, sizeof(point->memory), "%s", grid->memory ? grid->memory : "");
	snprintf(point->source, sizeof(point->source), "%s", grid->source ? grid->source : "");
	if (grid->always || !to->fits || to->fits(to->bench, point))
		to->count++;
	else
		memset(point, 0, sizeof(*point));
}

#define EACH(at, list)                                                                             \
	const uint32_t *at = (list) ? (list) : none, *at##_first = at;                             \
	at == at##_first || *at;                                                                   \
	at++

static void grid_add(struct bench_points *to, const struct bench_grid *grid)
{
	static const uint32_t none[] = { 0, 0 };

	for (EACH(queues, grid->queues))
		for (EACH(frame_bytes, grid->frame_bytes))
			for (EACH(burst, grid->bursts))
				for (EACH(blocks, grid->blocks))
					point_add(to, grid,
						  &(struct gdrcap_bench_point){
							  .frame_bytes = *frame_bytes,
							  .burst = *burst,
							  .blocks = *blocks,
							  .queues = *queues,
						  });
}

void bench_points_add(struct bench_points *to, const struct bench_grid *grids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (to->bench->cuda || !grids[i].needs_cuda)
			grid_add(to, &grids[i]);
}

uint32_t bench_burst_points(const struct bench *bench, const char *source, const char *second,
			    struct gdrcap_bench_point *points)
{
	const bool quick = bench->config && bench->config->quick;
	const uint32_t *bursts = quick ? BENCH_LIST(64, 256) : BENCH_LIST(16, 32, 64, 128, 256);
	const struct bench_grid grids[] = {
		{ BENCH_LIST(1), BENCH_LIST(FRAME_BYTES), bursts, .source = source },
		{ BENCH_LIST(1), BENCH_LIST(FRAME_BYTES), bursts, .source = second },
	};
	struct bench_points to = { bench, points, 0, NULL };

	bench_points_add(&to, grids, second ? 2 : 1);
	return to.count;
}

double bench_memory_limit(const struct bench *bench, uint32_t cores)
{
	const double all = bench_limit(bench, "memory_read", NULL);
	double one = 0;

	for (size_t i = 0; i < bench->result_count; i++) {
		const struct gdrcap_bench_result *result = &bench->results[i];

		if (!strcmp(result->point.stage, "memory_read") && result->point.queues == 1)
			one = result->median;
	}
	return cores * one < all ? cores * one : all;
}

/* ---- memory ---- */

uint64_t bench_file_number(const char *path, uint64_t otherwise)
{
	FILE *file = fopen(path, "re");
	uint64_t number;

	if (!file)
		return otherwise;
	if (fscanf(file, "%" SCNu64, &number) != 1)
		number = otherwise;
	fclose(file);
	return number;
}

uint64_t bench_memory_available(void)
{
	const uint64_t most = bench_file_number("/sys/fs/cgroup/memory.max", UINT64_MAX);
	const uint64_t used = bench_file_number("/sys/fs/cgroup/memory.current", 0);
	uint64_t available = 0;
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %" SCNu64, &available) == 1)
			break;
	if (file)
		fclose(file);
	available <<= 10;
	if (most > used && most - used < available)
		available = most - used;
	return available;
}

/* ---- rates ---- */

int bench_loop_run(struct bench_loop *loop, uint32_t cores,
		   void (*body)(void *state, uint32_t index), uint32_t run_ms,
		   struct bench_sample *sample, struct gdrcap_error *error)
{
	double away;
	int ret;

	loop->run_cycles = rte_get_tsc_hz() / 1000 * run_ms;
	ret = bench_on_cores(loop->bench, cores, body, loop, &away, error);
	if (ret < 0)
		return ret;
	sample->seconds = (double)loop->cycles / (double)rte_get_tsc_hz();
	sample->frames = loop->frames;
	sample->value = sample->seconds * 1e9 / (double)loop->frames;
	sample->mpps = (double)loop->frames / sample->seconds * 1e-6;
	bench_note_away(sample, away);
	return 0;
}

double bench_limit_alike(const struct bench *bench, const char *stage,
			 const struct gdrcap_bench_point *point)
{
	for (size_t i = 0; i < bench->result_count; i++) {
		const struct gdrcap_bench_result *result = &bench->results[i];

		if (strcmp(result->point.stage, stage) == 0 && !result->error[0] &&
		    result->point.burst == point->burst &&
		    strcmp(result->point.source, point->source) == 0)
			return result->median;
	}
	return 0;
}

/* ---- a session ---- */

int bench_set(struct gdrcap_config *config, int before, struct gdrcap_error *error, const char *key,
	      const char *format, ...)
{
	char value[512];
	va_list arguments;

	if (before < 0)
		return before;
	va_start(arguments, format);
	vsnprintf(value, sizeof(value), format, arguments);
	va_end(arguments);
	return gdrcap_config_set(config, key, value, error);
}

int bench_rx_open(struct bench_rx *rx, const struct gdrcap_bench_point *point,
		  struct gdrcap_error *error)
{
	struct gdrcap_config *config = gdrcap_config_new();
	struct session_pair *pair;
	int ret;

	memset(rx, 0, sizeof(*rx));
	rx->wire = strcmp(point->source, "ring") == 0;
	ret = bench_set(config, 0, error, "gpu", "host");
	ret = bench_set(config, ret, error, "frame.size", "%u", FRAME_BYTES);
	ret = bench_set(config, ret, error, "burst", "%u", point->burst);
	if (rx->wire) {
		ret = bench_set(config, ret, error, "port", "ring:bench");
		ret = bench_set(config, ret, error, "tx_port", "ring:bench");
	} else {
		ret = bench_set(config, ret, error, "port", "net_null_gdrcap_bench,size=%u,copy=0",
				FRAME_LEN);
	}
	if (ret == 0)
		ret = gdrcap_create(config, &rx->session, error);
	gdrcap_config_free(config);
	if (ret < 0)
		return ret;
	pair = &rx->session->ports.pairs[0];
	rx->worker = &rx->session->workers.rx[0];
	rx->pool = pair->rx_pool[0];
	rx->port = pair->rx.id;
	rx->sender = pair->tx.id;
	return 0;
}

void bench_rx_close(struct bench_rx *rx)
{
	if (rx->session)
		gdrcap_destroy(rx->session);
	memset(rx, 0, sizeof(*rx));
}

void bench_rx_feed(const struct bench_rx *rx, uint16_t n)
{
	struct rte_mbuf *mbufs[BURST_FRAMES_MAX];
	uint16_t sent;

	if (rte_pktmbuf_alloc_bulk(rx->pool, mbufs, n) < 0)
		return;
	for (uint16_t i = 0; i < n; i++) {
		mbufs[i]->data_len = FRAME_LEN;
		mbufs[i]->pkt_len = FRAME_LEN;
	}
	sent = rte_eth_tx_burst(rx->sender, 0, mbufs, n);
	rte_pktmbuf_free_bulk(mbufs + sent, n - sent);
}
