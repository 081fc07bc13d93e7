/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that a port of DPDK's driver for files sends into. The driver empties them when the port is
 * made, before anybody knows whether the run starts. So it is given memory in their place, and its
 * descriptors become theirs when the run starts.
 */
#ifndef GDRCAP_HELD_FILES_H
#define GDRCAP_HELD_FILES_H

#include <stddef.h>

#include "gdrcap.h"

struct held_files;

/* Opens the files of `name`, a port with its arguments, without a change to them. 0: *args are what
 * the driver is to be given instead of the port's; they live as long as *held, which is NULL where
 * nothing is held back: the port sends into no file, or into pipes and devices only. */
int held_files_open(struct held_files **held, const char *name, const char **args,
		    struct gdrcap_error *error);
/* Empties the files; the driver writes to them from now on. Nobody sends yet. */
int held_files_begin(struct held_files *held, struct gdrcap_error *error);
/* After the port was closed. Files that were made and never begun are removed. NULL is fine. */
void held_files_close(struct held_files *held);

#endif
