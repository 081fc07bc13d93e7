/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The real program with faults in its ports, its memory and its consumer: linked from gdrcap's own
 * objects with --wrap for the functions below, so that nothing of this is in the product.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_ethdev.h>

#include "gdrcap.h"
#include "kernels/host/host_workers.h"
#include "kernels/kernels.h"
#include "knobs.h"
#include "save/pcapng.h"
#include "session/session.h"
#include "wire_faults.h"

#define POISON 0x55
/* Only so that a program that never does what a fault waits for ends all the same. */
#define GIVE_UP_MS 60000u

int __real_rte_eth_dev_start(uint16_t port);
int __wrap_rte_eth_dev_start(uint16_t port);
int __real_rte_eth_link_get_nowait(uint16_t port, struct rte_eth_link *link);
int __wrap_rte_eth_link_get_nowait(uint16_t port, struct rte_eth_link *link);
struct recover_found __real_recover_look(struct recover *recover,
					 const struct recover_sample *sample);
struct recover_found __wrap_recover_look(struct recover *recover,
					 const struct recover_sample *sample);
int __real_rte_eth_stats_get(uint16_t port, struct rte_eth_stats *stats);
int __wrap_rte_eth_stats_get(uint16_t port, struct rte_eth_stats *stats);
uint32_t __real_host_burst_check(const struct burst_ring_view *ring, const struct host_work *work,
				 uint64_t burst, uint64_t ready);
uint32_t __wrap_host_burst_check(const struct burst_ring_view *ring, const struct host_work *work,
				 uint64_t burst, uint64_t ready);
uint32_t __real_host_burst_check_more(const struct burst_ring_view *ring,
				      const struct host_work *work, uint64_t burst, uint64_t ready);
uint32_t __wrap_host_burst_check_more(const struct burst_ring_view *ring,
				      const struct host_work *work, uint64_t burst, uint64_t ready);
void __real_host_burst_write(const struct burst_ring_view *ring, const struct host_work *work,
			     uint64_t burst, uint64_t ready);
void __wrap_host_burst_write(const struct burst_ring_view *ring, const struct host_work *work,
			     uint64_t burst, uint64_t ready);
void __real_session_message(struct gdrcap_session *session, enum gdrcap_log_level level,
			    const char *format, ...) __attribute__((format(printf, 3, 4)));
void __wrap_session_message(struct gdrcap_session *session, enum gdrcap_log_level level,
			    const char *format, ...) __attribute__((format(printf, 3, 4)));
void __real_gdrcap_destroy(struct gdrcap_session *session);
void __wrap_gdrcap_destroy(struct gdrcap_session *session);
int __real_pcapng_close(struct pcapng *file);
int __wrap_pcapng_close(struct pcapng *file);
extern const struct kernel_ops __real_kernel_host_ops, __wrap_kernel_host_ops;

static _Atomic bool stall_reported;		     /* by the watchdog */
static _Atomic bool destroyed;			     /* the session is */
static _Atomic bool died;			     /* the device is to report a failure */
static struct kernel_workers *_Atomic stuck_workers; /* with a thread that a fault holds */
static struct kernel_workers *_Atomic proof_workers, *_Atomic check_workers, *_Atomic write_workers;

__attribute__((constructor)) static void faulty_begin(void)
{
	knobs_read();
}

static void nap(void)
{
	const struct timespec tick = { .tv_nsec = 1000000 };

	nanosleep(&tick, NULL);
}

/* Waits until *flag is set; for ever, or for GIVE_UP_MS. */
static void flag_wait(const _Atomic bool *flag, bool for_ever)
{
	for (uint32_t ms = 0; !*flag && (for_ever || ms < GIVE_UP_MS); ms++)
		nap();
}

/* ---- ports ---- */

int __wrap_rte_eth_dev_start(uint16_t port)
{
	int ret = __real_rte_eth_dev_start(port);

	if (ret == 0)
		wire_faults_install(port);
	return ret;
}

int __wrap_rte_eth_link_get_nowait(uint16_t port, struct rte_eth_link *link)
{
	int ret = __real_rte_eth_link_get_nowait(port, link);

	if (fault_of(KNOB_LINK_DOWN))
		link->link_status = RTE_ETH_LINK_DOWN;
	return ret;
}

int __wrap_rte_eth_stats_get(uint16_t port, struct rte_eth_stats *stats)
{
	int ret = __real_rte_eth_stats_get(port, stats);
	uint64_t missed, errors;

	wire_faults_stats(port, &missed, &errors);
	stats->imissed += missed;
	stats->ierrors += errors;
	return ret;
}

/* Frames come behind the look that misses them. */
struct recover_found __wrap_recover_look(struct recover *recover,
					 const struct recover_sample *sample)
{
	struct recover_found found = __real_recover_look(recover, sample);

	if (found.silent && fault_of(KNOB_SILENT))
		flag_wait(wire_faults_silent(), false);
	return found;
}

/* ---- the consumer ---- */

/* A worker may be here before start() has told us whose it is. */
static void be_stuck(struct kernel_workers *_Atomic *workers)
{
	while (!*workers)
		nap();
	stuck_workers = *workers;
	flag_wait(&destroyed, true);
}

static void wait_for_stop(const struct burst_ring_view *ring)
{
	while (!__atomic_load_n(ring->stop, __ATOMIC_RELAXED))
		nap();
}

typedef uint32_t burst_check(const struct burst_ring_view *ring, const struct host_work *work,
			     uint64_t burst, uint64_t ready);

/* The slot of the first frame as a consumer sees it that reads old bytes from `from` of the frame on. */
static uint8_t *stale_slot(const struct burst_ring_view *ring, struct frame_desc desc,
			   uint64_t from)
{
	const uint64_t at = (uint64_t)desc.slot << ring->slot_shift;
	uint8_t *slot = malloc((size_t)1 << ring->slot_shift);

	if (!slot)
		abort();
	memset(slot, POISON, (size_t)1 << ring->slot_shift);
	memcpy(slot + desc.offset, ring->frames + at + desc.offset, from);
	return slot;
}

static uint32_t proof_check(burst_check *check, const struct burst_ring_view *ring,
			    const struct host_work *work, uint64_t burst, uint64_t ready)
{
	const struct fault *stale = fault_of(KNOB_CONSUMER_STALE);
	struct burst_ring_view view = *ring;
	uint8_t *slot = NULL;

	if (fault_of(KNOB_CONSUMER_MUTE) || fault_of(KNOB_CONSUMER_DIES)) {
		wait_for_stop(ring);
		return 0;
	}
	if (fault_of(KNOB_CONSUMER_ABANDONS))
		be_stuck(&proof_workers);
	if (stale) {
		const struct frame_desc desc =
			ring->desc[burst_word_first(ready) & ring->desc_mask];

		/* The burst has that frame only. A copy of all slots would cost a busy machine seconds. */
		slot = stale_slot(ring, desc, stale->number);
		view.frames =
			(uint8_t *)((uintptr_t)slot - ((uintptr_t)desc.slot << ring->slot_shift));
	}
	burst = check(&view, work, burst, ready);
	free(slot);
	return (uint32_t)burst;
}

static uint32_t faulty_check(burst_check *check, const struct burst_ring_view *ring,
			     const struct host_work *work, uint64_t burst, uint64_t ready)
{
	const struct fault *fault;

	if (work->layout->raw)
		return proof_check(check, ring, work, burst, ready);
	if ((fault = fault_of(KNOB_STALL)) && fault->number == burst)
		flag_wait(&stall_reported, false);
	if ((fault = fault_of(KNOB_ABANDON)) && fault->number == burst)
		be_stuck(&check_workers);
	if ((fault = fault_of(KNOB_DIES)) && fault->number == burst)
		died = true;
	return check(ring, work, burst, ready);
}

uint32_t __wrap_host_burst_check(const struct burst_ring_view *ring, const struct host_work *work,
				 uint64_t burst, uint64_t ready)
{
	return faulty_check(__real_host_burst_check, ring, work, burst, ready);
}

uint32_t __wrap_host_burst_check_more(const struct burst_ring_view *ring,
				      const struct host_work *work, uint64_t burst, uint64_t ready)
{
	return faulty_check(__real_host_burst_check_more, ring, work, burst, ready);
}

void __wrap_host_burst_write(const struct burst_ring_view *ring, const struct host_work *work,
			     uint64_t burst, uint64_t ready)
{
	const struct fault *fault = fault_of(KNOB_ABANDON_WRITER);

	if (fault && fault->number == burst)
		be_stuck(&write_workers);
	__real_host_burst_write(ring, work, burst, ready);
}

void __wrap_session_message(struct gdrcap_session *session, enum gdrcap_log_level level,
			    const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	__real_session_message(session, level, "%s", line);
	if (strstr(line, "no progress"))
		stall_reported = true;
}

/* A worker that nobody could wait for comes back when all is gone: it must find its memory. */
void __wrap_gdrcap_destroy(struct gdrcap_session *session)
{
	struct kernel_workers *workers = stuck_workers;

	__real_gdrcap_destroy(session);
	if (!workers || !fault_of(KNOB_COMES_BACK))
		return;
	destroyed = true;
	for (uint32_t ms = 0; __real_kernel_host_ops.running(workers) == 1; ms++) {
		if (ms == GIVE_UP_MS)
			abort();
		nap();
	}
	fprintf(stderr, "faulty: the worker came back and left\n");
}

int __wrap_pcapng_close(struct pcapng *file)
{
	const struct fault *fault = fault_of(KNOB_SAVED_LATE);

	for (uint64_t ms = 0; fault && ms < fault->number; ms++)
		nap();
	return __real_pcapng_close(file);
}

/* ---- the device ---- */

/* Call `*calls` of an operation, which it counts, is to fail. */
static int call_fails(enum knob knob, _Atomic uint64_t *calls)
{
	const struct fault *fault = fault_of(knob);

	return fault && (*calls)++ >= fault->number
		       ? kernel_fail(-EIO, "this memory was made to fail; ask the test why")
		       : 0;
}

static int faulty_open(int ordinal, struct kernel_device **device)
{
	return __real_kernel_host_ops.open(ordinal, device);
}

static void faulty_close(struct kernel_device *device)
{
	__real_kernel_host_ops.close(device);
}

static void faulty_info(const struct kernel_device *device, struct kernel_info *info)
{
	__real_kernel_host_ops.info(device, info);
}

static int faulty_fill(struct kernel_device *device, void *at, uint8_t byte, size_t bytes)
{
	static _Atomic uint64_t calls;
	int ret = call_fails(KNOB_FILL_FAILS, &calls);

	if (ret == 0)
		ret = __real_kernel_host_ops.fill(device, at, byte, bytes);
	if (ret == 0 && fault_of(KNOB_MEMORY_FORGETS))
		((uint8_t *)at)[bytes - 1] = 0;
	return ret;
}

static int faulty_copy_in(struct kernel_device *device, void *to, const void *from, size_t bytes)
{
	static _Atomic uint64_t calls;
	int ret = call_fails(KNOB_COPY_IN_FAILS, &calls);

	return ret ? ret : __real_kernel_host_ops.copy_in(device, to, from, bytes);
}

static int faulty_copy_out(struct kernel_device *device, void *to, const void *from, size_t bytes)
{
	static _Atomic uint64_t calls;
	int ret = call_fails(KNOB_COPY_OUT_FAILS, &calls);

	return ret ? ret : __real_kernel_host_ops.copy_out(device, to, from, bytes);
}

static int faulty_gather(struct kernel_device *device, const struct kernel_copy *copies,
			 uint32_t count)
{
	return __real_kernel_host_ops.gather(device, copies, count);
}

static int faulty_start(struct kernel_device *device, const struct kernel_job *job,
			struct kernel_workers **workers)
{
	int ret;

	if (job->layout.raw && fault_of(KNOB_CONSUMER_REFUSES))
		return kernel_fail(-EAGAIN,
				   "this consumer was made not to start; ask the test why");
	ret = __real_kernel_host_ops.start(device, job, workers);
	if (ret)
		return ret;
	if (job->layout.raw)
		proof_workers = *workers;
	else if (job->role == KERNEL_CHECK)
		check_workers = *workers;
	else
		write_workers = *workers;
	return 0;
}

static int faulty_join(struct kernel_workers *workers, unsigned int timeout_ms)
{
	int ret;

	if (workers == proof_workers && fault_of(KNOB_CONSUMER_STAYS))
		return kernel_fail(-ETIMEDOUT, "this consumer was made to stay; ask the test why");
	ret = __real_kernel_host_ops.join(workers, timeout_ms);
	if (ret == 0 && workers != proof_workers && fault_of(KNOB_LEAVES_LATE))
		return kernel_fail(-ETIMEDOUT, "this worker was made to stay; ask the test why");
	/* Others may be where it was. */
	if (ret == 0 && workers == proof_workers)
		proof_workers = NULL;
	return ret;
}

static int faulty_running(struct kernel_workers *workers)
{
	if (died || (workers == proof_workers && fault_of(KNOB_CONSUMER_DIES)))
		return kernel_fail(-EIO, "this device was made to fail; ask the test why");
	return __real_kernel_host_ops.running(workers);
}

static bool faulty_starved(struct kernel_workers *workers)
{
	return __real_kernel_host_ops.starved(workers);
}

static uint32_t faulty_workers_per_ring(const struct kernel_workers *workers)
{
	return __real_kernel_host_ops.workers_per_ring(workers);
}

/* Of the software ConnectX, where it is preloaded: data that wait for a flush are written. */
extern void softmlx5_flush(void) __attribute__((weak));

static int faulty_flush(struct kernel_device *device)
{
	if (fault_of(KNOB_FLUSH_FAILS))
		return kernel_fail(-EIO, "this flush was made to fail; ask the test why");
	if (softmlx5_flush)
		softmlx5_flush();
	return __real_kernel_host_ops.flush(device);
}

static int faulty_place_close(struct kernel_device *device, const struct place_view *view,
			      uint32_t slot, uint32_t use, uint32_t pieces, int fill)
{
	return __real_kernel_host_ops.place_close(device, view, slot, use, pieces, fill);
}

static int faulty_place_close_whole(struct kernel_device *device, const struct place_view *view,
				    const struct place_whole *images, uint32_t count)
{
	return __real_kernel_host_ops.place_close_whole(device, view, images, count);
}

static int faulty_after(struct kernel_device *device, void *stream, void (*release)(void *arg),
			void *arg)
{
	return __real_kernel_host_ops.after(device, stream, release, arg);
}

static int faulty_sum(struct kernel_device *device, void *stream, const struct kernel_sum *sums,
		      uint32_t count)
{
	return __real_kernel_host_ops.sum(device, stream, sums, count);
}

static int faulty_wait_word(struct kernel_device *device, void *stream, const uint64_t *word,
			    uint64_t least)
{
	return __real_kernel_host_ops.wait_word(device, stream, word, least);
}

static int faulty_write_word(struct kernel_device *device, void *stream, uint64_t *word,
			     uint64_t value)
{
	return __real_kernel_host_ops.write_word(device, stream, word, value);
}

const struct kernel_ops __wrap_kernel_host_ops = {
	.name = "host",
	.stream_is_caller = 1,
	.open = faulty_open,
	.close = faulty_close,
	.info = faulty_info,
	.fill = faulty_fill,
	.copy_in = faulty_copy_in,
	.copy_out = faulty_copy_out,
	.gather = faulty_gather,
	.start = faulty_start,
	.join = faulty_join,
	.running = faulty_running,
	.starved = faulty_starved,
	.workers_per_ring = faulty_workers_per_ring,
	.flush = faulty_flush,
	.place_close = faulty_place_close,
	.place_close_whole = faulty_place_close_whole,
	.after = faulty_after,
	.wait_word = faulty_wait_word,
	.write_word = faulty_write_word,
	.sum = faulty_sum,
};
