/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rates by frame size against the line rates of Ethernet, drawn by gnuplot, which is started
 * without a shell: the script goes into its standard input, the picture comes from its standard
 * output.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_report.h"

extern char **environ;

#define SERIES_MAX 128 /* found */
#define PATHS_DRAWN 8  /* more cannot be told apart */
#define CONSUMERS_DRAWN 4
#define DRAWN_MAX (PATHS_DRAWN + CONSUMERS_DRAWN)
#define SIZES_MAX 32
#define TITLE_BYTES 96
#define WIRE_EXTRA 20 /* preamble, delimiter and gap of a frame, bytes */

static const uint32_t line_gbps[] = { 100, 200, 400 };
#define LINES (sizeof(line_gbps) / sizeof(line_gbps[0]))

struct series {
	char title[TITLE_BYTES];
	struct gdrcap_bench_point key;			 /* all but the frame's size */
	int consumer;					 /* else the whole path */
	const struct gdrcap_bench_result *at[SIZES_MAX]; /* ascending by size */
	size_t count;
};

struct plot {
	struct series series[SERIES_MAX];
	size_t count;
	double mpps_least, mpps_most, gbps_least, gbps_most;
	uint32_t least, most; /* frames' bytes */
};

/* ---- what is drawn ---- */

/* For gnuplot's single quotes, between which nothing is replaced. */
static void quotable(char *text)
{
	for (char *c = text; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr(" .,:;()+-_/@%", *c))
			*c = ' ';
}

/* All but the frame's size, or but the burst and the blocks too. */
static int is_kin(const struct gdrcap_bench_point *a, const struct gdrcap_bench_point *b, int close)
{
	if (close && (a->burst != b->burst || a->blocks != b->blocks))
		return 0;
	return !strcmp(a->stage, b->stage) && a->queues == b->queues &&
	       !strcmp(a->pattern, b->pattern) && !strcmp(a->memory, b->memory) &&
	       !strcmp(a->source, b->source);
}

static struct series *series_of(struct plot *plot, const struct gdrcap_bench_result *result,
				int consumer)
{
	struct series *series;

	for (size_t i = 0; i < plot->count; i++)
		if (is_kin(&plot->series[i].key, &result->point, 1))
			return &plot->series[i];
	if (plot->count == SERIES_MAX)
		return NULL;
	series = &plot->series[plot->count++];
	series->key = result->point;
	series->key.frame_bytes = 0;
	series->consumer = consumer;
	bench_format_point(series->title, sizeof(series->title), &series->key);
	quotable(series->title);
	return series;
}

static void series_add(struct series *series, const struct gdrcap_bench_result *result)
{
	size_t at = series->count;

	if (series->count == SIZES_MAX)
		return;
	for (; at > 0 && series->at[at - 1]->point.frame_bytes > result->point.frame_bytes; at--)
		series->at[at] = series->at[at - 1];
	series->at[at] = result;
	series->count++;
}

/* Of those that differ in bursts and blocks only, the one with more sizes, then the faster. */
static int is_better(const struct series *a, const struct series *b)
{
	if (a->count != b->count)
		return a->count > b->count;
	return a->at[0]->mpps > b->at[0]->mpps;
}

/* Leaves what is drawn. A line has at least two points. */
static void plot_choose(struct plot *plot)
{
	struct series *all = plot->series;
	size_t kept = 0, drawn[2] = { 0 };

	for (size_t i = 0; i < plot->count; i++)
		for (size_t k = 0; k < plot->count; k++)
			if (k != i && all[k].count && all[i].count &&
			    is_kin(&all[i].key, &all[k].key, 0) && !is_better(&all[i], &all[k]))
				all[i].count = 0;
	for (size_t i = 0; i < plot->count; i++) {
		const int consumer = all[i].consumer;

		if (all[i].count < 2 ||
		    drawn[consumer] == (consumer ? CONSUMERS_DRAWN : PATHS_DRAWN))
			continue;
		drawn[consumer]++;
		all[kept++] = all[i];
	}
	plot->count = kept;
}

static void plot_collect(struct plot *plot, const struct bench_report *report)
{
	static const char *const groups[] = { "path", "consumer" };

	for (size_t g = 0; g < 2; g++)
		for (size_t i = 0; i < report->count; i++) {
			const struct gdrcap_bench_result *result = &report->results[i];
			const struct bench_row *row = bench_report_row(report, result->point.stage);
			struct series *series;

			if (!row || strcmp(row->group, groups[g]) || result->error[0] ||
			    !result->point.frame_bytes || result->mpps <= 0 || result->gbps <= 0)
				continue;
			series = series_of(plot, result, g == 1);
			if (series)
				series_add(series, result);
		}
	plot_choose(plot);
}

/* Of frames of that size at a line rate. */
static double line_mpps(uint32_t gbps, uint32_t bytes)
{
	return gbps * 1e3 / ((bytes + WIRE_EXTRA) * 8.0);
}

static void widen(double *least, double *most, double value)
{
	*least = fmin(*least, value);
	*most = fmax(*most, value);
}

/* The axes take in all values and all line rates. */
static void plot_range(struct plot *plot)
{
	plot->mpps_least = plot->gbps_least = INFINITY;
	plot->least = UINT32_MAX;
	for (size_t s = 0; s < plot->count; s++)
		for (size_t i = 0; i < plot->series[s].count; i++) {
			const struct gdrcap_bench_result *result = plot->series[s].at[i];
			const uint32_t bytes = result->point.frame_bytes;

			plot->least = bytes < plot->least ? bytes : plot->least;
			plot->most = bytes > plot->most ? bytes : plot->most;
			widen(&plot->mpps_least, &plot->mpps_most, result->mpps);
			widen(&plot->gbps_least, &plot->gbps_most, result->gbps);
		}
	for (size_t i = 0; i < LINES; i++) {
		widen(&plot->mpps_least, &plot->mpps_most, line_mpps(line_gbps[i], plot->least));
		widen(&plot->mpps_least, &plot->mpps_most, line_mpps(line_gbps[i], plot->most));
		widen(&plot->gbps_least, &plot->gbps_most,
		      line_mpps(line_gbps[i], plot->least) * plot->least * 8e-3);
		widen(&plot->gbps_least, &plot->gbps_most, line_gbps[i]);
	}
}

/* ---- gnuplot's script ---- */

static void write_sizes(FILE *to, const struct plot *plot)
{
	uint32_t seen[DRAWN_MAX * SIZES_MAX];
	size_t count = 0;

	fprintf(to, "set xtics (");
	for (size_t s = 0; s < plot->count; s++)
		for (size_t i = 0; i < plot->series[s].count; i++) {
			const uint32_t bytes = plot->series[s].at[i]->point.frame_bytes;
			int known = 0;

			for (size_t k = 0; k < count; k++)
				known |= seen[k] == bytes;
			if (known)
				continue;
			fprintf(to, "%s'%u' %u", count ? ", " : "", bytes, bytes);
			seen[count++] = bytes;
		}
	fprintf(to, ")\n");
}

static void write_data(FILE *to, const struct plot *plot)
{
	for (size_t s = 0; s < plot->count; s++) {
		fprintf(to, "$s%zu << EOD\n", s);
		for (size_t i = 0; i < plot->series[s].count; i++) {
			const struct gdrcap_bench_result *result = plot->series[s].at[i];

			fprintf(to, "%u %.9g %.9g\n", result->point.frame_bytes, result->mpps,
				result->gbps);
		}
		fprintf(to, "EOD\n");
	}
}

/* One panel: the measured as marked lines, the line rates dashed and named where they end. */
static void write_panel(FILE *to, const struct plot *plot, const char *title, int gbps)
{
	const char *const factor = gbps ? "*x*8e-3" : "";
	const double least = gbps ? plot->gbps_least : plot->mpps_least;
	const double most = gbps ? plot->gbps_most : plot->mpps_most;

	fprintf(to, "set ylabel '%s' noenhanced\nset yrange [%.9g:%.9g]\n", title, least / 1.5,
		most * 1.5);
	fprintf(to, "unset label\n");
	for (size_t i = 0; i < LINES; i++)
		fprintf(to,
			"set label %zu '%u GbE' at %u,%.9g left offset 0.6,0 font ',10' "
			"textcolor rgb '#606060'\n",
			i + 1, line_gbps[i], plot->most,
			line_mpps(line_gbps[i], plot->most) * (gbps ? plot->most * 8e-3 : 1));
	fprintf(to, "plot ");
	for (size_t i = 0; i < LINES; i++)
		fprintf(to,
			"%s[%u:%u] %u*1e3/((x+%d)*8.0)%s with lines dashtype 2 linecolor rgb "
			"'#808080' notitle",
			i ? ", " : "sample ", plot->least, plot->most, line_gbps[i], WIRE_EXTRA,
			factor);
	for (size_t s = 0; s < plot->count; s++)
		fprintf(to,
			", $s%zu using 1:%d with linespoints linestyle %zu dashtype %d "
			"title '%s' noenhanced",
			s, gbps ? 3 : 2, s + 1, plot->series[s].consumer ? 3 : 1,
			plot->series[s].title);
	fprintf(to, "\n");
}

static void write_script(FILE *to, const struct plot *plot, const struct bench_report *report)
{
	/* To be told apart with every kind of eye; the pointtype does it in grey, too. */
	static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7",
					       "#e69f00", "#56b4e9", "#000000", "#8c564b",
					       "#7f7f00", "#5e3c99", "#b2182b", "#1b7837" };
	const size_t rows = (plot->count + 1) / 2;
	char machine[512];

	snprintf(machine, sizeof(machine), "%s; %s; %s", report->version, report->machine.cpu,
		 report->machine.gpu[0] ? report->machine.gpu : "no GPU");
	quotable(machine);
	fprintf(to, "set terminal svg size 1160,%zu font 'Helvetica,12' background '#ffffff'\n",
		540 + 18 * rows);
	for (size_t i = 0; i < DRAWN_MAX; i++)
		fprintf(to,
			"set style line %zu linecolor rgb '%s' linewidth 1.6 pointtype %zu "
			"pointsize 0.7\n",
			i + 1, colours[i], 4 + i % 10);
	write_data(to, plot);
	fprintf(to, "set multiplot title 'Rates by frame size: %s' noenhanced font ',12'\n",
		machine);
	fprintf(to,
		"set logscale xy\nset grid xtics ytics linecolor rgb '#e0e0e0'\n"
		"set xlabel 'frame with FCS, bytes'\nset xrange [%.9g:%.9g]\n"
		"set format y '%%g'\nset samples 200\nset tics font ',10'\n",
		plot->least / 1.15, plot->most * 1.9);
	write_sizes(to, plot);
	/* The key, which both panels share, lies below them. */
	fprintf(to,
		"set tmargin at screen 0.92\nset bmargin at screen %.4f\n"
		"set lmargin at screen 0.065\nset rmargin at screen 0.49\nunset key\n",
		(70.0 + 18.0 * (double)rows) / (540.0 + 18.0 * (double)rows));
	write_panel(to, plot, "Mpps", 0);
	fprintf(to,
		"set lmargin at screen 0.565\nset rmargin at screen 0.99\n"
		"set key at screen 0.5,screen %.4f center bottom vertical maxrows %zu "
		"Left reverse samplen 2.5 spacing 1.1 font ',11' width 2\n",
		6.0 / (540.0 + 18.0 * (double)rows), rows);
	write_panel(to, plot, "Gb/s of frames with FCS", 1);
	fprintf(to, "unset multiplot\n");
}

/* ---- gnuplot itself ---- */

static int missing(char error[BENCH_ERROR_BYTES], int code)
{
	snprintf(error, BENCH_ERROR_BYTES,
		 "gnuplot cannot be started: %s; the plot needs it: sudo apt-get install "
		 "gnuplot-nox; all else goes without, and gdrcap bench --from FILE --plot draws "
		 "saved results later",
		 strerror(code));
	return -code;
}

/* `in` and `out` become its standard input and output; err -1: as this program's. Its status. */
static int gnuplot_run(char *const arguments[], int in, int out, int err)
{
	posix_spawn_file_actions_t actions;
	int status, rc;
	pid_t pid;

	rc = posix_spawn_file_actions_init(&actions);
	if (rc)
		return -rc;
	rc = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!rc && err >= 0)
		rc = posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
	if (!rc)
		rc = posix_spawnp(&pid, arguments[0], &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (rc)
		return -rc;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int bench_plot_able(char error[BENCH_ERROR_BYTES])
{
	char program[] = "gnuplot", version[] = "--version";
	char *const arguments[] = { program, version, NULL };
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int rc = null < 0 ? -errno : gnuplot_run(arguments, null, null, null);

	if (null >= 0)
		close(null);
	if (rc < 0)
		return missing(error, -rc);
	return rc == 0 ? 0 : missing(error, EIO);
}

/* The script in memory, to be read from its beginning. NULL with errno. */
static FILE *script_file(const struct plot *plot, const struct bench_report *report)
{
	const int fd = memfd_create("gdrcap-plot", MFD_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");

	if (!file) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	write_script(file, plot, report);
	if (fflush(file) == EOF || ferror(file) || fseek(file, 0, SEEK_SET) < 0) {
		fclose(file);
		return NULL;
	}
	return file;
}

/* gnuplot does not say when it could not write all. */
static bool picture_is_whole(int fd)
{
	char end[16];
	struct stat status;
	ssize_t bytes;

	if (fstat(fd, &status) < 0 || status.st_size < (off_t)sizeof(end) || fsync(fd) < 0)
		return false;
	bytes = pread(fd, end, sizeof(end), status.st_size - (off_t)sizeof(end));
	return bytes == (ssize_t)sizeof(end) && memmem(end, sizeof(end), "</svg>", 6);
}

static int draw(FILE *script, const char *path, char error[BENCH_ERROR_BYTES])
{
	/* -d: no settings of the user's. */
	char program[] = "gnuplot", defaults[] = "-d";
	char *const arguments[] = { program, defaults, NULL };
	char *temporary = NULL;
	int fd, rc;

	if (asprintf(&temporary, "%s.%d.tmp", path, (int)getpid()) < 0) {
		snprintf(error, BENCH_ERROR_BYTES, "%s: no memory", path);
		return -ENOMEM;
	}
	fd = open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	rc = fd < 0 ? -errno : gnuplot_run(arguments, fileno(script), fd, -1);
	if (rc > 0 || (rc == 0 && !picture_is_whole(fd))) {
		snprintf(error, BENCH_ERROR_BYTES,
			 "%s: gnuplot ended with status %d and no whole picture: gnuplot 5 or later "
			 "with the SVG terminal is needed, and room on the disk",
			 path, rc);
		rc = -EIO;
	} else if (rc < 0 && fd >= 0) {
		rc = missing(error, -rc);
	} else if (rc < 0 || rename(temporary, path) < 0) {
		rc = rc < 0 ? rc : -errno;
		snprintf(error, BENCH_ERROR_BYTES,
			 "%s: %s; give --plot a file in a folder that may be written", path,
			 strerror(-rc));
	}
	if (fd >= 0)
		close(fd);
	if (rc < 0)
		unlink(temporary);
	free(temporary);
	return rc;
}

int bench_plot(const struct bench_report *report, const char *path, char error[BENCH_ERROR_BYTES])
{
	struct plot *plot = calloc(1, sizeof(*plot));
	FILE *script = NULL;
	int rc = 0;

	if (plot)
		plot_collect(plot, report);
	if (plot && !plot->count) {
		snprintf(error, BENCH_ERROR_BYTES,
			 "%s: there is nothing to draw: no stage of the groups path and consumer "
			 "was measured with two frame sizes; measure them: --stages path,consumer",
			 path);
		free(plot);
		return -ENODATA;
	}
	if (plot) {
		plot_range(plot);
		script = script_file(plot, report);
	}
	if (!script) {
		snprintf(error, BENCH_ERROR_BYTES, "%s: the plot's script cannot be written: %s",
			 path, strerror(plot ? errno : ENOMEM));
		rc = -EIO;
	} else {
		rc = draw(script, path, error);
		fclose(script);
	}
	free(plot);
	return rc;
}
