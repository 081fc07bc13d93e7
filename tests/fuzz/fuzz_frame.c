/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer: any bytes as a frame. The first input byte picks the layout and the pattern, the
 * second (enum dress) how the frame is dressed up so that deep paths are reached. A custom layout
 * and match rules are made from input bytes too. The two checkers must agree in every field, what
 * frame_write() writes must be valid, and what is found in a file must be what was expected.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/store_build.h"
#include "pattern/phase.h"

#define LAYOUTS 6u /* the last is custom */
#define STORED 5u

enum dress {
	DRESS_HEADERS = 1,    /* our headers' fixed fields are put in place */
	DRESS_OWN = 2,	      /* the own header's CRC32C; custom: nothing */
	DRESS_PAYLOAD = 4,    /* the payload, but for one byte */
	DRESS_RULES = 8,      /* match rules are the input's next bytes */
	DRESS_RULE_TEXT = 16, /* one is its next text */
	DRESS_STORE = 32,     /* the frame is compared with a file's */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct frame_layout layouts[LAYOUTS];
static struct pattern plans[PATTERN_KINDS];
static uint8_t stored[STORED][200];
static const uint32_t stored_len[STORED] = { 200, 42, 60, 200, 61 };
static struct built_store store;

static void store_setup(void)
{
	const uint8_t *pointers[STORED];

	for (uint32_t i = 0; i < STORED; i++) {
		for (uint32_t at = 0; at < stored_len[i]; at++)
			stored[i][at] = (uint8_t)(at * 7 + i);
		pointers[i] = stored[i];
	}
	memset(stored[2], 0, 60); /* the second, padded; the fourth has half of the first */
	memcpy(stored[2], stored[1], 42);
	memcpy(stored[3], stored[0], 100);
	built_create(&store, &built_here, pointers, stored_len, STORED);
}

static void setup(void)
{
	static const uint8_t file[] = "0123456789abc";
	static const struct frame_config configs[] = {
		{ .format = FRAME_ETHERNET },
		{ .format = FRAME_ETHERNET, .vlan = 100 },
		{ .format = FRAME_IPV4_UDP },
		{ .format = FRAME_IPV4_UDP, .vlan = 100 },
	};

	store_setup();
	for (unsigned int i = 0; i < LAYOUTS - 2; i++)
		if (frame_layout_init(&layouts[i], &configs[i]))
			abort();
	frame_layout_proof(&layouts[LAYOUTS - 2]);
	for (unsigned int i = 0; i < PATTERN_KINDS; i++) {
		const struct pattern_config config = {
			.kind = (enum pattern_kind)i,
			.invert = -1,
			.seed = 9,
			.value = 0x5a,
			.file = file,
			.file_bytes = sizeof(file) - 1,
		};

		if (pattern_init(&plans[i], &config))
			abort();
	}
}

/* What is left of the input. */
struct input {
	const uint8_t *at;
	size_t left;
};

/* The next `bytes` bytes; zeros when there are not so many. */
static void take(struct input *input, void *to, size_t bytes)
{
	const size_t part = bytes < input->left ? bytes : input->left;

	memset(to, 0, bytes);
	memcpy(to, input->at, part);
	input->at += part;
	input->left -= part;
}

static void custom_take(struct input *input, struct frame_layout *layout)
{
	struct frame_custom *custom = &layout->custom;
	const struct frame_config config = { .format = FRAME_CUSTOM };
	uint8_t byte[12];

	if (frame_layout_init(layout, &config))
		abort();
	take(input, byte, sizeof(byte));
	custom->sequence = (struct frame_field){ (uint16_t)(byte[0] * (byte[1] & 16 ? 256u : 1)),
						 byte[1] % 9, byte[1] >> 7 };
	custom->stream = (struct frame_field){ byte[2], byte[3] % 9, byte[3] >> 7 };
	custom->payload = byte[4];
	custom->payload_bytes = byte[5] | (uint32_t)byte[6] << 8;
	custom->self_phase = byte[7] & 1;
	custom->sequence_step = byte[8] & 1 ? UINT64_MAX / (byte[9] + 1u) : byte[9];
	custom->sequence_start = byte[10] * 0x0101010101010101u;
}

static void rules_take(struct input *input, uint8_t dress, struct frame_layout *layout)
{
	struct frame_match *match = &layout->match;
	char text[40], why[100];

	if (dress & DRESS_RULES) {
		take(input, &match->count, 1);
		take(input, match->rule, sizeof(match->rule[0]) * (1 + match->count % 2));
	}
	if (dress & DRESS_RULE_TEXT) {
		take(input, text, sizeof(text));
		text[sizeof(text) - 1] = '\0';
		if (!frame_match_parse(&match->rule[0], text, why, sizeof(why)) && !match->count)
			match->count = 1;
	}
}

/* Puts the template's EtherType, IPv4 and UDP fields over the frame. */
static void headers_put(const struct frame_layout *layout, uint8_t *frame, uint32_t len)
{
	if (layout->own_offset && len >= layout->own_offset)
		memcpy(frame + 12, layout->templ + 12, layout->own_offset - 12);
}

static void own_header_put(const struct frame_layout *layout, const struct pattern *pattern,
			   uint8_t *frame, uint32_t len, int payload)
{
	uint8_t *own = frame + layout->own_offset;
	const uint32_t start = layout->own_offset + FRAME_HEADER_BYTES;
	struct pattern_place place;
	uint32_t bytes;

	if (!frame_has_header(layout) || len < start)
		return;
	frame_put16(own, FRAME_MAGIC);
	own[2] = FRAME_VERSION;
	bytes = frame_be16(own + 6);
	if (payload) {
		own[3] = (uint8_t)pattern->kind;
		bytes %= len - start + 1;
		frame_put16(own + 6, bytes);
	}
	place.position = frame_be64(own + 16);
	place.sequence = frame_be64(own + 8);
	place.stream = frame_be16(own + 4);
	if (payload) {
		/* the input's first payload byte says where the frame is damaged */
		const uint8_t at = bytes ? own[36] : 0;

		pattern_fill(pattern, &place, frame + start, bytes);
		if (bytes && at)
			frame[start + (at * 7919u) % bytes] ^= at;
	}
	frame_put32(own + 32, frame_crc32c(frame_crc32c_table, own, 32));
}

/* The right payload, if there is room; the input's first payload byte says where it is damaged. */
static void custom_payload_put(const struct frame_layout *layout, const struct pattern *pattern,
			       uint8_t *frame, uint32_t len)
{
	const uint32_t start = layout->custom.payload;
	struct pattern_place place;
	struct frame_header header;
	uint8_t at;
	int ok;

	if (frame_parse(layout, frame_crc32c_table, frame, len, &header, &ok) != FRAME_VALID ||
	    !header.payload_bytes)
		return;
	at = frame[start];
	frame_place(layout, &header, &place);
	pattern_fill(pattern, &place, frame + start, header.payload_bytes);
	frame[start + (at * 7919u) % header.payload_bytes] ^= at;
}

static void expect(int right, const char *what)
{
	if (!right) {
		fprintf(stderr, "the checkers differ: %s\n", what);
		abort();
	}
}

static int field_is_near(const struct frame_field *field)
{
	return !field->bytes || field->offset + (uint32_t)field->bytes <= FRAME_FIELD_END_MAX;
}

/* The frame in two parts, each in memory of its own; of layouts that a worker takes. */
static void apart_agrees(const struct frame_layout *layout, const struct pattern *pattern,
			 const uint8_t *frame, uint32_t len, const struct frame_result *whole)
{
	const uint32_t part = len < FRAME_HEAD_BYTES_MAX ? len : FRAME_HEAD_BYTES_MAX;
	uint8_t *first = malloc(part + 1), *rest = malloc(len - part + 1);
	const struct frame_span span = { first, rest, FRAME_HEAD_BYTES_MAX, 0 };
	struct frame_result apart;

	if (!first || !rest)
		abort();
	if (layout->format == FRAME_CUSTOM &&
	    (layout->custom.payload > FRAME_CUSTOM_PAYLOAD_MAX ||
	     !field_is_near(&layout->custom.sequence) || !field_is_near(&layout->custom.stream)))
		goto out;
	memcpy(first, frame, part);
	memcpy(rest, frame + part, len - part);
	memset(&apart, 0x33, sizeof(apart));
	frame_check_span(layout, pattern, &span, len, &apart);
	expect(apart.verdict == whole->verdict && apart.header_ok == whole->header_ok &&
		       apart.sequence == whole->sequence && apart.stream == whole->stream &&
		       apart.payload_bytes == whole->payload_bytes &&
		       apart.wrong_bits == whole->wrong_bits && apart.offset == whole->offset &&
		       apart.expected == whole->expected && apart.got == whole->got &&
		       apart.phase_first == whole->phase_first &&
		       apart.phase_next == whole->phase_next && apart.detail == whole->detail,
	       "in two parts");
out:
	free(first);
	free(rest);
}

static void results_agree(const struct frame_layout *layout, const struct pattern *pattern,
			  const uint8_t *frame, uint32_t len)
{
	struct frame_result slow, fast;
	struct frame_header header;
	enum frame_verdict verdict;
	int header_ok;

	memset(&slow, 0x11, sizeof(slow));
	memset(&fast, 0x22, sizeof(fast));
	frame_check(layout, pattern, frame_crc32c_table, frame, len, &slow);
	frame_check_ahead(layout, pattern, frame, len, NULL, &fast);
	apart_agrees(layout, pattern, frame, len, &slow);
	verdict = frame_parse(layout, frame_crc32c_table, frame, len, &header, &header_ok);
	expect(slow.verdict == fast.verdict, "verdict");
	expect(slow.header_ok == fast.header_ok && header_ok == slow.header_ok, "header_ok");
	expect(slow.sequence == fast.sequence, "sequence");
	expect(slow.stream == fast.stream, "stream");
	expect(slow.payload_bytes == fast.payload_bytes, "payload_bytes");
	expect(slow.wrong_bits == fast.wrong_bits, "wrong_bits");
	expect(slow.offset == fast.offset, "offset");
	expect(slow.expected == fast.expected && slow.got == fast.got, "expected and got");
	expect(slow.phase_first == fast.phase_first && slow.phase_next == fast.phase_next, "phase");
	expect(slow.detail == fast.detail, "detail");
	expect(slow.verdict < FRAME_VERDICTS, "verdict in range");
	expect(slow.offset <= len, "offset in the frame");
	expect(slow.wrong_bits <= 8 * slow.payload_bytes, "wrong bits");
	if (verdict == FRAME_VALID)
		expect(frame_payload_offset(layout) + header.payload_bytes <= len,
		       "payload in the frame");
	else
		expect(slow.verdict == verdict, "frame_parse()");
}

/* What the stored frame has at `at`, and what the received one. */
static uint32_t wrong_at(uint32_t index, const uint8_t *frame, uint32_t len, uint32_t at)
{
	const uint8_t want = at < stored_len[index] ? stored[index][at] : 0;

	return (uint32_t)__builtin_popcount((unsigned int)(want ^ (at < len ? frame[at] : 0)));
}

/* Compared with the stored frames; what was found is compared once more, byte by byte. */
static void expected_agrees(const struct frame_layout *layout, const uint8_t *frame, uint32_t len)
{
	struct frame_result plain, after;
	uint32_t wrong = 0;

	memset(&plain, 0x11, sizeof(plain));
	frame_expect_check(layout, &store.view, frame, len, &plain);
	for (uint64_t near = 0; near < STORED; near++) {
		memset(&after, 0x22, sizeof(after));
		frame_expect_check_after(layout, &store.view, near, frame, len, &after);
		expect(!memcmp(&plain, &after, sizeof(plain)), "the frame in order");
	}
	if (plain.verdict != FRAME_VALID && plain.verdict != FRAME_DAMAGED_PAYLOAD) {
		expect(!plain.header_ok && !plain.payload_bytes, "not found");
		return;
	}
	expect(plain.sequence < STORED, "found");
	expect(store_padded(stored_len[plain.sequence]) == store_padded(len), "its length");
	for (uint32_t at = 0; at < store_padded(len); at++)
		wrong += wrong_at((uint32_t)plain.sequence, frame, len, at);
	expect(plain.wrong_bits == wrong, "wrong bits");
	expect((plain.verdict == FRAME_VALID) == !wrong, "valid");
	expect(!wrong || wrong_at((uint32_t)plain.sequence, frame, len, plain.offset), "offset");
}

static void stored_put(uint8_t *frame, uint32_t len)
{
	const uint32_t index = len ? frame[0] % STORED : 0;

	for (uint32_t at = 0; at < len && at < stored_len[index]; at++)
		frame[at] = (uint8_t)(at % 16 && at % 47 ? stored[index][at] : frame[at]);
}

/* A header made of any bytes, written into a frame of any length, is read back. */
static void written_is_valid(const struct frame_layout *layout, const struct pattern *pattern,
			     const uint8_t *data, uint32_t len)
{
	uint8_t *frame = malloc(len ? len : 1);
	struct frame_header header = { 0 };
	struct frame_result result;

	if (!frame)
		abort();
	memcpy(&header, data, len < sizeof(header) ? len : sizeof(header));
	header.pattern = (uint8_t)pattern->kind;
	frame_write(layout, pattern, frame, len, &header);
	frame_check(layout, pattern, frame_crc32c_table, frame, len, &result);
	if (frame_has_header(layout) && !layout->match.count &&
	    len >= frame_payload_offset(layout)) {
		expect(result.verdict == FRAME_VALID, "written frame");
		expect(result.sequence == header.sequence, "written sequence");
	}
	free(frame);
}

static void frame_play(const struct frame_layout *layout, const struct pattern *pattern,
		       uint8_t dress, const struct input *input)
{
	const uint32_t len = (uint32_t)input->left;
	uint8_t *frame = malloc(len ? len : 1); /* exact: the sanitizer sees reads beyond */

	if (!frame)
		abort();
	memcpy(frame, input->at, len);
	if (dress & DRESS_HEADERS)
		headers_put(layout, frame, len);
	if (dress & DRESS_OWN)
		own_header_put(layout, pattern, frame, len, dress & DRESS_PAYLOAD);
	if ((dress & DRESS_PAYLOAD) && layout->format == FRAME_CUSTOM)
		custom_payload_put(layout, pattern, frame, len);
	results_agree(layout, pattern, frame, len);
	if (dress & DRESS_STORE) {
		if (dress & DRESS_PAYLOAD)
			stored_put(frame, len);
		expected_agrees(layout, frame, len);
	}
	if (len <= FRAME_MAX_BYTES - FRAME_FCS_BYTES)
		written_is_valid(layout, pattern, input->at, len);
	free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int ready;
	struct frame_layout layout;
	struct input input = { data + 2, size - 2 };

	if (!ready) {
		setup();
		ready = 1;
	}
	if (size < 2 || size > 1000 + FRAME_MAX_BYTES)
		return 0;
	layout = layouts[data[0] % LAYOUTS];
	if (data[0] % LAYOUTS == LAYOUTS - 1)
		custom_take(&input, &layout);
	rules_take(&input, data[1], &layout);
	frame_play(&layout, &plans[data[0] / LAYOUTS % PATTERN_KINDS], data[1], &input);
	return 0;
}
