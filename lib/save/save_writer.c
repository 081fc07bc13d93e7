/* SPDX-License-Identifier: BSD-3-Clause */
/* The writer: a thread that takes records out of the bounce buffer and writes them to the files. */
#include "save/save_internal.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>

#include "base/log.h"

#define NAP_NS 500000 /* when idle for long: at 400 Gb/s the buffer has room for twice that */
#define NAP_AFTER (4 * IDLE_PAUSES)
#define BACK_NS 1000000u /* times of a queue do not go back by less */

const char *save_file_why(const struct save_file *file, int error)
{
	return file->pcapng.stalled ? "its reader takes nothing" : strerror(-error);
}

/* What the file has, and not what is in the buffer: a count that was shown never falls. */
static void tell_saved(struct save_file *file)
{
	atomic_store_explicit(&file->saved, pcapng_written(&file->pcapng), memory_order_relaxed);
}

static void file_failed(struct save_file *file, int error)
{
	atomic_store_explicit(&file->error, error, memory_order_relaxed);
	log_warning("cannot write %s: %s; no more frames are saved there, the capture goes on",
		    file->path, save_file_why(file, error));
	/* What was in the buffer did not all arrive. */
	tell_saved(file);
	atomic_store_explicit(&file->lost, file->taken - pcapng_written(&file->pcapng),
			      memory_order_relaxed);
}

/*
 * These return false when the writer was given up in the middle: what it worked on is another
 * one's by now, and it must touch none of it.
 */
static bool file_write(struct save *save, struct save_record *record, enum save_index index,
		       const struct pcapng_frame *frame)
{
	struct save_file *file = &save->files[index];
	int ret;

	record->files &= (uint16_t) ~(1u << index);
	file->taken++;
	if (file->pcapng.error) {
		counter_add(&file->lost, 1);
		return true;
	}
	ret = pcapng_frame(&file->pcapng, frame);
	if (ret == -ECANCELED)
		return false;
	if (ret < 0) {
		file_failed(file, ret);
		return true;
	}
	save->queues[record->queue].saved[index]++;
	tell_saved(file);
	return true;
}

/*
 * When the frame came. A card may put frames that came together into another order than their times
 * have, and a frame can be older than the last measurement of its clock; a real-time clock that was
 * set back is another matter, and is shown. Of a file's frames it is what the file says.
 */
static uint64_t record_time(const struct save *save, struct save_queue *queue,
			    const struct save_record *record)
{
	uint64_t ns = rx_clock_ns(queue->clock, record->ticks);

	if (queue->clock->port == RX_CLOCK_FILE)
		return ns;
	if (ns == 0)
		return rx_clock_ns(save->clocks, rte_rdtsc());
	if (ns < queue->last_ns && queue->last_ns - ns < BACK_NS)
		ns = queue->last_ns;
	queue->last_ns = ns;
	return ns;
}

static bool record_write(struct save *save, struct save_record *record)
{
	const uint8_t *bytes = (const uint8_t *)(record + 1);
	struct save_queue *queue = &save->queues[record->queue];
	char comment[COMMENT_BYTES];
	const bool damaged = frame_is_damaged(record->found.verdict);
	struct pcapng_frame frame = {
		.interface = record->queue,
		.time_ns = record_time(save, queue, record),
		.bytes = bytes,
		.captured = record->captured,
		.length = record->length,
	};

	if (damaged) {
		comment_damaged(comment, &save->reference, &record->found, bytes, record->captured,
				record->length);
		frame.comment = comment;
	}
	if (record->files & 1u << SAVE_ALL) {
		frame.dropped = record->dropped[SAVE_ALL];
		if (!file_write(save, record, SAVE_ALL, &frame))
			return false;
	}
	if (record->files & 1u << SAVE_DAMAGED) {
		if (!damaged) {
			comment_neighbour(comment, record->distance);
			frame.comment = comment;
		}
		frame.dropped = record->dropped[SAVE_DAMAGED];
		return file_write(save, record, SAVE_DAMAGED, &frame);
	}
	return true;
}

/* Writes what there is; *none says that there was nothing. */
static bool writer_work(struct save *save, bool *none)
{
	struct save_bounce *bounce = &save->bounce;
	uint64_t tail = atomic_load_explicit(&bounce->tail, memory_order_relaxed);
	/* HAND_OVER: the records and their frames can be read. */
	const uint64_t head = atomic_load_explicit(&bounce->head, memory_order_acquire);

	*none = tail == head;
	while (tail != head) {
		struct save_record *record =
			(struct save_record *)(void *)(bounce->base + (tail & (bounce->bytes - 1)));

		if (record->kind == SAVE_FRAME && !record_write(save, record))
			return false;
		tail += record->bytes;
		/* ROOM: the record was read. Partner: bounce_take(). */
		atomic_store_explicit(&bounce->tail, tail, memory_order_release);
	}
	return true;
}

/* While nothing comes, what was written so far can be seen in the files. */
static bool writer_flush(struct save *save)
{
	for (unsigned int f = 0; f < SAVE_FILES; f++) {
		struct save_file *file = &save->files[f];
		int ret;

		if (!file->path || file->pcapng.error || !file->pcapng.used)
			continue;
		ret = pcapng_flush(&file->pcapng);
		if (ret == -ECANCELED)
			return false;
		if (ret < 0)
			file_failed(file, ret);
		else
			tell_saved(file);
	}
	return true;
}

/* What each queue had, and closes. */
static bool file_finish(struct save *save, enum save_index index)
{
	struct save_file *file = &save->files[index];
	struct pcapng_statistics statistics = {
		.start_ns = save->start_ns,
		.end_ns = rx_clock_ns(save->clocks, rte_rdtsc()),
	};
	int ret;

	for (uint32_t q = 0; q < save->queue_count; q++) {
		const struct save_queue *queue = &save->queues[q];

		statistics.interface = q;
		statistics.port_known = queue->port_known;
		statistics.received = queue->port_received + queue->port_lost;
		statistics.dropped = queue->port_lost + queue->missed[index];
		statistics.accepted = queue->wanted[index];
		statistics.delivered = queue->saved[index];
		if (pcapng_statistics(&file->pcapng, &statistics) == -ECANCELED)
			return false;
	}
	ret = pcapng_close(&file->pcapng);
	if (ret == -ECANCELED)
		return false;
	if (ret < 0)
		atomic_store(&file->error, ret);
	tell_saved(file);
	atomic_store(&file->lost, file->taken - pcapng_written(&file->pcapng));
	return true;
}

/* Until there is nothing to write any more. */
static bool writer_loop(struct save *save)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	unsigned int idle = 0;

	for (;;) {
		/* Before the last look: what was handed over before the stop is seen. */
		const int stop = atomic_load_explicit(&save->stop, memory_order_acquire);
		bool none;

		for (uint32_t i = 0; i < save->clock_count; i++)
			rx_clock_renew(&save->clocks[i]);
		if (!writer_work(save, &none))
			return false;
		if (!none) {
			idle = 0;
			continue;
		}
		if (stop)
			break;
		idle++;
		if (idle == NAP_AFTER && !writer_flush(save))
			return false;
		if (idle < NAP_AFTER)
			thread_idle(idle);
		else
			nanosleep(&nap, NULL);
	}
	for (unsigned int f = 0; f < SAVE_FILES; f++)
		/* One without a buffer was closed by a writer that was given up at the other. */
		if (save->files[f].path && save->files[f].pcapng.buffer &&
		    !file_finish(save, (enum save_index)f))
			return false;
	return true;
}

void save_writer_run(void *arg)
{
	/* A reader that closes its pipe, or a file as long as it may be, is an error of write() and
	 * does not end the process: the thread takes no signals. */
	if (!writer_loop(arg))
		/* The program may be at its end, with DPDK gone: no way back through it. */
		pthread_exit(NULL);
}
