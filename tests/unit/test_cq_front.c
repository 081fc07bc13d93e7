/* SPDX-License-Identifier: BSD-3-Clause */
/* What a front computes: owners over laps, prefixes, kinds of completions, descriptors, records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "capture/cq_front.h"

#define ROUND 64u

/* As the card writes it, byte by byte. */
static void cqe_write(uint8_t *cqe, uint32_t op_own, uint32_t counter, uint32_t length)
{
	cqe[44] = (uint8_t)(length >> 24);
	cqe[45] = (uint8_t)(length >> 16);
	cqe[46] = (uint8_t)(length >> 8);
	cqe[47] = (uint8_t)length;
	cqe[60] = (uint8_t)(counter >> 8);
	cqe[61] = (uint8_t)counter;
	cqe[62] = 0x5a; /* a signature that nobody asked for */
	cqe[63] = (uint8_t)op_own;
}

/* Of place `number`, as the card does: of a striding queue with its work entry, and one stride. */
static void frame_write(const struct cq_front_queue *queue, uint64_t number, uint32_t length)
{
	const uint32_t shift = queue->stride_shift, lap = (uint32_t)(number / queue->cq_entries);
	uint8_t *cqe = (uint8_t *)(uintptr_t)queue->cq + number % queue->cq_entries * CQ_BYTES;

	cqe[2] = (uint8_t)(number >> shift >> 8);
	cqe[3] = (uint8_t)(number >> shift);
	cqe_write(cqe, 0x20 | (number % 3 ? 2 : 0) | (lap & 1),
		  shift ? (uint32_t)(number % (1u << shift)) : (uint32_t)number,
		  length | (shift ? 1u << 16 : 0));
}

static void frames_are(const struct cq_front_queue *queue, uint64_t index, uint32_t n,
		       const struct frame_desc *desc, uint64_t bytes)
{
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(desc[i].slot, 1000 + (index + i) % queue->slots);
		assert_int_equal(desc[i].len, 1 + (index + i) % 2000);
		assert_int_equal(desc[i].offset, 0);
		assert_int_equal(cq_kind_at(queue, index + i, (uint32_t)(index + i)), CQ_FRAME);
		bytes -= desc[i].len;
	}
	assert_true(bytes == 0);
}

static void laps_of(struct cq_front_queue *queue)
{
	const uint64_t all = 3 * (65536 + 2 * (uint64_t)queue->cq_entries);
	uint8_t *cq = aligned_alloc(64, (size_t)queue->cq_entries * CQ_BYTES);
	uint64_t index = 0, written = 0;

	assert_non_null(cq);
	memset(cq, 0xf1, (size_t)queue->cq_entries * CQ_BYTES);
	queue->cq = cq;
	while (index < all) {
		const uint32_t to_end = queue->cq_entries - index % queue->cq_entries;
		const uint32_t come = index ? (uint32_t)(index * 7 % (ROUND + 1)) : 1;
		const uint32_t most = to_end < ROUND ? to_end : ROUND;
		struct frame_desc desc[ROUND];
		uint64_t bytes;
		uint32_t n;

		for (; written < index + come; written++)
			frame_write(queue, written, 1 + (uint32_t)written % 2000);
		n = cq_take(queue, index, (uint32_t)index, most, desc, &bytes,
			    queue->stride_shift != 0);
		assert_int_equal(n, written - index < most ? written - index : most);
		frames_are(queue, index, n, desc, bytes);
		index += n;
		if (written == index)
			assert_int_equal(cq_kind_at(queue, index, (uint32_t)index), CQ_NONE);
		if (come == 0) /* one that the rule does not give */
			frame_write(queue, written, 1 + (uint32_t)written % 2000), written++;
	}
	free(cq);
}

/* Rings of every size over three laps and more, with as many completions as 16 bits count three times,
 * cyclic and of strides: what is there is taken, what is not there is not, and each is its slot's. */
static void laps(void **state)
{
	for (uint32_t bits = 6; bits <= 15; bits++)
		for (uint32_t shift = 0; shift <= bits - 2; shift += 1 + bits % 3) {
			struct cq_front_queue queue = { .cq_entries = 2u << bits,
							.slots = 1u << bits,
							.first_slot = 1000,
							.slot_bytes = 2000,
							.stride_shift = shift };

			assert_true(cq_front_queue_fits(&queue));
			laps_of(&queue);
		}
}

static void prefixes(void **state)
{
	uint64_t random = 1;

	assert_int_equal(cq_prefix(0), 0);
	assert_int_equal(cq_prefix(UINT32_MAX), 32);
	for (uint32_t n = 0; n < 32; n++) {
		const uint32_t below = (uint32_t)(((uint64_t)1 << n) - 1);

		assert_int_equal(cq_prefix(below), n);
		for (uint32_t i = 0; i < 100; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			/* whatever comes behind the gap */
			assert_int_equal(
				cq_prefix(below | ((uint32_t)(random >> 32) & ~below & ~(1u << n))),
				n);
		}
	}
}

static void kinds(void **state)
{
	static const struct {
		uint32_t op_own, counter, length, syndrome;
		enum cq_kind kind;
	} rows[] = {
		{ 0xf1, 7, 60, 0, CQ_NONE }, /* never written */
		{ 0x21, 7, 60, 0, CQ_NONE }, /* the lap before's */
		{ 0xf0, 7, 60, 0, CQ_NONE }, /* invalid, with this lap's owner */
		{ 0x20, 7, 60, 0, CQ_FRAME },
		{ 0x22, 7, 60, 0, CQ_FRAME },
		{ 0x20, 7, 1, 0, CQ_FRAME },
		{ 0x20, 7, 2000, 0, CQ_FRAME },
		{ 0x20, 7, 2001, 0, CQ_LENGTH },
		{ 0x20, 7, 0, 0, CQ_LENGTH },
		{ 0x20, 7, 0x8000003c, 0, CQ_LENGTH },
		{ 0x20, 7, UINT32_MAX, 0, CQ_LENGTH },
		{ 0x20, 8, 60, 0, CQ_ORDER },
		{ 0x20, 6, 60, 0, CQ_ORDER },
		{ 0x20, 0x107, 60, 0, CQ_ORDER },
		{ 0x20, 0x700, 60, 0, CQ_ORDER },
		{ 0xe0, 7, 60, 5, CQ_FLUSHED },
		{ 0xe0, 7, 60, 1, CQ_LENGTH },
		{ 0xe0, 7, 60, 4, CQ_ERROR },
		{ 0xd0, 9, 0, 2, CQ_ERROR },
		{ 0x00, 7, 60, 0, CQ_ODD },
		{ 0x10, 7, 60, 0, CQ_ODD },
		{ 0x30, 7, 60, 0, CQ_ODD },
		{ 0x40, 7, 60, 0, CQ_ODD },
		{ 0x2c, 7, 60, 0, CQ_ODD }, /* compressed */
		{ 0x24, 7, 60, 0, CQ_ODD },
		{ 0x28, 7, 60, 0, CQ_ODD }, /* inline data */
	};
	uint8_t cq[128 * CQ_BYTES];
	struct frame_desc desc;
	uint64_t bytes;
	const struct cq_front_queue queue = {
		.cq = cq, .cq_entries = 128, .slots = 64, .slot_bytes = 2000
	};

	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint32_t lap = 0; lap < 2; lap++) {
			const uint64_t index = 3 + 128 * lap;
			/* work entries have wrapped: 16 bits are told */
			const uint32_t next = 7 + 65536 * lap;

			memset(cq, 0xf1, sizeof(cq));
			cqe_write(cq + 3 * CQ_BYTES, rows[i].op_own ^ lap, rows[i].counter,
				  rows[i].length);
			cq[3 * CQ_BYTES + 55] = (uint8_t)rows[i].syndrome;
			assert_int_equal(cq_kind_at(&queue, index, next), rows[i].kind);
			assert_int_equal(cq_take(&queue, index, next, 1, &desc, &bytes, 0),
					 rows[i].kind == CQ_FRAME);
		}
}

/* Of a striding queue of 16 work entries, 4 strides each: place 65536 * 4 + 39 is stride 3 of entry 9, its number's lowest
 * 16 bits; a card may say 9 by other bits above the lowest four. */
static void kinds_of_strides(void **state)
{
	static const struct {
		uint32_t op_own, entry, stride, byte_cnt;
		enum cq_kind kind;
	} rows[] = {
		{ 0x20, 9, 3, 1u << 16 | 60, CQ_FRAME },
		{ 0x20, 0x109, 3, 1u << 16 | 60, CQ_FRAME },
		{ 0x20, 9, 3, 1u << 16 | 1, CQ_FRAME },
		{ 0x20, 9, 3, 1u << 16 | 2000, CQ_FRAME },
		{ 0x20, 9, 3, 1u << 16 | 2001, CQ_LENGTH },
		{ 0x20, 9, 3, 1u << 16 | 0xffff, CQ_LENGTH },
		{ 0x20, 9, 3, 1u << 16, CQ_LENGTH },
		{ 0x20, 9, 3, 60, CQ_LENGTH },		  /* of no stride */
		{ 0x20, 9, 3, 2u << 16 | 60, CQ_LENGTH }, /* of two: the next slot, too */
		{ 0x20, 9, 3, 0x3fffu << 16 | 60, CQ_LENGTH },
		{ 0x20, 9, 3, 0x40010000u | 60, CQ_LENGTH },
		{ 0x20, 9, 3, 0x80010000u, CQ_FILLER },
		{ 0x20, 9, 3, 0x8001003cu, CQ_FILLER },
		{ 0x20, 9, 3, UINT32_MAX, CQ_FILLER },
		{ 0x20, 8, 3, 0x80010000u, CQ_FILLER },
		{ 0x20, 8, 3, 1u << 16 | 60, CQ_ORDER },
		{ 0x20, 10, 3, 1u << 16 | 60, CQ_ORDER },
		{ 0x20, 0x900, 3, 1u << 16 | 60, CQ_ORDER },
		{ 0x20, 9, 2, 1u << 16 | 60, CQ_ORDER },
		{ 0x20, 9, 0, 1u << 16 | 60, CQ_ORDER },
		{ 0x20, 9, 7, 1u << 16 | 60, CQ_ORDER },  /* no stride of this entry */
		{ 0x20, 9, 39, 1u << 16 | 60, CQ_ORDER }, /* as of a cyclic queue */
		{ 0x20, 9, 0x8003, 1u << 16 | 60, CQ_ORDER },
		{ 0x21, 9, 3, 1u << 16 | 60, CQ_NONE },
		{ 0x2c, 9, 3, 1u << 16 | 60, CQ_ODD },
	};
	_Alignas(8) uint8_t cq[128 * CQ_BYTES];
	const struct cq_front_queue queue = {
		.cq = cq, .cq_entries = 128, .slots = 64, .slot_bytes = 2000, .stride_shift = 2
	};

	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint32_t lap = 0; lap < 2; lap++) {
			const uint64_t index = 3 + 128 * lap;
			const uint32_t next = 39 + 4 * 65536 * lap;
			struct frame_desc desc;
			uint64_t bytes;

			memset(cq, 0xf1, sizeof(cq));
			cqe_write(cq + 3 * CQ_BYTES, rows[i].op_own ^ lap, rows[i].stride,
				  rows[i].byte_cnt);
			cq[3 * CQ_BYTES + 2] = (uint8_t)(rows[i].entry >> 8);
			cq[3 * CQ_BYTES + 3] = (uint8_t)rows[i].entry;
			if (cq_kind_at(&queue, index, next) != rows[i].kind)
				fail_msg("row %u: kind %u", i, cq_kind_at(&queue, index, next));
			assert_int_equal(cq_take(&queue, index, next, 1, &desc, &bytes, 1),
					 rows[i].kind == CQ_FRAME);
			if (rows[i].kind == CQ_FRAME)
				assert_int_equal(desc.slot, 39);
		}
}

/* Only whole work entries go back, and the card is told how many of these, also when 32 bits of places wrap. */
static void whole_work_entries(void **state)
{
	for (uint32_t shift = 0; shift <= 13; shift++) {
		uint16_t told = 0;

		for (uint64_t back = 0; back < 3u << 17; back += 1 + back % 5) {
			const uint32_t start = UINT32_MAX - (1u << 17) + 1;
			const uint32_t whole = cq_whole(start + (uint32_t)back, shift);
			const uint32_t record = cq_swap32(cq_record(whole >> shift));

			assert_true(start + (uint32_t)back - whole < 1u << shift);
			assert_int_equal(record, ((start + back) >> shift) & 0xffff);
			assert_true(back == 0 || (uint16_t)(record - told) <= 5);
			told = (uint16_t)record;
		}
	}
}

static void queues_that_cannot_be(void **state)
{
	static const struct cq_front_queue rows[] = {
		{ .slots = 0, .cq_entries = 128 },
		{ .slots = 63, .cq_entries = 128 },
		{ .slots = 65536, .cq_entries = 131072 },
		{ .slots = 64, .cq_entries = 64 },
		{ .slots = 64, .cq_entries = 192 },
		{ .slots = 64, .cq_entries = 128, .stride_shift = 5 },
		{ .slots = 64, .cq_entries = 128, .stride_shift = 32 },
		{ .slots = 64, .cq_entries = 128, .stride_shift = UINT32_MAX },
	};

	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_false(cq_front_queue_fits(&rows[i]));
}

/* The bytes that the card reads. */
static void records(void **state)
{
	static const struct {
		uint32_t posted;
		uint8_t bytes[4];
	} rows[] = {
		{ 0, { 0, 0, 0, 0 } },
		{ 64, { 0, 0, 0, 64 } },
		{ 0x1234, { 0, 0, 0x12, 0x34 } },
		{ 32768, { 0, 0, 0x80, 0 } },
		{ 65535, { 0, 0, 0xff, 0xff } },
		{ 65536, { 0, 0, 0, 0 } },
		{ 0xabcd1234, { 0, 0, 0x12, 0x34 } },
	};

	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t record = 0xffffffff;

		cq_record_store(&record, rows[i].posted);
		assert_memory_equal(&record, rows[i].bytes, 4);
	}
}

/* Never more than is free; at once when few are left; else in eighths; all of it in the end. */
static void reposts(void **state)
{
	for (uint32_t slots = 64; slots <= 32768; slots *= 2) {
		assert_int_equal(cq_repost_due(0, 0, slots), 0);
		assert_int_equal(cq_repost_due(1, slots / 4 - 1, slots), 1);
		assert_int_equal(cq_repost_due(1, slots / 4, slots), 0);
		assert_int_equal(cq_repost_due(slots / 8 - 1, slots - 1, slots), 0);
		assert_int_equal(cq_repost_due(slots / 8, slots - 1, slots), 1);
	}
}

/* Bursts come back out of order, and some are kept: only those before the first that is missing. */
static void release_with_holes(void **state)
{
	uint64_t random = 5, freed = 0, lease = 0, through = 0;
	uint8_t free_word[64] = { 0 }; /* of burst mod 64: it is FREE */

	for (uint32_t i = 0; i < 100000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		free_word[(freed + (random >> 40) % 20) % 64] = 1;
		while (free_word[freed % 64])
			free_word[freed++ % 64] = 0;
		lease += (random >> 60) % 3;
		if (lease > freed + 9)
			lease = freed + 9;
		assert_true(cq_through(freed, lease) >= through);
		through = cq_through(freed, lease);
		assert_true(through <= freed && through <= lease &&
			    (through == freed || through == lease));
	}
	assert_true(through > 1000);
}

static void room(void **state)
{
	for (uint64_t collected = 0; collected < 1000; collected += 37) {
		assert_int_equal(cq_room(collected, collected, 8), 1);
		assert_int_equal(cq_room(collected + 7, collected, 8), 1);
		assert_int_equal(cq_room(collected + 8, collected, 8), 0);
		assert_int_equal(cq_room(collected + 9, collected, 8), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prefixes),
		cmocka_unit_test(kinds),
		cmocka_unit_test(records),
		cmocka_unit_test(reposts),
		cmocka_unit_test(release_with_holes),
		cmocka_unit_test(room),
		cmocka_unit_test(kinds_of_strides),
		cmocka_unit_test(whole_work_entries),
		cmocka_unit_test(queues_that_cannot_be),
		/* The longest last: a mutant ends at the first that fails. */
		cmocka_unit_test(laps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
