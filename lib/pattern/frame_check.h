/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions of the functions of frame.h that the host and the kernels share. Included by
 * frame.h; compiles as C (gnu17) and as CUDA C++17. Frames may start at any address: loads are of
 * bytes.
 */
#ifndef GDRCAP_FRAME_CHECK_H
#define GDRCAP_FRAME_CHECK_H

#include "pattern/frame_bytes.h"
#include "pattern/phase.h"
#include "pattern/phase_check.h" /* phase.h has not come to it when it is what includes frame.h */

#define FRAME_LEN_MAX (FRAME_MAX_BYTES - FRAME_FCS_BYTES) /* that is written, in memory */

GDRCAP_HD uint32_t frame_crc32c(const uint32_t *table, const uint8_t *bytes, uint32_t n)
{
	uint32_t crc = 0xffffffffu;

	for (uint32_t i = 0; i < n; i++)
		crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 0xffu];
	return ~crc;
}

/* 1: frames have an own header, with a CRC32C. */
GDRCAP_HD int frame_has_header(const struct frame_layout *layout)
{
	return !layout->raw && layout->format != FRAME_CUSTOM;
}

/* Where the payload starts in a frame of this layout. */
GDRCAP_HD uint32_t frame_payload_offset(const struct frame_layout *layout)
{
	if (layout->format == FRAME_CUSTOM)
		return layout->custom.payload;
	return layout->own_offset + (layout->raw ? 0 : FRAME_HEADER_BYTES);
}

GDRCAP_HD uint32_t frame_payload_bytes(const struct frame_layout *layout, uint32_t len)
{
	const uint32_t start = frame_payload_offset(layout);
	uint32_t fixed = layout->raw ? layout->raw_payload : 0, room;

	if (len > FRAME_LEN_MAX)
		len = FRAME_LEN_MAX;
	room = len > start ? len - start : 0;
	if (layout->format == FRAME_CUSTOM)
		fixed = layout->custom.payload_bytes;
	if (fixed)
		return room < fixed ? 0 : fixed;
	return room;
}

/* 1: the payload's phase is found in itself (phase.h). */
GDRCAP_HD int frame_is_self_phase(const struct frame_layout *layout, const struct pattern *pattern)
{
	return layout->format == FRAME_CUSTOM && layout->custom.self_phase &&
	       pattern_is_prbs(pattern->kind);
}

/* ---- fields of frames of a custom layout ---- */

/* All values of a field of this many bytes (1..8). */
GDRCAP_HD uint64_t frame_field_mask(uint32_t bytes)
{
	return UINT64_MAX >> (64 - 8 * bytes);
}

/* 1, and the field's value (0 where the frame has no such field); 0: the frame ends before it. */
GDRCAP_HD int frame_field_read(const struct frame_field *field, const uint8_t *frame, uint32_t len,
			       uint64_t *value)
{
	const uint32_t bytes = field->bytes < 8 ? field->bytes : 8;

	*value = 0;
	if (!bytes)
		return 1;
	if ((uint32_t)field->offset + bytes > len)
		return 0;
	for (uint32_t i = 0; i < bytes; i++)
		*value = *value << 8 | frame[field->offset + (field->little ? bytes - 1 - i : i)];
	return 1;
}

/*
 * Which frame of its stream has this value in its sequence field, modulo what the field can hold:
 * the k for which start + k * step is `raw`. An odd step has an inverse modulo 2^w, so that the
 * answer is right after a wrap too where 2^w is no multiple of the step. An even one is an odd one
 * with bits below it that never change.
 */
GDRCAP_HD uint64_t frame_number(const struct frame_layout *layout, uint64_t raw)
{
	const struct frame_custom *custom = &layout->custom;
	uint64_t step = custom->sequence_step, inverse, mask;

	if (layout->format != FRAME_CUSTOM)
		return raw;
	if (!custom->sequence.bytes)
		return 0;
	mask = frame_field_mask(custom->sequence.bytes < 8 ? custom->sequence.bytes : 8);
	raw = (raw - custom->sequence_start) & mask;
	step &= mask;
	if (step <= 1)
		return raw;
	for (; !(step & 1); step >>= 1) {
		raw >>= 1;
		mask >>= 1;
	}
	/* Newton: each round doubles the bits that are right; a number is its own inverse in 3 */
	inverse = step;
	for (uint32_t right = 3; right < 64; right *= 2)
		inverse *= 2 - step * inverse;
	return raw * inverse & mask;
}

/* Where the pattern of a frame with this header is. */
GDRCAP_HD void frame_place(const struct frame_layout *layout, const struct frame_header *header,
			   struct pattern_place *place)
{
	place->position = header->position;
	place->sequence = frame_number(layout, header->sequence);
	place->stream = header->stream;
}

/*
 * Step 1 of frame_parse(): FRAME_FILTERED; FRAME_DAMAGED_LENGTH when it is ours but ends before
 * the own header does; else FRAME_VALID, and where frame_has_header() the own header's 36 bytes can
 * be read. Own frames: the same as struct frame_look.
 */
GDRCAP_HD enum frame_verdict frame_recognise(const struct frame_layout *layout,
					     const uint8_t *frame, uint32_t len)
{
	const uint32_t l3 = layout->vlan ? 18 : 14;
	const uint8_t *ip = frame + l3;

	if (layout->match.count && !frame_matches(&layout->match, frame, len))
		return FRAME_FILTERED;
	if (layout->format == FRAME_CUSTOM)
		return FRAME_VALID;
	if (len < layout->own_offset)
		return FRAME_FILTERED;
	if (layout->vlan && (frame_be16(frame + 12) != 0x8100 ||
			     ((frame_be16(frame + 14) ^ layout->vlan) & 0x0fff)))
		return FRAME_FILTERED;
	if (frame_be16(frame + l3 - 2) != layout->ethertype)
		return FRAME_FILTERED;
	if (layout->format == FRAME_IPV4_UDP) {
		/* no options, no fragment, UDP to our port */
		if (ip[0] != 0x45 || (frame_be16(ip + 6) & 0x3fff) || ip[9] != 17 ||
		    frame_be16(ip + 22) != layout->udp_port)
			return FRAME_FILTERED;
	}
	if (!layout->raw && len - layout->own_offset < FRAME_HEADER_BYTES)
		return FRAME_DAMAGED_LENGTH;
	return FRAME_VALID;
}

GDRCAP_HD void frame_header_clear(struct frame_header *header)
{
	header->sequence = 0;
	header->position = 0;
	header->time_ns = 0;
	header->stream = 0;
	header->payload_bytes = 0;
	header->source = 0;
	header->pattern = 0;
	header->version = 0;
}

/* ---- the own header ---- */

/* 1: magic and version, in the header's first four bytes, are ours. */
GDRCAP_HD int frame_header_is_own(uint32_t word)
{
	return word >> 8 == (FRAME_MAGIC << 8 | FRAME_VERSION);
}

/*
 * Who sent an own frame: 16 bits, not 0, that depend on its source MAC, the first four bytes of which
 * are `high` and the last two `low`, and on its IPv4 source address, 0 without one. Multiplicative
 * hashing with odd constants near 2^32 over the golden ratio: neighbouring addresses differ in the
 * product's high bits. Two senders look like one with a chance of 1 in 65,535.
 */
GDRCAP_HD uint16_t frame_source_of(uint32_t high, uint32_t low, uint32_t ip)
{
	const uint32_t mixed = (high * 0x9e3779b1u + low * 0x85ebca6bu + ip * 0xc2b2ae35u) >> 16;

	return (uint16_t)(mixed ? mixed : 1);
}

GDRCAP_HD uint16_t frame_source(const struct frame_layout *layout, const uint8_t *frame)
{
	/* the last eight of the IPv4 header's 20 bytes are the addresses, before 8 of UDP */
	const uint32_t ip =
		layout->format == FRAME_IPV4_UDP ? frame_be32(frame + layout->own_offset - 16) : 0;

	return frame_source_of(frame_be32(frame + 6), frame_be16(frame + 10), ip);
}

/* From the header's first 32 bytes, as big-endian words. */
GDRCAP_HD void frame_header_decode(const uint32_t word[8], struct frame_header *header)
{
	header->version = (uint8_t)(word[0] >> 8);
	header->pattern = (uint8_t)word[0];
	header->stream = (uint16_t)(word[1] >> 16);
	header->payload_bytes = (uint16_t)word[1];
	header->sequence = (uint64_t)word[2] << 32 | word[3];
	header->position = (uint64_t)word[4] << 32 | word[5];
	header->time_ns = (uint64_t)word[6] << 32 | word[7];
}

/*
 * Step 2 of a frame of a custom layout. Stream ids are of 16 bits: of a larger field, its low ones. The
 * header's sequence is the field as it is on the wire.
 */
GDRCAP_HD enum frame_verdict frame_read_custom(const struct frame_layout *layout,
					       const uint8_t *frame, uint32_t len,
					       struct frame_header *header, int *header_ok)
{
	const struct frame_custom *custom = &layout->custom;
	uint32_t bytes = custom->payload_bytes, room;
	uint64_t stream;

	if (!frame_field_read(&custom->sequence, frame, len, &header->sequence) ||
	    !frame_field_read(&custom->stream, frame, len, &stream))
		return FRAME_DAMAGED_LENGTH;
	header->stream = (uint16_t)stream;
	*header_ok = 1;
	if (len < custom->payload)
		return FRAME_DAMAGED_LENGTH;
	room = len - custom->payload;
	if (bytes > room)
		return FRAME_DAMAGED_LENGTH;
	if (!bytes)
		bytes = room;
	header->payload_bytes = (uint16_t)bytes;
	if (!custom->self_phase)
		header->position = frame_number(layout, header->sequence) * bytes;
	return FRAME_VALID;
}

/*
 * Step 2: reads the header of a frame that step 1 found valid. `crc` is the CRC32C of the own
 * header's first 32 bytes (any value where there is none: frame_has_header()).
 */
GDRCAP_HD enum frame_verdict frame_read_header(const struct frame_layout *layout,
					       const uint8_t *frame, uint32_t len, uint32_t crc,
					       struct frame_header *header, int *header_ok)
{
	const uint8_t *own = frame + layout->own_offset;
	uint32_t room, word[8];

	frame_header_clear(header);
	*header_ok = 0;
	/* so that offsets fit struct frame_result, whatever length is claimed */
	if (len > 0xffff)
		len = 0xffff;
	if (layout->format == FRAME_CUSTOM)
		return frame_read_custom(layout, frame, len, header, header_ok);
	room = len - frame_payload_offset(layout);
	if (layout->raw) {
		header->version = FRAME_VERSION;
		header->pattern = PATTERN_COUNTER8;
		header->payload_bytes = (uint16_t)layout->raw_payload;
	} else {
		GDRCAP_UNROLL
		for (uint32_t i = 0; i < 8; i++)
			word[i] = frame_be32(own + 4 * i);
		if (!frame_header_is_own(word[0]) || frame_be32(own + 32) != crc)
			return FRAME_DAMAGED_HEADER;
		frame_header_decode(word, header);
		header->source = frame_source(layout, frame);
	}
	*header_ok = 1;
	return header->payload_bytes > room ? FRAME_DAMAGED_LENGTH : FRAME_VALID;
}

GDRCAP_HD enum frame_verdict frame_parse(const struct frame_layout *layout,
					 const uint32_t *crc_table, const uint8_t *frame,
					 uint32_t len, struct frame_header *header, int *header_ok)
{
	const enum frame_verdict verdict = frame_recognise(layout, frame, len);
	uint32_t crc = 0;

	if (verdict != FRAME_VALID) {
		frame_header_clear(header);
		*header_ok = 0;
		return verdict;
	}
	if (frame_has_header(layout))
		crc = frame_crc32c(crc_table, frame + layout->own_offset, 32);
	return frame_read_header(layout, frame, len, crc, header, header_ok);
}

/*
 * The result as far as the header tells: what frame_parse() said, FRAME_END, FRAME_DAMAGED_HEADER
 * where it names another pattern, and FRAME_DAMAGED_UNLOCKED for a payload that is too short
 * to have a phase. Returns the number of payload bytes that are to be compared, by phase_check()
 * where frame_is_self_phase(); with PATTERN_NONE that is 0 for every frame.
 */
GDRCAP_HD uint32_t frame_result_begin(const struct frame_layout *layout,
				      const struct pattern *pattern, enum frame_verdict verdict,
				      const struct frame_header *header, int header_ok,
				      struct frame_result *result)
{
	result->wrong_bits = 0;
	result->expected = 0;
	result->got = 0;
	result->phase_first = 0;
	result->phase_next = 0;
	result->detail = 0;
	if (verdict == FRAME_VALID && header->pattern != pattern->kind &&
	    layout->format != FRAME_CUSTOM) {
		verdict = FRAME_DAMAGED_HEADER;
		if (header->pattern == FRAME_PATTERN_END) {
			verdict = FRAME_END;
			result->detail = header->position < UINT32_MAX ? (uint32_t)header->position
								       : UINT32_MAX;
		}
	}
	/* cut behind its header: our own frames may have no payload, others' have one to check */
	if (verdict == FRAME_VALID && layout->format == FRAME_CUSTOM && !header->payload_bytes &&
	    pattern->kind != PATTERN_NONE && !frame_is_self_phase(layout, pattern))
		verdict = FRAME_DAMAGED_LENGTH;
	if (header_ok && header->source && header->sequence == 0 && verdict != FRAME_END) {
		result->detail = (uint32_t)header->time_ns;
		result->phase_first = (uint32_t)(header->time_ns >> 32);
	}
	result->sequence = header_ok ? header->sequence : 0;
	result->stream = header_ok ? header->stream : 0;
	result->source = header_ok ? header->source : 0;
	result->payload_bytes =
		verdict == FRAME_VALID && pattern->kind != PATTERN_NONE ? header->payload_bytes : 0;
	result->offset = verdict == FRAME_DAMAGED_HEADER || verdict == FRAME_DAMAGED_LENGTH
				 ? (uint16_t)layout->own_offset
				 : (uint16_t)0;
	result->verdict = (uint8_t)verdict;
	result->header_ok = (uint8_t)header_ok;
	if (frame_is_self_phase(layout, pattern) && verdict == FRAME_VALID &&
	    result->payload_bytes < PHASE_BELIEVED_BITS / 8)
		phase_unlocked(result->payload_bytes, frame_payload_offset(layout), result);
	return result->payload_bytes;
}

GDRCAP_HD void frame_check(const struct frame_layout *layout, const struct pattern *pattern,
			   const uint32_t *crc_table, const uint8_t *frame, uint32_t len,
			   struct frame_result *result)
{
	struct frame_header header;
	struct pattern_place place;
	enum frame_verdict verdict;
	const uint8_t *payload;
	uint32_t bytes, start;
	int header_ok;

	verdict = frame_parse(layout, crc_table, frame, len, &header, &header_ok);
	bytes = frame_result_begin(layout, pattern, verdict, &header, header_ok, result);
	start = frame_payload_offset(layout);
	payload = frame + start;
	if (bytes && frame_is_self_phase(layout, pattern)) {
		phase_check(pattern, payload, bytes, start, result);
		return;
	}
	frame_place(layout, &header, &place);
	for (uint32_t at = 0; at < bytes; at += 4) {
		const uint32_t expected = pattern_word(pattern, &place, at);

		for (uint32_t i = 0; i < 4 && at + i < bytes; i++) {
			const uint8_t want = (uint8_t)(expected >> (8 * i)), got = payload[at + i];

			if (want == got)
				continue;
			if (!result->wrong_bits) {
				result->offset = (uint16_t)(start + at + i);
				result->expected = want;
				result->got = got;
				result->verdict = FRAME_DAMAGED_PAYLOAD;
			}
			result->wrong_bits += frame_popcount((uint32_t)(want ^ got));
		}
	}
}

/* The ones' complement sum of `n` bytes (even) as big-endian 16-bit words, not yet folded. */
GDRCAP_HD uint32_t frame_sum16(const uint8_t *at, uint32_t n)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i += 2)
		sum += frame_be16(at + i);
	return sum;
}

GDRCAP_HD uint32_t frame_fold16(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* The own header but for its CRC32C: four 64-bit numbers, big-endian on the wire. */
GDRCAP_HD void frame_own_words(const struct frame_header *header, uint32_t payload_bytes,
			       uint64_t own[4])
{
	own[0] = (uint64_t)FRAME_MAGIC << 48 | (uint64_t)FRAME_VERSION << 40 |
		 (uint64_t)header->pattern << 32 | (uint64_t)header->stream << 16 | payload_bytes;
	own[1] = header->sequence;
	own[2] = header->position;
	own[3] = header->time_ns;
}

/*
 * frame_write_headers() without the own header's CRC32C. *payload_bytes is what the frame will
 * carry. Returns the payload's offset, 0 when `len` is too short for the headers.
 */
GDRCAP_HD uint32_t frame_write_fields(const struct frame_layout *layout, uint8_t *frame,
				      uint32_t len, const struct frame_header *header,
				      uint32_t *payload_bytes)
{
	const uint32_t start = frame_payload_offset(layout), ip = layout->own_offset - 28;
	uint32_t bytes = frame_payload_bytes(layout, len);
	uint8_t *own = frame + layout->own_offset;
	uint64_t words[4];

	*payload_bytes = 0;
	if (layout->format == FRAME_CUSTOM || len < start ||
	    (layout->raw && bytes < layout->raw_payload))
		return 0;
	if (!layout->raw && header->payload_bytes < bytes)
		bytes = header->payload_bytes;
	*payload_bytes = bytes;
	for (uint32_t i = 0; i < layout->own_offset; i++)
		frame[i] = layout->templ[i];
	if (layout->format == FRAME_IPV4_UDP) {
		const uint32_t udp_bytes = start - layout->own_offset + 8 + bytes;

		frame_put16(frame + ip + 2, 20 + udp_bytes);
		frame_put16(frame + ip + 10,
			    ~frame_fold16(frame_sum16(layout->templ + ip, 20) + 20 + udp_bytes));
		frame_put16(frame + ip + 24, udp_bytes);
	}
	if (layout->raw)
		return start;
	/* A card spreads frames over its queues by addresses and ports: so streams differ there. */
	if (layout->format == FRAME_IPV4_UDP && header->stream) {
		const uint8_t *port = layout->templ + ip + 20;

		frame_put16(frame + ip + 20,
			    1 + (((uint32_t)port[0] << 8 | port[1]) - 1 + header->stream) % 65535);
	}
	frame_own_words(header, bytes, words);
	for (uint32_t i = 0; i < 4; i++)
		frame_put64(own + 8 * i, words[i]);
	return start;
}

GDRCAP_HD uint32_t frame_write_headers(const struct frame_layout *layout, const uint32_t *crc_table,
				       uint8_t *frame, uint32_t len,
				       const struct frame_header *header)
{
	uint8_t *own = frame + layout->own_offset;
	uint32_t payload_bytes, start;

	start = frame_write_fields(layout, frame, len, header, &payload_bytes);
	if (start && !layout->raw)
		frame_put32(own + 32, frame_crc32c(crc_table, own, 32));
	return start;
}

#endif
