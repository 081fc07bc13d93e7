/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files whose places the driver does not let be chosen.
 *
 * At each error completion it writes its queue's memory to a file in /var/log, or else in the
 * current folder: errors of the model are made on purpose, and those files go to /dev/null. And it
 * maps a card's registers, to read its clock there, from below /sys.
 */
#undef _FILE_OFFSET_BITS /* it gives these functions the others' names */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "device.h"

#define DUMP "dpdk_mlx5_port_"
#define SYSFS "/sys"

typedef FILE *(*fopen_fn)(const char *path, const char *mode);
typedef int (*open_fn)(const char *path, int flags, ...);

/* The path to use instead, in `room` of PATH_MAX bytes, or the path itself. */
static const char *place_of(const char *path, char *room)
{
	char start[64];

	/* Where verbs came after main() began: EAL reads many files before it looks for its devices. */
	devices_wake();
	if (strstr(path, DUMP) != NULL)
		return "/dev/null";
	for (unsigned int i = 0; i < soft_device_count; i++) {
		snprintf(start, sizeof(start), SYSFS "/bus/pci/devices/%s/", soft_devices[i].pci);
		if (strncmp(path, start, strlen(start)) != 0)
			continue;
		snprintf(room, PATH_MAX, "%s%s", sysfs_root(), path + strlen(SYSFS));
		return room;
	}
	return path;
}

FILE *fopen(const char *path, const char *mode)
{
	char room[PATH_MAX];

	return ((fopen_fn)dlsym(RTLD_NEXT, "fopen"))(place_of(path, room), mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	char room[PATH_MAX];

	return ((fopen_fn)dlsym(RTLD_NEXT, "fopen64"))(place_of(path, room), mode);
}

static int open_next(const char *name, const char *path, int flags, va_list args)
{
	mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
	char room[PATH_MAX];

	return ((open_fn)dlsym(RTLD_NEXT, name))(place_of(path, room), flags, mode);
}

int open(const char *path, int flags, ...)
{
	va_list args;
	int file;

	va_start(args, flags);
	file = open_next("open", path, flags, args);
	va_end(args);
	return file;
}

int open64(const char *path, int flags, ...)
{
	va_list args;
	int file;

	va_start(args, flags);
	file = open_next("open64", path, flags, args);
	va_end(args);
	return file;
}
