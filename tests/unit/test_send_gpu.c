/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ROOM, SUBMIT and STOP between CPU threads, the kernel's by the functions that a kernel calls; and what a
 * kernel can say that is not so. Usage: test_send_gpu [FRAMES]. test_send_gpu_mutants.py builds it with the
 * thread sanitizer, which finds a weakened barrier on any CPU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "nap.h"
#include "send_litmus.h"
#include "test_long.h"

/* In PLAY_NS; beside others' work at least LEAST. */
static uint64_t frames_most = 300000;
#define LEAST 2000u
#define PLAY_NS (test_cases(10, 1) * 100000000)

static void *zeroed(size_t bytes)
{
	void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	assert_non_null(memory);
	memset(memory, 0, bytes);
	return memory;
}

static struct send_litmus *litmus_new(uint32_t slots)
{
	struct send_litmus *litmus = calloc(1, sizeof(*litmus));

	assert_non_null(litmus);
	assert_int_equal(litmus_init(litmus, slots, zeroed(send_gpu_bytes(slots)),
				     zeroed((size_t)slots * LITMUS_WORDS * 8)),
			 0);
	return litmus;
}

static void litmus_free(struct send_litmus *litmus)
{
	free(litmus->gpu.room);
	free(litmus->frames);
	send_gpu_fini(&litmus->gpu);
	free(litmus);
}

struct kernel {
	struct gdrcap_gpu_tx tx;
	uint64_t submitted, wrong;
	pthread_t thread;
};

/* Some of what it reserves: the frames that it had no time for stay its own. */
static uint64_t kernel_send(struct kernel *kernel, uint64_t seq, int count)
{
	for (int i = 0; i < count; i++) {
		const uint64_t number = seq + (uint64_t)i;

		for (uint32_t w = 0; w < LITMUS_WORDS; w++) {
			kernel->wrong += litmus_wrong_word(kernel->tx, number, w);
			litmus_write_word(kernel->tx, number, w);
		}
		gdrcap_gpu_tx_set_bytes(kernel->tx, number, litmus_bytes(number));
	}
	return gdrcap_gpu_tx_submit(kernel->tx, seq, count);
}

static void *kernel_main(void *arg)
{
	struct kernel *kernel = arg;
	uint64_t seq = gdrcap_gpu_tx_first(kernel->tx);

	for (;;) {
		const int n = gdrcap_gpu_tx_reserve(kernel->tx, seq, 1 + (int)(seq % 41));

		if (n < 0)
			break;
		if (n == 0)
			nap();
		else
			seq = kernel_send(kernel, seq, 1 + (int)(seq * 7) % n);
	}
	kernel->submitted = seq;
	return NULL;
}

static void play(uint32_t slots)
{
	struct send_litmus *litmus = litmus_new(slots);
	const uint64_t until = now_ns() + PLAY_NS;
	struct kernel kernel = { .tx = send_gpu_view(&litmus->gpu, 1514) };
	uint64_t taken = 0;

	assert_int_equal(pthread_create(&kernel.thread, NULL, kernel_main, &kernel), 0);
	while (taken < frames_most && (taken < LEAST || now_ns() <= until)) {
		const uint32_t n = litmus_round(litmus);

		taken += n;
		if (!n)
			nap();
	}
	send_gpu_stop(&litmus->gpu);
	pthread_join(kernel.thread, NULL);
	while (litmus_round(litmus))
		;
	assert_int_equal(kernel.wrong, 0);
	assert_int_equal(litmus->wrong, 0);
	/* the end loses none */
	assert_int_equal(litmus->gpu.accepted, kernel.submitted);
	litmus_free(litmus);
}

static void order(void **state)
{
	play(1);
	play(2);
	play(17);
	play(256);
}

/* Slots in another order than they were had; each is where its new number says, and names the old one. */
static void numbers(void **state)
{
	struct send_litmus *litmus = litmus_new(4);
	struct kernel kernel = { .tx = send_gpu_view(&litmus->gpu, 1514) };
	const struct gdrcap_gpu_tx tx = kernel.tx;

	assert_int_equal(gdrcap_gpu_tx_first(tx), 0);
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, 0, 100), 4);
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, 0, 3), 3);
	for (uint64_t i = 0; i < 4; i++) {
		assert_ptr_equal(gdrcap_gpu_tx_data(tx, i), litmus_frame(litmus, (uint32_t)i));
		assert_int_equal(gdrcap_gpu_tx_back(tx, i), 0);
	}
	assert_int_equal(kernel_send(&kernel, 0, 4), 4);
	assert_int_equal(gdrcap_gpu_tx_first(tx), 4);
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, 4, 100), 0);
	assert_int_equal(litmus_take(litmus, 100), 4);
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, 4, 100), 0);
	send_gpu_give(&litmus->gpu, 2, (uint8_t *)litmus_frame(litmus, 2));
	send_gpu_give(&litmus->gpu, 0, (uint8_t *)litmus_frame(litmus, 0));
	/* not told yet */
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, 4, 100), 0);
	send_gpu_tell(&litmus->gpu);
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, 4, 100), 2);
	assert_int_equal(gdrcap_gpu_tx_back(tx, 4), 3);
	assert_int_equal(gdrcap_gpu_tx_back(tx, 5), 1);
	assert_ptr_equal(gdrcap_gpu_tx_data(tx, 4), litmus_frame(litmus, 2));
	assert_int_equal(kernel_send(&kernel, 4, 1), 5);
	assert_int_equal(kernel.wrong, 0);
	assert_int_equal(litmus_take(litmus, 100), 1);
	assert_int_equal(litmus->wrong, 0);
	/* another number than the queue's has no slot */
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, 7, 100), 0);
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, UINT64_MAX, 100), 0);
	/* STOP stays, whatever comes back after it */
	send_gpu_stop(&litmus->gpu);
	send_gpu_stop(&litmus->gpu);
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, 5, 100), -1);
	send_gpu_give(&litmus->gpu, 1, (uint8_t *)litmus_frame(litmus, 1));
	send_gpu_tell(&litmus->gpu);
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, 5, 100), -1);
	litmus_free(litmus);
}

/* Whatever the count says, no more is taken than what there was room for, and nothing twice. */
static void counts_that_cannot_be(void **state)
{
	struct send_litmus *litmus = litmus_new(8);
	struct kernel kernel = { .tx = send_gpu_view(&litmus->gpu, 1514) };
	uint64_t count;

	kernel_send(&kernel, 0, 5);
	assert_int_equal(litmus_take(litmus, 3), 3);
	for (uint64_t says = 0; says < 40; says++) {
		gdrcap_gpu_tx_publish(kernel.tx, says);
		assert_int_equal(send_gpu_look(&litmus->gpu, &count), says >= 3 && says <= 8);
		gdrcap_gpu_tx_publish(kernel.tx, 0 - says);
		assert_int_equal(send_gpu_look(&litmus->gpu, &count), false);
		gdrcap_gpu_tx_publish(kernel.tx, (UINT64_C(1) << 63) + says);
		assert_int_equal(send_gpu_look(&litmus->gpu, &count), false);
		gdrcap_gpu_tx_publish(kernel.tx, (UINT64_C(1) << 32) + says);
		assert_int_equal(send_gpu_look(&litmus->gpu, &count), false);
	}
	/* Slots that came back and were not told are no room. */
	litmus_give(litmus, 1);
	send_gpu_give(&litmus->gpu, litmus->held[0], NULL);
	gdrcap_gpu_tx_publish(kernel.tx, 9);
	assert_true(send_gpu_look(&litmus->gpu, &count));
	assert_int_equal(count, 6);
	gdrcap_gpu_tx_publish(kernel.tx, 10);
	assert_false(send_gpu_look(&litmus->gpu, &count));
	litmus_free(litmus);
}

/* LATE: a stream's order, let go by the end, is for slots that there are not: the rest is nobody's. */
static void late(void **state)
{
	struct send_litmus *litmus = litmus_new(8);
	struct kernel kernel = { .tx = send_gpu_view(&litmus->gpu, 1514) };
	uint64_t count;

	kernel_send(&kernel, 0, 5);
	assert_int_equal(litmus_take(litmus, 3), 3);
	gdrcap_gpu_tx_publish(kernel.tx, 9);
	assert_false(send_gpu_look(&litmus->gpu, &count));
	send_gpu_by_stream(&litmus->gpu);
	/* the run goes on: it is an error */
	assert_false(send_gpu_look(&litmus->gpu, &count));
	send_gpu_stop(&litmus->gpu);
	assert_true(send_gpu_look(&litmus->gpu, &count));
	assert_int_equal(count, 5);
	/* less than there was is one, whoever says so */
	gdrcap_gpu_tx_publish(kernel.tx, 2);
	assert_false(send_gpu_look(&litmus->gpu, &count));
	litmus_free(litmus);
	/* and so is more than there is room for, of a kernel that runs */
	litmus = litmus_new(8);
	kernel.tx = send_gpu_view(&litmus->gpu, 1514);
	send_gpu_stop(&litmus->gpu);
	gdrcap_gpu_tx_publish(kernel.tx, 9);
	assert_false(send_gpu_look(&litmus->gpu, &count));
	litmus_free(litmus);
}

/* A length that nobody says is not that of the frame before. */
static void lengths(void **state)
{
	for (uint32_t slots = 1; slots < 20; slots++) {
		struct send_litmus *litmus = litmus_new(slots);
		const struct gdrcap_gpu_tx tx = send_gpu_view(&litmus->gpu, 1514);
		uint32_t bytes, slot;

		for (uint64_t seq = 0; seq < 100; seq++) {
			if (seq % 3)
				gdrcap_gpu_tx_set_bytes(tx, seq, 60 + (uint32_t)seq);
			gdrcap_gpu_tx_submit(tx, seq, 1);
			slot = send_gpu_take(&litmus->gpu, &bytes);
			assert_int_equal(bytes, seq % 3 ? 60 + seq : 0);
			/* once it was read, it is nobody's */
			gdrcap_gpu_tx_set_bytes(tx, seq, 99999);
			send_gpu_give(&litmus->gpu, slot, NULL);
			send_gpu_tell(&litmus->gpu);
		}
		litmus_free(litmus);
	}
}

static void a_threads_queue(void **state)
{
	const struct send_gpu none = { 0 };

	send_gpu_stop(&none);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_threads_queue),
		cmocka_unit_test(numbers),
		cmocka_unit_test(counts_that_cannot_be),
		cmocka_unit_test(lengths),
		cmocka_unit_test(late),
		cmocka_unit_test(order),
	};

	if (argc > 1)
		frames_most = strtoull(argv[1], NULL, 0);
	return cmocka_run_group_tests_name("send_gpu", tests, NULL, NULL);
}
