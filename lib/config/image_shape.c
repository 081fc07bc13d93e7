/* SPDX-License-Identifier: BSD-3-Clause */
/* From what was written of a layout to the layout: bytes, rows, pieces, and where payloads go. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_common.h>

#include "config/image_settle.h"
#include "pattern/image_parse.h"

/* Pixel groups of RFC 4175, section 4.3, but for 4:2:0, whose groups are of two lines. By sampling,
 * in the order of its words, and depth. */
static const struct {
	uint8_t sampling, depth, pixels, bytes;
} groups[] = {
	{ 0, 8, 2, 4 }, { 0, 10, 2, 5 },  { 0, 12, 2, 6 }, { 0, 16, 2, 8 },  /* YCbCr-4:2:2 */
	{ 1, 8, 4, 6 }, { 1, 10, 8, 15 }, { 1, 12, 4, 9 }, { 1, 16, 4, 12 }, /* YCbCr-4:1:1 */
	{ 2, 8, 1, 3 }, { 2, 10, 4, 15 }, { 2, 12, 2, 9 }, { 2, 16, 1, 6 },  /* YCbCr-4:4:4 */
	{ 3, 8, 1, 3 }, { 3, 10, 4, 15 }, { 3, 12, 2, 9 }, { 3, 16, 1, 6 },  /* RGB */
	{ 4, 8, 1, 3 }, { 4, 10, 4, 15 }, { 4, 12, 2, 9 }, { 4, 16, 1, 6 },  /* BGR */
	{ 5, 8, 1, 4 }, { 5, 10, 1, 5 },  { 5, 12, 1, 6 }, { 5, 16, 1, 8 },  /* RGBA */
	{ 6, 8, 1, 4 }, { 6, 10, 1, 5 },  { 6, 12, 1, 6 }, { 6, 16, 1, 8 },  /* BGRA */
};

bool image_sampling(uint32_t row, uint64_t *sampling, uint64_t *depth)
{
	if (row < 1 || row > RTE_DIM(groups))
		return false;
	*sampling = groups[row - 1].sampling;
	*depth = groups[row - 1].depth;
	return true;
}

static int missing(const struct image_draft *draft, enum image_key key, const char *what)
{
	return image_draft_refuse_key(draft, key, "is missing: %s", what);
}

/* ---- rows of pixels ---- */

static int settle_group(const struct image_draft *draft, struct image_layout *layout)
{
	const uint64_t depth = draft->value[IMAGE_KEY_DEPTH];

	layout->group_pixels = (uint32_t)draft->value[IMAGE_KEY_GROUP_PIXELS];
	layout->group_bytes = (uint32_t)draft->value[IMAGE_KEY_GROUP_BYTES];
	if (!draft->given[IMAGE_KEY_SAMPLING]) {
		if (draft->given[IMAGE_KEY_DEPTH])
			return missing(draft, IMAGE_KEY_SAMPLING, "depth is of a sampling");
		if (!layout->group_pixels || !layout->group_bytes)
			return missing(draft,
				       layout->group_pixels ? IMAGE_KEY_GROUP_BYTES
							    : IMAGE_KEY_GROUP_PIXELS,
				       "give a pixel group's pixels and bytes, or sampling and "
				       "depth");
		return 0;
	}
	for (uint32_t i = 0; i < RTE_DIM(groups); i++)
		if (groups[i].sampling == draft->value[IMAGE_KEY_SAMPLING] &&
		    groups[i].depth == depth) {
			/* Both are in what image_explain() writes, and agree there. */
			if ((layout->group_pixels && layout->group_pixels != groups[i].pixels) ||
			    (layout->group_bytes && layout->group_bytes != groups[i].bytes))
				return image_draft_refuse_key(
					draft, IMAGE_KEY_SAMPLING,
					"says what group says, and not the same: its groups are of "
					"%u pixels and %u bytes; give one of the two",
					groups[i].pixels, groups[i].bytes);
			layout->group_pixels = groups[i].pixels;
			layout->group_bytes = groups[i].bytes;
			layout->sampling = (uint8_t)(i + 1);
			return 0;
		}
	return image_draft_refuse_key(draft, IMAGE_KEY_DEPTH,
				      "%" PRIu64 " bits; allowed: 8, 10, 12 or 16", depth);
}

static int settle_video(const struct image_draft *draft, struct image_layout *layout)
{
	layout->width = (uint32_t)draft->value[IMAGE_KEY_WIDTH];
	layout->height = (uint32_t)draft->value[IMAGE_KEY_HEIGHT];
	if (!layout->width || !layout->height)
		return missing(draft, layout->width ? IMAGE_KEY_HEIGHT : IMAGE_KEY_WIDTH,
			       "the picture's, in pixels");
	if (settle_group(draft, layout))
		return -EINVAL;
	if (layout->width % layout->group_pixels)
		return image_draft_refuse_key(draft, IMAGE_KEY_WIDTH,
					      "%u pixels are no whole groups of %u", layout->width,
					      layout->group_pixels);
	layout->piece = layout->group_bytes;
	layout->row_bytes = (uint64_t)layout->width / layout->group_pixels * layout->group_bytes;
	layout->pitch =
		draft->given[IMAGE_KEY_PITCH] ? draft->value[IMAGE_KEY_PITCH] : layout->row_bytes;
	layout->bytes = layout->pitch * layout->height;
	if (draft->given[IMAGE_KEY_BYTES] && draft->value[IMAGE_KEY_BYTES] != layout->bytes)
		return image_draft_refuse_key(draft, IMAGE_KEY_BYTES,
					      "%u rows of %" PRIu64 " bytes are %" PRIu64
					      "; leave it out",
					      layout->height, layout->pitch, layout->bytes);
	return 0;
}

/* ---- bytes and pieces ---- */

static int settle_bytes(const struct image_draft *draft, struct image_layout *layout)
{
	const uint64_t pieces = draft->value[IMAGE_KEY_PIECES];

	layout->piece = (uint32_t)draft->value[IMAGE_KEY_PIECE];
	if (!layout->piece && layout->parser == IMAGE_PARSER_SPEAD)
		layout->piece = 8;
	if (!layout->piece)
		return missing(draft, IMAGE_KEY_PIECE,
			       layout->parser == IMAGE_PARSER_GVSP
				       ? "the bytes of a full packet's payload, which is the "
					 "camera's packet size less 36"
				       : "the bytes that a packet brings, or a divisor of them "
					 "where packets differ");
	layout->bytes = draft->given[IMAGE_KEY_BYTES] ? draft->value[IMAGE_KEY_BYTES]
						      : pieces * layout->piece;
	if (!layout->bytes)
		return missing(draft, IMAGE_KEY_BYTES, "how large an image is, at most");
	layout->row_bytes =
		draft->given[IMAGE_KEY_ROW] ? draft->value[IMAGE_KEY_ROW] : layout->bytes;
	layout->pitch =
		draft->given[IMAGE_KEY_PITCH] ? draft->value[IMAGE_KEY_PITCH] : layout->row_bytes;
	if (draft->given[IMAGE_KEY_PITCH] && !draft->given[IMAGE_KEY_ROW])
		return missing(draft, IMAGE_KEY_ROW,
			       "the bytes of a row without the padding that "
			       "pitch adds");
	return 0;
}

/* An image is a heap: its bytes lie where item 3 says, from the heap's first. */
static bool is_heap(const struct image_draft *draft, const struct image_layout *layout)
{
	const struct draft_field *place = &draft->field[IMAGE_KEY_PLACE][0];

	return layout->parser == IMAGE_PARSER_SPEAD && draft->value[IMAGE_KEY_PLACE] == 1 &&
	       place->given == 1u << FIELD_KEY_ITEM &&
	       place->value[FIELD_KEY_ITEM] == IMAGE_SPEAD_OFFSET;
}

/* Does the sender say how many pieces an image has? */
static int settle_known(const struct image_draft *draft, struct image_layout *layout)
{
	const bool says = layout->parser == IMAGE_PARSER_GVSP || layout->end_pieces.bytes ||
			  is_heap(draft, layout);

	layout->known = draft->given[IMAGE_KEY_SIZE]
				? draft->value[IMAGE_KEY_SIZE] == IMAGE_SIZE_FIXED
				: !says;
	layout->partial = !layout->known;
	if (!layout->known && !says)
		return image_draft_refuse_key(
			draft, IMAGE_KEY_SIZE,
			layout->parser == IMAGE_PARSER_SPEAD
				? "a heap's size is an image's only with place: {item: 3}; give "
				  "size: fixed"
				: "no packet says how many pieces there are; give end.pieces, or "
				  "size: fixed");
	return 0;
}

int image_settle_shape(const struct image_draft *draft, struct image_layout *layout)
{
	const bool video = layout->parser == IMAGE_PARSER_RTP_RAW;
	uint64_t rest, pieces;

	if (video ? settle_video(draft, layout) : settle_bytes(draft, layout))
		return -EINVAL;
	if (settle_known(draft, layout))
		return -EINVAL;
	if (layout->bytes > IMAGE_BYTES_MAX)
		return image_draft_refuse_key(draft, video ? IMAGE_KEY_HEIGHT : IMAGE_KEY_PIECES,
					      "an image of %" PRIu64 " bytes; allowed: up to 4 GiB",
					      layout->bytes);
	if (layout->pitch < layout->row_bytes)
		return image_draft_refuse_key(draft, IMAGE_KEY_PITCH,
					      "%" PRIu64 " is less than a row's %" PRIu64 " bytes",
					      layout->pitch, layout->row_bytes);
	if (layout->row_bytes > layout->bytes)
		return image_draft_refuse_key(draft, IMAGE_KEY_ROW,
					      "%" PRIu64 " bytes, of an image of %" PRIu64,
					      layout->row_bytes, layout->bytes);
	if (layout->piece > layout->row_bytes)
		return image_draft_refuse_key(
			draft, IMAGE_KEY_PIECE, "%u bytes, in %s of %" PRIu64, layout->piece,
			layout->row_bytes < layout->bytes ? "a row" : "an image",
			layout->row_bytes);
	pieces = (layout->row_bytes + layout->piece - 1) / layout->piece;
	layout->row_pieces = (uint32_t)pieces;
	rest = RTE_MIN(layout->bytes % layout->pitch, layout->row_bytes);
	pieces =
		layout->bytes / layout->pitch * pieces + (rest + layout->piece - 1) / layout->piece;
	if (pieces > IMAGE_PIECES_MAX)
		return image_draft_refuse_key(draft, video ? IMAGE_KEY_WIDTH : IMAGE_KEY_PIECE,
					      "%" PRIu64 " pieces of %u bytes; allowed: up to "
					      "2^27 (a larger piece makes fewer)",
					      pieces, layout->piece);
	layout->pieces = (uint32_t)pieces;
	if (draft->given[IMAGE_KEY_PIECES] && draft->value[IMAGE_KEY_PIECES] != pieces)
		return image_draft_refuse_key(
			draft, IMAGE_KEY_PIECES,
			"%" PRIu64 " bytes in pieces of %u are %" PRIu64 "; %s", layout->bytes,
			layout->piece, pieces,
			draft->given[IMAGE_KEY_BYTES] ? "leave it out" : "give bytes instead");
	return 0;
}

/* ---- conversion ---- */

static int check_groups(const struct image_draft *draft, const struct image_layout *layout,
			enum image_key key, uint64_t bytes)
{
	const uint32_t from = layout->convert_from;

	if (bytes % from == 0)
		return 0;
	return image_draft_refuse_key(draft, key,
				      "%" PRIu64 " bytes are no whole groups of %u, which convert: "
				      "%s makes %u bytes of; give a multiple of %u",
				      bytes, from,
				      image_key_word(IMAGE_KEY_CONVERT, layout->convert),
				      layout->convert_to, from);
}

int image_settle_convert(const struct image_draft *draft, struct image_layout *layout)
{
	const bool video = layout->parser == IMAGE_PARSER_RTP_RAW;

	layout->convert = (uint8_t)draft->value[IMAGE_KEY_CONVERT];
	if (!layout->convert)
		return 0;
	layout->convert_from = (uint8_t)image_convert_from(layout->convert);
	layout->convert_to = (uint8_t)image_convert_to(layout->convert);
	if (video && layout->piece % layout->convert_from)
		return image_draft_refuse_key(draft, IMAGE_KEY_CONVERT,
					      "pixel groups of %u bytes are no whole groups of %u, "
					      "of which %s makes %u bytes; give another",
					      layout->piece, layout->convert_from,
					      image_key_word(IMAGE_KEY_CONVERT, layout->convert),
					      layout->convert_to);
	if (check_groups(draft, layout, IMAGE_KEY_PIECE, layout->piece) ||
	    (!video && check_groups(draft, layout, IMAGE_KEY_BYTES, layout->bytes)) ||
	    check_groups(draft, layout, IMAGE_KEY_ROW, layout->row_bytes) ||
	    check_groups(draft, layout, IMAGE_KEY_PITCH, layout->pitch))
		return -EINVAL;
	if (image_in_buffer(layout, layout->bytes) > IMAGE_BYTES_MAX)
		return image_draft_refuse_key(draft, IMAGE_KEY_CONVERT,
					      "makes %" PRIu64 " bytes of an image; allowed: up to "
					      "4 GiB",
					      image_in_buffer(layout, layout->bytes));
	return 0;
}

/* ---- where payloads go ---- */

/* The terms of `key`, times `unit`. */
static int settle_terms(const struct image_draft *draft, enum image_key key, uint64_t unit,
			struct image_field term[IMAGE_TERMS_MAX], uint64_t most[IMAGE_TERMS_MAX])
{
	for (uint32_t i = 0; i < IMAGE_TERMS_MAX; i++) {
		if (image_settle_field(draft, key, i, &term[i], &most[i]))
			return -EINVAL;
		if (most[i] > UINT64_MAX / unit)
			return image_draft_refuse(draft, draft->field[key][i].line,
						  image_key_path(key),
						  "its value can pass 64 bits: up to %" PRIu64
						  " pieces of %" PRIu64 " bytes",
						  most[i], unit);
		term[i].times *= unit;
		most[i] *= unit;
	}
	return 0;
}

static int check_terms(const struct image_draft *draft, enum image_key key,
		       const struct image_layout *layout, const uint64_t most[IMAGE_TERMS_MAX])
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < layout->place_terms; i++) {
		const unsigned int line = draft->field[key][i].line;

		if (most[i] > UINT64_MAX - sum)
			return image_draft_refuse(draft, line, image_key_path(key),
						  "the sum of the terms can pass 64 bits");
		sum += most[i];
		if (most[i] && layout->place[i].times >= layout->bytes)
			return image_draft_refuse(draft, line, image_key_path(key),
						  "every value but 0 is past the image's %" PRIu64
						  " bytes",
						  layout->bytes);
	}
	if (layout->known && sum < layout->bytes && layout->bytes - sum > FRAME_MAX_BYTES)
		return image_draft_refuse_key(
			draft, key,
			"no packet can reach the end of the image: places go up to %" PRIu64
			" of %" PRIu64 " bytes; check the terms, and bytes",
			sum, layout->bytes);
	return 0;
}

int image_settle_place(const struct image_draft *draft, struct image_layout *layout)
{
	struct image_field indices[IMAGE_TERMS_MAX];
	uint64_t most[IMAGE_TERMS_MAX], most_index[IMAGE_TERMS_MAX];
	const bool by_index = draft->given[IMAGE_KEY_INDEX];
	uint64_t unused;

	if (image_settle_field(draft, IMAGE_KEY_PAYLOAD_MORE, 0, &layout->payload_more, &unused) ||
	    image_settle_field(draft, IMAGE_KEY_LENGTH, 0, &layout->length, &unused))
		return -EINVAL;
	layout->payload = (uint32_t)draft->value[IMAGE_KEY_PAYLOAD];
	if (layout->parser == IMAGE_PARSER_GVSP || layout->parser == IMAGE_PARSER_RTP_RAW)
		return 0;
	if (layout->parser == IMAGE_PARSER_SPEAD && !by_index && !draft->given[IMAGE_KEY_PLACE])
		return missing(draft, IMAGE_KEY_PLACE,
			       "where payloads go; {item: 3} is from the heap's first byte");
	if (settle_terms(draft, IMAGE_KEY_PLACE, 1, layout->place, most) ||
	    settle_terms(draft, IMAGE_KEY_INDEX, layout->piece, indices, most_index))
		return -EINVAL;
	if (by_index && layout->pitch != layout->row_bytes)
		return image_draft_refuse_key(draft, IMAGE_KEY_INDEX,
					      "does not skip the padding of rows; give place");
	if (by_index && draft->given[IMAGE_KEY_PLACE] &&
	    memcmp(indices, layout->place, sizeof(indices)) != 0)
		return image_draft_refuse_key(draft, IMAGE_KEY_INDEX,
					      "is not place divided by piece, %u; leave one of the "
					      "two out",
					      layout->piece);
	if (by_index) {
		memcpy(layout->place, indices, sizeof(indices));
		memcpy(most, most_index, sizeof(most));
	}
	while (layout->place_terms < IMAGE_TERMS_MAX && layout->place[layout->place_terms].bytes)
		layout->place_terms++;
	return check_terms(draft, by_index ? IMAGE_KEY_INDEX : IMAGE_KEY_PLACE, layout, most);
}
