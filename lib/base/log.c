/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines on their way to their sinks, and error texts. */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assertion.h"
#include "base/cancel.h"
#include "base/text.h"

#define LOG_LINE_BYTES 1024
#define QUEUE_LINES_MAX 256u /* what comes beyond them is dropped */

struct waiting_line {
	struct waiting_line *next;
	uint64_t log;
	enum gdrcap_log_level level;
	char text[LOG_LINE_BYTES];
};

struct waiting_lines {
	struct waiting_line *first, *last;
};

static pthread_mutex_t logs_lock = PTHREAD_MUTEX_INITIALIZER; /* over these five */
static pthread_cond_t log_left = PTHREAD_COND_INITIALIZER;
static struct log *oldest;
static uint64_t last_id;
static unsigned int busy;	   /* threads in sinks */
static struct waiting_lines queue; /* from threads that may not tell their lines themselves */
static _Atomic unsigned int queued;
static _Atomic bool ended;

/* Of this thread. */
static _Thread_local struct {
	uint64_t log;	     /* whose its lines are; 0: nobody's */
	unsigned int scopes; /* of log_scope_begin() */
	unsigned int locks;  /* of log_lock() */
	struct log *sink;    /* that it is in; NULL: none */
	struct waiting_lines waiting;
	char words[LOG_WORDS_BYTES];
} own;

/* Under logs_lock. Who was opened last comes last. */
static struct log **log_find(uint64_t id)
{
	struct log **at = &oldest;

	while (*at && id && (*at)->id != id)
		at = &(*at)->newer;
	return at;
}

void log_open(struct log *log)
{
	struct log **at;

	pthread_mutex_lock(&logs_lock);
	log->id = ++last_id;
	log->users = 0;
	log->newer = NULL;
	for (at = &oldest; *at; at = &(*at)->newer)
		;
	*at = log;
	pthread_mutex_unlock(&logs_lock);
}

/* A line stays a line: what others put into it (driver names, file names) may hold anything. */
static void line_clean(char *line)
{
	size_t end = strlen(line);

	while (end && line[end - 1] == '\n')
		line[--end] = '\0';
	text_clean(line, ' ');
}

static void line_print(enum gdrcap_log_level level, const char *line)
{
	if (level <= GDRCAP_LOG_WARNING)
		fprintf(stderr, "gdrcap: %s: %s\n", level == GDRCAP_LOG_ERROR ? "error" : "warning",
			line);
}

/* To the log with that id, and to nobody when it is closed; 0: to the oldest. */
static void line_tell(uint64_t id, enum gdrcap_log_level level, const char *line)
{
	struct log *log;
	bool sink;

	pthread_mutex_lock(&logs_lock);
	log = *log_find(id);
	sink = log && log->line;
	if (sink) {
		log->users++;
		busy++;
	}
	pthread_mutex_unlock(&logs_lock);
	if (!sink) {
		if (log || !id)
			line_print(level, line);
		return;
	}
	own.sink = log;
	log->line(log->context, level, line);
	own.sink = NULL;
	pthread_mutex_lock(&logs_lock);
	log->users--;
	busy--;
	pthread_cond_broadcast(&log_left);
	pthread_mutex_unlock(&logs_lock);
}

static bool line_add(struct waiting_lines *lines, enum gdrcap_log_level level, const char *line)
{
	struct waiting_line *waiting = malloc(sizeof(*waiting));

	if (!waiting)
		return false;
	waiting->next = NULL;
	waiting->log = own.log;
	waiting->level = level;
	snprintf(waiting->text, sizeof(waiting->text), "%s", line);
	if (lines->first)
		lines->last->next = waiting;
	else
		lines->first = waiting;
	lines->last = waiting;
	return true;
}

static bool lines_wait(void)
{
	return own.locks || own.sink;
}

/* The queue's first line that is for this thread's log; nobody's are for the oldest. */
static struct waiting_line *queue_take(void)
{
	struct waiting_line **at, *before = NULL, *found;
	uint64_t nobodys;

	if (!atomic_load_explicit(&queued, memory_order_relaxed))
		return NULL;
	pthread_mutex_lock(&logs_lock);
	nobodys = oldest ? oldest->id : own.log;
	for (at = &queue.first; *at; before = *at, at = &(*at)->next)
		if (((*at)->log ? (*at)->log : nobodys) == own.log)
			break;
	found = *at;
	if (found) {
		*at = found->next;
		if (queue.last == found)
			queue.last = before;
		atomic_fetch_sub_explicit(&queued, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&logs_lock);
	return found;
}

static struct waiting_line *own_take(void)
{
	struct waiting_line *first = own.waiting.first;

	if (first)
		own.waiting.first = first->next;
	return first;
}

/* What a sink logs by calling the library comes behind what waits already. */
static void waiting_tell(void)
{
	struct waiting_line *line;

	while (!lines_wait() && ((line = own_take()) != NULL || (line = queue_take()) != NULL)) {
		if (!atomic_load(&ended))
			line_tell(line->log, line->level, line->text);
		free(line);
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
	/* Driver's lines may wait before this one. */
	waiting_tell();
	if (lines_wait()) {
		(void)line_add(&own.waiting, level, line);
		return;
	}
	line_tell(own.log, level, line);
	waiting_tell();
}

/* The first says most: after a driver's, ethdev adds its own. */
static void words_add(const char *line)
{
	const size_t used = strlen(own.words);

	snprintf(own.words + used, sizeof(own.words) - used, "%s%.*s", used ? "; " : "",
		 LOG_WORDS_BYTES / 2, line);
}

/* Under logs_lock. Some drivers have a line for each frame: one that comes again and again is told the
 * first, second, fourth, eighth ... time. */
static bool is_worth_telling(char line[LOG_LINE_BYTES])
{
	static char last[LOG_LINE_BYTES];
	static uint64_t times, log;
	size_t used;

	if (log != own.log || strcmp(last, line)) {
		log = own.log;
		snprintf(last, sizeof(last), "%s", line);
		times = 1;
		return true;
	}
	times++;
	if (times & (times - 1))
		return false;
	used = strlen(line);
	snprintf(line + used, LOG_LINE_BYTES - used, " (%" PRIu64 " times)", times);
	return true;
}

void log_driver_line(enum gdrcap_log_level level, const char *text)
{
	char line[LOG_LINE_BYTES];

	snprintf(line, sizeof(line), "DPDK: %s", text);
	line_clean(line);
	if (level <= GDRCAP_LOG_WARNING)
		words_add(line + strlen("DPDK: "));
	if (atomic_load(&ended))
		return;
	if (own.scopes) {
		(void)line_add(&own.waiting, level, line);
		return;
	}
	pthread_mutex_lock(&logs_lock);
	if (!is_worth_telling(line))
		;
	else if (!oldest)
		line_print(level, line);
	else if (atomic_load_explicit(&queued, memory_order_relaxed) < QUEUE_LINES_MAX &&
		 line_add(&queue, level, line))
		atomic_fetch_add_explicit(&queued, 1, memory_order_relaxed);
	pthread_mutex_unlock(&logs_lock);
}

/* Under logs_lock: a log that is closed has no lines. */
static void queue_drop(uint64_t id)
{
	struct waiting_line **at = &queue.first, *line;

	queue.last = NULL;
	while ((line = *at) != NULL) {
		if (line->log != id) {
			queue.last = line;
			at = &line->next;
			continue;
		}
		*at = line->next;
		atomic_fetch_sub_explicit(&queued, 1, memory_order_relaxed);
		free(line);
	}
}

void log_close(struct log *log)
{
	struct log **at;

	if (!log->id)
		return;
	waiting_tell();
	pthread_mutex_lock(&logs_lock);
	at = log_find(log->id);
	if (*at)
		*at = log->newer;
	queue_drop(log->id);
	while (log->users > (own.sink == log))
		pthread_cond_wait(&log_left, &logs_lock);
	pthread_mutex_unlock(&logs_lock);
}

uint64_t log_of_thread(void)
{
	return own.log;
}

void log_adopt(uint64_t id)
{
	own.log = id;
}

struct log_scope log_scope_begin(const struct log *log)
{
	const struct log_scope scope = { own.log, cancel_off() };

	if (own.scopes++ == 0)
		own.words[0] = '\0';
	own.log = log->id;
	return scope;
}

void log_scope_end(struct log_scope *scope)
{
	waiting_tell();
	own.scopes--;
	own.log = scope->before;
	cancel_as(&scope->cancel);
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

	pthread_mutex_lock(&logs_lock);
	idle = busy == (own.sink != NULL);
	pthread_mutex_unlock(&logs_lock);
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
		error->kind = GDRCAP_ERROR_RUN;
		memcpy(error->text, text, sizeof(text));
	}
	return code;
}

int error_of_config(struct gdrcap_error *error, int code)
{
	if (error && code < 0 && code != -ENOMEM)
		error->kind = GDRCAP_ERROR_CONFIG;
	return code;
}

void log_words_forget(void)
{
	own.words[0] = '\0';
}

int error_add_words(struct gdrcap_error *error, int code)
{
	const size_t used = error ? strlen(error->text) : 0;

	if (error && own.words[0])
		snprintf(error->text + used, sizeof(error->text) - used, "; DPDK says: %s",
			 own.words);
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
