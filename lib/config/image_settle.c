/* SPDX-License-Identifier: BSD-3-Clause */
/* From what was written of a layout to the layout: fields, packets, numbers, and how it is kept. */
#include "config/image_load.h"
#include "config/image_settle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#define GIVEN(field, key) (!!((field)->given & 1u << FIELD_KEY_##key))
#define RING_BYTES_MAX (UINT64_C(1) << 40)
#define LATE_RTP 90000u /* a second of RTP's clock for video */

/* ---- a field ---- */

static int field_refuse(const struct image_draft *draft, enum image_key key,
			const struct draft_field *field, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static int field_refuse(const struct image_draft *draft, enum image_key key,
			const struct draft_field *field, const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return image_draft_refuse(draft, field->line, image_key_path(key), "%s", what);
}

/* Bits counted from the first byte's highest, as standards draw them. */
static int place_bits(const struct image_draft *draft, enum image_key key,
		      const struct draft_field *from, struct image_field *field)
{
	const uint64_t bit = from->value[FIELD_KEY_BIT];
	const uint64_t bits = GIVEN(from, BITS) ? from->value[FIELD_KEY_BITS] : 1;
	const uint64_t end = bit % 8 + bits;

	if (GIVEN(from, BYTES) || GIVEN(from, SHIFT) || GIVEN(from, MASK) || GIVEN(from, LITTLE))
		return field_refuse(draft, key, from,
				    "bit and bits say what bytes, shift, mask and little say; give "
				    "one or the other");
	if (end > 64)
		return field_refuse(draft, key, from,
				    "%" PRIu64 " bits from bit %" PRIu64
				    " of a byte on lie in 9 bytes; allowed: in 8",
				    bits, bit % 8);
	field->at = (uint16_t)(from->value[FIELD_KEY_AT] + bit / 8);
	field->bytes = (uint8_t)((end + 7) / 8);
	field->shift = (uint8_t)(8u * field->bytes - end);
	field->mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
	return 0;
}

/* Which bytes. */
static int place_bytes(const struct image_draft *draft, enum image_key key,
		       const struct draft_field *from, struct image_field *field)
{
	const bool spead = draft->value[IMAGE_KEY_PARSER] == IMAGE_PARSER_SPEAD;

	if (GIVEN(from, ITEM) != spead || GIVEN(from, AT) == spead)
		return field_refuse(draft, key, from,
				    spead ? "has no item; parser spead finds fields by item: 0x1600"
					  : "has no at; fields have at: BYTE (item is of parser "
					    "spead)");
	if (spead) {
		if (GIVEN(from, BYTES) || GIVEN(from, LITTLE) || GIVEN(from, BIT) ||
		    GIVEN(from, BITS))
			return field_refuse(draft, key, from,
					    "an item is 48 bits, most significant byte first; "
					    "leave out bytes, little, bit and bits");
		field->at = (uint16_t)from->value[FIELD_KEY_ITEM];
		field->item = 1;
		field->bytes = 6;
	} else if (GIVEN(from, BIT) || GIVEN(from, BITS)) {
		if (place_bits(draft, key, from, field))
			return -EINVAL;
	} else if (!GIVEN(from, BYTES)) {
		return field_refuse(draft, key, from,
				    "has no bytes; allowed: 1..8, or bit and "
				    "bits");
	} else {
		field->at = (uint16_t)from->value[FIELD_KEY_AT];
		field->bytes = (uint8_t)from->value[FIELD_KEY_BYTES];
		field->little = (uint8_t)from->value[FIELD_KEY_LITTLE];
	}
	if (!field->item && field->at + field->bytes > IMAGE_FIELD_END_MAX)
		return field_refuse(draft, key, from,
				    "%u bytes at %u end past byte %u, the last that is read for "
				    "fields",
				    field->bytes, field->at, IMAGE_FIELD_END_MAX);
	return 0;
}

int image_settle_field(const struct image_draft *draft, enum image_key key, uint32_t i,
		       struct image_field *field, uint64_t *most)
{
	const struct draft_field *from = &draft->field[key][i];
	uint64_t value = UINT64_MAX;

	memset(field, 0, sizeof(*field));
	*most = 0;
	if (i >= draft->value[key])
		return 0;
	field->mask = UINT64_MAX;
	if (place_bytes(draft, key, from, field))
		return -EINVAL;
	if (GIVEN(from, SHIFT))
		field->shift = (uint8_t)from->value[FIELD_KEY_SHIFT];
	if (GIVEN(from, MASK))
		field->mask = from->value[FIELD_KEY_MASK];
	field->subtract = from->value[FIELD_KEY_SUBTRACT];
	field->divide = GIVEN(from, DIVIDE) ? from->value[FIELD_KEY_DIVIDE] : 1;
	field->modulo = from->value[FIELD_KEY_MODULO];
	field->times = GIVEN(from, TIMES) ? from->value[FIELD_KEY_TIMES] : 1;
	value = value >> (64 - 8 * field->bytes) >> field->shift & field->mask;
	if (!value || value < field->subtract)
		return field_refuse(draft, key, from,
				    "its bits are at most %" PRIu64 ", so %s; check bytes, shift, "
				    "mask and subtract",
				    value,
				    value ? "nothing is left after subtract" : "it says nothing");
	value = (value - field->subtract) / field->divide;
	if (field->modulo && value >= field->modulo)
		value = field->modulo - 1;
	if (value > UINT64_MAX / field->times)
		return field_refuse(draft, key, from,
				    "its value can pass 64 bits: up to %" PRIu64 " times %" PRIu64,
				    value, field->times);
	*most = value * field->times;
	return 0;
}

/* ---- what packets are ---- */

/* Keys that mean nothing to this parser. */
static int check_keys(const struct image_draft *draft)
{
	const uint64_t parser = draft->value[IMAGE_KEY_PARSER];
	unsigned int theirs = 0;
	enum image_key key = 0;

	while (key < IMAGE_KEYS && (!draft->given[key] || image_key_parsers(key) & 1u << parser))
		key++;
	if (key < IMAGE_KEYS) {
		while (!(image_key_parsers(key) & 1u << theirs))
			theirs++;
		return image_draft_refuse_key(
			draft, key, "is of parser %s, and this is %s%s; leave it out",
			image_key_word(IMAGE_KEY_PARSER, theirs),
			image_key_word(IMAGE_KEY_PARSER, parser),
			parser == IMAGE_PARSER_FIELDS ? "" : ", which knows it by itself");
	}
	if (parser != IMAGE_PARSER_FIELDS && draft->value[IMAGE_KEY_BASE] != IMAGE_BASE_UDP)
		return image_draft_refuse_key(draft, IMAGE_KEY_BASE,
					      "parser %s reads UDP datagrams; leave it out",
					      image_key_word(IMAGE_KEY_PARSER, parser));
	return 0;
}

static int settle_kinds(const struct image_draft *draft, struct image_layout *layout)
{
	static const enum image_key keys[] = { IMAGE_KEY_KIND_BEGIN, IMAGE_KEY_KIND_DATA,
					       IMAGE_KEY_KIND_END };
	const bool has_kind = draft->given[IMAGE_KEY_KIND];
	uint64_t most;

	if (image_settle_field(draft, IMAGE_KEY_KIND, 0, &layout->kind, &most))
		return -EINVAL;
	if (has_kind && most == UINT64_MAX)
		return image_draft_refuse_key(draft, IMAGE_KEY_KIND, "has 64 bits; allowed: fewer");
	if (has_kind && !draft->given[IMAGE_KEY_KIND_DATA])
		return image_draft_refuse_key(draft, IMAGE_KEY_KIND,
					      "nothing says which packets bring data; give "
					      "data.kind");
	for (uint32_t i = 0; i < RTE_DIM(keys); i++) {
		const uint64_t value = draft->value[keys[i]];

		if (!draft->given[keys[i]])
			continue;
		if (!has_kind)
			return image_draft_refuse_key(draft, keys[i],
						      "there is no kind to compare it with; give "
						      "kind: {at: ...}, or leave it out");
		if (value > most)
			return image_draft_refuse_key(
				draft, keys[i], "kind is never %" PRIu64 "; it is at most %" PRIu64,
				value, most);
		for (uint32_t j = 0; j < i; j++)
			if (draft->given[keys[j]] && draft->value[keys[j]] == value)
				return image_draft_refuse_key(draft, keys[i],
							      "is that of %s too; give another",
							      image_key_path(keys[j]));
	}
	layout->kind_begin = draft->value[IMAGE_KEY_KIND_BEGIN];
	layout->kind_data = has_kind ? draft->value[IMAGE_KEY_KIND_DATA] : 0;
	layout->kind_end = draft->value[IMAGE_KEY_KIND_END];
	if (layout->parser == IMAGE_PARSER_GVSP) { /* image_parse_gvsp()'s */
		layout->kind_begin = 1;
		layout->kind_end = 2;
		layout->kind_data = 3;
	}
	return 0;
}

static int settle_end(const struct image_draft *draft, struct image_layout *layout)
{
	uint64_t most;

	if (image_settle_field(draft, IMAGE_KEY_END_MARK, 0, &layout->end_mark, &most) ||
	    image_settle_field(draft, IMAGE_KEY_END_PIECES, 0, &layout->end_pieces, &most))
		return -EINVAL;
	if (layout->end_pieces.bytes && !layout->end_mark.bytes &&
	    !draft->given[IMAGE_KEY_KIND_END])
		return image_draft_refuse_key(draft, IMAGE_KEY_END_PIECES,
					      "no packet is an end; give end.kind or end.mark");
	return 0;
}

/* ---- numbers ---- */

static int settle_late(const struct image_draft *draft, struct image_layout *layout)
{
	const bool rtp = layout->parser == IMAGE_PARSER_RTP_RAW;
	const uint64_t modulus = layout->number_modulus;

	layout->late = draft->value[IMAGE_KEY_LATE];
	layout->legs = (uint32_t)draft->value[IMAGE_KEY_LEGS];
	if (!draft->given[IMAGE_KEY_LATE]) {
		if (rtp)
			layout->late = LATE_RTP;
		if (modulus && layout->late > modulus / 4)
			layout->late = modulus / 4;
	}
	if (modulus && layout->late > modulus / 2)
		return image_draft_refuse_key(draft, IMAGE_KEY_LATE,
					      "%" PRIu64 " of %" PRIu64
					      " numbers; further back than half of them is "
					      "ahead; allowed: 0..%" PRIu64,
					      layout->late, modulus, modulus / 2);
	layout->counts = (uint32_t)draft->value[IMAGE_KEY_COUNTS];
	if (rtp && layout->counts && draft->given[IMAGE_KEY_COUNTS])
		return image_draft_refuse_key(draft, IMAGE_KEY_COUNTS,
					      "RTP's numbers are time stamps; leave it out");
	if (rtp)
		layout->counts = 0;
	return 0;
}

static int settle_number(const struct image_draft *draft, struct image_layout *layout)
{
	const struct draft_field *from = &draft->field[IMAGE_KEY_NUMBER][0];
	uint64_t most, room;

	if (layout->parser == IMAGE_PARSER_GVSP) {
		layout->number_first = 1;
		layout->number_modulus = 65535;
		return settle_late(draft, layout);
	}
	if (layout->parser == IMAGE_PARSER_RTP_RAW) {
		layout->number_modulus = UINT64_C(1) << 32;
		return settle_late(draft, layout);
	}
	if (!draft->given[IMAGE_KEY_NUMBER])
		return image_draft_refuse_key(draft, IMAGE_KEY_NUMBER,
					      "is missing: which image a packet belongs to; give "
					      "its field");
	if (image_settle_field(draft, IMAGE_KEY_NUMBER, 0, &layout->number, &most))
		return -EINVAL;
	if (GIVEN(from, TIMES))
		return field_refuse(draft, IMAGE_KEY_NUMBER, from,
				    "numbers are not multiplied; leave out times");
	layout->number_first = from->value[FIELD_KEY_FIRST];
	if (layout->number_first >= most)
		return field_refuse(draft, IMAGE_KEY_NUMBER, from,
				    "is at most %" PRIu64 ", so there is no second number after "
				    "%" PRIu64,
				    most, layout->number_first);
	room = most - layout->number_first; /* less one, for it may be 2^64 */
	if (GIVEN(from, WRAP) && from->value[FIELD_KEY_WRAP] - 1 > room)
		return field_refuse(draft, IMAGE_KEY_NUMBER, from,
				    "wrap: there are no %" PRIu64 " numbers from %" PRIu64
				    " to %" PRIu64,
				    from->value[FIELD_KEY_WRAP], layout->number_first, most);
	layout->number_modulus = GIVEN(from, WRAP) ? from->value[FIELD_KEY_WRAP] : room + 1;
	return settle_late(draft, layout);
}

static int settle_said(const struct image_draft *draft, struct image_layout *layout)
{
	uint64_t most;

	if (image_settle_field(draft, IMAGE_KEY_STREAM, 0, &layout->stream, &most) ||
	    image_settle_field(draft, IMAGE_KEY_TIMESTAMP, 0, &layout->timestamp, &most))
		return -EINVAL;
	for (uint32_t i = 0; i < IMAGE_FIELDS_MAX; i++)
		if (image_settle_field(draft, IMAGE_KEY_FIELDS, i, &layout->fields[i], &most))
			return -EINVAL;
	return 0;
}

/* ---- how images are kept ---- */

static int settle_ring(const struct image_draft *draft, struct image_settings *image)
{
	const uint64_t bytes = image_in_buffer(&image->layout, image->layout.bytes);

	image->ring = (uint32_t)draft->value[IMAGE_KEY_RING];
	image->open = (uint32_t)draft->value[IMAGE_KEY_OPEN];
	if (!draft->given[IMAGE_KEY_OPEN])
		image->open = RTE_MIN(image->open, image->ring - 1);
	if (image->open >= image->ring)
		return image_draft_refuse_key(
			draft, draft->given[IMAGE_KEY_OPEN] ? IMAGE_KEY_OPEN : IMAGE_KEY_RING,
			"%u images open in a ring of %u; allowed: fewer than the ring has",
			image->open, image->ring);
	if (image->ring * bytes > RING_BYTES_MAX)
		return image_draft_refuse_key(draft, IMAGE_KEY_RING,
					      "%u images of %" PRIu64
					      " bytes pass 1 TiB; give fewer, or smaller ones",
					      image->ring, bytes);
	if (image->layout.number_modulus && image->ring > image->layout.number_modulus / 2)
		return image_draft_refuse_key(
			draft, IMAGE_KEY_RING,
			"%u images under way and %" PRIu64
			" numbers: a number would come again while its image is "
			"there; allowed: half as many as there are numbers, %" PRIu64,
			image->ring, image->layout.number_modulus,
			image->layout.number_modulus / 2);
	image->timeout_us = 1000 * draft->value[IMAGE_KEY_TIMEOUT];
	image->linger_us = 1000 * draft->value[IMAGE_KEY_LINGER];
	image->fill = draft->value[IMAGE_KEY_FILL] == IMAGE_FILL_NONE
			      ? -1
			      : (int)draft->value[IMAGE_KEY_FILL];
	image->drop_incomplete = draft->value[IMAGE_KEY_INCOMPLETE] == IMAGE_INCOMPLETE_DROP;
	image->drop_oldest = draft->value[IMAGE_KEY_FULL] == IMAGE_FULL_DROP_OLDEST;
	image->engine = (enum image_engine)draft->value[IMAGE_KEY_ENGINE];
	return 0;
}

void image_match(struct image_settings *image, const struct match_list *match)
{
	image->match = *match;
	image->layout.match.count = match->count;
	for (uint32_t i = 0; i < match->count; i++)
		image->layout.match.rule[i] = match->rule[i].rule;
}

int image_settle(const struct image_draft *draft, struct image_settings *image)
{
	struct image_layout *layout = &image->layout;

	memset(image, 0, sizeof(*image));
	strcpy(image->name, draft->name);
	layout->base = (uint32_t)draft->value[IMAGE_KEY_BASE];
	layout->parser = (uint32_t)draft->value[IMAGE_KEY_PARSER];
	image_match(image, &draft->match);
	if (check_keys(draft) || settle_kinds(draft, layout) || settle_end(draft, layout) ||
	    settle_number(draft, layout) || settle_said(draft, layout) ||
	    image_settle_shape(draft, layout) || image_settle_convert(draft, layout) ||
	    image_settle_place(draft, layout))
		return -EINVAL;
	return settle_ring(draft, image);
}
