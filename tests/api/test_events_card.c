/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of a run on a card, which is software and of this program: what happens to it is planted. */
#include "api_events.h"

#include "nic.h"

#define RECEIVER "0000:aa:00.1"
#define SENDER "0000:aa:00.0"

static void plant(const char *faults)
{
	nic_lock();
	assert_int_equal(soft_faults_parse(faults), 0);
	nic_unlock();
}

/* An endless loopback over the cable, with the driver's vector functions or the others. */
static struct gdrcap_session *cards_begin(const char *devargs, const char *idle_sleep)
{
	struct gdrcap_config *config API_FREED = NULL;

	api_config(&config, "validate", 0);
	api_set(config, "port", RECEIVER "%s", devargs);
	api_set(config, "tx_port", SENDER "%s", devargs);
	api_set(config, "idle_sleep", "%s", idle_sleep);
	api_set(config, "rate", "20kpps");
	return api_begin(config);
}

/* Started again by us, or by the driver's other functions: told once, and frames come again. */
static void queue_restarted(const char *devargs, const char *idle_sleep, const char *how)
{
	struct gdrcap_session *session = cards_begin(devargs, idle_sleep);
	struct gdrcap_summary before = { 0 }, after = { 0 };
	struct gdrcap_error error;
	struct gdrcap_event event;

	api_wait_event(session, GDRCAP_EVENT_FIRST_FRAME);
	plant("1.rx_error=100");
	event = api_wait_event(session, GDRCAP_EVENT_QUEUE_RESTARTED);
	api_event_is_of(&event, 0, 0, 0);
	assert_int_equal(event.count, 1);
	assert_non_null(strstr(event.text, how));
	gdrcap_get_summary(session, &before, sizeof(before));
	do {
		gdrcap_get_summary(session, &after, sizeof(after));
		assert_int_equal(gdrcap_wait_end(session, 1), 0);
	} while (after.total.received <= before.total.received);
	assert_int_equal(after.queue_restarts, 1);
	gdrcap_stop(session, &error);
	event = api_wait_event(session, GDRCAP_EVENT_END);
	gdrcap_destroy(session);
	plant("1.rx_error=off");
}

static void queue_restarted_by_us(void **state)
{
	queue_restarted("", "0", "in error and started again; ");
	/* Asleep until the card interrupts it, which is another queue's interrupt afterwards. */
	queue_restarted("", "10000", "in error and started again; ");
}

static void queue_restarted_by_its_driver(void **state)
{
	queue_restarted(",rx_vec_en=0", "0", "started again by the driver");
}

/* Of the receiving card and of the sending one. */
static void card_gone(void **state)
{
	static const char *const gone[] = { "1.gone=1", "0.gone=1" };

	for (int sends = 0; sends < 2; sends++) {
		struct gdrcap_session *session = cards_begin("", "0");
		struct gdrcap_error error = { 0 };
		struct gdrcap_event event;

		api_wait_event(session, GDRCAP_EVENT_FIRST_FRAME);
		plant(gone[sends]);
		event = api_wait_event(session, GDRCAP_EVENT_PORT_GONE);
		api_event_is_of(&event, 0, sends, -1);
		assert_non_null(strstr(event.text, sends ? SENDER : RECEIVER));
		assert_non_null(strstr(event.text, "the card was removed"));
		event = api_wait_event(session, GDRCAP_EVENT_END);
		assert_int_equal(event.code, -ENODEV);
		api_failed(gdrcap_stop(session, &error), -ENODEV, &error, "the card was removed");
		gdrcap_destroy(session);
		plant("gone=0");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_restarted_by_us),
		cmocka_unit_test(queue_restarted_by_its_driver),
		cmocka_unit_test(card_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
