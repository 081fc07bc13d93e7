/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON object of a bench, on standard output and in a file: schema gdrcap.bench/1, docs/bench.md. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench_report.h"
#include "base/json_line.h"

#define BENCH_SCHEMA "gdrcap.bench/1"

/* Takes `item` over, also when it fails; NULL fails. */
static int append(json_t *array, json_t *item)
{
	return json_array_append_new(array, item);
}

static json_t *machine_to_json(const struct gdrcap_bench_machine *machine)
{
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "cpu",
		json_text_if(machine->cpu), "cpus",
		json_count_if(machine->cpus != 0, machine->cpus), "kernel",
		json_text_if(machine->kernel), "memory_bytes",
		json_count_if(machine->memory_bytes != 0, machine->memory_bytes), "cache_bytes",
		json_count_if(machine->cache_bytes != 0, machine->cache_bytes), "hugepages",
		machine->hugepages, "gpu", json_text_if(machine->gpu), "gpu_units",
		json_count_if(machine->gpu_units != 0, machine->gpu_units), "gpu_driver",
		json_text_if(machine->gpu_driver), "cuda", json_text_if(machine->cuda));
}

static json_t *parameters_to_json(const struct bench_parameters *parameters)
{
	return json_pack("{s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "quick",
			 (int)parameters->quick, "runs", json_count(parameters->runs), "run_ms",
			 json_count_if(parameters->run_ms != 0, parameters->run_ms), "gpu",
			 json_text(parameters->gpu), "cores", json_text(parameters->cores), "port",
			 json_text_if(parameters->port), "tx_port",
			 json_text_if(parameters->tx_port), "tx_by",
			 json_text_if(parameters->tx_by));
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
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "p50_ns", json_number(result->p50_ns),
			 "p99_ns", json_number(result->p99_ns), "p999_ns",
			 json_number(result->p999_ns), "max_ns", json_number(result->max_ns),
			 "samples", json_count(result->samples));
}

/* What was found; all of it null where it was not measured. */
static int found_to_json(json_t *object, const struct gdrcap_bench_result *result)
{
	const bool measured = !result->error[0];
	const uint32_t count = measured ? result->runs : 0;
	json_t *runs = json_array(), *speeds = json_array();
	bool known = false;

	for (uint32_t i = 0; i < count; i++) {
		json_add(&runs, json_number(result->run[i]));
		known |= result->core_speed[i] > 0;
	}
	for (uint32_t i = 0; known && i < count; i++)
		json_add(&speeds,
			 json_number_if(result->core_speed[i] != 0, result->core_speed[i]));
	const struct json_row rows[] = {
		{ "runs", runs },
		{ "core_speed", speeds },
		{ "median", json_number_if(measured, result->median) },
		{ "least", json_number_if(measured, result->least) },
		{ "most", json_number_if(measured, result->most) },
		{ "limit", json_number_if(result->limit != 0, result->limit) },
		{ "of_limit", json_number_if(result->of_limit != 0, result->of_limit) },
		{ "mpps", json_number_if(result->mpps != 0, result->mpps) },
		{ "gbps", json_number_if(result->gbps != 0, result->gbps) },
		{ "seconds", json_number_if(measured, result->seconds) },
		{ "frames", json_count_if(measured, result->frames) },
		{ "validated", json_count_if(measured, result->validated) },
		{ "damaged", json_count_if(measured, result->damaged) },
		{ "lost", json_count_if(measured, result->lost) },
		{ "sequence_checked",
		  measured ? json_boolean(result->sequence_checked) : json_null() },
		{ "latency", latency_to_json(result) },
		{ "note", json_text_if(result->note) },
	};

	return json_put(object, rows, sizeof(rows) / sizeof(rows[0]));
}

static json_t *result_to_json(const struct gdrcap_bench_result *result)
{
	const struct gdrcap_bench_point *point = &result->point;
	json_t *object = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "stage", json_text(point->stage),
		"frame_bytes", json_count_if(point->frame_bytes != 0, point->frame_bytes), "burst",
		json_count_if(point->burst != 0, point->burst), "blocks",
		json_count_if(point->blocks != 0, point->blocks), "queues",
		json_count_if(point->queues != 0, point->queues), "pattern",
		json_text_if(point->pattern), "memory", json_text_if(point->memory), "source",
		json_text_if(point->source), "error", json_text_if(result->error));

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
					 "error", json_text(why), "machine", "parameters", "stages",
					 "results"),
			       0);
}

/* ---- a file ---- */

/* A line for each key, stage and result, so that files can be compared. 0: errno may say why. */
static int write_lines(FILE *file, json_t *object)
{
	const char *key, *before = "{";
	json_t *value;

	json_object_foreach (object, key, value) {
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
