/* SPDX-License-Identifier: BSD-3-Clause */
/* A pcapng reader for tests, made from the draft and not from the writer: every block must be whole
 * and well formed, and the file must end where one ends. cmocka.h comes before it. */
#ifndef GDRCAP_TEST_PCAPNG_READER_H
#define GDRCAP_TEST_PCAPNG_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READER_INTERFACES 16

struct reader_frame {
	uint32_t interface;
	uint64_t ns;
	uint32_t captured, length;
	const uint8_t *bytes;
	bool inbound;
	uint64_t dropped;  /* 0: not said */
	char comment[512]; /* "": none */
};

struct reader_interface {
	char name[256], description[256];
	uint32_t snaplen;
	bool statistics;
	uint64_t start_ns, end_ns, accepted, delivered;
	uint64_t received, dropped; /* UINT64_MAX: not said */
};

struct reader {
	uint8_t *file;
	size_t bytes;
	char application[256];
	struct reader_interface interface[READER_INTERFACES];
	uint32_t interfaces;
	struct reader_frame *frame;
	size_t frames;
};

static inline uint32_t reader_u16(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static inline uint32_t reader_u32(const uint8_t *at)
{
	return reader_u16(at) | reader_u16(at + 2) << 16;
}

static inline uint64_t reader_u64(const uint8_t *at)
{
	return reader_u32(at) | (uint64_t)reader_u32(at + 4) << 32;
}

static inline uint64_t reader_time(const uint8_t *at)
{
	return (uint64_t)reader_u32(at) << 32 | reader_u32(at + 4);
}

static inline void reader_text(char *to, size_t room, const uint8_t *from, uint32_t bytes)
{
	assert_true(bytes < room);
	memcpy(to, from, bytes);
	to[bytes] = '\0';
}

/* The next option: its code (0: there is none any more), value and length. */
static inline uint32_t reader_option(const uint8_t **at, const uint8_t *end, const uint8_t **value,
				     uint32_t *bytes)
{
	uint32_t code;

	if (*at == end)
		return 0;
	assert_true(end - *at >= 4);
	code = reader_u16(*at);
	*bytes = reader_u16(*at + 2);
	*value = *at + 4;
	assert_true((size_t)(end - *value) >= (*bytes + 3u) / 4 * 4);
	for (uint32_t i = *bytes; i % 4; i++)
		assert_int_equal((*value)[i], 0);
	*at = *value + (*bytes + 3) / 4 * 4;
	if (code == 0) {
		assert_int_equal(*bytes, 0);
		assert_ptr_equal(*at, end);
	}
	return code;
}

static inline void reader_section(struct reader *reader, const uint8_t *at, const uint8_t *end)
{
	const uint8_t *value;
	uint32_t code, bytes;

	assert_true(end - at >= 16);
	assert_int_equal(reader_u32(at), 0x1a2b3c4d);
	assert_int_equal(reader_u16(at + 4), 1);
	assert_int_equal(reader_u16(at + 6), 0);
	assert_true(reader_u64(at + 8) == UINT64_MAX);
	at += 16;
	while ((code = reader_option(&at, end, &value, &bytes)))
		if (code == 4)
			reader_text(reader->application, sizeof(reader->application), value, bytes);
}

static inline void reader_interface(struct reader *reader, const uint8_t *at, const uint8_t *end)
{
	struct reader_interface *interface = &reader->interface[reader->interfaces++];
	const uint8_t *value;
	uint32_t code, bytes, resolution = 6;

	assert_true(reader->interfaces <= READER_INTERFACES);
	assert_true(end - at >= 8);
	assert_int_equal(reader_u16(at), 1); /* Ethernet */
	interface->snaplen = reader_u32(at + 4);
	at += 8;
	while ((code = reader_option(&at, end, &value, &bytes))) {
		if (code == 2)
			reader_text(interface->name, sizeof(interface->name), value, bytes);
		else if (code == 3)
			reader_text(interface->description, sizeof(interface->description), value,
				    bytes);
		else if (code == 9)
			resolution = value[0];
	}
	assert_int_equal(resolution, 9);
}

static inline void reader_frame(struct reader *reader, const uint8_t *at, const uint8_t *end)
{
	struct reader_frame *frame;
	const uint8_t *value;
	uint32_t code, bytes;

	if ((reader->frames & (reader->frames - 1)) == 0)
		reader->frame = realloc(reader->frame, (2 * reader->frames + 1) * sizeof(*frame));
	assert_non_null(reader->frame);
	frame = &reader->frame[reader->frames++];
	memset(frame, 0, sizeof(*frame));
	assert_true(end - at >= 20);
	frame->interface = reader_u32(at);
	assert_true(frame->interface < reader->interfaces);
	frame->ns = reader_time(at + 4);
	frame->captured = reader_u32(at + 12);
	frame->length = reader_u32(at + 16);
	assert_true(frame->captured <= frame->length);
	frame->bytes = at + 20;
	assert_true((size_t)(end - frame->bytes) >= (frame->captured + 3u) / 4 * 4);
	at = frame->bytes + (frame->captured + 3) / 4 * 4;
	while ((code = reader_option(&at, end, &value, &bytes))) {
		if (code == 1)
			reader_text(frame->comment, sizeof(frame->comment), value, bytes);
		else if (code == 2)
			frame->inbound = bytes == 4 && reader_u32(value) == 1;
		else if (code == 4)
			frame->dropped = reader_u64(value);
	}
}

static inline void reader_statistics(struct reader *reader, const uint8_t *at, const uint8_t *end)
{
	struct reader_interface *interface = &reader->interface[reader_u32(at)];
	const uint8_t *value;
	uint32_t code, bytes;
	uint64_t *number;

	assert_true(end - at >= 12);
	assert_true(reader_u32(at) < reader->interfaces);
	assert_false(interface->statistics);
	interface->statistics = true;
	interface->received = interface->dropped = UINT64_MAX;
	at += 12;
	while ((code = reader_option(&at, end, &value, &bytes))) {
		assert_int_equal(bytes, 8);
		number = code == 4   ? &interface->received
			 : code == 5 ? &interface->dropped
			 : code == 6 ? &interface->accepted
			 : code == 8 ? &interface->delivered
				     : NULL;
		if (number)
			*number = reader_u64(value);
		else if (code == 2)
			interface->start_ns = reader_time(value);
		else if (code == 3)
			interface->end_ns = reader_time(value);
	}
}

/* Reads all of a file; what is not right fails the test. */
static inline void reader_open(struct reader *reader, const char *path)
{
	FILE *file = fopen(path, "rb");
	uint32_t bytes;

	memset(reader, 0, sizeof(*reader));
	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	reader->bytes = (size_t)ftell(file);
	rewind(file);
	reader->file = malloc(reader->bytes + 1);
	assert_non_null(reader->file);
	assert_int_equal(fread(reader->file, 1, reader->bytes, file), reader->bytes);
	fclose(file);
	for (size_t at = 0; at < reader->bytes; at += bytes) {
		const uint8_t *block = reader->file + at, *body = block + 8, *end;

		assert_true(reader->bytes - at >= 12);
		bytes = reader_u32(block + 4);
		assert_true(bytes >= 12 && bytes % 4 == 0 && bytes <= reader->bytes - at);
		end = block + bytes - 4;
		assert_int_equal(reader_u32(end), bytes);
		assert_true((at == 0) == (reader_u32(block) == 0x0a0d0d0a));
		switch (reader_u32(block)) {
		case 0x0a0d0d0a:
			reader_section(reader, body, end);
			break;
		case 1:
			reader_interface(reader, body, end);
			break;
		case 5:
			reader_statistics(reader, body, end);
			break;
		case 6:
			reader_frame(reader, body, end);
			break;
		default:
			fail_msg("block type %u", reader_u32(block));
		}
	}
}

static inline void reader_close(struct reader *reader)
{
	free(reader->file);
	free(reader->frame);
	memset(reader, 0, sizeof(*reader));
}

#endif
