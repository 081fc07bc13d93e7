/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A send queue without a driver, against a strict reader of entries: every frame's place over many
 * laps of the ring and of the 16-bit counts, slots that come back when they were sent and never
 * before, whatever stands in the completion queue, a queue that is reset; and the orderings, by a register
 * that faults and against the reader in a thread of its own.
 *
 * usage: test_sq_front [BURSTS of the litmus [CASE]]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sq_card.h"

#define NUMBER 0x4a5b6cu
#define KEY 0x11223344u
#define SLOTS 512u
#define SLOT_WORDS 8u
#define BURST 256u
#define BASE 0x7f1234560000ull

struct bench {
	struct sq_front front;
	struct sq_card card;
	uint64_t register_, slots[SLOTS][SLOT_WORDS];
	uint32_t record[2];
	uint16_t bytes[SLOTS]; /* asked for, of the frame in a slot */
	uint64_t wrong;	       /* frames that came out otherwise */
	bool payload;	       /* slots hold the frame's number */
};

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t end)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((random_state >> 33) % end);
}

static void frame_seen(void *context, uint64_t number, uint64_t address, uint32_t bytes)
{
	struct bench *bench = context;
	const uint32_t slot = (uint32_t)(number % SLOTS);

	bench->wrong += address != BASE + slot * 0x10000ull + 128 || bytes != bench->bytes[slot];
	for (uint32_t w = 0; bench->payload && w < SLOT_WORDS; w++)
		bench->wrong += bench->slots[slot][w] != number + w;
}

static struct bench *bench_make(uint32_t blocks, uint32_t cqes)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	bench->card = (struct sq_card){
		.ring = aligned_alloc(64, (size_t)blocks * 64),
		.cq = aligned_alloc(64, (size_t)cqes * 64),
		.record = &bench->record[1],
		.bell = &bench->register_,
		.blocks = blocks,
		.cqes = cqes,
		.number = NUMBER,
		.key = KEY,
		.frame = frame_seen,
		.context = bench,
	};
	assert_non_null(bench->card.ring);
	assert_non_null(bench->card.cq);
	memset(bench->card.ring, 0x5a, (size_t)blocks * 64);
	memset(bench->card.cq, 0xf1, (size_t)cqes * 64);
	bench->front = (struct sq_front){
		.queue = { .ring = bench->card.ring,
			   .cq = bench->card.cq,
			   .record = &bench->record[1],
			   .bell = &bench->register_,
			   .blocks = blocks,
			   .cqes = cqes,
			   .number = NUMBER,
			   .key = KEY,
			   .mark_frames = SLOTS / 8 },
		.mark = calloc(cqes / 2, sizeof(struct sq_mark)),
	};
	assert_non_null(bench->front.mark);
	return bench;
}

static void bench_free(struct bench *bench)
{
	free(bench->card.ring);
	free(bench->card.cq);
	free(bench->front.mark);
	free(bench);
}

/* Adds a burst; frame n lies in slot n % SLOTS. False: no room. */
static bool post(struct bench *bench, uint32_t count, int each, uint32_t bytes)
{
	struct sq_front *front = &bench->front;
	int marked;

	if (!sq_fits(front, count, each) || front->frames + count - front->sent > SLOTS)
		return false;
	marked = sq_mark_due(front, count, each);
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t slot = (uint32_t)((front->frames + i) % SLOTS);

		bench->bytes[slot] = (uint16_t)(bytes + i);
		for (uint32_t w = 0; bench->payload && w < SLOT_WORDS; w++)
			bench->slots[slot][w] = front->frames + i + w;
		sq_write_frame(&front->queue, front->posted, each, i,
			       BASE + slot * 0x10000ull + 128, bytes + i);
	}
	for (uint32_t e = 0; e < sq_entries(count, each); e++)
		sq_write_entry(&front->queue, front->posted + sq_entry_block(each, e),
			       sq_entry_frames(count, each, e),
			       marked && e + 1 == sq_entries(count, each) ? SQ_ALWAYS
									  : SQ_IF_FIRST_TO_FAIL);
	sq_burst_add(front, count, each, marked);
	return true;
}

/* ---- arithmetic ---- */

/* All lengths of bursts, in both shapes, over many laps of the ring and some of the counts. */
static void test_places(void **state)
{
	static const uint32_t blocks[] = { SQ_BLOCKS_MIN, 4096, SQ_BLOCKS_MAX };

	(void)state;
	for (uint32_t b = 0; b < 3; b++) {
		struct bench *bench = bench_make(blocks[b], 256);
		uint64_t posted = 0;

		for (uint32_t i = 0; i < 20000 || bench->front.marks < 1000; i++) {
			const int each = random_below(2) != 0;
			const uint32_t count = 1 + random_below(BURST);

			while (!post(bench, count, each, 60 + random_below(9000))) {
				(void)sq_card_run(&bench->card);
				assert_null(bench->card.wrong);
				assert_true(sq_poll(&bench->front) > 0);
			}
			posted += count;
			sq_bell(&bench->front);
			if (random_below(8) == 0)
				(void)sq_card_run(&bench->card);
			if (random_below(8) == 0)
				(void)sq_poll(&bench->front);
			assert_true(bench->front.sent <= bench->card.frames);
		}
		(void)sq_card_run(&bench->card);
		(void)sq_poll(&bench->front);
		assert_true(sq_post_nop(&bench->front));
		sq_bell(&bench->front);
		(void)sq_card_run(&bench->card);
		(void)sq_poll(&bench->front);
		assert_null(bench->card.wrong);
		assert_int_equal(bench->wrong, 0);
		assert_int_equal(bench->card.frames, posted);
		assert_int_equal(bench->front.sent, posted);
		assert_int_equal(bench->front.freed, bench->front.posted);
		assert_int_equal(bench->front.state, SQ_RUNS);
		assert_true(bench->card.wrapped > 0);
		assert_true(bench->card.multi > 0 && bench->card.entries > bench->card.multi);
		assert_int_equal(bench->card.nops, 1);
		bench_free(bench);
	}
}

/* Shapes: what the header says of them. */
static void test_shapes(void **state)
{
	(void)state;
	assert_int_equal(sq_blocks(1, 0), 1);
	assert_int_equal(sq_blocks(2, 0), 1);
	assert_int_equal(sq_blocks(3, 0), 2);
	assert_int_equal(sq_blocks(60, 0), 16);
	assert_int_equal(sq_blocks(61, 0), 17);
	assert_int_equal(sq_blocks(120, 0), 32);
	assert_int_equal(sq_blocks(256, 0), 4 * 16 + 5);
	assert_int_equal(sq_blocks(256, 1), 256);
	assert_int_equal(sq_entries(61, 0), 2);
	assert_int_equal(sq_entry_frames(61, 0, 1), 1);
	assert_int_equal(sq_frame_place(0, 59), 32 + 59 * 16);
	assert_int_equal(sq_frame_place(0, 60), 1024 + 32);
	assert_int_equal(sq_frame_place(1, 3), 3 * 64 + 32);
}

/* Never more out than the ring, the slots and the completion queue have. */
static void test_room(void **state)
{
	struct bench *bench = bench_make(SQ_BLOCKS_MIN, 16);
	struct sq_front *front = &bench->front;
	uint32_t bursts = 0;

	(void)state;
	front->queue.mark_frames = 1; /* each burst */
	while (post(bench, 1, 0, 60))
		bursts++;
	assert_int_equal(bursts, 8); /* half of the completion queue */
	sq_bell(front);
	(void)sq_card_run(&bench->card);
	assert_int_equal(sq_poll(front), 8);
	front->queue.mark_frames = 1000000;
	bursts = 0;
	while (sq_fits(front, 256, 1)) {
		sq_burst_add(front, 256, 1, 0);
		bursts++;
	}
	assert_int_equal(bursts, SQ_BLOCKS_MIN / 256);
	assert_int_equal(front->posted - front->freed, SQ_BLOCKS_MIN);
	front->freed++;
	assert_true(sq_fits(front, 1, 1));
	assert_true(sq_fits(front, 2, 0));
	assert_false(sq_fits(front, 2, 1));
	assert_false(sq_fits(front, 3, 0));
	bench_free(bench);
}

/* ---- a hostile completion queue ---- */

/* Two bursts are marked and out; `kind` of nonsense is there. Nothing may come back. */
static void hostile(uint32_t opcode, uint32_t counter, uint32_t number, uint32_t state)
{
	struct bench *bench = bench_make(SQ_BLOCKS_MIN, 64);
	struct sq_front *front = &bench->front;

	front->queue.mark_frames = 1;
	assert_true(post(bench, 100, 0, 60));
	assert_true(post(bench, 100, 0, 60));
	sq_bell(front);
	sq_card_complete(&bench->card, opcode, (uint16_t)counter, number, 0x13);
	assert_int_equal(sq_poll(front), 0);
	assert_int_equal(front->sent, 0);
	assert_int_equal(front->freed, 0);
	assert_int_equal(front->state, state);
	if (state == SQ_FAILED)
		assert_int_equal(front->syndrome, 0x7713);
	if (state != SQ_RUNS) {
		/* Nor after that. */
		assert_false(sq_fits(front, 1, 0));
		sq_card_complete(&bench->card, 0, (uint16_t)front->mark[0].counter, NUMBER, 0);
		assert_int_equal(sq_poll(front), 0);
	}
	bench_free(bench);
}

static void test_hostile(void **state)
{
	/* The marks are at 16 (of 60 + 40 frames), and 27 + 16. */
	(void)state;
	hostile(0, 43, NUMBER, SQ_BROKEN); /* the second before the first */
	hostile(0, 0, NUMBER, SQ_BROKEN);  /* an entry that has none */
	hostile(0, 17, NUMBER, SQ_BROKEN);
	hostile(0, 16, NUMBER ^ 1, SQ_BROKEN); /* another queue's */
	hostile(2, 16, NUMBER, SQ_BROKEN);     /* a receive queue's */
	hostile(14, 16, NUMBER, SQ_BROKEN);
	hostile(13, 16, NUMBER, SQ_FAILED);
	hostile(13, 16, NUMBER ^ 1, SQ_BROKEN);
	hostile(15, 16, NUMBER, SQ_RUNS); /* not there */
}

/* Twice the same, one for which nothing is out, a lap's owner bit, a compressed one. */
static void test_hostile_order(void **state)
{
	struct bench *bench = bench_make(SQ_BLOCKS_MIN, 64);
	struct sq_front *front = &bench->front;

	(void)state;
	front->queue.mark_frames = 1;
	assert_true(post(bench, 100, 0, 60));
	assert_true(post(bench, 100, 0, 60));
	sq_bell(front);
	bench->card.cqe = 64; /* the next lap's */
	sq_card_complete(&bench->card, 0, 16, NUMBER, 0);
	assert_int_equal(sq_poll(front), 0);
	assert_int_equal(front->state, SQ_RUNS);
	bench->card.cqe = 0;
	sq_card_complete(&bench->card, 0, 16, NUMBER, 0);
	assert_int_equal(sq_poll(front), 100);
	sq_card_complete(&bench->card, 0, 16, NUMBER, 0);
	assert_int_equal(sq_poll(front), 0);
	assert_int_equal(front->state, SQ_BROKEN);
	bench_free(bench);

	bench = bench_make(SQ_BLOCKS_MIN, 64);
	sq_card_complete(&bench->card, 0, 0, NUMBER, 0);
	assert_int_equal(sq_poll(&bench->front), 0);
	assert_int_equal(bench->front.state, SQ_BROKEN);
	bench_free(bench);

	bench = bench_make(SQ_BLOCKS_MIN, 64);
	bench->front.queue.mark_frames = 1;
	assert_true(post(bench, 1, 0, 60));
	sq_card_complete(&bench->card, 0, 0, NUMBER, 0);
	bench->card.cq[63] |= 0xc;
	assert_int_equal(sq_poll(&bench->front), 0);
	assert_int_equal(bench->front.state, SQ_BROKEN);
	bench_free(bench);
}

/* Whatever stands there: what comes back was posted, and was named in order. */
static void test_random_completions(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 3000; round++) {
		struct bench *bench = bench_make(SQ_BLOCKS_MIN, 16);
		struct sq_front *front = &bench->front;

		for (uint32_t i = 0; i < 5; i++)
			(void)post(bench, 1 + random_below(100), random_below(2) != 0, 60);
		sq_bell(front);
		for (uint32_t i = 0; i < 16 * 64; i++)
			bench->card.cq[i] = (uint8_t)random_below(256);
		assert_true(sq_poll(front) <= front->frames);
		/* Right by chance: 1 in 2^50. */
		assert_int_equal(front->sent, 0);
		assert_true(front->cqe <= 16);
		sq_skip(front);
		assert_true(front->cqe <= 32);
		bench_free(bench);
	}
}

/* ---- reset ---- */

static void test_restart(void **state)
{
	struct bench *bench = bench_make(SQ_BLOCKS_MIN, 64);
	struct sq_front *front = &bench->front;
	uint64_t given_up = 0, behind = 0;

	(void)state;
	for (uint32_t round = 0; round < 100; round++) {
		uint64_t sent;

		for (uint32_t i = 0; i < 40; i++)
			if (post(bench, 1 + random_below(50), 0, 60))
				sq_bell(front);
		(void)sq_card_run(&bench->card);
		(void)sq_poll(front);
		sent = front->sent;
		while (post(bench, 30, 0, 60))
			;
		sq_bell(front);
		/* It fails at once, and flushes what is marked. */
		sq_card_complete(&bench->card, 13, bench->card.next, NUMBER, 4);
		for (uint64_t m = front->seen; m < front->marks; m++)
			sq_card_complete(&bench->card, 13, (uint16_t)front->mark[m % 32].counter,
					 NUMBER, 5);
		assert_int_equal(sq_poll(front), 0);
		assert_int_equal(front->state, SQ_FAILED);
		/* What the card ran behind the last mark is known to be sent. */
		assert_int_equal(sq_sent_before(front), bench->card.frames - sent);
		behind += bench->card.frames - sent;
		given_up += front->frames - sent;
		sq_skip(front);
		sq_restart(front);
		bench->record[1] = 0;
		bench->card.next = 0;
		bench->card.awake = false;
		bench->register_ = 0;
		bench->card.frames = front->frames; /* those are never seen */
		assert_int_equal(front->cqe, bench->card.cqe);
		assert_int_equal(front->lost, given_up);
		assert_int_equal(front->sent, front->frames);
	}
	assert_true(behind > 0);
	assert_true(post(bench, 100, 0, 60));
	assert_true(sq_post_nop(front));
	/* An entry that is not out says nothing. */
	front->counter = (uint32_t)front->posted + 1;
	assert_int_equal(sq_sent_before(front), 0);
	sq_bell(front);
	(void)sq_card_run(&bench->card);
	assert_null(bench->card.wrong);
	assert_int_equal(sq_poll(front), 100);
	assert_int_equal(bench->wrong, 0);
	bench_free(bench);
}

/* ---- orderings ---- */

/* The register lies on a page that faults: what the record says when the register is written. */
static struct {
	void *page;
	size_t bytes;
	const uint32_t *record;
	volatile uint32_t seen;
	volatile unsigned int faults;
} rung;

static void rung_fault(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	if (info->si_addr != rung.page || mprotect(rung.page, rung.bytes, PROT_READ | PROT_WRITE))
		_exit(1);
	rung.seen = __atomic_load_n(rung.record, __ATOMIC_RELAXED);
	rung.faults++;
}

/* RUNG in program order, whatever the machine's load: the litmus would need two cores at the right time. */
static void test_rung(void **state)
{
	struct bench *bench = bench_make(1024, 64);
	const struct sigaction action = { .sa_sigaction = rung_fault, .sa_flags = SA_SIGINFO };
	struct sigaction before;

	(void)state;
	rung.bytes = (size_t)sysconf(_SC_PAGESIZE);
	rung.page =
		mmap(NULL, rung.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(rung.page, MAP_FAILED);
	rung.record = bench->front.queue.record;
	bench->front.queue.bell = rung.page;
	bench->card.bell = rung.page;
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	for (unsigned int b = 1; b <= 3; b++) {
		assert_true(post(bench, 3, 0, 60));
		assert_int_equal(mprotect(rung.page, rung.bytes, PROT_NONE), 0);
		sq_bell(&bench->front);
		assert_int_equal(rung.faults, b);
		assert_int_equal(rung.seen, sq_record(&bench->front));
		(void)sq_card_run(&bench->card);
		assert_null(bench->card.wrong);
		assert_int_equal(bench->card.frames, 3 * b);
	}
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	assert_int_equal(munmap(rung.page, rung.bytes), 0);
	bench_free(bench);
}

/* The card is a thread of its own. */

static uint64_t litmus_bursts = 200000;
static _Atomic int litmus_stop;

static void *litmus_card(void *arg)
{
	struct bench *bench = arg;

	while (!atomic_load_explicit(&litmus_stop, memory_order_relaxed))
		if (sq_card_run(&bench->card) == 0)
			sched_yield();
	return NULL;
}

/* Now and then all that is out is waited for: who then sleeps beside frames sleeps for ever. */
static void test_litmus(void **state)
{
	struct bench *bench = bench_make(SQ_BLOCKS_MIN, 64);
	struct sq_front *front = &bench->front;
	pthread_t thread;

	(void)state;
	bench->payload = true;
	front->queue.mark_frames = 16;
	assert_int_equal(pthread_create(&thread, NULL, litmus_card, bench), 0);
	for (uint64_t b = 0; b < litmus_bursts; b++) {
		const uint32_t count = 1 + random_below(20);

		while (!post(bench, count, random_below(4) == 0, 60)) {
			assert_int_equal(front->state, SQ_RUNS);
			(void)sq_poll(front);
		}
		if (random_below(4) == 0)
			while (!sq_post_nop(front))
				(void)sq_poll(front);
		sq_bell(front);
		while (front->bursts_unmarked == 0 && front->sent != front->frames &&
		       front->state == SQ_RUNS)
			if (sq_poll(front) == 0)
				sched_yield();
		assert_int_equal(front->state, SQ_RUNS);
	}
	atomic_store_explicit(&litmus_stop, 1, memory_order_relaxed);
	pthread_join(thread, NULL);
	assert_null(bench->card.wrong);
	assert_int_equal(bench->wrong, 0);
	bench_free(bench);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_hostile_order),
		cmocka_unit_test(test_random_completions),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_rung),
		cmocka_unit_test(test_litmus),
		/* The longest last: a mutant ends at the first that fails. */
		cmocka_unit_test(test_places),
	};

	if (argc > 1)
		litmus_bursts = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
