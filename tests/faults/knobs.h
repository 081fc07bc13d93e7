/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which faults the program injects: the environment variable GDRCAP_FAULTS, a list such as
 * "drop=5,flip=7:1131@2". Each entry is NAME[=NUMBER[:VALUE]][@QUEUE]; what it does not allow ends
 * the program with status KNOBS_EXIT_REFUSED.
 *
 * NUMBER counts a wire's frames in one receive queue from 0, the staged first frame excluded.
 * QUEUE is a queue of the first port that receives; default 0.
 */
#ifndef GDRCAP_TEST_KNOBS_H
#define GDRCAP_TEST_KNOBS_H

#include <stdint.h>

#define KNOBS_EXIT_REFUSED 70
#define KNOBS_MAX 32

enum knob {
	/* Frames of the run, as they come off the wire. */
	KNOB_DROP,	   /* drop=N[:COUNT] */
	KNOB_DUP,	   /* dup=N[:COUNT]: copies of frame N after it */
	KNOB_LATE,	   /* late=N:M: frame N comes after frame N + M */
	KNOB_FLIP,	   /* flip=N:BIT, bit 0 is the frame's first on the wire */
	KNOB_CUT,	   /* cut=N:BYTES: only so many of its bytes come */
	KNOB_SPLIT,	   /* split=N:BYTES: the rest is in a second segment */
	KNOB_GROW,	   /* grow=N:BYTES: a second segment follows the whole frame */
	KNOB_GARBLE,	   /* garble=N[:COUNT]: frames of our EtherType and random bytes after N */
	KNOB_CUSTOM,	   /* custom=N[:COUNT]: another EtherType's frames after frame N */
	KNOB_CUSTOM_EVERY, /* custom-every=K: one after each K frames */
	KNOB_HOLD,	   /* hold=N:POLLS: before frame N so many polls bring nothing */
	KNOB_MUTE,	   /* mute=N: no poll brings frame N before waiting frames are counted */
	KNOB_SILENT,	   /* silent=N: nor before the port was found silent; then all come */
	KNOB_NAP,	   /* nap=N:MS: the poll for frame N takes so long */
	KNOB_HANG,    /* hang=N[:MS]: the poll for frame N never ends; seen after MS, not 10 s */
	KNOB_BABBLE,  /* frames of a custom layout whenever the wire has none */
	KNOB_COUNTED, /* counted=N: the card counts the first N dropped frames as missed */
	KNOB_TRICKLE, /* polls bring fewer frames than they could, or none */
	KNOB_PARTIAL, /* the sending port takes fewer frames than offered, or none */
	/* The consumer's and the device's, in the run. */
	KNOB_STALL,	     /* stall=BURST: it pauses there until the watchdog has said so */
	KNOB_ABANDON,	     /* abandon=BURST: it never comes back */
	KNOB_ABANDON_WRITER, /* the same of the frames' writer */
	KNOB_LEAVES_LATE,    /* consumer and writer do all their work, and are not seen to leave */
	KNOB_SAVED_LATE,     /* saved-late=MS: a file that is saved takes so long to be closed */
	KNOB_COMES_BACK,     /* with these: it comes back once the session is destroyed */
	KNOB_DIES,	     /* dies=BURST: from then on the device reports a failure */
	KNOB_FLUSH_FAILS,
	/* The staged first frame. */
	KNOB_LINK_DOWN,
	KNOB_FILL_FAILS, /* fill-fails=N: call N of that operation and later */
	KNOB_MEMORY_FORGETS,
	KNOB_COPY_OUT_FAILS, /* =N */
	KNOB_COPY_IN_FAILS,  /* =N */
	KNOB_PROOF_REFUSED,
	KNOB_PROOF_LOST,
	KNOB_PROOF_QUEUE,
	KNOB_PROOF_MISSED,
	KNOB_PROOF_ERROR,
	KNOB_PROOF_CUT,	  /* =BYTES */
	KNOB_PROOF_SPLIT, /* =BYTES */
	KNOB_PROOF_FLAGGED,
	KNOB_PROOF_OUTSIDE,
	KNOB_PROOF_STALE, /* =BYTE: from there on its bytes are the poison again */
	KNOB_PROOF_FLIP,  /* =BIT */
	KNOB_CONSUMER_REFUSES,
	KNOB_CONSUMER_MUTE,
	KNOB_CONSUMER_DIES,
	KNOB_CONSUMER_STALE, /* =BYTE: from there on it reads the poison */
	KNOB_CONSUMER_STAYS,
	KNOB_CONSUMER_ABANDONS, /* takes the frame and never comes back */
	/* CUDA (builds with it): */
	KNOB_REGISTER_REFUSED, /* a card's doorbell register is not mapped */
	KNOBS
};

struct fault {
	enum knob knob;
	uint64_t number, value;
	uint16_t queue;
};

extern struct fault faults[KNOBS_MAX];
extern unsigned int fault_count;

/* The first fault of that kind, or NULL. */
const struct fault *fault_of(enum knob knob);

/* Reads GDRCAP_FAULTS. */
void knobs_read(void);

#endif
