/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of a capture file, each judged; what is wrong with a file is said here. */
#include "replay/pcap_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/input_file.h"
#include "base/log.h"
#include "pattern/frame.h"
#include "replay/pcap_records.h"

#define FRAME_LEN_MIN 14u
#define FRAME_LEN_MAX (FRAME_MAX_BYTES - FRAME_FCS_BYTES)

struct pcap_file {
	struct pcap_records records;
	bool begun;
	bool any_length;
	uint64_t frame; /* number of the last one, from 1, as other tools count */
	char path[];	/* for error texts */
};

/* ---- what is wrong with it ---- */

static int fail_read(const struct pcap_file *file, struct gdrcap_error *error)
{
	const struct pcap_stream *stream = &file->records.stream;

	return error_set(error, -stream->failed, "%s: it cannot be read after %llu bytes: %s",
			 file->path, (unsigned long long)stream->at, strerror(stream->failed));
}

/* It is something else. */
static int fail_kind(const struct pcap_file *file, struct gdrcap_error *error)
{
	static const struct {
		uint8_t magic[4];
		const char *program;
	} packed[] = {
		{ { 0x1f, 0x8b }, "gunzip" },
		{ { 'B', 'Z', 'h' }, "bunzip2" },
		{ { 0xfd, '7', 'z', 'X' }, "unxz" },
		{ { 0x28, 0xb5, 0x2f, 0xfd }, "unzstd" },
		{ { 0x04, 0x22, 0x4d, 0x18 }, "unlz4" },
	};

	for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++)
		if (memcmp(file->records.magic, packed[i].magic,
			   strnlen((const char *)packed[i].magic, 4)) == 0)
			return error_set(error, -EINVAL,
					 "%s: the file is compressed; unpack it first (%s)",
					 file->path, packed[i].program);
	return error_set(
		error, -EINVAL,
		"%s: the file is not a pcap or pcapng file; convert it (editcap -F nsecpcap OLD "
		"NEW), or give another",
		file->path);
}

/* What pcap_records_begin() said. */
static int fail_begin(const struct pcap_file *file, int ret, struct gdrcap_error *error)
{
	const struct pcap_records *records = &file->records;

	if (records->stream.failed)
		return fail_read(file, error);
	if (ret == -ENODATA)
		return error_set(error, ret, "%s: the file is empty; capture into it first",
				 file->path);
	if (ret == -EBADMSG)
		return error_set(
			error, -EINVAL,
			"%s: the file is not a pcap or pcapng file, or ends in the middle of "
			"its header, after %llu bytes; copy it again, or give another",
			file->path,
			(unsigned long long)(records->stream.at +
					     pcap_stream_left(&records->stream)));
	if (records->kind == PCAP_NONE)
		return fail_kind(file, error);
	return error_set(error, ret,
			 "%s: its head cannot be used: %s; convert it (editcap -F nsecpcap OLD "
			 "NEW), or give another",
			 file->path, records->why);
}

/* Frame `number` is corrupt, or not all there: what can be done. */
static int fail_here(const struct pcap_file *file, unsigned long long number, const char *what,
		     struct gdrcap_error *error)
{
	if (number == 1)
		return error_set(error, -EINVAL, "%s: %s; copy the file again, or give another",
				 file->path, what);
	return error_set(error, -EINVAL,
			 "%s: %s; copy the file again, or keep what is before: editcap -r FILE NEW "
			 "1-%llu",
			 file->path, what, number - 1);
}

/* What pcap_records_next() said. */
static int fail_frame(const struct pcap_file *file, int ret, struct gdrcap_error *error)
{
	const struct pcap_records *records = &file->records;
	const unsigned long long number = file->frame + 1;
	char what[sizeof(records->why) + 80];

	if (records->stream.failed)
		return fail_read(file, error);
	if (ret == -ENOTSUP)
		return error_set(error, ret,
				 "%s: at frame %llu: %s; convert it: editcap -F nsecpcap OLD NEW",
				 file->path, number, records->why);
	if (ret == -EBADMSG)
		snprintf(what, sizeof(what),
			 "the file ends in the middle of frame %llu (%zu bytes of its record are "
			 "there)",
			 number, pcap_stream_left(&records->stream));
	else
		snprintf(what, sizeof(what), "frame %llu is corrupt (%s)", number, records->why);
	return fail_here(file, number, what, error);
}

static const char *link_name(uint32_t link)
{
	static const struct {
		uint32_t link;
		const char *name;
	} known[] = {
		{ 0, "BSD loopback" },
		{ 9, "PPP" },
		{ 101, "raw IP" },
		{ 105, "802.11" },
		{ 108, "OpenBSD loopback" },
		{ 113, "Linux cooked v1" },
		{ 127, "802.11, radiotap" },
		{ 147, "user 0" },
		{ 228, "raw IPv4" },
		{ 229, "raw IPv6" },
		{ 249, "USB" },
		{ 276, "Linux cooked v2" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].link == link)
			return known[i].name;
	return "unknown";
}

/* A file may have several interfaces, and those may have no frames. */
static int check_link(const struct pcap_file *file, uint32_t link, struct gdrcap_error *error)
{
	if (link == PCAP_LINK_ETHERNET)
		return 0;
	if (file->frame > 1 || file->records.count > 1)
		return error_set(
			error, -EINVAL,
			"%s: the link type of frame %llu is %u (%s), not Ethernet; keep the "
			"Ethernet frames: tshark -r OLD -Y \"frame.encap_type == 1\" -F "
			"pcapng -w NEW",
			file->path, (unsigned long long)file->frame, link, link_name(link));
	return error_set(error, -EINVAL,
			 "%s: its link type is %u (%s), not Ethernet; capture from one Ethernet "
			 "interface (tcpdump -i eth0, not -i any)",
			 file->path, link, link_name(link));
}

static int check_time(const struct pcap_file *file, const struct pcap_record *record,
		      struct gdrcap_error *error)
{
	char what[128];

	if (record->seconds >= 0 && (uint64_t)record->seconds < PCAP_TIME_MAX_NS / 1000000000 &&
	    record->ns < 1000000000)
		return 0;
	snprintf(what, sizeof(what), "frame %llu has an impossible time (%lld s, %llu ns)",
		 (unsigned long long)file->frame, (long long)record->seconds,
		 (unsigned long long)record->ns);
	return fail_here(file, file->frame, what, error);
}

static int check_length(const struct pcap_file *file, const struct pcap_record *record,
			struct gdrcap_error *error)
{
	const uint32_t fcs = record->fcs_bytes, least = file->any_length ? 0 : FRAME_LEN_MIN;
	const uint32_t here = record->bytes_here, sent = record->bytes_sent;
	const unsigned long long number = file->frame;

	if (!file->any_length && sent > FRAME_LEN_MAX + fcs)
		return error_set(
			error, -EINVAL,
			"%s: frame %llu is %u bytes long without FCS, %u are the most; "
			"leave such frames out: tshark -r OLD -Y \"frame.len <= %u\" -w NEW; "
			"if a kernel has put them together, capture with ethtool -K IFACE gro "
			"off gso off tso off",
			file->path, number, sent - fcs, FRAME_LEN_MAX, FRAME_LEN_MAX + fcs);
	if (here < sent)
		return error_set(error, -EINVAL,
				 "%s: frame %llu is cut to %u of its %u bytes (the file's snap "
				 "length is %u); capture whole frames (tcpdump -s 0)",
				 file->path, number, here, sent, record->snap);
	if (here > sent)
		return error_set(error, -EINVAL,
				 "%s: frame %llu has %u bytes, but its length is said to be %u; "
				 "remove it (editcap OLD NEW %llu)",
				 file->path, number, here, sent, number);
	if (sent < least + fcs)
		return error_set(error, -EINVAL,
				 "%s: frame %llu is %u bytes long without FCS, an Ethernet header "
				 "alone has %u; remove it (editcap OLD NEW %llu)",
				 file->path, number, sent > fcs ? sent - fcs : 0, FRAME_LEN_MIN,
				 number);
	return 0;
}

/* ---- opening ---- */

/* -EAGAIN: a pipe has not brought its head yet. */
static int file_begin(struct pcap_file *file, struct gdrcap_error *error)
{
	int ret = pcap_records_begin(&file->records);

	file->frame = 0;
	if (ret == -EAGAIN)
		return ret;
	if (ret < 0)
		return fail_begin(file, ret, error);
	file->begun = true;
	return file->records.kind == PCAP_PLAIN
		       ? check_link(file, file->records.interfaces[0].link, error)
		       : 0;
}

static int fail_path(const struct pcap_file *file, int ret, bool pipes, struct gdrcap_error *error)
{
	if (ret == -ENOMEM)
		return error_set(error, ret, "%s: no memory to read it", file->path);
	if (ret == -ESPIPE && pipes)
		return error_set(error, -EINVAL,
				 "%s: it is not a regular file, nor a pipe; give one of these",
				 file->path);
	if (ret == -ESPIPE)
		return error_set(
			error, -EINVAL,
			"%s: it is not a regular file, and must be read more than once; save "
			"it as a file first",
			file->path);
	return error_set(error, ret, "%s: %s; %s", file->path, strerror(-ret),
			 input_file_remedy(ret));
}

static int file_open(struct pcap_file **out, const char *path, FILE *stream, bool pipes,
		     struct gdrcap_error *error)
{
	const size_t bytes = strlen(path) + 1;
	struct pcap_file *file = calloc(1, sizeof(*file) + bytes);
	int ret;

	*out = NULL;
	if (!file) {
		if (stream)
			fclose(stream);
		return error_set(error, -ENOMEM, "%s: no memory to read it", path);
	}
	memcpy(file->path, path, bytes);
	file->any_length = pipes;
	ret = pcap_stream_open(&file->records.stream, path, stream, pipes);
	if (ret < 0)
		ret = fail_path(file, ret, pipes, error);
	else if (file->records.stream.pipe < 0)
		ret = file_begin(file, error);
	if (ret < 0) {
		pcap_file_close(file);
		return ret;
	}
	*out = file;
	return 0;
}

int pcap_file_open(struct pcap_file **file, const char *path, FILE *stream,
		   struct gdrcap_error *error)
{
	return file_open(file, path, stream, false, error);
}

int pcap_file_open_port(struct pcap_file **file, const char *path, struct gdrcap_error *error)
{
	return file_open(file, path, NULL, true, error);
}

int pcap_file_rewind(struct pcap_file *file, struct gdrcap_error *error)
{
	const int ret = pcap_records_rewind(&file->records);

	file->begun = false;
	if (ret < 0)
		return error_set(error, ret, "%s: it cannot be read again from its beginning: %s",
				 file->path, strerror(-ret));
	return file_begin(file, error);
}

/* ---- frames ---- */

static int frame_read(struct pcap_file *file, struct pcap_record *record,
		      struct gdrcap_error *error)
{
	int ret = file->begun ? 0 : file_begin(file, error);

	if (ret < 0)
		return ret;
	ret = pcap_records_next(&file->records, record);
	if (ret == 1)
		file->frame++;
	return ret < 0 && ret != -EAGAIN ? fail_frame(file, ret, error) : ret;
}

int pcap_file_skip(struct pcap_file *file, struct gdrcap_error *error)
{
	struct pcap_record record;

	return frame_read(file, &record, error);
}

int pcap_file_next(struct pcap_file *file, struct pcap_frame *frame, struct gdrcap_error *error)
{
	struct pcap_record record;
	int ret = frame_read(file, &record, error);

	if (ret != 1)
		return ret;
	ret = check_link(file, record.link, error);
	if (ret == 0)
		ret = check_length(file, &record, error);
	if (ret == 0)
		ret = check_time(file, &record, error);
	if (ret < 0)
		return ret;
	frame->bytes = record.bytes;
	frame->len = record.bytes_sent - record.fcs_bytes;
	frame->time_ns = (uint64_t)record.seconds * 1000000000u + record.ns;
	return 1;
}

void pcap_file_where(const struct pcap_file *file, uint64_t *at, uint64_t *bytes)
{
	*at = file->records.stream.at;
	*bytes = file->records.stream.bytes;
}

const char *pcap_file_name(const struct pcap_file *file)
{
	return file->path;
}

void pcap_file_close(struct pcap_file *file)
{
	if (!file)
		return;
	pcap_records_close(&file->records);
	free(file);
}
