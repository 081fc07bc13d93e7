/* SPDX-License-Identifier: BSD-3-Clause */
/* Where DPDK's tools look for telemetry sockets: EAL's run-time folder of this user. */
#ifndef GDRCAP_APP_TELEMETRY_SOCKET_H
#define GDRCAP_APP_TELEMETRY_SOCKET_H

#include <stddef.h>

#include "unix_path.h"

/* Listens at the first of dpdk_telemetry.v2, dpdk_telemetry.v2:1, ... that no process has. A descriptor that does not
 * block, or a negative errno; `why` says what helps. */
int telemetry_socket_open(struct unix_path *place, char *why, size_t bytes);

#endif
