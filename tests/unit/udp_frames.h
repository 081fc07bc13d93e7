/* SPDX-License-Identifier: BSD-3-Clause */
/* Random frames with UDP in them, right and spoilt ones, and their checksums by the RFCs' own words: a
 * pseudo header and the datagram, added up word by word. For C and CUDA. */
#ifndef GDRCAP_TEST_UDP_FRAMES_H
#define GDRCAP_TEST_UDP_FRAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define UDP_FRAME_MOST 9300u
#define UDP_DATA_MOST 9000u

struct udp_frame {
	uint8_t bytes[UDP_FRAME_MOST];
	uint32_t all, head; /* of all bytes `head` are the first piece */
};

static inline uint64_t udp_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline uint32_t udp_below(uint64_t *state, uint32_t most)
{
	return (uint32_t)(udp_random(state) % most);
}

static inline uint32_t udp_get(const uint8_t *at)
{
	return (uint32_t)(at[0] * 256 + at[1]);
}

static inline void udp_set(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value / 256);
	at[1] = (uint8_t)value;
}

/* Ones' complement addition, a word at a time; an odd byte is followed by 0. */
static inline uint32_t udp_add(uint32_t sum, const uint8_t *at, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i += 2) {
		sum += at[i] * 256u + (i + 1 < bytes ? at[i + 1] : 0);
		if (sum > 0xffff)
			sum -= 0xffff;
	}
	return sum;
}

/* Where the checksum stands, and *is what it is to be; 0: the frame has none. */
static inline uint32_t udp_reference(const struct udp_frame *frame, uint32_t *is)
{
	const uint8_t *b = frame->bytes, *ip, *udp;
	uint8_t pseudo[40] = { 0 };
	uint32_t ip_at = 14, pseudo_bytes, length, packet, sum;

	while (ip_at < 22 && frame->head >= ip_at &&
	       (udp_get(b + ip_at - 2) == 0x8100 || udp_get(b + ip_at - 2) == 0x88a8))
		ip_at += 4;
	if (frame->head < ip_at + 28)
		return 0;
	ip = b + ip_at;
	if (udp_get(ip - 2) == 0x0800 && ip[0] >= 0x45 && ip[0] <= 0x4f && ip[9] == 17) {
		packet = udp_get(ip + 2);
		udp = ip + (ip[0] - 0x40) * 4;
		if ((ip[6] & 0x20) || udp_get(ip + 6) % 8192 != 0)
			return 0;
		memcpy(pseudo, ip + 12, 8);
		pseudo[9] = 17;
		pseudo_bytes = 12;
	} else if (udp_get(ip - 2) == 0x86dd && frame->head >= ip_at + 48 &&
		   (ip[0] & 0xf0) == 0x60 && ip[6] == 17) {
		packet = 40 + udp_get(ip + 4);
		udp = ip + 40;
		memcpy(pseudo, ip + 8, 32);
		pseudo[39] = 17;
		pseudo_bytes = 40;
	} else {
		return 0;
	}
	if (ip_at + packet > frame->all || udp + 8 > b + frame->head)
		return 0;
	length = udp_get(udp + 4);
	if (length < 8 || udp + length > ip + packet)
		return 0;
	udp_set(pseudo + (pseudo_bytes == 12 ? 10 : 34), length);
	sum = udp_add(0, pseudo, pseudo_bytes);
	sum = udp_add(sum, udp, 6);
	sum = udp_add(sum, udp + 8, length - 8);
	*is = sum == 0xffff ? 0xffff : 0xffff - sum;
	return (uint32_t)(udp - b) + 6;
}

/* Behind a header of `at` bytes; returns the bytes with it. */
static inline uint32_t udp_make_ip(uint8_t *to, uint64_t *state, uint32_t data)
{
	uint32_t head = 20 + 4 * (udp_below(state, 3) ? 0 : udp_below(state, 11));

	if (udp_below(state, 2)) {
		udp_set(to - 2, 0x86dd);
		to[0] = (uint8_t)(0x60 | (to[0] & 15));
		udp_set(to + 4, 8 + data);
		to[6] = 17;
		head = 40;
	} else {
		udp_set(to - 2, 0x0800);
		to[0] = (uint8_t)(0x40 + head / 4);
		udp_set(to + 2, head + 8 + data);
		udp_set(to + 6, udp_below(state, 2) ? 0x4000 : 0);
		to[9] = 17;
	}
	udp_set(to + head + 4, 8 + data);
	return head + 8;
}

/* Its sum is 0, whose checksum is 0xffff. */
static inline void udp_make_zero(struct udp_frame *frame, uint32_t word_at)
{
	uint32_t is = 0;

	udp_set(frame->bytes + word_at, 0);
	udp_reference(frame, &is);
	udp_set(frame->bytes + word_at, is);
}

/* Random bytes with right headers; of `head` 0 all is one piece, else it is where the second begins. */
static inline void udp_make(struct udp_frame *frame, uint64_t *state)
{
	static const uint32_t mosts[] = { 4, 64, 1473, UDP_DATA_MOST };
	const uint32_t data = udp_below(state, mosts[udp_below(state, 4)]);
	const uint32_t tags = udp_below(state, 3), kind = udp_below(state, 8);
	uint32_t at = 14, headers;

	for (uint32_t i = 0; i < UDP_FRAME_MOST; i++)
		frame->bytes[i] = (uint8_t)(kind == 0 ? 0xff : kind == 1 ? 0 : udp_random(state));
	for (uint32_t t = 0; t < tags; t++, at += 4)
		udp_set(frame->bytes + at - 2, t + 1 < tags ? 0x88a8 : 0x8100);
	headers = at + udp_make_ip(frame->bytes + at, state, data);
	frame->all = headers + data + udp_below(state, 2) * udp_below(state, 60);
	frame->head = udp_below(state, 2) ? frame->all
					  : headers + udp_below(state, frame->all - headers + 1);
	if (kind == 2 && data >= 2)
		udp_make_zero(frame, headers + udp_below(state, data / 2) * 2);
}

/* One byte of the headers is another, or the first piece ends early. */
static inline void udp_spoil(struct udp_frame *frame, uint64_t *state)
{
	if (udp_below(state, 8) == 0)
		frame->head = 1 + udp_below(state, frame->all < 80 ? frame->all : 80);
	else
		frame->bytes[12 + udp_below(state, 58)] ^= (uint8_t)(1u << udp_below(state, 8));
}

#endif
