/* SPDX-License-Identifier: BSD-3-Clause */
/* UDP checksums of frames that are about to be sent: finite kernels in the caller's stream. */
#include "gdrcap_device.cuh"
#include "kernels/cuda/device.cuh"

#define SUM_THREADS 128u /* a warp a frame */
#define SUM_WARPS (SUM_THREADS / 32)

/* The frames travel as the kernel's argument, of 4 KiB at most: CUDA keeps it until the kernel has run, so
 * no memory of ours is in use meanwhile, and no block asks for it over the bus. Few frames, as a control loop
 * sends, make a small one. */
#define SUM_FEW 8u
#define SUM_MOST 128u

template <uint32_t MOST> struct sum_frames {
	struct kernel_sum frame[MOST];
	uint32_t count;
};

template <uint32_t MOST> __global__ void sum_kernel(const struct sum_frames<MOST> frames)
{
	const uint32_t i = blockIdx.x * SUM_WARPS + threadIdx.x / 32;

	if (i < frames.count)
		gdrcap_udp_checksum(frames.frame[i].frame, frames.frame[i].bytes,
				    frames.frame[i].payload, frames.frame[i].payload_bytes);
}

template <uint32_t MOST>
static cudaError_t sum_launch(cudaStream_t stream, const struct kernel_sum *sums, uint32_t count)
{
	struct sum_frames<MOST> frames;
	void *args[] = { &frames };

	memcpy(frames.frame, sums, count * sizeof(*sums));
	frames.count = count;
	return cudaLaunchKernel((const void *)sum_kernel<MOST>,
				dim3((count + SUM_WARPS - 1) / SUM_WARPS), dim3(SUM_THREADS), args,
				0, stream);
}

int cuda_sum(struct kernel_device *device, void *stream, const struct kernel_sum *sums,
	     uint32_t count)
{
	current_device current(device->ordinal);
	cudaError_t error = current.error;

	for (uint32_t at = 0, n; at < count && !error; at += n) {
		n = count - at < SUM_MOST ? count - at : SUM_MOST;
		error = n <= SUM_FEW ? sum_launch<SUM_FEW>((cudaStream_t)stream, sums + at, n)
				     : sum_launch<SUM_MOST>((cudaStream_t)stream, sums + at, n);
	}
	return error ? cuda_fail(error, "queueing checksums in the stream") : 0;
}

int cuda_sum_load(struct kernel_device *device)
{
	/* No frame is of 0 bytes: they are left alone. */
	const struct kernel_sum none[SUM_FEW + 1] = {};
	const int ret = cuda_sum(device, device->copy_stream, none, 1);

	return ret ? ret : cuda_sum(device, device->copy_stream, none, SUM_FEW + 1);
}
