/* SPDX-License-Identifier: BSD-3-Clause */
/* Which sessions exist, what a forked child may do, and what the end of the process does. */
#include "base/guest.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define TICK_NS 1000000

static const _Atomic uint32_t nobody_yet = 1;
const _Atomic uint32_t *_Atomic guest_word = &nobody_yet;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* over the three below */
static struct guest *list;
static unsigned int users;	 /* guest_enter() less guest_leave() */
static bool ending;		 /* exit() has come here */
static void (*end_unused)(void); /* Writer: guest_at_exit() */

void guest_lock(void)
{
	pthread_mutex_lock(&list_lock);
}

void guest_unlock(void)
{
	pthread_mutex_unlock(&list_lock);
}

/* Linux before 4.14 empties no pages: there a child is not told from its parent. */
static void word_create(void)
{
	const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	_Atomic uint32_t *word =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (word == MAP_FAILED)
		return;
	if (madvise((void *)word, bytes, MADV_WIPEONFORK) < 0) {
		munmap((void *)word, bytes);
		return;
	}
	atomic_store_explicit(word, 1, memory_order_relaxed);
	atomic_store(&guest_word, word);
}

static int child_error(struct gdrcap_error *error)
{
	return error_set(error, -EPERM,
			 "this process is a child of the one that uses gdrcap, and has none of its "
			 "threads; fork before the first session, or call exec in the child");
}

int guest_check(const void *object, const char *what, struct gdrcap_error *error)
{
	if (guest_is_child())
		return child_error(error);
	return object ? 0 : error_set(error, -EINVAL, "no %s was given (NULL)", what);
}

int guest_enter(struct gdrcap_error *error)
{
	bool late;

	/* Before the lock: a child may have inherited it locked. */
	if (guest_is_child())
		return child_error(error);
	guest_lock();
	late = ending;
	if (!late && atomic_load(&guest_word) == &nobody_yet)
		word_create();
	users += !late;
	guest_unlock();
	return late ? error_set(error, -ESHUTDOWN, "the process is ending: nothing can be created")
		    : 0;
}

void guest_leave(void)
{
	guest_lock();
	users--;
	guest_unlock();
}

void guest_add(struct guest *guest)
{
	guest_lock();
	guest->next = list;
	list = guest;
	guest_unlock();
}

void guest_remove(struct guest *guest)
{
	struct guest **at;

	guest_lock();
	for (at = &list; *at && *at != guest; at = &(*at)->next)
		;
	if (*at)
		*at = guest->next;
	guest_unlock();
}

/* Told again at each look: another thread may be starting a session, or a port of one, just now. */
static bool all_left(void)
{
	bool left = true;

	guest_lock();
	for (struct guest *guest = list; guest; guest = guest->next)
		left &= guest->leave(guest);
	guest_unlock();
	return left;
}

static void guest_exit(void)
{
	const struct timespec tick = { .tv_nsec = TICK_NS };
	bool again, unused;
	uint64_t since;

	if (guest_is_child())
		return;
	guest_lock();
	again = ending;
	ending = true;
	unused = users == 0;
	guest_unlock();
	if (again)
		return;
	if (unused) {
		end_unused();
		return;
	}
	/* The sink's owner, an interpreter for example, may be gone. */
	log_end();
	since = now_ms();
	while (!(all_left() && log_is_idle()) && now_ms() - since < GUEST_EXIT_MS)
		nanosleep(&tick, NULL);
}

int guest_at_exit(void (*unused)(void))
{
	end_unused = unused;
	return atexit(guest_exit) == 0 ? 0 : -ENOMEM;
}

void guest_gpu_opened(void)
{
	static atomic_flag again = ATOMIC_FLAG_INIT;

	/* Where it fails, the one before comes too late for kernels, and in time for the rest. */
	if (end_unused && !atomic_flag_test_and_set(&again))
		(void)atexit(guest_exit);
}
