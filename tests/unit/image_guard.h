/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses frames of which the last byte is the last that can be read. */
#ifndef GDRCAP_TEST_IMAGE_GUARD_H
#define GDRCAP_TEST_IMAGE_GUARD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/mman.h>

#include "image_wire.h"
#include "pattern/image_parse.h"

#define GUARD ((size_t)4096)
#define ROOM ((size_t)3 * 4096)

static struct wire wire;
static struct image_packet packet;
static struct image_part part;
static uint8_t *end; /* of memory: the page behind it cannot be touched */

static inline int guard_create(void **state)
{
	uint8_t *at = mmap(NULL, ROOM + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	if (at == MAP_FAILED)
		return -1;
	end = at + ROOM;
	return mprotect(end, GUARD, PROT_NONE);
}

/* The frame's first `len` bytes, where no byte can be read behind them. */
static inline const uint8_t *guarded(uint32_t len)
{
	memcpy(end - len, wire.at, len);
	return end - len;
}

static inline uint32_t parse_cut(const struct image_layout *layout, uint32_t len)
{
	image_parse(layout, guarded(len), len, &packet);
	return packet.what;
}

static inline uint32_t parse(const struct image_layout *layout)
{
	return parse_cut(layout, wire.len);
}

static inline int next_part(const struct image_layout *layout)
{
	return image_next_part(layout, end - wire.len, &packet, &part);
}

static inline void assert_part(const struct image_layout *layout, uint64_t place, uint32_t piece,
			       uint32_t pieces, const uint8_t *from, uint32_t bytes)
{
	assert_int_equal(next_part(layout), 1);
	assert_int_equal(part.place, place);
	assert_int_equal(part.piece, piece);
	assert_int_equal(part.pieces, pieces);
	assert_int_equal(part.from, from - wire.at);
	assert_int_equal(part.bytes, bytes);
}

/* A frame that ends anywhere before its datagram does is no data. `udp`: where its UDP header is, which
 * says in turn what it should, and that the datagram ends where the frame does; 0: it has none. */
static inline void assert_cut_anywhere(const struct image_layout *layout, uint32_t whole,
				       uint32_t udp)
{
	for (uint32_t len = 0; len < whole; len++) {
		for (uint32_t lie = 0; lie < (udp && len >= udp + 8 ? 2u : 1u); lie++) {
			const uint32_t was = frame_be16(wire.at + udp + 4);
			int fits;

			if (lie)
				frame_put16(wire.at + udp + 4, len - udp);
			parse_cut(layout, len);
			if (lie)
				frame_put16(wire.at + udp + 4, was);
			if (packet.what != IMAGE_DATA)
				continue;
			do {
				fits = image_next_part(layout, end - len, &packet, &part);
			} while (fits > 0);
			if (!fits)
				fail_msg("%u of %u bytes are data", len, whole);
		}
	}
}

#endif
