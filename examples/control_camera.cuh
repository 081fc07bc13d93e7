/* SPDX-License-Identifier: BSD-3-Clause */
/* The camera that control_loop.cu plays where there is none: pictures of one bright spot, each sent when the
 * command that answers the one before has come, and been found right. */
#ifndef CONTROL_CAMERA_CUH
#define CONTROL_CAMERA_CUH

#include <atomic>
#include <cerrno>
#include <cstring>

#include <gdrcap_device.cuh>

#include "control_command.cuh"

#define WIDTH 256u
#define HEIGHT 192u
#define PIECE 1024u
#define PACKET_HEAD 16u
#define PACKETS (WIDTH * HEIGHT / PIECE)
#define BURST 16u

/* The spot's centre moves on with the number; its edges stay in the picture. */
__host__ __device__ static uint32_t spot_x(uint64_t number)
{
	return 8 + (uint32_t)(number * 37 % (WIDTH - 16));
}

__host__ __device__ static uint32_t spot_y(uint64_t number)
{
	return 8 + (uint32_t)(number * 23 % (HEIGHT - 16));
}

/* As bright on either side of its centre, which is the centroid therefore. */
__host__ __device__ static uint8_t pixel(uint64_t number, uint32_t x, uint32_t y)
{
	const int dx = (int)x - (int)spot_x(number), dy = (int)y - (int)spot_y(number);
	const int far = (dx < 0 ? -dx : dx) + (dy < 0 ? -dy : dy);

	return far <= 7 ? (uint8_t)(255 - 30 * far) : 0;
}

/* Packet `index` of picture `number`, by `lanes` threads. */
__host__ __device__ static void packet_write(uint8_t *to, const struct frame_head &head,
					     uint64_t number, uint32_t index, uint32_t lane,
					     uint32_t lanes)
{
	uint8_t *packet = to + head.bytes, *data = packet + PACKET_HEAD;

	for (uint32_t i = lane; i < head.bytes; i += lanes)
		to[i] = head.at[i];
	if (lane == 0) {
		put_be(packet, number, 4);
		put_be(packet + 4, index * PIECE, 4);
		put_be(packet + 8, WIDTH, 2);
		put_be(packet + 10, HEIGHT, 2);
		put_be(packet + 12, 0, 4);
	}
	for (uint32_t i = lane; i < PIECE; i += lanes)
		data[i] = pixel(number, (index * PIECE + i) % WIDTH, (index * PIECE + i) / WIDTH);
}

struct packet_slots {
	uint8_t *at[BURST];
};

/* A block a packet. */
__global__ static void packet_kernel(struct packet_slots slots, struct frame_head head,
				     uint64_t number, uint32_t first)
{
	packet_write(slots.at[blockIdx.x], head, number, first + blockIdx.x, threadIdx.x,
		     blockDim.x);
}

struct camera {
	struct gdrcap_tx *tx;
	struct gdrcap_images *commands;
	cudaStream_t stream; /* NULL: the CPU writes pictures */
	uint32_t pictures;   /* to play */
	std::atomic<bool> *over;
	uint32_t checked, wrong;
};

/* Some packets, from `first` on: how many; 0: no slot is free. */
static int camera_send_some(const struct camera *camera, uint64_t number, uint32_t first)
{
	static const struct frame_head head = frame_head_make(4000, PACKET_HEAD + PIECE);
	struct gdrcap_tx_frame frames[BURST];
	struct packet_slots slots = {};
	const uint32_t most = PACKETS - first < BURST ? PACKETS - first : BURST;
	const int n = gdrcap_tx_reserve(camera->tx, frames, most);

	for (int i = 0; i < n; i++) {
		frames[i].bytes = head.bytes + PACKET_HEAD + PIECE;
		slots.at[i] = frames[i].data;
		if (!camera->stream)
			packet_write(slots.at[i], head, number, first + (uint32_t)i, 0, 1);
	}
	if (n <= 0)
		return n;
	if (camera->stream)
		packet_kernel<<<n, 128, 0, camera->stream>>>(slots, head, number, first);
	if (camera->stream && cudaPeekAtLastError())
		return -EIO;
	if (gdrcap_tx_checksum_after(camera->tx, frames, (unsigned int)n, camera->stream, nullptr))
		return -EIO;
	return gdrcap_tx_submit_after(camera->tx, frames, (unsigned int)n, camera->stream, nullptr)
		       ? -EIO
		       : n;
}

/* The sum of a datagram and its pseudo header, checksum included, is ffff (RFC 768). */
static bool checksum_is_right(const uint8_t *ip)
{
	uint32_t sum = 17 + 8 + COMMAND_BYTES;

	for (uint32_t i = 12; i < 28 + COMMAND_BYTES; i += 2)
		sum += (uint32_t)get_be(ip + i, 2);
	return (sum & 0xffff) + (sum >> 16) == 0xffff && get_be(ip + 26, 2) != 0;
}

static bool command_is_right(const struct gdrcap_image *command, uint64_t number)
{
	uint8_t frame[COMMAND_FRAME];
	const uint8_t *data = frame + COMMAND_FRAME - COMMAND_BYTES;

	return command->end == GDRCAP_IMAGE_COMPLETE &&
	       gdrcap_image_copy(command, 0, sizeof(frame), frame) == 0 &&
	       checksum_is_right(frame + 14) && get_be(data, 8) == number &&
	       get_be(data + 8, 4) == spot_x(number) * SUBPIXELS &&
	       get_be(data + 12, 4) == spot_y(number) * SUBPIXELS;
}

/* A thread's body. */
static void camera_run(struct camera *camera)
{
	for (uint64_t number = 0; number < camera->pictures && !*camera->over; number++) {
		const struct gdrcap_image *command;
		int n = 0;

		for (uint32_t sent = 0; sent < PACKETS && n >= 0 && !*camera->over;) {
			n = camera_send_some(camera, number, sent);
			sent += n > 0 ? (uint32_t)n : 0;
		}
		if (n < 0)
			break;
		do
			n = gdrcap_image_wait(camera->commands, &command, 1, 10000);
		while (n == 0 && !*camera->over);
		if (n <= 0)
			break;
		camera->checked++;
		camera->wrong += !command_is_right(command, number);
		gdrcap_image_release(camera->commands, &command, 1);
	}
	*camera->over = true;
}

#endif
