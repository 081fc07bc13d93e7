/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pcap or pcapng file, read frame by frame. Every file is hostile: what is not whole, or is not Ethernet, is an error
 * that names the file, the frame and the remedy.
 */
#ifndef GDRCAP_PCAP_FILE_H
#define GDRCAP_PCAP_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gdrcap.h"

struct pcap_file;

struct pcap_frame {
	const uint8_t *bytes; /* until the next call */
	uint32_t len;	      /* in memory, without FCS; 14..9212, a port's of any length */
	uint64_t time_ns;     /* since the Unix epoch */
};

/* Times of a file, and their sums, stay below this (the year 2116), so that two of them add up within 63 bits. */
#define PCAP_TIME_MAX_NS ((uint64_t)1 << 62)

/* `stream` NULL: opens `path`; else reads from it (it is closed with the file) and `path` is its
 * name for error texts. */
int pcap_file_open(struct pcap_file **file, const char *path, FILE *stream,
		   struct gdrcap_error *error);
/* For a port, which receives frames of any length: a file, or a pipe, whose head is read with the first frame. */
int pcap_file_open_port(struct pcap_file **file, const char *path, struct gdrcap_error *error);
/* 1 and *frame filled; 0 at the end; -EAGAIN: a pipe has not brought the next frame yet; another negative errno: the file is
 * broken here. */
int pcap_file_next(struct pcap_file *file, struct pcap_frame *frame, struct gdrcap_error *error);
/* The same past a frame, however long it is and whenever it came. */
int pcap_file_skip(struct pcap_file *file, struct gdrcap_error *error);
/* Back to the first frame. */
int pcap_file_rewind(struct pcap_file *file, struct gdrcap_error *error);
/* How far it is read, and how long it is, in bytes of the file; a length of 0 is not known. */
void pcap_file_where(const struct pcap_file *file, uint64_t *at, uint64_t *bytes);
const char *pcap_file_name(const struct pcap_file *file);
void pcap_file_close(struct pcap_file *file);

#endif
