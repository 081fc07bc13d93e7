/* SPDX-License-Identifier: BSD-3-Clause */
/* The runner: which points there are, and one after the other. */
#include "bench/bench.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench/bench_machine.h"
#include "bench/bench_result.h"

#define RUNS 5u
#define RUN_MS 500u
#define RUN_MS_MOST 600000u
#define STATE_ALIGN 128 /* two cache lines, which some CPUs fetch together */

/* Runs of a quick bench are as long as fits into its share of the time; no point begins that would
 * probably end after the rest. */
#define QUICK_SHARE_MS 420000u
#define QUICK_RUN_MS_LEAST 50u
#define QUICK_RUN_MS_MOST 300u
#define QUICK_NS UINT64_C(475000000000)

struct point {
	const struct bench_stage *stage;
	struct gdrcap_bench_point point;
	const char *missing; /* why it cannot be measured on this machine, or NULL */
};

struct runner {
	struct bench bench;
	const struct gdrcap_bench_config *config;
	bool *chosen; /* a stage; as bench_stages[] */
	struct point *points;
	uint32_t count, done, measured;
	uint32_t possible; /* points that can be measured on this machine */
	uint32_t runs;
	uint64_t began, spent; /* ns: when the first point was, and on points until now */
	cpu_set_t cpus;	       /* of the caller: a stage may pin this thread */
	struct bench_run run[GDRCAP_BENCH_RUNS_MAX];
	struct bench_sample warm_up;
	/* Points of which a run failed, and what the first said: not those that cannot be
	 * measured. */
	uint32_t failed;
	const char *failed_stage;
	struct gdrcap_error failed_error;
};

const struct gdrcap_bench_stage *gdrcap_bench_stage_at(size_t index)
{
	return index < bench_stage_count ? &bench_stages[index]->about : NULL;
}

/* ---- selection ---- */

static size_t list_append(char *list, size_t bytes, size_t used, const char *name)
{
	const int length = snprintf(list + used, bytes - used, "%s%s", used ? ", " : "", name);

	return length < 0 || (size_t)length >= bytes - used ? bytes - 1 : used + (size_t)length;
}

static int refuse_stage(const char *name, struct gdrcap_error *error)
{
	char ids[320] = "", groups[96] = "";
	size_t ids_used = 0, groups_used = 0;

	for (size_t i = 0; i < bench_stage_count; i++) {
		const char *group = bench_stages[i]->about.group;
		bool seen = false;

		for (size_t k = 0; k < i; k++)
			seen |= strcmp(bench_stages[k]->about.group, group) == 0;
		if (!seen)
			groups_used = list_append(groups, sizeof(groups), groups_used, group);
		ids_used = list_append(ids, sizeof(ids), ids_used, bench_stages[i]->about.id);
	}
	return error_set(error, -EINVAL,
			 "stages: \"%.32s\" is neither a stage (%s) nor a group of them (%s)", name,
			 ids, groups);
}

static bool limits(const struct bench_stage *stage, const char *id)
{
	bool found = stage->about.limit && strcmp(stage->about.limit, id) == 0;

	for (size_t i = 0; i < BENCH_LIMITS_MORE && stage->more_limits[i]; i++)
		found |= strcmp(stage->more_limits[i], id) == 0;
	return found;
}

/* The stages that limit chosen ones are measured with them. */
static void choose_limits(struct runner *runner)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < bench_stage_count; i++)
			for (size_t k = 0; k < bench_stage_count; k++) {
				if (!runner->chosen[i] || runner->chosen[k] ||
				    !limits(bench_stages[i], bench_stages[k]->about.id))
					continue;
				runner->chosen[k] = true;
				more = true;
			}
	}
}

static int choose(struct runner *runner, const char *list, struct gdrcap_error *error)
{
	const bool all = !list || !list[0];

	for (size_t i = 0; all && i < bench_stage_count; i++)
		runner->chosen[i] = true;
	while (!all) {
		const size_t length = strcspn(list, ",");
		bool found = false;
		char name[64];

		snprintf(name, sizeof(name), "%.*s", (int)(length < 60 ? length : 60), list);
		for (size_t i = 0; i < bench_stage_count; i++) {
			const struct gdrcap_bench_stage *about = &bench_stages[i]->about;

			if (strcmp(about->id, name) != 0 && strcmp(about->group, name) != 0)
				continue;
			runner->chosen[i] = true;
			found = true;
		}
		if (!found)
			return refuse_stage(name, error);
		if (!list[length])
			break;
		list += length + 1;
	}
	return 0;
}

/* ---- points ---- */

static bool point_add(struct runner *runner, const struct bench_stage *stage,
		      struct gdrcap_bench_point *point, const char *missing)
{
	struct point *points;

	snprintf(point->stage, sizeof(point->stage), "%s", stage->about.id);
	for (uint32_t i = 0; i < runner->count; i++)
		if (bench_point_equal(&runner->points[i].point, point))
			return true;
	points = realloc(runner->points, (runner->count + 1) * sizeof(*points));
	if (!points)
		return false;
	points[runner->count++] = (struct point){ stage, *point, missing };
	runner->points = points;
	runner->possible += !missing;
	return true;
}

/* A stage that has none here has one without parameters, so that its result can say why. */
static bool points_of(struct runner *runner, const struct bench_stage *stage,
		      struct gdrcap_bench_point *points)
{
	const char *missing = NULL;
	uint32_t count = 0;

	memset(points, 0, BENCH_POINTS_MAX * sizeof(*points));
	if (stage->needs_cuda && !runner->bench.cuda)
		missing = "it needs a CUDA GPU, and the CPU stands in for one here: see gdrcap "
			  "doctor";
	else
		count = stage->points(&runner->bench, points);
	if (count == 0 && !missing)
		missing = "nothing of it fits this machine: give it more CPUs (--cores), or a GPU";
	for (uint32_t i = 0; i < count || i == 0; i++)
		if (!point_add(runner, stage, &points[i], missing))
			return false;
	return true;
}

static int points_create(struct runner *runner, struct gdrcap_error *error)
{
	struct gdrcap_bench_point *points = calloc(BENCH_POINTS_MAX, sizeof(*points));
	bool enough = points != NULL;

	for (size_t i = 0; enough && i < bench_stage_count; i++)
		if (runner->chosen[i])
			enough = points_of(runner, bench_stages[i], points);
	free(points);
	if (enough && runner->count)
		runner->bench.results = calloc(runner->count, sizeof(*runner->bench.results));
	if (!enough || (runner->count && !runner->bench.results))
		return error_set(error, -ENOMEM, "no memory for the bench's points");
	return 0;
}

/* Of all points, also of those that are there already: a bench that goes on runs as long. */
static uint32_t run_ms(const struct runner *runner)
{
	uint32_t ms;

	if (runner->config->run_ms)
		return runner->config->run_ms;
	if (!runner->config->quick || !runner->possible)
		return RUN_MS;
	ms = QUICK_SHARE_MS / (runner->possible * (runner->runs + 1));
	return ms < QUICK_RUN_MS_LEAST	? QUICK_RUN_MS_LEAST
	       : ms > QUICK_RUN_MS_MOST ? QUICK_RUN_MS_MOST
					: ms;
}

/* ---- measuring ---- */

static bool stopped(const struct runner *runner)
{
	return runner->config->stop && runner->config->stop(runner->config->context);
}

/* ns: a point like those before, or as long as its runs. */
static uint64_t point_ns(const struct runner *runner)
{
	const uint64_t runs = UINT64_C(1000000) * runner->bench.run_ms * (runner->runs + 1);
	const uint64_t before = runner->measured ? runner->spent / runner->measured : 0;

	return before > runs ? before : runs;
}

static void run_failed(struct runner *runner, const struct bench_stage *stage,
		       const struct gdrcap_error *error)
{
	if (runner->failed++)
		return;
	runner->failed_stage = stage->about.id;
	runner->failed_error = *error;
}

/* 0, -EINTR between two runs, or what the stage says. */
static int point_runs(struct runner *runner, const struct point *point, void *state,
		      struct gdrcap_error *error)
{
	const struct bench_stage *stage = point->stage;
	const uint32_t cores =
		stage->cores ? stage->cores(&runner->bench, &point->point) : point->point.queues;
	double after = cores ? bench_core_speed(&runner->bench, cores) : 0;

	/* The first is the warm-up. */
	for (uint32_t i = 0; i <= runner->runs; i++) {
		struct bench_sample sample = { 0 };
		const double before = after;
		int ret = stage->run(state, runner->bench.run_ms, &sample, error);

		if (cores)
			after = bench_core_speed(&runner->bench, cores);
		if (ret < 0)
			run_failed(runner, stage, error);
		else if (i == 0)
			runner->warm_up = sample;
		else
			ret = bench_run_take(&runner->run[i - 1], &sample,
					     before > 0 && after > 0 ? (before + after) / 2 : 0,
					     error);
		if (ret < 0)
			return ret;
		if (i < runner->runs && stopped(runner))
			return -EINTR;
	}
	return 0;
}

int bench_stage_open(const struct bench_stage *stage, const struct bench *bench,
		     const struct gdrcap_bench_point *point, void **state,
		     struct gdrcap_error *error)
{
	const size_t bytes = stage->state_bytes / STATE_ALIGN * STATE_ALIGN + STATE_ALIGN;
	int ret;

	*state = aligned_alloc(STATE_ALIGN, bytes);
	if (!*state)
		return error_set(error, -ENOMEM, "no memory for stage %s", stage->about.id);
	memset(*state, 0, bytes);
	ret = stage->open(bench, point, *state, error);
	if (ret == 0)
		return 0;
	bench_stage_close(stage, *state);
	*state = NULL;
	return ret;
}

void bench_stage_close(const struct bench_stage *stage, void *state)
{
	stage->close(state);
	free(state);
}

/* 0 with a result, which may be an error; -EINTR. */
static int point_measure(struct runner *runner, const struct point *point,
			 struct gdrcap_bench_result *result)
{
	const struct bench_stage *stage = point->stage;
	struct gdrcap_error error = { 0 };
	void *state = NULL;
	int ret;

	*result = (struct gdrcap_bench_result){ .point = point->point };
	if (point->missing) {
		bench_result_fail(result, point->missing);
		return 0;
	}
	(void)pthread_setaffinity_np(pthread_self(), sizeof(runner->cpus), &runner->cpus);
	ret = bench_stage_open(stage, &runner->bench, &point->point, &state, &error);
	if (ret == 0) {
		bool interrupted;

		ret = point_runs(runner, point, state, &error);
		interrupted = ret == -EINTR && !error.text[0];
		bench_stage_close(stage, state);
		if (interrupted)
			return -EINTR;
	}
	if (ret < 0)
		bench_result_fail(result, error.text[0] ? error.text : strerror(-ret));
	else
		bench_result_make(&runner->bench, stage, runner->run, runner->runs,
				  &runner->warm_up, result);
	return 0;
}

static void tell(const struct runner *runner, const struct point *point, uint32_t left)
{
	if (runner->config->progress)
		runner->config->progress(runner->config->context, &point->point, runner->done,
					 runner->count, (double)point_ns(runner) * left * 1e-9);
}

/* The time of a quick bench is over: which points there are still. */
static int out_of_time(const struct runner *runner, uint32_t left, struct gdrcap_error *error)
{
	char stages[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < bench_stage_count; i++) {
		uint32_t count = 0;
		char text[64];

		for (uint32_t k = runner->count - left; k < runner->count; k++)
			count += runner->points[k].stage == bench_stages[i];
		snprintf(text, sizeof(text), "%u of %s", count, bench_stages[i]->about.id);
		if (count)
			used = list_append(stages, sizeof(stages), used, text);
	}
	return error_set(error, -ETIME,
			 "the 8 minutes of a quick bench are over; points are left: %s: "
			 "--stages asks for less",
			 stages);
}

static int measure(struct runner *runner, struct gdrcap_error *error)
{
	struct bench *bench = &runner->bench;
	uint32_t left = runner->possible;
	int ret = 0;

	runner->began = bench_now_ns();
	for (uint32_t i = 0; ret == 0 && i < runner->count; i++) {
		const struct point *point = &runner->points[i];
		struct gdrcap_bench_result *result = &bench->results[bench->result_count];
		const uint64_t start = bench_now_ns();

		if (stopped(runner))
			return error_set(error, -EINTR, "stopped");
		if (runner->config->quick && start - runner->began + point_ns(runner) > QUICK_NS)
			return out_of_time(runner, runner->count - i, error);
		tell(runner, point, left);
		ret = point_measure(runner, point, result);
		if (ret < 0)
			return error_set(error, ret, "stopped");
		bench->result_count++;
		runner->done++;
		left -= !point->missing;
		/* Points that cannot be measured say nothing of how long the others take. */
		if (!result->error[0]) {
			runner->spent += bench_now_ns() - start;
			runner->measured++;
		}
		if (runner->config->result)
			runner->config->result(runner->config->context, result);
	}
	if (runner->failed)
		return error_set(error, -EIO, "%u %s failed, as the notes say; the first, %s: %s",
				 runner->failed, runner->failed == 1 ? "point" : "points",
				 runner->failed_stage, runner->failed_error.text);
	return ret;
}

/* ---- life ---- */

static bool is_who(const char *name, size_t length)
{
	static const char *const whos[] = { "driver", "cpu", "gpu" };

	for (size_t i = 0; i < sizeof(whos) / sizeof(whos[0]); i++)
		if (strlen(whos[i]) == length && strncmp(whos[i], name, length) == 0)
			return true;
	return false;
}

static int check_ports(const struct gdrcap_bench_config *config, struct gdrcap_error *error)
{
	const char *by = config->rx_by;

	if (!config->port != !config->tx_port)
		return error_set(error, -EINVAL,
				 "port, tx_port: frames go from the one to the other: give both");
	if (!config->port && (by || config->tx_by))
		return error_set(error, -EINVAL,
				 "rx_by, tx_by: they are of ports: give port and tx_port");
	for (; by; by = strchr(by, ',') ? strchr(by, ',') + 1 : NULL)
		if (!is_who(by, strcspn(by, ",")))
			return error_set(
				error, -EINVAL,
				"rx_by: \"%.32s\" is not driver, cpu or gpu, or several of "
				"them separated by commas",
				config->rx_by);
	if (config->tx_by && !is_who(config->tx_by, strlen(config->tx_by)))
		return error_set(error, -EINVAL, "tx_by: \"%.32s\" is not driver, cpu or gpu",
				 config->tx_by);
	return 0;
}

static int check(const struct gdrcap_bench_config *config, struct gdrcap_error *error)
{
	if (config->runs > GDRCAP_BENCH_RUNS_MAX)
		return error_set(error, -EINVAL, "runs: %u is more than %u", config->runs,
				 GDRCAP_BENCH_RUNS_MAX);
	if (config->run_ms > RUN_MS_MOST)
		return error_set(error, -EINVAL, "run_ms: %u is more than %u", config->run_ms,
				 RUN_MS_MOST);
	return check_ports(config, error);
}

static int run(struct runner *runner, struct gdrcap_error *error)
{
	int ret = choose(runner, runner->config->stages, error);

	if (ret == 0)
		ret = bench_open(&runner->bench, runner->config, error);
	if (ret < 0)
		return ret;
	choose_limits(runner);
	ret = points_create(runner, error);
	if (ret == 0) {
		runner->bench.run_ms = run_ms(runner);
		ret = measure(runner, error);
	}
	bench_close(&runner->bench);
	return ret;
}

int gdrcap_bench_run(const struct gdrcap_bench_config *config, struct gdrcap_error *error)
{
	struct runner *runner;
	int ret = check(config, error);

	if (ret < 0)
		return ret;
	runner = calloc(1, sizeof(*runner));
	if (!runner)
		return error_set(error, -ENOMEM, "no memory for a bench");
	runner->config = config;
	runner->runs = config->runs ? config->runs : RUNS;
	runner->chosen = calloc(bench_stage_count, sizeof(*runner->chosen));
	if (sched_getaffinity(0, sizeof(runner->cpus), &runner->cpus) != 0)
		ret = error_set(error, -errno, "cannot read the allowed CPUs: %s", strerror(errno));
	else if (!runner->chosen)
		ret = error_set(error, -ENOMEM, "no memory for a bench");
	else
		ret = run(runner, error);
	(void)pthread_setaffinity_np(pthread_self(), sizeof(runner->cpus), &runner->cpus);
	free(runner->bench.results);
	free(runner->points);
	free(runner->chosen);
	free(runner);
	return ret;
}
