/* SPDX-License-Identifier: BSD-3-Clause */
/* The accounting thread: takes results out of the burst rings, in order, to the verdict. */
#include "verdict/accountant.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include <rte_common.h>

#include "base/clock.h"
#include "base/tsc.h"
#include "kernels/frame_records.h"

/* Bursts that are at least SLOW_US apart, as seen over LOOK_US and more, are taken together after GATHER_US. Not
 * with images, whose ends are told at once. */
#define GATHER_US 1000u
#define SLOW_US 100u
#define LOOK_US 200u
#define STUCK_MS 10000u	   /* that a file waits for an image buffer which the caller may have */
#define CLOSE_MS 1000u	   /* that images which are closed at the end are waited for */
#define COLLECT_BURSTS 64u /* of one queue before the next has its turn */

/* The records of a burst of frames that were placed into images. */
static void accountant_place(struct accountant *accountant, const struct ring_producer *ring,
			     uint32_t slot, uint32_t first, uint32_t records)
{
	const uint64_t came = ring->came ? ring->came[slot] : accountant->now;

	for (uint32_t r = 0; r < records; r++) {
		struct place_record record;

		memcpy(&record, record_at(&ring->view, first, r), sizeof(record));
		if (record.layout < accountant->image_count)
			assembler_add(&accountant->images[record.layout].assembler, came, &record);
	}
}

/* The records of a finished burst. */
static void accountant_add(struct accountant *accountant, uint32_t queue, uint64_t b)
{
	const struct ring_producer *ring = accountant->rings[queue];
	const uint32_t records = burst_records(&ring->view, b),
		       slot = (uint32_t)b & ring->burst_mask;
	struct frame_record plain;
	uint32_t first = 0;

	/* the rx worker's line, which a PLAIN burst leaves alone */
	if (!(ring->result[slot].done & BURST_PLAIN))
		first = burst_word_first(ring_word(ring, b));
	if (accountant->images) {
		accountant_place(accountant, ring, slot, first, records);
		return;
	}
	for (uint32_t r = 0; r < records; r++)
		verdict_add(&accountant->verdict, queue,
			    record_read(&ring->view, b, first, r, &plain));
}

/* The bursts before `through` may be used again: results are read, frames are not wanted. */
static void accountant_release(const struct accountant *accountant, uint32_t queue,
			       uint64_t through)
{
	struct ring_producer *ring = accountant->rings[queue];

	if (accountant->fronts)
		front_follow_release(&accountant->fronts[queue], through);
	/* Their entries and the frames' slots. Partner: the acquire load in rx_reclaim(). */
	atomic_store_explicit(&ring->collected, through, memory_order_release);
	wake_look(ring->giver);
}

/* Copies what is to be saved; what may still be has to wait. */
static void accountant_save(struct accountant *accountant, uint32_t queue, uint64_t through)
{
	struct ring_producer *ring = accountant->rings[queue];
	const uint64_t released = atomic_load_explicit(&ring->collected, memory_order_relaxed);
	uint64_t hold;

	save_flush(accountant->save);
	hold = save_hold(accountant->save, queue, through);
	if (hold > through)
		hold = through;
	if (hold > released)
		accountant_release(accountant, queue, hold);
}

/* A burst that the saver has no room for stays in the ring. At the stop the accountant takes it all the same. */
static bool saver_has_room(const struct accountant *accountant, uint32_t queue)
{
	return !accountant->save || atomic_load_explicit(&accountant->stop, memory_order_relaxed) ||
	       save_has_room(accountant->save, queue);
}

/* Returns the bursts collected. */
static unsigned int accountant_collect(struct accountant *accountant, uint32_t queue)
{
	struct ring_producer *ring = accountant->rings[queue];
	uint64_t b = atomic_load_explicit(&ring->accounted, memory_order_relaxed);
	/* A burst may be done sooner than it is seen which frames it has. */
	const uint64_t seen =
		accountant->fronts ? front_follow_look(&accountant->fronts[queue], accountant->now)
				   : UINT64_MAX;
	unsigned int n = 0;

	verdict_round(&accountant->verdict);
	for (; n < COLLECT_BURSTS && b != seen && ring_is_done(ring, b) &&
	       saver_has_room(accountant, queue);
	     n++, b++) {
		__builtin_prefetch(&ring->result[((uint32_t)b + 2) & ring->burst_mask]);
		if (!accountant->follows)
			accountant_add(accountant, queue, b);
		if (accountant->save)
			save_burst(accountant->save, queue, b);
	}
	if (n == 0) {
		/* What was held for frames to come may go back when none will. */
		if (accountant->save &&
		    b != atomic_load_explicit(&ring->collected, memory_order_relaxed))
			accountant_save(accountant, queue, b);
		return 0;
	}
	/* ROOM (replay/file_room.h): after what the assembler has seen in them. */
	atomic_store_explicit(&ring->accounted, b, memory_order_release);
	if (accountant->save)
		accountant_save(accountant, queue, b);
	else
		accountant_release(accountant, queue, b);
	return n;
}

/* Of the clock by which images time out. */
static uint64_t images_now(const struct accountant *accountant)
{
	return accountant->clock
		       ? atomic_load_explicit(&accountant->clock->now, memory_order_relaxed)
		       : rte_rdtsc();
}

/* All that are open, as soon as the device has done it; one that is dead never does. */
static void accountant_close_images(const struct accountant *accountant,
				    struct gdrcap_images *images)
{
	const uint64_t since = rte_rdtsc();
	unsigned int idle = 0;

	while (!images_finish(images, images_now(accountant)) && !tsc_older(since, CLOSE_MS))
		thread_idle(++idle);
	images_close(images, images_now(accountant));
}

/* The first time after `now` at which one of them is over. */
static uint64_t images_over(const struct accountant *accountant, uint64_t now)
{
	uint64_t over = UINT64_MAX;

	for (uint32_t i = 0; i < accountant->image_count; i++)
		over = RTE_MIN(over, assembler_over(&accountant->images[i].assembler));
	return RTE_MAX(over, now + 1);
}

/*
 * A frame waits for an image buffer, and none will be free: images that miss pieces are in all of them, or the caller
 * has had some for so long that he may wait for the next image.
 */
static bool accountant_is_stuck(struct accountant *accountant, bool wants_room)
{
	bool full = false;

	for (uint32_t i = 0; i < accountant->image_count; i++)
		full |= assembler_is_full(&accountant->images[i].assembler);
	if (!wants_room || !accountant->stuck)
		accountant->stuck = wants_room ? accountant->now : 0;
	if (!wants_room || full)
		return wants_room;
	if (!tsc_older(accountant->stuck, STUCK_MS))
		return false;
	atomic_store_explicit(&accountant->waited_out, true, memory_order_relaxed);
	return true;
}

/* The clock of files moves on, and what is over by then is closed, one thing after the other. Where frames are stuck, time
 * passes for the images that keep them. False: it stands. */
static bool accountant_move_clock(struct accountant *accountant)
{
	struct source_clock *clock = accountant->clock;
	const uint64_t now = images_now(accountant);
	bool wants_room, stuck;
	uint64_t next = source_clock_next(clock, &wants_room), over;

	stuck = accountant_is_stuck(accountant, wants_room);
	if (next == now && !stuck)
		return false;
	for (uint32_t i = 0; i < accountant->image_count; i++)
		if (assembler_closes(&accountant->images[i].assembler))
			return false;
	over = images_over(accountant, now);
	next = stuck ? over : RTE_MIN(next, over);
	if (next == now || next == UINT64_MAX)
		return false;
	for (uint32_t i = 0; i < accountant->image_count; i++)
		(void)assembler_round(&accountant->images[i].assembler, next, next);
	source_clock_set(clock, next, images_over(accountant, next));
	accountant->stuck = 0;
	return true;
}

/* The run is over, and nothing more will come: whoever waits for images learns it, also before the stop. */
static bool images_are_over(const struct accountant *accountant)
{
	if (accountant->images_ended ||
	    !atomic_load_explicit(&accountant->images_end, memory_order_acquire))
		return false;
	for (uint32_t q = 0; q < accountant->ring_count; q++) {
		const struct ring_producer *ring = accountant->rings[q];

		/* `ended` first: nothing is published after it */
		if (!atomic_load_explicit(&ring->ended, memory_order_acquire) ||
		    atomic_load_explicit(&ring->accounted, memory_order_relaxed) !=
			    atomic_load_explicit(&ring->published, memory_order_relaxed))
			return false;
	}
	return true;
}

static void accountant_end_images(struct accountant *accountant)
{
	for (uint32_t i = 0; i < accountant->image_count; i++)
		accountant_close_images(accountant, &accountant->images[i]);
	accountant->images_ended = true;
}

/* No burst will follow: nothing is held any longer. */
static void accountant_end(struct accountant *accountant)
{
	verdict_finish(&accountant->verdict);
	accountant_end_images(accountant);
	if (!accountant->save)
		return;
	save_end(accountant->save);
	for (uint32_t q = 0; q < accountant->ring_count; q++) {
		const struct ring_producer *ring = accountant->rings[q];

		accountant_release(accountant, q,
				   atomic_load_explicit(&ring->accounted, memory_order_relaxed));
	}
}

static unsigned int accountant_round(struct accountant *accountant)
{
	unsigned int work = 0;
	bool waits = false;

	accountant->now = rte_rdtsc();
	for (uint32_t i = 0; i < accountant->image_count; i++)
		waits |= assembler_round(&accountant->images[i].assembler, images_now(accountant),
					 accountant->clock ? images_now(accountant)
							   : accountant->seen.until);
	if (waits)
		seen_look(&accountant->seen, accountant->now);
	for (uint32_t q = 0; q < accountant->ring_count; q++)
		work += accountant_collect(accountant, q);
	if (accountant->clock)
		work += accountant_move_clock(accountant);
	for (uint32_t i = 0; i < accountant->image_count; i++)
		(void)images_feed(&accountant->images[i]);
	return work;
}

/* True: it slept until there are more. */
static bool accountant_gather(struct accountant *accountant)
{
	const struct timespec nap = { .tv_nsec = 1000L * GATHER_US };
	const uint64_t now = now_ns(), us = (now - accountant->looked_ns) / 1000;
	const uint64_t came = accountant->bursts - accountant->looked;

	if (us < LOOK_US)
		return false;
	accountant->looked_ns = now;
	accountant->looked = accountant->bursts;
	if (came == 0 || came * SLOW_US > us)
		return false;
	nanosleep(&nap, NULL);
	return true;
}

/* A round found nothing to do: another look, or a sleep, in which readers have the lock. */
static void accountant_idle(struct accountant *accountant, unsigned int idle)
{
	const bool naps = thread_may_nap(&accountant->naps, idle);

	/* One that polls keeps the lock: readers who come again and again would have it each time. */
	if (!naps && (!accountant->sleeps || idle < REST_POLLS)) {
		thread_idle(idle);
		return;
	}
	pthread_mutex_unlock(&accountant->lock);
	if (!(idle == REST_POLLS && accountant->sleeps && !accountant->image_count &&
	      accountant_gather(accountant)) &&
	    !rest_step(&accountant->rest, idle, accountant->sleep_us)) {
		if (naps)
			thread_nap(&accountant->naps, idle);
		else
			thread_idle(idle);
	}
	pthread_mutex_lock(&accountant->lock);
}

static void accountant_run(void *arg)
{
	struct accountant *accountant = arg;
	unsigned int idle = 0;

	pthread_mutex_lock(&accountant->lock);
	while (!atomic_load_explicit(&accountant->stop, memory_order_relaxed)) {
		const unsigned int work = accountant_round(accountant);

		accountant->bursts += work;
		idle = work ? 0 : idle + 1;
		if (idle && images_are_over(accountant))
			accountant_end_images(accountant);
		if (atomic_load_explicit(&accountant->wanted, memory_order_relaxed)) {
			const unsigned int turn =
				atomic_load_explicit(&accountant->lent, memory_order_relaxed);

			/* One of them, not all: readers who come again and again must not keep us.
			 */
			pthread_mutex_unlock(&accountant->lock);
			for (unsigned int i = IDLE_PAUSES;
			     atomic_load_explicit(&accountant->wanted, memory_order_relaxed) &&
			     atomic_load_explicit(&accountant->lent, memory_order_relaxed) == turn;
			     i++)
				thread_give_way(i);
			pthread_mutex_lock(&accountant->lock);
		}
		if (idle)
			accountant_idle(accountant, idle);
	}
	while (accountant_round(accountant))
		;
	accountant_end(accountant);
	pthread_mutex_unlock(&accountant->lock);
}

int accountant_create(struct accountant *accountant, struct ring_producer **rings, uint32_t count,
		      const struct verdict_config *config, struct save *save)
{
	int ret;

	memset(accountant, 0, sizeof(*accountant));
	ret = verdict_create(&accountant->verdict, count, config);
	if (ret < 0)
		return ret;
	accountant->rings = rings;
	accountant->ring_count = count;
	accountant->save = save;
	pthread_mutex_init(&accountant->lock, NULL);
	wake_init(&accountant->wake);
	return 0;
}

void accountant_destroy(struct accountant *accountant)
{
	verdict_destroy(&accountant->verdict);
	pthread_mutex_destroy(&accountant->lock);
}

int accountant_start(struct accountant *accountant, const cpu_set_t *cpus,
		     struct gdrcap_error *error)
{
	atomic_store(&accountant->stop, 0);
	rest_init(&accountant->rest, accountant->sleeps ? &accountant->wake : NULL);
	return thread_start(&accountant->thread, "gdrcap-acct", cpus, accountant_run, accountant,
			    error);
}

void accountant_wake(struct accountant *accountant)
{
	wake_look(&accountant->wake);
}

void accountant_stop(struct accountant *accountant)
{
	atomic_store(&accountant->stop, 1);
	accountant_wake(accountant);
	thread_join(&accountant->thread);
}

const struct verdict *accountant_borrow(struct accountant *accountant)
{
	atomic_fetch_add(&accountant->wanted, 1);
	pthread_mutex_lock(&accountant->lock);
	atomic_fetch_add_explicit(&accountant->lent, 1, memory_order_relaxed);
	return &accountant->verdict;
}

void accountant_return(struct accountant *accountant)
{
	pthread_mutex_unlock(&accountant->lock);
	atomic_fetch_sub(&accountant->wanted, 1);
}
