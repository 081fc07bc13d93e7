/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer: any bytes as a frame. The first input byte picks the layout and the pattern, the
 * second how the frame is dressed up so that deep paths are reached: with bit 0 our headers' fixed
 * fields are put in place, with bit 1 the own header's CRC32C, with bit 2 the payload. The two
 * checkers must agree in every field, and what frame_write() writes must be valid.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"

#define LAYOUTS 5u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct frame_layout layouts[LAYOUTS];
static struct pattern_plan plans[PATTERN_KINDS];

static void setup(void)
{
	static const uint8_t file[] = "0123456789abc";
	static const struct frame_config configs[] = {
		{ .format = FRAME_ETHERNET },
		{ .format = FRAME_ETHERNET, .vlan = 100 },
		{ .format = FRAME_IPV4_UDP },
		{ .format = FRAME_IPV4_UDP, .vlan = 100 },
	};

	for (unsigned int i = 0; i < LAYOUTS - 1; i++)
		if (frame_layout_init(&layouts[i], &configs[i]))
			abort();
	frame_layout_proof(&layouts[LAYOUTS - 1]);
	for (unsigned int i = 0; i < PATTERN_KINDS; i++) {
		const struct pattern_config config = {
			.kind = (enum pattern_kind)i,
			.invert = -1,
			.seed = 9,
			.value = 0x5a,
			.file = file,
			.file_bytes = sizeof(file) - 1,
		};

		if (pattern_plan_init(&plans[i], &config))
			abort();
	}
}

/* Puts the template's EtherType, IPv4 and UDP fields over the frame. */
static void headers_put(const struct frame_layout *layout, uint8_t *frame, uint32_t len)
{
	if (len >= layout->own_offset)
		memcpy(frame + 12, layout->templ + 12, layout->own_offset - 12);
}

static void own_header_put(const struct frame_layout *layout, const struct pattern_plan *plan,
			   uint8_t *frame, uint32_t len, int payload)
{
	uint8_t *own = frame + layout->own_offset;
	const uint32_t start = layout->own_offset + FRAME_HEADER_BYTES;
	struct pattern_place place;
	uint32_t bytes;

	if (layout->raw || len < start)
		return;
	frame_put16(own, FRAME_MAGIC);
	own[2] = FRAME_VERSION;
	bytes = frame_be16(own + 6);
	if (payload) {
		own[3] = (uint8_t)plan->kind;
		bytes %= len - start + 1;
		frame_put16(own + 6, bytes);
	}
	place.position = frame_be64(own + 16);
	place.sequence = frame_be64(own + 8);
	place.stream = frame_be16(own + 4);
	if (payload) {
		/* the input's first payload byte says where the frame is damaged */
		const uint8_t at = bytes ? own[36] : 0;

		pattern_fill(plan, &place, frame + start, bytes);
		if (bytes && at)
			frame[start + (at * 7919u) % bytes] ^= at;
	}
	frame_put32(own + 32, frame_crc32c(frame_crc32c_table, own, 32));
}

static void expect(int right, const char *what)
{
	if (!right) {
		fprintf(stderr, "the checkers differ: %s\n", what);
		abort();
	}
}

static void results_agree(const struct frame_layout *layout, const struct pattern_plan *plan,
			  const uint8_t *frame, uint32_t len)
{
	struct frame_result slow, fast;
	struct frame_header header;
	enum frame_verdict verdict;
	int header_ok;

	memset(&slow, 0x11, sizeof(slow));
	memset(&fast, 0x22, sizeof(fast));
	frame_check(layout, plan, frame_crc32c_table, frame, len, &slow);
	frame_check_fast(layout, plan, frame, len, &fast);
	verdict = frame_parse(layout, frame_crc32c_table, frame, len, &header, &header_ok);
	expect(slow.verdict == fast.verdict, "verdict");
	expect(slow.header_ok == fast.header_ok && header_ok == slow.header_ok, "header_ok");
	expect(slow.sequence == fast.sequence, "sequence");
	expect(slow.stream == fast.stream, "stream");
	expect(slow.payload_bytes == fast.payload_bytes, "payload_bytes");
	expect(slow.wrong_bits == fast.wrong_bits, "wrong_bits");
	expect(slow.offset == fast.offset, "offset");
	expect(slow.expected == fast.expected && slow.got == fast.got, "expected and got");
	expect(slow.verdict < FRAME_VERDICTS, "verdict in range");
	expect(slow.offset <= len, "offset in the frame");
	if (verdict == FRAME_VALID)
		expect(frame_payload_offset(layout) + header.payload_bytes <= len,
		       "payload in the frame");
	else
		expect(slow.verdict == verdict, "frame_parse()");
}

/* A header made of any bytes, written into a frame of any length, is read back. */
static void written_is_valid(const struct frame_layout *layout, const struct pattern_plan *plan,
			     const uint8_t *data, uint32_t len)
{
	uint8_t *frame = malloc(len ? len : 1);
	struct frame_header header = { 0 };
	struct frame_result result;

	if (!frame)
		abort();
	memcpy(&header, data, len < sizeof(header) ? len : sizeof(header));
	header.pattern = (uint8_t)plan->kind;
	frame_write(layout, plan, frame, len, &header);
	frame_check(layout, plan, frame_crc32c_table, frame, len, &result);
	if (!layout->raw && len >= frame_payload_offset(layout)) {
		expect(result.verdict == FRAME_VALID, "written frame");
		expect(result.sequence == header.sequence, "written sequence");
	}
	free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int ready;
	const struct pattern_plan *plan;
	const struct frame_layout *layout;
	uint8_t *frame;
	uint32_t len;

	if (!ready) {
		setup();
		ready = 1;
	}
	if (size < 2 || size > 2 + FRAME_MAX_BYTES)
		return 0;
	layout = &layouts[data[0] % LAYOUTS];
	plan = &plans[data[0] / LAYOUTS % PATTERN_KINDS];
	len = (uint32_t)size - 2;
	frame = malloc(len ? len : 1); /* exact: the sanitizer sees reads beyond */
	if (!frame)
		abort();
	memcpy(frame, data + 2, len);
	if (data[1] & 1)
		headers_put(layout, frame, len);
	if (data[1] & 2)
		own_header_put(layout, plan, frame, len, data[1] & 4);
	results_agree(layout, plan, frame, len);
	if (len <= FRAME_MAX_BYTES - FRAME_FCS_BYTES)
		written_is_valid(layout, plan, data + 2, len);
	free(frame);
	return 0;
}
