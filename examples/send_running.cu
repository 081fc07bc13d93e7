/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel that is already running makes frames and sends them, until it has sent enough or the run is over:
 * send_running CONFIG.yaml FRAMES (sender: gpu, and a tx_port). */
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#include <gdrcap_device.cuh>

#define THREADS 256
#define AT_ONCE 64 /* frames that it writes before it submits them */

/* To all stations, EtherType 0x88b5, the frame's number, and its low byte in the rest. */
__device__ static uint8_t byte_of(uint64_t number, uint32_t i)
{
	if (i < 6)
		return 0xff;
	if (i < 12)
		return i == 6 ? 0x02 : 0x00;
	if (i < 14)
		return i == 12 ? 0x88 : 0xb5;
	return i < 22 ? (uint8_t)(number >> 8 * (21 - i)) : (uint8_t)number;
}

/* One block a queue. */
__global__ static void send(struct gdrcap_gpu_tx tx, unsigned long long frames)
{
	uint64_t seq = gdrcap_gpu_tx_first(tx);

	while (seq < frames) {
		const int most = frames - seq < AT_ONCE ? (int)(frames - seq) : AT_ONCE;
		int n;

		/* 0: all slots wait for the port, or are on their way */
		while ((n = gdrcap_gpu_tx_reserve(tx, seq, most)) == 0)
			__nanosleep(200);
		if (n < 0) /* the run is over */
			return;
		/* A warp a frame. */
		for (int i = (int)threadIdx.x / 32; i < n; i += THREADS / 32) {
			uint8_t *data = gdrcap_gpu_tx_data(tx, seq + i);

			for (uint32_t k = threadIdx.x % 32; k < tx.bytes_max; k += 32)
				data[k] = byte_of(seq + i, k);
			if (threadIdx.x % 32 == 0)
				gdrcap_gpu_tx_set_bytes(tx, seq + i, tx.bytes_max);
		}
		seq = gdrcap_gpu_tx_submit(tx, seq, n);
	}
}

int main(int argc, char **argv)
{
	const unsigned long long frames = argc == 3 ? strtoull(argv[2], nullptr, 0) : 0;
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_session *session = nullptr;
	struct gdrcap_tx_counts counts = {};
	struct gdrcap_error error = {};
	struct gdrcap_gpu_tx tx;
	cudaStream_t stream;

	if (!frames || gdrcap_config_load(config, argv[1], &error) ||
	    gdrcap_create(config, &session, &error) ||
	    gdrcap_get_gpu_tx(gdrcap_get_tx(session, 0), &tx, sizeof(tx))) {
		fprintf(stderr, "send_running: %s\n",
			!frames		? "give a file and how many frames"
			: error.text[0] ? error.text
					: "set sender: gpu and tx_port");
		gdrcap_destroy(session);
		gdrcap_config_free(config);
		return 1;
	}
	gdrcap_config_free(config);
	if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) {
		fprintf(stderr, "send_running: %s\n", cudaGetErrorString(cudaGetLastError()));
		gdrcap_destroy(session);
		return 1;
	}
	send<<<1, THREADS, 0, stream>>>(tx, frames);
	if (cudaGetLastError() || gdrcap_start(session, &error))
		fprintf(stderr, "send_running: it does not start: %s\n", error.text);
	else
		while (!gdrcap_wait_end(session, 10) && counts.sent + counts.refused < frames)
			gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts));
	/* The stop tells the kernel to leave; gdrcap_destroy() takes its words away. */
	const int ret = gdrcap_stop(session, &error);

	if (ret)
		fprintf(stderr, "send_running: %s\n", error.text);
	if (cudaStreamSynchronize(stream))
		fprintf(stderr, "send_running: %s\n", cudaGetErrorString(cudaGetLastError()));
	gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts));
	printf("%llu frames sent, %llu not\n", (unsigned long long)counts.sent,
	       (unsigned long long)(counts.unsent + counts.refused));
	gdrcap_destroy(session);
	return ret != 0;
}
