/* SPDX-License-Identifier: BSD-3-Clause */
/* Images of gdrcap's own frames, for programs on the public API: every byte is known, and a kernel looks at
 * each. */
#ifndef GDRCAP_TEST_IMAGE_FRAMES_CUH
#define GDRCAP_TEST_IMAGE_FRAMES_CUH

#include <cstdio>

#include <cuda_runtime.h>

#include "gdrcap_device.cuh"
#include "api_calls.cuh"

#define PIECES 64u
#define FRAME_BYTES 1500u /* with FCS */
#define PIECE (FRAME_BYTES - 4u - 50u)
#define IMAGE_BYTES (PIECES * PIECE)
#define FILL 0xa5u

struct image_tally { /* written by kernels with atomics, read by the CPU when they have ended */
	unsigned long long images, complete, wrong;
};

/* By all threads of a block. Pattern counter8: a payload byte is the low byte of its place in the stream. */
__device__ static inline void image_check(const struct gdrcap_image &image,
					  struct image_tally *tally)
{
	uint32_t wrong = image.bytes != IMAGE_BYTES || image.pieces != PIECES;

	for (uint32_t at = threadIdx.x; at < IMAGE_BYTES; at += blockDim.x) {
		const uint8_t want = gdrcap_gpu_piece_present(image, at / PIECE)
					     ? (uint8_t)(image.number * IMAGE_BYTES + at)
					     : FILL;

		wrong += image.data[at] != want;
	}
	if (wrong)
		atomicAdd(&tally->wrong, (unsigned long long)wrong);
	if (threadIdx.x == 0) {
		atomicAdd(&tally->images, 1ull);
		if (image.end == GDRCAP_IMAGE_COMPLETE)
			atomicAdd(&tally->complete, 1ull);
	}
}

/* A loopback in this process; `engine` and `memory` as in the options. */
static inline struct gdrcap_config *images_config(const char *consumer, const char *engine,
						  const char *memory, uint64_t images,
						  uint32_t ring)
{
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_error error;
	char yaml[1024], size[16], frames[32];

	snprintf(size, sizeof(size), "%u", FRAME_BYTES);
	snprintf(frames, sizeof(frames), "%llu", (unsigned long long)images * PIECES);
	option_set(config, "port", "ring:test");
	option_set(config, "tx_port", "ring:test");
	option_set(config, "gpu", "0");
	option_set(config, "frame.size", size);
	option_set(config, "pattern", "counter8");
	option_set(config, "consumer", consumer);
	option_set(config, "memory", memory);
	option_set(config, "frames", frames);
	snprintf(yaml, sizeof(yaml),
		 "image:\n"
		 "  base: frame\n"
		 "  kind: {at: 14, bytes: 2}\n"
		 "  data: {kind: 0x6743, payload: 50}\n"
		 "  stream: {at: 18, bytes: 2}\n"
		 "  number: {at: 22, bytes: 8, divide: %u}\n"
		 "  index: {at: 22, bytes: 8, modulo: %u}\n"
		 "  piece: %u\n"
		 "  pieces: %u\n"
		 "  ring: %u\n"
		 "  fill: %u\n"
		 "  engine: %s\n",
		 PIECES, PIECES, PIECE, PIECES, ring, FILL, engine);
	api_check(gdrcap_config_parse(config, "images", yaml, strlen(yaml), &error), &error,
		  "image");
	return config;
}

#endif
