/* SPDX-License-Identifier: BSD-3-Clause */
/* The sessions of path.h: how they are configured, and filled. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf_core.h>

#include "base/log.h"
#include "bench/path.h"
#include "session/session.h"

#define WIRE "ring:gdrcap_bench"
#define FILL_BYTES ((size_t)4 << 20) /* in one copy: whole slots of any size */
#define ETHERNET_BYTES 14u
#define QUIET_MS 3000u /* without a frame until those on the wire are given up */

/* Whatever is to be told, the result tells. */
static void no_line(void *context, enum gdrcap_log_level level, const char *line)
{
	(void)context;
	(void)level;
	(void)line;
}

static int memory_of(const char *name, enum gdrcap_memory *memory)
{
	for (*memory = GDRCAP_MEMORY_DEVICE; *memory <= GDRCAP_MEMORY_HOST; (*memory)++)
		if (strcmp(name, plan_memory_name(*memory)) == 0)
			return 0;
	return -EINVAL;
}

static void ports_of(const struct gdrcap_bench_point *point, struct gdrcap_config *config)
{
	if (!path_is_null(point)) {
		snprintf(config->port[0], sizeof(config->port[0]), WIRE);
		snprintf(config->tx_port[0], sizeof(config->tx_port[0]), WIRE);
		return;
	}
	snprintf(config->port[0], sizeof(config->port[0]), "net_null_bench,size=%u,copy=0",
		 point->frame_bytes - FRAME_FCS_BYTES);
	config->format = GDRCAP_FORMAT_FOREIGN;
	config->restart = 1;
	/* Nobody sends, so nobody says an end. */
	config->end = GDRCAP_END_NEVER;
}

int path_config(const struct bench *bench, const struct gdrcap_bench_point *point,
		struct gdrcap_config *config, struct gdrcap_error *error)
{
	const char *cores = bench->config->cores ? bench->config->cores : "";

	gdrcap_config_default(config);
	if (memory_of(point->memory, &config->memory) < 0)
		return error_set(error, -EINVAL, "memory: \"%s\" is unknown", point->memory);
	if (strlen(cores) >= sizeof(config->cores))
		return error_set(error, -EINVAL,
				 "cores: a session takes a list of %zu characters "
				 "at most; write it shorter, as 2,4-7",
				 sizeof(config->cores) - 1);
	snprintf(config->cores, sizeof(config->cores), "%s", cores);
	snprintf(config->gpu, sizeof(config->gpu), "host");
	if (bench->cuda)
		snprintf(config->gpu, sizeof(config->gpu), "%d", bench->ordinal);
	snprintf(config->frame_size, sizeof(config->frame_size), "%u", point->frame_bytes);
	snprintf(config->pattern, sizeof(config->pattern), "%s", point->pattern);
	config->queues = point->queues;
	config->burst = point->burst;
	config->blocks = point->blocks;
	config->quiet_ms = QUIET_MS;
	config->log = no_line;
	ports_of(point, config);
	return 0;
}

/* One frame, as gdrcap's others are addressed; all that follows the header is payload. */
static void frame_make(const struct gdrcap_session *session, uint8_t *frame, uint32_t len)
{
	static const uint8_t header[ETHERNET_BYTES] = {
		0x02,
		0,
		0,
		0,
		0,
		2,
		0x02,
		0,
		0,
		0,
		0,
		1,
		FRAME_ETHERTYPE >> 8,
		FRAME_ETHERTYPE & 0xff,
	};
	const struct pattern_place start = { 0 };
	const uint32_t payload = frame_payload_offset(&session->layout);

	memcpy(frame, header, sizeof(header));
	pattern_fill(&session->pattern, &start, frame + payload, len - payload);
}

int path_fill(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct region *region = &session->region;
	const size_t slot_bytes = (size_t)1 << region->slot_shift;
	uint8_t *piece = malloc(FILL_BYTES);
	int ret = 0;

	if (!piece)
		return error_set(error, -ENOMEM, "no memory for frames to fill slots with");
	memset(piece, SESSION_POISON, FILL_BYTES);
	/* The driver leaves an mbuf's data where the pool begins it: behind the headroom. */
	for (size_t at = 0; at < FILL_BYTES; at += slot_bytes)
		frame_make(session, piece + at + RTE_PKTMBUF_HEADROOM, session->plan.lengths[0]);
	for (size_t at = 0; ret == 0 && at < region->bytes; at += FILL_BYTES)
		ret = session->ops->copy_in(session->device, region->device + at, piece,
					    RTE_MIN(FILL_BYTES, region->bytes - at));
	free(piece);
	return ret < 0 ? error_set(error, ret, "the slots cannot be filled: %s", kernel_error())
		       : 0;
}
