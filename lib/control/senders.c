/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the senders hand over what they were asked to. */
#include "session.h"

/* What the run's end left unsent. Where `seconds` ended it, that was asked for too. */
void session_senders_judge(struct gdrcap_session *session)
{
	const uint64_t sent = session_sent(session), asked = session->tx_asked;
	bool down = false;

	if (session->tx_count == 0 || asked == 0 || sent >= asked)
		return;
	for (uint32_t p = 0; p < session->plan.ports; p++)
		down |= session->link[GDRCAP_PORTS_MAX + p] != LINK_UP;
	if (!session->ended_by_time || down || session->failure)
		atomic_store(&session->tx_missing, asked - sent);
	if (session->failure)
		return;
	session_message(session, GDRCAP_LOG_WARNING, "%llu of %llu frames were sent: %s",
			(unsigned long long)sent, (unsigned long long)asked,
			down			 ? "the port's link was down when the run ended"
			: session->ended_by_time ? "the time to run was over first"
						 : "the run was ended before");
}
