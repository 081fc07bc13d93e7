/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library in somebody else's program, which may fork, and end, at any moment.
 *
 * What uses DPDK is between guest_enter() and guest_leave(): a session from create to destroy, a
 * bench, a doctor's live tests. Where the process ends outside of all of them, EAL is ended too.
 * Where it ends inside of one, other threads may still use everything: then nothing is taken apart,
 * workers and kernels are told to leave, and the end of the process gives the rest back.
 */
#ifndef GDRCAP_GUEST_H
#define GDRCAP_GUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gdrcap.h"

#define GUEST_EXIT_MS 500u /* gdrcap.h promises it: the end of the process waits no longer */

/*
 * 1 in the process that uses the library, 0 in all its children: it lies in a page that the kernel
 * empties in a child (MADV_WIPEONFORK), so this holds for clone() too, and costs one load a call.
 * Writer: guest_enter(), once.
 */
extern const _Atomic uint32_t *_Atomic guest_word;

/* True in a child of the process that uses the library. It has copies of the sessions' memory and
 * none of their threads; cards and GPU stay its parent's. */
static inline bool guest_is_child(void)
{
	const _Atomic uint32_t *word = atomic_load_explicit(&guest_word, memory_order_relaxed);

	return atomic_load_explicit(word, memory_order_relaxed) == 0;
}

/* 0, or why a call may not touch *object, "session" for example: -EPERM in a child, -EINVAL for
 * NULL. */
int guest_check(const void *object, const char *what, struct gdrcap_error *error);

/* -EPERM in a child, -ESHUTDOWN when the process has begun to end. */
int guest_enter(struct gdrcap_error *error);
void guest_leave(void);

/* Who is told when the process ends: a session. */
struct guest {
	/* Tells workers to leave; true when all have left. Called again and again until then, under
	 * guest_lock(): it waits for nothing and frees nothing. */
	bool (*leave)(struct guest *guest);
	struct guest *next; /* guest.c's */
};
/* Between these two calls it is told. They take the lock below. */
void guest_add(struct guest *guest);
void guest_remove(struct guest *guest);

/* Over what the end of the process reads of a session while that starts and stops. Held for some
 * instructions, never across a callback or a call that waits. */
void guest_lock(void);
void guest_unlock(void);

/* Has exit() come here; with nothing left in use it calls end_unused(). 0 or -ENOMEM. */
int guest_at_exit(void (*end_unused)(void));
/* A GPU was opened. Handlers run in reverse, and by now CUDA has its own: from the first time on
 * ours runs before them too, while a kernel can still be told to leave. */
void guest_gpu_opened(void);

#endif
