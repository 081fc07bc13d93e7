/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's resources: created in the order in which a frame meets them, undone in reverse. */
#include "session/session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_gpudev.h>

#include "base/assertion.h"
#include "base/cancel.h"
#include "base/eal.h"
#include "base/guest.h"
#include "base/log.h"
#include "base/text.h"
#include "config/config.h"
#include "gpu/gpu_open.h"

void session_keep_failure(struct gdrcap_session *session, const char *line)
{
	pthread_mutex_lock(&session->lines.lock);
	if (session->lines.failure_text[0] == '\0')
		snprintf(session->lines.failure_text, sizeof(session->lines.failure_text), "%s",
			 line);
	pthread_mutex_unlock(&session->lines.lock);
}

void session_message(struct gdrcap_session *session, enum gdrcap_log_level level,
		     const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	text_clean(line, ' ');
	log_line(level, "%s", line);
	/* The first error is the one that gdrcap_stop() tells. */
	if (level == GDRCAP_LOG_ERROR)
		session_keep_failure(session, line);
	pthread_mutex_lock(&session->lines.lock);
	if (session->lines.message_count <
	    SESSION_MESSAGES_MAX - (level == GDRCAP_LOG_ERROR ? 0 : SESSION_MESSAGES_ERRORS)) {
		session->lines.messages[session->lines.message_count] = strdup(line);
		if (session->lines.messages[session->lines.message_count])
			session->lines.message_count++;
	}
	pthread_mutex_unlock(&session->lines.lock);
}

static void locks_create(struct gdrcap_session *session)
{
	pthread_mutexattr_t recursive;

	pthread_mutex_init(&session->lines.lock, NULL);
	pthread_mutex_init(&session->run.lock, NULL);
	session_control_create(&session->control);
	events_create(&session->events);
	/* The caller's log function may read results. */
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&session->ports.lock, &recursive);
	pthread_mutexattr_destroy(&recursive);
}

static void locks_destroy(struct gdrcap_session *session)
{
	pthread_mutex_destroy(&session->ports.lock);
	events_destroy(&session->events);
	session_control_destroy(&session->control);
	pthread_mutex_destroy(&session->run.lock);
	pthread_mutex_destroy(&session->lines.lock);
}

static int device_open(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct plan *plan = &session->plan;
	int ret;

	session->memory.ops = &kernel_host_ops;
	snprintf(session->memory.gpu_driver, sizeof(session->memory.gpu_driver), "gpu_host");
#ifdef GDRCAP_WITH_CUDA
	if (plan->cuda) {
		session->memory.ops = &kernel_cuda_ops;
		snprintf(session->memory.gpu_driver, sizeof(session->memory.gpu_driver),
			 "gpu_cuda");
	}
#endif
	ret = plan->cuda ? gpu_open_cuda(plan->ordinal, error)
			 : gpu_open_host(session->settings.guard, error);
	if (ret < 0)
		return ret;
	session->memory.gpu = (int16_t)ret;
	ret = session->memory.ops->open(plan->ordinal, &session->memory.device);
	if (ret < 0)
		return error_set(error, ret, "%s", kernel_error());
	if (plan->cuda)
		guest_gpu_opened();
	session->memory.ops->info(session->memory.device, &session->memory.device_info);
	return 0;
}

/* Fills a long stretch piece by piece and tells how far it is, where that takes long. */
static int poison_whole(const struct gdrcap_session *session, const struct region *region)
{
	const size_t piece = (size_t)256 << 20;
	uint64_t told = rte_rdtsc();
	int ret = 0;

	for (size_t at = 0; ret == 0 && at < region->bytes; at += piece) {
		ret = session->memory.ops->fill(session->memory.device, region->device + at,
						SESSION_POISON, RTE_MIN(piece, region->bytes - at));
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
	const struct region *region = &session->memory.region;
	const size_t slot_bytes = (size_t)1 << region->slot_shift;
	int ret = 0;

	if (!session->plan.umem)
		return poison_whole(session, region);
	/* The first bytes of each slot are the mempool's: its header and the mbuf. */
	for (uint32_t i = 0; ret == 0 && i < region->slots; i++)
		ret = session->memory.ops->fill(session->memory.device,
						region->device + i * slot_bytes + REGION_UMEM_HEAD,
						SESSION_POISON, slot_bytes - REGION_UMEM_HEAD);
	return ret;
}

/* What is to be poisoned is written by the CPU, but for memory of a real GPU. */
static int frames_check(const struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct region *region = &session->memory.region;

	if (region->owned || (session->plan.cuda && region->kind == GDRCAP_MEMORY_DEVICE) ||
	    region_can_write(region->base, region->bytes))
		return 0;
	return error_set(error, -EFAULT,
			 "the caller's memory at %p, %zu bytes, is not all there, or cannot be "
			 "written: pass the CPU's memory, mapped as a whole",
			 (void *)region->base, region->bytes);
}

static int frames_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct region_config config = {
		.gpu = session->memory.gpu,
		.kind = session->plan.memory,
		.bytes = session->plan.region_bytes,
		.slot_shift = session->plan.slot_shift,
		.addr = session->settings.memory_addr,
		.pool_bytes = (size_t)session->plan.pool_slots << session->plan.slot_shift,
		.cpu_workers = !session->plan.cuda,
		.dump = session->settings.dump_frames,
	};
	int ret;

	ret = region_create(&session->memory.region, &config, error);
	if (ret < 0)
		return ret;
	ret = error_of_config(error, frames_check(session, error));
	if (ret == 0) {
		ret = memory_poison(session);
		if (ret < 0)
			error_set(error, ret, "the memory cannot be poisoned: %s", kernel_error());
	}
	if (ret < 0) {
		region_destroy(&session->memory.region);
		return ret;
	}
	log_info("memory: %s, %zu MiB in slots of %u bytes, pages of %zu KiB, poisoned with 0x%02x",
		 plan_memory_name(session->memory.region.kind), session->memory.region.bytes >> 20,
		 1u << session->memory.region.slot_shift, session->memory.region.page >> 10,
		 SESSION_POISON);
	return 0;
}

/* Where the beginnings of split frames land: memory that the CPU and the consumer both read. */
static int heads_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct region_config config = {
		.gpu = session->memory.gpu,
		.kind = session->plan.cuda ? GDRCAP_MEMORY_PINNED : GDRCAP_MEMORY_HOST,
		.bytes = session->plan.heads_bytes,
		.slot_shift = REGION_HEAD_SHIFT,
		.pool_bytes = (size_t)session->plan.pool_slots << REGION_HEAD_SHIFT,
		.cpu_workers = !session->plan.cuda,
		.dump = session->settings.dump_frames,
	};
	int ret;

	if (!session->plan.heads_bytes)
		return 0;
	ret = region_create(&session->memory.heads, &config, error);
	if (ret < 0)
		return ret;
	ret = poison_whole(session, &session->memory.heads);
	if (ret < 0) {
		error_set(error, ret, "the memory of frames' first bytes cannot be poisoned: %s",
			  kernel_error());
		region_destroy(&session->memory.heads);
		return ret;
	}
	log_info("memory: frames' first bytes in %s memory, %zu MiB",
		 plan_memory_name(session->memory.heads.kind), session->memory.heads.bytes >> 20);
	return 0;
}

/* Slots of the caller's send queues in memory of another kind than the frames that come. */
static int sending_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct region_config config = {
		.gpu = session->memory.gpu,
		.kind = session->plan.tx_memory,
		.bytes = session->plan.tx_bytes,
		.slot_shift = session->plan.slot_shift,
		.pool_bytes = (size_t)session->plan.pool_slots << session->plan.slot_shift,
		.cpu_workers = !session->plan.cuda,
		.dump = session->settings.dump_frames,
	};
	int ret;

	if (!session->plan.tx_bytes)
		return 0;
	ret = region_create(&session->memory.sending, &config, error);
	if (ret == 0)
		log_info("memory: frames to be sent in %s memory, %zu MiB",
			 plan_memory_name(session->memory.sending.kind),
			 session->memory.sending.bytes >> 20);
	return ret;
}

static void generation_destroy(struct gdrcap_session *session)
{
	if (!session->plan.cuda)
		free(session->memory.generation);
	else if (rte_gpu_mem_free(session->memory.gpu, session->memory.generation) < 0)
		log_warning("the GPU kept the stale-read detector's memory: %s",
			    rte_strerror(rte_errno));
	session->memory.generation = NULL;
}

/* Only the consumer's workers touch it: GPU memory for a GPU's, plain memory for CPU threads. */
static int generation_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const size_t bytes =
		(size_t)session->memory.region.slots * sizeof(*session->memory.generation);
	int ret;

	if (!session->settings.stale_us)
		return 0;
	session->memory.generation = session->plan.cuda
					     ? rte_gpu_mem_alloc(session->memory.gpu, bytes, 0)
					     : malloc(bytes);
	if (!session->memory.generation)
		return error_set(error, -ENOMEM,
				 "no %zu KiB of %s memory for the stale-read detector: ask for "
				 "less with pool",
				 bytes >> 10, session->plan.cuda ? "GPU" : "host");
	ret = session->memory.ops->fill(session->memory.device, session->memory.generation, 0,
					bytes);
	if (ret < 0) {
		error_set(error, ret, "the stale-read detector's memory cannot be cleared: %s",
			  kernel_error());
		generation_destroy(session);
	}
	return ret;
}

static void memory_destroy(struct gdrcap_session *session)
{
	generation_destroy(session);
	region_destroy(&session->memory.sending);
	region_destroy(&session->memory.heads);
	region_destroy(&session->memory.region);
}

static int memory_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	int ret = frames_create(session, error);

	if (ret < 0)
		return ret;
	ret = heads_create(session, error);
	if (ret < 0)
		goto err_frames;
	ret = sending_create(session, error);
	if (ret < 0)
		goto err_heads;
	ret = generation_create(session, error);
	if (ret < 0)
		goto err_sending;
	return 0;
err_sending:
	region_destroy(&session->memory.sending);
err_heads:
	region_destroy(&session->memory.heads);
err_frames:
	region_destroy(&session->memory.region);
	return ret;
}

/* All that a session has: its lines are its own from here on. */
static int session_build(struct gdrcap_session *session, struct gdrcap_error *error)
{
	LOG_SCOPE(&session->log);
	struct eal_needs needs;
	int ret = plan_create(&session->plan, &session->settings, error);

	if (ret < 0)
		return ret;
	ret = session_frames_create(session, error);
	if (ret < 0)
		goto err_frames;
	needs = (struct eal_needs){ session->plan.eal_bytes, session->plan.pci };
	ret = eal_start(&needs, error);
	if (ret < 0)
		goto err_frames;
	ret = device_open(session, error);
	if (ret < 0)
		goto err_frames;
	ret = session_files_create(session, error);
	if (ret < 0)
		goto err_device;
	ret = memory_create(session, error);
	if (ret < 0)
		goto err_files;
	ret = session_images_create(session, error);
	if (ret < 0)
		goto err_memory;
	ret = session_ports_create(session, error);
	if (ret < 0)
		goto err_images;
	ret = eal_cpus(session->settings.cores.cpu, session->settings.cores.count,
		       settings_receives(&session->settings) ? session->ports.pairs[0].rx.numa_node
							     : session->ports.pairs[0].tx.numa_node,
		       session->workers.cpus, GDRCAP_CORES_MAX, error);
	if (ret < 0)
		goto err_ports;
	session->workers.cpu_count = (uint32_t)ret;
	ret = session_workers_create(session, error);
	if (ret < 0)
		goto err_ports;
	session_cpus_take(session);
	return 0;
err_ports:
	session_ports_destroy(session);
err_images:
	session_images_destroy(session);
err_memory:
	memory_destroy(session);
err_files:
	session_files_destroy(session);
err_device:
	session->memory.ops->close(session->memory.device);
err_frames:
	session_frames_destroy(session);
	return ret;
}

int gdrcap_create(const struct gdrcap_config *config, struct gdrcap_session **out,
		  struct gdrcap_error *error)
{
	static _Atomic unsigned int sessions;
	struct gdrcap_session *session;
	int ret;

	if (!out)
		return error_set(error, -EINVAL, "give a place for the new session");
	*out = NULL;
	CANCEL_OFF;
	ret = guest_enter(error);
	if (ret < 0)
		return ret;
	session = calloc(1, sizeof(*session));
	if (!session) {
		guest_leave();
		return error_set(error, -ENOMEM, "no memory for a session");
	}
	locks_create(session);
	session->number = sessions++;
	ret = config_settle(config, &session->settings, error);
	if (ret < 0)
		goto err;
	session->config = config_copy(config);
	if (!session->config) {
		ret = error_set(error, -ENOMEM, "no memory for a session");
		goto err;
	}
	results_run_now(&session->id);
	session->log.line = config->log;
	session->log.context = config->log_context;
	log_open(&session->log);
	ret = session_build(session, error);
	if (ret < 0)
		goto err;
	session->guest.leave = session_leave;
	guest_add(&session->guest);
	*out = session;
	return 0;
err:
	log_close(&session->log);
	gdrcap_config_free(session->config);
	locks_destroy(session);
	free(session);
	guest_leave();
	return ret;
}

/* Workers that did not leave may still come back and use frames, rings and tables, and to free a
 * GPU's memory is to wait for its kernels: all that they can reach stays until the process ends. */
static void session_give_up(struct gdrcap_session *session)
{
	static struct gdrcap_session *_Atomic given_up;

	log_error("%zu MiB of memory stay allocated: workers of \"%s\" still hold them",
		  session->memory.region.bytes >> 20, session->memory.device_info.name);
	/* The writer of its files reads a card's clock. After a run it has ended. */
	if (session->frames.save)
		(void)save_finish(session->frames.save, NULL);
	/* Nor is a port closed under a thread that hangs in its driver. */
	if (!session->run.hung)
		session_ports_destroy(session);
	session->run.next_given_up = atomic_exchange(&given_up, session);
}

void gdrcap_destroy(struct gdrcap_session *session)
{
	if (guest_check(session, "session", NULL) < 0)
		return;
	if (log_in_sink()) {
		assertion(false,
			  "gdrcap_destroy() was called by a log function: it may call "
			  "gdrcap_stop(), and the code that created the session destroys it");
		/* Once: the line goes to that function. */
		if (!atomic_exchange(&session->run.destroy_refused, true))
			log_error("gdrcap_destroy() was called by a log function, and does nothing "
				  "there");
		return;
	}
	LOG_SCOPE(&session->log);
	gdrcap_stop(session, NULL);
	session_abandon(session);
	accountant_stop(&session->workers.accountant);
	guest_remove(&session->guest);
	/* Of a session that was given up, guest_leave() is never called: its workers use everything. */
	if (session->run.given_up) {
		session_give_up(session);
		log_close(&session->log);
		return;
	}
	session_cpus_give(session);
	session_workers_destroy(session);
	session_ports_destroy(session);
	session_sending_destroy(session);
	session_images_destroy(session);
	memory_destroy(session);
	session_files_destroy(session);
	session->memory.ops->close(session->memory.device);
	session_frames_destroy(session);
	for (uint32_t i = 0; i < session->lines.message_count; i++)
		free(session->lines.messages[i]);
	log_close(&session->log);
	gdrcap_config_free(session->config);
	locks_destroy(session);
	free(session);
	guest_leave();
}

struct gdrcap_queue *gdrcap_get_queue(struct gdrcap_session *session, uint32_t index)
{
	if (guest_check(session, "session", NULL) < 0)
		return NULL;
	return index < session->workers.rx_count ? &session->workers.queues[index] : NULL;
}
