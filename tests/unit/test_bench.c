/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The runner of gdrcap_bench.h with stages and a clock of the test's own: which points are measured
 * in which order, what becomes of their runs, and how a bench ends early and goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"

#define RESULTS_MAX 512
#define MS UINT64_C(1000000)

static struct {
	uint64_t now;	      /* ns, the runner's clock */
	uint64_t run_takes;   /* ns; 0: as long as it is asked to */
	uint32_t fast_points; /* of stage "fast" ... */
	uint32_t fast_repeat; /* ... each so often */
	uint32_t fast_queues;
	char open_stage[24];
	uint32_t opens, closes, runs, run_ms; /* runs of this point, the warm-up too */
	uint32_t all_runs;
	uint32_t speeds;	      /* how often cores' were asked for */
	int open_error, run_error_at; /* run number, 0: never */
	const double *values;	      /* of "slow"'s runs, the warm-up first */
	double own_limit;
	uint64_t lost_in_run[8];
	uint32_t progress, last_done, last_points;
	double seconds_left;
	uint32_t stop_after; /* runs in all; 0: never */
	struct gdrcap_bench_result results[RESULTS_MAX];
	uint32_t count;
} fake;

uint64_t __wrap_bench_now_ns(void);
uint64_t __wrap_bench_now_ns(void)
{
	return fake.now;
}

double __wrap_bench_core_speed(const struct bench *bench, uint32_t cores);
double __wrap_bench_core_speed(const struct bench *bench, uint32_t cores)
{
	assert_true(cores > 0);
	fake.speeds++;
	return cores + fake.speeds * 0.01;
}

/* ---- stages ---- */

static int fake_open(const struct bench *bench, const struct gdrcap_bench_point *point, void *state,
		     struct gdrcap_error *error)
{
	assert_non_null(bench->device);
	assert_null(*(void **)state);
	assert_true(bench->cpu_count > 0);
	snprintf(fake.open_stage, sizeof(fake.open_stage), "%s", point->stage);
	fake.runs = 0;
	fake.opens++;
	if (fake.open_error) {
		error->code = fake.open_error;
		snprintf(error->text, sizeof(error->text), "the cause; the remedy");
		return fake.open_error;
	}
	*(void **)state = &fake;
	return 0;
}

static void fake_close(void *state)
{
	assert_ptr_equal(*(void **)state, fake.open_error ? NULL : &fake);
	fake.closes++;
}

static uint32_t one_point(const struct bench *bench, struct gdrcap_bench_point *points)
{
	return 1;
}

static int run_one(uint32_t run_ms, double value, struct bench_sample *sample,
		   struct gdrcap_error *error)
{
	fake.now += fake.run_takes ? fake.run_takes : run_ms * MS;
	fake.run_ms = run_ms;
	fake.runs++;
	fake.all_runs++;
	if (fake.run_error_at && (int)fake.runs == fake.run_error_at) {
		snprintf(error->text, sizeof(error->text), "this run failed");
		return -EIO;
	}
	sample->value = value;
	sample->frames = sample->validated = 100 + fake.runs;
	sample->seconds = run_ms * 1e-3;
	sample->lost = fake.runs < 8 ? fake.lost_in_run[fake.runs] : 0;
	sample->limit = fake.own_limit;
	return 0;
}

/* A limit of two points: 4 and 5 ns a frame. */
static uint32_t floor_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	points[0].burst = 32;
	points[1].burst = 64;
	return 2;
}

static int floor_run(void *state, uint32_t run_ms, struct bench_sample *sample,
		     struct gdrcap_error *error)
{
	static double value = 5;

	value = fake.runs == 0 ? 9 - value : value; /* 4 and 5, in turn */
	return run_one(run_ms, value, sample, error);
}

static int slow_run(void *state, uint32_t run_ms, struct bench_sample *sample,
		    struct gdrcap_error *error)
{
	return run_one(run_ms, fake.values ? fake.values[fake.runs] : 10, sample, error);
}

static uint32_t fast_points(const struct bench *bench, struct gdrcap_bench_point *points)
{
	for (uint32_t i = 0; i < fake.fast_points; i++) {
		points[i].frame_bytes = 64 + i / fake.fast_repeat;
		points[i].queues = fake.fast_queues;
	}
	return fake.fast_points;
}

static int wave_run(void *state, uint32_t run_ms, struct bench_sample *sample,
		    struct gdrcap_error *error)
{
	static double latencies[1000];

	for (int i = 0; i < 1000; i++)
		latencies[i] = (i + 1) * (fake.runs == 2 ? 1.0 : 3.0);
	sample->latencies = latencies;
	sample->latency_count = 1000;
	return run_one(run_ms, fake.runs == 2 ? 2 : fake.runs, sample, error);
}

static int pinning_run(void *state, uint32_t run_ms, struct bench_sample *sample,
		       struct gdrcap_error *error)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(pthread_setaffinity_np(pthread_self(), sizeof(one), &one), 0);
	return run_one(run_ms, 1, sample, error);
}

static uint32_t five_cores(const struct bench *bench, const struct gdrcap_bench_point *point)
{
	return 5;
}

#define STAGE(name, stage_group, stage_unit, less, limit_id, points_of, record_of, ...)            \
	static const struct bench_stage name = { .about = { #name, stage_group, "what it is",      \
							    stage_unit, less, limit_id },          \
						 .points = points_of,                              \
						 .state_bytes = sizeof(void *),                    \
						 .open = fake_open,                                \
						 .run = record_of,                                 \
						 .close = fake_close,                              \
						 __VA_ARGS__ }
STAGE(ground, "limit", "ns/frame", 1, NULL, floor_points, floor_run);
STAGE(slow, "cpu", "ns/frame", 1, "ground", one_point, slow_run);
STAGE(fast, "cpu", "Mpps", 0, "ground", fast_points, slow_run);
STAGE(wave, "latency", "ns", 1, NULL, one_point, wave_run, .cores = five_cores);
STAGE(pinning, "idle", "part", 0, NULL, one_point, pinning_run);
STAGE(card, "idle", "part", 0, NULL, one_point, slow_run, .needs_cuda = true);

const struct bench_stage *const bench_stages[] = { &ground, &slow, &fast, &wave, &pinning, &card };
const size_t bench_stage_count = 6;

/* ---- the caller ---- */

static void take(void *context, const struct gdrcap_bench_result *result)
{
	assert_true(fake.count < RESULTS_MAX);
	fake.results[fake.count++] = *result;
}

static void see(void *context, const struct gdrcap_bench_point *point, uint32_t done,
		uint32_t points, double seconds_left)
{
	fake.progress++;
	fake.last_done = done;
	fake.last_points = points;
	fake.seconds_left = seconds_left;
}

static int stop(void *context)
{
	return fake.stop_after && fake.all_runs >= fake.stop_after;
}

static struct gdrcap_bench_config config_of(const char *stages)
{
	return (struct gdrcap_bench_config){
		.gpu = "host",
		.stages = stages,
		.run_ms = 20,
		.result = take,
		.progress = see,
		.stop = stop,
	};
}

static int reset(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.now = 1000;
	fake.fast_points = 2;
	fake.fast_repeat = 1;
	return 0;
}

static void measure(const struct gdrcap_bench_config *config)
{
	struct gdrcap_error error = { 0 };

	if (gdrcap_bench_run(config, &error) < 0)
		fail_msg("%s", error.text);
	assert_int_equal(fake.opens, fake.closes);
}

/* ---- what is measured ---- */

static void order_and_median(void **state)
{
	static const double values[] = { 99, 30, 10, 20, 50, 40 };
	struct gdrcap_bench_config config = config_of("cpu");
	const struct gdrcap_bench_result *result;

	fake.values = values;
	measure(&config);
	/* Their limit comes with them, and before them. */
	assert_int_equal(fake.count, 5);
	assert_string_equal(fake.results[0].point.stage, "ground");
	assert_string_equal(fake.results[1].point.stage, "ground");
	result = &fake.results[2];
	assert_string_equal(result->point.stage, "slow");
	assert_int_equal(result->runs, 5);
	for (int i = 0; i < 5; i++)
		assert_true(result->run[i] == values[i + 1]);
	assert_true(result->median == 30 && result->least == 10 && result->most == 50);
	/* Of the run that was in the middle. */
	assert_int_equal(result->frames, 102);
	assert_int_equal(result->validated, 102);
	assert_true(fabs(result->seconds - 0.02) < 1e-9);
	assert_int_equal(fake.run_ms, 20);
	assert_string_equal(fake.results[3].point.stage, "fast");
	assert_int_equal(fake.results[3].point.frame_bytes, 64);
	assert_int_equal(fake.results[4].point.frame_bytes, 65);
	assert_int_equal(fake.progress, 5);
	assert_int_equal(fake.last_done, 4);
	assert_int_equal(fake.last_points, 5);
	/* One point of six runs is left. */
	assert_true(fabs(fake.seconds_left - 0.12) < 1e-6);
}

/* Of an even number of runs there is no middle one: the worse of two is shown. */
static void even_runs(void **state)
{
	static const double values[] = { 0, 1, 2, 3, 4 };
	struct gdrcap_bench_config config = config_of("slow,fast");

	config.runs = 4;
	fake.values = values;
	measure(&config);
	assert_true(fake.results[2].median == 3); /* ns */
	assert_true(fake.results[3].median == 2); /* Mpps */
}

static void limits(void **state)
{
	struct gdrcap_bench_config config = config_of("slow,fast");

	measure(&config);
	/* The best of 4 and 5 ns, in time; of another unit it is none. */
	assert_true(fake.results[2].limit == 4);
	assert_true(fabs(fake.results[2].of_limit - 0.4) < 1e-9);
	assert_true(fake.results[3].limit == 0 && fake.results[3].of_limit == 0);
	assert_true(fake.results[0].limit == 0);
	reset(state);
	fake.own_limit = 40;
	measure(&config);
	assert_true(fake.results[3].limit == 40);
	assert_true(fabs(fake.results[3].of_limit - 0.25) < 1e-9);
}

/* Before and after each run, the warm-up too: the mean. Of as many cores as the stage has, or one a
 * queue. */
static void speed_of_the_cores(void **state)
{
	struct gdrcap_bench_config config = config_of("slow,fast,wave");

	config.runs = 3;
	fake.fast_queues = 3;
	measure(&config);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(fake.results[2].core_speed[i] == 0);
		assert_true(fabs(fake.results[3].core_speed[i] - (3.025 + i * 0.01)) < 1e-9);
		assert_true(fabs(fake.results[4].core_speed[i] - (3.075 + i * 0.01)) < 1e-9);
		assert_true(fabs(fake.results[5].core_speed[i] - (5.125 + i * 0.01)) < 1e-9);
	}
}

static void limit_of_the_same_memory(void **state)
{
	struct gdrcap_bench_result results[3] = { 0 };
	struct bench bench = { .results = results, .result_count = 3 };

	for (int i = 0; i < 3; i++) {
		snprintf(results[i].point.stage, sizeof(results[i].point.stage), "ground");
		results[i].median = 10 + i;
	}
	snprintf(results[1].point.memory, sizeof(results[1].point.memory), "pinned");
	assert_true(bench_limit(&bench, "ground", NULL) == 10);
	assert_true(bench_limit(&bench, "ground", "pinned") == 11);
	assert_true(bench_limit(&bench, "ground", "device") == 0);
	assert_true(bench_limit(&bench, "nothing", NULL) == 0);
	snprintf(results[0].error, sizeof(results[0].error), "not measured");
	assert_true(bench_limit(&bench, "ground", NULL) == 11);
}

static void percentiles(void **state)
{
	struct gdrcap_bench_config config = config_of("wave");
	const struct gdrcap_bench_result *result = fake.results;

	/* Values 1, 2, 3, 4, 5: with three runs the second, whose latencies are 1..1000. */
	config.runs = 3;
	measure(&config);
	assert_true(result->median == 2);
	assert_true(result->p50_ns == 500 && result->p99_ns == 990);
	assert_true(result->p999_ns == 999 && result->max_ns == 1000);
	assert_int_equal(result->samples, 1000);
}

/* Loss in a run that is not the median one. */
static void loss_is_never_hidden(void **state)
{
	static const double values[] = { 0, 1, 2, 3 };
	struct gdrcap_bench_config config = config_of("slow");

	config.runs = 3;
	fake.values = values;
	fake.lost_in_run[2] = 7;
	measure(&config);
	assert_int_equal(fake.results[2].lost, 7);
}

static void errors_are_results(void **state)
{
	struct gdrcap_bench_config config = config_of("slow,card");
	const struct gdrcap_bench_result *result = &fake.results[2];
	static const double nothing[] = { NAN, NAN, NAN, NAN, NAN, NAN };
	struct gdrcap_error error;

	fake.open_error = -ENOMEM;
	assert_int_equal(gdrcap_bench_run(&config, NULL), 0);
	assert_int_equal(fake.closes, 3);
	assert_int_equal(fake.count, 4);
	assert_string_equal(result->error, "the cause; the remedy");
	assert_string_equal(result->point.stage, "slow");
	assert_int_equal(result->runs, 0);
	assert_non_null(strstr(fake.results[3].error, "CUDA GPU"));
	assert_int_equal(fake.opens, 3);
	reset(state);
	/* A run that fails is told at the end too; the other points are measured. */
	fake.run_error_at = 3;
	assert_int_equal(gdrcap_bench_run(&config, &error), -EIO);
	assert_string_equal(result->error, "this run failed");
	assert_non_null(strstr(error.text, "this run failed"));
	assert_memory_equal(error.text, "3 points failed", 15);
	assert_int_equal(result->runs, 0);
	assert_int_equal(fake.count, 4);
	reset(state);
	fake.values = nothing;
	measure(&config);
	assert_non_null(strstr(result->error, "too short"));
	reset(state);
	/* A stage without points here. */
	fake.fast_points = 0;
	config.stages = "fast";
	measure(&config);
	assert_int_equal(fake.count, 3);
	assert_non_null(strstr(result->error, "nothing of it fits"));
}

static void a_point_is_measured_once(void **state)
{
	struct gdrcap_bench_config config = config_of("fast");

	fake.fast_points = 12;
	fake.fast_repeat = 4;
	measure(&config);
	assert_int_equal(fake.count, 2 + 3);
	assert_int_equal(fake.last_points, 5);
}

/* A stage pins this thread; the next one, and the caller, find it as it was. */
static void affinity_is_given_back(void **state)
{
	struct gdrcap_bench_config config = config_of("pinning");
	cpu_set_t before, after;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	measure(&config);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
}

/* ---- selection ---- */

static void selection(void **state)
{
	static const char *const wrong[] = {
		"slo",	      "cpu,",	   ",",
		"slow,,fast", "slow fast", "a-name-longer-than-any-stage-has-had-so-far"
	};
	struct gdrcap_bench_config config = config_of("");
	struct gdrcap_error error;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		config.stages = wrong[i];
		assert_int_equal(gdrcap_bench_run(&config, &error), -EINVAL);
		assert_non_null(strstr(error.text, "ground, slow, fast, wave, pinning, card"));
		assert_non_null(strstr(error.text, "limit, cpu, latency, idle"));
	}
	assert_int_equal(fake.count, 0);
	config.stages = NULL;
	measure(&config);
	assert_int_equal(fake.count, 8);
	reset(state);
	config.stages = "wave,limit,ground";
	measure(&config);
	assert_int_equal(fake.count, 3);
	assert_string_equal(gdrcap_bench_stage_at(5)->id, "card");
	assert_null(gdrcap_bench_stage_at(6));
}

static void wrong_configurations(void **state)
{
	struct gdrcap_bench_config config = config_of("slow");
	struct gdrcap_error error;

	config.runs = GDRCAP_BENCH_RUNS_MAX + 1;
	assert_int_equal(gdrcap_bench_run(&config, &error), -EINVAL);
	config = config_of("slow");
	config.cores = "2-";
	assert_int_equal(gdrcap_bench_run(&config, &error), -EINVAL);
	assert_non_null(strstr(error.text, "cores"));
	config = config_of("slow");
	config.gpu = "all";
	assert_int_equal(gdrcap_bench_run(&config, &error), -EINVAL);
	assert_non_null(strstr(error.text, "gpu"));
	assert_int_equal(fake.opens, 0);
}

static void machine(void **state)
{
	struct gdrcap_bench_config config = config_of("");
	struct gdrcap_bench_machine machine;
	cpu_set_t set;

	assert_int_equal(gdrcap_bench_machine(&config, &machine, NULL), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	assert_int_equal(machine.cpus, CPU_COUNT(&set));
	assert_true(machine.memory_bytes > (uint64_t)64 << 20);
	assert_true(machine.kernel[0] != '\0');
	assert_string_equal(machine.gpu, "");
	assert_int_equal(machine.gpu_units, 0);
}

/* ---- ends ---- */

static void stop_in_the_middle(void **state)
{
	struct gdrcap_bench_config config = config_of("cpu");
	struct gdrcap_error error;

	(void)state;
	/* Two points of six runs, and in the third after three runs. */
	fake.stop_after = 15;
	assert_int_equal(gdrcap_bench_run(&config, &error), -EINTR);
	assert_int_equal(fake.count, 2);
	assert_int_equal(fake.all_runs, 15);
	assert_int_equal(fake.opens, fake.closes);
	assert_int_equal(fake.opens, fake.count + 1);
}

static void quick_shares_the_time(void **state)
{
	struct gdrcap_bench_config config = config_of("fast");

	config.quick = 1;
	config.run_ms = 0;
	fake.fast_points = 1;
	measure(&config);
	assert_int_equal(fake.run_ms, 300);
	reset(state);
	fake.fast_points = 398;
	measure(&config);
	assert_int_equal(fake.run_ms, 175); /* 420 s / (400 x 6) */
	assert_int_equal(fake.count, 400);
	/* What cannot be measured has no share, and nobody waits for it. */
	reset(state);
	config.stages = "fast,card";
	fake.fast_points = 398;
	measure(&config);
	assert_int_equal(fake.run_ms, 175);
	assert_int_equal(fake.count, 401);
	assert_true(fake.seconds_left == 0);
	config.stages = "fast";
	config.runs = 20;
	reset(state);
	fake.fast_points = 438;
	measure(&config);
	assert_int_equal(fake.run_ms, 50);
	assert_true(fake.now < 480 * 1000 * MS);
	config.quick = 0;
	config.runs = 1;
	reset(state);
	measure(&config);
	assert_int_equal(fake.run_ms, 500);
}

/* Points take longer than they should. */
static void quick_ends_in_time(void **state)
{
	struct gdrcap_bench_config config = config_of("fast,wave");
	struct gdrcap_error error;
	uint32_t count;
	char text[64];

	config.quick = 1;
	config.run_ms = 0;
	fake.fast_points = 300;
	fake.run_takes = 500 * MS;
	assert_int_equal(gdrcap_bench_run(&config, &error), -ETIME);
	assert_true(fake.now <= 480 * 1000 * MS && fake.now > 470 * 1000 * MS);
	count = fake.count - 2; /* of "fast" */
	snprintf(text, sizeof(text), "left: %u of fast, 1 of wave:", 300 - count);
	assert_non_null(strstr(error.text, text));
	/* The first shows that they take half a minute: none begins that would end too late. */
	reset(state);
	fake.fast_points = 300;
	fake.run_takes = 5000 * MS;
	assert_int_equal(gdrcap_bench_run(&config, &error), -ETIME);
	assert_int_equal(fake.count, 15);
	assert_true(fake.now <= 480 * 1000 * MS);
	assert_true(fake.seconds_left > 280 * 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(order_and_median, reset),
		cmocka_unit_test_setup(even_runs, reset),
		cmocka_unit_test_setup(limits, reset),
		cmocka_unit_test_setup(speed_of_the_cores, reset),
		cmocka_unit_test_setup(limit_of_the_same_memory, reset),
		cmocka_unit_test_setup(percentiles, reset),
		cmocka_unit_test_setup(loss_is_never_hidden, reset),
		cmocka_unit_test_setup(errors_are_results, reset),
		cmocka_unit_test_setup(a_point_is_measured_once, reset),
		cmocka_unit_test_setup(affinity_is_given_back, reset),
		cmocka_unit_test_setup(selection, reset),
		cmocka_unit_test_setup(wrong_configurations, reset),
		cmocka_unit_test_setup(machine, reset),
		cmocka_unit_test_setup(stop_in_the_middle, reset),
		cmocka_unit_test_setup(quick_shares_the_time, reset),
		cmocka_unit_test_setup(quick_ends_in_time, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
