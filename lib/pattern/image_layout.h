/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an image is on the wire: which header fields say to which image of which stream a frame belongs,
 * where in the image its payload goes, and when the image ends. Made from YAML or a preset by
 * config/image_yaml.c, which proves the bounds; read by the placers (image_parse.h). An image is one
 * contiguous object: a picture, or a block of samples. Plain data, passed by value to kernels; compiles
 * as C and CUDA.
 *
 * Presence. An image's bytes are divided into pieces of `piece` bytes, and a bitmap has a bit for each.
 * A piece is the smallest thing that can be missing: what a packet carries (GVSP: its payload), or a
 * divisor of it where packets differ (RFC 4175: a pixel group; SPEAD: 8 bytes). A packet fills one piece
 * or several that follow each other. Where rows are padded (`pitch` > `row_bytes`), padding is no piece:
 *
 *   place of piece i = i / row_pieces * pitch + i % row_pieces * piece
 *
 * The last piece of a row may be shorter.
 *
 * All sizes and places are of bytes as sent. Where they are converted, the image's buffer has others:
 * image_in_buffer() says how many. Pieces, rows and what is between them are whole groups then, and so
 * is what a packet brings.
 */
#ifndef GDRCAP_IMAGE_LAYOUT_H
#define GDRCAP_IMAGE_LAYOUT_H

#include "pattern/frame_match.h"
#include "pattern/image_convert.h"

#define IMAGE_TERMS_MAX 4u
#define IMAGE_FIELDS_MAX 4u
/* Fields end this many bytes after their base, at most: no more of a frame is read for them. */
#define IMAGE_FIELD_END_MAX 256u
#define IMAGE_BYTES_MAX ((uint64_t)1 << 32)
#define IMAGE_PIECES_MAX (1u << 27) /* a bitmap of 16 MiB */

enum image_base {
	IMAGE_BASE_FRAME, /* fields count from the frame's first byte */
	IMAGE_BASE_UDP, /* from the first byte after the UDP header, which is found in each frame through
			   * up to two VLAN tags, IPv4 with options or IPv6; other frames are filtered */
};

enum image_parser {
	IMAGE_PARSER_FIELDS,  /* the fields below say all */
	IMAGE_PARSER_GVSP,    /* GigE Vision: both id modes; kind, number and place are known */
	IMAGE_PARSER_RTP_RAW, /* RFC 4175, ST 2110-20: line headers */
	IMAGE_PARSER_SPEAD,   /* SPEAD-64-48: items by id, in any order */
};

/*
 * An unsigned number: ((bytes >> shift & mask) - subtract) / divide % modulo * times. A frame that ends
 * before it, or whose number is less than `subtract`, is a misfit.
 */
struct image_field {
	uint16_t at;	/* first byte, from the base; with `item` a SPEAD item's id */
	uint8_t bytes;	/* 1..8; 0: there is no such field */
	uint8_t little; /* 1: least significant byte first */
	uint8_t item;	/* 1: the value of SPEAD item `at` */
	uint8_t shift;	/* 0..63 */
	uint8_t reserved[2];
	uint64_t mask;		   /* after the shift; all ones: whole */
	uint64_t subtract, divide; /* divide: 1.. */
	uint64_t modulo;	   /* 0: none */
	uint64_t times;		   /* 0 only where the product is not wanted */
};

struct image_layout {
	struct frame_match match; /* frames that no rule names are filtered */
	uint32_t base;		  /* enum image_base */
	uint32_t parser;	  /* enum image_parser */

	/* What a packet is; bytes 0: every one brings data. Values apart from the three: filtered. */
	struct image_field kind;
	uint64_t kind_begin, kind_data, kind_end; /* UINT64_MAX: there is no such packet */

	struct image_field stream; /* its id; bytes 0: one stream */

	/* Which image of the stream. On the wire numbers run from `first` and after first + modulus - 1
	 * again from `first`; others are misfits. modulus 0: 2^64. */
	struct image_field number;
	uint64_t number_first, number_modulus;
	uint64_t
		late; /* a number so many, or fewer, behind the newest that was handed out is late; one
			   * further behind begins the stream anew */
	uint32_t
		counts; /* 1: numbers go on by one, so that skipped images can be counted; 0: a time stamp */
	uint32_t
		legs; /* senders (image_source.h) that bring the same images: 1, 2; 0: any number */

	/* Where the payload goes: the sum of the terms, bytes from the image's first. */
	struct image_field place[IMAGE_TERMS_MAX];
	uint32_t place_terms;

	/* The payload: from the base + payload + payload_more's value to the datagram's or frame's end, or
	 * as long as `length` says. */
	uint32_t payload;
	struct image_field payload_more, length;

	uint64_t bytes;		   /* of an image, with its rows' padding; the most there can be */
	uint64_t row_bytes, pitch; /* without rows both are `bytes` */
	uint32_t piece;		   /* bytes of a piece: see above */
	uint32_t row_pieces;	   /* (row_bytes + piece - 1) / piece */
	uint32_t pieces;	   /* in `bytes`: bits of the bitmap */
	uint32_t
		partial; /* 1: a packet's last piece may be shorter anywhere, since only the sender knows
			   * where the image ends; 0: only at the end of a row, or of the image */
	uint32_t
		known; /* 1: an image is complete when all `pieces` are there, or as many as the sender
			   * says; 0: only the sender says how many */

	uint8_t convert;		  /* enum image_convert */
	uint8_t convert_from, convert_to; /* bytes of its groups; not read where it is 0 */
	uint8_t sampling; /* of image_sampling(); 0: not given. For people, and programs that show it */

	/* The end. In a packet of kind_end, or with a data packet where end_mark's value is not 0. */
	struct image_field end_mark;
	struct image_field end_pieces; /* how many there are, in that packet; bytes 0: not said */

	/* What the sender says of the image: in its leader, or, where there are none, in the packet that
	 * comes first. */
	struct image_field timestamp, fields[IMAGE_FIELDS_MAX];

	/* IMAGE_PARSER_RTP_RAW */
	uint32_t width, height;		    /* pixels */
	uint32_t group_pixels, group_bytes; /* RFC 4175's pgroup */
};

/* What a place, or whole pieces of `bytes` bytes as sent, are in the image's buffer. */
GDRCAP_HD uint64_t image_in_buffer(const struct image_layout *layout, uint64_t bytes)
{
	return layout->convert ? bytes / layout->convert_from * layout->convert_to : bytes;
}

/* Bytes of piece `i`, less than `piece` at a row's or the image's end. */
GDRCAP_HD uint32_t image_piece_bytes(const struct image_layout *layout, uint32_t i)
{
	const uint64_t at = (uint64_t)(i % layout->row_pieces) * layout->piece;
	const uint64_t row = (uint64_t)(i / layout->row_pieces) * layout->pitch;
	const uint64_t end =
		row + layout->row_bytes < layout->bytes ? layout->row_bytes : layout->bytes - row;

	return (uint32_t)(end - at < layout->piece ? end - at : layout->piece);
}

/* Its first byte, from the image's. */
GDRCAP_HD uint64_t image_piece_place(const struct image_layout *layout, uint32_t i)
{
	return (uint64_t)(i / layout->row_pieces) * layout->pitch +
	       (uint64_t)(i % layout->row_pieces) * layout->piece;
}

#endif
