/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng) files. */
#include "replay/pcap_records.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC_US 0xa1b2c3d4u
#define MAGIC_NS 0xa1b23c4du
#define MAGIC_KUZNETZOV                                                                            \
	0xa1b2cd34u /* records have an interface, a protocol and a packet type too */
#define HEAD_BYTES 24u
#define RECORD_BYTES 16u
#define RECORD_BYTES_KUZNETZOV 24u

#define BLOCK_SECTION 0x0a0d0d0au /* the same in both byte orders */
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET 2u
#define BLOCK_SIMPLE 3u
#define BLOCK_ENHANCED 6u
#define BLOCK_ORDER 0x1a2b3c4du
#define BLOCK_BYTES 12u		   /* the least */
#define BLOCK_BYTES_MAX (1u << 27) /* that other tools read, too */
#define BLOCK_PASSED 2		   /* of block_next(): it has no packet */

#define OPTION_END 0u
#define INTERFACE_RESOLUTION 9u
#define INTERFACE_FCS 13u
#define INTERFACE_OFFSET 14u
#define PACKET_FLAGS 2u

#define INTERFACES_MAX 65536u

static int broken(struct pcap_records *records, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int broken(struct pcap_records *records, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(records->why, sizeof(records->why), format, args);
	va_end(args);
	return code;
}

static uint32_t load32(const struct pcap_records *records, const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return records->swapped ? __builtin_bswap32(value) : value;
}

static uint32_t load16(const struct pcap_records *records, const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return records->swapped ? __builtin_bswap16(value) : value;
}

static uint64_t load64(const struct pcap_records *records, const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return records->swapped ? __builtin_bswap64(value) : value;
}

static int interface_add(struct pcap_records *records, const struct pcap_interface *interface)
{
	if (records->count == INTERFACES_MAX)
		return broken(records, -ENOTSUP, "a section has more than %u interfaces",
			      INTERFACES_MAX);
	if (records->count == records->room) {
		const uint32_t room = records->room ? 2 * records->room : 4;
		struct pcap_interface *more =
			realloc(records->interfaces, room * sizeof(*records->interfaces));

		if (!more)
			return broken(records, -ENOTSUP, "no memory for its interfaces");
		records->interfaces = more;
		records->room = room;
	}
	records->interfaces[records->count] = *interface;
	if (interface->snap == 0 || interface->snap > PCAP_SNAP_MAX)
		records->interfaces[records->count].snap = PCAP_SNAP_MAX;
	records->count++;
	return 0;
}

static void record_fill(struct pcap_record *record, const struct pcap_interface *interface,
			const uint8_t *bytes, uint32_t here, uint32_t sent)
{
	*record = (struct pcap_record){ .bytes = bytes,
					.bytes_here = here,
					.bytes_sent = sent,
					.fcs_bytes = interface->fcs_bytes,
					.link = interface->link,
					.snap = interface->snap };
}

/* ---- pcap ---- */

static int plain_begin(struct pcap_records *records)
{
	const uint8_t *at = pcap_stream_ahead(&records->stream);
	const uint32_t magic = load32(records, at), link = load32(records, at + 20);
	const uint32_t major = load16(records, at + 4), minor = load16(records, at + 6);
	/* Bits 28..31 count FCS words of 16 bits where bit 26 is set. */
	const struct pcap_interface interface = {
		.link = link & 0x03ffffffu,
		.snap = load32(records, at + 16),
		.fcs_bytes = link & 1u << 26 ? 2 * (link >> 28) : 0,
	};

	if (!(major == 2 && minor <= 4) && !(major == 543 && minor == 0))
		return broken(records, -ENOTSUP, "its version is %u.%u, 2.4 is the newest known",
			      major, minor);
	records->old = major != 2 || minor < 4;
	records->nano = magic == MAGIC_NS;
	records->head_bytes = magic == MAGIC_KUZNETZOV ? RECORD_BYTES_KUZNETZOV : RECORD_BYTES;
	pcap_stream_take(&records->stream, HEAD_BYTES);
	return interface_add(records, &interface);
}

static int plain_next(struct pcap_records *records, struct pcap_record *record)
{
	struct pcap_stream *stream = &records->stream;
	uint32_t here, sent;
	const uint8_t *at;
	int ret = pcap_stream_need(stream, records->head_bytes);

	if (ret < 0)
		return ret == -EBADMSG && pcap_stream_left(stream) == 0 ? 0 : ret;
	at = pcap_stream_ahead(stream);
	here = load32(records, at + 8);
	sent = load32(records, at + 12);
	if (records->old && here > sent) {
		sent = here;
		here = load32(records, at + 12);
	}
	if (here > PCAP_SNAP_MAX)
		return broken(records, -EINVAL, "its record has %u bytes, %u are the most", here,
			      PCAP_SNAP_MAX);
	ret = pcap_stream_need(stream, records->head_bytes + here);
	if (ret < 0)
		return ret;
	at = pcap_stream_ahead(stream);
	record_fill(record, records->interfaces, at + records->head_bytes, here, sent);
	record->seconds = load32(records, at);
	record->ns = (uint64_t)load32(records, at + 4) * (records->nano ? 1 : 1000);
	pcap_stream_take(stream, records->head_bytes + here);
	return 1;
}

/* ---- pcapng ---- */

static int block_broken(struct pcap_records *records, const char *what, uint32_t value)
{
	return broken(records, -EINVAL, "its block at byte %llu: %s %u",
		      (unsigned long long)records->stream.at, what, value);
}

/* The whole block is ahead, and its lengths agree. */
static int block_whole(struct pcap_records *records, uint32_t bytes, uint32_t least)
{
	uint32_t tail;
	int ret;

	if (bytes < least)
		return block_broken(records, "it has less than its kind needs: its length is",
				    bytes);
	if (bytes > PCAP_AHEAD_BYTES)
		return broken(records, -ENOTSUP,
			      "its block at byte %llu has %u bytes, %zu are the most that a packet "
			      "and its options can have",
			      (unsigned long long)records->stream.at, bytes, PCAP_AHEAD_BYTES);
	ret = pcap_stream_need(&records->stream, bytes);
	if (ret < 0)
		return ret;
	tail = load32(records, pcap_stream_ahead(&records->stream) + bytes - 4);
	return tail == bytes ? 0
			     : block_broken(records, "its two lengths differ: the second is", tail);
}

/* What of a block is not read, and its second length. */
static int block_pass(struct pcap_records *records)
{
	struct pcap_stream *stream = &records->stream;
	int ret;

	while (records->block_left > 4) {
		size_t bytes = records->block_left - 4;

		ret = pcap_stream_need(stream, 1);
		if (ret < 0)
			return ret;
		if (bytes > pcap_stream_left(stream))
			bytes = pcap_stream_left(stream);
		pcap_stream_take(stream, bytes);
		records->block_left -= (uint32_t)bytes;
	}
	ret = pcap_stream_need(stream, 4);
	if (ret < 0)
		return ret;
	if (load32(records, pcap_stream_ahead(stream)) != records->block_bytes)
		return block_broken(records,
				    "it ends a block whose two lengths differ: the first is",
				    records->block_bytes);
	pcap_stream_take(stream, 4);
	records->block_left = 0;
	return BLOCK_PASSED;
}

static int section_begin(struct pcap_records *records, uint32_t bytes)
{
	const uint8_t *at;
	uint32_t major;
	int ret;

	if (bytes < 28)
		return block_broken(records, "a section header has 28 bytes or more, not", bytes);
	ret = pcap_stream_need(&records->stream, 16);
	if (ret < 0)
		return ret;
	at = pcap_stream_ahead(&records->stream);
	major = load16(records, at + 12);
	if (major != 1)
		return broken(records, -ENOTSUP, "its version is %u.%u, 1.0 is the newest known",
			      major, load16(records, at + 14));
	records->count = 0;
	return 0;
}

struct block_option {
	uint32_t code, bytes;
	const uint8_t *value;
};

/* The option at *at, which moves on. 1; 0: there is none; -1: it runs out of its block. */
static int option_next(const struct pcap_records *records, const uint8_t **at, const uint8_t *end,
		       struct block_option *option)
{
	uint32_t padded;

	if (end - *at < 4)
		return 0;
	option->code = load16(records, *at);
	option->bytes = load16(records, *at + 2);
	option->value = *at + 4;
	padded = (option->bytes + 3) & ~3u;
	if (option->code == OPTION_END)
		return 0;
	if ((size_t)(end - option->value) < padded)
		return -1;
	*at = option->value + padded;
	return 1;
}

/* What an interface's times and frames are; `seen`: a bit for each code that came. */
static int interface_option(struct pcap_records *records, struct pcap_interface *interface,
			    const struct block_option *option, uint32_t *seen)
{
	const bool is_offset = option->code == INTERFACE_OFFSET;

	if (!is_offset && option->code != INTERFACE_RESOLUTION && option->code != INTERFACE_FCS)
		return 0;
	if (option->bytes != (is_offset ? 8u : 1u) || *seen & 1u << option->code)
		return block_broken(
			records,
			"an option of its interface has a wrong length, or comes twice: "
			"option",
			option->code);
	*seen |= 1u << option->code;
	if (is_offset)
		interface->offset = (int64_t)load64(records, option->value);
	else if (option->code == INTERFACE_FCS)
		interface->fcs_bytes = option->value[0];
	else
		interface->resolution = option->value[0];
	return 0;
}

static int interface_begin(struct pcap_records *records, uint32_t bytes)
{
	const uint8_t *block = pcap_stream_ahead(&records->stream), *at = block + 16;
	struct pcap_interface interface = { .link = load16(records, block + 8),
					    .snap = load32(records, block + 12),
					    .resolution = 6 };
	struct block_option option;
	uint32_t seen = 0;
	int ret;

	while ((ret = option_next(records, &at, block + bytes - 4, &option)) > 0) {
		ret = interface_option(records, &interface, &option, &seen);
		if (ret < 0)
			return ret;
	}
	if (ret < 0)
		return block_broken(records, "an option of its interface runs out of it: option",
				    option.code);
	return interface_add(records, &interface);
}

/* A count by the interface's resolution: 10^-n s, or with bit 7 2^-n s. */
static void time_fill(struct pcap_record *record, const struct pcap_interface *interface,
		      uint64_t count)
{
	const uint32_t n = interface->resolution & 0x7f;
	__int128 ns = count;

	if (interface->resolution & 0x80)
		ns = (__int128)((unsigned __int128)count * 1000000000u >> n);
	for (uint32_t i = n; !(interface->resolution & 0x80) && i < 9; i++)
		ns *= 10;
	for (uint32_t i = n; !(interface->resolution & 0x80) && i > 9 && ns; i--)
		ns /= 10;
	ns += (__int128)interface->offset * 1000000000;
	record->seconds = ns / 1000000000 > INT64_MAX ? INT64_MAX : (int64_t)(ns / 1000000000);
	record->ns = ns < 0 ? 0 : (uint64_t)(ns % 1000000000);
	if (ns < 0 && record->seconds == 0)
		record->seconds = -1;
}

/* A packet's own word on its FCS. Options that run out of the block are none. */
static void packet_options(const struct pcap_records *records, struct pcap_record *record,
			   const uint8_t *at, const uint8_t *end)
{
	struct block_option option;

	while (option_next(records, &at, end, &option) > 0)
		if (option.code == PACKET_FLAGS && option.bytes == 4) {
			const uint32_t fcs = load32(records, option.value) >> 5 & 0xf;

			record->fcs_bytes = fcs ? fcs : record->fcs_bytes;
		}
}

static int packet_next(struct pcap_records *records, struct pcap_record *record, uint32_t type,
		       uint32_t bytes)
{
	const uint8_t *at = pcap_stream_ahead(&records->stream), *end = at + bytes - 4;
	const uint32_t head = type == BLOCK_SIMPLE ? 12 : 28;
	uint32_t number = 0, here, sent;
	const struct pcap_interface *interface;

	if (type == BLOCK_ENHANCED)
		number = load32(records, at + 8);
	else if (type == BLOCK_PACKET)
		number = load16(records, at + 8);
	if (number >= records->count)
		return broken(records, -EINVAL,
			      "it came on interface %u, of which there is no description before it",
			      number);
	interface = &records->interfaces[number];
	sent = load32(records, at + head - 4);
	here = type == BLOCK_SIMPLE ? sent : load32(records, at + head - 8);
	if (type == BLOCK_SIMPLE && here > interface->snap)
		here = interface->snap;
	if (here > PCAP_SNAP_MAX)
		return broken(records, -EINVAL, "its record has %u bytes, %u are the most", here,
			      PCAP_SNAP_MAX);
	if (here > (size_t)(end - at) - head)
		return block_broken(records, "its packet runs out of it: the packet's length is",
				    here);
	record_fill(record, interface, at + head, here, sent);
	if (type != BLOCK_SIMPLE) {
		time_fill(record, interface,
			  (uint64_t)load32(records, at + 12) << 32 | load32(records, at + 16));
		if (((here + 3) & ~3u) <= (size_t)(end - at) - head)
			packet_options(records, record, at + head + ((here + 3) & ~3u), end);
	}
	return 1;
}

static int block_next(struct pcap_records *records, struct pcap_record *record)
{
	struct pcap_stream *stream = &records->stream;
	uint32_t type, bytes, order;
	const uint8_t *at;
	int ret = pcap_stream_need(stream, BLOCK_BYTES);

	if (ret < 0)
		return ret == -EBADMSG && pcap_stream_left(stream) == 0 ? 0 : ret;
	at = pcap_stream_ahead(stream);
	type = load32(records, at);
	memcpy(&order, at + 8, sizeof(order));
	if (type == BLOCK_SECTION && order != BLOCK_ORDER &&
	    __builtin_bswap32(order) != BLOCK_ORDER)
		return block_broken(records, "a section's mark of its byte order is", order);
	if (type == BLOCK_SECTION)
		records->swapped = order != BLOCK_ORDER;
	bytes = load32(records, at + 4);
	if (bytes < BLOCK_BYTES || bytes % 4 || bytes > BLOCK_BYTES_MAX)
		return block_broken(records, "a block cannot have the length", bytes);
	if (type == BLOCK_INTERFACE || type == BLOCK_PACKET || type == BLOCK_ENHANCED ||
	    type == BLOCK_SIMPLE) {
		ret = block_whole(records, bytes,
				  type == BLOCK_INTERFACE ? 20
				  : type == BLOCK_SIMPLE  ? 16
							  : 32);
		if (ret == 0)
			ret = type == BLOCK_INTERFACE ? interface_begin(records, bytes)
						      : packet_next(records, record, type, bytes);
		if (ret >= 0)
			pcap_stream_take(stream, bytes);
		return ret == 0 ? BLOCK_PASSED : ret;
	}
	ret = type == BLOCK_SECTION ? section_begin(records, bytes) : 0;
	if (ret == 0)
		records->block_bytes = records->block_left = bytes;
	return ret == 0 ? BLOCK_PASSED : ret;
}

static int blocks_step(struct pcap_records *records, struct pcap_record *record)
{
	return records->block_left ? block_pass(records) : block_next(records, record);
}

/* ---- both ---- */

/* By the first bytes; PCAP_NONE stays where they are something else's. */
static void kind_find(struct pcap_records *records)
{
	static const uint32_t magics[] = { MAGIC_US, MAGIC_NS, MAGIC_KUZNETZOV };
	uint32_t magic;

	memcpy(&magic, records->magic, sizeof(magic));
	records->swapped = false;
	if (magic == BLOCK_SECTION)
		records->kind = PCAP_NG;
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (magic == magics[i] || __builtin_bswap32(magic) == magics[i]) {
			records->kind = PCAP_PLAIN;
			records->swapped = magic != magics[i];
		}
}

int pcap_records_begin(struct pcap_records *records)
{
	struct pcap_stream *stream = &records->stream;
	struct pcap_record record;
	int ret;

	if (records->kind == PCAP_NONE) {
		ret = pcap_stream_need(stream, sizeof(records->magic));
		if (ret == -EBADMSG && pcap_stream_left(stream) == 0)
			return -ENODATA;
		if (ret < 0)
			return ret;
		memcpy(records->magic, pcap_stream_ahead(stream), sizeof(records->magic));
		kind_find(records);
	}
	if (records->kind == PCAP_NONE)
		return -EINVAL;
	if (records->kind == PCAP_PLAIN) {
		ret = pcap_stream_need(stream, HEAD_BYTES);
		return ret < 0 ? ret : plain_begin(records);
	}
	while (records->count == 0) {
		ret = blocks_step(records, &record);
		if (ret <= 0)
			return ret < 0 ? ret : -EBADMSG;
	}
	return 0;
}

int pcap_records_next(struct pcap_records *records, struct pcap_record *record)
{
	int ret = BLOCK_PASSED;

	if (records->kind == PCAP_PLAIN)
		return plain_next(records, record);
	while (ret == BLOCK_PASSED)
		ret = blocks_step(records, record);
	return ret;
}

int pcap_records_rewind(struct pcap_records *records)
{
	records->kind = PCAP_NONE;
	records->count = 0;
	records->block_left = 0;
	return pcap_stream_rewind(&records->stream);
}

void pcap_records_close(struct pcap_records *records)
{
	free(records->interfaces);
	pcap_stream_close(&records->stream);
}
