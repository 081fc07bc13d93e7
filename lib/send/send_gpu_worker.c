/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread of a send queue that is a running kernel's: it submits for the kernel, whose words it checks, and
 * does all else as for a thread of the caller's. */
#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "capture/ring_producer.h"
#include "send/send_queue.h"

/* Its slot is the kernel's again. */
static void gpu_refuse(struct gdrcap_tx *tx, uint32_t at, uint32_t bytes)
{
	if (atomic_load_explicit(&tx->refused, memory_order_relaxed) == 0) {
		tx->refused_seq = tx->gpu.accepted - 1;
		tx->refused_bytes = bytes;
	}
	/* After the first one's. Partner: the acquire load in session_sending_gpu_judge(). */
	counter_add(&tx->refused, 1);
	send_gpu_give(&tx->gpu, at, send_data(tx, at));
}

/* Up to `most` frames that the kernel has submitted: how many there were. */
static uint64_t gpu_take_over(struct gdrcap_tx *tx, uint64_t most)
{
	uint64_t count;

	if (unlikely(atomic_load_explicit(&tx->gpu_fault, memory_order_relaxed)))
		return 0;
	if (unlikely(!send_gpu_look(&tx->gpu, &count))) {
		tx->gpu_submitted = tx->gpu.accepted + count;
		/* After it. Partner: the acquire load in gpu_fault(). */
		atomic_store_explicit(&tx->gpu_fault, 1, memory_order_release);
		return 0;
	}
	count = RTE_MIN(count, most);
	for (uint64_t i = 0; i < count; i++) {
		uint32_t bytes;
		const uint32_t at = send_gpu_take(&tx->gpu, &bytes);

		if (unlikely(bytes == 0 && send_gpu_is_by_stream(&tx->gpu))) {
			/* The stream's order says how many there may be, its kernel which there are. */
			send_gpu_give(&tx->gpu, at, send_data(tx, at));
			continue;
		}
		if (unlikely(bytes < SEND_BYTES_MIN || bytes > tx->config.bytes_max)) {
			gpu_refuse(tx, at, bytes);
			continue;
		}
		tx->entries[tx->next++ & tx->mask] = (struct send_entry){ at, bytes };
	}
	/* Read by this thread, and by those who count. */
	atomic_store_explicit(&tx->submitted, tx->next, memory_order_relaxed);
	return count;
}

/* To the kernel what came back from the port. */
static void gpu_give_back(struct gdrcap_tx *tx)
{
	for (; tx->harvested != tx->at_back; tx->harvested++) {
		const uint32_t at = tx->back[tx->harvested & tx->mask];

		send_gpu_give(&tx->gpu, at, send_data(tx, at));
	}
	send_gpu_tell(&tx->gpu);
}

void send_gpu_run(void *arg)
{
	struct gdrcap_tx *tx = arg;
	unsigned int idle = 0;
	uint64_t due;

	while (!atomic_load_explicit(&tx->stop, memory_order_relaxed)) {
		uint64_t work;

		if (unlikely(atomic_load_explicit(&tx->phase, memory_order_acquire) == SEND_PAUSE))
			send_pause(tx);
		work = gpu_take_over(tx, tx->config.burst);
		work += send_hand_over(tx, &due);
		work += send_collect(tx);
		gpu_give_back(tx);
		idle = work ? 0 : idle + 1;
		if (idle)
			send_wait(tx, idle, due);
	}
	/* What was submitted before the stop; what comes in the meantime is too late. */
	gpu_take_over(tx, UINT64_MAX);
	send_offer(tx);
	gpu_take_over(tx, UINT64_MAX);
	send_close(tx);
}
