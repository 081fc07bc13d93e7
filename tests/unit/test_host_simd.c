/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CPU backend's checks of a payload that is read, not written again: with all that the CPU can
 * run, against the plain definitions; and which frames it fetches meanwhile.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/host/host_fetch.h"
#include "pattern_reference.h"

#define SHORT_MAX 300u
#define LONG_MAX 9196u

static const enum pattern_kind kinds[] = {
	PATTERN_PRBS7,	      PATTERN_PRBS9,	    PATTERN_PRBS11,	  PATTERN_PRBS15,
	PATTERN_PRBS20,	      PATTERN_PRBS23,	    PATTERN_PRBS31,	  PATTERN_COUNTER8,
	PATTERN_COUNTER16_BE, PATTERN_COUNTER16_LE, PATTERN_COUNTER32_BE, PATTERN_COUNTER32_LE,
	PATTERN_COUNTER64_BE, PATTERN_COUNTER64_LE,
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Lengths beyond the short ones: around what frames of usual sizes carry. */
static const size_t long_lengths[] = { 301,  448,  511,	 512,  513,  1024, 1445, 1446,	  1447,
				       1450, 1499, 4095, 4097, 8942, 8946, 8999, LONG_MAX };
#define LONG_LENGTHS (sizeof(long_lengths) / sizeof(long_lengths[0]))

static size_t length_at(size_t k)
{
	return k <= SHORT_MAX ? k : long_lengths[k - SHORT_MAX - 1];
}
#define LENGTHS (SHORT_MAX + 1 + LONG_LENGTHS)

/* Memory between two pages that nobody can touch. */
struct fenced {
	uint8_t *map, *begin, *end;
	size_t bytes;
};

static void fenced_make(struct fenced *fenced)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t inside = (LONG_MAX + page) / page * page;

	fenced->bytes = inside + 2 * page;
	fenced->map = mmap(NULL, fenced->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(fenced->map != MAP_FAILED);
	fenced->begin = fenced->map + page;
	fenced->end = fenced->begin + inside;
	assert_int_equal(mprotect(fenced->begin, inside, PROT_READ | PROT_WRITE), 0);
}

static void fenced_free(struct fenced *fenced)
{
	assert_int_equal(munmap(fenced->map, fenced->bytes), 0);
}

/* A pattern and a place of each kind, PRBS of both signs. */
struct subject {
	struct pattern pattern;
	struct pattern_place place;
};

static void subject_make(struct subject *subject, size_t number, uint64_t position)
{
	const enum pattern_kind kind = kinds[number / 2];
	const int invert = pattern_is_prbs(kind) ? (int)(number & 1) : -1;

	pattern_make(&subject->pattern, kind, 0, invert);
	subject->place = (struct pattern_place){ .position = position, .sequence = 5, .stream = 3 };
}
#define SUBJECTS (2 * KINDS)

static bool is_right(const struct subject *subject, const uint8_t *payload, size_t bytes,
		     struct fast_cpu cpu, const struct pattern_ahead *ahead)
{
	if (pattern_is_prbs(subject->pattern.kind))
		return prbs_is_right_ahead(&subject->pattern, &subject->place, payload, bytes, cpu,
					   ahead);
	return counter_is_right(subject->pattern.kind, subject->place.position, payload, bytes, cpu,
				ahead);
}

/* Right payloads are right, up to either fence: nothing before or behind is read. What is ahead may
 * be anything, and nowhere. */
static void test_right_between_fences(void **state)
{
	static uint8_t expected[LONG_MAX];
	struct fast_cpu cpus[6];
	const size_t cpu_count = cpus_list(cpus);
	struct fenced fenced;
	struct pattern_ahead out;

	fenced_make(&fenced);
	out = ahead_of(fenced.map, 3000);
	for (size_t s = 0; s < SUBJECTS; s++) {
		struct subject subject;

		subject_make(&subject, s, random64() >> 3);
		reference_fill(&subject.pattern, &subject.place, expected, LONG_MAX);
		for (size_t k = 0; k < LENGTHS; k++) {
			const size_t n = length_at(k);

			memcpy(fenced.begin, expected, n);
			for (size_t c = 0; c < cpu_count; c++)
				assert_true(is_right(&subject, fenced.begin, n, cpus[c], NULL));
			memcpy(fenced.end - n, expected, n);
			for (size_t c = 0; c < cpu_count; c++)
				assert_true(is_right(&subject, fenced.end - n, n, cpus[c], &out));
		}
		pattern_free(&subject.pattern);
	}
	fenced_free(&fenced);
}

/* All places in a cache line, and all places of a counter where the payload may begin. */
static void test_right_at_each_alignment(void **state)
{
	static uint8_t expected[LONG_MAX];
	static _Alignas(64) uint8_t memory[64 + LONG_MAX];
	struct fast_cpu cpus[6];
	const size_t cpu_count = cpus_list(cpus);

	for (size_t s = 0; s < SUBJECTS; s++) {
		for (size_t skew = 0; skew < 64; skew++) {
			struct subject subject;

			subject_make(&subject, s, (random64() >> 3 & ~7ull) + skew % 8);
			reference_fill(&subject.pattern, &subject.place, expected, 1500);
			for (size_t n = 0; n <= 1500; n += n < SHORT_MAX ? 1 : 149) {
				memcpy(memory + skew, expected, n);
				for (size_t c = 0; c < cpu_count; c++)
					assert_true(is_right(&subject, memory + skew, n, cpus[c],
							     NULL));
			}
			pattern_free(&subject.pattern);
		}
	}
}

/* The whole answer of pattern_check_ahead() where one bit is wrong. */
static void one_bit_is_found(const struct subject *subject, const uint8_t *got, size_t bytes,
			     size_t at, uint8_t expected)
{
	struct pattern_mismatch mismatch;

	assert_int_equal(pattern_check_ahead(&subject->pattern, &subject->place, got, bytes, NULL,
					     &mismatch),
			 1);
	assert_int_equal(mismatch.wrong_bits, 1);
	assert_int_equal(mismatch.offset, at);
	assert_int_equal(mismatch.expected, expected);
	assert_int_equal(mismatch.got, got[at]);
}

/* Each bit of payloads of so many bytes: what a frame of 1500 bytes carries, and shorter ones
 * around the places where the way to check changes. */
static void test_each_wrong_bit(void **state)
{
	static const size_t lengths[] = { 1,  7,  8,  9,  10,  15,  31,	 63,  70,  71,	72,
					  73, 94, 95, 96, 127, 158, 159, 160, 202, 1446 };
	static uint8_t bytes[1446 + 13];
	uint8_t *payload = bytes + 13;
	struct fast_cpu cpus[6];
	const size_t cpu_count = cpus_list(cpus);

	for (size_t s = 0; s < SUBJECTS; s++) {
		struct subject subject;

		subject_make(&subject, s, (random64() >> 3 & ~7ull) + s % 8);
		for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
			const size_t n = lengths[l];

			reference_fill(&subject.pattern, &subject.place, payload, n);
			for (size_t bit = 0; bit < 8 * n; bit++) {
				const uint8_t right = payload[bit / 8];

				payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
				for (size_t c = 0; c < cpu_count; c++)
					assert_false(is_right(&subject, payload, n, cpus[c], NULL));
				if (n < 256 || bit % 8 == bit / 8 % 8)
					one_bit_is_found(&subject, payload, n, bit / 8, right);
				payload[bit / 8] = right;
			}
		}
		pattern_free(&subject.pattern);
	}
}

/* One wrong byte anywhere in the largest payload. */
static void test_each_wrong_byte_of_a_jumbo(void **state)
{
	static uint8_t payload[LONG_MAX];
	struct fast_cpu cpus[6];
	const size_t cpu_count = cpus_list(cpus);

	for (size_t s = 0; s < SUBJECTS; s++) {
		struct subject subject;

		subject_make(&subject, s, random64() >> 3);
		reference_fill(&subject.pattern, &subject.place, payload, LONG_MAX);
		for (size_t at = 0; at < LONG_MAX; at += 1 + random64() % 13) {
			const uint8_t right = payload[at];

			payload[at] ^= (uint8_t)(1 + random64() % 255);
			for (size_t c = 0; c < cpu_count; c++)
				assert_false(is_right(&subject, payload, LONG_MAX, cpus[c], NULL));
			payload[at] = right;
		}
		for (size_t c = 0; c < cpu_count; c++)
			assert_true(is_right(&subject, payload, LONG_MAX, cpus[c], NULL));
		pattern_free(&subject.pattern);
	}
}

/* What follows its own rule from a beginning that is not the right one: the other sign, and the
 * same sequence elsewhere. */
static void test_wrong_throughout(void **state)
{
	static uint8_t expected[LONG_MAX], got[LONG_MAX];
	struct fast_cpu cpus[6];
	const size_t cpu_count = cpus_list(cpus);

	for (size_t s = 0; s < SUBJECTS; s++) {
		const bool sign = pattern_is_prbs(kinds[s / 2]) && s % 2 == 0;
		struct pattern_mismatch mismatch;
		struct subject subject, other;
		uint32_t bits = 0, first = LONG_MAX;

		subject_make(&subject, s, 4711);
		subject_make(&other, sign ? s ^ 1 : s, 4711 + (sign ? 0 : s % 2 ? 1 : 8));
		reference_fill(&subject.pattern, &subject.place, expected, LONG_MAX);
		reference_fill(&other.pattern, &other.place, got, LONG_MAX);
		for (uint32_t i = LONG_MAX; i--;) {
			bits += (uint32_t)__builtin_popcount(expected[i] ^ got[i]);
			if (expected[i] != got[i])
				first = i;
		}
		assert_true(bits > 0);
		for (size_t c = 0; c < cpu_count; c++)
			assert_false(is_right(&subject, got, LONG_MAX, cpus[c], NULL));
		assert_int_equal(pattern_check_ahead(&subject.pattern, &subject.place, got,
						     LONG_MAX, NULL, &mismatch),
				 bits);
		assert_int_equal(mismatch.offset, first);
		assert_int_equal(mismatch.expected, expected[first]);
		assert_int_equal(mismatch.got, got[first]);
		pattern_free(&subject.pattern);
		pattern_free(&other.pattern);
	}
}

/* All bytes from the nth on follow from those before, but a bit before them is wrong: what is seen
 * of it there has to be seen in itself. */
static void test_wrong_beginning_carried_on(void **state)
{
	static uint8_t payload[1446];
	struct fast_cpu cpus[6];
	const size_t cpu_count = cpus_list(cpus);

	for (size_t s = 0; s < 2 * PRBS_COUNT; s++) {
		struct subject subject;
		size_t far, near;

		subject_make(&subject, s, random64() >> 3);
		far = subject.pattern.degree;
		near = subject.pattern.tap;
		for (size_t bit = 0; bit < 8 * far; bit++) {
			reference_fill(&subject.pattern, &subject.place, payload, sizeof(payload));
			payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
			for (size_t i = far; i < sizeof(payload); i++)
				payload[i] = (uint8_t)(payload[i - far] ^ payload[i - near] ^
						       (0u - subject.pattern.invert));
			for (size_t c = 0; c < cpu_count; c++)
				assert_false(is_right(&subject, payload, sizeof(payload), cpus[c],
						      NULL));
		}
		pattern_free(&subject.pattern);
	}
}

/* ---- lines ahead ---- */

static void test_lines_ahead(void **state)
{
	static _Alignas(64) uint8_t memory[4096];

	for (size_t skew = 0; skew < 64; skew++) {
		for (size_t n = 1; n < 300; n++) {
			const size_t lines = (skew + n - 1) / 64 + 1;
			struct pattern_ahead ahead = ahead_of(memory + skew, n);

			assert_ptr_equal(ahead.at, memory);
			assert_ptr_equal(ahead.last, memory + 64 * lines - 1);
			/* each once, and then the last one for ever */
			for (size_t i = 0; i < lines; i++) {
				assert_ptr_equal(ahead.at, memory + 64 * i);
				ahead_line(&ahead);
			}
			assert_ptr_equal(ahead.at, ahead.last);
		}
	}
	assert_ptr_equal(ahead_begin(NULL, memory + 5).at, memory + 5);
	assert_ptr_equal(ahead_begin(NULL, memory + 5).last, memory + 5);
}

/* ---- frames ahead ---- */

#define BURSTS 8u
#define FETCH_SLOT_SHIFT 14u

struct fetch_scene {
	struct burst_ring_view view;
	struct frame_desc desc[2048];
	struct burst_ready ready[BURSTS];
};

static void fetch_scene_make(struct fetch_scene *scene)
{
	memset(scene, 0, sizeof(*scene));
	scene->view.desc = scene->desc;
	scene->view.ready = scene->ready;
	/* nothing is read there */
	scene->view.frames = (uint8_t *)(uintptr_t)0x100000000000ull;
	scene->view.frames_bytes = 1ull << 32;
	scene->view.desc_mask = 2047;
	scene->view.burst_mask = BURSTS - 1;
	scene->view.slot_shift = FETCH_SLOT_SHIFT;
}

static uint64_t fetch_scene_publish(struct fetch_scene *scene, uint64_t burst, uint32_t first,
				    uint32_t count, uint32_t len)
{
	const uint64_t word = burst_word(burst, 3, count, first);

	for (uint32_t i = 0; i < count; i++)
		scene->desc[(first + i) & 2047] =
			(struct frame_desc){ .slot = first + i, .len = (uint16_t)len };
	scene->ready[burst % BURSTS].word = word;
	return word;
}

/* The number of the frame that is fetched during another. */
static uint32_t frame_of(const struct fetch_scene *scene, const struct pattern_ahead *ahead)
{
	return (uint32_t)((uint64_t)(ahead->at - scene->view.frames) >> FETCH_SLOT_SHIFT);
}

/* Works through a burst; returns the last frame that was fetched, UINT32_MAX for none. */
static uint32_t fetch_play(struct fetch_scene *scene, uint64_t burst, uint64_t step, uint32_t len)
{
	const uint64_t ready = scene->ready[burst % BURSTS].word;
	const uint32_t first = burst_word_first(ready), count = burst_frames(ready);
	uint32_t latest = UINT32_MAX;
	struct fetch fetch;

	fetch_begin(&fetch, burst, step, ready);
	for (uint32_t i = 0; i < count; i++) {
		const struct pattern_ahead *ahead;

		if (i)
			fetch_arrived(&fetch, len);
		ahead = fetch_more(&scene->view, &fetch);
		assert_int_equal(fetch.bytes, fetch.frames * len);
		assert_true(fetch.frames <= FETCH_FRAMES);
		assert_true(fetch.bytes < FETCH_BYTES + len);
		if (!ahead)
			continue;
		assert_true(latest == UINT32_MAX || frame_of(scene, ahead) > latest);
		latest = frame_of(scene, ahead);
		assert_true(latest > first + i);
		assert_int_equal(ahead->last + 1 - ahead->at, (len + 63) / 64 * 64);
	}
	return latest;
}

static void test_frames_ahead(void **state)
{
	static const uint32_t lens[] = { 60, 252, 1496, 8996 };
	static struct fetch_scene scene;

	for (size_t l = 0; l < 4; l++) {
		const uint32_t len = lens[l], by_bytes = (FETCH_BYTES + len - 1) / len;
		const uint32_t beyond = by_bytes < FETCH_FRAMES ? by_bytes : FETCH_FRAMES;

		fetch_scene_make(&scene);
		fetch_scene_publish(&scene, 0, 100, 64, len);
		/* alone: up to its last frame; a single frame: nothing */
		assert_int_equal(fetch_play(&scene, 0, 1, len), 163);
		fetch_scene_publish(&scene, 2, 500, 1, len);
		assert_int_equal(fetch_play(&scene, 2, 1, len), UINT32_MAX);
		/* the worker's next burst goes on where it lies; another worker's is not looked at
		 */
		fetch_scene_publish(&scene, 1, 300, 64, len);
		assert_int_equal(fetch_play(&scene, 0, 1, len), 300 + beyond - 1);
		assert_int_equal(fetch_play(&scene, 0, 3, len), 163);
		/* not of the generation before, and not beyond the next */
		fetch_scene_publish(&scene, 9, 700, 64, len);
		assert_int_equal(fetch_play(&scene, 9, 1, len), 763);
		fetch_scene_publish(&scene, 10, 900, 1, len);
		fetch_scene_publish(&scene, 11, 1100, 64, len);
		assert_int_equal(fetch_play(&scene, 9, 1, len), 900);
	}
}

/* Descriptors without bytes, and such as reach past the region, are left out. */
static void test_frames_ahead_out_of_reach(void **state)
{
	static struct fetch_scene scene;
	struct fetch fetch;
	uint64_t ready;

	fetch_scene_make(&scene);
	ready = fetch_scene_publish(&scene, 0, 0, 4, 1000);
	scene.desc[1].slot = UINT32_MAX;
	scene.desc[3].len = 0;
	fetch_begin(&fetch, 0, 1, ready);
	assert_int_equal(frame_of(&scene, fetch_more(&scene.view, &fetch)), 2);
	fetch_arrived(&fetch, 1000);
	assert_null(fetch_more(&scene.view, &fetch));
	fetch_arrived(&fetch, 1000);
	assert_null(fetch_more(&scene.view, &fetch));
	fetch_arrived(&fetch, 0);
	assert_int_equal(fetch.frames, 0);
	assert_int_equal(fetch.bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right_between_fences),
		cmocka_unit_test(test_right_at_each_alignment),
		cmocka_unit_test(test_each_wrong_bit),
		cmocka_unit_test(test_each_wrong_byte_of_a_jumbo),
		cmocka_unit_test(test_wrong_throughout),
		cmocka_unit_test(test_wrong_beginning_carried_on),
		cmocka_unit_test(test_lines_ahead),
		cmocka_unit_test(test_frames_ahead),
		cmocka_unit_test(test_frames_ahead_out_of_reach),
	};

	return cmocka_run_group_tests_name("host_simd", tests, NULL, NULL);
}
