/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Room for images in a run that reads files: a frame that may begin an image is held back until a buffer for that is
 * free, so that no image of a file is dropped. Network ports beside files take buffers without asking.
 *
 * A source promises a buffer to each frame of another image than those before it, and takes the promise back
 * when the frame is accounted for: then the assembler has seen the image, if it was one. So `promised` is never less than
 * what workers may still take.
 *
 * ROOM: a source adds to `promised`, acquire, then loads `free`. Partners: the assembler's store of `free`, and after
 * it the accountant's release of ring.accounted, which a source acquires before it takes promises back.
 */
#ifndef GDRCAP_FILE_ROOM_H
#define GDRCAP_FILE_ROOM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gdrcap.h"

#define FILE_ROOM_PROMISES 256u /* a source's at once */
#define FILE_ROOM_STREAMS 16u	/* of so many it is remembered which images have a promise */

struct image_layout;
struct ring_producer;

/* A session's. `count` 0: there are no images, and there is always room. */
struct file_room {
	uint32_t count;
	struct {
		const struct image_layout *layout;
		uint64_t linger_ns;
		const _Atomic uint32_t *free; /* buffers in which no image was seen */
		_Atomic uint32_t promised;
	} image[GDRCAP_IMAGES_MAX];
};

/* A source's. */
struct file_promises {
	struct file_room *room;
	const struct ring_producer *ring; /* of the source's thread */
	struct {
		uint32_t at;	/* descriptor */
		uint32_t image; /* in room->image[] */
	} list[FILE_ROOM_PROMISES];
	uint32_t first, end; /* free-running */
	uint64_t
		over_ns; /* the frame asked for is its image's last, which is over so long after it;
			      * UINT64_MAX: it is not */
	/* A stream's last two images, the newest first: another frame of these needs no promise. */
	struct file_recent {
		uint64_t stream, number[2];
		uint32_t image; /* + 1; 0: none */
	} recent[FILE_ROOM_STREAMS];
	uint32_t turn;
};

/* Takes back what is accounted for. Once a burst. */
void file_room_look(struct file_promises *promises);
/* The file begins again, and with it its images' numbers. */
void file_room_forget(struct file_promises *promises);
/* True: the frame may be published, as descriptor `at`. */
bool file_room_for(struct file_promises *promises, const uint8_t *frame, uint32_t len, uint32_t at);

#endif
