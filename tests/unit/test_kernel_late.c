/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CPU backend's stale-read detector: bytes that come late are told from damage, by a clock of the
 * test's, with which they come.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel_scene_more.h"

static struct kernel_device *device;

static void *host_alloc(size_t bytes)
{
	void *memory = aligned_alloc(128, (bytes + 127) & ~(size_t)127);

	if (memory)
		memset(memory, 0, (bytes + 127) & ~(size_t)127);
	return memory;
}

static const struct scene_memory host_memory = { host_alloc, free };

/* ---- the test's clock: the worker asks for the time only where it waits for late bytes ---- */

#define LATE_BYTES_MAX 2048u

static struct {
	uint32_t on;	/* atomic: other threads ask for the true time */
	uint32_t asked; /* how often, since it is on */
	uint64_t ns, step_ns;
	uint32_t late_at; /* at which question the late bytes come; 0: never */
	uint8_t *late_to;
	uint8_t late[LATE_BYTES_MAX];
	uint32_t late_bytes;
} fake;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	if (!__atomic_load_n(&fake.on, __ATOMIC_ACQUIRE))
		return (int)syscall(SYS_clock_gettime, clock, now);
	fake.ns += fake.step_ns;
	if (++fake.asked == fake.late_at)
		memcpy(fake.late_to, fake.late, fake.late_bytes);
	now->tv_sec = (time_t)(fake.ns / 1000000000u);
	now->tv_nsec = (long)(fake.ns % 1000000000u);
	return 0;
}

#define FRAMES 5u
#define LATE 2u /* frame that comes late */
#define SEQUENCE 40u

struct late {
	struct scene scene; /* only its sizes */
	struct scene_ring ring;
	struct kernel_job job;
	uint8_t *frames, *heads;
	uint32_t *generation, stop, len, head_len;
	uint8_t right[FRAMES][LATE_BYTES_MAX];
	struct scene_result result;
};

static uint8_t *late_rest(struct late *late, uint32_t i)
{
	const struct frame_desc desc = late->scene.burst[0].desc[i];

	return late->frames + ((size_t)desc.slot << SCENE_SLOT_SHIFT) + desc.offset;
}

/* Frames with numbers from SEQUENCE on, all right, in slots of generation `generation`. */
static struct late *late_make(uint32_t len, uint32_t head_len, uint32_t offset, uint32_t generation)
{
	const struct pattern_config pattern_config = { .kind = PATTERN_PRBS31, .invert = -1 };
	const struct frame_config config = { .format = FRAME_ETHERNET };
	struct late *late = calloc(1, sizeof(*late));
	struct scene_burst *burst = &late->scene.burst[0];

	late->len = len;
	late->head_len = head_len;
	late->frames = host_alloc(SCENE_BYTES);
	late->heads = host_alloc(SCENE_HEADS_BYTES);
	late->generation = host_alloc(SCENE_SLOTS * sizeof(*late->generation));
	assert_int_equal(frame_layout_init(&late->job.layout, &config), 0);
	assert_int_equal(pattern_init(&late->job.pattern, &pattern_config), 0);
	late->scene.ring_bursts = 4;
	late->scene.ring_descs = BURST_FRAMES_MAX;
	late->scene.heads = head_len ? late->heads : NULL;
	scene_ring_create(&late->ring, &late->scene, &host_memory, late->frames, &late->stop,
			  KERNEL_CHECK);
	late->ring.view.heads = late->heads;
	late->ring.view.generation = late->generation;
	late->ring.view.stale_us = SCENE_STALE_US;
	late->job.rings = &late->ring.view;
	late->job.ring_count = 1;
	burst->count = FRAMES;
	for (uint32_t i = 0; i < FRAMES; i++) {
		const struct frame_header header = {
			.sequence = SEQUENCE + i,
			.position = 1000 + i * frame_payload_bytes(&late->job.layout, len),
			.stream = 3,
			.payload_bytes = (uint16_t)frame_payload_bytes(&late->job.layout, len),
			.pattern = PATTERN_PRBS31,
			.version = FRAME_VERSION,
		};

		frame_write(&late->job.layout, &late->job.pattern, late->right[i], len, &header);
		burst->desc[i] =
			(struct frame_desc){ 10 + i, (uint16_t)(len - head_len), (uint16_t)offset };
		burst->head[i] = (struct frame_desc){ i, (uint16_t)head_len, 64 };
		memcpy(late->heads + ((size_t)i << SCENE_HEAD_SHIFT) + 64, late->right[i],
		       head_len);
		memcpy(late_rest(late, i), late->right[i] + head_len, len - head_len);
		late->generation[10 + i] = generation;
	}
	memset(&fake, 0, sizeof(fake));
	fake.step_ns = 5000;
	return late;
}

/* The rest of frame LATE is what the slot's last user left: poison at its edges. */
static void late_withhold(struct late *late)
{
	const struct frame_desc desc = late->scene.burst[0].desc[LATE];
	uint8_t *rest = late_rest(late, LATE);
	size_t first;
	uint32_t words = scene_words(desc, &first);

	memcpy(fake.late, rest, desc.len);
	fake.late_to = rest;
	fake.late_bytes = desc.len;
	memset(rest, late->generation[desc.slot] ? 0xee : STALE_FILL, desc.len);
	for (uint32_t w = 0; w < words; w++)
		if (scene_word_is_edge(w, words))
			scene_poison_word(late->frames, first + w, late->generation[desc.slot]);
}

/* Publishes the burst to one worker under the test's clock, and collects it. */
static void late_play(struct late *late)
{
	const time_t until = time(NULL) + SCENE_HANG_SECONDS;
	struct kernel_workers *workers;

	assert_true(scene_ring_publish(&late->ring, &late->scene.burst[0]));
	__atomic_store_n(&fake.on, 1, __ATOMIC_RELEASE);
	assert_int_equal(kernel_host_ops.start(device, &late->job, &workers), 0);
	while (!scene_ring_collect(&late->ring, &late->scene.burst[0], &late->result)) {
		assert_true(time(NULL) < until);
		nap();
	}
	__atomic_store_n(&fake.on, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&late->stop, 1, __ATOMIC_RELAXED);
	assert_int_equal(kernel_host_ops.join(workers, SCENE_HANG_SECONDS * 1000), 0);
}

static void late_free(struct late *late)
{
	scene_ring_free(&late->ring, &host_memory);
	pattern_free(&late->job.pattern);
	free(late->frames);
	free(late->heads);
	free(late->generation);
	free(late);
}

/* Valid frames before and after LATE, which is a record of its own with this verdict. */
static const struct frame_record *late_record(const struct late *late, enum frame_verdict verdict)
{
	const struct frame_record *record = late->result.record;

	assert_int_equal(late->result.records, 3);
	assert_int_equal(record[0].verdict, FRAME_VALID);
	assert_int_equal(record[0].count, LATE);
	assert_int_equal(record[0].frame_bytes, LATE * late->len);
	assert_int_equal(record[1].verdict, verdict);
	assert_int_equal(record[1].count, 1);
	assert_int_equal(record[1].frame_bytes, late->len);
	assert_int_equal(record[2].verdict, FRAME_VALID);
	assert_int_equal(record[2].sequence, SEQUENCE + LATE + 1);
	assert_int_equal(record[2].count, FRAMES - LATE - 1);
	return &record[1];
}

static void assert_stale(const struct late *late, uint32_t offset, uint8_t got)
{
	const struct frame_record *record = late_record(late, FRAME_DAMAGED_STALE);

	assert_int_equal(record->sequence, SEQUENCE + LATE);
	assert_int_equal(record->stream, 3);
	assert_int_equal(record->header_ok, 1);
	assert_int_equal(record->bytes, frame_payload_bytes(&late->job.layout, late->len));
	assert_int_equal(record->wrong_bits, 0);
	assert_int_equal(record->offset, offset);
	assert_int_equal(record->expected, late->right[LATE][offset]);
	assert_int_equal(record->got, got);
}

#define QUESTIONS (SCENE_STALE_US / 5 + 1) /* to the clock, until time is up */

static uint32_t late_lead(const struct late *late)
{
	return late->head_len + (8 - late->scene.burst[0].desc[LATE].offset % 8) % 8;
}

static uint8_t poison_byte(const struct late *late, uint32_t offset)
{
	const uint32_t slot = late->scene.burst[0].desc[LATE].slot;
	const uint32_t at = late->scene.burst[0].desc[LATE].offset + offset - late->head_len;

	return (uint8_t)(stale_word(slot, late->generation[slot], at / 8) >> (8 * (at % 8)));
}

/* The rest of frame LATE comes with question `late_at`: it is stale, its neighbours valid. */
static void late_case(uint32_t len, uint32_t head_len, uint32_t offset, uint32_t generation,
		      uint32_t late_at)
{
	struct late *late = late_make(len, head_len, offset, generation);
	uint32_t first = late_lead(late);
	uint8_t got;

	late_withhold(late);
	while (late->right[LATE][first] == poison_byte(late, first))
		first++;
	got = poison_byte(late, first);
	fake.late_at = late_at;
	late_play(late);
	assert_stale(late, first, got);
	assert_true(fake.asked <= QUESTIONS);
	for (uint32_t i = 0; i < FRAMES; i++)
		assert_int_equal(late->generation[10 + i], generation + 1);
	late_free(late);
}

static void test_late_bytes_are_stale(void **state)
{
	late_case(1514, 0, 128, 7, 3);
	late_case(1514, 0, 131, 7, 1);
	late_case(1514, 64, 128, 7, 3);
	late_case(1514, 128, 5, 1, 3);
	late_case(200, 32, 128, UINT32_MAX, 3);
	late_case(1514, 0, 128, 0, 3); /* before any poison: the memory's first content */
	late_case(1514, 64, 7, 0, 3);
	late_case(100, 0, 128, 9, 2); /* the edges meet */
	late_case(60, 0, 130, 9, 2);
	late_case(300, 0, 128, 2, QUESTIONS); /* at the last moment */
}

/* It never comes: the outcome is the first, after as long as said. */
static void test_bytes_that_never_come_are_not_stale(void **state)
{
	struct late *late = late_make(1514, 64, 128, 7);
	const struct frame_record *record;

	late_withhold(late);
	late_play(late);
	record = late_record(late, FRAME_DAMAGED_PAYLOAD);
	assert_int_equal(record->sequence, SEQUENCE + LATE);
	assert_true(record->wrong_bits > 1000);
	assert_int_equal(fake.asked, QUESTIONS);
	late_free(late);
}

/* Not even the header: an unreadable frame, after as long as said. */
static void assert_absent(const struct late *late)
{
	const struct frame_record *record = late_record(late, FRAME_DAMAGED_STALE);

	assert_int_equal(record->header_ok, 0);
	assert_int_equal(record->sequence, 0);
	assert_int_equal(record->stream, 0);
	assert_int_equal(record->bytes, 0);
	assert_int_equal(record->wrong_bits, 0);
	assert_int_equal(record->offset, 0);
	assert_int_equal(record->expected, record->got);
	assert_int_equal(fake.asked, QUESTIONS);
}

static void absent_case(uint32_t len, uint32_t offset, uint32_t generation)
{
	struct late *late = late_make(len, 0, offset, generation);

	late_withhold(late);
	late_play(late);
	assert_absent(late);
	assert_int_equal(late->generation[10 + LATE], generation + 1);
	late_free(late);
}

static void test_frames_that_never_come_are_stale(void **state)
{
	absent_case(1514, 128, 7);
	absent_case(1514, 133, 1);
	absent_case(60, 130, UINT32_MAX);
	absent_case(1514, 128, 0);
	absent_case(100, 131, 0);
}

/* The slot's frame before was longer, so that its end was poisoned elsewhere. */
static void test_frames_of_another_length_that_never_come(void **state)
{
	struct late *late = late_make(300, 0, 128, 7);

	late_withhold(late);
	memset(late_rest(late, LATE) + 64, 0xee, 300 - 64);
	late_play(late);
	assert_absent(late);
	late_free(late);
}

/* Somebody else's frame is filtered: one of which all comes late, or some that says what it is is
 * there. */
static void test_others_frames_are_not_absent(void **state)
{
	for (uint32_t late_at = 0; late_at <= 3; late_at += 3) {
		for (uint32_t generation = 0; generation <= 7; generation += 7) {
			struct late *late = late_make(1514, 0, 128, generation);
			uint8_t *frame = late_rest(late, LATE);

			frame[12] ^= 1;
			late_withhold(late);
			if (late_at == 0)
				memcpy(frame + 8, fake.late + 8, 56);
			fake.late_at = late_at;
			late_play(late);
			late_record(late, FRAME_FILTERED);
			assert_int_equal(fake.asked, QUESTIONS);
			late_free(late);
		}
	}
}

/* The frames of a burst share the time. */
static void test_a_burst_waits_once(void **state)
{
	struct late *late = late_make(1514, 64, 128, 7);

	for (uint32_t i = 0; i < FRAMES; i++)
		scene_poison_word(late->frames, ((10 + i) << (SCENE_SLOT_SHIFT - 3)) + 16, 7);
	late_play(late);
	assert_int_equal(late->result.records, FRAMES);
	for (uint32_t i = 0; i < FRAMES; i++)
		assert_int_equal(late->result.record[i].verdict, FRAME_DAMAGED_PAYLOAD);
	assert_int_equal(fake.asked, QUESTIONS + FRAMES - 1);
	late_free(late);
}

/* The last word comes late. `alike`: its first byte is that of the poison. */
static void one_edge(bool alike)
{
	struct late *late = late_make(1514, 0, 128, 7);
	const uint32_t at = 1504; /* the last whole word */
	uint32_t *generation = &late->generation[10 + LATE];
	uint8_t *frame = late_rest(late, LATE);
	uint32_t first = at;
	uint8_t got;

	fake.late_to = frame;
	fake.late_bytes = 1514;
	fake.late_at = 2;
	memcpy(fake.late, frame, 1514);
	memset(frame + 700, 0xee, 100);
	while (alike != (poison_byte(late, at) == late->right[LATE][at]))
		++*generation;
	scene_poison_word(late->frames, (size_t)(frame - late->frames + at) / 8, *generation);
	while (late->right[LATE][first] == frame[first])
		first++;
	assert_true(first < at + 8);
	assert_int_equal(first > at, alike);
	got = frame[first];
	late_play(late);
	assert_stale(late, first, got);
	late_free(late);
}

/* One edge is enough; its first byte that is another is named. */
static void test_one_edge_is_enough(void **state)
{
	one_edge(false);
	one_edge(true);
}

/* Wrong bytes that are no poison: nobody waits. */
static void test_damage_is_not_waited_for(void **state)
{
	struct late *late = late_make(1514, 0, 128, 7);
	const struct frame_record *record;

	late_rest(late, LATE)[800] ^= 0x10;
	late_play(late);
	record = late_record(late, FRAME_DAMAGED_PAYLOAD);
	assert_int_equal(record->wrong_bits, 1);
	assert_int_equal(record->offset, 800);
	assert_int_equal(fake.asked, 0);
	late_free(late);

	/* another generation's poison, and another slot's */
	late = late_make(1514, 64, 128, 7);
	scene_poison_word(late->frames, ((10 + LATE) << (SCENE_SLOT_SHIFT - 3)) + 16, 6);
	memcpy(late_rest(late, LATE) + 8, &(uint64_t){ stale_word(11 + LATE, 7, 17) }, 8);
	late_play(late);
	late_record(late, FRAME_DAMAGED_PAYLOAD);
	assert_int_equal(fake.asked, 0);
	late_free(late);

	/* this generation's, but in the middle */
	late = late_make(1514, 64, 128, 7);
	scene_poison_word(late->frames, ((10 + LATE) << (SCENE_SLOT_SHIFT - 3)) + 24, 7);
	late_play(late);
	late_record(late, FRAME_DAMAGED_PAYLOAD);
	assert_int_equal(fake.asked, 0);
	late_free(late);
}

/* What memory holds at first is what frames may hold too: one word of it says nothing. */
static void test_first_fill_needs_two_words(void **state)
{
	for (uint32_t words = 1; words <= 2; words++) {
		struct late *late = late_make(1514, 64, 128, 0);

		memset(late_rest(late, LATE) + 8, 0x55, 8);
		if (words == 2)
			memset(late_rest(late, LATE) + 1440, 0x55, 8);
		late_play(late);
		late_record(late, FRAME_DAMAGED_PAYLOAD);
		assert_int_equal(fake.asked, words == 2 ? QUESTIONS : 0);
		late_free(late);
	}
}

/* No two words have the same poison, and it is never what was there at first. */
static void test_poison_names_its_word(void **state)
{
	const uint64_t fill = 0x5555555555555555u;
	uint64_t seen[3 * 3 * 3];
	uint32_t count = 0;

	assert_int_equal(stale_word(0, 0, 0), fill);
	assert_int_equal(stale_word(9, 0, 70), fill);
	for (uint32_t slot = 0; slot < 3; slot++)
		for (uint32_t generation = 1; generation < 4; generation++)
			for (uint32_t index = 0; index < 3; index++)
				seen[count++] = stale_word(slot, generation, index);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(seen[i] != fill);
		for (uint32_t j = 0; j < i; j++)
			assert_true(seen[i] != seen[j]);
	}
}

/* A frame that did not fit cannot become right. */
static void test_cut_frames_are_not_waited_for(void **state)
{
	struct late *late = late_make(1514, 64, 128, 7);

	late_withhold(late);
	late->scene.burst[0].head[LATE].offset |= FRAME_DESC_CUT;
	late_play(late);
	late_record(late, FRAME_DAMAGED_LENGTH);
	assert_int_equal(fake.asked, 0);
	assert_int_equal(late->generation[10 + LATE], 8);
	late_free(late);
}

/* An end-of-stream frame that comes late ends the stream. */
static void test_late_end_of_stream(void **state)
{
	struct late *late = late_make(300, 0, 128, 7);
	const struct frame_header end = {
		.sequence = 77,
		.position = 1,
		.stream = 3,
		.pattern = FRAME_PATTERN_END,
	};
	const struct frame_record *record;

	frame_write(&late->job.layout, &late->job.pattern, late_rest(late, LATE), 300, &end);
	late_withhold(late);
	fake.late_at = 4;
	late_play(late);
	record = late_record(late, FRAME_END);
	assert_int_equal(record->sequence, 77);
	assert_int_equal(fake.asked, 4);
	late_free(late);
}

/* A frame that is all in host memory has no slot that could be poisoned. */
static void test_frames_without_a_rest(void **state)
{
	struct late *late = late_make(100, 100, 128, 7);

	late->heads[((size_t)LATE << SCENE_HEAD_SHIFT) + 64 + 90] ^= 1;
	late_play(late);
	late_record(late, FRAME_DAMAGED_PAYLOAD);
	for (uint32_t i = 0; i < FRAMES; i++)
		assert_int_equal(late->generation[10 + i], 7);
	assert_int_equal(fake.asked, 0);
	late_free(late);
}

static void refused(struct late *late, enum kernel_role role)
{
	struct kernel_workers *workers;

	late->job.role = role;
	assert_int_equal(kernel_host_ops.start(device, &late->job, &workers), -EINVAL);
}

static void test_bad_rings_are_refused(void **state)
{
	struct late *late = late_make(100, 64, 128, 7);
	struct burst_ring_view view = late->ring.view;

	refused(late, KERNEL_WRITE);
	late->ring.view.head_desc = NULL;
	refused(late, KERNEL_WRITE); /* the detector */
	late->ring.view = view;
	late->ring.view.heads += 8;
	refused(late, KERNEL_CHECK);
	late->ring.view = view;
	late->ring.view.heads_bytes -= 8;
	refused(late, KERNEL_CHECK);
	late->ring.view = view;
	late->ring.view.head_shift = 25;
	refused(late, KERNEL_CHECK);
	late->ring.view = view;
	late->ring.view.slot_shift = 2;
	refused(late, KERNEL_CHECK);
	late->ring.view = view;
	late_free(late);
}

static int device_open(void **state)
{
	return kernel_host_ops.open(0, &device);
}

static int device_close(void **state)
{
	kernel_host_ops.close(device);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_poison_names_its_word),
		cmocka_unit_test(test_late_bytes_are_stale),
		cmocka_unit_test(test_bytes_that_never_come_are_not_stale),
		cmocka_unit_test(test_frames_that_never_come_are_stale),
		cmocka_unit_test(test_frames_of_another_length_that_never_come),
		cmocka_unit_test(test_others_frames_are_not_absent),
		cmocka_unit_test(test_a_burst_waits_once),
		cmocka_unit_test(test_one_edge_is_enough),
		cmocka_unit_test(test_damage_is_not_waited_for),
		cmocka_unit_test(test_first_fill_needs_two_words),
		cmocka_unit_test(test_cut_frames_are_not_waited_for),
		cmocka_unit_test(test_late_end_of_stream),
		cmocka_unit_test(test_frames_without_a_rest),
		cmocka_unit_test(test_bad_rings_are_refused),
	};

	return cmocka_run_group_tests(tests, device_open, device_close);
}
