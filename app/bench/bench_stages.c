/* SPDX-License-Identifier: BSD-3-Clause */
/* The stages, in the order of measuring: what limits others comes before them. */
#include "bench/bench.h"

const struct bench_stage *const bench_stages[] = {
	&bench_memory_read,   &bench_rx_burst,	    &bench_gpu_memory, &bench_copy,
	&bench_zero_copy,     &bench_round_trip,    &bench_mempool,    &bench_ring,
	&bench_rx_worker,     &bench_front,	    &bench_consumer,   &bench_latency,
	&bench_sender,	      &bench_send,	    &bench_path,       &bench_image_place,
	&bench_image_latency, &bench_image_close,   &bench_image_path, &bench_idle_cost,
	&bench_idle_reads,
#ifdef GDRCAP_WITH_CUDA
	&bench_gpu_front,     &bench_front_latency,
#endif
};
const size_t bench_stage_count = sizeof(bench_stages) / sizeof(bench_stages[0]);
