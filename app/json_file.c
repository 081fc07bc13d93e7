/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines at the end of a file that others rename and read. */
#include "json_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output_file.h"

/* 1: a regular file that ends within a line, as a run that was killed or a machine without power leaves it. The descriptor
 * only writes, so this is read by another of the same file. */
static int ends_within_line(int fd)
{
	struct stat status;
	char path[32], last = '\n';
	int reader;

	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_size == 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	reader = open(path, O_RDONLY | O_CLOEXEC);
	if (reader < 0)
		return 0;
	if (pread(reader, &last, 1, status.st_size - 1) != 1)
		last = '\n';
	close(reader);
	return last != '\n';
}

int json_file_open(struct json_file *file, const char *path)
{
	const int fd = output_file_append(path);

	*file = (struct json_file){ .fd = -1 };
	if (fd < 0)
		return fd;
	file->path = path;
	file->fd = fd;
	file->cut = ends_within_line(fd);
	return 0;
}

int json_file_reopen(struct json_file *file)
{
	const int fd = output_file_append(file->path);
	int ret;

	if (fd < 0)
		return fd;
	ret = close(file->fd) ? -errno : 0;
	file->fd = fd;
	file->cut = ends_within_line(fd);
	return ret;
}

/* Of a line only `bytes` found room: out with them, unless somebody else has written after them. */
static int take_back(int fd, size_t bytes, off_t size)
{
	struct stat status;

	return fstat(fd, &status) || !S_ISREG(status.st_mode) ||
	       status.st_size != size + (off_t)bytes || ftruncate(fd, size);
}

/* Signals restart what they interrupt; so a short write is all that there is room for, and the next one says why. */
static int append(struct json_file *file, const char *text, size_t bytes)
{
	struct stat before = { 0 };
	size_t written = 0;
	ssize_t n = 1;
	int code;

	if (fstat(file->fd, &before))
		return -errno;
	while (n > 0 && written < bytes) {
		n = write(file->fd, text + written, bytes - written);
		written += n > 0 ? (size_t)n : 0;
	}
	if (written == bytes)
		return 0;
	code = n < 0 ? -errno : -EIO;
	if (written > 0 && take_back(file->fd, written, before.st_size))
		file->cut = 1;
	return code;
}

int json_file_write(struct json_file *file, const char *line, size_t bytes)
{
	int ret = 0;

	/* The next line begins as one. */
	if (file->cut && write(file->fd, "\n", 1) == 1)
		file->cut = 0;
	if (file->cut)
		ret = errno ? -errno : -EIO;
	else
		ret = append(file, line, bytes);
	if (ret && file->missed++ == 0)
		file->error = ret;
	return ret;
}

int json_file_close(struct json_file *file)
{
	int ret;

	if (!file->path)
		return 0;
	ret = close(file->fd) ? -errno : 0;
	file->path = NULL;
	return ret;
}
