/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The UDP checksum of a frame (RFC 768, RFC 1071; RFC 8200, 8.1), for C and CUDA alike: what
 * gdrcap_tx_checksum_after() and, in gdrcap_device.cuh, gdrcap_udp_checksum() compute. Inline only.
 *
 * The work is divided into lanes, of a warp or one of a CPU: each adds up its share, and the shares' sum is
 * the datagram's. Sums are of 16-bit words, modulo 65535, so 16 bytes can be added at once from where
 * they are aligned; whether a byte is its word's first follows from its address, and the sum of a
 * piece whose words lie the other way round is turned once, at its end. Nothing outside a piece is read.
 */
#ifndef GDRCAP_UDP_H
#define GDRCAP_UDP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define GDRCAP_UDP_FN __host__ __device__ static inline
#else
#define GDRCAP_UDP_FN static inline
#endif

#define GDRCAP_UDP_HEADER 8u

/** Where a frame's datagram is. */
struct gdrcap_udp {
	uint32_t at;  /**< its header, from the frame's first byte */
	uint32_t end; /**< the byte after its last; of a frame in two pieces in either */
	uint32_t sum; /**< of the pseudo header and its own, but for the checksum; not folded */
};

GDRCAP_UDP_FN uint32_t gdrcap_udp_be16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

/* Of headers; `bytes` is even. */
GDRCAP_UDP_FN uint32_t gdrcap_udp_words(const uint8_t *at, uint32_t bytes)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < bytes; i += 2)
		sum += gdrcap_udp_be16(at + i);
	return sum;
}

/* `ip`: the header, of which `head` bytes are there, of `left` that the frame has from it on. Places in
 * *udp count from it. */
GDRCAP_UDP_FN bool gdrcap_udp_in_ipv4(const uint8_t *ip, uint32_t head, uint32_t left,
				      struct gdrcap_udp *udp)
{
	if (head < 20 || ip[0] >> 4 != 4 || ip[9] != 17)
		return false;
	udp->at = (ip[0] & 15u) * 4;
	udp->end = gdrcap_udp_be16(ip + 2);
	udp->sum = gdrcap_udp_words(ip + 12, 8);
	/* More fragments follow, or others came before. */
	if (gdrcap_udp_be16(ip + 6) & 0x3fff)
		return false;
	return udp->at >= 20 && udp->end <= left;
}

GDRCAP_UDP_FN bool gdrcap_udp_in_ipv6(const uint8_t *ip, uint32_t head, uint32_t left,
				      struct gdrcap_udp *udp)
{
	if (head < 40 || ip[0] >> 4 != 6 || ip[6] != 17)
		return false;
	udp->at = 40;
	udp->end = 40 + gdrcap_udp_be16(ip + 4);
	udp->sum = gdrcap_udp_words(ip + 8, 32);
	return udp->end <= left;
}

/**
 * Finds the datagram of a frame of `bytes`, of which the first `head` are at `frame`. False: it has none
 * that has a checksum: it is not IPv4 or IPv6, behind up to two VLAN tags, with UDP next; it is a fragment;
 * a length says more than is there; or not all of its headers lie in the first piece.
 */
GDRCAP_UDP_FN bool gdrcap_udp_find(const uint8_t *frame, uint32_t head, uint32_t bytes,
				   struct gdrcap_udp *udp)
{
	uint32_t type, at = 14, length;
	bool found = false;

	if (head < at)
		return false;
	type = gdrcap_udp_be16(frame + 12);
	for (uint32_t tags = 0; tags < 2 && (type == 0x8100 || type == 0x88a8); tags++) {
		if (head < at + 4)
			return false;
		type = gdrcap_udp_be16(frame + at + 2);
		at += 4;
	}
	if (type == 0x800)
		found = gdrcap_udp_in_ipv4(frame + at, head - at, bytes - at, udp);
	else if (type == 0x86dd)
		found = gdrcap_udp_in_ipv6(frame + at, head - at, bytes - at, udp);
	if (!found)
		return false;
	udp->at += at;
	udp->end += at;
	if (head < udp->at + GDRCAP_UDP_HEADER)
		return false;
	/* A datagram may be shorter than its packet. */
	length = gdrcap_udp_be16(frame + udp->at + 4);
	if (length < GDRCAP_UDP_HEADER || udp->at + length > udp->end)
		return false;
	udp->end = udp->at + length;
	udp->sum += 17 + length + gdrcap_udp_words(frame + udp->at, 6);
	return true;
}

/** To 16 bits; of what is not 0 not to 0. */
GDRCAP_UDP_FN uint32_t gdrcap_udp_fold(uint64_t sum)
{
	uint32_t low;

	sum = (sum >> 32) + (sum & 0xffffffffu);
	sum = (sum >> 32) + (sum & 0xffffffffu);
	low = (uint32_t)sum;
	low = (low >> 16) + (low & 0xffff);
	return (low >> 16) + (low & 0xffff);
}

/* Four words of 32 bits, which are aligned to 16 bytes, in the machine's order: both have the least
 * significant byte first. */
GDRCAP_UDP_FN uint64_t gdrcap_udp_sum16(const uint8_t *at)
{
#ifdef __CUDA_ARCH__
	const uint4 word = *(const uint4 *)at;

	return (uint64_t)word.x + word.y + word.z + word.w;
#else
	uint32_t word[4];

	memcpy(word, at, sizeof(word));
	return (uint64_t)word[0] + word[1] + word[2] + word[3];
#endif
}

/* This lane's share of `bytes` at `at`. Bytes at even addresses count as 16-bit words' lower ones. */
GDRCAP_UDP_FN uint64_t gdrcap_udp_lane(const uint8_t *at, uint32_t bytes, uint32_t lane,
				       uint32_t lanes)
{
	const uint32_t before = (uint32_t)(-(uintptr_t)at & 15);
	const uint32_t first = before < bytes ? before : bytes;
	const uint32_t middle = (bytes - first) / 16 * 16, ends = bytes - middle;
	uint64_t sum = 0;

	for (uint32_t i = lane; i < ends; i += lanes) {
		const uint8_t *byte = at + (i < first ? i : middle + i);

		sum += (uintptr_t)byte & 1 ? (uint32_t)*byte << 8 : *byte;
	}
	for (uint32_t i = lane * 16; i < middle; i += lanes * 16)
		sum += gdrcap_udp_sum16(at + first + i);
	return sum;
}

/* The same in the network's order: `odd` says whether the piece begins with a word's second byte. */
GDRCAP_UDP_FN uint32_t gdrcap_udp_piece(const uint8_t *at, uint32_t bytes, uint32_t odd,
					uint32_t lane, uint32_t lanes)
{
	const uint32_t sum = gdrcap_udp_fold(gdrcap_udp_lane(at, bytes, lane, lanes));

	return ((uintptr_t)at & 1) == odd ? (sum & 0xff) << 8 | sum >> 8 : sum;
}

/**
 * Lane `lane`'s share, of `lanes`, of what is behind the datagram's header: less than 2^17. The frame's
 * first `head` bytes are at `frame`, the others at `payload`.
 */
GDRCAP_UDP_FN uint32_t gdrcap_udp_share(const uint8_t *frame, uint32_t head, const uint8_t *payload,
					const struct gdrcap_udp *udp, uint32_t lane, uint32_t lanes)
{
	const uint32_t from = udp->at + GDRCAP_UDP_HEADER;
	const uint32_t first = udp->end < head ? udp->end : head;
	uint32_t sum = gdrcap_udp_piece(frame + from, first - from, 0, lane, lanes);

	if (udp->end > head)
		sum += gdrcap_udp_piece(payload, udp->end - head, (head - udp->at) & 1, lane,
					lanes);
	return sum;
}

/** Writes the checksum; `sum`: of all lanes' shares and udp->sum. */
GDRCAP_UDP_FN void gdrcap_udp_put(uint8_t *frame, const struct gdrcap_udp *udp, uint32_t sum)
{
	const uint32_t folded = gdrcap_udp_fold(sum);
	/* 0 says that there is none. */
	const uint32_t checksum = folded == 0xffff ? 0xffff : ~folded & 0xffff;

	frame[udp->at + 6] = (uint8_t)(checksum >> 8);
	frame[udp->at + 7] = (uint8_t)checksum;
}

#endif
