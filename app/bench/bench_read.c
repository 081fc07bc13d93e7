/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results of a bench from a file and into one. A file is read as if by a stranger: of a size that
 * fits, every value of its type and in its range, texts printable; or an error that says where.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench_report.h"

#define FILE_BYTES_MAX ((off_t)64 << 20)
#define PLACE_BYTES 64

#define NUMBER_MOST 1e15 /* more is no measurement, and no place in a picture */

struct reader {
	const char *path;
	char *error;		 /* BENCH_ERROR_BYTES; "": nothing wrong so far */
	char place[PLACE_BYTES]; /* "results[12]." */
};

static int refuse(struct reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The first thing wrong is what is said. */
static int refuse(struct reader *reader, const char *format, ...)
{
	char what[256];
	va_list arguments;

	if (reader->error[0])
		return -EBADMSG;
	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	snprintf(reader->error, BENCH_ERROR_BYTES,
		 "%s: %s; it is no whole result of gdrcap bench: measure again into another file",
		 reader->path, what);
	return -EBADMSG;
}

/* ---- values: null is 0 or "" ---- */

static void get_text(struct reader *reader, json_t *object, const char *key, char *to, size_t bytes)
{
	json_t *value = json_object_get(object, key);

	to[0] = '\0';
	if (json_is_null(value))
		return;
	if (!json_is_string(value)) {
		refuse(reader, "%s%s is no text", reader->place, key);
		return;
	}
	if (json_string_length(value) >= bytes) {
		refuse(reader, "%s%s is longer than %zu characters", reader->place, key, bytes - 1);
		return;
	}
	/* It may be printed to a terminal. */
	snprintf(to, bytes, "%s", json_string_value(value));
	for (char *c = to; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

static double get_value(struct reader *reader, json_t *value, const char *key)
{
	const double number = json_number_value(value);

	if (json_is_null(value))
		return 0;
	if (json_is_number(value) && isfinite(number) && number >= 0 && number <= NUMBER_MOST)
		return number;
	refuse(reader, "%s%s is no number from 0 to %g", reader->place, key, NUMBER_MOST);
	return 0;
}

static double get_number(struct reader *reader, json_t *object, const char *key)
{
	return get_value(reader, json_object_get(object, key), key);
}

static uint64_t get_count(struct reader *reader, json_t *object, const char *key, uint64_t most)
{
	json_t *value = json_object_get(object, key);

	if (json_is_null(value))
		return 0;
	if (json_is_integer(value) && json_integer_value(value) >= 0 &&
	    (uint64_t)json_integer_value(value) <= most)
		return (uint64_t)json_integer_value(value);
	refuse(reader, "%s%s is no whole number from 0 to %llu", reader->place, key,
	       (unsigned long long)most);
	return 0;
}

static int get_bool(struct reader *reader, json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	if (!json_is_boolean(value) && !json_is_null(value))
		refuse(reader, "%s%s is neither true nor false", reader->place, key);
	return json_is_true(value);
}

static json_t *get_object(struct reader *reader, json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	if (!json_is_object(value))
		refuse(reader, "%s%s is no object", reader->place, key);
	return value;
}

static json_t *get_array(struct reader *reader, json_t *object, const char *key, size_t most)
{
	json_t *value = json_object_get(object, key);

	if (!json_is_array(value))
		refuse(reader, "%s%s is no list", reader->place, key);
	else if (json_array_size(value) > most)
		refuse(reader, "%s%s has more than %zu entries", reader->place, key, most);
	return value;
}

/* ---- parts ---- */

static void read_machine(struct reader *reader, json_t *object, struct gdrcap_bench_machine *to)
{
	snprintf(reader->place, sizeof(reader->place), "machine.");
	get_text(reader, object, "cpu", to->cpu, sizeof(to->cpu));
	get_text(reader, object, "kernel", to->kernel, sizeof(to->kernel));
	get_text(reader, object, "gpu", to->gpu, sizeof(to->gpu));
	get_text(reader, object, "gpu_driver", to->gpu_driver, sizeof(to->gpu_driver));
	get_text(reader, object, "cuda", to->cuda, sizeof(to->cuda));
	to->cpus = (uint32_t)get_count(reader, object, "cpus", UINT32_MAX);
	to->gpu_units = (uint32_t)get_count(reader, object, "gpu_units", UINT32_MAX);
	to->memory_bytes = get_count(reader, object, "memory_bytes", INT64_MAX);
	to->cache_bytes = get_count(reader, object, "cache_bytes", INT64_MAX);
	to->hugepages = get_bool(reader, object, "hugepages");
}

static void read_parameters(struct reader *reader, json_t *object, struct bench_parameters *to)
{
	snprintf(reader->place, sizeof(reader->place), "parameters.");
	to->quick = (uint32_t)get_bool(reader, object, "quick");
	to->runs = (uint32_t)get_count(reader, object, "runs", GDRCAP_BENCH_RUNS_MAX);
	to->run_ms = (uint32_t)get_count(reader, object, "run_ms", UINT32_MAX);
	get_text(reader, object, "gpu", to->gpu, sizeof(to->gpu));
	get_text(reader, object, "cores", to->cores, sizeof(to->cores));
}

static void read_row(struct reader *reader, json_t *object, size_t index, struct bench_row *to)
{
	snprintf(reader->place, sizeof(reader->place), "stages[%zu].", index);
	get_text(reader, object, "id", to->id, sizeof(to->id));
	get_text(reader, object, "group", to->group, sizeof(to->group));
	get_text(reader, object, "what", to->what, sizeof(to->what));
	get_text(reader, object, "unit", to->unit, sizeof(to->unit));
	get_text(reader, object, "limit", to->limit, sizeof(to->limit));
	to->less_is_better = get_bool(reader, object, "less_is_better");
	if (!to->id[0])
		refuse(reader, "%sid is missing", reader->place);
}

static void read_point(struct reader *reader, json_t *object, struct gdrcap_bench_point *to)
{
	get_text(reader, object, "stage", to->stage, sizeof(to->stage));
	get_text(reader, object, "pattern", to->pattern, sizeof(to->pattern));
	get_text(reader, object, "memory", to->memory, sizeof(to->memory));
	get_text(reader, object, "source", to->source, sizeof(to->source));
	to->frame_bytes = (uint32_t)get_count(reader, object, "frame_bytes", UINT32_MAX);
	to->burst = (uint32_t)get_count(reader, object, "burst", UINT32_MAX);
	to->blocks = (uint32_t)get_count(reader, object, "blocks", UINT32_MAX);
	to->queues = (uint32_t)get_count(reader, object, "queues", UINT32_MAX);
}

static void read_latency(struct reader *reader, json_t *object, struct gdrcap_bench_result *to)
{
	json_t *latency = json_object_get(object, "latency");

	if (json_is_null(latency))
		return;
	if (!json_is_object(latency)) {
		refuse(reader, "%slatency is no object", reader->place);
		return;
	}
	to->p50_ns = get_number(reader, latency, "p50_ns");
	to->p99_ns = get_number(reader, latency, "p99_ns");
	to->p999_ns = get_number(reader, latency, "p999_ns");
	to->max_ns = get_number(reader, latency, "max_ns");
	to->samples = get_count(reader, latency, "samples", INT64_MAX);
}

/* A number of each run. Returns how many there are. */
static uint32_t read_runs(struct reader *reader, json_t *object, const char *key,
			  double to[GDRCAP_BENCH_RUNS_MAX])
{
	json_t *list = get_array(reader, object, key, GDRCAP_BENCH_RUNS_MAX);
	const uint32_t count = reader->error[0] ? 0 : (uint32_t)json_array_size(list);

	for (uint32_t i = 0; i < count; i++)
		to[i] = get_value(reader, json_array_get(list, i), key);
	return count;
}

/* None where it is not known, as in files of versions that did not ask. */
static void read_core_speed(struct reader *reader, json_t *object, struct gdrcap_bench_result *to)
{
	uint32_t count;

	if (!json_object_get(object, "core_speed"))
		return;
	count = read_runs(reader, object, "core_speed", to->core_speed);
	if (to->runs && count && count != to->runs)
		refuse(reader, "%score_speed has not as many entries as runs", reader->place);
}

static void read_result(struct reader *reader, json_t *object, size_t index,
			struct gdrcap_bench_result *to)
{
	snprintf(reader->place, sizeof(reader->place), "results[%zu].", index);
	*to = (struct gdrcap_bench_result){ 0 };
	read_point(reader, object, &to->point);
	get_text(reader, object, "error", to->error, sizeof(to->error));
	to->runs = read_runs(reader, object, "runs", to->run);
	if (reader->error[0])
		return;
	read_core_speed(reader, object, to);
	to->median = get_number(reader, object, "median");
	to->least = get_number(reader, object, "least");
	to->most = get_number(reader, object, "most");
	to->limit = get_number(reader, object, "limit");
	to->of_limit = get_number(reader, object, "of_limit");
	to->mpps = get_number(reader, object, "mpps");
	to->gbps = get_number(reader, object, "gbps");
	to->seconds = get_number(reader, object, "seconds");
	to->frames = get_count(reader, object, "frames", INT64_MAX);
	to->validated = get_count(reader, object, "validated", INT64_MAX);
	to->damaged = get_count(reader, object, "damaged", INT64_MAX);
	to->lost = get_count(reader, object, "lost", INT64_MAX);
	to->sequence_checked = get_bool(reader, object, "sequence_checked");
	read_latency(reader, object, to);
	get_text(reader, object, "note", to->note, sizeof(to->note));
	if (!to->runs && !to->error[0])
		refuse(reader, "%sruns is empty", reader->place);
}

static int read_report(struct reader *reader, json_t *root, struct bench_report *report)
{
	json_t *stages = NULL, *results = NULL;
	char schema[32];

	reader->place[0] = '\0';
	get_text(reader, root, "schema", schema, sizeof(schema));
	if (strcmp(schema, BENCH_SCHEMA))
		return refuse(reader, "its schema is not " BENCH_SCHEMA);
	get_text(reader, root, "version", report->version, sizeof(report->version));
	report->complete = get_bool(reader, root, "complete");
	read_machine(reader, get_object(reader, root, "machine"), &report->machine);
	reader->place[0] = '\0';
	read_parameters(reader, get_object(reader, root, "parameters"), &report->parameters);
	reader->place[0] = '\0';
	stages = get_array(reader, root, "stages", BENCH_STAGES_MAX);
	results = get_array(reader, root, "results", BENCH_RESULTS_MAX);
	for (size_t i = 0; !reader->error[0] && i < json_array_size(stages); i++)
		read_row(reader, json_array_get(stages, i), i, &report->rows[report->row_count++]);
	for (size_t i = 0; !reader->error[0] && i < json_array_size(results); i++) {
		struct gdrcap_bench_result result;

		read_result(reader, json_array_get(results, i), i, &result);
		if (!bench_report_row(report, result.point.stage))
			refuse(reader, "%sstage is none of its stages", reader->place);
		else if (bench_report_find(report, &result.point))
			refuse(reader, "results[%zu] is there twice", i);
		else if (bench_report_add(report, &result) < 0)
			return refuse(reader, "there is no memory for it");
	}
	return reader->error[0] ? -EBADMSG : 0;
}

/* ---- files ---- */

static int no_file(char *error, const char *path, int code, const char *remedy)
{
	snprintf(error, BENCH_ERROR_BYTES, "%s: %s%s%s", path, strerror(code),
		 remedy[0] ? "; " : "", remedy);
	return -code;
}

/* A file that is no FIFO, device or folder, and not too large. NULL with the error, *code too. */
static FILE *file_open(const char *path, char *error, int *code)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;
	FILE *file;

	if (fd < 0 || fstat(fd, &status) < 0) {
		*code = no_file(error, path, errno, "");
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	if (!S_ISREG(status.st_mode) || status.st_size > FILE_BYTES_MAX) {
		snprintf(error, BENCH_ERROR_BYTES,
			 "%s: is no file of results: %s; name one that gdrcap bench --save wrote, "
			 "or a new one",
			 path, S_ISREG(status.st_mode) ? "too large" : "no regular file");
		close(fd);
		*code = -EBADMSG;
		return NULL;
	}
	file = fdopen(fd, "r");
	if (!file) {
		*code = no_file(error, path, errno, "");
		close(fd);
	}
	return file;
}

int bench_load(struct bench_report *report, const char *path, char error[BENCH_ERROR_BYTES])
{
	struct reader reader = { .path = path, .error = error };
	json_error_t json_error;
	int rc = 0;
	FILE *file;
	json_t *root;

	error[0] = '\0';
	*report = (struct bench_report){ 0 };
	file = file_open(path, error, &rc);
	if (!file)
		return rc;
	root = json_loadf(file, JSON_REJECT_DUPLICATES, &json_error);
	fclose(file);
	if (!root) {
		for (char *c = json_error.text; *c; c++)
			if (*c < ' ' || *c > '~')
				*c = '?';
		return refuse(&reader, "line %d: %s", json_error.line, json_error.text);
	}
	rc = read_report(&reader, root, report);
	json_decref(root);
	if (rc < 0)
		bench_report_free(report);
	return rc;
}

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
	json_t *object = bench_to_json(report);
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
	int fd = -1, rc;

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
	return rc < 0 ? no_file(error, path, -rc, remedy) : 0;
}
