/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A made-up machine in a folder, as `gdrcap doctor --root` takes it, and what the doctor says of
 * it. Paths are formats and begin with "/", which is the folder. One machine at a time.
 */
#ifndef GDRCAP_TEST_DOCTOR_TREE_H
#define GDRCAP_TEST_DOCTOR_TREE_H

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "doctor/doctor.h"

/* Verdicts, in what is expected. */
#define OK HEALTH_OK
#define WARN HEALTH_WARN
#define FAIL HEALTH_FAIL
#define UNKNOWN HEALTH_UNKNOWN
#define NONE HEALTH_NOT_APPLICABLE

static char made_root[64];
static struct doctor *made_doctor;

/* ---- files ---- */

#define MADE_PATH(path, format)                                                                    \
	do {                                                                                       \
		const size_t at = (size_t)snprintf(path, PATH_MAX, "%s", made_root);               \
		va_list args;                                                                      \
                                                                                                   \
		va_start(args, format);                                                            \
		assert_true(vsnprintf(path + at, PATH_MAX - at, format, args) <                    \
			    (int)(PATH_MAX - at));                                                 \
		va_end(args);                                                                      \
	} while (0)

/* Most are there: the last one is tried first. */
static inline void made_parents(char *path)
{
	char *last = strrchr(path, '/');

	*last = '\0';
	if (mkdir(path, 0700) && errno != EEXIST) {
		assert_int_equal(errno, ENOENT);
		made_parents(path);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	*last = '/';
}

__attribute__((format(printf, 1, 2))) static inline void made_folder(const char *format, ...)
{
	char path[PATH_MAX];

	MADE_PATH(path, format);
	made_parents(path);
	assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
}

/* Folders on the way come into being. What was there is replaced. */
__attribute__((format(printf, 3, 4))) static inline void made_bytes(const void *bytes, size_t count,
								    const char *format, ...)
{
	char path[PATH_MAX];
	FILE *out;

	MADE_PATH(path, format);
	made_parents(path);
	out = fopen(path, "w");
	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, count, out), count);
	assert_int_equal(fclose(out), 0);
}

/* The text, and a line end. */
__attribute__((format(printf, 2, 3))) static inline void made_file(const char *text,
								   const char *format, ...)
{
	char path[PATH_MAX];
	FILE *out;

	MADE_PATH(path, format);
	made_parents(path);
	out = fopen(path, "w");
	assert_non_null(out);
	assert_true(fprintf(out, "%s\n", text) > 0);
	assert_int_equal(fclose(out), 0);
}

/* A target that begins with "/" means the made-up machine's, and becomes relative: what is written
 * through the link would land on this machine otherwise. */
__attribute__((format(printf, 2, 3))) static inline void made_link(const char *target,
								   const char *format, ...)
{
	char path[PATH_MAX], folder[PATH_MAX], relative[PATH_MAX * 2] = "", *last;

	MADE_PATH(path, format);
	made_parents(path);
	unlink(path);
	last = strrchr(path, '/');
	*last = '\0';
	assert_non_null(realpath(path, folder));
	assert_int_equal(strncmp(folder, made_root, strlen(made_root)), 0);
	*last = '/';
	for (const char *c = folder + strlen(made_root); *target == '/' && *c; c++)
		if (*c == '/')
			strcat(relative, "../");
	strncat(relative, target + (*target == '/'), PATH_MAX);
	assert_int_equal(symlink(relative, path), 0);
}

/* A file or a folder with all that is in it. */
__attribute__((format(printf, 1, 2))) static inline void made_remove(const char *format, ...)
{
	char path[PATH_MAX], command[PATH_MAX + 16];

	MADE_PATH(path, format);
	snprintf(command, sizeof(command), "rm -rf '%s'", path);
	assert_int_equal(system(command), 0);
}

/* As if the one who captured the machine had no right to read this file, which is there. */
__attribute__((format(printf, 1, 2))) static inline void made_unreadable(const char *format, ...)
{
	char path[PATH_MAX], real[PATH_MAX], list[PATH_MAX];
	FILE *out;

	MADE_PATH(path, format);
	assert_non_null(realpath(path, real));
	snprintf(list, sizeof(list), "%s/gdrcap/refused", made_root);
	made_parents(list);
	out = fopen(list, "a");
	assert_non_null(out);
	assert_true(fprintf(out, "%d %s\n", EACCES, real + strlen(made_root)) > 0);
	assert_int_equal(fclose(out), 0);
}

/* What is in no file: "ethtool/ens1/pause". */
__attribute__((format(printf, 2, 3))) static inline void made_fact(const char *value,
								   const char *format, ...)
{
	char name[256];
	va_list args;

	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	made_file(value, "/gdrcap/facts/%s", name);
}

/* ---- PCI functions ---- */

struct made_pci {
	/* Host bridge, bridges and the function: "pci0000:3a/0000:3a:00.0/0000:3b:00.0". */
	const char *way;
	const char *vendor, *device, *class, *driver; /* driver NULL: none */
	const char *numa_node;			      /* NULL: "0" */
};

static inline const char *made_address(const struct made_pci *pci)
{
	return strrchr(pci->way, '/') + 1;
}

/* A link of width x16 at 16 GT/s, which can do no more. */
static inline void made_pci_link(const char *address)
{
	made_file("16.0 GT/s PCIe", "/sys/bus/pci/devices/%s/current_link_speed", address);
	made_file("16.0 GT/s PCIe", "/sys/bus/pci/devices/%s/max_link_speed", address);
	made_file("16", "/sys/bus/pci/devices/%s/current_link_width", address);
	made_file("16", "/sys/bus/pci/devices/%s/max_link_width", address);
}

enum { MADE_EXPRESS = 0x60, MADE_ACS = 0x148 }; /* where the capabilities lie */

/*
 * Config space as root sees it: MPS 256 of 512 bytes, MRRS 512 bytes (but for bridges of no
 * meaning), and for a bridge ACS with all off.
 */
static inline void made_config_fill(uint8_t config[4096], int bridge)
{
	memset(config, 0, 4096);
	config[0x06] = 0x10; /* has capabilities */
	config[0x34] = 0x40;
	config[0x40] = 0x01; /* power management */
	config[0x41] = MADE_EXPRESS;
	config[MADE_EXPRESS] = 0x10;
	config[MADE_EXPRESS + 4] = 0x02; /* 512 bytes supported */
	config[MADE_EXPRESS + 8] = 0x3f; /* MPS 256, and bits that are to be kept */
	config[MADE_EXPRESS + 9] = 0x29; /* MRRS 512, no snoop */
	memcpy(config + 0x100, (uint8_t[]){ 0x01, 0x00, 0x82, 0x14 }, 4); /* AER, then 0x148 */
	if (bridge)
		memcpy(config + MADE_ACS, (uint8_t[]){ 0x0d, 0x00, 0x01, 0x00, 0x5f }, 5);
}

static inline void made_config(const char *address, const uint8_t config[4096], size_t bytes)
{
	made_bytes(config, bytes, "/sys/bus/pci/devices/%s/config", address);
}

/* The function and the bridges above it. */
static inline void made_pci(const struct made_pci *pci)
{
	const char *address = made_address(pci), *node = pci->numa_node ? pci->numa_node : "0";
	char way[PATH_MAX], target[PATH_MAX + 32];
	uint8_t config[4096];

	for (const char *end = strchr(pci->way, '/'); end; end = strchr(end + 1, '/')) {
		const char *name = end + 1;
		const size_t length = strcspn(name, "/");

		snprintf(way, sizeof(way), "%.*s", (int)(name + length - pci->way), pci->way);
		snprintf(target, sizeof(target), "/sys/devices/%s", way);
		made_folder("/sys/devices/%s", way);
		made_link(target, "/sys/bus/pci/devices/%.*s", (int)length, name);
		made_file(node, "/sys/devices/%s/numa_node", way);
		if (name[length] == '\0')
			break;
		made_file("0x8086", "/sys/devices/%s/vendor", way);
		made_file("0x347a", "/sys/devices/%s/device", way);
		made_file("0x060400", "/sys/devices/%s/class", way);
		made_config_fill(config, 1);
		made_bytes(config, sizeof(config), "/sys/devices/%s/config", way);
		snprintf(target, sizeof(target), "%.*s", (int)length, name);
		made_pci_link(target);
	}
	made_file(pci->vendor, "/sys/bus/pci/devices/%s/vendor", address);
	made_file(pci->device, "/sys/bus/pci/devices/%s/device", address);
	made_file(pci->class, "/sys/bus/pci/devices/%s/class", address);
	made_config_fill(config, 0);
	made_config(address, config, sizeof(config));
	made_pci_link(address);
	if (pci->driver) {
		snprintf(target, sizeof(target), "/sys/bus/pci/drivers/%s", pci->driver);
		made_folder("%s", target);
		made_link(target, "/sys/bus/pci/devices/%s/driver", address);
	}
}

/* A healthy ConnectX-6 Dx port, up at 100 Gbit/s, at this way. */
static inline void made_card(const char *way, const char *interface, const char *rdma)
{
	const struct made_pci pci = { way, "0x15b3", "0x101d", "0x020000", "mlx5_core", NULL };
	const char *address = made_address(&pci);
	char target[PATH_MAX];

	made_pci(&pci);
	made_folder("/sys/bus/pci/devices/%s/net/%s", address, interface);
	snprintf(target, sizeof(target), "/sys/bus/pci/devices/%s/net/%s", address, interface);
	made_link(target, "/sys/class/net/%s", interface);
	snprintf(target, sizeof(target), "/sys/bus/pci/devices/%s", address);
	made_link(target, "/sys/class/net/%s/device", interface);
	made_file("1", "/sys/class/net/%s/carrier", interface);
	made_file("up", "/sys/class/net/%s/operstate", interface);
	made_file("0x1003", "/sys/class/net/%s/flags", interface);
	made_file("100000", "/sys/class/net/%s/speed", interface);
	made_file("9000", "/sys/class/net/%s/mtu", interface);
	made_file("1", "/sys/class/net/%s/type", interface);
	made_fact("rx off, tx off, autonegotiated off", "ethtool/%s/pause", interface);
	made_folder("/sys/bus/pci/devices/%s/infiniband/%s", address, rdma);
	snprintf(target, sizeof(target), "/sys/bus/pci/devices/%s/infiniband/%s", address, rdma);
	made_link(target, "/sys/class/infiniband/%s", rdma);
	made_file("Ethernet", "/sys/class/infiniband/%s/ports/1/link_layer", rdma);
	made_file("4: ACTIVE", "/sys/class/infiniband/%s/ports/1/state", rdma);
	made_file("22.38.1002", "/sys/class/infiniband/%s/fw_ver", rdma);
	/* its number is that of the RDMA device's name */
	made_file(rdma, "/sys/class/infiniband_verbs/uverbs%s/ibdev", rdma + strcspn(rdma, "0123"));
}

/* A healthy A100 with 64 GiB of BAR1 and NVIDIA's driver, at this way. */
static inline void made_gpu(const char *way)
{
	const struct made_pci pci = { way, "0x10de", "0x20b5", "0x030200", "nvidia", NULL };
	const char *address = made_address(&pci);

	made_pci(&pci);
	made_file("0x00000000a4000000 0x00000000a4ffffff 0x0000000000040200\n"
		  "0x0000207000000000 0x0000207fffffffff 0x000000000014220c\n"
		  "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
		  "0x0000208000000000 0x0000208001ffffff 0x000000000014220c\n"
		  "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
		  "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
		  "0x0000000000000000 0x0000000000000000 0x0000000000000000",
		  "/sys/bus/pci/devices/%s/resource", address);
	made_file("Model: \t\t NVIDIA A100-PCIE-80GB\nIRQ:   \t\t 255\nDevice Minor: \t 0",
		  "/proc/driver/nvidia/gpus/%s/information", address);
}

/* Puts a PCI function into an IOMMU group of this type ("identity", "DMA", ...). */
static inline void made_iommu(const char *address, const char *group, const char *type)
{
	char target[64];

	made_file(type, "/sys/kernel/iommu_groups/%s/type", group);
	snprintf(target, sizeof(target), "/sys/kernel/iommu_groups/%s", group);
	made_link(target, "/sys/bus/pci/devices/%s/iommu_group", address);
}

/* ---- a test's beginning and end ---- */

/* An empty machine in a folder below this one: bare metal, Debian, examined by root, no PCI function, no IOMMU. */
static inline void made_below(const char *folder)
{
	snprintf(made_root, sizeof(made_root), "%s/gdrcap_doctor_XXXXXX", folder);
	assert_non_null(mkdtemp(made_root));
	made_folder("/sys/bus/pci/devices");
	made_folder("/sys/class/net");
	made_folder("/sys/class/infiniband");
	made_folder("/sys/class/iommu");
	made_folder("/sys/devices");
	made_file("PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\nVERSION_ID=\"12\"",
		  "/etc/os-release");
	made_file("PowerEdge R750", "/sys/class/dmi/id/product_name");
	made_file("Dell Inc.", "/sys/class/dmi/id/sys_vendor");
	made_file("6.1.0-18-amd64", "/proc/sys/kernel/osrelease");
	made_file("BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet", "/proc/cmdline");
	made_file("Name:\tgdrcap\nCapEff:\t000001ffffffffff", "/proc/self/status");
	made_doctor = NULL;
}

static inline int made_setup(void **state)
{
	made_below("/tmp");
	return 0;
}

static inline int made_teardown(void **state)
{
	doctor_destroy(made_doctor);
	made_doctor = NULL;
	made_remove("/");
	return 0;
}

/* ---- what the doctor says ---- */

static inline void made_examine(void)
{
	const struct doctor_config config = { .root = made_root };
	struct gdrcap_error error = { 0 };

	doctor_destroy(made_doctor);
	made_doctor = NULL;
	if (doctor_create(&config, &made_doctor, &error) < 0)
		fail_msg("%s", error.text);
}

/* The finding of a check about a subject; NULL subject: the only one of that check. */
static inline const struct finding *made_find(const char *id, const char *subject)
{
	const struct finding *finding, *found = NULL;
	unsigned int count = 0;

	for (finding = made_doctor->findings; finding < made_doctor->findings + made_doctor->count;
	     finding++)
		if (strcmp(finding->check->id, id) == 0 &&
		    (!subject || strcmp(finding->subject, subject) == 0)) {
			found = finding;
			count++;
		}
	if (count != 1)
		fail_msg("%u findings %s about %s", count, id, subject ? subject : "anything");
	return found;
}

/* How many findings a check has. */
static inline unsigned int made_count(const char *id)
{
	const struct finding *finding;
	unsigned int count = 0;

	for (finding = made_doctor->findings; finding < made_doctor->findings + made_doctor->count;
	     finding++)
		count += strcmp(finding->check->id, id) == 0;
	return count;
}

/* What it read and advises has these pieces in it; NULL: not looked at; remedy "": none. */
static inline void made_expect(const char *id, const char *subject, enum health verdict,
			       const char *read, const char *remedy)
{
	const struct finding *finding = made_find(id, subject);

	if (finding->verdict != verdict)
		fail_msg("%s %s: verdict %d in place of %d; read: %s", id, finding->subject,
			 finding->verdict, verdict, finding->read);
	if (read && !strstr(finding->read, read))
		fail_msg("%s %s: read \"%s\", which is without \"%s\"", id, finding->subject,
			 finding->read, read);
	if (remedy && (remedy[0] ? !strstr(finding->remedy, remedy) : finding->remedy[0] != '\0'))
		fail_msg("%s %s: remedy \"%s\", which is without \"%s\"", id, finding->subject,
			 finding->remedy, remedy);
	assert_true(finding->check->why[0] != '\0');
}

/* Examines machines whose every file has been replaced by noise, again and again: nothing but a
 * crash, a hang or a sanitizer's word fails it. The machine is noise afterwards. */
static inline void made_garbage(unsigned int seed)
{
	char command[PATH_MAX + 128], path[PATH_MAX + 256], list[PATH_MAX];
	uint8_t noise[8192];
	FILE *files, *out;

	snprintf(list, sizeof(list), "%s.list", made_root);
	snprintf(command, sizeof(command), "find %s -type f > %s", made_root, list);
	assert_int_equal(system(command), 0);
	srand(seed);
	files = fopen(list, "r");
	assert_non_null(files);
	while (fgets(path, sizeof(path), files)) {
		const size_t bytes = (size_t)rand() % sizeof(noise);

		path[strcspn(path, "\n")] = '\0';
		/* which functions there are stays: else hardly a check would have work */
		if (strstr(path, "/vendor") || strstr(path, "/class") || strstr(path, "/device"))
			continue;
		for (size_t i = 0; i < bytes; i++)
			noise[i] = (uint8_t)rand();
		out = fopen(path, "w");
		assert_non_null(out);
		assert_int_equal(fwrite(noise, 1, bytes, out), bytes);
		assert_int_equal(fclose(out), 0);
	}
	fclose(files);
	unlink(list);
	made_examine();
}

#endif
