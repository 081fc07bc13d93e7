/* SPDX-License-Identifier: BSD-3-Clause */
/* Which signals a thread of the library takes: for C, C++ and CUDA, so that every one is started this way. */
#ifndef GDRCAP_THREAD_SIGNALS_H
#define GDRCAP_THREAD_SIGNALS_H

#include <signal.h>
#include <stddef.h>

/* Threads that are created in between take no signal: handlers and signalfds are the program's, whose
 * own threads are to run them. Only signals of a thread's own faults stay: blocked, they would end the
 * process without its handler, as a crash reporter has one. */
static inline void thread_signals_block(sigset_t *before)
{
	static const int own[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP };
	sigset_t blocked;

	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&blocked, own[i]);
	pthread_sigmask(SIG_BLOCK, &blocked, before);
}

static inline void thread_signals_restore(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

#endif
