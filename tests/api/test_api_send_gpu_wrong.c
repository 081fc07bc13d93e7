/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from a running kernel that says what cannot be, and callers who take its queue for theirs. */
#include "api_send_gpu.h"

#include <stdatomic.h>

/* Lengths that cannot be: those frames stay, their slots come back, all others go. */
static void hostile_lengths(void **state)
{
	static const uint32_t wrong[] = {
		0, 1, 59, FRAME_MOST + 1, 65535, 65536 + 100, UINT32_MAX
	};
	const uint64_t all = 100000;
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_error error = { 0 };
	struct gdrcap_session *session;
	struct gdrcap_tx_counts counts;
	struct gdrcap_queue *queue;
	uint64_t seq = 0, next = 0, received = 0, bad = 0;
	struct gdrcap_gpu_tx tx;

	gpu_config(&config);
	session = api_create(config);
	queue = gdrcap_get_queue(session, 0);
	tx = view_of(session);
	api_start(session);
	while (seq < all) {
		const int n = gdrcap_gpu_tx_reserve(tx, seq, 32);
		int got;

		for (int i = 0; i < n; i++) {
			const uint64_t number = seq + (uint64_t)i;
			uint32_t bytes = fill(gdrcap_gpu_tx_data(tx, number), number);

			if (number % 5 == 3) {
				bytes = wrong[number / 5 % (sizeof(wrong) / sizeof(wrong[0]))];
				bad++;
			}
			if (bytes) /* else nobody says it: the slot's last frame had one */
				gdrcap_gpu_tx_set_bytes(tx, number, bytes);
		}
		seq = gdrcap_gpu_tx_submit(tx, seq, n);
		got = receive(queue, &next, true);
		assert_true(got >= 0);
		received += (uint64_t)got;
	}
	while (received < seq - bad) {
		const int got = receive(queue, &next, true);

		assert_true(got >= 0);
		received += (uint64_t)got;
	}
	assert_int_equal(gdrcap_stop(session, &error), 0);
	counts = counts_of(session);
	assert_int_equal(counts.submitted, seq);
	assert_int_equal(counts.sent, received);
	assert_int_equal(counts.refused, bad);
	assert_non_null(gdrcap_get_message(session, 0));
	assert_non_null(strstr(gdrcap_get_message(session, 0), "the first is number 3, 0 bytes"));
	assert_null(gdrcap_get_message(session, 1));
	gdrcap_destroy(session);
}

/* A count that cannot be ends the run, and tells the kernel; what went before is received. */
static void hostile_counts(void **state)
{
	enum { BEFORE = 100 };
	const uint64_t jump[] = { UINT64_MAX, BEFORE - 1, 0, UINT64_C(1) << 63, 1000000, 1 };

	for (size_t i = 0; i < sizeof(jump) / sizeof(jump[0]); i++) {
		API_FREED struct gdrcap_config *config = NULL;
		struct gdrcap_error error = { 0 };
		struct gdrcap_session *session;
		struct kernel kernel;
		uint64_t next = 0;

		gpu_config(&config);
		session = api_create(config);
		api_start(session);
		kernel_start(&kernel, session, BEFORE);
		while (next < BEFORE)
			assert_true(receive(gdrcap_get_queue(session, 0), &next, false) >= 0);
		kernel_join(&kernel);
		gdrcap_gpu_tx_publish(kernel.tx, jump[i] == 1 ? *kernel.tx.room + 1 : jump[i]);
		while (gdrcap_gpu_tx_reserve(kernel.tx, BEFORE, 1) >= 0)
			sched_yield();
		api_failed(gdrcap_stop(session, &error), -EPROTO, &error,
			   "send queue 0: its kernel submitted frames up to number");
		assert_int_equal(receive(gdrcap_get_queue(session, 0), &next, false), -ESHUTDOWN);
		assert_int_equal(counts_of(session).sent, BEFORE);
		assert_int_equal(counts_of(session).submitted, BEFORE);
		gdrcap_destroy(session);
	}
}

struct vandal {
	struct gdrcap_gpu_tx tx;
	struct gdrcap_session *session;
	uint32_t seed;
	_Atomic bool wild; /* no count holds it any more */
	_Atomic bool stop;
	pthread_t thread;
};

/* Writes at random whatever a kernel can write that it shares; at first counts that may be. */
static void *vandal_run(void *arg)
{
	struct vandal *vandal = arg;
	const struct gdrcap_gpu_tx tx = vandal->tx;
	uint64_t random = vandal->seed * 0x9e3779b97f4a7c15u + 1;

	for (uint64_t i = 0; !atomic_load(&vandal->stop); i++) {
		struct gdrcap_gpu_tx_slot *slot;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		gdrcap_gpu_tx_set_bytes(tx, random >> 20,
					random & 64 ? (uint32_t)(random >> 32)
						    : (uint32_t)(random >> 32) % 256);
		slot = (struct gdrcap_gpu_tx_slot *)(uintptr_t)&tx.slots[random >> 9 & tx.mask];
		*(uint8_t *volatile *)&slot->data = (uint8_t *)(uintptr_t)random;
		*(volatile uint64_t *)&slot->before = random;
		*(volatile uint64_t *)(uintptr_t)tx.room = random >> 1;
		if (atomic_load(&vandal->wild))
			gdrcap_gpu_tx_publish(tx, random);
		else if (i % 64 == 0 &&
			 gdrcap_gpu_tx_first(tx) < counts_of(vandal->session).submitted + 1000)
			gdrcap_gpu_tx_publish(tx, gdrcap_gpu_tx_first(tx) + random % 16);
	}
	return NULL;
}

/* Nothing that is written there crashes the session, or sends what is no frame of the queue's. */
static void hostile_words(void **state)
{
	for (uint32_t round = 0; round < 10; round++) {
		API_FREED struct gdrcap_config *config = NULL;
		struct vandal vandal = { .seed = round + 1 };
		struct gdrcap_session *session;
		struct gdrcap_tx_counts counts;
		struct gdrcap_error error = { 0 };
		struct gdrcap_queue *queue;
		uint64_t received = 0;
		int n;

		gpu_config(&config);
		session = api_create(config);
		queue = gdrcap_get_queue(session, 0);
		vandal.tx = view_of(session);
		vandal.session = session;
		api_start(session);
		assert_int_equal(pthread_create(&vandal.thread, NULL, vandal_run, &vandal), 0);
		do {
			const struct gdrcap_batch *batch[8];

			n = gdrcap_wait(queue, batch, 8, 10000);
			for (int b = 0; b < n; b++)
				for (uint32_t i = 0; i < batch[b]->count; i++, received++) {
					assert_true(gdrcap_frame_bytes(batch[b], i) >= 60);
					assert_true(gdrcap_frame_bytes(batch[b], i) <= FRAME_MOST);
					/* what the queue's slots were filled with at first */
					for (uint32_t k = 0; k < 60; k++)
						assert_int_equal(gdrcap_frame(batch[b], i)[k],
								 0x55);
				}
			gdrcap_release(queue, batch, n > 0 ? (unsigned int)n : 0);
			if (received > 100 && counts_of(session).refused)
				atomic_store(&vandal.wild, true);
		} while (n >= 0);
		api_failed(gdrcap_stop(session, &error), -EPROTO, &error, "never had slots");
		atomic_store(&vandal.stop, true);
		assert_int_equal(pthread_join(vandal.thread, NULL), 0);
		counts = counts_of(session);
		assert_int_equal(counts.sent, received);
		assert_int_equal(counts.submitted, counts.sent + counts.unsent + counts.refused);
		gdrcap_destroy(session);
	}
}

/* What the caller cannot do there, and what is no queue for a kernel. */
static void mistakes(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_tx_frame frame = { 0 };
	struct gdrcap_error error = { 0 };
	struct gdrcap_session *session;
	struct gdrcap_tx_done done;
	struct gdrcap_gpu_tx view;
	uint8_t longer[sizeof(view) + 8];
	struct gdrcap_tx *tx;
	void *memory = aligned_alloc(65536, 65536);

	gpu_config(&config);
	session = api_create(config);
	tx = gdrcap_get_tx(session, 0);
	assert_non_null(tx);
	assert_null(gdrcap_get_tx(session, 1));
	assert_int_equal(gdrcap_tx_reserve(tx, &frame, 1), -EINVAL);
	assert_int_equal(gdrcap_tx_cancel(tx, &frame, 1), -EINVAL);
	assert_int_equal(gdrcap_tx_poll(tx, &done, 1), -EINVAL);
	assert_int_equal(gdrcap_tx_fd(tx), -EINVAL);
	api_failed(gdrcap_tx_submit(tx, &frame, 1, &error), -EINVAL, &error, "sender: gpu");
	api_failed(gdrcap_tx_submit_after(tx, &frame, 1, NULL, &error), -EINVAL, &error,
		   "sender: gpu");
	api_failed(gdrcap_tx_register(session, memory, 65536, GDRCAP_MEMORY_HOST, &error), -ENOTSUP,
		   &error, "one piece");
	assert_int_equal(gdrcap_get_gpu_tx(NULL, &view, sizeof(view)), -EINVAL);
	assert_int_equal(gdrcap_get_gpu_tx(tx, NULL, sizeof(view)), -EINVAL);
	assert_int_equal(gdrcap_get_gpu_tx(tx, &view, 7), -EINVAL);
	memset(longer, 0xff, sizeof(longer));
	assert_int_equal(
		gdrcap_get_gpu_tx(tx, (struct gdrcap_gpu_tx *)(void *)longer, sizeof(longer)), 0);
	assert_int_equal(longer[sizeof(longer) - 1], 0);
	gdrcap_destroy(session);
	api_set(config, "sender", "host");
	session = api_create(config);
	assert_int_equal(gdrcap_get_gpu_tx(gdrcap_get_tx(session, 0), &view, sizeof(view)),
			 -EINVAL);
	gdrcap_destroy(session);
	api_set(config, "sender", "gpu");
	api_set(config, "port", "net_null0");
	api_unset(config, "tx_port");
	api_create_fails(config, -EINVAL, "needs a port to send from");
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_lengths),
		cmocka_unit_test(hostile_counts),
		cmocka_unit_test(hostile_words),
		cmocka_unit_test(mistakes),
	};

	return cmocka_run_group_tests_name("send_gpu_wrong", tests, NULL, NULL);
}
