/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of a session call of each other; parts.h says which of them owns what. */
#ifndef GDRCAP_SESSION_H
#define GDRCAP_SESSION_H

#include "session/parts.h"

/* ---- fronts on the GPU in place of receivers' threads: own_fronts.c ---- */

/* Once the device is open: whether it can. Nothing where threads receive. */
int session_fronts_check(struct gdrcap_session *session, struct gdrcap_error *error);
/* Where queues' completions are to lie, for a pair of the session's. */
void session_fronts_memory(struct gdrcap_session *session, struct own_gpu *gpu);
/* Before the receivers: what they share with fronts. */
int session_fronts_create(struct gdrcap_session *session, struct gdrcap_error *error);
void session_fronts_destroy(struct gdrcap_session *session);
/* For the ring of a receiver; NULL: a thread publishes. */
const struct ring_front *session_fronts_ring(const struct gdrcap_session *session);
/* Receiver `index`, which exists: its queue takes frames from now on. */
int session_fronts_add(struct gdrcap_session *session, uint32_t index, struct gdrcap_error *error);
int session_fronts_start(struct gdrcap_session *session, struct gdrcap_error *error);
/* Port p's queues that a front has stopped at are marked (cq_state). */
void session_fronts_look(struct gdrcap_session *session, uint32_t p);
/* All fronts have ended, and all that they published is collected. False: not yet. */
bool session_fronts_pause(struct gdrcap_session *session);
/* After that, and perhaps resets. Fails the run where the kernel does not start. */
void session_fronts_go_on(struct gdrcap_session *session);
/* The run is over: counts what came behind an error. */
void session_fronts_end(struct gdrcap_session *session);

/* ---- receiving ports that are files: file_ports.c ---- */

/* Once the port's pools and clock are there. Nothing where it is no file. */
int session_sources_open(struct gdrcap_session *session, struct session_pair *pair,
			 struct gdrcap_error *error);
void session_sources_close(struct session_pair *pair);
/* Before its thread starts. */
void session_source_attach(struct gdrcap_session *session, struct file_source *source,
			   uint32_t index);
/* The run receives, and from files only. */
bool session_reads_files_only(const struct gdrcap_session *session);
/* Before its receivers: images go by the files' times. */
int session_clock_create(struct gdrcap_session *session, struct gdrcap_error *error);
/* Of such a run: all frames of its files are received and accounted for. */
bool session_sources_are_over(const struct gdrcap_session *session);
/* Fails the run when a file broke off. */
void session_watch_sources(struct gdrcap_session *session);

/* ---- send queues of ours in place of the driver's: own_senders.c ---- */

int session_own_senders_create(struct gdrcap_session *session, struct gdrcap_error *error);
/* After the workers, before the region. */
void session_own_senders_destroy(struct gdrcap_session *session);
/* For those that a kernel drives, once their workers exist; starts it, after the frames' writers. */
int session_gpu_senders_create(struct gdrcap_session *session, struct gdrcap_error *error);
int session_gpu_senders_start(struct gdrcap_session *session, struct gdrcap_error *error);
/* Says what of port p's queues the card stopped. */
void session_own_senders_watch(struct gdrcap_session *session, uint32_t p);
/* Frames that resets of them cost, all together. */
uint64_t session_own_senders_lost(const struct gdrcap_session *session);
/* Says what they left unsent. */
void session_own_senders_judge(struct gdrcap_session *session);

/* ---- send queues of the caller's: sending.c ---- */

int session_sending_create(struct gdrcap_session *session, struct gdrcap_error *error);
/* After the ports, which give mbufs back when they close. */
void session_sending_destroy(struct gdrcap_session *session);
/* Where their slots are. */
static inline struct region *session_sending_region(struct gdrcap_session *session)
{
	return session->memory.sending.bytes ? &session->memory.sending : &session->memory.region;
}
/* The port of queue i. */
const struct port *session_sending_port(const struct gdrcap_session *session, uint32_t i);
/* The run is over: they take nothing more. */
void session_sending_end(struct gdrcap_session *session);
/* From now on CUDA streams may wait: on_stream.c. */
void session_streams_open(struct gdrcap_session *session);
/* After that: all is sent, or told to be unsent. */
void session_sending_join(struct gdrcap_session *session);
/* An AF_PACKET socket that could not send when it was told to, as its link was just up again, is told
 * once more: after a replay's frame others follow, after the caller's perhaps none. */
void session_sending_kick(const struct gdrcap_session *session);
/* Frames that their ports took. */
uint64_t session_sending_sent(const struct gdrcap_session *session);
/* Slots of queue i that are where they should be: all of its pool. */
uint32_t session_sending_back(const struct gdrcap_session *session, uint32_t i);
/* The caller's memory is taken from sending port p, which has stopped: sending_memory.c. */
void session_memory_unmap(struct gdrcap_session *session, uint32_t p);
/* After the ports. */
void session_memory_destroy(struct gdrcap_session *session);
/* Those of a running kernel's: sending_gpu.c. What it shares with `queues` of them, if there is one. */
int session_sending_gpu_create(struct gdrcap_session *session, uint32_t queues,
			       struct gdrcap_error *error);
/* Of queue i; NULL: it is not a kernel's. */
void *session_sending_gpu_words(const struct gdrcap_session *session, uint32_t i);
/* Ends the run where a kernel submitted what it never had. */
void session_watch_sending(struct gdrcap_session *session);
void session_sending_gpu_judge(struct gdrcap_session *session);
/* What became of the caller's frames, over all queues; see struct gdrcap_summary. */
void session_sending_summary(const struct gdrcap_session *session, struct gdrcap_summary *summary);
/* Says what was not sent. */
void session_sending_judge(struct gdrcap_session *session);
/* The link of sending port p is down, or up. */
void session_sending_hold(struct gdrcap_session *session, uint32_t p, bool hold);
/* Before a stop, which may come before the first look at the links. */
void session_sending_look(struct gdrcap_session *session);
/* Keeps the queues of port p, if it receives too, away from it until session_sending_go_on(). False: a
 * thread does not answer. */
bool session_sending_pause(struct gdrcap_session *session, uint32_t p);
void session_sending_go_on(struct gdrcap_session *session, uint32_t p);
/* Waits until paused() says `wanted` of each queue of port p; false: one has not within half a second of
 * `since`. recover_ports.c. */
bool session_threads_are(const struct gdrcap_session *session, uint32_t p,
			 int (*paused)(const struct gdrcap_session *session, uint32_t i),
			 int wanted, uint64_t since);

/* The receivers' end, in its order: stop_receivers.c. Waits for frames that were sent and are still
 * at the ports. */
void session_drain_wire(struct gdrcap_session *session);
/* After an end that is no sender's: one look, which tells them to receive no more. True when each has
 * handed over what it had, and the built-in consumer is through with it. */
bool session_receivers_cut(struct gdrcap_session *session);
/* The run is over: the caller's own consumer is told by its queues, which have no batch any more
 * (-ESHUTDOWN) once the last one was taken. */
void session_receivers_close(struct gdrcap_session *session);
/* They receive nothing more, and leave when the consumer is through, which may be dead. */
void session_receivers_stop(struct gdrcap_session *session);
/* Ends rx workers that still wait for batches which the caller never gave back. */
void session_abandon(struct gdrcap_session *session);
void session_receivers_phase(struct gdrcap_session *session, enum rx_phase phase);
/* False: not all of them have left within that time. */
bool session_receivers_join(struct gdrcap_session *session, unsigned int timeout_ms);
/* True when CPU threads that the consumer's progress takes had no core; arg: the session. */
bool session_consumer_is_starved(void *arg);
/* Waits for a receiver or sender. One that hangs in its driver may come back at any time: what it
 * uses stays. */
void session_worker_join(struct gdrcap_session *session, struct thread *thread);

/* Logs a line and keeps it for the summary. */
void session_message(struct gdrcap_session *session, enum gdrcap_log_level level,
		     const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The line says why the run failed, if none before did. */
void session_keep_failure(struct gdrcap_session *session, const char *line);
/* Why `run.failure`. */
void session_failure_text(const struct gdrcap_session *session, char *to, size_t bytes);

/* ---- events: events_watch.c ---- */

/* Puts it where gdrcap_get_event() finds it, with a line for people. */
void session_event(struct gdrcap_session *session, struct gdrcap_event event, const char *format,
		   ...) __attribute__((format(printf, 3, 4)));
/* The same, and the line is a message too. */
void session_tell(struct gdrcap_session *session, enum gdrcap_log_level level,
		  struct gdrcap_event event, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Looks at what workers and the saver count. The control thread, once a tick. */
void session_events_watch(struct gdrcap_session *session);
/* The run is over. */
void session_events_end(struct gdrcap_session *session);

/* What receiver i is to do, be it a thread or a front on the GPU. */
static inline void session_receiver_set(struct gdrcap_session *session, uint32_t i,
					enum rx_phase phase)
{
	/* RX_RUN: after the last access to the port. Partner: the acquire load of a worker that pauses. */
	atomic_store_explicit(&session->workers.rx[i].phase, (int)phase, memory_order_release);
	wake_look(&session->workers.rx[i].wake);
	if (session->fronts.count)
		front_follow_phase(&session->fronts.follow[i], phase);
}

/* Reading a run's results changes nothing in it but the lock. */
static inline void session_ports_lock(const struct gdrcap_session *session)
{
	log_lock((pthread_mutex_t *)(uintptr_t)&session->ports.lock);
}

static inline void session_ports_unlock(const struct gdrcap_session *session)
{
	log_unlock((pthread_mutex_t *)(uintptr_t)&session->ports.lock);
}

static inline void session_port_counters(const struct gdrcap_session *session,
					 const struct port *port, struct port_counters *counters)
{
	session_ports_lock(session);
	port_counters(port, counters);
	for (uint32_t p = 0; p < session->settings.ports; p++) {
		const struct session_pair *pair = &session->ports.pairs[p];

		if (port != &pair->rx)
			continue;
		if (pair->own) {
			const struct own_lost lost = own_queues_lost(pair->own);

			counters->missed = lost.missed;
			counters->error = lost.error;
		}
		/* What is dropped behind the last poll is not the run's. */
		if (pair->drops_final)
			counters->missed = pair->drops_last;
	}
	session_ports_unlock(session);
}

/* Before the first poll, and before the last: reads what the receiving ports have dropped. */
void session_drops_first(struct gdrcap_session *session);
void session_drops_last(struct gdrcap_session *session);
/* Of the frames that receiving port `p` has dropped by now, those since the first poll. */
uint64_t session_drops_in_run(const struct gdrcap_session *session, uint32_t p, uint64_t dropped);

/* Whether receiving port `p` counts each frame that it drops. */
static inline bool session_drops_exact(const struct gdrcap_session *session, uint32_t p)
{
	return port_missed_exact(&session->ports.pairs[p].rx) || session->ports.pairs[p].own;
}

/* Frames that came to receiving port `p` in this run and were not received, as far as it counts them exactly. */
static inline uint64_t session_port_missed(const struct gdrcap_session *session, uint32_t p)
{
	const struct session_pair *pair = &session->ports.pairs[p];
	struct port_counters counters;

	session_port_counters(session, &pair->rx, &counters);
	return (session_drops_exact(session, p) ? counters.missed : 0) +
	       (pair->rx.facts->error_exact || pair->own ? counters.error : 0);
}

/* Asks all cards for what they know of losses, and keeps it: results_ports.c. */
void session_causes_ask(const struct gdrcap_session *session);
/* Frames that were lost at a physical port or before it, as last asked: of anybody's frames. */
uint64_t session_causes_lost(const struct gdrcap_session *session);

/* Chooses CPUs for the session's threads that no other session of this process polls on, where there are
 * such, until they are given back: run.c. */
void session_cpus_take(struct gdrcap_session *session);
void session_cpus_give(struct gdrcap_session *session);
/* All CPUs of the session, for threads that have none of their own. */
void session_cpus(const struct gdrcap_session *session, cpu_set_t *set);

void session_control_create(struct session_control *control);
void session_control_destroy(struct session_control *control);
/* With the run. */
int session_control_start(struct gdrcap_session *session, struct gdrcap_error *error);
/* After `state` has left SESSION_RUNNING. */
void session_control_join(struct gdrcap_session *session);
/* One look at everything. True when nothing more will come: watch.c. */
bool session_watch(struct gdrcap_session *session);
/* Ends the run with an error, the first of the run. */
void session_fail(struct gdrcap_session *session, int code, const char *what);
/* Fails the run when the file that is played broke off. */
void session_watch_file(struct gdrcap_session *session);
/* Idle threads sleep until another one wakes them. Not where a GPU, or what plays one, publishes bursts or
 * gives them back: nobody would. */
static inline bool session_wakes(const struct gdrcap_session *session)
{
	return session->plan.idle_us && !session->plan.cuda && !session->fronts.count &&
	       !session->own_senders.gpus;
}
/* True when the frames' senders are elsewhere, and end-of-stream frames mean something. */
static inline bool session_hears_ends(const struct gdrcap_session *session)
{
	return session->workers.tx_count == 0 && session->settings.end == END_STREAM &&
	       settings_validates(&session->settings) && !session->frames.expect &&
	       !settings_is_custom(&session->settings);
}

/* Tells the senders to stop; the run is over when nothing is in flight any more. */
void session_end(struct gdrcap_session *session);
/* Receivers have had no room for so long. Where our frames may be left on the wire that is told,
 * and where there is a verdict it fails the run. */
bool session_is_blocked(struct gdrcap_session *session, struct quiet *quiet);
/* Reports a consumer that stands still, and one that moves again. */
void session_watch_consumer(struct gdrcap_session *session);
/* Fails the run when a worker hangs in its port's driver; says when one had no core for long. */
void session_watch_workers(struct gdrcap_session *session);

/* The session's answer to the end of the process. Takes no lock of the session's. */
bool session_leave(struct guest *guest);

/* Fails a replay whose ports take nothing any more, nor did. Between two looks pass 100 ms. */
void session_senders_watch(struct gdrcap_session *session);
/* After the last frame: waits while kernels and memifs' other ends take what ports were given, and says
 * what they left. Fails the run where a kernel keeps some. */
void session_senders_settle(struct gdrcap_session *session);
/* What memifs' other ends left behind before is none of this run's. */
void session_senders_begin(struct gdrcap_session *session);
/* Of the frames that sending port `p` took so many may not have left if it is gone now. 0: none; UINT64_MAX: not
 * known. */
uint64_t session_sender_may_lose(const struct gdrcap_session *session, uint32_t p);
/* The senders' books are closed: says what is missing. senders.c. */
void session_senders_judge(struct gdrcap_session *session);
/* Before they start: says of which files nobody will know whether they took everything. */
void session_sent_files_look(struct gdrcap_session *session);
/* Empties them: the senders start next. */
int session_sent_files_begin(struct gdrcap_session *session, struct gdrcap_error *error);
/* Of a file that is played at its own times: before the start, and in each look at a run. file_times.c. */
void session_file_times_tell(const struct gdrcap_session *session);
void session_file_times_watch(struct gdrcap_session *session);
/* Once the senders have ended. */
void session_sent_files_judge(struct gdrcap_session *session);
/* Both at the end, once all have ended: judge.c. Says what the receivers' counts alone do not, and fails the run
 * whose frames were not judged. */
void session_receivers_judge(struct gdrcap_session *session);
/* Says where the built-in sender did not do what was asked. */
void session_rate_judge(struct gdrcap_session *session);
/* Fails the run when an interface under a port is gone. */
void session_watch_interfaces(struct gdrcap_session *session);
/* At the end of a run: what the kernel dropped on them. */
void session_interfaces_judge(struct gdrcap_session *session);

/* Reports the end of a stall, where one was reported. */
void session_moves(struct gdrcap_session *session);

/* How far the run is, in frames and bursts. */
uint64_t session_sent(const struct gdrcap_session *session);
/* What its receivers get is what the session sends: the built-in sender's frames, or the caller's, of
 * which only a wire's other end is known to be here. */
bool session_sends_itself(const struct gdrcap_session *session);
/* Those frames, whoever's: what is to arrive. */
uint64_t session_handed_over(const struct gdrcap_session *session);
uint64_t session_received(const struct gdrcap_session *session);
/* Frames of our sender that have arrived, each once. */
uint64_t session_arrived(struct gdrcap_session *session);
uint64_t session_bursts_published(const struct gdrcap_session *session);
uint64_t session_bursts_collected(const struct gdrcap_session *session);
/* What the senders did, over all of them; see struct gdrcap_summary. */
void session_sender_summary(const struct gdrcap_session *session, struct gdrcap_summary *summary);
/* How the ports reach the memory and choose the frames: results_ports.c. */
void session_ports_summary(const struct gdrcap_session *session, struct gdrcap_summary *summary);
/* Sent by the sender of stream `id`; 0 without one. */
uint64_t session_stream_sent(const struct gdrcap_session *session, uint32_t id);

#define SESSION_TICK_MS 1 /* between two looks at a run */

/* Layout, pattern and files: frames.c. What was not created is destroyed as well. */
int session_frames_create(struct gdrcap_session *session, struct gdrcap_error *error);
void session_frames_destroy(struct gdrcap_session *session);
int session_files_create(struct gdrcap_session *session, struct gdrcap_error *error);
void session_files_destroy(struct gdrcap_session *session);

/* Images, where there are any: image_memory.c. What was not created is destroyed as well. */
int session_images_create(struct gdrcap_session *session, struct gdrcap_error *error);
void session_images_destroy(struct gdrcap_session *session);
/* Who waits for images is told that no more will come. */
void session_images_end(struct gdrcap_session *session);
/* The process ends: a running kernel is told to leave. Takes no lock. */
void session_images_leave(struct gdrcap_session *session);
/* Says what the counts alone do not. */
void session_images_judge(struct gdrcap_session *session);
/* A negative errno of the device that closes them, or 0. */
int session_images_failure(const struct gdrcap_session *session);
/* Whole ones so far. */
uint64_t session_images_complete(const struct gdrcap_session *session);

/* Receivers, senders, saver and accounts: workers.c. */
int session_workers_create(struct gdrcap_session *session, struct gdrcap_error *error);
void session_workers_destroy(struct gdrcap_session *session);

/* Ports, their pools and their software wires: ports.c. */
int session_ports_create(struct gdrcap_session *session, struct gdrcap_error *error);
void session_ports_destroy(struct gdrcap_session *session);
/* Makes session->ports.steered: the rules of the user's, or one for our own frames, or, of others' frames, all:
 * rules.c. */
void session_rules_choose(struct gdrcap_session *session);
/* The rules of a pair's receiving card, from session->ports.steered; nothing where it is not isolated. */
int session_rules_create(struct gdrcap_session *session, struct session_pair *pair,
			 struct gdrcap_error *error);
/* Logs what became of them in the card. */
void session_rules_tell(const struct gdrcap_session *session, const struct session_pair *pair);

/* ---- what recover_ports.c and recover_senders.c share ---- */

/* The receive queues of port p, which are ours: those in error are started again. */
void recover_own(struct gdrcap_session *session, uint32_t p);
void recover_own_end(struct gdrcap_session *session, uint32_t p);
/* Port p's receivers keep away from it from then on. False: a thread does not answer; all go on. */
bool recover_pause(struct gdrcap_session *session, uint32_t p);
void recover_go_on(struct gdrcap_session *session, uint32_t p);
/* None of its queues is left; its receivers are paused. */
void recover_port_dies(struct gdrcap_session *session, uint32_t p);
/* Receive queues (bits) were "in error and started again", or how it was. */
void recover_told(struct gdrcap_session *session, struct session_pair *pair, uint32_t queues,
		  const char *how);
/* The send queues of port p, if it is a card: says what stands still and what was in error. */
void recover_senders(struct gdrcap_session *session, uint32_t p);
static inline uint64_t recover_now_ms(void)
{
	return rte_rdtsc() / (rte_get_tsc_hz() / 1000);
}
/* Others have no queues that a card can end in an error. */
static inline bool recover_is_card(const struct port *port)
{
	return port->open && port->facts->writes == DRIVER_WRITES_DMA;
}

#endif
