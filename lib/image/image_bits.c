/* SPDX-License-Identifier: BSD-3-Clause */
/* The bitmap of an image's pieces, on the CPU. */
#include <string.h>

#include "image/assembler.h"

/* The first piece from `i` on that is there, or is not; `pieces`: none. */
static uint32_t bits_next(const uint32_t *present, uint32_t i, uint32_t pieces, bool there)
{
	const uint32_t flip = there ? 0 : UINT32_MAX;

	while (i < pieces) {
		const uint32_t word = (present[i / 32] ^ flip) >> (i % 32);

		if (word) {
			i += (uint32_t)__builtin_ctz(word);
			break;
		}
		i = (i / 32 + 1) * 32;
	}
	return i < pieces ? i : pieces;
}

/* The end of the bytes of pieces `from` to `to` that follow each other: a row's padding ends them. */
static uint32_t row_end(const struct image_layout *layout, uint32_t from, uint32_t to)
{
	const uint32_t row = (from / layout->row_pieces + 1) * layout->row_pieces;

	return layout->pitch > layout->row_bytes && row < to ? row : to;
}

uint32_t image_bits_missing(const struct image_layout *layout, const uint32_t *present,
			    uint32_t pieces, struct gdrcap_range *ranges, uint32_t max)
{
	uint32_t count = 0;

	for (uint32_t from = bits_next(present, 0, pieces, false); from < pieces;
	     from = bits_next(present, from, pieces, false)) {
		const uint32_t to = bits_next(present, from, pieces, true);

		for (; from < to; count++) {
			const uint32_t end = row_end(layout, from, to);

			if (count < max) {
				const uint64_t at = image_piece_place(layout, from);
				const uint64_t past = image_piece_place(layout, end - 1) +
						      image_piece_bytes(layout, end - 1);

				ranges[count].from = image_in_buffer(layout, at);
				ranges[count].bytes = image_in_buffer(layout, past - at);
			}
			from = end;
		}
	}
	return count;
}

uint32_t image_bits_first(const uint32_t *present, uint32_t pieces)
{
	return bits_next(present, 0, pieces, true);
}

uint32_t image_bits_past(const uint32_t *present, uint32_t pieces)
{
	uint32_t w = place_words(pieces);

	while (w && !present[w - 1])
		w--;
	return w ? w * 32 - (uint32_t)__builtin_clz(present[w - 1]) : 0;
}

void image_bits_fill(uint32_t *present, uint32_t words, uint32_t pieces)
{
	const uint32_t whole = pieces / 32;

	memset(present, 0xff, (size_t)whole * sizeof(*present));
	memset(present + whole, 0, (size_t)(words - whole) * sizeof(*present));
	if (pieces % 32)
		present[whole] = ((uint32_t)1 << pieces % 32) - 1;
}
