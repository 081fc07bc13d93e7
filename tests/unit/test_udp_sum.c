/* SPDX-License-Identifier: BSD-3-Clause */
/* UDP checksums as the CPU backend and CUDA's warps compute them (gdrcap_udp.h), against an independent
 * computation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "gdrcap_udp.h"
#include "kernels/kernels.h"
#include "udp_frames.h"

#define ROUNDS 20000u

/* Memory that ends with its last byte, `shift` bytes behind an aligned address. */
struct piece {
	uint8_t *memory, *at;
};

static struct piece piece_of(const uint8_t *bytes, uint32_t count, uint32_t shift)
{
	struct piece piece = { .memory = malloc(shift + count + 1) };

	assert_non_null(piece.memory);
	/* Its last byte is not the frame's, so that 0 bytes are somewhere too. */
	piece.at = piece.memory + shift;
	memcpy(piece.at, bytes, count);
	return piece;
}

/* The sum as `lanes` of a warp have it. */
static uint32_t sum_by_lanes(const struct udp_frame *frame, const struct gdrcap_udp *udp,
			     uint32_t lanes)
{
	uint32_t sum = udp->sum;

	for (uint32_t lane = 0; lane < lanes; lane++) {
		const uint32_t share = gdrcap_udp_share(
			frame->bytes, frame->head, frame->bytes + frame->head, udp, lane, lanes);

		assert_true(share < 1u << 17);
		sum += share;
	}
	return gdrcap_udp_fold(sum);
}

static void lanes_agree(const struct udp_frame *frame, bool has)
{
	struct gdrcap_udp udp = { 0 };

	assert_int_equal(gdrcap_udp_find(frame->bytes, frame->head, frame->all, &udp), has);
	if (!has)
		return;
	assert_true(udp.at + 8 <= frame->head && udp.end <= frame->all);
	for (uint32_t lanes = 2; lanes <= 32; lanes = lanes == 2 ? 3 : lanes == 3 ? 32 : 33)
		assert_int_equal(sum_by_lanes(frame, &udp, lanes), sum_by_lanes(frame, &udp, 1));
}

/* Each byte is as it was, but for the checksum's. */
static bool frame_play(const struct udp_frame *frame, uint64_t *state)
{
	static uint8_t expected[UDP_FRAME_MOST];
	struct piece head = piece_of(frame->bytes, frame->head, udp_below(state, 64));
	struct piece rest = piece_of(frame->bytes + frame->head, frame->all - frame->head,
				     udp_below(state, 64));
	const struct kernel_sum sum = {
		.frame = head.at,
		.payload = frame->all > frame->head ? rest.at : NULL,
		.bytes = frame->head,
		.payload_bytes = frame->all - frame->head,
	};
	uint32_t is = 0;
	const uint32_t at = udp_reference(frame, &is);

	memcpy(expected, frame->bytes, frame->all);
	if (at)
		udp_set(expected + at, is);
	assert_int_equal(kernel_host_ops.sum(NULL, NULL, &sum, 1), 0);
	assert_memory_equal(head.at, expected, frame->head);
	assert_memory_equal(rest.at, expected + frame->head, frame->all - frame->head);
	lanes_agree(frame, at != 0);
	free(head.memory);
	free(rest.memory);
	return at != 0;
}

static void random_frames(void **state)
{
	static struct udp_frame frame;
	uint64_t random = 1;
	uint32_t spoilt_has = 0, spoilt = 0;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		udp_make(&frame, &random);
		assert_true(frame_play(&frame, &random));
		udp_spoil(&frame, &random);
		spoilt_has += frame_play(&frame, &random);
		spoilt++;
	}
	/* Both kinds of them were many. */
	assert_in_range(spoilt_has, spoilt / 10, spoilt - spoilt / 10);
}

static uint32_t checksum_of(const uint8_t *frame, uint32_t bytes)
{
	static uint8_t copy[UDP_FRAME_MOST];
	const struct kernel_sum sum = { .frame = copy, .bytes = bytes };

	memcpy(copy, frame, bytes);
	assert_int_equal(kernel_host_ops.sum(NULL, NULL, &sum, 1), 0);
	for (uint32_t i = 0; i < bytes; i++)
		if (copy[i] != frame[i])
			return udp_get(copy + (i & ~1u));
	return 0;
}

/* By hand. 10.0.0.1:1 to 10.0.0.2:2 with "ab" and "abc": words 0a00 0001 0a00 0002 0011 000a | 0001 0002
 * 000a 6162 are 758d (with the odd byte 6300 and a longer length d88f). */
static void by_hand(void **state)
{
	uint8_t frame[60] = {
		2,  0, 0,  0, 0, 1, 2, 0,  0,  0,  0,	 2,    8,   0,	 0x45,
		0,  0, 30, 0, 0, 0, 0, 64, 17, 0,  0,	 10,   0,   0,	 1,
		10, 0, 0,  2, 0, 1, 0, 2,  0,  10, 0x12, 0x34, 'a', 'b', 'c',
	};

	assert_int_equal(checksum_of(frame, 60), 0xffff - 0x758d);
	frame[17] = 31;
	frame[39] = 11;
	assert_int_equal(checksum_of(frame, 60), 0xffff - 0xd88f);
	/* The datagram decides, not what is behind it. */
	frame[17] = 46;
	assert_int_equal(checksum_of(frame, 60), 0xffff - 0xd88f);
	/* A zero: 758d and 8a72 are ffff. */
	frame[17] = 32;
	frame[39] = 12;
	udp_set(frame + 44, 0xffff - 0x758d - 4);
	assert_int_equal(checksum_of(frame, 60), 0xffff);
}

static void left_alone(void **state)
{
	static const struct {
		uint32_t at;
		uint8_t is;
	} wrong[] = {
		{ 13, 6 },    /* ARP */
		{ 14, 0x44 }, /* a header of 16 bytes */
		{ 14, 0x55 }, /* version 5 */
		{ 20, 0x20 }, /* a fragment, the first ... */
		{ 21, 1 },    /* ... and another */
		{ 23, 6 },    /* TCP */
		{ 17, 47 },   /* a packet longer than the frame */
		{ 17, 27 },   /* shorter than its datagram's header */
		{ 39, 33 },   /* a datagram longer than its packet */
		{ 39, 7 },    /* shorter than its header */
	};
	uint8_t frame[60] = {
		2, 0,  0,  0, 0, 1,  2, 0, 0, 0,  0, 2, 8, 0, 0x45, 0, 0, 46, 0,  0,	0,
		0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1,    0, 2, 0,  26, 0x12, 0x34,
	};

	assert_int_not_equal(checksum_of(frame, 60), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const uint8_t right = frame[wrong[i].at];

		frame[wrong[i].at] = wrong[i].is;
		assert_int_equal(checksum_of(frame, 60), 0);
		frame[wrong[i].at] = right;
	}
	for (uint32_t bytes = 0; bytes < 60; bytes++)
		assert_int_equal(checksum_of(frame, bytes), 0);
}

static void streams_are_cuda(void **state)
{
	const struct kernel_sum none = { .bytes = 0 };

	assert_int_equal(kernel_host_ops.sum(NULL, (void *)1, &none, 1), -ENOTSUP);
	assert_non_null(strstr(kernel_error(), "CUDA stream"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_frames),
		cmocka_unit_test(by_hand),
		cmocka_unit_test(left_alone),
		cmocka_unit_test(streams_are_cuda),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
