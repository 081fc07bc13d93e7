/* SPDX-License-Identifier: BSD-3-Clause */
/* A file's frames in memory: all of them, or a window that a thread keeps filled. */
#include "replay/file_frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_gpudev.h>

#include "base/log.h"
#include "memory/core_dump.h"

#define PAGE ((size_t)64 << 10)
#define TELL_EVERY 4096u	      /* frames between two looks at the clock */
#define FILL_EVERY 32u		      /* frames between two FILLs */
#define WAIT_NS 20000		      /* of the reader, for the sender */
#define COUNT_MAX ((uint64_t)1 << 31) /* frames of a resident store */
/* The least window: a few of the longest frames, and a few bursts of the shortest. */
#define WINDOW_FRAMES_MIN 64u
#define WINDOW_DATA_MIN (8 * RTE_ALIGN_CEIL((size_t)FRAME_MAX_BYTES, (size_t)STORE_PIECE_BYTES))

/* ---- what is read ---- */

/* When a file's frames are due: at their times since the first one's. A frame whose time is before that of
 * an earlier frame is due with the latest of those, and moves no other. */
struct file_clock {
	bool started;
	uint64_t first, since;
};

static uint64_t clock_next(struct file_clock *clock, uint64_t time_ns)
{
	if (!clock->started)
		clock->first = time_ns;
	clock->started = true;
	if (time_ns > clock->first)
		clock->since =
			RTE_MAX(clock->since, RTE_MIN(time_ns - clock->first, PCAP_TIME_MAX_NS));
	return clock->since;
}

/* Bytes of a store that a frame takes: whole pieces. */
static uint32_t frame_room(uint32_t len)
{
	return store_pieces(len) * STORE_PIECE_BYTES;
}

/* Tells how far a long reading is, once a second. */
struct teller {
	const char *path, *what;
	time_t told;
};

static time_t seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec;
}

static void tell(struct teller *teller, const struct pcap_file *file, uint64_t frames)
{
	uint64_t at, bytes;

	if (frames % TELL_EVERY || seconds_now() <= teller->told + 1)
		return;
	teller->told = seconds_now();
	pcap_file_where(file, &at, &bytes);
	log_line(GDRCAP_LOG_PROGRESS, "%s: %s %llu of %llu MiB, %llu frames", teller->path,
		 teller->what, (unsigned long long)(at >> 20), (unsigned long long)(bytes >> 20),
		 (unsigned long long)frames);
}

static bool frame_is_refused(const struct frame_match *match, const struct pcap_frame *frame)
{
	return match && !frame_matches(match, frame->bytes, frame->len);
}

/* What the next frame's time, and its length, add to a scan. */
static void scan_add(struct file_scan *scan, struct file_clock *clock,
		     const struct pcap_frame *frame, uint64_t *before_ns)
{
	const uint64_t due = clock->since, since = clock_next(clock, frame->time_ns);

	if (scan->frames++ == 0)
		scan->first_ns = frame->time_ns;
	else if (frame->time_ns < *before_ns)
		scan->steps_back++;
	*before_ns = frame->time_ns;
	scan->gap_max_ns = RTE_MAX(scan->gap_max_ns, since - due);
	scan->last_ns = scan->first_ns + since;
	scan->bytes += frame->len;
	scan->data_bytes += frame_room(frame->len);
	scan->len_min = RTE_MIN(scan->len_min, frame->len);
	scan->len_max = RTE_MAX(scan->len_max, frame->len);
}

int file_frames_scan(const char *path, const struct frame_match *match, struct file_scan *scan,
		     struct gdrcap_error *error)
{
	struct teller teller = { path, "looked through", seconds_now() };
	struct file_clock clock = { 0 };
	struct pcap_frame frame;
	struct pcap_file *file;
	uint64_t before_ns = 0;
	int ret;

	memset(scan, 0, sizeof(*scan));
	scan->len_min = UINT32_MAX;
	ret = pcap_file_open(&file, path, NULL, error);
	if (ret < 0)
		return ret;
	while ((ret = pcap_file_next(file, &frame, error)) > 0) {
		if (frame_is_refused(match, &frame))
			scan->refused++;
		else
			scan_add(scan, &clock, &frame, &before_ns);
		tell(&teller, file, scan->frames + scan->refused);
	}
	pcap_file_close(file);
	if (ret == 0 && scan->frames == 0 && scan->refused)
		return error_set(
			error, -ENODATA,
			"%s: match accepts none of the file's %llu frames; name those that are "
			"expected, or leave match out",
			path, (unsigned long long)scan->refused);
	if (ret == 0 && scan->frames == 0)
		return error_set(error, -ENODATA,
				 "%s: the file has no frames; capture some into it first", path);
	return ret;
}

/* ---- memory ---- */

static int memory_register(struct file_memory *memory, int16_t gpu, struct gdrcap_error *error)
{
	memory->gpu = gpu;
	if (gpu < 0)
		return 0;
	if (rte_gpu_mem_register(gpu, memory->bytes, memory->base) < 0)
		return error_set(error, -rte_errno,
				 "the GPU refused to register %zu MiB for a file's frames: %s; "
				 "raise the locked-memory limit (ulimit -l unlimited), or ask for "
				 "less with --pcap-memory",
				 memory->bytes >> 20, rte_strerror(rte_errno));
	memory->registered = true;
	return 0;
}

static void memory_unregister(struct file_memory *memory)
{
	if (memory->registered && rte_gpu_mem_unregister(memory->gpu, memory->base) < 0)
		log_warning("the GPU kept a file's frames registered: %s", rte_strerror(rte_errno));
	memory->registered = false;
}

/* frames[], then data. */
static int memory_create(struct file_frames *frames, uint64_t count, uint64_t data_bytes,
			 const struct file_frames_config *config, struct gdrcap_error *error)
{
	const size_t head = RTE_ALIGN_CEIL(count * sizeof(struct store_frame), PAGE);
	struct file_memory *memory = &frames->memory;

	memory->bytes = head + RTE_ALIGN_CEIL((size_t)data_bytes, PAGE);
	memory->base = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory->base == MAP_FAILED) {
		memory->base = NULL;
		return error_set(error, -ENOMEM,
				 "no memory for %zu MiB of a file's frames; ask for less with "
				 "--pcap-memory",
				 memory->bytes >> 20);
	}
	/* Fewer TLB misses; a kernel without them refuses, which costs only speed. */
	(void)madvise(memory->base, memory->bytes, MADV_HUGEPAGE);
	if (!config->dump)
		core_dump_without(memory->base, memory->bytes);
	frames->time_ns = calloc(count, sizeof(*frames->time_ns));
	if (!frames->time_ns)
		return error_set(error, -ENOMEM, "no memory for the times of %llu frames",
				 (unsigned long long)count);
	frames->frames = memory->base;
	frames->data = (uint8_t *)memory->base + head;
	frames->view = (struct frame_store_view){
		.data = frames->data,
		.frames = frames->frames,
		.count = (uint32_t)count,
		.data_bytes = data_bytes,
		.resident = !frames->streamed,
	};
	return memory_register(memory, config->gpu, error);
}

/* Bytes that a resident store needs. */
static uint64_t resident_bytes(const struct file_scan *scan, bool expect)
{
	const uint64_t entry = sizeof(struct store_frame) + sizeof(uint64_t);

	return scan->data_bytes + scan->frames * entry + 2 * PAGE +
	       (expect ? file_frames_index_bytes(scan->frames) : 0);
}

/* Divides the memory between frames[] and data as the file's frames are in the mean. */
static void window_size(const struct file_frames_config *config, uint64_t *count,
			uint64_t *data_bytes)
{
	const uint64_t entry = sizeof(struct store_frame) + sizeof(uint64_t);
	const uint64_t mean = config->scan->data_bytes / config->scan->frames;
	const uint64_t most = config->memory_max / (entry + mean);

	*count = RTE_MIN(RTE_MAX(most, (uint64_t)WINDOW_FRAMES_MIN), COUNT_MAX);
	*data_bytes = RTE_ALIGN_FLOOR(RTE_MAX(*count * mean, (uint64_t)WINDOW_DATA_MIN),
				      (uint64_t)STORE_PIECE_BYTES);
}

/* ---- frames into memory ---- */

static void store_put(struct file_frames *frames, uint32_t index, uint64_t at,
		      const struct pcap_frame *frame, uint64_t time_ns)
{
	memcpy(frames->data + at, frame->bytes, frame->len);
	memset(frames->data + at + frame->len, 0, frame_room(frame->len) - frame->len);
	frames->frames[index] = (struct store_frame){
		.at = at,
		.len = frame->len,
		.class_first = index,
	};
	frames->time_ns[index] = time_ns;
}

static int fail_changed(const char *path, struct gdrcap_error *error)
{
	return error_set(error, -EIO,
			 "%s: the file has changed since it was looked through; give one that "
			 "nobody writes to",
			 path);
}

/* The whole file. Whatever it has become since the scan, nothing is written beyond the memory. */
static int load_all(struct file_frames *frames, const struct file_frames_config *config,
		    struct gdrcap_error *error)
{
	struct teller teller = { config->path, "loaded", seconds_now() };
	const struct file_scan *scan = config->scan;
	struct file_clock clock = { 0 };
	struct pcap_frame frame;
	uint64_t n = 0, at = 0;
	int ret;

	while ((ret = pcap_file_next(frames->file, &frame, error)) > 0) {
		if (frame_is_refused(config->match, &frame))
			continue;
		if (n == scan->frames || frame.len > scan->len_max ||
		    frame_room(frame.len) > scan->data_bytes - at)
			return fail_changed(config->path, error);
		store_put(frames, (uint32_t)n, at, &frame, clock_next(&clock, frame.time_ns));
		at += frame_room(frame.len);
		tell(&teller, frames->file, ++n);
	}
	if (ret == 0 && (n != scan->frames || at != scan->data_bytes))
		return fail_changed(config->path, error);
	return ret;
}

static int index_create(struct file_frames *frames, const struct file_frames_config *config,
			struct gdrcap_error *error)
{
	struct store_bucket *buckets;

	if (file_frames_index(&frames->view, frames->frames, &buckets) < 0)
		return error_set(error, -ENOMEM,
				 "no memory to look up the %llu frames of %s; split the file "
				 "(editcap -c)",
				 (unsigned long long)frames->count, config->path);
	frames->table.base = buckets;
	frames->table.bytes =
		RTE_ALIGN_CEIL(((size_t)frames->view.bucket_mask + 1) * sizeof(*buckets), PAGE);
	return memory_register(&frames->table, config->gpu, error);
}

/* ---- the reader thread ---- */

/* FILL: frames, data and times before the count. Partner: file_frames_ready(). */
static void reader_fill(struct file_frames *frames, uint64_t filled)
{
	atomic_store_explicit(&frames->filled, filled, memory_order_release);
}

/*
 * Where in the ring of data the next frame goes, or UINT64_MAX: nowhere yet. A frame does not wrap,
 * and the newest never ends where the oldest begins: that would look empty.
 */
static uint64_t data_place(const struct file_frames *frames, uint64_t filled, uint32_t room)
{
	/* USED: the device's last reads of the frames before they are written over. Partner: the tx
	 * worker's store. */
	const uint64_t used = atomic_load_explicit(&frames->used, memory_order_acquire);
	const uint64_t head = frames->data_head, bytes = frames->view.data_bytes;
	uint64_t tail;

	if (filled - used >= frames->view.count)
		return UINT64_MAX;
	if (filled == used)
		return bytes - head >= room ? head : 0;
	tail = frames->frames[used % frames->view.count].at;
	if (head < tail)
		return tail - head > room ? head : UINT64_MAX;
	if (bytes - head >= room)
		return head;
	return tail > room ? 0 : UINT64_MAX;
}

/* Waits for a place. UINT64_MAX: the run is over. */
static uint64_t reader_place(struct file_frames *frames, uint64_t filled, uint32_t room)
{
	const struct timespec pause = { .tv_nsec = WAIT_NS };
	uint64_t at;

	while ((at = data_place(frames, filled, room)) == UINT64_MAX) {
		reader_fill(frames, filled);
		if (atomic_load_explicit(&frames->stop, memory_order_relaxed))
			return UINT64_MAX;
		nanosleep(&pause, NULL);
	}
	return at;
}

/* One loop, from frame number *filled of the run. 1: to be stopped. */
static int reader_lap(struct file_frames *frames, uint64_t *filled)
{
	struct file_clock clock = { 0 };
	struct pcap_frame frame;
	uint64_t n = 0, bytes = 0;
	int ret;

	while ((ret = pcap_file_next(frames->file, &frame, &frames->error)) > 0) {
		uint64_t at;

		bytes += frame.len;
		if (++n > frames->count || frame.len > frames->len_max)
			break;
		at = reader_place(frames, *filled, frame_room(frame.len));
		if (at == UINT64_MAX || atomic_load_explicit(&frames->stop, memory_order_relaxed))
			return 1;
		store_put(frames, (uint32_t)(*filled % frames->view.count), at, &frame,
			  clock_next(&clock, frame.time_ns));
		frames->data_head = at + frame_room(frame.len);
		if (++*filled % FILL_EVERY == 0)
			reader_fill(frames, *filled);
	}
	reader_fill(frames, *filled);
	if (ret >= 0 && (n != frames->count || bytes != frames->bytes))
		return fail_changed(pcap_file_name(frames->file), &frames->error);
	return ret;
}

static void reader_run(void *arg)
{
	struct file_frames *frames = arg;
	uint64_t filled = 0;
	int ret = 0;

	for (uint64_t loop = 0; ret == 0 && loop < frames->loops; loop++) {
		ret = loop ? pcap_file_rewind(frames->file, &frames->error) : 0;
		if (ret == 0)
			ret = reader_lap(frames, &filled);
	}
	if (ret < 0)
		/* After `error`. Partner: whoever reads it. */
		atomic_store_explicit(&frames->failed, ret, memory_order_release);
}

/* ---- life ---- */

int file_frames_create(struct file_frames **out, const struct file_frames_config *config,
		       struct gdrcap_error *error)
{
	const struct file_scan *scan = config->scan;
	const uint64_t need = resident_bytes(scan, config->expect);
	const uint64_t sum = scan->last_ns - scan->first_ns;
	uint64_t count = scan->frames, data_bytes = scan->data_bytes;
	struct file_frames *frames;
	int ret;

	*out = NULL;
	frames = aligned_alloc(FILE_FRAMES_LINE, sizeof(*frames));
	if (!frames)
		return error_set(error, -ENOMEM, "no memory for a file's frames");
	memset(frames, 0, sizeof(*frames));
	frames->count = scan->frames;
	frames->bytes = scan->bytes;
	frames->len_max = scan->len_max;
	frames->loops = config->loops ? config->loops : UINT64_MAX;
	frames->span_ns = sum;
	if (scan->frames > 1)
		frames->span_ns += (sum + (scan->frames - 1) / 2) / (scan->frames - 1);
	frames->streamed = need > config->memory_max || scan->frames > COUNT_MAX;
	if (frames->streamed && config->expect) {
		ret = error_set(error, -ENOMEM,
				"%s: its frames take %llu MiB of memory, %zu MiB are allowed; "
				"raise --pcap-memory, or split the file (editcap -c)",
				config->path, (unsigned long long)(need >> 20) + 1,
				config->memory_max >> 20);
		goto err;
	}
	if (frames->streamed)
		window_size(config, &count, &data_bytes);
	ret = pcap_file_open(&frames->file, config->path, NULL, error);
	if (ret < 0)
		goto err;
	ret = memory_create(frames, count, data_bytes, config, error);
	if (ret < 0)
		goto err;
	if (!frames->streamed) {
		ret = load_all(frames, config, error);
		pcap_file_close(frames->file);
		frames->file = NULL;
	}
	if (ret == 0 && config->expect)
		ret = index_create(frames, config, error);
	if (ret < 0)
		goto err;
	*out = frames;
	return 0;
err:
	file_frames_destroy(frames);
	return ret;
}

int file_frames_start(struct file_frames *frames, const cpu_set_t *cpus, struct gdrcap_error *error)
{
	if (!frames->streamed || frames->thread.running)
		return 0;
	return thread_start(&frames->thread, "gdrcap-file", cpus, reader_run, frames, error);
}

void file_frames_destroy(struct file_frames *frames)
{
	if (!frames)
		return;
	atomic_store_explicit(&frames->stop, 1, memory_order_relaxed);
	thread_join(&frames->thread);
	memory_unregister(&frames->table);
	free(frames->table.base);
	memory_unregister(&frames->memory);
	if (frames->memory.base)
		munmap(frames->memory.base, frames->memory.bytes);
	free(frames->time_ns);
	pcap_file_close(frames->file);
	free(frames);
}

uint32_t file_frames_ready(const struct file_frames *frames, uint64_t from, uint32_t *index)
{
	const uint32_t count = frames->view.count;
	uint64_t ready;
	uint32_t to_end;

	*index = (uint32_t)(from % count);
	to_end = count - *index;
	if (!frames->streamed)
		return to_end;
	/* FILL: before frames, data and times are read, by us or by the device. */
	ready = atomic_load_explicit(&frames->filled, memory_order_acquire) - from;
	return ready < to_end ? (uint32_t)ready : to_end;
}
