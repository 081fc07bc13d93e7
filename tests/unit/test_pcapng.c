/* SPDX-License-Identifier: BSD-3-Clause */
/* The pcapng writer, read by the tests' own reader and by tshark, and with a file system that is
 * full at every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "number_set.h"
#include "save/pcapng.h"
#include "pcapng_reader.h"

#define FRAMES 3000u
#define LONGEST 9212u

static char folder[] = "/tmp/test_pcapng_XXXXXX";
static char path[128];
static uint8_t content[LONGEST + FRAMES];

static int begin(void **state)
{
	uint64_t random = 1;

	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/file.pcapng", folder);
	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)random_next(&random);
	return 0;
}

static int end(void **state)
{
	unlink(path);
	return rmdir(folder);
}

/* Frame i: everything about it follows from its number. */
static struct pcapng_frame frame_of(uint32_t i, char comment[64])
{
	const uint32_t length = i < 70 ? i : (uint32_t)(mixed(i) % (LONGEST + 1));

	snprintf(comment, 64, "number %u", i);
	return (struct pcapng_frame){
		.interface = i % 3,
		.time_ns = 1700000000123456789ull + 1000003ull * i,
		.bytes = content + i,
		.captured = i % 50 == 7 ? length / 2 : length,
		.length = length,
		.dropped = i % 11 == 0 ? i / 11 : 0,
		.comment = i % 5 ? NULL : comment,
	};
}

static void file_begin(struct pcapng *file, const char *name)
{
	assert_int_equal(pcapng_open(file, path), 0);
	assert_int_equal(pcapng_begin(file, "gdrcap test"), 0);
	assert_int_equal(pcapng_interface(file, name, "receive queue 0", LONGEST), 0);
	assert_int_equal(pcapng_interface(file, "second", NULL, LONGEST), 0);
	assert_int_equal(pcapng_interface(file, "", "", LONGEST), 0);
}

static void frames_are(const struct reader *reader, size_t frames)
{
	char comment[64];

	assert_int_equal(reader->frames, frames);
	for (uint32_t i = 0; i < frames; i++) {
		const struct pcapng_frame want = frame_of(i, comment);
		const struct reader_frame *got = &reader->frame[i];

		assert_int_equal(got->interface, want.interface);
		assert_true(got->ns == want.time_ns);
		assert_int_equal(got->captured, want.captured);
		assert_int_equal(got->length, want.length);
		assert_memory_equal(got->bytes, want.bytes, want.captured);
		assert_true(got->inbound);
		assert_true(got->dropped == want.dropped);
		assert_string_equal(got->comment, want.comment ? want.comment : "");
	}
}

static void whole_file_write(void)
{
	const struct pcapng_statistics statistics = {
		.interface = 1,
		.start_ns = 5,
		.end_ns = 1ull << 40,
		.port_known = true,
		.received = 1ull << 33,
		.dropped = 7,
		.accepted = 12,
		.delivered = 11,
	};
	const struct pcapng_statistics unknown = { .interface = 0, .accepted = 3, .delivered = 2 };
	struct pcapng file;
	char comment[64];

	file_begin(&file, "eth0\n\x80\xff");
	for (uint32_t i = 0; i < FRAMES; i++) {
		const struct pcapng_frame frame = frame_of(i, comment);

		assert_int_equal(pcapng_frame(&file, &frame), 0);
		assert_true(pcapng_frames(&file) == i + 1);
	}
	assert_int_equal(pcapng_statistics(&file, &statistics), 0);
	assert_int_equal(pcapng_statistics(&file, &unknown), 0);
	assert_int_equal(pcapng_close(&file), 0);
	assert_true(pcapng_frames(&file) == FRAMES);
}

static void what_is_written_is_read(void **state)
{
	struct reader reader;
	FILE *before = fopen(path, "wb");

	/* A longer file of before leaves nothing. */
	assert_non_null(before);
	assert_int_equal(ftruncate(fileno(before), 100 << 20), 0);
	fclose(before);
	whole_file_write();
	reader_open(&reader, path);
	assert_string_equal(reader.application, "gdrcap test");
	assert_int_equal(reader.interfaces, 3);
	assert_string_equal(reader.interface[0].name, "eth0???");
	assert_string_equal(reader.interface[0].description, "receive queue 0");
	assert_string_equal(reader.interface[1].name, "second");
	assert_string_equal(reader.interface[2].name, "");
	assert_int_equal(reader.interface[0].snaplen, LONGEST);
	frames_are(&reader, FRAMES);
	assert_true(reader.interface[1].statistics);
	assert_true(reader.interface[1].start_ns == 5);
	assert_true(reader.interface[1].end_ns == 1ull << 40);
	assert_true(reader.interface[1].received == 1ull << 33);
	assert_true(reader.interface[1].dropped == 7);
	assert_true(reader.interface[1].accepted == 12);
	assert_true(reader.interface[1].delivered == 11);
	assert_true(reader.interface[0].received == UINT64_MAX);
	assert_true(reader.interface[0].dropped == UINT64_MAX);
	assert_false(reader.interface[2].statistics);
	reader_close(&reader);
}

/* Opening does not touch what is there; beginning does. */
static void opened_is_not_emptied(void **state)
{
	struct pcapng file, other;
	struct stat status;

	whole_file_write();
	assert_int_equal(pcapng_open(&file, path), 0);
	assert_int_equal(pcapng_close(&file), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_true(status.st_size > 1000);
	assert_int_equal(pcapng_open(&file, path), 0);
	assert_int_equal(pcapng_open(&other, path), -EBUSY);
	pcapng_close(&other);
	assert_int_equal(pcapng_open(&other, "/dev/null"), 0);
	pcapng_close(&other);
	pcapng_close(&file);
	assert_int_equal(pcapng_open(&other, path), 0);
	pcapng_close(&other);
}

/* A pipe that is not read: an error, and what is in it are the frames that are said to be. */
static void pipe_nobody_reads(void **state)
{
	static uint8_t bytes[2 << 20];
	char name[160], comment[64];
	struct reader reader;
	struct pcapng file;
	size_t whole = 0;
	ssize_t n, used = 0;
	int from, ret = 0;
	FILE *copy;

	snprintf(name, sizeof(name), "%s/pipe", folder);
	assert_int_equal(mkfifo(name, 0600), 0);
	from = open(name, O_RDONLY | O_NONBLOCK);
	assert_true(from >= 0);
	assert_int_equal(pcapng_open(&file, name), 0);
	assert_int_equal(file.stall_ms, PCAPNG_STALL_MS);
	file.stall_ms = 50;
	assert_int_equal(pcapng_begin(&file, "gdrcap test"), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(pcapng_interface(&file, "x", "y", LONGEST), 0);
	for (uint32_t i = 0; ret == 0; i++) {
		const struct pcapng_frame frame = frame_of(i, comment);

		ret = pcapng_frame(&file, &frame);
	}
	assert_int_equal(ret, -ETIMEDOUT);
	assert_true(file.stalled && file.torn);
	assert_int_equal(pcapng_close(&file), -ETIMEDOUT);
	while ((n = read(from, bytes + used, sizeof(bytes) - (size_t)used)) > 0)
		used += n;
	assert_true(used > 0 && (uint64_t)used == atomic_load(&file.moved));
	close(from);
	unlink(name);
	while (whole + 12 <= (size_t)used && whole + reader_u32(bytes + whole + 4) <= (size_t)used)
		whole += reader_u32(bytes + whole + 4);
	copy = fopen(path, "wb");
	assert_non_null(copy);
	assert_int_equal(fwrite(bytes, 1, whole, copy), whole);
	fclose(copy);
	reader_open(&reader, path);
	assert_true(reader.frames != 0);
	frames_are(&reader, (size_t)pcapng_frames(&file));
	reader_close(&reader);
}

/* The file system takes `limit` bytes and no more. */
static void full_at(rlim_t limit)
{
	struct rlimit unlimited, limited;
	struct reader reader;
	struct pcapng file;
	char comment[64];
	int ret = 0;

	getrlimit(RLIMIT_FSIZE, &unlimited);
	limited = unlimited;
	file_begin(&file, "eth0");
	assert_int_equal(pcapng_flush(&file), 0);
	limited.rlim_cur = limit;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
	for (uint32_t i = 0; i < FRAMES; i++) {
		const struct pcapng_frame frame = frame_of(i, comment);
		const int now = pcapng_frame(&file, &frame);

		assert_true(now == 0 || now == -EFBIG);
		assert_true(ret == 0 || now == ret); /* once and for all */
		ret = now;
		if (i % 97 == 96)
			pcapng_flush(&file);
	}
	assert_int_equal(pcapng_close(&file), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &unlimited);
	assert_false(file.torn);
	reader_open(&reader, path);
	frames_are(&reader, (size_t)pcapng_frames(&file));
	assert_true(reader.bytes <= limit);
	/* Nothing that had room was given up. */
	assert_true(limit - reader.bytes <
		    frame_of((uint32_t)reader.frames, comment).captured + 128);
	reader_close(&reader);
}

static void full_ends_at_a_block(void **state)
{
	signal(SIGXFSZ, SIG_IGN);
	for (rlim_t limit = 400; limit < 4000; limit += 1 + limit / 40)
		full_at(limit);
	for (rlim_t limit = 1000000; limit < 9000000; limit += 1234567)
		full_at(limit);
}

static void full_device(void **state)
{
	struct pcapng file;

	if (access("/dev/full", W_OK) < 0)
		skip();
	assert_int_equal(pcapng_open(&file, "/dev/full"), 0);
	assert_int_equal(pcapng_begin(&file, "x"), 0);
	assert_int_equal(pcapng_flush(&file), -ENOSPC);
	assert_int_equal(pcapng_interface(&file, "x", "y", 100), -ENOSPC);
	assert_int_equal(pcapng_close(&file), -ENOSPC);
}

static void what_cannot_be_opened(void **state)
{
	struct pcapng file;
	char pipe_path[128];

	assert_int_equal(pcapng_open(&file, folder), -EISDIR);
	assert_int_equal(pcapng_close(&file), -EISDIR);
	assert_int_equal(pcapng_open(&file, "/nowhere/at/all"), -ENOENT);
	pcapng_close(&file);
	assert_int_equal(pcapng_open(&file, ""), -ENOENT);
	pcapng_close(&file);
	snprintf(pipe_path, sizeof(pipe_path), "%s/pipe", folder);
	assert_int_equal(mkfifo(pipe_path, 0600), 0);
	assert_int_equal(pcapng_open(&file, pipe_path), -ENXIO);
	pcapng_close(&file);
	unlink(pipe_path);
}

/* A file that was not there is its owner's alone, whatever the umask; one that was stays as it was. */
static void only_the_owner_reads_it(void **state)
{
	const mode_t before = umask(0);
	struct stat status;
	struct pcapng file;

	unlink(path);
	assert_int_equal(pcapng_open(&file, path), 0);
	assert_int_equal(pcapng_close(&file), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(pcapng_open(&file, path), 0);
	assert_int_equal(fcntl(file.fd, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(pcapng_close(&file), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0640);
	umask(before);
}

/* Somebody else's link does not decide what is written over; one to a descriptor of our own may. */
static void links_are_not_followed(void **state)
{
	char target[160], name[200];
	struct pcapng file;
	int fd;

	snprintf(target, sizeof(target), "%s/precious", folder);
	snprintf(name, sizeof(name), "%s/link", folder);
	fd = open(target, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(symlink(target, name), 0);
	assert_int_equal(pcapng_open(&file, name), -ELOOP);
	pcapng_close(&file);
	assert_int_equal(unlink(target), 0);
	assert_int_equal(pcapng_open(&file, name), -ELOOP);
	pcapng_close(&file);
	assert_int_equal(access(target, F_OK), -1);
	unlink(name);
	for (int proc = 0; proc < 2; proc++) {
		snprintf(name, sizeof(name), "%s/%d", proc ? "/proc/self/fd" : "/dev/fd", fd);
		assert_int_equal(pcapng_open(&file, name), 0);
		assert_int_equal(pcapng_close(&file), 0);
	}
	snprintf(name, sizeof(name), "/dev/fd/%d/../%d", fd, fd);
	assert_true(pcapng_open(&file, name) < 0);
	pcapng_close(&file);
	close(fd);
}

static void too_long_is_refused(void **state)
{
	const struct pcapng_frame frame = { .captured = PCAPNG_SNAPLEN_MAX + 1, .bytes = content };
	struct pcapng file;

	file_begin(&file, "eth0");
	assert_int_equal(pcapng_frame(&file, &frame), -EMSGSIZE);
	assert_int_equal(pcapng_close(&file), 0);
}

/* What others make of it. */
static void tshark_reads_it(void **state)
{
	char command[512], line[512], comment[64], want[512];
	FILE *out;

	if (system("command -v tshark capinfos >/dev/null 2>&1")) {
		print_message("SKIPPED: tshark and capinfos are not installed\n");
		skip();
	}
	whole_file_write();
	snprintf(command, sizeof(command), "capinfos %s >/dev/null 2>&1", path);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command),
		 "tshark -r %s -T fields -E separator=/t -e frame.interface_id "
		 "-e frame.time_epoch -e frame.cap_len -e frame.len -e frame.drop_count "
		 "-e frame.comment 2>/dev/null",
		 path);
	out = popen(command, "r");
	assert_non_null(out);
	for (uint32_t i = 0; i < FRAMES; i++) {
		const struct pcapng_frame frame = frame_of(i, comment);
		char dropped[24] = "";

		if (frame.dropped)
			snprintf(dropped, sizeof(dropped), "%llu",
				 (unsigned long long)frame.dropped);
		snprintf(want, sizeof(want), "%u\t%llu.%09llu\t%u\t%u\t%s\t%s\n", frame.interface,
			 (unsigned long long)(frame.time_ns / 1000000000),
			 (unsigned long long)(frame.time_ns % 1000000000), frame.captured,
			 frame.length, dropped, frame.comment ? frame.comment : "");
		assert_non_null(fgets(line, sizeof(line), out));
		assert_string_equal(line, want);
	}
	assert_null(fgets(line, sizeof(line), out));
	assert_int_equal(pclose(out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(opened_is_not_emptied),
		cmocka_unit_test(pipe_nobody_reads),
		cmocka_unit_test(full_ends_at_a_block),
		cmocka_unit_test(full_device),
		cmocka_unit_test(what_cannot_be_opened),
		cmocka_unit_test(only_the_owner_reads_it),
		cmocka_unit_test(links_are_not_followed),
		cmocka_unit_test(too_long_is_refused),
		cmocka_unit_test(tshark_reads_it),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
