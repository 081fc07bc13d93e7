/* SPDX-License-Identifier: BSD-3-Clause */
/* A capture file's bytes, read ahead. */
#include "replay/pcap_stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/input_file.h"

#define READ_BYTES ((size_t)256 << 10)

/* A pipe's writer has written, or has left. One that nobody has opened yet has no end. */
static bool pipe_waits(const struct pcap_stream *stream)
{
	struct pollfd poll_fd = { .fd = stream->pipe, .events = POLLIN };

	return poll(&poll_fd, 1, 0) > 0;
}

/* Reads once. Bytes; 0: the end; -EAGAIN: a pipe has nothing now. */
static ssize_t source_read(struct pcap_stream *stream, void *to, size_t bytes)
{
	ssize_t n;

	errno = 0;
	if (stream->file) {
		n = (ssize_t)fread(to, 1, bytes, stream->file);
		if (n == 0 && ferror(stream->file)) {
			n = -1;
			clearerr(stream->file);
		}
	} else {
		if (!pipe_waits(stream))
			return -EAGAIN;
		n = read(stream->pipe, to, bytes);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return -EAGAIN;
	}
	if (n < 0) {
		stream->failed = errno ? errno : EIO;
		return -stream->failed;
	}
	stream->ended |= n == 0;
	return n;
}

/* Behind what is ahead, for which it makes room. */
static ssize_t ahead_read(struct pcap_stream *stream)
{
	size_t room;
	ssize_t n;

	memmove(stream->ahead, stream->ahead + stream->from, stream->to - stream->from);
	stream->to -= stream->from;
	stream->from = 0;
	room = PCAP_AHEAD_BYTES - stream->to;
	n = source_read(stream, stream->ahead + stream->to, room < READ_BYTES ? room : READ_BYTES);
	stream->to += n > 0 ? (size_t)n : 0;
	return n;
}

int pcap_stream_need(struct pcap_stream *stream, size_t bytes)
{
	while (pcap_stream_left(stream) < bytes) {
		ssize_t n;

		if (stream->ended)
			return -EBADMSG;
		n = ahead_read(stream);
		if (n < 0)
			return (int)n;
	}
	return 0;
}

int pcap_stream_open(struct pcap_stream *stream, const char *path, FILE *file, bool pipes)
{
	struct stat status;
	int fd;

	*stream =
		(struct pcap_stream){ .file = file, .pipe = -1, .ahead = malloc(PCAP_AHEAD_BYTES) };
	if (!stream->ahead)
		return -ENOMEM;
	if (file)
		return 0;
	fd = pipes ? input_stream_open(path, &status) : input_file_open(path, &status);
	if (fd < 0)
		return fd;
	if (S_ISFIFO(status.st_mode)) {
		stream->pipe = fd;
		return 0;
	}
	stream->bytes = (uint64_t)status.st_size;
	/* No run of gdrcap empties the file to write to it meanwhile. If one writes to it already, it grows. */
	(void)flock(fd, LOCK_SH | LOCK_NB);
	stream->file = fdopen(fd, "rb");
	if (stream->file)
		return 0;
	close(fd);
	return -ENOMEM;
}

int pcap_stream_rewind(struct pcap_stream *stream)
{
	if (!stream->file)
		return -ESPIPE;
	if (fseeko(stream->file, 0, SEEK_SET) < 0)
		return -errno;
	stream->from = stream->to = 0;
	stream->at = 0;
	stream->failed = 0;
	stream->ended = false;
	return 0;
}

void pcap_stream_close(struct pcap_stream *stream)
{
	if (stream->file) {
		/* also if a child process that was forked meanwhile has the descriptor */
		(void)flock(fileno(stream->file), LOCK_UN);
		fclose(stream->file);
	}
	if (stream->pipe >= 0)
		close(stream->pipe);
	free(stream->ahead);
}
