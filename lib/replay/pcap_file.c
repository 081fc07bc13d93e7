/* SPDX-License-Identifier: BSD-3-Clause */
/* libpcap reads through a stream of ours (fopencookie): pcap_stream.h. What is wrong with a file is said here. */
#include "replay/pcap_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <pcap/pcap.h>

#include "base/log.h"
#include "pattern/frame.h"
#include "replay/pcap_stream.h"

#define FRAME_LEN_MIN 14u
#define STREAM_BYTES ((size_t)256 << 10)
#define FRAME_LEN_MAX (FRAME_MAX_BYTES - FRAME_FCS_BYTES)

struct pcap_file {
	struct pcap_stream stream;
	FILE *cookie;		   /* what libpcap reads */
	pcap_t *pcap;		   /* closes the cookie; NULL: not begun */
	struct pcap_pkthdr record; /* of the last frame, where libpcap does not read it */
	bool any_length;
	uint64_t frame;	    /* number of the last one, from 1, as other tools count */
	uint32_t fcs_bytes; /* at the end of each frame, if the file says so */
	char path[];	    /* for error texts */
};

/* ---- the stream ---- */

static ssize_t stream_read(void *cookie, char *to, size_t bytes)
{
	return pcap_stream_read(cookie, to, bytes);
}

static int stream_close(void *cookie)
{
	return 0; /* the file stays open, for a rewind */
}

/* ---- what is wrong with it ---- */

static int fail_read(const struct pcap_file *file, struct gdrcap_error *error)
{
	return error_set(error, -file->stream.failed, "%s: it cannot be read after %llu bytes: %s",
			 file->path, (unsigned long long)file->stream.at,
			 strerror(file->stream.failed));
}

static int fail_open(const struct pcap_file *file, const char *why, struct gdrcap_error *error)
{
	static const struct {
		uint8_t magic[4];
		const char *program;
	} packed[] = {
		{ { 0x1f, 0x8b }, "gunzip" },
		{ { 'B', 'Z', 'h' }, "bunzip2" },
		{ { 0xfd, '7', 'z', 'X' }, "unxz" },
		{ { 0x28, 0xb5, 0x2f, 0xfd }, "unzstd" },
	};

	if (file->stream.failed)
		return fail_read(file, error);
	if (file->stream.head_bytes == 0)
		return error_set(error, -ENODATA, "%s: the file is empty; capture into it first",
				 file->path);
	for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++) {
		const size_t n = strnlen((const char *)packed[i].magic, 4);

		if (file->stream.head_bytes >= n &&
		    memcmp(file->stream.head, packed[i].magic, n) == 0)
			return error_set(error, -EINVAL,
					 "%s: the file is compressed; unpack it first (%s)",
					 file->path, packed[i].program);
	}
	if (feof(file->cookie))
		return error_set(
			error, -EINVAL,
			"%s: the file is not a pcap or pcapng file, or ends in the middle of "
			"its header, after %llu bytes (%s); copy it again, or give another",
			file->path, (unsigned long long)file->stream.at, why);
	return error_set(
		error, -EINVAL,
		"%s: the file is not a pcap or pcapng file (%s); convert it with editcap, or "
		"give another",
		file->path, why);
}

/* What libpcap does not do, and what it says then. */
static const char *unable(const char *says)
{
	unsigned int bytes;

	if (strstr(says, "different from the snapshot length"))
		return "its interfaces have different snap lengths, which cannot be read from one "
		       "file; convert it: editcap -F nsecpcap OLD NEW";
	if (strstr(says, "different from the type"))
		return "its interfaces have different link types, which cannot be read from one "
		       "file; keep one interface: tshark -r OLD -Y \"frame.interface_id == 0\" -F "
		       "nsecpcap -w NEW";
	if (sscanf(says, "invalid packet capture length %u, bigger than snaplen", &bytes) == 1 &&
	    bytes <= PCAP_SNAP_MAX)
		return "a frame is longer than its interface's snap length, so the file contradicts "
		       "itself; convert it: editcap -F nsecpcap OLD NEW";
	return NULL;
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

static int fail_frame(const struct pcap_file *file, struct gdrcap_error *error)
{
	const unsigned long long number = file->frame + 1;
	const char *cannot = unable(pcap_geterr(file->pcap));
	char what[PCAP_ERRBUF_SIZE + 80];

	if (file->stream.failed)
		return fail_read(file, error);
	if (cannot)
		return error_set(error, -ENOTSUP, "%s: at frame %llu: %s (%s)", file->path, number,
				 cannot, pcap_geterr(file->pcap));
	snprintf(what, sizeof(what),
		 feof(file->cookie) ? "the file ends in the middle of frame %llu (%s)"
				    : "frame %llu is corrupt (%s)",
		 number, pcap_geterr(file->pcap));
	return fail_here(file, number, what, error);
}

static int check_link_type(struct pcap_file *file, struct gdrcap_error *error)
{
	const int link = pcap_datalink(file->pcap);
	const int ext = pcap_datalink_ext(file->pcap);
	const char *name = pcap_datalink_val_to_description(link);

	if (link != DLT_EN10MB)
		return error_set(error, -EINVAL,
				 "%s: its link type is %d (%s), not Ethernet; capture from one "
				 "Ethernet interface (tcpdump -i eth0, not -i any)",
				 file->path, link, name ? name : "unknown");
	file->fcs_bytes = 0;
	if (LT_FCS_LENGTH_PRESENT(ext))
		file->fcs_bytes = 2 * ((uint32_t)LT_FCS_LENGTH((uint32_t)ext));
	return 0;
}

/* libpcap takes pcap's 32 bits for a signed number: they reach to 2106. */
static int64_t frame_seconds(const struct pcap_pkthdr *head)
{
	const int64_t seconds = head->ts.tv_sec;

	return seconds < 0 && seconds >= INT32_MIN ? (int64_t)(uint32_t)seconds : seconds;
}

static int check_time(const struct pcap_file *file, const struct pcap_pkthdr *head,
		      struct gdrcap_error *error)
{
	const int64_t seconds = frame_seconds(head);
	char what[128];

	/* tv_usec counts nanoseconds here. The sum must fit into 63 bits. */
	if (seconds >= 0 && seconds < INT64_MAX / 1000000000 && head->ts.tv_usec >= 0 &&
	    head->ts.tv_usec < 1000000000)
		return 0;
	snprintf(what, sizeof(what), "frame %llu has an impossible time (%lld s, %lld ns)",
		 (unsigned long long)file->frame, (long long)head->ts.tv_sec,
		 (long long)head->ts.tv_usec);
	return fail_here(file, file->frame, what, error);
}

static int check_length(const struct pcap_file *file, const struct pcap_pkthdr *head,
			struct gdrcap_error *error)
{
	const uint32_t fcs = file->fcs_bytes, least = file->any_length ? 0 : FRAME_LEN_MIN;
	const unsigned long long number = file->frame;

	if (!file->any_length && head->len > FRAME_LEN_MAX + fcs)
		return error_set(
			error, -EINVAL,
			"%s: frame %llu is %u bytes long without FCS, %u are the most; "
			"leave such frames out: tshark -r OLD -Y \"frame.len <= %u\" -w NEW; "
			"if a kernel has put them together, capture with ethtool -K IFACE gro "
			"off gso off tso off",
			file->path, number, head->len - fcs, FRAME_LEN_MAX, FRAME_LEN_MAX + fcs);
	if (head->caplen < head->len)
		return error_set(error, -EINVAL,
				 "%s: frame %llu is cut to %u of its %u bytes (the file's snap "
				 "length is %u); capture whole frames (tcpdump -s 0)",
				 file->path, number, head->caplen, head->len,
				 pcap_stream_is_pcapng(&file->stream)
					 ? (uint32_t)pcap_snapshot(file->pcap)
					 : file->stream.snap);
	if (head->caplen > head->len)
		return error_set(error, -EINVAL,
				 "%s: frame %llu has %u bytes, but its length is said to be %u; "
				 "the file is corrupt",
				 file->path, number, head->caplen, head->len);
	if (head->len < least + fcs)
		return error_set(error, -EINVAL,
				 "%s: frame %llu is %u bytes long without FCS, an Ethernet header "
				 "alone has %u; remove it (editcap OLD NEW %llu)",
				 file->path, number, head->len > fcs ? head->len - fcs : 0,
				 FRAME_LEN_MIN, number);
	return 0;
}

/* ---- opening ---- */

/* A new libpcap over the stream's beginning. */
static int file_begin(struct pcap_file *file, struct gdrcap_error *error)
{
	const cookie_io_functions_t functions = { .read = stream_read, .close = stream_close };
	char why[PCAP_ERRBUF_SIZE] = "";
	int ret;

	file->frame = 0;
	if (pcap_stream_begin(&file->stream) < 0)
		return fail_read(file, error);
	file->cookie = fopencookie(&file->stream, "r", functions);
	if (!file->cookie)
		return error_set(error, -ENOMEM, "%s: no memory to read it", file->path);
	(void)setvbuf(file->cookie, NULL, _IOFBF, STREAM_BYTES); /* less speed without */
	file->pcap = pcap_fopen_offline_with_tstamp_precision(file->cookie,
							      PCAP_TSTAMP_PRECISION_NANO, why);
	if (!file->pcap) {
		ret = fail_open(file, why, error);
		fclose(file->cookie);
		return ret;
	}
	return check_link_type(file, error);
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
	return error_set(error, ret, "%s: %s; check the file's name and rights", file->path,
			 strerror(-ret));
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
	ret = pcap_stream_open(&file->stream, path, stream, pipes);
	if (ret < 0)
		ret = fail_path(file, ret, pipes, error);
	else if (!pcap_stream_is_pipe(&file->stream))
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
	int ret;

	if (file->pcap)
		pcap_close(file->pcap);
	file->pcap = NULL;
	ret = pcap_stream_rewind(&file->stream);
	if (ret < 0)
		return error_set(error, ret, "%s: it cannot be read again from its beginning: %s",
				 file->path, strerror(-ret));
	return file_begin(file, error);
}

/* ---- frames ---- */

bool pcap_file_ready(struct pcap_file *file)
{
	return pcap_stream_ready(&file->stream, file->pcap != NULL);
}

/* The same without libpcap. */
static int record_read(struct pcap_file *file, struct pcap_pkthdr *head, const u_char **bytes,
		       struct gdrcap_error *error)
{
	const unsigned long long number = file->frame + 1;
	struct pcap_record record;
	char what[128];
	const int ret = pcap_stream_record(&file->stream, &record);

	if (ret == 1) {
		head->ts.tv_sec = record.seconds;
		head->ts.tv_usec = (int64_t)record.ns;
		head->caplen = record.bytes_here;
		head->len = record.bytes_sent;
		*bytes = record.bytes;
		file->frame++;
	}
	if (ret >= 0)
		return ret;
	if (file->stream.failed)
		return fail_read(file, error);
	if (ret == -EBADMSG)
		snprintf(
			what, sizeof(what),
			"the file ends in the middle of frame %llu (%zu bytes of its record are there)",
			number, record.there);
	else
		snprintf(what, sizeof(what),
			 "frame %llu is corrupt (its record has %u bytes, %u are the most)", number,
			 record.bytes_here, PCAP_SNAP_MAX);
	return fail_here(file, number, what, error);
}

static int frame_read(struct pcap_file *file, struct pcap_pkthdr **head, const u_char **bytes,
		      struct gdrcap_error *error)
{
	int ret;

	if (!file->pcap && !pcap_stream_is_pipe(&file->stream))
		return error_set(error, -EINVAL, "%s: it was not opened again", file->path);
	ret = file->pcap ? 0 : file_begin(file, error);
	if (ret < 0)
		return ret;
	if (file->stream.records) {
		*head = &file->record;
		return record_read(file, &file->record, bytes, error);
	}
	ret = pcap_next_ex(file->pcap, head, bytes);
	if (ret == PCAP_ERROR_BREAK)
		return 0;
	if (ret != 1)
		return fail_frame(file, error);
	file->frame++;
	return 1;
}

int pcap_file_skip(struct pcap_file *file, struct gdrcap_error *error)
{
	struct pcap_pkthdr *head;
	const u_char *bytes;

	return frame_read(file, &head, &bytes, error);
}

int pcap_file_next(struct pcap_file *file, struct pcap_frame *frame, struct gdrcap_error *error)
{
	struct pcap_pkthdr *head;
	const u_char *bytes;
	int ret = frame_read(file, &head, &bytes, error);

	if (ret != 1)
		return ret;
	ret = check_length(file, head, error);
	if (ret == 0)
		ret = check_time(file, head, error);
	if (ret < 0)
		return ret;
	frame->bytes = bytes;
	frame->len = head->len - file->fcs_bytes;
	frame->time_ns = (uint64_t)frame_seconds(head) * 1000000000u + (uint64_t)head->ts.tv_usec;
	return 1;
}

void pcap_file_where(const struct pcap_file *file, uint64_t *at, uint64_t *bytes)
{
	*at = file->stream.at;
	*bytes = file->stream.bytes;
}

const char *pcap_file_name(const struct pcap_file *file)
{
	return file->path;
}

void pcap_file_close(struct pcap_file *file)
{
	if (!file)
		return;
	if (file->pcap)
		pcap_close(file->pcap);
	pcap_stream_close(&file->stream);
	free(file);
}
