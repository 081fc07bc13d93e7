/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Sending the caller's own frames: part of gdrcap.h, which includes it.
 *
 * With `sender: host` each queue of each `tx_port` is a send queue of the caller's: frame slots to
 * reserve, to fill by the CPU or by a kernel, and to submit. A thread of the session's hands them to the
 * port; with `sender.thread: caller` gdrcap_tx_submit() does so itself, and reserve and poll take back what the
 * driver has done with, which takes one core instead of two. What the port does not take at once, and frames
 * that wait for a stream or a time, are then handed over by any of these calls, or by that thread, which looks
 * every 0.2 ms (idle_sleep, where that is a number): a time is kept less exactly so. A session may receive too, on other ports or on the same one (`tx_port` named as `port`).
 *
 * Order: the frames of a queue leave in the order in which they were submitted. One that waits, for its
 * stream or for its time, holds those after it; another queue of the port does not wait.
 *
 * With `sender: gpu` the queues are for a kernel that runs all the time, and none of the calls of a caller's
 * thread takes them (-EINVAL): see gdrcap_get_gpu_tx().
 *
 * Frames are whole Ethernet frames without FCS, headers too: from 60 bytes (pad shorter ones) to
 * frame.size less 4.
 *
 * Threads: reserve, submit, checksum_after, cancel, poll and fd of a queue are for one thread at a
 * time. None of them allocates, logs, takes a lock or reads a frame's bytes (but checksum_after, where
 * there is no GPU); system calls there are none but to wake the queue's thread where it sleeps
 * (idle_sleep), to arm the descriptor of gdrcap_tx_fd(), what a stream's work takes in CUDA, and with `sender.thread: caller` those of the port's driver (AF_PACKET, AF_XDP, memif).
 */
#ifndef GDRCAP_TX_H
#define GDRCAP_TX_H

#include "gdrcap.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gdrcap_tx; /**< a send queue: one caller thread */

#define GDRCAP_TX_TELL 1u /**< gdrcap_tx_poll() is to tell when the frame's memory is free again */

/** A frame on its way out. There are arrays of it: its size stays until the library's soname changes. */
struct gdrcap_tx_frame {
	/** Where it begins: room for `bytes`. A device pointer where the memory is the GPU's. */
	uint8_t *data;
	uint64_t time_ns; /**< it is sent no earlier, since the Unix epoch; 0: at once */
	uint64_t tag;	  /**< the caller's own, for gdrcap_tx_poll() */
	uint32_t slot;	  /**< for the queue: leave it */
	uint32_t bytes;	  /**< reserve: the most that there may be; submit: those of the frame */
	uint32_t flags;	  /**< GDRCAP_TX_* */
	uint32_t payload_bytes;
	/** What follows the slot's `bytes`, which are 18 or more then: payload_bytes of memory that was
	 * registered (gdrcap_tx_register()), sent from where they are. Nobody may write to them until the
	 * frame is back. NULL: the slot has all of the frame. */
	const void *payload;
};

/** Send queue `index` (sending ports in order, then queues), or NULL. */
struct gdrcap_tx *gdrcap_get_tx(struct gdrcap_session *session, uint32_t index);

/**
 * Takes free slots, up to `max`: how many; fewer, or 0, is the queue's back-pressure: all others are with
 * the caller, wait, or are at the port. They are filled in with time_ns, tag, flags and
 * payload 0.
 * -ESHUTDOWN: the run is over. Slots may be reserved, and frames submitted, before the start.
 */
int gdrcap_tx_reserve(struct gdrcap_tx *tx, struct gdrcap_tx_frame *frames, unsigned int max);

/**
 * Hands reserved frames over, `bytes` set: all of them, and 0, or none and a negative errno, with the
 * frame's place in the array, cause and remedy in *error (may be NULL): -EMSGSIZE a length; -EINVAL not
 * reserved, or submitted already, or a time that is more than GDRCAP_TX_AHEAD_NS ahead; -EFAULT a payload
 * that is not all in one registered memory; -ESHUTDOWN the
 * run is over: cancel them. Until the slot is free again nobody may write to it.
 *
 * A send time is kept by the session's thread: it hands the frame to its port then, not earlier, and
 * as soon as it has a core; what the port takes from there comes on top. One that has passed is at once.
 */
int gdrcap_tx_submit(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames, unsigned int count,
		     struct gdrcap_error *error);
#define GDRCAP_TX_AHEAD_NS 60000000000u

/**
 * The same, and none of them is sent before `stream` has reached this point: kernels in it may still
 * write them. Without a GPU (`gpu: host`) at once. Synchronise the stream before gdrcap_destroy().
 */
int gdrcap_tx_submit_after(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
			   unsigned int count, struct CUstream_st *stream,
			   struct gdrcap_error *error);

/**
 * Writes the UDP checksums of reserved frames, as they will be submitted, once `stream` has come this
 * far: of what kernels in it have written until then, in the slots and in payloads. Next comes
 * gdrcap_tx_submit_after() with the same stream. Without a GPU (`gpu: host`, stream NULL) the CPU does
 * it at once. A frame has one if it is Ethernet, up to two VLAN tags, IPv4 (options too) or IPv6, and
 * UDP next to it. Others, fragments, those whose lengths say more than is there, and those whose
 * headers are not all in the slot, are left as they are, and nobody is told. What stands where the
 * checksum goes does not matter; a sum of 0 becomes 0xffff. Before the stream has come so far no frame may
 * be cancelled, and no payload's memory unregistered. A kernel of the caller's own has
 * gdrcap_udp_checksum() (gdrcap_device.cuh).
 * 0; or the codes of gdrcap_tx_submit(), or -ENOTSUP, and nothing was queued: slot or payload are
 * memory of kind host, which the GPU cannot read. After an error of CUDA's some may be.
 */
int gdrcap_tx_checksum_after(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
			     unsigned int count, struct CUstream_st *stream,
			     struct gdrcap_error *error);

/** Gives reserved frames back unsent. 0, or -EINVAL and nothing is done: one is not reserved. */
int gdrcap_tx_cancel(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
		     unsigned int count);

/** What became of a frame with GDRCAP_TX_TELL. */
struct gdrcap_tx_done {
	uint64_t tag;
	int32_t code; /**< 0: the port took it; -ECANCELED: the run ended before it was sent */
	uint32_t reserved;
};
/**
 * Up to `max` frames whose memory is free again, in the order in which the driver gave them back: their count, 0 for none yet, -ESHUTDOWN for none ever
 * again. When the memory is free is the driver's: at once where it copies (AF_PACKET, memif, pcap); when the
 * receiver gave the slot back on a ring; on AF_XDP and ConnectX with frames that follow: the latter's
 * driver gives it back for 32 frames at a time, and the last ones at gdrcap_destroy(). After
 * gdrcap_stop() only a poll looks, and the descriptor says nothing more.
 * The run's end tells those that were not sent (-ECANCELED) one after the other, as they were submitted: behind all
 * that was told before, and before those that were sent and whose memory comes back after the end. So
 * -ECANCELED is no end of the completions, and what stands behind it may have been submitted earlier.
 * A slot of a frame that is told is free once it was told.
 */
int gdrcap_tx_poll(struct gdrcap_tx *tx, struct gdrcap_tx_done *done, unsigned int max);

/**
 * A descriptor for poll(), epoll or an event loop, or -errno: readable (POLLIN) when slots came back. Its
 * rule: a gdrcap_tx_poll() or a gdrcap_tx_reserve() that returned 0 arms it, for what comes back later: after a
 * poll that returned more try reserve again before waiting. It may be readable with
 * nothing there, as it is at first. It is the queue's: do not read, write or close it.
 */
int gdrcap_tx_fd(struct gdrcap_tx *tx);

/**
 * Makes memory of the caller's ready for payloads: frames then have two pieces, headers in a slot, data
 * where the caller has them, and nothing is copied on the way to the port. `addr` and `bytes` are multiples of
 * 64 KiB; `kind` is what the memory is: device (of this session's GPU), pinned or host. Any thread, one
 * at a time, from create to destroy, in a run too: it takes as long as the card needs. -ENOTSUP: a
 * sending port cannot do it, and error->text says which, and what can: a ConnectX any memory, memif and
 * AF_PACKET, which copy, what the CPU can read; all others send one piece only. -EEXIST:
 * some of it is registered already, or the session's own. -ENOSPC: 16 are.
 */
int gdrcap_tx_register(struct gdrcap_session *session, void *addr, uint64_t bytes,
		       enum gdrcap_memory kind, struct gdrcap_error *error);
/** The memory is the caller's alone again. -EBUSY: frames with payloads in it were submitted and
 * are not back; nothing has changed. -ENOENT: no such memory. gdrcap_destroy() does it for all. */
int gdrcap_tx_unregister(struct gdrcap_session *session, void *addr, struct gdrcap_error *error);

/** Headers of a frame; all numbers in the CPU's byte order. */
struct gdrcap_tx_headers {
	uint8_t dst_mac[6], src_mac[6];
	uint16_t ethertype; /**< of what follows; 0: IPv4 and UDP */
	uint16_t tagged;    /**< 1: there is a VLAN tag, `vlan` */
	uint16_t vlan;	    /**< priority, DEI and id, as on the wire */
	uint16_t src_port, dst_port;
	uint8_t ttl; /**< 0: 64 */
	uint8_t tos;
	uint32_t src_ip, dst_ip; /**< 0x0a000001 is 10.0.0.1 */
};
#define GDRCAP_TX_HEADERS_MAX 46
/**
 * Writes the headers of a frame with `bytes` of data to `to`, which the CPU can write: how many bytes
 * they have, 14 to GDRCAP_TX_HEADERS_MAX; the data follow them. -EINVAL: it is longer than a datagram, 0xffff,
 * can be, `ethertype` is a length (below 0x600), or an address or `to` is NULL. IPv4's checksum is right. UDP's is
 * that of `data`, which the CPU reads; where that is NULL, as the data are in GPU memory or not there
 * yet, it is 0, which in IPv4 says that there is none, and receivers take it so; gdrcap_tx_checksum_after() writes it
 * later. Frames of less than 60
 * bytes are the caller's to pad.
 */
int gdrcap_tx_write_headers(uint8_t *to, const struct gdrcap_tx_headers *headers, const void *data,
			    uint32_t bytes);

/** A send queue's frames: submitted = sent + unsent + refused + those that wait. */
struct gdrcap_tx_counts {
	uint64_t submitted;
	uint64_t sent;	/**< that the port took */
	uint64_t bytes; /**< theirs, in memory (without FCS) */
	uint64_t
		stalled; /**< polls in which the port took nothing of what was to be sent, or its link
			   * was down */
	uint64_t unsent; /**< that waited when the run ended */
	uint64_t
		failed; /**< of `sent`: that the driver says it could not send after all; of a port,
			   * with its first queue, else 0 */
	uint64_t at_port; /**< of `sent`: whose memory is not back yet */
	double seconds;	  /**< from the first hand-over to the last */
	int32_t failed_known; /**< 1: `failed` is every such frame; 0: the driver does not tell, or it is told
			       * with the port's first queue */
	int32_t reserved;
	uint64_t refused; /**< of a running kernel's: not sent, as no frame has their length */
};
/** Of send queue `index`; any thread, at any time. -ENOENT after the last. */
int gdrcap_get_tx_counts(const struct gdrcap_session *session, uint32_t index,
			 struct gdrcap_tx_counts *counts, size_t size);

/** A slot for a frame of a running kernel's. There are arrays of it: its size stays. */
struct gdrcap_gpu_tx_slot {
	uint8_t *data;	 /* where the frame begins, for the GPU */
	uint64_t before; /* the frame that had it before, + 1; 0: none did */
};
/** For a kernel that is already running (sender: gpu), which reserves slots, fills them and submits them
 * itself: see gdrcap_device_tx.cuh. With `gpu: host` a CPU thread does. */
struct gdrcap_gpu_tx {
	const uint64_t *room;			/* slots given so far; bit 62: the run is over */
	uint64_t *submitted;			/* frames so far */
	const struct gdrcap_gpu_tx_slot *slots; /* of frame seq: slots[seq & mask] */
	uint32_t *bytes;			/* of frame seq: bytes[seq & mask] */
	uint32_t mask;
	uint32_t count;	    /* slots that the queue has */
	uint32_t bytes_max; /* of a frame */
	uint32_t reserved;
};
/**
 * Of a queue from gdrcap_get_tx(). -EINVAL: sender is not gpu. Before or after gdrcap_start(); frames may be
 * submitted before. What the struct points to is there until gdrcap_destroy(): no kernel may use it any more
 * then. It is told to leave by the run's end, and what it submits from then on may be sent, count as
 * `unsent`, or, where it comes too late, count as nothing.
 * What a kernel writes is checked: a frame with a length that cannot be is not sent (`refused`), and a count
 * of frames that there were no slots for ends the run with -EPROTO.
 */
int gdrcap_get_gpu_tx(struct gdrcap_tx *tx, struct gdrcap_gpu_tx *gpu_tx, size_t size);

#ifdef __cplusplus
}
#endif

#endif
