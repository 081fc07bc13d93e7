/* SPDX-License-Identifier: BSD-3-Clause */
/* Removes what earlier versions left behind in EAL's run-time directory when they were killed. */
#include "base/old_dirs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_eal.h>

#define PREFIX "gdrcap-"

/* EAL of a living process holds a lock on its file `config`. The lock is ours while `fd` is open.
 */
static bool config_is_free(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	       fcntl(fd, F_SETLK, &lock) == 0;
}

/* Only folders, never what a link points to; in them EAL makes plain files and sockets. */
static void old_dir_remove(int root, const char *name, pid_t pid)
{
	const int fd = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat status;
	bool gone;
	int config;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	config = openat(fd, "config", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	/* With hugepages there was no file in it. */
	gone = config < 0 && errno == ENOENT && kill(pid, 0) < 0 && errno == ESRCH;
	if (fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
	    (gone || config_is_free(config))) {
		while ((entry = readdir(dir)) != NULL)
			if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
				(void)unlinkat(fd, entry->d_name, 0);
		(void)unlinkat(root, name, AT_REMOVEDIR);
	}
	if (config >= 0)
		close(config);
	closedir(dir);
}

void old_dirs_remove(void)
{
	static const char digits[] = "0123456789";
	const size_t prefix = strlen(PREFIX);
	char path[512];
	struct dirent *entry;
	DIR *dir;

	/* Its own is "ROOT/gdrcap"; empty where it could not be made. */
	snprintf(path, sizeof(path), "%s/..", rte_eal_get_runtime_dir());
	dir = path[0] == '/' && path[1] != '.' ? opendir(path) : NULL;
	if (!dir)
		return;
	while ((entry = readdir(dir)) != NULL) {
		const char *number = entry->d_name + prefix;

		if (strncmp(entry->d_name, PREFIX, prefix) == 0 && *number &&
		    strspn(number, digits) == strlen(number))
			old_dir_remove(dirfd(dir), entry->d_name, (pid_t)atol(number));
	}
	closedir(dir);
}
