/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a session. Resources: session.c, frames.c, ports.c, workers.c; running: run.c, watch.c,
 * events_watch.c, stop.c, stop_receivers.c; results: progress.c, results.c, results_ports.c;
 * self-test: selftest.c; the caller's own consumer: queue.c. */
#ifndef GDRCAP_SESSION_H
#define GDRCAP_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include <rte_cycles.h>

#include "base/guest.h"
#include "base/log.h"
#include "base/tsc.h"
#include "capture/rx_worker.h"
#include "config/settings.h"
#include "gdrcap.h"
#include "kernels/kernels.h"
#include "memory/region.h"
#include "pattern/frame.h"
#include "port/interface.h"
#include "port/port.h"
#include "port/rx_clock.h"
#include "port/steering.h"
#include "port/tx_clock.h"
#include "port/xstats.h"
#include "replay/file_frames.h"
#include "replay/tx_worker.h"
#include "save/save.h"
#include "session/events.h"
#include "session/plan.h"
#include "session/queue.h"
#include "session/quiet.h"
#include "session/recover.h"
#include "verdict/accountant.h"

#define SESSION_MESSAGES_MAX 256
#define SESSION_MESSAGES_ERRORS 16 /* of them kept free for errors */
#define SESSION_POISON                                                                             \
	0x55 /* what the memory holds before the first frame, as in the proof of concept */

struct rte_mempool;

/*
 * One receive port, the port that plays into it, and their pools: one a queue, so that no core
 * waits for another's, and a core's mbufs are few enough for its caches.
 */
struct session_pair {
	struct port rx, tx;
	struct port_wire wire;
	struct interface rx_interface, tx_interface;
	struct rte_mempool *rx_pool[GDRCAP_QUEUES_MAX];
	struct rte_mempool *tx_pool[GDRCAP_QUEUES_MAX]; /* on a wire the same */
	/* Header-data split: in session->heads; NULL: none. */
	struct rte_mempool *head_pool[GDRCAP_QUEUES_MAX];
	struct steering steering;	    /* of rx, where it is isolated */
	struct xstats rx_xstats, tx_xstats; /* since the ports were started */
	struct rx_clock rx_clock;	    /* of rx's arrival times, where they are kept */
	bool rx_mapped, tx_mapped;	    /* DMA registration done */
	struct tx_clock tx_clock;	    /* the card keeps the send times */
	bool tx_clocked;
	struct recover_pair recover;
	bool rules_anew; /* rx was started again, so its rules do not count the whole run */
};

enum session_link { LINK_WAITED_FOR, LINK_UP, LINK_DOWN };
/* A replay's attempts to hand over, as last looked at. */
struct session_trying {
	uint64_t tsc;		      /* of the look; 0: none yet */
	uint64_t sent, stalled, idle; /* sums of the workers' */
	uint64_t vain;		      /* ticks spent in trying since a port took something */
};
/* The thread that watches a run: control.c. */
struct session_control {
	struct thread thread;
	_Atomic int stop;     /* the process ends */
	pthread_mutex_t lock; /* over `over` */
	pthread_cond_t changed;
	bool over; /* no run, or one that is over: gdrcap_wait_end() waits for it */
};
enum session_state { SESSION_CREATED, SESSION_RUNNING, SESSION_STOPPED };

struct gdrcap_session {
	struct settings settings;
	struct log log;
	unsigned int number; /* of the process's sessions: pools have names in EAL's own space */
	struct plan plan;
	struct frame_layout layout;
	struct pattern_plan pattern;
	struct file_frames *file; /* that is played; NULL: the pattern is */
	struct file_frames
		*expect;       /* that is compared with; may be the same; NULL: the pattern is */
	struct save *save;     /* NULL: nothing is saved */
	uint8_t *pattern_file; /* mapped file, or NULL */
	size_t pattern_file_bytes;

	int16_t gpu; /* gpudev id */
	char gpu_driver[32];
	const struct kernel_ops *ops;
	struct kernel_device *device;
	struct kernel_info device_info;
	struct region region;
	struct region heads;  /* header-data split: pinned host memory; bytes 0: none */
	uint32_t *generation; /* stale-read detector, by slot of `region`; NULL: none */
	/* What cards steer by: the configured rules, or one for our own frames. */
	struct frame_match steered;
	char steered_text[GDRCAP_MATCH_MAX][SETTINGS_NAME_BYTES];
	struct session_pair pairs[GDRCAP_PORTS_MAX];

	uint32_t rx_count, tx_count; /* workers: ports x queues */
	struct rx_worker *rx;
	struct tx_worker *tx;
	struct ring_producer **rx_rings;
	struct gdrcap_queue *queues;
	struct accountant accountant;
	bool accountant_ready;

	int cpus[GDRCAP_CORES_MAX];
	uint32_t cpu_count;

	/* Run. */
	struct session_control control;
	struct session_events events;
	pthread_mutex_t run_lock; /* over `state` and what session_watch() does, by any thread */
	enum session_state state;
	struct ring_producer *selftest_ring; /* of the self-test; set when its consumer stayed */
	/* Under guest_lock() too, for the end of the process. */
	struct kernel_workers *check, *write;
	uint32_t *selftest_stop;     /* stop word of the self-test's consumer, while it runs */
	unsigned int joining;	     /* jobs that are neither running nor known to have left */
	_Atomic uint32_t blocks;     /* consumer workers a queue, as chosen */
	uint64_t start_tsc;	     /* of the run */
	_Atomic int ending;	     /* the run has reached its end: senders are told to stop */
	_Atomic int ended_by_sender; /* its end-of-stream frames came */
	struct quiet idle; /* since the last change of the received frames, which were then: */
	uint64_t idle_count;
	bool cut;	 /* after an end by time or count receivers were told to receive no more */
	bool ended_idle; /* the run ended for want of frames */
	bool ended_by_time; /* ... because its time was over */
	uint64_t tx_asked;  /* frames for the senders together; 0: until they are stopped */
	_Atomic uint64_t tx_missing; /* of them, not sent when the run had ended */
	struct session_trying trying;
	uint64_t link_tsc;    /* last look at the links */
	uint64_t drops_tsc;   /* last look at what the kernel dropped */
	bool link_lost;	      /* a sender's link was down for a while */
	bool peer_left;	      /* a memif's other end went away while we received from it */
	uint64_t recover_tsc; /* last look at the cards' queues */
	_Atomic uint32_t queue_restarts; /* receive queues in error that were started again */
	enum session_link link[2 * GDRCAP_PORTS_MAX]; /* receiving ports, then sending ones */
	struct patience progress; /* watchdog: since the last change of the accounted bursts */
	uint64_t progress_count;  /* which they were then */
	struct quiet quiet; /* since the last change of the arrived frames, which were then: */
	uint64_t quiet_count;
	uint64_t quiet_bursts; /* published when it was long enough ago; 0: it was not yet */
	bool stuck;	       /* reported; cleared when it moves again */
	bool starved;	       /* reported: a worker had no core for long */
	bool hung; /* a worker hangs in its port's driver: it is not joined, and nothing is freed */
	_Atomic int failure;	      /* negative errno that ended the run */
	_Atomic bool destroy_refused; /* to a log function, which has been told */
	bool given_up; /* workers on the device did not leave: see gdrcap_destroy() */
	struct gdrcap_session *next_given_up;
	struct guest guest; /* hears of the end of the process: session_leave() */

	/* Recursive. Over what the ports' drivers and rules count, which any thread may ask for: a
	 * driver is not asked twice at a time, nor while a port is started again. */
	pthread_mutex_t ports_lock;

	pthread_mutex_t message_lock;		   /* over what is kept to be told, by any thread */
	struct xstats_values rx_causes, tx_causes; /* as gdrcap_get_cause() last read them */
	char failure_text[512];			   /* the first error line of the run */
	char *messages[SESSION_MESSAGES_MAX];
	uint32_t message_count;
};

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

/* Reading a run's results changes nothing in it but the lock. */
static inline void session_ports_lock(const struct gdrcap_session *session)
{
	log_lock((pthread_mutex_t *)(uintptr_t)&session->ports_lock);
}

static inline void session_ports_unlock(const struct gdrcap_session *session)
{
	log_unlock((pthread_mutex_t *)(uintptr_t)&session->ports_lock);
}

static inline void session_port_counters(const struct gdrcap_session *session,
					 const struct port *port, struct port_counters *counters)
{
	session_ports_lock(session);
	port_counters(port, counters);
	session_ports_unlock(session);
}

/* Asks all cards for what they know of losses, and keeps it: results_ports.c. */
void session_causes_ask(const struct gdrcap_session *session);
/* Frames that were lost at a plug or before it, as last asked: of anybody's frames. */
uint64_t session_causes_lost(const struct gdrcap_session *session);

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
/* True when the frames' senders are elsewhere, and end-of-stream frames mean something. */
static inline bool session_hears_ends(const struct gdrcap_session *session)
{
	return session->tx_count == 0 && session->settings.end == END_STREAM &&
	       settings_validates(&session->settings) && !session->expect &&
	       !settings_is_foreign(&session->settings);
}
/* True when the frames received are our sender's own, so that what it sent is what is expected. */
bool session_sent_known(const struct gdrcap_session *session);

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
/* After the last frame: returns within half a second. */
void session_senders_linger(struct gdrcap_session *session);
/* The senders' books are closed: says what is missing. senders.c. */
void session_senders_judge(struct gdrcap_session *session);
/* Fails the run when an interface under a port is gone. */
void session_watch_interfaces(struct gdrcap_session *session);

/* Reports the end of a stall, where one was reported. */
void session_moves(struct gdrcap_session *session);

/* How far the run is, in frames and bursts. */
uint64_t session_sent(const struct gdrcap_session *session);
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

#define SESSION_TICK_NS 1000000 /* between two looks at a run */

/* Layout, pattern and files: frames.c. What was not created is destroyed as well. */
int session_frames_create(struct gdrcap_session *session, struct gdrcap_error *error);
void session_frames_destroy(struct gdrcap_session *session);
int session_files_create(struct gdrcap_session *session, struct gdrcap_error *error);
void session_files_destroy(struct gdrcap_session *session);

/* Receivers, senders, saver and accounts: workers.c. */
int session_workers_create(struct gdrcap_session *session, struct gdrcap_error *error);
void session_workers_destroy(struct gdrcap_session *session);

/* Ports, their pools and their software wires: ports.c. */
int session_ports_create(struct gdrcap_session *session, struct gdrcap_error *error);
void session_ports_destroy(struct gdrcap_session *session);
/* The rules of a pair's receiving card, from session->steered; nothing where it is not isolated. */
int session_rules_create(struct gdrcap_session *session, struct session_pair *pair,
			 struct gdrcap_error *error);

#endif
