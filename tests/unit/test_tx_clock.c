/* SPDX-License-Identifier: BSD-3-Clause */
/* A port that sends on timestamps, played by the test: its clock runs at a rate of its own, can be
 * set, and can fail. Then the sender over a software wire, whose frames must carry their times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_mbuf_dyn.h>

#include "port/tx_clock.h"
#include "tx_scene.h"

int __real_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info);
int __wrap_rte_eth_read_clock(uint16_t port, uint64_t *clock);
int __real_rte_mbuf_dyn_tx_timestamp_register(int *offset, uint64_t *flag);
int __wrap_rte_mbuf_dyn_tx_timestamp_register(int *offset, uint64_t *flag);

static struct {
	bool offload, no_field;
	int info_error, clock_error;
	double rate;  /* of the port's clock to the TSC */
	uint64_t set; /* added to it */
	unsigned int reads;
} fake;

int __wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info)
{
	int ret = fake.info_error;

	if (ret == 0 && rte_eth_dev_is_valid_port(port))
		ret = __real_rte_eth_dev_info_get(port, info);
	else
		memset(info, 0, sizeof(*info));
	if (fake.offload)
		info->tx_offload_capa |= RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;
	return ret;
}

int __wrap_rte_eth_read_clock(uint16_t port, uint64_t *clock)
{
	fake.reads++;
	*clock = fake.set + (uint64_t)((double)rte_rdtsc() * fake.rate);
	return fake.clock_error;
}

int __wrap_rte_mbuf_dyn_tx_timestamp_register(int *offset, uint64_t *flag)
{
	if (fake.no_field) {
		rte_errno = ENOSPC;
		return -1;
	}
	return __real_rte_mbuf_dyn_tx_timestamp_register(offset, flag);
}

static int fake_begin(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.offload = true;
	fake.rate = 0.385;
	fake.set = 1000000;
	return 0;
}

/* The port's clock at a tick, as it is. */
static uint64_t truth(uint64_t tsc)
{
	return fake.set + (uint64_t)((double)tsc * fake.rate);
}

/* Within some ticks: the test may lose the CPU between two readings, so not too few. */
static void is_near(uint64_t value, uint64_t expected, uint64_t off)
{
	assert_in_range(value, expected - off, expected + off);
}

static void supported(void **state)
{
	assert_true(tx_clock_supported(77));
	fake.offload = false;
	assert_false(tx_clock_supported(77));
	fake.offload = true;
	fake.info_error = -ENODEV;
	assert_false(tx_clock_supported(77));
}

static void open_fails(void **state)
{
	struct gdrcap_error error;
	struct tx_clock clock;

	fake.offload = false;
	assert_int_equal(tx_clock_open(&clock, 77, rte_get_tsc_hz(), &error), -ENOTSUP);
	fake.offload = true;
	fake.no_field = true;
	assert_int_equal(tx_clock_open(&clock, 77, rte_get_tsc_hz(), &error), -ENOSPC);
	fake.no_field = false;
	fake.clock_error = -EIO;
	assert_int_equal(tx_clock_open(&clock, 77, rte_get_tsc_hz(), &error), -EIO);
	assert_non_null(strstr(error.text, "cannot be read: Input/output error"));
	/* mlx5 passes what libibverbs says. */
	fake.clock_error = EINVAL;
	assert_int_equal(tx_clock_open(&clock, 77, rte_get_tsc_hz(), &error), -EINVAL);
	assert_non_null(strstr(error.text, "cannot be read: Invalid argument"));
	fake.clock_error = 0;
	fake.rate = 0;
	assert_int_equal(tx_clock_open(&clock, 77, rte_get_tsc_hz(), &error), -EIO);
	assert_non_null(strstr(error.text, "stands still"));
}

static void maps_and_renews(void **state)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	const uint64_t hz = rte_get_tsc_hz();
	struct tx_clock clock;
	struct tx_clock_map map;
	uint64_t now;
	unsigned int reads;

	assert_int_equal(tx_clock_open(&clock, 77, hz, NULL), 0);
	map = clock.map;
	assert_true(map.clock_per_tsc > 0.38 && map.clock_per_tsc < 0.39);
	now = map.now.tsc;
	/* A ms ahead, and a little back. */
	is_near(tx_clock_at(&map, now + hz / 1000), truth(now + hz / 1000), hz / 10000);
	is_near(tx_clock_at(&map, now - hz / 1000), truth(now - hz / 1000), hz / 10000);
	/* Not before its time. */
	reads = fake.reads;
	tx_clock_renew(&clock, &map, now + hz / 20);
	assert_int_equal(fake.reads, reads);
	tx_clock_renew(&clock, &map, now + hz / 5);
	assert_true(fake.reads > reads);
	assert_true(map.first.tsc == clock.map.first.tsc && map.now.tsc > clock.map.now.tsc);
	/* One that does not answer changes nothing. */
	now = map.now.tsc;
	fake.clock_error = -EIO;
	tx_clock_renew(&clock, &map, now + hz);
	assert_true(map.now.tsc == now);
	fake.clock_error = EINVAL;
	tx_clock_renew(&clock, &map, now + hz);
	assert_true(map.now.tsc == now);
	/* Somebody sets it: the map follows at once, and the rate stays. */
	fake.clock_error = 0;
	fake.set += 1000000000000u;
	tx_clock_renew(&clock, &map, now + hz);
	assert_true(map.clock_per_tsc > 0.38 && map.clock_per_tsc < 0.39);
	is_near(tx_clock_at(&map, map.now.tsc + hz / 1000), truth(map.now.tsc + hz / 1000),
		hz / 10000);
	nanosleep(&pause, NULL);
	tx_clock_renew(&clock, &map, map.now.tsc + hz);
	assert_true(map.clock_per_tsc > 0.38 && map.clock_per_tsc < 0.39);
	tx_clock_close(&clock);
}

/* ---- the sender ---- */

struct marks {
	const struct tx_clock *clock;
	uint64_t frames, first, last;
};

static void marked_frame(void *context, const struct rte_mbuf *mbuf, const uint8_t *bytes)
{
	struct marks *marks = context;
	const uint64_t when =
		*(const uint64_t *)(const void *)((const char *)mbuf + marks->clock->offset);

	assert_true(mbuf->ol_flags & marks->clock->flag);
	if (marks->frames++ == 0)
		marks->first = when;
	else
		assert_true(when >= marks->last);
	marks->last = when;
}

static void frames_carry_their_times(void **state)
{
	const uint64_t hz = rte_get_tsc_hz(), frames = 5000;
	struct tx_config config = run_config();
	struct marks marks = { 0 };
	struct pacing_gaps gaps;
	const struct pacing *pacing;
	struct tx_clock clock;
	struct run run;
	uint64_t span;

	assert_int_equal(tx_clock_open(&clock, 77, hz, NULL), 0);
	marks.clock = &clock;
	config.clock = &clock;
	config.frames = frames;
	config.pacing = (struct pacing_config){ PACING_FRAMES, 50000 };
	run_open(&run, &config, 64, 1024);
	run_go(&run);
	assert_int_equal(run_receive(&run, 64, marked_frame, &marks), frames);
	pacing = &run.worker->pacing;
	pacing_gaps(&pacing, 1, &gaps);
	assert_int_equal(gaps.count, 0); /* not ours to know */
	/* 20 us apart, in the port's time; a stall of the machine may have moved the timeline. */
	span = (uint64_t)((double)((frames - 1) * hz) / 50000 * fake.rate);
	if (atomic_load(&pacing->rebased) == 0)
		is_near(marks.last - marks.first, span, span / 50);
	is_near(marks.first, truth(atomic_load(&run.worker->first_tsc)), hz / 100);
	run_close(&run);
	tx_clock_close(&clock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(supported, fake_begin),
		cmocka_unit_test_setup(open_fails, fake_begin),
		cmocka_unit_test_setup(maps_and_renews, fake_begin),
		cmocka_unit_test_setup(frames_carry_their_times, fake_begin),
	};

	return cmocka_run_group_tests(tests, scene_open, scene_close);
}
