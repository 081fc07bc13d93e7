/* SPDX-License-Identifier: BSD-3-Clause */
/* The fault knobs: each does what it says, exactly as often, and leaves the rest alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory.h"
#include "nic.h"
#include "rig.h"

#define COUNT 4000
#define HANG_SECONDS 240

static void set(const char *faults)
{
	nic_lock();
	assert_int_equal(soft_faults_parse(faults), 0);
	nic_unlock();
}

static void start(struct rig *rig)
{
	struct rte_flow_error error = { 0 };

	rig_ports_start(rig);
	if (rig_rule(1, RIG_ETHERTYPE, 0, 0, &error) == NULL)
		fail_msg("rule refused: %s", error.message);
}

static struct rig_run frames(struct rig *rig, bool lossy)
{
	struct rig_run run = { .count = COUNT, .shortest = 60, .longest = 1000, .lossy = lossy };

	rig_run(rig, &run);
	assert_int_equal(run.sent, COUNT);
	return run;
}

static void drops_on_the_wire(void **state)
{
	struct rig_run run;

	start(*state);
	set("0.drop=100/100/0");
	run = frames(*state, true);
	assert_int_equal(run.received, COUNT - COUNT / 100);
	assert_int_equal(run.damaged, 0);
	assert_int_equal(rig_xstat(1, "rx_out_of_buffer"), 0);
}

static void corrupts_on_the_wire(void **state)
{
	struct rig_run run;

	start(*state);
	set("0.corrupt=7/1/3");
	run = frames(*state, false);
	assert_int_equal(run.received, COUNT);
	assert_int_equal(run.damaged, 3);
}

static void duplicates_on_the_wire(void **state)
{
	struct rig_run run;

	start(*state);
	set("0.duplicate=50/50/10");
	run = frames(*state, false);
	assert_int_equal(run.received, COUNT + 10);
	assert_int_equal(run.damaged, 0);
	/* Each copy is out of order; what follows the copy is not. */
	assert_int_equal(run.disordered, 10);
}

static void reorders_on_the_wire(void **state)
{
	struct rig_run run;

	start(*state);
	set("0.reorder=50/50/10");
	run = frames(*state, false);
	assert_int_equal(run.received, COUNT);
	assert_int_equal(run.damaged, 0);
	assert_int_equal(run.disordered, 3 * 10);
}

/* Which has the room of a held frame for its copy. */
static void duplicates_the_successor_of_a_held_frame(void **state)
{
	struct rig_run run;

	start(*state);
	set("0.reorder=50/50/10, 0.duplicate=50/50/10");
	run = frames(*state, false);
	assert_int_equal(run.received, COUNT + 10);
	assert_int_equal(run.damaged, 0);
}

static void counts_what_the_port_loses(void **state)
{
	struct rig_run run;

	start(*state);
	set("1.crc=10/1/4, 1.discard=100/1/7, 1.no_buffers=200/1/9");
	run = frames(*state, true);
	assert_int_equal(run.received, COUNT - 4 - 7 - 9);
	assert_int_equal(rig_xstat(1, "rx_phy_crc_errors"), 4);
	assert_int_equal(rig_xstat(1, "rx_phy_discard_packets"), 7);
	assert_int_equal(rig_xstat(1, "rx_out_of_buffer"), 9);
}

/* The card does that in its own time. */
static bool link_becomes(uint16_t port, uint16_t status, struct rte_eth_link *link)
{
	const time_t until = time(NULL) + HANG_SECONDS;

	do {
		assert_int_equal(rte_eth_link_get_nowait(port, link), 0);
		if (link->link_status == status)
			return true;
		usleep(1000);
	} while (time(NULL) < until);
	return false;
}

static void link_goes_down_and_comes_back(void **state)
{
	struct rte_eth_link link;
	struct rig_run run;

	start(*state);
	set("0.link_down=1000,0.link_ms=200");
	run = frames(*state, true);
	assert_true(run.received < COUNT);
	assert_int_equal(run.received + rig_xstat(0, "tx_phy_discard_packets"), COUNT);
	assert_true(link_becomes(1, RTE_ETH_LINK_UP, &link));
	assert_int_equal(link.link_speed, 100000);
	run = frames(*state, false);
	assert_int_equal(run.received, COUNT);
	set("1.link=0");
	assert_int_equal(rte_eth_link_get_nowait(0, &link), 0);
	assert_int_equal(link.link_status, RTE_ETH_LINK_DOWN);
	set("1.link=1");
}

/* The send queue ends in an error, the driver restarts it, and what was in the ring is lost. */
static void send_error_is_recovered(void **state)
{
	struct rte_eth_stats stats;
	struct rig_run run;

	start(*state);
	set("0.tx_error=20");
	run = frames(*state, true);
	assert_true(run.received < COUNT);
	assert_int_equal(run.damaged, 0);
	rte_eth_stats_get(0, &stats);
	assert_true(stats.oerrors > 0);
	run = frames(*state, false);
	assert_int_equal(run.received, COUNT);
	assert_int_equal(run.damaged + run.disordered, 0);
}

static bool receives_by_vector(void)
{
	struct rte_eth_burst_mode mode;

	assert_int_equal(rte_eth_rx_burst_mode_get(1, 0, &mode), 0);
	return strstr(mode.info, "Vector") != NULL;
}

/*
 * The same on the receive side. The driver's vector functions (DPDK 22.11.11) never come out of the
 * error: they look for the end of the flushed entries one entry too early. Stopping and starting
 * the port helps.
 */
static void receive_error_is_recovered(void **state)
{
	uint64_t before = soft_devices[1].count.flushed;
	struct rte_mbuf *none[4];
	struct rte_flow_error error;
	struct rig *rig = *state;
	struct rig_run run;

	start(rig);
	set("1.rx_error=1000");
	run = frames(rig, true);
	assert_true(run.received < COUNT);
	assert_int_equal(run.damaged, 0);
	/* What was posted comes back. */
	assert_true(soft_devices[1].count.flushed > before);
	if (receives_by_vector()) {
		assert_true(run.received < 1000);
		rte_flow_flush(1, &error);
		assert_int_equal(rte_eth_dev_stop(1), 0);
		assert_int_equal(rte_eth_dev_start(1), 0);
		/* The state outlives the stop, and eats frames until a poll finds none. */
		assert_int_equal(rte_eth_rx_burst(1, 0, none, 4), 0);
		assert_non_null(rig_rule(1, RIG_ETHERTYPE, 0, 0, &error));
	}
	run = frames(rig, false);
	assert_int_equal(run.received, COUNT);
	assert_int_equal(run.damaged + run.disordered, 0);
}

static void revoked_key_ends_reception(void **state)
{
	struct rig *rig = *state;
	struct rig_run run;

	start(rig);
	set("1.revoke=500");
	run = frames(rig, true);
	assert_true(run.received < 500);
	assert_int_equal(run.damaged, 0);
	assert_int_equal(soft_devices[1].faults.revoke.hits, 1);
	/* For good: the next tests need the key again. */
	nic_lock();
	soft_regions_restore();
	nic_unlock();
}

static void late_completion_is_only_late(void **state)
{
	struct rig_run run;

	start(*state);
	set("1.late=100/100/10,1.late_us=2000");
	run = frames(*state, false);
	assert_int_equal(run.received, COUNT);
	assert_int_equal(run.damaged + run.disordered, 0);
}

/* Data behind its completion: who looks at once finds something else. */
static void stale_payload_is_seen(void **state)
{
	struct rig_run run;

	start(*state);
	/* In an hour: nobody is so slow to look. */
	set("1.stale=100/100/5,1.stale_us=3600000000");
	run = frames(*state, false);
	assert_int_equal(run.received, COUNT);
	assert_true(run.damaged + run.disordered >= 5);
	/* The data come now, before their buffers are another's. */
	nic_lock();
	rx_poll(UINT64_MAX);
	nic_unlock();
}

static void planted_defects_show(void **state)
{
	struct rig *rig = *state;
	struct rig_run run;

	start(rig);
	set("1.flip=10/1/2");
	run = frames(rig, false);
	assert_int_equal(run.damaged, 2);
	set("1.loose_match=1");
	run = (struct rig_run){ .count = 10, .shortest = 60, .longest = 100, .ether_type = 0x1234 };
	rig_run(rig, &run);
	assert_int_equal(run.received, 10);
	set("1.loose_match=0");
	run = (struct rig_run){
		.count = 10, .shortest = 60, .longest = 100, .ether_type = 0x1234, .lossy = true
	};
	rig_run(rig, &run);
	assert_int_equal(run.received, 0);
	/* An entry with the wrong owner is not seen, and nothing behind it. */
	set("1.wrong_owner=100");
	run = (struct rig_run){ .count = 1000, .shortest = 60, .longest = 100, .lossy = true };
	rig_run(rig, &run);
	assert_true(run.received < 1000);
}

static void nonsense_is_refused(void **state)
{
	static const char *const wrong[] = { "drop",	  "drop=",	  "drop=0",
					     "drop=1/0",  "drop=1/2/3/4", "drop=x",
					     "nothing=1", "9.drop=1",	  "link=on" };

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_not_equal(soft_faults_parse(wrong[i]), 0);
}

static void file_is_read_while_running(void **state)
{
	const char *path = getenv("SOFTMLX5_FAULTS_FILE");
	struct rte_eth_link link = { 0 };
	FILE *file;

	start(*state);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("0.link=0\n", file);
	fclose(file);
	assert_true(link_becomes(0, RTE_ETH_LINK_DOWN, &link));
	assert_int_equal(truncate(path, 0), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(drops_on_the_wire, rig_reset),
		cmocka_unit_test_teardown(corrupts_on_the_wire, rig_reset),
		cmocka_unit_test_teardown(duplicates_on_the_wire, rig_reset),
		cmocka_unit_test_teardown(reorders_on_the_wire, rig_reset),
		cmocka_unit_test_teardown(duplicates_the_successor_of_a_held_frame, rig_reset),
		cmocka_unit_test_teardown(counts_what_the_port_loses, rig_reset),
		cmocka_unit_test_teardown(link_goes_down_and_comes_back, rig_reset),
		cmocka_unit_test_teardown(send_error_is_recovered, rig_reset),
		cmocka_unit_test_teardown(receive_error_is_recovered, rig_reset),
		cmocka_unit_test_teardown(revoked_key_ends_reception, rig_reset),
		cmocka_unit_test_teardown(late_completion_is_only_late, rig_reset),
		cmocka_unit_test_teardown(stale_payload_is_seen, rig_reset),
		cmocka_unit_test_teardown(planted_defects_show, rig_reset),
		cmocka_unit_test_teardown(nonsense_is_refused, rig_reset),
		cmocka_unit_test_teardown(file_is_read_while_running, rig_reset),
	};
	char path[] = "/tmp/softmlx5-faults-XXXXXX";
	int failed, file = mkstemp(path);

	if (file < 0)
		return 1;
	close(file);
	soft_faults_watch(path);
	setenv("SOFTMLX5_FAULTS_FILE", path, 1);
	rig_start(argc, argv);
	failed = cmocka_run_group_tests(tests, rig_setup, rig_teardown);
	rig_stop();
	unlink(path);
	return failed;
}
