/* SPDX-License-Identifier: BSD-3-Clause */
/* The consumer of gdrcap_get_gpu_queue() and memory that is the caller's own. CPU threads do by
 * hand what gdrcap_device.cuh does in a kernel. */
#include "api.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCKS 3u
#define QUEUES 2u
#define MIB ((size_t)1 << 20)

struct block {
	struct gdrcap_gpu_queue queue;
	uint32_t index;
	uint64_t batches, frames, wrong, outside;
	uint8_t *from, *to; /* the caller's memory, or NULL */
	pthread_t thread;
};

static uint64_t batch_tag(const struct gdrcap_gpu_queue *queue, uint64_t seq)
{
	return ((seq >> __builtin_popcount(queue->burst_mask)) + 1) & 0xffff;
}

static void batch_use(struct block *block, uint64_t word)
{
	const struct gdrcap_gpu_queue *queue = &block->queue;
	const struct gdrcap_pkt *pkt = queue->pkts + ((uint32_t)word & queue->pkt_mask);
	const uint32_t count = (uint32_t)(word >> 32) & 0x3fff;

	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *frame = queue->data + (size_t)pkt[i].slot * queue->slot_bytes +
				       (pkt[i].offset & ~GDRCAP_PKT_CUT);
		uint64_t sequence;
		uint32_t stream;

		block->frames++;
		block->wrong += !api_frame(frame, pkt[i].len, &stream, &sequence);
		block->outside +=
			block->from && (frame < block->from || frame + pkt[i].len > block->to);
	}
	block->batches++;
	/* Nothing splits frames here. */
	block->wrong += queue->heads || queue->head_data || queue->head_slot_bytes;
}

/* As a thread block: takes every BLOCKS-th batch until it is told to leave and there is none. */
static void *block_run(void *arg)
{
	struct block *block = arg;
	const struct gdrcap_gpu_queue *queue = &block->queue;

	for (uint64_t seq = block->index;; seq += BLOCKS) {
		const uint64_t tag = batch_tag(queue, seq);
		uint64_t word;
		uint32_t stop;

		for (;;) {
			stop = __atomic_load_n(queue->stop, __ATOMIC_RELAXED);
			word = __atomic_load_n(
				&queue->ready[(seq & queue->burst_mask) * queue->ready_stride],
				__ATOMIC_ACQUIRE);
			if (word >> 48 == tag)
				break;
			if (stop)
				return NULL;
			sched_yield();
		}
		batch_use(block, word);
		__atomic_store_n(&queue->done[(seq & queue->burst_mask) * queue->done_stride],
				 tag << 48, __ATOMIC_RELEASE);
	}
}

static void blocks_start(struct block *block, struct gdrcap_session *session, uint32_t queues)
{
	for (uint32_t i = 0; i < queues * BLOCKS; i++) {
		memset(&block[i], 0, sizeof(block[i]));
		block[i].index = i % BLOCKS;
		assert_int_equal(gdrcap_get_gpu_queue(gdrcap_get_queue(session, i / BLOCKS),
						      &block[i].queue, sizeof(block[i].queue)),
				 0);
		pthread_create(&block[i].thread, NULL, block_run, &block[i]);
	}
}

static void blocks_join(struct block *block, uint32_t queues, struct block *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (uint32_t i = 0; i < queues * BLOCKS; i++) {
		pthread_join(block[i].thread, NULL);
		sum->batches += block[i].batches;
		sum->frames += block[i].frames;
		sum->wrong += block[i].wrong;
	}
}

static void stats_are(const struct gdrcap_session *session, const struct block *sum)
{
	struct gdrcap_summary summary;

	/* What was given back last is taken back in a moment. */
	do {
		assert_int_equal(gdrcap_get_summary(session, &summary, sizeof(summary)), 0);
		sched_yield();
	} while (summary.in_flight);
	assert_true(summary.total.received == sum->frames);
	assert_true(summary.bursts == sum->batches);
	assert_int_equal(sum->wrong, 0);
}

static void kernel_of_the_caller(void **state)
{
	static const uint64_t runs[] = { 1, 100000, 0, 0 };

	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct block block[QUEUES * BLOCKS], sum;
		struct gdrcap_session *session;
		const struct gdrcap_batch *batch;
		struct gdrcap_config *config API_FREED = NULL;

		api_config(&config, "gpu", runs[i]);
		api_set(config, "queues", "%u", QUEUES);
		api_set(config, "streams", "4");
		session = api_create(config);
		/* Before or after the start. */
		if (i & 1)
			api_start(session);
		blocks_start(block, session, QUEUES);
		if (!(i & 1))
			api_start(session);
		assert_int_equal(gdrcap_poll(gdrcap_get_queue(session, 0), &batch, 1), -EINVAL);
		if (runs[i])
			api_wait_end(session);
		/* The stop tells the blocks to leave, and they leave nothing behind. */
		api_stop(session);
		blocks_join(block, QUEUES, &sum);
		if (runs[i])
			assert_true(sum.frames == runs[i]);
		stats_are(session, &sum);
		gdrcap_destroy(session);
	}
}

/* A kernel that hangs: the session still ends. */
static void kernel_that_takes_nothing(void **state)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;

	api_config(&config, "gpu", 10);
	session = api_create(config);
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	gdrcap_destroy(session);
}

static uint8_t *memory_map(size_t bytes)
{
	uint8_t *raw =
		mmap(NULL, bytes + MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(raw != MAP_FAILED);
	return raw;
}

static void memory_of_the_caller(void **state)
{
	const size_t bytes = 16 * MIB;
	uint8_t *raw = memory_map(bytes);
	uint8_t *memory = (uint8_t *)(((uintptr_t)raw + 65535) / 65536 * 65536);

	/* Twice: it is free for the next session. */
	for (int kind = GDRCAP_MEMORY_DEVICE; kind <= GDRCAP_MEMORY_HOST; kind++)
		for (int i = 0; i < 2; i++) {
			struct block block[BLOCKS], sum;
			struct gdrcap_session *session, *second;
			struct gdrcap_summary summary;
			struct gdrcap_error error = { 0 };
			struct gdrcap_config *config API_FREED = NULL;

			api_config(&config, "gpu", 30000);
			api_set(config, "memory", "%s", api_memory[kind]);
			gdrcap_config_set_memory(config, memory, bytes);
			session = api_create(config);
			gdrcap_get_summary(session, &summary, sizeof(summary));
			assert_true(summary.region_bytes == bytes);
			assert_int_equal(summary.memory, kind);
			/* One at a time. */
			assert_true(gdrcap_create(config, &second, &error) < 0);
			assert_true(strlen(error.text) > 0);
			assert_null(second);
			blocks_start(block, session, 1);
			for (uint32_t b = 0; b < BLOCKS; b++) {
				assert_ptr_equal(block[b].queue.data, memory);
				block[b].from = memory;
				block[b].to = memory + bytes;
			}
			api_start(session);
			api_wait_end(session);
			api_stop(session);
			blocks_join(block, 1, &sum);
			assert_true(sum.frames == 30000);
			for (uint32_t b = 0; b < BLOCKS; b++)
				assert_int_equal(block[b].outside, 0);
			stats_are(session, &sum);
			gdrcap_destroy(session);
			/* Frames were here, and it is still ours. */
			assert_int_not_equal(memory[128 + 12], 0);
			memset(memory, 0, bytes);
		}
	munmap(raw, bytes + MIB);
}

static void memory_that_is_refused(void **state)
{
	const size_t bytes = 16 * MIB;
	uint8_t *raw = memory_map(bytes);
	uint8_t *memory = (uint8_t *)(((uintptr_t)raw + 65535) / 65536 * 65536);
	struct gdrcap_config *config API_FREED = NULL;

	api_config(&config, "gpu", 1);
	api_set(config, "memory", "host");
	gdrcap_config_set_memory(config, memory + 4096, bytes);
	api_create_fails(config, -EINVAL, "64 KiB");
	gdrcap_config_set_memory(config, memory, bytes - 4096);
	api_create_fails(config, -EINVAL, "64 KiB");
	gdrcap_config_set_memory(config, memory, 0);
	api_create_fails(config, -EINVAL, "64 KiB");
	gdrcap_config_set_memory(config, memory, MIB);
	api_create_fails(config, -EINVAL, "gdrcap_config_set_memory: these ports");
	gdrcap_config_set_memory(config, memory, bytes);
	api_set(config, "pool", "16M");
	api_create_fails(config, -EINVAL, "leave pool out");
	/* What would fault is no memory. */
	for (int kind = GDRCAP_MEMORY_DEVICE; kind <= GDRCAP_MEMORY_HOST; kind++) {
		api_config(&config, "gpu", 1);
		api_set(config, "memory", "%s", api_memory[kind]);
		gdrcap_config_set_memory(config, memory, bytes);
		assert_int_equal(mprotect(memory, bytes, PROT_READ), 0);
		api_create_fails(config, -EFAULT, "cannot be written");
		assert_int_equal(mprotect(memory, bytes, PROT_READ | PROT_WRITE), 0);
		assert_int_equal(mprotect(memory + bytes - 65536, 65536, PROT_NONE), 0);
		api_create_fails(config, -EFAULT, "not all there");
		assert_int_equal(mprotect(memory + bytes - 65536, 65536, PROT_READ | PROT_WRITE),
				 0);
	}
	munmap(raw, bytes + MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_of_the_caller),
		cmocka_unit_test(kernel_that_takes_nothing),
		cmocka_unit_test(memory_of_the_caller),
		cmocka_unit_test(memory_that_is_refused),
	};

	const struct CMUnitTest fronted[] = {
		cmocka_unit_test(kernel_of_the_caller),
		cmocka_unit_test(kernel_that_takes_nothing),
	};

	return api_fronted() ? cmocka_run_group_tests(fronted, NULL, NULL)
			     : cmocka_run_group_tests(tests, NULL, NULL);
}
