/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends frames of its own from tx_port and receives them on port, in one session: send_play CONFIG.yaml FRAMES
 * [whole | host | device | link | down | full [MIRROR.yaml]]. host, device: each frame is a header in a slot and a payload in registered
 * memory, which with guard the CPU cannot read. With MIRROR.yaml a second session
 * sends all back by the port that it came by. Each must come once, whole and in order. What frames are
 * written through are the addresses of the "GPU's" threads, as gdrcap_tx_reserve() gives them.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <rte_gpudev.h>

#include "gdrcap.h"
#include "session/session.h"

#define MEMORY_BYTES (1u << 20)
#define PIECE 2048u
#define PIECES (MEMORY_BYTES / PIECE)
#define HEAD 42u
#define ROOM 256u /* frames under way: a kernel's socket holds so many */
#define MOST 32u

static struct gdrcap_session *session;
static struct gdrcap_tx *tx;
static struct gdrcap_queue *queue;
static uint8_t *memory, *writable; /* registered; the same for who writes it */
static bool in_use[PIECES];
static uint64_t sent, received, told;
static uint32_t frame_max;

__attribute__((noreturn)) static void fail(const char *what, int ret,
					   const struct gdrcap_error *error)
{
	fprintf(stderr, "send_play: %s: %d %s\n", what, ret, error ? error->text : "");
	exit(1);
}

static uint8_t byte_of(uint64_t number, uint32_t i)
{
	return (uint8_t)(number * 7 + (number >> 8) * 13 + i);
}

static uint32_t bytes_of(uint64_t number)
{
	return 64 + (uint32_t)(number % (frame_max - 64 + 1));
}

/* Bytes `from`, ... of frame `number`, which begins with headers that a switch would take. */
static void fill(uint8_t *to, uint64_t number, uint32_t from, uint32_t bytes)
{
	static const uint8_t head[14] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5 };

	for (uint32_t i = 0; i < bytes; i++)
		to[i] = from + i < 14	? head[from + i]
			: from + i < 22 ? (uint8_t)(number >> 8 * (from + i - 14))
					: byte_of(number, from + i);
}

static void check(const uint8_t *at, uint32_t bytes)
{
	uint8_t expected[16384];

	if (bytes != bytes_of(received))
		fail("a frame of another length", (int)bytes, NULL);
	fill(expected, received, 0, bytes);
	if (memcmp(at, expected, bytes) != 0)
		fail("a frame with others' bytes", (int)received, NULL);
	received++;
}

static void receive(void)
{
	const struct gdrcap_batch *batch[8];
	const int n = gdrcap_poll(queue, batch, 8);

	if (n < 0)
		fail("poll", n, NULL);
	for (int b = 0; b < n; b++)
		for (uint32_t i = 0; i < batch[b]->count; i++)
			/* Others' are on a kernel's interface too. */
			if (!memcmp(gdrcap_frame(batch[b], i) + 12, "\x88\xb5", 2))
				check(gdrcap_frame(batch[b], i), gdrcap_frame_bytes(batch[b], i));
	gdrcap_release(queue, batch, (unsigned int)n);
}

/* The other end, which sends each frame back by the port that it came by. */
static struct gdrcap_session *mirror;

static void reflect(void)
{
	struct gdrcap_tx *back = gdrcap_get_tx(mirror, 0);
	const struct gdrcap_batch *batch;
	struct gdrcap_error error;
	const int n = gdrcap_poll(gdrcap_get_queue(mirror, 0), &batch, 1);

	if (n < 0)
		fail("poll of the mirror", n, NULL);
	for (uint32_t i = 0; n && i < batch->count; i++) {
		struct gdrcap_tx_frame frame;
		int ret;

		if (memcmp(gdrcap_frame(batch, i) + 12, "\x88\xb5", 2) != 0)
			continue;
		while ((ret = gdrcap_tx_reserve(back, &frame, 1)) == 0)
			;
		frame.bytes = gdrcap_frame_bytes(batch, i);
		memcpy(frame.data, gdrcap_frame(batch, i), frame.bytes);
		ret = ret == 1 ? gdrcap_tx_submit(back, &frame, 1, &error) : ret;
		if (ret)
			fail("the mirror's submit", ret, &error);
	}
	gdrcap_release(gdrcap_get_queue(mirror, 0), &batch, (unsigned int)n);
}

static void mirror_create(const char *path)
{
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_error error;

	if (gdrcap_config_load(config, path, &error) || gdrcap_create(config, &mirror, &error) ||
	    gdrcap_start(mirror, &error))
		fail("the mirror", 1, &error);
	gdrcap_config_free(config);
}

static int hear(void)
{
	struct gdrcap_tx_done done[64];
	const int n = gdrcap_tx_poll(tx, done, 64);

	for (int i = 0; i < n; i++, told++) {
		if (done[i].code)
			fail("a frame was not sent", done[i].code, NULL);
		in_use[done[i].tag % PIECES] = false;
	}
	return n;
}

static void send_some(uint64_t left)
{
	struct gdrcap_tx_frame frames[MOST];
	struct gdrcap_error error;
	const unsigned int most = left < MOST ? (unsigned int)left : MOST;
	int n = gdrcap_tx_reserve(tx, frames, most), ready = 0, ret;

	for (int i = 0; i < n; i++, ready++) {
		struct gdrcap_tx_frame *frame = &frames[i];
		const uint64_t number = sent + (uint64_t)i;
		const uint32_t bytes = bytes_of(number), at = (uint32_t)(number % PIECES);

		frame->tag = number;
		frame->flags = GDRCAP_TX_TELL;
		frame->bytes = memory ? HEAD : bytes;
		if (memory && in_use[at])
			break;
		fill(frame->data, number, 0, frame->bytes);
		if (!memory)
			continue;
		in_use[at] = true;
		frame->payload = memory + at * PIECE;
		frame->payload_bytes = bytes - HEAD;
		fill(writable + at * PIECE, number, HEAD, bytes - HEAD);
	}
	if (n > ready)
		gdrcap_tx_cancel(tx, &frames[ready], (unsigned int)(n - ready));
	ret = sent & 1 ? gdrcap_tx_submit(tx, frames, (unsigned int)ready, &error)
		       : gdrcap_tx_submit_after(tx, frames, (unsigned int)ready, NULL, &error);
	if (ret)
		fail("submit", ret, &error);
	sent += (uint64_t)ready;
}

/* Half of the frames are through. Somebody takes the link away, ten frames wait for it, and he is told. */
static void link_break(void)
{
	struct gdrcap_event event = { 0 };
	struct gdrcap_tx_counts counts;
	uint64_t before;

	puts("half");
	fflush(stdout);
	while (event.kind != GDRCAP_EVENT_LINK_DOWN || !event.sends)
		gdrcap_get_event(session, &event, sizeof(event));
	/* The event comes just before the sender is held. */
	getchar();
	gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts));
	before = counts.stalled;
	send_some(10);
	while (counts.stalled < before + 2)
		gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts));
	if (counts.sent + 10 != counts.submitted)
		fail("frames went without a link", (int)counts.sent, NULL);
	puts("waits");
	fflush(stdout);
}

/* Until the port takes no more, or has all slots and gives none back, in so many looks on end. */
#define LOOKS 1000

static void fill_up(void)
{
	struct gdrcap_tx_counts counts = { 0 }, before;

	for (int looks = 0; looks < LOOKS; looks++) {
		before = counts;
		send_some(MOST);
		gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts));
		if (counts.sent == 0 || counts.submitted != before.submitted ||
		    counts.sent != before.sent)
			looks = 0;
		sched_yield();
	}
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Ends the run while frames wait, and says what became of them. */
static void stop_with_frames(void)
{
	const uint64_t since = now_ms();
	struct gdrcap_tx_counts counts;
	struct gdrcap_tx_done done;
	struct gdrcap_error error;
	uint64_t unsent = 0, ms;
	const int ret = gdrcap_stop(session, &error);

	ms = now_ms() - since;
	while (gdrcap_tx_poll(tx, &done, 1) > 0) {
		if (done.code == 0 && unsent)
			fail("a frame was sent after one that was not", (int)done.tag, NULL);
		unsent += done.code != 0;
	}
	gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts));
	if (counts.submitted != sent || counts.submitted != counts.sent + counts.unsent ||
	    unsent != counts.unsent)
		fail("frames are not accounted for", (int)unsent, NULL);
	for (uint32_t i = 0; gdrcap_get_message(session, i); i++)
		fprintf(stderr, "%s\n", gdrcap_get_message(session, i));
	printf("%" PRIu64 " unsent, %" PRIu64 " ms, %d\n", unsent, ms, ret);
	gdrcap_destroy(session);
}

/* Slots, by the address that they are written through, are no payloads. */
static void slots_refused(enum gdrcap_memory kind)
{
	struct gdrcap_tx_frame frame;
	int ret = gdrcap_tx_reserve(tx, &frame, 1);

	if (ret != 1)
		fail("reserve", ret, NULL);
	ret = gdrcap_tx_register(session, (void *)((uintptr_t)frame.data & ~(uintptr_t)65535),
				 65536, kind, NULL);
	if (ret != -EEXIST && ret != -ENOTSUP)
		fail("slots were registered", ret, NULL);
	gdrcap_tx_cancel(tx, &frame, 1);
}

static void memory_make(bool device)
{
	struct gdrcap_error error;
	int ret;

	slots_refused(device ? GDRCAP_MEMORY_DEVICE : GDRCAP_MEMORY_HOST);

	memory = device ? rte_gpu_mem_alloc(session->memory.gpu, MEMORY_BYTES, 65536)
			: aligned_alloc(65536, MEMORY_BYTES);
	writable = device ? rte_gpu_mem_cpu_map(session->memory.gpu, MEMORY_BYTES, memory) : memory;
	if (!memory || !writable)
		fail("memory", -ENOMEM, NULL);
	ret = gdrcap_tx_register(session, memory, MEMORY_BYTES,
				 device ? GDRCAP_MEMORY_DEVICE : GDRCAP_MEMORY_HOST, &error);
	if (ret)
		fail("register", ret, &error);
}

static bool keeps_some(void)
{
	return session_sending_port(session, 0)->facts->writes == DRIVER_WRITES_DMA;
}

/* Nobody has them any more, but for those that a ConnectX's driver keeps. */
static void memory_end(bool device)
{
	struct gdrcap_error error;
	int ret = 0;

	while (memory && told < sent - MOST)
		hear();
	while (memory && hear() > 0)
		;
	while (memory && told < sent && !keeps_some())
		hear();
	if (memory && told < sent) {
		ret = gdrcap_tx_unregister(session, memory, &error);
		if (ret != -EBUSY)
			fail("memory at a port was unregistered", ret, &error);
	} else if (memory) {
		ret = gdrcap_tx_unregister(session, memory, &error);
		if (ret)
			fail("unregister", ret, &error);
	}
	gdrcap_destroy(session);
	if (device)
		rte_gpu_mem_cpu_unmap(0, memory);
	else
		free(memory);
}

int main(int argc, char **argv)
{
	const uint64_t frames = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	const char *how = argc > 3 ? argv[3] : "whole";
	const bool device = strcmp(how, "device") == 0;
	const bool down = strcmp(how, "down") == 0;
	bool breaks = down || strcmp(how, "link") == 0;
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_tx_counts counts;
	struct gdrcap_error error;
	int ret;

	if (argc < 3 || gdrcap_config_load(config, argv[1], &error) ||
	    gdrcap_create(config, &session, &error))
		fail("create", 1, argc < 3 ? NULL : &error);
	gdrcap_config_free(config);
	frame_max = session->plan.frame_bytes_max - 4;
	tx = gdrcap_get_tx(session, 0);
	queue = gdrcap_get_queue(session, 0);
	if (argc > 4)
		mirror_create(argv[4]);
	if (device || strcmp(how, "host") == 0)
		memory_make(device);
	ret = gdrcap_start(session, &error);
	if (ret)
		fail("start", ret, &error);
	if (strcmp(how, "full") == 0) {
		fill_up();
		stop_with_frames();
		return 0;
	}
	while (received < frames) {
		if (breaks && sent == frames / 2 && received == sent) {
			link_break();
			breaks = false;
			if (down) {
				stop_with_frames();
				return 0;
			}
		}
		if (sent < (breaks ? frames / 2 : frames) && sent - received < ROOM)
			send_some((breaks ? frames / 2 : frames) - sent);
		if (mirror)
			reflect();
		receive();
		hear();
	}
	ret = gdrcap_stop(session, &error);
	if (ret)
		fail("stop", ret, &error);
	gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts));
	for (uint32_t i = 0; gdrcap_get_message(session, i); i++)
		fprintf(stderr, "%s\n", gdrcap_get_message(session, i));
	printf("%" PRIu64 " submitted, %" PRIu64 " sent, %" PRIu64 " received, %" PRIu64
	       " unsent, %" PRIu64 " failed\n",
	       counts.submitted, counts.sent, received, counts.unsent, counts.failed);
	gdrcap_destroy(mirror);
	memory_end(device);
	return 0;
}
