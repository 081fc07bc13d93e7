/* SPDX-License-Identifier: BSD-3-Clause */
/* UDP checksums of frames that are reserved, behind what a stream writes into them. */
#include "send/send_queue.h"

#include <errno.h>

#include <rte_common.h>

#include "base/guest.h"
#include "base/log.h"
#include "memory/region.h"

#define SUM_BURST 128u /* frames in one call of the back end */

/* A kernel reads it; the CPU backend reads all. */
static int sum_memory_check(const struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frame,
			    unsigned int i, struct gdrcap_error *error)
{
	const struct region *region = tx->config.region;
	uint32_t memory;

	if (!tx->config.device_is_gpu)
		return 0;
	if (region->kind == GDRCAP_MEMORY_HOST)
		return error_set(
			error, -ENOTSUP,
			"frame %u: its slot is host memory, which the GPU cannot read; set "
			"sender.memory to pinned or device, or write the checksum by the "
			"CPU (gdrcap_tx_write_headers())",
			i);
	if (!frame->payload)
		return 0;
	/* Found by the check before. */
	memory = send_memory_find(tx->config.memories, frame->payload, frame->payload_bytes);
	if (memory == SEND_MEMORIES ||
	    tx->config.memories[memory].region.kind == GDRCAP_MEMORY_HOST)
		return error_set(error, -ENOTSUP,
				 "frame %u: its payload is host memory, which the GPU cannot read; "
				 "register it as pinned, or write the checksum by the CPU",
				 i);
	return 0;
}

static int sum_check_all(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
			 unsigned int count, struct gdrcap_error *error)
{
	int ret = 0;

	for (unsigned int i = 0; i < count && ret == 0; i++) {
		ret = send_frame_check(tx, &frames[i], i, UINT64_MAX, error);
		if (ret == 0)
			ret = sum_memory_check(tx, &frames[i], i, error);
	}
	return ret;
}

int gdrcap_tx_checksum_after(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
			     unsigned int count, struct CUstream_st *stream,
			     struct gdrcap_error *error)
{
	int ret = guest_check(tx, "send queue", error);

	if (ret < 0)
		return ret;
	if (tx->gpu.room)
		return error_set(error, -EINVAL,
				 "the send queue is a running kernel's (sender: gpu), which writes "
				 "checksums by gdrcap_udp_checksum()");
	if (count && !frames)
		return error_set(error, -EINVAL, "give the frames whose checksums are wanted");
	if (count > tx->slot_count)
		return error_set(error, -EINVAL, "%u frames: the queue has %u slots", count,
				 tx->slot_count);
	ret = sum_check_all(tx, frames, count, error);
	for (unsigned int at = 0, n; at < count && ret == 0; at += n) {
		struct kernel_sum sums[SUM_BURST];

		n = RTE_MIN(count - at, SUM_BURST);
		for (unsigned int i = 0; i < n; i++) {
			const struct gdrcap_tx_frame *frame = &frames[at + i];

			sums[i] = (struct kernel_sum){
				.frame = frame->data,
				.payload = frame->payload,
				.bytes = frame->bytes,
				.payload_bytes = frame->payload ? frame->payload_bytes : 0,
			};
		}
		ret = tx->config.ops->sum(tx->config.device, stream, sums, n);
		if (ret < 0)
			error_set(error, ret, "checksums: %s", kernel_error());
	}
	return ret;
}
