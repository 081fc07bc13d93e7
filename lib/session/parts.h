/* SPDX-License-Identifier: BSD-3-Clause */
/* What a session is made of: a struct for each file that owns one, and writes it. */
#ifndef GDRCAP_SESSION_PARTS_H
#define GDRCAP_SESSION_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include <rte_cycles.h>

#include "base/guest.h"
#include "base/log.h"
#include "base/tsc.h"
#include "capture/rx_worker.h"
#include "config/settings.h"
#include "gdrcap.h"
#include "image/images.h"
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
#include "replay/file_source.h"
#include "replay/tx_worker_gpu.h"
#include "replay/tx_worker.h"
#include "save/save.h"
#include "send/send_queue.h"
#include "session/events.h"
#include "session/own_queues.h"
#include "session/plan.h"
#include "session/queue.h"
#include "session/quiet.h"
#include "session/recover.h"
#include "summary/results.h"
#include "verdict/accountant.h"
#include "verdict/front_follow.h"

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
	struct port rx, tx;  /* tx: not open where rx is `both` */
	bool both;	     /* rx sends too */
	_Atomic int tx_turn; /* see struct send_config */
	struct port_wire wire;
	struct interface rx_interface, tx_interface;
	struct own_queues *own; /* rx's receive queues are ours; NULL: the driver's */
	struct rte_mempool *rx_pool[GDRCAP_QUEUES_MAX]; /* NULL where they are ours */
	struct rte_mempool *tx_pool[GDRCAP_QUEUES_MAX]; /* on a wire the same */
	/* Header-data split: in session->memory.heads; NULL: none. */
	struct rte_mempool *head_pool[GDRCAP_QUEUES_MAX];
	struct steering steering;	    /* of rx, where it is isolated */
	struct xstats rx_xstats, tx_xstats; /* since the ports were started */
	struct rx_clock rx_clock;	    /* of rx's arrival times, where they are kept */
	struct file_source *source[GDRCAP_QUEUES_MAX]; /* rx is files; NULL: it is not */
	uint32_t rx_mapped, tx_mapped; /* DMA registration done: bits of regions, ports.c */
	struct tx_clock tx_clock;      /* the card keeps the send times */
	bool tx_clocked;
	struct recover_pair recover;
	uint64_t tx_unwritten; /* frames that the files of tx were given and have not */
	bool tx_unseen;	       /* that number is not known: one of them is no file to look at */
	/* rx's drops before the run's first poll, and, with `drops_final`, before its last. Guarded by the
	 * session's ports.lock. */
	uint64_t drops_first, drops_last;
	bool drops_final;
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
enum session_ends { SESSION_ENDS_NONE, SESSION_ENDS_SOME, SESSION_ENDS_ALL };
enum session_state { SESSION_CREATED, SESSION_RUNNING, SESSION_STOPPED };

/* What frames are, and the files that they come from and go to: frames.c; `save`: workers.c. */
struct session_frames {
	struct frame_layout layout;
	struct pattern pattern;
	struct file_frames *file; /* that is played; NULL: the pattern is */
	struct file_frames
		*expect;       /* that is compared with; may be the same; NULL: the pattern is */
	struct save *save;     /* NULL: nothing is saved */
	uint8_t *pattern_file; /* mapped file, or NULL */
	size_t pattern_file_bytes;
};

/* The GPU, or the CPU in its place, and the memory that frames land in: session.c. */
struct session_memory {
	int16_t gpu; /* gpudev id */
	char gpu_driver[32];
	const struct kernel_ops *ops;
	struct kernel_device *device;
	struct kernel_info device_info;
	struct region region;
	struct region
		sending;      /* slots of the caller's send queues; bytes 0: they are in `region` */
	struct region heads;  /* header-data split: pinned host memory; bytes 0: none */
	uint32_t *generation; /* stale-read detector, by slot of `region`; NULL: none */
};

/* ports.c, rules.c, recover_ports.c; what they count: results_ports.c. */
struct session_ports {
	/* What cards steer by: the configured rules, or one for our own frames. */
	struct frame_match steered;
	char steered_text[GDRCAP_MATCH_MAX][SETTINGS_NAME_BYTES];
	struct session_pair pairs[GDRCAP_PORTS_MAX];
	struct file_room file_room;	 /* all sources' */
	struct source_clock *clock;	 /* with images, in a run of files only; NULL: none */
	_Atomic uint32_t queue_restarts; /* receive queues in error that were started again */
	/* Recursive. Over what the ports' drivers and rules count, which any thread may ask for: a
	 * driver is not asked twice at a time, nor while a port is started again. */
	pthread_mutex_t lock;
	struct xstats_values rx_causes, tx_causes; /* as last read; under session->lines.lock */
};

/* Receivers, senders and accounts: workers.c. */
struct session_workers {
	uint32_t rx_count, tx_count; /* ports x queues */
	struct rx_worker *rx;
	struct tx_worker *tx;
	struct ring_producer **rx_rings;
	struct gdrcap_queue *queues;
	struct accountant accountant;
	bool accountant_ready;
	int cpus[GDRCAP_CORES_MAX];
	uint32_t cpu_count;
	uint32_t cpus_taken; /* the first so many are this session's */
	bool cpus_shared;    /* not for each thread one of its own: all share all */
};

/* In place of the receivers' threads: own_fronts.c. */
struct session_fronts {
	uint32_t count; /* receivers; 0: threads receive */
	bool pausing;	/* their fronts were told to end, and others do not follow yet */
	struct kernel_workers *left; /* they have, and keep their place on the GPU for others */
	struct front_follow *follow;
	struct region words; /* pinned: what each shares with its front */
	struct ring_front ring;
};

/* Send queues of ours on the sending ports' cards, in place of the driver's: own_senders.c. */
struct session_own_senders {
	uint32_t count;	       /* ports x queues; 0: they are the driver's */
	struct tx_own *queues; /* one a tx worker */
	struct tx_gpu *gpus;   /* the same, where a kernel drives them; NULL: threads do */
	uint32_t gpu_count;
	struct devx_card cards[GDRCAP_PORTS_MAX];
	struct ibv_mr *keys[GDRCAP_PORTS_MAX]; /* of the region, for that card */
	uint64_t told[GDRCAP_PORTS_MAX];       /* resets that were reported */
};

/* Send queues of the caller's: sending.c. */
struct session_sending {
	uint32_t count; /* ports x queues; 0: there are none */
	struct gdrcap_tx *queues;
	struct send_memory memories[SEND_MEMORIES]; /* sending_memory.c */
	struct region
		gpu; /* what a running kernel shares with the queues: sending_gpu.c; bytes 0: none does */
};

/* Images instead of frames, by description: image_memory.c. */
struct session_image {
	struct gdrcap_session *session;
	uint32_t index;
};
struct session_images {
	uint32_t count;
	struct session_image image[SETTINGS_IMAGES_MAX];
	struct place_view view[SETTINGS_IMAGES_MAX];
	struct region device, host; /* of all: images, bitmaps and tables; what the CPU reads too */
	bool own[SETTINGS_IMAGES_MAX];	/* the buffers are the caller's memory */
	void *gpu[SETTINGS_IMAGES_MAX]; /* image_gpu_bytes() in `host`; NULL: no running kernel */
	struct gdrcap_images *handed;
	bool running;	   /* a kernel of the caller's takes them */
	uint32_t resident; /* 1: one of them wants a running kernel, and all get it */
	double ns_a_tick;
};

/* What runs on the device: run.c, stop.c. Under guest_lock() too, for the end of the process. */
struct session_jobs {
	struct kernel_workers *check, *write, *send; /* `check` places, where there are images */
	struct kernel_workers *front;		     /* control: also ends and starts again */
	struct ring_producer *selftest_ring; /* of the self-test; set when its consumer stayed */
	uint32_t *selftest_stop; /* stop word of the self-test's consumer, while it runs */
	unsigned int joining;	 /* jobs that are neither running nor known to have left */
	_Atomic uint32_t blocks; /* consumer workers a queue, as chosen */
};

/* From start to stop: run.c, stop.c, stop_receivers.c; `failure`: the thread that finds the first error. */
struct session_run {
	pthread_mutex_t lock; /* over `state` and what session_watch() does, by any thread */
	enum session_state state;
	pthread_t stopper;     /* under `lock`: who stops it, */
	_Atomic bool stopping; /* while it does */
	uint64_t start_tsc;
	_Atomic uint64_t began_ns,
		over_ns;	     /* CLOCK_MONOTONIC; 0: not yet. For who asks meanwhile */
	uint64_t start_ns;	     /* of the wall clock, for the built-in sender; 0: at once */
	_Atomic int ending;	     /* it has reached its end: senders are told to stop */
	_Atomic int ended_by_sender; /* its end-of-stream frames came */
	bool cut;		     /* after its end receivers were told to receive no more */
	bool ended_idle;	     /* it ended for want of frames: silence, or the end of files */
	bool ended_by_time;	     /* ... because its time was over */
	uint64_t tx_asked; /* frames for the senders together; 0: until they are stopped */
	_Atomic uint64_t tx_missing; /* of them, not sent when the run had ended */
	struct quiet quiet; /* since the last change of the arrived frames, which were then: */
	uint64_t quiet_count;
	uint64_t quiet_bursts;	 /* published when it was long enough ago; 0: it was not yet */
	uint64_t ends_collected; /* bursts, when the ends of streams were last looked at: */
	enum session_ends ends;
	bool ends_known;
	bool hung; /* a worker hangs in its port's driver: it is not joined, and nothing is freed */
	_Atomic int failure;	      /* negative errno that ended the run */
	_Atomic bool destroy_refused; /* to a log function, which has been told */
	bool given_up; /* workers on the device did not leave: see gdrcap_destroy() */
	struct gdrcap_session *next_given_up;
};

/* What the control thread has last seen: watch.c, senders.c. */
struct session_watch {
	struct quiet idle; /* since the last change of the received frames, which were then: */
	uint64_t idle_count;
	struct session_trying trying;
	uint64_t gap_tsc;     /* end of the last gap in a file's times that was announced */
	uint64_t link_tsc;    /* last look at the links */
	uint64_t recover_tsc; /* last look at the cards' queues */
	bool link_lost;	      /* a sender's link was down for a while */
	bool peer_left;	      /* a memif's other end went away while we received from it */
	enum session_link link[2 * GDRCAP_PORTS_MAX]; /* receiving ports, then sending ones */
	struct patience progress; /* watchdog: since the last change of the accounted bursts */
	uint64_t progress_count;  /* which they were then */
	bool stuck;		  /* reported; cleared when it moves again */
	bool starved;		  /* reported: a worker had no core for long */
};

/* What is kept to be told: session.c. */
struct session_lines {
	pthread_mutex_t lock;	/* of any thread */
	char failure_text[512]; /* the first error line of the run */
	char *messages[SESSION_MESSAGES_MAX];
	uint32_t message_count;
};

/* What gdrcap_selftest() said: its caller's thread. */
struct session_selftest {
	struct gdrcap_step steps[RESULTS_STEPS_MAX];
	uint32_t step_count;
	int failure; /* negative errno; 0: none */
	char failure_text[512];
};

struct gdrcap_session {
	struct results_run id;
	struct gdrcap_config *config; /* as it was given */
	struct settings settings;
	struct log log;
	unsigned int number; /* of the process's sessions: pools have names in EAL's own space */
	struct plan plan;
	struct session_frames frames;
	struct session_memory memory;
	struct session_ports ports;
	struct session_images images;
	struct session_workers workers;
	struct session_fronts fronts;
	struct session_sending sending;
	struct session_own_senders own_senders;
	struct session_jobs jobs;
	struct session_control control;
	struct session_events events;
	struct session_run run;
	struct session_watch watch;
	struct session_lines lines;
	struct session_selftest selftest;
	struct guest guest; /* hears of the end of the process: session_leave() */
};

#endif
