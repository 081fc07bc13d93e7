/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting until threads that poll ports have gone round their loops; ticks that another thread wrote. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>
#include <rte_eal.h>

#include "nap.h"
#include "base/thread.h"
#include "base/tsc.h"

/* A poller that goes a round when it is told to. */
struct poller {
	struct thread thread;
	_Atomic uint64_t rounds, allowed;
	_Atomic bool end;
};

static uint64_t poller_rounds(const void *arg)
{
	return atomic_load(&((const struct poller *)arg)->rounds);
}

static void poller_run(void *arg)
{
	struct poller *poller = arg;

	while (!atomic_load(&poller->end)) {
		if (atomic_load(&poller->rounds) < atomic_load(&poller->allowed))
			atomic_fetch_add(&poller->rounds, 1);
		nap();
	}
}

static void poller_start(struct poller *poller, bool counts)
{
	struct gdrcap_error error;

	memset(poller, 0, sizeof(*poller));
	poller->thread.rounds = counts ? poller_rounds : NULL;
	assert_int_equal(thread_start(&poller->thread, "poller", NULL, poller_run, poller, &error),
			 0);
}

static void poller_end(struct poller *poller)
{
	atomic_store(&poller->end, true);
	thread_join(&poller->thread);
}

/* Who waits for them. */
struct waiter {
	pthread_t id;
	_Atomic bool waits, done;
};

static void *waiter_run(void *arg)
{
	struct waiter *waiter = arg;

	atomic_store(&waiter->waits, true);
	threads_go_round();
	atomic_store(&waiter->done, true);
	return NULL;
}

static void waiter_start(struct waiter *waiter)
{
	memset(waiter, 0, sizeof(*waiter));
	assert_int_equal(pthread_create(&waiter->id, NULL, waiter_run, waiter), 0);
	while (!atomic_load(&waiter->waits))
		nap();
	/* It cannot be seen to wait: long enough for one that does not. */
	for (int i = 0; i < 2000; i++)
		nap();
}

static void poller_allow(struct poller *poller, uint64_t rounds)
{
	atomic_store(&poller->allowed, rounds);
	while (atomic_load(&poller->rounds) != rounds)
		nap();
	for (int i = 0; i < 2000; i++)
		nap();
}

static void waits_for_two_rounds_of_each(void **state)
{
	struct poller one, two;
	struct waiter waiter;

	(void)state;
	poller_start(&one, true);
	poller_start(&two, true);
	waiter_start(&waiter);
	assert_false(atomic_load(&waiter.done));
	poller_allow(&one, 5);
	assert_false(atomic_load(&waiter.done));
	poller_allow(&two, 1);
	assert_false(atomic_load(&waiter.done));
	atomic_store(&two.allowed, 2);
	pthread_join(waiter.id, NULL);
	poller_end(&one);
	poller_end(&two);
}

static void waits_for_nobody_who_left(void **state)
{
	struct poller poller;
	struct waiter waiter;

	(void)state;
	poller_start(&poller, true);
	waiter_start(&waiter);
	assert_false(atomic_load(&waiter.done));
	/* It leaves, and is not joined before the other has seen that. */
	atomic_store(&poller.end, true);
	pthread_join(waiter.id, NULL);
	thread_join(&poller.thread);
	threads_go_round();
}

/* It goes a round each time that it is woken, and else sleeps for an hour. */
struct dozer {
	struct thread thread;
	struct wake wake;
	_Atomic uint64_t rounds;
	_Atomic bool end;
};

static uint64_t dozer_rounds(const void *arg)
{
	return atomic_load(&((const struct dozer *)arg)->rounds);
}

static void dozer_run(void *arg)
{
	struct dozer *dozer = arg;
	uint32_t ticket;

	while (!atomic_load(&dozer->end)) {
		assert_true(wake_arm(&dozer->wake, &ticket));
		atomic_fetch_add(&dozer->rounds, 1);
		if (!atomic_load(&dozer->end))
			wake_sleep(&dozer->wake, ticket, 3600000000u, -1);
	}
}

/* Else this test does not end in time. */
static void wakes_who_sleeps(void **state)
{
	struct gdrcap_error error;
	struct dozer dozer;

	(void)state;
	memset(&dozer, 0, sizeof(dozer));
	wake_init(&dozer.wake);
	dozer.thread.rounds = dozer_rounds;
	dozer.thread.wake = &dozer.wake;
	assert_int_equal(thread_start(&dozer.thread, "dozer", NULL, dozer_run, &dozer, &error), 0);
	for (int i = 0; i < 10; i++)
		threads_go_round();
	assert_true(atomic_load(&dozer.rounds) >= 20);
	atomic_store(&dozer.end, true);
	wake_look(&dozer.wake);
	thread_join(&dozer.thread);
}

static void waits_for_no_other_thread(void **state)
{
	struct poller poller;

	(void)state;
	poller_start(&poller, false);
	threads_go_round();
	poller_end(&poller);
}

/* Stuck is who makes no round for long enough, whatever time goes by in which nobody asks. */
static void stuck_without_a_round(void **state)
{
	struct poller poller, other;

	(void)state;
	poller_start(&poller, true);
	poller_start(&other, false);
	assert_false(thread_is_stuck(&poller.thread));
	poller.thread.patience.look_ns -= UINT64_C(3600000000000);
	assert_false(thread_is_stuck(&poller.thread));
	poller.thread.patience.spent_ns = UINT64_C(1000000) * thread_stuck_ms;
	assert_true(thread_is_stuck(&poller.thread));
	assert_false(thread_join_unless_stuck(&poller.thread));
	atomic_store(&poller.allowed, 1);
	while (atomic_load(&poller.rounds) == 0)
		nap();
	assert_false(thread_is_stuck(&poller.thread));
	/* One that uses no port cannot hang in one. */
	other.thread.patience.spent_ns = UINT64_MAX / 2;
	assert_false(thread_is_stuck(&other.thread));
	poller.thread.patience.spent_ns = UINT64_C(1000000) * thread_stuck_ms;
	atomic_store(&poller.end, true);
	while (!thread_has_left(&poller.thread))
		nap();
	assert_false(thread_is_stuck(&poller.thread));
	assert_true(thread_join_unless_stuck(&poller.thread));
	poller_end(&other);
}

static void joined_within_the_time_or_not(void **state)
{
	struct poller poller;

	(void)state;
	poller_start(&poller, true);
	assert_false(thread_join_within(&poller.thread, 0));
	assert_false(thread_join_within(&poller.thread, 5));
	atomic_store(&poller.end, true);
	assert_true(thread_join_within(&poller.thread, 3600000));
	assert_false(poller.thread.running);
	assert_true(thread_join_within(&poller.thread, 0));
}

struct sleeper {
	struct thread_look look;
	pthread_mutex_t lock;
	_Atomic bool spin, spins;
};

static void *sleeper_run(void *arg)
{
	struct sleeper *sleeper = arg;

	thread_look_begin(&sleeper->look);
	pthread_mutex_lock(&sleeper->lock);
	pthread_mutex_unlock(&sleeper->lock);
	while (atomic_load(&sleeper->spin))
		atomic_store(&sleeper->spins, true);
	return NULL;
}

/* A thread that waits in the system for something, or runs, is not starved; one that never ran is. */
static void starved_is_who_is_ready(void **state)
{
	struct sleeper sleeper = { .lock = PTHREAD_MUTEX_INITIALIZER, .spin = true };
	pthread_t id;

	(void)state;
	assert_true(thread_is_starved(&sleeper.look, pthread_self()));
	pthread_mutex_lock(&sleeper.lock);
	assert_int_equal(pthread_create(&id, NULL, sleeper_run, &sleeper), 0);
	/* It falls asleep once it has a core. */
	while (thread_is_starved(&sleeper.look, id))
		nap();
	for (unsigned int quiet = 0; quiet < 100;) {
		const uint64_t ran = sleeper.look.ran_ns;

		if (thread_is_starved(&sleeper.look, id))
			quiet = 0;
		else
			quiet += ran == sleeper.look.ran_ns;
		nap();
	}
	pthread_mutex_unlock(&sleeper.lock);
	while (!atomic_load(&sleeper.spins) || thread_is_starved(&sleeper.look, id))
		nap();
	atomic_store(&sleeper.spin, false);
	pthread_join(id, NULL);
}

static void *hog(void *end)
{
	while (!atomic_load((_Atomic bool *)end))
		;
	return NULL;
}

static long sleeps(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw; /* a yield is none of them */
}

static double seconds_of(pthread_t id)
{
	struct timespec ran;
	clockid_t clock;

	assert_int_equal(pthread_getcpuclockid(id, &clock), 0);
	assert_int_equal(clock_gettime(clock, &ran), 0);
	return (double)ran.tv_sec + (double)ran.tv_nsec * 1e-9;
}

/* Another program uses this core, and thread_share_cores() was not called: a yield takes long. */
static void who_shares_a_core_sleeps(void **state)
{
	_Atomic bool end = false;
	cpu_set_t before, one;
	pthread_t id;
	long first;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET((unsigned int)sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(pthread_create(&id, NULL, hog, &end), 0);
	first = sleeps();
	while (sleeps() - first < 10 && seconds_of(id) < 1)
		thread_give_way(IDLE_YIELDS + 1);
	assert_true(sleeps() - first >= 10);
	atomic_store(&end, true);
	pthread_join(id, NULL);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* Of two cores that are a little apart, what the other has just done was not ages ago. */
static void a_later_tick_is_none_ago(void **state)
{
	const uint64_t hz = rte_get_tsc_hz();

	(void)state;
	assert_int_equal(tsc_since(rte_rdtsc() + hz), 0);
	assert_false(tsc_older(rte_rdtsc() + hz, 1));
	assert_true(tsc_since(rte_rdtsc() - hz) >= hz);
	assert_true(tsc_older(rte_rdtsc() - hz, 999));
	assert_false(tsc_older(rte_rdtsc() - hz, 3600 * 1000));
}

static int gpu_set_up(void **state)
{
	char *arguments[] = { "test", "--no-huge", "--no-shconf", "--no-pci", "-m", "64", NULL };

	(void)state;
	return rte_eal_init(6, arguments) < 0 ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_two_rounds_of_each),
		cmocka_unit_test(waits_for_nobody_who_left),
		cmocka_unit_test(wakes_who_sleeps),
		cmocka_unit_test(waits_for_no_other_thread),
		cmocka_unit_test(stuck_without_a_round),
		cmocka_unit_test(joined_within_the_time_or_not),
		cmocka_unit_test(starved_is_who_is_ready),
		cmocka_unit_test(who_shares_a_core_sleeps),
		cmocka_unit_test(a_later_tick_is_none_ago),
	};

	return cmocka_run_group_tests(tests, gpu_set_up, NULL);
}
