/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * libgdrcap: raw Ethernet frames into GPU memory, every byte accounted for.
 *
 * Life of a session: gdrcap_create() (ports, memory), optionally gdrcap_selftest() (one frame,
 * step by step), gdrcap_start(), ... gdrcap_stop(), gdrcap_destroy(). Control calls return 0 or a negative
 * errno and put cause and remedy into struct gdrcap_error (may be NULL); they are not thread-safe
 * per session, except where said. NULL for a session, a queue or a place for results is refused
 * with -EINVAL, or nothing is done.
 *
 * Sizes. A struct that results are put into may get members at its end in a later version, so it is
 * passed with `size`, the caller's sizeof. Members that only the caller's header has are set to 0;
 * those that only the library has are left out. Less than 8 bytes are -EINVAL, and where a call
 * returns an error nothing is written. struct gdrcap_counts, which others contain, and struct
 * gdrcap_pkt, of which there are arrays, keep their size until the library's soname changes, and so does
 * struct gdrcap_error. What the library hands out by pointer (struct gdrcap_batch, gdrcap_step,
 * gdrcap_option) keeps its members till then and may get more at its end: copy no such struct as a
 * whole. Before version 1.0 each minor version may have another soname.
 *
 * pthread_cancel(): gdrcap_wait_end(), gdrcap_wait() and gdrcap_image_wait() are cancellation points, and a
 * thread that is cancelled there leaves nothing behind. A thread in another call that waits, logs or reads
 * files finishes it first. gdrcap_tx_submit(), its neighbours and _poll() may send: do not cancel a thread in
 * them.
 *
 * The process may end at any moment, by exit() or a return from main(), while sessions exist, while
 * other threads use them, and inside of a log function. Workers and kernels are then told to leave,
 * and the end waits until they have left, at most 500 ms. Nothing is freed, so calls of other
 * threads and of later exit handlers stay safe, and no log function is called any more. A run that
 * was broken off so is no verdict: gdrcap_stop() returns -ESHUTDOWN and the summary says `failed`.
 * Only gdrcap_destroy() undoes what a session changed at the kernel's interfaces (their MTU, an XDP
 * program), and only gdrcap_stop() promises that files to save to are whole. _exit() and signals end
 * a process as any other.
 *
 * A child that fork() or clone() made after its parent's first session, also after its last, has
 * copies of its sessions and none of their threads. In it every call that takes a session or a
 * queue, and gdrcap_create(), returns -EPERM or does nothing; its end touches nothing of its
 * parent's. Fork before the first session, or call exec in the child.
 *
 * Threads of the library block all signals but those of their own faults. One of DPDK's stays after
 * the last session, so the library stays loaded after dlclose(), and a main thread that leaves by
 * pthread_exit() does not end the process.
 */
#ifndef GDRCAP_H
#define GDRCAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GDRCAP_VERSION "0.1.0"
#define GDRCAP_PORTS_MAX 8
#define GDRCAP_QUEUES_MAX 16
#define GDRCAP_CORES_MAX 64
#define GDRCAP_DAMAGE_MAX 16
#define GDRCAP_STREAMS_MAX 1024
#define GDRCAP_RANGES_MOST 131072	/* of all streams together: gdrcap_get_ranges() */
#define GDRCAP_RANGES_STREAM_MOST 32768 /* of one stream */
#define GDRCAP_MATCH_MAX 8

struct gdrcap_session; /**< ports, one memory region, one consumer */
struct gdrcap_queue;   /**< one receive queue: one caller thread */
struct CUstream_st;    /**< what cudaStream_t points to; no CUDA header here */

/** Library, DPDK and CUDA versions in one line. */
const char *gdrcap_version(void);

enum gdrcap_error_kind {
	GDRCAP_ERROR_RUN,    /**< what was asked for cannot be done here, or now */
	GDRCAP_ERROR_CONFIG, /**< an option is wrong, or does not go with another: correct it */
};
struct gdrcap_error {
	int code;	/**< negative errno */
	char text[504]; /**< cause and remedy */
	int kind;	/**< enum gdrcap_error_kind; later versions may have more */
};

/* ---- configuration ---- */

enum gdrcap_memory {
	GDRCAP_MEMORY_AUTO,
	GDRCAP_MEMORY_DEVICE,
	GDRCAP_MEMORY_PINNED,
	GDRCAP_MEMORY_HOST
};
enum gdrcap_log_level {
	GDRCAP_LOG_ERROR,
	GDRCAP_LOG_WARNING,
	GDRCAP_LOG_PROGRESS, /**< of set-up that takes longer than a second */
	GDRCAP_LOG_INFO,
	GDRCAP_LOG_DEBUG,
};

/** What a session is to do: options by key, as docs/configuration.md lists them; those that are not
 * given have their defaults. A configuration is read by one thread at a time, and may be used for
 * several sessions, changed in between and freed at once after gdrcap_create(). */
struct gdrcap_config;

/** NULL: no memory. */
struct gdrcap_config *gdrcap_config_new(void);
/** NULL is allowed. */
void gdrcap_config_free(struct gdrcap_config *config);
/**
 * Gives one option its value, as it would be written in YAML or on the command line; what it had
 * before, a whole list too, is replaced; NULL: its default holds again. `key` is its YAML path
 * ("frame.size") or command-line name ("frame-size"). -EINVAL: error->text says what is wrong and what
 * is allowed; nothing has changed.
 */
int gdrcap_config_set(struct gdrcap_config *config, const char *key, const char *value,
		      struct gdrcap_error *error);
/** One value more for an option that is a list: port, tx_port, match, image. */
int gdrcap_config_add(struct gdrcap_config *config, const char *key, const char *value,
		      struct gdrcap_error *error);
/** Value `index` (0, but for lists) of an option: as it was written (a switch: "true" or "false"; an
 * image: what it came to, as YAML with every key), else its default; NULL where there is none, and for a
 * wrong key. Valid until the option is given again. */
const char *gdrcap_config_get(const struct gdrcap_config *config, const char *key, uint32_t index);
/**
 * Reads options from a YAML file. Unknown key, wrong type, value out of range: -EINVAL, and
 * error->text names file, line and what is allowed; then nothing has changed.
 */
int gdrcap_config_load(struct gdrcap_config *config, const char *path, struct gdrcap_error *error);
/** The same from memory; `name` stands for the file in error texts. */
int gdrcap_config_parse(struct gdrcap_config *config, const char *name, const char *text,
			size_t bytes, struct gdrcap_error *error);
/**
 * Takes a session's lines for people, from create to destroy, DPDK's own about it among them; NULL, as
 * at the beginning: warnings and errors go to stderr. No other session's lines come there, except that
 * what DPDK logs on threads of its own, which serve all, goes to the oldest session. (Where the program
 * has started EAL, or given DPDK a stream, DPDK logs there.)
 *
 * It is called on any thread that calls the library and on threads of the session, on several at the
 * same time, but never while the same thread is in a log function already: what it logs by calling the
 * library comes when it has returned. No lock of the library is held meanwhile.
 *
 * It may call everything but gdrcap_destroy(), and of its own session gdrcap_start() and
 * gdrcap_selftest(). Where the session's own threads call it, gdrcap_stop() ends the run and returns
 * -EDEADLK, and gdrcap_wait_end() does not wait. It must not throw or leave by longjmp().
 */
void gdrcap_config_set_log(struct gdrcap_config *config,
			   void (*log)(void *context, enum gdrcap_log_level level,
				       const char *line),
			   void *context);
/** The caller's own memory for frames, instead of what the session would allocate: `bytes` of the kind
 * that option `memory` names, from an address aligned to 64 KiB on. It must stay until
 * gdrcap_destroy(). NULL: none. */
void gdrcap_config_set_memory(struct gdrcap_config *config, void *addr, uint64_t bytes);
/** Checks what depends on several options. gdrcap_create() does that too, and finds more: what files, ports
 * or memory make of them. */
int gdrcap_config_check(const struct gdrcap_config *config, struct gdrcap_error *error);

#define GDRCAP_FOR_LOOPBACK 1u /**< it receives and sends */
#define GDRCAP_FOR_CAPTURE 2u
#define GDRCAP_FOR_REPLAY 4u

#define GDRCAP_OPTIONS_MAX 128 /**< more are never in the table */

/** The option table, for --help and documentation. */
struct gdrcap_option {
	const char *key;      /**< YAML path, "frame.size" */
	const char *flag;     /**< command line without dashes, "frame-size"; also a key */
	const char *argument; /**< "BYTES", "PORT", ...; NULL for a switch */
	const char *help;     /**< one sentence with range, unit and default */
	int is_list;
	const char *group;	  /**< heading in --help; those of a group follow each other */
	unsigned int commands;	  /**< that have it: GDRCAP_FOR_*; 0: programs only */
	const char *const *words; /**< values that are words, NULL-ended; NULL: none is */
};
/** Option `index`, or NULL after the last. */
const struct gdrcap_option *gdrcap_option_at(size_t index);

/* ---- control ---- */

int gdrcap_create(const struct gdrcap_config *config, struct gdrcap_session **session,
		  struct gdrcap_error *error);
int gdrcap_start(struct gdrcap_session *session, struct gdrcap_error *error);
/** Ends the run: sender, receivers, consumer, in this order; every slot is back afterwards, except
 * those of batches that the caller still has: they stay valid until gdrcap_destroy(). Idempotent.
 * Before gdrcap_start() it does nothing, returns 0, and the session can still be started.
 * 0, or the error that ended the run early, or that of files to save to. It takes as long as threads
 * need that have no core; one that hangs in a driver's call for 10 s, or a consumer that does
 * nothing for 2 s, is given up: -ETIMEDOUT. Workers that leave late after all their work was done
 * are a message. -EDEADLK in a log function that one of the session's own threads called: the run
 * ends then, and another thread is to call this. */
int gdrcap_stop(struct gdrcap_session *session, struct gdrcap_error *error);
/** Stops, and gives all back. When it returns no thread is in the session's log function. Inside of
 * a log function it does nothing but log an error, once. */
void gdrcap_destroy(struct gdrcap_session *session);
/** 1 when the run has reached its end (frames, seconds, an error) and nothing is in flight: all
 * that was sent came, or nothing came for `quiet` although every receiver looked. A receiver that
 * cannot look, since it hangs in its driver or its consumer is dead, ends the run with an error. 0
 * after timeout_ms. Sleeps; any thread, also while another stops the session. gdrcap_stop() is
 * next. 1, too, before the start. Batches of the caller's own consumer may still be there to be
 * polled. -EINVAL, -EPERM: see above. A thread may be cancelled in it (pthread_cancel()). */
int gdrcap_wait_end(struct gdrcap_session *session, uint32_t timeout_ms);

/* ---- the self-test ---- */

enum gdrcap_step_state { GDRCAP_STEP_PASSED, GDRCAP_STEP_FAILED, GDRCAP_STEP_SKIPPED };
struct gdrcap_step {
	const char *name; /**< "ports up", ... "consumer saw it" */
	enum gdrcap_step_state state;
	char detail[256];	   /**< what was seen */
	const char *const *causes; /**< failed: likely causes with their remedies, NULL-ended */
};
/**
 * Loopback sessions, after create and before start: plays the proof of concept's frame from
 * tx_port[0] into port[0] and calls `step` for each step as it passes; stops at the first that
 * fails. 0; -EIO when a step failed (error->text names it).
 */
int gdrcap_selftest(struct gdrcap_session *session,
		    void (*step)(void *context, const struct gdrcap_step *step), void *context,
		    struct gdrcap_error *error);

/* ---- results: any thread, at any time ---- */

/**
 * received = valid + damaged + duplicate + filtered. sent = valid + damaged + lost over unique
 * sequence numbers. Frames. With the caller's own consumer only sent, received, bytes and filtered are
 * counted, the last when gdrcap_poll() has passed over them.
 */
struct gdrcap_counts {
	uint64_t sent; /**< handed to the wire; capture without a sender: from sequence numbers */
	uint64_t received, valid, damaged, lost, duplicate, reordered, filtered;
	uint64_t bits_checked, bits_wrong; /**< payload bits */
	uint64_t bytes;			   /**< received, in memory (without FCS) */
	uint64_t restarts; /**< times that a sender began a stream anew, from sequence number 0;
			    * own frames; a queue's: 0 */
	uint64_t reserved[4];
};

#define GDRCAP_HAS_NIC_MISSED 1u
#define GDRCAP_HAS_NIC_ERROR 2u
#define GDRCAP_HAS_TX_STALLED 4u /* there is a sender */
#define GDRCAP_HAS_VERDICT                                                                         \
	8u /**< without: the caller's own consumer has the frames, and only sent,
			       * received and bytes are counted */
#define GDRCAP_HAS_LOSS                                                                            \
	16u		    /* frames have sequence numbers, phases or places in a file: `lost`,
			     * `duplicate` and `reordered` mean something */
#define GDRCAP_HAS_LOCK 32u /* a custom layout's PRBS: lock_lost */
#define GDRCAP_HAS_PACE 64u /* the sender keeps to a rate or to times: gap errors */
#define GDRCAP_HAS_TX_ERROR 128u
#define GDRCAP_HAS_STALE 256u	/* the stale-read detector is on */
#define GDRCAP_HAS_SENDING 512u /* there are send queues of the caller's: sending_* */
#define GDRCAP_HAS_SENDING_FAILED 1024u
#define GDRCAP_HAS_START 2048u /* a frame was sent, and `start_at` said when: start_late_ns */

/**
 * Results so far, or of the run; gdrcap_judge() says whether that passed. What was lost after the last frame that
 * came is known where ended_by_sender is 1, or the sender is the session's own.
 */
struct gdrcap_summary {
	struct gdrcap_counts total;
	double seconds; /**< from the first frame's poll to the last's */
	uint32_t known; /**< which of the counters below were measured: GDRCAP_HAS_* */
	uint64_t nic_missed, nic_error; /**< lost in the card for want of buffers; with errors */
	uint64_t unexplained;		/**< lost - what the exact counters explain */
	uint64_t tx_stalled; /**< sender's polls that found no free slot or a full wire */
	double gbps; /**< received on the wire: frames with FCS, preamble and gap (+24 bytes) */
	double mpps;
	uint32_t ports, queues, streams;
	int cores[GDRCAP_CORES_MAX]; /**< CPUs used */
	uint32_t core_count;
	enum gdrcap_memory memory; /**< as chosen */
	char gpu[64];		   /**< "NVIDIA H200", "host: 1 CPU thread" */
	char driver[32];	   /**< gpudev driver: "gpu_cuda", "gpu_host" */
	uint64_t region_bytes;
	uint32_t slot_bytes, slots;
	uint32_t blocks; /**< consumer workers a queue */
	int failed;	 /**< 1: the run ended with an error */

	uint64_t lock_lost; /**< a PRBS payload did not go on where the frame before it ended */
	int software_match; /**< 1: rules are applied by the consumer, 0: by the card, or there are none */
	int ended_by_sender; /**< 1: all end-of-stream frames came */
	/** Frames in the file of `save`, and those that should be and are not. Not 0, or an error of
	 * gdrcap_stop(): the file is not whole. */
	uint64_t saved, save_missed;
	uint64_t damaged_saved, damaged_missed; /**< the same of `save_damaged` */

	/* The sender. On the wire a frame has 24 bytes more than in memory. */
	double tx_seconds;	       /**< from the first hand-over to the last */
	double tx_gbps, tx_mpps;       /**< handed to the port, counted on the wire */
	double asked_gbps, asked_mpps; /**< the one that was asked for; 0: not asked */
	double asked_seconds; /**< a file's own times: as long as it should have taken; else 0 */
	uint64_t gap_p50_ns, gap_p99_ns, gap_max_ns; /**< |gap between hand-overs - asked gap| */
	uint64_t
		tx_starved; /**< sender's polls that found the next frames not read or written yet */
	uint64_t tx_error;  /**< frames that the port took and then said it could not send */
	uint64_t tx_bytes;  /**< sent, in memory (without FCS) */

	uint64_t stale; /**< frames seen before their bytes were there, if these ever came; damaged,
			 * unless they are second copies or others' besides */
	uint32_t split; /**< as configured, bytes */
	int steered;	/**< 1: the receiving cards' rules choose our frames: gdrcap_get_rule() */
	char registration[32];	 /**< how cards reach the memory: "nvidia-peermem", "dma-buf", "host
				* memory", ...; "": no card does */
	char clock[32];		 /**< of arrival times: "CPU", "card"; "": nobody asked for them */
	uint32_t queue_restarts; /**< receive queues in error that were started again */
	uint64_t untracked; /**< among `filtered`: frames of more streams than GDRCAP_STREAMS_MAX,
			     * for which there was no room: nobody knows what of them is lost */
	uint32_t conflicts; /**< stream ids that more than one source address used: the streams
			     * are counted apart */
	uint32_t senders_unheard; /**< of `senders`, where more than one: nothing of them came */
	uint32_t streams_unheard; /**< whose end did not come though their sender announced them,
				   * left a memif, or is one of several that `senders` waits for:
				   * what of them is lost is not known */
	uint64_t tx_asked;   /**< frames to send, as `frames`, else a file's times loops; 0: until
			    * the run is ended */
	uint64_t tx_missing; /**< of them, not handed to a port when the run had ended; 0 where
			      * `seconds` ended it while all was well */
	uint64_t cut; /**< frames received that filled the room at their port: only their beginning
		       * may have come. Damaged then, others', or the caller's, who has
		       * GDRCAP_PKT_CUT */
	/* How often a queue found its pool empty, and for how long, all queues together: the
	 * consumer had not given back what came before. What comes meanwhile waits where the port
	 * has room, and is missed then. */
	uint64_t pool_empty;
	double pool_empty_seconds;
	uint64_t bursts; /**< published: for the caller's own consumer, batches */
	uint64_t
		in_flight; /**< frames published whose slots are not back: released ones count until
			     * the receiving thread has seen it, some us later or, without a core,
			     * when it has one. Slots go back in the order of the batches, so one that
			     * the caller keeps has those of all later batches counted with it */

	/* The caller's own frames (`sender: host`, `gpu`), of all send queues together:
	 * gdrcap_get_tx_counts() has them of each, with what they say. submitted = sent + unsent +
	 * refused + those that wait; when the run has ended none waits. */
	uint64_t sending_submitted, sending_sent, sending_unsent;
	uint64_t sending_bytes;	  /**< of those sent, in memory (without FCS) */
	uint64_t sending_stalled; /**< as `stalled` of struct gdrcap_tx_counts */
	uint64_t sending_failed;  /**< of those sent: that a port then said it could not send */
	uint64_t sending_refused; /**< of a running kernel's: with a length that no frame has */
	char rx_by[8]; /**< who took received frames from the port: "driver", "cpu", "gpu"; "":
			* none were to come */
	char tx_by[8]; /**< who handed frames to be sent to the port: "driver", "cpu", "gpu"; "":
			* none were to leave */
	uint32_t
		tx_proxies; /**< with "gpu": send queues whose doorbell a CPU thread rings, since the
			      * GPU cannot reach it: each costs a core */
	uint64_t start_ns;  /**< `start_at`, ns since 1970 (UTC); 0: at once */
	uint64_t start_late_ns; /**< from then to the hand-over of the first frame */
	double elapsed_seconds; /**< of CLOCK_MONOTONIC, from the run's start to now or, when it has
				 * ended, to its end; 0: it has not begun */
	uint64_t
		missed_in_run; /**< of nic_missed, at ports that count exactly: from the run's first poll
				 * to its last */
};
int gdrcap_get_summary(const struct gdrcap_session *session, struct gdrcap_summary *summary,
		       size_t size);

/** Of receive queue `index` (ports in order, then queues): only what a queue can know: received,
 * valid, damaged, duplicate, reordered, filtered, bits, bytes. -ENOENT after the last. */
int gdrcap_get_queue_counts(const struct gdrcap_session *session, uint32_t index,
			    struct gdrcap_counts *counts, size_t size);
/** Of the stream at `index`: GDRCAP_STREAMS_MAX at most, those that sent more than one frame before
 * others. Of a session that only sends a pattern: its own, of which `sent` alone is counted. -ENOENT after
 * the last. */
int gdrcap_get_stream_counts(const struct gdrcap_session *session, uint32_t index, uint32_t *stream,
			     struct gdrcap_counts *counts, size_t size);

/** Sequence numbers first .. first + length - 1; and so many `step` further on, `times` times in all. */
struct gdrcap_numbers {
	uint64_t first, length;
	uint64_t step;	/**< more than length; 0 where `times` is 1 */
	uint64_t times; /**< 1 at least */
};
/** With `ranges`, after gdrcap_stop(): which of its frames came, damaged ones with a readable header included, of the
 * stream that gdrcap_get_stream_counts() has at `index`; in order, and none twice. Writes those that fit `room`,
 * and returns how many there are, GDRCAP_RANGES_STREAM_MOST at most. -ENOENT: no such stream; -EAGAIN: the run has not
 * ended; -ENODATA: it is not known, since there are more, the sender began the stream again, or the session has
 * no `ranges`. */
int gdrcap_get_ranges(const struct gdrcap_session *session, uint32_t index,
		      struct gdrcap_numbers *ranges, uint32_t room);

/** What a port's driver says of why frames were lost, or a sender was slow: over all ports. */
struct gdrcap_cause {
	const char *name;    /**< "out_of_buffer", ...: as in JSON's lost_by.causes */
	const char *meaning; /**< with the remedy, for people */
	uint64_t count;	     /**< events since the start */
	int known;	     /**< 0: no port counts it; `count` is 0 */
	int sender;	     /**< 1: of sending ports */
};
/** -ENOENT after the last. Index 0 asks the cards, for some milliseconds; the others tell what they
 * said then. */
int gdrcap_get_cause(const struct gdrcap_session *session, uint32_t index,
		     struct gdrcap_cause *cause, size_t size);

/** A port of the session: first those of `port`, then those of `tx_port`. */
struct gdrcap_port {
	const char *name; /**< as configured */
	uint8_t mac[6];	  /**< its own address; zeros where it has none */
	uint8_t has_mac;
	uint8_t sends;	 /**< 1: of `tx_port` */
	uint8_t link_up; /**< now, as its driver says */
};
/** -ENOENT after the last. */
int gdrcap_get_port(const struct gdrcap_session *session, uint32_t index, struct gdrcap_port *port,
		    size_t size);

/** A rule by which the receiving cards put frames into our queues. */
struct gdrcap_rule {
	const char *text; /**< as configured, or the one made for our own frames */
	uint64_t frames;  /**< that it put into our queues; over all ports, since the start */
	int known;	  /**< 0: the card does not count, or a port was started again in the run */
};
/** -ENOENT after the last; at once where cards do not steer. A card tells its counts once a second.
 */
int gdrcap_get_rule(const struct gdrcap_session *session, uint32_t index, struct gdrcap_rule *rule,
		    size_t size);

/** One of the first damaged frames. */
struct gdrcap_damage {
	uint64_t sequence;
	uint32_t stream, queue;
	uint32_t wrong_bits;
	uint32_t offset; /**< first wrong byte, from the frame's first byte */
	uint8_t expected, got;
	uint8_t header_ok; /**< 0: sequence and stream could not be read */
	const char *kind;  /**< "payload", "header", "length", "stale", ... */
};
/** -ENOENT after the last (GDRCAP_DAMAGE_MAX are kept). */
int gdrcap_get_damage(const struct gdrcap_session *session, uint32_t index,
		      struct gdrcap_damage *damage, size_t size);
/** Error and warning lines of the run, oldest first; NULL after the last. */
const char *gdrcap_get_message(const struct gdrcap_session *session, uint32_t index);

/* ---- results as a whole: any thread, at any time ---- */

#define GDRCAP_FAILED_FRAMES (-74) /**< -EBADMSG */
#define GDRCAP_FAILED_RUN (-125)   /**< -ECANCELED */
/**
 * Did the run pass? 0: it is over, and every frame or image came whole, once and in order, as far as anybody can know.
 * GDRCAP_FAILED_FRAMES: what it says of frames is in why->text: damaged, lost, not sent, not saved, ...;
 * GDRCAP_FAILED_RUN: it was ended by an error, or never began. Several reasons are joined by "; ", and cut where they are
 * too long; `errors` of gdrcap_get_json() has them whole. -EAGAIN: it goes on. `why` may be NULL.
 */
int gdrcap_judge(const struct gdrcap_session *session, struct gdrcap_error *why);

#define GDRCAP_JSON_SETUP                                                                          \
	1u /**< with what stays as it is all through a run: ports, memory, cores, ... */
#define GDRCAP_JSON_PARTS                                                                          \
	2u /**< with parts of the totals: queues, streams, damage, images' streams */
#define GDRCAP_JSON_ALL 3u
/**
 * All results as one JSON object on a line, in ASCII, ended by a line feed and a NUL: schema gdrcap.summary/1,
 * docs/json.md. `what`: GDRCAP_JSON_*. Asks the cards, for some milliseconds. *json is the caller's, until
 * gdrcap_free_json(). 0, -EINVAL or -ENOMEM.
 */
int gdrcap_get_json(const struct gdrcap_session *session, uint32_t what, char **json);
/** The same object of a run for which there is no session: what `config` (may be NULL) asks for, and all that would
 * have been measured null. `result` is "fail", and `errors` has "nothing ran". */
int gdrcap_config_get_json(const struct gdrcap_config *config, char **json);
void gdrcap_free_json(char *json);

/* ---- events: any thread ---- */

enum gdrcap_event_kind {
	GDRCAP_EVENT_FIRST_FRAME = 1, /**< of the run, received */
	GDRCAP_EVENT_LINK_DOWN,
	GDRCAP_EVENT_LINK_UP,
	GDRCAP_EVENT_PORT_GONE, /**< interface deleted or moved away, card removed; they end the run. In one that
				 * receives also memif's peer that left, which may come back where it is the
				 * client: LINK_UP; of one that only sends that is LINK_DOWN */
	GDRCAP_EVENT_NO_SLOTS, /**< a queue's pool is empty; count: how often it was in the run */
	GDRCAP_EVENT_SLOTS_AGAIN,     /**< it was not for a second; count: the same */
	GDRCAP_EVENT_QUEUE_RESTARTED, /**< queues in error were started again; count: how many */
	GDRCAP_EVENT_CONSUMER_LATE, /**< the built-in one makes no progress (watchdog); count: bursts
				     * that wait */
	GDRCAP_EVENT_CONSUMER_MOVES, /**< again */
	GDRCAP_EVENT_SAVER_BEHIND,   /**< count: frames that were not saved, since it is behind */
	GDRCAP_EVENT_SAVER_MOVES,    /**< it missed none for a second; count: the same, in all */
	GDRCAP_EVENT_END, /**< the run's, whoever ended it, and the last event; code: 0, or the error
			   * that did. gdrcap_stop() is next, and has the last word */
	GDRCAP_EVENT_MISSED, /**< frames came that a receiving port had no room for, or with errors,
				  * as far as it counts them exactly; count: of the run so far */
	GDRCAP_EVENT_MISSED_OVER /**< there were none for a second; count: the same */
};
struct gdrcap_event {
	uint32_t kind;	  /**< enum gdrcap_event_kind; later versions have more */
	int32_t code;	  /**< END: 0 or a negative errno */
	uint64_t time_ns; /**< when it was noticed, within about 0.1 s; since the Unix epoch */
	uint64_t count;
	uint64_t dropped; /**< events between the one before and this: nobody had asked for 255, and
			   * END has a place of its own */
	int32_t port;	  /**< of the receiving or the sending ports; -1: of none in particular */
	int32_t sends;	  /**< 1: of the sending ones */
	int32_t queue;	  /**< of the port; -1: all, or several */
	int32_t reserved;
	char text[256]; /**< a line for people */
};
/** The oldest event that waits: 1, and it waits no more; 0: none. */
int gdrcap_get_event(struct gdrcap_session *session, struct gdrcap_event *event, size_t size);
/** A descriptor for poll() that is readable (POLLIN) while an event waits, or -errno. It is the
 * session's: do not read, write or close it; gdrcap_destroy() does. */
int gdrcap_event_fd(struct gdrcap_session *session);

/* ---- frames to the caller's own consumer ---- */

/** In gdrcap_pkt.offset, and no part of it: the frame was longer than frame.size and filled the room
 * at its port, so that only its first bytes may have come. (AF_PACKET does not tell whether a frame
 * of up to 14 bytes less than its room is whole; no frame of frame.size is flagged.) */
#define GDRCAP_PKT_CUT 0x8000u

struct gdrcap_pkt {
	uint32_t slot;
	uint16_t len;	 /**< bytes, without FCS; of a frame that was cut, those that came */
	uint16_t offset; /**< of the frame in its slot, bytes; GDRCAP_PKT_CUT */
};
/** Frame i begins at gdrcap_frame(batch, i), which is data + (size_t)pkts[i].slot * slot_bytes +
 * (pkts[i].offset & ~GDRCAP_PKT_CUT). */
struct gdrcap_batch {
	uint64_t seq;  /**< +1 a batch of the queue, no gaps */
	uint8_t *data; /**< region base; a device pointer where memory is `device` */
	const struct gdrcap_pkt *pkts; /**< readable by CPU and GPU */
	uint32_t count, slot_bytes;
	/* Header-data split: frame i's first bytes, of length heads[i].len, begin at head_data +
	 * (size_t)heads[i].slot * head_slot_bytes + heads[i].offset, in host memory that the GPU
	 * reads too; pkts[i] is the rest. NULL: frames lie whole. */
	const struct gdrcap_pkt *heads;
	uint8_t *head_data;
	uint32_t head_slot_bytes;
	uint32_t reserved;
	/* Arrival times, for gdrcap_time_ns(); NULL: not asked for (batch_times). */
	const uint64_t *times;
};

/** First byte of frame `i`, with header-data split of what follows its head; gdrcap_device.cuh has
 * the same for kernels. */
static inline uint8_t *gdrcap_frame(const struct gdrcap_batch *batch, uint32_t i)
{
	return batch->data + (size_t)batch->pkts[i].slot * batch->slot_bytes +
	       (batch->pkts[i].offset & ~GDRCAP_PKT_CUT);
}

/** Its bytes there, without FCS; with header-data split those that follow its head: 0 where nothing
 * does. */
static inline uint32_t gdrcap_frame_bytes(const struct gdrcap_batch *batch, uint32_t i)
{
	return batch->pkts[i].len;
}

/** Header-data split: first byte of frame `i`, in host memory. NULL where frames lie whole. */
static inline uint8_t *gdrcap_frame_head(const struct gdrcap_batch *batch, uint32_t i)
{
	return batch->heads
		       ? batch->head_data + (size_t)batch->heads[i].slot * batch->head_slot_bytes +
				 batch->heads[i].offset
		       : NULL;
}

/** So many of its bytes are there; 0 where frames lie whole. */
static inline uint32_t gdrcap_frame_head_bytes(const struct gdrcap_batch *batch, uint32_t i)
{
	return batch->heads ? batch->heads[i].len : 0;
}

/** 1: only its first bytes may have come: GDRCAP_PKT_CUT. */
static inline int gdrcap_frame_is_cut(const struct gdrcap_batch *batch, uint32_t i)
{
	return (batch->pkts[i].offset & GDRCAP_PKT_CUT) != 0;
}

/** Bytes that it had on the wire, with FCS, but without preamble and gap (20 more). 0: it was cut, and
 * nobody knows. */
static inline uint32_t gdrcap_frame_wire_bytes(const struct gdrcap_batch *batch, uint32_t i)
{
	return gdrcap_frame_is_cut(batch, i)
		       ? 0
		       : gdrcap_frame_head_bytes(batch, i) + gdrcap_frame_bytes(batch, i) + 4;
}

/** Id of its outermost VLAN tag, 0..4095, or -1 without one, and where the port's driver took the tag away,
 * as AF_PACKET's does. Reads the frame: where its head is in host
 * memory, or the CPU can read the frames. */
static inline int gdrcap_frame_vlan(const struct gdrcap_batch *batch, uint32_t i)
{
	const uint8_t *head = gdrcap_frame_head(batch, i);
	const uint8_t *at = head ? head : gdrcap_frame(batch, i);
	const uint32_t bytes =
		head ? gdrcap_frame_head_bytes(batch, i) : gdrcap_frame_bytes(batch, i);

	if (bytes < 18 ||
	    !((at[12] == 0x81 && at[13] == 0x00) || (at[12] == 0x88 && at[13] == 0xa8)))
		return -1;
	return (at[14] & 15) << 8 | at[15];
}

/** An arrival time of a batch of `queue` in ns since the Unix epoch; 0: the card gave none. The
 * queue's thread. */
uint64_t gdrcap_time_ns(struct gdrcap_queue *queue, uint64_t time);

/** Receive queue `index`, or NULL. */
struct gdrcap_queue *gdrcap_get_queue(struct gdrcap_session *session, uint32_t index);
/**
 * Up to `max` batches: their count, 0 for none yet, -ESHUTDOWN for none ever again. One thread a
 * queue; no lock, allocation or log. The frames are visible to kernels launched afterwards. A
 * library built with -Dassertions=true aborts, and says why, when two threads poll one queue at the
 * same time and when a batch is released twice.
 */
int gdrcap_poll(struct gdrcap_queue *queue, const struct gdrcap_batch **batches, unsigned int max);
/** The same, waiting up to `usec` microseconds (-1: for ever) for the first. It looks again and again
 * for some 50 us, and sleeps then, where a thread may be cancelled. */
int gdrcap_wait(struct gdrcap_queue *queue, const struct gdrcap_batch **batches, unsigned int max,
		int64_t usec);
/**
 * A descriptor for poll(), epoll or an event loop, or -errno: readable (POLLIN) when a batch is there
 * or none will ever be. Its rule: a gdrcap_poll() that returned 0 arms it, so poll until that, then
 * wait; after one that returned more it stays readable. It may be readable once with nothing there,
 * as it is at first. It is the queue's: do not read, write or close it; gdrcap_destroy() does. The
 * queue's thread. The receiving thread makes a system call only for a descriptor that is armed. -EINVAL:
 * the batches are not the caller's (consumer).
 */
int gdrcap_queue_fd(struct gdrcap_queue *queue);
/** Gives batches back, in any order. Any thread. NULL among them is passed over. */
void gdrcap_release(struct gdrcap_queue *queue, const struct gdrcap_batch *const *batches,
		    unsigned int count);
/** Gives them back once `stream` has reached this point; returns at once: how many it took, in
 * order, the rest being still the caller's, or a negative errno for none (-EINVAL: the first is NULL).
 * Synchronise the stream before gdrcap_destroy(). */
int gdrcap_release_after(struct gdrcap_queue *queue, const struct gdrcap_batch *const *batches,
			 unsigned int count, struct CUstream_st *stream);

/**
 * A hole in a stream's frame numbers, or a frame that came late. A frame's number is its sequence
 * number; in a custom layout (format CUSTOM) which frame of its stream it is, from 0, by
 * sequence_offset, _start and _step.
 */
struct gdrcap_gap {
	uint64_t first; /**< of the numbers that are missing */
	uint64_t count;
	uint32_t stream;
	uint32_t frame; /**< of the batch, before which they are missing */
	uint32_t
		late; /**< 1: nothing is missing here; the frame, number `first`, came after a later
			 * one: it was told as missing, or came twice */
	uint32_t reserved;
};
/**
 * What is missing before and in a batch of the queue: how many entries of `gaps` it filled, in order.
 * Asked on the queue's thread for each batch once, as they were polled, before its release; `max` is
 * batch->count or more. A stream begins with the session's own sender's frame 0, or with its first frame
 * that comes; one that its sender begins again is late until it passes the newest number. Reads each
 * frame's header: -EINVAL where the CPU cannot (GPU memory, header-data split), for
 * a running kernel's queue, and where frames have no sequence number.
 */
int gdrcap_get_gaps(struct gdrcap_queue *queue, const struct gdrcap_batch *batch,
		    struct gdrcap_gap *gaps, uint32_t max, size_t size);

/** For a kernel that is already running: see gdrcap_device.cuh. */
struct gdrcap_gpu_queue {
	const struct gdrcap_pkt *pkts;
	const uint64_t *ready;
	uint64_t *done;
	const uint32_t *stop;
	uint8_t *data;
	uint32_t pkt_mask, burst_mask, ready_stride, done_stride, slot_bytes;
	/* Header-data split, as in struct gdrcap_batch; NULL: frames lie whole. */
	const struct gdrcap_pkt *heads;
	uint8_t *head_data;
	uint32_t head_slot_bytes;
};
int gdrcap_get_gpu_queue(struct gdrcap_queue *queue, struct gdrcap_gpu_queue *gpu_queue,
			 size_t size);

#ifdef __cplusplus
}
#endif

#include "gdrcap_image.h"
#include "gdrcap_stream.h"
#include "gdrcap_tx.h"

#endif
