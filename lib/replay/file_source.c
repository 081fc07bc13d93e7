/* SPDX-License-Identifier: BSD-3-Clause */
/* A file's frames into a receive queue's slots. */
#include "replay/file_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include "base/log.h"
#include "capture/ring_producer.h"
#include "capture/rx_worker.h"
#include "pattern/frame.h"

#define LEN_MAX (FRAME_MAX_BYTES - FRAME_FCS_BYTES)

int file_source_open(struct file_source **out, const struct file_source_config *config,
		     struct gdrcap_error *error)
{
	struct file_source *source = calloc(1, sizeof(*source));
	int ret;

	*out = NULL;
	if (!source)
		return error_set(error, -ENOMEM, "%s: no memory to read it", config->path);
	source->config = *config;
	ret = pcap_file_open_port(&source->file, config->path, error);
	if (ret < 0) {
		free(source);
		return ret;
	}
	source->config.path = pcap_file_name(source->file);
	*out = source;
	return 0;
}

void file_source_attach(struct file_source *source, struct file_room *room,
			const struct ring_producer *ring)
{
	source->promises.room = room;
	source->promises.ring = ring;
}

void file_source_close(struct file_source *source)
{
	if (!source)
		return;
	pcap_file_close(source->file);
	free(source);
}

/* A file without frames has no other loop. */
static int source_end(struct file_source *source)
{
	if (!source->config.loops || source->frames == 0) {
		source->over = true;
		return 0;
	}
	source->frames = 0;
	file_room_forget(&source->promises);
	return pcap_file_rewind(source->file, &source->error);
}

/* False: no frame is there now, or ever. */
static bool source_look(struct file_source *source)
{
	int ret = 0;

	while (!source->has_next && !source->over && ret >= 0) {
		ret = pcap_file_next(source->file, &source->next, &source->error);
		if (ret == -EAGAIN)
			return false;
		source->has_next = ret > 0;
		source->frames += ret > 0;
		if (ret == 0)
			ret = source_end(source);
	}
	if (ret < 0) {
		source->over = true;
		atomic_store_explicit(&source->failed, ret, memory_order_release);
	}
	return source->has_next;
}

static void mbuf_fill(const struct file_source *source, struct rte_mbuf *m)
{
	const struct file_source_config *config = &source->config;
	const uint32_t room = RTE_MIN((uint32_t)rte_pktmbuf_tailroom(m), LEN_MAX);
	const uint32_t bytes = RTE_MIN(source->next.len, room);

	memcpy(rte_pktmbuf_mtod(m, uint8_t *), source->next.bytes, bytes);
	m->data_len = (uint16_t)bytes;
	m->pkt_len = bytes;
	m->nb_segs = source->next.len > room ? 2 : 1; /* rx_source_t */
	if (!config->time_flag)
		return;
	*RTE_MBUF_DYNFIELD(m, config->time_offset, uint64_t *) = source->next.time_ns;
	m->ol_flags |= config->time_flag;
}

int file_source_receive(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct file_source *source = arg;
	struct rte_mempool *pool = source->config.pool;
	struct file_promises *promises = &source->promises;
	uint16_t taken = 0;

	file_room_look(promises);
	if (!source_look(source))
		return source->over ? RX_SOURCE_OVER : 0;
	while (n && rte_pktmbuf_alloc_bulk(pool, mbufs, n) < 0)
		n /= 2;
	while (taken < n && source_look(source) &&
	       file_room_for(promises, source->next.bytes, source->next.len,
			     promises->ring->head + taken)) {
		mbuf_fill(source, mbufs[taken++]);
		source->has_next = false;
	}
	if (taken < n)
		rte_mempool_put_bulk(pool, (void *const *)&mbufs[taken], n - taken);
	return taken ? taken : RX_SOURCE_WAITS;
}
