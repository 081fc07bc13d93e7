/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receive queue that reads a pcap or pcapng file, or a pipe of one: it stands in the rx worker's thread in place of a
 * port's driver (rx_source_t). A record's frame is copied into a slot when one is free; until then the file waits. A
 * record that is not a whole frame ends the source with an error; a frame that is longer than a slot, or than a frame
 * can be, is received as the beginning of one, and marked so.
 *
 * Where the run goes by the files' times (capture/source_clock.h), a frame is due at its record's. Times never fall: a
 * record that is a little older than one before it is due with that; where they step back further, what follows is due
 * as long after the last frame as after each other. A file that is read again begins after a silence.
 */
#ifndef GDRCAP_FILE_SOURCE_H
#define GDRCAP_FILE_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gdrcap.h"
#include "replay/file_room.h"
#include "replay/pcap_file.h"

struct rte_mbuf;
struct rte_mempool;

struct file_source_config {
	const char *path;
	bool loops; /* the file is read again and again */
	struct rte_mempool *pool;
	/* Where a frame's time goes in its mbuf, ns since the Unix epoch; time_flag 0: nowhere. */
	int time_offset;
	uint64_t time_flag;
	struct source_clock *clock; /* NULL: frames have no time but that at which they are read */
	uint64_t silence_ns;	    /* with a clock: before it is read again */
};

struct file_source {
	struct file_source_config config; /* path: pcap_file_name() */
	struct pcap_file *file;
	struct file_promises promises;
	struct pcap_frame next; /* with has_next: read, and not handed out */
	bool has_next, over;
	uint64_t frames; /* since the file's beginning */
	/* With a clock. ns since the Unix epoch, of the record plus `shift`. */
	uint32_t index; /* in the clock */
	uint64_t shift;
	uint64_t due;	/* of `next`; of the last frame while there is none. 0: none was read */
	uint64_t first; /* of the burst that is not published */
	uint64_t until; /* an image whose end it handed out is over after it; UINT64_MAX: none is */
	uint64_t came;	/* of the newest frame that was handed out */
	uint64_t read;	/* ticks: when `next` was */
	bool anew;	/* `next` is the first of another loop */
	bool wanted_room;
	/* `error` before `failed`. Partner: the acquire load of who reads it. */
	struct gdrcap_error error;
	_Atomic int failed;
};

int file_source_open(struct file_source **source, const struct file_source_config *config,
		     struct gdrcap_error *error);
/* Before the thread starts. */
void file_source_attach(struct file_source *source, struct file_room *room,
			const struct ring_producer *ring, uint32_t index);
/* rx_source_t */
int file_source_receive(void *source, struct rte_mbuf **mbufs, uint16_t n);
void file_source_close(struct file_source *source);

#endif
