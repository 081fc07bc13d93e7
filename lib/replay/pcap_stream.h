/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of a pcap or pcapng file, or of a pipe, as libpcap is to read them. They are read ahead, so that a pipe
 * can be looked at: whether its next frame is there as a whole. In a pcap file's head libpcap finds
 * PCAP_SNAP_MAX as the snap length: it cuts no record that is longer than the file's own, and a hostile head
 * makes it allocate no more than that.
 */
#ifndef GDRCAP_PCAP_STREAM_H
#define GDRCAP_PCAP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* The head of a pcap file: magic, two versions, zone, accuracy, snap length, link type. */
#define PCAP_HEAD_BYTES 24u
/* libpcap's own largest for Ethernet. */
#define PCAP_SNAP_MAX 262144u

struct pcap_stream {
	FILE *file;	/* NULL: a pipe */
	int pipe;	/* its descriptor, which does not block; -1: none */
	uint64_t bytes; /* of the file; 0: not known */
	uint64_t at;	/* bytes that libpcap has read */
	int failed;	/* errno of a read */
	bool ended;	/* nothing follows what is in `ahead` */
	bool swapped;	/* the byte order of what is there */
	bool records;	/* it is pcap 2.4: pcap_stream_record() */
	bool nano;	/* its records' times are in ns, not us */
	uint8_t *ahead; /* bytes [from, to) were read, and libpcap has not had them */
	size_t from, to;
	uint64_t unit; /* pcapng by a pipe: bytes of a block that libpcap reads, and has not had */
	uint8_t head[PCAP_HEAD_BYTES]; /* the file's own */
	size_t head_bytes;
	uint32_t snap; /* the file's own, of pcap */
};

/* `file` NULL: opens `path`, a regular file or, with `pipes`, a pipe. Returns 0, -ENOMEM, -ESPIPE for what is neither,
 * or what open() says. To be closed in any case. */
int pcap_stream_open(struct pcap_stream *stream, const char *path, FILE *file, bool pipes);
/* Before libpcap reads: the head is there, unless the file ends before. 0, or a negative errno of a read. */
int pcap_stream_begin(struct pcap_stream *stream);
/* As read(): for libpcap. */
ssize_t pcap_stream_read(struct pcap_stream *stream, char *to, size_t bytes);
/* A record of a pcap file. Lies ahead until the next call. */
struct pcap_record {
	int64_t seconds;
	uint64_t ns;
	uint32_t bytes_here, bytes_sent;
	const uint8_t *bytes;
	size_t there; /* of the record, its head included, where that is less */
};
/* With `records`, in place of libpcap, whose reads through a FILE of ours take twice the time. 1; 0: the end; -EBADMSG: the
 * file ends in the record's middle; -EINVAL: it is larger than PCAP_SNAP_MAX; or what read() says. */
int pcap_stream_record(struct pcap_stream *stream, struct pcap_record *record);
/* Of a pipe: libpcap finds the next frame, or the end, without waiting; not yet `begun`, the head. A frame that does
 * not fit into `ahead` may have to be waited for all the same. */
bool pcap_stream_ready(struct pcap_stream *stream, bool begun);
/* 0, or a negative errno. */
int pcap_stream_rewind(struct pcap_stream *stream);
void pcap_stream_close(struct pcap_stream *stream);

static inline bool pcap_stream_is_pipe(const struct pcap_stream *stream)
{
	return stream->pipe >= 0;
}
bool pcap_stream_is_pcapng(const struct pcap_stream *stream);

#endif
