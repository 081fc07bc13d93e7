/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A card's clock read by libibverbs, from the card's RDMA device, which is opened once more for it.
 * It is the counter that frames get, or on a card of real time the free-running one beside it. Any
 * thread may read it: that takes no lock and changes nothing.
 */
#ifndef GDRCAP_RX_CLOCK_VERBS_H
#define GDRCAP_RX_CLOCK_VERBS_H

#include <stdint.h>

struct ibv_context;

/* -ENODEV: the port has no RDMA device. */
int rx_clock_verbs_open(struct ibv_context **verbs, uint16_t port);
int rx_clock_verbs_read(struct ibv_context *verbs, uint64_t *ticks);
void rx_clock_verbs_close(struct ibv_context *verbs);

#endif
