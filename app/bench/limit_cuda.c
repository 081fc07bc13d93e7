/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the bus between CPU and GPU can do: copies, a kernel that reads pinned memory itself, and an
 * empty round trip.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_util.h"
#ifdef GDRCAP_WITH_CUDA
#include "base/log.h"
#include "bench/latency.h"
#include "bench/bench_kernels.h"

#define BUS_BYTES ((size_t)256 << 20)
#define READ_THREADS 1024u
#define ECHO_JOIN_MS 1000u
#define ECHO_LOST_NS 1000000000u

/* ---- bandwidth ---- */

struct bus {
	const struct bench *bench;
	struct bench_gpu *gpu;
	uint32_t blocks;     /* 0: copy */
	bool from_gpu;	     /* reads the GPU's memory; else the host's */
	void *host, *device; /* the same is in both when it is read */
	uint64_t sum;	     /* of that */
};

static uint32_t copy_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	snprintf(points[0].memory, sizeof(points[0].memory), "pinned");
	return 1;
}

static uint32_t read_points(const struct bench *bench, const char *memory,
			    struct gdrcap_bench_point *points)
{
	const uint32_t *few = bench->config->quick ? BENCH_LIST(2, 8, 16, 64)
						   : BENCH_LIST(1, 2, 4, 8, 16, 32, 64);
	const struct bench_grid grids[] = {
		{ .blocks = few, .memory = memory },
		{ .blocks = BENCH_LIST(bench->machine.gpu_units), .memory = memory },
	};
	struct bench_points to = { bench, points, 0, NULL };

	bench_points_add(&to, grids, 2);
	return to.count;
}

static uint32_t gpu_memory_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	return read_points(bench, "device", points);
}

static uint32_t zero_copy_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	return read_points(bench, "pinned", points);
}

static void bus_close(void *state)
{
	struct bus *bus = state;

	if (bus->host)
		bench_gpu_free(bus->gpu, bus->host, 1);
	if (bus->device)
		bench_gpu_free(bus->gpu, bus->device, 0);
	if (bus->gpu)
		bench_gpu_close(bus->gpu);
}

static int bus_memory(struct bus *bus)
{
	int ret = bench_gpu_open(bus->bench->ordinal, &bus->gpu);
	uint32_t *words;
	double seconds;

	if (ret < 0)
		return ret;
	bus->host = bench_gpu_alloc(bus->gpu, BUS_BYTES, 1);
	if (bus->host)
		bus->device = bench_gpu_alloc(bus->gpu, BUS_BYTES, 0);
	if (!bus->device)
		return -ENOMEM;
	words = bus->host;
	for (uint32_t i = 0; i < BUS_BYTES / sizeof(*words); i++) {
		words[i] = i;
		bus->sum += i;
	}
	return bus->from_gpu
		       ? bench_gpu_copy(bus->gpu, bus->device, bus->host, BUS_BYTES, 1, &seconds)
		       : 0;
}

static int bus_open(const struct bench *bench, const struct gdrcap_bench_point *point, void *state,
		    struct gdrcap_error *error)
{
	struct bus *bus = state;
	int ret;

	bus->bench = bench;
	bus->blocks = point->blocks;
	bus->from_gpu = strcmp(point->memory, "device") == 0;
	bench_pin(bench, 0);
	ret = bus_memory(bus);
	return ret < 0 ? error_set(error, ret, "%s", kernel_error()) : 0;
}

/* Once, in *seconds. */
static int bus_move(struct bus *bus, double *seconds, struct gdrcap_error *error)
{
	uint64_t sum;
	int ret;

	if (!bus->blocks) {
		ret = bench_gpu_copy(bus->gpu, bus->device, bus->host, BUS_BYTES, 1, seconds);
		return ret ? error_set(error, ret, "%s", kernel_error()) : 0;
	}
	ret = bench_gpu_read(bus->gpu, bus->from_gpu ? bus->device : bus->host, BUS_BYTES,
			     bus->blocks, READ_THREADS, 1, seconds, &sum);
	if (ret)
		return error_set(error, ret, "%s", kernel_error());
	if (sum != bus->sum)
		return error_set(error, -EIO,
				 "a kernel read something else than there is: "
				 "see dmesg for Xid and AER lines");
	return 0;
}

static int bus_run(void *state, uint32_t run_ms, struct bench_sample *sample,
		   struct gdrcap_error *error)
{
	struct bus *bus = state;
	double seconds = 0, bytes = 0;
	int ret = 0;

	bench_pin(bus->bench, 0);
	while (!ret && seconds < run_ms * 1e-3) {
		double once;

		ret = bus_move(bus, &once, error);
		seconds += once;
		bytes += BUS_BYTES;
	}
	sample->seconds = seconds;
	sample->value = bytes * 8 / seconds / 1e9;
	return ret;
}

/* ---- round trip ---- */

struct trip {
	const struct bench *bench;
	struct bench_gpu *gpu;
	struct bench_echo *echo;
	uint64_t asked, spacing_ns;
	double *ns;
};

static uint32_t trip_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	points[0].blocks = 1;
	return 1;
}

static void trip_close(void *state)
{
	struct trip *trip = state;

	if (trip->echo) {
		__atomic_store_n(&trip->echo->ask, BENCH_ECHO_LEAVE, __ATOMIC_RELEASE);
		if (bench_gpu_join(trip->gpu, ECHO_JOIN_MS) == -ETIMEDOUT) {
			/* It still uses its memory. */
			log_warning("bench: %s", kernel_error());
			return;
		}
		bench_gpu_free(trip->gpu, trip->echo, 1);
	}
	if (trip->gpu)
		bench_gpu_close(trip->gpu);
	free(trip->ns);
}

static int trip_start(struct trip *trip)
{
	int ret = bench_gpu_open(trip->bench->ordinal, &trip->gpu);

	if (ret < 0)
		return ret;
	trip->echo = bench_gpu_alloc(trip->gpu, sizeof(*trip->echo), 1);
	return trip->echo ? bench_gpu_echo_start(trip->gpu, trip->echo) : -ENOMEM;
}

static int trip_open(const struct bench *bench, const struct gdrcap_bench_point *point, void *state,
		     struct gdrcap_error *error)
{
	struct trip *trip = state;
	double mpps;
	int ret;

	trip->bench = bench;
	trip->ns = malloc(LATENCY_SAMPLES_MOST * sizeof(*trip->ns));
	if (!trip->ns)
		return error_set(error, -ENOMEM, "no memory for samples");
	/* Before its kernel runs: while it does, nothing can be allocated. */
	ret = latency_load(bench, LATENCY_BLOCKS, &trip->spacing_ns, &mpps, error);
	if (ret < 0)
		return ret;
	ret = trip_start(trip);
	return ret < 0 ? error_set(error, ret, "%s", kernel_error()) : 0;
}

/* One, at `due` or later. Returns when it was asked, or 0 when no answer came. */
static uint64_t trip_once(struct trip *trip, uint64_t due, uint64_t *answered)
{
	uint64_t asked;

	while ((asked = bench_now_ns()) < due)
		;
	__atomic_store_n(&trip->echo->ask, ++trip->asked, __ATOMIC_RELEASE);
	for (uint32_t polls = 0;
	     __atomic_load_n(&trip->echo->answer, __ATOMIC_ACQUIRE) != trip->asked; polls++)
		if (polls % 4096 == 4095 && bench_now_ns() - asked > ECHO_LOST_NS)
			return 0;
	*answered = bench_now_ns();
	return asked;
}

static int trip_run(void *state, uint32_t run_ms, struct bench_sample *sample,
		    struct gdrcap_error *error)
{
	struct trip *trip = state;
	uint64_t begin, due, now, count = 0;

	bench_pin(trip->bench, 0);
	begin = due = now = bench_now_ns();
	while (!latency_is_over(count, now - begin, run_ms)) {
		const uint64_t asked = trip_once(trip, due, &now);

		if (!asked)
			return error_set(error, -ETIMEDOUT, "the echo kernel does not answer: %s",
					 bench_gpu_running(trip->gpu) < 0 ? kernel_error()
									  : "see dmesg");
		trip->ns[count++] = (double)(now - asked);
		due = asked + trip->spacing_ns;
	}
	sample->seconds = (double)(now - begin) * 1e-9;
	latency_sample(trip->ns, count, sample);
	snprintf(sample->note, sizeof(sample->note),
		 "one each %llu ns at the soonest, as the "
		 "latency's bursts",
		 (unsigned long long)trip->spacing_ns);
	return 0;
}
#endif

/* Without CUDA nobody asks a stage that needs it for points. */
const struct bench_stage bench_gpu_memory = {
	.about = {
		.id = "gpu_memory",
		.group = "limit",
		.what = "a kernel reads 256 MiB of the GPU's memory, 1024 threads a block",
		.unit = "Gb/s",
	},
	.needs_cuda = true,
#ifdef GDRCAP_WITH_CUDA
	.points = gpu_memory_points,
	.state_bytes = sizeof(struct bus),
	.open = bus_open,
	.run = bus_run,
	.close = bus_close,
#endif
};

const struct bench_stage bench_copy = {
	.about = {
		.id = "copy",
		.group = "limit",
		.what = "cudaMemcpyAsync() of 256 MiB from pinned to GPU memory",
		.unit = "Gb/s",
	},
	.needs_cuda = true,
#ifdef GDRCAP_WITH_CUDA
	.points = copy_points,
	.state_bytes = sizeof(struct bus),
	.open = bus_open,
	.run = bus_run,
	.close = bus_close,
#endif
};

const struct bench_stage bench_zero_copy = {
	.about = {
		.id = "zero_copy",
		.group = "limit",
		.what = "a kernel reads 256 MiB of pinned memory over the bus",
		.unit = "Gb/s",
		.limit = "copy",
	},
	.needs_cuda = true,
#ifdef GDRCAP_WITH_CUDA
	.points = zero_copy_points,
	.state_bytes = sizeof(struct bus),
	.open = bus_open,
	.run = bus_run,
	.close = bus_close,
#endif
};

const struct bench_stage bench_round_trip = {
	.about = {
		.id = "round_trip",
		.group = "limit",
		.what = "a word from the CPU to a kernel that runs and back through pinned memory: the "
			"median",
		.unit = "ns",
		.less_is_better = 1,
	},
	.needs_cuda = true,
#ifdef GDRCAP_WITH_CUDA
	.points = trip_points,
	.state_bytes = sizeof(struct trip),
	.open = trip_open,
	.run = trip_run,
	.close = trip_close,
#endif
};
