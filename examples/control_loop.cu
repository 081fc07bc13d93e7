/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A camera control loop: each picture is answered with a command that says where its centroid is, made in GPU
 * memory: a kernel reads the picture where gdrcap placed it and writes the command, headers, checksum
 * and all, into the slot that it is sent from. Without a GPU (gpu: host) the CPU does both. Pictures have a byte a
 * pixel, and say how wide and high they are (`fields`, as of the preset gvsp).
 *
 *     control_loop CONFIG.yaml [PICTURES] [KEY=VALUE]...
 *
 * With PICTURES it plays the camera, too, on a ring (control_loop.yaml, control_camera.cuh), checks each command, and
 * ends. It tells how long it took from a picture's last packet to the command at the port.
 */
#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <thread>
#include <vector>

#include <sched.h>

#include <cuda_runtime.h>

#include "control_camera.cuh"
#include "control_command.cuh"

#define BLOCKS 32
#define THREADS 256
#define PIXELS_MAX (1u << 31) /* and a step more are a number of 32 bits */
#define TIMES_MAX 1000000u

struct work { /* in GPU memory; 0 between two pictures */
	struct moments all;
	unsigned int blocks; /* that are through */
};

struct loop {
	struct gdrcap_session *session;
	struct gdrcap_images *pictures;
	struct gdrcap_tx *tx;
	uint32_t tx_index;
	cudaStream_t stream; /* NULL: the CPU computes */
	struct work *work;
	bool plays; /* its own camera, which waits for each command */
	uint64_t answered, held_up, unusable;
	std::vector<uint64_t> came, taken; /* ns to the command at the port: since the last packet
					    * came, and since the picture was taken */
};

/* ---- the computation ---- */

__host__ __device__ static void moments_add(struct moments *all, const uint8_t *data,
					    uint32_t pixels, uint32_t width, uint32_t first,
					    uint32_t step)
{
	for (uint32_t i = first; i < pixels; i += step) {
		all->sum += data[i];
		all->x += (unsigned long long)data[i] * (i % width);
		all->y += (unsigned long long)data[i] * (i / width);
	}
}

__device__ static unsigned long long warp_sum(unsigned long long value)
{
	for (int other = 16; other; other /= 2)
		value += __shfl_xor_sync(0xffffffffu, value, other);
	return value;
}

/* The block that is through last sees all sums, and writes the command. */
__global__ static void answer_kernel(const uint8_t *data, uint32_t pixels, uint32_t width,
				     uint64_t number, struct frame_head head, uint8_t *to,
				     struct work *work)
{
	__shared__ bool last;
	struct moments mine = {};

	moments_add(&mine, data, pixels, width, blockIdx.x * THREADS + threadIdx.x,
		    gridDim.x * THREADS);
	mine.sum = warp_sum(mine.sum);
	mine.x = warp_sum(mine.x);
	mine.y = warp_sum(mine.y);
	if (threadIdx.x % 32 == 0) {
		atomicAdd(&work->all.sum, mine.sum);
		atomicAdd(&work->all.x, mine.x);
		atomicAdd(&work->all.y, mine.y);
		__threadfence(); /* before this block is counted */
	}
	__syncthreads();
	if (threadIdx.x == 0)
		last = atomicAdd(&work->blocks, 1) == gridDim.x - 1;
	__syncthreads();
	if (!last || threadIdx.x >= 32)
		return;
	__threadfence(); /* what the others added */
	for (uint32_t i = threadIdx.x; i < head.bytes; i += 32)
		to[i] = head.at[i];
	if (threadIdx.x == 0) {
		const volatile struct work *of = work;
		const struct moments all = { of->all.sum, of->all.x, of->all.y };

		command_write(to + head.bytes, number, all);
		*work = {};
	}
	gdrcap_udp_checksum(to, head.bytes + COMMAND_BYTES);
}

/* ---- the loop ---- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Fills the frame, or has a kernel do so. */
static int command_make(struct loop *loop, const struct gdrcap_image *picture,
			const struct gdrcap_tx_frame *frame, struct gdrcap_error *error)
{
	static const struct frame_head head = frame_head_make(4001, COMMAND_BYTES);
	const uint32_t width = (uint32_t)picture->fields[0];
	const uint32_t pixels = (uint32_t)(picture->fields[0] * picture->fields[1]);
	struct moments all = {};

	if (loop->stream) {
		answer_kernel<<<BLOCKS, THREADS, 0, loop->stream>>>(picture->data, pixels, width,
								    picture->number, head,
								    frame->data, loop->work);
		if (cudaGetLastError() == cudaSuccess)
			return 0;
		snprintf(error->text, sizeof(error->text), "the kernel was not launched");
		return -EIO;
	}
	moments_add(&all, picture->data, pixels, width, 0, 1);
	memcpy(frame->data, head.at, head.bytes);
	command_write(frame->data + head.bytes, picture->number, all);
	return gdrcap_tx_checksum_after(loop->tx, frame, 1, nullptr, error);
}

/* Until the port has it: this queue is the loop's alone. */
static void wait_sent(const struct loop *loop)
{
	struct gdrcap_tx_counts counts;

	while (!gdrcap_get_tx_counts(loop->session, loop->tx_index, &counts, sizeof(counts)) &&
	       counts.sent + counts.unsent < loop->answered && !counts.unsent)
		sched_yield();
}

static void times_keep(struct loop *loop, const struct gdrcap_image *picture, uint64_t taken)
{
	const uint64_t now = now_ns();

	if (loop->came.size() == TIMES_MAX)
		return;
	loop->came.push_back(now > picture->last_time ? now - picture->last_time : 0);
	loop->taken.push_back(now > taken ? now - taken : 0);
}

/* Its sender says how large it is, and is held to it. */
static bool picture_is_usable(const struct gdrcap_image *picture)
{
	const uint64_t width = picture->fields[0], height = picture->fields[1];
	const uint64_t most = picture->bytes < PIXELS_MAX ? picture->bytes : PIXELS_MAX;

	return picture->end == GDRCAP_IMAGE_COMPLETE && width && width <= most &&
	       height <= most / width;
}

static int answer(struct loop *loop, const struct gdrcap_image *picture, struct gdrcap_error *error)
{
	const uint64_t taken = now_ns();
	struct gdrcap_tx_frame frame;
	int ret;

	if (!picture_is_usable(picture)) {
		loop->unusable++;
		return 0;
	}
	ret = gdrcap_tx_reserve(loop->tx, &frame, 1);
	/* The port does not keep up: the next picture is newer. */
	if (ret <= 0) {
		loop->held_up += ret == 0;
		return ret;
	}
	frame.bytes = COMMAND_FRAME;
	ret = command_make(loop, picture, &frame, error);
	if (ret == 0)
		ret = gdrcap_tx_submit_after(loop->tx, &frame, 1, loop->stream, error);
	if (ret < 0) {
		gdrcap_tx_cancel(loop->tx, &frame, 1);
		return ret;
	}
	loop->answered++;
	wait_sent(loop);
	times_keep(loop, picture, taken);
	return 0;
}

/* It polls: who sleeps is woken up some 50 us late. */
static int loop_run(struct loop *loop, const std::atomic<bool> *over, struct gdrcap_error *error)
{
	const struct gdrcap_image *picture;
	int n, ret = 0;

	while (!*over && ret == 0 && (n = gdrcap_image_poll(loop->pictures, &picture, 1)) >= 0) {
		if (n == 0) {
			sched_yield();
			continue;
		}
		ret = answer(loop, picture, error);
		if (ret == 0 && loop->plays && loop->held_up + loop->unusable) {
			snprintf(error->text, sizeof(error->text),
				 "a picture that was played is not whole, or found no slot");
			ret = -EIO;
		}
		/* Once the kernel has read it, should the command not be gone by then. */
		if (gdrcap_image_release_after(loop->pictures, &picture, 1, loop->stream) != 1)
			ret = -EIO;
	}
	return ret == -ESHUTDOWN ? 0 : ret;
}

/* ---- around it ---- */

static void times_print(const char *what, std::vector<uint64_t> *ns)
{
	if (ns->empty())
		return;
	std::sort(ns->begin(), ns->end());
	printf("%s: p50 %.1f us, p99 %.1f us, max %.1f us\n", what,
	       (double)(*ns)[ns->size() / 2] / 1e3, (double)(*ns)[ns->size() * 99 / 100] / 1e3,
	       (double)ns->back() / 1e3);
}

/* Where the session's memory is the GPU's, a stream for each of the two; all that waits for the
 * device, and the loading of kernels, come before the start. */
static int gpu_set_up(struct loop *loop, struct camera *camera)
{
	struct cudaPointerAttributes where;
	struct gdrcap_summary summary;
	struct cudaFuncAttributes code;
	struct gdrcap_tx_frame frame;

	if (gdrcap_get_summary(loop->session, &summary, sizeof(summary)))
		return -EIO;
	printf("GPU: %s\n", summary.gpu);
	if (strcmp(summary.driver, "gpu_cuda") != 0)
		return 0;
	if (gdrcap_tx_reserve(loop->tx, &frame, 1) != 1 || gdrcap_tx_cancel(loop->tx, &frame, 1) ||
	    cudaPointerGetAttributes(&where, frame.data) || cudaSetDevice(where.device) ||
	    cudaFuncGetAttributes(&code, answer_kernel) ||
	    cudaFuncGetAttributes(&code, packet_kernel) ||
	    cudaMalloc(&loop->work, sizeof(*loop->work)) ||
	    cudaMemset(loop->work, 0, sizeof(*loop->work)) || cudaDeviceSynchronize() ||
	    cudaStreamCreateWithFlags(&loop->stream, cudaStreamNonBlocking) ||
	    cudaStreamCreateWithFlags(&camera->stream, cudaStreamNonBlocking)) {
		fprintf(stderr, "control_loop: %s\n", cudaGetErrorString(cudaGetLastError()));
		return -EIO;
	}
	return where.device;
}

static int run(struct loop *loop, struct camera *camera)
{
	std::atomic<bool> over(false);
	struct gdrcap_error error = {};
	const int device = gpu_set_up(loop, camera);
	std::thread thread;
	int ret, stopped;

	if (device < 0)
		return device;
	camera->over = &over;
	ret = gdrcap_start(loop->session, &error);
	if (ret == 0 && camera->pictures)
		thread = std::thread([camera, device] {
			if (camera->stream)
				cudaSetDevice(device);
			camera_run(camera);
		});
	if (ret == 0)
		ret = loop_run(loop, &over, &error);
	over = true;
	if (thread.joinable())
		thread.join();
	if (ret)
		fprintf(stderr, "control_loop: %s\n", error.text);
	stopped = gdrcap_stop(loop->session, &error);
	if (stopped)
		fprintf(stderr, "control_loop: %s\n", error.text);
	/* Before the session goes. */
	if (loop->stream &&
	    (cudaStreamSynchronize(loop->stream) || cudaStreamSynchronize(camera->stream)))
		ret = -EIO;
	return ret ? ret : stopped;
}

static int session_make(int argc, char **argv, struct gdrcap_session **session, uint32_t *pictures,
			struct gdrcap_error *error)
{
	struct gdrcap_config *config = gdrcap_config_new();
	int ret = -EINVAL, n = 0;

	snprintf(error->text, sizeof(error->text), "give a configuration's file");
	if (argc > 1 && config)
		ret = gdrcap_config_load(config, argv[1], error);
	for (int i = 2; i < argc && ret == 0; i++) {
		char *value = strchr(argv[i], '=');

		if (value) {
			*value = '\0';
			ret = gdrcap_config_set(config, argv[i], value + 1, error);
		} else if (sscanf(argv[i], "%" SCNu32 "%n", pictures, &n) != 1 || argv[i][n]) {
			snprintf(error->text, sizeof(error->text),
				 "%.99s: give a number of pictures, or KEY=VALUE", argv[i]);
			ret = -EINVAL;
		}
	}
	if (ret == 0)
		ret = gdrcap_create(config, session, error);
	gdrcap_config_free(config);
	return ret;
}

int main(int argc, char **argv)
{
	struct camera camera = {};
	struct gdrcap_error error = {};
	struct loop loop = {};
	int ret = session_make(argc, argv, &loop.session, &camera.pictures, &error);

	if (ret) {
		fprintf(stderr, "control_loop: %s\n", error.text);
		return 1;
	}
	loop.pictures = gdrcap_get_images(loop.session, 0);
	camera.commands = gdrcap_get_images(loop.session, 1);
	camera.tx = gdrcap_get_tx(loop.session, 0);
	/* Commands have the last queue to themselves: nothing that is sent can hold them up. */
	while (gdrcap_get_tx(loop.session, loop.tx_index + 1))
		loop.tx_index++;
	loop.tx = gdrcap_get_tx(loop.session, loop.tx_index);
	if (!loop.pictures || !loop.tx ||
	    (camera.pictures && (!camera.commands || camera.tx == loop.tx))) {
		fprintf(stderr,
			"control_loop: it takes image, consumer: host and sender: host; to play "
			"the camera a second image and queues: 2\n");
		gdrcap_destroy(loop.session);
		return 1;
	}
	loop.plays = camera.pictures != 0;
	loop.came.reserve(TIMES_MAX);
	loop.taken.reserve(TIMES_MAX);
	ret = run(&loop, &camera);
	printf("%" PRIu64 " answered, %" PRIu64 " held up, %" PRIu64 " unusable\n", loop.answered,
	       loop.held_up, loop.unusable);
	times_print("last packet to command at the port", &loop.came);
	times_print("picture taken to command at the port", &loop.taken);
	if (camera.pictures)
		printf("%" PRIu32 " commands of %" PRIu32 " checked, %" PRIu32 " wrong\n",
		       camera.checked, camera.pictures, camera.wrong);
	gdrcap_destroy(loop.session);
	return ret != 0 || camera.wrong || camera.checked != camera.pictures;
}
