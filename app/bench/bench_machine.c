/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine that is measured: CPU, memory, GPU, and the cores that are used. */
#include "bench/bench_machine.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <rte_eal.h>

#ifdef GDRCAP_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

#include "base/clock.h"
#include "base/eal.h"
#include "base/guest.h"
#include "base/log.h"
#include "base/parse.h"
#include "bench/bench_util.h"
#include "config/config.h"
#include "gpu/gpu_open.h"
#include "session/plan.h"

/* EAL is started once, so with what the largest stage needs: sessions and mempools of many queues.
 * Without hugepages it is only touched where it is used. A machine with less than SMALL_MACHINE_PART
 * times as much gives it that part. */
#define EAL_BYTES ((size_t)1 << 30)
#define SMALL_MACHINE_PART 8
#define CACHES_MAX 16

uint64_t bench_now_ns(void)
{
	return now_ns();
}

int bench_pin(const struct bench *bench, uint32_t index)
{
	const int cpu = bench->cpus[index % bench->cpu_count];
	cpu_set_t set;
	int ret;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	ret = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	return ret ? -ret : cpu;
}

/* ---- facts ---- */

static void text_clean(char *text)
{
	text[strcspn(text, "\n")] = '\0';
	for (char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = ' ';
}

/* First line of a file; "" where it cannot be read. */
static void line_of(char *to, size_t bytes, const char *path)
{
	FILE *file = fopen(path, "re");

	to[0] = '\0';
	if (!file)
		return;
	if (!fgets(to, (int)bytes, file))
		to[0] = '\0';
	fclose(file);
	text_clean(to);
}

/* What follows "NAME : " in the first line of /proc/cpuinfo that has it. */
static bool cpuinfo(char *to, size_t bytes, const char *name)
{
	char line[512];
	bool found = false;
	FILE *file = fopen("/proc/cpuinfo", "re");

	while (file && !found && fgets(line, sizeof(line), file)) {
		const char *value = strchr(line, ':');

		if (!value || strncmp(line, name, strlen(name)) != 0)
			continue;
		text_clean(line);
		value += strspn(value, ": ");
		snprintf(to, bytes, "%s", value);
		found = value[0] != '\0';
	}
	if (file)
		fclose(file);
	return found;
}

/* Arm's kernels give numbers in place of a name. */
static void cpu_name(char *to, size_t bytes)
{
	char implementer[32], part[32];

	to[0] = '\0';
	if (cpuinfo(to, bytes, "model name"))
		return;
	if (cpuinfo(implementer, sizeof(implementer), "CPU implementer") &&
	    cpuinfo(part, sizeof(part), "CPU part"))
		snprintf(to, bytes, "implementer %s, part %s", implementer, part);
}

/* Of the cache furthest from that CPU. */
static uint64_t cache_bytes(int cpu)
{
	uint64_t bytes = 0, furthest = 0;

	for (int i = 0; i < CACHES_MAX; i++) {
		char path[128], text[64];
		uint64_t level, size;

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cache/index%d/level",
			 cpu, i);
		line_of(text, sizeof(text), path);
		if (parse_u64(text, &level) < 0)
			break;
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cache/index%d/size",
			 cpu, i);
		line_of(text, sizeof(text), path);
		if (parse_size(text, &size) == 0 && level > furthest) {
			furthest = level;
			bytes = size;
		}
	}
	return bytes;
}

/* The NVIDIA driver's: "550.127.05", alone or in a line of other words. */
static void gpu_driver_version(char *to, size_t bytes)
{
	char line[256], *rest = line, *word;

	line_of(to, bytes, "/sys/module/nvidia/version");
	if (to[0])
		return;
	line_of(line, sizeof(line), "/proc/driver/nvidia/version");
	while ((word = strsep(&rest, " ")) != NULL)
		if (word[0] >= '0' && word[0] <= '9' && strchr(word, '.')) {
			snprintf(to, bytes, "%s", word);
			return;
		}
}

#ifdef GDRCAP_WITH_CUDA
static void cuda_version(char *to, size_t bytes)
{
	int driver = 0;

	if (cudaDriverGetVersion(&driver) != cudaSuccess)
		driver = 0;
	snprintf(to, bytes, GDRCAP_CUDA_VERSION);
	if (driver)
		snprintf(to, bytes, GDRCAP_CUDA_VERSION " (driver %d.%d)", driver / 1000,
			 driver % 1000 / 10);
}
#else
static void cuda_version(char *to, size_t bytes)
{
	snprintf(to, bytes, "%s", "");
}
#endif

/* Of the GPU nothing where its host twin stands in for it. */
static void machine_fill(struct bench *bench)
{
	struct gdrcap_bench_machine *machine = &bench->machine;
	struct kernel_info info;
	struct utsname name;

	cpu_name(machine->cpu, sizeof(machine->cpu));
	if (uname(&name) == 0)
		snprintf(machine->kernel, sizeof(machine->kernel), "%s", name.release);
	machine->cpus = bench->cpu_count;
	machine->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	machine->cache_bytes = cache_bytes(bench->cpus[0]);
	machine->hugepages = rte_eal_has_hugepages() != 0;
	cuda_version(machine->cuda, sizeof(machine->cuda));
	if (!bench->cuda)
		return;
	bench->ops->info(bench->device, &info);
	snprintf(machine->gpu, sizeof(machine->gpu), "%s", info.name);
	machine->gpu_units = info.units;
	gpu_driver_version(machine->gpu_driver, sizeof(machine->gpu_driver));
}

/* ---- life ---- */

/* Which GPU is meant is a session's question too, and gets the same answer. */
static int gpu_choose(struct bench *bench, const char *gpu, struct gdrcap_error *error)
{
	struct gdrcap_config *config = gdrcap_config_new();
	struct settings settings;
	struct plan plan;
	int ret;

	ret = bench_set(config, 0, error, "port", "ring:bench");
	ret = bench_set(config, ret, error, "tx_port", "ring:bench");
	ret = bench_set(config, ret, error, "gpu", "%s", gpu && gpu[0] ? gpu : "auto");
	if (ret == 0)
		ret = config_settle(config, &settings, error);
	if (ret == 0)
		ret = plan_create(&plan, &settings, error);
	gdrcap_config_free(config);
	if (ret < 0)
		return ret;
	bench->cuda = plan.cuda;
	bench->ordinal = plan.ordinal;
	return 0;
}

static int device_open(struct bench *bench, struct gdrcap_error *error)
{
	int ret;

	bench->ops = &kernel_host_ops;
#ifdef GDRCAP_WITH_CUDA
	if (bench->cuda)
		bench->ops = &kernel_cuda_ops;
#endif
	ret = bench->cuda ? gpu_open_cuda(bench->ordinal, error) : gpu_open_host(false, error);
	if (ret < 0)
		return ret;
	ret = bench->ops->open(bench->ordinal, &bench->device);
	if (ret < 0)
		return error_set(error, ret, "%s", kernel_error());
	if (bench->cuda)
		guest_gpu_opened();
	return 0;
}

/* The count, or a negative errno. */
static int cpus_choose(struct bench *bench, const char *cores, struct gdrcap_error *error)
{
	int asked[BENCH_CPUS_MAX];
	size_t count = 0;

	if (cores && cores[0] && parse_cpu_list(cores, asked, BENCH_CPUS_MAX, &count) < 0)
		return error_set(error, -EINVAL, "cores: \"%s\" is not a list such as 2,4-7",
				 cores);
	return eal_cpus(asked, count, -1, bench->cpus, BENCH_CPUS_MAX, error);
}

int bench_open(struct bench *bench, const struct gdrcap_bench_config *config,
	       struct gdrcap_error *error)
{
	const size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
	const struct eal_needs needs = {
		.memory_bytes = memory / SMALL_MACHINE_PART < EAL_BYTES
					? memory / SMALL_MACHINE_PART
					: EAL_BYTES,
	};
	int ret;

	bench->config = config;
	ret = guest_enter(error);
	if (ret < 0)
		return ret;
	ret = cpus_choose(bench, config->cores, error);
	if (ret < 0)
		goto err;
	bench->cpu_count = (uint32_t)ret;
	ret = gpu_choose(bench, config->gpu, error);
	if (ret == 0)
		ret = eal_start(&needs, error);
	if (ret == 0)
		ret = device_open(bench, error);
	if (ret < 0)
		goto err;
	machine_fill(bench);
	return 0;
err:
	guest_leave();
	return ret;
}

void bench_close(struct bench *bench)
{
	bench->ops->close(bench->device);
	bench->device = NULL;
	guest_leave();
}

int gdrcap_bench_machine(const struct gdrcap_bench_config *config,
			 struct gdrcap_bench_machine *machine, struct gdrcap_error *error)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	int ret;

	if (!bench)
		return error_set(error, -ENOMEM, "no memory for a bench");
	ret = bench_open(bench, config, error);
	if (ret == 0) {
		*machine = bench->machine;
		bench_close(bench);
	}
	free(bench);
	return ret;
}
