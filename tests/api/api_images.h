/* SPDX-License-Identifier: BSD-3-Clause */
/* Images of gdrcap's own frames over a wire in this process, PIECES of them an image, so that every byte of
 * it is known. */
#ifndef GDRCAP_TEST_API_IMAGES_H
#define GDRCAP_TEST_API_IMAGES_H

#include "api.h"

#define PIECES 64u
#define PIECE (API_FRAME - 4u - API_PAYLOAD)
#define BYTES (PIECES * PIECE)

static const char images_yaml[] = "image:\n"
				  "  name: own\n"
				  "  base: frame\n"
				  "  kind: {at: 14, bytes: 2}\n"
				  "  data: {kind: 0x6743, payload: 50}\n"
				  "  stream: {at: 18, bytes: 2}\n"
				  "  number: {at: 22, bytes: 8, divide: 64}\n"
				  "  index: {at: 22, bytes: 8, modulo: 64}\n"
				  "  piece: %u\n"
				  "  pieces: %u\n"
				  "  timestamp: {at: 22, bytes: 8}\n"
				  "  timeout: 60\n"
				  "  ring: %u\n"
				  "  engine: %s\n"
				  "  fill: 0xa5\n";

static inline void images_config_engine(struct gdrcap_config **config, const char *consumer,
					uint64_t frames, unsigned int ring, const char *engine)
{
	struct gdrcap_error error = { 0 };
	char yaml[1024];
	int ret;

	api_config(config, consumer, frames);
	snprintf(yaml, sizeof(yaml), images_yaml, PIECE, PIECES, ring, engine);
	ret = gdrcap_config_parse(*config, "images", yaml, strlen(yaml), &error);
	if (ret)
		print_error("%s\n", error.text);
	assert_int_equal(ret, 0);
}

static inline void images_config(struct gdrcap_config **config, const char *consumer,
				 uint64_t frames, unsigned int ring)
{
	images_config_engine(config, consumer, frames, ring, "auto");
}

/* What was sent is there, and in the holes what `fill` says. */
static inline void check_bytes(const struct gdrcap_image *image)
{
	for (uint32_t i = 0; i < PIECES; i++) {
		const int there = image->present[i / 32] >> i % 32 & 1;
		const uint64_t position = (image->number * PIECES + i) * PIECE;

		for (uint32_t at = 0; at < PIECE; at++)
			assert_int_equal(image->data[i * PIECE + at],
					 there ? (uint8_t)(position + at) : 0xa5);
	}
}

#endif
