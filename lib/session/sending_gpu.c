/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's send queues in the hands of a kernel that is already running: their memory, what it does wrong,
 * and the end. */
#include <errno.h>
#include <stdio.h>

#include <rte_common.h>

#include "base/log.h"
#include "session/answer.h"
#include "session/session.h"

#define PART_BYTES ((size_t)512) /* of queues, so that none shares a line with another */

static bool is_gpu(const struct gdrcap_session *session)
{
	return session->settings.sender == SENDER_GPU;
}

int session_sending_gpu_create(struct gdrcap_session *session, uint32_t queues,
			       struct gdrcap_error *error)
{
	const size_t each = RTE_ALIGN_CEIL(send_gpu_bytes(session->plan.pool_slots), PART_BYTES);
	const struct region_config config = {
		.gpu = session->memory.gpu,
		.kind = session->plan.cuda ? GDRCAP_MEMORY_PINNED : GDRCAP_MEMORY_HOST,
		.bytes = each * queues,
		.slot_shift = REGION_IMAGE_SHIFT,
		.cpu_workers = !session->plan.cuda,
	};

	return is_gpu(session) ? region_create(&session->sending.gpu, &config, error) : 0;
}

void *session_sending_gpu_words(const struct gdrcap_session *session, uint32_t i)
{
	const size_t each = RTE_ALIGN_CEIL(send_gpu_bytes(session->plan.pool_slots), PART_BYTES);

	return is_gpu(session) ? session->sending.gpu.device + each * i : NULL;
}

/* What the run ends for: a count of the kernel's that cannot be. */
static bool gpu_fault(const struct gdrcap_session *session, char *what, size_t bytes)
{
	for (uint32_t i = 0; i < session->sending.count; i++) {
		const struct gdrcap_tx *tx = &session->sending.queues[i];

		/* Before the count. Partner: the release store in gpu_take_over(). */
		if (!atomic_load_explicit(&tx->gpu_fault, memory_order_acquire))
			continue;
		snprintf(what, bytes,
			 "send queue %u: its kernel submitted frames up to number %llu, and never "
			 "had slots for so many, or had submitted more before: only one block may "
			 "use the queue at a time, with the number that gdrcap_gpu_tx_submit() "
			 "returned to it",
			 i, (unsigned long long)tx->gpu_submitted);
		return true;
	}
	return false;
}

void session_watch_sending(struct gdrcap_session *session)
{
	char what[400];

	if (is_gpu(session) && gpu_fault(session, what, sizeof(what)))
		session_fail(session, -EPROTO, what);
}

void session_sending_gpu_judge(struct gdrcap_session *session)
{
	char what[400];

	if (!is_gpu(session))
		return;
	/* It may have been the last that the kernel did. */
	if (!session->run.failure && gpu_fault(session, what, sizeof(what))) {
		session->run.failure = -EPROTO;
		session_message(session, GDRCAP_LOG_ERROR, "%s", what);
	}
	for (uint32_t i = 0; i < session->sending.count; i++) {
		const struct gdrcap_tx *tx = &session->sending.queues[i];
		/* Before the first one's. Partner: the release store in gpu_refuse(). */
		const uint64_t refused = atomic_load_explicit(&tx->refused, memory_order_acquire);

		if (refused)
			session_message(
				session, GDRCAP_LOG_WARNING,
				"send queue %u: frames of the kernel's that were not sent, with a length that no frame has: %llu; the first is number %llu, %u bytes; "
				"gdrcap_gpu_tx_set_bytes() takes %u (pad it) to %u, which is "
				"frame.size without FCS",
				i, (unsigned long long)refused, (unsigned long long)tx->refused_seq,
				tx->refused_bytes, SEND_BYTES_MIN, tx->config.bytes_max);
	}
}

int gdrcap_get_gpu_tx(struct gdrcap_tx *tx, struct gdrcap_gpu_tx *gpu_tx, size_t size)
{
	const int ret = answer_check(tx, "send queue", gpu_tx, size);
	struct gdrcap_gpu_tx all;

	if (ret < 0 || !tx->gpu.room)
		return ret < 0 ? ret : -EINVAL;
	all = send_gpu_view(&tx->gpu, tx->config.bytes_max);
	answer_give(gpu_tx, size, &all, sizeof(all));
	return 0;
}
