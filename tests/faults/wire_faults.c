/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive and send functions of a started port are replaced in rte_eth_fp_ops, and its queue
 * pointers by lines of ours. Frames that are put in come from the port's own pool, since that is
 * where a receiver gives them back to; where the pool is empty the line waits.
 */
#include "wire_faults.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "capture/rx_worker.h"
#include "knobs.h"

#define LINE_QUEUES 64u
#define LINE_FILES 64 /* of a process */
#define LINE_STAGE 64u
#define LINE_PUTS 8u
#define FRAME_ROOM 9216u
#define POISON 0x55
#define OWN_TYPE 0x88b5u
#define CUSTOM_TYPE 0x0806u

/* Frames to be put in after one of the wire's. */
struct line_put {
	uint64_t left;
	enum knob knob;
	uint32_t bytes;
	uint8_t copy[FRAME_ROOM];
};

struct line {
	void *queue; /* the driver's */
	eth_rx_burst_t receive;
	eth_rx_queue_count_t waiting;
	eth_tx_burst_t send;
	eth_tx_descriptor_status_t send_status;
	uint16_t number;
	bool first_port;
	uint64_t random;
	uint64_t taken; /* frames of the run that came off the wire */
	uint64_t held;	/* polls that brought nothing before the next */
	bool napped;
	bool counted;			    /* the frames that wait were */
	struct rte_mempool *pool;	    /* of its frames; NULL before the first */
	struct rte_mbuf *stage[LINE_STAGE]; /* came off the wire, not looked at */
	uint32_t stage_at, stage_end;
	struct rte_mbuf *late[KNOBS_MAX], *due[KNOBS_MAX];
	uint64_t late_until[KNOBS_MAX];
	uint32_t late_count, due_count;
	struct line_put puts[LINE_PUTS];
	uint32_t put_count;
};

struct lines {
	void *rx[LINE_QUEUES], *tx[LINE_QUEUES];
};

/* Of the first port that was polled. */
static _Atomic int faulty_port = -1;
static _Atomic uint64_t missed, errors;
static _Atomic bool running;		   /* a receive worker has polled */
static _Atomic bool found_silent, emptied; /* the port; its queues after that, by polls */

static struct lines *port_lines[RTE_MAX_ETHPORTS];
static struct rte_mbuf *proof_moved; /* to another queue */

static _Noreturn void give_up(const char *why)
{
	fprintf(stderr, "faulty: %s\n", why);
	abort();
}

static uint64_t line_random(struct line *line)
{
	/* xorshift64 (Marsaglia): the same numbers in each run */
	line->random ^= line->random << 13;
	line->random ^= line->random >> 7;
	line->random ^= line->random << 17;
	return line->random;
}

static void frame_flip(struct rte_mbuf *m, uint64_t bit)
{
	if (bit / 8 >= m->data_len)
		give_up("flip: the frame is shorter");
	rte_pktmbuf_mtod(m, uint8_t *)[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
}

static void frame_cut(struct rte_mbuf *m, uint64_t bytes)
{
	if (bytes >= m->data_len)
		give_up("cut: the frame is shorter");
	m->data_len = (uint16_t)bytes;
	m->pkt_len = (uint32_t)bytes;
}

/* A second segment of `bytes` bytes behind `m`. */
static void frame_chain(struct rte_mbuf *m, uint32_t bytes)
{
	struct rte_mbuf *next = rte_pktmbuf_alloc(m->pool);

	if (!next)
		give_up("no segment left for a chain");
	next->data_len = (uint16_t)bytes;
	m->next = next;
	m->nb_segs = 2;
	m->pkt_len = m->data_len + bytes;
}

static void frame_split(struct rte_mbuf *m, uint64_t bytes)
{
	const uint32_t whole = m->data_len;

	frame_cut(m, bytes);
	frame_chain(m, whole - (uint32_t)bytes);
	memcpy(rte_pktmbuf_mtod(m->next, uint8_t *), rte_pktmbuf_mtod(m, uint8_t *) + bytes,
	       whole - bytes);
}

/* ---- frames put in ---- */

static void line_put_add(struct line *line, const struct fault *fault, const struct rte_mbuf *m)
{
	struct line_put *put;

	if (line->put_count == LINE_PUTS)
		give_up("too many faults at one frame");
	put = &line->puts[line->put_count++];
	put->knob = fault->knob;
	put->left = fault->value;
	put->bytes = m->data_len;
	memcpy(put->copy, rte_pktmbuf_mtod(m, uint8_t *), put->bytes);
}

static void frame_fill(struct line *line, struct rte_mbuf *m, uint32_t type)
{
	const uint32_t bytes = 60 + (uint32_t)(line_random(line) % 1000);
	uint8_t *at = rte_pktmbuf_mtod(m, uint8_t *);

	if (bytes > rte_pktmbuf_tailroom(m))
		give_up("frames of a custom layout need slots of 2048 bytes");
	for (uint32_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(line_random(line) >> 24);
	at[12] = (uint8_t)(type >> 8);
	at[13] = (uint8_t)type;
	m->data_len = (uint16_t)bytes;
	m->pkt_len = bytes;
}

/* NULL: the pool is empty now. */
static struct rte_mbuf *line_put_next(struct line *line)
{
	struct line_put *put = &line->puts[0];
	struct rte_mbuf *m = rte_pktmbuf_alloc(line->pool);

	if (!m)
		return NULL;
	if (put->knob == KNOB_DUP) {
		memcpy(rte_pktmbuf_mtod(m, uint8_t *), put->copy, put->bytes);
		m->data_len = (uint16_t)put->bytes;
		m->pkt_len = put->bytes;
	} else {
		frame_fill(line, m, put->knob == KNOB_GARBLE ? OWN_TYPE : CUSTOM_TYPE);
	}
	if (--put->left == 0)
		memmove(put, put + 1, --line->put_count * sizeof(*put));
	return m;
}

/* ---- frames of the wire ---- */

static struct rte_mbuf *line_take(struct line *line)
{
	if (line->stage_at == line->stage_end) {
		line->stage_at = 0;
		line->stage_end = line->receive(line->queue, line->stage, LINE_STAGE);
		if (line->stage_end == 0)
			return NULL;
		line->pool = line->stage[0]->pool;
	}
	return line->stage[line->stage_at++];
}

/* Late frames whose time has come after frame `number`. */
static void line_release(struct line *line, uint64_t number)
{
	for (uint32_t i = 0; i < line->late_count;) {
		if (line->late_until[i] != number) {
			i++;
			continue;
		}
		line->due[line->due_count++] = line->late[i];
		line->late_count--;
		line->late[i] = line->late[line->late_count];
		line->late_until[i] = line->late_until[line->late_count];
	}
}

static bool fault_is_for(const struct fault *fault, const struct line *line, uint64_t number)
{
	if (fault->queue != line->number)
		return false;
	if (fault->knob == KNOB_DROP)
		return number >= fault->number && number - fault->number < fault->value;
	if (fault->knob == KNOB_CUSTOM_EVERY)
		return number % fault->number == fault->number - 1;
	return fault->knob < KNOB_CUSTOM_EVERY && number == fault->number;
}

/* Returns the frame, or NULL when it does not come now or never. */
static struct rte_mbuf *line_apply(struct line *line, struct rte_mbuf *m)
{
	const uint64_t number = line->taken++;

	for (unsigned int i = 0; m && i < fault_count; i++) {
		const struct fault *fault = &faults[i];

		if (!fault_is_for(fault, line, number))
			continue;
		if (fault->knob == KNOB_DROP) {
			if (fault_of(KNOB_COUNTED) && missed < fault_of(KNOB_COUNTED)->number)
				missed++;
			rte_pktmbuf_free(m);
			m = NULL;
		} else if (fault->knob == KNOB_LATE) {
			line->late[line->late_count] = m;
			line->late_until[line->late_count++] = number + fault->value;
			m = NULL;
		} else if (fault->knob == KNOB_FLIP) {
			frame_flip(m, fault->value);
		} else if (fault->knob == KNOB_CUT) {
			frame_cut(m, fault->value);
		} else if (fault->knob == KNOB_SPLIT) {
			frame_split(m, fault->value);
		} else if (fault->knob == KNOB_GROW) {
			frame_chain(m, (uint32_t)fault->value);
		} else {
			line_put_add(line, fault, m);
		}
	}
	line_release(line, number);
	return m;
}

/* True while the polls before a frame are to bring nothing. */
static bool line_holds(struct line *line)
{
	for (unsigned int i = 0; i < fault_count; i++) {
		const struct fault *fault = &faults[i];

		if (fault->queue != line->number || fault->number != line->taken)
			continue;
		if ((fault->knob == KNOB_MUTE && !line->counted) ||
		    (fault->knob == KNOB_SILENT && !found_silent))
			return true;
		if (fault->knob == KNOB_HOLD && line->held < fault->value) {
			line->held++;
			return true;
		}
	}
	line->held = 0;
	return false;
}

/* False: nothing can come now. *m may be NULL all the same: a frame that does not come. */
static bool line_next(struct line *line, struct rte_mbuf **m)
{
	if (line->put_count) {
		*m = line_put_next(line);
		return *m != NULL;
	}
	if (line->due_count) {
		*m = line->due[--line->due_count];
		return true;
	}
	*m = line_holds(line) ? NULL : line_take(line);
	if (*m) {
		*m = line_apply(line, *m);
		return true;
	}
	if (!fault_of(KNOB_BABBLE) || !line->pool)
		return false;
	*m = rte_pktmbuf_alloc(line->pool);
	if (*m)
		frame_fill(line, *m, CUSTOM_TYPE);
	return false;
}

/* One sleep: many short ones last much longer where others want the core. */
static void sleep_ms(uint64_t ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec +=
		(time_t)(ms / 1000) + (until.tv_nsec + (long)(ms % 1000) * 1000000) / 1000000000;
	until.tv_nsec = (until.tv_nsec + (long)(ms % 1000) * 1000000) % 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

/* The receiver's thread is held in its poll: as if it had no core, or for ever. */
static void line_nap(struct line *line)
{
	const struct timespec tick = { .tv_nsec = 1000000 };

	for (unsigned int i = 0; i < fault_count; i++) {
		const struct fault *fault = &faults[i];

		if (fault->queue != line->number || fault->number > line->taken)
			continue;
		while (fault->knob == KNOB_HANG)
			nanosleep(&tick, NULL);
		if (fault->knob == KNOB_NAP && !line->napped)
			sleep_ms(fault->value);
		line->napped |= fault->knob == KNOB_NAP;
	}
}

static uint16_t run_receive(struct line *line, struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t got = 0;
	bool more = true;

	line_nap(line);
	if (fault_of(KNOB_TRICKLE))
		n = (uint16_t)(line_random(line) % (n + 1u));
	while (more && got < n) {
		struct rte_mbuf *m = NULL;

		more = line_next(line, &m);
		if (m)
			mbufs[got++] = m;
	}
	if (got == 0 && found_silent)
		emptied = true;
	return got;
}

/* After the run: all that is still here, as it is. */
static uint16_t rest_receive(struct line *line, struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t got = 0;

	while (got < n && line->stage_at != line->stage_end)
		mbufs[got++] = line->stage[line->stage_at++];
	while (got < n && line->late_count)
		mbufs[got++] = line->late[--line->late_count];
	while (got < n && line->due_count)
		mbufs[got++] = line->due[--line->due_count];
	return got ? got : line->receive(line->queue, mbufs, n);
}

/* ---- the staged first frame ---- */

static struct rte_mbuf *mbuf_outside(void)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create("faulty", 15, 0, 0, 2048, SOCKET_ID_ANY);
	struct rte_mbuf *m = pool ? rte_pktmbuf_alloc(pool) : NULL;

	if (!m)
		give_up("no memory for a pool of my own");
	return m;
}

/* Returns the frame, or NULL when it is gone. */
static struct rte_mbuf *proof_apply(struct line *line, struct rte_mbuf *m)
{
	const struct fault *fault;
	struct rte_mbuf *other;

	if (fault_of(KNOB_PROOF_QUEUE) && line->number == 0) {
		proof_moved = m;
		return NULL;
	}
	if (fault_of(KNOB_PROOF_LOST) || fault_of(KNOB_PROOF_MISSED) ||
	    fault_of(KNOB_PROOF_ERROR)) {
		missed += fault_of(KNOB_PROOF_MISSED) != NULL;
		errors += fault_of(KNOB_PROOF_ERROR) != NULL;
		rte_pktmbuf_free(m);
		return NULL;
	}
	if ((fault = fault_of(KNOB_PROOF_CUT)))
		frame_cut(m, fault->number);
	if ((fault = fault_of(KNOB_PROOF_SPLIT)))
		frame_split(m, fault->number);
	if ((fault = fault_of(KNOB_PROOF_FLIP)))
		frame_flip(m, fault->number);
	if ((fault = fault_of(KNOB_PROOF_STALE)) && fault->number < m->data_len)
		memset(rte_pktmbuf_mtod(m, uint8_t *) + fault->number, POISON,
		       m->data_len - fault->number);
	if (fault_of(KNOB_PROOF_FLAGGED))
		m->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_BAD;
	if (fault_of(KNOB_PROOF_OUTSIDE)) {
		other = mbuf_outside();
		memcpy(rte_pktmbuf_append(other, m->data_len), rte_pktmbuf_mtod(m, uint8_t *),
		       m->data_len);
		rte_pktmbuf_free(m);
		m = other;
	}
	return m;
}

static uint16_t proof_receive(struct line *line, struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t got, kept = 0;

	if (line->number == 1 && proof_moved) {
		mbufs[0] = proof_moved;
		proof_moved = NULL;
		return 1;
	}
	/* A card's driver gives nothing to who asks for a single frame. */
	got = line->receive(line->queue, mbufs, n);
	for (uint16_t i = 0; i < got; i++) {
		mbufs[kept] = proof_apply(line, mbufs[i]);
		kept += mbufs[kept] != NULL;
	}
	return kept;
}

/* ---- what the port's users call ---- */

/* The main thread polls for the first frame and, after the run, for what is left; a run's frames
 * are polled for by its receive workers. */
static bool thread_is_main(void)
{
	static __thread int is_main = -1;

	if (is_main < 0)
		is_main = gettid() == getpid();
	return is_main;
}

static uint16_t line_receive(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	struct line *line = queue;

	if (!line->first_port || n == 0)
		return line->receive(line->queue, mbufs, n);
	if (!thread_is_main()) {
		atomic_store_explicit(&running, true, memory_order_relaxed);
		return run_receive(line, mbufs, n);
	}
	return running ? rest_receive(line, mbufs, n) : proof_receive(line, mbufs, n);
}

/* Frames that came and were not taken, here and at the driver. The type is that of the DPDK release. */
static __typeof__(((eth_rx_queue_count_t)NULL)(NULL)) line_waiting(void *queue)
{
	struct line *line = queue;

	line->counted = true;
	return line->waiting(line->queue) + (line->stage_end - line->stage_at) + line->put_count +
	       line->due_count;
}

static uint16_t line_send(void *queue, struct rte_mbuf **mbufs, uint16_t n)
{
	struct line *line = queue;

	if (thread_is_main() && fault_of(KNOB_PROOF_REFUSED))
		return 0;
	if (!thread_is_main() && fault_of(KNOB_PARTIAL))
		n = (uint16_t)(line_random(line) % (n + 1u));
	return n ? line->send(line->queue, mbufs, n) : 0;
}

static int line_send_status(void *queue, uint16_t offset)
{
	struct line *line = queue;

	return line->send_status(line->queue, offset);
}

static void *line_create(uint16_t port, uint16_t number, void *queue)
{
	struct line *line = calloc(1, sizeof(*line));

	if (!line)
		give_up("no memory for a line");
	line->queue = queue;
	line->number = number;
	line->receive = rte_eth_fp_ops[port].rx_pkt_burst;
	line->waiting = rte_eth_fp_ops[port].rx_queue_count;
	line->send = rte_eth_fp_ops[port].tx_pkt_burst;
	line->send_status = rte_eth_fp_ops[port].tx_descriptor_status;
	line->random = 0x9e3779b97f4a7c15u + number;
	return line;
}

/* ---- a file in place of a driver ---- */

int __real_file_source_receive(void *source, struct rte_mbuf **mbufs, uint16_t n);
int __wrap_file_source_receive(void *source, struct rte_mbuf **mbufs, uint16_t n);

static __thread int file_said;

static uint16_t file_receive(void *source, struct rte_mbuf **mbufs, uint16_t n)
{
	file_said = __real_file_source_receive(source, mbufs, n);
	return file_said > 0 ? (uint16_t)file_said : 0;
}

/* A thread has one file, whose line is that of queue 0. What the file says counts when the line is empty. */
int __wrap_file_source_receive(void *source, struct rte_mbuf **mbufs, uint16_t n)
{
	static struct line *kept[LINE_FILES]
		__attribute__((used)); /* a thread ends before what finds leaks looks */
	static _Atomic unsigned int count;
	static __thread struct line *line;
	uint16_t got;

	if (!line) {
		const unsigned int i = atomic_fetch_add(&count, 1);

		line = calloc(1, sizeof(*line));
		if (!line || i >= LINE_FILES)
			give_up("no memory for a line");
		kept[i] = line;
		line->random = 0x9e3779b97f4a7c15u;
		line->receive = file_receive;
	}
	line->queue = source;
	file_said = 0;
	got = run_receive(line, mbufs, n);
	if (got == 0 && n && file_said == RX_SOURCE_OVER && line->late_count)
		mbufs[got++] = line->late[--line->late_count];
	return got || line->put_count || line->due_count ? got : file_said;
}

void wire_faults_install(uint16_t port)
{
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[port];
	struct rte_eth_dev_info info;
	struct lines *lines = calloc(1, sizeof(*lines));

	if (!lines || rte_eth_dev_info_get(port, &info) || info.nb_rx_queues > LINE_QUEUES ||
	    info.nb_tx_queues > LINE_QUEUES)
		give_up("this port cannot be interposed");
	for (uint16_t q = 0; q < info.nb_rx_queues; q++) {
		struct line *line = line_create(port, q, ops->rxq.data[q]);
		int none = -1;

		lines->rx[q] = line;
		line->first_port = atomic_compare_exchange_strong(&faulty_port, &none, port) ||
				   faulty_port == port;
	}
	for (uint16_t q = 0; q < info.nb_tx_queues; q++)
		lines->tx[q] = line_create(port, q, ops->txq.data[q]);
	port_lines[port] = lines;
	/* None of the driver's functions stays, as each would take a line for its queue. Stopping the port puts
	 * functions there that do nothing. */
	*ops = (struct rte_eth_fp_ops){
		.rx_pkt_burst = line_receive,
		.rx_queue_count = ops->rx_queue_count ? line_waiting : NULL,
		.rxq = { .data = lines->rx, .clbk = ops->rxq.clbk },
		.tx_pkt_burst = line_send,
		/* A card's driver is asked for its send errors so. */
		.tx_descriptor_status = ops->tx_descriptor_status ? line_send_status : NULL,
		.txq = { .data = lines->tx, .clbk = ops->txq.clbk },
	};
}

const _Atomic bool *wire_faults_silent(void)
{
	found_silent = true;
	return &emptied;
}

void wire_faults_stats(uint16_t port, uint64_t *more_missed, uint64_t *more_errors)
{
	const bool ours = faulty_port == port;

	*more_missed = ours ? missed : 0;
	*more_errors = ours ? errors : 0;
}
