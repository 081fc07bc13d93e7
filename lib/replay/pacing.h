/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When frames are due. Times are ticks of the TSC since the first frame, added up in 64.64 fixed
 * point, so that nothing drifts in a run of days. `base_tsc` says when the first frame was due;
 * only it moves when a sender gives up catching up, so frames requested before need no new times.
 * Owner: one tx worker.
 */
#ifndef GDRCAP_PACING_H
#define GDRCAP_PACING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gdrcap.h"

/* FCS 4, preamble and start delimiter 8, interframe gap 12 bytes. */
#define PACING_WIRE_OVERHEAD 24u

enum pacing_kind {
	PACING_NONE,	 /* as fast as the port takes them */
	PACING_BITS,	 /* bits a second on the wire, with FCS, preamble and gap */
	PACING_FRAMES,	 /* frames a second */
	PACING_ORIGINAL, /* the file's own gaps, divided by `value` */
};

struct pacing_config {
	enum pacing_kind kind;
	double value; /* bits a second, frames a second, or factor; > 0 */
};

/* A sender that is so late gives up catching up, so that a stall does not become a burst. */
#define PACING_LAG_MS 1000u

/* Gap errors |real gap - asked gap| in a histogram: 8 buckets a factor of two, 1 ns to 2^40. */
#define PACING_BUCKETS 320u

/* Ticks in 64.64 fixed point. */
typedef unsigned __int128 pacing_ticks;

struct pacing {
	struct pacing_config config;
	uint64_t tsc_hz;
	uint64_t lag_most; /* ticks; UINT64_MAX: PACING_ORIGINAL catches up whatever it missed */
	pacing_ticks ticks_per_byte, ticks_per_frame;
	pacing_ticks ticks_per_ns; /* PACING_ORIGINAL: with the factor */
	double ns_per_tick;
	bool started;
	uint64_t base_tsc; /* when the first frame was due */
	pacing_ticks due;  /* of the next frame to be requested, since the first */
	uint64_t file_ns;  /* PACING_ORIGINAL: time of the frame that `due` is of */
	/* Gaps as they were. */
	uint64_t last_due, last_sent;
	/* Writer: the worker. Readers: anybody, relaxed. */
	_Atomic uint64_t bucket[PACING_BUCKETS];
	_Atomic uint64_t gap_max_ns, gaps;
	_Atomic uint64_t rebased; /* times that the sender was too late to catch up */
	/* A port that keeps to times itself: frames that it got only after they were due. */
	_Atomic uint64_t late, late_max_ns;
};

/* Reads "max", "9.5gbit", "100mbit", "2mpps", "500kpps", "1000pps". 0, or -EINVAL. */
int pacing_parse_rate(const char *text, struct pacing_config *config);
/* Reads "1x", "2x", "0.5x", "10" or "max". 0, or -EINVAL. */
int pacing_parse_speed(const char *text, struct pacing_config *config);

void pacing_init(struct pacing *pacing, const struct pacing_config *config, uint64_t tsc_hz);
/* The first frame is due at this tick. */
void pacing_start(struct pacing *pacing, uint64_t tsc);

/*
 * When the next frame is due: ticks since the first. `file_ns` is its time in its file, loops before
 * it included (PACING_ORIGINAL); a time before the last frame's is taken for the last frame's.
 */
uint64_t pacing_due(struct pacing *pacing, uint64_t file_ns);
/* The same, and the next frame is then the one after it; `bytes`: its length in memory. */
uint64_t pacing_next(struct pacing *pacing, uint32_t bytes, uint64_t file_ns);

/*
 * How many of `count` frames, due at due[0..], may be handed over at `now` plus `ahead` ticks.
 * Moves the timeline where the first is too late.
 */
uint32_t pacing_ready(struct pacing *pacing, const uint64_t *due, uint32_t count, uint64_t now,
		      uint64_t ahead);
/* Called with the tick at which `count` frames, due at due[0..], were handed over. */
void pacing_sent(struct pacing *pacing, const uint64_t *due, uint32_t count, uint64_t now);
/* The same for a port that keeps to times itself: no gaps are known, only who came too late. */
void pacing_handed(struct pacing *pacing, const uint64_t *due, uint32_t count, uint64_t now);

struct pacing_gaps {
	uint64_t count, p50_ns, p99_ns, max_ns;
};
/* Over several senders' histograms; any thread. A percentile is at most an eighth too large. */
void pacing_gaps(const struct pacing *const *pacings, uint32_t count, struct pacing_gaps *gaps);

#endif
