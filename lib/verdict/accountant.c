/* SPDX-License-Identifier: BSD-3-Clause */
#include "accountant.h"

#include <errno.h>
#include <string.h>

#define COLLECT_BURSTS 64u /* of one queue before the next has its turn */

/* Returns the bursts collected. */
static unsigned int accountant_collect(struct accountant *accountant, uint32_t queue)
{
	struct ring_producer *ring = accountant->rings[queue];
	uint64_t b = atomic_load_explicit(&ring->collected, memory_order_relaxed);
	unsigned int n = 0;

	for (; n < COLLECT_BURSTS; n++, b++) {
		const uint32_t slot = (uint32_t)b & ring->burst_mask;
		const struct burst_result *result = &ring->result[slot];
		uint32_t runs, first;

		__builtin_prefetch(&ring->result[(slot + 2) & ring->burst_mask]);
		if (!ring_is_done(ring, b))
			break;
		runs = burst_word_count(result->done);
		if (runs == 0)
			continue;
		verdict_add(&accountant->verdict, queue, &result->run);
		first = burst_word_first(ring->ready[slot]);
		for (uint32_t r = 1; r < runs; r++)
			verdict_add(&accountant->verdict, queue,
				    &ring->view.overflow[(first + r) & ring->desc_mask]);
	}
	if (n)
		/* The results are read: their entries and the frames' slots may be used again.
		 * Partner: the acquire load in rx_reclaim(). */
		atomic_store_explicit(&ring->collected, b, memory_order_release);
	return n;
}

static unsigned int accountant_round(struct accountant *accountant)
{
	unsigned int work = 0;

	for (uint32_t q = 0; q < accountant->ring_count; q++)
		work += accountant_collect(accountant, q);
	return work;
}

static void accountant_run(void *arg)
{
	struct accountant *accountant = arg;
	unsigned int idle = 0;

	pthread_mutex_lock(&accountant->lock);
	while (!atomic_load_explicit(&accountant->stop, memory_order_relaxed)) {
		idle = accountant_round(accountant) ? 0 : idle + 1;
		if (atomic_load_explicit(&accountant->wanted, memory_order_relaxed)) {
			const unsigned int turn =
				atomic_load_explicit(&accountant->lent, memory_order_relaxed);

			/* One of them, not all: readers who come again and again must not keep us.
			 */
			pthread_mutex_unlock(&accountant->lock);
			while (atomic_load_explicit(&accountant->wanted, memory_order_relaxed) &&
			       atomic_load_explicit(&accountant->lent, memory_order_relaxed) ==
				       turn)
				sched_yield();
			pthread_mutex_lock(&accountant->lock);
		}
		if (idle)
			thread_idle(idle);
	}
	while (accountant_round(accountant))
		;
	pthread_mutex_unlock(&accountant->lock);
}

int accountant_create(struct accountant *accountant, struct ring_producer **rings, uint32_t count,
		      uint32_t own_streams)
{
	int ret;

	memset(accountant, 0, sizeof(*accountant));
	ret = verdict_create(&accountant->verdict, count, own_streams);
	if (ret < 0)
		return ret;
	accountant->rings = rings;
	accountant->ring_count = count;
	pthread_mutex_init(&accountant->lock, NULL);
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
	return thread_start(&accountant->thread, "gdrcap-acct", cpus, accountant_run, accountant,
			    error);
}

void accountant_stop(struct accountant *accountant)
{
	atomic_store(&accountant->stop, 1);
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
