/* SPDX-License-Identifier: BSD-3-Clause */
/* results_ports.c: sums over ports, from doubles of what their drivers would say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "session/session.h"

#define PORTS 2

static struct gdrcap_session session;
/* By port id: receiving ports 0 and 1, sending ones 2 and 3. */
static struct xstats_values card[2 * PORTS];
static struct steering_hits hits[PORTS][STEERING_RULES_MAX];
static unsigned int cards_asked;

void __wrap_xstats_read(const struct xstats *xstats, struct xstats_values *values);
void __wrap_xstats_read(const struct xstats *xstats, struct xstats_values *values)
{
	assert_in_range(xstats->port, 0, 2 * PORTS - 1);
	/* Nobody may start a port again meanwhile. */
	assert_int_not_equal(pthread_mutex_trylock(&session.ports.lock), 0);
	*values = card[xstats->port];
	cards_asked++;
}

void __wrap_steering_query(const struct steering *steering,
			   struct steering_hits to[STEERING_RULES_MAX]);
void __wrap_steering_query(const struct steering *steering,
			   struct steering_hits to[STEERING_RULES_MAX])
{
	assert_in_range(steering->port, 0, PORTS - 1);
	assert_int_not_equal(pthread_mutex_trylock(&session.ports.lock), 0);
	memset(to, 0xa5, STEERING_RULES_MAX * sizeof(*to));
	memcpy(to, hits[steering->port], steering->rules * sizeof(*to));
}

void __wrap_region_registration(const struct region *region, char *text, size_t bytes);
void __wrap_region_registration(const struct region *region, char *text, size_t bytes)
{
	assert_ptr_equal(region, &session.memory.region);
	snprintf(text, bytes, "dma-buf");
}

static int setup(void **state)
{
	memset(&session, 0, sizeof(session));
	memset(card, 0, sizeof(card));
	memset(hits, 0, sizeof(hits));
	cards_asked = 0;
	pthread_mutex_init(&session.lines.lock, NULL);
	pthread_mutex_init(&session.ports.lock, NULL);
	session.settings.ports = PORTS;
	session.workers.rx_count = 4;
	for (uint16_t p = 0; p < PORTS; p++) {
		struct session_pair *pair = &session.ports.pairs[p];

		pair->rx_xstats.port = p;
		pair->tx_xstats.port = (uint16_t)(PORTS + p);
		pair->rx.isolated = true;
		pair->steering.port = p;
		pair->steering.rules = 2;
		pair->rx_clock.port = p;
	}
	strcpy(session.ports.steered_text[0], "vlan=5");
	strcpy(session.ports.steered_text[1], "dst_port=4000");
	return 0;
}

static void count_is(uint32_t port, enum xstats_cause cause, uint64_t count)
{
	card[port].known |= 1u << cause;
	card[port].count[cause] = count;
}

static void cause_is(enum xstats_cause which, int sender, int known, uint64_t count)
{
	struct gdrcap_cause cause;

	assert_int_equal(gdrcap_get_cause(&session, which, &cause, sizeof(cause)), 0);
	assert_string_equal(cause.name, xstats_cause_name(which));
	assert_int_equal(cause.sender, sender);
	assert_int_equal(cause.known, known);
	assert_true(cause.count == count);
}

static void causes(void **state)
{
	struct gdrcap_cause cause;

	count_is(0, XSTATS_NO_BUFFER, 3);
	count_is(1, XSTATS_NO_BUFFER, 1ull << 40);
	count_is(1, XSTATS_CARD_FULL, 9);   /* one of them says it */
	count_is(2, XSTATS_CARD_FULL, 100); /* of what it sends, which has no such cause */
	count_is(0, XSTATS_WIRE_CRC, 0);
	/* Each side's pause frames: those that held a sender up, those that a receiver sent. */
	count_is(0, XSTATS_PAUSE_RX, 1000);
	count_is(3, XSTATS_PAUSE_RX, 20);
	count_is(0, XSTATS_PAUSE_TX, 30);
	count_is(2, XSTATS_PAUSE_TX, 2000);
	count_is(2, XSTATS_TX_DISCARD, 4);
	count_is(3, XSTATS_TX_DISCARD, 5);
	count_is(0, XSTATS_TX_DISCARD, 6000);
	cause_is(XSTATS_NO_BUFFER, 0, 1, (1ull << 40) + 3);
	cause_is(XSTATS_CARD_FULL, 0, 1, 9);
	cause_is(XSTATS_WIRE_CRC, 0, 1, 0);
	cause_is(XSTATS_WIRE_SYMBOL, 0, 0, 0);
	cause_is(XSTATS_PAUSE_RX, 1, 1, 20);
	cause_is(XSTATS_PAUSE_TX, 0, 1, 30);
	cause_is(XSTATS_TX_WIRE_ERROR, 1, 0, 0);
	cause_is(XSTATS_TX_DISCARD, 1, 1, 9);
	/* Each card once, and anew only for the first cause. */
	assert_int_equal(cards_asked, 2 * PORTS);
	count_is(3, XSTATS_TX_DISCARD, 50);
	cause_is(XSTATS_TX_DISCARD, 1, 1, 9);
	cause_is(XSTATS_NO_BUFFER, 0, 1, (1ull << 40) + 3);
	cause_is(XSTATS_TX_DISCARD, 1, 1, 54);
	assert_int_equal(cards_asked, 4 * PORTS);
	assert_int_equal(gdrcap_get_cause(&session, XSTATS_CAUSES, &cause, sizeof(cause)), -ENOENT);
	assert_int_equal(gdrcap_get_cause(&session, UINT32_MAX, &cause, sizeof(cause)), -ENOENT);
}

/* People are told what to do, in a line. */
static void meanings(void **state)
{
	struct gdrcap_cause cause;

	for (uint32_t c = 0; gdrcap_get_cause(&session, c, &cause, sizeof(cause)) == 0; c++) {
		assert_non_null(cause.meaning);
		assert_in_range(strlen(cause.meaning), 20, 160);
		for (uint32_t other = 0; other < c; other++) {
			struct gdrcap_cause before;

			assert_int_equal(gdrcap_get_cause(&session, other, &before, sizeof(before)),
					 0);
			assert_string_not_equal(before.meaning, cause.meaning);
		}
	}
}

static void rules(void **state)
{
	struct gdrcap_rule rule;

	hits[0][0] = (struct steering_hits){ .known = true, .frames = 100 };
	hits[1][0] = (struct steering_hits){ .known = true, .frames = 23 };
	hits[0][1] = (struct steering_hits){ .known = true, .frames = 7 };
	assert_int_equal(gdrcap_get_rule(&session, 0, &rule, sizeof(rule)), 0);
	assert_string_equal(rule.text, "vlan=5");
	assert_int_equal(rule.known, 1);
	assert_int_equal(rule.frames, 123);
	/* A sum without one of its parts is none. */
	assert_int_equal(gdrcap_get_rule(&session, 1, &rule, sizeof(rule)), 0);
	assert_string_equal(rule.text, "dst_port=4000");
	assert_int_equal(rule.known, 0);
	assert_int_equal(rule.frames, 0);
	assert_int_equal(gdrcap_get_rule(&session, 2, &rule, sizeof(rule)), -ENOENT);
	assert_int_equal(gdrcap_get_rule(&session, UINT32_MAX, &rule, sizeof(rule)), -ENOENT);
	/* A software port beside a card has none. */
	session.ports.pairs[1].steering.rules = 0;
	assert_int_equal(gdrcap_get_rule(&session, 1, &rule, sizeof(rule)), 0);
	assert_int_equal(rule.frames, 7);
	/* a port that was started again: its rules have not counted all */
	session.ports.pairs[0].rules_anew = true;
	assert_int_equal(gdrcap_get_rule(&session, 1, &rule, sizeof(rule)), 0);
	assert_int_equal(rule.known, 0);
	assert_int_equal(rule.frames, 0);
	session.ports.pairs[0].steering.rules = 0;
	assert_int_equal(gdrcap_get_rule(&session, 0, &rule, sizeof(rule)), -ENOENT);
	/* the lock is given back on each way */
	assert_int_equal(pthread_mutex_trylock(&session.ports.lock), 0);
	pthread_mutex_unlock(&session.ports.lock);
}

static void summary_is(int steered, int software_match, const char *clock)
{
	struct gdrcap_summary summary = { 0 };

	session_ports_summary(&session, &summary);
	assert_int_equal(summary.steered, steered);
	assert_int_equal(summary.software_match, software_match);
	assert_string_equal(summary.clock, clock);
	assert_string_equal(summary.registration, "dma-buf");
	assert_int_equal(summary.split, 64);
	assert_int_equal(summary.queue_restarts, 3);
}

static void summary(void **state)
{
	session.settings.split = 64;
	session.ports.queue_restarts = 3;
	session.frames.layout.match.count = 2;
	summary_is(1, 0, "");
	session.settings.times = true;
	summary_is(1, 0, "card");
	/* One of the ports cannot: the consumer applies the rules. */
	session.ports.pairs[1].rx.isolated = false;
	session.ports.pairs[1].rx_clock.port = RX_CLOCK_CPU;
	summary_is(0, 1, "card, CPU");
	session.ports.pairs[0].rx_clock.port = RX_CLOCK_CPU;
	session.frames.layout.match.count = 0;
	summary_is(0, 0, "CPU");
	/* a session that only sends */
	session.workers.rx_count = 0;
	session.ports.pairs[1].rx.isolated = true;
	summary_is(0, 0, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(causes, setup),
		cmocka_unit_test_setup(meanings, setup),
		cmocka_unit_test_setup(rules, setup),
		cmocka_unit_test_setup(summary, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
