/* SPDX-License-Identifier: BSD-3-Clause */
/* The command that control_loop.cu sends: where a picture's centroid is, in a UDP datagram. */
#ifndef CONTROL_COMMAND_CUH
#define CONTROL_COMMAND_CUH

#include <cstdint>

#include <gdrcap.h>

#define COMMAND_BYTES                                                                              \
	24u /* number, 8; x, y, 4 each; brightness, 8: the most significant byte first */
#define COMMAND_FRAME (42u + COMMAND_BYTES)
#define SUBPIXELS 256u

/* Of a picture: all pixels' sum, and those of each times its column and row. */
struct moments {
	unsigned long long sum, x, y;
};

/* Headers, which are the same in each frame: as gdrcap_tx_write_headers() makes them. */
struct frame_head {
	uint8_t at[GDRCAP_TX_HEADERS_MAX];
	uint32_t bytes;
};

/* Addresses are yours to give: these are of nobody. */
static inline struct frame_head frame_head_make(uint16_t port, uint32_t data_bytes)
{
	struct gdrcap_tx_headers headers = {};
	struct frame_head head = {};
	const uint8_t dst[6] = { 0x02, 0, 0, 0, 0, 0x01 }, src[6] = { 0x02, 0, 0, 0, 0, 0x99 };

	for (int i = 0; i < 6; i++) {
		headers.dst_mac[i] = dst[i];
		headers.src_mac[i] = src[i];
	}
	headers.src_ip = 0x0a000001;
	headers.dst_ip = 0x0a000002;
	headers.src_port = port;
	headers.dst_port = port;
	/* Without data: their checksum comes when they are there. */
	head.bytes = (uint32_t)gdrcap_tx_write_headers(head.at, &headers, nullptr, data_bytes);
	return head;
}

__host__ __device__ static inline void put_be(uint8_t *to, uint64_t value, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

__host__ __device__ static inline uint64_t get_be(const uint8_t *at, uint32_t bytes)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < bytes; i++)
		value = value << 8 | at[i];
	return value;
}

/* The datagram's data. A dark picture has no centroid: all bits are set then. */
__host__ __device__ static inline void command_write(uint8_t *to, uint64_t number,
						     const struct moments &all)
{
	put_be(to, number, 8);
	put_be(to + 8, all.sum ? all.x * SUBPIXELS / all.sum : UINT32_MAX, 4);
	put_be(to + 12, all.sum ? all.y * SUBPIXELS / all.sum : UINT32_MAX, 4);
	put_be(to + 16, all.sum, 8);
}

#endif
