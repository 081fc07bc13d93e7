/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The own frame, and how frames of others are read.
 *
 * The own frame: Ethernet (802.1Q tag optional), or Ethernet/IPv4/UDP, then a 36-byte header, then
 * the payload. docs/frame-format.md is the same for FPGA engineers. All fields are big-endian.
 *
 *   offset  bytes  field
 *        0      2  magic 0x6743 ("gC")
 *        2      1  version 1
 *        3      1  pattern (enum pattern_kind)
 *        4      2  stream id
 *        6      2  payload length, bytes
 *        8      8  sequence number, from 0, +1 a frame of the stream
 *       16      8  position in the stream of the payload's first byte
 *       24      8  send time, ns since the Unix epoch
 *       32      4  CRC32C (RFC 3720 B.4, reflected 0x82f63b78) of the 32 bytes before it
 *
 * Frame sizes named to users include the 4-byte FCS; lengths in memory ("len") do not.
 * Bytes after the payload (Ethernet padding) are not checked.
 */
#ifndef GDRCAP_FRAME_H
#define GDRCAP_FRAME_H

#include "pattern/frame_match.h"
#include "pattern/pattern.h"

#define FRAME_MAGIC 0x6743u
#define FRAME_VERSION 1u
#define FRAME_HEADER_BYTES 36u
#define FRAME_FCS_BYTES 4u
#define FRAME_MIN_BYTES 64u	/* with FCS */
#define FRAME_MAX_BYTES 9216u	/* with FCS */
#define FRAME_ETHERTYPE 0x88b5u /* IEEE 802 local experimental 1 */
#define FRAME_MAX_OVERHEAD (14u + 4u + 20u + 8u + FRAME_HEADER_BYTES)
/* Header field `pattern` of an end-of-stream frame: no payload, `sequence` is the number of frames
 * that the stream had, `position` the number of the sender's streams. */
#define FRAME_PATTERN_END 0xffu
/* Frames of a custom layout: the payload, and what the checker reads before it, begin in this many bytes. */
#define FRAME_CUSTOM_PAYLOAD_MAX 100u
#define FRAME_FIELD_END_MAX 112u /* and their fields end there */
/* Header-data split: bytes of a frame's first piece at most. All that says what a frame is lies in
 * this many bytes: headers, fields, and where the payload begins. */
#define FRAME_HEAD_BYTES_MAX 128u

enum frame_format {
	FRAME_ETHERNET = 0, /* own header after the EtherType */
	FRAME_IPV4_UDP = 1,
	FRAME_CUSTOM = 2, /* somebody else's, as described in struct frame_custom */
};

/* An unsigned number in a frame of a custom layout. */
struct frame_field {
	uint16_t offset; /* bytes from the frame's first */
	uint8_t bytes;	 /* 1..8; 0: the frame has no such field */
	uint8_t little;	 /* 1: least significant byte first */
};

/*
 * Where things are in a frame of a custom layout. A frame is ours when a rule of layout.match says so, or when
 * there are no rules.
 */
struct frame_custom {
	struct frame_field sequence, stream;
	uint64_t sequence_start, sequence_step; /* numbers of a stream: start, start + step, ... in
						 * `sequence.bytes` bytes, going on from 0 after the
						 * largest: frame_number() */
	uint32_t payload;	/* offset of its first byte, at most FRAME_CUSTOM_PAYLOAD_MAX */
	uint32_t payload_bytes; /* 0: to the frame's end */
	/*
	 * 1: a PRBS that runs on through the stream: each frame's phase is found in its own data,
	 * and the verdict follows it from frame to frame (phase.h). 0: the pattern restarts in each
	 * frame, or its position is frame number x payload bytes.
	 */
	uint32_t self_phase;
	uint32_t reserved;
};

/*
 * What a frame of this run looks like, decided at start. The first `own_offset` bytes are a
 * template that the sender copies; the receiver recognises an own frame by them. Plain data,
 * passed by value to kernels.
 */
struct frame_layout {
	uint32_t format;      /* enum frame_format */
	uint32_t own_offset;  /* where the own header starts: 14, 18, 42 or 46; custom: 0 */
	uint32_t raw;	      /* 1: no own header; the payload starts at own_offset and is a
		       * restarting pattern (the proof of concept's first frame) */
	uint32_t raw_payload; /* raw: expected payload bytes */
	uint16_t ethertype;   /* of the innermost tag, host order */
	uint16_t vlan;	   /* 0: untagged; else TCI, host order (the receiver accepts tagged frames
			* of this VID only) */
	uint16_t udp_port; /* destination, host order; FRAME_IPV4_UDP only */
	uint8_t templ[48]; /* Ethernet .. UDP header; IPv4 length/id/checksum and UDP
			    * length/checksum 0 */
	struct frame_custom custom; /* FRAME_CUSTOM */
	struct frame_match match;   /* frames that no rule names are FRAME_FILTERED */
};

/* The header's fields in host order. */
struct frame_header {
	uint64_t sequence, position, time_ns;
	uint16_t stream, payload_bytes;
	uint16_t source; /* of a frame that was read: frame_result.source; not written */
	uint8_t pattern, version;
};

/* What a checker says of one frame. The numbers are stable: they are in the JSON as text. */
enum frame_verdict {
	FRAME_VALID = 0,
	FRAME_DAMAGED_PAYLOAD, /* header readable, payload bits wrong */
	FRAME_DAMAGED_HEADER,  /* own frame, header unreadable (magic, version or CRC32C) */
	FRAME_DAMAGED_LENGTH,  /* header readable but claims more payload than the frame has, or the
			       * frame is too short for a header: the first is attributable to
			       * its sequence number (header_ok = 1) */
	FRAME_FILTERED,	       /* not ours */
	FRAME_DAMAGED_UNLOCKED, /* custom layout's PRBS: so much is wrong that no phase can be found */
	FRAME_END,		/* end of a stream: no data, counted as filtered */
	FRAME_DAMAGED_STALE,	/* the bytes were not there yet when the completion said so: a
			      * visibility fault, not damage on the way. They came within stale_us,
			      * and the header fields are those of the frame that came; or nothing
			      * of it did, and header_ok is 0 */
	FRAME_VERDICTS
};

/* What a frame cannot be a damaged one of. */
GDRCAP_HD int frame_is_damaged(uint32_t verdict)
{
	return verdict != FRAME_VALID && verdict != FRAME_FILTERED && verdict != FRAME_END;
}

struct frame_result {
	uint64_t sequence;	/* own frame: its number; custom: the field as it is on the wire, 0
			    * without one; expected from a file: index of the first frame there
			    * with this content; FRAME_END: frames that the stream had */
	uint32_t stream;	/* 0..65535 */
	uint32_t payload_bytes; /* bytes compared; PATTERN_NONE: 0 */
	uint32_t wrong_bits;
	uint16_t offset; /* first wrong byte, from the frame's first byte; own_offset for a damaged
			  * header or length */
	uint8_t expected, got;
	uint8_t verdict;   /* enum frame_verdict */
	uint8_t header_ok; /* 1: stream and sequence can be trusted (raw frames: always 0 and 0) */
	uint16_t source;   /* own frames: who sent it, frame_source(); others: 0 */
	/* custom.self_phase, and a phase was found: the 32 uninverted bits (first in bit 31) that
	 * the payload should begin with, and those that should follow its last bit. Own frame 0 of its
	 * stream: phase_first is the upper half of its send time. Else 0. */
	uint32_t phase_first, phase_next;
	uint32_t detail; /* FRAME_END: streams of the sender; FRAME_DAMAGED_UNLOCKED: payload bytes
			  * that could not be compared; own frame 0 of its stream: the lower half of its
			  * send time; else 0 */
};

/* CRC32C of n bytes; `table` is frame_crc32c_table (host) or its device copy. */
GDRCAP_HD uint32_t frame_crc32c(const uint32_t *table, const uint8_t *bytes, uint32_t n);

/*
 * Decides whether the frame is ours and reads its header. FRAME_VALID means: payload of
 * header->payload_bytes bytes at frame_payload_offset(layout) is to be compared. Reads only
 * frame[0 .. len). Any bytes are safe input. A raw frame counts as stream 0, sequence 0, pattern
 * PATTERN_COUNTER8, header_ok = 1. Where several threads share the work, or the CRC32C is computed
 * otherwise: frame_recognise(), frame_read_header(), frame_result_begin() in frame_check.h.
 */
GDRCAP_HD enum frame_verdict frame_parse(const struct frame_layout *layout,
					 const uint32_t *crc_table, const uint8_t *frame,
					 uint32_t len, struct frame_header *header, int *header_ok);

/*
 * The whole check, byte by byte with pattern_word(): the reference that the fast paths must equal
 * in every field. A header that names another pattern is FRAME_DAMAGED_HEADER with
 * header_ok = 1.
 */
GDRCAP_HD void frame_check(const struct frame_layout *layout, const struct pattern *pattern,
			   const uint32_t *crc_table, const uint8_t *frame, uint32_t len,
			   struct frame_result *result);

/*
 * Own frames only; of FRAME_CUSTOM nothing is ever written.
 *
 * Writes template, IPv4/UDP lengths and IPv4 checksum, and the own header; not the payload and not
 * the UDP checksum. `len` is the length in memory (without FCS). A payload_bytes that does not fit
 * is cut to what frame_payload_bytes() says. Returns the payload's offset; 0, with nothing written,
 * when len is too short for the headers.
 */
GDRCAP_HD uint32_t frame_write_headers(const struct frame_layout *layout, const uint32_t *crc_table,
				       uint8_t *frame, uint32_t len,
				       const struct frame_header *header);

/* Payload bytes that a frame of `len` bytes in memory carries (0 if it is too short). A len above
 * 9212 counts as 9212. */
GDRCAP_HD uint32_t frame_payload_bytes(const struct frame_layout *layout, uint32_t len);

/* ---- host only: lib/pattern/frame.c ---- */
#ifdef __cplusplus
extern "C" {
#endif

extern const uint32_t frame_crc32c_table[256];

struct frame_config {
	enum frame_format format;
	uint16_t ethertype;		/* 0: FRAME_ETHERTYPE (ignored for IPv4/UDP) */
	uint16_t vlan;			/* 0: untagged */
	uint8_t src_mac[6], dst_mac[6]; /* all zero: 02:00:00:00:00:01 and :02 */
	uint32_t src_ip, dst_ip;	/* host order; 0: 192.0.2.1 and 192.0.2.2 (RFC 5737) */
	uint16_t src_port, dst_port;	/* 0: 12345 */
};

/* FRAME_CUSTOM: layout->custom is the caller's to fill in afterwards. layout->match stays empty.
 * 0; -EINVAL for an unknown format, VID 4095, a group as source, or an EtherType that is a length
 * or a VLAN tag. */
int frame_layout_init(struct frame_layout *layout, const struct frame_config *config);

/* The published proof of concept's frame: Ethernet/IPv4/UDP to port 12345, 32 payload bytes 0..31.
 * Its pattern is PATTERN_COUNTER8 with restart. */
void frame_layout_proof(struct frame_layout *layout);

/*
 * What frame_recognise() asks of an own frame's bytes, for who compares them all at once: each word
 * of the frame's beginning, byte 0 in bits 7..0, is `want` where `mask` has ones. How long the
 * frame is, is asked apart. Not of FRAME_CUSTOM; rules of layout.match are not in it.
 */
#define FRAME_LOOK_WORDS 12u
struct frame_look {
	uint32_t mask[FRAME_LOOK_WORDS], want[FRAME_LOOK_WORDS];
};
void frame_look_init(struct frame_look *look, const struct frame_layout *layout);

/* Smallest frame with FCS for this layout: 64, or 82 over IPv4/UDP (4 more with a VLAN tag). */
uint32_t frame_min_bytes(const struct frame_layout *layout);

/*
 * A whole frame: headers, payload, zero padding up to len, UDP checksum (RFC 768). The host
 * generator's fast path. Lengths that do not fit are cut as in frame_write_headers(); a frame too
 * short for its headers is all zeros; of a len above 9212 only 9212 bytes are written. `header`
 * must name pattern->kind, or FRAME_PATTERN_END with no payload.
 */
void frame_write(const struct frame_layout *layout, const struct pattern *pattern, uint8_t *frame,
		 uint32_t len, const struct frame_header *header);

/* frame_check() with pattern_check_ahead(): the CPU backend's fast path. */
void frame_check_ahead(const struct frame_layout *layout, const struct pattern *pattern,
		       const uint8_t *frame, uint32_t len, const struct pattern_ahead *ahead,
		       struct frame_result *result);

/* The same of a frame whose first FRAME_HEAD_BYTES_MAX bytes, or all where it has fewer, are
 * frame->first; a custom one's fields and its payload's first byte are among them. */
void frame_check_span(const struct frame_layout *layout, const struct pattern *pattern,
		      const struct frame_span *frame, uint32_t len, struct frame_result *result);

#ifdef __cplusplus
}
#endif

#include "pattern/frame_check.h" /* definitions of the shared functions, for C and CUDA */

#endif
