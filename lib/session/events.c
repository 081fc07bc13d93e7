/* SPDX-License-Identifier: BSD-3-Clause */
/* A run's events, kept until somebody asks, and the descriptor that says that there are some. */
#include "session/events.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/tsc.h"

#define SPELL_MS 1000u /* one that has not grown for so long is over */

void events_create(struct session_events *events)
{
	pthread_mutex_init(&events->lock, NULL);
	events->fd = -1;
}

void events_destroy(struct session_events *events)
{
	if (events->fd >= 0)
		close(events->fd);
	pthread_mutex_destroy(&events->lock);
}

/* ---- the queue ---- */

/* A counter of 1 is as good as any: it says that there are some. */
static void fd_set_readable(const struct session_events *events, bool readable)
{
	eventfd_t value;

	if (events->fd < 0)
		return;
	if (readable)
		(void)eventfd_write(events->fd, 1);
	else
		(void)eventfd_read(events->fd, &value);
}

static void put(struct session_events *events, struct gdrcap_event *event)
{
	const bool end = event->kind == GDRCAP_EVENT_END;

	if (events->ended)
		return;
	events->ended = end;
	if (events->count >= EVENTS_MAX - !end) {
		events->dropped++;
		return;
	}
	event->dropped = events->dropped;
	events->dropped = 0;
	events->ring[(events->next + events->count) % EVENTS_MAX] = *event;
	if (events->count++ == 0)
		fd_set_readable(events, true);
}

void events_put(struct session_events *events, struct gdrcap_event *event)
{
	pthread_mutex_lock(&events->lock);
	put(events, event);
	pthread_mutex_unlock(&events->lock);
}

bool events_get(struct session_events *events, struct gdrcap_event *event)
{
	bool any;

	CANCEL_OFF;
	pthread_mutex_lock(&events->lock);
	any = events->count != 0;
	if (any) {
		*event = events->ring[events->next];
		events->next = (events->next + 1) % EVENTS_MAX;
		if (--events->count == 0)
			fd_set_readable(events, false);
	}
	pthread_mutex_unlock(&events->lock);
	return any;
}

int events_fd(struct session_events *events)
{
	int ret;

	pthread_mutex_lock(&events->lock);
	if (events->fd < 0)
		events->fd = eventfd(events->count != 0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = events->fd < 0 ? -errno : events->fd;
	pthread_mutex_unlock(&events->lock);
	return ret;
}

/* ---- what is counted ---- */

enum spell_step spell_look(struct event_spell *spell, uint64_t count)
{
	const bool more = count != spell->count;

	if (more && !spell->on)
		spell->from = spell->count;
	spell->count = count;
	if (more)
		spell->tsc = rte_rdtsc();
	if (more == spell->on || (spell->on && !tsc_older(spell->tsc, SPELL_MS)))
		return SPELL_AS_BEFORE;
	spell->on = more;
	return more ? SPELL_BEGINS : SPELL_ENDS;
}
