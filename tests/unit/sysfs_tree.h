/* SPDX-License-Identifier: BSD-3-Clause */
/* A made-up /sys with a ConnectX of two ports, and others that are none. */
#ifndef GDRCAP_TEST_SYSFS_TREE_H
#define GDRCAP_TEST_SYSFS_TREE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static void folder(const char *path)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	for (char *c = whole + 1; *c; c++)
		if (*c == '/') {
			*c = '\0';
			assert_true(mkdir(whole, 0700) == 0 || errno == EEXIST);
			*c = '/';
		}
	assert_true(mkdir(whole, 0700) == 0 || errno == EEXIST);
}

static void file(const char *path, const char *text)
{
	char whole[512];
	FILE *out;

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	out = fopen(whole, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void link_to(const char *path, const char *target)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	unlink(whole);
	assert_int_equal(symlink(target, whole), 0);
}

static void card_make(const char *pci, const char *vendor, const char *device, const char *driver)
{
	char path[128], target[128];

	snprintf(path, sizeof(path), "bus/pci/devices/%s", pci);
	folder(path);
	snprintf(path, sizeof(path), "bus/pci/devices/%s/vendor", pci);
	file(path, vendor);
	snprintf(path, sizeof(path), "bus/pci/devices/%s/device", pci);
	file(path, device);
	snprintf(path, sizeof(path), "bus/pci/devices/%s/numa_node", pci);
	file(path, "1\n");
	snprintf(path, sizeof(path), "bus/pci/devices/%s/driver", pci);
	snprintf(target, sizeof(target), "../../drivers/%s", driver);
	if (driver[0])
		link_to(path, target);
}

static int tree_make(void **state)
{
	snprintf(root, sizeof(root), "/tmp/gdrcap_connectx_XXXXXX");
	assert_non_null(mkdtemp(root));
	card_make("0000:3b:00.0", "0x15b3\n", "0x101d\n", "mlx5_core");
	folder("bus/pci/devices/0000:3b:00.0/net/enp59s0f0np0");
	folder("bus/pci/devices/0000:3b:00.0/infiniband/mlx5_0");
	folder("class/net/enp59s0f0np0");
	link_to("class/net/enp59s0f0np0/device", "../../../0000:3b:00.0");
	file("class/net/enp59s0f0np0/phys_port_name", "p0\n");
	folder("class/infiniband/mlx5_0");
	link_to("class/infiniband/mlx5_0/device", "../../../0000:3b:00.0");
	card_make("0000:3b:00.1", "0x15b3\n", "0x101d\n", "mlx5_core");
	folder("bus/pci/devices/0000:3b:00.1/net/enp59s0f1np1");
	folder("bus/pci/devices/0000:3b:00.1/infiniband/mlx5_1");
	folder("class/infiniband/mlx5_1");
	link_to("class/infiniband/mlx5_1/device", "../../../0000:3b:00.1");
	/* the kernel has no RDMA device of this one */
	card_make("0000:3c:00.0", "0x15b3\n", "0x101d\n", "mlx5_core");
	/* a representor hangs on the same card */
	folder("class/net/enp59s0f0npf0vf1");
	link_to("class/net/enp59s0f0npf0vf1/device", "../../../0000:3b:00.0");
	file("class/net/enp59s0f0npf0vf1/phys_port_name", "pf0vf1\n");
	/* others */
	card_make("0000:17:00.0", "0x8086\n", "0x1592\n", "ice");
	folder("class/net/ens1");
	link_to("class/net/ens1/device", "../../../0000:17:00.0");
	card_make("0001:5e:00.1", "0x15b3\n", "0x1017\n", "vfio-pci");
	card_make("0000:5e:00.2", "0x15b3\n", "0x1015\n", "");
	folder("class/net/lo");
	folder("class/net/sf0");
	link_to("class/net/sf0/device", "../../../mlx5_core.sf.4");
	return 0;
}

static int tree_remove(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

#endif
