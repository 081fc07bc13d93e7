/* SPDX-License-Identifier: BSD-3-Clause */
/* A capture file's bytes, read ahead of libpcap. */
#include "replay/pcap_stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input_file.h"

/* Read ahead. A frame of PCAP_SNAP_MAX bytes with its head has room. */
#define AHEAD_BYTES ((size_t)512 << 10)
#define READ_BYTES ((size_t)256 << 10)

/* Where version and snap length are in the head of a pcap file. */
#define HEAD_VERSION 4u
#define HEAD_SNAP 16u
#define RECORD_BYTES 16u /* the head of its records: s, us or ns, bytes here, bytes on the wire */

/* Of pcapng: blocks that have frames, those that come before them, and the mark of the byte order. */
#define BLOCK_SECTION 0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET 2u
#define BLOCK_SIMPLE 3u
#define BLOCK_ENHANCED 6u
#define BLOCK_ORDER 0x1a2b3c4du
#define BLOCK_BYTES 12u /* the least */

static uint32_t load32(const uint8_t *at, bool swapped)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return swapped ? __builtin_bswap32(value) : value;
}

bool pcap_stream_is_pcapng(const struct pcap_stream *stream)
{
	return stream->head_bytes >= 4 && load32(stream->head, false) == BLOCK_SECTION;
}

/* Keeps the head, and says PCAP_SNAP_MAX in what libpcap is going to read. */
static void head_take(struct pcap_stream *stream)
{
	uint32_t magic, snap = PCAP_SNAP_MAX;

	stream->head_bytes = stream->to - stream->from;
	if (stream->head_bytes > PCAP_HEAD_BYTES)
		stream->head_bytes = PCAP_HEAD_BYTES;
	memcpy(stream->head, stream->ahead + stream->from, stream->head_bytes);
	if (stream->head_bytes < PCAP_HEAD_BYTES)
		return;
	magic = load32(stream->head, false);
	stream->swapped = magic == BLOCK_SECTION ? load32(stream->head + 8, false) != BLOCK_ORDER
						 : magic == 0xd4c3b2a1u || magic == 0x4d3cb2a1u;
	if (magic == BLOCK_SECTION ||
	    (!stream->swapped && magic != 0xa1b2c3d4u && magic != 0xa1b23c4du))
		return;
	/* Records of others have their lengths at other places. */
	stream->records = load32(stream->head + HEAD_VERSION, false) ==
			  (stream->swapped ? 0x04000200u : 0x00040002u);
	stream->nano = magic == 0xa1b23c4du || magic == 0x4d3cb2a1u;
	stream->snap = load32(stream->head + HEAD_SNAP, stream->swapped);
	if (stream->snap == 0 || stream->snap > PCAP_SNAP_MAX)
		stream->snap = PCAP_SNAP_MAX;
	snap = stream->swapped ? __builtin_bswap32(snap) : snap;
	memcpy(stream->ahead + stream->from + HEAD_SNAP, &snap, sizeof(snap));
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
	room = AHEAD_BYTES - stream->to;
	n = source_read(stream, stream->ahead + stream->to, room < READ_BYTES ? room : READ_BYTES);
	stream->to += n > 0 ? (size_t)n : 0;
	return n;
}

/* A pipe's writer has written, or has left. One that nobody has opened yet has no end. */
static bool pipe_waits(const struct pcap_stream *stream, int ms)
{
	struct pollfd poll_fd = { .fd = stream->pipe, .events = POLLIN };

	return poll(&poll_fd, 1, ms) > 0;
}

/* Where a block of pcapng begins: its bytes. UINT64_MAX: nobody knows. */
static uint64_t block_bytes(const struct pcap_stream *stream)
{
	const uint8_t *at = stream->ahead + stream->from;
	uint32_t bytes;

	if (!pcap_stream_is_pcapng(stream))
		return UINT64_MAX;
	bytes = load32(at + 4, load32(at, false) == BLOCK_SECTION
				       ? load32(at + 8, false) != BLOCK_ORDER
				       : stream->swapped);
	return bytes < BLOCK_BYTES ? UINT64_MAX : bytes;
}

/* Reads until so many bytes are ahead, if there are; of a pipe it waits. */
static void ahead_fill(struct pcap_stream *stream, size_t bytes)
{
	while (stream->to - stream->from < bytes && !stream->ended && !stream->failed) {
		if (!stream->file)
			pipe_waits(stream, -1);
		ahead_read(stream);
	}
}

/*
 * What libpcap may have of a pipe now. What its FILE reads ahead of libpcap ends with a block: else nobody knew where
 * the next one begins. It waits only in what pcap_stream_ready() cannot hold as a whole.
 */
static size_t pipe_ahead(struct pcap_stream *stream, size_t bytes)
{
	ahead_fill(stream, stream->unit ? 1 : BLOCK_BYTES);
	if (stream->unit == 0)
		stream->unit =
			stream->to - stream->from < BLOCK_BYTES ? UINT64_MAX : block_bytes(stream);
	if (bytes > stream->unit)
		bytes = (size_t)stream->unit;
	if (bytes > stream->to - stream->from)
		bytes = stream->to - stream->from;
	stream->unit -= bytes;
	return bytes;
}

ssize_t pcap_stream_read(struct pcap_stream *stream, char *to, size_t bytes)
{
	ssize_t n = 0;

	/* Records are not libpcap's: it has the head. */
	if (stream->records)
		bytes = bytes < PCAP_HEAD_BYTES - stream->at ? bytes
							     : PCAP_HEAD_BYTES - (size_t)stream->at;
	else if (!stream->file)
		bytes = pipe_ahead(stream, bytes);
	else if (stream->from == stream->to && !stream->ended)
		n = source_read(stream, to, bytes);
	if (stream->failed) {
		errno = stream->failed;
		return -1;
	}
	if (n == 0) {
		n = (ssize_t)(bytes < stream->to - stream->from ? bytes
								: stream->to - stream->from);
		memcpy(to, stream->ahead + stream->from, (size_t)n);
		stream->from += (size_t)n;
	}
	stream->at += (size_t)n;
	return n;
}

int pcap_stream_record(struct pcap_stream *stream, struct pcap_record *record)
{
	const uint8_t *at;

	*record = (struct pcap_record){ 0 };
	if (stream->to - stream->from < RECORD_BYTES)
		ahead_fill(stream, RECORD_BYTES);
	record->there = stream->to - stream->from;
	if (stream->failed)
		return -stream->failed;
	if (record->there < RECORD_BYTES)
		return record->there ? -EBADMSG : 0;
	at = stream->ahead + stream->from;
	record->seconds = (int32_t)load32(at, stream->swapped);
	record->ns = (uint64_t)load32(at + 4, stream->swapped) * (stream->nano ? 1 : 1000);
	record->bytes_here = load32(at + 8, stream->swapped);
	record->bytes_sent = load32(at + 12, stream->swapped);
	if (record->bytes_here > PCAP_SNAP_MAX)
		return -EINVAL;
	if (record->there < RECORD_BYTES + record->bytes_here)
		ahead_fill(stream, RECORD_BYTES + record->bytes_here);
	record->there = stream->to - stream->from;
	if (stream->failed)
		return -stream->failed;
	if (record->there < RECORD_BYTES + record->bytes_here)
		return -EBADMSG;
	record->bytes = stream->ahead + stream->from + RECORD_BYTES;
	stream->from += RECORD_BYTES + record->bytes_here;
	stream->at += RECORD_BYTES + record->bytes_here;
	return 1;
}

int pcap_stream_begin(struct pcap_stream *stream)
{
	ahead_fill(stream, PCAP_HEAD_BYTES);
	if (stream->failed)
		return -stream->failed;
	head_take(stream);
	return 0;
}

/* `ahead` has all that libpcap reads for the next frame; not yet begun, for the head. */
static bool next_is_whole(struct pcap_stream *stream, bool begun)
{
	const uint8_t *at = stream->ahead + stream->from;
	size_t left = stream->to - stream->from;
	bool swapped = stream->swapped;

	if (left < (begun ? RECORD_BYTES : PCAP_HEAD_BYTES))
		return false;
	if (!begun && load32(at, false) != BLOCK_SECTION)
		return true;
	if (begun && !pcap_stream_is_pcapng(stream))
		return !stream->records || load32(at + 8, swapped) > PCAP_SNAP_MAX ||
		       left - RECORD_BYTES >= load32(at + 8, swapped);
	/* libpcap reads on until a block has a frame, and at the beginning an interface. */
	while (left >= BLOCK_BYTES) {
		const bool section = load32(at, false) == BLOCK_SECTION;
		uint32_t kind, bytes;

		if (section)
			swapped = load32(at + 8, false) != BLOCK_ORDER;
		kind = load32(at, swapped);
		bytes = load32(at + 4, swapped);
		if (bytes >= BLOCK_BYTES && bytes > left)
			return false;
		stream->swapped = swapped;
		if (bytes < BLOCK_BYTES /* it is broken */ ||
		    (begun ? kind == BLOCK_PACKET || kind == BLOCK_SIMPLE || kind == BLOCK_ENHANCED
			   : kind == BLOCK_INTERFACE))
			return true;
		at += bytes;
		left -= bytes;
	}
	return false;
}

bool pcap_stream_ready(struct pcap_stream *stream, bool begun)
{
	if (stream->file)
		return true;
	while (!next_is_whole(stream, begun) && !stream->ended &&
	       stream->to - stream->from < AHEAD_BYTES) {
		ssize_t n;

		if (!pipe_waits(stream, 0))
			return false;
		n = ahead_read(stream);
		if (n < 0)
			return n != -EAGAIN;
	}
	return true;
}

int pcap_stream_open(struct pcap_stream *stream, const char *path, FILE *file, bool pipes)
{
	struct stat status;
	int fd;

	*stream = (struct pcap_stream){ .file = file, .pipe = -1, .ahead = malloc(AHEAD_BYTES) };
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
	stream->unit = 0;
	stream->failed = 0;
	stream->ended = false;
	return 0;
}

void pcap_stream_close(struct pcap_stream *stream)
{
	if (stream->file)
		fclose(stream->file);
	if (stream->pipe >= 0)
		close(stream->pipe);
	free(stream->ahead);
}
