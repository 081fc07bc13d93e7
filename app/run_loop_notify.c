/* SPDX-License-Identifier: BSD-3-Clause */
/* A run as a service. Main thread only: what the frames' threads do is known from the session. */
#include "run_loop_notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "notify.h"
#include "signals.h"

#define STATUS_BYTES 1024

struct run_notify {
	struct notify manager;
	uint64_t watchdog_ns; /* when to say again that there is progress */
	bool owes_ready;      /* it was not taken yet */
	bool late;	      /* the consumer makes no progress, says the session */
	bool stopping;	      /* that was said */
	bool failed;	      /* the manager did not answer, which was told */
};

/* The run goes on without. False: it is to be said again. */
static bool say(struct run *run, const char *lines)
{
	struct run_notify *notify = run->notify;
	const int rc = notify_send(&notify->manager, lines);
	char line[192];

	if (!rc)
		return true;
	if (rc == -EAGAIN)
		return false;
	if (!notify->failed) {
		snprintf(line, sizeof(line),
			 "NOTIFY_SOCKET: the service manager cannot be told: %s; the run goes on",
			 strerror(-rc));
		run->log(run, GDRCAP_LOG_WARNING, line);
	}
	notify->failed = true;
	return true;
}

void run_notify_open(struct run *run)
{
	struct notify manager;
	char why[256];

	if (notify_open(&manager, why, sizeof(why)))
		run->log(run, GDRCAP_LOG_WARNING, why);
	if (manager.fd < 0)
		return;
	run->notify = calloc(1, sizeof(*run->notify));
	if (run->notify)
		run->notify->manager = manager;
	else
		notify_close(&manager);
}

void run_notify_ready(struct run *run)
{
	if (run->notify)
		run->notify->owes_ready = !say(run, "READY=1");
}

/* Four times in the time that the manager waits, so that a machine which is busy does not cost the run its life. Nothing
 * is said of a consumer that stands still: that is what it waits for. */
void run_notify_tick(struct run *run)
{
	struct run_notify *notify = run->notify;
	const uint64_t now = clock_ns();

	if (!notify)
		return;
	if (notify->owes_ready)
		run_notify_ready(run);
	if (notify->manager.watchdog_ns && !notify->late && now >= notify->watchdog_ns &&
	    say(run, "WATCHDOG=1"))
		notify->watchdog_ns = now + notify->manager.watchdog_ns / 4;
}

void run_notify_event(struct run *run, const struct gdrcap_event *event)
{
	if (!run->notify || (event->kind != GDRCAP_EVENT_CONSUMER_LATE &&
			     event->kind != GDRCAP_EVENT_CONSUMER_MOVES))
		return;
	run->notify->late = false;
	run_notify_status(run, event->text);
	run->notify->late = event->kind == GDRCAP_EVENT_CONSUMER_LATE;
}

void run_notify_status(struct run *run, const char *line)
{
	char lines[STATUS_BYTES];
	int bytes;

	snprintf(lines, sizeof(lines), "STATUS=%s%s",
		 run->notify->late ? "the consumer stands still: " : "", line + strspn(line, " "));
	bytes = (int)strlen(lines);

	/* It must be UTF-8, which names of files and devices need not be. */
	for (int i = 0; i < bytes; i++)
		if (lines[i] < ' ' || lines[i] > '~')
			lines[i] = '?';
	say(run, lines);
}

void run_notify_reloading(struct run *run)
{
	char lines[64];

	if (!run->notify)
		return;
	snprintf(lines, sizeof(lines), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_ns() / 1000);
	say(run, lines);
}

void run_notify_stopping(struct run *run)
{
	if (!run->notify || run->notify->stopping)
		return;
	run->notify->stopping = say(run, "STOPPING=1");
}

void run_notify_end(struct run *run)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *file;

	if (!run->notify)
		return;
	run_notify_stopping(run);
	file = open_memstream(&text, &bytes);
	if (file)
		report_print_verdict(file, &run->report, 0);
	if (file && !fclose(file)) {
		text[strcspn(text, "\n")] = '\0';
		run->notify->late = false;
		run_notify_status(run, text);
	}
	free(text);
	notify_close(&run->notify->manager);
	free(run->notify);
	run->notify = NULL;
}
