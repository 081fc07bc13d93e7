/* SPDX-License-Identifier: BSD-3-Clause */
/* Control: files, buffer and writer are set up, and ended. */
#include "save/save_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_gpudev.h>

#include "base/log.h"
#include "base/output_file.h"
#include "memory/core_dump.h"

#define BOUNCE_BYTES ((size_t)64 << 20)
#define BOUNCE_BYTES_MIN ((size_t)64 << 10)
#define PROGRESS_MS 1000u
#define LOOK_MS 100u /* at a writer that is waited for */

static const char *const option_names[SAVE_FILES] = { "save", "save_damaged" };

static int config_check(const struct save_config *config, struct gdrcap_error *error)
{
	if (!config->all[0] && !config->damaged[0])
		return error_set(error, -EINVAL, "nothing is to be saved: no file is named");
	if (config->around > SAVE_AROUND_MAX)
		return error_set(error, -EINVAL,
				 "save_around: %u frames around a damaged one are too many; give "
				 "0..%u",
				 config->around, SAVE_AROUND_MAX);
	for (uint32_t q = 0; q < config->queues; q++)
		if (!config->rings[q]->tsc)
			return error_set(error, -EINVAL,
					 "queue %u has no receive times, which saved frames need",
					 q);
	return 0;
}

static int file_error(const char *option, const struct save_file *file, int code,
		      struct gdrcap_error *error)
{
	const char *remedy = "name a file in a folder that exists and that you may write to";
	const char *why = output_file_why(code);

	if (why)
		return error_set(error, code, "%s: cannot write %s: %s", option, file->path, why);
	if (code == -EISDIR)
		remedy = "name a file in it";
	else if (code == -ENOSPC || code == -EDQUOT)
		remedy = "free space there, or name a file elsewhere";
	else if (file->pcapng.stalled)
		remedy = "let it read";
	return error_set(error, code, "%s: cannot write %s: %s; %s", option, file->path,
			 save_file_why(file, code), remedy);
}

static int files_open(struct save *save, const struct save_config *config,
		      struct gdrcap_error *error)
{
	const char *const paths[SAVE_FILES] = { config->all, config->damaged };

	for (unsigned int f = 0; f < SAVE_FILES; f++) {
		struct save_file *file = &save->files[f];
		int ret;

		file->pcapng.fd = -1;
		if (!paths[f][0])
			continue;
		file->path = strdup(paths[f]);
		if (!file->path)
			return error_set(error, -ENOMEM, "no memory for the files to save to");
		ret = pcapng_open(&file->pcapng, file->path);
		if (ret < 0)
			return file_error(option_names[f], file, ret, error);
		file->pcapng.stall_ms = save->stall_ms;
	}
	return 0;
}

/* From here on what the file held before is gone. */
static int file_begin(struct save *save, struct save_file *file, const struct save_config *config)
{
	const uint32_t snaplen = save->frame_max;
	char description[64];

	pcapng_begin(&file->pcapng, "gdrcap " GDRCAP_VERSION);
	for (uint32_t q = 0; q < config->queues; q++) {
		uint32_t before = 0;

		for (uint32_t i = 0; i < q; i++)
			before += strcmp(config->names[i], config->names[q]) == 0;
		snprintf(description, sizeof(description), "receive queue %u", before);
		pcapng_interface(&file->pcapng, config->names[q], description, snaplen);
	}
	return pcapng_flush(&file->pcapng);
}

static int files_begin(struct save *save, const struct save_config *config,
		       struct gdrcap_error *error)
{
	for (unsigned int f = 0; f < SAVE_FILES; f++) {
		struct save_file *file = &save->files[f];
		int ret = file->path ? file_begin(save, file, config) : 0;

		if (ret < 0)
			return file_error(option_names[f], file, ret, error);
	}
	return 0;
}

/* The most that a burst adds: all its frames for --save, once more for --save-damaged with those held
 * before it, and what is left empty at the end of the circle. */
static uint64_t burst_bytes(const struct save *save)
{
	uint64_t burst = 0, frames = 1;

	for (uint32_t q = 0; q < save->queue_count; q++)
		burst = RTE_MAX(burst, save->rings[q]->burst_max);
	if (save->files[SAVE_ALL].path)
		frames += burst;
	if (save->files[SAVE_DAMAGED].path)
		frames += burst + save->around;
	return frames * save_record_bytes(save->frame_max);
}

static int bounce_create(struct save *save, const struct save_config *config,
			 struct gdrcap_error *error)
{
	const size_t bytes = config->buffer_bytes ? config->buffer_bytes : BOUNCE_BYTES;
	struct save_bounce *bounce = &save->bounce;

	save->burst_bytes = burst_bytes(save);
	bounce->bytes = rte_align64pow2(
		RTE_MAX(RTE_MAX(bytes, BOUNCE_BYTES_MIN), save->patient ? save->burst_bytes : 0));
	bounce->base = mmap(NULL, bounce->bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (bounce->base == MAP_FAILED) {
		bounce->base = NULL;
		return error_set(error, -ENOMEM, "no memory for %zu MiB of frames to be saved",
				 bounce->bytes >> 20);
	}
	if (!config->dump)
		core_dump_without(bounce->base, bounce->bytes);
	if (rte_gpu_mem_register(save->gpu, bounce->bytes, bounce->base) < 0)
		return error_set(error, -rte_errno,
				 "the GPU refused to register %zu MiB for frames to be saved: %s; "
				 "raise the locked-memory limit (ulimit -l unlimited)",
				 bounce->bytes >> 20, rte_strerror(rte_errno));
	bounce->registered = true;
	return 0;
}

static int tables_create(struct save *save, struct gdrcap_error *error)
{
	const size_t bytes = save->queue_count * sizeof(*save->queues);

	save->copies = calloc(KERNEL_COPIES_MAX, sizeof(*save->copies));
	save->queues = aligned_alloc(RING_LINE, bytes ? bytes : RING_LINE);
	if (!save->copies || !save->queues)
		return error_set(error, -ENOMEM, "no memory for the frames to be saved");
	memset(save->queues, 0, bytes);
	for (uint32_t q = 0; q < save->queue_count; q++)
		save->queues[q].until = save->files[SAVE_ALL].path ? save->every : UINT64_MAX;
	return 0;
}

/* The CPU's, and a copy of each that the queues name. */
static int clocks_create(struct save *save, const struct save_config *config,
			 struct gdrcap_error *error)
{
	save->clocks = calloc((size_t)save->queue_count + 1, sizeof(*save->clocks));
	if (!save->clocks)
		return error_set(error, -ENOMEM, "no memory for the frames to be saved");
	save->clocks[0].port = RX_CLOCK_CPU;
	save->clock_count = 1;
	for (uint32_t q = 0; q < save->queue_count; q++) {
		const struct rx_clock *named = config->clocks ? config->clocks[q] : NULL;
		struct save_queue *queue = &save->queues[q];

		queue->clock = save->clocks;
		for (uint32_t i = 0; named && i < q; i++)
			if (config->clocks[i] == named)
				queue->clock = save->queues[i].clock;
		if (!named || queue->clock != save->clocks)
			continue;
		queue->clock = &save->clocks[save->clock_count++];
		*queue->clock = *named;
	}
	return rx_clock_open(save->clocks, error);
}

int save_create(struct save **created, const struct save_config *config, const cpu_set_t *cpus,
		struct gdrcap_error *error)
{
	struct save *save;
	int ret;

	*created = NULL;
	ret = config_check(config, error);
	if (ret < 0)
		return ret;
	save = aligned_alloc(RING_LINE, sizeof(*save));
	if (!save)
		return error_set(error, -ENOMEM, "no memory for the frames to be saved");
	memset(save, 0, sizeof(*save));
	save->rings = config->rings;
	save->queue_count = config->queues;
	save->every = config->every ? config->every : 1;
	save->around = config->around;
	save->slots = config->slots;
	save->patient = config->patient;
	save->frame_max = RTE_MIN(config->frame_max, PCAPNG_SNAPLEN_MAX);
	save->gpu = config->gpu;
	save->ops = config->ops;
	save->device = config->device;
	save->stall_ms = config->stall_ms ? config->stall_ms : PCAPNG_STALL_MS;
	save->reference.layout = config->layout;
	save->reference.pattern = config->pattern;
	save->reference.expect = config->expect;
	save->finished = true; /* nothing to finish before the writer runs */
	ret = files_open(save, config, error);
	if (ret < 0)
		goto err;
	ret = tables_create(save, error);
	if (ret < 0)
		goto err;
	ret = bounce_create(save, config, error);
	if (ret < 0)
		goto err;
	ret = files_begin(save, config, error);
	if (ret < 0)
		goto err;
	ret = clocks_create(save, config, error);
	if (ret < 0)
		goto err;
	save->start_ns = rx_clock_ns(save->clocks, rte_rdtsc());
	ret = thread_start(&save->writer, "gdrcap-save", cpus, save_writer_run, save, error);
	if (ret < 0)
		goto err;
	save->finished = false;
	*created = save;
	return 0;
err:
	save_destroy(save);
	return ret;
}

void save_counts(const struct save *save, struct save_counts *counts)
{
	const struct save_file *all = &save->files[SAVE_ALL], *damaged = &save->files[SAVE_DAMAGED];
	int error = atomic_load_explicit(&save->gather_error, memory_order_relaxed);

	if (!error)
		error = atomic_load_explicit(&all->error, memory_order_relaxed);
	if (!error)
		error = atomic_load_explicit(&damaged->error, memory_order_relaxed);
	counts->saved = atomic_load_explicit(&all->saved, memory_order_relaxed);
	counts->missed = atomic_load_explicit(&all->missed, memory_order_relaxed) +
			 atomic_load_explicit(&all->lost, memory_order_relaxed);
	counts->damaged_saved = atomic_load_explicit(&damaged->saved, memory_order_relaxed);
	counts->damaged_missed = atomic_load_explicit(&damaged->missed, memory_order_relaxed) +
				 atomic_load_explicit(&damaged->lost, memory_order_relaxed);
	counts->error = error;
}

bool save_is_full(const struct save *save)
{
	return atomic_load_explicit(&save->full, memory_order_relaxed);
}

void save_set_lost(struct save *save, uint32_t queue, uint64_t received, uint64_t lost)
{
	save->queues[queue].port_known = true;
	save->queues[queue].port_received = received;
	save->queues[queue].port_lost = lost;
}

uint64_t save_writer_progress(const struct save *save)
{
	uint64_t sum = atomic_load_explicit(&save->bounce.tail, memory_order_relaxed);

	for (unsigned int f = 0; f < SAVE_FILES; f++)
		sum += atomic_load_explicit(&save->files[f].pcapng.moved, memory_order_relaxed) +
		       (atomic_load_explicit(&save->files[f].error, memory_order_relaxed) != 0);
	return sum;
}

/* Leaves a writer behind that is in a call of the system, and starts another for the other file.
 * False: it is not in one. */
static bool writer_replace(struct save *save)
{
	struct gdrcap_error error;

	for (unsigned int f = 0; f < SAVE_FILES; f++) {
		struct save_file *file = &save->files[f];

		if (!file->path || !pcapng_give_up(&file->pcapng))
			continue;
		atomic_store(&file->saved, pcapng_frames(&file->pcapng));
		atomic_store(&file->lost, file->taken - pcapng_frames(&file->pcapng));
		atomic_store(&file->error, file->pcapng.error);
		(void)pthread_detach(save->writer.id);
		save->writer.running = false;
		if (thread_start(&save->writer, "gdrcap-save", NULL, save_writer_run, save,
				 &error) < 0) {
			log_warning("%s", error.text);
			save_writer_run(save);
		}
		return true;
	}
	return false;
}

bool save_writer_is_starved(void *arg)
{
	struct save *save = arg;

	return thread_is_starved(&save->writer.look, save->writer.id);
}

/* Waits until the writer has written all that was handed over, and closed. */
static void writer_join(struct save *save)
{
	const struct save_bounce *bounce = &save->bounce;
	const uint32_t tick = RTE_MIN(LOOK_MS, save->stall_ms);
	uint64_t last = save_writer_progress(save);
	struct patience patience;
	uint32_t told_ms = 0;

	/* After the last HAND_OVER. Partner: the acquire load in writer_loop(). */
	atomic_store_explicit(&save->stop, 1, memory_order_release);
	patience_begin(&patience);
	while (!thread_join_within(&save->writer, tick)) {
		const uint64_t now = save_writer_progress(save);

		if (now != last)
			patience_begin(&patience);
		last = now;
		/* A pipe's writer ends by itself, and first. */
		if (patience_ends(&patience, save->stall_ms + 2 * tick, save_writer_is_starved,
				  save) &&
		    writer_replace(save)) {
			last = save_writer_progress(save);
			patience_begin(&patience);
			continue;
		}
		told_ms += tick;
		if (told_ms < PROGRESS_MS)
			continue;
		told_ms = 0;
		log_line(GDRCAP_LOG_PROGRESS, "save: %llu MiB of frames still to be written",
			 (unsigned long long)((atomic_load(&bounce->head) -
					       atomic_load(&bounce->tail)) >>
					      20));
	}
}

static int file_result(const char *option, const struct save_file *file, int code,
		       struct gdrcap_error *error)
{
	const unsigned long long saved = atomic_load(&file->saved);
	const char *remedy =
		"free space there, or save fewer frames (save_every; around damaged ones: "
		"save_around)";

	if (pcapng_is_given_up(&file->pcapng))
		return error_set(
			error, code,
			"%s: cannot write %s: its file system does not answer; it was given up (frames until then: %llu), with the memory that is being "
			"written; see to the file system, or name a file elsewhere",
			option, file->path, saved);
	if (code == -EPIPE)
		remedy = "keep its reader running";
	else if (file->pcapng.stalled)
		remedy = "let it read all the time, or name a file";
	return error_set(error, code,
			 "%s: cannot write %s: %s; it holds the first frames (%llu)%s; %s", option,
			 file->path, save_file_why(file, code), saved,
			 file->pcapng.torn ? " and a part of one" : "", remedy);
}

/* The first reason why the files are not whole. */
static int finish_result(struct save *save, struct gdrcap_error *error)
{
	/* The text is there when the code is. Partner: list_failed(). */
	const int gather = atomic_load_explicit(&save->gather_error, memory_order_acquire);

	for (unsigned int f = 0; f < SAVE_FILES; f++) {
		const struct save_file *file = &save->files[f];
		const int code = atomic_load(&file->error);

		if (code)
			return file_result(option_names[f], file, code, error);
	}
	if (gather)
		return error_set(error, gather,
				 "save: frames could not be copied out of the GPU's memory: %s; "
				 "what was saved before is in the files",
				 save->gather_text[0] ? save->gather_text : strerror(-gather));
	return 0;
}

int save_finish(struct save *save, struct gdrcap_error *error)
{
	if (!save->finished) {
		save->finished = true;
		writer_join(save);
		save->result = finish_result(save, &save->result_error);
	}
	if (save->result < 0)
		error_set(error, save->result, "%s", save->result_error.text);
	return save->result;
}

bool save_is_writer(const struct save *save)
{
	return thread_is_self(&save->writer);
}

bool save_leave(struct save *save)
{
	/* After the last HAND_OVER, as in writer_join(). */
	atomic_store_explicit(&save->stop, 1, memory_order_release);
	return thread_has_left(&save->writer);
}

void save_destroy(struct save *save)
{
	bool left = false;

	if (!save)
		return;
	(void)save_finish(save, NULL);
	if (save->bounce.registered && rte_gpu_mem_unregister(save->gpu, save->bounce.base) < 0)
		log_warning("the GPU kept the buffer of saved frames registered: %s",
			    rte_strerror(rte_errno));
	if (save->bounce.base)
		munmap(save->bounce.base, save->bounce.bytes);
	for (unsigned int f = 0; f < SAVE_FILES; f++) {
		if (save->files[f].path && save->files[f].pcapng.buffer)
			pcapng_close(&save->files[f].pcapng);
		left |= pcapng_is_given_up(&save->files[f].pcapng);
		free(save->files[f].path);
		save->files[f].path = NULL;
	}
	free(save->queues);
	free(save->clocks);
	free(save->copies);
	/* A writer that was given up asks the file's place when its call returns. */
	if (!left)
		free(save);
}
