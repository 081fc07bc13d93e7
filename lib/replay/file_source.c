/* SPDX-License-Identifier: BSD-3-Clause */
/* A file's frames into a receive queue's slots. */
#include "replay/file_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include "base/log.h"
#include "capture/ring_producer.h"
#include "capture/rx_worker.h"
#include "capture/source_clock.h"
#include "pattern/frame.h"

#define LEN_MAX (FRAME_MAX_BYTES - FRAME_FCS_BYTES)
#define DISORDER_NS 1000000000	  /* what steps back further was captured by another clock */
#define PIPE_SILENT_NS 1000000000 /* of an empty pipe beside other sources */

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
	source->until = UINT64_MAX;
	*out = source;
	return 0;
}

void file_source_attach(struct file_source *source, struct file_room *room,
			const struct ring_producer *ring, uint32_t index)
{
	source->promises.room = room;
	source->promises.ring = ring;
	source->index = index;
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
	source->anew = true;
	file_room_forget(&source->promises);
	return pcap_file_rewind(source->file, &source->error);
}

/* When `next` is due. Differences, since times of a hostile file may be any. */
static void source_date(struct file_source *source)
{
	const uint64_t since = source->due + source->config.silence_ns;
	uint64_t due = source->next.time_ns + source->shift;

	if (!source->due)
		source->due = RTE_MIN(due, PCAP_TIME_MAX_NS);
	if (source->anew || (int64_t)(due - source->due) < -DISORDER_NS) {
		source->due = source->anew ? RTE_MIN(since, PCAP_TIME_MAX_NS) : source->due;
		source->shift += source->due - due;
		due = source->due;
	}
	if ((int64_t)(due - source->due) > 0)
		source->due = RTE_MIN(due, PCAP_TIME_MAX_NS);
	source->anew = false;
	source->read = rte_rdtsc();
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
		if (ret > 0 && source->config.clock)
			source_date(source);
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

/* True: the clock lets it through, into the burst that is being made. */
static bool source_is_due(struct file_source *source, uint64_t limit, bool begins)
{
	if (!source->config.clock)
		return true;
	if (begins)
		source->first = source->due;
	return source->due <= RTE_MIN(limit, source->until) &&
	       source->due - source->first <= SOURCE_CLOCK_GRAIN_NS;
}

/* What time it is. Returns the limit of what may be handed out. */
static uint64_t source_time(struct file_source *source)
{
	uint64_t limit, now;

	if (!source->config.clock)
		return UINT64_MAX;
	limit = source_clock_limit(source->config.clock, &now);
	/* it may have moved on while a pipe was empty */
	source->due = RTE_MAX(source->due, now);
	if (now > source->until)
		source->until = UINT64_MAX;
	return limit;
}

/* Until when nothing comes, as far as is known. What is under way in the buffers of a pipe's writer may be of any time;
 * but the other sources do not wait for a pipe that is silent. */
static uint64_t source_due(const struct file_source *source)
{
	uint64_t ns;

	if (source->has_next)
		return source->due;
	if (source->over)
		return SOURCE_CLOCK_OVER;
	if (source->config.clock->count == 1)
		return source->due ? source->due : SOURCE_CLOCK_OVER;
	ns = (uint64_t)((double)(rte_rdtsc() - source->read) * 1e9 / (double)rte_get_tsc_hz());
	if (!source->due) /* its first frame */
		return ns > PIPE_SILENT_NS ? SOURCE_CLOCK_OVER : 0;
	return RTE_MIN(source->due + (ns > PIPE_SILENT_NS ? ns - PIPE_SILENT_NS : 0),
		       PCAP_TIME_MAX_NS);
}

/* Nothing is handed out. */
static int source_hold(struct file_source *source, bool wants_room)
{
	const bool over = source->over && !source->has_next;

	if (!source->read)
		source->read = rte_rdtsc();
	if (source->config.clock && ring_pending(source->promises.ring) == 0) {
		source->wanted_room = wants_room;
		source_clock_hold(source->config.clock, source->index, source_due(source),
				  wants_room);
	}
	return over ? RX_SOURCE_OVER : source->has_next ? RX_SOURCE_WAITS : 0;
}

int file_source_receive(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	struct file_source *source = arg;
	struct rte_mempool *pool = source->config.pool;
	struct file_promises *promises = &source->promises;
	const bool begins = ring_pending(promises->ring) == 0;
	bool wants_room = false;
	uint16_t taken = 0;
	uint64_t limit;

	file_room_look(promises);
	if (!source_look(source))
		return source_hold(source, false);
	limit = source_time(source);
	if (!source_is_due(source, limit, begins))
		return source_hold(source, false);
	while (n && rte_pktmbuf_alloc_bulk(pool, mbufs, n) < 0)
		n /= 2;
	while (taken < n && source_look(source) && source_is_due(source, limit, begins && !taken)) {
		wants_room = !file_room_for(promises, source->next.bytes, source->next.len,
					    promises->ring->head + taken);
		if (wants_room)
			break;
		mbuf_fill(source, mbufs[taken++]);
		source->has_next = false;
		source->came = source->due;
		if (promises->over_ns < source->until - source->due)
			source->until = source->due + promises->over_ns;
	}
	if (taken < n)
		rte_mempool_put_bulk(pool, (void *const *)&mbufs[taken], n - taken);
	if (!taken)
		return source_hold(source, wants_room);
	if (source->wanted_room)
		source_clock_go(source->config.clock, source->index);
	source->wanted_room = false;
	return taken;
}
