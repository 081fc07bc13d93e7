/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Stream-ordered control: batches, images and send slots that CUDA streams wait for, give back and submit, while
 * no thread of the CPU wakes up. Part of gdrcap.h, which includes it.
 *
 * For queues and images of `consumer: gpu`, and send queues of `sender: gpu`. The calls put a wait for a word in
 * pinned memory, or a write of one, into a stream (the driver's stream memory operations), and return at once.
 * What they wait for and write are the words of running kernels, so the kernels between them use the calls of
 * gdrcap_device.cuh, and number batches, images and frames in the same way, from 0, by themselves:
 *
 *     for (seq = 0;; seq++) {
 *             gdrcap_wait_on_stream(queue, seq, stream, &error);
 *             kernel<<<blocks, threads, 0, stream>>>(gpu_queue, seq);
 *             gdrcap_release_on_stream(queue, seq, stream, &error);
 *     }
 *
 *     kernel: if (gdrcap_gpu_try_next(queue, seq, &batch) < 0)
 *                     return;      the run is over, and there was no such batch
 *             use the batch; all blocks of the grid may, and none of them gives it back
 *
 * Behind a wait gdrcap_gpu_try_next(), gdrcap_gpu_image_try_next() and gdrcap_gpu_tx_reserve() never find
 * "none yet". Each number is waited for in one stream or in several, and is given back, or submitted, once.
 *
 * The end: gdrcap_stop(), at the latest, lets every wait that is in a stream go, and so do a gdrcap_start() that
 * fails and the process's exit(); waits for images, and for slots, already go where the run ends by itself.
 * The kernels behind them hear of it (-1) and leave the memory alone; what is given back or submitted behind
 * them is nothing. So cudaStreamSynchronize() after gdrcap_stop() returns, and gdrcap_destroy() comes after
 * that. Before gdrcap_start() has begun waits are refused, as nothing would end them.
 *
 * A wait that has not gone holds up all that is behind it in its stream, and, where the GPU has fewer hardware
 * queues than the process has streams, other streams too: keep the streams that wait few, and set
 * CUDA_DEVICE_MAX_CONNECTIONS=32 where there are more than four. What waits for the whole device (see "Running
 * kernels" in docs/embedding.md) waits for them, too.
 *
 * Without a GPU (`gpu: host`) there is no stream but the calling thread (`stream` NULL): a wait returns when
 * what it waits for is there, or when the run is over; releases and submits are done when they return, so that what has
 * not come cannot be given back (-EAGAIN), while in a stream a release may be behind a wait that has not gone. What
 * stands for the kernel uses gdrcap_device_host.h.
 *
 * CUDA takes some 1,000 things in streams that do not move; whoever puts one more into them, a kernel or a wait, waits
 * in that call until they do, or the run is stopped by another thread. With a wait, a kernel and a release a batch that is
 * more than GDRCAP_STREAM_AHEAD batches; with more of them stay less far ahead.
 *
 * All return 0, or a negative errno with cause and remedy in *error (may be NULL), and nothing was queued then:
 * -EINVAL: not a queue of `consumer: gpu` (`sender: gpu`), the session was not started, or the number cannot be;
 * -EAGAIN: the number is GDRCAP_STREAM_AHEAD or more ahead of what there is, or, on `gpu: host`, is to be given
 * back and has not come: later; -ESHUTDOWN: the run is over, and
 * there is no such batch or image, or it is too late to send; -ENOTSUP: the GPU or its driver has no such
 * operations, or a stream was given and there is no GPU; -EPERM: in a child of fork().
 * Any thread, several at the same time; but for that, and on `gpu: host`, no call waits.
 */
#ifndef GDRCAP_STREAM_H
#define GDRCAP_STREAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;
struct gdrcap_error;
struct gdrcap_images;
struct gdrcap_queue;
struct gdrcap_tx;

/** Batches, and images, that may be waited for beyond the newest that is there. */
#define GDRCAP_STREAM_AHEAD 256u

/** What is put into `stream` after this begins when batch `seq` of the queue is there. Empty batches there are none;
 * one has up to `burst` frames, and fewer when frames come slowly. */
int gdrcap_wait_on_stream(struct gdrcap_queue *queue, uint64_t seq, struct CUstream_st *stream,
			  struct gdrcap_error *error);
/** Batch `seq` goes back when `stream` has come this far. In any order; a queue's slots go back to its port in the
 * order of the batches. */
int gdrcap_release_on_stream(struct gdrcap_queue *queue, uint64_t seq, struct CUstream_st *stream,
			     struct gdrcap_error *error);

/** The same for image `seq`, in the order in which they are handed out, of all streams of the description. */
int gdrcap_image_wait_on_stream(struct gdrcap_images *images, uint64_t seq,
				struct CUstream_st *stream, struct gdrcap_error *error);
/** Its buffer is used again when `stream` has come this far. */
int gdrcap_image_release_on_stream(struct gdrcap_images *images, uint64_t seq,
				   struct CUstream_st *stream, struct gdrcap_error *error);

/**
 * What is put into `stream` after this begins when frames seq to seq + count - 1 of the send queue have slots, which
 * is its back-pressure. `seq` is the number of the frame that comes next: 0 at first (gdrcap_gpu_tx_first()),
 * then that of the call before plus its count, whatever became of those. `count`: 1 to struct gdrcap_gpu_tx's
 * `count`, else -EINVAL.
 */
int gdrcap_room_on_stream(struct gdrcap_tx *tx, uint64_t seq, uint32_t count,
			  struct CUstream_st *stream, struct gdrcap_error *error);
/**
 * Frames seq to seq + count - 1 are submitted when `stream` has come this far, behind gdrcap_room_on_stream() for
 * the same ones and the kernels that write them and their lengths (gdrcap_gpu_tx_data(),
 * gdrcap_gpu_tx_set_bytes()). Frames whose length nobody has set are left out, and not counted: a kernel
 * says by itself how many of the `count` there are. From the first call on that holds for the queue, and no kernel
 * submits in it by gdrcap_gpu_tx_submit().
 */
int gdrcap_send_on_stream(struct gdrcap_tx *tx, uint64_t seq, uint32_t count,
			  struct CUstream_st *stream, struct gdrcap_error *error);

#ifdef __cplusplus
}
#endif

#endif
