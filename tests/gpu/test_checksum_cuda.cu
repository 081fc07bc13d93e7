/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UDP checksums on a real GPU. The back end's kernel and a caller's own (gdrcap_udp_checksum()) against the CPU
 * backend, byte for byte, of random frames in one and two pieces at any address of GPU memory. Then
 * sent: frames that a kernel writes into slots in GPU memory over a ring, and from registered pinned
 * memory over memif; each comes back byte for byte.
 *
 * Usage: test_checksum_cuda [ROUNDS]. 77 without a GPU.
 */
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <unistd.h>

#include <cuda_runtime.h>

#include "../unit/udp_frames.h"
#include "gdrcap_device.cuh"
#include "kernels/kernels.h"

#define MOST 500u  /* frames of one call */
#define ROOM 9472u /* of each, more than UDP_FRAME_MOST and any address in 128 bytes */
#define BYTES ((size_t)MOST * ROOM) /* of first pieces, and of second ones */
#define SIZE 1518u
#define SENT 4096u
#define BURST 64u

static void cuda_check(cudaError_t result, const char *what)
{
	if (result == cudaSuccess)
		return;
	printf("FAIL: %s: %s\n", what, cudaGetErrorString(result));
	exit(1);
}
#define CUDA(call) cuda_check(call, #call)

static void check(int result, const char *text, const char *what)
{
	if (result >= 0)
		return;
	printf("FAIL: %s: %d %s\n", what, result, text);
	exit(1);
}

static struct udp_frame scene;

/* ---- kernels against the CPU ---- */

/* A warp a frame, in blocks of a shape of the caller's. */
__global__ static void own_kernel(const struct kernel_sum *sums, uint32_t count)
{
	const uint32_t thread = threadIdx.y * blockDim.x + threadIdx.x;
	const uint32_t i = blockIdx.x * (blockDim.x * blockDim.y / 32) + thread / 32;

	if (i < count)
		gdrcap_udp_checksum(sums[i].frame, sums[i].bytes, sums[i].payload,
				    sums[i].payload_bytes);
}

/* The same frames in `memory` of either side: first pieces, then second ones. */
static void sums_make(struct kernel_sum *sums, uint32_t count, uint64_t seed, uint8_t *memory,
		      uint8_t *written)
{
	uint64_t random = seed;

	for (uint32_t i = 0; i < count; i++) {
		const uint32_t head_at = udp_below(&random, 128), rest_at = udp_below(&random, 128);
		const size_t head = (size_t)i * ROOM + head_at;
		const size_t rest = BYTES + (size_t)i * ROOM + rest_at;

		udp_make(&scene, &random);
		if (i % 3 == 0)
			udp_spoil(&scene, &random);
		memcpy(written + head, scene.bytes, scene.head);
		memcpy(written + rest, scene.bytes + scene.head, scene.all - scene.head);
		sums[i] =
			kernel_sum{ memory + head, scene.all > scene.head ? memory + rest : nullptr,
				    scene.head, scene.all - scene.head };
	}
}

struct sides {
	uint8_t *cpu, *gpu, *back;
	struct kernel_sum *gpu_sums; /* managed by nobody: a copy for own_kernel */
	struct kernel_device *device;
	cudaStream_t stream;
};

static bool round_play(const struct sides *sides, uint32_t count, uint64_t seed, bool own)
{
	static struct kernel_sum cpu_sums[MOST], gpu_sums[MOST];

	memset(sides->cpu, 0x5a, 2 * BYTES);
	sums_make(cpu_sums, count, seed, sides->cpu, sides->cpu);
	sums_make(gpu_sums, count, seed, sides->gpu, sides->cpu);
	CUDA(cudaMemcpyAsync(sides->gpu, sides->cpu, 2 * BYTES, cudaMemcpyHostToDevice,
			     sides->stream));
	if (own) {
		CUDA(cudaMemcpyAsync(sides->gpu_sums, gpu_sums, count * sizeof(*gpu_sums),
				     cudaMemcpyHostToDevice, sides->stream));
		own_kernel<<<(count + 5) / 6, dim3(16, 12), 0, sides->stream>>>(sides->gpu_sums,
										count);
		CUDA(cudaGetLastError());
	} else {
		check(kernel_cuda_ops.sum(sides->device, sides->stream, gpu_sums, count),
		      kernel_error(), "sum");
		/* Nothing of it is kept. */
		memset(gpu_sums, 0xff, sizeof(gpu_sums));
	}
	CUDA(cudaMemcpyAsync(sides->back, sides->gpu, 2 * BYTES, cudaMemcpyDeviceToHost,
			     sides->stream));
	CUDA(cudaStreamSynchronize(sides->stream));
	check(kernel_host_ops.sum(nullptr, nullptr, cpu_sums, count), kernel_error(), "host sum");
	if (memcmp(sides->cpu, sides->back, 2 * BYTES) == 0)
		return true;
	for (size_t at = 0; at < 2 * BYTES; at++)
		if (sides->cpu[at] != sides->back[at]) {
			printf("%u frames, seed %llu%s: byte %zu of frame %zu is %02x, on the CPU "
			       "%02x\n",
			       count, (unsigned long long)seed, own ? ", own kernel" : "",
			       at % ROOM, at % BYTES / ROOM, sides->back[at], sides->cpu[at]);
			break;
		}
	return false;
}

/* Figures to read, not to pass or fail: from the call to the end of the kernel, the stream being idle. */
static void times_print(const struct sides *sides, uint32_t count, uint32_t data)
{
	static struct kernel_sum sums[MOST];
	const uint32_t calls = 2000;
	struct timespec from, to;

	memset(scene.bytes, 0, sizeof(scene.bytes));
	udp_set(scene.bytes + 12, 0x0800);
	scene.bytes[14] = 0x45;
	udp_set(scene.bytes + 16, 28 + data);
	scene.bytes[23] = 17;
	udp_set(scene.bytes + 38, 8 + data);
	for (uint32_t i = 0; i < count; i++) {
		sums[i] = kernel_sum{ sides->gpu + (size_t)i * ROOM, nullptr, 42 + data, 0 };
		CUDA(cudaMemcpyAsync(sums[i].frame, scene.bytes, 42 + data, cudaMemcpyHostToDevice,
				     sides->stream));
	}
	for (uint32_t i = 0; i < calls; i++) {
		if (i == calls / 2)
			clock_gettime(CLOCK_MONOTONIC, &from);
		check(kernel_cuda_ops.sum(sides->device, sides->stream, sums, count),
		      kernel_error(), "sum");
		CUDA(cudaStreamSynchronize(sides->stream));
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("%u frames of %u bytes of data: %.2f us a call\n", count, data,
	       ((double)(to.tv_sec - from.tv_sec) * 1e6 +
		(double)(to.tv_nsec - from.tv_nsec) / 1e3) /
		       (calls / 2));
}

static int test_kernels(uint32_t rounds)
{
	static const uint32_t counts[] = { 1, 3, 4, 5, 127, 128, 129, MOST };
	struct sides sides = {};
	bool good = true;
	uint64_t seed = 1;

	check(kernel_cuda_ops.open(0, &sides.device), kernel_error(), "open");
	CUDA(cudaStreamCreateWithFlags(&sides.stream, cudaStreamNonBlocking));
	CUDA(cudaMallocHost(&sides.cpu, 2 * BYTES));
	CUDA(cudaMallocHost(&sides.back, 2 * BYTES));
	CUDA(cudaMalloc(&sides.gpu, 2 * BYTES));
	CUDA(cudaMalloc(&sides.gpu_sums, MOST * sizeof(*sides.gpu_sums)));
	for (uint32_t r = 0; r < rounds && good; r++)
		for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]) && good; c++) {
			good = round_play(&sides, counts[c], seed, false) &&
			       round_play(&sides, counts[c], seed, true);
			seed++;
		}
	printf("kernels and the CPU, %u rounds: %s\n", rounds, good ? "passed" : "FAILED");
	times_print(&sides, 1, 24);
	times_print(&sides, 1, 1472);
	times_print(&sides, 64, 1472);
	times_print(&sides, 64, 8972);
	CUDA(cudaFree(sides.gpu));
	CUDA(cudaFree(sides.gpu_sums));
	CUDA(cudaFreeHost(sides.cpu));
	CUDA(cudaFreeHost(sides.back));
	CUDA(cudaStreamDestroy(sides.stream));
	kernel_cuda_ops.close(sides.device);
	return good ? 0 : 1;
}

/* ---- sent and received ---- */

struct loop {
	struct gdrcap_session *session;
	struct gdrcap_queue *queue;
	struct gdrcap_tx *tx;
	cudaStream_t stream;
	uint8_t *host, *device; /* a burst's frames, pinned, and on the GPU */
	uint8_t *payload;	/* registered, pinned; NULL: frames are in one piece */
	uint64_t received, wrong;
};

struct copies {
	struct copy {
		const uint8_t *from;
		uint8_t *to;
		uint32_t bytes;
	} copy[BURST];
};

/* A block a frame: what a caller's kernel writes. */
__global__ static void write_kernel(struct copies copies)
{
	const struct copies::copy copy = copies.copy[blockIdx.x];

	for (uint32_t i = threadIdx.x; i < copy.bytes; i += blockDim.x)
		copy.to[i] = copy.from[i];
}

static void frame_make(uint64_t number, bool whole)
{
	uint64_t random = number * 1000;

	do {
		udp_make(&scene, &random);
		if (number % 3 == 0)
			udp_spoil(&scene, &random);
		if (whole)
			scene.head = scene.all;
	} while (scene.all < 60 || scene.all > SIZE - 4 || scene.head < 18);
}

static void loop_receive(struct loop *loop)
{
	static uint8_t came[SIZE];
	const struct gdrcap_batch *batch[8];
	const int n = gdrcap_wait(loop->queue, batch, 8, -1);

	check(n, "", "gdrcap_wait");
	for (int b = 0; b < n; b++)
		for (uint32_t i = 0; i < batch[b]->count; i++, loop->received++) {
			uint32_t is = 0, at;

			frame_make(loop->received, !loop->payload);
			at = udp_reference(&scene, &is);
			if (at)
				udp_set(scene.bytes + at, is);
			CUDA(cudaMemcpyAsync(came, gdrcap_frame(batch[b], i), scene.all,
					     cudaMemcpyDefault, loop->stream));
			CUDA(cudaStreamSynchronize(loop->stream));
			loop->wrong += gdrcap_frame_bytes(batch[b], i) != scene.all ||
				       memcmp(came, scene.bytes, scene.all) != 0;
		}
	gdrcap_release(loop->queue, batch, (unsigned int)n);
}

/* Where frame `i` of a burst is staged, and its payload. */
static void frame_stage(struct loop *loop, struct gdrcap_tx_frame *frame, uint32_t i,
			uint64_t number, struct copies::copy *copy)
{
	const size_t at = (size_t)i * ROOM;

	frame_make(number, !loop->payload);
	memcpy(loop->host + at, scene.bytes, scene.all);
	*copy = { loop->device + at, frame->data, scene.head };
	frame->bytes = scene.head;
	if (scene.all > scene.head) {
		frame->payload = loop->payload + at + number % 67;
		frame->payload_bytes = scene.all - scene.head;
		memcpy(loop->payload + at + number % 67, scene.bytes + scene.head,
		       frame->payload_bytes);
	}
}

static int loop_send(struct loop *loop)
{
	struct gdrcap_tx_frame frames[BURST];
	struct gdrcap_error error = {};

	for (uint64_t number = 0; number < SENT;) {
		const int n = gdrcap_tx_reserve(loop->tx, frames, BURST);
		struct copies copies;

		check(n, "", "reserve");
		for (int i = 0; i < n; i++)
			frame_stage(loop, &frames[i], (uint32_t)i, number++, &copies.copy[i]);
		if (n) {
			CUDA(cudaMemcpyAsync(loop->device, loop->host, (size_t)n * ROOM,
					     cudaMemcpyHostToDevice, loop->stream));
			write_kernel<<<n, 128, 0, loop->stream>>>(copies);
			CUDA(cudaGetLastError());
		}
		check(gdrcap_tx_checksum_after(loop->tx, frames, (unsigned int)n, loop->stream,
					       &error),
		      error.text, "checksum_after");
		check(gdrcap_tx_submit_after(loop->tx, frames, (unsigned int)n, loop->stream,
					     &error),
		      error.text, "submit_after");
		/* Their memory is staged anew then. */
		while (loop->received < number)
			loop_receive(loop);
	}
	return loop->wrong != 0;
}

static void option_set(struct gdrcap_config *config, const char *key, const char *value)
{
	struct gdrcap_error error;

	check(gdrcap_config_set(config, key, value, &error), error.text, key);
}

static struct gdrcap_session *session_open(const char *port, const char *tx_port,
					   const char *memory, const char *sender_memory = nullptr)
{
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_session *session;
	struct gdrcap_error error;
	char size[16];

	snprintf(size, sizeof(size), "%u", SIZE);
	option_set(config, "port", port);
	option_set(config, "tx_port", tx_port);
	option_set(config, "memory", memory);
	option_set(config, "gpu", "0");
	option_set(config, "frame.size", size);
	option_set(config, "consumer", "host");
	option_set(config, "sender", "host");
	option_set(config, "sender.memory", sender_memory);
	check(gdrcap_create(config, &session, &error), error.text, "create");
	gdrcap_config_free(config);
	return session;
}

/* `payload`: frames are in two pieces. */
static int loop_play(const char *what, struct gdrcap_session *session, bool payload)
{
	struct gdrcap_error error = {};
	struct loop loop = {};
	int failed;

	loop.session = session;
	loop.queue = gdrcap_get_queue(session, 0);
	loop.tx = gdrcap_get_tx(session, 0);
	CUDA(cudaStreamCreateWithFlags(&loop.stream, cudaStreamNonBlocking));
	CUDA(cudaMallocHost(&loop.host, BURST * ROOM));
	CUDA(cudaMalloc(&loop.device, BURST * ROOM));
	if (payload) {
		const size_t bytes = (BURST * ROOM + 65535) / 65536 * 65536;

		loop.payload = (uint8_t *)aligned_alloc(65536, bytes);
		/* Registered with the GPU by this, too. */
		check(gdrcap_tx_register(session, loop.payload, bytes, GDRCAP_MEMORY_PINNED,
					 &error),
		      error.text, "register");
	}
	check(gdrcap_start(session, &error), error.text, "start");
	failed = loop_send(&loop);
	CUDA(cudaStreamSynchronize(loop.stream));
	check(gdrcap_stop(session, &error), error.text, "stop");
	printf("%s: %llu frames came, %llu wrong: %s\n", what, (unsigned long long)loop.received,
	       (unsigned long long)loop.wrong, failed ? "FAILED" : "passed");
	gdrcap_destroy(session);
	CUDA(cudaStreamDestroy(loop.stream));
	CUDA(cudaFreeHost(loop.host));
	CUDA(cudaFree(loop.device));
	free(loop.payload);
	return failed;
}

/* Memory that a kernel cannot read is refused, and not left to fault. */
static int refuse(const char *what, struct gdrcap_session *session, bool payload)
{
	const size_t bytes = 65536;
	uint8_t *memory = (uint8_t *)aligned_alloc(bytes, bytes);
	struct gdrcap_error error = {};
	struct gdrcap_tx_frame frame;
	int ret;

	check(gdrcap_tx_register(session, memory, bytes, GDRCAP_MEMORY_HOST, &error), error.text,
	      "register");
	check(gdrcap_tx_reserve(gdrcap_get_tx(session, 0), &frame, 1) - 1, "", "reserve");
	frame.bytes = 100;
	if (payload) {
		frame.payload = memory;
		frame.payload_bytes = 100;
	}
	ret = gdrcap_tx_checksum_after(gdrcap_get_tx(session, 0), &frame, 1, nullptr, &error);
	printf("%s: %d, %s: %s\n", what, ret, error.text, ret == -ENOTSUP ? "passed" : "FAILED");
	gdrcap_destroy(session);
	free(memory);
	return ret != -ENOTSUP;
}

/* Of a socket of its own: the driver keeps a server's to the process's end. */
static struct gdrcap_session *memif_open(const char *folder, const char *name,
					 const char *sender_memory)
{
	char port[192], tx_port[192];

	snprintf(port, sizeof(port), "net_memif0,role=server,socket-abstract=no,socket=%s/%s",
		 folder, name);
	snprintf(tx_port, sizeof(tx_port), "net_memif1,role=client,socket-abstract=no,socket=%s/%s",
		 folder, name);
	return session_open(port, tx_port, "pinned", sender_memory);
}

static int test_memif(void)
{
	char folder[] = "/tmp/gdrcap-sum-XXXXXX", path[64];
	int failed;

	if (!mkdtemp(folder)) {
		printf("FAIL: no folder in /tmp\n");
		return 1;
	}
	failed = loop_play("memif, payloads in registered pinned memory",
			   memif_open(folder, "a", nullptr), true);
	failed |= refuse("a payload in host memory", memif_open(folder, "b", nullptr), true);
	failed |= refuse("a slot in host memory", memif_open(folder, "c", "host"), false);
	for (char name = 'a'; name <= 'c'; name++) {
		snprintf(path, sizeof(path), "%s/%c", folder, name);
		unlink(path);
	}
	rmdir(folder);
	return failed;
}

int main(int argc, char **argv)
{
	const uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], nullptr, 0) : 20;
	int devices = 0, failed;

	if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
		printf("no CUDA device here\n");
		return 77;
	}
	failed = test_kernels(rounds);
	failed |= loop_play("ring, slots in GPU memory",
			    session_open("ring:test", "ring:test", "device"), false);
	failed |= loop_play("ring, slots in pinned memory",
			    session_open("ring:test", "ring:test", "pinned"), false);
	failed |= test_memif();
	printf("%s\n", failed ? "FAIL" : "PASS");
	return failed;
}
