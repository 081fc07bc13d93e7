/* SPDX-License-Identifier: BSD-3-Clause */
/* What the program may still do to the system once its ports are open. */
#ifndef GDRCAP_APP_PRIVILEGES_H
#define GDRCAP_APP_PRIVILEGES_H

#include "gdrcap.h"

typedef void privileges_teller(void *context, enum gdrcap_log_level level, const char *line);

/*
 * Gives up, in every thread of the process, all capabilities but those that these ports need until
 * they are closed; and for good: no program that is executed gets any back. Frames are
 * untrusted, and from here on they are read. `tell` is called with lines for people where threads
 * keep what they have.
 */
void privileges_drop(const struct gdrcap_config *config, privileges_teller *tell, void *context);

#endif
