/* SPDX-License-Identifier: BSD-3-Clause */
/* The card's thread and what it does in a pass. */
#ifndef SOFT_NIC_H
#define SOFT_NIC_H

#include "soft.h"

/* Control calls of the driver hold the lock; the thread gives it up as soon as one waits. */
void nic_lock(void);
void nic_unlock(void);

/* Until the card has done all that it was given before, as far as it can: what it sent has arrived,
 * and its completions are written. While a device is open. */
void nic_settle(void);
/* The same, and the files with its counters say so too. */
void nic_report(void);

/* The thread runs while a device is open. */
int nic_start(void);
void nic_stop(void);

uint64_t nic_now_ns(void);
/* Of a completion: nanoseconds, or seconds and nanoseconds in a half each. */
uint64_t nic_timestamp(bool split);

/* A frame between two cards, as its sender left it. */
struct soft_frame {
	uint8_t *data;
	uint32_t length;
	uint8_t checksums; /* to insert: the send WQE's cs_flags */
};

/* tx.c: takes what the driver posted, within a budget of frames. WQEs handled. */
unsigned int sq_run(struct soft_sq *sq);

/* Ends the queue with an error completion of the WQE at that block; the rest is flushed. */
void sq_fail(struct soft_sq *sq, uint16_t block, uint8_t syndrome);

/* wire.c */
void wire_send(struct soft_device *from, struct soft_frame *frame);
void wire_poll(struct soft_device *device, uint64_t now_ns);
bool wire_up(const struct soft_device *device);
/* Is there a frame that waits for its successor, and will come without one too? */
bool wire_holds(void);
/* device.c: wakes drivers where the link has changed since they were told, or the card is gone. */
void device_tell_link(struct soft_device *device);
/* False: the receiver's flow control holds the sender back. */
bool wire_ready(struct soft_device *from);

/* play.c: a file's frames, from a sender that is no driver of ours. Frames sent. */
void play_init(void);
unsigned int play_run(struct soft_device *device);

/* rx.c */
void rx_deliver(struct soft_device *device, uint8_t *data, uint32_t length);
void rx_poll(uint64_t now_ns);
/* Buffers enough for a pass of the sender, in every queue that receives? */
bool rx_has_room(const struct soft_device *device);
/* Is there late data that waits for its reader? The sender is held up meanwhile. Any thread. */
bool rx_holds_back(void);
/* The reader is there; comes_back: it asks again, once it has read. */
void rx_hand_over(bool comes_back);
void rq_fail(struct soft_rq *rq, uint16_t wqe, uint8_t syndrome);
void rq_flush(struct soft_rq *rq);

/* cqe.c: a completion to fill in, all zeros; it reaches the driver at the next completion_flush().
 */
struct mlx5_cqe64 *completion(struct soft_cq *cq);
void completion_flush(void);
void completion_forget(struct soft_cq *cq);
/* Delays the next flush, after the data, by that much. */
void completion_delay(uint64_t us);
/* The next completion carries the wrong owner bit. */
void completion_wrong_owner(void);
/* The next completion's owner bit comes that much before its other bytes. */
void completion_torn(uint64_t us);

#endif
