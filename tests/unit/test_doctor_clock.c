/* SPDX-License-Identifier: BSD-3-Clause */
/* Made-up machines, and what is said of their clocks. */
#include "doctor_tree.h"

#define CARD "0000:98:00.0"
#define CARD_WAY "pci0000:97/0000:97:02.0/" CARD

static int set_by_chrony(void **state)
{
	made_setup(state);
	made_card(CARD_WAY, "ens1", "mlx5_0");
	made_fact("synchronized", "clock/state");
	made_fact("-345", "clock/offset_ns");
	made_fact("1200", "clock/max_error_us");
	made_fact("chronyd", "clock/programs");
	return 0;
}

static void test_right(void **state)
{
	made_examine();
	made_expect("clock-sync", NULL, OK, "synchronized; set by: chronyd", "");
	made_expect("clock-offset", NULL, OK, "-345 ns; error at most 1200 us", "");
	made_expect("clock-card", NULL, NONE, NULL, "");
	assert_int_equal(made_find("clock-sync", NULL)->check->severity, SEVERITY_INFO);
}

/* Each program is asked in its own words. */
static void test_not_yet(void **state)
{
	static const char *const programs[][2] = { { "chronyd", "chronyc tracking" },
						   { "systemd-timesyn", "timesync-status" },
						   { "ntpd", "ntpq -p" },
						   { "ptp4l", "phc2sys -a -r" },
						   { "", "systemctl enable --now chrony" } };

	made_fact("unsynchronized", "clock/state");
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		made_fact(programs[i][0], "clock/programs");
		made_examine();
		made_expect("clock-sync", NULL, WARN, "adjtimex: unsynchronized", programs[i][1]);
		made_expect("clock-offset", NULL, NONE, NULL, "");
	}
}

static void test_two_set_it(void **state)
{
	made_fact("chronyd systemd-timesyn", "clock/programs");
	made_examine();
	made_expect("clock-sync", NULL, WARN, "chronyd systemd-timesyn", "keep one");
	/* PTP beside them is another matter. */
	made_fact("chronyd ptp4l phc2sys", "clock/programs");
	made_examine();
	made_expect("clock-sync", NULL, OK, "chronyd ptp4l phc2sys", "");
}

static void test_far_off(void **state)
{
	made_fact("100001", "clock/max_error_us");
	made_examine();
	made_expect("clock-offset", NULL, WARN, "100001 us", "chronyc sources");
	made_fact("100000", "clock/max_error_us");
	made_examine();
	made_expect("clock-offset", NULL, OK, "100000 us", "");
}

static void test_card(void **state)
{
	made_folder("/sys/bus/pci/devices/" CARD "/ptp/ptp3");
	made_examine();
	made_expect("clock-card", CARD, OK, "/sys/class/ptp/ptp3: there; ptp4l: not seen", "");
	made_fact("ptp4l", "clock/programs");
	made_examine();
	made_expect("clock-card", CARD, WARN, "ptp4l: runs; phc2sys: not seen", "phc2sys -a -r");
	made_fact("phc2sys ptp4l", "clock/programs");
	made_examine();
	made_expect("clock-card", CARD, OK, "phc2sys: runs", "");
}

/* Nothing of a capture comes into a command, or is believed. */
static void test_hostile(void **state)
{
	made_fact("synchronized; rm -rf /", "clock/state");
	made_fact("chronyd; reboot xntpd ntpd2", "clock/programs");
	made_fact("12x", "clock/offset_ns");
	made_examine();
	made_expect("clock-sync", NULL, UNKNOWN, "set by: nobody that can be seen", "timedatectl");
	made_expect("clock-offset", NULL, UNKNOWN, NULL, "chronyc tracking");
	made_fact("synchronized", "clock/state");
	made_examine();
	made_expect("clock-offset", NULL, UNKNOWN, NULL, "chronyc tracking");
	made_fact("0", "clock/offset_ns");
	made_fact("-1", "clock/max_error_us");
	made_examine();
	made_expect("clock-offset", NULL, WARN, "-1 us", "chronyc tracking");
	for (unsigned int seed = 0; seed < 20; seed++)
		made_garbage(seed);
}

#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, set_by_chrony, made_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(right),   CASE(not_yet), CASE(two_set_it),
		CASE(far_off), CASE(card),    CASE(hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
