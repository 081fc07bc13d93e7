/* SPDX-License-Identifier: BSD-3-Clause */
/* A slot's mbuf before it goes to a port. */
#ifndef GDRCAP_SEND_MBUF_H
#define GDRCAP_SEND_MBUF_H

#include <stdint.h>

#include <rte_mbuf.h>

/* As a driver wants it: what its last user left is gone. */
static inline void send_mbuf(struct rte_mbuf *m, uint32_t bytes)
{
	m->ol_flags &= RTE_MBUF_F_EXTERNAL;
	rte_pktmbuf_reset_headroom(m);
	m->data_len = (uint16_t)bytes;
	m->pkt_len = bytes;
	m->nb_segs = 1;
	m->next = NULL;
}

#endif
