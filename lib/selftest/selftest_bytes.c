/* SPDX-License-Identifier: BSD-3-Clause */
/* The self-test in memory: are its bytes there, and does a consumer find them right? */
#include <errno.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "base/guest.h"
#include "base/log.h"
#include "kernels/frame_records.h"
#include "selftest/selftest_internal.h"

/* Copies a part to where it is in the frame; *poison: of its bytes, those that are still what the
 * memory was filled with. */
static int part_read(struct selftest *selftest, const struct selftest_part *part,
		     const uint8_t *sent, uint8_t *got, uint32_t *poison)
{
	const struct gdrcap_session *session = selftest->session;

	*poison = 0;
	if (part->len == 0)
		return 0;
	if (session->memory.ops->copy_out(session->memory.device, got,
					  selftest_for_device(part->region, part->at),
					  part->len) < 0)
		return selftest_failed(selftest, SELFTEST_CHANGED, "the memory cannot be read: %s",
				       kernel_error());
	for (uint32_t i = 0; i < part->len; i++)
		*poison += got[i] == SESSION_POISON && sent[i] != SESSION_POISON;
	return 0;
}

int selftest_bytes(struct selftest *selftest)
{
	uint32_t first = SELFTEST_BYTES, at = 0, poison;
	uint8_t got[SELFTEST_BYTES];
	struct selftest_part parts[2];
	int ret;

	selftest_parts(selftest, parts);
	for (size_t i = 0; i < 2; at += parts[i++].len) {
		ret = part_read(selftest, &parts[i], selftest->frame + at, got + at, &poison);
		if (ret < 0)
			return ret;
		if (poison && poison >= parts[i].len / 2)
			return selftest_failed(
				selftest, SELFTEST_CHANGED,
				"a completion came, but %u of %u bytes%s still hold 0x%02x", poison,
				parts[i].len, i == 0 ? " in host memory" : "", SESSION_POISON);
	}
	for (uint32_t i = SELFTEST_BYTES; i-- > 0;)
		if (got[i] != selftest->frame[i])
			first = i;
	ret = selftest_passed(selftest, SELFTEST_CHANGED, "0x%02x is overwritten", SESSION_POISON);
	if (ret == 0 && first != SELFTEST_BYTES)
		return selftest_failed(selftest, SELFTEST_RIGHT, "byte %u is 0x%02x, not 0x%02x",
				       first, got[first], selftest->frame[first]);
	return ret < 0 ? ret
		       : selftest_passed(selftest, SELFTEST_RIGHT, "all %u as sent",
					 SELFTEST_BYTES);
}

struct consumer {
	const struct kernel_ops *ops;
	struct kernel_workers *workers;
};

static bool consumer_is_starved(void *arg)
{
	const struct consumer *consumer = arg;

	return consumer->ops->starved(consumer->workers);
}

/* Waits for the consumer's word on the one burst in `ring`; reports a bad one. */
static int consumer_verdict(struct selftest *selftest, struct ring_producer *ring,
			    struct kernel_workers *workers)
{
	struct frame_record plain;
	const struct frame_record *record;
	const struct timespec tick = { .tv_nsec = 100000 };
	struct consumer consumer = { selftest->session->memory.ops, workers };
	struct patience patience;

	patience_begin(&patience);
	while (!ring_is_done(ring, 0)) {
		if (selftest->session->memory.ops->running(workers) < 0)
			return selftest_failed(selftest, SELFTEST_CONSUMER, "it died: %s",
					       kernel_error());
		if (patience_ends(&patience, SELFTEST_ARRIVE_MS, consumer_is_starved, &consumer))
			return selftest_failed(selftest, SELFTEST_CONSUMER,
					       "it gave no result within %u ms",
					       SELFTEST_ARRIVE_MS);
		nanosleep(&tick, NULL);
	}
	record = record_read(&ring->view, 0, 0, 0, &plain);
	if (burst_records(&ring->view, 0) != 1 || record->verdict == FRAME_FILTERED)
		return selftest_failed(
			selftest, SELFTEST_CONSUMER,
			"it did not recognise the frame, whose bytes are right in memory");
	if (record->verdict != FRAME_VALID || record->bytes != selftest->layout.raw_payload)
		return selftest_failed(
			selftest, SELFTEST_CONSUMER,
			"it found %u wrong bits, the first in byte %u: 0x%02x, not 0x%02x",
			record->wrong_bits, record->offset, record->got, record->expected);
	return 0;
}

static struct frame_desc desc_of(const struct selftest_part *part)
{
	const struct region *region = part->region;
	const uint64_t offset = part->len ? (uint64_t)(part->at - region->base) : 0;

	return (struct frame_desc){
		.slot = (uint32_t)(offset >> region->slot_shift),
		.len = (uint16_t)part->len,
		.offset = (uint16_t)(offset & ((1u << region->slot_shift) - 1)),
	};
}

/* For the end of the process, which may come from another thread. */
static void selftest_stop_set(struct gdrcap_session *session, uint32_t *stop)
{
	guest_lock();
	session->jobs.selftest_stop = stop;
	guest_unlock();
}

int selftest_consumer(struct selftest *selftest)
{
	struct gdrcap_session *session = selftest->session;
	const struct ring_config config = {
		.region = &session->memory.region,
		.heads = session->settings.split ? &session->memory.heads : NULL,
		.frames = 1,
		.burst_max = 1,
		.inlines = session->memory.ops->reads_inline,
	};
	struct ring_producer *ring = aligned_alloc(RING_LINE, sizeof(*ring));
	struct kernel_workers *workers = NULL;
	struct kernel_job job = {
		.role = KERNEL_CHECK,
		.ring_count = 1,
		.workers_per_ring = 1,
		.frame_bytes_hint = SELFTEST_BYTES,
		.layout = selftest->layout,
		.pattern = selftest->pattern,
	};
	struct selftest_part parts[2];
	int ret, join;

	if (!ring)
		return error_set(selftest->error, -ENOMEM, "no memory for the first frame's ring");
	ret = ring_create(ring, &config, selftest->error);
	if (ret < 0)
		goto err;
	job.rings = &ring->view;
	ret = session->memory.ops->start(session->memory.device, &job, &workers);
	if (ret == 0)
		selftest_stop_set(session, ring->stop);
	if (ret < 0) {
		ret = selftest_failed(selftest, SELFTEST_CONSUMER, "it does not start: %s",
				      kernel_error());
		goto err_ring;
	}
	selftest_parts(selftest, parts);
	ring->desc[0] = desc_of(&parts[1]);
	if (config.heads)
		ring->head_desc[0] = desc_of(&parts[0]);
	ring->head = 1;
	ring_publish(ring);
	ret = consumer_verdict(selftest, ring, workers);
	__atomic_store_n(ring->stop, 1, __ATOMIC_RELAXED);
	join = session->memory.ops->join(workers, SELFTEST_ARRIVE_MS);
	selftest_stop_set(session, NULL);
	if (ret == 0 && join < 0)
		ret = selftest_failed(selftest, SELFTEST_CONSUMER, "it does not leave: %s",
				      kernel_error());
	else if (ret == 0)
		ret = selftest_passed(selftest, SELFTEST_CONSUMER,
				      "%u payload bytes checked, all right",
				      selftest->layout.raw_payload);
	if (join == -ETIMEDOUT) {
		/* It may still come back to the ring. */
		session->run.given_up = true;
		session->jobs.selftest_ring = ring;
		return ret;
	}
err_ring:
	ring_destroy(ring);
err:
	free(ring);
	return ret;
}
