/* SPDX-License-Identifier: BSD-3-Clause */
/* The host: libraries, device files, rights, limits, hugepages. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/capability.h>

#include "doctor/doctor.h"

#define HUGEPAGES "/sys/kernel/mm/hugepages"

static const char status_path[] = "/proc/self/status";

static bool has_connectx(const struct machine *machine)
{
	for (uint32_t i = 0; i < machine->cards; i++)
		if (machine->card[i].connectx)
			return true;
	return false;
}

/* ---- rdma-core ---- */

static void check_rdma_core(struct doctor *doctor)
{
	static const char *const libraries[] = { "libibverbs.so.1", "libmlx5.so.1" };
	char text[TREE_TEXT_MAX];

	for (int i = 0; i < 2 && has_connectx(&doctor->machine); i++) {
		const char *name = libraries[i];

		if (tree_fact(doctor->tree, text, "library/%s", name) < 0) {
			finding(doctor, name, HEALTH_UNKNOWN, "%s: not asked for", name);
			remedy(doctor, "ldconfig -p | grep %s", name);
		} else if (strcmp(text, "yes") == 0) {
			finding(doctor, name, HEALTH_OK, "dlopen(\"%s\"): loads", name);
		} else {
			finding(doctor, name, HEALTH_FAIL, "dlopen(\"%s\"): %.400s", name, text);
			remedy_install(doctor, PACKAGE_RDMA_CORE);
		}
	}
}

int rdma_device_file(struct doctor *doctor, const struct machine_card *card, char path[80])
{
	char(*names)[64], text[TREE_TEXT_MAX];
	struct tree *tree = doctor->tree;
	int count, ret = -ENODEV;

	path[0] = '\0';
	if (!card->connectx || !card->rdma[0])
		return ret;
	count = tree_list(tree, &names, "/sys/class/infiniband_verbs");
	for (int i = 0; i < count && ret == -ENODEV; i++) {
		if (tree_text(tree, text, "/sys/class/infiniband_verbs/%s/ibdev", names[i]) < 0 ||
		    strcmp(text, card->rdma) != 0 || !machine_is_name(names[i]))
			continue;
		snprintf(path, 80, "/dev/infiniband/%s", names[i]);
		ret = device_access(doctor, path);
	}
	free(names);
	return ret;
}

/* In a container check_container_rdma() looks at them. */
static void check_uverbs(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	bool any = false;
	char path[80];

	for (uint32_t i = 0; i < machine->cards && !machine->container[0]; i++)
		any = any || rdma_device_file(doctor, &machine->card[i], path) == 0;
	for (uint32_t i = 0; i < machine->cards && !machine->container[0]; i++) {
		const struct machine_card *card = &machine->card[i];
		const int ret = rdma_device_file(doctor, card, path);

		if (ret == -ENODEV)
			continue;
		finding(doctor, card->pci.address,
			ret == 0 ? HEALTH_OK
			: any	 ? HEALTH_WARN
				 : HEALTH_FAIL,
			"%s: %s", path, ret == 0 ? "can be opened" : strerror(-ret));
		if (ret == -ENOENT) {
			remedy(doctor, "sudo modprobe ib_uverbs; sudo udevadm trigger");
			remedy_install(doctor, PACKAGE_RDMA_CORE);
		} else if (ret < 0) {
			remedy(doctor, "sudo chmod a+rw %s  # for good: rdma-core's udev rules",
			       path);
			remedy_install(doctor, PACKAGE_RDMA_CORE);
		}
	}
}

/* ---- rights ---- */

/* CapEff; what the kernel's own rights are, not those of a user namespace. */
static int rights_read(struct doctor *doctor, uint64_t *rights, bool *own_namespace)
{
	static const char *const wanted[] = { "CapEff:", NULL };
	unsigned long long effective;
	unsigned int inside, outside, ids;
	char text[TREE_TEXT_MAX];
	int ret = tree_grep(doctor->tree, status_path, wanted, text, sizeof(text));

	if (ret < 1 || sscanf(text, "CapEff: %llx", &effective) != 1)
		return ret < 0 ? ret : -EINVAL;
	*rights = effective;
	/* "0 0 4294967295": all users, as they are. No file: no such namespaces in the kernel. */
	ret = tree_text(doctor->tree, text, "/proc/self/uid_map");
	*own_namespace = ret != -ENOENT &&
			 (ret < 0 || sscanf(text, "%u %u %u", &inside, &outside, &ids) != 3 ||
			  inside != outside || ids != UINT32_MAX);
	return 0;
}

static void check_capabilities(struct doctor *doctor)
{
	static const struct {
		unsigned int bit;
		const char *name;
	} needed[] = { { CAP_NET_RAW, "NET_RAW" },
		       { CAP_NET_ADMIN, "NET_ADMIN" },
		       { CAP_SYS_RAWIO, "SYS_RAWIO" } };
	char missing[64] = "";
	bool own_namespace;
	uint64_t rights;
	int ret;

	if (!has_connectx(&doctor->machine))
		return;
	ret = rights_read(doctor, &rights, &own_namespace);
	if (ret < 0) {
		finding(doctor, NULL, HEALTH_UNKNOWN, "%s: %s", status_path,
			ret == -EINVAL ? "no line \"CapEff\"" : strerror(-ret));
		remedy(doctor, "grep CapEff /proc/self/status");
		return;
	}
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!(rights >> needed[i].bit & 1))
			snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing),
				 ", CAP_%s", needed[i].name);
	finding(doctor, NULL,
		missing[0]	? HEALTH_FAIL
		: own_namespace ? HEALTH_UNKNOWN
				: HEALTH_OK,
		"%s: CapEff %#llx%s%s%s", status_path, (unsigned long long)rights,
		missing[0] ? ", without " : "", missing[0] ? missing + 2 : "",
		own_namespace ? "; /proc/self/uid_map: a user namespace, whose rights the card's "
				"driver does not always count"
			      : "");
	if (missing[0]) {
		remedy(doctor,
		       "sudo setcap cap_net_raw,cap_net_admin,cap_sys_rawio,cap_ipc_lock+ep "
		       "\"$(command -v gdrcap)\"  # or run as root");
		remedy(doctor, "# a container: docker run --cap-add NET_RAW --cap-add "
			       "NET_ADMIN --cap-add SYS_RAWIO --cap-add IPC_LOCK");
		remedy(doctor, "# a systemd service, such as gdrcap-capture@: AmbientCapabilities="
			       "CAP_NET_RAW CAP_NET_ADMIN CAP_SYS_RAWIO CAP_IPC_LOCK");
	} else if (own_namespace) {
		remedy(doctor, "gdrcap doctor  # outside the user namespace; a container "
			       "that is not rootless");
	}
}

/* "Max locked memory  65536  65536  bytes" of /proc/self/limits. */
static void check_memlock(struct doctor *doctor)
{
	static const char *const wanted[] = { "Max locked memory", NULL };
	static const char path[] = "/proc/self/limits";
	char text[TREE_TEXT_MAX], soft[32] = "", hard[32] = "", *end;
	unsigned long long bytes;
	bool own_namespace;
	uint64_t rights;
	int ret;

	ret = tree_grep(doctor->tree, path, wanted, text, sizeof(text));
	if (ret >= 1 && sscanf(text, "Max locked memory %31s %31s", soft, hard) == 2 &&
	    strcmp(soft, "unlimited") == 0) {
		finding(doctor, NULL, HEALTH_OK, "%s: %s", path, soft);
		return;
	}
	bytes = strtoull(soft, &end, 10);
	if (soft[0] < '0' || soft[0] > '9' || *end) {
		finding(doctor, NULL, HEALTH_UNKNOWN, "%s: %s", path,
			ret < 0 ? strerror(-ret) : "no line \"Max locked memory\"");
		remedy(doctor, "ulimit -l");
		return;
	}
	/* The kernel asks for the limit only where this right is missing. */
	if (rights_read(doctor, &rights, &own_namespace) == 0 && !own_namespace &&
	    (rights >> CAP_IPC_LOCK & 1)) {
		finding(doctor, NULL, HEALTH_OK,
			"%s: %s bytes; %s: CAP_IPC_LOCK, which goes before the limit", path, soft,
			status_path);
		return;
	}
	finding(doctor, NULL, bytes < HUGEPAGES_WANTED ? HEALTH_FAIL : HEALTH_WARN,
		"%s: %s bytes, at most %s", path, soft, hard);
	if (doctor->machine.container[0]) {
		remedy(doctor, "# docker run --ulimit memlock=-1 --cap-add IPC_LOCK; in "
			       "Kubernetes, IPC_LOCK in the pod's securityContext");
		return;
	}
	remedy(doctor, "ulimit -l unlimited  # this shell; where the hard limit forbids it:");
	remedy(doctor, "printf '* - memlock unlimited\\nroot - memlock unlimited\\n' | "
		       "sudo tee /etc/security/limits.d/gdrcap.conf  # then log in again");
	remedy(doctor, "# a systemd service: LimitMEMLOCK=infinity");
}

/* ---- hugepages ---- */

/* Free bytes below a folder of sizes, and its text; a negative errno: nobody knows. */
static int64_t hugepages_free(struct doctor *doctor, const char *folder, char *read, size_t size)
{
	struct tree *tree = doctor->tree;
	char(*names)[64];
	uint64_t bytes = 0, pages;
	int count, ret = 0;

	read[0] = '\0';
	count = tree_list(tree, &names, "%s", folder);
	for (int i = 0; i < count && ret == 0; i++) {
		const size_t used = strlen(read);
		unsigned long long kib;

		if (sscanf(names[i], "hugepages-%llukB", &kib) != 1)
			continue;
		ret = tree_number(tree, &pages, 10, "%s/%s/free_hugepages", folder, names[i]);
		if (ret == 0 && (pages > UINT32_MAX || kib > UINT32_MAX))
			ret = -ERANGE;
		if (ret < 0)
			break;
		bytes += pages * kib << 10;
		snprintf(read + used, size - used, "%s%s/%s/free_hugepages: %u", used ? "; " : "",
			 folder, names[i], (unsigned int)pages);
	}
	free(names);
	if (count < 0 || ret < 0) {
		snprintf(read, size, "%s: %s", folder, strerror(count < 0 ? -count : -ret));
		return count < 0 ? count : ret;
	}
	return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

/* Of one NUMA node, or of the machine: node -1. */
static void hugepages_one(struct doctor *doctor, int node)
{
	static const unsigned int pages = HUGEPAGES_WANTED >> 21;
	char folder[96] = HUGEPAGES, subject[16] = "", read[768];
	int64_t bytes;

	if (node >= 0) {
		snprintf(folder, sizeof(folder), "/sys/devices/system/node/node%d/hugepages", node);
		snprintf(subject, sizeof(subject), "node%d", node);
	}
	bytes = hugepages_free(doctor, folder, read, sizeof(read));
	if (bytes < 0) {
		finding(doctor, subject, HEALTH_UNKNOWN, "%s", read);
		remedy(doctor, "grep -i huge /proc/meminfo");
		return;
	}
	if (bytes >= (int64_t)HUGEPAGES_WANTED) {
		finding(doctor, subject, HEALTH_OK, "%s", read);
		return;
	}
	finding(doctor, subject, HEALTH_WARN, "%s",
		read[0] ? read : HUGEPAGES ": the kernel has none");
	remedy_on_host(doctor);
	if (node >= 0) {
		remedy(doctor, "echo %u | sudo tee %s/hugepages-2048kB/nr_hugepages", pages,
		       folder);
		return;
	}
	remedy(doctor, "echo %u | sudo tee /proc/sys/vm/nr_hugepages", pages);
	remedy(doctor, "echo vm.nr_hugepages=%u | sudo tee /etc/sysctl.d/gdrcap.conf", pages);
}

static void check_hugepages(struct doctor *doctor)
{
	const struct machine *machine = &doctor->machine;
	bool said = false;

	/* Descriptors are to lie near the card that writes them. */
	for (uint32_t i = 0; i < machine->cards && machine->numa_nodes > 1; i++) {
		const int node = machine->card[i].pci.numa_node;
		bool again = node < 0;

		for (uint32_t j = 0; j < i; j++)
			again = again || machine->card[j].pci.numa_node == node;
		if (!again) {
			hugepages_one(doctor, node);
			said = true;
		}
	}
	if (!said)
		hugepages_one(doctor, -1);
}

/* A path that can stand in a command as it is. */
static bool path_is_plain(const char *path)
{
	return path[0] == '/' &&
	       strspn(path, "/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "0123456789._-") == strlen(path);
}

/* DPDK's programs that have died leave "rtemap_0", "PREFIXmap_0" behind, and with them the pages.
 */
static unsigned int files_left(struct doctor *doctor, const char *mount)
{
	char(*names)[64];
	const int count = tree_list(doctor->tree, &names, "%s", mount);
	unsigned int left = 0;

	for (int i = 0; i < count; i++)
		left += strstr(names[i], "map_") != NULL;
	free(names);
	return left;
}

static void check_hugepage_files(struct doctor *doctor)
{
	static const char *const wanted[] = { " hugetlbfs ", NULL };
	char text[TREE_TEXT_MAX], read[768], mount[128], *line, *rest = text;
	const int ret = tree_grep(doctor->tree, "/proc/mounts", wanted, text, sizeof(text));
	const bool scarce =
		hugepages_free(doctor, HUGEPAGES, read, sizeof(read)) < (int64_t)HUGEPAGES_WANTED;
	bool said = false;

	if (ret < 0) {
		finding(doctor, NULL, HEALTH_UNKNOWN, "/proc/mounts: %s", strerror(-ret));
		remedy(doctor, "mount -t hugetlbfs");
		return;
	}
	while ((line = strsep(&rest, "\n")) != NULL) {
		unsigned int left;

		if (sscanf(line, "%*s %127s hugetlbfs", mount) != 1 || !path_is_plain(mount))
			continue;
		left = files_left(doctor, mount);
		said = true;
		finding(doctor, mount, left && scarce ? HEALTH_WARN : HEALTH_OK,
			"%s: files of DPDK's programs: %u", mount, left);
		if (left && scarce) {
			remedy_on_host(doctor);
			remedy(doctor, "sudo fuser -v %s/*map_*  # nobody? then:", mount);
			remedy(doctor, "sudo rm %s/*map_*", mount);
		}
	}
	if (!said)
		finding(doctor, NULL, HEALTH_OK,
			"/proc/mounts: no hugetlbfs, which gdrcap does not need");
}

const struct doctor_check checks_host[] = {
	{ "rdma-core", "host", SEVERITY_FATAL,
	  "DPDK's mlx5 driver reaches the card through these libraries", .run = check_rdma_core },
	{ "uverbs", "host", SEVERITY_FATAL, "the card's queues are made through this device file",
	  .run = check_uverbs },
	{ "capabilities", "host", SEVERITY_FATAL,
	  "raw Ethernet queues, the card's settings and its rules are for those who have these "
	  "rights",
	  .run = check_capabilities },
	{ "memlock", "host", SEVERITY_FATAL,
	  "a card can only write memory that is locked, and this is how much a process may lock",
	  .run = check_memlock },
	{ "hugepages", "host", SEVERITY_SLOW,
	  "rings and packet descriptors lie in hugepages; without them each burst costs TLB misses",
	  .run = check_hugepages },
	{ "hugepage-files", "host", SEVERITY_SLOW,
	  "programs that have died leave files behind that keep hugepages from others",
	  .run = check_hugepage_files },
	{ 0 },
};
