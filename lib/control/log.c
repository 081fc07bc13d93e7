/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

#define LOG_LINE_BYTES 1024

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_sink *log_top;

void log_push(struct log_sink *sink)
{
	pthread_mutex_lock(&log_lock);
	sink->below = log_top;
	log_top = sink;
	pthread_mutex_unlock(&log_lock);
}

void log_pop(struct log_sink *sink)
{
	struct log_sink **at;

	pthread_mutex_lock(&log_lock);
	for (at = &log_top; *at && *at != sink; at = &(*at)->below)
		;
	if (*at)
		*at = sink->below;
	pthread_mutex_unlock(&log_lock);
}

/* A line stays a line: what others put into it (driver names, file names) may hold anything. */
static void line_clean(char *line)
{
	size_t end = strlen(line);

	while (end && line[end - 1] == '\n')
		line[--end] = '\0';
	for (; *line; line++)
		if ((unsigned char)*line < 0x20 || *line == 0x7f)
			*line = ' ';
}

void log_line(enum gdrcap_log_level level, const char *format, ...)
{
	struct log_sink sink = { 0 };
	char line[LOG_LINE_BYTES];
	va_list args;

	pthread_mutex_lock(&log_lock);
	if (log_top)
		sink = *log_top;
	pthread_mutex_unlock(&log_lock);
	if (!sink.line && level > GDRCAP_LOG_WARNING)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	line_clean(line);
	if (sink.line)
		sink.line(sink.context, level, line);
	else
		fprintf(stderr, "gdrcap: %s: %s\n",
			level == GDRCAP_LOG_ERROR ? "error" : "warning", line);
}

int error_set(struct gdrcap_error *error, int code, const char *format, ...)
{
	char text[sizeof(error->text)] = ""; /* the arguments may point into error->text */
	va_list args;

	if (error) {
		va_start(args, format);
		vsnprintf(text, sizeof(text), format, args);
		va_end(args);
		error->code = code;
		memcpy(error->text, text, sizeof(text));
	}
	return code;
}
