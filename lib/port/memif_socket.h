/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket of a memif server's port: why it could not be had. Control code. */
#ifndef GDRCAP_MEMIF_SOCKET_H
#define GDRCAP_MEMIF_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

/* After the driver refused `port`: the cause, with its remedy, as far as it is to be seen. False:
 * it is not a port that listens on a path, or nothing is wrong with that. */
bool memif_socket_why(const char *port, char *why, size_t bytes);

#endif
