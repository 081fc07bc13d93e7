/* SPDX-License-Identifier: BSD-3-Clause */
/* The start of a port that is one of two ends, whose other end may be another process. */
#ifndef GDRCAP_PORT_JOIN_H
#define GDRCAP_PORT_JOIN_H

#include "port/port.h"

/*
 * Starts the port and returns when both ends are connected: 0, or -ECONNREFUSED with the reason when
 * there is no answer within 5 s, or an answer that has begun is not complete after 20 s.
 */
int join_start(const struct port *port, struct gdrcap_error *error);

#endif
