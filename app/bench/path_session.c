/* SPDX-License-Identifier: BSD-3-Clause */
/* The sessions of path.h: how they are configured, and filled. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf_core.h>

#include "base/log.h"
#include "bench/bench_util.h"
#include "bench/path.h"
#include "session/session.h"

#define WIRE "ring:gdrcap_bench"
#define FILL_BYTES ((size_t)4 << 20) /* in one copy: whole slots of any size */
#define ETHERNET_BYTES 14u
#define QUIET_TIME "3" /* seconds without a frame until those on the wire are given up */

/* Whatever is to be told, the result tells. */
static void no_line(void *context, enum gdrcap_log_level level, const char *line)
{
	(void)context;
	(void)level;
	(void)line;
}

static int ports_set(const struct bench *bench, const struct gdrcap_bench_point *point,
		     struct gdrcap_config *config, int ret, struct gdrcap_error *error)
{
	if (bench->config->port && !path_is_null(point)) {
		ret = bench_set(config, ret, error, "port", "%s", bench->config->port);
		ret = bench_set(config, ret, error, "tx_port", "%s", bench->config->tx_port);
		ret = bench_set(config, ret, error, "rx_by", "%s", point->source);
		return bench_set(config, ret, error, "sender.by", "%s", path_tx_by(bench));
	}
	if (!path_is_null(point)) {
		ret = bench_set(config, ret, error, "port", WIRE);
		return bench_set(config, ret, error, "tx_port", WIRE);
	}
	return bench_set(config, ret, error, "port", "net_null_bench,size=%u,copy=0",
			 point->frame_bytes - FRAME_FCS_BYTES);
}

/* What is done with the frames. */
static int frames_set(const struct gdrcap_bench_point *point, const char *image,
		      struct gdrcap_config *config, int ret, struct gdrcap_error *error)
{
	if (image) {
		ret = bench_set(config, ret, error, "image", "%s", image);
		return bench_set(config, ret, error, "consumer", "host");
	}
	if (path_is_null(point))
		return path_alike(point, config, ret, error);
	return bench_set(config, ret, error, "pattern.name", "%s", point->pattern);
}

int path_place(const struct bench *bench, const struct gdrcap_bench_point *point,
	       struct gdrcap_config *config, int ret, struct gdrcap_error *error)
{
	gdrcap_config_set_log(config, no_line, NULL);
	ret = bench_set(config, ret, error, "memory", "%s", point->memory);
	if (bench->config->cores && bench->config->cores[0])
		ret = bench_set(config, ret, error, "cores", "%s", bench->config->cores);
	ret = bench_set(config, ret, error, "gpu", "host");
	if (bench->cuda)
		ret = bench_set(config, ret, error, "gpu", "%d", bench->ordinal);
	ret = bench_set(config, ret, error, "frame.size", "%u", point->frame_bytes);
	ret = bench_set(config, ret, error, "queues", "%u", point->queues);
	ret = bench_set(config, ret, error, "burst", "%u", point->burst);
	return bench_set(config, ret, error, "quiet", QUIET_TIME);
}

int path_alike(const struct gdrcap_bench_point *point, struct gdrcap_config *config, int ret,
	       struct gdrcap_error *error)
{
	ret = bench_set(config, ret, error, "pattern.name", "%s", point->pattern);
	ret = bench_set(config, ret, error, "frame.format", "custom");
	ret = bench_set(config, ret, error, "pattern.restart", "true");
	/* Nobody says an end. */
	return bench_set(config, ret, error, "end", "never");
}

int path_config(const struct bench *bench, const struct gdrcap_bench_point *point,
		const char *image, struct gdrcap_config **made, struct gdrcap_error *error)
{
	struct gdrcap_config *config = gdrcap_config_new();
	int ret = path_place(bench, point, config, 0, error);

	ret = bench_set(config, ret, error, "consumer.blocks", "%u", point->blocks);
	ret = ports_set(bench, point, config, ret, error);
	ret = frames_set(point, image, config, ret, error);
	if (ret < 0) {
		gdrcap_config_free(config);
		return ret;
	}
	*made = config;
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
	const uint32_t payload = frame_payload_offset(&session->frames.layout);

	memcpy(frame, header, sizeof(header));
	pattern_fill(&session->frames.pattern, &start, frame + payload, len - payload);
}

int path_fill(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct region *region = &session->memory.region;
	const size_t slot_bytes = (size_t)1 << region->slot_shift;
	uint8_t *piece = malloc(FILL_BYTES);
	int ret = 0;

	if (!piece)
		return error_set(error, -ENOMEM, "no memory for frames to fill slots with");
	memset(piece, SESSION_POISON, FILL_BYTES);
	/* The driver leaves an mbuf's data where the pool begins it: behind the headroom. */
	for (size_t at = 0; at < FILL_BYTES; at += slot_bytes)
		frame_make(session, piece + at + RTE_PKTMBUF_HEADROOM,
			   session->settings.sizes.length[0]);
	for (size_t at = 0; ret == 0 && at < region->bytes; at += FILL_BYTES)
		ret = session->memory.ops->copy_in(session->memory.device, region->device + at,
						   piece, RTE_MIN(FILL_BYTES, region->bytes - at));
	free(piece);
	return ret < 0 ? error_set(error, ret, "the slots cannot be filled: %s", kernel_error())
		       : 0;
}
