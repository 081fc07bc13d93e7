/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The assembler: from what workers placed (struct place_record) to images that are handed out. One
 * description's; one thread, the accountant's, which sees the records of all queues, so that an image may
 * come by several. It waits for nothing: what is due is looked for in rounds.
 *
 * A stream's images that are not handed out yet are a list, in the order in which they will be. A new one
 * is put in by its number, from the newest backwards, past those that are newer by `late` at most; so a
 * number that has nothing to do with the others costs one image, and the stream goes on. The oldest is
 * handed out when it is complete or closed. One of which pieces are missing is closed
 *
 *   - when more than `open` images are in the list, the oldest first (NEWER),
 *   - `timeout` after something of it was placed last, `linger` after its end marker, or `timeout` after
 *     something of a newer one that is complete was (TIMEOUT),
 *   - at the end (STOPPED).
 *
 * To close it: window[stream].last first, so that nobody begins one that would have to be handed out
 * before; then config->close, and when the device says that nobody is in it any more, what it counted
 * is exact. One that is complete though the sender said fewer pieces than there can be is closed as well, since
 * a piece more may come. Into another that is complete nobody writes any more: it is handed out first, and its
 * entry closed soon after (config->close_whole), with others, so that its number may be used again.
 *
 * A stream of which nothing was placed, nothing found no buffer and nothing was closed by time for
 * `timeout`, and of which nothing is open, forgets what was handed out: a sender that begins anew a few
 * numbers back is not late.
 */
#ifndef GDRCAP_ASSEMBLER_H
#define GDRCAP_ASSEMBLER_H

#include "gdrcap.h"
#include "image/image_ring.h"

#define ASSEMBLER_NONE UINT32_MAX
#define ASSEMBLER_RUNS 8u     /* of numbers without a buffer, remembered a stream */
#define ASSEMBLER_SHUT_US 50u /* `shut`: of a GPU a launch each, whatever the images' rate */
#define ASSEMBLER_JUMP                                                                             \
	65536u /* so many numbers further on is another beginning, and nothing skipped */

struct assembler_config {
	const struct place_view *view; /* kept; read: layout, shared, present_host, ring */
	uint8_t *data;		       /* image buffers, as the caller addresses them */
	uint32_t open;
	/* In a unit of the caller's, which all times here have: ticks; ns where a run goes by files' times. */
	uint64_t timeout, linger;
	uint64_t shut; /* that a complete image's entry may stay open */
	bool dated; /* copies are late after `shut`, also if the entry still is: frames have exact times */
	int fill; /* -1: nothing */
	bool drop_incomplete, drop_oldest;
	/* kernel_ops.place_close(); `pieces` is described there. On a negative errno, which `failure` keeps, the image
	 * is dropped. */
	int (*close)(void *context, uint32_t slot, uint32_t use, uint32_t pieces, int fill);
	/* kernel_ops.place_close_whole(); the same. */
	int (*close_whole)(void *context, const struct place_whole *images, uint32_t count);
	/* Before the run's first poll; whether frames may still have come when it ended; whether it has as many whole
	 * images as it is to have. NULL: images that the run's start or stop cut are not told from others. */
	uint64_t (*began)(void *context);
	bool (*came_on)(void *context);
	bool (*has_all)(void *context);
	/* Ticks to ns since the Unix epoch; NULL: as they are. */
	uint64_t (*time_ns)(void *context, uint64_t ticks);
	double ns_a_tick;
	void *context;
};

/* Incomplete, and nothing is lost: what is missing came before the run, or behind it. */
enum image_cut { IMAGE_NOT_CUT, IMAGE_CUT_BY_START, IMAGE_CUT_BY_STOP };

enum assembler_state {
	ASSEMBLER_GIVEN, /* the workers', who have not told of an image in it */
	ASSEMBLER_OPEN,
	ASSEMBLER_CLOSING,
	ASSEMBLER_DONE, /* complete or closed; older ones are not */
	ASSEMBLER_OUT,	/* the caller's, or on its way to and from him */
};

/* An image buffer. */
struct assembler_slot {
	struct gdrcap_image image;   /* as it was handed out */
	struct gdrcap_images *owner; /* whose image this is: images.h */
	uint64_t number, bytes;
	uint64_t first, last;		    /* ticks: arrival */
	uint64_t ended;			    /* when its end marker came, with `ends` */
	uint64_t first_record, last_record; /* that placed something: assembler.records */
	uint32_t use, stream;
	uint32_t pieces; /* placed */
	uint32_t frames; /* placed, leaders and trailers with them */
	uint32_t said;	 /* that it has; 0: nobody said */
	uint32_t past;	 /* the last one placed, + 1 */
	uint32_t
		short_at; /* image_part.short_at of the piece that ends within itself; 0: none does */
	uint32_t last_bytes; /* closed: of the last piece, if that one is short and there; else 0 */
	uint32_t older, newer;
	uint32_t ones; /* its bitmap for the caller is so many ones */
	uint8_t state, end, ends, lost;
	uint8_t whole;	/* complete, and its entry open */
	uint8_t leads;	/* first of its stream */
	uint8_t alien;	/* begun by another sender than the stream's */
	uint8_t cut;	/* enum image_cut */
	uint8_t behind; /* closed or complete when the run had all its images: config.has_all */
};

struct assembler_run {
	uint64_t first, last;
	uint32_t silences; /* the stream's, when it began */
};

struct assembler_stream {
	uint64_t id;
	uint32_t oldest, newest, listed; /* ASSEMBLER_NONE: the list is empty */
	uint32_t runs;			 /* in run[], the oldest first */
	struct assembler_run run[ASSEMBLER_RUNS];
	uint64_t last;	  /* number of the newest that left the list, with has_last */
	uint64_t skipped; /* that no image told yet */
	bool has_last;
	bool anew; /* silent since: what comes is not behind `last` */
	/* Who began the first image of the stream, or the first after its last silence; and who began another since. */
	struct image_sender sender, other;
	uint64_t other_number; /* of that image, with has_other */
	uint32_t sender_silences;
	bool has_sender, has_other;
	uint32_t silences; /* so far */
	uint64_t due;	   /* ticks: no open image is closed by time before that is over */
	uint64_t
		active; /* ticks: when something was placed or found no buffer, or time closed it */
	struct gdrcap_image_counts counts;
};

struct assembler {
	struct assembler_config config;
	struct image_ring *ring;
	uint32_t streams;
	uint64_t records; /* added so far */
	uint64_t found;	  /* whole images, those too that older ones hold up */
	uint64_t listing; /* bit s: stream s has a list */
	uint64_t active;  /* bit s: stream s has something to forget */
	struct place_whole whole[PLACE_WHOLE_MAX];
	uint32_t wholes;
	uint64_t whole_since; /* ticks, of the first */
	/* Buffers given that no image was seen in. Writer: the assembler. Others read it too: replay/file_room.h. */
	_Atomic uint32_t credits;
	_Atomic int failure;
	struct gdrcap_image_counts frames; /* what belongs to no stream */
	struct {
		uint64_t frames, values; /* of the first: image_refuse() */
	} refused[2][IMAGE_WHYS];	 /* filtered, misfits */
	uint32_t incomplete_count;
	struct gdrcap_incomplete incomplete[GDRCAP_INCOMPLETE_MAX];
	struct assembler_stream stream[PLACE_STREAMS_MAX];
	struct assembler_slot slot[PLACE_RING_MAX];
};

/* Gives all buffers to the workers. The view's shared memory is zeroed. */
void assembler_init(struct assembler *assembler, const struct assembler_config *config,
		    struct image_ring *ring);
/* `came`: when the record's frames did. */
void assembler_add(struct assembler *assembler, uint64_t came, const struct place_record *record);
/*
 * Takes buffers back, closes what is due, hands out what was closed. Often, also when nothing comes.
 * `seen`: all that had come by then was added. Time in which frames wait for who has no core closes no
 * image: true: one is due by now, and not by what was seen.
 */
bool assembler_round(struct assembler *assembler, uint64_t now, uint64_t seen);
/* No record will follow: closes all that is open. True when all of it was handed out; else rounds are
 * called until it is. */
bool assembler_finish(struct assembler *assembler, uint64_t now);
/* After that: nothing more is handed out. What a device did not close counts as dropped. */
void assembler_end(struct assembler *assembler, uint64_t now);

/* The first time at which a round closes an image or forgets a stream, if no record comes; UINT64_MAX: none does. */
uint64_t assembler_over(const struct assembler *assembler);
/* The device closes an image: what time does to others is known afterwards. */
bool assembler_closes(const struct assembler *assembler);
/* Images that miss pieces are in all buffers. */
bool assembler_is_full(const struct assembler *assembler);

/* The oldest that nobody has taken is dropped; false: there is none. */
bool assembler_drop_oldest(struct assembler *assembler);

/* All streams together. */
void assembler_counts(const struct assembler *assembler, struct gdrcap_image_counts *counts);
/* -ENOENT after the last. */
int assembler_stream_counts(const struct assembler *assembler, uint32_t stream, uint64_t *id,
			    struct gdrcap_image_counts *counts);

/* Why frames brought nothing, one reason after the other from *at = 0 on; -ENOENT after the last. */
int assembler_refused(const struct assembler *assembler, uint32_t *at,
		      struct gdrcap_refused *refused);
/* The first conflict of stream *at or a later one; *at: the stream behind it. -ENOENT after the last. */
int assembler_conflict(const struct assembler *assembler, uint32_t *at,
		       struct gdrcap_conflict *conflict);
/* JSON's name of enum image_why, and its sentence with the values of a frame. */
const char *image_why_name(uint32_t why);
void image_why_text(uint32_t why, uint64_t values, char *to, size_t bytes);

/* ---- bitmaps: image_bits.c ---- */

/* The ranges that are missing of the first `pieces`: how many; the first `max` into `ranges`. */
uint32_t image_bits_missing(const struct image_layout *layout, const uint32_t *present,
			    uint32_t pieces, struct gdrcap_range *ranges, uint32_t max);
/* The first piece that is there of the first `pieces`; `pieces`: none is. */
uint32_t image_bits_first(const uint32_t *present, uint32_t pieces);
/* The last piece that is there of the first `pieces`, + 1; 0: none is. */
uint32_t image_bits_past(const uint32_t *present, uint32_t pieces);
void image_bits_fill(uint32_t *present, uint32_t words, uint32_t pieces);

#endif
