/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's resources: created in the order in which a frame meets them, undone in reverse. */
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_mempool.h>

#include "config.h"
#include "environment.h"
#include "log.h"

void session_message(struct gdrcap_session *session, enum gdrcap_log_level level,
		     const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log_line(level, "%s", line);
	pthread_mutex_lock(&session->message_lock);
	/* The first error is the one that gdrcap_stop() tells. */
	if (level == GDRCAP_LOG_ERROR && session->failure_text[0] == '\0')
		snprintf(session->failure_text, sizeof(session->failure_text), "%s", line);
	if (session->message_count <
	    SESSION_MESSAGES_MAX - (level == GDRCAP_LOG_ERROR ? 0 : SESSION_MESSAGES_ERRORS)) {
		session->messages[session->message_count] = strdup(line);
		if (session->messages[session->message_count])
			session->message_count++;
	}
	pthread_mutex_unlock(&session->message_lock);
}

static int pattern_file_map(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const char *path = session->config.pattern_file;
	struct stat status;
	void *map;
	int fd;

	if (!path[0])
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_set(error, -errno, "pattern.file: %s: %s", path, strerror(errno));
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size == 0) {
		close(fd);
		return error_set(error, -EINVAL, "pattern.file: %s is empty or no regular file",
				 path);
	}
	map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return error_set(error, -errno, "pattern.file: %s: %s", path, strerror(errno));
	session->pattern_file = map;
	session->pattern_file_bytes = (size_t)status.st_size;
	return 0;
}

static int frames_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct gdrcap_config *config = &session->config;
	struct pattern_config pattern = {
		.restart = (int)config->restart,
		.invert = config->invert == GDRCAP_INVERT_AUTO
				  ? -1
				  : config->invert == GDRCAP_INVERT_YES,
		.value = (uint8_t)config->value,
		.seed = config->seed,
	};
	struct frame_config frame;
	int ret;

	config_frame(config, &frame);
	ret = frame_layout_init(&session->layout, &frame);
	if (ret < 0)
		return error_set(error, ret, "frame: this combination of options makes no frame");
	ret = pattern_from_name(config->pattern, &pattern.kind);
	if (ret < 0)
		return error_set(error, ret, "pattern: \"%s\" is unknown", config->pattern);
	ret = pattern_file_map(session, error);
	if (ret < 0)
		return ret;
	pattern.file = session->pattern_file;
	pattern.file_bytes = session->pattern_file_bytes;
	ret = pattern_plan_init(&session->pattern, &pattern);
	if (ret < 0)
		return error_set(error, ret, "pattern: %s cannot be prepared: %s", config->pattern,
				 strerror(-ret));
	return 0;
}

static void frames_destroy(struct gdrcap_session *session)
{
	pattern_plan_free(&session->pattern);
	if (session->pattern_file)
		munmap(session->pattern_file, session->pattern_file_bytes);
}

static int device_open(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct plan *plan = &session->plan;
	int ret;

	session->ops = &kernel_host_ops;
	snprintf(session->gpu_driver, sizeof(session->gpu_driver), "gpu_host");
#ifdef GDRCAP_WITH_CUDA
	if (plan->cuda) {
		session->ops = &kernel_cuda_ops;
		snprintf(session->gpu_driver, sizeof(session->gpu_driver), "gpu_cuda");
	}
#endif
	ret = plan->cuda ? environment_gpu_cuda(plan->ordinal, error) :
			   environment_gpu_host(session->config.guard != 0, error);
	if (ret < 0)
		return ret;
	session->gpu = (int16_t)ret;
	ret = session->ops->open(plan->ordinal, &session->device);
	if (ret < 0)
		return error_set(error, ret, "%s", kernel_error());
	session->ops->info(session->device, &session->device_info);
	return 0;
}

/* Fills a long stretch piece by piece and tells how far it is, where that takes long. */
static int poison_whole(const struct gdrcap_session *session)
{
	const struct region *region = &session->region;
	const size_t piece = (size_t)256 << 20;
	uint64_t told = rte_rdtsc();
	int ret = 0;

	for (size_t at = 0; ret == 0 && at < region->bytes; at += piece) {
		ret = session->ops->fill(session->device, region->device + at, SESSION_POISON,
					 RTE_MIN(piece, region->bytes - at));
		if (rte_rdtsc() - told > rte_get_tsc_hz()) {
			log_line(GDRCAP_LOG_PROGRESS, "memory: filled %zu of %zu MiB",
				 RTE_MIN(at + piece, region->bytes) >> 20, region->bytes >> 20);
			told = rte_rdtsc();
		}
	}
	return ret;
}

/* Fills all that frames can land in. 0, or kernel_error() says why not. */
static int memory_poison(const struct gdrcap_session *session)
{
	const struct region *region = &session->region;
	const size_t slot_bytes = (size_t)1 << region->slot_shift;
	int ret = 0;

	if (!session->plan.umem)
		return poison_whole(session);
	/* The first bytes of each slot are the mempool's: its header and the mbuf. */
	for (uint32_t i = 0; ret == 0 && i < region->slots; i++)
		ret = session->ops->fill(session->device,
					 region->device + i * slot_bytes + REGION_UMEM_HEAD,
					 SESSION_POISON, slot_bytes - REGION_UMEM_HEAD);
	return ret;
}

static int memory_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct region_config config = {
		.gpu = session->gpu,
		.kind = session->plan.memory,
		.bytes = session->plan.region_bytes,
		.slot_shift = session->plan.slot_shift,
		.addr = session->config.memory_addr,
		.cpu_workers = !session->plan.cuda,
	};
	int ret;

	ret = region_create(&session->region, &config, error);
	if (ret < 0)
		return ret;
	ret = memory_poison(session);
	if (ret < 0) {
		error_set(error, ret, "the memory cannot be poisoned: %s", kernel_error());
		region_destroy(&session->region);
		return ret;
	}
	log_info("memory: %s, %zu MiB in slots of %u bytes, pages of %zu KiB, poisoned with 0x%02x",
		 plan_memory_name(session->region.kind), session->region.bytes >> 20,
		 1u << session->region.slot_shift, session->region.page >> 10, SESSION_POISON);
	return 0;
}

/* GPUDirect RDMA writes need a flush where the device orders them for nobody (CUDA Driver API,
 * CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING: 0 none, 100 owner, 200 all devices). */
static bool flush_needed(const struct gdrcap_session *session, const struct port *port)
{
	if (session->config.flush != GDRCAP_FLUSH_AUTO)
		return session->config.flush == GDRCAP_FLUSH_HOST;
	return session->plan.cuda && session->region.kind == GDRCAP_MEMORY_DEVICE &&
	       port->facts->writes == DRIVER_WRITES_DMA &&
	       session->device_info.writes_ordering < 100;
}

static int flush_device(void *context)
{
	struct gdrcap_session *session = context;

	return session->ops->flush(session->device);
}

/* What a queue may hold so that the pool surely has more for it: its share, less what the caches of
 * the control thread and of its own thread can keep. */
static uint32_t in_flight_max(const struct plan *plan, const struct port *port)
{
	if (!port->facts->reads_first)
		return UINT32_MAX;
	return plan->pool_slots / plan->queues - 2 * REGION_POOL_CACHE_MOST - plan->burst;
}

static int rx_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct plan *plan = &session->plan;

	for (uint32_t p = 0; p < plan->ports; p++) {
		const struct session_pair *pair = &session->pairs[p];
		const struct ring_config ring = {
			.region = &session->region,
			.frames = plan->pool_slots,
			.burst_max = plan->burst,
		};

		for (uint32_t q = 0; q < plan->queues; q++) {
			struct rx_worker *worker = &session->rx[session->rx_count];
			const struct rx_config config = {
				.port = pair->rx.id,
				.queue = (uint16_t)q,
				.region = &session->region,
				.pool = pair->rx_pool,
				.flush = flush_needed(session, &pair->rx) ? flush_device : NULL,
				.flush_context = session,
				.in_flight_max = in_flight_max(plan, &pair->rx),
				.accounted = session->config.consumer == GDRCAP_CONSUMER_VALIDATE,
			};
			int ret = rx_worker_create(worker, &config, &ring, error);

			if (ret < 0)
				return ret;
			session->rx_rings[session->rx_count++] = &worker->ring;
			ret = queue_create(&session->queues[session->rx_count - 1], &worker->ring,
					   session->config.consumer, session->ops, session->device);
			if (ret < 0)
				return error_set(error, ret, "no memory for a queue");
		}
	}
	return 0;
}

static int tx_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct plan *plan = &session->plan;
	const uint32_t workers = plan->ports * plan->queues;
	const uint32_t streams = RTE_MAX(plan->streams, workers);
	const uint64_t frames = session->config.frames;

	for (uint32_t w = 0; w < workers; w++) {
		const struct session_pair *pair = &session->pairs[w / plan->queues];
		const struct ring_config ring = {
			.region = &session->region,
			.frames = plan->pool_slots,
			.burst_max = plan->burst,
			.replay = true,
		};
		const struct tx_config config = {
			.port = pair->tx.id,
			.queue = (uint16_t)(w % plan->queues),
			.region = &session->region,
			.pool = pair->tx_pool,
			.layout = &session->layout,
			.lengths = plan->lengths,
			.length_count = (uint32_t)plan->length_count,
			.stream_first = w,
			.stream_step = workers,
			.stream_count = (streams - w + workers - 1) / workers,
			.frames = frames ? frames / workers + (w < frames % workers) : UINT64_MAX,
		};
		int ret = tx_worker_create(&session->tx[w], &config, &ring, error);

		if (ret < 0)
			return ret;
		session->tx_count++;
	}
	return 0;
}

static void workers_destroy(struct gdrcap_session *session)
{
	if (session->accountant_ready)
		accountant_destroy(&session->accountant);
	for (uint32_t i = 0; i < session->tx_count; i++)
		tx_worker_destroy(&session->tx[i]);
	for (uint32_t i = 0; i < session->rx_count; i++) {
		queue_destroy(&session->queues[i]);
		rx_worker_destroy(&session->rx[i]);
	}
	free(session->tx);
	free(session->rx);
	free(session->rx_rings);
	free(session->queues);
}

static int workers_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const uint32_t count = session->plan.ports * session->plan.queues;
	const uint32_t own_streams =
		session->plan.sends ? RTE_MAX(session->plan.streams, count) : 0;
	int ret;

	/* Aligned: the workers' cache lines have one writer each. */
	session->rx = aligned_alloc(RING_LINE, count * sizeof(*session->rx));
	session->tx = aligned_alloc(RING_LINE, count * sizeof(*session->tx));
	session->rx_rings = calloc(count, sizeof(*session->rx_rings));
	session->queues = calloc(count, sizeof(*session->queues));
	if (!session->rx || !session->tx || !session->rx_rings || !session->queues) {
		ret = error_set(error, -ENOMEM, "no memory for %u workers", count);
		goto err;
	}
	ret = rx_create(session, error);
	if (ret == 0 && session->plan.sends)
		ret = tx_create(session, error);
	if (ret < 0)
		goto err;
	ret = accountant_create(&session->accountant, session->rx_rings, session->rx_count,
				own_streams);
	if (ret < 0) {
		error_set(error, ret, "no memory for the accounts");
		goto err;
	}
	session->accountant_ready = true;
	return 0;
err:
	workers_destroy(session);
	return ret;
}

int gdrcap_create(const struct gdrcap_config *config, struct gdrcap_session **out,
		  struct gdrcap_error *error)
{
	static _Atomic unsigned int sessions;
	struct gdrcap_session *session;
	struct environment_needs needs;
	int ret;

	if (!out)
		return error_set(error, -EINVAL, "give a place for the new session");
	*out = NULL;
	session = calloc(1, sizeof(*session));
	if (!session)
		return error_set(error, -ENOMEM, "no memory for a session");
	pthread_mutex_init(&session->message_lock, NULL);
	pthread_mutex_init(&session->run_lock, NULL);
	session->number = sessions++;
	ret = config_complete(&session->config, config, error);
	if (ret < 0)
		goto err;
	session->log.line = session->config.log;
	session->log.context = session->config.log_context;
	log_push(&session->log);
	ret = plan_create(&session->plan, &session->config, error);
	if (ret < 0)
		goto err;
	ret = frames_create(session, error);
	if (ret < 0)
		goto err_frames;
	needs = (struct environment_needs){ session->plan.eal_bytes, session->plan.pci };
	ret = environment_start(&needs, error);
	if (ret < 0)
		goto err_frames;
	ret = device_open(session, error);
	if (ret < 0)
		goto err_frames;
	ret = memory_create(session, error);
	if (ret < 0)
		goto err_device;
	ret = session_ports_create(session, error);
	if (ret < 0)
		goto err_memory;
	ret = environment_cpus(session->config.cores, session->pairs[0].rx.numa_node, session->cpus,
			       GDRCAP_CORES_MAX, error);
	if (ret < 0)
		goto err_ports;
	session->cpu_count = (uint32_t)ret;
	ret = workers_create(session, error);
	if (ret < 0)
		goto err_ports;
	*out = session;
	return 0;
err_ports:
	session_ports_destroy(session);
err_memory:
	region_destroy(&session->region);
err_device:
	session->ops->close(session->device);
err_frames:
	frames_destroy(session);
	plan_destroy(&session->plan);
err:
	log_pop(&session->log);
	pthread_mutex_destroy(&session->run_lock);
	pthread_mutex_destroy(&session->message_lock);
	free(session);
	return ret;
}

/* Workers that did not leave may still come back and use frames, rings and tables, and to free a
 * GPU's memory is to wait for its kernels: all that they can reach stays until the process ends. */
static void session_strand(struct gdrcap_session *session)
{
	static struct gdrcap_session *_Atomic stranded;

	log_error("%zu MiB of memory stay allocated: workers of \"%s\" still hold them",
		  session->region.bytes >> 20, session->device_info.name);
	session_ports_destroy(session);
	session->next_stranded = atomic_exchange(&stranded, session);
}

void gdrcap_destroy(struct gdrcap_session *session)
{
	if (!session)
		return;
	gdrcap_stop(session, NULL);
	session_abandon(session);
	if (session->stranded) {
		session_strand(session);
		log_pop(&session->log);
		return;
	}
	workers_destroy(session);
	session_ports_destroy(session);
	region_destroy(&session->region);
	session->ops->close(session->device);
	frames_destroy(session);
	plan_destroy(&session->plan);
	for (uint32_t i = 0; i < session->message_count; i++)
		free(session->messages[i]);
	log_pop(&session->log);
	pthread_mutex_destroy(&session->run_lock);
	pthread_mutex_destroy(&session->message_lock);
	free(session);
}

struct gdrcap_queue *gdrcap_get_queue(struct gdrcap_session *session, uint32_t index)
{
	return index < session->rx_count ? &session->queues[index] : NULL;
}
