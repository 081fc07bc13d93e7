/* SPDX-License-Identifier: BSD-3-Clause */
/* A summary's file: the text of its object, of which no more is read than a summary can have. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "merge/merge.h"

/* As much of the file as fits, from `from` on; the bytes read, or a negative errno. */
static ssize_t read_all(int fd, char *text, size_t room, off_t from)
{
	size_t bytes = 0;

	if (from && lseek(fd, from, SEEK_SET) < 0)
		return -errno;
	while (bytes < room) {
		const ssize_t n = read(fd, text + bytes, room - bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		bytes += (size_t)n;
	}
	return (ssize_t)bytes;
}

/* Lines of weeks: only the last ones are read, from the first that is whole. */
static int take(struct merge_input *input, char *text, size_t bytes, bool tail)
{
	const char *from = text;

	if (bytes > MERGE_TEXT_MAX)
		return merge_refuse(input, MERGE_REFUSED,
				    "larger than any summary (%u MiB): is this the right file?",
				    MERGE_TEXT_MAX >> 20);
	if (tail) {
		from = memchr(text, '\n', bytes);
		/* The last line feed ends a line, and begins none. */
		if (!from || from + 1 >= text + bytes)
			return merge_refuse(input, MERGE_REFUSED,
					    "its last line is larger than any summary (%u MiB): is "
					    "this the right file?",
					    MERGE_TEXT_MAX >> 20);
		from++;
	}
	return merge_text(input, from, bytes - (size_t)(from - text));
}

static int read_file(struct merge_input *input, int fd, char *text)
{
	struct stat stat;
	off_t from = 0;
	ssize_t bytes;

	if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size > MERGE_TEXT_MAX)
		from = stat.st_size - MERGE_TEXT_MAX;
	if (from) {
		const ssize_t head = read_all(fd, text, MERGE_TEXT_MAX, 0);
		const char *end = head > 0 ? memchr(text, '\n', (size_t)head) : NULL;

		if (end && merge_first_line(input, text, (size_t)(end - text)) < 0)
			return -EINVAL;
	}
	bytes = read_all(fd, text, from ? MERGE_TEXT_MAX : MERGE_TEXT_MAX + 1, from);
	if (bytes < 0)
		return merge_refuse(input, MERGE_UNKNOWN, "could not be read: %s",
				    strerror((int)-bytes));
	return take(input, text, (size_t)bytes, from != 0);
}

int merge_file(struct merge_input *input)
{
	char *text;
	int fd, rc;

	/* "-" is standard input; a file of that name is ./- */
	fd = !strcmp(input->file, "-") ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
				       : open(input->file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		merge_refuse(input, MERGE_UNKNOWN,
			     "could not be opened: %s; its machine gave nothing", strerror(errno));
		return 0;
	}
	text = malloc(MERGE_TEXT_MAX + 1);
	rc = text ? read_file(input, fd, text) : -ENOMEM;
	free(text);
	close(fd);
	return rc == -ENOMEM ? rc : 0;
}
