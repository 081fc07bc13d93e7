/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending the caller's frames by cards, which are software and of this program: faults are planted. */
#include "api_events.h"
#include "api_send.h"

#include <stdbool.h>

#include "nic.h"

#define LEFT "0000:aa:00.0"
#define RIGHT "0000:aa:00.1"
#define SOME 20000u /* frames: more than there are slots */

static void plant(const char *faults)
{
	nic_lock();
	assert_int_equal(soft_faults_parse(faults), 0);
	nic_unlock();
}

/* One end: a session whose port receives and sends. */
struct end {
	struct gdrcap_session *session;
	struct gdrcap_tx *tx;
	struct gdrcap_queue *queue;
	uint64_t submitted; /* the number of the next frame */
	uint64_t next;	    /* the least that may come next from the other end */
	uint64_t came, missing, told;
};

static void end_open(struct end *end, const char *port)
{
	API_FREED struct gdrcap_config *config = gdrcap_config_new();

	assert_non_null(config);
	api_set(config, "port", "%s", port);
	api_set(config, "tx_port", "%s", port);
	api_set(config, "gpu", "host");
	api_set(config, "frame.size", "%u", API_FRAME);
	api_set(config, "consumer", "host");
	send_by_caller(config);
	*end = (struct end){ .session = api_create(config) };
	end->tx = gdrcap_get_tx(end->session, 0);
	end->queue = gdrcap_get_queue(end->session, 0);
	assert_non_null(end->tx);
}

static void end_counts(const struct end *end, struct gdrcap_tx_counts *counts)
{
	assert_int_equal(gdrcap_get_tx_counts(end->session, 0, counts, sizeof(*counts)), 0);
}

/* Until there is no slot, or the run is over, which may be between the two calls. */
static void end_send(struct end *end, uint64_t most)
{
	struct gdrcap_tx_frame frame;
	int code;

	while (end->submitted < most && gdrcap_tx_reserve(end->tx, &frame, 1) == 1) {
		frame.bytes = bytes_of(end->submitted);
		frame.tag = end->submitted;
		frame.flags = GDRCAP_TX_TELL;
		frame_fill(&frame, end->submitted);
		code = submit(end->tx, &frame, 1);
		if (code == -ESHUTDOWN) {
			assert_int_equal(gdrcap_tx_cancel(end->tx, &frame, 1), 0);
			return;
		}
		assert_int_equal(code, 0);
		end->submitted++;
	}
}

/* Each frame is whole, and behind those that came: so none comes twice. */
static void end_receive(struct end *end)
{
	const struct gdrcap_batch *batch[8];
	const int n = gdrcap_poll(end->queue, batch, 8);

	assert_true(n >= 0);
	for (int b = 0; b < n; b++)
		for (uint32_t i = 0; i < batch[b]->count; i++) {
			const uint64_t number = frame_number(gdrcap_frame(batch[b], i),
							     gdrcap_frame_bytes(batch[b], i));

			assert_true(number != UINT64_MAX && number >= end->next);
			assert_int_equal(gdrcap_frame_bytes(batch[b], i), bytes_of(number));
			end->missing += number - end->next;
			end->next = number + 1;
			end->came++;
		}
	gdrcap_release(end->queue, batch, (unsigned int)n);
}

/* Frames are told in their order, each once. */
static void end_hear(struct end *end)
{
	struct gdrcap_tx_done done[64];
	int n;

	while ((n = gdrcap_tx_poll(end->tx, done, 64)) > 0)
		for (int i = 0; i < n; i++) {
			assert_int_equal(done[i].tag, end->told);
			assert_int_equal(done[i].code, 0);
			end->told++;
		}
}

/* A step in both directions. A queue gives no slot while the card waits for the other end's buffers. */
static void step(struct end ends[2])
{
	for (int i = 0; i < 2; i++) {
		end_send(&ends[i], ends[i].submitted + 8);
		end_receive(&ends[i]);
		end_hear(&ends[i]);
	}
}

static void both_go_on(struct end ends[2])
{
	const uint64_t came[2] = { ends[0].came, ends[1].came };

	while (ends[0].came < came[0] + SOME || ends[1].came < came[1] + SOME)
		step(ends);
}

static void both_open(struct end ends[2], const char *devargs)
{
	char port[64];

	plant("pause=1,link=1");
	snprintf(port, sizeof(port), "%s%s", LEFT, devargs);
	end_open(&ends[0], port);
	snprintf(port, sizeof(port), "%s%s", RIGHT, devargs);
	end_open(&ends[1], port);
	api_start(ends[0].session);
	api_start(ends[1].session);
}

static bool happened(struct end *end, enum gdrcap_event_kind kind)
{
	struct gdrcap_event event;

	while (gdrcap_get_event(end->session, &event, sizeof(event)) == 1) {
		if (event.kind == GDRCAP_EVENT_END)
			fail_msg("kind %u did not come: %s", (unsigned int)kind, event.text);
		if (event.kind == (uint32_t)kind)
			return true;
	}
	return false;
}

/* What was submitted goes, but for what was lost on its way. */
static void both_stop(struct end ends[2])
{
	struct gdrcap_tx_counts counts;

	for (int i = 0; i < 2; i++) {
		do {
			end_receive(&ends[!i]);
			end_counts(&ends[i], &counts);
		} while (counts.sent != ends[i].submitted);
		assert_int_equal(counts.submitted, ends[i].submitted);
		assert_int_equal(counts.unsent, 0);
		/* The driver counts pieces of its queue: nobody knows how many frames. */
		assert_int_equal(counts.failed_known, 0);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(gdrcap_stop(ends[i].session, NULL), 0);
		end_counts(&ends[i], &counts);
		assert_int_equal(counts.sent, ends[i].submitted);
	}
	for (int i = 0; i < 2; i++)
		gdrcap_destroy(ends[i].session);
}

static bool told(const struct gdrcap_session *session, const char *part)
{
	for (uint32_t i = 0; gdrcap_get_message(session, i); i++)
		if (strstr(gdrcap_get_message(session, i), part))
			return true;
	return false;
}

/* The number in the message of a port that was started again, 0 without one. */
static uint64_t unknown_frames(const struct gdrcap_session *session)
{
	static const char before[] = "whether they were sent: ";

	for (uint32_t i = 0; gdrcap_get_message(session, i); i++) {
		const char *at = strstr(gdrcap_get_message(session, i), before);

		if (at)
			return strtoull(at + strlen(before), NULL, 10);
	}
	return 0;
}

/* A port that also sends is started again: its sender waits meanwhile, and goes on. */
static void test_restarted(void **state)
{
	struct end ends[2];
	uint64_t unknown;

	both_open(ends, "");
	both_go_on(ends);
	assert_int_equal(ends[0].missing + ends[1].missing, 0);
	do {
		plant("1.rx_error=off");
		plant("1.rx_error=100");
		while (!happened(&ends[1], GDRCAP_EVENT_QUEUE_RESTARTED))
			step(ends);
		both_go_on(ends);
		/* What it sends: no more is missing than it said. Its driver seldom has all back at once, and then says
		 * nothing. */
		unknown = unknown_frames(ends[1].session);
		assert_in_range(ends[0].missing, 0, unknown);
	} while (unknown == 0);
	/* What it receives: some were lost. */
	assert_true(ends[1].missing > 0);
	both_stop(ends);
	plant("1.rx_error=off");
}

/* An error of the send queue: its driver starts it again, and what was in it is lost, not sent twice. */
static void test_send_error(void **state)
{
	struct end ends[2];

	both_open(ends, "");
	both_go_on(ends);
	plant("0.tx_error=100");
	while (ends[1].missing == 0)
		step(ends);
	plant("0.tx_error=off");
	both_go_on(ends);
	assert_int_equal(ends[0].missing, 0);
	while (!told(ends[0].session, "a send queue was in error and the driver started it again"))
		step(ends);
	both_stop(ends);
}

/* The left end's port took something, and takes nothing more: in so many looks on end, each with polls. */
#define LOOKS 50

static void wait_stalled(struct end ends[2])
{
	struct gdrcap_tx_counts counts, before;
	int looks = 0;

	end_counts(&ends[0], &counts);
	while (looks < LOOKS) {
		before = counts;
		step(ends);
		/* A card without a core takes nothing either: it had one. */
		nic_settle();
		do
			end_counts(&ends[0], &counts);
		while (counts.sent == before.sent && counts.stalled == before.stalled &&
		       counts.sent != counts.submitted);
		looks = counts.sent && counts.sent == before.sent && counts.sent != counts.submitted
				? looks + 1
				: 0;
	}
}

/* A link that goes down with frames queued: they wait, and leave when it is up again; or the run ends. */
static void test_link(void **state)
{
	struct gdrcap_tx_counts counts;
	struct end ends[2];
	uint64_t missing;

	both_open(ends, "");
	both_go_on(ends);
	plant("link=0");
	while (!happened(&ends[0], GDRCAP_EVENT_LINK_DOWN))
		step(ends);
	/* What it had was lost; the event comes just before the sender is held. */
	wait_stalled(ends);
	plant("link=1");
	missing = ends[1].missing;
	both_go_on(ends);
	assert_true(ends[1].missing >= missing);
	plant("link=0");
	while (!happened(&ends[0], GDRCAP_EVENT_LINK_DOWN))
		step(ends);
	wait_stalled(ends);
	assert_int_equal(gdrcap_stop(ends[0].session, NULL), 0);
	end_counts(&ends[0], &counts);
	assert_int_equal(counts.submitted, ends[0].submitted);
	assert_int_equal(counts.submitted, counts.sent + counts.unsent);
	assert_true(counts.unsent > 0);
	assert_int_equal(gdrcap_stop(ends[1].session, NULL), 0);
	gdrcap_destroy(ends[0].session);
	gdrcap_destroy(ends[1].session);
	plant("link=1");
}

/* The other end has no room, and flow control holds the card up: it takes no more, and a stop is not
 * held up. */
static void stop_full(uint64_t *least)
{
	struct gdrcap_tx_counts counts;
	struct gdrcap_summary summary;
	struct end ends[2];
	uint64_t since;

	plant("pause=1,link=1");
	end_open(&ends[0], LEFT);
	end_open(&ends[1], RIGHT);
	/* The right one is never started. */
	api_start(ends[0].session);
	wait_stalled(ends);
	since = api_now_ms();
	assert_int_equal(gdrcap_stop(ends[0].session, NULL), 0);
	since = api_now_ms() - since;
	*least = since < *least ? since : *least;
	end_counts(&ends[0], &counts);
	assert_int_equal(counts.submitted, ends[0].submitted);
	assert_int_equal(counts.submitted, counts.sent + counts.unsent);
	assert_true(counts.unsent > 0);
	assert_int_equal(gdrcap_get_summary(ends[0].session, &summary, sizeof(summary)), 0);
	assert_true(summary.known & GDRCAP_HAS_SENDING);
	assert_false(summary.known & GDRCAP_HAS_SENDING_FAILED);
	assert_int_equal(summary.sending_submitted, counts.submitted);
	assert_int_equal(summary.sending_sent, counts.sent);
	assert_int_equal(summary.sending_unsent, counts.unsent);
	assert_int_equal(summary.sending_bytes, counts.bytes);
	assert_int_equal(summary.sending_stalled, counts.stalled);
	gdrcap_destroy(ends[0].session);
	gdrcap_destroy(ends[1].session);
}

static void test_full(void **state)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < API_STOPS && least > API_STOP_MS; i++)
		stop_full(&least);
	assert_in_range(least, 0, API_STOP_MS);
}

/* The card is gone: the run ends, and nothing more is taken. */
static void test_gone(void **state)
{
	struct gdrcap_tx_counts counts;
	struct gdrcap_error error = { 0 };
	struct gdrcap_tx_frame frame;
	struct end ends[2];

	both_open(ends, "");
	both_go_on(ends);
	plant("0.gone=1");
	while (!gdrcap_wait_end(ends[0].session, 1))
		end_send(&ends[0], ends[0].submitted + 8);
	assert_int_equal(gdrcap_tx_reserve(ends[0].tx, &frame, 1), -ESHUTDOWN);
	api_failed(gdrcap_stop(ends[0].session, &error), -ENODEV, &error, "the card was removed");
	end_counts(&ends[0], &counts);
	assert_int_equal(counts.submitted, ends[0].submitted);
	assert_int_equal(counts.submitted, counts.sent + counts.unsent);
	assert_int_equal(gdrcap_stop(ends[1].session, NULL), 0);
	gdrcap_destroy(ends[0].session);
	gdrcap_destroy(ends[1].session);
	plant("gone=0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_restarted), cmocka_unit_test(test_send_error),
		cmocka_unit_test(test_link),	  cmocka_unit_test(test_full),
		cmocka_unit_test(test_gone),
	};

	return cmocka_run_group_tests_name("send_card", tests, NULL, NULL);
}
