/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gdrcap whose CPU back end takes fronts on the GPU (--rx-by gpu): a CPU thread plays each, by the words, statuses and
 * sums of kernels/front.h, poller, host warp and keeper in turn. So what a session does with fronts runs without
 * a GPU. Linked from gdrcap's own objects with --wrap.
 *
 * FRONTED_ORDERING=N	what the device says of the order of a card's writes; else 200
 * FRONTED_SLOW_US=N	the accountant sleeps so long before each look at a front
 * FRONTED_DIES=N	each front leaves without a word at burst N, and its device reports an error
 * FRONTED_HANGS=N	each front does nothing more from burst N on
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/patience.h"
#include "base/thread.h"
#include "kernels/host/host_workers.h"
#include "kernels/kernel_job.h"
#include "verdict/front_follow.h"

#define EAGER 8u /* as DEFAULT_FRONT_EAGER of the CUDA back end */
#define STATUS_BURSTS                                                                              \
	64u /* as FRONT_STATUS_BURSTS of kernels/cuda/front.cuh, as the next two are */
#define LOOKS_TOLD 1024u
#define PASSED 8u
#define JOIN_LOOK_NS 1000000

extern const struct kernel_ops __real_kernel_host_ops;
extern struct kernel_ops __wrap_kernel_host_ops;
struct kernel_ops __wrap_kernel_host_ops;
uint64_t __real_front_follow_look(struct front_follow *follow, uint64_t now);
uint64_t __wrap_front_follow_look(struct front_follow *follow, uint64_t now);

enum leave { STAYS, EMPTY, BROKEN, GONE };

struct player {
	struct burst_ring_view ring;
	struct kernel_front front;
	uint32_t bits;
	uint32_t turn, frame; /* the next */
	uint32_t freed, given, posted, room_turn, room_frame;
	enum leave leave;
	uint64_t phase, frames, bytes, passes, empty, reposts, backlog;
	uint32_t passed, told, quiet;
	uint64_t told_passes;
	uint64_t began_ns; /* of a burst that waits to be full; 0: none does */
	pthread_t thread;
	struct thread_look look;
	_Atomic bool left;
};

struct players {
	uint32_t count;
	struct player player[];
};

static struct players *_Atomic playing; /* the job; sessions of the tests have one */
static _Atomic bool died;
static uint64_t slow_us, dies_at = UINT64_MAX, hangs_at = UINT64_MAX;

static uint64_t number_of(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void tell(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static void status_tell(struct player *p, uint32_t next, enum front_state state)
{
	struct front_status *status = p->front.status;

	tell(&status->frames, p->frames);
	tell(&status->bytes, p->bytes);
	tell(&status->bursts, p->turn);
	tell(&status->passes, p->passes);
	tell(&status->empty, p->empty);
	tell(&status->reposts, p->reposts);
	tell(&status->backlog, p->backlog);
	tell(&status->next, next);
	__atomic_store_n(&status->state, state, __ATOMIC_RELEASE);
}

/* ---- the keeper ---- */

static uint32_t end_of(const struct player *p, uint32_t turn)
{
	return turn == 0 ? p->front.next
			 : p->front.end[(uint32_t)(p->front.burst + turn - 1) & p->ring.burst_mask];
}

/* Up to which place work entries may be posted when the slots of the frames before `frame` are free. */
static uint32_t whole_end(const struct player *p, uint32_t frame)
{
	const struct cq_front_queue *queue = &p->front.queue;

	return p->front.first + queue->slots +
	       cq_whole(frame - p->front.first, queue->stride_shift);
}

/* REPOST */
static void record_tell(const struct player *p)
{
	const struct cq_front_queue *queue = &p->front.queue;

	cq_record_store(queue->record, (p->posted - p->front.first) >> queue->stride_shift);
}

/* FREE. Returns whether there was one. */
static bool freed_take(struct player *p)
{
	const uint32_t before = p->freed;

	if (p->front.host_frees)
		p->freed =
			(uint32_t)(__atomic_load_n(&p->front.words->collected, __ATOMIC_ACQUIRE) -
				   p->front.burst);
	for (; !p->front.host_frees && p->freed != p->turn; p->freed++) {
		const uint64_t burst = p->front.burst + p->freed;
		const uint64_t word = __atomic_load_n(
			&p->ring.free_word[burst & p->ring.burst_mask], __ATOMIC_ACQUIRE);

		if (!burst_word_is(word, burst, p->bits))
			break;
	}
	return p->freed != before;
}

/* The host's words; ROOM and REPOST by them. */
static void keep(struct player *p, bool all)
{
	const struct front_words *words = p->front.words;
	const uint32_t collected =
		(uint32_t)(__atomic_load_n(&words->collected, __ATOMIC_ACQUIRE) - p->front.burst);
	const uint64_t lease = __atomic_load_n(&words->lease, __ATOMIC_ACQUIRE);
	const uint32_t seen = front_earlier(collected, p->freed);
	const uint32_t may =
		front_through(p->freed, (uint32_t)(lease - p->front.burst), lease != UINT64_MAX);
	uint32_t slots;

	p->phase = __atomic_load_n(&words->phase, __ATOMIC_RELAXED);
	if (p->phase == FRONT_LEAVE)
		p->leave = GONE;
	p->room_turn = seen + p->ring.burst_mask + 1;
	p->room_frame = end_of(p, seen) + p->ring.desc_mask + 1;
	if ((int32_t)(may - p->given) > 0)
		p->given = may;
	/* draining: what is posted may still come, and no more, so that it has an end */
	if (!all && p->phase != FRONT_RUN)
		return;
	slots = whole_end(p, end_of(p, p->given)) - p->posted;
	if (all ? !slots : !cq_repost_due(slots, p->posted - p->frame, p->front.queue.slots))
		return;
	p->posted += slots;
	p->reposts++;
	record_tell(p);
}

/* ---- the poller ---- */

static const uint8_t *entry(const struct player *p, uint32_t frame)
{
	return p->front.queue.cq + cq_at(frame, p->front.queue.cq_entries);
}

static bool is_new(const struct player *p, uint32_t frame)
{
	return cq_tail_is_new(cq_tail_acquire(entry(p, frame)), frame, p->front.queue.cq_entries);
}

static void fail(struct player *p, uint32_t frame, uint32_t kind)
{
	struct cq_fault *fault = &p->front.status->fault;

	if (p->leave != STAYS)
		return;
	memcpy(fault->cqe, entry(p, frame), CQ_BYTES);
	if (kind == CQ_KINDS)
		kind = cq_kind_at(&p->front.queue, frame, frame - p->front.first);
	fault->index = frame;
	fault->next = frame - p->front.first;
	fault->kind = kind;
	p->leave = BROKEN;
}

/* Frames that are there, at most `limit`; *odd: something else comes behind them. */
static uint32_t frames_see(const struct player *p, uint32_t limit, bool *odd)
{
	const struct cq_front_queue *queue = &p->front.queue;
	const uint32_t entries = queue->cq_entries, shift = queue->stride_shift;

	*odd = false;
	for (uint32_t n = 0; n < limit; n++) {
		const uint32_t at = p->frame + n, next = at - p->front.first;
		const uint32_t tail = cq_tail_acquire(entry(p, at)); /* ARRIVED */
		const uint32_t counter = cq_counter(next, shift);

		if ((tail & CQ_TAIL_MASK) == cq_tail_frame(at, entries, counter) &&
		    (!shift ||
		     cq_entry_is(cq_load32(entry(p, at) + CQ_ENTRY_AT), next, queue->slots, shift)))
			continue;
		*odd = cq_tail_is_new(tail, at, entries);
		return n;
	}
	return limit;
}

static uint64_t describe(struct player *p, uint32_t frame, bool *wrong)
{
	const struct cq_front_queue *queue = &p->front.queue;
	const uint32_t length = cq_length(cq_swap32(cq_load32(entry(p, frame) + CQ_LENGTH_AT)),
					  queue->stride_shift);
	const bool fits = cq_length_fits(length, queue->slot_bytes);

	*wrong = !fits;
	p->bytes += fits ? length : 0;
	return cq_desc(queue->first_slot, queue->slots, frame - p->front.first, fits ? length : 0) |
	       (fits ? 0 : (uint64_t)FRAME_DESC_CUT << 48);
}

static void publish(struct player *p, uint32_t frames)
{
	const uint64_t burst = p->front.burst + p->turn;
	const uint32_t slot = (uint32_t)burst & p->ring.burst_mask;
	const uint64_t word = burst_word(burst, p->bits, frames, p->frame);
	uint32_t wrong_at = UINT32_MAX;

	for (uint32_t i = 0; i < frames; i++) {
		bool wrong;
		const uint64_t desc = describe(p, p->frame + i, &wrong);

		memcpy((void *)(uintptr_t)&p->ring.desc[(p->frame + i) & p->ring.desc_mask], &desc,
		       sizeof(desc));
		if (wrong && wrong_at == UINT32_MAX)
			wrong_at = p->frame + i;
	}
	p->front.end[slot] = p->frame + frames;
	__atomic_store_n((uint64_t *)(uintptr_t)&p->ring.ready[slot].word, word, __ATOMIC_RELEASE);
	__atomic_store_n(&p->front.head[slot], word, __ATOMIC_RELEASE);
	p->turn++;
	p->frame += frames;
	p->frames += frames;
	p->began_ns = 0;
	if (wrong_at != UINT32_MAX)
		fail(p, wrong_at, CQ_LENGTH);
}

static void nothing_came(struct player *p)
{
	p->empty += p->posted != p->frame;
	if (p->phase != FRONT_RUN) {
		p->leave = EMPTY;
	} else if (++p->quiet % LOOKS_TOLD == 0) {
		p->passed = is_new(p, p->frame + 1) && !is_new(p, p->frame) ? p->passed + 1 : 0;
		if (p->passed == PASSED)
			fail(p, p->frame, CQ_ORDER);
	}
}

/* Returns whether something came. */
static bool poll(struct player *p)
{
	const uint32_t limit = front_limit(p->frame, p->front.burst_max);
	uint32_t frames;
	bool odd;

	/* ROOM */
	if (!front_fits(p->turn, p->room_turn, p->frame + p->front.burst_max, p->room_frame))
		return false;
	frames = frames_see(p, limit, &odd);
	p->passes++;
	if (!frames && odd)
		fail(p, p->frame, CQ_KINDS);
	else if (!frames)
		nothing_came(p);
	if (!frames)
		return false;
	p->quiet = p->passed = 0;
	p->began_ns = p->began_ns ? p->began_ns : now_ns();
	if (frames == limit || odd || p->phase != FRONT_RUN || p->turn - p->freed < EAGER ||
	    now_ns() - p->began_ns >= p->front.burst_us * UINT64_C(1000))
		publish(p, frames);
	return true;
}

/* ---- the thread ---- */

/* Behind an error: what has come since, until the host says so. */
static uint32_t flushed_count(struct player *p)
{
	uint32_t next = p->frame;

	status_tell(p, next, FRONT_FAILED);
	for (bool last = false; !last; host_idle(LOOKS_TOLD)) {
		last = __atomic_load_n(&p->front.words->phase, __ATOMIC_RELAXED) != FRONT_RUN;
		while (is_new(p, next))
			next++;
	}
	return next;
}

static void play(struct player *p)
{
	for (uint32_t idle = 0; p->leave != GONE && (p->leave == STAYS || p->freed != p->turn);) {
		const bool freed = freed_take(p);

		keep(p, false);
		idle = (p->leave == STAYS && poll(p)) || freed ? 0 : idle + 1;
		if (p->frame - end_of(p, p->given) > p->backlog)
			p->backlog = p->frame - end_of(p, p->given);
		if (p->freed - p->told >= STATUS_BURSTS ||
		    (idle && (p->freed != p->told || p->passes - p->told_passes >= LOOKS_TOLD))) {
			p->told = p->freed;
			p->told_passes = p->passes;
			status_tell(p, p->frame, p->leave ? FRONT_DRAINS : FRONT_RUNS);
		}
		if (p->front.burst + p->turn >= dies_at) {
			died = true;
			return;
		}
		while (p->front.burst + p->turn >= hangs_at &&
		       __atomic_load_n(&p->front.words->phase, __ATOMIC_RELAXED) != FRONT_LEAVE)
			host_idle(UINT32_MAX);
		if (idle)
			thread_idle(idle);
	}
}

static void *player_main(void *arg)
{
	struct player *p = arg;
	uint32_t next;

	thread_look_begin(&p->look);
	p->turn = p->freed = p->given = 0;
	p->frame = p->front.next;
	p->posted = whole_end(p, p->front.next);
	p->bits = (uint32_t)__builtin_ctz(p->ring.burst_mask + 1);
	record_tell(p);
	status_tell(p, p->frame, FRONT_RUNS);
	play(p);
	next = p->frame;
	if (p->leave == BROKEN)
		next = flushed_count(p);
	else if (p->leave == EMPTY)
		keep(p, true);
	if (!died)
		status_tell(p, next, FRONT_ENDED);
	atomic_store_explicit(&p->left, true, memory_order_release);
	return NULL;
}

/* ---- the back end ---- */

static struct players *players_of(const struct kernel_workers *workers)
{
	struct players *players = playing;

	return (const void *)workers == players ? players : NULL;
}

static void players_free(struct players *players)
{
	for (uint32_t i = 0; i < players->count; i++)
		pthread_join(players->player[i].thread, NULL);
	playing = NULL;
	free(players);
}

static int fronted_start(struct kernel_device *device, const struct kernel_job *job,
			 struct kernel_workers **workers)
{
	struct players *players;
	int ret;

	if (job->role != KERNEL_FRONT)
		return __real_kernel_host_ops.start(device, job, workers);
	if (job->instead)
		players_free(players_of(job->instead));
	ret = kernel_job_check(job);
	if (ret)
		return ret;
	players = calloc(1, sizeof(*players) + job->ring_count * sizeof(players->player[0]));
	if (!players)
		return kernel_fail(-ENOMEM, "no memory for players");
	playing = players;
	for (; players->count < job->ring_count; players->count++) {
		struct player *p = &players->player[players->count];

		p->ring = job->rings[players->count];
		p->front = job->fronts[players->count];
		if (pthread_create(&p->thread, NULL, player_main, p) != 0)
			abort();
		pthread_setname_np(p->thread, "gpu-front");
	}
	*workers = (struct kernel_workers *)(void *)players;
	return 0;
}

static bool players_starved(void *arg)
{
	struct players *players = arg;
	bool starved = false;

	for (uint32_t i = 0; i < players->count; i++)
		starved |= !players->player[i].left &&
			   thread_is_starved(&players->player[i].look, players->player[i].thread);
	return starved;
}

static bool players_left(const struct players *players)
{
	for (uint32_t i = 0; i < players->count; i++)
		if (!atomic_load_explicit(&players->player[i].left, memory_order_acquire))
			return false;
	return true;
}

static int fronted_join(struct kernel_workers *workers, unsigned int timeout_ms)
{
	const struct timespec look = { .tv_nsec = JOIN_LOOK_NS };
	struct players *players = players_of(workers);
	struct patience patience;

	if (!players)
		return __real_kernel_host_ops.join(workers, timeout_ms);
	patience_begin(&patience);
	while (!players_left(players)) {
		if (patience_ends(&patience, timeout_ms, players_starved, players))
			return kernel_fail(-ETIMEDOUT, "a front did not leave");
		nanosleep(&look, NULL);
	}
	players_free(players);
	return died ? kernel_fail(-EIO, "this front was made to die; ask the test why") : 0;
}

static int fronted_running(struct kernel_workers *workers)
{
	const struct players *players = players_of(workers);

	if (!players)
		return __real_kernel_host_ops.running(workers);
	return died ? kernel_fail(-EIO, "this front was made to die; ask the test why")
		    : !players_left(players);
}

static bool fronted_starved(struct kernel_workers *workers)
{
	struct players *players = players_of(workers);

	return players ? players_starved(players) : __real_kernel_host_ops.starved(workers);
}

static uint32_t fronted_per_ring(const struct kernel_workers *workers)
{
	return players_of(workers) ? 1 : __real_kernel_host_ops.workers_per_ring(workers);
}

static void fronted_info(const struct kernel_device *device, struct kernel_info *info)
{
	__real_kernel_host_ops.info(device, info);
	info->writes_ordering = (int32_t)number_of("FRONTED_ORDERING", 200);
}

uint64_t __wrap_front_follow_look(struct front_follow *follow, uint64_t now)
{
	const struct timespec nap = { .tv_nsec = (long)slow_us * 1000 };

	if (slow_us)
		nanosleep(&nap, NULL);
	return __real_front_follow_look(follow, now);
}

__attribute__((constructor)) static void fronted_begin(void)
{
	struct kernel_ops *ops = &__wrap_kernel_host_ops;

	*ops = __real_kernel_host_ops;
	ops->runs_fronts = 1;
	ops->info = fronted_info;
	ops->start = fronted_start;
	ops->join = fronted_join;
	ops->running = fronted_running;
	ops->starved = fronted_starved;
	ops->workers_per_ring = fronted_per_ring;
	slow_us = number_of("FRONTED_SLOW_US", 0);
	dies_at = number_of("FRONTED_DIES", UINT64_MAX);
	hangs_at = number_of("FRONTED_HANGS", UINT64_MAX);
}
