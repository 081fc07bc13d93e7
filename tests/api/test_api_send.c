/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending the caller's own frames through the public API. */
#include "api_send.h"

#include <poll.h>

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
		strstr(gdrcap_get_message(session, 0), "frames submitted and not sent: 1;"));
	assert_int_equal(gdrcap_tx_poll(tx, done, 2), 1);
	assert_int_equal(done[0].tag, 42);
	assert_int_equal(done[0].code, -ECANCELED);
	assert_int_equal(gdrcap_tx_poll(tx, done, 2), -ESHUTDOWN);
	counts_are(session, 2, 1, 1);
	gdrcap_destroy(session);
}

static void submit_told(struct gdrcap_tx *tx, uint64_t number, uint64_t time_ns)
{
	struct gdrcap_tx_frame frame;

	assert_int_equal(gdrcap_tx_reserve(tx, &frame, 1), 1);
	frame.bytes = bytes_of(number);
	frame.time_ns = time_ns;
	frame.flags = GDRCAP_TX_TELL;
	frame.tag = number;
	frame_fill(&frame, number);
	assert_int_equal(submit(tx, &frame, 1), 0);
}

static void told_next(struct gdrcap_tx *tx, uint64_t tag, int code)
{
	struct gdrcap_tx_done done;
	int n;

	while ((n = gdrcap_tx_poll(tx, &done, 1)) == 0)
		;
	assert_int_equal(n, 1);
	assert_int_equal(done.tag, tag);
	assert_int_equal(done.code, code);
}

/* What came back before the end, what the end left unsent as it was submitted, what comes back after the end. */
static void test_stop_order(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_tx_counts counts = { .at_port = 1 };
	const struct gdrcap_batch *held;
	struct gdrcap_session *session;
	struct gdrcap_tx_done done;
	struct gdrcap_queue *queue;
	struct gdrcap_tx *tx;
	uint64_t next = 0;

	send_config(&config);
	session = api_create(config);
	tx = gdrcap_get_tx(session, 0);
	queue = gdrcap_get_queue(session, 0);
	api_start(session);
	submit_told(tx, 0, 0);
	while (next == 0)
		receive(queue, &next);
	while (counts.at_port) {
		assert_int_equal(gdrcap_tx_poll(tx, &done, 0), 0);
		gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts));
	}
	submit_told(tx, 1, 0);
	assert_int_equal(gdrcap_wait(queue, &held, 1, -1), 1);
	submit_told(tx, 2, wall_ns() + 50000000000);
	submit_told(tx, 3, 0);
	submit_told(tx, 4, 0);
	assert_int_equal(gdrcap_stop(session, NULL), 0);
	told_next(tx, 0, 0);
	for (uint64_t number = 2; number < 5; number++)
		told_next(tx, number, -ECANCELED);
	assert_int_equal(gdrcap_tx_poll(tx, &done, 1), 0);
	gdrcap_release(queue, &held, 1);
	told_next(tx, 1, 0);
	assert_int_equal(gdrcap_tx_poll(tx, &done, 1), -ESHUTDOWN);
	counts_are(session, 5, 2, 3);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	   cmocka_unit_test(test_back_pressure),
		cmocka_unit_test(test_times),	   cmocka_unit_test(test_stop),
		cmocka_unit_test(test_stop_order), cmocka_unit_test(test_fd),
		cmocka_unit_test(test_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
