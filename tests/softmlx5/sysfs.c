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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device.h"
#include "nic.h"

#define BAR_LINES 7
#define PLACE_MAX 128
#define REGISTERS_BYTES 0x5000
#define REGISTERS_TIME 0x1040 /* seconds and nanoseconds, in a half each */
#define NAME "softmlx5-"      /* then the process, then what mkdtemp() adds */

static char root[PLACE_MAX];

/* Those on the way to `path`. */
static int folders_make(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

/* Creates the folders on the way, too. */
static int __attribute__((format(printf, 2, 3))) put(const char *content, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	int file, ret;
	ssize_t done;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	ret = folders_make(path);
	if (ret < 0)
		return ret;
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (file < 0)
		return -errno;
	done = write(file, content, strlen(content));
	close(file);
	return done < 0 ? -errno : 0;
}

/* The start of the card's first BAR, of which the driver reads the time. */
static int registers_create(struct soft_device *device, const char *dir)
{
	char path[PLACE_MAX + 64];
	int file, ret = 0;
	void *map;

	snprintf(path, sizeof(path), "%s/resource0", dir);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0)
		return -errno;
	if (ftruncate(file, REGISTERS_BYTES) < 0)
		ret = -errno;
	map = ret < 0 ? MAP_FAILED
		      : mmap(NULL, REGISTERS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (map == MAP_FAILED)
		return ret < 0 ? ret : -errno;
	device->clock = (uint64_t *)((uint8_t *)map + REGISTERS_TIME);
	return 0;
}

void device_clock(struct soft_device *device)
{
	if (device->clock != NULL)
		__atomic_store_n(device->clock, htobe64(nic_timestamp(true)), __ATOMIC_RELAXED);
}

const char *sysfs_root(void)
{
	return root;
}

/* As /sys/class does: the card by the name of its interface or RDMA device. */
static int class_link(const char *class, const char *name, const char *pci)
{
	char path[PLACE_MAX + 128], target[64];
	int ret;

	snprintf(path, sizeof(path), "%s/class/%s/%s/device", root, class, name);
	ret = folders_make(path);
	snprintf(target, sizeof(target), "../../../bus/pci/devices/%s", pci);
	return ret < 0 ? ret : symlink(target, path) < 0 ? -errno : 0;
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
	failed |= registers_create(device, dir);
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
	if (class_link("net", device->ifname, device->pci) < 0 ||
	    class_link("infiniband", device->ibv.name, device->pci) < 0)
		return -EIO;
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

/*
 * A process that removes the tree when this one is gone, also when it was killed. It learns that
 * from a pipe to which nobody writes; exec() closes it, too.
 */
static void leave_keeper(void)
{
	int ends[2];
	char byte;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	if (fork() != 0) {
		close(ends[0]);
		return;
	}
	setsid();
	prctl(PR_SET_NAME, "softmlx5-keeper");
	dup2(ends[0], STDIN_FILENO);
	close_range(STDIN_FILENO + 1, ~0u, 0);
	while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
		;
	sysfs_remove();
	_exit(0);
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
	leave_keeper();
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
	char path[PLACE_MAX + 160], new[PLACE_MAX + 168], text[32];

	if (device->count.out_of_buffer == device->oob_reported)
		return;
	device->oob_reported = device->count.out_of_buffer;
	snprintf(text, sizeof(text), "%lu\n", (unsigned long)device->oob_reported);
	/* In one piece: the driver takes a count that went down for one that began anew. */
	snprintf(path, sizeof(path), "%.*s/ports/1/hw_counters/out_of_buffer", PLACE_MAX + 100,
		 device->ibv.ibdev_path);
	snprintf(new, sizeof(new), "%s.new", path);
	if (put(text, "%s", new) == 0)
		rename(new, path);
}
