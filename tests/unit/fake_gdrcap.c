/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "config/config.h"
#include "fake_gdrcap.h"

struct fake_gdrcap fake;

struct gdrcap_session {
	int unused;
};
static struct gdrcap_session the_session;

static int fake_answer(int rc, const char *what, struct gdrcap_error *error)
{
	if (rc && error) {
		error->code = rc;
		snprintf(error->text, sizeof(error->text), "%s failed as told", what);
	}
	return rc;
}

const char *gdrcap_version(void)
{
	return "gdrcap test";
}

int gdrcap_create(const struct gdrcap_config *config, struct gdrcap_session **session,
		  struct gdrcap_error *error)
{
	*session = NULL;
	if (gdrcap_config_check(config, error))
		return -EINVAL;
	fake.created++;
	fake.settings = config->settings;
	*session = fake.create_rc ? NULL : &the_session;
	return fake_answer(fake.create_rc, "create", error);
}

int gdrcap_selftest(struct gdrcap_session *session,
		    void (*step)(void *context, const struct gdrcap_step *step), void *context,
		    struct gdrcap_error *error)
{
	fake.proved++;
	for (uint32_t i = 0; i < fake.step_count; i++)
		step(context, &fake.steps[i]);
	return fake_answer(fake.selftest_rc, "selftest", error);
}

int gdrcap_start(struct gdrcap_session *session, struct gdrcap_error *error)
{
	fake.started++;
	return fake_answer(fake.start_rc, "start", error);
}

int gdrcap_wait_end(struct gdrcap_session *session, uint32_t timeout_ms)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	fake.waited++;
	if (fake.waited == fake.signal_after)
		raise(SIGINT);
	if (fake.waited == fake.end_after)
		return 1;
	nanosleep(&nap, NULL);
	return 0;
}

int gdrcap_stop(struct gdrcap_session *session, struct gdrcap_error *error)
{
	fake.stopped++;
	return fake_answer(fake.stop_rc, "stop", error);
}

void gdrcap_destroy(struct gdrcap_session *session)
{
	fake.destroyed += session != NULL;
}

int gdrcap_get_summary(const struct gdrcap_session *session, struct gdrcap_summary *summary,
		       size_t size)
{
	*summary = fake.summary;
	return 0;
}

int gdrcap_get_queue_counts(const struct gdrcap_session *session, uint32_t index,
			    struct gdrcap_counts *counts, size_t size)
{
	*counts = fake.summary.total;
	return index ? -ENOENT : 0;
}

int gdrcap_get_stream_counts(const struct gdrcap_session *session, uint32_t index, uint32_t *stream,
			     struct gdrcap_counts *counts, size_t size)
{
	*stream = 0;
	*counts = fake.summary.total;
	return index ? -ENOENT : 0;
}

int gdrcap_get_ranges(const struct gdrcap_session *session, uint32_t index,
		      struct gdrcap_numbers *ranges, uint32_t room)
{
	return -ENODATA;
}

struct gdrcap_images *gdrcap_get_images(struct gdrcap_session *session, uint32_t index)
{
	return NULL;
}

int gdrcap_get_damage(const struct gdrcap_session *session, uint32_t index,
		      struct gdrcap_damage *damage, size_t size)
{
	return -ENOENT;
}

int gdrcap_get_cause(const struct gdrcap_session *session, uint32_t index,
		     struct gdrcap_cause *cause, size_t size)
{
	fake.causes_asked += index == 0;
	if (index >= fake.cause_count)
		return -ENOENT;
	*cause = fake.causes[index];
	return 0;
}

int gdrcap_get_port(const struct gdrcap_session *session, uint32_t index, struct gdrcap_port *port,
		    size_t size)
{
	*port = (struct gdrcap_port){ .name = "net_null0", .mac = { 2, [5] = 9 }, .has_mac = 1 };
	return index ? -ENOENT : 0;
}

int gdrcap_get_rule(const struct gdrcap_session *session, uint32_t index, struct gdrcap_rule *rule,
		    size_t size)
{
	fake.rules_asked += index == 0;
	if (index >= fake.rule_count)
		return -ENOENT;
	*rule = fake.rules[index];
	if (index == 0 && fake.rules_asked <= fake.rules_after)
		rule->frames--;
	return 0;
}

int gdrcap_get_event(struct gdrcap_session *session, struct gdrcap_event *event, size_t size)
{
	return 0;
}

const char *gdrcap_get_message(const struct gdrcap_session *session, uint32_t index)
{
	return index ? NULL : fake.message;
}
