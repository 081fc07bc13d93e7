/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault knobs of the software ConnectX.
 *
 * Read from the environment (SOFTMLX5_FAULTS) at the start and from a file (SOFTMLX5_FAULTS_FILE)
 * whenever that changes. Settings are separated by commas, blanks or line ends:
 *
 *   [DEVICE.]KNOB=START[/STEP[/COUNT]]   from the START-th event on, every STEP-th, COUNT times (0:
 * without end) [DEVICE.]SETTING=VALUE KNOB=off
 *
 * DEVICE is 0, 1...; without it, all devices. STEP and COUNT are 1 where not given.
 */
#ifndef SOFT_FAULTS_H
#define SOFT_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

struct soft_knob {
	uint64_t seen;	/* events so far */
	uint64_t start; /* 0: off */
	uint64_t step;
	uint64_t count; /* 0: without end */
	uint64_t hits;
};

struct soft_faults {
	/* Events: frames that this device sends. */
	struct soft_knob drop;
	struct soft_knob corrupt;
	struct soft_knob duplicate;
	struct soft_knob reorder;   /* the frame comes after its successor */
	struct soft_knob link_down; /* for link_ms */
	/* Events: send WQEs. */
	struct soft_knob tx_error;
	/* Events: frames that reach this device. */
	struct soft_knob crc;	  /* arrives damaged, and the card sees it */
	struct soft_knob discard; /* no room in the card's own buffer */
	/* Events: frames for a receive queue. */
	struct soft_knob no_buffers;
	struct soft_knob rx_error;
	struct soft_knob revoke; /* the key of the frame's buffer, for good */
	struct soft_knob late;	 /* completion late_us after the data */
	struct soft_knob stale;	 /* data stale_us after the completion */
	struct soft_knob wrong_owner;
	struct soft_knob wrong_entry; /* the completion names the work entry after its own */
	/* Likewise, of striding queues: its stride after its own; a WQE is closed that has room. */
	struct soft_knob wrong_stride, filler;
	struct soft_knob torn; /* a completion's last 8 bytes come torn_us before the others */
	struct soft_knob flip; /* a bit of the DMA, not of the wire */
	/* Events: registrations that ask for the memory of a device. */
	struct soft_knob refuse_peer;
	struct soft_knob refuse_dmabuf;
	struct soft_knob refuse; /* any registration */
	/* Events: registrations of rings. */
	struct soft_knob refuse_umem;
	/* Events: commands that make objects; refused with a syndrome. */
	struct soft_knob refuse_object;
	/* Events: channels for the events of completion queues. */
	struct soft_knob refuse_channel;
	/* Events: rules that lead to receive queues. */
	struct soft_knob refuse_rule;

	uint64_t link;	  /* 0: cable out; 1: in */
	uint64_t link_ms; /* 0: until link=1 */
	uint64_t late_us;
	uint64_t stale_us; /* 0: when the reader asks for the time (reader.c) */
	uint64_t torn_us;
	uint64_t corrupt_at; /* byte of the frame; beyond its end: the middle */
	uint64_t pause;	     /* 1: flow control: senders wait while a queue has few buffers */
	uint64_t play; /* the file SOFTMLX5_PLAY leaves this device so many times; 0: begin anew */
	uint64_t gone; /* 1: the kernel gives the card up, and says so */
	uint64_t log_strides_min; /* of a striding queue's WQE; 0: the card has no such queues */
	uint64_t
		strict_states; /* 1: a receive queue's command must name the state that it is in; the
				 * driver's vector functions do not, after an error */
	/* Planted defects of the model, to test the tests. */
	uint64_t no_key_check;
	uint64_t loose_match;
	uint64_t ignore_doorbells;
	uint64_t ignore_records; /* takes work entries of receive queues that are not posted */
};

struct soft_device;

/* Counts an event; true: the fault is due now. */
static inline bool soft_fault(struct soft_knob *knob)
{
	if (knob->start == 0)
		return false;
	knob->seen++;
	if (knob->seen < knob->start || (knob->seen - knob->start) % knob->step != 0 ||
	    (knob->count != 0 && knob->hits >= knob->count))
		return false;
	knob->hits++;
	return true;
}

void soft_faults_init(void);
/* From now on, the settings are in that file. */
void soft_faults_watch(const char *path);

/* Takes over what changed in the file. Called by the card's thread, from time to time. */
void soft_faults_poll(void);

/* 0 or -EINVAL, with one line on stderr. */
int soft_faults_parse(const char *text);

#endif
