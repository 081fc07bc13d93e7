/* SPDX-License-Identifier: BSD-3-Clause */
/* Send queues of ours on the sending ports' cards, where the driver's are not to be used. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "session/session.h"

static uint64_t count_of(const _Atomic uint64_t *count)
{
	return atomic_load_explicit(count, memory_order_relaxed);
}

/* A context of its own: nothing of it is the driver's, and frames leave by the card's port anyway. */
static int card_open(struct gdrcap_session *session, uint32_t p, struct gdrcap_error *error)
{
	struct session_own_senders *own = &session->own_senders;
	struct region *region = &session->memory.region;
	int ret = devx_open(&own->cards[p], &session->plan.tx_port[p].card,
			    session->settings.tx.port[p].name, error);

	if (ret == 0)
		ret = devx_key_create(&own->cards[p], &own->keys[p], region->base, region->bytes,
				      error);
	return ret;
}

static int own_queue_create(struct gdrcap_session *session, uint32_t p, uint32_t q,
			    struct gdrcap_error *error)
{
	struct session_own_senders *own = &session->own_senders;
	const struct tx_own_config config = {
		.card = &own->cards[p],
		.key = own->keys[p]->lkey,
		.region = &session->memory.region,
		.pool = session->ports.pairs[p].tx_pool[q],
		.memory = session->settings.tx_by == TX_BY_GPU ? GDRCAP_MEMORY_PINNED
							       : GDRCAP_MEMORY_HOST,
		.gpu = session->memory.gpu,
	};
	int ret = tx_own_create(&own->queues[own->count], &config, error);

	own->count += ret == 0;
	return ret;
}

int session_own_senders_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct settings *settings = &session->settings;
	struct session_own_senders *own = &session->own_senders;
	const uint32_t count = settings->ports * settings->queues;
	int ret = 0;

	if (settings->tx_by == TX_BY_DRIVER)
		return 0;
	if (settings->tx_by == TX_BY_GPU && !session->plan.cuda)
		return error_set(
			error, -ENOTSUP,
			"sender.by: a kernel (gpu) needs a CUDA device, and there is none (nvidia-smi -L); "
			"use sender.by: cpu, or leave it out");
	own->queues = aligned_alloc(RING_LINE, (count * sizeof(*own->queues) + RING_LINE - 1) /
						       RING_LINE * RING_LINE);
	if (!own->queues)
		return error_set(error, -ENOMEM, "no memory for %u send queues", count);
	if (settings->tx_by == TX_BY_GPU)
		own->gpus = calloc(count, sizeof(*own->gpus));
	if (settings->tx_by == TX_BY_GPU && !own->gpus)
		ret = error_set(error, -ENOMEM, "no memory for %u send queues", count);
	for (uint32_t p = 0; ret == 0 && p < settings->ports; p++) {
		ret = card_open(session, p, error);
		for (uint32_t q = 0; ret == 0 && q < settings->queues; q++)
			ret = own_queue_create(session, p, q, error);
		if (ret == 0)
			log_info("port %s: frames are sent by work entries of our own, queues: %u",
				 settings->tx.port[p].name, settings->queues);
	}
	return ret;
}

void session_own_senders_destroy(struct gdrcap_session *session)
{
	struct session_own_senders *own = &session->own_senders;
	struct gdrcap_error error;
	bool stays = false;

	while (own->gpu_count)
		tx_gpu_destroy(&own->gpus[--own->gpu_count]);
	free(own->gpus);
	own->gpus = NULL;
	while (own->count) {
		own->count--;
		if (tx_own_destroy(&own->queues[own->count], &error) < 0) {
			log_warning("%s", error.text);
			stays = true;
		}
	}
	/* What a queue that is still there uses stays with it. */
	if (stays)
		return;
	for (uint32_t p = 0; p < session->settings.ports; p++) {
		if (devx_key_destroy(&own->keys[p]) < 0)
			log_warning("the card keeps the frames' memory registered");
		devx_close(&own->cards[p]);
	}
	free(own->queues);
	own->queues = NULL;
}

void session_own_senders_watch(struct gdrcap_session *session, uint32_t p)
{
	struct session_own_senders *own = &session->own_senders;
	struct session_pair *pair = &session->ports.pairs[p];
	uint64_t resets = 0, lost = 0;
	bool failing = false;
	char why[160] = "";

	for (uint32_t q = 0; q < session->settings.queues; q++) {
		const struct tx_own *queue = &own->queues[p * session->settings.queues + q];
		/* Acquire: `why` and `lost` are of that reset, or of a later one. */
		const uint64_t of_queue =
			atomic_load_explicit(&queue->resets, memory_order_acquire);

		failing |= atomic_load_explicit(&queue->failing, memory_order_relaxed) != 0;
		if (of_queue || failing)
			tx_own_explain(queue, why, sizeof(why));
		resets += of_queue;
		lost += count_of(&queue->lost);
	}
	pair->recover.tx_failing = failing;
	if (resets == own->told[p])
		return;
	own->told[p] = resets;
	session_message(
		session, GDRCAP_LOG_WARNING,
		"port %s: a send queue was in error and was started again (%s); resets so far: "
		"%llu, frames lost with them: %llu",
		pair->tx.name, why, (unsigned long long)resets, (unsigned long long)lost);
}

uint64_t session_own_senders_lost(const struct gdrcap_session *session)
{
	const struct session_own_senders *own = &session->own_senders;
	uint64_t lost = 0;

	for (uint32_t i = 0; i < own->count; i++)
		lost += count_of(&own->queues[i].lost);
	return lost;
}

void session_own_senders_judge(struct gdrcap_session *session)
{
	struct session_own_senders *own = &session->own_senders;
	uint64_t unsent = 0;

	if (!own->count || !session->workers.tx_count)
		return;
	for (uint32_t p = 0; p < session->settings.ports; p++)
		session_own_senders_watch(session, p);
	for (uint32_t i = 0; i < own->count; i++) {
		struct sq_front *front = &own->queues[i].front;

		/* One that hangs still has its queue. */
		if (!atomic_load_explicit(&session->workers.tx[i].finished, memory_order_acquire))
			continue;
		(void)sq_poll(front);
		unsent += front->frames - front->sent;
	}
	if (unsent)
		session_message(
			session, GDRCAP_LOG_WARNING,
			"frames that were still with the card when the run ended, which had not said that it sent them: %llu; is its link up, and "
			"does the other side hold it up with pause frames (ethtool -a)?",
			(unsigned long long)unsent);
}
