/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a frame lies, from its mbuf: for those who publish it. Reads the mbuf, not the frame. */
#ifndef GDRCAP_MBUF_DESC_H
#define GDRCAP_MBUF_DESC_H

#include <rte_mbuf.h>

#include "capture/burst_ring.h"

/* `base`: of the region as mbufs have it; slots of 2^slot_shift bytes. */
static inline __attribute__((always_inline)) struct frame_desc
mbuf_desc(const struct rte_mbuf *m, const uint8_t *base, uint32_t slot_shift)
{
	const uint64_t at = (uint64_t)((uint8_t *)m->buf_addr + m->data_off - base);

	return (struct frame_desc){
		.slot = (uint32_t)(at >> slot_shift),
		.len = m->data_len,
		.offset = (uint16_t)(at & ((1u << slot_shift) - 1)),
	};
}

#endif
