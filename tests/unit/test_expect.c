/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames compared with those of a file. What must be found is looked up here without any hash: by
 * comparing with every frame, and part by part.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store_build.h"

#define FRAMES 300u
#define LEN_MAX 9212u
#define NO_FRAME UINT32_MAX

static uint64_t random_state = 11;

static uint64_t random64(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static uint8_t bytes[FRAMES][LEN_MAX];
static uint32_t lens[FRAMES];
static struct built_store store;
static struct frame_layout layout;

/* Many frames look alike: some are equal, some differ in one bit, some have a part in common. */
static int scene_create(void **state)
{
	const uint8_t *pointers[FRAMES];
	const struct frame_config config = { 0 };

	for (uint32_t i = 0; i < FRAMES; i++) {
		static const uint32_t usual[] = { 60, 64, 42, 59, 1514, 128 };
		const uint32_t like = i ? (uint32_t)(random64() % i) : 0;

		lens[i] = random64() % 4 ? usual[random64() % 6]
					 : 14 + (uint32_t)(random64() % (LEN_MAX - 13));
		for (uint32_t at = 0; at < lens[i]; at++)
			bytes[i][at] = (uint8_t)random64();
		if (i && random64() % 3) {
			lens[i] = lens[like];
			memcpy(bytes[i], bytes[like], lens[i]);
			if (random64() % 2)
				bytes[i][random64() % lens[i]] ^= 1;
			else if (random64() % 2)
				for (uint32_t at = lens[i] / 2; at < lens[i]; at++)
					bytes[i][at] = (uint8_t)random64();
		}
		pointers[i] = bytes[i];
	}
	/* the same frame, once padded by a card */
	lens[7] = 42;
	lens[9] = 60;
	memset(bytes[9], 0, 60);
	memcpy(bytes[9], bytes[7], 42);
	built_create(&store, &built_here, pointers, lens, FRAMES);
	return frame_layout_init(&layout, &config);
}

static int scene_destroy(void **state)
{
	built_destroy(&store, &built_here);
	return 0;
}

static uint32_t padded(uint32_t len)
{
	return len < 60 ? 60 : len;
}

static uint8_t byte_of(const uint8_t *frame, uint32_t len, uint32_t at)
{
	return at < len ? frame[at] : 0;
}

/* Is the received frame like frame i from byte `from` to byte `to`? */
static bool is_like(uint32_t i, const uint8_t *frame, uint32_t len, uint32_t from, uint32_t to)
{
	if (padded(len) != padded(lens[i]))
		return false;
	for (uint32_t at = from; at < to; at++)
		if (byte_of(frame, len, at) != byte_of(bytes[i], lens[i], at))
			return false;
	return true;
}

/* The one class that is like the frame there; NO_FRAME: none, or several. */
static uint32_t only_one(const uint8_t *frame, uint32_t len, uint32_t from, uint32_t to)
{
	uint32_t found = NO_FRAME;

	for (uint32_t i = 0; i < FRAMES; i++) {
		if (!is_like(i, frame, len, from, to))
			continue;
		if (found != NO_FRAME && !is_like(i, bytes[found], lens[found], 0, padded(len)))
			return NO_FRAME;
		if (found == NO_FRAME)
			found = i;
	}
	return found;
}

static uint32_t meant(const uint8_t *frame, uint32_t len)
{
	const uint32_t pieces = (padded(len) + 15) / 16;
	uint32_t found = only_one(frame, len, 0, padded(len));

	for (uint32_t part = 0; part < 4 && found == NO_FRAME; part++) {
		/* the pieces of which this part is the quarter: the first not below, and so on */
		const uint32_t from = (part * pieces + 3) / 4, to = ((part + 1) * pieces + 3) / 4;

		found = only_one(frame, len, 16 * from, 16 * to);
	}
	return found;
}

static struct frame_result check(const uint8_t *frame, uint32_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct frame_result plain, after;

	assert_non_null(copy);
	memcpy(copy, frame, len);
	memset(&plain, 0x11, sizeof(plain));
	frame_expect_check(&layout, &store.view, copy, len, &plain);
	for (int i = 0; i < 3; i++) {
		const uint64_t near[] = { plain.sequence + FRAMES - 1, random64() % FRAMES,
					  UINT64_MAX };

		memset(&after, 0x22, sizeof(after));
		frame_expect_check_after(&layout, &store.view, near[i], copy, len, &after);
		assert_memory_equal(&plain, &after, sizeof(plain));
	}
	free(copy);
	return plain;
}

/* Checks the frame and compares with what must be found. */
static struct frame_result verify(const uint8_t *frame, uint32_t len)
{
	const struct frame_result r = check(frame, len);
	const uint32_t found = meant(frame, len);
	uint32_t wrong_bits = 0, offset = 0;

	assert_int_equal(r.stream | r.phase_first | r.phase_next | r.detail, 0);
	if (found == NO_FRAME) {
		assert_int_equal(r.verdict, FRAME_DAMAGED_HEADER);
		assert_int_equal(r.header_ok, 0);
		assert_int_equal(r.sequence | r.payload_bytes | r.wrong_bits | r.offset, 0);
		return r;
	}
	for (uint32_t at = padded(len); at-- > 0;) {
		const int wrong = byte_of(frame, len, at) ^ byte_of(bytes[found], lens[found], at);

		wrong_bits += (uint32_t)__builtin_popcount((unsigned int)wrong);
		offset = wrong ? at : offset;
	}
	assert_int_equal(r.verdict, wrong_bits ? FRAME_DAMAGED_PAYLOAD : FRAME_VALID);
	assert_int_equal(r.header_ok, 1);
	assert_int_equal(r.sequence, found);
	assert_int_equal(r.payload_bytes, len);
	assert_int_equal(r.wrong_bits, wrong_bits);
	assert_int_equal(r.offset, offset);
	assert_int_equal(r.expected, wrong_bits ? byte_of(bytes[found], lens[found], offset) : 0);
	assert_int_equal(r.got, wrong_bits ? byte_of(frame, len, offset) : 0);
	return r;
}

static void test_all_frames(void **state)
{
	uint32_t equal = 0;

	for (uint32_t i = 0; i < FRAMES; i++) {
		const struct frame_result r = verify(bytes[i], lens[i]);

		assert_int_equal(r.verdict, FRAME_VALID);
		assert_true(r.sequence <= i);
		equal += r.sequence < i;
	}
	assert_true(equal > 20 && equal < FRAMES / 2);
}

static void test_padding(void **state)
{
	uint8_t frame[61] = { 0 };
	struct frame_result r;

	memcpy(frame, bytes[7], 42);
	for (uint32_t len = 42; len <= 60; len++) {
		r = verify(frame, len);
		assert_int_equal(r.verdict, FRAME_VALID);
		assert_int_equal(r.sequence, 7);
		assert_int_equal(r.payload_bytes, len);
	}
	assert_int_equal(verify(frame, 61).verdict, FRAME_DAMAGED_HEADER);
	frame[59] = 1; /* what pads must be zeros */
	r = verify(frame, 60);
	assert_int_equal(r.verdict, FRAME_DAMAGED_PAYLOAD);
	assert_int_equal(r.offset, 59);
	assert_int_equal(r.wrong_bits, 1);
}

static void test_damage(void **state)
{
	static uint8_t frame[LEN_MAX];
	unsigned int seen[FRAME_VERDICTS] = { 0 };

	for (int round = 0; round < 3000; round++) {
		const uint32_t i = (uint32_t)(random64() % FRAMES);
		uint32_t len = lens[i], damages = (uint32_t)(random64() % 6);

		memcpy(frame, bytes[i], len);
		while (damages--)
			frame[random64() % (random64() % 2 ? 60 : len) % len] ^=
				(uint8_t)(1u << random64() % 8);
		if (random64() % 16 == 0)
			len = (uint32_t)(random64() % (len + 1));
		if (random64() % 16 == 0)
			for (uint32_t at = 0; at < len; at++)
				frame[at] = (uint8_t)random64();
		seen[verify(frame, len).verdict]++;
	}
	assert_true(seen[FRAME_VALID] > 300 && seen[FRAME_DAMAGED_PAYLOAD] > 300 &&
		    seen[FRAME_DAMAGED_HEADER] > 100);
}

static void test_odd_stores(void **state)
{
	struct frame_store_view view = store.view;
	static uint8_t large[65535 + 10];
	struct frame_result r;

	/* no table: nothing can be found, but for what comes in order */
	view.bucket_mask = 0;
	view.buckets = NULL;
	frame_expect_check(&layout, &view, bytes[1], lens[1], &r);
	assert_int_equal(r.verdict, FRAME_DAMAGED_HEADER);
	frame_expect_check_after(&layout, &view, 0, bytes[1], lens[1], &r);
	assert_int_equal(r.verdict, FRAME_VALID);
	/* frames of a length that no file has */
	frame_expect_check(&layout, &store.view, large, sizeof(large), &r);
	assert_int_equal(r.verdict, FRAME_DAMAGED_HEADER);
	/* rules */
	layout.match.count = 1;
	layout.match.rule[0].fields = FRAME_MATCH_ETHERTYPE;
	layout.match.rule[0].ethertype = (uint16_t)(~(bytes[1][12] << 8 | bytes[1][13]));
	r = check(bytes[1], lens[1]);
	assert_int_equal(r.verdict, FRAME_FILTERED);
	assert_int_equal(r.header_ok | r.payload_bytes, 0);
	layout.match.count = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_frames),
		cmocka_unit_test(test_padding),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_odd_stores),
	};

	return cmocka_run_group_tests_name("expect", tests, scene_create, scene_destroy);
}
