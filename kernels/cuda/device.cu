/* SPDX-License-Identifier: BSD-3-Clause */
/* A CUDA device: opened, asked for what it can do, its memory filled and copied. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

extern "C" {
#include "gpu/cuda_driver.h"
}
#include "kernels/cuda/device.cuh"

#define DRIVER_ABI 11040 /* signatures of CUDA 11.4 */
#define GPUS_MAX 64

/* Streams of 1 KiB tables to a few hundred KiB: four jobs' PRBS-31 without growing. */
#define POOL_WARM_BYTES ((size_t)4 << 20)

/* The GPUs that are open, by ordinal. One context a GPU, however many sessions use it. */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel_device *table[GPUS_MAX];
/* Their contexts, which are kept until the process ends, as the Runtime keeps its own. Written under the lock
 * before anybody has the device. */
static CUcontext contexts[GPUS_MAX];
static struct {
	CUresult (*retain)(CUcontext *context, CUdevice device);
	CUresult (*push)(CUcontext context);
	CUresult (*pop)(CUcontext *context);
} driver;

int cuda_fail(cudaError_t error, const char *what)
{
	int driver = 0, runtime = 0;

	cudaGetLastError(); /* an error that was reported must not surprise a later call */
	switch (error) {
	case cudaErrorMemoryAllocation:
		return kernel_fail(
			-ENOMEM,
			"%s: out of memory; free GPU memory (nvidia-smi lists its users) or "
			"take a smaller pool",
			what);
	case cudaErrorNoDevice:
		return kernel_fail(-ENODEV,
				   "%s: no CUDA device; nvidia-smi must list one, and "
				   "CUDA_VISIBLE_DEVICES must not hide it",
				   what);
	case cudaErrorInsufficientDriver:
		cudaDriverGetVersion(&driver);
		cudaRuntimeGetVersion(&runtime);
		if (!driver)
			return kernel_fail(-ENODEV,
					   "%s: no NVIDIA driver is loaded; install it, or "
					   "run with the GPU visible (in a container: --gpus all)",
					   what);
		return kernel_fail(
			-ENODEV,
			"%s: the NVIDIA driver serves CUDA up to %d.%d, this program was built "
			"with %d.%d; update the driver",
			what, driver / 1000, driver % 1000 / 10, runtime / 1000,
			runtime % 1000 / 10);
	case cudaErrorNoKernelImageForDevice:
	case cudaErrorUnsupportedPtxVersion:
		return kernel_fail(
			-ENOTSUP,
			"%s: this build has no code for the GPU; build with its architecture "
			"in -Dgpu_archs (nvidia-smi --query-gpu=compute_cap --format=csv)",
			what);
	case cudaErrorDevicesUnavailable:
		return kernel_fail(-EBUSY,
				   "%s: the GPU is busy or in exclusive mode; end its other "
				   "users or set nvidia-smi -c 0",
				   what);
	default:
		return kernel_fail(-EIO, "%s: %s (%s); if it stays so, see dmesg for Xid lines",
				   what, cudaGetErrorString(error), cudaGetErrorName(error));
	}
}

/* The driver's results are the Runtime's errors. */
static cudaError_t error_of(CUresult result)
{
	return (cudaError_t)result;
}

cudaError_t context_push(int ordinal)
{
	return error_of(driver.push(contexts[ordinal]));
}

void context_pop(void)
{
	CUcontext context;

	driver.pop(&context);
}

/* Under the table's lock. */
static int context_create(int ordinal)
{
	const struct {
		const char *symbol;
		void **call;
	} calls[] = {
		{ "cuDevicePrimaryCtxRetain", (void **)&driver.retain },
		{ "cuCtxPushCurrent", (void **)&driver.push },
		{ "cuCtxPopCurrent", (void **)&driver.pop },
	};
	cudaError_t error;

	if (contexts[ordinal])
		return 0;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		void *call = NULL;

		error = cuda_driver_call(calls[i].symbol, DRIVER_ABI, &call);
		if (error)
			return cuda_fail(error, calls[i].symbol);
		if (!call)
			return kernel_fail(-ENOTSUP, "the NVIDIA driver lacks %s: update it",
					   calls[i].symbol);
		/* again the same for a second GPU, while others use it */
		*calls[i].call = call;
	}
	error = error_of(driver.retain(&contexts[ordinal], ordinal));
	return error ? cuda_fail(error, "opening the GPU") : 0;
}

/* Loads all code now: a kernel that is loaded lazily waits for those that run. */
static int programs_load(struct kernel_device *device)
{
	static struct kernel_program (*const programs[PROGRAMS])(void) = {
		check_program,
		check_any_format_program,
		check_pattern_program,
		check_any_format_pattern_program,
		check_store_program,
		check_split_or_stale_program,
		check_store_split_or_stale_program,
		write_program,
		write_store_program,
		place_program,
		place_launch_program,
		place_close_program,
		place_close_whole_program,
		front_program,
		send_program,
	};

	for (uint32_t i = 0; i < PROGRAMS; i++) {
		struct kernel_program *program = &device->program[i];
		struct cudaFuncAttributes attributes;
		cudaError_t error;
		size_t shared;

		*program = programs[i]();
		error = cudaFuncGetAttributes(&attributes, program->entry);
		program_groups(program, device->block_shared_bytes, &shared);
		if (!error)
			error = cudaFuncSetAttribute(program->entry,
						     cudaFuncAttributeMaxDynamicSharedMemorySize,
						     (int)shared);
		if (error)
			return cuda_fail(error, "loading the kernels");
	}
	return 0;
}

static int attribute(enum cudaDeviceAttr which, int ordinal)
{
	int value = -1;

	if (cudaDeviceGetAttribute(&value, which, ordinal)) {
		cudaGetLastError();
		return -1;
	}
	return value;
}

static cudaError_t pool_create(struct kernel_device *device)
{
	struct cudaMemPoolProps props;
	uint64_t keep = UINT64_MAX; /* giving memory back to the driver could wait for the device */
	void *warm = NULL;
	cudaError_t error;

	memset(&props, 0, sizeof(props));
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	props.location.id = device->ordinal;
	error = cudaMemPoolCreate(&device->pool, &props);
	if (!error)
		error = cudaMemPoolSetAttribute(device->pool, cudaMemPoolAttrReleaseThreshold,
						&keep);
	if (!error)
		error = cudaMallocFromPoolAsync(&warm, POOL_WARM_BYTES, device->pool,
						device->copy_stream);
	if (!error)
		error = cudaFreeAsync(warm, device->copy_stream);
	return error ? error : cudaStreamSynchronize(device->copy_stream);
}

static cudaError_t streams_create(struct kernel_device *device)
{
	int least = 0, greatest = 0;
	cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest);

	/* streams of different priority do not share a queue of the GPU, where a copy would wait
	 * behind a kernel that never ends */
	if (!error)
		error = cudaStreamCreateWithPriority(&device->copy_stream, cudaStreamNonBlocking,
						     greatest);
	if (!error)
		error = cudaEventCreateWithFlags(&device->copied,
						 cudaEventBlockingSync | cudaEventDisableTiming);
	if (!error)
		error = cudaEventCreateWithFlags(&device->gathered, cudaEventDisableTiming);
	for (uint32_t i = 0; i < DEVICE_JOBS_MAX && !error; i++)
		error = cudaStreamCreateWithPriority(&device->job[i].stream, cudaStreamNonBlocking,
						     least);
	return error;
}

static void device_destroy(struct kernel_device *device)
{
	current_device current(device->ordinal);

	for (uint32_t i = 0; i < DEVICE_JOBS_MAX; i++)
		if (device->job[i].stream)
			cudaStreamDestroy(device->job[i].stream);
	if (device->pool)
		cudaMemPoolDestroy(device->pool);
	if (device->gathered)
		cudaEventDestroy(device->gathered);
	if (device->copied)
		cudaEventDestroy(device->copied);
	if (device->copy_stream)
		cudaStreamDestroy(device->copy_stream);
	cudaFreeHost(device->controls);
	cudaFreeHost(device->copies);
	cudaFreeHost(device->staging);
	cudaGetLastError();
	pthread_mutex_destroy(&device->lock);
	pthread_mutex_destroy(&device->gather_lock);
	pthread_mutex_destroy(&device->copy_lock);
	free(device);
}

/* Whatever the driver sets up for a first use is not left for a running kernel to block. */
static int first_uses(struct kernel_device *device)
{
	const struct kernel_copy copy = { device->staging, device->staging + STAGING_BYTES / 2,
					  sizeof(uint32_t), 0 };
	int ret;

	ret = cuda_fill(device, device->controls, 0, DEVICE_JOBS_MAX * sizeof(struct job_control));
	if (!ret)
		ret = cuda_copy_out(device, device->staging + STAGING_BYTES / 2, device->controls,
				    sizeof(uint32_t));
	if (!ret)
		ret = cuda_sum_load(device);
	return ret ? ret : cuda_gather(device, &copy, 1);
}

/* All that is allocated or loaded for a GPU; device_destroy() undoes what was done. */
static int device_set_up(struct kernel_device *device)
{
	struct cudaDeviceProp prop;
	cudaError_t error;
	int ret;

	error = cudaGetDeviceProperties(&prop, device->ordinal);
	if (error)
		return cuda_fail(error, "reading the GPU's properties");
	snprintf(device->name, sizeof(device->name), "%.63s", prop.name);
	device->units = (uint32_t)prop.multiProcessorCount;
	device->block_shared_bytes = prop.sharedMemPerBlockOptin;
	device->ticks_per_us = (uint32_t)attribute(cudaDevAttrClockRate, device->ordinal) / 1000;
	device->writes_ordering =
		attribute(cudaDevAttrGPUDirectRDMAWritesOrdering, device->ordinal);
	device->stream_words = cuda_stream_words_find(device->ordinal);
	device->flush_options =
		attribute(cudaDevAttrGPUDirectRDMAFlushWritesOptions, device->ordinal);
	if (attribute(cudaDevAttrMemoryPoolsSupported, device->ordinal) != 1)
		return kernel_fail(-ENOTSUP,
				   "GPU %d (%s) has no memory pools; they need a driver for "
				   "CUDA 11.4 or later",
				   device->ordinal, device->name);
	ret = programs_load(device);
	if (ret)
		return ret;
	error = streams_create(device);
	if (!error)
		error = pool_create(device);
	if (!error)
		error = cudaHostAlloc((void **)&device->staging, STAGING_BYTES,
				      cudaHostAllocDefault);
	if (!error)
		error = cudaHostAlloc((void **)&device->copies,
				      KERNEL_COPIES_MAX * sizeof(*device->copies),
				      cudaHostAllocMapped);
	if (!error)
		error = cudaHostAlloc((void **)&device->controls,
				      DEVICE_JOBS_MAX * sizeof(struct job_control),
				      cudaHostAllocMapped);
	if (error)
		return cuda_fail(error, "setting up the GPU");
	for (uint32_t i = 0; i < DEVICE_JOBS_MAX; i++) {
		device->job[i].device = device;
		device->job[i].control = &device->controls[i];
	}
	return first_uses(device);
}

static int device_create(int ordinal, struct kernel_device **created)
{
	current_device current(ordinal);
	struct kernel_device *device;
	int ret;

	if (current.error)
		return cuda_fail(current.error, "opening the GPU");
	device = (struct kernel_device *)calloc(1, sizeof(*device));
	if (!device)
		return kernel_fail(-ENOMEM, "no memory for the CUDA device");
	device->ordinal = ordinal;
	pthread_mutex_init(&device->lock, NULL);
	pthread_mutex_init(&device->gather_lock, NULL);
	pthread_mutex_init(&device->copy_lock, NULL);
	ret = device_set_up(device);
	if (ret) {
		device_destroy(device);
		return ret;
	}
	*created = device;
	return 0;
}

static int cuda_open(int ordinal, struct kernel_device **opened)
{
	int count = 0, ret = 0;
	cudaError_t error = cudaGetDeviceCount(&count);

	if (error)
		return cuda_fail(error, "looking for GPUs");
	if (count > (int)(sizeof(table) / sizeof(table[0])))
		count = sizeof(table) / sizeof(table[0]);
	if (ordinal < 0 || ordinal >= count)
		return kernel_fail(-ENODEV,
				   "no CUDA device %d: there %s %d, numbered from 0 "
				   "(nvidia-smi -L; CUDA_VISIBLE_DEVICES renumbers)",
				   ordinal, count == 1 ? "is" : "are", count);
	pthread_mutex_lock(&table_lock);
	if (!table[ordinal])
		ret = context_create(ordinal);
	if (!ret && !table[ordinal])
		ret = device_create(ordinal, &table[ordinal]);
	if (!ret) {
		table[ordinal]->handles++;
		*opened = table[ordinal];
	}
	pthread_mutex_unlock(&table_lock);
	return ret;
}

static void cuda_close(struct kernel_device *device)
{
	pthread_mutex_lock(&table_lock);
	if (--device->handles == 0) {
		table[device->ordinal] = NULL;
		device_destroy(device);
	}
	pthread_mutex_unlock(&table_lock);
}

static void cuda_info(const struct kernel_device *device, struct kernel_info *info)
{
	memset(info, 0, sizeof(*info));
	memcpy(info->name, device->name, sizeof(info->name));
	info->units = device->units;
	info->writes_ordering = device->writes_ordering;
	info->flush_options = device->flush_options;
}

static int cuda_flush(struct kernel_device *device)
{
	current_device current(device->ordinal);
	cudaError_t error = current.error;

	if (!error)
		error = cudaDeviceFlushGPUDirectRDMAWrites(
			cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
			cudaFlushGPUDirectRDMAWritesToOwner);
	return error ? cuda_fail(error, "flushing what the network card wrote") : 0;
}

static int cuda_after(struct kernel_device *device, void *stream, void (*release)(void *arg),
		      void *arg)
{
	current_device current(device->ordinal);
	cudaError_t error = current.error;

	if (!error)
		error = cudaLaunchHostFunc((cudaStream_t)stream, release, arg);
	return error ? cuda_fail(error, "queueing the release behind the stream") : 0;
}

/* Pages are registered whole; a card's register page is the card's own. */
static void *page_of(void *at)
{
	return (void *)((uintptr_t)at & ~(uintptr_t)(REGISTER_PAGE - 1));
}

static int cuda_map_register(struct kernel_device *device, void *at, void **mapped, bool *plain)
{
	current_device current(device->ordinal);
	cudaError_t error = current.error;
	void *page = page_of(at), *page_mapped = NULL;

	*mapped = NULL;
	*plain = false;
	if (error)
		return cuda_fail(error, "mapping a card's register");
	error = cudaHostRegister(page, REGISTER_PAGE,
				 cudaHostRegisterMapped | cudaHostRegisterIoMemory);
	if (error) {
		/* The page of a card in software is memory; CUDA takes that of no real one so. */
		cudaGetLastError();
		*plain = cudaHostRegister(page, REGISTER_PAGE, cudaHostRegisterMapped) ==
			 cudaSuccess;
		cudaGetLastError();
		if (!*plain)
			return cuda_fail(error, "mapping a card's register");
	}
	error = cudaHostGetDevicePointer(&page_mapped, page, 0);
	if (error) {
		cudaHostUnregister(page);
		return cuda_fail(error, "mapping a card's register");
	}
	*mapped = (uint8_t *)page_mapped + ((uint8_t *)at - (uint8_t *)page);
	return 0;
}

static void cuda_unmap_register(struct kernel_device *device, void *at)
{
	current_device current(device->ordinal);

	if (!current.error)
		cudaHostUnregister(page_of(at));
	cudaGetLastError();
}

const struct kernel_ops kernel_cuda_ops = {
	"cuda",
	1, /* reads_inline */
	0, /* stream_is_caller */
	1, /* runs_fronts */
	cuda_open,
	cuda_close,
	cuda_info,
	cuda_fill,
	cuda_copy_in,
	cuda_copy_out,
	cuda_gather,
	cuda_workers_start,
	cuda_workers_join,
	cuda_workers_running,
	cuda_workers_starved,
	cuda_workers_per_ring,
	cuda_flush,
	cuda_place_close,
	cuda_place_close_whole,
	cuda_after,
	cuda_sum,
	cuda_wait_word,
	cuda_write_word,
	cuda_map_register,
	cuda_unmap_register,
};
