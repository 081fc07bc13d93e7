/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stage and the model of test_save*.c: rings that are filled as port, rx worker, consumer and
 * accountant do it, and which frames must then be in the files. cmocka.h comes before it.
 */
#ifndef GDRCAP_TEST_SAVE_PLAY_H
#define GDRCAP_TEST_SAVE_PLAY_H

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "base/eal.h"
#include "number_set.h"
#include "pcapng_reader.h"
#include "gpu/gpu_open.h"
#include "memory/region.h"
#include "capture/ring_producer.h"
#include "save/save.h"
#include "base/thread.h"

#define QUEUES 3u
#define SLOTS 1024u /* of a queue */
#define SLOT_SHIFT 14u
#define QUEUE_BYTES ((size_t)SLOTS << SLOT_SHIFT)
/* Header-data split: behind the frames' slots of all queues. */
#define HEADS_AT (QUEUES * QUEUE_BYTES)
#define QUEUE_HEADS ((size_t)SLOTS << REGION_HEAD_SHIFT)
#define MEMORY_BYTES (HEADS_AT + QUEUES * QUEUE_HEADS)
#define FRAMES_MAX 60000u /* of a queue */
#define HEAD 16u	  /* bytes that say which frame it is: queue, number, length */

/* A frame as it was received. */
struct note {
	uint64_t tsc;
	uint16_t length;
	uint16_t slot;
	bool damaged;
};

struct lane {
	struct ring_producer *ring;
	struct note *notes;
	uint32_t frames;      /* received */
	uint32_t limit;	      /* to be received */
	uint64_t shown, back; /* bursts */
	uint32_t frames_back;
	uint16_t free[SLOTS]; /* slots of the pool */
	uint32_t free_count;
};

struct play {
	struct lane lane[QUEUES];
	struct ring_producer *rings[QUEUES];
	struct save *save;
	struct save_config config;
	uint64_t random;
	uint32_t damage; /* one frame in so many; 0: none */
	uint32_t ahead;	 /* bursts that may wait for the accountant */
	uint32_t longest;
	uint32_t split; /* bytes of a frame that lie apart; 0: frames lie whole */
	bool cut;	/* the run is ended from outside, once the saver has no room */
	struct timespec start, end;
	char paths[2][128];
};

static int16_t gpu;
/* In memory where it can be: a disk that others write to may not answer for a while. */
static char folder[] = "/dev/shm/test_save_XXXXXX";
static struct frame_layout layout;
static struct pattern pattern;
static uint8_t *device_base, *cpu_base; /* one memory: not to be touched, and to be */
static unsigned int gathers, gathers_left;

/* The device's copying: it knows the memory at its own addresses. */
static int gather_double(struct kernel_device *device, const struct kernel_copy *copies,
			 uint32_t count)
{
	gathers++;
	assert_in_range(count, 1, KERNEL_COPIES_MAX);
	if (gathers_left && --gathers_left == 0)
		return kernel_fail(-EIO, "the device fell off the bus");
	for (uint32_t i = 0; i < count; i++) {
		const size_t at = (size_t)((const uint8_t *)copies[i].from - device_base);

		assert_true(at + copies[i].bytes <= MEMORY_BYTES);
		assert_true(copies[i].bytes != 0);
		memcpy(copies[i].to, cpu_base + at, copies[i].bytes);
	}
	return 0;
}

static const struct kernel_ops ops = { .name = "double", .gather = gather_double };

static int begin(void **state)
{
	const struct eal_needs needs = { .memory_bytes = (size_t)64 << 20 };
	const struct frame_config frame = { .format = FRAME_ETHERNET };
	const struct pattern_config pattern_config = { .kind = PATTERN_PRBS31, .invert = -1 };
	const size_t bytes = MEMORY_BYTES;
	int fd;

	thread_share_cores(); /* with whatever else this machine does */
	if (access("/dev/shm", W_OK) < 0)
		strcpy(folder, "/tmp/test_save_XXXXXX");
	if (eal_start(&needs, NULL) < 0 || !mkdtemp(folder) ||
	    frame_layout_init(&layout, &frame) < 0 || pattern_init(&pattern, &pattern_config) < 0)
		return -1;
	gpu = (int16_t)gpu_open_host(false, NULL);
	fd = memfd_create("frames", 0);
	if (gpu < 0 || fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
		return -1;
	cpu_base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	device_base = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, fd, 0);
	close(fd);
	return cpu_base == MAP_FAILED || device_base == MAP_FAILED ? -1 : 0;
}

static int end(void **state)
{
	pattern_free(&pattern);
	munmap(cpu_base, MEMORY_BYTES);
	munmap(device_base, MEMORY_BYTES);
	return rmdir(folder);
}

/* ---- the stage ---- */

static void play_prepare_split(struct play *play, uint64_t seed, uint32_t burst_max, uint32_t split)
{
	static const char *const names[QUEUES] = { "net_ring0", "net_ring0", "0000:01:00.1" };

	memset(play, 0, sizeof(*play));
	play->random = seed;
	play->damage = 40;
	play->ahead = 4;
	play->longest = 1514;
	play->split = split;
	for (uint32_t q = 0; q < QUEUES; q++) {
		const struct region region = {
			.gpu = gpu,
			.slot_shift = SLOT_SHIFT,
			.bytes = QUEUE_BYTES,
			.device = device_base + q * QUEUE_BYTES,
		};
		const struct region heads = {
			.gpu = gpu,
			.slot_shift = REGION_HEAD_SHIFT,
			.bytes = QUEUE_HEADS,
			.device = device_base + HEADS_AT + q * QUEUE_HEADS,
		};
		const struct ring_config config = {
			.region = &region,
			.heads = split ? &heads : NULL,
			.frames = SLOTS,
			.burst_max = burst_max,
			.times = true,
		};
		struct lane *lane = &play->lane[q];

		lane->ring = aligned_alloc(RING_LINE, sizeof(*lane->ring));
		lane->notes = calloc(FRAMES_MAX, sizeof(*lane->notes));
		assert_non_null(lane->ring);
		assert_non_null(lane->notes);
		assert_int_equal(ring_create(lane->ring, &config, NULL), 0);
		/* Free-running numbers wrap early on. */
		if (q == 1)
			lane->ring->head = lane->ring->first = lane->ring->tail =
				0u - (2 * (lane->ring->desc_mask + 1));
		lane->limit = 5000;
		for (uint32_t i = 0; i < SLOTS; i++)
			lane->free[lane->free_count++] = (uint16_t)i;
		play->rings[q] = lane->ring;
	}
	snprintf(play->paths[0], sizeof(play->paths[0]), "%s/all.pcapng", folder);
	snprintf(play->paths[1], sizeof(play->paths[1]), "%s/damaged.pcapng", folder);
	play->config = (struct save_config){
		.all = play->paths[0],
		.every = 1,
		.damaged = play->paths[1],
		.around = 3,
		.rings = play->rings,
		.queues = QUEUES,
		.names = names,
		.slots = SLOTS,
		.frame_max = 9212,
		.gpu = gpu,
		.ops = &ops,
		.layout = &layout,
		.pattern = &pattern,
	};
	gathers_left = 0;
}

static inline void play_prepare(struct play *play, uint64_t seed, uint32_t burst_max)
{
	play_prepare_split(play, seed, burst_max, 0);
}

static void play_start(struct play *play)
{
	clock_gettime(CLOCK_REALTIME, &play->start);
	assert_int_equal(save_create(&play->save, &play->config, NULL, NULL), 0);
}

static void play_end(struct play *play)
{
	save_destroy(play->save);
	for (uint32_t q = 0; q < QUEUES; q++) {
		ring_destroy(play->lane[q].ring);
		free(play->lane[q].ring);
		free(play->lane[q].notes);
	}
	unlink(play->paths[0]);
	unlink(play->paths[1]);
}

static void content_make(uint8_t *to, uint32_t queue, uint32_t number, uint32_t length)
{
	uint8_t head[HEAD] = { 0 };

	frame_put32(head, queue);
	frame_put32(head + 4, number);
	frame_put32(head + 8, length);
	for (uint32_t i = 0; i < length; i++)
		to[i] = i < HEAD ? head[i] : (uint8_t)(number * 31 + queue * 7 + i);
}

/* A frame's bytes into its slots, and its descriptors. Heads lie in the slots' mirror image. */
static void lane_place(struct play *play, uint32_t q, uint32_t at, uint32_t offset)
{
	static uint8_t content[1 << SLOT_SHIFT];
	const struct lane *lane = &play->lane[q];
	const struct note *note = &lane->notes[lane->frames];
	const uint32_t head = play->split < note->length ? play->split : note->length;
	const uint16_t rest = (uint16_t)(note->length - head), mirror = SLOTS - 1 - note->slot;
	struct ring_producer *ring = lane->ring;

	content_make(content, q, lane->frames, note->length);
	memcpy(cpu_base + q * QUEUE_BYTES + ((size_t)note->slot << SLOT_SHIFT) + offset,
	       content + head, rest);
	ring->desc[at] = (struct frame_desc){ note->slot, rest, (uint16_t)offset };
	if (!play->split)
		return;
	memcpy(cpu_base + HEADS_AT + q * QUEUE_HEADS + ((size_t)mirror << REGION_HEAD_SHIFT) + 128,
	       content, head);
	ring->head_desc[at] = (struct frame_desc){ mirror, (uint16_t)head, 128 };
	if (!rest)
		ring->desc[at] = (struct frame_desc){ 0 };
}

/* The port's and the rx worker's part: n frames into the ring. */
static uint32_t lane_receive(struct play *play, uint32_t q, uint32_t n)
{
	struct lane *lane = &play->lane[q];
	struct ring_producer *ring = lane->ring;

	n = n < ring_room(ring) ? n : ring_room(ring);
	n = n < lane->free_count ? n : lane->free_count;
	n = n < lane->limit - lane->frames ? n : lane->limit - lane->frames;
	for (uint32_t i = 0; i < n; i++) {
		struct note *note = &lane->notes[lane->frames];
		const uint32_t at = ring->head & ring->desc_mask;
		const uint32_t pick = (uint32_t)random_below(&play->random, lane->free_count);
		const uint32_t offset = (uint32_t)random_below(&play->random, 300);

		note->slot = lane->free[pick];
		lane->free[pick] = lane->free[--lane->free_count];
		note->length =
			(uint16_t)(HEAD + random_below(&play->random, play->longest + 1 - HEAD));
		note->damaged = play->damage && random_below(&play->random, play->damage) == 0;
		note->tsc = rte_rdtsc();
		lane_place(play, q, at, offset);
		ring->tsc[at] = note->tsc;
		ring->head++;
		lane->frames++;
	}
	return n;
}

/* The consumer's part: the records of the burst that is about to be published. */
static void lane_check(struct play *play, uint32_t q, uint32_t first, uint32_t count)
{
	struct lane *lane = &play->lane[q];
	struct ring_producer *ring = lane->ring;
	struct burst_result *result = &ring->result[ring->burst & ring->burst_mask];
	const struct note *note = &lane->notes[lane->frames - count];
	uint32_t records = 0;

	for (uint32_t at = 0, n; at < count; at += n) {
		struct frame_record *record =
			&ring->view.records[(first + records) & ring->desc_mask];
		const uint64_t kind = random_below(&play->random, 3);

		/* A damaged one is a record; the others in records of any length. */
		for (n = 1; !note[at].damaged && at + n < count && !note[at + n].damaged &&
			    random_below(&play->random, 20);
		     n++)
			;
		*record = (struct frame_record){ .first = (uint16_t)at, .count = (uint16_t)n };
		record->verdict = kind == 0 ? FRAME_FILTERED : kind == 1 ? FRAME_END : FRAME_VALID;
		if (note[at].damaged)
			record->verdict = kind == 0   ? FRAME_DAMAGED_HEADER
					  : kind == 1 ? FRAME_DAMAGED_UNLOCKED
						      : FRAME_DAMAGED_PAYLOAD;
		records++;
	}
	__atomic_store_n(&result->done, burst_word(ring->burst, ring->burst_bits, records, 0),
			 __ATOMIC_RELEASE);
}

static bool lane_publish(struct play *play, uint32_t q)
{
	struct ring_producer *ring = play->lane[q].ring;
	const uint32_t pending = ring_pending(ring);

	if (pending == 0)
		return false;
	lane_check(play, q, ring->first, pending);
	ring_publish(ring);
	return true;
}

/* Bursts before `through` go back: what was in their slots is gone. */
static void lane_reclaim(struct play *play, uint32_t q, uint64_t through)
{
	struct lane *lane = &play->lane[q];
	struct ring_producer *ring = lane->ring;

	assert_true(through >= lane->back);
	if (through == lane->back)
		return;
	for (uint32_t end_at = ring->end[(through - 1) & ring->burst_mask]; ring->tail != end_at;
	     ring->tail++) {
		const struct note *note = &lane->notes[lane->frames_back++];

		memset(cpu_base + q * QUEUE_BYTES + ((size_t)note->slot << SLOT_SHIFT), 0xee,
		       (size_t)1 << SLOT_SHIFT);
		memset(cpu_base + HEADS_AT + q * QUEUE_HEADS +
			       ((size_t)(SLOTS - 1 - note->slot) << REGION_HEAD_SHIFT),
		       0xee, (size_t)1 << REGION_HEAD_SHIFT);
		lane->free[lane->free_count++] = note->slot;
	}
	lane->back = ring->reclaimed = through;
}

/* No more frames come, and all that came are published. */
static void play_cut(struct play *play)
{
	for (uint32_t q = 0; q < QUEUES; q++) {
		struct lane *lane = &play->lane[q];

		lane->limit = lane->frames;
		lane_publish(play, q);
		atomic_store(&lane->ring->ended, 1);
	}
}

static bool play_may_show(struct play *play, uint32_t q)
{
	const bool room = save_has_room(play->save, q);

	assert_true(room != save_is_full(play->save));
	if (!room && play->cut)
		play_cut(play);
	return room;
}

/* The accountant's part for one queue. */
static void lane_account(struct play *play, uint32_t q, uint32_t bursts)
{
	struct lane *lane = &play->lane[q];
	uint64_t hold;

	for (; bursts && ring_is_done(lane->ring, lane->shown) && play_may_show(play, q); bursts--)
		save_burst(play->save, q, lane->shown++);
	save_flush(play->save);
	hold = save_hold(play->save, q, lane->shown);
	assert_true(hold <= lane->shown);
	lane_reclaim(play, q, hold);
}

static bool play_is_over(const struct play *play)
{
	for (uint32_t q = 0; q < QUEUES; q++) {
		const struct lane *lane = &play->lane[q];

		if (lane->frames != lane->limit || ring_pending(lane->ring) ||
		    lane->shown != lane->ring->burst)
			return false;
	}
	return true;
}

static inline void play_run(struct play *play)
{
	while (!play_is_over(play)) {
		const uint32_t q = (uint32_t)random_below(&play->random, QUEUES);
		struct lane *lane = &play->lane[q];

		if (lane->ring->burst - lane->shown < play->ahead) {
			/* A lonely frame now and then. */
			lane_receive(play, q,
				     random_below(&play->random, 4)
					     ? 1 + (uint32_t)random_below(&play->random, 64)
					     : 1);
			if (ring_due(lane->ring) || lane->frames == lane->limit)
				lane_publish(play, q);
		}
		if (lane->ring->burst - lane->shown >= play->ahead ||
		    random_below(&play->random, play->ahead) == 0 || lane->frames == lane->limit ||
		    lane->free_count == 0)
			lane_account(play, q, play->ahead);
		assert_true(lane->free_count || lane->ring->burst != lane->back);
	}
	clock_gettime(CLOCK_REALTIME, &play->end);
}

/* ---- the model ---- */

static bool model_wanted(const struct play *play, unsigned int file, uint32_t q, uint32_t number)
{
	const struct lane *lane = &play->lane[q];
	const uint32_t around = play->config.around;

	if (file == 0)
		return (number + 1) % play->config.every == 0;
	for (uint32_t n = number > around ? number - around : 0;
	     n <= number + around && n < lane->frames; n++)
		if (lane->notes[n].damaged)
			return true;
	return false;
}

static void model_comment(const struct play *play, unsigned int file, uint32_t q, uint32_t number,
			  const char *comment)
{
	const struct lane *lane = &play->lane[q];
	char want[128];

	if (lane->notes[number].damaged) {
		assert_memory_equal(comment, "gdrcap: ", 8);
		assert_null(strstr(comment, "a damaged one"));
		return;
	}
	want[0] = '\0';
	for (uint32_t k = play->config.around; file == 1 && k > 0; k--)
		if (number + k < lane->frames && lane->notes[number + k].damaged)
			snprintf(want, sizeof(want), "gdrcap: %u frame%s before a damaged one", k,
				 k == 1 ? "" : "s");
	for (uint32_t k = play->config.around; file == 1 && k > 0; k--)
		if (number >= k && lane->notes[number - k].damaged)
			snprintf(want, sizeof(want), "gdrcap: %u frame%s after a damaged one", k,
				 k == 1 ? "" : "s");
	assert_string_equal(comment, want);
}

static void frame_is(const struct play *play, unsigned int file, const struct reader_frame *frame,
		     uint32_t number)
{
	static uint8_t content[1 << SLOT_SHIFT];
	const uint64_t second = 1000000000;
	const struct note *note = &play->lane[frame->interface].notes[number];
	const uint32_t captured =
		note->length < play->config.frame_max ? note->length : play->config.frame_max;

	content_make(content, frame->interface, number, note->length);
	assert_int_equal(frame->length, note->length);
	assert_int_equal(frame->captured, captured);
	assert_memory_equal(frame->bytes, content, captured);
	assert_true(frame->inbound);
	/* The clock may be set while the test runs, a little. */
	assert_true(frame->ns + second > (uint64_t)play->start.tv_sec * second);
	assert_true(frame->ns < ((uint64_t)play->end.tv_sec + 2) * second);
	model_comment(play, file, frame->interface, number, frame->comment);
}

/* Reads a file and compares; returns how many frames are in it, *wanted how many should be. */
static uint64_t file_is(const struct play *play, unsigned int file, uint64_t *wanted, bool finished)
{
	uint32_t next[QUEUES] = { 0 };
	uint64_t last_ns[QUEUES] = { 0 }, saved[QUEUES] = { 0 }, dropped[QUEUES] = { 0 };
	uint64_t total[QUEUES] = { 0 }, frames;
	struct reader reader;

	reader_open(&reader, play->paths[file]);
	assert_string_equal(reader.application, "gdrcap " GDRCAP_VERSION);
	assert_int_equal(reader.interfaces, QUEUES);
	assert_string_equal(reader.interface[1].name, "net_ring0");
	assert_string_equal(reader.interface[1].description, "receive queue 1");
	assert_string_equal(reader.interface[2].description, "receive queue 0");
	for (size_t i = 0; i < reader.frames; i++) {
		const struct reader_frame *frame = &reader.frame[i];
		const uint32_t q = frame->interface, number = frame_be32(frame->bytes + 4);
		uint64_t missing = 0;

		assert_int_equal(frame_be32(frame->bytes), q);
		assert_in_range(number, next[q], play->lane[q].frames - 1);
		assert_true(model_wanted(play, file, q, number));
		for (; next[q] < number; next[q]++)
			missing += model_wanted(play, file, q, next[q]);
		next[q]++;
		assert_true(frame->dropped == missing);
		assert_true(frame->ns >= last_ns[q]);
		frame_is(play, file, frame, number);
		last_ns[q] = frame->ns;
		dropped[q] += missing;
		saved[q]++;
	}
	*wanted = 0;
	for (uint32_t q = 0; q < QUEUES; q++) {
		for (uint32_t n = 0; n < play->lane[q].frames; n++)
			total[q] += model_wanted(play, file, q, n);
		*wanted += total[q];
		assert_true(reader.interface[q].statistics == finished);
		if (!finished)
			continue;
		assert_true(reader.interface[q].accepted == total[q]);
		assert_true(reader.interface[q].delivered == saved[q]);
		assert_true(reader.interface[q].received ==
			    (q == 2 ? UINT64_MAX : play->lane[q].frames + 5 * q));
		assert_true(reader.interface[q].dropped ==
			    (q == 2 ? UINT64_MAX : 5 * q + total[q] - saved[q]));
		assert_true(total[q] - saved[q] >= dropped[q]);
	}
	frames = reader.frames;
	reader_close(&reader);
	return frames;
}

/* Everything is back, files and counts agree with the model. Returns how many were missed. */
static inline uint64_t play_finish(struct play *play, int result)
{
	struct save_counts counts;
	uint64_t wanted, in_file;

	save_end(play->save);
	for (uint32_t q = 0; q < QUEUES; q++) {
		assert_true(save_hold(play->save, q, play->lane[q].shown) == play->lane[q].shown);
		lane_reclaim(play, q, play->lane[q].shown);
		assert_int_equal(play->lane[q].free_count, SLOTS);
		if (q != 2)
			save_set_lost(play->save, q, play->lane[q].frames, 5 * q);
	}
	assert_int_equal(save_finish(play->save, NULL), result);
	assert_int_equal(save_finish(play->save, NULL), result);
	save_counts(play->save, &counts);
	assert_int_equal(counts.error, result);
	if (play->config.all[0]) {
		in_file = file_is(play, 0, &wanted, result != -EFBIG);
		assert_true(counts.saved == in_file);
		assert_true(counts.saved + counts.missed == wanted);
	} else {
		assert_true(counts.saved == 0 && counts.missed == 0);
	}
	if (play->config.damaged[0]) {
		in_file = file_is(play, 1, &wanted, result != -EFBIG);
		assert_true(counts.damaged_saved == in_file);
		assert_true(counts.damaged_saved + counts.damaged_missed == wanted);
	} else {
		assert_true(counts.damaged_saved == 0 && counts.damaged_missed == 0);
	}
	return counts.missed + counts.damaged_missed;
}

#endif
