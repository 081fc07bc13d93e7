/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a run's events where the control thread looks at it, and hands them to the caller. */
#include <stdarg.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>

#include "base/text.h"
#include "session/answer.h"
#include "session/session.h"

#define LOOK_MS 100u
/* Drivers ask the kernel or the card; and what the kernel drops it counts in 32 bits. */
#define MISSED_LOOK_MS 1000u

static void event_make(struct gdrcap_session *session, struct gdrcap_event *event, const char *line)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	event->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	snprintf(event->text, sizeof(event->text), "%.*s", (int)sizeof(event->text) - 1, line);
	text_clean(event->text, ' ');
	events_put(&session->events, event);
}

void session_event(struct gdrcap_session *session, struct gdrcap_event event, const char *format,
		   ...)
{
	char line[sizeof(event.text)];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	event_make(session, &event, line);
}

void session_tell(struct gdrcap_session *session, enum gdrcap_log_level level,
		  struct gdrcap_event event, const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	event_make(session, &event, line);
	session_message(session, level, "%s", line);
}

/* Spells without slots are counted by their beginnings; one that lasts says so by its time. */
static void slots_look(struct gdrcap_session *session, uint32_t i)
{
	const struct rx_worker *worker = &session->workers.rx[i];
	const uint32_t port = i / session->settings.queues, queue = i % session->settings.queues;
	const uint64_t times = atomic_load_explicit(&worker->starved, memory_order_relaxed);
	const uint64_t tsc = atomic_load_explicit(&worker->starved_tsc, memory_order_relaxed);
	struct event_spell *spell = &session->events.slots[i];
	const char *name = session->ports.pairs[port].rx.name;
	struct gdrcap_event event;

	switch (spell_look(spell, tsc + times)) {
	case SPELL_BEGINS:
		event = event_of_port(GDRCAP_EVENT_NO_SLOTS, port, false, (int)queue);
		event.count = times;
		session_event(session, event,
			      "port %s, queue %u: no slot is free (times in this run: %llu): what "
			      "came before was not given back yet; what comes waits where the port "
			      "has room, and is missed then",
			      name, queue, (unsigned long long)times);
		break;
	case SPELL_ENDS:
		event = event_of_port(GDRCAP_EVENT_SLOTS_AGAIN, port, false, (int)queue);
		event.count = times;
		session_event(
			session, event,
			"port %s, queue %u: slots are free again; times that there were none: %llu, for %.3f s in all",
			name, queue, (unsigned long long)times,
			(double)tsc / (double)rte_get_tsc_hz());
		break;
	default:
		break;
	}
}

static void saver_look(struct gdrcap_session *session)
{
	struct event_spell *spell = &session->events.saver;
	struct save_counts counts;
	struct gdrcap_event event;

	if (!session->frames.save)
		return;
	save_counts(session->frames.save, &counts);
	switch (spell_look(spell, counts.missed + counts.damaged_missed)) {
	case SPELL_BEGINS:
		event = event_of(GDRCAP_EVENT_SAVER_BEHIND);
		event.count = spell->count - spell->from;
		session_event(
			session, event,
			"frames that could not be saved: %llu; the file takes them more slowly than "
			"they come, or cannot be written",
			(unsigned long long)event.count);
		break;
	case SPELL_ENDS:
		event = event_of(GDRCAP_EVENT_SAVER_MOVES);
		event.count = spell->count - spell->from;
		session_event(session, event, "frames are saved again; those that were not: %llu",
			      (unsigned long long)event.count);
		break;
	default:
		break;
	}
}

static void missed_look(struct gdrcap_session *session, uint32_t p)
{
	struct event_spell *spell = &session->events.missed[p];
	const char *name = session->ports.pairs[p].rx.name;
	const uint64_t missed = session_port_missed(session, p);
	struct gdrcap_event event;

	switch (spell_look(spell, missed)) {
	case SPELL_BEGINS:
		event = event_of_port(GDRCAP_EVENT_MISSED, p, false, -1);
		event.count = missed;
		session_event(session, event,
			      "port %s: frames that came and were not received, in this run: %llu; "
			      "its ring or its socket was full, or they had errors",
			      name, (unsigned long long)missed);
		break;
	case SPELL_ENDS:
		event = event_of_port(GDRCAP_EVENT_MISSED_OVER, p, false, -1);
		event.count = missed;
		session_event(session, event,
			      "port %s: all frames are received again; those that were not: %llu",
			      name, (unsigned long long)missed);
		break;
	default:
		break;
	}
}

static void ports_look(struct gdrcap_session *session)
{
	session->events.missed_tsc = rte_rdtsc();
	for (uint32_t p = 0; session->workers.rx_count && p < session->settings.ports; p++)
		missed_look(session, p);
}

void session_events_watch(struct gdrcap_session *session)
{
	struct session_events *events = &session->events;

	if (!events->first && session_received(session)) {
		events->first = true;
		session_event(session, event_of(GDRCAP_EVENT_FIRST_FRAME),
			      "the first frame of the run came");
	}
	if (tsc_older(events->missed_tsc, MISSED_LOOK_MS))
		ports_look(session);
	if (!tsc_older(events->tsc, LOOK_MS))
		return;
	events->tsc = rte_rdtsc();
	for (uint32_t i = 0; i < session->workers.rx_count; i++)
		slots_look(session, i);
	saver_look(session);
}

void session_events_end(struct gdrcap_session *session)
{
	struct gdrcap_event event = event_of(GDRCAP_EVENT_END);

	ports_look(session);
	event.code = session->run.failure;
	pthread_mutex_lock(&session->lines.lock);
	session_event(session, event, "the run is over%s%s",
		      session->lines.failure_text[0] ? ": " : "", session->lines.failure_text);
	pthread_mutex_unlock(&session->lines.lock);
}

/* ---- for the caller ---- */

int gdrcap_get_event(struct gdrcap_session *session, struct gdrcap_event *event, size_t size)
{
	int ret = answer_check(session, "session", event, size);
	struct gdrcap_event next = { 0 };

	if (ret < 0)
		return ret;
	ret = events_get(&session->events, &next);
	answer_give(event, size, &next, sizeof(next));
	return ret;
}

int gdrcap_event_fd(struct gdrcap_session *session)
{
	int ret = guest_check(session, "session", NULL);

	return ret < 0 ? ret : events_fd(&session->events);
}
