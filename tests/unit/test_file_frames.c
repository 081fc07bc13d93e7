/* SPDX-License-Identifier: BSD-3-Clause */
/* A file's frames in memory: all of them, through a tiny window, in loops; and the table that finds
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <time.h>

#include "base/eal.h"
#include "gpu/gpu_open.h"
#include "replay/file_frames.h"
#include "nap.h"
#include "number_set.h"
#include "pcap_bytes.h"

#define FRAMES 5000u
#define HANG_SECONDS 240

static int16_t gpu;
static struct gdrcap_error error;
static char path[64];

static int gpu_set_up(void **state)
{
	const struct eal_needs needs = { .memory_bytes = (size_t)64 << 20 };

	if (eal_start(&needs, NULL) < 0)
		return -1;
	gpu = (int16_t)gpu_open_host(false, NULL);
	return gpu < 0 ? -1 : 0;
}

/* Long frames in a row, so that a window's room ends before its entries do. */
static uint32_t test_len(uint64_t number)
{
	return 14 + (uint32_t)(mixed(number) % (number % 200 < 30 ? 9199 : 300));
}

/* Times step back at each hundredth frame; else they go on by number * 10 ns. */
static uint64_t test_time(uint64_t number)
{
	uint64_t time = 5000000000u;

	for (uint64_t i = 1; i <= number; i++)
		time += i % 100 ? i * 10 : (uint64_t)-7;
	return time;
}

static uint64_t test_since(uint64_t number)
{
	uint64_t time = 0, since = 0;

	for (uint64_t i = 1; i <= number; i++) {
		time += i % 100 ? i * 10 : (uint64_t)-7;
		since = time > since ? time : since;
	}
	return since;
}

static void file_make(uint32_t frames)
{
	struct bytes bytes = { 0 };
	uint64_t time = test_time(0);

	pcap_head(&bytes, true, 262144, 1);
	for (uint32_t i = 0; i < frames; i++) {
		if (i)
			time += i % 100 ? i * 10 : (uint64_t)-7;
		pcap_frame(&bytes, (uint32_t)(time / 1000000000), (uint32_t)(time % 1000000000), i,
			   test_len(i));
	}
	bytes_save(&bytes, path);
	bytes_free(&bytes);
}

static int create(struct file_frames **frames, size_t memory_max, bool expect, uint64_t loops)
{
	struct file_scan scan;
	const struct file_frames_config config = {
		.path = path,
		.scan = &scan,
		.gpu = gpu,
		.memory_max = memory_max,
		.expect = expect,
		.loops = loops,
	};
	int ret = file_frames_scan(path, NULL, &scan, &error);

	return ret < 0 ? ret : file_frames_create(frames, &config, &error);
}

static void is_frame(const struct file_frames *frames, uint32_t index, uint64_t number)
{
	const struct store_frame *frame = &frames->view.frames[index];
	const uint8_t *data = frames->view.data + frame->at;
	const uint32_t room = store_pieces(frame->len) * STORE_PIECE_BYTES;

	assert_int_equal(frame->len, test_len(number));
	assert_int_equal(frame->at % STORE_PIECE_BYTES, 0);
	assert_true(frame->at + room <= frames->view.data_bytes);
	for (uint32_t i = 0; i < frame->len; i++)
		if (data[i] != frame_byte(number, i))
			fail();
	for (uint32_t i = frame->len; i < room; i++)
		assert_int_equal(data[i], 0);
	assert_true(room >= STORE_PAD_BYTES);
}

/* ---- scanning ---- */

static void scan_counts(void **state)
{
	struct file_scan scan;
	uint64_t bytes = 0, room = 0;

	file_make(FRAMES);
	assert_int_equal(file_frames_scan(path, NULL, &scan, &error), 0);
	unlink(path);
	for (uint32_t i = 0; i < FRAMES; i++) {
		bytes += test_len(i);
		room += (test_len(i) < 64 ? 64 : (test_len(i) + 15) / 16 * 16);
	}
	assert_int_equal(scan.frames, FRAMES);
	assert_true(scan.bytes == bytes && scan.data_bytes == room);
	assert_true(scan.first_ns == test_time(0));
	assert_true(scan.last_ns == test_time(0) + test_since(FRAMES - 1));
	assert_int_equal(scan.steps_back, (FRAMES - 1) / 100);
	assert_int_equal(scan.gap_max_ns, 10 * (FRAMES - 1));
	assert_in_range(scan.len_min, 14, 20);
	assert_in_range(scan.len_max, 5000, 9212);
}

/* Times in seconds, and when the frames are due. */
static void assert_due(const uint32_t *times, const uint32_t *due, uint32_t count,
		       uint64_t steps_back, uint64_t gap)
{
	struct bytes bytes = { 0 };
	struct file_frames *frames;
	struct file_scan scan;

	pcap_head(&bytes, true, 262144, 1);
	for (uint32_t i = 0; i < count; i++)
		pcap_frame(&bytes, times[i], 0, i, 100);
	bytes_save(&bytes, path);
	assert_int_equal(file_frames_scan(path, NULL, &scan, &error), 0);
	assert_int_equal(scan.steps_back, steps_back);
	assert_int_equal(scan.gap_max_ns, gap * 1000000000);
	assert_int_equal(scan.last_ns - scan.first_ns, due[count - 1] * UINT64_C(1000000000));
	assert_int_equal(create(&frames, SIZE_MAX, false, 0), 0);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(frames->time_ns[i], due[i] * UINT64_C(1000000000));
	file_frames_destroy(frames);
	unlink(path);
	bytes_free(&bytes);
}

/* A frame out of its time moves no other. */
static void times_out_of_order(void **state)
{
	static const uint32_t swapped[] = { 7000, 7002, 7001, 7003, 7005, 7004, 7006 };
	static const uint32_t swapped_due[] = { 0, 2, 2, 3, 5, 5, 6 };
	static const uint32_t old[] = { 7000, 7001, 3400, 7002, 7003 };
	static const uint32_t old_due[] = { 0, 1, 1, 2, 3 };
	static const uint32_t late[] = { 7000, 10600, 7001, 7002, 10601 };
	static const uint32_t late_due[] = { 0, 3600, 3600, 3600, 3601 };

	assert_due(swapped, swapped_due, 7, 2, 2);
	assert_due(old, old_due, 5, 1, 1);
	assert_due(late, late_due, 5, 1, 3600);
}

static void scan_refuses(void **state)
{
	struct bytes bytes = { 0 };
	struct file_scan scan;

	assert_int_equal(file_frames_scan("/nowhere/x", NULL, &scan, &error), -ENOENT);
	pcap_head(&bytes, true, 262144, 1);
	bytes_save(&bytes, path);
	assert_int_equal(file_frames_scan(path, NULL, &scan, &error), -ENODATA);
	assert_non_null(strstr(error.text, "no frames"));
	unlink(path);
	pcap_frame(&bytes, 0, 0, 0, 100);
	bytes.count--;
	bytes_save(&bytes, path);
	assert_int_equal(file_frames_scan(path, NULL, &scan, &error), -EINVAL);
	unlink(path);
	bytes_free(&bytes);
}

/* ---- resident ---- */

static void all_in_memory(void **state)
{
	struct file_frames *frames;
	uint64_t span = test_since(FRAMES - 1);
	uint32_t index;

	file_make(FRAMES);
	assert_int_equal(create(&frames, SIZE_MAX, false, 0), 0);
	unlink(path);
	assert_false(frames->streamed);
	assert_int_equal(frames->view.resident, 1);
	assert_int_equal(frames->count, FRAMES);
	assert_int_equal(frames->view.count, FRAMES);
	assert_null(frames->view.buckets);
	span += (span + (FRAMES - 1) / 2) / (FRAMES - 1);
	assert_true(frames->span_ns == span);
	for (uint32_t i = 0; i < FRAMES; i++) {
		is_frame(frames, i, i);
		assert_true(frames->time_ns[i] == test_since(i));
	}
	assert_int_equal(file_frames_start(frames, NULL, &error), 0);
	assert_int_equal(file_frames_ready(frames, 0, &index), FRAMES);
	assert_int_equal(index, 0);
	assert_int_equal(file_frames_ready(frames, 7 * (uint64_t)FRAMES + 4990, &index), 10);
	assert_int_equal(index, 4990);
	file_frames_destroy(frames);
	file_frames_destroy(NULL);
}

static void one_frame(void **state)
{
	struct file_frames *frames;

	file_make(1);
	assert_int_equal(create(&frames, SIZE_MAX, true, 0), 0);
	unlink(path);
	assert_int_equal(frames->count, 1);
	assert_int_equal(frames->span_ns, 0);
	is_frame(frames, 0, 0);
	file_frames_destroy(frames);
}

/* ---- streamed ---- */

/* Takes frames at random paces, as a tx worker does, and gives them back later. */
static void take_all(struct file_frames *frames, uint64_t total)
{
	const time_t until = time(NULL) + HANG_SECONDS;
	uint64_t taken = 0, used = 0, random = total;

	while (taken < total) {
		uint32_t index, ready = file_frames_ready(frames, taken, &index);

		assert_true(index == taken % frames->view.count);
		assert_true(ready <= frames->view.count - index);
		if (ready == 0 || random_below(&random, 3) == 0) {
			/* The window may be full: it then must be given some back. */
			used += random_below(&random, taken - used + 1);
			if (ready == 0)
				used = taken;
			atomic_store_explicit(&frames->used, used, memory_order_release);
			assert_true(time(NULL) < until);
			assert_int_equal(atomic_load(&frames->failed), 0);
			nap();
			continue;
		}
		ready = 1 + (uint32_t)random_below(&random, ready);
		for (uint32_t i = 0; i < ready; i++) {
			const uint64_t number = (taken + i) % FRAMES;

			is_frame(frames, index + i, number);
			if (number % 97 == 0)
				assert_true(frames->time_ns[index + i] == test_since(number));
		}
		/* What was not given back is still there. */
		for (uint64_t n = used; n < taken; n += 1 + (taken - used) / 3)
			is_frame(frames, (uint32_t)(n % frames->view.count), n % FRAMES);
		taken += ready;
	}
}

static void through_a_window(void **state)
{
	static const size_t memory[] = { 0, 65536, 300000 };

	for (size_t m = 0; m < sizeof(memory) / sizeof(memory[0]); m++) {
		struct file_frames *frames;
		uint32_t index;

		file_make(FRAMES);
		assert_int_equal(create(&frames, memory[m], false, 3), 0);
		unlink(path);
		assert_true(frames->streamed);
		assert_int_equal(frames->view.resident, 0);
		assert_int_equal(frames->count, FRAMES);
		assert_in_range(frames->view.count, 64, FRAMES / 2);
		assert_int_equal(file_frames_ready(frames, 0, &index), 0);
		assert_int_equal(file_frames_start(frames, NULL, &error), 0);
		take_all(frames, 3 * FRAMES);
		/* Nothing comes after the last loop, and nothing failed. */
		thread_join(&frames->thread);
		assert_int_equal(file_frames_ready(frames, 3 * FRAMES, &index), 0);
		assert_int_equal(atomic_load(&frames->failed), 0);
		file_frames_destroy(frames);
	}
}

static void for_ever_and_stopped(void **state)
{
	struct file_frames *frames;

	file_make(FRAMES);
	assert_int_equal(create(&frames, 0, false, 0), 0);
	assert_int_equal(file_frames_start(frames, NULL, &error), 0);
	take_all(frames, 5 * FRAMES + 17);
	unlink(path);
	file_frames_destroy(frames); /* ends */
}

/* The file again, with as many frames, each as long as the longest. */
static void file_rewrite(uint32_t len)
{
	struct bytes bytes = { 0 };
	FILE *file = fopen(path, "w");

	pcap_head(&bytes, true, 262144, 1);
	for (uint32_t i = 0; i < FRAMES; i++)
		pcap_frame(&bytes, 1, 1, i, len);
	assert_non_null(file);
	assert_int_equal(fwrite(bytes.at, bytes.count, 1, file), 1);
	fclose(file);
	bytes_free(&bytes);
}

static void file_append(const void *what, size_t bytes)
{
	FILE *file = fopen(path, "a");

	assert_non_null(file);
	assert_int_equal(fwrite(what, bytes, 1, file), 1);
	fclose(file);
}

static void wait_failed(struct file_frames *frames)
{
	const time_t until = time(NULL) + HANG_SECONDS;

	assert_int_equal(file_frames_start(frames, NULL, &error), 0);
	while (!atomic_load_explicit(&frames->failed, memory_order_acquire)) {
		uint64_t filled = atomic_load(&frames->filled);

		atomic_store_explicit(&frames->used, filled, memory_order_release);
		assert_true(time(NULL) < until);
		nap();
	}
	assert_non_null(strstr(frames->error.text, path));
}

/* Between the scan and the reading the file grows, shrinks, or becomes another. */
static void changed_files(void **state)
{
	for (int streamed = 0; streamed < 2; streamed++)
		for (int change = 0; change < 5; change++) {
			struct file_frames *frames = NULL;
			struct file_scan scan;
			struct bytes more = { 0 };
			const struct file_frames_config config = {
				.path = path,
				.scan = &scan,
				.gpu = gpu,
				.memory_max = streamed ? 0 : SIZE_MAX,
				.loops = 1,
			};
			int ret;

			file_make(FRAMES);
			assert_int_equal(file_frames_scan(path, NULL, &scan, &error), 0);
			if (change == 0)
				pcap_frame(&more, 1, 1, 0, 60); /* one more */
			else if (change == 1)
				pcap_frame(&more, 1, 1, 0, 9212); /* a longer one */
			else if (change == 2)
				put32(&more, 1); /* a broken one */
			if (change == 3)
				assert_int_equal(truncate(path, 300000), 0);
			else if (change == 4)
				file_rewrite(scan.len_max);
			else
				file_append(more.at, more.count);
			bytes_free(&more);
			ret = file_frames_create(&frames, &config, &error);
			if (streamed) {
				assert_int_equal(ret, 0);
				wait_failed(frames);
				assert_true(atomic_load(&frames->filled) <= FRAMES);
			} else {
				assert_true(ret < 0);
				assert_null(frames);
				assert_non_null(strstr(error.text, path));
			}
			file_frames_destroy(frames);
			unlink(path);
		}
}

/* ---- the table ---- */

static void hashes(const struct frame_store_view *view, uint32_t index, uint64_t *whole,
		   uint64_t part[STORE_PARTS])
{
	const struct store_frame *frame = &view->frames[index];
	const uint32_t pieces = store_pieces(frame->len);
	uint64_t sum[STORE_PARTS] = { 0 };

	for (uint32_t i = 0; i < pieces; i++) {
		uint32_t word[4];

		memcpy(word, view->data + frame->at + (size_t)i * 16, sizeof(word));
		sum[store_part_of(i, pieces)] += store_hash_piece(i, word);
	}
	*whole = store_hash_frame(frame->len, sum);
	for (uint32_t p = 0; p < STORE_PARTS; p++)
		part[p] = store_hash_part(p, frame->len, sum[p]);
}

static bool finds(const struct frame_store_view *view, uint64_t hash, uint32_t class_first)
{
	const struct store_bucket *bucket = store_find(view, hash);

	assert_non_null(bucket);
	return !bucket->shared && bucket->frame == class_first + 1;
}

static void half_full(const struct frame_store_view *view)
{
	uint32_t used = 0;

	assert_int_equal(view->bucket_mask & (view->bucket_mask + 1), 0);
	for (uint32_t i = 0; i <= view->bucket_mask; i++)
		used += view->buckets[i].frame != 0;
	assert_true(2 * (uint64_t)used <= (uint64_t)view->bucket_mask + 1);
}

/* A frame: `len` bytes, of which part p is filled with byte[p]. */
static void put_parts(struct bytes *bytes, uint32_t len, const char byte[STORE_PARTS])
{
	const uint32_t pieces = store_pieces(len);

	pcap_record(bytes, 1, 0, len, len);
	for (uint32_t i = 0; i < len; i++)
		put(bytes, &byte[store_part_of(i / STORE_PIECE_BYTES, pieces)], 1);
}

static void equal_frames_and_shared_parts(void **state)
{
	struct file_frames *frames;
	struct bytes bytes = { 0 };
	uint64_t whole[8], part[8][STORE_PARTS];
	const uint32_t classes[8] = { 0, 1, 0, 3, 1, 5, 6, 6 };

	pcap_head(&bytes, true, 262144, 1);
	put_parts(&bytes, 640, "abcd");	 /* 0 */
	put_parts(&bytes, 640, "abce");	 /* 1: three parts of 0 */
	put_parts(&bytes, 640, "abcd");	 /* 2: 0 */
	put_parts(&bytes, 640, "xbyz");	 /* 3: one part of them */
	put_parts(&bytes, 640, "abce");	 /* 4: 1 */
	put_parts(&bytes, 641, "abcd");	 /* 5: another length */
	put_parts(&bytes, 40, "qq\0\0"); /* 6: padded it is as ... */
	put_parts(&bytes, 60, "qq\0\0"); /* 7: ... this */
	/* Frame 6's bytes end at 40; frame 7's third and fourth part are zeros. */
	bytes_save(&bytes, path);
	bytes_free(&bytes);
	assert_int_equal(create(&frames, SIZE_MAX, true, 0), 0);
	unlink(path);
	half_full(&frames->view);
	for (uint32_t i = 0; i < 8; i++) {
		assert_int_equal(frames->view.frames[i].class_first, classes[i]);
		hashes(&frames->view, i, &whole[i], part[i]);
		assert_true(finds(&frames->view, whole[i], classes[i]));
	}
	/* What only one class has finds it, also where the class has several frames. */
	assert_true(finds(&frames->view, part[0][3], 0));
	assert_true(finds(&frames->view, part[2][3], 0));
	assert_true(finds(&frames->view, part[1][3], 1));
	assert_true(finds(&frames->view, part[3][0], 3));
	assert_true(finds(&frames->view, part[3][2], 3));
	for (uint32_t p = 0; p < STORE_PARTS; p++)
		assert_true(finds(&frames->view, part[5][p], 5));
	assert_true(finds(&frames->view, part[7][0], 6));
	/* What several have finds none. */
	for (uint32_t p = 0; p < 3; p++) {
		assert_int_equal(store_find(&frames->view, part[0][p])->shared, 1);
		assert_true(part[0][p] == part[1][p]);
	}
	assert_int_equal(store_find(&frames->view, part[3][1])->shared, 1);
	assert_null(store_find(&frames->view, 12345));
	file_frames_destroy(frames);
}

/* Two frames with one hash, made by exchanging the factors of a product: they are two classes, told
 * apart by their bytes, and the table finds neither. */
static void colliding_hashes(void **state)
{
	const uint64_t key = store_mix(1);
	const uint32_t low = (uint32_t)key, high = (uint32_t)(key >> 32);
	const uint32_t a = 0x12345678, b = 0x9abcdef0;
	const uint32_t word[2][2] = { { a - low, b - high }, { b - low, a - high } };
	uint64_t whole[2], part[2][STORE_PARTS];
	struct file_frames *frames;
	struct bytes bytes = { 0 };

	pcap_head(&bytes, true, 262144, 1);
	for (uint32_t i = 0; i < 4; i++) {
		pcap_record(&bytes, 1, 0, 64, 64);
		put32(&bytes, word[i & 1][0]);
		put32(&bytes, word[i & 1][1]);
		put_frame(&bytes, 7, 56);
	}
	bytes_save(&bytes, path);
	bytes_free(&bytes);
	assert_int_equal(create(&frames, SIZE_MAX, true, 0), 0);
	unlink(path);
	for (uint32_t i = 0; i < 2; i++)
		hashes(&frames->view, i, &whole[i], part[i]);
	assert_true(whole[0] == whole[1] && part[0][0] == part[1][0]);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(frames->view.frames[i].class_first, i & 1);
	assert_int_equal(store_find(&frames->view, whole[0])->shared, 1);
	assert_int_equal(store_find(&frames->view, part[0][0])->shared, 1);
	file_frames_destroy(frames);
}

static void every_frame_is_found(void **state)
{
	struct file_frames *frames;
	uint64_t whole, part[STORE_PARTS];

	file_make(FRAMES);
	assert_int_equal(create(&frames, SIZE_MAX, true, 0), 0);
	unlink(path);
	assert_true(frames->table.registered && frames->memory.registered);
	half_full(&frames->view);
	for (uint32_t i = 0; i < FRAMES; i++) {
		const uint32_t class_first = frames->view.frames[i].class_first;

		assert_true(class_first <= i);
		hashes(&frames->view, i, &whole, part);
		assert_true(finds(&frames->view, whole, class_first));
	}
	file_frames_destroy(frames);
}

static void expect_needs_memory(void **state)
{
	struct file_frames *frames;

	file_make(FRAMES);
	assert_int_equal(create(&frames, 100000, true, 0), -ENOMEM);
	assert_non_null(strstr(error.text, "--pcap-memory"));
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scan_counts),
		cmocka_unit_test(times_out_of_order),
		cmocka_unit_test(scan_refuses),
		cmocka_unit_test(all_in_memory),
		cmocka_unit_test(one_frame),
		cmocka_unit_test(through_a_window),
		cmocka_unit_test(for_ever_and_stopped),
		cmocka_unit_test(changed_files),
		cmocka_unit_test(equal_frames_and_shared_parts),
		cmocka_unit_test(colliding_hashes),
		cmocka_unit_test(every_frame_is_found),
		cmocka_unit_test(expect_needs_memory),
	};

	return cmocka_run_group_tests(tests, gpu_set_up, NULL);
}
