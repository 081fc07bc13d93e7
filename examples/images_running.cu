/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel that is already running takes images and adds up their bytes, until the run is over:
 * images_running CONFIG.yaml (consumer: gpu, image:). */
#include <cinttypes>
#include <cstdio>

#include <cuda_runtime.h>

#include <gdrcap_device.cuh>

#define BLOCKS 4 /* block k takes images k, k + BLOCKS, ... */
#define THREADS 256

struct sums { /* written by the kernel, read when it has ended */
	unsigned long long images, incomplete, bytes;
};

__global__ static void take(struct gdrcap_gpu_images images, struct sums *sums)
{
	for (uint64_t seq = blockIdx.x;; seq += gridDim.x) {
		struct gdrcap_image image;
		unsigned long long sum = 0;
		int got;

		while ((got = gdrcap_gpu_image_try_next(images, seq, &image)) == 0)
			__nanosleep(200);
		if (got < 0) /* the run is over, and the last image was taken */
			return;
		/* image.data[0 .. image.bytes) is the image; gdrcap_gpu_piece_present(image, i): what came */
		for (uint64_t at = threadIdx.x; at < image.bytes; at += blockDim.x)
			sum += image.data[at];
		atomicAdd(&sums->bytes, sum);
		if (threadIdx.x == 0) {
			atomicAdd(&sums->images, 1ull);
			atomicAdd(&sums->incomplete, image.end != GDRCAP_IMAGE_COMPLETE);
		}
		gdrcap_gpu_image_release(images, seq); /* its buffer is used again */
	}
}

int main(int argc, char **argv)
{
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_session *session = nullptr;
	struct gdrcap_gpu_images images;
	struct gdrcap_error error = {};
	struct sums *device, sums = {};
	cudaStream_t stream;

	if (argc != 2 || gdrcap_config_load(config, argv[1], &error) ||
	    gdrcap_create(config, &session, &error) ||
	    gdrcap_get_gpu_images(gdrcap_get_images(session, 0), &images, sizeof(images))) {
		fprintf(stderr, "images_running: %s\n",
			argc != 2	? "give one file"
			: error.text[0] ? error.text
					: "set consumer: gpu and image");
		gdrcap_destroy(session);
		gdrcap_config_free(config);
		return 1;
	}
	gdrcap_config_free(config);
	/* All that waits for the whole device comes before the kernel runs. */
	if (cudaMalloc(&device, sizeof(*device)) || cudaMemset(device, 0, sizeof(*device)) ||
	    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) {
		fprintf(stderr, "images_running: %s\n", cudaGetErrorString(cudaGetLastError()));
		gdrcap_destroy(session);
		return 1;
	}
	take<<<BLOCKS, THREADS, 0, stream>>>(images, device);
	if (cudaGetLastError() || gdrcap_start(session, &error))
		fprintf(stderr, "images_running: it does not start: %s\n", error.text);
	else
		while (!gdrcap_wait_end(session, 1000))
			;
	/* The stop tells the kernel to leave; gdrcap_destroy() takes its words away. */
	const int ret = gdrcap_stop(session, &error);

	if (ret)
		fprintf(stderr, "images_running: %s\n", error.text);
	if (cudaStreamSynchronize(stream) ||
	    cudaMemcpy(&sums, device, sizeof(sums), cudaMemcpyDeviceToHost))
		fprintf(stderr, "images_running: %s\n", cudaGetErrorString(cudaGetLastError()));
	printf("%llu images, %llu incomplete, their bytes' sum %llu\n", sums.images,
	       sums.incomplete, sums.bytes);
	gdrcap_destroy(session);
	return ret != 0;
}
