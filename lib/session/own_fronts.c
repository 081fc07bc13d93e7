/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fronts on the GPU (rx_by gpu): the session's receive queues are polled by blocks of one kernel, and no thread of the
 * CPU's receives. Made, started, ended and started again by the control thread.
 *
 * A front numbers frames as completions are. Where it ends, another goes on (struct own_place). One that a queue in
 * error has stopped says so and waits; then all fronts of the session end with what has come, as a kernel ends as a
 * whole, and are started again when the queue is reset: frames of the others meanwhile lie in their slots.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/clock.h"
#include "base/log.h"
#include "session/session.h"

#define PAUSE_MS 500u /* to end with what has come, or the consumer hardly moves */
#define LEAVE_MS 1000u
#define BEGIN_MS 1000u
/* While others are under way, a burst that is not full waits so long at most. */
#define BURST_US 20u

/* What a front and the host share: lines of one writer each. */
struct front_shared_words {
	_Alignas(RING_LINE) struct front_words words;
	_Alignas(RING_LINE) struct front_status status;
};

static int gpu_fill(void *context, void *at, int byte, size_t bytes)
{
	const struct gdrcap_session *session = context;

	return session->memory.ops->fill(session->memory.device, at, (uint8_t)byte, bytes);
}

static int gpu_read(void *context, void *to, const void *from, size_t bytes)
{
	const struct gdrcap_session *session = context;

	return session->memory.ops->copy_out(session->memory.device, to, from, bytes);
}

static struct own_queues *own_of(const struct gdrcap_session *session, uint32_t i)
{
	return session->ports.pairs[i / session->settings.queues].own;
}

static uint32_t queue_of(const struct gdrcap_session *session, uint32_t i)
{
	return i % session->settings.queues;
}

/* ---- made ---- */

int session_fronts_check(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct session_memory *memory = &session->memory;

	if (session->settings.rx_by != RX_BY_GPU)
		return 0;
	if (!memory->ops->runs_fronts)
		return error_set(
			error, -ENOTSUP,
			"rx_by: gpu needs a CUDA device to poll receive queues, and the CPU stands "
			"in for one here; use rx_by: cpu, or leave it out");
	if (memory->region.kind != GDRCAP_MEMORY_DEVICE || session->settings.flush == FLUSH_NONE)
		return 0;
	if (session->settings.flush == FLUSH_HOST || memory->device_info.writes_ordering < 100)
		return error_set(
			error, -ENOTSUP,
			"rx_by: %s; use rx_by: cpu, which flushes, or memory: pinned, or flush: "
			"none, with which you say that it does",
			session->settings.flush == FLUSH_HOST
				? "flush: host is a CPU's call before each burst, and the GPU "
				  "publishes without the CPU: it has to order a card's writes"
				: "this GPU does not say that it orders a card's writes, so a kernel "
				  "could see a completion before its frame");
	return 0;
}

void session_fronts_memory(struct gdrcap_session *session, struct own_gpu *gpu)
{
	gpu->kind = GDRCAP_MEMORY_HOST;
	if (session->settings.rx_by != RX_BY_GPU)
		return;
	*gpu = (struct own_gpu){
		.kind = session->memory.region.kind == GDRCAP_MEMORY_DEVICE ? GDRCAP_MEMORY_DEVICE
									    : GDRCAP_MEMORY_PINNED,
		.cpu_front = !session->plan.cuda,
		.fill = gpu_fill,
		.read = gpu_read,
		.context = session,
	};
}

int session_fronts_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	struct session_fronts *fronts = &session->fronts;
	const uint32_t count = session->settings.ports * session->settings.queues;
	const struct region_config config = {
		.gpu = session->memory.gpu,
		.kind = session->plan.cuda ? GDRCAP_MEMORY_PINNED : GDRCAP_MEMORY_HOST,
		.bytes = count * sizeof(struct front_shared_words),
		.slot_shift = REGION_IMAGE_SHIFT,
		.cpu_workers = !session->plan.cuda,
	};

	if (session->settings.rx_by != RX_BY_GPU)
		return 0;
	fronts->follow = aligned_alloc(RING_LINE, count * sizeof(*fronts->follow));
	if (!fronts->follow)
		return error_set(error, -ENOMEM, "no memory for %u fronts", count);
	memset(fronts->follow, 0, count * sizeof(*fronts->follow));
	fronts->count = count;
	fronts->ring = (struct ring_front){
		.host_reads = session->settings.save[0] || session->settings.save_damaged[0],
		.cpu_workers = !session->plan.cuda,
		.fill = gpu_fill,
		.context = session,
	};
	return region_create(&fronts->words, &config, error);
}

void session_fronts_destroy(struct gdrcap_session *session)
{
	if (session->fronts.words.bytes)
		region_destroy(&session->fronts.words);
	free(session->fronts.follow);
	memset(&session->fronts, 0, sizeof(session->fronts));
}

const struct ring_front *session_fronts_ring(const struct gdrcap_session *session)
{
	return session->fronts.count ? &session->fronts.ring : NULL;
}

int session_fronts_add(struct gdrcap_session *session, uint32_t index, struct gdrcap_error *error)
{
	struct front_shared_words *words = (void *)session->fronts.words.device;

	memset(&words[index], 0, sizeof(words[index]));
	front_follow_init(&session->fronts.follow[index], &session->workers.rx[index],
			  &words[index].words, &words[index].status,
			  session->fronts.ring.host_reads);
	return own_queues_poll(own_of(session, index), queue_of(session, index), NULL, error);
}

/* ---- started ---- */

static void front_describe(const struct gdrcap_session *session, uint32_t i,
			   struct kernel_front *front)
{
	const struct ring_producer *ring = &session->workers.rx[i].ring;
	const struct front_follow *follow = &session->fronts.follow[i];
	const struct own_queues *own = own_of(session, i);
	const struct own_place *place = &own->place[queue_of(session, i)];
	const bool collects = settings_collects(&session->settings);

	*front = (struct kernel_front){
		.queue = own->cq[queue_of(session, i)].queue,
		.words = follow->words,
		.status = follow->status,
		.head = (uint64_t *)(uintptr_t)ring->echo,
		.end = ring->front_end,
		.burst = place->burst,
		.first = place->first,
		.next = place->next,
		.burst_max = ring->burst_max,
		.burst_us = BURST_US,
		/* streams that wait for a burst learn of it from the accountant */
		.host_reads = session->fronts.ring.host_reads || !collects,
		.host_frees = !collects,
	};
}

/* It begins with its queue as it is; one that is in error has to be reset before. */
static bool front_may_run(const struct gdrcap_session *session, uint32_t i)
{
	const struct own_queues *own = own_of(session, i);
	const uint32_t q = queue_of(session, i);

	return !own->dead[q] &&
	       atomic_load_explicit(&own->cq[q].state, memory_order_relaxed) == CQ_RUNS;
}

static int fronts_job_start(struct gdrcap_session *session, struct gdrcap_error *error)
{
	struct kernel_front fronts[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
	struct burst_ring_view views[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
	struct kernel_job job = {
		.role = KERNEL_FRONT,
		.rings = views,
		.layout = session->frames.layout,
		.pattern = session->frames.pattern,
		.fronts = fronts,
		.instead = session->fronts.left,
	};
	struct kernel_workers *started = NULL;
	int ret;

	for (uint32_t i = 0; i < session->fronts.count; i++) {
		if (!front_may_run(session, i))
			continue;
		front_follow_begin(&session->fronts.follow[i]);
		views[job.ring_count] = session->workers.rx[i].ring.view;
		/* who checks frames poisons slots */
		views[job.ring_count].generation = NULL;
		front_describe(session, i, &fronts[job.ring_count++]);
	}
	if (!job.ring_count)
		return 0;
	session->fronts.left = NULL;
	ret = session->memory.ops->start(session->memory.device, &job, &started);
	if (ret < 0)
		return error_set(error, ret, "%s", kernel_error());
	guest_lock();
	session->jobs.front = started;
	guest_unlock();
	return 0;
}

/* The queues that were reset take frames again, once their fronts have posted slots. */
static int queues_start(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const uint64_t since = rte_rdtsc();
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < session->fronts.count; i++) {
		struct own_queues *own = own_of(session, i);
		const uint32_t q = queue_of(session, i);
		const uint64_t *state = &session->fronts.follow[i].status->state;

		if (!own->place[q].reset || !front_may_run(session, i))
			continue;
		/* Partner: the front's release store, after its first of the record. */
		while (__atomic_load_n(state, __ATOMIC_ACQUIRE) == FRONT_NONE &&
		       !tsc_older(since, BEGIN_MS))
			sleep_ms(SESSION_TICK_MS);
		session_ports_lock(session);
		ret = own_rx_start(&own->rx[q], error);
		session_ports_unlock(session);
		own->place[q].reset = false;
		/* What finds no slot from now on is not the error's (own_queues_look()). */
		counter_add(&own->cq[q].reposts, 1);
	}
	return ret;
}

int session_fronts_start(struct gdrcap_session *session, struct gdrcap_error *error)
{
	int ret = fronts_job_start(session, error);

	if (ret == 0)
		ret = queues_start(session, error);
	/* The end of the process may have come between. */
	for (uint32_t i = 0; i < session->fronts.count; i++)
		if (atomic_load(&session->workers.rx[i].phase) == RX_ABANDON)
			front_follow_phase(&session->fronts.follow[i], RX_ABANDON);
	if (ret < 0 && !session->jobs.front)
		for (uint32_t i = 0; i < session->fronts.count; i++)
			session->fronts.follow[i].status->state = FRONT_ENDED;
	return ret;
}

/* ---- ended, and started again ---- */

/* Why the front of receiver i stopped is what recover_own.c, and the counts of errors, know of a queue. */
static void front_mark(const struct gdrcap_session *session, uint32_t i)
{
	const struct front_status *status = session->fronts.follow[i].status;
	struct cq_worker *cq = &own_of(session, i)->cq[queue_of(session, i)];
	/* Partner: the front's release store, after the fault's words. */
	const uint64_t state = __atomic_load_n(&status->state, __ATOMIC_ACQUIRE);

	if ((state != FRONT_FAILED && state != FRONT_ENDED) || status->fault.kind == CQ_NONE ||
	    atomic_load_explicit(&cq->state, memory_order_relaxed) == CQ_STOPPED)
		return;
	cq->fault = status->fault;
	counter_add(&cq->stops[RTE_MIN(status->fault.kind, (uint32_t)CQ_KINDS - 1)], 1);
	atomic_store_explicit(&cq->state, CQ_STOPPED, memory_order_release);
}

void session_fronts_look(struct gdrcap_session *session, uint32_t p)
{
	for (uint32_t q = 0; q < session->settings.queues; q++)
		front_mark(session, p * session->settings.queues + q);
}

/* Bursts up to the next front's first; in 32 bits, as a front counts them. */
static uint32_t burst_next(const struct gdrcap_session *session, uint32_t i)
{
	const struct own_place *place = &own_of(session, i)->place[queue_of(session, i)];

	return (uint32_t)(place->burst + __atomic_load_n(&session->fronts.follow[i].status->bursts,
							 __ATOMIC_RELAXED));
}

static bool front_is_paused(const struct gdrcap_session *session, uint32_t i)
{
	return front_follow_has_ended(&session->fronts.follow[i]) &&
	       (uint32_t)atomic_load_explicit(&session->workers.rx[i].ring.collected,
					      memory_order_acquire) == burst_next(session, i);
}

/* The fronts that ran have left: where the next begin. */
static void places_advance(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->fronts.count; i++) {
		struct own_place *place = &own_of(session, i)->place[queue_of(session, i)];
		struct front_status *status = session->fronts.follow[i].status;

		front_mark(session, i);
		/* in a pause all that was published is collected, and the run's end needs it no more */
		place->burst = atomic_load_explicit(&session->workers.rx[i].ring.collected,
						    memory_order_acquire);
		place->next += (uint32_t)status->frames;
		status->bursts = status->frames = 0;
	}
}

/* The kernel ends; its room on the GPU stays for the next: a writer's blocks may have filled all the rest. */
static bool job_leaves(struct gdrcap_session *session)
{
	struct kernel_workers *job = session->jobs.front;
	struct patience patience;
	int running;

	if (!job)
		return true;
	patience_begin(&patience);
	while ((running = session->memory.ops->running(job)) == 1) {
		if (patience_ends(&patience, LEAVE_MS, session_consumer_is_starved, session))
			return false;
		sleep_ms(SESSION_TICK_MS);
	}
	/* the device failed under it: it is joined with the session */
	if (running < 0) {
		session_fail(session, running, kernel_error());
		return false;
	}
	guest_lock();
	session->jobs.front = NULL;
	guest_unlock();
	session->fronts.left = job;
	return true;
}

bool session_fronts_pause(struct gdrcap_session *session)
{
	const uint64_t since = rte_rdtsc();

	session->fronts.pausing = true;
	for (uint32_t i = 0; i < session->fronts.count; i++) {
		session_receiver_set(session, i, RX_PAUSE);
		atomic_store_explicit(&session->workers.rx[i].ring.wants_all, 1,
				      memory_order_relaxed);
	}
	for (uint32_t i = 0; i < session->fronts.count;) {
		if (front_is_paused(session, i))
			i++;
		else if (tsc_older(since, PAUSE_MS))
			return false; /* it goes on to end, and is asked again */
		else
			sleep_ms(SESSION_TICK_MS);
	}
	if (!job_leaves(session))
		return false;
	places_advance(session);
	session->fronts.pausing = false;
	return true;
}

void session_fronts_go_on(struct gdrcap_session *session)
{
	struct gdrcap_error error;
	int ret;

	for (uint32_t i = 0; i < session->fronts.count; i++) {
		atomic_store_explicit(&session->workers.rx[i].ring.wants_all, 0,
				      memory_order_relaxed);
		if (front_may_run(session, i))
			session_receiver_set(session, i, RX_RUN);
	}
	ret = session_fronts_start(session, &error);
	if (ret < 0)
		session_fail(session, ret, error.text);
}

void session_fronts_end(struct gdrcap_session *session)
{
	struct gdrcap_error error;

	if (session->fronts.left && session->memory.ops->join(session->fronts.left, LEAVE_MS) < 0)
		log_warning("%s", kernel_error());
	session->fronts.left = NULL;
	if (session->jobs.front || session->run.given_up)
		return;
	places_advance(session);
	for (uint32_t i = 0; i < session->fronts.count; i++) {
		struct own_queues *own = own_of(session, i);
		const uint32_t q = queue_of(session, i);

		if (!front_may_run(session, i) && own_front_discard(own, q, &error) < 0)
			log_warning("%s", error.text);
	}
}
