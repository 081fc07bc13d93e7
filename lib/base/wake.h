/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a thread that finds no work sleeps, and how the thread that brings work wakes it. The sleeper waits
 * on a futex, or on an eventfd where it waits for a descriptor of a port too. Knows no DPDK.
 *
 * ARM: the sleeper found no work. It sets bit 0 of `word`, fences, looks for work once more, and sleeps
 * while `word` has the value that it armed. Partner, WAKE: the other thread stores its work, fences, and
 * loads `word`; if bit 0 is set, it counts the word up and makes a system call. Each side stores before its
 * fence what the other loads after its own. So in the one total order of the fences the owner of the later
 * one sees the other's store: the sleeper finds the work, or the other thread finds it armed. Without
 * one of the fences both loads can be done before both stores are seen (x86 does that too), and the sleeper
 * sleeps beside work that is there. tests/unit/test_wake.c fails then.
 *
 * WAKE is on the frame's path, once a burst, and ARM is not. So the sleeper pays for both fences where the
 * kernel has membarrier(2): it has all running threads of the process fence at that moment, and WAKE is
 * then a load and a branch. Where there is no membarrier(2), each side fences for itself.
 *
 * Several threads may sleep on one wake: each call wakes all of them, and the count in `word` keeps one
 * that was about to sleep awake. A wake-up that comes for nothing costs one more look.
 */
#ifndef GDRCAP_WAKE_H
#define GDRCAP_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WAKE_LINE 64

struct wake {
	/* Bit 0: somebody sleeps, or is about to. Above: wake-ups. Writers: sleeper, and who wakes it. */
	_Alignas(WAKE_LINE) _Atomic uint32_t word;
	int fd; /* -1: the futex. Before the threads start */
};

/* True: WAKE needs no fence. Written once, before the first wake_init() returns. */
extern bool wake_by_membarrier;

void wake_init(struct wake *wake);
/* Its sleeper waits for descriptors too: it sleeps on an eventfd. 0 or a negative errno, and then it
 * stays as it is. Before the threads start. */
int wake_use_fd(struct wake *wake);
void wake_close(struct wake *wake);

/* ---- the sleeper ---- */

/* ARM. False: the kernel refused the fence, so it must not sleep for long. Else the caller looks for
 * work once more, and calls wake_sleep() if there is none. */
bool wake_arm(struct wake *wake, uint32_t *ticket);
/* Until it is woken, for `us` microseconds at most. `port_fd`: or until this is readable, or has an error;
 * -1: there is none. Needs wake_use_fd(). True: it was the port. */
bool wake_sleep(struct wake *wake, uint32_t ticket, uint32_t us, int port_fd);

/* ---- who wakes it: any thread ---- */

/* Out of line: somebody is armed. */
void wake_up(struct wake *wake);

static inline void wake_fence(void)
{
	/* WAKE. Partner: ARM in wake_arm(). */
	if (__builtin_expect(wake_by_membarrier, 1))
		atomic_signal_fence(memory_order_seq_cst);
	else
		atomic_thread_fence(memory_order_seq_cst);
}

/* After the work was stored. No system call unless somebody sleeps. NULL: nobody ever does. */
static inline void wake_look(struct wake *wake)
{
	if (!wake)
		return;
	wake_fence();
	if (__builtin_expect(atomic_load_explicit(&wake->word, memory_order_relaxed) & 1, 0))
		wake_up(wake);
}

#endif
