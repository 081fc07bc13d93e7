/* SPDX-License-Identifier: BSD-3-Clause */
/* A layout of images as YAML: what a preset stands for, and what is kept of a file's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "config/image_draft.h"
#include "config/image_load.h"
#include "config/image_settle.h"

static void put_number(FILE *out, enum image_key key, uint64_t value)
{
	fprintf(out, "%s: %" PRIu64 "\n", image_key_path(key), value);
}

static void put_word(FILE *out, enum image_key key, uint64_t value)
{
	fprintf(out, "%s: %s\n", image_key_path(key), image_key_word(key, value));
}

static void put_time(FILE *out, enum image_key key, uint64_t us)
{
	char seconds[TEXT_COUNT_BYTES];

	fprintf(out, "%s: %s\n", image_key_path(key), text_decimal(seconds, us, 6));
}

/* "{at: 4, bytes: 2" */
static void put_field(FILE *out, const struct image_field *field)
{
	if (field->item)
		fprintf(out, "{item: 0x%x", field->at);
	else
		fprintf(out, "{at: %u, bytes: %u", field->at, field->bytes);
	if (field->little)
		fprintf(out, ", little: true");
	if (field->shift)
		fprintf(out, ", shift: %u", field->shift);
	if (field->mask != UINT64_MAX)
		fprintf(out, ", mask: 0x%" PRIx64, field->mask);
	if (field->subtract)
		fprintf(out, ", subtract: %" PRIu64, field->subtract);
	if (field->divide > 1)
		fprintf(out, ", divide: %" PRIu64, field->divide);
	if (field->modulo)
		fprintf(out, ", modulo: %" PRIu64, field->modulo);
	if (field->times > 1)
		fprintf(out, ", times: %" PRIu64, field->times);
}

static void put_named(FILE *out, const char *name, const struct image_field *field)
{
	if (!field->bytes)
		return;
	fprintf(out, "%s: ", name);
	put_field(out, field);
	fprintf(out, "}\n");
}

static void put_list(FILE *out, enum image_key key, const struct image_field *field)
{
	if (field->bytes)
		fprintf(out, "%s:\n", image_key_path(key));
	for (uint32_t i = 0; i < IMAGE_TERMS_MAX && field[i].bytes; i++) {
		fprintf(out, "  - ");
		put_field(out, &field[i]);
		fprintf(out, "}\n");
	}
}

/* Parser `fields`: what packets are. */
static void put_packets(FILE *out, const struct image_layout *layout)
{
	const bool has_end = layout->kind_end != UINT64_MAX || layout->end_mark.bytes;

	put_named(out, "kind", &layout->kind);
	if (layout->kind_begin != UINT64_MAX)
		fprintf(out, "begin:\n  kind: %" PRIu64 "\n", layout->kind_begin);
	fprintf(out, "data:\n");
	if (layout->kind.bytes)
		fprintf(out, "  kind: %" PRIu64 "\n", layout->kind_data);
	fprintf(out, "  payload: %u\n", layout->payload);
	put_named(out, "  payload_more", &layout->payload_more);
	put_named(out, "  length", &layout->length);
	if (has_end)
		fprintf(out, "end:\n");
	if (layout->kind_end != UINT64_MAX)
		fprintf(out, "  kind: %" PRIu64 "\n", layout->kind_end);
	put_named(out, "  mark", &layout->end_mark);
	put_named(out, "  pieces", &layout->end_pieces);
}

static void put_number_field(FILE *out, const struct image_layout *layout)
{
	if (!layout->number.bytes)
		return;
	fprintf(out, "number: ");
	put_field(out, &layout->number);
	if (layout->number_modulus)
		fprintf(out, ", wrap: %" PRIu64, layout->number_modulus);
	if (layout->number_first)
		fprintf(out, ", first: %" PRIu64, layout->number_first);
	fprintf(out, "}\n");
}

static void put_video(FILE *out, const struct image_layout *layout)
{
	uint64_t sampling, depth;

	put_word(out, IMAGE_KEY_NUMBER_WORD, 0);
	put_word(out, IMAGE_KEY_END_WORD, 0);
	put_number(out, IMAGE_KEY_WIDTH, layout->width);
	put_number(out, IMAGE_KEY_HEIGHT, layout->height);
	if (image_sampling(layout->sampling, &sampling, &depth)) {
		put_word(out, IMAGE_KEY_SAMPLING, sampling);
		put_number(out, IMAGE_KEY_DEPTH, depth);
	}
	fprintf(out, "group: {pixels: %u, bytes: %u}\n", layout->group_pixels, layout->group_bytes);
	put_number(out, IMAGE_KEY_PITCH, layout->pitch);
}

static void put_shape(FILE *out, const struct image_layout *layout)
{
	put_number(out, IMAGE_KEY_BYTES, layout->bytes);
	put_number(out, IMAGE_KEY_PIECE, layout->piece);
	if (layout->row_bytes != layout->bytes || layout->pitch != layout->bytes) {
		put_number(out, IMAGE_KEY_ROW, layout->row_bytes);
		put_number(out, IMAGE_KEY_PITCH, layout->pitch);
	}
	put_word(out, IMAGE_KEY_SIZE, layout->known ? IMAGE_SIZE_FIXED : IMAGE_SIZE_SENDER);
}

static void put_layout(FILE *out, const struct image_layout *layout)
{
	put_word(out, IMAGE_KEY_BASE, layout->base);
	put_word(out, IMAGE_KEY_PARSER, layout->parser);
	if (layout->parser == IMAGE_PARSER_FIELDS)
		put_packets(out, layout);
	put_named(out, "stream", &layout->stream);
	put_number_field(out, layout);
	if (layout->parser == IMAGE_PARSER_RTP_RAW)
		put_video(out, layout);
	else
		fprintf(out, "counts: %s\n", layout->counts ? "true" : "false");
	put_number(out, IMAGE_KEY_LATE, layout->late);
	put_word(out, IMAGE_KEY_LEGS, layout->legs);
	put_list(out, IMAGE_KEY_PLACE, layout->place);
	if (layout->parser != IMAGE_PARSER_RTP_RAW)
		put_shape(out, layout);
	put_named(out, "timestamp", &layout->timestamp);
	put_list(out, IMAGE_KEY_FIELDS, layout->fields);
	put_word(out, IMAGE_KEY_CONVERT, layout->convert);
}

char *image_explain(const struct image_settings *image)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	if (image->name[0])
		fprintf(out, "name: %s\n", image->name);
	put_layout(out, &image->layout);
	put_number(out, IMAGE_KEY_RING, image->ring);
	put_number(out, IMAGE_KEY_OPEN, image->open);
	put_time(out, IMAGE_KEY_TIMEOUT, image->timeout_us);
	put_time(out, IMAGE_KEY_LINGER, image->linger_us);
	if (image->fill < 0)
		fprintf(out, "fill: none\n");
	else
		put_number(out, IMAGE_KEY_FILL, (uint64_t)image->fill);
	put_word(out, IMAGE_KEY_INCOMPLETE, image->drop_incomplete);
	put_word(out, IMAGE_KEY_FULL, image->drop_oldest);
	put_word(out, IMAGE_KEY_ENGINE, image->engine);
	if (image->match.count)
		fprintf(out, "match:\n");
	for (uint32_t i = 0; i < image->match.count; i++)
		fprintf(out, "  - \"%s\"\n", image->match.rule[i].text);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}
