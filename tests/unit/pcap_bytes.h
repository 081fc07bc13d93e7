/* SPDX-License-Identifier: BSD-3-Clause */
/* pcap and pcapng files, byte by byte, so that any of them can be wrong. */
#ifndef GDRCAP_TEST_PCAP_BYTES_H
#define GDRCAP_TEST_PCAP_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bytes {
	uint8_t *at;
	size_t count, room;
	bool big; /* byte order of what is put */
};

static inline void put(struct bytes *bytes, const void *from, size_t count)
{
	if (bytes->count + count > bytes->room) {
		bytes->room = 2 * (bytes->count + count);
		bytes->at = realloc(bytes->at, bytes->room);
		if (!bytes->at)
			abort();
	}
	memcpy(bytes->at + bytes->count, from, count);
	bytes->count += count;
}

static inline void put_number(struct bytes *bytes, uint64_t value, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t shift = 8 * (bytes->big ? count - 1 - i : i);
		const uint8_t byte = (uint8_t)(value >> shift);

		put(bytes, &byte, 1);
	}
}

static inline void put16(struct bytes *bytes, uint32_t value)
{
	put_number(bytes, value, 2);
}

static inline void put32(struct bytes *bytes, uint64_t value)
{
	put_number(bytes, value, 4);
}

static inline void bytes_free(struct bytes *bytes)
{
	free(bytes->at);
	memset(bytes, 0, sizeof(*bytes));
}

/* ---- pcap ---- */

static inline void pcap_head(struct bytes *bytes, bool nano, uint32_t snap, uint32_t link)
{
	put32(bytes, nano ? 0xa1b23c4d : 0xa1b2c3d4);
	put16(bytes, 2);
	put16(bytes, 4);
	put32(bytes, 0);
	put32(bytes, 0);
	put32(bytes, snap);
	put32(bytes, link);
}

static inline void pcap_record(struct bytes *bytes, uint32_t seconds, uint32_t fraction,
			       uint32_t caplen, uint32_t len)
{
	put32(bytes, seconds);
	put32(bytes, fraction);
	put32(bytes, caplen);
	put32(bytes, len);
}

/* Byte `at` of test frame `number`. */
static inline uint8_t frame_byte(uint64_t number, uint32_t at)
{
	return (uint8_t)((number * 0x9e3779b97f4a7c15u >> 32) + at * 7 + (at >> 8));
}

static inline void put_frame(struct bytes *bytes, uint64_t number, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		const uint8_t byte = frame_byte(number, i);

		put(bytes, &byte, 1);
	}
}

/* A whole record. */
static inline void pcap_frame(struct bytes *bytes, uint32_t seconds, uint32_t fraction,
			      uint64_t number, uint32_t len)
{
	pcap_record(bytes, seconds, fraction, len, len);
	put_frame(bytes, number, len);
}

/* ---- pcapng ---- */

static inline void pcapng_head(struct bytes *bytes, uint32_t snap, uint32_t link, bool nano)
{
	put32(bytes, 0x0a0d0d0a);
	put32(bytes, 28);
	put32(bytes, 0x1a2b3c4d);
	put16(bytes, 1);
	put16(bytes, 0);
	put_number(bytes, UINT64_MAX, 8);
	put32(bytes, 28);
	put32(bytes, 1); /* interface description */
	put32(bytes, nano ? 32 : 20);
	put16(bytes, link);
	put16(bytes, 0);
	put32(bytes, snap);
	if (nano) {
		const uint8_t resolution[4] = { 9 };

		put16(bytes, 9); /* if_tsresol */
		put16(bytes, 1);
		put(bytes, resolution, 4);
		put32(bytes, 0);
	}
	put32(bytes, nano ? 32 : 20);
}

static inline void pcapng_frame(struct bytes *bytes, uint64_t time, uint64_t number,
				uint32_t caplen, uint32_t len)
{
	const uint32_t pad = (4 - caplen % 4) % 4;
	const uint8_t zeros[4] = { 0 };

	put32(bytes, 6); /* enhanced packet */
	put32(bytes, 32 + caplen + pad);
	put32(bytes, 0);
	put32(bytes, time >> 32);
	put32(bytes, time & 0xffffffff);
	put32(bytes, caplen);
	put32(bytes, len);
	put_frame(bytes, number, caplen);
	put(bytes, zeros, pad);
	put32(bytes, 32 + caplen + pad);
}

/* ---- files ---- */

/* Writes them into a new file; the caller unlinks `path`, which has room for 64. */
static inline void bytes_save(const struct bytes *bytes, char *path)
{
	int fd;

	strcpy(path, "/tmp/gdrcap_test_XXXXXX");
	fd = mkstemp(path);
	if (fd < 0 || write(fd, bytes->at, bytes->count) != (ssize_t)bytes->count)
		abort();
	close(fd);
}

#endif
