/* SPDX-License-Identifier: BSD-3-Clause */
/* pcap and pcapng files made byte by byte: what is right is read, what is wrong is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "pcap_bytes.h"
#include "replay/pcap_file.h"

#define ETHERNET 1
#define SNAP 262144

static struct gdrcap_error error;

static int open_bytes(const struct bytes *bytes, struct pcap_file **file)
{
	FILE *stream = fmemopen(bytes->at, bytes->count, "r");

	assert_non_null(stream);
	memset(&error, 0, sizeof(error));
	return pcap_file_open(file, "made.pcap", stream, &error);
}

static void text_has(const char *what)
{
	if (strstr(error.text, what))
		return;
	print_error("\"%s\" does not say \"%s\"\n", error.text, what);
	fail();
}

/* It is no file, and the text says so. */
static void refused(struct bytes *bytes, const char *what)
{
	struct pcap_file *file = (struct pcap_file *)1;
	int ret = open_bytes(bytes, &file);

	assert_true(ret < 0 && error.code == ret);
	assert_null(file);
	text_has("made.pcap");
	text_has(what);
	bytes_free(bytes);
}

/* After `good` frames it breaks off; the text names the next one. */
static void breaks(struct bytes *bytes, unsigned int good, const char *what)
{
	struct pcap_frame frame;
	struct pcap_file *file;
	char number[32];
	int ret;

	assert_int_equal(open_bytes(bytes, &file), 0);
	snprintf(number, sizeof(number), "frame %u ", good + 1);
	for (int loop = 0; loop < 2; loop++) {
		for (unsigned int i = 0; i < good; i++)
			assert_int_equal(pcap_file_next(file, &frame, &error), 1);
		ret = pcap_file_next(file, &frame, &error);
		assert_true(ret < 0 && error.code == ret);
		text_has("made.pcap");
		text_has(number);
		text_has(what);
		assert_int_equal(pcap_file_rewind(file, NULL), 0);
	}
	pcap_file_close(file);
	bytes_free(bytes);
}

static void is_frame(struct pcap_file *file, uint64_t number, uint32_t len, uint64_t time_ns)
{
	struct pcap_frame frame;
	int ret = pcap_file_next(file, &frame, &error);

	if (ret < 0)
		print_error("%s\n", error.text);
	assert_int_equal(ret, 1);
	assert_int_equal(frame.len, len);
	assert_true(frame.time_ns == time_ns);
	for (uint32_t i = 0; i < len; i++)
		if (frame.bytes[i] != frame_byte(number, i))
			fail();
}

static void is_end(struct pcap_file *file)
{
	struct pcap_frame frame;

	assert_int_equal(pcap_file_next(file, &frame, &error), 0);
	assert_int_equal(pcap_file_next(file, &frame, &error), 0);
}

/* ---- what is right ---- */

static void both_orders_and_units(void **state)
{
	static const uint32_t lengths[] = { 14, 60, 61, 1514, 9212, 15 };

	for (int big = 0; big < 2; big++)
		for (int nano = 0; nano < 2; nano++) {
			struct bytes bytes = { .big = big };
			struct pcap_file *file;

			pcap_head(&bytes, nano, SNAP, ETHERNET);
			for (uint32_t i = 0; i < 6; i++)
				pcap_frame(&bytes, 4000000000u - i, 999999u - i, i, lengths[i]);
			assert_int_equal(open_bytes(&bytes, &file), 0);
			for (int loop = 0; loop < 3; loop++) {
				for (uint32_t i = 0; i < 6; i++)
					is_frame(file, i, lengths[i],
						 (4000000000u - i) * 1000000000ull +
							 (999999u - i) * (nano ? 1ull : 1000ull));
				is_end(file);
				assert_int_equal(pcap_file_rewind(file, &error), 0);
			}
			pcap_file_close(file);
			bytes_free(&bytes);
		}
}

static void pcapng_too(void **state)
{
	for (int big = 0; big < 2; big++)
		for (int nano = 0; nano < 2; nano++) {
			const uint64_t unit = nano ? 1 : 1000;
			struct bytes bytes = { .big = big };
			struct pcap_file *file;

			pcapng_head(&bytes, 0, ETHERNET, nano);
			pcapng_frame(&bytes, 1600000000123456ull, 1, 60, 60);
			pcapng_frame(&bytes, 1600000000123457ull, 2, 1513, 1513);
			pcapng_frame(&bytes, 1500000000000000ull, 3, 9212, 9212);
			assert_int_equal(open_bytes(&bytes, &file), 0);
			for (int loop = 0; loop < 2; loop++) {
				is_frame(file, 1, 60, 1600000000123456ull * unit);
				is_frame(file, 2, 1513, 1600000000123457ull * unit);
				is_frame(file, 3, 9212, 1500000000000000ull * unit);
				is_end(file);
				assert_int_equal(pcap_file_rewind(file, &error), 0);
			}
			pcap_file_close(file);
			bytes_free(&bytes);
		}
}

static void no_frames_is_an_end(void **state)
{
	struct bytes bytes = { 0 };
	struct pcap_file *file;

	pcap_head(&bytes, false, SNAP, ETHERNET);
	assert_int_equal(open_bytes(&bytes, &file), 0);
	is_end(file);
	pcap_file_close(file);
	bytes_free(&bytes);
}

/* A file that says that its frames have their FCS: it is taken off. */
static void fcs_is_taken_off(void **state)
{
	struct bytes bytes = { 0 };
	struct pcap_file *file;

	pcap_head(&bytes, false, SNAP, ETHERNET | 0x24000000u);
	pcap_frame(&bytes, 1, 0, 7, 64);
	pcap_frame(&bytes, 1, 0, 8, 9216);
	pcap_frame(&bytes, 1, 0, 9, 17);
	assert_int_equal(open_bytes(&bytes, &file), 0);
	is_frame(file, 7, 60, 1000000000);
	is_frame(file, 8, 9212, 1000000000);
	pcap_file_close(file);
	breaks(&bytes, 2, "13 bytes long without FCS");
}

static void large_file_by_path(void **state)
{
	struct bytes bytes = { 0 };
	struct pcap_file *file;
	uint64_t at, size;
	char path[64];

	pcap_head(&bytes, true, SNAP, ETHERNET);
	for (uint32_t i = 0; i < 3000; i++)
		pcap_frame(&bytes, i, i, i, 14 + i);
	bytes_save(&bytes, path);
	assert_int_equal(pcap_file_open(&file, path, NULL, &error), 0);
	unlink(path);
	for (int loop = 0; loop < 2; loop++) {
		for (uint32_t i = 0; i < 3000; i++)
			is_frame(file, i, 14 + i, i * 1000000001ull);
		is_end(file);
		pcap_file_where(file, &at, &size);
		assert_true(at == bytes.count && size == bytes.count);
		assert_int_equal(pcap_file_rewind(file, &error), 0);
	}
	assert_string_equal(pcap_file_name(file), path);
	pcap_file_close(file);
	bytes_free(&bytes);
}

/* ---- what is wrong ---- */

static void not_a_file(void **state)
{
	struct pcap_file *file;

	assert_int_equal(pcap_file_open(&file, "/nowhere/x.pcap", NULL, &error), -ENOENT);
	text_has("/nowhere/x.pcap");
	assert_null(file);
	assert_int_equal(pcap_file_open(&file, "/tmp", NULL, &error), -EINVAL);
	text_has("not a regular file");
	assert_int_equal(pcap_file_open(&file, "/dev/null", NULL, &error), -EINVAL);
	text_has("not a regular file");
}

/* What keeps it from being opened is not its name. */
static void no_descriptor_is_left(void **state)
{
	struct pcap_file *file = (struct pcap_file *)1;
	struct rlimit before, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(pcap_file_open(&file, "/dev/null", NULL, &error), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	text_has("ulimit -n");
}

static void empty(void **state)
{
	struct pcap_file *file;
	struct bytes none = { 0 };
	char path[64];

	bytes_save(&none, path);
	assert_int_equal(pcap_file_open(&file, path, NULL, &error), -ENODATA);
	unlink(path);
	text_has(path);
	text_has("empty");
}

static void no_pcap_at_all(void **state)
{
	struct bytes bytes = { 0 };

	for (int i = 0; i < 100; i++)
		put32(&bytes, 0x20202020);
	refused(&bytes, "not a pcap or pcapng file");
	put(&bytes, "\x1f\x8b\x08 and so on, for long enough", 30);
	refused(&bytes, "gunzip");
	put(&bytes, "(\xb5/\xfd and so on, for long enough", 30);
	refused(&bytes, "unzstd");
}

static void wrong_link_type(void **state)
{
	struct bytes bytes = { 0 };
	struct pcap_frame frame;
	struct pcap_file *file;

	pcap_head(&bytes, false, SNAP, 113);
	pcap_frame(&bytes, 1, 0, 1, 60);
	refused(&bytes, "link type is 113 (Linux cooked");
	/* An interface may have no frames. */
	pcapng_head(&bytes, SNAP, 127, false);
	pcapng_frame(&bytes, 1, 1, 60, 60);
	assert_int_equal(open_bytes(&bytes, &file), 0);
	assert_true(pcap_file_next(file, &frame, &error) < 0);
	text_has("link type is 127 (802.11, radiotap), not Ethernet");
	pcap_file_close(file);
	bytes_free(&bytes);
	pcap_head(&bytes, false, SNAP, 0xfff);
	refused(&bytes, "unknown");
}

/* A file of three frames, cut anywhere. */
static void truncated(void **state)
{
	const size_t head = 24, record = 16 + 100;

	for (size_t cut = 1; cut < head + 3 * record; cut++) {
		struct bytes bytes = { 0 };
		struct pcap_frame frame;
		struct pcap_file *file;

		pcap_head(&bytes, false, SNAP, ETHERNET);
		for (uint32_t i = 0; i < 3; i++)
			pcap_frame(&bytes, i, 0, i, 100);
		bytes.count = cut;
		if (cut < head) {
			refused(&bytes, "ends in the middle of its header");
			continue;
		}
		if ((cut - head) % record) {
			breaks(&bytes, (unsigned int)((cut - head) / record), "ends in the middle");
			continue;
		}
		assert_int_equal(open_bytes(&bytes, &file), 0);
		for (size_t i = 0; i < (cut - head) / record; i++)
			assert_int_equal(pcap_file_next(file, &frame, &error), 1);
		is_end(file);
		pcap_file_close(file);
		bytes_free(&bytes);
	}
}

static void truncated_pcapng(void **state)
{
	for (size_t cut = 1; cut < 28 + 20 + 2 * 132; cut++) {
		struct bytes bytes = { 0 };
		const size_t frames = cut < 48 ? 0 : (cut - 48) / 132;

		pcapng_head(&bytes, SNAP, ETHERNET, false);
		pcapng_frame(&bytes, 1, 1, 100, 100);
		pcapng_frame(&bytes, 2, 2, 100, 100);
		bytes.count = cut;
		if (cut < 48)
			refused(&bytes, "ends in the middle of its header");
		else if ((cut - 48) % 132)
			breaks(&bytes, (unsigned int)frames, "ends in the middle");
		else
			bytes_free(&bytes);
	}
}

static void one_record(struct bytes *bytes, uint32_t caplen, uint32_t len)
{
	pcap_head(bytes, false, SNAP, ETHERNET);
	pcap_frame(bytes, 1, 0, 1, 60);
	pcap_record(bytes, 2, 0, caplen, len);
	put_frame(bytes, 2, 10000);
}

static void lengths_that_lie(void **state)
{
	struct bytes bytes = { 0 };

	one_record(&bytes, UINT32_MAX, UINT32_MAX);
	breaks(&bytes, 1, "corrupt");
	one_record(&bytes, UINT32_MAX, 60);
	breaks(&bytes, 1, "corrupt");
	one_record(&bytes, 60, UINT32_MAX);
	breaks(&bytes, 1, "4294967295 bytes long");
	one_record(&bytes, 61, 60);
	breaks(&bytes, 1, "61 bytes, but its length is said to be 60");
	one_record(&bytes, 250000, 250000);
	breaks(&bytes, 1, "ends in the middle");
	/* In pcapng the lengths are a block's, too. */
	pcapng_head(&bytes, SNAP, ETHERNET, false);
	put32(&bytes, 6);
	put32(&bytes, UINT32_MAX);
	put_frame(&bytes, 1, 1000);
	breaks(&bytes, 0, "corrupt");
}

static void frames_of_wrong_length(void **state)
{
	struct bytes bytes = { 0 };

	one_record(&bytes, 13, 13);
	breaks(&bytes, 1, "13 bytes long without FCS, an Ethernet header alone has 14");
	one_record(&bytes, 0, 0);
	breaks(&bytes, 1, "0 bytes long");
	one_record(&bytes, 9213, 9213);
	breaks(&bytes, 1, "9213 bytes long without FCS, 9212 are the most");
}

static void cut_by_the_snap_length(void **state)
{
	struct bytes bytes = { 0 };

	pcap_head(&bytes, false, 96, ETHERNET);
	pcap_frame(&bytes, 1, 0, 1, 60);
	pcap_record(&bytes, 2, 0, 96, 1514);
	put_frame(&bytes, 2, 96);
	breaks(&bytes, 1, "cut to 96 of its 1514 bytes (the file's snap length is 96)");
	/* One that is out of all proportion is none. */
	pcap_head(&bytes, false, 0x7fffffff, ETHERNET);
	pcap_record(&bytes, 2, 0, 96, 1514);
	put_frame(&bytes, 2, 96);
	breaks(&bytes, 0, "snap length is 262144)");
	pcapng_head(&bytes, 128, ETHERNET, false);
	pcapng_frame(&bytes, 1, 1, 128, 1000);
	breaks(&bytes, 0, "cut to 128 of its 1000 bytes (the file's snap length is 128)");
}

static void impossible_times(void **state)
{
	struct bytes bytes = { 0 };

	pcap_head(&bytes, true, SNAP, ETHERNET);
	pcap_frame(&bytes, 1, 999999999, 1, 60);
	pcap_frame(&bytes, 1, 1000000000, 1, 60);
	breaks(&bytes, 1, "impossible time");
	pcap_head(&bytes, false, SNAP, ETHERNET);
	pcap_frame(&bytes, 1, 0xffffffff, 1, 60);
	breaks(&bytes, 0, "impossible time");
	pcapng_head(&bytes, SNAP, ETHERNET, false);
	pcapng_frame(&bytes, UINT64_MAX, 1, 60, 60);
	breaks(&bytes, 0, "impossible time");
}

/* A head that names a huge snap length does not make anybody allocate it. */
static void memory_is_bounded(void **state)
{
	static const uint32_t snaps[] = { 0, SNAP + 1, 0x7fffffff, 0x80000000, UINT32_MAX };

	for (int big = 0; big < 2; big++)
		for (size_t i = 0; i < sizeof(snaps) / sizeof(snaps[0]); i++) {
			struct bytes bytes = { .big = big };
			struct mallinfo2 before, after;
			struct pcap_frame frame;
			struct pcap_file *file;

			pcap_head(&bytes, false, snaps[i], ETHERNET);
			pcap_frame(&bytes, 1, 0, 1, 60);
			pcap_record(&bytes, 1, 0, 0x7ffffff0, 0x7ffffff0);
			put_frame(&bytes, 1, 1000);
			before = mallinfo2();
			assert_int_equal(open_bytes(&bytes, &file), 0);
			is_frame(file, 1, 60, 1000000000);
			assert_true(pcap_file_next(file, &frame, &error) < 0);
			after = mallinfo2();
			assert_true(after.hblkhd + after.uordblks <
				    before.hblkhd + before.uordblks + ((size_t)2 << 20));
			pcap_file_close(file);
			bytes_free(&bytes);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_orders_and_units),
		cmocka_unit_test(pcapng_too),
		cmocka_unit_test(no_frames_is_an_end),
		cmocka_unit_test(fcs_is_taken_off),
		cmocka_unit_test(large_file_by_path),
		cmocka_unit_test(not_a_file),
		cmocka_unit_test(no_descriptor_is_left),
		cmocka_unit_test(empty),
		cmocka_unit_test(no_pcap_at_all),
		cmocka_unit_test(wrong_link_type),
		cmocka_unit_test(truncated),
		cmocka_unit_test(truncated_pcapng),
		cmocka_unit_test(lengths_that_lie),
		cmocka_unit_test(frames_of_wrong_length),
		cmocka_unit_test(cut_by_the_snap_length),
		cmocka_unit_test(impossible_times),
		cmocka_unit_test(memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
