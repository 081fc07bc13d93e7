/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines on their way to whoever wants them, and error texts. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assertion.h"
#include "base/text.h"

#define LOG_LINE_BYTES 1024

static pthread_mutex_t sinks_lock = PTHREAD_MUTEX_INITIALIZER; /* over the sinks and `busy` */
static pthread_cond_t sink_left = PTHREAD_COND_INITIALIZER;
static struct log_sink *log_top;
static unsigned int busy; /* threads in sinks */
static _Atomic bool ended;

struct waiting_line {
	struct waiting_line *next;
	enum gdrcap_log_level level;
	char text[LOG_LINE_BYTES];
};

/* Of this thread. */
static _Thread_local struct {
	unsigned int locks;    /* of log_lock() */
	struct log_sink *sink; /* that it is in; NULL: none */
	struct waiting_line *first, *last;
} own;

void log_push(struct log_sink *sink)
{
	pthread_mutex_lock(&sinks_lock);
	sink->users = 0;
	sink->below = log_top;
	log_top = sink;
	pthread_mutex_unlock(&sinks_lock);
}

void log_pop(struct log_sink *sink)
{
	struct log_sink **at;

	pthread_mutex_lock(&sinks_lock);
	for (at = &log_top; *at && *at != sink; at = &(*at)->below)
		;
	if (*at)
		*at = sink->below;
	while (sink->users > (own.sink == sink))
		pthread_cond_wait(&sink_left, &sinks_lock);
	pthread_mutex_unlock(&sinks_lock);
}

/* A line stays a line: what others put into it (driver names, file names) may hold anything. */
static void line_clean(char *line)
{
	size_t end = strlen(line);

	while (end && line[end - 1] == '\n')
		line[--end] = '\0';
	text_clean(line, ' ');
}

static void line_tell(enum gdrcap_log_level level, const char *line)
{
	struct log_sink *sink;

	pthread_mutex_lock(&sinks_lock);
	sink = log_top && log_top->line ? log_top : NULL;
	if (sink) {
		sink->users++;
		busy++;
	}
	pthread_mutex_unlock(&sinks_lock);
	if (!sink) {
		if (level <= GDRCAP_LOG_WARNING)
			fprintf(stderr, "gdrcap: %s: %s\n",
				level == GDRCAP_LOG_ERROR ? "error" : "warning", line);
		return;
	}
	own.sink = sink;
	sink->line(sink->context, level, line);
	own.sink = NULL;
	pthread_mutex_lock(&sinks_lock);
	sink->users--;
	busy--;
	pthread_cond_broadcast(&sink_left);
	pthread_mutex_unlock(&sinks_lock);
}

static void line_keep(enum gdrcap_log_level level, const char *line)
{
	struct waiting_line *waiting = malloc(sizeof(*waiting));

	if (!waiting)
		return;
	waiting->next = NULL;
	waiting->level = level;
	snprintf(waiting->text, sizeof(waiting->text), "%s", line);
	if (own.first)
		own.last->next = waiting;
	else
		own.first = waiting;
	own.last = waiting;
}

static bool lines_wait(void)
{
	return own.locks || own.sink;
}

/* What a sink logs by calling the library comes behind what waits already. */
static void waiting_tell(void)
{
	while (own.first && !lines_wait()) {
		struct waiting_line *waiting = own.first;

		own.first = waiting->next;
		if (!atomic_load(&ended))
			line_tell(waiting->level, waiting->text);
		free(waiting);
	}
}

void log_line(enum gdrcap_log_level level, const char *format, ...)
{
	char line[LOG_LINE_BYTES];
	va_list args;

	if (atomic_load(&ended))
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	line_clean(line);
	if (lines_wait()) {
		line_keep(level, line);
		return;
	}
	line_tell(level, line);
	waiting_tell();
}

void log_lock(pthread_mutex_t *lock)
{
	own.locks++;
	pthread_mutex_lock(lock);
}

void log_unlock(pthread_mutex_t *lock)
{
	pthread_mutex_unlock(lock);
	own.locks--;
	waiting_tell();
}

bool log_in_sink(void)
{
	return own.sink != NULL;
}

void log_end(void)
{
	atomic_store(&ended, true);
}

bool log_is_idle(void)
{
	bool idle;

	pthread_mutex_lock(&sinks_lock);
	idle = busy == (own.sink != NULL);
	pthread_mutex_unlock(&sinks_lock);
	return idle;
}

int error_set(struct gdrcap_error *error, int code, const char *format, ...)
{
	char text[sizeof(error->text)] = ""; /* the arguments may point into error->text */
	va_list args;

	if (error) {
		va_start(args, format);
		vsnprintf(text, sizeof(text), format, args);
		va_end(args);
		text_clean(text, ' ');
		error->code = code;
		memcpy(error->text, text, sizeof(text));
	}
	return code;
}

void assertion_failed(const char *format, ...)
{
	va_list args;

	fputs("gdrcap: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}
