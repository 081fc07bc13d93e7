/* SPDX-License-Identifier: BSD-3-Clause */
/* RUN-TIME FOLDER/dpdk/gdrcap/dpdk_telemetry.v2[:NUMBER]. */
#include "telemetry_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#define NUMBERS 64 /* processes of one user at once */

static int fail(int error, char *why, size_t bytes, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static int fail(int error, char *why, size_t bytes, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, bytes, format, args);
	va_end(args);
	return -error;
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

/* As EAL and dpdk-telemetry.py choose it; of systemd's list the first. */
static int root(char *path, size_t bytes)
{
	const char *systemd = variable("RUNTIME_DIRECTORY");
	const char *user = variable("XDG_RUNTIME_DIR");
	int n;

	if (systemd)
		n = snprintf(path, bytes, "%.*s", (int)strcspn(systemd, ":"), systemd);
	else
		n = snprintf(path, bytes, "%s", getuid() == 0 ? "/var/run" : user ? user : "/tmp");
	return n < (int)bytes ? 0 : -ENAMETOOLONG;
}

static const char *remedy(void)
{
	return variable("RUNTIME_DIRECTORY") || getuid() == 0
		       ? "name a folder of your own in RUNTIME_DIRECTORY"
		       : "name a folder of your own in XDG_RUNTIME_DIR";
}

/* Makes a folder for this user alone, or takes one that is there, if nobody else can put something else in its place:
 * /tmp is everybody's. A descriptor of it, or a negative errno. */
static int folder_open(const char *path, char *why, size_t bytes)
{
	struct stat status;
	int fd;

	if (mkdir(path, 0700) && errno != EEXIST)
		return fail(errno, why, bytes, "the folder %s cannot be made: %s; %s", path,
			    strerror(errno), remedy());
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fail(errno, why, bytes, "the folder %s cannot be opened: %s; %s", path,
			    strerror(errno), remedy());
	if (!fstat(fd, &status) && (status.st_uid == geteuid() || status.st_uid == 0) &&
	    !(status.st_mode & S_IWOTH))
		return fd;
	close(fd);
	return fail(EPERM, why, bytes,
		    "the folder %s is another user's, or all may write to it; %s", path, remedy());
}

/* Who may rename what lies in it could put something else there; of a sticky one only its owner may. */
static int root_check(const char *path, char *why, size_t bytes)
{
	struct stat status;

	if (stat(path, &status))
		return fail(errno, why, bytes, "the folder %s: %s; %s", path, strerror(errno),
			    remedy());
	if ((status.st_uid == geteuid() || status.st_uid == 0) &&
	    (!(status.st_mode & S_IWOTH) || status.st_mode & S_ISVTX))
		return 0;
	return fail(EPERM, why, bytes,
		    "the folder %s is another user's, or all may write to it; %s", path, remedy());
}

static int listen_in(const char *folder, struct unix_path *place, char *why, size_t bytes)
{
	char path[PATH_MAX + 32];
	int fd = -EADDRINUSE;

	for (unsigned int n = 0; fd == -EADDRINUSE && n < NUMBERS; n++) {
		char number[16] = "";

		if (n)
			snprintf(number, sizeof(number), ":%u", n);
		snprintf(path, sizeof(path), "%s/dpdk_telemetry.v2%s", folder, number);
		fd = unix_path_listen(place, path, SOCK_SEQPACKET, 0600);
	}
	if (fd == -EADDRINUSE)
		return fail(EADDRINUSE, why, bytes, "%d processes listen in %s; end some", NUMBERS,
			    folder);
	if (fd == -ENAMETOOLONG)
		return fail(ENAMETOOLONG, why, bytes,
			    "%s is longer than a socket's path may be, 107 characters; %s, with a "
			    "shorter name",
			    path, remedy());
	if (fd == -EEXIST)
		return fail(EEXIST, why, bytes, "%s is there and is no socket; remove it", path);
	if (fd < 0)
		return fail(-fd, why, bytes, "%s: %s", path, strerror(-fd));
	return fd;
}

int telemetry_socket_open(struct unix_path *place, char *why, size_t bytes)
{
	char base[PATH_MAX], parent[PATH_MAX], folder[PATH_MAX];
	int fd, rc;

	*place = (struct unix_path){ .path = "" };
	if (root(base, sizeof(base)) ||
	    snprintf(parent, sizeof(parent), "%s/dpdk", base) >= (int)sizeof(parent) ||
	    snprintf(folder, sizeof(folder), "%s/gdrcap", parent) >= (int)sizeof(folder))
		return fail(ENAMETOOLONG, why, bytes,
			    "the name of the run-time folder is too long; %s", remedy());
	rc = root_check(base, why, bytes);
	if (rc)
		return rc;
	fd = folder_open(parent, why, bytes);
	if (fd < 0)
		return fd;
	close(fd);
	fd = folder_open(folder, why, bytes);
	if (fd < 0)
		return fd;
	/* One process at a time: who finds a socket at which nobody listens removes it, and must not remove one that
	 * another has just made there. */
	rc = flock(fd, LOCK_EX)
		     ? fail(errno, why, bytes, "%s cannot be locked: %s", folder, strerror(errno))
		     : listen_in(folder, place, why, bytes);
	close(fd);
	return rc;
}
