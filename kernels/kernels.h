/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What runs on a "GPU": a complete table of operations, one for CUDA and one for the CPU backend.
 * The core holds one table and never asks which it is. Pointers to frames and rings are addresses
 * that the device can use.
 *
 * Everything here is control code except the workers that start() leaves running.
 */
#ifndef GDRCAP_KERNELS_H
#define GDRCAP_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/burst_ring.h"
#include "kernels/place.h"
#include "pattern/frame.h"
#include "pattern/frame_store.h"
#include "pattern/pattern.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kernel_device;  /* one GPU, or the CPU threads that stand for one */
struct kernel_workers; /* one running job */
struct kernel_front;   /* kernels/front.h */
struct kernel_send;    /* kernels/send.h */
struct wake;	       /* base/wake.h */

enum kernel_role {
	KERNEL_CHECK, /* capture: take bursts, check every frame, write records */
	KERNEL_WRITE, /* replay: take bursts of empty slots, write frames as ordered */
	KERNEL_PLACE, /* capture: take bursts, copy payloads into images, write place_records */
	KERNEL_FRONT, /* capture: poll completions, publish bursts; on a GPU only (front.h) */
	KERNEL_SEND,  /* replay: ask for frames, post them to a queue; on a GPU only (send.h) */
};

#define KERNEL_PLACES_MAX 4u

/* Of a ring, on the CPU backend: what its workers sleep on, and what each of their results wakes. */
struct kernel_wakes {
	struct wake *work, *done;
};

struct kernel_job {
	enum kernel_role role;
	const struct burst_ring_view *rings; /* copied by start() */
	uint32_t ring_count;
	uint32_t workers_per_ring; /* thread blocks, or CPU threads; 0: the back end's default.
				    * Worker k of a ring takes bursts k, k + workers, ... */
	uint32_t frame_bytes_hint; /* typical length in memory: chooses the variant; 0 unknown */
	struct frame_layout layout;
	struct pattern pattern; /* host pointers; start() uploads the tables */
	/*
	 * NULL: frames are made of, and compared with, layout and pattern. Else frames of a file:
	 * KERNEL_WRITE copies them into the slots, as its requests say; KERNEL_CHECK compares with
	 * them (frame_store.h). Pointers are good for both sides; start() may make a copy of a
	 * resident store.
	 */
	const struct frame_store_view *store;
	/* KERNEL_PLACE: a frame is of the first of these that does not filter it; copied by start(). */
	const struct place_view *places;
	uint32_t place_count; /* ..KERNEL_PLACES_MAX */
	/* KERNEL_PLACE on a GPU. 0: finite kernels, launched for what was published since the last, so that
	 * calls that wait for the device end; 1: a persistent kernel. */
	uint32_t resident;
	/* KERNEL_FRONT: of each ring; copied by start(). It ends by its own words, not by the ring's stop. The
	 * rings' desc, ready and beside are then written by the front, and lie in GPU memory, or where a CPU
	 * reads them too in pinned memory. */
	const struct kernel_front *fronts;
	/* KERNEL_FRONT: workers of the same role that have left, or NULL. These take their place on the device,
	 * which another job may have filled up since. start() frees them, whatever comes of it. */
	struct kernel_workers *instead;
	/* KERNEL_SEND: of each ring, whose writers are another job; copied by start(). */
	const struct kernel_send *sends;
	/* CPU backend: CPUs to pin its threads to, in turn. CUDA: those on which the thread that
	 * launches kernels may run. NULL: none */
	const int *cpus;
	uint32_t cpu_count;
	/* CPU backend: of each ring; copied by start(). Who publishes or stops wakes `work`. NULL: idle workers
	 * look again and again by themselves. */
	const struct kernel_wakes *wakes;
};

struct kernel_info {
	char name[64];		 /* "NVIDIA H200", "2 CPU threads" */
	uint32_t units;		 /* multiprocessors or CPUs */
	int32_t writes_ordering; /* cudaDevAttrGPUDirectRDMAWritesOrdering, or -1 */
	int32_t flush_options;	 /* cudaDevAttrGPUDirectRDMAFlushWritesOptions, or -1 */
};

/* One stretch of memory to be copied; both addresses are the device's. */
struct kernel_copy {
	const void *from;
	void *to;
	uint32_t bytes;
	uint32_t reserved;
};
#define KERNEL_COPIES_MAX 4096u /* in one gather() */

/* A frame whose UDP checksum is to be written; addresses are the device's. */
struct kernel_sum {
	uint8_t *frame;
	const uint8_t *payload; /* the rest of it; NULL, and 0 bytes: there is none */
	uint32_t bytes, payload_bytes;
};

/* All return 0 or a negative errno; kernel_error() then has the text of the calling thread. */
struct kernel_ops {
	const char *name; /* "cuda", "host" */
	int reads_inline; /* 1: checkers read descriptors that stand beside the ready word (INLINE) */
	int stream_is_caller; /* 1: there are no streams but the calling thread, which does at once what it queues */
	int runs_fronts; /* 1: start() takes KERNEL_FRONT */
	int (*open)(int ordinal, struct kernel_device **device);
	void (*close)(struct kernel_device *device);
	void (*info)(const struct kernel_device *device, struct kernel_info *info);
	/* Synchronous, usable while workers run (never on the default stream). */
	int (*fill)(struct kernel_device *device, void *at, uint8_t byte, size_t bytes);
	int (*copy_in)(struct kernel_device *device, void *to, const void *from, size_t bytes);
	int (*copy_out)(struct kernel_device *device, void *to, const void *from, size_t bytes);
	/* Copies `count` frames at once, beside running workers: one thread at a time. Returns when
	 * all is copied and the CPU may read it. */
	int (*gather)(struct kernel_device *device, const struct kernel_copy *copies,
		      uint32_t count);
	/* Starts workers that run until *ring.stop is set. Allocates all it needs before launch. */
	int (*start)(struct kernel_device *device, const struct kernel_job *job,
		     struct kernel_workers **workers);
	/* After the stop words are set: waits until the workers left (kernels must within 100 ms),
	 * frees them. -ETIMEDOUT after timeout_ms, in which time that CPU threads had no core for
	 * does not count; then nothing is freed. Other errors are the device's, such as a fault in
	 * a kernel. */
	int (*join)(struct kernel_workers *workers, unsigned int timeout_ms);
	/* 1 running, 0 left, negative errno: the device failed under it. Cheap. */
	int (*running)(struct kernel_workers *workers);
	/* True when workers are CPU threads of which one has had no core since the last call,
	 * though it has something to do. One caller at a time. */
	bool (*starved)(struct kernel_workers *workers);
	uint32_t (*workers_per_ring)(const struct kernel_workers *workers); /* as chosen */
	/* Makes what a NIC wrote visible to running workers: between the completion and PUBLISH.
	 * On the frame path only for devices whose writes_ordering needs it. */
	int (*flush)(struct kernel_device *device);
	/*
	 * Closes image buffer `slot` (CLOSE), fills the pieces that are missing with the byte `fill`
	 * (-1: leaves them), and tells in shared->closed[slot], with `use`, and in present_host what
	 * was there. `pieces`: that the image has, 0: nobody knows. A piece that ends within itself
	 * is missing, unless it is the last of these. Returns at once; one thread at a time.
	 */
	int (*place_close)(struct kernel_device *device, const struct place_view *view,
			   uint32_t slot, uint32_t use, uint32_t pieces, int fill);
	/* Closes the entries of images that were handed out complete (SHUT), of PLACE_WHOLE_MAX at
	 * most. Returns at once; one thread at a time. */
	int (*place_close_whole)(struct kernel_device *device, const struct place_view *view,
				 const struct place_whole *images, uint32_t count);
	/* Calls release(arg) from any thread once `stream` (a cudaStream_t; NULL on the CPU backend:
	 * at once) has reached this point. */
	int (*after)(struct kernel_device *device, void *stream, void (*release)(void *arg),
		     void *arg);
	/* Writes UDP checksums (gdrcap_udp.h) once `stream` has reached this point, of frames as they are
	 * then; `stream` as for after(). Returns at once, and keeps nothing of `sums`. */
	int (*sum)(struct kernel_device *device, void *stream, const struct kernel_sum *sums,
		   uint32_t count);
	/* What is queued in `stream` afterwards begins once *word - least, as a signed number, is not negative.
	 * `word`: aligned to 8, in memory that CPU and GPU see. Returns at once; on the CPU backend, where the
	 * caller's thread is the stream, when it is so. -ENOTSUP: the device cannot. */
	int (*wait_word)(struct kernel_device *device, void *stream, const uint64_t *word,
			 uint64_t least);
	/* *word becomes `value` once `stream` has reached this point, after all that its work has written. */
	int (*write_word)(struct kernel_device *device, void *stream, uint64_t *word,
			  uint64_t value);
	/*
	 * Makes the page with a device's register one that kernels may write to; before they run.
	 * *mapped: the register for them. *plain: as a page of the host's, which a real device's is not. Both
	 * are NULL, 0 where the back end has no kernels: -ENOTSUP.
	 */
	int (*map_register)(struct kernel_device *device, void *at, void **mapped, bool *plain);
	void (*unmap_register)(struct kernel_device *device, void *at);
};

extern const struct kernel_ops kernel_host_ops;
#ifdef GDRCAP_WITH_CUDA
extern const struct kernel_ops kernel_cuda_ops;
#endif

/* Text of the last failure in this thread: cause and remedy, no newline. */
const char *kernel_error(void);
/* For back ends: records a text and returns `code`. */
int kernel_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
