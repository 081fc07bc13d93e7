/* SPDX-License-Identifier: BSD-3-Clause */
/* Ctrl-C, SIGTERM and SIGHUP: the first asks the run to end, the second ends the process; or SIGHUP asks for
 * logs to be opened anew. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "signals.h"

#define SIGNAL_PAIR_NS 250000000

/*
 * When the first signal came, ns of the monotonic clock, 0: none has; and then its number. Writer:
 * the handler, on any thread, for it can reach nothing but file-scope objects. Reader: the main
 * thread.
 */
static _Atomic uint64_t stop_ns;
static _Atomic int stop_number;
static atomic_int reopen_asked; /* Writers: signal_reopen(), and signals_reopen() takes it back. */
static const char *last_words;	/* Writer: signals_install(), before there is a handler. */

uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void signal_stop(int number)
{
	uint64_t first = 0, now = clock_ns();

	if (atomic_compare_exchange_strong(&stop_ns, &first, now)) {
		atomic_store(&stop_number, number);
		return;
	}
	/* timeout(1) signals a program, then its group: the second of such a pair means nothing. */
	if (now < first + SIGNAL_PAIR_NS)
		return;
	/* A pipe that is full would hold it up. */
	if (poll(&(struct pollfd){ .fd = STDERR_FILENO, .events = POLLOUT }, 1, 0) == 1)
		(void)!write(STDERR_FILENO, last_words, strlen(last_words));
	/* 128 + number, as a shell reports a program that a signal ended. */
	_exit(128 + number);
}

static void signal_reopen(int number)
{
	atomic_store(&reopen_asked, 1);
}

int signals_reopen(void)
{
	return atomic_exchange(&reopen_asked, 0);
}

int signals_stop(void)
{
	return atomic_load(&stop_number);
}

void signals_hold(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

void signals_release(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

void signals_install(const char *at_once, int reopen)
{
	/* SA_RESTART: the last lines, written after the signal, must not fail with EINTR. */
	struct sigaction action = { .sa_handler = signal_stop, .sa_flags = SA_RESTART };
	struct sigaction anew = { .sa_handler = signal_reopen, .sa_flags = SA_RESTART };
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;

	last_words = at_once;
	sigemptyset(&action.sa_mask);
	sigemptyset(&anew.sa_mask);
	sigemptyset(&ignore.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* The terminal is gone; nohup(1) has it ignored, and that stays. */
	if (reopen)
		sigaction(SIGHUP, &anew, NULL);
	else if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
	/* A reader that has gone away shows as a write error, which ends the run in order. */
	sigaction(SIGPIPE, &ignore, NULL);
	/* And so does a file that may not grow (ulimit -f). */
	sigaction(SIGXFSZ, &ignore, NULL);
}
