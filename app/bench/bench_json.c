/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON object of a bench, on standard output and in a file: schema gdrcap.bench/1, docs/bench.md. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench_report.h"
#include "json_line.h"

#define BENCH_SCHEMA "gdrcap.bench/1"
#define TEXT_BYTES 1024

/* Drivers' and kernels' texts may hold any bytes. */
static json_t *text(const char *from)
{
	char copy[TEXT_BYTES];

	snprintf(copy, sizeof(copy), "%s", from);
	for (char *c = copy; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return json_string(copy);
}

static json_t *text_if(const char *from)
{
	return from[0] ? text(from) : json_null();
}

/* jansson's integers are signed. */
static json_t *count(uint64_t number)
{
	return json_integer(number > INT64_MAX ? INT64_MAX : (json_int_t)number);
}

static json_t *count_if(uint64_t number)
{
	return number ? count(number) : json_null();
}

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *number_if(double value)
{
	return value != 0 ? number(value) : json_null();
}

/* Takes `item` over, also when it fails; NULL fails. */
static int append(json_t *array, json_t *item)
{
	return json_array_append_new(array, item);
}

static json_t *machine_to_json(const struct gdrcap_bench_machine *machine)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "cpu",
			 text_if(machine->cpu), "cpus", count_if(machine->cpus), "kernel",
			 text_if(machine->kernel), "memory_bytes", count_if(machine->memory_bytes),
			 "cache_bytes", count_if(machine->cache_bytes), "hugepages",
			 machine->hugepages, "gpu", text_if(machine->gpu), "gpu_units",
			 count_if(machine->gpu_units), "gpu_driver", text_if(machine->gpu_driver),
			 "cuda", text_if(machine->cuda));
}

static json_t *parameters_to_json(const struct bench_parameters *parameters)
{
	return json_pack("{s:b, s:o, s:o, s:o, s:o}", "quick", (int)parameters->quick, "runs",
			 count(parameters->runs), "run_ms", count_if(parameters->run_ms), "gpu",
			 text(parameters->gpu), "cores", text(parameters->cores));
}

static json_t *stages_to_json(int *rc)
{
	const struct gdrcap_bench_stage *stage;
	json_t *array = json_array();

	for (size_t i = 0; (stage = gdrcap_bench_stage_at(i)); i++)
		*rc |= append(array, json_pack("{s:s, s:s, s:s, s:s, s:b, s:s?}", "id", stage->id,
					       "group", stage->group, "what", stage->what, "unit",
					       stage->unit, "less_is_better", stage->less_is_better,
					       "limit", stage->limit));
	return array;
}

static json_t *latency_to_json(const struct gdrcap_bench_result *result)
{
	if (!result->samples)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "p50_ns", number(result->p50_ns), "p99_ns",
			 number(result->p99_ns), "p999_ns", number(result->p999_ns), "max_ns",
			 number(result->max_ns), "samples", count(result->samples));
}

/* What was found; all of it null where it was not measured. */
static int found_to_json(json_t *object, const struct gdrcap_bench_result *result)
{
	const int measured = !result->error[0];
	json_t *runs = json_array(), *speeds = json_array();
	int known = 0;
	json_t *found;
	int rc = 0;

	for (uint32_t i = 0; measured && i < result->runs; i++)
		rc |= append(runs, number(result->run[i]));
	for (uint32_t i = 0; i < result->runs; i++)
		known |= result->core_speed[i] > 0;
	for (uint32_t i = 0; measured && known && i < result->runs; i++)
		rc |= append(speeds, number_if(result->core_speed[i]));
	found = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "runs", runs,
			  "core_speed", speeds, "median",
			  measured ? number(result->median) : json_null(), "least",
			  measured ? number(result->least) : json_null(), "most",
			  measured ? number(result->most) : json_null(), "limit",
			  number_if(result->limit), "of_limit", number_if(result->of_limit), "mpps",
			  number_if(result->mpps), "gbps", number_if(result->gbps), "seconds",
			  measured ? number(result->seconds) : json_null());
	rc |= !found || json_object_update(object, found);
	json_decref(found);
	found = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "frames",
			  measured ? count(result->frames) : json_null(), "validated",
			  measured ? count(result->validated) : json_null(), "damaged",
			  measured ? count(result->damaged) : json_null(), "lost",
			  measured ? count(result->lost) : json_null(), "sequence_checked",
			  measured ? json_boolean(result->sequence_checked) : json_null(),
			  "latency", latency_to_json(result), "note", text_if(result->note));
	rc |= !found || json_object_update(object, found);
	json_decref(found);
	return rc;
}

static json_t *result_to_json(const struct gdrcap_bench_result *result)
{
	const struct gdrcap_bench_point *point = &result->point;
	json_t *object = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "stage", text(point->stage),
		"frame_bytes", count_if(point->frame_bytes), "burst", count_if(point->burst),
		"blocks", count_if(point->blocks), "queues", count_if(point->queues), "pattern",
		text_if(point->pattern), "memory", text_if(point->memory), "source",
		text_if(point->source), "error", text_if(result->error));

	if (object && found_to_json(object, result)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

int bench_report_add(struct bench_report *report, const struct gdrcap_bench_result *result)
{
	report->wrong |= result->damaged || result->lost;
	if (!report->results)
		report->results = json_array();
	return append(report->results, result_to_json(result)) ? -ENOMEM : 0;
}

static json_t *report_to_json(const struct bench_report *report)
{
	int rc = 0;
	json_t *stages = stages_to_json(&rc), *object;

	object = json_pack("{s:s, s:s, s:b, s:n, s:o, s:o, s:o, s:o}", "schema", BENCH_SCHEMA,
			   "version", gdrcap_version(), "complete", report->complete, "error",
			   "machine", machine_to_json(&report->machine), "parameters",
			   parameters_to_json(&report->parameters), "stages", stages, "results",
			   report->results ? json_incref(report->results) : json_array());
	if (rc) {
		json_decref(object);
		return NULL;
	}
	return object;
}

int bench_print_json(FILE *to, const struct bench_report *report)
{
	return json_line_print(to, report_to_json(report), 0);
}

int bench_print_json_error(FILE *to, const char *why)
{
	return json_line_print(to,
			       json_pack("{s:s, s:s, s:b, s:o, s:n, s:n, s:[], s:[]}", "schema",
					 BENCH_SCHEMA, "version", gdrcap_version(), "complete", 0,
					 "error", text(why), "machine", "parameters", "stages",
					 "results"),
			       0);
}

/* ---- a file ---- */

/* A line for each key, stage and result, so that files can be compared. 0: errno may say why. */
static int write_lines(FILE *file, json_t *object)
{
	const char *key, *before = "{";
	json_t *value;

	json_object_foreach(object, key, value)
	{
		const int list = json_is_array(value) && json_array_size(value);

		fprintf(file, "%s\n \"%s\": %s", before, key, list ? "[" : "");
		before = ",";
		if (!list && json_dumpf(value, file, JSON_ENCODE_ANY))
			return 0;
		for (size_t i = 0; list && i < json_array_size(value); i++) {
			fprintf(file, "%s\n  ", i ? "," : "");
			if (json_dumpf(json_array_get(value, i), file, 0))
				return 0;
		}
		if (list)
			fputs("\n ]", file);
	}
	fputs("\n}\n", file);
	return !ferror(file);
}

static int write_whole(const struct bench_report *report, int fd)
{
	json_t *object = report_to_json(report);
	int rc = 0;
	FILE *file;

	if (!object) {
		close(fd);
		return -ENOMEM;
	}
	file = fdopen(fd, "w");
	if (!file) {
		rc = -errno;
		close(fd);
		json_decref(object);
		return rc;
	}
	errno = 0;
	if (!write_lines(file, object) || fflush(file) == EOF || fsync(fd) < 0)
		rc = errno ? -errno : -EIO;
	json_decref(object);
	if (fclose(file) == EOF && rc == 0)
		rc = errno ? -errno : -EIO;
	return rc;
}

int bench_save(const struct bench_report *report, const char *path, char error[BENCH_ERROR_BYTES])
{
	static const char remedy[] = "give --save a file in a folder with room that may be written";
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	/* A link stays one: what it points to is replaced. */
	char *target = realpath(path, NULL), *temporary = NULL;
	struct stat status;
	int fd = -1, rc;

	/* A device would be replaced by a file. */
	if (target && stat(target, &status) == 0 && !S_ISREG(status.st_mode)) {
		rc = S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
		goto out;
	}
	if (asprintf(&temporary, "%s.%d.tmp", target ? target : path, (int)getpid()) < 0) {
		temporary = NULL;
		rc = -ENOMEM;
		goto out;
	}
	fd = open(temporary, flags, 0666);
	/* Of a process of the same number that was killed. */
	if (fd < 0 && errno == EEXIST && unlink(temporary) == 0)
		fd = open(temporary, flags, 0666);
	rc = fd < 0 ? -errno : write_whole(report, fd);
	if (rc == 0 && rename(temporary, target ? target : path) < 0)
		rc = -errno;
	if (rc < 0 && fd >= 0)
		unlink(temporary);
out:
	free(temporary);
	free(target);
	if (rc < 0)
		snprintf(error, BENCH_ERROR_BYTES, "%s: %s; %s", path, strerror(-rc), remedy);
	return rc;
}
