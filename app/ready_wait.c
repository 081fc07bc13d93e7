/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits until receivers on other machines have said that frames can come. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/parse.h"
#include "ready.h"
#include "ready_file.h"
#include "signals.h"

#define LOOK_MS 20
#define TELL_NS UINT64_C(5000000000) /* between two lines that say who is still waited for */

/* ---- a file ---- */

/* Its first line, without its end; -EAGAIN: there is none yet. */
static int line_read(const char *path, char text[READY_FILE_BYTES], size_t *length, int *alone,
		     struct gdrcap_error *error)
{
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat status;
	const char *end;
	ssize_t got = 0;

	if (fd < 0)
		return errno == ENOENT || errno == ESTALE
			       ? -EAGAIN
			       : ready_error(error, -errno, "%s: %s", path, strerror(errno));
	if (fstat(fd, &status) || !S_ISREG(status.st_mode)) {
		close(fd);
		return ready_error(error, -EINVAL, "%s: is no regular file", path);
	}
	for (*length = 0; *length < READY_FILE_BYTES; *length += (size_t)got) {
		got = read(fd, text + *length, READY_FILE_BYTES - *length);
		if (got <= 0)
			break;
	}
	close(fd);
	if (got < 0)
		return ready_error(error, -EIO, "%s: cannot be read", path);
	end = memchr(text, '\n', *length);
	if (!end)
		return *length < READY_FILE_BYTES
			       ? -EAGAIN
			       : ready_error(error, -EFBIG, "%s: its first line has no end", path);
	*alone = got == 0 && end == text + *length - 1;
	*length = (size_t)(end - text);
	return 0;
}

static const char *string_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text && text[0] ? text : NULL;
}

static bool port_is_right(const json_t *port)
{
	const json_t *mac = json_object_get(port, "mac");
	uint8_t bytes[6];

	return string_of(port, "port") && json_is_boolean(json_object_get(port, "link")) &&
	       (json_is_null(mac) ||
		(json_is_string(mac) && parse_mac(json_string_value(mac), bytes) == 0));
}

/* NULL, or the key that is missing or wrong. */
static const char *wrong_key(const json_t *object)
{
	const json_t *ports = json_object_get(object, "ports");

	if (!string_of(object, "version"))
		return "version";
	if (!string_of(object, "command"))
		return "command";
	if (!string_of(object, "host"))
		return "host";
	if (json_integer_value(json_object_get(object, "pid")) <= 0)
		return "pid";
	if (!string_of(object, "time"))
		return "time";
	if (!json_array_size(ports) || json_array_size(ports) > GDRCAP_PORTS_MAX)
		return "ports";
	for (size_t i = 0; i < json_array_size(ports); i++)
		if (!port_is_right(json_array_get(ports, i)))
			return "ports";
	return NULL;
}

static int object_take(const char *path, const json_t *object, struct ready_file *file,
		       struct gdrcap_error *error)
{
	const char *schema = string_of(object, "schema"), *wrong;

	if (!schema || strcmp(schema, READY_SCHEMA))
		return ready_error(
			error, -EINVAL,
			"%s: is of no receiver that is ready: its first line is no "
			"object of schema " READY_SCHEMA
			"; name the file that gdrcap capture --ready writes, of the same "
			"version",
			path);
	wrong = wrong_key(object);
	if (wrong)
		return ready_error(error, -EINVAL,
				   "%s: '%s' of this " READY_SCHEMA
				   " is missing, or not what it should be; name the file that "
				   "gdrcap capture --ready writes",
				   path, wrong);
	snprintf(file->host, sizeof(file->host), "%s", string_of(object, "host"));
	for (char *c = file->host; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			*c = '?';
	file->ports = (uint32_t)json_array_size(json_object_get(object, "ports"));
	return 0;
}

int ready_file_read(const char *path, struct ready_file *file, struct gdrcap_error *error)
{
	static char text[READY_FILE_BYTES];
	size_t length = 0;
	json_t *object;
	int rc = line_read(path, text, &length, &file->alone, error);

	if (rc)
		return rc;
	object = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	rc = object_take(path, object, file, error);
	json_decref(object);
	return rc;
}

/* ---- all of them ---- */

struct waited {
	char *path;
	bool ready;
};

static int waited_fill(struct waited *waited, const struct ready_wait *wait)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < wait->list_count; i++)
		for (const char *at = wait->lists[i];; at++) {
			const size_t length = strcspn(at, ",");

			waited[count].path = strndup(at, length);
			if (!waited[count].path)
				return -ENOMEM;
			count++;
			at += length;
			if (!*at)
				break;
		}
	return (int)count;
}

/* 1: it is ready; 0: not yet; a negative errno: it will not be. */
static int waited_ask(const struct waited *waited, const struct ready_wait *wait,
		      struct gdrcap_error *error)
{
	struct ready_file file;
	char line[512];
	int rc;

	if (waited->ready)
		return 1;
	rc = ready_file_read(waited->path, &file, error);
	if (rc)
		return rc == -EAGAIN ? 0 : rc;
	snprintf(line, sizeof(line), "%.300s: host %.100s is ready, ports: %u", waited->path,
		 file.host, file.ports);
	wait->log(wait->context, GDRCAP_LOG_INFO, line);
	return 1;
}

/* How many are ready; a negative errno: one will not be. */
static int waited_look(struct waited *waited, int count, const struct ready_wait *wait,
		       struct gdrcap_error *error)
{
	int ready = 0;

	for (int i = 0; i < count; i++) {
		const int rc = waited_ask(&waited[i], wait, error);

		if (rc < 0)
			return rc;
		waited[i].ready = rc;
		ready += rc;
	}
	return ready;
}

/* The names of those that are missing, as many as there is room for. */
static void waited_names(const struct waited *waited, int count, char *text, size_t bytes)
{
	size_t used = 0;

	text[0] = '\0';
	for (int i = 0; i < count && used < bytes; i++)
		if (!waited[i].ready)
			used += (size_t)snprintf(text + used, bytes - used, "%s%s",
						 used ? ", " : "", waited[i].path);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
}

static int wait_all(struct waited *waited, int count, const struct ready_wait *wait,
		    struct gdrcap_error *error)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };
	const uint64_t since = clock_ns();
	uint64_t told = 0;
	int before = -1;

	for (;;) {
		const int ready = waited_look(waited, count, wait, error);
		const uint64_t now = clock_ns();
		char names[300], line[400];

		if (ready < 0 || ready == count)
			return ready < 0 ? ready : 0;
		waited_names(waited, count, names, sizeof(names));
		if (ready != before || now - told >= TELL_NS) {
			snprintf(line, sizeof(line),
				 "receivers that are ready: %d of %d; waiting for %s", ready, count,
				 names);
			wait->log(wait->context, GDRCAP_LOG_PROGRESS, line);
			before = ready;
			told = now;
		}
		if (wait->stopped())
			return ready_error(error, -EINTR,
					   "interrupted while it waited for receivers: %s", names);
		if (wait->limit_ms && now - since >= wait->limit_ms * 1000000u)
			return ready_error(
				error, -ETIMEDOUT,
				"receivers that were not ready after %.3g s: %s; see what their "
				"gdrcap capture --ready FILE says, or wait longer (--wait-seconds, "
				"0: for ever)",
				(double)wait->limit_ms / 1e3, names);
		nanosleep(&pause, NULL);
	}
}

int ready_wait(const struct ready_wait *wait, struct gdrcap_error *error)
{
	struct waited *waited = calloc(READY_WAITED_MAX, sizeof(*waited));
	int rc = waited ? waited_fill(waited, wait) : -ENOMEM;

	rc = rc < 0 ? ready_error(error, rc, "no memory for the files of receivers")
		    : wait_all(waited, rc, wait, error);
	for (uint32_t i = 0; waited && i < READY_WAITED_MAX; i++)
		free(waited[i].path);
	free(waited);
	return rc;
}
