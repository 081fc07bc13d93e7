/* SPDX-License-Identifier: BSD-3-Clause */
/* The writer: a thread that takes records out of the bounce buffer and writes them to the files. */
#include "save_internal.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>

#include "log.h"

#define NAP_NS 500000 /* when idle for long: at 400 Gb/s the buffer has room for twice that */
#define NAP_AFTER (4 * IDLE_PAUSES)

static void file_failed(struct save_file *file, int error)
{
	const uint64_t saved = pcapng_frames(&file->pcapng);

	atomic_store_explicit(&file->error, error, memory_order_relaxed);
	log_warning("cannot write %s: %s; no more frames are saved there, the capture goes on",
		    file->path, strerror(-error));
	/* What was in the buffer did not all arrive. */
	atomic_store_explicit(&file->saved, saved, memory_order_relaxed);
	atomic_store_explicit(&file->lost, file->taken - saved, memory_order_relaxed);
}

static void file_write(struct save *save, const struct save_record *record, enum save_index index,
		       const struct pcapng_frame *frame)
{
	struct save_file *file = &save->files[index];
	int ret;

	file->taken++;
	if (file->pcapng.error) {
		counter_add(&file->lost, 1);
		return;
	}
	ret = pcapng_frame(&file->pcapng, frame);
	if (ret < 0) {
		file_failed(file, ret);
		return;
	}
	save->queues[record->queue].saved[index]++;
	counter_add(&file->saved, 1);
}

static void record_write(struct save *save, const struct save_record *record)
{
	const uint8_t *bytes = (const uint8_t *)(record + 1);
	struct save_queue *queue = &save->queues[record->queue];
	char comment[COMMENT_BYTES];
	const bool damaged = frame_is_damaged(record->run.verdict);
	struct pcapng_frame frame = {
		.interface = record->queue,
		.time_ns = save_clock_ns(&save->clock, record->tsc),
		.bytes = bytes,
		.captured = record->captured,
		.length = record->length,
	};

	if (frame.time_ns < queue->last_ns)
		frame.time_ns = queue->last_ns; /* the clock's ratio was measured anew */
	queue->last_ns = frame.time_ns;
	if (damaged) {
		comment_damaged(comment, &save->reference, &record->run, bytes, record->captured,
				record->length);
		frame.comment = comment;
	}
	if (record->files & 1u << SAVE_ALL) {
		frame.dropped = record->dropped[SAVE_ALL];
		file_write(save, record, SAVE_ALL, &frame);
	}
	if (record->files & 1u << SAVE_DAMAGED) {
		if (!damaged) {
			comment_neighbour(comment, record->distance);
			frame.comment = comment;
		}
		frame.dropped = record->dropped[SAVE_DAMAGED];
		file_write(save, record, SAVE_DAMAGED, &frame);
	}
}

/* Writes what there is. False when there was nothing. */
static bool writer_work(struct save *save)
{
	struct save_bounce *bounce = &save->bounce;
	uint64_t tail = atomic_load_explicit(&bounce->tail, memory_order_relaxed);
	/* HAND_OVER: the records and their frames can be read. */
	const uint64_t head = atomic_load_explicit(&bounce->head, memory_order_acquire);

	if (tail == head)
		return false;
	while (tail != head) {
		const struct save_record *record =
			(const struct save_record *)(const void *)(bounce->base +
								   (tail & (bounce->bytes - 1)));

		tail += record->bytes;
		if (record->kind == SAVE_FRAME)
			record_write(save, record);
		/* ROOM: the record was read. Partner: bounce_take(). */
		atomic_store_explicit(&bounce->tail, tail, memory_order_release);
	}
	return true;
}

/* While nothing comes, what was written so far can be seen in the files. */
static void writer_flush(struct save *save)
{
	for (unsigned int f = 0; f < SAVE_FILES; f++) {
		struct save_file *file = &save->files[f];
		int ret;

		if (!file->path || file->pcapng.error || !file->pcapng.used)
			continue;
		ret = pcapng_flush(&file->pcapng);
		if (ret < 0)
			file_failed(file, ret);
	}
}

void save_writer_run(void *arg)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	struct save *save = arg;
	unsigned int idle = 0;
	sigset_t signals;

	/* A reader that closes its pipe, or a file as long as it may be, is an error of write() and
	 * must not end the process. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGPIPE);
	sigaddset(&signals, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	for (;;) {
		/* Before the last look: what was handed over before the stop is seen. */
		const int stop = atomic_load_explicit(&save->stop, memory_order_acquire);

		save_clock_renew(&save->clock);
		if (writer_work(save)) {
			idle = 0;
			continue;
		}
		if (stop)
			break;
		idle++;
		if (idle == NAP_AFTER)
			writer_flush(save);
		if (idle < NAP_AFTER)
			thread_idle(idle);
		else
			nanosleep(&nap, NULL);
	}
	writer_flush(save);
}
