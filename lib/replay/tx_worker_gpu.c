/* SPDX-License-Identifier: BSD-3-Clause */
/* A sender on the GPU: shared memory, and the sleeping thread beside it. */
#include "replay/tx_worker_gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_gpudev.h>
#include <rte_pause.h>

#include "base/device_order.h"
#include "base/log.h"
#include "base/patience.h"
#include "replay/tx_worker.h"

#define PAGE ((size_t)64 << 10)
#define NAP_NS 500000
#define LEAVE_MS 1000u /* after a stop; a kernel that died never says that it left */
#define LINE 128u

_Static_assert(2 * LINE + sizeof(struct send_place) +
			       KERNEL_SEND_MARKS_MAX * sizeof(struct sq_mark) + LINE <=
		       PAGE,
	       "one page has all that is shared");

/* ---- memory ---- */

static int shared_create(struct tx_gpu *gpu, struct gdrcap_error *error)
{
	uint8_t *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		return error_set(error, -ENOMEM, "no memory to share with the sending kernel");
	gpu->memory = memory;
	if (rte_gpu_mem_register(gpu->config.gpu, PAGE, memory) < 0)
		return error_set(
			error, -rte_errno,
			"the GPU refused to register %zu KiB of host memory: %s; raise the "
			"locked-memory limit (ulimit -l unlimited)",
			PAGE >> 10, rte_strerror(rte_errno));
	gpu->registered = true;
	gpu->words = (struct send_words *)memory;
	gpu->status = (struct send_status *)(memory + LINE);
	gpu->mark = (struct sq_mark *)(memory + 2 * LINE);
	gpu->place = (struct send_place *)(gpu->mark + KERNEL_SEND_MARKS_MAX);
	return 0;
}

/* The cycle of frame lengths with its sums. NULL: no memory. */
static struct send_size *sizes_make(const struct tx_worker *worker)
{
	const uint32_t count = worker->config.length_count;
	struct send_size *sizes = calloc((size_t)count + 1, sizeof(*sizes));
	uint64_t bytes = 0, payload = 0;

	for (uint32_t i = 0; sizes && i < count; i++) {
		sizes[i] = (struct send_size){ .length = worker->sizes[i].length,
					       .bytes = bytes,
					       .payload = payload };
		bytes += worker->sizes[i].length;
		payload += worker->sizes[i].payload;
	}
	if (sizes)
		sizes[count] = (struct send_size){ .bytes = bytes, .payload = payload };
	return sizes;
}

/* What the kernel reads for each frame lies in its own memory. */
static int tables_create(struct tx_gpu *gpu, const struct tx_worker *worker,
			 struct gdrcap_error *error)
{
	const struct tx_gpu_config *config = &gpu->config;
	const struct tx_own *own = worker->config.own;
	const size_t slots = (size_t)own->slot_count * sizeof(*own->slot),
		     sizes_bytes =
			     ((size_t)worker->config.length_count + 1) * sizeof(struct send_size);
	struct send_size *sizes = sizes_make(worker);
	int ret;

	gpu->sizes_at = (slots + LINE - 1) / LINE * LINE;
	if (!sizes)
		return error_set(error, -ENOMEM, "no memory for the frames' sizes");
	gpu->tables = rte_gpu_mem_alloc(config->gpu, gpu->sizes_at + sizes_bytes, LINE);
	if (!gpu->tables) {
		free(sizes);
		return error_set(error, -ENOMEM, "the GPU has no %zu KiB for a sender's tables: %s",
				 (gpu->sizes_at + sizes_bytes) >> 10, rte_strerror(rte_errno));
	}
	ret = config->ops->copy_in(config->device, gpu->tables, own->slot, slots);
	if (ret == 0)
		ret = config->ops->copy_in(config->device, gpu->tables + gpu->sizes_at, sizes,
					   sizes_bytes);
	free(sizes);
	return ret < 0 ? error_set(error, ret, "%s", kernel_error()) : 0;
}

int tx_gpu_create(struct tx_gpu *gpu, const struct tx_gpu_config *config,
		  const struct tx_worker *worker, struct gdrcap_error *error)
{
	void *bell;
	int ret;

	memset(gpu, 0, sizeof(*gpu));
	gpu->config = *config;
	if (worker->config.stream_count > KERNEL_SEND_STREAMS_MAX)
		return error_of_config(
			error,
			error_set(error, -ENOTSUP,
				  "sender.by: a kernel (gpu) sends up to %u streams a queue; give "
				  "fewer streams, more queues, or sender.by: cpu",
				  KERNEL_SEND_STREAMS_MAX));
	ret = shared_create(gpu, error);
	if (ret == 0)
		ret = tables_create(gpu, worker, error);
	if (ret < 0) {
		tx_gpu_destroy(gpu);
		return ret;
	}
	/* Refused, the thread rings: told, and no failure. */
	gpu->host_bell = worker->config.own->front.queue.bell;
	if (config->ops->map_register(config->device, gpu->host_bell, &bell, &gpu->bell_plain) < 0)
		snprintf(gpu->why, sizeof(gpu->why), "%s", kernel_error());
	else
		gpu->bell = bell;
	return 0;
}

void tx_gpu_destroy(struct tx_gpu *gpu)
{
	if (gpu->bell)
		gpu->config.ops->unmap_register(gpu->config.device, gpu->host_bell);
	if (gpu->tables && rte_gpu_mem_free(gpu->config.gpu, gpu->tables) < 0)
		log_warning("the GPU kept a sender's tables: %s", rte_strerror(rte_errno));
	if (gpu->registered && rte_gpu_mem_unregister(gpu->config.gpu, gpu->memory) < 0)
		log_warning("the GPU kept a sender's memory registered: %s",
			    rte_strerror(rte_errno));
	if (gpu->memory)
		munmap(gpu->memory, PAGE);
	memset(gpu, 0, sizeof(*gpu));
}

/* ---- to and fro ---- */

static size_t marks_bytes(const struct tx_own *own)
{
	return sq_marks_max(&own->front.queue) * sizeof(*own->front.mark);
}

/* The kernel drives the queue. */
static void queue_lend(struct tx_gpu *gpu, const struct tx_own *own)
{
	struct send_place *place = gpu->place;

	place->front = own->front;
	memcpy(gpu->mark, own->front.mark, marks_bytes(own));
	place->front.mark = gpu->mark;
	place->front.queue.bell = gpu->bell;
}

/* And this thread again. */
static void queue_take(const struct tx_gpu *gpu, struct tx_own *own)
{
	struct sq_mark *mark = own->front.mark;
	uint64_t *bell = own->front.queue.bell;

	own->front = gpu->place->front;
	own->front.mark = mark;
	own->front.queue.bell = bell;
	memcpy(mark, gpu->mark, marks_bytes(own));
}

void tx_gpu_show(struct tx_gpu *gpu, const struct tx_worker *worker, struct kernel_send *send,
		 uint64_t wall_ns)
{
	const struct tx_config *config = &worker->config;
	const struct tx_own *own = config->own;
	uint32_t longest = 0;

	for (uint32_t i = 0; i < config->length_count; i++)
		longest = RTE_MAX(longest, (uint32_t)worker->sizes[i].length);
	memset(gpu->words, 0, sizeof(*gpu->words));
	gpu->words->control = worker->config.start_ns ? GPU_SEND_HOLD : GPU_SEND_RUN;
	memset(gpu->status, 0, sizeof(*gpu->status));
	memset(gpu->place, 0, sizeof(*gpu->place));
	queue_lend(gpu, own);
	gpu->rung = own->front.rings;
	gpu->status->rings = own->front.rings;
	gpu->place->taken = own->taken;
	gpu->place->slot_next = own->slot_next;
	*send = (struct kernel_send){
		.words = gpu->words,
		.status = gpu->status,
		.place = gpu->place,
		.slot = (const uint32_t *)gpu->tables,
		.size = (const struct send_size *)(gpu->tables + gpu->sizes_at),
		.address = (uintptr_t)own->base,
		.limit = worker->limit,
		.wall_ns = wall_ns,
		.slot_count = own->slot_count,
		.size_count = config->length_count,
		.stream_first = config->stream_first,
		.stream_step = config->stream_step,
		.stream_count = config->stream_count,
		.burst_max = worker->ring.burst_max,
		.each = longest >= SQ_LARGE,
		.offset = own->offset,
	};
}

/* All that the kernel had, as if this thread had done it. */
static void sender_take(const struct tx_gpu *gpu, struct tx_worker *worker)
{
	const struct send_place *place = gpu->place;
	struct ring_producer *ring = &worker->ring;
	struct tx_own *own = worker->config.own;

	queue_take(gpu, own);
	own->taken = place->taken;
	own->slot_next = place->slot_next;
	worker->requested = place->requested;
	worker->sending = place->sending;
	ring->head = place->head;
	ring->first = place->head;
	ring->tail = place->tail;
	ring->burst = place->burst;
	ring->reclaimed = place->sending;
	atomic_store_explicit(&ring->published, place->burst, memory_order_relaxed);
	for (uint32_t s = 0; s < worker->config.stream_count; s++) {
		worker->streams[s].sequence = place->stream[s].sequence;
		worker->streams[s].position = place->stream[s].position;
		atomic_store_explicit(&worker->streams[s].sent, place->stream[s].sent,
				      memory_order_relaxed);
	}
}

/* ---- the thread ---- */

static uint64_t look(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static void counts_copy(const struct tx_gpu *gpu, struct tx_worker *worker)
{
	const struct send_status *status = gpu->status;
	const uint64_t sent = look(&status->sent);

	if (sent != atomic_load_explicit(&worker->sent, memory_order_relaxed)) {
		atomic_store_explicit(&worker->first_tsc, gpu->began_tsc, memory_order_relaxed);
		atomic_store_explicit(&worker->last_tsc, rte_rdtsc(), memory_order_relaxed);
	}
	atomic_store_explicit(&worker->bytes, look(&status->bytes), memory_order_relaxed);
	atomic_store_explicit(&worker->stalled, look(&status->stalled), memory_order_relaxed);
	atomic_store_explicit(&worker->starved, look(&status->starved), memory_order_relaxed);
	atomic_store_explicit(&worker->sent, sent, memory_order_release);
	counter_add(&worker->idle, 1);
}

/* PROXY. True when it rang. */
static bool proxy_ring(struct tx_gpu *gpu, const struct tx_own *own)
{
	/* Partner: the kernel's release, behind the record. */
	const uint64_t rings = __atomic_load_n(&gpu->status->rings, __ATOMIC_ACQUIRE);

	if (gpu->bell || rings == gpu->rung)
		return false;
	gpu->rung = rings;
	device_order_register(); /* RUNG */
	__atomic_store_n(own->front.queue.bell, look(&gpu->status->bell), __ATOMIC_RELAXED);
	device_order_register();
	return true;
}

/* The card has stopped the queue, which the kernel has handed over. */
static void queue_mend(struct tx_gpu *gpu, struct tx_own *own)
{
	queue_take(gpu, own);
	tx_own_recover(own);
	if (own->front.state != SQ_RUNS)
		return; /* again after a nap */
	queue_lend(gpu, own);
	gpu->rung = own->front.rings;
	__atomic_store_n(&gpu->status->state, GPU_SEND_RUNS, __ATOMIC_RELAXED);
	/* RESUME: after the place. Partner: the kernel's acquire. */
	__atomic_store_n(&gpu->words->resumes, ++gpu->resumes, __ATOMIC_RELEASE);
}

static uint32_t control_of(const struct tx_worker *worker)
{
	if (atomic_load_explicit(&worker->stop, memory_order_relaxed))
		return GPU_SEND_STOP;
	return atomic_load_explicit(&worker->hold, memory_order_relaxed) ? GPU_SEND_HOLD
									 : GPU_SEND_RUN;
}

bool tx_gpu_run(struct tx_gpu *gpu, struct tx_worker *worker)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	struct patience patience;
	uint64_t state;

	/* The kernel is held: tx_gpu_show(). */
	while (worker->config.start_ns &&
	       !atomic_load_explicit(&worker->stop, memory_order_relaxed) &&
	       tx_start_step(worker) != TX_START_NOW)
		;
	patience_begin(&patience);
	gpu->began_tsc = rte_rdtsc();
	for (;;) {
		__atomic_store_n(&gpu->words->control, control_of(worker), __ATOMIC_RELAXED);
		/* HANDED: the place after it. Partner: the kernel's release. */
		state = __atomic_load_n(&gpu->status->state, __ATOMIC_ACQUIRE);
		if (proxy_ring(gpu, worker->config.own)) {
			rte_pause();
			continue;
		}
		counts_copy(gpu, worker);
		if (state == GPU_SEND_ENDED)
			break;
		if (!atomic_load_explicit(&worker->stop, memory_order_relaxed))
			patience_begin(&patience);
		else if (patience_ends(&patience, LEAVE_MS, NULL, NULL))
			return false;
		if (state == GPU_SEND_FAILED)
			queue_mend(gpu, worker->config.own);
		if (gpu->bell || state != GPU_SEND_RUNS)
			nanosleep(&nap, NULL);
		else
			rte_pause();
	}
	(void)proxy_ring(gpu, worker->config.own);
	sender_take(gpu, worker);
	return true;
}
