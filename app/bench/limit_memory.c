/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast cores read host memory: each over its own piece, again and again, with the widest loads
 * that the machine has. What a last-level cache's cores read together is at least four times that
 * cache, so that it has nothing of it when they come round.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "bench/bench_util.h"

#define CACHES_IN_SET 4u
#define CACHE_UNKNOWN (UINT64_C(128) << 20)
#define CACHE_LEVELS 8
#define PAGE (UINT64_C(2) << 20)
#define CHUNK (UINT64_C(1) << 20) /* read between two looks at the clock */
#define FILL 0x55

/* ORs all 64-bit words, a multiple of 512 bytes, so that every load is needed. */
typedef uint64_t (*memory_fold)(const uint8_t *from, size_t bytes);

#define FOLD(name, width, attribute)                                                               \
	static attribute uint64_t name(const uint8_t *from, size_t bytes)                          \
	{                                                                                          \
		typedef uint64_t vector __attribute__((vector_size(width)));                       \
		const vector *at = (const vector *)(const void *)from;                             \
		const vector *end = at + bytes / sizeof(vector);                                   \
		vector a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };                                 \
		vector e = { 0 }, f = { 0 }, g = { 0 }, h = { 0 };                                 \
		uint64_t all = 0;                                                                  \
                                                                                                   \
		for (; at != end; at += 8) {                                                       \
			a |= at[0], b |= at[1], c |= at[2], d |= at[3];                            \
			e |= at[4], f |= at[5], g |= at[6], h |= at[7];                            \
		}                                                                                  \
		a |= b | c | d | e | f | g | h;                                                    \
		for (size_t i = 0; i < sizeof(vector) / sizeof(uint64_t); i++)                     \
			all |= a[i];                                                               \
		return all;                                                                        \
	}

FOLD(fold_128, 16, )
#ifdef __x86_64__
FOLD(fold_256, 32, __attribute__((target("avx2"))))
FOLD(fold_512, 64, __attribute__((target("avx512f"))))
#endif

static memory_fold fold_widest(uint32_t *bits)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512f")) {
		*bits = 512;
		return fold_512;
	}
	if (__builtin_cpu_supports("avx2")) {
		*bits = 256;
		return fold_256;
	}
#endif
	*bits = 128;
	return fold_128;
}

/* One core's. */
struct memory_piece {
	uint8_t *base;
	uint64_t bytes_read, began, ended; /* of the last run; ns */
	uint64_t words; /* what fold() gave: of no meaning, but somebody asks for it */
} __attribute__((aligned(128)));

struct memory_stage {
	const struct bench *bench;
	memory_fold fold;
	uint32_t bits, cores;
	uint64_t bytes; /* of a piece */
	uint8_t *mapped;
	uint64_t mapped_bytes;
	uint64_t run_ns;
	struct memory_piece *pieces;
};

/* ---- how much ---- */

/* Which CPUs share the furthest cache of that one; "" where it is not known. */
static void sharers_of(int cpu, char *text, size_t bytes)
{
	uint64_t furthest = 0;

	text[0] = '\0';
	for (int i = 0; i < CACHE_LEVELS; i++) {
		char path[128];
		uint64_t level;
		FILE *file;

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cache/index%d/level",
			 cpu, i);
		level = bench_file_number(path, 0);
		if (level <= furthest)
			continue;
		furthest = level;
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/cache/index%d/shared_cpu_list", cpu, i);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (!fgets(text, (int)bytes, file))
			text[0] = '\0';
		fclose(file);
	}
}

/* Of the cores that are used, the fewest that have a last-level cache together. */
static uint32_t sharers_least(const struct bench *bench, uint32_t cores)
{
	char(*text)[256] = calloc(cores, sizeof(*text));
	uint32_t least = cores;

	if (!text)
		return 1;
	for (uint32_t i = 0; i < cores; i++)
		sharers_of(bench->cpus[i], text[i], sizeof(text[i]));
	for (uint32_t i = 0; i < cores; i++) {
		uint32_t sharers = 0;

		for (uint32_t k = 0; k < cores; k++)
			sharers += strcmp(text[i], text[k]) == 0;
		if (!text[i][0])
			sharers = 1;
		least = sharers < least ? sharers : least;
	}
	free(text);
	return least;
}

/* A core's piece: whole pages, so that huge ones fit. */
static uint64_t piece_bytes(const struct bench *bench, uint32_t cores)
{
	const uint64_t cache =
		bench->machine.cache_bytes ? bench->machine.cache_bytes : CACHE_UNKNOWN;
	const uint32_t sharers = sharers_least(bench, cores);
	const uint64_t share = (CACHES_IN_SET * cache + sharers - 1) / sharers;

	return (share + PAGE - 1) / PAGE * PAGE;
}

/* ---- the stage ---- */

static uint32_t memory_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	static const char memory[] = "host";

	for (uint32_t i = 0; i < 2; i++) {
		memcpy(points[i].memory, memory, sizeof(memory));
		points[i].queues = i ? bench->cpu_count : 1;
	}
	return bench->cpu_count > 1 ? 2 : 1;
}

static void memory_close(void *arg)
{
	struct memory_stage *state = arg;

	if (state->mapped)
		munmap(state->mapped, state->mapped_bytes);
	free(state->pieces);
}

/* The core that will read it writes it first, so that it lies on that core's node. */
static void memory_touch(void *arg, uint32_t index)
{
	const struct memory_stage *state = arg;

	memset(state->pieces[index].base, FILL, state->bytes);
}

static int memory_map(struct memory_stage *state, struct gdrcap_error *error)
{
	const uint64_t available = bench_memory_available();
	uint8_t *base;

	state->mapped_bytes = state->bytes * state->cores + PAGE;
	if (state->mapped_bytes > available / 2)
		return error_set(error, -ENOMEM,
				 "%u cores have to read %" PRIu64 " MiB to find nothing in their "
				 "caches, and half of what is free is %" PRIu64 " MiB; free some, "
				 "or use fewer CPUs (--cores)",
				 state->cores, state->mapped_bytes >> 20, available / 2 >> 20);
	base = mmap(NULL, state->mapped_bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return error_set(error, -errno, "cannot map %" PRIu64 " MiB: %s",
				 state->mapped_bytes >> 20, strerror(errno));
	state->mapped = base;
	base += (PAGE - (uintptr_t)base % PAGE) % PAGE;
	/* As the frames' memory; a kernel without transparent huge pages refuses. */
	(void)madvise(base, state->bytes * state->cores, MADV_HUGEPAGE);
	for (uint32_t i = 0; i < state->cores; i++)
		state->pieces[i].base = base + i * state->bytes;
	return bench_on_cores(state->bench, state->cores, memory_touch, state, NULL, error);
}

static int memory_open(const struct bench *bench, const struct gdrcap_bench_point *point,
		       void *opened, struct gdrcap_error *error)
{
	struct memory_stage *state = opened;

	state->bench = bench;
	state->cores = point->queues;
	state->fold = fold_widest(&state->bits);
	state->bytes = piece_bytes(bench, state->cores);
	state->pieces = aligned_alloc(128, state->cores * sizeof(*state->pieces));
	if (!state->pieces)
		return error_set(error, -ENOMEM, "no memory for a memory stage");
	memset(state->pieces, 0, state->cores * sizeof(*state->pieces));
	return memory_map(state, error);
}

static void memory_loop(void *arg, uint32_t index)
{
	const struct memory_stage *state = arg;
	struct memory_piece *piece = &state->pieces[index];
	uint64_t at = 0, words = 0;

	piece->bytes_read = 0;
	piece->began = bench_now_ns();
	do {
		words |= state->fold(piece->base + at, CHUNK);
		at = (at + CHUNK) % state->bytes;
		piece->bytes_read += CHUNK;
		piece->ended = bench_now_ns();
	} while (piece->ended - piece->began < state->run_ns);
	piece->words = words;
}

static int memory_run(void *arg, uint32_t run_ms, struct bench_sample *sample,
		      struct gdrcap_error *error)
{
	struct memory_stage *state = arg;
	uint64_t began = UINT64_MAX, ended = 0, bytes = 0;
	double away;
	int ret;

	state->run_ns = (uint64_t)run_ms * 1000000;
	ret = bench_on_cores(state->bench, state->cores, memory_loop, state, &away, error);
	if (ret < 0)
		return ret;
	for (uint32_t i = 0; i < state->cores; i++) {
		const struct memory_piece *piece = &state->pieces[i];

		began = piece->began < began ? piece->began : began;
		ended = piece->ended > ended ? piece->ended : ended;
		bytes += piece->bytes_read;
	}
	sample->seconds = (double)(ended - began) * 1e-9;
	sample->value = sample->gbps = (double)bytes * 8 / (double)(ended - began);
	snprintf(sample->note, sizeof(sample->note),
		 "each core reads its own %" PRIu64 " MiB, %u bits a load", state->bytes >> 20,
		 state->bits);
	bench_note_away(sample, away);
	return 0;
}

const struct bench_stage bench_memory_read = {
	.about = {
		.id = "memory_read",
		.group = "limit",
		.what = "host memory read by one core (queues 1) and by all, each over a piece of "
			"its own of which no cache has anything left, with the widest loads there "
			"are",
		.unit = "Gb/s",
	},
	.points = memory_points,
	.state_bytes = sizeof(struct memory_stage),
	.open = memory_open,
	.run = memory_run,
	.close = memory_close,
};
