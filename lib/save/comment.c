/* SPDX-License-Identifier: BSD-3-Clause */
/* The comment of a saved frame that is wrong: what, and where. */
#include "save/comment.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "pattern/phase.h"

/* A damaged frame as it was saved. */
struct subject {
	const struct comment_reference *reference;
	const struct frame_record *found;
	const uint8_t *frame;
	uint32_t captured, length;
};

struct text {
	char *at;
	uint32_t used;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *text, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text->at + text->used, COMMENT_BYTES - text->used, format, args);
	va_end(args);
	if (n > 0)
		text->used += (uint32_t)n;
	if (text->used > COMMENT_BYTES - 1)
		text->used = COMMENT_BYTES - 1;
}

static void say_bytes(struct text *text, const uint8_t *bytes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		say(text, " %02x", bytes[i]);
}

/* Which frame it is, as far as it can be known: ", stream 3 sequence 1234". */
static void say_which(struct text *text, const struct subject *subject)
{
	const struct frame_layout *layout = subject->reference->layout;
	const struct frame_record *found = subject->found;
	const bool custom = layout->format == FRAME_CUSTOM;

	if (!found->header_ok)
		return;
	if (subject->reference->expect) {
		/* numbered from 1, as whoever looks at that file sees it */
		say(text, ", frame %llu of the expected file",
		    (unsigned long long)found->sequence + 1);
		return;
	}
	if (layout->raw ||
	    (custom && !layout->custom.sequence.bytes && !layout->custom.stream.bytes))
		return;
	say(text, ",");
	if (!custom || layout->custom.stream.bytes)
		say(text, " stream %u", found->stream);
	if (!custom || layout->custom.sequence.bytes)
		say(text, " sequence %llu", (unsigned long long)found->sequence);
}

/* The file's bytes from `offset`; returns how many. */
static uint32_t expected_of_file(const struct frame_store_view *store, uint64_t index,
				 uint32_t offset, uint8_t want[COMMENT_SHOWN])
{
	const struct store_frame *frame = &store->frames[index < store->count ? index : 0];
	uint32_t n;

	if (index >= store->count || offset >= store_padded(frame->len))
		return 0;
	n = store_padded(frame->len) - offset;
	if (n > COMMENT_SHOWN)
		n = COMMENT_SHOWN;
	if (frame->at + offset + n > store->data_bytes)
		return 0;
	memcpy(want, store->data + frame->at + offset, n);
	return n;
}

/* The sequence's bytes from `at` bytes after `phase`. */
static void expected_of_phase(const struct pattern *pattern, uint32_t phase, uint32_t at,
			      uint8_t *want, uint32_t n)
{
	for (; at >= 4; at -= 4)
		phase = phase_step(pattern, phase);
	phase = phase_skip(pattern, phase, 8 * at);
	for (uint32_t i = 0; i < n; i++) {
		want[i] = (uint8_t)((phase ^ (0u - pattern->invert)) >> 24);
		phase = phase_skip(pattern, phase, 8);
	}
}

/* The payload's bytes from the first wrong one, as the header in the saved copy says. */
static uint32_t expected_of_pattern(const struct subject *subject, uint8_t want[COMMENT_SHOWN])
{
	const struct frame_layout *layout = subject->reference->layout;
	const struct pattern *pattern = subject->reference->pattern;
	const uint32_t start = frame_payload_offset(layout), offset = subject->found->offset;
	struct frame_header header;
	struct pattern_place place;
	uint32_t n;
	int header_ok;

	if (frame_parse(layout, frame_crc32c_table, subject->frame, subject->captured, &header,
			&header_ok) != FRAME_VALID ||
	    offset < start || offset - start >= header.payload_bytes)
		return 0;
	n = header.payload_bytes - (offset - start);
	if (n > COMMENT_SHOWN)
		n = COMMENT_SHOWN;
	if (frame_is_self_phase(layout, pattern)) {
		expected_of_phase(pattern, subject->found->phase_first, offset - start, want, n);
		return n;
	}
	frame_place(layout, &header, &place);
	for (uint32_t i = 0; i < n; i++)
		want[i] = (uint8_t)pattern_word(pattern, &place, offset - start + i);
	return n;
}

/*
 * The checker's answer, and more bytes of the same place from the copy. Where the copy is another
 * than what the checker saw, the frame changed after it was announced, and that is said.
 */
static void say_payload(struct text *text, const struct subject *subject)
{
	const struct frame_record *found = subject->found;
	const uint32_t left =
		subject->captured > found->offset ? subject->captured - found->offset : 0;
	uint8_t want[COMMENT_SHOWN];
	uint32_t n;

	n = subject->reference->expect ? expected_of_file(subject->reference->expect,
							  found->sequence, found->offset, want)
				       : expected_of_pattern(subject, want);
	if (n > left)
		n = left;
	say(text, ": %u wrong bit%s, first at offset %u of the frame: expected", found->wrong_bits,
	    found->wrong_bits == 1 ? "" : "s", found->offset);
	if (n == 0 || want[0] != found->expected) {
		say(text, " %02x, got %02x", found->expected, found->got);
		if (n)
			say(text, "; the frame's header changed after it was checked");
		return;
	}
	say_bytes(text, want, n);
	say(text, ", got");
	say_bytes(text, subject->frame + found->offset, n);
	if (subject->frame[found->offset] != found->got)
		say(text, "; it was %02x when it was checked, and changed since", found->got);
}

static void say_field(struct text *text, const char *what, uint32_t offset, const uint8_t *want,
		      const uint8_t *got, uint32_t n)
{
	say(text, ": %s at offset %u of the frame: expected", what, offset);
	say_bytes(text, want, n);
	say(text, ", got");
	say_bytes(text, got, n);
}

/* The first of the own header's fields that cannot be right. */
static void say_header(struct text *text, const struct subject *subject)
{
	const uint32_t at = subject->reference->layout->own_offset;
	const uint8_t *own = subject->frame + at;
	const uint8_t start[3] = { FRAME_MAGIC >> 8, FRAME_MAGIC & 0xff, FRAME_VERSION };
	const uint8_t pattern = (uint8_t)subject->reference->pattern->kind;
	uint8_t crc[4];

	if (subject->captured < at + FRAME_HEADER_BYTES)
		return;
	frame_put32(crc, frame_crc32c(frame_crc32c_table, own, FRAME_HEADER_BYTES - 4));
	if (subject->found->header_ok)
		say_field(text, "pattern", at + 3, &pattern, own + 3, 1);
	else if (memcmp(own, start, 2))
		say_field(text, "magic", at, start, own, 2);
	else if (own[2] != FRAME_VERSION)
		say_field(text, "version", at + 2, start + 2, own + 2, 1);
	else if (memcmp(own + FRAME_HEADER_BYTES - 4, crc, 4))
		say_field(text, "CRC32C", at + FRAME_HEADER_BYTES - 4, crc,
			  own + FRAME_HEADER_BYTES - 4, 4);
	else
		say(text, ": it is right here, and changed after it was checked");
}

static void say_length(struct text *text, const struct subject *subject)
{
	const struct frame_layout *layout = subject->reference->layout;
	const uint32_t start = frame_payload_offset(layout);

	if (layout->format == FRAME_CUSTOM) {
		if (subject->found->header_ok)
			say(text, ": its payload ends at offset %u, the frame has %u bytes",
			    start + layout->custom.payload_bytes, subject->length);
		else
			say(text,
			    ": the frame has %u bytes and ends in its sequence number or "
			    "stream id",
			    subject->length);
		return;
	}
	if (!subject->found->header_ok || subject->captured < start || layout->raw) {
		say(text, ": its header ends at offset %u, the frame has %u bytes", start,
		    subject->length);
		return;
	}
	say(text, ": its header says %u payload bytes, the frame has room for %u",
	    frame_be16(subject->frame + layout->own_offset + 6), subject->length - start);
}

void comment_damaged(char out[COMMENT_BYTES], const struct comment_reference *reference,
		     const struct frame_record *found, const uint8_t *frame, uint32_t captured,
		     uint32_t length)
{
	const struct subject subject = { reference, found, frame, captured, length };
	const char *pattern = pattern_name((enum pattern_kind)reference->pattern->kind);
	struct text text = { .at = out };

	switch (found->verdict) {
	case FRAME_DAMAGED_PAYLOAD:
		say(&text, "gdrcap: damaged %s", reference->expect ? "frame" : "payload");
		say_which(&text, &subject);
		say_payload(&text, &subject);
		break;
	case FRAME_DAMAGED_HEADER:
		if (reference->expect) {
			say(&text, "gdrcap: not in the expected file");
			break;
		}
		say(&text, "gdrcap: damaged header");
		say_which(&text, &subject);
		say_header(&text, &subject);
		break;
	case FRAME_DAMAGED_LENGTH:
		say(&text, "gdrcap: damaged length");
		say_which(&text, &subject);
		say_length(&text, &subject);
		break;
	case FRAME_DAMAGED_UNLOCKED:
		say(&text, "gdrcap: unlocked");
		say_which(&text, &subject);
		say(&text, ": no phase of %s fits the %u payload bytes from offset %u of the frame",
		    pattern ? pattern : "the pattern", found->detail, found->offset);
		break;
	case FRAME_DAMAGED_STALE:
		say(&text, "gdrcap: stale");
		say_which(&text, &subject);
		say(&text, ": it was announced before its bytes were there; this is what came");
		break;
	default:
		say(&text, "gdrcap: damaged");
		break;
	}
}

void comment_neighbour(char out[COMMENT_BYTES], int distance)
{
	const unsigned int frames = (unsigned int)(distance < 0 ? -distance : distance);

	snprintf(out, COMMENT_BYTES, "gdrcap: %u frame%s %s a damaged one", frames,
		 frames == 1 ? "" : "s", distance < 0 ? "before" : "after");
}
