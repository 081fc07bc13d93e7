/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes in a ring exchange messages over raw Ethernet: rank 0 sends one to rank 1, which passes it on, and so
 * round to rank 0, which sends the next one. Every byte is checked at every rank. Three ways after each
 * other, and for each a line of a table with the time of a round:
 *
 *   CPU-driven      the CPU sees a message, launches a kernel for it, waits for it, and sends the answer
 *   stream-ordered  wait, kernel, send and release are in a CUDA stream before the message comes (gdrcap_stream.h)
 *   kernel-driven   one kernel that runs all the time sees messages and sends answers (gdrcap_device.cuh)
 *
 *     mpirun -n 2 pingpong gpu=host
 *     mpirun -n 2 --bind-to none pingpong --cores 4 gpu=0
 *     pingpong --rank 0 --ranks 2 gpu=host & pingpong --rank 1 --ranks 2 gpu=host
 *     pingpong --threads 2 --cores 4 gpu=0
 *
 * Kernels of two processes do not run on one GPU at the same time, but in turns of milliseconds (MPS apart), which is
 * what is measured then: have a GPU for each rank (gpu={rank}), or all ranks in one process (--threads).
 *
 * mpirun only starts it: rank and number of ranks come from the environment (Open MPI, PMI, Slurm), or from options, on
 * one machine or on several, and no MPI library is used. Without other ports each two neighbours have a memif
 * in a folder of their machine. KEY=VALUE are options of gdrcap's, in which {rank}, {next}, {previous}, {way} and
 * {dir} are replaced:
 *
 *     mpirun -n 2 pingpong gpu=host port=net_af_packet0,iface=veth{rank} tx_port=net_af_packet0,iface=veth{rank}
 *     mpirun --host a,b pingpong gpu=0 port=0000:17:00.0 tx_port=0000:17:00.0 memory=device
 *
 * A message goes to 02:70:70:00:RANK, so a switch, or a bridge, may be between. Without a GPU (gpu=host) the CPU
 * does what kernels would: the same words and the same order. Exit status 0: nothing was lost or wrong.
 */
#include "ways.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
	"usage: pingpong [--rank R --ranks N | --threads N] [--rounds N] [--ways cpu,stream,kernel] [--cores N]\n"
	"                [--dir DIR] [--timeout S] [KEY=VALUE]...\n";

/* The first of the variables that is a number. */
static bool from_environment(const char *const *names, uint32_t *value)
{
	for (; *names; names++) {
		const char *text = getenv(*names);
		int n = 0;

		if (text && sscanf(text, "%" SCNu32 "%n", value, &n) == 1 && !text[n])
			return true;
	}
	return false;
}

static void launcher_ask(struct wanted *wanted)
{
	static const char *const rank[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
					    "SLURM_PROCID", NULL };
	static const char *const ranks[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS",
					     NULL };
	static const char *const local[] = { "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
					     "SLURM_LOCALID", NULL };

	from_environment(rank, &wanted->rank);
	from_environment(ranks, &wanted->ranks);
	wanted->local_rank = wanted->rank;
	from_environment(local, &wanted->local_rank);
}

static bool ways_read(struct wanted *wanted, const char *text)
{
	memset(wanted->ways, 0, sizeof(wanted->ways));
	while (*text) {
		const size_t length = strcspn(text, ",");
		int way = 0;

		while (way < WAYS && (strlen(way_names[way]) != length ||
				      strncmp(text, way_names[way], length) != 0))
			way++;
		if (way == WAYS)
			return false;
		wanted->ways[way] = true;
		text += length + (text[length] == ',');
	}
	return true;
}

static bool option_read(struct wanted *wanted, const char *name, const char *value)
{
	int n = 0;

	if (!value)
		return false;
	if (strcmp(name, "--ways") == 0)
		return ways_read(wanted, value);
	if (strcmp(name, "--dir") == 0) {
		wanted->dir = value;
		return true;
	}
	if (strcmp(name, "--rank") == 0) {
		if (sscanf(value, "%" SCNu32 "%n", &wanted->rank, &n) != 1 || value[n])
			return false;
		wanted->local_rank = wanted->rank;
		return true;
	}
	if (strcmp(name, "--threads") == 0) {
		if (sscanf(value, "%" SCNu32 "%n", &wanted->threads, &n) != 1 || value[n])
			return false;
		wanted->ranks = wanted->threads;
		wanted->rank = 0;
		return wanted->threads >= 2;
	}
	if (strcmp(name, "--ranks") == 0)
		return sscanf(value, "%" SCNu32 "%n", &wanted->ranks, &n) == 1 && !value[n];
	if (strcmp(name, "--cores") == 0)
		return sscanf(value, "%" SCNu32 "%n", &wanted->cores, &n) == 1 && !value[n];
	if (strcmp(name, "--rounds") == 0)
		return sscanf(value, "%" SCNu64 "%n", &wanted->rounds, &n) == 1 && !value[n];
	return strcmp(name, "--timeout") == 0 && sscanf(value, "%lf%n", &wanted->timeout_s, &n) &&
	       !value[n];
}

static bool wanted_read(struct wanted *wanted, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-') {
			if (!option_read(wanted, argv[i], argv[i + 1]))
				return false;
			i++;
		} else if (strchr(argv[i], '=') && wanted->option_count < OPTIONS_MAX) {
			wanted->options[wanted->option_count++] = argv[i];
		} else {
			return false;
		}
	}
	return wanted->ranks >= 2 && wanted->ranks <= 255 && wanted->rank < wanted->ranks &&
	       wanted->rounds && wanted->rounds <= 100000000 && wanted->cores < 1000 &&
	       wanted->timeout_s > 0;
}

/* ---- the table ---- */

static int compare(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* The first rounds find caches cold. */
static void line_print(const struct seat *seat)
{
	const struct play *end = &seat->player.first;
	const uint64_t back = end->number ? end->number - 1 : 0;
	const uint64_t cold = back > 1000 ? 100 : back / 10, count = back - cold;
	uint64_t *trip = seat->trip_ns + cold;

	qsort(trip, count, sizeof(*trip), compare);
	printf("%-15s %11" PRIu64 " %8" PRIu64 " %8" PRIu64, way_titles[seat->way], back,
	       seat->wanted.rounds - back, end->wrong);
	if (count)
		printf(" %9.2f %9.2f %9.2f", (double)trip[count / 2] * 1e-3,
		       (double)trip[count * 99 / 100] * 1e-3, (double)trip[count - 1] * 1e-3);
	printf("   %s\n", seat->who);
	fflush(stdout);
}

/* Others than rank 0 say what they missed. */
static int seat_judge(const struct seat *seat)
{
	const struct play *end = &seat->player.first;

	if (!end->lost && !end->wrong)
		return seat->ret;
	fprintf(stderr,
		"pingpong, rank %" PRIu32 ", %s: %" PRIu64 " messages lost, %" PRIu64 " wrong\n",
		seat->wanted.rank, way_titles[seat->way], end->lost, end->wrong);
	return -EIO;
}

/* The ranks of this process, which are all of them or one. */
static int way_play(const struct wanted *wanted, enum way way)
{
	const uint32_t count = wanted->threads ? wanted->threads : 1;
	struct seat *seats = calloc(count, sizeof(*seats));
	pthread_t *threads = calloc(count, sizeof(*threads));
	uint32_t opened = 0, begun = 0;
	int ret = seats && threads ? 0 : -ENOMEM;

	for (; opened < count && ret == 0; opened++) {
		struct wanted mine = *wanted;

		if (wanted->threads)
			mine.rank = mine.local_rank = opened;
		ret = seat_open(&seats[opened], &mine, way);
	}
	for (; begun < opened && ret == 0; begun++)
		ret = -pthread_create(&threads[begun], NULL, seat_play, &seats[begun]);
	for (uint32_t i = 0; i < begun; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < opened; i++) {
		const int judged = seat_judge(&seats[i]);

		ret = ret ? ret : judged;
		if (seats[i].wanted.rank == 0 && seats[i].trip_ns)
			line_print(&seats[i]);
		seat_close(&seats[i]);
	}
	free(threads);
	free(seats);
	return ret;
}

int main(int argc, char **argv)
{
	static char dir[64];
	struct wanted wanted = {
		.rounds = 10000,
		.timeout_s = 10,
		.dir = dir,
		.ways = { true, true, true },
	};
	int failed = 0;

	snprintf(dir, sizeof(dir), "/tmp/gdrcap-pingpong-%u", (unsigned int)getuid());
	launcher_ask(&wanted);
	if (!wanted_read(&wanted, argc, argv)) {
		fputs(usage, stderr);
		fputs(wanted.ranks < 2
			      ? "start it by mpirun -n 2, or give --rank and --ranks, or --threads\n"
			      : "",
		      stderr);
		return 2;
	}
	if (mkdir(wanted.dir, 0700) && errno != EEXIST) {
		fprintf(stderr, "pingpong: %s: %s\n", wanted.dir, strerror(errno));
		return 1;
	}
	if (wanted.rank == 0)
		printf("%" PRIu32 " ranks in a ring\n%-15s %11s %8s %8s %9s %9s %9s   %s\n",
		       wanted.ranks, "way", "round trips", "lost", "wrong", "p50 us", "p99 us",
		       "max us", "played by");
	for (int way = 0; way < WAYS && !failed; way++)
		failed = wanted.ways[way] ? way_play(&wanted, (enum way)way) : 0;
	return failed != 0;
}
