/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of own frames made by hand, and what must hold of a verdict. After cmocka.h. */
#ifndef GDRCAP_TEST_VERDICT_RECORDS_H
#define GDRCAP_TEST_VERDICT_RECORDS_H

#include "verdict/verdict.h"

static inline int create(struct verdict *verdict, uint32_t queues, uint32_t own_streams)
{
	return verdict_create(verdict, queues,
			      &(struct verdict_config){ .own_streams = own_streams });
}

static inline void identities(const struct gdrcap_counts *counts)
{
	assert_true(counts->received ==
		    counts->valid + counts->damaged + counts->duplicate + counts->filtered);
	assert_true(counts->sent == counts->valid + counts->damaged + counts->lost);
}

static inline struct frame_record record_of(uint16_t stream, uint64_t sequence, uint16_t count,
					    uint8_t verdict, uint8_t header_ok)
{
	return (struct frame_record){
		.sequence = sequence,
		.stream = stream,
		.count = count,
		.verdict = verdict,
		.header_ok = header_ok,
		.bytes = 24u * count,
		.frame_bytes = 60u * count,
	};
}

static inline void add(struct verdict *verdict, uint32_t queue, struct frame_record record)
{
	verdict_add(verdict, queue, &record);
}

#endif
