/* SPDX-License-Identifier: BSD-3-Clause */
/* The stage of test_rx_worker.c: memory, a port that is a function, and a consumer. cmocka.h comes
 * before it. */
#ifndef GDRCAP_TEST_RX_SCENE_H
#define GDRCAP_TEST_RX_SCENE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ethdev_driver.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_mempool.h>

#include "base/eal.h"
#include "nap.h"
#include "number_set.h"
#include "gpu/gpu_open.h"
#include "session/queue.h"
#include "memory/region.h"
#include "capture/rx_worker.h"

#define SCENE_SLOTS 2048u
#define SCENE_PORT (RTE_MAX_ETHPORTS - 1) /* nobody's */
#define SCENE_HANG_SECONDS 240
#define GIVEN (2 * SCENE_SLOTS) /* more frames are never on their way */

static struct {
	int16_t gpu;
	struct region region, heads;
	struct rte_mempool *pool, *head_pool;
	int time_offset;
	uint64_t time_flag;
	eth_rx_burst_t no_port;
} scene;

struct rx_setup {
	uint32_t burst;
	uint32_t strict; /* the port gives nothing to who asks for less, multiples at most */
	uint32_t polls;	 /* frames that a poll brings, at most */
	uint32_t split;	 /* bytes; 0: frames lie whole */
	bool accounted, flush, times, mark_cut;
	bool chains; /* some frames do not fit */
	enum rx_times clock;
	uint32_t in_flight_max; /* 0: no limit */
	uint32_t cut_from;	/* so long frames were cut; not with chains, and not split */
	int flush_result;
	struct wake *sender; /* who waits for slots; or NULL */
	uint32_t sleep_us;   /* an idle worker sleeps, as on a software wire; 0: it polls */
};

/* Where a frame lies, as the port knows it. */
struct given {
	struct frame_desc desc, head;
	uint64_t time; /* of the card */
};

/* The port: what it gives to the worker's thread. */
static struct {
	const struct rx_setup *setup;
	const struct rx_worker *worker;
	struct given ring[GIVEN];
	uint64_t limit, random;
	uint64_t bytes, cut;
	_Atomic uint64_t given, polls;
	_Atomic uint64_t bad;	/* mbufs that were not as a pool's must be; polls in a pause */
	struct rte_mbuf nobody; /* what a vector receive function leaves behind what it returns */
} card;

static struct given *given_at(uint64_t number)
{
	return &card.ring[number % GIVEN];
}

static struct rte_mbuf *mbuf_take(struct rte_mempool *pool, uint64_t number, uint32_t len)
{
	struct rte_mbuf *m = rte_mbuf_raw_alloc(pool);

	if (!m)
		return NULL;
	assert(m != &card.nobody);
	if (m->next || m->nb_segs != 1 || rte_mbuf_refcnt_read(m) != 1 ||
	    !(m->ol_flags & RTE_MBUF_F_EXTERNAL))
		atomic_fetch_add(&card.bad, 1);
	m->ol_flags = RTE_MBUF_F_EXTERNAL;
	m->data_off = (uint16_t)(RTE_PKTMBUF_HEADROOM + (pool == scene.pool ? number % 64 : 0));
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	return m;
}

static struct frame_desc mbuf_place(const struct rte_mbuf *m, const struct region *region)
{
	const size_t at = (size_t)((const uint8_t *)m->buf_addr - region->base);

	assert(at % ((size_t)1 << region->slot_shift) == 0 && at < region->bytes);
	return (struct frame_desc){ (uint32_t)(at >> region->slot_shift), m->data_len,
				    m->data_off };
}

/* Short ones, and ones that end at the split, are among them. */
static uint32_t frame_bytes(uint64_t number)
{
	const uint32_t any = (uint32_t)(mixed(number) % 1600);

	return any < 1400 ? 60 + any : any < 1500 ? 64 : any < 1550 ? 65 : 32;
}

static void time_give(struct rte_mbuf *m, uint64_t number)
{
	struct given *given = given_at(number);

	/* What is in the field of one that has no time is somebody else's. */
	*RTE_MBUF_DYNFIELD(m, scene.time_offset, uint64_t *) = number * 1000 + 7;
	given->time = number % 3 ? number * 1000 + 7 : 0;
	if (given->time)
		m->ol_flags |= scene.time_flag;
}

/* The frame, or NULL: there is no memory for it now. */
static struct rte_mbuf *frame_give(uint64_t number)
{
	const uint32_t split = card.setup->split, len = frame_bytes(number);
	const uint32_t head_len = split < len ? split : len, rest_len = len - head_len;
	const uint32_t more =
		card.setup->chains && rest_len && number % 37 == 0 ? 1 + (uint32_t)(number % 2) : 0;
	struct rte_mbuf *first = NULL, **next = &first;
	struct given *given = given_at(number);
	bool cut;

	*given = (struct given){ 0 };
	if (split) {
		*next = mbuf_take(scene.head_pool, number, head_len);
		if (!*next)
			return NULL;
		given->head = mbuf_place(*next, &scene.heads);
		next = &(*next)->next;
	}
	for (uint32_t i = 0; i < (rest_len ? 1 + more : 0); i++, next = &(*next)->next) {
		*next = mbuf_take(scene.pool, number, i ? 99 : rest_len);
		if (!*next) {
			rte_pktmbuf_free(first);
			return NULL;
		}
		if (i == 0)
			given->desc = mbuf_place(*next, &scene.region);
		first->nb_segs = (uint16_t)((split != 0) + i + 1);
		first->pkt_len = len + i * 99;
	}
	cut = more || (card.setup->cut_from && len >= card.setup->cut_from);
	if (more || (cut && card.setup->mark_cut))
		given->desc.offset |= FRAME_DESC_CUT;
	time_give(first, number);
	card.cut += cut;
	card.bytes += len;
	return first;
}

static uint16_t card_receive(void *queue, struct rte_mbuf **mbufs, uint16_t asked)
{
	const uint64_t given = atomic_load(&card.given);
	uint64_t most = asked / card.setup->strict * card.setup->strict;
	uint16_t n = 0;

	atomic_fetch_add(&card.polls, 1);
	if (atomic_load(&card.worker->paused) || asked > BURST_FRAMES_MAX)
		atomic_fetch_add(&card.bad, 1);
	most = RTE_MIN(most, 1 + random_below(&card.random, card.setup->polls));
	most = RTE_MIN(most, __atomic_load_n(&card.limit, __ATOMIC_RELAXED) - given);
	for (; n < most; n++) {
		struct rte_mbuf *m = frame_give(given + n);

		/* The ring may be full: nothing but an mbuf has a place there. */
		if (!m)
			break;
		mbufs[n] = m;
	}
	for (uint32_t i = n;
	     card.setup->strict > 1 &&
	     i < RTE_MIN(n + card.setup->strict, asked / card.setup->strict * card.setup->strict);
	     i++)
		mbufs[i] = &card.nobody;
	atomic_store(&card.given, given + n);
	return n;
}

static struct rte_mempool *pool_make(struct region *region, uint32_t slot_shift, const char *name)
{
	const struct region_config config = {
		.gpu = scene.gpu,
		.kind = GDRCAP_MEMORY_HOST,
		.bytes = (size_t)SCENE_SLOTS << slot_shift,
		.slot_shift = slot_shift,
		.cpu_workers = true,
	};

	if (region_create(region, &config, NULL) < 0)
		return NULL;
	return region_pool_create(region, name, SCENE_SLOTS, false, REGION_POOL_CACHED, -1, NULL);
}

static int scene_open(void **state)
{
	const struct eal_needs needs = { .memory_bytes = (size_t)64 << 20 };

	thread_share_cores(); /* with whatever else this machine does */
	if (eal_start(&needs, NULL) < 0 ||
	    rte_mbuf_dyn_rx_timestamp_register(&scene.time_offset, &scene.time_flag) < 0)
		return -1;
	scene.gpu = (int16_t)gpu_open_host(false, NULL);
	if (scene.gpu < 0)
		return -1;
	scene.pool = pool_make(&scene.region, 11, "frames");
	scene.head_pool = pool_make(&scene.heads, REGION_HEAD_SHIFT, "heads");
	scene.no_port = rte_eth_fp_ops[SCENE_PORT].rx_pkt_burst;
	rte_eth_fp_ops[SCENE_PORT].rx_pkt_burst = card_receive;
	return scene.pool && scene.head_pool ? 0 : -1;
}

static int scene_close(void **state)
{
	rte_eth_fp_ops[SCENE_PORT].rx_pkt_burst = scene.no_port;
	rte_mempool_free(scene.pool);
	rte_mempool_free(scene.head_pool);
	region_destroy(&scene.region);
	region_destroy(&scene.heads);
	return 0;
}

/* ---- one run ---- */

struct rx_play {
	const struct rx_setup *setup;
	struct rx_worker *worker;
	uint64_t taken, burst; /* bursts looked at, given back */
	uint64_t next;	       /* frames looked at */
	uint64_t last_tsc;
	uint64_t random, flushes;
	time_t until;
};

static int play_flush(void *context)
{
	struct rx_play *play = context;

	play->flushes++;
	return play->setup->flush_result;
}

static void play_open(struct rx_play *play, const struct rx_setup *setup, uint64_t limit)
{
	const struct ring_config ring = {
		.region = &scene.region,
		.heads = setup->split ? &scene.heads : NULL,
		.frames = SCENE_SLOTS,
		.burst_max = setup->burst,
		.times = setup->times,
		.came = setup->times,
	};
	struct rx_config config = {
		.port = SCENE_PORT,
		.region = &scene.region,
		.pool = scene.pool,
		.heads = ring.heads,
		.head_pool = setup->split ? scene.head_pool : NULL,
		.times = setup->clock,
		.time_offset = scene.time_offset,
		.time_flag = scene.time_flag,
		.flush = setup->flush ? play_flush : NULL,
		.flush_context = play,
		.in_flight_max = setup->in_flight_max ? setup->in_flight_max : UINT32_MAX,
		.starved_from = SCENE_SLOTS / 2,
		.mark_cut = setup->mark_cut,
		.cut_from = setup->cut_from,
		.accounted = setup->accounted,
		.wire = true,
	};
	const struct port port = { .drops = NULL };

	memset(play, 0, sizeof(*play));
	memset(&card, 0, sizeof(card));
	port_sleep_init(&config.sleep, &port, 0, setup->sleep_us);
	play->setup = setup;
	play->random = setup->burst;
	play->until = time(NULL) + SCENE_HANG_SECONDS;
	play->worker = aligned_alloc(RING_LINE, sizeof(*play->worker));
	assert_non_null(play->worker);
	assert_int_equal(rx_worker_create(play->worker, &config, &ring, NULL), 0);
	play->worker->sender = setup->sender;
	card.setup = setup;
	card.worker = play->worker;
	card.limit = limit;
	card.random = setup->burst + 1;
	assert_int_equal(thread_start(&play->worker->thread, "test_rx", NULL, rx_worker_run,
				      play->worker, NULL),
			 0);
}

static bool play_yield(struct rx_play *play)
{
	assert_true(time(NULL) < play->until);
	nap();
	return true;
}

static void frame_is(struct rx_play *play, uint32_t at)
{
	const struct ring_producer *ring = &play->worker->ring;
	const struct given *given = given_at(play->next);

	assert_memory_equal(&ring->desc[at], &given->desc, sizeof(given->desc));
	if (play->setup->split)
		assert_memory_equal(&ring->view.head_desc[at], &given->head, sizeof(given->head));
	else
		assert_null(ring->view.head_desc);
	if (!play->setup->times)
		return;
	if (play->setup->clock == RX_TIMES_CARD) {
		assert_true(ring->tsc[at] == given->time);
		return;
	}
	/* One poll after the other. */
	assert_true(ring->tsc[at] >= play->last_tsc &&
		    ring->tsc[at] >= atomic_load(&play->worker->first_tsc) &&
		    ring->tsc[at] <= atomic_load(&play->worker->last_tsc));
	play->last_tsc = ring->tsc[at];
}

static bool play_take(struct rx_play *play)
{
	struct ring_producer *ring = &play->worker->ring;
	const uint64_t word = __atomic_load_n(&ring->ready[play->taken & ring->burst_mask].word,
					      __ATOMIC_ACQUIRE);

	if (!burst_word_is(word, play->taken, ring->burst_bits))
		return false;
	assert_in_range(burst_word_count(word), 1, play->setup->burst);
	for (uint32_t i = 0; i < burst_word_count(word); i++, play->next++)
		frame_is(play, (burst_word_first(word) + i) & ring->desc_mask);
	if (play->setup->times && play->setup->clock == RX_TIMES_TSC)
		assert_true(ring->came[play->taken & ring->burst_mask] == play->last_tsc);
	play->taken++;
	return true;
}

static void play_give_back(struct rx_play *play)
{
	struct ring_producer *ring = &play->worker->ring;
	const uint64_t b = play->burst++;

	if (play->setup->accounted)
		atomic_store_explicit(&ring->collected, b + 1, memory_order_release);
	else
		__atomic_store_n(&ring->result[b & ring->burst_mask].done,
				 burst_word(b, ring->burst_bits, 0, 0), __ATOMIC_RELEASE);
}

/* The consumer and, where there is one, the accountant: now quicker, now slower. */
static void play_consume(struct rx_play *play)
{
	while (play_take(play) && random_below(&play->random, 8))
		;
	while (play->burst != play->taken && random_below(&play->random, 16))
		play_give_back(play);
	if (random_below(&play->random, 4) == 0)
		play_yield(play);
}

static void play_until(struct rx_play *play, uint64_t frames)
{
	while (play->next < frames)
		play_consume(play);
}

/* What the worker left lying, since nobody would give it back. */
static void play_clear(struct rx_play *play)
{
	struct ring_producer *ring = &play->worker->ring;

	while (play_take(play))
		;
	for (; ring->tail != ring->head; ring->tail++)
		rte_mempool_put(scene.pool, ring->mbuf[ring->tail & ring->desc_mask]);
	rte_mempool_cache_flush(NULL, scene.pool);
}

static void play_close(struct rx_play *play, enum rx_phase phase)
{
	struct rx_worker *worker = play->worker;

	atomic_store(&worker->phase, (int)phase);
	while (phase != RX_ABANDON &&
	       !(atomic_load_explicit(&worker->ring.ended, memory_order_acquire) &&
		 play->burst == atomic_load(&worker->ring.published)))
		play_consume(play);
	thread_join(&worker->thread);
	if (phase == RX_ABANDON)
		play_clear(play);
	else
		assert_true(atomic_load(&worker->back) == play->next);
	assert_true(play->next == atomic_load(&card.given));
	assert_true(atomic_load(&worker->frames) == play->next);
	assert_true(atomic_load(&worker->bytes) == card.bytes);
	assert_true(atomic_load(&worker->cut) == card.cut);
	assert_true(atomic_load(&worker->bursts) == worker->ring.burst);
	assert_true(play->flushes == (play->setup->flush ? worker->ring.burst : 0));
	assert_true((play->next != 0) == (atomic_load(&worker->first_tsc) != 0));
	assert_true(atomic_load(&worker->last_tsc) >= atomic_load(&worker->first_tsc));
	assert_int_equal(atomic_load(&worker->paused), 0);
	assert_int_equal(atomic_load(&card.bad), 0);
	assert_int_equal(rte_mempool_avail_count(scene.pool), SCENE_SLOTS);
	assert_int_equal(rte_mempool_avail_count(scene.head_pool), SCENE_SLOTS);
	rx_worker_destroy(worker);
	free(worker);
}

static void rx_run(const struct rx_setup *setup, uint64_t frames)
{
	struct rx_play play;

	play_open(&play, setup, frames);
	play_until(&play, frames);
	play_close(&play, RX_DRAIN);
}

#endif
