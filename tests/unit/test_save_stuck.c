/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that take little or nothing: pipes that are read slowly or not at all, and a file system that
 * does not answer, played by this program's own write() and close(). The end comes all the same, with
 * counts that are right, and the other file is whole. And files that must not be written to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "nap.h"
#include "save_play.h"

#define STALL_MS 200u
#define HANG_SECONDS 240
#define NEVER 1000000

/* A file that stops to answer: the n-th call and those after it wait for `answer`. Set before the
 * calls' thread starts, or while it has nothing to do with the file. */
struct stuck {
	ino_t file;
	_Atomic int writes_left, closes_left;
	sem_t answer;
};

static struct stuck stuck[2];
static struct save *left_behind[32]; /* so that a leak checker sees that somebody knows them */
static unsigned int left_count;

static struct stuck *stuck_of(int fd)
{
	struct stat status;

	for (unsigned int f = 0; f < 2; f++)
		if (stuck[f].file && fstat(fd, &status) == 0 && status.st_ino == stuck[f].file)
			return &stuck[f];
	return NULL;
}

static void answer_wait(struct stuck *file)
{
	while (sem_wait(&file->answer) < 0)
		;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	struct stuck *file = stuck_of(fd);

	if (file && atomic_fetch_sub(&file->writes_left, 1) <= 0)
		answer_wait(file);
	return syscall(SYS_write, fd, bytes, n);
}

int close(int fd)
{
	struct stuck *file = stuck_of(fd);

	if (file && atomic_fetch_sub(&file->closes_left, 1) <= 0)
		answer_wait(file);
	return (int)syscall(SYS_close, fd);
}

static unsigned int threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned int n = 0;

	assert_non_null(tasks);
	while (readdir(tasks))
		n++;
	closedir(tasks);
	return n;
}

/* One that was joined may still be seen for a moment. */
static void threads_become(unsigned int n)
{
	const time_t until = time(NULL) + HANG_SECONDS;

	while (threads() != n)
		assert_true(time(NULL) < until && nap());
}

static void stuck_prepare(const struct play *play, unsigned int f, int writes, int closes)
{
	struct stat status;

	assert_int_equal(stat(play->paths[f], &status), 0);
	sem_init(&stuck[f].answer, 0, 0);
	atomic_store(&stuck[f].writes_left, writes);
	atomic_store(&stuck[f].closes_left, closes);
	stuck[f].file = status.st_ino;
}

/* Frames are received, and the accountant's part ends. */
static void play_through(struct play *play)
{
	play_run(play);
	save_end(play->save);
	for (uint32_t q = 0; q < QUEUES - 1; q++)
		save_set_lost(play->save, q, play->lane[q].frames, 5 * q);
}

static void ends_late(struct play *play, const char *text)
{
	struct gdrcap_error error;
	struct save_counts counts;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(save_finish(play->save, &error), -ETIMEDOUT);
		if (!strstr(error.text, text))
			fail_msg("\"%s\" is not in \"%s\"", text, error.text);
	}
	save_counts(play->save, &counts);
	assert_int_equal(counts.error, -ETIMEDOUT);
}

/* What the file holds, the counts and the model agree. Returns how many frames are in it. */
static uint64_t counts_are(const struct play *play, unsigned int f, bool finished)
{
	struct save_counts counts;
	uint64_t wanted, in_file = file_is(play, f, &wanted, finished);

	save_counts(play->save, &counts);
	assert_true((f ? counts.damaged_saved : counts.saved) == in_file);
	assert_true((f ? counts.damaged_missed : counts.missed) == wanted - in_file);
	return in_file;
}

/* `writes` and `closes` of file f are answered; when both[] is set, none of the other either. */
static void no_answer(unsigned int f, int writes, int closes, bool both)
{
	const unsigned int before = threads();
	struct play play;
	uint64_t in_file;

	play_prepare(&play, 500 + (uint64_t)writes, 64);
	play.config.stall_ms = STALL_MS;
	play.config.patient = true;
	play.damage = 4;
	play_start(&play);
	stuck_prepare(&play, f, writes, closes);
	if (both)
		stuck_prepare(&play, !f, 0, NEVER);
	play_through(&play);
	ends_late(&play, "its file system does not answer");
	in_file = counts_are(&play, f, writes == NEVER);
	assert_true((in_file != 0) == (writes != 0));
	in_file = counts_are(&play, !f, !both);
	assert_true((in_file == 0) == both);
	left_behind[left_count++] = play.save;
	/* The answer comes when all is over. */
	play_end(&play);
	for (unsigned int i = 0; i < 2; i++)
		if (stuck[i].file)
			sem_post(&stuck[i].answer);
	threads_become(before);
	stuck[0].file = stuck[1].file = 0;
}

static void no_answer_to_write(void **state)
{
	for (unsigned int f = 0; f < 2; f++)
		for (int writes = 0; writes < 4; writes++)
			no_answer(f, writes, NEVER, false);
}

/* A file that is received waits for its copy, until the run is ended. */
static void no_answer_and_no_room(void **state)
{
	for (unsigned int f = 0; f < 2; f++) {
		const unsigned int before = threads();
		struct play play;

		play_prepare(&play, 700 + f, 64);
		play.config.stall_ms = STALL_MS;
		play.config.patient = true;
		play.config.buffer_bytes = 1;
		play.damage = 2;
		play.longest = 9212;
		play.cut = true;
		play_start(&play);
		stuck_prepare(&play, f, 0, NEVER);
		play_through(&play);
		assert_true(play.lane[0].frames < 5000);
		ends_late(&play, "its file system does not answer");
		counts_are(&play, f, false);
		assert_true(counts_are(&play, !f, true) != 0);
		left_behind[left_count++] = play.save;
		play_end(&play);
		sem_post(&stuck[f].answer);
		threads_become(before);
		stuck[f].file = 0;
	}
}

static void no_answer_to_close(void **state)
{
	no_answer(0, NEVER, 0, false);
	no_answer(1, NEVER, 0, false);
}

static void no_answer_from_both(void **state)
{
	no_answer(0, 2, NEVER, true);
	no_answer(1, 0, NEVER, true);
}

/* The whole blocks of what is in a pipe, as a file. */
static void pipe_to_file(int from, const char *path)
{
	static uint8_t bytes[2 << 20];
	size_t used = 0, whole = 0;
	FILE *to = fopen(path, "wb");
	ssize_t n;

	while ((n = read(from, bytes + used, sizeof(bytes) - used)) > 0)
		used += (size_t)n;
	while (whole + 12 <= used && whole + reader_u32(bytes + whole + 4) <= used)
		whole += reader_u32(bytes + whole + 4);
	assert_true(whole != 0);
	assert_non_null(to);
	assert_int_equal(fwrite(bytes, 1, whole, to), whole);
	fclose(to);
}

/* --save, --save-damaged or both are pipes that somebody opened and does not read. */
static void nobody_reads(void **state)
{
	for (unsigned int i = 2; i < 8; i++) {
		const unsigned int before = threads(), pipes = i / 2;
		char path[2][160];
		struct play play;
		int from[2];

		play_prepare(&play, 600 + pipes, 64);
		play.config.stall_ms = STALL_MS;
		play.config.patient = true;
		play.config.buffer_bytes = i % 2;
		play.damage = 4;
		for (unsigned int f = 0; f < 2; f++) {
			if (!(pipes & 1u << f))
				continue;
			snprintf(path[f], sizeof(path[f]), "%s/pipe%u", folder, f);
			assert_int_equal(mkfifo(path[f], 0600), 0);
			from[f] = open(path[f], O_RDONLY | O_NONBLOCK);
			assert_true(from[f] >= 0);
			*(f ? &play.config.damaged : &play.config.all) = path[f];
		}
		play_start(&play);
		play_through(&play);
		ends_late(&play, "its reader takes nothing");
		/* No writer is left behind, since none has to be. */
		threads_become(before);
		for (unsigned int f = 0; f < 2; f++) {
			if (pipes & 1u << f) {
				pipe_to_file(from[f], play.paths[f]);
				close(from[f]);
				unlink(path[f]);
			}
			assert_true(counts_are(&play, f, !(pipes & 1u << f)) != 0);
		}
		play_end(&play);
	}
}

struct pipe_reader {
	int from, to;
	pthread_t thread;
};

/* Slower than the frames come, so that the buffer is full nearly always. */
static void *pipe_read(void *arg)
{
	const struct timespec pause = { .tv_nsec = 20000 };
	struct pipe_reader *reader = arg;
	uint8_t bytes[4096];
	ssize_t n;

	while ((n = read(reader->from, bytes, sizeof(bytes))) > 0) {
		if (write(reader->to, bytes, (size_t)n) != n)
			return reader;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* --save is a pipe. A file that is received waits for it, and no other port. */
static void slow_pipe(bool patient)
{
	struct pipe_reader reader;
	struct play play;
	char path[160];
	uint64_t missed;
	void *failed;

	play_prepare(&play, 400, 64);
	snprintf(path, sizeof(path), "%s/pipe", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	play.config.all = path;
	play.config.buffer_bytes = 1;
	play.config.patient = patient;
	play.longest = 9212;
	for (uint32_t q = 0; q < QUEUES; q++)
		play.lane[q].limit = 2000;
	reader.from = open(path, O_RDONLY | O_NONBLOCK);
	reader.to = open(play.paths[0], O_WRONLY | O_CREAT, 0600);
	assert_true(reader.from >= 0 && reader.to >= 0);
	assert_int_equal(fcntl(reader.from, F_SETFL, O_RDONLY), 0);
	play_start(&play);
	assert_int_equal(pthread_create(&reader.thread, NULL, pipe_read, &reader), 0);
	play_run(&play);
	save_end(play.save);
	for (uint32_t q = 0; q < QUEUES - 1; q++)
		save_set_lost(play.save, q, play.lane[q].frames, 5 * q);
	assert_int_equal(save_finish(play.save, NULL), 0);
	pthread_join(reader.thread, &failed);
	assert_null(failed);
	close(reader.from);
	close(reader.to);
	missed = play_finish(&play, 0);
	assert_true((missed == 0) == patient);
	unlink(path);
	play_end(&play);
}

static void slow_reader(void **state)
{
	slow_pipe(false);
}

static void a_file_waits_for_its_pipe(void **state)
{
	slow_pipe(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_reader),
		cmocka_unit_test(a_file_waits_for_its_pipe),
		cmocka_unit_test(nobody_reads),
		cmocka_unit_test(no_answer_to_write),
		cmocka_unit_test(no_answer_and_no_room),
		cmocka_unit_test(no_answer_to_close),
		cmocka_unit_test(no_answer_from_both),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
