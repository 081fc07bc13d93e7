/* SPDX-License-Identifier: BSD-3-Clause */
/* A receiver that sleeps until its card interrupts it, and for nothing else: it misses no frame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <pthread.h>

#include "nic.h"
#include "port/port_sleep.h"
#include "rig.h"

#define FRAMES 400u
#define FOR_EVER_US 3600000000u
#define LENGTH 100

struct sleeper {
	struct rig *rig;
	struct port_sleep sleep;
	pid_t tid;
	uint64_t first; /* number of the first frame */
	_Atomic uint64_t received;
};

static void start(struct rig *rig)
{
	struct rte_flow_error error = { 0 };

	rig->port[1].interrupts = true;
	rig_ports_start(rig);
	if (rig_rule(1, RIG_ETHERTYPE, 0, 0, &error) == NULL)
		fail_msg("rule refused: %s", error.message);
}

static uint64_t interrupts(void)
{
	uint64_t count;

	nic_lock();
	count = soft_devices[1].count.interrupts;
	nic_unlock();
	return count;
}

/* The kernel's word: it waits in a call, and of all that it calls only the sleep waits. */
static void wait_until_asleep(pid_t tid)
{
	char path[64], state = 'R';

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	while (state != 'S') {
		FILE *file = fopen(path, "r");

		assert_non_null(file);
		assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
		fclose(file);
		usleep(10);
	}
}

/* Each when the one before was received; every second one when the receiver sleeps, the others at
 * whatever point between its last look and its sleep it is. */
static void *send_one_by_one(void *arg)
{
	struct sleeper *sleeper = arg;
	const struct rig *rig = sleeper->rig;

	for (uint64_t i = 0; i < FRAMES; i++) {
		struct rte_mbuf *frame = rig_frame(rig->pool, &rig->memory, LENGTH, RIG_ETHERTYPE,
						   sleeper->first + i);

		while (atomic_load(&sleeper->received) < i)
			usleep(1);
		if (i % 2 == 0)
			wait_until_asleep(sleeper->tid);
		else if (i % 4 == 1)
			usleep((useconds_t)(i / 4));
		while (rte_eth_tx_burst(0, 0, &frame, 1) == 0)
			;
	}
	return NULL;
}

/* As the receive worker does. Without the interrupts it does not end. */
static void receive_all(struct sleeper *sleeper)
{
	struct rig *rig = sleeper->rig;
	unsigned int idle = 0;
	pthread_t sender;

	atomic_store(&sleeper->received, 0);
	assert_int_equal(pthread_create(&sender, NULL, send_one_by_one, sleeper), 0);
	for (uint64_t received = 0; received < FRAMES;) {
		struct rte_mbuf *mbufs[32];
		const uint16_t n = rte_eth_rx_burst(1, 0, mbufs, 32);

		idle = n ? 0 : idle + 1;
		if (idle)
			port_sleep(&sleeper->sleep, idle, true);
		for (uint16_t i = 0; i < n; i++) {
			uint64_t number;

			assert_int_equal(rig_check(mbufs[i], &rig->memory, &number), 0);
			assert_int_equal(number, sleeper->first + received + i);
		}
		rte_pktmbuf_free_bulk(mbufs, n);
		received += n;
		atomic_store(&sleeper->received, received);
	}
	pthread_join(sender, NULL);
}

static void each_frame_ends_the_sleep(void **state)
{
	struct sleeper sleeper = { .rig = *state, .tid = gettid() };
	const struct port port = { .name = "1", .id = 1, .setup.rx_interrupts = true };
	uint64_t before;

	start(*state);
	port_sleep_init(&sleeper.sleep, &port, 0, FOR_EVER_US);
	assert_true(sleeper.sleep.interrupts);
	before = interrupts();
	receive_all(&sleeper);
	assert_true(interrupts() - before >= FRAMES / 2);
	assert_true(interrupts() - before <= 2 * FRAMES);
}

/* After an error of the queue the port is started again, armed as it was; others than before. */
static void port_is_started_again(void **state)
{
	struct sleeper sleeper = { .rig = *state, .tid = gettid() };
	const struct port port = { .name = "1", .id = 1, .setup.rx_interrupts = true };
	struct rte_flow_error error;

	start(*state);
	port_sleep_init(&sleeper.sleep, &port, 0, FOR_EVER_US);
	for (int again = 0; again < 3; again++) {
		receive_all(&sleeper);
		sleeper.first += FRAMES;
		/* Armed, and an event is on its way perhaps. */
		sleeper.sleep.idle = 1;
		sleeper.sleep.armed = false;
		port_sleep(&sleeper.sleep, 2, true);
		assert_true(sleeper.sleep.armed);
		rte_flow_flush(1, &error);
		assert_int_equal(rte_eth_dev_stop(1), 0);
		rig_port_start(&sleeper.rig->port[1]);
		assert_non_null(rig_rule(1, RIG_ETHERTYPE, 0, 0, &error));
		port_sleep_anew(&sleeper.sleep);
	}
}

/* One that comes between arming and sleeping is found in the look between them; its interrupt ends
 * one sleep for nothing, not more. */
static void interrupt_of_a_frame_that_was_found(void **state)
{
	struct sleeper sleeper = { .rig = *state };
	const struct port port = { .name = "1", .id = 1, .setup.rx_interrupts = true };
	const uint64_t before = interrupts();
	struct rte_mbuf *frames[4];
	unsigned int idle = 1;

	start(*state);
	frames[0] = rig_frame(sleeper.rig->pool, &sleeper.rig->memory, LENGTH, RIG_ETHERTYPE, 0);
	port_sleep_init(&sleeper.sleep, &port, 0, 1000);
	port_sleep(&sleeper.sleep, idle++, true);
	assert_true(sleeper.sleep.armed);
	assert_int_equal(rte_eth_tx_burst(0, 0, frames, 1), 1);
	nic_settle();
	assert_int_equal(rte_eth_rx_burst(1, 0, frames, 4), 1);
	rte_pktmbuf_free(frames[0]);
	port_sleep(&sleeper.sleep, idle++, true);
	assert_int_equal(sleeper.sleep.woken, 1);
	/* Armed, and asleep for its time. */
	port_sleep(&sleeper.sleep, idle++, true);
	port_sleep(&sleeper.sleep, idle++, true);
	assert_int_equal(sleeper.sleep.woken, 0);
	assert_int_equal(interrupts() - before, 1);
}

/* They were not asked for, or the port did not start with them. */
static void without_interrupts(void **state)
{
	struct rig *rig = *state;
	const struct port port = { .name = "1", .id = 1 };
	struct port_sleep sleep;

	rig_ports_start(rig);
	port_sleep_init(&sleep, &port, 0, 10);
	assert_false(sleep.interrupts);
	port_sleep(&sleep, 200, true);
	assert_int_equal(sleep.naps.us, 10);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(each_frame_ends_the_sleep, rig_reset),
		cmocka_unit_test_teardown(port_is_started_again, rig_reset),
		cmocka_unit_test_teardown(interrupt_of_a_frame_that_was_found, rig_reset),
		cmocka_unit_test_teardown(without_interrupts, rig_reset),
	};
	int failed;

	rig_start(argc, argv);
	failed = cmocka_run_group_tests(tests, rig_setup, rig_teardown);
	rig_stop();
	return failed;
}
