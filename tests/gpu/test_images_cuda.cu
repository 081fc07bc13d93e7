/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Images through the public API on a real GPU: to a caller's kernel that is already running, and to his
 * thread, which has kernels look at them on a stream and gives them back after those. Both engines; GPU,
 * pinned and the caller's memory; every byte compared.
 *
 * Usage: test_images_cuda [IMAGES]. 77 without a GPU.
 */
#include <cerrno>

#include "image_frames.cuh"

#define BLOCKS 4u
#define THREADS 256u
#define RING 64u

__global__ static void running_kernel(struct gdrcap_gpu_images images, struct image_tally *tally)
{
	for (uint64_t seq = blockIdx.x;; seq += gridDim.x) {
		struct gdrcap_image image;
		int got;

		while ((got = gdrcap_gpu_image_try_next(images, seq, &image)) == 0)
			__nanosleep(200);
		if (got < 0)
			return;
		if (image.seq != seq && threadIdx.x == 0)
			atomicAdd(&tally->wrong, 1ull);
		image_check(image, tally);
		gdrcap_gpu_image_release(images, seq);
	}
}

__global__ static void image_kernel(struct gdrcap_image image, struct image_tally *tally)
{
	image_check(image, tally);
}

/* Memory of ours for the images; NULL: the session's own. */
enum own { OWN_NONE, OWN_DEVICE, OWN_PINNED };
static const char *const own_names[] = { "", ", own cudaMalloc()", ", own cudaHostAlloc()" };
#define STRIDE ((IMAGE_BYTES + 63) / 64 * 64)

static void *own_take(struct gdrcap_config *config, enum own own)
{
	void *memory = NULL;

	if (own == OWN_NONE)
		return NULL;
	if (own == OWN_DEVICE)
		CUDA(cudaMalloc(&memory, RING * STRIDE));
	else
		CUDA(cudaHostAlloc(&memory, RING * STRIDE, cudaHostAllocMapped));
	api_check(gdrcap_config_set_image_memory(config, 0, memory, RING * STRIDE, STRIDE), NULL,
		  "gdrcap_config_set_image_memory");
	return memory;
}

static void own_give_back(void *memory, enum own own)
{
	if (own == OWN_DEVICE)
		CUDA(cudaFree(memory));
	else if (own == OWN_PINNED)
		CUDA(cudaFreeHost(memory));
}

static int refuse(const char *what, void *memory, size_t bytes, const char *why)
{
	struct gdrcap_config *config = images_config("host", "auto", "device", 1, RING);
	struct gdrcap_session *session;
	struct gdrcap_error error = {};
	int failed;

	gdrcap_config_set_image_memory(config, 0, memory, bytes, STRIDE);
	failed = gdrcap_create(config, &session, &error) != -EINVAL || !strstr(error.text, why);
	printf("%s: %s: %s\n", what, error.text, failed ? "FAILED" : "refused, passed");
	gdrcap_destroy(session);
	gdrcap_config_free(config);
	return failed;
}

/* What a GPU does not reach, or what is not all there. */
static int test_refused(void)
{
	const size_t bytes = RING * STRIDE;
	void *cpu = aligned_alloc(64, bytes), *managed, *device;
	int failed;

	CUDA(cudaMallocManaged(&managed, bytes));
	CUDA(cudaMalloc(&device, bytes));
	failed = refuse("ordinary memory", cpu, bytes, "pin it");
	failed |= refuse("managed memory", managed, bytes, "is managed");
	failed |= refuse("too little", device, bytes - 64, "ring: is 64");
	CUDA(cudaFree(device));
	CUDA(cudaFree(managed));
	free(cpu);
	return failed;
}

static struct image_tally *tally_new(void)
{
	struct image_tally *tally;

	CUDA(cudaMalloc(&tally, sizeof(*tally)));
	CUDA(cudaMemset(tally, 0, sizeof(*tally)));
	return tally;
}

/* What was counted is what kernels saw, and the run had as many images as were sent. */
static int tally_judge(const char *what, struct gdrcap_session *session,
		       const struct image_tally *device, uint64_t images)
{
	struct gdrcap_image_counts counts;
	struct image_tally tally;
	bool good;

	CUDA(cudaMemcpy(&tally, device, sizeof(tally), cudaMemcpyDeviceToHost));
	gdrcap_get_image_counts(session, 0, &counts, sizeof(counts));
	good = tally.wrong == 0 && tally.images == counts.complete + counts.incomplete &&
	       tally.complete == counts.complete && counts.begun == images && counts.complete &&
	       counts.frames == images * PIECES && counts.misfit == 0;
	printf("%s: %llu images seen by kernels, %llu complete, %llu wrong bytes; %llu begun, %llu "
	       "complete, %llu incomplete, %llu dropped, %llu skipped: %s\n",
	       what, tally.images, tally.complete, tally.wrong, (unsigned long long)counts.begun,
	       (unsigned long long)counts.complete, (unsigned long long)counts.incomplete,
	       (unsigned long long)counts.dropped, (unsigned long long)counts.skipped,
	       good ? "passed" : "FAILED");
	fflush(stdout);
	return good ? 0 : 1;
}

/* Our kernel runs before the first frame is sent, and ends by the run's end, before the stop. */
static int test_running(const char *engine, const char *memory, enum own own, uint64_t images)
{
	struct gdrcap_config *config = images_config("gpu", engine, memory, images, RING);
	void *const mine = own_take(config, own);
	struct image_tally *tally = tally_new();
	struct gdrcap_gpu_images gpu_images;
	struct gdrcap_session *session;
	struct gdrcap_error error;
	cudaStream_t stream;
	char what[96];
	int failed;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	api_check(gdrcap_create(config, &session, &error), &error, "create");
	gdrcap_config_free(config);
	api_check(gdrcap_get_gpu_images(gdrcap_get_images(session, 0), &gpu_images,
					sizeof(gpu_images)),
		  NULL, "gdrcap_get_gpu_images");
	running_kernel<<<BLOCKS, THREADS, 0, stream>>>(gpu_images, tally);
	CUDA(cudaGetLastError());
	api_check(gdrcap_start(session, &error), &error, "start");
	CUDA(cudaStreamSynchronize(stream));
	while (!gdrcap_wait_end(session, 1000))
		;
	api_check(gdrcap_stop(session, &error), &error, "stop");
	snprintf(what, sizeof(what), "running kernel, %s, %s memory%s", engine, memory,
		 own_names[own]);
	failed = tally_judge(what, session, tally, images);
	gdrcap_destroy(session);
	own_give_back(mine, own);
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(tally));
	return failed;
}

/* Each image is read by a kernel on our stream, and comes back when the stream is through. */
static int test_thread(const char *engine, const char *memory, enum own own, uint64_t images)
{
	struct gdrcap_config *config = images_config("host", engine, memory, images, RING);
	void *const mine = own_take(config, own);
	uint8_t *const from = (uint8_t *)mine;
	struct image_tally *tally = tally_new();
	const struct gdrcap_image *image[8];
	struct gdrcap_images *of;
	struct gdrcap_session *session;
	struct gdrcap_error error;
	cudaStream_t stream;
	char what[96];
	int failed, n;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	/* Loaded before anything runs for long: lazy loading would wait for the whole device. */
	CUDA(cudaFuncSetAttribute(image_kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 0));
	api_check(gdrcap_create(config, &session, &error), &error, "create");
	gdrcap_config_free(config);
	of = gdrcap_get_images(session, 0);
	api_check(gdrcap_start(session, &error), &error, "start");
	while ((n = gdrcap_image_wait(of, image, 8, -1)) >= 0) {
		for (int i = 0; i < n; i++) {
			if (mine &&
			    (image[i]->data < from || image[i]->data >= from + RING * STRIDE)) {
				printf("FAIL: an image is not in our memory\n");
				return 1;
			}
			image_kernel<<<1, THREADS, 0, stream>>>(*image[i], tally);
			CUDA(cudaGetLastError());
		}
		if (gdrcap_image_release_after(of, image, (unsigned int)n, stream) != n) {
			printf("FAIL: release_after\n");
			return 1;
		}
	}
	CUDA(cudaStreamSynchronize(stream));
	api_check(gdrcap_stop(session, &error), &error, "stop");
	snprintf(what, sizeof(what), "thread, %s, %s memory%s", engine, memory, own_names[own]);
	failed = tally_judge(what, session, tally, images);
	gdrcap_destroy(session);
	own_give_back(mine, own);
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(tally));
	return failed;
}

int main(int argc, char **argv)
{
	const uint64_t images = argc > 1 ? strtoull(argv[1], NULL, 0) : 5000;
	int devices = 0, failed = 0;

	if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
		printf("no CUDA device here\n");
		return 77;
	}
	CUDA(cudaFuncSetAttribute(running_kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
				  0));
	failed |= test_running("auto", "device", OWN_NONE, images);
	failed |= test_running("resident", "pinned", OWN_DEVICE, images);
	failed |= test_running("launched", "device", OWN_PINNED, images);
	failed |= test_thread("auto", "device", OWN_NONE, images);
	failed |= test_thread("resident", "device", OWN_PINNED, images);
	failed |= test_thread("launched", "pinned", OWN_DEVICE, images);
	failed |= test_refused();
	printf("%s\n", failed ? "FAIL" : "PASS");
	return failed;
}
