/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from a running kernel, for which a CPU thread stands: the same functions, compiled for the host. */
#include "api.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include <gdrcap_device_tx.cuh>

#define FRAME_MOST (API_FRAME - 4u)

static void gpu_config(struct gdrcap_config **config)
{
	gdrcap_config_free(*config);
	*config = gdrcap_config_new();
	assert_non_null(*config);
	api_set(*config, "port", "ring:test");
	api_set(*config, "tx_port", "ring:test");
	api_set(*config, "gpu", "host");
	api_set(*config, "frame.size", "%u", API_FRAME);
	api_set(*config, "consumer", "host");
	api_set(*config, "sender", "gpu");
}

static struct gdrcap_gpu_tx view_of(struct gdrcap_session *session)
{
	struct gdrcap_gpu_tx view;

	assert_int_equal(gdrcap_get_gpu_tx(gdrcap_get_tx(session, 0), &view, sizeof(view)), 0);
	assert_int_equal(view.bytes_max, FRAME_MOST);
	return view;
}

static struct gdrcap_tx_counts counts_of(struct gdrcap_session *session)
{
	struct gdrcap_tx_counts counts;

	assert_int_equal(gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts)), 0);
	assert_int_equal(gdrcap_get_tx_counts(session, 1, &counts, sizeof(counts)), -ENOENT);
	assert_int_equal(gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts)), 0);
	return counts;
}

/* ---- frames: each byte follows from the number ---- */

static uint32_t bytes_of(uint64_t number)
{
	return 60 + (uint32_t)(number * 31 % (FRAME_MOST - 60 + 1));
}

static uint8_t byte_of(uint64_t number, uint32_t i)
{
	return (uint8_t)(number * 7 + (number >> 8) * 13 + i);
}

static uint32_t fill(uint8_t *data, uint64_t number)
{
	const uint32_t bytes = bytes_of(number);

	for (uint32_t i = sizeof(number); i < bytes; i++)
		data[i] = byte_of(number, i);
	memcpy(data, &number, sizeof(number));
	return bytes;
}

/* Takes what is there: frames of rising numbers, each whole and none twice; without `gaps` all of them. How
 * many, or a negative errno. */
static int receive(struct gdrcap_queue *queue, uint64_t *next, bool gaps)
{
	const struct gdrcap_batch *batch[8];
	const int n = gdrcap_wait(queue, batch, 8, 10000);
	int frames = 0;

	for (int b = 0; b < n; b++)
		for (uint32_t i = 0; i < batch[b]->count; i++, frames++) {
			const uint8_t *at = gdrcap_frame(batch[b], i);
			uint64_t number;

			memcpy(&number, at, sizeof(number));
			if (gaps)
				assert_true(number >= *next);
			else
				assert_int_equal(number, *next);
			assert_int_equal(gdrcap_frame_bytes(batch[b], i), bytes_of(number));
			for (uint32_t k = sizeof(number); k < bytes_of(number); k++)
				assert_int_equal(at[k], byte_of(number, k));
			*next = number + 1;
		}
	if (n < 0)
		return n;
	gdrcap_release(queue, batch, (unsigned int)n);
	return frames;
}

/* ---- the kernel ---- */

struct kernel {
	struct gdrcap_gpu_tx tx;
	uint64_t count;	   /* frames to be sent */
	uint64_t sent;	   /* submitted by it */
	uint64_t returned; /* slots that said whom they had before */
	uint64_t wrong;	   /* of them not in the order of a wire */
	pthread_t thread;
};

/* As a block: until it has sent its frames, or is told to leave. */
static void *kernel_run(void *arg)
{
	struct kernel *kernel = arg;
	const struct gdrcap_gpu_tx tx = kernel->tx;
	uint64_t seq = gdrcap_gpu_tx_first(tx);

	while (kernel->sent < kernel->count) {
		const uint64_t left = kernel->count - kernel->sent;
		/* It may submit fewer than it was given, and leave the rest for later. */
		const int n = gdrcap_gpu_tx_reserve(tx, seq, 1 + (int)(seq % 97));
		const int used = (uint64_t)n > left ? (int)left : n;

		if (n < 0)
			return NULL;
		if (n == 0) {
			sched_yield();
			continue;
		}
		for (int i = 0; i < used; i++) {
			const uint64_t number = seq + (uint64_t)i;
			const uint64_t back = gdrcap_gpu_tx_back(tx, number);

			kernel->wrong += back != (number < tx.count ? 0 : number - tx.count + 1);
			kernel->returned += back != 0;
			gdrcap_gpu_tx_set_bytes(tx, number,
						fill(gdrcap_gpu_tx_data(tx, number), number));
		}
		seq = gdrcap_gpu_tx_submit(tx, seq, used);
		kernel->sent += (uint64_t)used;
	}
	return NULL;
}

static void kernel_start(struct kernel *kernel, struct gdrcap_session *session, uint64_t count)
{
	*kernel = (struct kernel){ .tx = view_of(session), .count = count };
	assert_int_equal(pthread_create(&kernel->thread, NULL, kernel_run, kernel), 0);
}

static void kernel_join(struct kernel *kernel)
{
	assert_int_equal(pthread_join(kernel->thread, NULL), 0);
	assert_int_equal(kernel->wrong, 0);
}

/* ---- tests ---- */

/* Many times the slots, by two kernels one after the other: each frame comes once, whole, in order. */
static void all_arrive(void **state)
{
	const uint64_t all = 400000, first = 150000;
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_session *session;
	struct gdrcap_tx_counts counts;
	struct gdrcap_queue *queue;
	struct kernel kernel;
	uint64_t next = 0;

	gpu_config(&config);
	session = api_create(config);
	queue = gdrcap_get_queue(session, 0);
	/* It may run, and submit, before the start. */
	kernel_start(&kernel, session, first);
	api_start(session);
	while (next < first)
		assert_true(receive(queue, &next, false) >= 0);
	kernel_join(&kernel);
	kernel_start(&kernel, session, all - first);
	while (next < all)
		assert_true(receive(queue, &next, false) >= 0);
	kernel_join(&kernel);
	assert_int_equal(kernel.returned, all - first);
	assert_true(kernel.tx.count > 1000 && kernel.tx.count < first);
	api_stop(session);
	assert_int_equal(gdrcap_gpu_tx_reserve(kernel.tx, all, 1), -1);
	assert_int_equal(receive(queue, &next, false), -ESHUTDOWN);
	counts = counts_of(session);
	assert_int_equal(counts.submitted, all);
	assert_int_equal(counts.sent, all);
	assert_int_equal(counts.unsent + counts.refused + counts.failed, 0);
	gdrcap_destroy(session);
}

/* Nobody receives: there is no room, which a number says; then there is. */
static void back_pressure(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_session *session;
	struct gdrcap_gpu_tx tx;
	uint64_t seq = 0, next = 0;
	int n;

	gpu_config(&config);
	session = api_create(config);
	tx = view_of(session);
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, 0, INT32_MAX), (int)tx.count);
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, 0, 0), 0);
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, 0, -1), 0);
	/* not the queue's number */
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, tx.count + 1, 1), 0);
	api_start(session);
	while ((n = gdrcap_gpu_tx_reserve(tx, seq, 50)) > 0) {
		for (int i = 0; i < n; i++)
			gdrcap_gpu_tx_set_bytes(
				tx, seq + (uint64_t)i,
				fill(gdrcap_gpu_tx_data(tx, seq + (uint64_t)i), seq + (uint64_t)i));
		seq = gdrcap_gpu_tx_submit(tx, seq, n);
	}
	assert_int_equal(n, 0);
	assert_int_equal(seq, tx.count);
	while (next < seq)
		assert_true(receive(gdrcap_get_queue(session, 0), &next, false) >= 0);
	while (gdrcap_gpu_tx_reserve(tx, seq, 1) == 0)
		sched_yield();
	assert_int_equal(gdrcap_gpu_tx_reserve(tx, seq, 1), 1);
	api_stop(session);
	gdrcap_destroy(session);
}

/* A stop, or the run's own end, at any moment: what left was received, and the rest is accounted for. */
static void stop_in_mid_stream(void **state)
{
	for (uint32_t round = 0; round < 20; round++) {
		API_FREED struct gdrcap_config *config = NULL;
		struct gdrcap_error error = { 0 };
		struct gdrcap_session *session;
		struct gdrcap_tx_counts counts;
		struct gdrcap_queue *queue;
		struct kernel kernel;
		uint64_t next = 0;

		gpu_config(&config);
		if (round % 4 == 3)
			api_set(config, "seconds", "0.05");
		session = api_create(config);
		queue = gdrcap_get_queue(session, 0);
		api_start(session);
		kernel_start(&kernel, session, UINT64_MAX);
		while (round % 4 != 3 && next < round * 1000)
			assert_true(receive(queue, &next, false) >= 0);
		if (round % 4 == 3) {
			while (receive(queue, &next, false) >= 0)
				;
			kernel_join(&kernel); /* which hears of the end before the stop */
			assert_int_equal(gdrcap_stop(session, &error), 0);
		} else {
			assert_int_equal(gdrcap_stop(session, &error), 0);
			kernel_join(&kernel);
			while (receive(queue, &next, false) >= 0)
				;
		}
		counts = counts_of(session);
		assert_int_equal(counts.sent, next);
		assert_int_equal(counts.submitted, counts.sent + counts.unsent);
		assert_true(counts.submitted <= kernel.sent);
		/* no more than what it had reserved when it was told came too late */
		assert_true(kernel.sent - counts.submitted <= kernel.tx.count);
		assert_int_equal(counts.refused, 0);
		gdrcap_destroy(session);
	}
}

/* What was submitted before the stop goes out, although nobody looked at the queue in between. */
static void all_before_the_stop(void **state)
{
	for (int round = 0; round < 10; round++) {
		API_FREED struct gdrcap_config *config = NULL;
		struct gdrcap_session *session;
		struct kernel kernel;
		uint64_t next = 0;

		gpu_config(&config);
		session = api_create(config);
		api_start(session);
		kernel_start(&kernel, session, 500);
		kernel_join(&kernel);
		api_stop(session);
		assert_int_equal(counts_of(session).sent, 500);
		assert_int_equal(counts_of(session).unsent, 0);
		while (receive(gdrcap_get_queue(session, 0), &next, false) >= 0)
			;
		assert_int_equal(next, 500);
		gdrcap_destroy(session);
	}
}

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
	uint32_t seed;
	_Atomic bool stop;
	pthread_t thread;
};

/* Writes at random whatever a kernel can write that it shares, counts with small steps too. */
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
		if (i % 64 == 0)
			gdrcap_gpu_tx_publish(tx, gdrcap_gpu_tx_first(tx) + random % 16);
		if (i > 20000)
			gdrcap_gpu_tx_publish(tx, random);
	}
	return NULL;
}

/* Nothing that is written there crashes the session, or sends what is no frame of the queue's. */
static void hostile_words(void **state)
{
	uint64_t all = 0, refused = 0;

	for (uint32_t round = 0; round < 10; round++) {
		API_FREED struct gdrcap_config *config = NULL;
		struct vandal vandal = { .seed = round };
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
		} while (n >= 0);
		api_failed(gdrcap_stop(session, &error), -EPROTO, &error, "never had slots");
		atomic_store(&vandal.stop, true);
		assert_int_equal(pthread_join(vandal.thread, NULL), 0);
		counts = counts_of(session);
		assert_int_equal(counts.sent, received);
		assert_int_equal(counts.submitted, counts.sent + counts.unsent + counts.refused);
		all += received;
		refused += counts.refused;
		gdrcap_destroy(session);
	}
	/* it tried */
	assert_true(all > 0);
	assert_true(refused > 0);
}

/* A port whose other end never comes: what waits is counted. It could send frames in two pieces. */
static void nobody_takes(void **state)
{
	API_FREED struct gdrcap_config *config = gdrcap_config_new();
	char folder[] = "/tmp/gdrcap-send-XXXXXX", path[64];
	struct gdrcap_tx_counts counts = { 0 };
	struct gdrcap_session *session;
	struct kernel kernel;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	api_set(config, "tx_port", "net_memif0,role=server,socket-abstract=no,socket=%s", path);
	api_set(config, "gpu", "host");
	api_set(config, "frame.size", "%u", API_FRAME);
	api_set(config, "sender", "gpu");
	session = api_create(config);
	api_start(session);
	kernel_start(&kernel, session, 100);
	kernel_join(&kernel);
	while (counts.stalled == 0)
		counts = counts_of(session);
	assert_int_equal(gdrcap_stop(session, NULL), 0);
	counts = counts_of(session);
	assert_int_equal(counts.submitted, 100);
	assert_int_equal(counts.sent, 0);
	assert_int_equal(counts.unsent, 100);
	assert_non_null(
		strstr(gdrcap_get_message(session, 0), "100 frames were submitted and not"));
	gdrcap_destroy(session);
	rmdir(folder);
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
		cmocka_unit_test(all_arrive),	      cmocka_unit_test(back_pressure),
		cmocka_unit_test(stop_in_mid_stream), cmocka_unit_test(all_before_the_stop),
		cmocka_unit_test(hostile_lengths),    cmocka_unit_test(hostile_counts),
		cmocka_unit_test(hostile_words),      cmocka_unit_test(nobody_takes),
		cmocka_unit_test(mistakes),
	};

	return cmocka_run_group_tests_name("send_gpu", tests, NULL, NULL);
}
