/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Images instead of frames: what option `image` describes, put together in GPU memory. Part of gdrcap.h.
 *
 * An image is one contiguous object, a picture or a block of samples, divided into pieces: what can be
 * missing. It is complete when all of its pieces came, and is handed out at once, unless an older one of
 * its stream is still open. An incomplete one is closed when more than `open` images of its stream
 * are open, when nothing of it came for `timeout`, `linger` after its sender's end marker, or by
 * gdrcap_stop(), and handed out with a bitmap of what came. No piece is written twice, and nothing is
 * written into an image that was handed out.
 *
 * Images of a stream come in order of their numbers. A buffer is the caller's until he releases it;
 * when none is left, new images are dropped (or, by `full: drop_oldest`, the oldest that he has not
 * taken): a slow caller costs images, and never holds up the port.
 */
#ifndef GDRCAP_IMAGE_H
#define GDRCAP_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GDRCAP_IMAGES_MAX 4	    /**< descriptions in one session */
#define GDRCAP_IMAGE_STREAMS_MAX 64 /**< streams of each */
#define GDRCAP_INCOMPLETE_MAX 16
#define GDRCAP_RANGES_MAX 8

struct gdrcap_config;
struct gdrcap_session;
struct gdrcap_images; /**< the images of one description: one caller thread */
struct CUstream_st;

/** Why an image was closed. */
enum gdrcap_image_end {
	GDRCAP_IMAGE_COMPLETE, /**< all of it came */
	GDRCAP_IMAGE_NEWER,    /**< more than `open` images of its stream were open */
	GDRCAP_IMAGE_TIMEOUT,  /**< nothing came for `timeout`, or `linger` after its end marker */
	GDRCAP_IMAGE_STOPPED,  /**< the run was ended */
};

struct gdrcap_image {
	uint64_t seq; /**< +1 an image that the caller takes, no gaps */
	uint64_t
		number; /**< the sender's, extended to 64 bits; a time stamp where that is the number */
	uint64_t stream_id; /**< the sender's; 0 where there is one stream */
	uint32_t stream;    /**< its index: gdrcap_get_image_stream() */
	uint32_t end;	    /**< enum gdrcap_image_end */
	uint8_t *data;	    /**< the first byte; a device pointer where images lie in GPU memory */
	uint64_t bytes;	    /**< that it has, with its rows' padding; where nobody said: the most.
			       * This and all that counts bytes of an image: as they lie there, so
			       * with `convert` converted ones */
	uint64_t placed;    /**< that came, second copies not counted */
	uint32_t pieces;    /**< that it has; 0: nobody said how many */
	uint32_t received;  /**< of them came */
	const uint32_t *present; /**< bit i % 32 of word i / 32: piece i came; for CPU and GPU */
	uint64_t
		skipped; /**< images of the stream of which nothing came, since the one before; 0 where
			   * numbers are time stamps */
	uint64_t first_time, last_time; /**< arrival of the first and the last piece, as of the
					 * burst that brought them, when its last frame was taken
					 * from the port: ns since the Unix epoch. Where all
					 * ports are files: by the files' times */
	uint64_t timestamp, fields[4];	/**< the sender's, as described; 0 where it is not */
};

/** Bytes next to each other, from the image's first. */
struct gdrcap_range {
	uint64_t from, bytes;
};

/**
 * The caller's own memory for the images of description `index`, instead of what the session would
 * allocate: buffer i of `ring` begins at addr + i * stride. `addr` and `stride` are multiples of 64;
 * `stride` is an image's bytes or more, and `bytes` ring * stride or more. On a GPU it is the GPU's own
 * (cudaMalloc() on the session's device) or pinned (cudaHostAlloc(), cudaHostRegister()); without one,
 * any memory that can be written. It is not cleared, and must stay until gdrcap_destroy(); no other
 * session may have it. addr NULL: none. -EINVAL: no such index. The rest is checked by gdrcap_create().
 */
int gdrcap_config_set_image_memory(struct gdrcap_config *config, uint32_t index, void *addr,
				   uint64_t bytes, uint64_t stride);

/** Images of description `index`; NULL after the last. */
struct gdrcap_images *gdrcap_get_images(struct gdrcap_session *session, uint32_t index);
/** The description's name: of its preset, or its file. */
const char *gdrcap_images_name(const struct gdrcap_images *images);
/**
 * Up to `max` images, oldest first: their count, 0 for none yet, -ESHUTDOWN for none ever again. One
 * thread; no lock, allocation or log. Their bytes are visible to kernels that are launched afterwards.
 * Each is the caller's, and does not change, until it is released or the session is destroyed.
 */
int gdrcap_image_poll(struct gdrcap_images *images, const struct gdrcap_image **image,
		      unsigned int max);
/** The same, waiting up to `usec` microseconds (-1: for ever) for the first, as gdrcap_wait() does. */
int gdrcap_image_wait(struct gdrcap_images *images, const struct gdrcap_image **image,
		      unsigned int max, int64_t usec);
/** A descriptor for poll(), epoll or an event loop, or -errno, by gdrcap_queue_fd()'s rules: a
 * gdrcap_image_poll() that returned 0 arms it. */
int gdrcap_image_fd(struct gdrcap_images *images);
/** Which bytes did not come, in order: how many ranges there are, of which the first `max` are put into
 * `ranges` (NULL where `max` is 0). Rows' padding is no part of any. Of an image of which nobody said
 * how long it is, up to the most that there can be. Any thread that has the image. */
int gdrcap_image_missing(const struct gdrcap_image *image, struct gdrcap_range *ranges,
			 unsigned int max);
/** Copies bytes of an image to host memory, from wherever it lies; returns when they are there. 0,
 * -EINVAL past its end, or another negative errno of the GPU's. One thread at a time. */
int gdrcap_image_copy(const struct gdrcap_image *image, uint64_t from, uint64_t bytes, void *to);
/** Gives images back, in any order. Any thread. One that is not the caller's, since it was given back
 * before, is passed over; but once its memory has a later image that the caller took, that is the one
 * given back. */
void gdrcap_image_release(struct gdrcap_images *images, const struct gdrcap_image *const *image,
			  unsigned int count);
/** Gives them back once `stream` has reached this point; returns at once: how many it took, in order,
 * the rest being still the caller's, or a negative errno for none. Synchronise the stream before
 * gdrcap_destroy(). */
int gdrcap_image_release_after(struct gdrcap_images *images,
			       const struct gdrcap_image *const *image, unsigned int count,
			       struct CUstream_st *stream);

/** For a kernel that is already running (consumer: gpu), which then has the images in the place of poll,
 * wait and release: see gdrcap_device.cuh. */
struct gdrcap_gpu_images {
	const void *images;    /* image seq: at images + (seq & mask) * stride, with image_bytes */
	const uint64_t *ready; /* of image seq: at ready + (seq & mask) * stride, in bytes */
	uint64_t *done;	       /* of image seq: done[seq & mask] */
	const uint32_t *stop;
	uint32_t mask, image_bytes, stride;
	uint32_t reserved;
};
/** -EINVAL: consumer is not gpu. Before or after gdrcap_start(). The words are there until
 * gdrcap_destroy(): no kernel may use them any more then. */
int gdrcap_get_gpu_images(struct gdrcap_images *images, struct gdrcap_gpu_images *gpu_images,
			  size_t size);

/* ---- results: any thread, at any time ---- */

/**
 * Of one description, or of one of its streams. Exactly, while the run goes on with what is open in
 * addition: frames = placed + duplicate + second_leg + conflict + late + no_room + misfit + filtered; begun =
 * complete + incomplete + dropped + open; incomplete = newer + timeout + stopped; pieces_expected = pieces_placed +
 * pieces_lost. Every image came whole when incomplete, dropped, skipped and no_room are 0, but for those that the
 * run cut; and each is of one sender's bytes when conflict is 0.
 */
struct gdrcap_image_counts {
	uint64_t frames;    /**< received; of a stream: those that name it */
	uint64_t placed;    /**< brought pieces, or told of an image */
	uint64_t duplicate; /**< all that they brought was there */
	uint64_t late;	    /**< with data of images that had been handed out, or newer ones had */
	uint64_t
		no_room; /**< of images for which no buffer was free; of streams that are too many: these
			  * frames are in no stream's counts, and their images in no count at all */
	uint64_t misfit; /**< meant, and wrong; of a stream: 0, since what they name may be wrong */
	uint64_t filtered; /**< not meant: told with the first description */
	uint64_t begun, complete, incomplete;
	uint64_t newer, timeout, stopped; /**< of `incomplete` */
	uint64_t dropped;  /**< no buffer was free, or the caller did not take them, or they were
			   * incomplete and not wanted */
	uint64_t open;	   /**< now */
	uint64_t skipped;  /**< numbers of which nothing came; 0 where numbers are time stamps */
	uint64_t restarts; /**< times that a stream's numbers went on elsewhere */
	/** Of images that had a buffer and are closed, and of which somebody said how many they have. */
	uint64_t pieces_expected, pieces_placed, pieces_lost;
	uint64_t bytes;	 /**< placed, in closed images; as sent, where they are converted */
	int has_skipped; /**< 1: `skipped` is counted */
	int reserved;
	/** Of `incomplete`, or with `incomplete: drop` of `dropped`: images in whose middle the run began, or
	 * stopped. All of them came that could: they fail no run. */
	uint64_t cut_by_start, cut_by_stop;
	uint64_t
		second_leg; /**< with `legs: 2`, instead of `duplicate`: all that they brought was there */
	/** Of another sender than their image, or other bytes were there: gdrcap_get_conflict() */
	uint64_t conflict;
	uint64_t legs; /**< senders that bring the same images, as described; 0: any number */
};
/** Of description `index`. -ENOENT after the last. */
int gdrcap_get_image_counts(const struct gdrcap_session *session, uint32_t index,
			    struct gdrcap_image_counts *counts, size_t size);
/** Of stream `stream` of description `index`, and the sender's id of it. -ENOENT after the last. */
int gdrcap_get_image_stream(const struct gdrcap_session *session, uint32_t index, uint32_t stream,
			    uint64_t *id, struct gdrcap_image_counts *counts, size_t size);

/** Frames that brought nothing to an image for one reason. */
struct gdrcap_refused {
	const char *reason; /**< as in JSON: "payload", "fragment", ... */
	uint64_t frames;
	int misfit;	/**< 1: they match, and do not fit the layout; 0: they are filtered */
	char text[220]; /**< behind "frames": what the first had, and what the layout has */
};
/** Reason number `n` of description `index`, misfits first. -ENOENT after the last. */
int gdrcap_get_refused(const struct gdrcap_session *session, uint32_t index, uint32_t n,
		       struct gdrcap_refused *refused, size_t size);

/** The first frame of a stream of another sender than the one that began its image, or for whose pieces other bytes were
 * there. */
struct gdrcap_conflict {
	uint64_t frames; /**< all such frames of the stream */
	uint64_t stream_id;
	uint64_t number; /**< of the image, as on the wire */
	uint32_t stream;
	int other_bytes; /**< 1: the bytes are others; 0: the sender is */
	/** Who began the image, and who sent the frame, as far as the frames have it:
	 * "02:00:00:00:00:01 vlan 5 10.0.0.1:5000". */
	char first[88], second[88];
};
/** Conflict number `n` of description `index`, one a stream. -ENOENT after the last. */
int gdrcap_get_conflict(const struct gdrcap_session *session, uint32_t index, uint32_t n,
			struct gdrcap_conflict *conflict, size_t size);

/** One of the first incomplete images. */
struct gdrcap_incomplete {
	uint64_t number, stream_id;
	uint32_t stream;
	uint32_t end;		   /**< enum gdrcap_image_end */
	uint32_t pieces, received; /**< as in struct gdrcap_image */
	uint32_t ranges;	   /**< that are missing; the first GDRCAP_RANGES_MAX: */
	uint32_t reserved;
	struct gdrcap_range missing[GDRCAP_RANGES_MAX];
};
/** Number `n` of description `index`. -ENOENT after the last (GDRCAP_INCOMPLETE_MAX are kept). */
int gdrcap_get_incomplete(const struct gdrcap_session *session, uint32_t index, uint32_t n,
			  struct gdrcap_incomplete *incomplete, size_t size);

#ifdef __cplusplus
}
#endif
#endif
