/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's own log lines, on their way to the session that they are about. */
#ifndef GDRCAP_LOG_DPDK_H
#define GDRCAP_LOG_DPDK_H

/* From now on DPDK logs through log_driver_line(). For an EAL of our own: an embedder's has its
 * embedder's stream. 0 or -ENOMEM. */
int log_dpdk_take(void);

#endif
