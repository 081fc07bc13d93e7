/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of events share: to wait for one, and to ask what it is of. */
#ifndef GDRCAP_TEST_API_EVENTS_H
#define GDRCAP_TEST_API_EVENTS_H

#include "api.h"

#include <poll.h>

static inline void api_event(struct gdrcap_session *session, struct gdrcap_event *event)
{
	struct pollfd fd = { .fd = gdrcap_event_fd(session), .events = POLLIN };

	assert_true(fd.fd >= 0);
	assert_int_equal(poll(&fd, 1, 60000), 1);
	assert_int_equal(gdrcap_get_event(session, event, sizeof(*event)), 1);
}

/* The next of this kind; an end means that it is not coming. */
static inline struct gdrcap_event api_wait_event(struct gdrcap_session *session,
						 enum gdrcap_event_kind kind)
{
	struct gdrcap_event event;

	do {
		api_event(session, &event);
		if (event.kind == GDRCAP_EVENT_END && kind != GDRCAP_EVENT_END)
			fail_msg("kind %u did not come: %s", (unsigned int)kind, event.text);
	} while (event.kind != (uint32_t)kind);
	assert_true(event.time_ns > UINT64_C(1600000000) * 1000000000);
	assert_true(event.text[0] != '\0');
	return event;
}

static inline void api_event_is_of(const struct gdrcap_event *event, int port, int sends, int queue)
{
	assert_int_equal(event->port, port);
	assert_int_equal(event->sends, sends);
	assert_int_equal(event->queue, queue);
}

static inline struct gdrcap_session *api_begin(struct gdrcap_config *config)
{
	struct gdrcap_session *session = api_create(config);

	api_start(session);
	return session;
}

#endif
