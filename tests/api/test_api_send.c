/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending the caller's own frames through the public API. */
#include "api.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

#define FRAME_BYTES 100u

/* Frames of the caller's over "ring:test", to his own threads. */
static void send_config(struct gdrcap_config **config)
{
	gdrcap_config_free(*config);
	*config = gdrcap_config_new();
	assert_non_null(*config);
	api_set(*config, "port", "ring:test");
	api_set(*config, "tx_port", "ring:test");
	api_set(*config, "gpu", "host");
	api_set(*config, "frame.size", "%u", API_FRAME);
	api_set(*config, "consumer", "host");
	api_set(*config, "sender", "host");
}

/* Each byte of frame `number` follows from both. */
static uint8_t byte_of(uint64_t number, uint32_t i)
{
	return (uint8_t)(number * 7 + (number >> 8) * 13 + i);
}

static void frame_fill(const struct gdrcap_tx_frame *frame, uint64_t number)
{
	for (uint32_t i = 0; i < frame->bytes; i++)
		frame->data[i] = byte_of(number, i);
	memcpy(frame->data, &number, sizeof(number));
}

/* Its number; the rest is as it was filled. */
static uint64_t frame_number(const uint8_t *at, uint32_t bytes)
{
	uint64_t number;

	memcpy(&number, at, sizeof(number));
	for (uint32_t i = sizeof(number); i < bytes; i++)
		if (at[i] != byte_of(number, i))
			return UINT64_MAX;
	return number;
}

static uint32_t bytes_of(uint64_t number)
{
	return 60 + (uint32_t)(number % (API_FRAME - 4 - 60 + 1));
}

/* Takes what is there; the frames are `*next`, ... and nothing else. */
static void receive(struct gdrcap_queue *queue, uint64_t *next)
{
	const struct gdrcap_batch *batch[8];
	int n = gdrcap_wait(queue, batch, 8, 10000);

	assert_true(n >= 0);
	for (int b = 0; b < n; b++)
		for (uint32_t i = 0; i < batch[b]->count; i++, (*next)++) {
			assert_int_equal(gdrcap_frame_bytes(batch[b], i), bytes_of(*next));
			assert_int_equal(frame_number(gdrcap_frame(batch[b], i),
						      gdrcap_frame_bytes(batch[b], i)),
					 *next);
		}
	gdrcap_release(queue, batch, (unsigned int)n);
}

static void counts_are(struct gdrcap_session *session, uint64_t submitted, uint64_t sent,
		       uint64_t unsent)
{
	struct gdrcap_tx_counts counts;

	assert_int_equal(gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts)), 0);
	assert_int_equal(counts.submitted, submitted);
	assert_int_equal(counts.sent, sent);
	assert_int_equal(counts.unsent, unsent);
	assert_int_equal(counts.failed, 0);
	assert_int_equal(gdrcap_get_tx_counts(session, 1, &counts, sizeof(counts)), -ENOENT);
}

static int submit(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames, unsigned int count)
{
	struct gdrcap_error error = { 0 };
	const int ret = gdrcap_tx_submit(tx, frames, count, &error);

	if (ret)
		print_error("submit: %d, %s\n", ret, error.text);
	return ret;
}

/* More frames than there are slots, of all lengths: each comes once, whole and in order. */
static void test_order(void **state)
{
	const uint64_t all = 200000;
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_tx_frame frames[48];
	uint64_t number = 0, next = 0, told = 0;
	struct gdrcap_session *session;
	struct gdrcap_queue *queue;
	struct gdrcap_tx *tx;

	send_config(&config);
	session = api_create(config);
	queue = gdrcap_get_queue(session, 0);
	tx = gdrcap_get_tx(session, 0);
	assert_non_null(tx);
	assert_null(gdrcap_get_tx(session, 1));
	api_start(session);
	while (next < all) {
		struct gdrcap_tx_done done[64];
		int n = gdrcap_tx_reserve(tx, frames, 48);

		assert_true(n >= 0);
		for (int i = 0; i < n; i++) {
			assert_int_equal(frames[i].bytes, API_FRAME - 4);
			frames[i].bytes = bytes_of(number);
			frames[i].tag = number;
			frames[i].flags = GDRCAP_TX_TELL;
			frame_fill(&frames[i], number++);
		}
		assert_int_equal(submit(tx, frames, (unsigned int)n), 0);
		receive(queue, &next);
		while ((n = gdrcap_tx_poll(tx, done, 64)) > 0)
			for (int i = 0; i < n; i++, told++) {
				/* A wire gives slots back in the order of its receiver's releases. */
				assert_int_equal(done[i].tag, told);
				assert_int_equal(done[i].code, 0);
			}
	}
	while (next < number)
		receive(queue, &next);
	api_stop(session);
	counts_are(session, number, number, 0);
	while (told < number) {
		struct gdrcap_tx_done done;
		const int n = gdrcap_tx_poll(tx, &done, 1);

		assert_true(n >= 0);
		told += (uint64_t)n;
	}
	assert_int_equal(gdrcap_tx_poll(tx, (struct gdrcap_tx_done[1]){ { 0 } }, 1), -ESHUTDOWN);
	assert_int_equal(gdrcap_tx_reserve(tx, frames, 1), -ESHUTDOWN);
	gdrcap_destroy(session);
}

static void refused(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames, unsigned int count,
		    int code, const char *part)
{
	struct gdrcap_error error = { 0 };

	api_failed(gdrcap_tx_submit(tx, frames, count, &error), code, &error, part);
	assert_int_equal(gdrcap_tx_submit(tx, frames, count, NULL), code);
}

/* What a caller can do wrong: an error, and nothing of it is sent. */
static void test_refused(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_tx_frame frames[3], wrong[3];
	struct gdrcap_session *session;
	uint64_t next = 0;
	struct gdrcap_tx *tx;

	send_config(&config);
	session = api_create(config);
	tx = gdrcap_get_tx(session, 0);
	assert_int_equal(gdrcap_tx_reserve(tx, frames, 3), 3);
	for (uint64_t i = 0; i < 3; i++) {
		frames[i].bytes = bytes_of(i);
		frame_fill(&frames[i], i);
	}
	memcpy(wrong, frames, sizeof(wrong));
	wrong[2].bytes = 59;
	refused(tx, wrong, 3, -EMSGSIZE, "frame 2: it has 59 bytes");
	wrong[2].bytes = API_FRAME - 3;
	refused(tx, wrong, 3, -EMSGSIZE, "to 196");
	wrong[2] = wrong[0];
	refused(tx, wrong, 3, -EINVAL, "frame 2: its slot is not reserved");
	wrong[2].slot = UINT32_MAX;
	refused(tx, wrong, 3, -EINVAL, "frame 2");
	wrong[2] = frames[2];
	wrong[2].data = frames[1].data;
	refused(tx, wrong, 3, -EINVAL, "frame 2");
	wrong[2] = frames[2];
	wrong[2].flags = 2;
	refused(tx, wrong, 3, -EINVAL, "flags 0x2");
	wrong[2] = frames[2];
	wrong[2].time_ns = UINT64_MAX;
	refused(tx, wrong, 3, -EINVAL, "60 s ahead");
	refused(tx, NULL, 1, -EINVAL, "give the frames");
	assert_int_equal(gdrcap_tx_submit(NULL, frames, 1, NULL), -EINVAL);
	assert_int_equal(gdrcap_tx_reserve(NULL, frames, 1), -EINVAL);
	assert_int_equal(gdrcap_tx_reserve(tx, NULL, 1), -EINVAL);
	assert_int_equal(gdrcap_tx_fd(NULL), -EINVAL);
	/* Before the start: it goes when there is one. */
	assert_int_equal(submit(tx, frames, 2), 0);
	refused(tx, frames, 2, -EINVAL, "submitted already");
	assert_int_equal(gdrcap_tx_cancel(tx, frames, 3), -EINVAL);
	assert_int_equal(gdrcap_tx_cancel(tx, &frames[2], 1), 0);
	assert_int_equal(gdrcap_tx_cancel(tx, &frames[2], 1), -EINVAL);
	refused(tx, &frames[2], 1, -EINVAL, "frame 0");
	api_start(session);
	while (next < 2)
		receive(gdrcap_get_queue(session, 0), &next);
	assert_int_equal(gdrcap_tx_reserve(tx, frames, 1), 1);
	api_stop(session);
	refused(tx, frames, 1, -ESHUTDOWN, "gdrcap_tx_cancel");
	assert_int_equal(gdrcap_tx_cancel(tx, frames, 1), 0);
	counts_are(session, 2, 2, 0);
	gdrcap_destroy(session);
}

/* Nobody receives: slots run out, which is told by a number; at the end each frame is accounted for. */
static void test_back_pressure(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_tx_frame frames[64];
	struct gdrcap_tx_counts counts;
	struct gdrcap_session *session;
	struct gdrcap_tx_done done;
	uint64_t number = 0, next = 0, cancelled = 0, sent = 0;
	struct gdrcap_tx *tx;
	int n;

	send_config(&config);
	session = api_create(config);
	tx = gdrcap_get_tx(session, 0);
	while ((n = gdrcap_tx_reserve(tx, frames, 64)) > 0) {
		for (int i = 0; i < n; i++) {
			frames[i].bytes = bytes_of(number);
			frames[i].flags = GDRCAP_TX_TELL;
			frame_fill(&frames[i], number++);
		}
		assert_int_equal(submit(tx, frames, (unsigned int)n), 0);
	}
	assert_int_equal(n, 0);
	assert_true(number > 1000);
	api_start(session);
	/* What the wire holds it takes, and no more: the caller keeps what he gets. */
	while (next < 100)
		receive(gdrcap_get_queue(session, 0), &next);
	assert_int_equal(gdrcap_stop(session, NULL), 0);
	do
		receive(gdrcap_get_queue(session, 0), &next);
	while (gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts)) == 0 &&
	       next < counts.sent);
	assert_int_equal(counts.submitted, number);
	assert_int_equal(counts.sent + counts.unsent, number);
	while ((n = gdrcap_tx_poll(tx, &done, 1)) >= 0) {
		cancelled += n && done.code == -ECANCELED;
		sent += n && done.code == 0;
	}
	assert_int_equal(n, -ESHUTDOWN);
	assert_int_equal(sent, counts.sent);
	assert_int_equal(cancelled, counts.unsent);
	gdrcap_destroy(session);
}

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A frame with a time comes no earlier, and one behind it does not pass it. */
static void test_times(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_tx_frame frames[3];
	struct gdrcap_session *session;
	uint64_t next = 0, due;
	struct gdrcap_tx *tx;

	send_config(&config);
	session = api_create(config);
	tx = gdrcap_get_tx(session, 0);
	api_start(session);
	assert_int_equal(gdrcap_tx_reserve(tx, frames, 3), 3);
	for (uint64_t i = 0; i < 3; i++) {
		frames[i].bytes = bytes_of(i);
		frame_fill(&frames[i], i);
	}
	due = wall_ns() + 200000000;
	frames[0].time_ns = 1; /* has passed */
	frames[1].time_ns = due;
	assert_int_equal(submit(tx, frames, 3), 0);
	while (next < 3) {
		receive(gdrcap_get_queue(session, 0), &next);
		/* The clock may be set meanwhile, by a little. */
		assert_true(next <= 1 || wall_ns() >= due - 1000000);
	}
	api_stop(session);
	counts_are(session, 3, 3, 0);
	gdrcap_destroy(session);
}

/* One whose time is far away holds up no stop. */
static void test_stop(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_tx_done done[2];
	struct gdrcap_tx_frame frame;
	struct gdrcap_session *session;
	struct gdrcap_tx *tx;
	uint64_t next = 0;

	send_config(&config);
	session = api_create(config);
	tx = gdrcap_get_tx(session, 0);
	api_start(session);
	/* The sender is at work. */
	assert_int_equal(gdrcap_tx_reserve(tx, &frame, 1), 1);
	frame.bytes = bytes_of(0);
	frame_fill(&frame, 0);
	assert_int_equal(submit(tx, &frame, 1), 0);
	while (next == 0)
		receive(gdrcap_get_queue(session, 0), &next);
	assert_int_equal(gdrcap_tx_reserve(tx, &frame, 1), 1);
	frame.bytes = bytes_of(0);
	frame.time_ns = wall_ns() + 50000000000;
	frame.flags = GDRCAP_TX_TELL;
	frame.tag = 42;
	frame_fill(&frame, 0);
	assert_int_equal(submit(tx, &frame, 1), 0);
	assert_int_equal(gdrcap_tx_poll(tx, done, 2), 0);
	assert_int_equal(gdrcap_stop(session, NULL), 0);
	assert_non_null(
		strstr(gdrcap_get_message(session, 0), "1 frames were submitted and not sent"));
	assert_int_equal(gdrcap_tx_poll(tx, done, 2), 1);
	assert_int_equal(done[0].tag, 42);
	assert_int_equal(done[0].code, -ECANCELED);
	assert_int_equal(gdrcap_tx_poll(tx, done, 2), -ESHUTDOWN);
	counts_are(session, 2, 1, 1);
	gdrcap_destroy(session);
}

/* A descriptor that is readable when slots came back, and not before. */
static void test_fd(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_session *session;
	struct gdrcap_tx_frame frame;
	struct gdrcap_tx_done done;
	const struct gdrcap_batch *batch;
	struct pollfd fd = { .events = POLLIN };
	struct gdrcap_tx *tx;

	send_config(&config);
	session = api_create(config);
	tx = gdrcap_get_tx(session, 0);
	fd.fd = gdrcap_tx_fd(tx);
	assert_true(fd.fd >= 0);
	assert_int_equal(gdrcap_tx_fd(tx), fd.fd);
	api_start(session);
	assert_int_equal(gdrcap_tx_reserve(tx, &frame, 1), 1);
	frame.bytes = bytes_of(0);
	frame.flags = GDRCAP_TX_TELL;
	frame_fill(&frame, 0);
	assert_int_equal(submit(tx, &frame, 1), 0);
	assert_int_equal(gdrcap_wait(gdrcap_get_queue(session, 0), &batch, 1, -1), 1);
	/* The receiver has it: its slot cannot be back. */
	while (gdrcap_tx_poll(tx, &done, 1) != 0 || poll(&fd, 1, 0) != 0)
		;
	assert_int_equal(poll(&fd, 1, 20), 0);
	gdrcap_release(gdrcap_get_queue(session, 0), &batch, 1);
	assert_int_equal(poll(&fd, 1, 60000), 1);
	assert_int_equal(gdrcap_tx_poll(tx, &done, 1), 1);
	while (gdrcap_tx_poll(tx, &done, 1) != 0 || poll(&fd, 1, 0) != 0)
		;
	api_stop(session);
	assert_int_equal(poll(&fd, 1, 60000), 1);
	assert_int_equal(gdrcap_tx_poll(tx, &done, 1), -ESHUTDOWN);
	gdrcap_destroy(session);
}

/* RFC 1071, read from its text: the sum of all 16-bit words, carries added. */
static uint32_t sum16(const uint8_t *at, size_t bytes, uint32_t sum)
{
	for (size_t i = 0; i < bytes; i++)
		sum += i % 2 ? at[i] : (uint32_t)at[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void test_headers(void **state)
{
	struct gdrcap_tx_headers headers = {
		.dst_mac = { 1, 2, 3, 4, 5, 6 },
		.src_mac = { 7, 8, 9, 10, 11, 12 },
		.ethertype = 0x88b5,
	};
	uint8_t frame[GDRCAP_TX_HEADERS_MAX + 33], *ip = frame + 18, *udp = ip + 20;
	const uint8_t ethernet[14] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x88, 0xb5 };

	assert_int_equal(gdrcap_tx_write_headers(frame, &headers, NULL, 1), 14);
	assert_memory_equal(frame, ethernet, 14);
	headers.tagged = 1;
	headers.vlan = 0xe007;
	assert_int_equal(gdrcap_tx_write_headers(frame, &headers, NULL, 1), 18);
	assert_memory_equal(frame, ethernet, 12);
	assert_memory_equal(frame + 12, "\x81\x00\xe0\x07\x88\xb5", 6);
	headers.ethertype = 0;
	headers.src_ip = 0x0a000001;
	headers.dst_ip = 0xc0a8fffe;
	headers.src_port = 1234;
	headers.dst_port = 65535;
	/* Of an odd number of bytes, all of which count. */
	for (uint32_t bytes = 0; bytes <= 33; bytes++) {
		uint8_t pseudo[12];

		for (uint32_t i = 0; i < bytes; i++)
			frame[46 + i] = (uint8_t)(0xff - i * bytes);
		assert_int_equal(gdrcap_tx_write_headers(frame, &headers, frame + 46, bytes), 46);
		assert_int_equal(api_be(frame + 16, 2), 0x0800);
		assert_int_equal(ip[0], 0x45);
		assert_int_equal(api_be(ip + 2, 2), 28 + bytes);
		assert_int_equal(ip[8], 64);
		assert_int_equal(ip[9], 17);
		assert_int_equal(sum16(ip, 20, 0), 0xffff);
		assert_int_equal(api_be(ip + 12, 4), 0x0a000001);
		assert_int_equal(api_be(ip + 16, 4), 0xc0a8fffe);
		assert_int_equal(api_be(udp, 2), 1234);
		assert_int_equal(api_be(udp + 2, 2), 65535);
		assert_int_equal(api_be(udp + 4, 2), 8 + bytes);
		memcpy(pseudo, ip + 12, 8);
		memcpy(pseudo + 8, "\0\x11", 2);
		memcpy(pseudo + 10, udp + 4, 2);
		assert_int_equal(sum16(udp, 8 + bytes, sum16(pseudo, 12, 0)), 0xffff);
		assert_int_not_equal(api_be(udp + 6, 2), 0);
		assert_int_equal(gdrcap_tx_write_headers(frame, &headers, NULL, bytes), 46);
		assert_int_equal(api_be(udp + 6, 2), 0);
	}
	/* A sum of 0 is sent as 0xffff: 0 says that there is none. */
	assert_int_equal(gdrcap_tx_write_headers(frame, &headers, "\0\0", 2), 46);
	frame[46] = udp[6];
	frame[47] = udp[7];
	assert_int_equal(gdrcap_tx_write_headers(frame, &headers, frame + 46, 2), 46);
	assert_int_equal(api_be(udp + 6, 2), 0xffff);
	headers.ethertype = 0x5ff;
	assert_int_equal(gdrcap_tx_write_headers(frame, &headers, NULL, 1), -EINVAL);
	headers.ethertype = 0;
	assert_int_equal(gdrcap_tx_write_headers(frame, &headers, NULL, 65508), -EINVAL);
	assert_int_equal(gdrcap_tx_write_headers(frame, NULL, NULL, 1), -EINVAL);
	assert_int_equal(gdrcap_tx_write_headers(NULL, &headers, NULL, 1), -EINVAL);
}

#define MEMORY_BYTES (256u << 10)

static void register_fails(struct gdrcap_session *session, void *at, uint64_t bytes,
			   enum gdrcap_memory kind, int code, const char *part)
{
	struct gdrcap_error error = { 0 };

	api_failed(gdrcap_tx_register(session, at, bytes, kind, &error), code, &error, part);
	assert_int_equal(gdrcap_tx_register(session, at, bytes, kind, NULL), code);
}

/* Frames in two pieces: what comes, and what is refused. */
static void test_two_pieces(void **state)
{
	uint8_t *memory = aligned_alloc(65536, MEMORY_BYTES);
	API_FREED struct gdrcap_config *config = gdrcap_config_new();
	char folder[] = "/tmp/gdrcap-send-XXXXXX", path[64];
	const struct gdrcap_batch *batch;
	struct gdrcap_tx_frame frames[2], wrong;
	struct gdrcap_error error = { 0 };
	struct gdrcap_session *session;
	struct gdrcap_tx_done done;
	struct gdrcap_tx *tx;
	int n;

	assert_non_null(memory);
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "socket-abstract=no,socket=%s/s", folder);
	api_set(config, "port", "net_memif0,role=server,%s", path);
	api_set(config, "tx_port", "net_memif1,role=client,%s", path);
	api_set(config, "consumer", "host");
	api_set(config, "gpu", "host");
	api_set(config, "memory", "host");
	api_set(config, "frame.size", "%u", API_FRAME);
	api_set(config, "sender", "host");
	session = api_create(config);
	tx = gdrcap_get_tx(session, 0);
	for (uint32_t i = 0; i < MEMORY_BYTES; i++)
		memory[i] = byte_of(i >> 8, i & 255);
	assert_int_equal(gdrcap_tx_reserve(tx, frames, 2), 2);
	for (uint32_t i = 0; i < 18; i++)
		frames[0].data[i] = (uint8_t)(0xf0 + i);
	frames[0].bytes = 18;
	frames[0].flags = GDRCAP_TX_TELL;
	frames[0].payload = memory + 65536 + 300;
	frames[0].payload_bytes = 82;
	frames[1].bytes = 60;
	frames[1].flags = GDRCAP_TX_TELL;
	memset(frames[1].data, 0x11, 60);
	refused(tx, frames, 2, -EFAULT, "frame 0: its payload is not in registered memory");
	register_fails(session, memory, MEMORY_BYTES, GDRCAP_MEMORY_DEVICE, -ENOTSUP,
		       "port net_memif1");
	register_fails(session, memory, MEMORY_BYTES, GDRCAP_MEMORY_AUTO, -EINVAL,
		       "device, pinned");
	register_fails(session, memory + 4096, 65536, GDRCAP_MEMORY_HOST, -EINVAL, "64 KiB");
	register_fails(session, memory, 65537, GDRCAP_MEMORY_HOST, -EINVAL, "64 KiB");
	register_fails(session, memory, 0, GDRCAP_MEMORY_HOST, -EINVAL, "64 KiB");
	register_fails(session, memory, UINT64_MAX - 65535, GDRCAP_MEMORY_HOST, -EINVAL, "64 KiB");
	register_fails(session, NULL, 65536, GDRCAP_MEMORY_HOST, -EINVAL, "64 KiB");
	assert_int_equal(gdrcap_tx_register(session, memory, 131072, GDRCAP_MEMORY_HOST, NULL), 0);
	register_fails(session, memory + 65536, 131072, GDRCAP_MEMORY_HOST, -EEXIST, "already");
	register_fails(session, (void *)((uintptr_t)frames[0].data & ~(uintptr_t)65535), 65536,
		       GDRCAP_MEMORY_HOST, -EEXIST, "the session's own");
	wrong = frames[0];
	wrong.payload = memory + 131072 - 81;
	refused(tx, &wrong, 1, -EFAULT, "reaches over its end");
	wrong.payload = memory + 131072;
	refused(tx, &wrong, 1, -EFAULT, "not in registered");
	wrong = frames[0];
	wrong.bytes = 17;
	refused(tx, &wrong, 1, -EMSGSIZE, "17 and 82");
	wrong = frames[0];
	wrong.payload_bytes = UINT32_MAX;
	refused(tx, &wrong, 1, -EMSGSIZE, "frame 0");
	wrong.payload_bytes = 41;
	refused(tx, &wrong, 1, -EMSGSIZE, "it has 59 bytes");
	wrong = frames[1];
	wrong.payload = memory;
	refused(tx, &wrong, 1, -EMSGSIZE, "60 and 0");
	/* What was refused has lent nothing. */
	assert_int_equal(gdrcap_tx_unregister(session, memory, NULL), 0);
	assert_int_equal(gdrcap_tx_unregister(session, memory, NULL), -ENOENT);
	refused(tx, frames, 2, -EFAULT, "not in registered");
	assert_int_equal(
		gdrcap_tx_register(session, memory, MEMORY_BYTES, GDRCAP_MEMORY_HOST, NULL), 0);
	assert_int_equal(submit(tx, frames, 2), 0);
	api_failed(gdrcap_tx_unregister(session, memory, &error), -EBUSY, &error, "1 frames");
	api_start(session);
	for (int told = 0; told < 2; told += n) {
		n = gdrcap_tx_poll(tx, &done, 1);
		assert_true(n >= 0);
	}
	assert_int_equal(gdrcap_tx_unregister(session, memory, &error), 0);
	for (int i = 0; i < 2; i++) {
		const uint8_t *at;

		assert_int_equal(gdrcap_wait(gdrcap_get_queue(session, 0), &batch, 1, -1), 1);
		assert_in_range(batch->count, 1, 2 - i);
		at = gdrcap_frame(batch, 0);
		if (i == 0) {
			assert_int_equal(gdrcap_frame_bytes(batch, 0), 100);
			for (uint32_t k = 0; k < 18; k++)
				assert_int_equal(at[k], (uint8_t)(0xf0 + k));
			for (uint32_t k = 0; k < 82; k++)
				assert_int_equal(at[18 + k], byte_of((65536 + 300 + k) >> 8,
								     (65536 + 300 + k) & 255));
		}
		i += (int)batch->count - 1;
		at = gdrcap_frame(batch, batch->count - 1);
		if (i == 1) {
			assert_int_equal(gdrcap_frame_bytes(batch, batch->count - 1), 60);
			assert_int_equal(at[0], 0x11);
			assert_int_equal(at[59], 0x11);
		}
		gdrcap_release(gdrcap_get_queue(session, 0), &batch, 1);
	}
	api_stop(session);
	counts_are(session, 2, 2, 0);
	gdrcap_destroy(session);
	rmdir(folder);
	free(memory);
}

/* A port that takes nothing: what waits is counted, and told at the end. */
static void test_nobody_takes(void **state)
{
	API_FREED struct gdrcap_config *config = gdrcap_config_new();
	char folder[] = "/tmp/gdrcap-send-XXXXXX", path[64];
	struct gdrcap_tx_counts counts = { 0 };
	struct gdrcap_session *session;
	struct gdrcap_tx_frame frame;
	struct gdrcap_tx_done done;
	struct gdrcap_tx *tx;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	/* A memif's server whose client never comes: its link is down. */
	api_set(config, "tx_port", "net_memif0,role=server,socket-abstract=no,socket=%s", path);
	api_set(config, "gpu", "host");
	api_set(config, "sender", "host");
	api_set(config, "sender.memory", "host");
	session = api_create(config);
	tx = gdrcap_get_tx(session, 0);
	api_start(session);
	assert_int_equal(gdrcap_tx_reserve(tx, &frame, 1), 1);
	memset(frame.data, 0, 60);
	frame.bytes = 60;
	frame.flags = GDRCAP_TX_TELL;
	frame.tag = 7;
	assert_int_equal(submit(tx, &frame, 1), 0);
	while (counts.stalled == 0)
		assert_int_equal(gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts)), 0);
	assert_int_equal(gdrcap_tx_poll(tx, &done, 1), 0);
	assert_int_equal(gdrcap_stop(session, NULL), 0);
	counts_are(session, 1, 0, 1);
	assert_int_equal(gdrcap_tx_poll(tx, &done, 1), 1);
	assert_int_equal(done.code, -ECANCELED);
	assert_int_equal(done.tag, 7);
	assert_int_equal(gdrcap_tx_poll(tx, &done, 1), -ESHUTDOWN);
	gdrcap_destroy(session);
	rmdir(folder);
}

/* What does not go together. */
static void test_config(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;

	send_config(&config);
	api_set(config, "port", "net_null0");
	api_unset(config, "tx_port");
	api_create_fails(config, -EINVAL, "needs a port to send from");
	send_config(&config);
	api_set(config, "streams", "2");
	api_create_fails(config, -EINVAL, "streams:");
	send_config(&config);
	api_set(config, "rate", "1gbit");
	api_create_fails(config, -EINVAL, "rate:");
	send_config(&config);
	api_set(config, "sender.memory", "host");
	api_create_fails(config, -EINVAL, "sender.memory: port ring:test");
	api_set(config, "sender", "replay");
	api_create_fails(config, -EINVAL, "sender.memory: is of the caller's");
	gdrcap_config_free(config);
	config = gdrcap_config_new();
	api_set(config, "tx_port", "net_null0");
	api_set(config, "sender", "host");
	api_set(config, "frames", "10");
	api_create_fails(config, -EINVAL, "frames:");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	      cmocka_unit_test(test_refused),
		cmocka_unit_test(test_back_pressure), cmocka_unit_test(test_times),
		cmocka_unit_test(test_stop),	      cmocka_unit_test(test_fd),
		cmocka_unit_test(test_config),	      cmocka_unit_test(test_headers),
		cmocka_unit_test(test_two_pieces),    cmocka_unit_test(test_nobody_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
