/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run says of its frames, receivers and senders that their counts alone do not. */
#include <errno.h>
#include <stdio.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "base/log.h"
#include "port/af_packet.h"
#include "session/session.h"

#define RATE_MISSED 0.99   /* a rate below this part of the one asked for was not reached */
#define RATE_SLACK_S 0.002 /* of a file's times: a start and an end */

/* Own frames: a sender that began again, and streams that cannot be told apart by their ids. */
static void streams_judge(struct gdrcap_session *session, const struct verdict *verdict)
{
	for (uint32_t i = 0; verdict->restarts && i < verdict->listed_count; i++) {
		const struct verdict_stream *stream = verdict_listed(verdict, i);

		if (stream->restarts)
			session_message(
				session, GDRCAP_LOG_WARNING,
				"the sender of stream %u began again, times: %u; what it had "
				"sent before and did not arrive is not known, unless it said how "
				"much it was",
				stream->id, stream->restarts);
	}
	if (verdict->conflicts)
		session_message(session, GDRCAP_LOG_ERROR,
				"stream %u came from more than one source address (such ids: %u): "
				"give each sender streams of its own (gdrcap replay "
				"--first-stream N), and one that is started again its old address "
				"(--src-mac)",
				verdict->conflict_id, verdict->conflicts);
	if (verdict->late_copies)
		session_message(session, GDRCAP_LOG_WARNING,
				"frames that came again after their stream's end: %llu; was its "
				"sender started again, and its first frames lost?",
				(unsigned long long)verdict->late_copies);
	if (session->run.ended_idle && session_hears_ends(session) && verdict->senders_live &&
	    !verdict_end_seen(verdict))
		session_message(session, GDRCAP_LOG_WARNING,
				"no stream said its end: what was lost after the last frame that "
				"came is not known");
	if (verdict->ranges && verdict->ranges->given_up)
		session_message(
			session, GDRCAP_LOG_WARNING,
			"ranges: streams of which it is not kept which frames came: %u; they came in "
			"more pieces than there is room for (%u of a stream, %u in all), or their "
			"sender began again",
			verdict->ranges->given_up, GDRCAP_RANGES_STREAM_MOST, GDRCAP_RANGES_MOST);
	if (verdict->untracked == 0)
		return;
	if (!session->run.failure)
		session->run.failure = -EOVERFLOW;
	session_message(session, GDRCAP_LOG_ERROR,
			"frames that were not judged: %llu; they are of more than %u streams; %s",
			(unsigned long long)verdict->untracked, GDRCAP_STREAMS_MAX,
			settings_is_custom(&session->settings)
				? "give custom.stream_offset and stream_bytes of another field, or "
				  "--match fewer"
				: "let the senders use fewer, or --match fewer");
}

/* A file waits; what comes to others meanwhile is missed when their own room is full. */
static void receivers_judge_pools(struct gdrcap_session *session)
{
	const bool all_came = session_sends_itself(session) &&
			      session_arrived(session) >= session_handed_over(session);

	for (uint32_t i = 0; i < session->workers.rx_count; i++) {
		const struct session_pair *pair =
			&session->ports.pairs[i / session->settings.queues];
		const struct port *port = &pair->rx;
		const struct rx_worker *worker = &session->workers.rx[i];
		const uint64_t times = atomic_load_explicit(&worker->starved, memory_order_relaxed);
		const double hz = (double)rte_get_tsc_hz();
		struct port_counters counters;

		if (!times || pair->source[0])
			continue;
		if (rx_worker_ended_starved(worker) && !all_came)
			session_message(session, GDRCAP_LOG_WARNING,
					"port %s, queue %u: the run was stopped while no slot was "
					"free: frames that were still at the port are not counted",
					port->name, i % session->settings.queues);
		/* Whose sender was held up instead: nothing was missed. */
		session_port_counters(session, port, &counters);
		if ((port->facts->missed_exact || pair->own) && counters.missed == 0)
			continue;
		session_message(
			session, GDRCAP_LOG_WARNING,
			"port %s, queue %u: times that no slot was free: %llu, %.3f s in all; the consumer was slower than the frames came; %s",
			port->name, i % session->settings.queues, (unsigned long long)times,
			(double)atomic_load_explicit(&worker->starved_tsc, memory_order_relaxed) /
				hz,
			settings_collects(&session->settings)
				? "raise --blocks, or --pool for what is short"
				: "release batches sooner, or raise --pool for what is short");
	}
}

/* What the caller ended without having asked for less. */
static void receivers_judge_files(struct gdrcap_session *session)
{
	const struct settings *settings = &session->settings;

	if (settings->frames || settings->images_wanted || session->run.ended_by_time)
		return;
	for (uint32_t i = 0; i < session->workers.rx_count; i++) {
		const struct session_pair *pair = &session->ports.pairs[i / settings->queues];
		const struct file_source *source = pair->source[i % settings->queues];
		uint64_t at, bytes;

		if (!source || source->config.loops ||
		    atomic_load_explicit(&session->workers.rx[i].source_over, memory_order_relaxed))
			continue;
		/* a pipe, which has no length, ends when its writer does */
		pcap_file_where(source->file, &at, &bytes);
		if (bytes)
			session_message(session, GDRCAP_LOG_WARNING,
					"port %s: the run was stopped before the end of %s",
					pair->rx.name, source->config.path);
	}
}

/* Late frames and incomplete images then are no sender's fault. */
static void receivers_judge_images(struct gdrcap_session *session)
{
	if (atomic_load_explicit(&session->workers.accountant.waited_out, memory_order_relaxed))
		session_message(
			session, GDRCAP_LOG_WARNING,
			"a file waited 10 s for a free image buffer, and images that lacked "
			"pieces were closed to go on; their other frames are late; release "
			"images sooner, or raise ring");
}

/* Drops that no gap in the frames shows. */
static void receivers_judge_missed(struct gdrcap_session *session)
{
	struct gdrcap_summary summary;

	if (gdrcap_get_summary(session, &summary, sizeof(summary)) < 0 ||
	    (settings_collects(&session->settings) && results_drops_unseen(&summary) == 0))
		return;
	for (uint32_t p = 0; p < session->settings.ports; p++) {
		const uint64_t missed = session_port_missed(session, p);

		if (missed)
			session_message(
				session, GDRCAP_LOG_WARNING,
				"port %s: frames that came and were not received: %llu, of anybody's; its "
				"ring or its socket was full, or they had errors (nic_missed, nic_error); "
				"give the receiving threads cores of their own, or raise %s",
				session->ports.pairs[p].rx.name, (unsigned long long)missed,
				port_name_is_af_packet(session->ports.pairs[p].rx.name)
					? "framecnt in the port's name"
					: "--descriptors");
	}
}

static void receivers_judge_cut(struct gdrcap_session *session)
{
	char remedy[100];
	uint64_t cut = 0;

	for (uint32_t i = 0; i < session->workers.rx_count; i++)
		cut += atomic_load_explicit(&session->workers.rx[i].cut, memory_order_relaxed);
	if (!cut)
		return;
	snprintf(remedy, sizeof(remedy),
		 session->plan.frame_bytes_max < FRAME_MAX_BYTES
			 ? "give the length of the longest with --frame-size, %u at most"
			 : "frames of more than %u bytes, with FCS, cannot be received",
		 FRAME_MAX_BYTES);
	session_message(
		session, GDRCAP_LOG_WARNING,
		"frames longer than --frame-size (%u): %llu; they filled the room that the port has, and of what was longer still only the "
		"beginning came%s; %s",
		session->plan.frame_bytes_max, (unsigned long long)cut,
		settings_validates(&session->settings)
			? ", and those that --match accepts count as damaged"
			: "",
		remedy);
}

void session_receivers_judge(struct gdrcap_session *session)
{
	receivers_judge_cut(session);
	receivers_judge_pools(session);
	receivers_judge_images(session);
	receivers_judge_files(session);
	if (session->workers.rx_count)
		receivers_judge_missed(session);
	streams_judge(session, accountant_borrow(&session->workers.accountant));
	accountant_return(&session->workers.accountant);
}

/* By more than what a start and an end make. */
static bool rate_missed(double done, double asked, double seconds)
{
	return asked > 0 && done < RATE_MISSED * asked &&
	       seconds * (1 - done / asked) > RATE_SLACK_S;
}

/* What a rate's average does not show. */
static void senders_judge_pace(struct gdrcap_session *session)
{
	uint64_t rebased = 0, late = 0, late_max_ns = 0;

	for (uint32_t i = 0; i < session->workers.tx_count; i++) {
		const struct pacing *pacing = &session->workers.tx[i].pacing;
		const uint64_t most =
			atomic_load_explicit(&pacing->late_max_ns, memory_order_relaxed);

		rebased += atomic_load_explicit(&pacing->rebased, memory_order_relaxed);
		late += atomic_load_explicit(&pacing->late, memory_order_relaxed);
		late_max_ns = RTE_MAX(late_max_ns, most);
	}
	if (rebased)
		session_message(
			session, GDRCAP_LOG_WARNING,
			"the sender was behind by more than %u ms, and did not catch up, times: %llu",
			PACING_LAG_MS, (unsigned long long)rebased);
	if (late)
		session_message(
			session, GDRCAP_LOG_WARNING,
			"frames that came too late to the port, which keeps the send times itself: %llu, by %.3f us at most",
			(unsigned long long)late, (double)late_max_ns / 1e3);
}

void session_rate_judge(struct gdrcap_session *session)
{
	const char *why = session->watch.link_lost
				  ? "the link was down for a while"
				  : "the port, or this machine's cores, cannot do more";
	struct gdrcap_summary summary = { 0 };

	session_sender_summary(session, &summary);
	if (session->workers.tx_count == 0 || summary.tx_seconds <= 0)
		return;
	if (rate_missed(summary.tx_gbps, summary.asked_gbps, summary.tx_seconds))
		session_message(session, GDRCAP_LOG_WARNING,
				"the rate was not reached: %.6f Gb/s of %.6f; %s", summary.tx_gbps,
				summary.asked_gbps, why);
	if (rate_missed(summary.tx_mpps, summary.asked_mpps, summary.tx_seconds))
		session_message(session, GDRCAP_LOG_WARNING,
				"the rate was not reached: %.6f Mpps of %.6f; %s", summary.tx_mpps,
				summary.asked_mpps, why);
	if (summary.asked_seconds > 0 &&
	    RATE_MISSED * summary.tx_seconds > summary.asked_seconds + RATE_SLACK_S)
		session_message(session, GDRCAP_LOG_WARNING,
				"the file's times were not kept: it took %.3f s instead of %.3f; "
				"%s",
				summary.tx_seconds, summary.asked_seconds, why);
	if (summary.tx_seconds < RATE_MISSED * summary.asked_seconds - RATE_SLACK_S)
		session_message(session, GDRCAP_LOG_WARNING,
				"the file's times were not kept: it took only %.3f s instead of "
				"%.3f, since its first frames were held up",
				summary.tx_seconds, summary.asked_seconds);
	senders_judge_pace(session);
	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		if (atomic_load_explicit(&session->workers.tx[i].end_unsaid,
					 memory_order_relaxed)) {
			session_message(
				session, GDRCAP_LOG_WARNING,
				"the end-of-stream frames could not be sent: receivers do "
				"not learn that it is over, nor how many frames there were");
			break;
		}
}
