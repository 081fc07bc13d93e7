/* SPDX-License-Identifier: BSD-3-Clause */
/* The stop and the close of a memif port, whose other end may leave at the same time. Control code. */
#ifndef GDRCAP_MEMIF_STOP_H
#define GDRCAP_MEMIF_STOP_H

#include <stdint.h>

/* rte_eth_dev_stop() of a port of memif's driver, and what it returns. */
int memif_stop(uint16_t port);
/* rte_eth_dev_close() of one, which must be stopped, with what the driver would leave allocated. */
int memif_close(uint16_t port);

#endif
