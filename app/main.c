/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrcap: raw Ethernet frames into GPU memory, every byte accounted for. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "cmd.h"
#include "gdrcap.h"
#include "report.h"

static const struct main_command {
	const char *name;
	const char *purpose;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "loopback", "play known frames from one port into the other and prove every byte",
	  cmd_loopback },
	{ "capture", "receive frames, check every byte and count each frame", cmd_capture },
	{ "replay", "send frames of a pcap file or of a pattern, at an exact rate", cmd_replay },
	{ "doctor", "is this machine able to, and if not, the exact remedy", cmd_doctor },
	{ "bench", "how fast is the path here, beside the limits of this machine", cmd_bench },
	{ "merge", "one verdict of many runs' summaries: senders and receivers", cmd_merge },
	{ "report", "one page of what a run, or several, wrote as JSON", cmd_report },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void main_usage(FILE *to)
{
	fprintf(to, "Usage: gdrcap COMMAND [OPTION]...\n"
		    "Raw Ethernet frames into GPU memory, every byte accounted for.\n\n"
		    "Commands:\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].purpose);
	fprintf(to,
		"\n"
		"  gdrcap COMMAND --help   the command's options\n"
		"  gdrcap --version        versions of gdrcap, DPDK and CUDA\n\n"
		"Try:  gdrcap loopback     needs no card, no GPU and no configuration\n\n"
		"Exit status: 0 every frame was right; 1 could not run; 2 command line or\n"
		"configuration; 3 frames were lost, damaged, duplicated or reordered, or not sent or\n"
		"saved though asked for, or (merge) that is unknown, or (doctor) this machine is not\n"
		"able to.\n");
}

static int main_unknown(const char *name)
{
	struct nearest nearest = { .name = name };

	for (size_t i = 0; i < COMMANDS; i++)
		nearest_consider(&nearest, commands[i].name);
	fprintf(stderr, "gdrcap: unknown command '%s'.", name);
	if (nearest.best)
		fprintf(stderr, " Did you mean '%s'?", nearest.best);
	fprintf(stderr, " 'gdrcap --help' lists the commands.\n");
	return REPORT_EXIT_USAGE;
}

static int main_dispatch(int argc, char **argv)
{
	if (argc < 2) {
		main_usage(stderr);
		return REPORT_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		main_usage(stdout);
		return REPORT_EXIT_OK;
	}
	if (!strcmp(argv[1], "--complete")) {
		for (size_t i = 0; i < COMMANDS; i++)
			printf("%s\n", commands[i].name);
		printf("--help\n--version\n");
		return REPORT_EXIT_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("%s\n", gdrcap_version());
		return REPORT_EXIT_OK;
	}
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	return main_unknown(argv[1]);
}

/*
 * Of standard input, output and error, who starts the program may have closed some. The next file or socket would get
 * that number, and what is printed would go there. A descriptor that can do the opposite of what is asked of it lets
 * reading and writing fail as if it were closed.
 */
static void occupy_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			_exit(REPORT_EXIT_NOT_RUN);
}

int main(int argc, char **argv)
{
	int status;

	occupy_standard_descriptors();
	status = main_dispatch(argc, argv);

	/* A result that nobody could read is no success. */
	errno = 0;
	if (fflush(stdout) == EOF || ferror(stdout)) {
		fprintf(stderr, "gdrcap: standard output could not be written%s%s\n",
			errno ? ": " : "", errno ? strerror(errno) : "");
		if (status == REPORT_EXIT_OK)
			status = REPORT_EXIT_NOT_RUN;
	}
	return status;
}
