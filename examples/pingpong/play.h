/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of pingpong, and what each rank does with one: the same code for a warp of a GPU and for a CPU thread. */
#ifndef PINGPONG_PLAY_H
#define PINGPONG_PLAY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A message, in an Ethernet frame of a type that IEEE has left for experiments:
 *
 *   0 receiver's MAC   6 sender's MAC   12 0x88b5   14 0x7070   16 kind   17 hops   18 number, 8 bytes   26 data
 *
 * MAC addresses are 02:70:70:00:RANK, so a switch knows the way. The data follow from number and place.
 */
#define MESSAGE_DATA 26u
#define MESSAGE_MIN 60u
enum message_kind {
	MESSAGE_HELLO = 1, /* from rank 0, until one is back: all ranks are there */
	MESSAGE_PLAY,	   /* numbers 1 to `rounds`, each sent when the one before is back */
	MESSAGE_BYE,	   /* the last: every rank passes it on and ends */
};

/* One rank's. In the memory of whoever plays. */
struct play {
	uint32_t rank, ranks, bytes; /* of a message, without FCS */
	uint32_t greeted;	     /* rank 0: a hello is back */
	uint32_t over;
	uint64_t rounds, number; /* messages to be played; the newest one's */
	uint64_t sent_ns;	 /* rank 0: when that left */
	uint64_t wrong, strange,
		lost;	   /* messages: with wrong bytes; others' frames; that never came */
	uint64_t *trip_ns; /* rank 0: of round trip n - 1, `rounds` of them */
};

/* What the CPU watches while a GPU plays: pinned. Writer: who plays. */
struct progress {
	uint64_t steps, batches;
	uint32_t over, bytes; /* bytes: of the answer, where the CPU drives */
};

#ifdef __CUDACC__
#define PLAY_HERE __device__ static inline
#define PLAY_LANE (threadIdx.x % 32)
#define PLAY_LANES 32u
#define PLAY_ALL(condition) (__all_sync(0xffffffffu, condition) != 0)
#define PLAY_SYNC() __syncwarp()
#else
#define PLAY_HERE static inline
#define PLAY_LANE 0u
#define PLAY_LANES 1u
#define PLAY_ALL(condition) (condition)
#define PLAY_SYNC() ((void)0)
#endif

PLAY_HERE uint8_t message_byte(uint64_t number, uint32_t i)
{
	return (uint8_t)(number * 7 + (number >> 8) * 13 + i);
}

/* Byte i of the headers from rank `from` to rank `to`. */
PLAY_HERE uint8_t message_head(uint32_t i, uint32_t from, uint32_t to, uint32_t kind, uint32_t hops,
			       uint64_t number)
{
	const uint32_t rank = i < 6 ? to : from, at = i % 6;

	if (i < 12)
		return at == 0 ? 0x02 : at < 3 ? 0x70 : at == 4 ? rank >> 8 : at == 5 ? rank : 0;
	switch (i) {
	case 12:
		return 0x88;
	case 13:
		return 0xb5;
	case 16:
		return kind;
	case 17:
		return hops;
	default:
		return i < 16 ? 0x70 : (uint8_t)(number >> 8 * (25 - i));
	}
}

/* To the next rank: how long it is. */
PLAY_HERE uint32_t message_write(const struct play *play, uint8_t *out, uint32_t kind,
				 uint32_t hops, uint64_t number)
{
	for (uint32_t i = PLAY_LANE; i < play->bytes; i += PLAY_LANES)
		out[i] = i < MESSAGE_DATA
				 ? message_head(i, play->rank, (play->rank + 1) % play->ranks, kind,
						hops, number)
				 : message_byte(number, i);
	return play->bytes;
}

/* Whether it is one from the rank before to this one. */
PLAY_HERE bool message_is_ours(const struct play *play, const uint8_t *in, uint32_t bytes)
{
	bool same = bytes >= play->bytes;

	for (uint32_t i = PLAY_LANE; i < 16 && same; i += PLAY_LANES)
		same = in[i] == message_head(i, (play->rank + play->ranks - 1) % play->ranks,
					     play->rank, 0, 0, 0);
	return PLAY_ALL(same);
}

/* Rank 0 has its message back: what it sends then; 0: nothing. */
PLAY_HERE uint32_t play_return(struct play *play, uint32_t kind, uint64_t number, uint8_t *out,
			       uint64_t now_ns)
{
	const uint64_t newest = play->number, sent_ns = play->sent_ns;
	const bool first = kind == MESSAGE_HELLO && !play->greeted;
	const bool right = kind == MESSAGE_PLAY && number == newest && newest;

	PLAY_SYNC(); /* all have read it */
	if (PLAY_LANE == 0) {
		play->greeted |= first;
		play->over |= kind == MESSAGE_BYE;
		play->wrong += kind == MESSAGE_PLAY && !right;
		if (right)
			play->trip_ns[number - 1] = now_ns - sent_ns;
		if (first || right) {
			play->number = newest + 1;
			play->sent_ns = now_ns;
		}
	}
	PLAY_SYNC();
	if (!first && !right)
		return 0;
	return message_write(play, out, newest < play->rounds ? MESSAGE_PLAY : MESSAGE_BYE, 0,
			     newest + 1);
}

/* The others pass it on. */
PLAY_HERE uint32_t play_pass(struct play *play, uint32_t kind, uint32_t hops, uint64_t number,
			     uint8_t *out)
{
	PLAY_SYNC();
	if (PLAY_LANE == 0) {
		if (kind != MESSAGE_HELLO) {
			play->lost += number - play->number - 1;
			play->number = number;
		}
		play->over |= kind == MESSAGE_BYE;
	}
	PLAY_SYNC();
	return message_write(play, out, kind, hops + 1, number);
}

/* What comes of a frame: the length of the message at `out`; 0: none is to be sent. By all lanes of a warp. */
PLAY_HERE uint32_t play_step(struct play *play, const uint8_t *in, uint32_t bytes, uint8_t *out,
			     uint64_t now_ns)
{
	uint64_t number = 0;
	bool right;

	if (!message_is_ours(play, in, bytes)) {
		PLAY_SYNC();
		if (PLAY_LANE == 0)
			play->strange++;
		PLAY_SYNC();
		return 0;
	}
	for (uint32_t i = 18; i < MESSAGE_DATA; i++)
		number = number << 8 | in[i];
	/* Each rank was passed once. */
	right = in[17] == (play->rank + play->ranks - 1) % play->ranks && in[16] >= MESSAGE_HELLO &&
		in[16] <= MESSAGE_BYE;
	for (uint32_t i = MESSAGE_DATA + PLAY_LANE; i < play->bytes; i += PLAY_LANES)
		right &= in[i] == message_byte(number, i);
	if (!PLAY_ALL(right)) {
		PLAY_SYNC();
		if (PLAY_LANE == 0)
			play->wrong++;
		PLAY_SYNC();
		return 0;
	}
	return play->rank == 0 ? play_return(play, in[16], number, out, now_ns)
			       : play_pass(play, in[16], in[17], number, out);
}

#endif
