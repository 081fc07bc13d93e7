/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer: any bytes as what is changed of a made-up machine, which gdrcap doctor then examines. Each record is a line
 * "@PATH", and up to the next one what the file has in it:
 *
 *   @/proc/mounts      a file, and the folders on its way
 *   @/sys/class/x/     a folder
 *   @/dev/gdrdrv>/tmp  a symbolic link
 *   @12                the machine's file 12
 *
 * Nothing that is said has a control character, JSON is JSON, and what a file had in it comes into a command as a word
 * that neither a shell nor the command obeys. The doctor's own words are the program's constants: of them nothing is asked.
 */
#include <ctype.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <jansson.h>

#include "../unit/doctor_tree.h"

#define FILES_MAX 1024u
#define RECORDS_MAX 16u
#define DEPTH_MAX 12u
#define CHANGES_MAX (RECORDS_MAX * DEPTH_MAX)

#define GPU_WAY "pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0"
#define CARD_WAY "pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:01.0/0000:3e:00.0"
#define OTHER_WAY "pci0000:ae/0000:ae:00.0/0000:af:00.0"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void expect(int right, const char *what, const char *text)
{
	if (!right) {
		fprintf(stderr, "%s: %s\n", what, text);
		abort();
	}
}

/* ---- what comes into a command ---- */

/* The linker's names. NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
extern const char __executable_start, edata;
void __real_remedy(struct doctor *doctor, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void __wrap_remedy(struct doctor *doctor, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static bool is_constant(const char *text)
{
	return text >= &__executable_start && text < &edata;
}

/* `format` is cut before the word. */
static void word_check(const char *format, const char *word)
{
	const size_t length = strlen(format);
	unsigned int quotes = 0;

	for (const char *c = format; *c; c++)
		quotes += *c == '\'';
	expect(word[0] != '-' || (length && format[length - 1] != ' '),
	       "a command would take it for an option", word);
	for (const char *c = word; *c; c++)
		expect(isalnum((unsigned char)*c) || strchr("_./:@%+=,-", *c) ||
			       (*c == ' ' && quotes % 2),
		       "a shell would obey it", word);
}

/* The words of one line; a comment may have any. */
static void words_check(const char *format, va_list args)
{
	const char *comment = format[0] == '#' ? format : strstr(format, "  # ");

	for (const char *c = strchr(format, '%'); c && (!comment || c < comment);
	     c = strchr(c + 1, '%')) {
		const size_t at = (size_t)(c - format);

		if (*++c == '%')
			continue;
		c += strspn(c, ".0123456789");
		if (*c == 's') {
			const char *word = va_arg(args, const char *);
			char *before = strndup(format, at);

			if (!before)
				abort();
			if (!is_constant(word))
				word_check(before, word);
			free(before);
		} else if (!strncmp(c, "ll", 2)) {
			(void)va_arg(args, long long);
		} else {
			expect(strchr("dux", *c) != NULL, "a conversion that is not known here",
			       format);
			(void)va_arg(args, int);
		}
	}
}

void __wrap_remedy(struct doctor *doctor, const char *format, ...)
{
	char line[4096];
	va_list args;

	va_start(args, format);
	words_check(format, args);
	va_end(args);
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	__real_remedy(doctor, "%s", line);
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

/* ---- the machine ---- */

/* What the records write over: path from the root, in the order of nftw(). */
static char *base_file[FILES_MAX];
static unsigned int base_files;
static int kept_folder;

static int path_remove(const char *path, const struct stat *status, int type, struct FTW *where)
{
	return remove(path);
}

static void machine_remove(void)
{
	nftw(made_root, path_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static int path_note(const char *path, const struct stat *status, int type, struct FTW *where)
{
	if (type == FTW_F && base_files < FILES_MAX)
		base_file[base_files++] = strdup(path + strlen(made_root));
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void gpu_made(const char *way, int number)
{
	const char *address = strrchr(way, '/') + 1;

	made_gpu(way);
	made_iommu(address, "8", "DMA");
	made_fact(address, "cuda/%d/pci", number);
	made_fact("NVIDIA A100 80GB PCIe", "cuda/%d/name", number);
	made_fact("8.0", "cuda/%d/compute", number);
	made_fact("1", "cuda/%d/gpu_direct_rdma_supported", number);
	made_fact("0", "cuda/%d/dma_buf_supported", number);
	made_fact("1", "cuda/%d/stream_memory_operations", number);
	made_fact("108", "cuda/%d/multiprocessors", number);
	made_fact("1", "cuda/%d/concurrent_kernels", number);
	made_fact("100", "cuda/%d/gpu_direct_rdma_writes_ordering", number);
	made_fact("1", "cuda/%d/gpu_direct_rdma_flush_writes_options", number);
	made_fact(address, "nvml/%d/pci", number);
	made_fact("137438953472", "nvml/%d/bar1_total", number);
	made_fact("1048576", "nvml/%d/bar1_used", number);
}

static void card_made(const char *way, const char *interface, const char *rdma)
{
	const char *address = strrchr(way, '/') + 1;

	made_card(way, interface, rdma);
	made_iommu(address, "9", "identity");
	made_folder("/sys/bus/pci/devices/%s/infiniband/%s", address, rdma);
	made_file("InfiniBand", "/sys/class/infiniband/%s/ports/1/link_layer", rdma);
	made_file("4: ACTIVE", "/sys/class/infiniband/%s/ports/1/state", rdma);
	made_file("22.28.1002", "/sys/class/infiniband/%s/fw_ver", rdma);
	made_file(rdma, "/sys/class/infiniband_verbs/uverbs%c/ibdev", rdma[5]);
	made_file("", "/dev/infiniband/uverbs%c", rdma[5]);
	made_fact("13", "process/access//dev/infiniband/uverbs%c", rdma[5]);
	made_file("p0", "/sys/class/net/%s/phys_port_name", interface);
	made_fact("mlx5_core", "ethtool/%s/driver", interface);
	made_fact("22.28.1002 (MT_0000000359)", "ethtool/%s/firmware", interface);
	made_fact("100000", "ethtool/%s/speed", interface);
	made_fact("17", "ethtool/%s/stat/rx_out_of_buffer", interface);
}

static void system_made(void)
{
	made_file("isolcpus=2-3 intel_iommu=on", "/proc/cmdline");
	made_file("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release "
		  "Build\nGCC version: gcc",
		  "/proc/driver/nvidia/version");
	made_file("RegistryDwords: \"\"", "/proc/driver/nvidia/params");
	made_file("hugetlbfs /dev/hugepages hugetlbfs rw,pagesize=2M 0 0", "/proc/mounts");
	made_file("", "/dev/hugepages/rtemap_0");
	made_file("0", "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
	made_file("0", "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
	made_file("0", "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages");
	made_file("0-7", "/sys/devices/system/node/node0/cpulist");
	made_file("0-7", "/sys/devices/system/cpu/online");
	made_file("2-3", "/sys/devices/system/cpu/isolated");
	made_file("", "/sys/devices/system/cpu/nohz_full");
	made_file("powersave", "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor");
	made_file("0-7", "/sys/devices/system/cpu/cpufreq/policy0/affected_cpus");
	made_file("0", "/sys/devices/system/cpu/cpu1/topology/thread_siblings_list");
	made_file("Max locked memory  65536  65536  bytes", "/proc/self/limits");
	made_file("none [integrity] confidentiality", "/sys/kernel/security/lockdown");
	made_file("0", "/sys/module/nvidia_peermem/parameters/peerdirect_support");
	made_file("5.8-1.1.2", "/sys/module/mlx5_core/version");
	made_file("0 t ib_register_peer_memory_client\t[ib_core]", "/proc/kallsyms");
	made_file("docker", "/run/systemd/container");
	made_file("200000 100000", "/sys/fs/cgroup/cpu.max");
	made_file("1073741824", "/sys/fs/cgroup/memory.max");
	made_file("nvidia_peermem: disagrees about version of symbol x",
		  "/gdrcap/facts/kernel/messages");
	made_fact("yes", "library/libcuda.so.1");
	made_fact("13.0", "cuda/driver");
	made_fact("1", "cuda/count");
	made_fact("1", "nvml/count");
	made_fact("unsynchronized", "clock/state");
	made_fact("chronyd", "clock/programs");
	made_fact("0-7", "process/cpus");
	made_fact("65536", "process/memlock");
	made_fact("own", "process/namespaces");
}

/* Once: what the records change of it is taken back. */
static void machine_made(void)
{
	char path[PATH_MAX];

	made_below("/dev/shm"); /* disks are slow at hundreds of small files */
	atexit(machine_remove);
	system_made();
	gpu_made(GPU_WAY, 0);
	card_made(CARD_WAY, "ens1f0np0", "mlx5_0");
	card_made(OTHER_WAY, "ens9", "mlx5_1");
	nftw(made_root, path_note, 16, FTW_PHYS);
	qsort(base_file, base_files, sizeof(base_file[0]), by_text);
	/* Beside the machine, which knows no such folder. */
	snprintf(path, sizeof(path), "%s/.kept", made_root);
	expect(mkdir(path, 0700) == 0, "mkdir", path);
	kept_folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* ---- what is changed of it ---- */

/* Changes, the last one first to be taken back. */
static struct change {
	int folder; /* of `name`; closed with it */
	char name[NAME_MAX + 1];
	bool was_there; /* and is in kept_folder, by the number of the change */
} changes[CHANGES_MAX];
static unsigned int change_count;

/* Before something of that name is made: what is there steps aside. False: it cannot. */
static bool change_begin(int folder, const char *name)
{
	struct change *change = &changes[change_count];
	char kept[16];

	if (change_count == CHANGES_MAX)
		return false;
	snprintf(change->name, sizeof(change->name), "%s", name);
	snprintf(kept, sizeof(kept), "%u", change_count);
	change->was_there = renameat(folder, name, kept_folder, kept) == 0;
	if (!change->was_there && errno != ENOENT)
		return false;
	change->folder = fcntl(folder, F_DUPFD_CLOEXEC, 0);
	expect(change->folder >= 0, "descriptors", name);
	change_count++;
	return true;
}

static void changes_undo(void)
{
	while (change_count) {
		const struct change *change = &changes[--change_count];
		char kept[16];

		snprintf(kept, sizeof(kept), "%u", change_count);
		if (unlinkat(change->folder, change->name, 0))
			(void)unlinkat(change->folder, change->name, AT_REMOVEDIR);
		if (change->was_there)
			expect(renameat(kept_folder, kept, change->folder, change->name) == 0,
			       "what was there", change->name);
		close(change->folder);
	}
}

/* A folder of the machine, wherever links of it lead: never out of it. */
static int folder_open(int root, const char *path)
{
	const struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				      .resolve = RESOLVE_IN_ROOT };

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* The folder in which `path` lies, made where there is nothing, and its name in *name. -1: there is none. */
static int parent_open(char *path, char **name)
{
	const int root = open(made_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int folder = folder_open(root, "/");
	char so_far[PATH_MAX] = "", *piece, *rest = path;
	unsigned int depth = 0;

	expect(folder >= 0, "openat2() of the machine", made_root);
	*name = NULL;
	while (folder >= 0 && (piece = strsep(&rest, "/")) != NULL) {
		int below;

		if (!piece[0] || piece[0] == '.')
			continue;
		if (*name) {
			snprintf(so_far + strlen(so_far), sizeof(so_far) - strlen(so_far), "/%s",
				 *name);
			below = folder_open(root, so_far);
			if (below < 0 && errno == ENOENT && ++depth < DEPTH_MAX &&
			    change_begin(folder, *name) && !mkdirat(folder, *name, 0700))
				below = folder_open(root, so_far);
			close(folder);
			folder = below;
		}
		*name = piece;
	}
	close(root);
	if (folder >= 0 && (!*name || strlen(*name) > NAME_MAX)) {
		close(folder);
		folder = -1;
	}
	return folder;
}

static void file_put(int folder, const char *name, const uint8_t *data, size_t bytes)
{
	const int fd =
		openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return;
	if (write(fd, data, bytes) != (ssize_t)bytes)
		abort();
	close(fd);
}

static void record_put(char *path, const uint8_t *data, size_t bytes)
{
	const size_t length = strlen(path);
	const bool is_folder = length && path[length - 1] == '/';
	char *target = strchr(path, '>'), *name;
	int folder;

	if (target)
		*target++ = '\0';
	folder = parent_open(path, &name);
	if (folder < 0)
		return;
	if (!change_begin(folder, name))
		;
	else if (is_folder)
		(void)mkdirat(folder, name, 0700);
	else if (target && target[0])
		(void)symlinkat(target, folder, name);
	else
		file_put(folder, name, data, bytes);
	close(folder);
}

/* One record behind its '@': how long it is. */
static size_t record_take(const uint8_t *data, size_t bytes)
{
	const uint8_t *next = memmem(data, bytes, "\n@", 2), *line;
	const size_t length = next ? (size_t)(next - data) : bytes;
	char path[PATH_MAX];
	size_t named;

	line = memchr(data, '\n', length);
	named = line ? (size_t)(line - data) : length;
	if (named && named < sizeof(path)) {
		memcpy(path, data, named);
		path[named] = '\0';
		if (isdigit((unsigned char)path[0]))
			snprintf(path, sizeof(path), "%s",
				 base_file[strtoul(path, NULL, 10) % base_files]);
		record_put(path, data + named + (line != NULL), length - named - (line != NULL));
	}
	return length;
}

static void records_take(const uint8_t *data, size_t bytes)
{
	size_t at = 0;

	for (unsigned int i = 0; i < RECORDS_MAX && at < bytes && data[at] == '@'; i++) {
		at++;
		at += record_take(data + at, bytes - at) + 1;
	}
}

/* ---- what is said of it ---- */

static void is_clean(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		expect((text[i] >= ' ' && text[i] <= '~') || text[i] == '\n', "a control character",
		       text);
}

static void said_check(void)
{
	size_t bytes;
	char *text;
	FILE *to = open_memstream(&text, &bytes);
	json_t *object;

	if (!to)
		abort();
	doctor_print_text(to, made_doctor, 1, 0);
	fclose(to);
	is_clean(text, bytes);
	free(text);
	to = open_memstream(&text, &bytes);
	if (!to || doctor_print_json(to, made_doctor) < 0)
		abort();
	fclose(to);
	is_clean(text, bytes);
	object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
	expect(json_is_object(object), "no JSON object", text);
	json_decref(object);
	free(text);
}

static void config_check(void)
{
	char path[PATH_MAX], text[8192];
	struct gdrcap_error error;
	FILE *from;

	snprintf(path, sizeof(path), "%s/.kept/gdrcap.yaml", made_root);
	expect(doctor_write_config(made_doctor, path, &error) == 0, "no configuration", error.text);
	from = fopen(path, "r");
	if (!from)
		abort();
	is_clean(text, fread(text, 1, sizeof(text), from));
	fclose(from);
	unlink(path);
}

/* What is kept of a hostile machine can be a hostile one, and nothing lies beside its folder. */
static void capture_check(void)
{
	char path[PATH_MAX];
	struct gdrcap_error error;

	snprintf(path, sizeof(path), "%s/.kept/capture", made_root);
	(void)doctor_capture(made_doctor, path, &error);
	nftw(path, path_remove, 16, FTW_DEPTH | FTW_PHYS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const struct doctor_config config = { .root = made_root };
	struct gdrcap_error error = { 0 };

	if (!made_root[0])
		machine_made();
	records_take(data, bytes);
	if (doctor_create(&config, &made_doctor, &error) == 0) {
		said_check();
		config_check();
		if (bytes % 8 == 0) /* slow */
			capture_check();
		doctor_destroy(made_doctor);
	} else {
		expect(error.text[0] != '\0', "no reason", "");
	}
	changes_undo();
	return 0;
}
