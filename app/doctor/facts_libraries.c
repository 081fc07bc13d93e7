/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which libraries load, and what CUDA and NVML say of the GPUs. Nothing of theirs is linked or
 * included: their functions are found by name, their numbers are written down here.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "doctor/facts.h"

#define DEVICES_MAX ((int)MACHINE_GPUS_MAX)
#define ANSWER_BYTES_MAX 65536u
#define REAP_MS 50

/* Where answers go: lines "NAME\tVALUE" to the process that asked, or straight into its tree. */
struct answers {
	FILE *to;
	struct tree *tree;
};

static void answer(const struct answers *answers, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void answer(const struct answers *answers, const char *name, const char *format, ...)
{
	char value[256];
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	for (char *c = value; *c; c++)
		*c = isprint((unsigned char)*c) ? *c : ' ';
	if (answers->tree) {
		tree_fact_set(answers->tree, name, value);
		return;
	}
	fprintf(answers->to, "%s\t%s\n", name, value);
	/* What comes next may hang. */
	fflush(answers->to);
}

/* Of device N: the name is "LIBRARY/N/WHAT". */
#define answer_of(answers, library, n, what, ...)                                                  \
	do {                                                                                       \
		char name_[96];                                                                    \
		snprintf(name_, sizeof(name_), "%s/%d/%s", library, n, what);                      \
		answer(answers, name_, __VA_ARGS__);                                               \
	} while (0)

/* As the kernel writes it: of "00000000:3B:00.0" the domain has four digits. */
static void answer_pci(const struct answers *answers, const char *library, int n, char *pci)
{
	char *colon = strchr(pci, ':');

	for (char *c = pci; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	while (colon && colon - pci > 4 && *pci == '0')
		pci++;
	answer_of(answers, library, n, "pci", "%s", pci);
}

/* ---- CUDA: numbers of cuda.h, which keeps them from release to release ---- */

static const struct {
	int attribute; /* CUdevice_attribute */
	const char *name;
} attributes[] = {
	{ 16, "multiprocessors" },
	{ 17, "kernel_timeout" },
	{ 18, "integrated" },
	{ 31, "concurrent_kernels" },
	{ 116, "gpu_direct_rdma_supported" },
	{ 117, "gpu_direct_rdma_flush_writes_options" },
	{ 118, "gpu_direct_rdma_writes_ordering" },
	{ 122, "stream_memory_operations" },
	{ 124, "dma_buf_supported" },
};
#define COMPUTE_CAPABILITY_MAJOR 75
#define COMPUTE_CAPABILITY_MINOR 76

/* A function of a library, and the pointer that is to have it. */
struct function {
	void *to;
	const char *name;
};

/* False: the library lacks one. */
static bool functions_load(void *library, const struct function *functions, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		void *function = dlsym(library, functions[i].name);

		if (!function)
			return false;
		memcpy(functions[i].to, &function, sizeof(function));
	}
	return true;
}

struct cuda {
	int (*init)(unsigned int flags);
	int (*driver_version)(int *version);
	int (*count)(int *count);
	int (*get)(int *device, int ordinal);
	int (*name)(char *name, int bytes, int device);
	int (*pci)(char *pci, int bytes, int device);
	int (*attribute)(int *value, int attribute, int device);
	int (*error)(int code, const char **text);
};

static bool cuda_load(struct cuda *cuda, void *library)
{
	const struct function functions[] = {
		{ &cuda->init, "cuInit" },
		{ &cuda->driver_version, "cuDriverGetVersion" },
		{ &cuda->count, "cuDeviceGetCount" },
		{ &cuda->get, "cuDeviceGet" },
		{ &cuda->name, "cuDeviceGetName" },
		{ &cuda->pci, "cuDeviceGetPCIBusId" },
		{ &cuda->attribute, "cuDeviceGetAttribute" },
		{ &cuda->error, "cuGetErrorString" },
	};

	return functions_load(library, functions, sizeof(functions) / sizeof(functions[0]));
}

static void cuda_device(const struct answers *answers, const struct cuda *cuda, int n)
{
	int device, value, minor;
	char text[128] = "";

	if (cuda->get(&device, n) != 0)
		return;
	if (cuda->name(text, sizeof(text), device) == 0)
		answer_of(answers, "cuda", n, "name", "%s", text);
	if (cuda->attribute(&value, COMPUTE_CAPABILITY_MAJOR, device) == 0 &&
	    cuda->attribute(&minor, COMPUTE_CAPABILITY_MINOR, device) == 0)
		answer_of(answers, "cuda", n, "compute", "%d.%d", value, minor);
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (cuda->attribute(&value, attributes[i].attribute, device) == 0)
			answer_of(answers, "cuda", n, attributes[i].name, "%d", value);
	if (cuda->pci(text, sizeof(text), device) == 0)
		answer_pci(answers, "cuda", n, text);
}

static void ask_cuda(const struct answers *answers)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	const char *text = NULL;
	struct cuda cuda;
	int ret, version, count;

	answer(answers, "library/libcuda.so.1", "%s", library ? "yes" : dlerror());
	if (!library)
		return;
	if (!cuda_load(&cuda, library)) {
		answer(answers, "cuda/error", "libcuda.so.1 lacks functions of CUDA");
		return;
	}
	if (cuda.driver_version(&version) == 0)
		answer(answers, "cuda/driver", "%d.%d", version / 1000, version % 1000 / 10);
	ret = cuda.init(0);
	if (ret == 0)
		ret = cuda.count(&count);
	if (ret != 0) {
		if (cuda.error(ret, &text) != 0 || !text)
			text = "no text";
		answer(answers, "cuda/error", "cuInit: %d (%s)", ret, text);
		return;
	}
	for (int n = 0; n < count && n < DEVICES_MAX; n++)
		cuda_device(answers, &cuda, n);
	/* Last: whoever knows the count knows the devices. */
	answer(answers, "cuda/count", "%d", count);
}

/* ---- NVML: structures of nvml.h ---- */

struct nvml_pci { /* nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3 */
	char legacy[16];
	unsigned int domain, bus, device, pci_device, pci_subsystem;
	char address[32];
};
struct nvml_bar1 { /* nvmlBAR1Memory_t: bytes */
	unsigned long long total, free, used;
};
struct nvml {
	int (*init)(void);
	int (*driver_version)(char *text, unsigned int bytes);
	int (*count)(unsigned int *count);
	int (*handle)(unsigned int n, void **device);
	int (*name)(void *device, char *text, unsigned int bytes);
	int (*pci)(void *device, struct nvml_pci *pci);
	int (*bar1)(void *device, struct nvml_bar1 *bar1);
	const char *(*error)(int code);
};

static bool nvml_load(struct nvml *nvml, void *library)
{
	const struct function functions[] = {
		{ &nvml->init, "nvmlInit_v2" },
		{ &nvml->driver_version, "nvmlSystemGetDriverVersion" },
		{ &nvml->count, "nvmlDeviceGetCount_v2" },
		{ &nvml->handle, "nvmlDeviceGetHandleByIndex_v2" },
		{ &nvml->name, "nvmlDeviceGetName" },
		{ &nvml->pci, "nvmlDeviceGetPciInfo_v3" },
		{ &nvml->bar1, "nvmlDeviceGetBAR1MemoryInfo" },
		{ &nvml->error, "nvmlErrorString" },
	};

	return functions_load(library, functions, sizeof(functions) / sizeof(functions[0]));
}

static void nvml_device(const struct answers *answers, const struct nvml *nvml, int n)
{
	struct nvml_bar1 bar1;
	struct nvml_pci pci;
	char text[128] = "";
	void *device;

	if (nvml->handle((unsigned int)n, &device) != 0)
		return;
	if (nvml->name(device, text, sizeof(text)) == 0)
		answer_of(answers, "nvml", n, "name", "%s", text);
	if (nvml->bar1(device, &bar1) == 0) {
		answer_of(answers, "nvml", n, "bar1_total", "%llu", bar1.total);
		answer_of(answers, "nvml", n, "bar1_used", "%llu", bar1.used);
	}
	if (nvml->pci(device, &pci) == 0) {
		pci.address[sizeof(pci.address) - 1] = '\0';
		answer_pci(answers, "nvml", n, pci.address);
	}
}

static void ask_nvml(const struct answers *answers)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	char text[128] = "";
	struct nvml nvml;
	unsigned int count;
	int ret;

	answer(answers, "library/libnvidia-ml.so.1", "%s", library ? "yes" : dlerror());
	if (!library)
		return;
	if (!nvml_load(&nvml, library)) {
		answer(answers, "nvml/error", "libnvidia-ml.so.1 lacks functions of NVML");
		return;
	}
	ret = nvml.init();
	if (ret == 0)
		ret = nvml.count(&count);
	if (ret != 0) {
		answer(answers, "nvml/error", "nvmlInit: %d (%s)", ret, nvml.error(ret));
		return;
	}
	if (nvml.driver_version(text, sizeof(text)) == 0)
		answer(answers, "nvml/driver", "%s", text);
	for (int n = 0; n < (int)count && n < DEVICES_MAX; n++)
		nvml_device(answers, &nvml, n);
	answer(answers, "nvml/count", "%u", count);
}

/* ---- other libraries ---- */

/* Of libmlx5, which later releases of rdma-core have. */
static void ask_symbols(const struct answers *answers, void *library)
{
	static const char *const names[] = { "mlx5dv_devx_general_cmd", "mlx5dv_devx_umem_reg_ex" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char name[64];

		snprintf(name, sizeof(name), "symbol/%s", names[i]);
		answer(answers, name, "%s", dlsym(library, names[i]) ? "yes" : "no");
	}
}

static void ask_libraries(const struct answers *answers)
{
	static const char *const names[] = { "libcuda.so", "libgdrapi.so.2", "libibverbs.so.1",
					     "libmlx5.so.1" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
		char name[64];

		snprintf(name, sizeof(name), "library/%s", names[i]);
		answer(answers, name, "%s", library ? "yes" : dlerror());
		if (library && strcmp(names[i], "libmlx5.so.1") == 0)
			ask_symbols(answers, library);
	}
	ask_nvml(answers);
}

/* ---- processes ---- */

static const struct {
	void (*ask)(const struct answers *answers);
	const char *error;   /* fact that says why there was no answer */
	const char *library; /* in this process already: then it is asked here */
} questions[] = {
	{ ask_cuda, "cuda/error", "libcuda.so.1" },
	{ ask_libraries, "nvml/error", "libnvidia-ml.so.1" },
};
#define QUESTIONS (sizeof(questions) / sizeof(questions[0]))

/* Never returns: what the libraries print belongs to nobody. */
static void child_run(size_t which, int fd)
{
	struct answers answers = { .to = fdopen(fd, "w") };
	const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (!answers.to || nowhere < 0)
		_exit(1);
	dup2(nowhere, STDIN_FILENO);
	dup2(nowhere, STDOUT_FILENO);
	dup2(nowhere, STDERR_FILENO);
	signal(SIGPIPE, SIG_DFL);
	questions[which].ask(&answers);
	fflush(answers.to);
	/* No exit handlers: they are the parent's. */
	_exit(0);
}

static void child_start(struct facts_asked *asked, struct tree *tree, size_t which)
{
	void *loaded = dlopen(questions[which].library, RTLD_NOLOAD | RTLD_LAZY);
	int ends[2], pid;

	asked->fd[which] = -1;
	if (loaded) {
		/* An initialised CUDA does not survive fork(), and answers at once. */
		questions[which].ask(&(struct answers){ .tree = tree });
		dlclose(loaded);
		return;
	}
	if (pipe2(ends, O_CLOEXEC) < 0) {
		tree_fact_set(tree, questions[which].error, strerror(errno));
		return;
	}
	pid = fork();
	if (pid == 0)
		child_run(which, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		tree_fact_set(tree, questions[which].error, strerror(errno));
		close(ends[0]);
		return;
	}
	asked->fd[which] = ends[0];
	asked->pid[which] = pid;
}

void facts_libraries_begin(struct facts_asked *asked, struct tree *tree)
{
	for (size_t i = 0; i < QUESTIONS; i++)
		child_start(asked, tree, i);
}

/* Whole lines of what came. */
static void answers_take(struct tree *tree, char *text)
{
	char *end;

	while ((end = strchr(text, '\n')) != NULL) {
		char *tab = strchr(text, '\t');

		*end = '\0';
		if (tab && tab < end) {
			*tab = '\0';
			tree_fact_set(tree, text, tab + 1);
		}
		text = end + 1;
	}
}

/* True when it ended by itself. One that the kernel does not let go is left behind. */
static bool child_end(int pid, bool answered, int *status)
{
	if (!answered)
		kill(pid, SIGKILL);
	for (int waited = 0; waited <= REAP_MS; waited++) {
		const int ret = waitpid(pid, status, WNOHANG);

		if (ret != 0)
			return answered && ret == pid;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return false;
}

static void child_read(struct facts_asked *asked, struct tree *tree, size_t which, uint64_t since,
		       unsigned int limit_ms)
{
	char *text = malloc(ANSWER_BYTES_MAX), why[128] = "";
	size_t have = 0;
	ssize_t got = 1;
	bool late = false;
	int status = 0;

	while (text && got > 0 && !late && have < ANSWER_BYTES_MAX - 1) {
		const uint64_t passed = now_ms() - since;
		struct pollfd wait = { .fd = asked->fd[which], .events = POLLIN };
		const int left = passed < limit_ms ? (int)(limit_ms - passed) : 0;
		const int ready = poll(&wait, 1, left);

		if (ready < 0 && errno == EINTR)
			continue;
		late = ready <= 0;
		if (late)
			break;
		got = read(asked->fd[which], text + have, ANSWER_BYTES_MAX - 1 - have);
		have += got > 0 ? (size_t)got : 0;
	}
	close(asked->fd[which]);
	if (late)
		snprintf(why, sizeof(why), "no answer within %u ms", limit_ms);
	if (child_end(asked->pid[which], !late && text, &status) && WIFSIGNALED(status))
		snprintf(why, sizeof(why), "asking %s ended with signal %d",
			 questions[which].library, WTERMSIG(status));
	if (text) {
		text[have] = '\0';
		answers_take(tree, text);
	}
	if (why[0])
		tree_fact_set(tree, questions[which].error, why);
	free(text);
}

void facts_libraries_end(struct facts_asked *asked, struct tree *tree, unsigned int limit_ms)
{
	const uint64_t since = now_ms();

	for (size_t i = 0; i < QUESTIONS; i++)
		if (asked->fd[i] >= 0)
			child_read(asked, tree, i, since, limit_ms);
}
