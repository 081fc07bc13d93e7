/* SPDX-License-Identifier: BSD-3-Clause */
/* What a receiver says when frames can come. */
#include "ready.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_line.h"
#include "ready_file.h"
#include "report.h"
#include "summary/results.h"

int ready_error(struct gdrcap_error *error, int code, const char *format, ...)
{
	va_list args;

	error->code = code;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return code;
}

/* The file under its name until it is whole; as umask says, for other users wait for it too. A descriptor, or a negative
 * errno. */
static int half_open(const char *path, char half[PATH_MAX])
{
	int fd;

	if (snprintf(half, PATH_MAX, "%s.%d", path, (int)getpid()) >= PATH_MAX)
		return -ENAMETOOLONG;
	(void)unlink(half);
	fd = open(half, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	return fd < 0 ? -errno : fd;
}

/* That it can be written is seen before the run, not when its sender may send already. */
static int half_try(const char *path, struct gdrcap_error *error)
{
	char half[PATH_MAX];
	const int fd = half_open(path, half);

	if (fd < 0)
		return ready_error(
			error, fd,
			"--ready %s: cannot be written: %s; name a file in a folder that "
			"is there, and yours",
			path, strerror(-fd));
	close(fd);
	(void)unlink(half);
	return 0;
}

int ready_begin(const char *path, struct gdrcap_error *error)
{
	struct ready_file file;
	struct stat status;

	if (!strcmp(path, READY_STDOUT))
		return 0;
	if (lstat(path, &status))
		return half_try(path, error);
	/* An earlier run wrote it as a whole, or lost all of it with the machine's power. */
	if (!S_ISREG(status.st_mode) ||
	    (status.st_size && (ready_file_read(path, &file, error) || !file.alone)))
		return ready_error(error, -EEXIST,
				   "--ready %s: exists, and is not the line of an earlier run; "
				   "name another file, or remove it",
				   path);
	if (unlink(path) && errno != ENOENT)
		return ready_error(error, -errno,
				   "--ready %s: what an earlier run left cannot be removed: %s; "
				   "name another file",
				   path, strerror(errno));
	return half_try(path, error);
}

static json_t *ports_to_json(const struct gdrcap_session *session)
{
	json_t *array = json_array();
	struct gdrcap_port port;

	for (uint32_t i = 0; gdrcap_get_port(session, i, &port, sizeof(port)) == 0; i++) {
		char mac[20] = "";

		if (port.sends)
			continue;
		if (port.has_mac)
			snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", port.mac[0],
				 port.mac[1], port.mac[2], port.mac[3], port.mac[4], port.mac[5]);
		json_add(&array, json_pack("{s:o, s:o, s:b}", "port", json_text(port.name), "mac",
					   json_text_if(mac), "link", port.link_up));
	}
	return array;
}

static json_t *ready_to_json(const char *command, const struct gdrcap_session *session)
{
	struct results_run run;

	results_run_now(&run);
	return json_pack("{s:s, s:o, s:s, s:o, s:I, s:o, s:o}", "schema", READY_SCHEMA, "version",
			 json_text(gdrcap_version()), "command", command, "host",
			 json_text(run.host[0] ? run.host : "unknown"), "pid", (json_int_t)run.pid,
			 "time", json_time(run.started_ns), "ports", ports_to_json(session));
}

/* As a whole or not at all: a file of its own that takes the name when it is complete. */
static int file_write(const char *path, json_t *object)
{
	char half[PATH_MAX];
	const int fd = half_open(path, half);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	int rc;

	if (!file) {
		rc = fd < 0 ? fd : -errno;
		json_decref(object);
		if (fd >= 0)
			close(fd);
		return rc;
	}
	rc = json_line_print(file, object, 0);
	if (fclose(file) && !rc)
		rc = -errno;
	if (!rc && rename(half, path))
		rc = -errno;
	if (rc)
		(void)unlink(half);
	return rc;
}

int ready_tell(const char *path, const char *command, const struct gdrcap_session *session,
	       struct gdrcap_error *error)
{
	json_t *object = ready_to_json(command, session);
	const int to_stdout = !strcmp(path, READY_STDOUT);
	const int rc = !object	   ? -ENOMEM
		       : to_stdout ? json_line_print(stdout, object, 0)
				   : file_write(path, object);

	return rc ? ready_error(error, rc, "--ready: %s cannot be written: %s",
				to_stdout ? "standard output" : path, strerror(-rc))
		  : 0;
}
