/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a capture file, or of a pipe, read ahead of who parses them. */
#ifndef GDRCAP_PCAP_STREAM_H
#define GDRCAP_PCAP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The most that can be ahead. */
#define PCAP_AHEAD_BYTES ((size_t)512 << 10)

struct pcap_stream {
	FILE *file;	/* NULL: a pipe */
	int pipe;	/* its descriptor, which does not block; -1: none */
	uint64_t bytes; /* of the file; 0: not known */
	uint64_t at;	/* bytes that were taken */
	int failed;	/* errno of a read */
	bool ended;	/* nothing follows what is in `ahead` */
	uint8_t *ahead; /* bytes [from, to) were read, and not taken */
	size_t from, to;
};

/* `file` NULL: opens `path`, a regular file or, with `pipes`, a pipe. Returns 0, -ENOMEM, -ESPIPE for what is neither,
 * or what open() says. To be closed in any case. */
int pcap_stream_open(struct pcap_stream *stream, const char *path, FILE *file, bool pipes);
/*
 * Reads until `bytes` are ahead, PCAP_AHEAD_BYTES at most; they lie there until the next call. 0; -EAGAIN: a pipe does not
 * have them yet; -EBADMSG: the end comes before; or what read() says, and `failed` is set.
 */
int pcap_stream_need(struct pcap_stream *stream, size_t bytes);
/* 0, or a negative errno. */
int pcap_stream_rewind(struct pcap_stream *stream);
void pcap_stream_close(struct pcap_stream *stream);

static inline const uint8_t *pcap_stream_ahead(const struct pcap_stream *stream)
{
	return stream->ahead + stream->from;
}

static inline size_t pcap_stream_left(const struct pcap_stream *stream)
{
	return stream->to - stream->from;
}

/* Of those ahead. */
static inline void pcap_stream_take(struct pcap_stream *stream, size_t bytes)
{
	stream->from += bytes;
	stream->at += bytes;
}

#endif
