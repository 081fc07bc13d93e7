/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver's descriptors are found by the inode of the memory that stands in for a file. */
#include "port/held_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/output_file.h"
#include "port/devargs.h"

#define KEY "tx_pcap="
#define STAND_IN "/proc/self/fd/%d"
#define STAND_IN_BYTES 32u

struct held_files {
	uint32_t count;
	struct held_file {
		char *path;
		int file, stand_in;
		bool made, begun; /* it was not there; it is the driver's */
	} of[GDRCAP_QUEUES_MAX];
	char *args;
	bool busy; /* another session or run has one of the files */
};

/* -1: it cannot be held back. Pipes and devices have nothing to lose, "-" is standard output. */
static int file_open(const char *path, bool *made)
{
	struct stat status;
	const bool there = stat(path, &status) == 0;

	*made = false;
	if (strcmp(path, "-") == 0 || (there && !S_ISREG(status.st_mode)) ||
	    (!there && errno != ENOENT))
		return -1;
	if (there)
		return open(path, O_WRONLY | O_CLOEXEC);
	*made = true;
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static bool same_file(int a, int b)
{
	struct stat of_a, of_b;

	return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
	       of_a.st_ino == of_b.st_ino;
}

static void file_close(struct held_file *one)
{
	const int there = one->made && !one->begun ? open(one->path, O_PATH | O_CLOEXEC) : -1;

	if (there >= 0 && same_file(there, one->file))
		(void)unlink(one->path);
	if (there >= 0)
		close(there);
	if (one->stand_in >= 0)
		close(one->stand_in);
	output_file_close(one->file);
	free(one->path);
}

/* True: `path` is held back, and `text` is what the driver opens. */
static bool hold(struct held_files *held, const char *path, char text[STAND_IN_BYTES])
{
	struct held_file *one = &held->of[held->count];

	if (held->count == GDRCAP_QUEUES_MAX)
		return false;
	one->path = strdup(path);
	one->file = one->path ? file_open(path, &one->made) : -1;
	if (one->file < 0) {
		free(one->path);
		return false;
	}
	one->stand_in = -1;
	if (output_file_lock(one->file) < 0) {
		held->busy = true;
		file_close(one);
		return false;
	}
	one->stand_in = memfd_create("gdrcap-tx", MFD_CLOEXEC);
	snprintf(text, STAND_IN_BYTES, STAND_IN, one->stand_in);
	if (one->stand_in < 0 || access(text, W_OK) < 0) {
		file_close(one);
		return false;
	}
	held->count++;
	return true;
}

/* The arguments, with what stands in for the files. */
static int args_make(struct held_files *held, const char *args)
{
	const size_t bytes = strlen(args) + GDRCAP_QUEUES_MAX * STAND_IN_BYTES + 1;
	char *copy = strdup(args), *rest = copy, *token, text[STAND_IN_BYTES];
	size_t used = 0;

	held->args = malloc(bytes);
	if (!copy || !held->args) {
		free(copy);
		return -ENOMEM;
	}
	held->args[0] = '\0';
	while ((token = strsep(&rest, ",")) != NULL) {
		const bool file = strncmp(token, KEY, strlen(KEY)) == 0 &&
				  hold(held, token + strlen(KEY), text);

		used += (size_t)snprintf(held->args + used, bytes - used, "%s%s%s", used ? "," : "",
					 file ? KEY : token, file ? text : "");
	}
	free(copy);
	return held->busy ? -EBUSY : 0;
}

int held_files_open(struct held_files **out, const char *name, const char **args,
		    struct gdrcap_error *error)
{
	struct held_files *held;
	int ret = -ENOMEM;

	*out = NULL;
	if (strncmp(name, "net_pcap", strlen("net_pcap")) != 0 || !strstr(devargs_of(name), KEY))
		return 0;
	held = calloc(1, sizeof(*held));
	if (held)
		ret = args_make(held, devargs_of(name));
	if (ret < 0) {
		held_files_close(held);
		return error_set(
			error, ret, "port %s: %s", name,
			ret == -EBUSY ? "its file is another session's or run's; name another file"
				      : "no memory for its files");
	}
	*args = held->args;
	*out = held;
	return 0;
}

/* What the driver has opened becomes the file; what it has written there already goes first. */
static int file_begin(struct held_file *one)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;
	struct stat status;
	int ret = directory ? -ENOENT : -errno;

	while (directory && (entry = readdir(directory)) != NULL) {
		const int fd = atoi(entry->d_name);
		off_t from = 0;

		if (entry->d_name[0] == '.' || fd == one->stand_in || !same_file(fd, one->stand_in))
			continue;
		ret = 0;
		if (ftruncate(one->file, 0) < 0 || fstat(fd, &status) < 0 ||
		    (status.st_size &&
		     sendfile(one->file, fd, &from, (size_t)status.st_size) != status.st_size) ||
		    dup3(one->file, fd, O_CLOEXEC) < 0)
			ret = -errno;
		break;
	}
	if (directory)
		closedir(directory);
	return ret;
}

int held_files_begin(struct held_files *held, struct gdrcap_error *error)
{
	for (uint32_t i = 0; held && i < held->count; i++) {
		struct held_file *one = &held->of[i];
		const int ret = one->begun ? 0 : file_begin(one);

		if (ret < 0)
			return error_set(error, ret,
					 "tx_port: cannot write %s: %s; free space there, or name "
					 "another file",
					 one->path, strerror(-ret));
		one->begun = true;
	}
	return 0;
}

void held_files_close(struct held_files *held)
{
	for (uint32_t i = 0; held && i < held->count; i++)
		file_close(&held->of[i]);
	if (held)
		free(held->args);
	free(held);
}
