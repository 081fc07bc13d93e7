/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets that listen at a path of the file system. */
#ifndef GDRCAP_APP_UNIX_PATH_H
#define GDRCAP_APP_UNIX_PATH_H

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>

#define UNIX_PATH_BYTES sizeof(((struct sockaddr_un *)0)->sun_path)

/* What was made there. */
struct unix_path {
	char path[UNIX_PATH_BYTES]; /* "": nothing */
	dev_t device;
	ino_t inode;
};

/* Listens there, with `mode` whatever the umask; what a process that is gone left there is replaced. A descriptor that
 * does not block, or a negative errno: -EADDRINUSE where a process listens, -EEXIST where something else than a socket
 * lies. */
int unix_path_listen(struct unix_path *place, const char *path, int type, mode_t mode);
/* Removes the path, if that is still the one that was made. The descriptor is the caller's. */
void unix_path_remove(struct unix_path *place);

#endif
