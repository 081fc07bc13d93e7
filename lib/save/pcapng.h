/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes pcapng (IETF draft-ietf-opsawg-pcapng), one section, in the byte order of this machine.
 * Whole blocks are collected in a buffer and written when it is full, with write() and not stdio:
 * after a failed write it is then known how much arrived, and the file is cut where a block ends.
 *
 * A pipe whose reader takes nothing for stall_ms is an error. A file of which the system does not
 * answer cannot be left by the thread that writes it; another one can give it up.
 *
 * After an error every call returns it and does nothing. One thread at a time, but for what says
 * otherwise.
 */
#ifndef GDRCAP_PCAPNG_H
#define GDRCAP_PCAPNG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PCAPNG_SNAPLEN_MAX 65535u
#define PCAPNG_TEXT_MAX 1024u /* bytes of a name or comment; what is longer is cut */

#define PCAPNG_STALL_MS 10000u

/* Where the thread is that writes. */
enum pcapng_place {
	PCAPNG_HERE,
	PCAPNG_IN_SYSTEM, /* in a call that may never return */
	PCAPNG_GIVEN_UP,  /* and whose end nobody waits for any more */
};

struct pcapng {
	int fd;
	uint8_t *buffer;
	uint32_t used;	   /* bytes of whole blocks in the buffer */
	uint32_t out;	   /* of these: that the file took */
	uint32_t pending;  /* frames among them */
	uint32_t stall_ms; /* PCAPNG_STALL_MS; may be set when it is open */
	uint64_t bytes;	   /* of whole blocks in the file */
	uint64_t frames;   /* in these */
	int error;	   /* negative errno of the write that failed */
	bool stalled;	   /* then: nobody read */
	bool torn;	   /* then: the file's last block is not whole, and could not be cut off */
	_Atomic int place; /* enum pcapng_place */
	_Atomic uint64_t moved; /* bytes that the file took. Readers: any thread */
};

struct pcapng_frame {
	uint32_t interface; /* in the order of pcapng_interface() */
	uint64_t time_ns;   /* since the Unix epoch */
	const uint8_t *bytes;
	uint32_t captured, length; /* bytes of the frame here, and that it had */
	uint64_t dropped; /* of the interface, missing here since its last frame; 0: not written */
	const char *comment; /* or NULL */
};

struct pcapng_statistics {
	uint32_t interface;
	uint64_t start_ns, end_ns; /* of the capture */
	bool port_known;	   /* received and dropped mean something */
	uint64_t received;	   /* frames that reached the port */
	uint64_t dropped;	   /* of these: lost in the port, or wanted here and not taken */
	uint64_t accepted;	   /* wanted here */
	uint64_t delivered;	   /* here */
};

/* Opens the file as it is, what is in it stays until pcapng_begin(); or creates it, for its owner
 * alone. -EISDIR for a folder, -ELOOP for a symbolic link (/dev/stdout and /dev/fd/N are none here),
 * -ENXIO for a pipe without a reader, -EBUSY if another run, session or option has locked it, and what open() returns. */
int pcapng_open(struct pcapng *file, const char *path);

/* Empties the file. Section header: which program writes it. */
int pcapng_begin(struct pcapng *file, const char *application);
int pcapng_interface(struct pcapng *file, const char *name, const char *description,
		     uint32_t snaplen);
int pcapng_frame(struct pcapng *file, const struct pcapng_frame *frame);
int pcapng_statistics(struct pcapng *file, const struct pcapng_statistics *statistics);

/* What is in the buffer goes to the file. */
int pcapng_flush(struct pcapng *file);
/* Flushes, closes and frees; also after a failed open. 0, or the first error. */
int pcapng_close(struct pcapng *file);

/*
 * Any other thread: where the one that writes is in a call of the system, it is left there, and
 * the file is the caller's: -ETIMEDOUT is its error. The call that the other thread made here
 * returns -ECANCELED when the system answers; it must not touch the file after that. False, with
 * nothing done, when it is not in such a call. `file` and its buffer must stay, since the system
 * still reads it: pcapng_close() then neither closes nor frees.
 */
bool pcapng_give_up(struct pcapng *file);

static inline bool pcapng_is_given_up(const struct pcapng *file)
{
	return atomic_load_explicit(&file->place, memory_order_relaxed) == PCAPNG_GIVEN_UP;
}

/* Frames that are in the file, or will be if the next flush succeeds. */
static inline uint64_t pcapng_frames(const struct pcapng *file)
{
	return file->frames + file->pending;
}

/* Those that are in it: this never falls. */
static inline uint64_t pcapng_written(const struct pcapng *file)
{
	return file->frames;
}

#endif
