/* SPDX-License-Identifier: BSD-3-Clause */
/* Senders on the GPU: made, and started beside the kernel that writes their frames. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "session/session.h"

/* Who rings, where it is not the kernel: aloud, since it costs a core. */
static void bell_tell(struct gdrcap_session *session, uint32_t i)
{
	const struct tx_gpu *gpu = &session->own_senders.gpus[i];
	const char *port = session->settings.tx.port[i / session->settings.queues].name;

	if (!gpu->bell)
		session_message(
			session, GDRCAP_LOG_WARNING,
			"port %s, queue %u: the GPU cannot reach the card's doorbell register, so "
			"a CPU thread rings for it, on a core of its own: %s; be root, or load the "
			"NVIDIA driver with NVreg_RegistryDwords=\"PeerMappingOverride=1;\"",
			port, i % session->settings.queues, gpu->why);
	else if (gpu->bell_plain && i == 0)
		log_info("port %s: the doorbell register is memory, as a card in software has it",
			 port);
}

int session_gpu_senders_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	struct session_own_senders *own = &session->own_senders;
	const struct tx_gpu_config config = {
		.ops = session->memory.ops,
		.device = session->memory.device,
		.gpu = session->memory.gpu,
	};

	if (session->settings.tx_by != TX_BY_GPU)
		return 0;
	while (own->gpu_count < session->workers.tx_count) {
		int ret = tx_gpu_create(&own->gpus[own->gpu_count], &config,
					&session->workers.tx[own->gpu_count], error);

		if (ret < 0)
			return ret;
		bell_tell(session, own->gpu_count++);
	}
	return 0;
}

int session_gpu_senders_start(struct gdrcap_session *session, struct gdrcap_error *error)
{
	struct kernel_send sends[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
	struct burst_ring_view views[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
	const struct kernel_job job = {
		.role = KERNEL_SEND,
		.rings = views,
		.ring_count = session->workers.tx_count,
		.layout = session->frames.layout,
		.pattern = session->frames.pattern,
		.sends = sends,
	};
	struct kernel_workers *started = NULL;
	struct timespec now;
	int ret;

	if (session->settings.tx_by != TX_BY_GPU)
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	for (uint32_t i = 0; i < job.ring_count; i++) {
		const struct tx_worker *worker = &session->workers.tx[i];

		views[i] = worker->ring.view;
		tx_gpu_show(&session->own_senders.gpus[i], worker, &sends[i],
			    (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
	}
	ret = session->memory.ops->start(session->memory.device, &job, &started);
	if (ret < 0)
		return error_set(error, ret, "%s", kernel_error());
	guest_lock();
	session->jobs.send = started;
	guest_unlock();
	return 0;
}
