/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's threads and what they share: receivers, senders, the saver, the accounts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf_core.h>

#include "base/log.h"
#include "session/session.h"

/* Of the accountant's sleeps: who sleeps longer keeps slots that are missing when frames come fast. */
#define ACCOUNTANT_NAP_US 1000u

/* GPUDirect RDMA writes need a flush where the device orders them for nobody (CUDA Driver API,
 * CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING: 0 none, 100 owner, 200 all devices). */
static bool flush_needed(const struct gdrcap_session *session, const struct port *port)
{
	if (session->settings.flush != FLUSH_AUTO)
		return session->settings.flush == FLUSH_HOST;
	return session->plan.cuda && session->memory.region.kind == GDRCAP_MEMORY_DEVICE &&
	       port->facts->writes == DRIVER_WRITES_DMA &&
	       session->memory.device_info.writes_ordering < 100;
}

static int flush_device(void *context)
{
	struct gdrcap_session *session = context;

	return session->memory.ops->flush(session->memory.device);
}

/* All slots of a queue's pool, less what the caches of the control thread and of its own thread can
 * keep. */
static uint32_t pool_share(const struct gdrcap_session *session)
{
	return session->plan.pool_slots - 2 * REGION_POOL_CACHE_MOST -
	       RTE_MAX(session->settings.burst, RX_LEAST);
}

/*
 * What a queue may hold so that its pool surely has more for it: its share, less a card's
 * descriptors. A card that splits frames counts none that it loses when there is a slot for the
 * head and none for the rest; the frames that nobody fetches it does count.
 */
static uint32_t in_flight_max(const struct gdrcap_session *session, const struct port *port)
{
	const uint32_t share = pool_share(session);

	if (port->facts->reads_first && !port_name_is_file(port->name))
		return share;
	return session->settings.split ? share - session->settings.descriptors : UINT32_MAX;
}

/* In flight up to which the pool surely has more. On a software wire the pool is the sender's too, who
 * is held back and says so, and what comes has its slot. */
static uint32_t starved_from(const struct gdrcap_session *session, const struct port *port)
{
	return port->facts->writes == DRIVER_PASSES_ON
		       ? UINT32_MAX
		       : pool_share(session) - session->settings.descriptors - 1;
}

/* By the CPU, as the consumer's addresses have them. */
static bool frames_readable(const struct gdrcap_session *session)
{
	return !session->settings.split &&
	       (!session->plan.cuda || session->memory.region.kind != GDRCAP_MEMORY_DEVICE);
}

/* Rules that no card applies are for the reader of the frames: the built-in consumer, or the thread that
 * polls. */
static int match_check(const struct gdrcap_session *session, const struct session_pair *pair,
		       struct gdrcap_error *error)
{
	const bool host = session->settings.consumer == CONSUMER_HOST;

	if (!session->frames.layout.match.count || pair->rx.isolated ||
	    settings_collects(&session->settings) || (host && frames_readable(session)))
		return 0;
	return error_set(
		error, -ENOTSUP,
		"match: port %s has no rules in a card, and %s; leave match out and choose "
		"among the frames yourself, %suse a ConnectX, or the built-in consumer",
		pair->rx.name,
		host ? "the CPU cannot read frames in GPU memory"
		     : "a running kernel of your own takes the frames as they come",
		host ? "use memory: pinned, " : "");
}

static int rx_queue_create(struct gdrcap_session *session, const struct session_pair *pair,
			   uint16_t queue, struct gdrcap_error *error)
{
	const struct region *heads = session->settings.split ? &session->memory.heads : NULL;
	const bool times = session->settings.times;
	const bool validates = settings_validates(&session->settings);
	const uint32_t index = session->workers.rx_count;
	struct rx_worker *worker = &session->workers.rx[index];
	const struct ring_config ring = {
		.region = &session->memory.region,
		.heads = heads,
		.generation = session->memory.generation,
		.stale_us = session->settings.stale_us,
		.frames = session->plan.pool_slots,
		.burst_max = session->settings.burst,
		.times = times,
		.came = session->images.count != 0,
		.inlines = validates && session->memory.ops->reads_inline,
		.streams = session->settings.consumer == CONSUMER_GPU && !session->images.count,
		.front = session_fronts_ring(session),
		.sleeps = session_wakes(session) && settings_collects(&session->settings),
	};
	struct rx_config config = {
		.port = pair->rx.id,
		.queue = queue,
		.receive = pair->source[queue] ? file_source_receive : NULL,
		.source = pair->source[queue],
		.came = pair->source[queue] && session->ports.clock ? &pair->source[queue]->came
								    : NULL,
		.region = &session->memory.region,
		.pool = pair->rx_pool[queue],
		.heads = heads,
		.head_pool = pair->head_pool[queue],
		.times = pair->rx_clock.port == RX_CLOCK_CPU ? RX_TIMES_TSC : RX_TIMES_CARD,
		.time_offset = pair->rx_clock.offset,
		.time_flag = pair->rx_clock.flag,
		.flush = flush_needed(session, &pair->rx) ? flush_device : NULL,
		.flush_context = session,
		.in_flight_max = in_flight_max(session, &pair->rx),
		.starved_from = starved_from(session, &pair->rx),
		.accounted = settings_collects(&session->settings),
		/* Own frames' headers say how long they should be. */
		.mark_cut = !validates || settings_is_custom(&session->settings) ||
			    session->frames.expect,
		.cut_from = pair->rx.cut_from,
		.wire = session->settings.rx.port[index / session->settings.queues].wire,
	};
	int ret = error_of_config(error, match_check(session, pair, error));

	if (ret < 0)
		return ret;
	if (pair->own) /* the card has every slot that is free, and counts what finds none */
		config.in_flight_max = config.starved_from = UINT32_MAX;
	port_sleep_init(&config.sleep, &pair->rx, queue, session->plan.idle_us);
	ret = rx_worker_create(worker, &config, &ring, error);
	if (ret < 0)
		return ret;
	session->workers.rx_rings[session->workers.rx_count++] = &worker->ring;
	if (pair->source[queue])
		session_source_attach(session, pair->source[queue], index);
	if (pair->own && session->fronts.count)
		ret = session_fronts_add(session, index, error);
	else if (pair->own)
		ret = own_queues_poll(pair->own, queue, worker, error);
	if (ret < 0)
		return ret;
	ret = queue_create(&session->workers.queues[index], &worker->ring,
			   session->images.count ? CONSUMER_VALIDATE : session->settings.consumer,
			   session->memory.ops, session->memory.device,
			   session->settings.batch_times ? &pair->rx_clock : NULL);
	session->workers.queues[index].index = index;
	session->workers.queues[index].sleeps = session->plan.idle_us && !session->plan.idle_auto;
	session->workers.queues[index].layout = &session->frames.layout;
	session->workers.queues[index].readable = frames_readable(session);
	session->workers.queues[index].filters =
		session->frames.layout.match.count && !pair->rx.isolated;
	session->workers.queues[index].from_zero =
		settings_sends(&session->settings) && !session->frames.file;
	return ret < 0 ? error_set(error, ret, "no memory for a queue") : 0;
}

/* Frames of ours that no rule names would be filtered, and count as lost. */
static int own_frames_check(const struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct frame_layout *layout = &session->frames.layout;
	const struct settings *settings = &session->settings;
	const uint32_t bytes = frame_min_bytes(layout) - FRAME_FCS_BYTES;
	uint8_t frame[FRAME_HEAD_BYTES_MAX];

	if (!layout->match.count || !settings_sends(settings) || settings->pcap[0] ||
	    !settings_validates(settings))
		return 0;
	for (uint32_t s = 0; s < settings->streams; s++) {
		const struct frame_header header = { .stream = (uint16_t)(settings->first_stream +
									  s) };

		frame_write_headers(layout, frame_crc32c_table, frame, bytes, &header);
		if (!frame_matches(&layout->match, frame, bytes))
			return error_set(
				error, -EINVAL,
				"match: no rule names the frames of stream %u that this run sends "
				"to itself: they would all be filtered and count as lost; name them "
				"too, or give them other addresses (frame.*), or leave match out",
				settings->first_stream + s);
	}
	return 0;
}

static int rx_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const uint32_t queues = session->settings.queues;

	for (uint32_t i = 0; i < session->settings.ports * queues; i++) {
		int ret = rx_queue_create(session, &session->ports.pairs[i / queues],
					  (uint16_t)(i % queues), error);

		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Streams that leave through port `port`: what a receiver there can wait for the end of. */
static uint32_t port_streams(const struct settings *settings, uint32_t streams, uint32_t port)
{
	const uint32_t queues = settings->queues, workers = settings->ports * queues;
	uint32_t count = 0;

	for (uint32_t w = port * queues; w < (port + 1) * queues; w++)
		count += (streams - w + workers - 1) / workers;
	return count;
}

/* UINT64_MAX: until it is stopped. */
static uint64_t frames_to_send(const struct gdrcap_session *session)
{
	const uint64_t in_file = session->plan.pcap.frames;
	uint64_t frames = session->settings.frames ? session->settings.frames : UINT64_MAX, file;

	if (in_file && !__builtin_mul_overflow(in_file, session->settings.loops, &file))
		frames = RTE_MIN(frames, file);
	return frames;
}

static int tx_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct settings *settings = &session->settings;
	const struct plan *plan = &session->plan;
	const uint32_t workers = settings->ports * settings->queues;
	const uint32_t streams = RTE_MAX(settings->streams, workers);
	const uint64_t frames = frames_to_send(session);
	const bool says_end =
		!settings_receives(settings) && !settings->pcap[0] && settings->end == END_STREAM;
	struct pacing_config pacing = settings->pacing;

	session->run.tx_asked = settings->frames ? settings->frames : frames;
	if (session->run.tx_asked == UINT64_MAX)
		session->run.tx_asked = 0;
	/* Each sender has its share; a file's own times are one sender's. */
	if (pacing.kind != PACING_ORIGINAL)
		pacing.value /= workers;
	for (uint32_t w = 0; w < workers; w++) {
		const struct session_pair *pair = &session->ports.pairs[w / settings->queues];
		const struct ring_config ring = {
			.region = &session->memory.region,
			.frames = plan->pool_slots,
			.burst_max = settings->burst,
			.replay = true,
			.times = pacing.kind != PACING_NONE,
			.sleeps = session_wakes(session),
		};
		const struct tx_config config = {
			.port = pair->tx.id,
			.queue = (uint16_t)(w % settings->queues),
			.region = &session->memory.region,
			.pool = pair->tx_pool[w % settings->queues],
			.own = session->own_senders.count ? &session->own_senders.queues[w] : NULL,
			.gpu = session->own_senders.gpus ? &session->own_senders.gpus[w] : NULL,
			.layout = &session->frames.layout,
			.lengths = settings->sizes.length,
			.length_count = settings->sizes.count,
			.stream_first = settings->first_stream + w,
			.stream_step = workers,
			.stream_count = (streams - w + workers - 1) / workers,
			.frames = frames == UINT64_MAX ? frames
						       : frames / workers + (w < frames % workers),
			.file = session->frames.file,
			.pacing = pacing,
			.clock = pair->tx_clocked ? &pair->tx_clock : NULL,
			.after = !session->own_senders.count &&
						 pair->tx.facts->writes == DRIVER_WRITES_DMA &&
						 w % settings->queues
					 ? &session->workers.tx[w - 1]
					 : NULL,
			.idle_us = plan->idle_us,
			.writer_wakes = session_wakes(session) && pair->tx.facts->sleeps,
			.wire = settings->rx.port[w / settings->queues].wire,
			.end_streams =
				says_end ? port_streams(settings, streams, w / settings->queues)
					 : 0,
		};
		int ret = tx_worker_create(&session->workers.tx[w], &config, &ring, error);

		if (ret < 0)
			return ret;
		session->workers.tx_count++;
	}
	return session_gpu_senders_create(session, error);
}

/* Frames received that go to files; the writer's thread may run on any of the session's CPUs. */
static int saver_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const char *names[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
	const struct rx_clock *clocks[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
	struct save_config config = {
		.all = session->settings.save,
		.every = session->settings.save_every,
		.damaged = session->settings.save_damaged,
		.around = session->settings.save_around,
		.rings = session->workers.rx_rings,
		.queues = session->workers.rx_count,
		.names = names,
		.clocks = clocks,
		.slots = session->plan.pool_slots,
		.patient = true,
		.frame_max = (1u << session->plan.slot_shift) - RTE_PKTMBUF_HEADROOM +
			     session->settings.split,
		.dump = session->settings.dump_frames,
		.gpu = session->memory.gpu,
		.ops = session->memory.ops,
		.device = session->memory.device,
		.layout = &session->frames.layout,
		.pattern = &session->frames.pattern,
		.expect = session->frames.expect ? &session->frames.expect->view : NULL,
	};
	cpu_set_t cpus;

	if (!config.all[0] && !config.damaged[0])
		return 0;
	for (uint32_t i = 0; i < session->workers.rx_count; i++) {
		const struct session_pair *pair =
			&session->ports.pairs[i / session->settings.queues];

		names[i] = pair->rx.name;
		clocks[i] = &pair->rx_clock;
		config.patient &= pair->source[0] != NULL;
		config.slots = RTE_MIN(config.slots, in_flight_max(session, &pair->rx));
	}
	session_cpus(session, &cpus);
	return save_create(&session->frames.save, &config, &cpus, error);
}

static int accounts_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct settings *settings = &session->settings;
	const bool custom = settings_is_custom(settings) && !session->frames.expect;
	const uint32_t senders = settings->direction == DIRECTION_LOOPBACK && !custom
					 ? settings->ports * settings->queues
					 : 0;
	const struct verdict_config config = {
		.own_streams = senders ? RTE_MAX(settings->streams, senders) : 0,
		.senders = settings->senders,
		.ranges = settings->ranges,
		.layout = custom ? &session->frames.layout : NULL,
		.pattern = &session->frames.pattern,
		.expect = session->frames.expect ? &session->frames.expect->view : NULL,
	};
	/* The saver's writer does not wake the accountant when it has room again. */
	const bool save_waits = session->frames.save && session_reads_files_only(session);
	int ret = accountant_create(&session->workers.accountant, session->workers.rx_rings,
				    session->workers.rx_count, &config, session->frames.save);

	if (ret < 0)
		return error_set(error, ret, "no memory for the accounts");
	session->workers.accountant.sleeps = session_wakes(session);
	session->workers.accountant.sleep_us =
		session->images.count || save_waits ? ACCOUNTANT_NAP_US : REST_LONG_US;
	if (!session_wakes(session))
		session->workers.accountant.naps.most_us =
			RTE_MIN(session->plan.idle_us, ACCOUNTANT_NAP_US);
	session->workers.accountant.images = session->images.handed;
	session->workers.accountant.image_count = session->images.count;
	session->workers.accountant.fronts = session->fronts.follow;
	session->workers.accountant.follows = !settings_collects(&session->settings);
	session->workers.accountant.clock = session->ports.clock;
	session->workers.accountant.seen.rx = session->workers.rx;
	session->workers.accountant.seen.rx_count = session->workers.rx_count;
	session->workers.accountant_ready = true;
	return 0;
}

void session_workers_destroy(struct gdrcap_session *session)
{
	if (session->workers.accountant_ready)
		accountant_destroy(&session->workers.accountant);
	save_destroy(session->frames.save);
	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		tx_worker_destroy(&session->workers.tx[i]);
	session_own_senders_destroy(session);
	for (uint32_t i = 0; i < session->workers.rx_count; i++) {
		queue_destroy(&session->workers.queues[i]);
		rx_worker_destroy(&session->workers.rx[i]);
	}
	session_fronts_destroy(session);
	free(session->ports.clock);
	free(session->workers.tx);
	free(session->workers.rx);
	free(session->workers.rx_rings);
	free(session->workers.queues);
}

/* Who sends on a wire and who receives on it wake each other. */
static void wires_join(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->workers.rx_count; i++) {
		struct rx_worker *rx = &session->workers.rx[i];

		if (!rx->sleep.sender_wakes)
			continue;
		if (i < session->workers.tx_count) {
			rx->sender = &session->workers.tx[i].wake;
			session->workers.tx[i].receiver = &rx->wake;
		} else if (i < session->sending.count) {
			rx->sender = &session->sending.queues[i].work;
			session->sending.queues[i].receiver = &rx->wake;
		}
	}
}

int session_workers_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const uint32_t count = session->settings.ports * session->settings.queues;
	int ret = 0;

	/* Aligned: the workers' cache lines have one writer each. */
	session->workers.rx = aligned_alloc(RING_LINE, count * sizeof(*session->workers.rx));
	session->workers.tx = aligned_alloc(RING_LINE, count * sizeof(*session->workers.tx));
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers */
	session->workers.rx_rings = calloc(count, sizeof(*session->workers.rx_rings));
	session->workers.queues = calloc(count, sizeof(*session->workers.queues));
	if (!session->workers.rx || !session->workers.tx || !session->workers.rx_rings ||
	    !session->workers.queues) {
		ret = error_set(error, -ENOMEM, "no memory for %u workers", count);
		goto err;
	}
	if (settings_receives(&session->settings))
		ret = error_of_config(error, own_frames_check(session, error));
	if (ret == 0 && settings_receives(&session->settings))
		ret = session_fronts_create(session, error);
	if (ret == 0 && settings_receives(&session->settings))
		ret = session_clock_create(session, error);
	if (ret == 0 && settings_receives(&session->settings))
		ret = rx_create(session, error);
	if (ret == 0 && settings_sends(&session->settings))
		ret = session_own_senders_create(session, error);
	if (ret == 0 && settings_sends(&session->settings))
		ret = tx_create(session, error);
	if (ret == 0)
		ret = session_sending_create(session, error);
	if (ret == 0)
		wires_join(session);
	if (ret == 0)
		ret = saver_create(session, error);
	if (ret == 0)
		ret = accounts_create(session, error);
	if (ret == 0)
		return 0;
err:
	session_workers_destroy(session);
	session_sending_destroy(session);
	return ret;
}
