/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A PCI bus of software cards, as files.
 *
 * DPDK looks for the bus where the variable SYSFS_PCI_DEVICES says, and for a card's network
 * interface and counters below struct ibv_device's ibdev_path.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device.h"

#define BAR_LINES 7
#define PLACE_MAX 128
#define NAME "softmlx5-" /* then the process, then what mkdtemp() adds */

static char root[PLACE_MAX];

/* Creates the folders on the way, too. */
static int __attribute__((format(printf, 2, 3))) put(const char *content, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	int file;
	ssize_t done;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (file < 0)
		return -errno;
	done = write(file, content, strlen(content));
	close(file);
	return done < 0 ? -errno : 0;
}

static int device_files(struct soft_device *device)
{
	char dir[PLACE_MAX + 48], path[PLACE_MAX + 128], text[BAR_LINES * 64], *end = text;
	int failed = 0;

	snprintf(dir, sizeof(dir), "%s/bus/pci/devices/%s", root, device->pci);
	failed |= put("0x15b3\n", "%s/vendor", dir);
	failed |= put("0x101d\n", "%s/device", dir); /* ConnectX-6 Dx */
	failed |= put("0x15b3\n", "%s/subsystem_vendor", dir);
	failed |= put("0x0016\n", "%s/subsystem_device", dir);
	failed |= put("0x020000\n", "%s/class", dir);
	failed |= put("-1\n", "%s/numa_node", dir);
	for (unsigned int i = 0; i < BAR_LINES; i++)
		end += sprintf(end, "0x%016x 0x%016x 0x%016x\n", 0, 0, 0);
	failed |= put(text, "%s/resource", dir);
	snprintf(text, sizeof(text), "DRIVER=mlx5_core\nPCI_SLOT_NAME=%s\n", device->pci);
	failed |= put(text, "%s/uevent", dir);
	failed |= put("0\n", "%s/net/%s/dev_port", dir, device->ifname);
	failed |= put("0x0\n", "%s/net/%s/dev_id", dir, device->ifname);
	failed |= put("0\n", "%s/infiniband/%s/ports/1/hw_counters/out_of_buffer", dir,
		      device->ibv.name);
	if (failed != 0)
		return -EIO;
	/* DPDK leaves out a device without a driver. */
	snprintf(path, sizeof(path), "%s/driver", dir);
	if (symlink("../../drivers/mlx5_core", path) < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/infiniband/%s/device", dir, device->ibv.name);
	if (symlink("../..", path) < 0)
		return -errno;
	snprintf(device->ibv.ibdev_path, sizeof(device->ibv.ibdev_path), "%s/infiniband/mlx5_%u",
		 dir, device->index);
	snprintf(device->ibv.dev_path, sizeof(device->ibv.dev_path), "%s", dir);
	return 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
	return remove(path);
}

/* The folders of processes that were killed. */
static void remove_abandoned(const char *place)
{
	DIR *dir = opendir(place);
	char path[PATH_MAX];
	struct dirent *entry;
	int pid;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (sscanf(entry->d_name, NAME "%d-", &pid) != 1 || kill(pid, 0) == 0 ||
		    errno != ESRCH)
			continue;
		snprintf(path, sizeof(path), "%s/%s", place, entry->d_name);
		nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	}
	if (dir != NULL)
		closedir(dir);
}

int sysfs_create(void)
{
	const char *place = getenv("TMPDIR");
	char path[PLACE_MAX + 32];
	int ret;

	if (place == NULL || place[0] != '/' || strlen(place) > PLACE_MAX - 48)
		place = "/tmp";
	remove_abandoned(place);
	snprintf(root, sizeof(root), "%s/" NAME "%d-XXXXXX", place, (int)getpid());
	if (mkdtemp(root) == NULL)
		return -errno;
	for (unsigned int i = 0; i < soft_device_count; i++) {
		ret = device_files(&soft_devices[i]);
		if (ret < 0)
			return ret;
	}
	snprintf(path, sizeof(path), "%s/bus/pci/drivers/mlx5_core", root);
	ret = put("", "%s/new_id", path);
	if (ret < 0)
		return ret;
	snprintf(path, sizeof(path), "%s/bus/pci/devices", root);
	return setenv("SYSFS_PCI_DEVICES", path, 1) < 0 ? -errno : 0;
}

void sysfs_remove(void)
{
	if (root[0] != '\0')
		nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void device_report(struct soft_device *device)
{
	char text[32];

	if (device->count.out_of_buffer == device->oob_reported)
		return;
	device->oob_reported = device->count.out_of_buffer;
	snprintf(text, sizeof(text), "%lu\n", (unsigned long)device->oob_reported);
	put(text, "%s/ports/1/hw_counters/out_of_buffer", device->ibv.ibdev_path);
}
