/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that is played at its own times: what is unusual about them, and a long wait for the next frame. */
#include <rte_cycles.h>

#include "base/log.h"
#include "session/session.h"

#define GAP_S 10u /* a longer wait is announced */

static bool plays_times(const struct gdrcap_session *session)
{
	return session->workers.tx_count && session->frames.file &&
	       session->settings.pacing.kind == PACING_ORIGINAL;
}

void session_file_times_tell(const struct gdrcap_session *session)
{
	const struct file_scan *scan = &session->plan.pcap;
	const double unit = 1e9 * session->settings.pacing.value;
	const bool odd = scan->steps_back || (double)scan->gap_max_ns / unit > GAP_S;

	if (!plays_times(session))
		return;
	log_line(
		odd ? GDRCAP_LOG_WARNING : GDRCAP_LOG_INFO,
		"%s: %llu of %llu frames step back in time and are sent at once; the longest gap is %.3f "
		"s, all frames take %.3f s%s",
		session->settings.pcap, (unsigned long long)scan->steps_back,
		(unsigned long long)scan->frames, (double)scan->gap_max_ns / unit,
		(double)(scan->last_ns - scan->first_ns) / unit,
		odd ? "; give rate to ignore the file's times" : "");
}

void session_file_times_watch(struct gdrcap_session *session)
{
	const struct tx_worker *worker = &session->workers.tx[0]; /* the only one of a file */
	const uint64_t hz = rte_get_tsc_hz(), now = rte_rdtsc();
	uint64_t next;

	if (!plays_times(session))
		return;
	next = atomic_load_explicit(&worker->next_tsc, memory_order_relaxed);
	if (next == session->watch.gap_tsc || next < now + GAP_S * hz)
		return;
	session->watch.gap_tsc = next;
	log_line(
		GDRCAP_LOG_WARNING,
		"%s: the next frame is due in %.0f s, by its time in the file; wait, or end this run and "
		"give rate or a higher speed",
		session->settings.pcap, (double)(next - now) / (double)hz);
}
