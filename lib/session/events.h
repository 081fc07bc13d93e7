/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happened in a run, for gdrcap_get_event(). Events are made where the control thread
 * looks at a run, never on a frame's way: workers only count.
 */
#ifndef GDRCAP_EVENTS_H
#define GDRCAP_EVENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gdrcap.h"

#define EVENTS_MAX 256u /* that wait; the last place is the end's */

/* Something that is counted and comes in spells: told when it begins, and when it was over for a
 * while. */
struct event_spell {
	uint64_t count; /* at the last look */
	uint64_t from;	/* when it began */
	uint64_t tsc;	/* when it last grew */
	bool on;
};

struct session_events {
	pthread_mutex_t lock; /* over all but the spells */
	struct gdrcap_event ring[EVENTS_MAX];
	uint32_t next, count; /* the oldest, and how many wait */
	uint64_t dropped;     /* since the last that found a place */
	bool ended;	      /* the end was told: nothing comes after it */
	int fd;		      /* readable while some wait; -1: nobody asked for it */
	/* The control thread's. */
	uint64_t tsc; /* last look at what is counted */
	bool first;   /* the first frame was told */
	struct event_spell slots[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX], saver;
	uint64_t missed_tsc; /* last look at what ports count */
	struct event_spell missed[GDRCAP_PORTS_MAX];
};

void events_create(struct session_events *events);
void events_destroy(struct session_events *events);
/* Any thread. A full queue drops it, and counts; of `event` only `dropped` changes. */
void events_put(struct session_events *events, struct gdrcap_event *event);
/* Any thread: false: none waits. */
bool events_get(struct session_events *events, struct gdrcap_event *event);
/* The descriptor, made when it is first asked for; or a negative errno. */
int events_fd(struct session_events *events);

enum spell_step { SPELL_AS_BEFORE, SPELL_BEGINS, SPELL_ENDS };
/* `count`: as it is now. */
enum spell_step spell_look(struct event_spell *spell, uint64_t count);

/* An event of that kind, of nothing in particular; the caller says more. */
static inline struct gdrcap_event event_of(enum gdrcap_event_kind kind)
{
	return (struct gdrcap_event){ .kind = (uint32_t)kind, .port = -1, .queue = -1 };
}

/* The same of a port; queue -1: all of them. */
static inline struct gdrcap_event event_of_port(enum gdrcap_event_kind kind, uint32_t port,
						bool sends, int queue)
{
	struct gdrcap_event event = event_of(kind);

	event.port = (int32_t)port;
	event.sends = sends;
	event.queue = queue;
	return event;
}

#endif
