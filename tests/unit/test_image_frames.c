/* SPDX-License-Identifier: BSD-3-Clause */
/* Whatever layout of images loads: no frame makes a part outside of the frame or of the image. */
#include "image_option.h"
#include "image_probe.h"
#include "image_wire.h"

/* A leader with long ids says what one with short ids says, 12 bytes further. */
static void test_gvsp_ids(void **state)
{
	const struct image_layout *layout = &loaded("gvsp,bytes=4000,piece=1024")->layout;

	for (int extended = 0; extended < 2; extended++) {
		struct image_packet packet;
		struct wire wire;
		uint64_t value[3];

		wire_gvsp_packet(&wire, layout, extended, 77, 0);
		image_parse(layout, wire.at, wire.len, &packet);
		assert_int_equal(packet.what, IMAGE_BEGIN);
		assert_int_equal(packet.number, 77);
		assert_true(image_field_value(&layout->timestamp, &packet, wire.at, &value[0]));
		assert_true(image_field_value(&layout->fields[0], &packet, wire.at, &value[1]));
		assert_true(image_field_value(&layout->fields[1], &packet, wire.at, &value[2]));
		assert_int_equal(value[0], 77000);
		assert_int_equal(value[1], 640);
		assert_int_equal(value[2], 480);
		wire_gvsp_packet(&wire, layout, extended, 77, 4);
		assert_int_equal(1, image_probe(layout, wire.at, wire.len));
	}
}

/* ---- config/image-*.yaml ---- */

static const struct image_layout *example(const char *file)
{
	char path[4096];

	snprintf(path, sizeof(path), "%.*s/../../config/%s",
		 (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__, file);
	return &loaded(path)->layout;
}

/* The one part of a frame of data. */
static struct image_part part_of(const struct image_layout *layout, const uint8_t *frame,
				 uint32_t len, struct image_packet *packet)
{
	struct image_part part, none;

	assert_int_equal(1, image_probe(layout, frame, len));
	image_parse(layout, frame, len, packet);
	assert_int_equal(packet->what, IMAGE_DATA);
	assert_int_equal(1, image_next_part(layout, frame, packet, &part));
	assert_int_equal(0, image_next_part(layout, frame, packet, &none));
	return part;
}

static void test_own_frames(void **state)
{
	const struct image_layout *layout = example("image-gdrcap.yaml");
	const struct frame_config frames = { .format = FRAME_ETHERNET };
	const struct pattern_config prbs = { .kind = PATTERN_PRBS31 };
	struct frame_header header = { .stream = 5, .time_ns = 77, .pattern = PATTERN_PRBS31 };
	struct frame_layout own;
	struct pattern pattern;
	struct image_packet packet;
	struct image_part part;
	uint8_t frame[1514];
	uint64_t time;

	assert_int_equal(0, frame_layout_init(&own, &frames));
	assert_int_equal(0, pattern_init(&pattern, &prbs));
	header.sequence = 3 * 1024 + 7;
	header.payload_bytes = (uint16_t)frame_payload_bytes(&own, sizeof(frame));
	assert_int_equal(header.payload_bytes, layout->piece);
	frame_write(&own, &pattern, frame, sizeof(frame), &header);
	part = part_of(layout, frame, sizeof(frame), &packet);
	assert_int_equal(packet.stream, 5);
	assert_int_equal(packet.number, 3);
	assert_int_equal(part.place, 7 * 1464);
	assert_int_equal(part.bytes, 1464);
	assert_int_equal(part.from, 50);
	assert_true(image_field_value(&layout->timestamp, &packet, frame, &time));
	assert_int_equal(time, 77);
	/* the stream's end is no data */
	header.pattern = FRAME_PATTERN_END;
	header.payload_bytes = 0;
	frame_write(&own, &pattern, frame, 60, &header);
	image_parse(layout, frame, 60, &packet);
	assert_int_equal(packet.what, IMAGE_FILTERED);
	pattern_free(&pattern);
}

static void test_examples(void **state)
{
	const struct image_layout *layout = example("image-udp-counter.yaml");
	struct image_packet packet;
	struct image_part part;
	struct wire wire;
	uint8_t *udp = wire_udp(&wire, &wire_plain, 16 + 8192);

	frame_put16(udp - 6, 60000);
	frame_put64(udp, 5 * 1024 + 3);
	frame_put16(udp + 8, 15);
	frame_put16(udp + 10, 2);
	part = part_of(layout, wire.at, wire.len, &packet);
	assert_int_equal(packet.stream, 2);
	assert_int_equal(packet.number, 5);
	assert_int_equal(part.place, 15 * 8388608 + 3 * 8192);
	assert_int_equal(part.from, udp + 16 - wire.at);
	assert_int_equal(part.bytes, 8192);

	layout = example("image-camera-raw.yaml");
	memset(&wire, 0, sizeof(wire));
	frame_put16(wire.at + 12, 0x88b6);
	frame_put32(wire.at + 14, 0x80000009);
	wire.at[18] = 0xff; /* row 511 */
	wire.at[19] = 1;
	wire.at[21] = 5; /* 1280 bytes */
	part = part_of(layout, wire.at, 30 + 1280 + 6, &packet);
	assert_int_equal(packet.number, 9);
	assert_int_equal(packet.ends, 1);
	assert_int_equal(part.place, 511 * 1536);
	assert_int_equal(part.bytes, 1280);
	assert_int_equal(part.piece, 511);
	assert_int_equal(layout->pieces, 512);
}

/* ---- any frame ---- */

static uint64_t random_state = 1;

static uint64_t random_of(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1du % n;
}

static int put(char *at, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int put(char *at, const char *format, ...)
{
	va_list args;
	int bytes;

	va_start(args, format);
	bytes = vsprintf(at, format, args);
	va_end(args);
	return bytes;
}

static int put_random_field(char *to, const char *name, int spead)
{
	static const char *const keys[] = { "subtract", "divide", "modulo", "times" };
	char *at = to;

	at += put(at, "%s", name);
	if (spead)
		at += put(at, "{item: %u", (unsigned int)random_of(5) + 1);
	else
		at += put(at, "{at: %u, bytes: %u", (unsigned int)random_of(48),
			  (unsigned int)random_of(8) + 1);
	if (!random_of(4))
		at += put(at, ", mask: 0x%x", 1 + (unsigned int)random_of(255));
	if (!spead && !random_of(4))
		at += put(at, ", little: true");
	if (!random_of(3))
		at += put(at, ", %s: %u", keys[random_of(4)],
			  1 + (unsigned int)random_of(1u << random_of(12)));
	return (int)(at + put(at, "}, ") - to);
}

/* A layout that may be accepted. */
static void random_layout(char *at)
{
	const unsigned int parser = (unsigned int)random_of(5);
	const unsigned int piece = 1 + (unsigned int)random_of(random_of(2) ? 64 : 1500);
	const uint64_t bytes = 1 + random_of(UINT64_C(1) << (6 + random_of(18)));

	at += put(at, "{");
	if (parser == IMAGE_PARSER_RTP_RAW) {
		static const char *const samplings[] = { "RGB", "RGBA, depth: 10", "YCbCr-4:2:2",
							 "YCbCr-4:1:1, depth: 10" };

		put(at, "parser: rtp-raw, width: %u, height: %u, sampling: %s, pitch: %u}",
		    8 * (1 + (unsigned int)random_of(100)), 1 + (unsigned int)random_of(1000),
		    samplings[random_of(4)], (unsigned int)random_of(8000));
		return;
	}
	at += put(at, "bytes: %u, piece: %u, ", (unsigned int)bytes, piece);
	if (parser == IMAGE_PARSER_GVSP) {
		put(at, "parser: gvsp, size: %s}", random_of(2) ? "fixed" : "sender");
		return;
	}
	if (parser == IMAGE_PARSER_SPEAD)
		at += put(at, "parser: spead, ");
	at += put_random_field(at, "number: ", parser == IMAGE_PARSER_SPEAD);
	at += put_random_field(at,
			       random_of(2) ? "place: " : "index: ", parser == IMAGE_PARSER_SPEAD);
	if (!random_of(2))
		at += put_random_field(at, "timestamp: ", parser == IMAGE_PARSER_SPEAD);
	if (parser == IMAGE_PARSER_SPEAD) {
		put(at, "}");
		return;
	}
	if (!random_of(3))
		at += put(at, "row: %u, pitch: %u, ", 1 + (unsigned int)random_of(bytes),
			  1 + (unsigned int)random_of(2 * bytes));
	at += put(at, "base: %s, data: {payload: %u", random_of(3) ? "udp" : "frame",
		  (unsigned int)random_of(64));
	if (!random_of(4))
		at += put(at, ", payload_more: {at: %u, bytes: 1}", (unsigned int)random_of(20));
	if (!random_of(4))
		at += put(at, ", length: {at: %u, bytes: 2}", (unsigned int)random_of(20));
	put(at, "}%s}",
	    random_of(2) ? "" : ", end: {mark: {at: 3, bit: 0}, pieces: {at: 4, bytes: 2}}");
}

/* A frame that the layout's parser may like, with bytes changed. */
static void random_frame(const struct image_layout *layout, struct wire *wire)
{
	const struct wire_shape shape = { (uint32_t)random_of(3), (uint32_t)random_of(11),
					  !random_of(3) };
	const uint32_t bytes = (uint32_t)random_of(random_of(2) ? 200 : 1500) + 40;
	uint8_t *udp = wire_udp(wire, &shape, bytes);

	for (uint32_t i = 0; i < bytes; i++)
		udp[i] = (uint8_t)(random_of(3) ? 0 : random_of(256));
	if (layout->parser == IMAGE_PARSER_GVSP) {
		frame_put32(udp, 1 + (uint32_t)random_of(9));
		frame_put32(udp + 4, (uint32_t)(random_of(2) << 31 | random_of(5) << 24) |
					     (uint32_t)random_of(2 * layout->pieces));
		frame_put32(udp + 16, (uint32_t)random_of(2 * layout->pieces));
	} else if (layout->parser == IMAGE_PARSER_RTP_RAW) {
		udp[0] = (uint8_t)(0x80 | (random_of(9) ? 0 : random_of(64)));
		for (uint32_t at = 14; at < 14 + 6 * (1 + random_of(3)); at += 6) {
			frame_put16(udp + at, (uint32_t)random_of(60) * layout->group_bytes);
			frame_put16(udp + at + 2, (uint32_t)random_of(layout->height + 2));
			frame_put16(udp + at + 4, (uint32_t)(random_of(2) << 15 |
							     random_of(layout->width / 4 + 1) * 4));
		}
	} else if (layout->parser == IMAGE_PARSER_SPEAD) {
		const uint32_t items = random_of(9) ? 5 : (uint32_t)random_of(8);

		frame_put32(udp, 0x53040206);
		frame_put32(udp + 4, items);
		for (uint32_t i = 0; i < items && 16 + 8 * i <= bytes; i++) {
			const uint64_t id = 1 + (i + !random_of(9)) % 5;

			frame_put64(udp + 8 + 8 * i,
				    UINT64_C(1) << 63 | id << 48 |
					    (id == IMAGE_SPEAD_PAYLOAD
						     ? random_of(bytes) / layout->piece *
								       layout->piece +
							       !random_of(4)
						     : random_of(layout->bytes) / layout->piece *
							       layout->piece));
		}
	}
	for (uint64_t i = random_of(4); i; i--)
		wire->at[random_of(wire->len)] = (uint8_t)random_of(256);
	if (!random_of(4))
		wire->len = (uint32_t)random_of(wire->len + 1);
}

/* ASan watches: a frame is as long as its memory. */
static void test_any_frame(void **state)
{
	uint32_t accepted[4] = { 0 }, parts[4] = { 0 };
	struct wire wire;
	char text[2048];

	for (uint32_t i = 0; i < 20000; i++) {
		const struct image_layout *layout;

		random_layout(text);
		if (image(text)) {
			assert_int_equal(error.code, -EINVAL);
			continue;
		}
		layout = &config->settings.image[0].layout;
		accepted[layout->parser]++;
		for (uint32_t f = 0; f < 40; f++) {
			random_frame(layout, &wire);
			parts[layout->parser] += image_probe(layout, wire.at, wire.len);
		}
	}
	for (uint32_t p = 0; p < 4; p++) {
		print_message("parser %u: %u layouts, %u parts\n", p, accepted[p], parts[p]);
		assert_true(accepted[p] > 500);
		assert_true(parts[p] > 1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gvsp_ids),
		cmocka_unit_test(test_own_frames),
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_any_frame),
	};
	const int ret = cmocka_run_group_tests(tests, NULL, NULL);

	gdrcap_config_free(config);
	return ret;
}
