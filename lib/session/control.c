/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The session's control thread. It watches a run until that is over, whether or not anybody waits
 * for it: recovery, watchdog, links, broken files, ends by time, frames, silence and the sender.
 */
#include <errno.h>
#include <time.h>

#include <rte_common.h>

#include "base/log.h"
#include "session/session.h"

#define IDLE_TICK_NS 5000000

void session_control_create(struct session_control *control)
{
	pthread_condattr_t monotonic;

	/* Nothing runs yet: there is nothing to wait for. */
	control->over = true;
	pthread_mutex_init(&control->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&control->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

void session_control_destroy(struct session_control *control)
{
	pthread_cond_destroy(&control->changed);
	pthread_mutex_destroy(&control->lock);
}

static void control_set_over(struct session_control *control, bool over)
{
	pthread_mutex_lock(&control->lock);
	control->over = over;
	pthread_cond_broadcast(&control->changed);
	pthread_mutex_unlock(&control->lock);
}

/* One look. Another thread may stop the session meanwhile. True: the run is over; *by_itself, and not
 * because of a stop. */
static bool control_look(struct gdrcap_session *session, bool *by_itself)
{
	LOG_SCOPE(&session->log);
	bool over;

	log_lock(&session->run.lock);
	over = session->run.state != SESSION_RUNNING;
	*by_itself = !over && session_watch(session);
	log_unlock(&session->run.lock);
	return over || *by_itself;
}

static void control_run(void *arg)
{
	struct gdrcap_session *session = arg;
	const int64_t idle_us = session->plan.idle_us;
	/* Less often where idle workers sleep. */
	const struct timespec tick = {
		.tv_nsec = idle_us ? RTE_MAX((int64_t)IDLE_TICK_NS, 1000 * idle_us)
				   : SESSION_TICK_MS * 1000000,
	};
	bool by_itself = false;

	while (!atomic_load(&session->control.stop) && !control_look(session, &by_itself))
		nanosleep(&tick, NULL);
	session_events_end(session);
	control_set_over(&session->control, true);
	/* Last: a caller that gets -ESHUTDOWN finds the end among the events, and gdrcap_wait_end() says 1. A
	 * stop waits for this thread. */
	if (by_itself)
		session_receivers_close(session);
}

int session_control_start(struct gdrcap_session *session, struct gdrcap_error *error)
{
	struct session_control *control = &session->control;
	int ret;

	control_set_over(control, false);
	/* On the creator's CPUs: the workers' cores are theirs alone. */
	ret = thread_start(&control->thread, "gdrcap-control", NULL, control_run, session, error);
	if (ret < 0)
		control_set_over(control, true);
	return ret;
}

void session_control_join(struct gdrcap_session *session)
{
	thread_join(&session->control.thread);
}

static void unlock(void *lock)
{
	pthread_mutex_unlock(lock);
}

/* Until the run is over, or `until`; NULL: no longer than now. The thread may be cancelled while it sleeps. */
static bool over_wait(struct session_control *control, const struct timespec *until)
{
	bool over;

	pthread_mutex_lock(&control->lock);
	pthread_cleanup_push(unlock, &control->lock);
	while (!control->over && until &&
	       pthread_cond_timedwait(&control->changed, &control->lock, until) == 0)
		;
	over = control->over;
	pthread_cleanup_pop(1);
	return over;
}

int gdrcap_wait_end(struct gdrcap_session *session, uint32_t timeout_ms)
{
	const int ret = guest_check(session, "session", NULL);
	struct timespec until;

	if (ret < 0)
		return ret;
	/* A log function that is called on control's thread cannot wait for itself. */
	if (!timeout_ms || thread_is_self(&session->control.thread))
		return over_wait(&session->control, NULL);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	return over_wait(&session->control, &until);
}
