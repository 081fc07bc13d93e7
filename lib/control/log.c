/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

#define LOG_LINE_BYTES 1024

/* Sink and context change together; control threads of a session read them. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static void (*log_sink)(void *context, enum gdrcap_log_level level, const char *line);
static void *log_context;

void log_set(void (*sink)(void *context, enum gdrcap_log_level level, const char *line),
	     void *context)
{
	pthread_mutex_lock(&log_lock);
	log_sink = sink;
	log_context = context;
	pthread_mutex_unlock(&log_lock);
}

void log_unset(void (*sink)(void *context, enum gdrcap_log_level level, const char *line),
	       void *context)
{
	pthread_mutex_lock(&log_lock);
	if (log_sink == sink && log_context == context) {
		log_sink = NULL;
		log_context = NULL;
	}
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
	void (*sink)(void *context, enum gdrcap_log_level level, const char *line);
	char line[LOG_LINE_BYTES];
	void *context;
	va_list args;

	pthread_mutex_lock(&log_lock);
	sink = log_sink;
	context = log_context;
	pthread_mutex_unlock(&log_lock);
	if (!sink && level > GDRCAP_LOG_WARNING)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	line_clean(line);
	if (sink)
		sink(context, level, line);
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
