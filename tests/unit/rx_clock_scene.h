/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A card whose clock runs at a rate of its own, drifts, is set and fails, in a world in which time
 * passes only when somebody looks at a clock, and now and then much of it. The driver reads the
 * clock, or refuses and libibverbs does. cmocka.h comes before it.
 */
#ifndef GDRCAP_TEST_RX_CLOCK_SCENE_H
#define GDRCAP_TEST_RX_CLOCK_SCENE_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#include <dev_driver.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>

#include "base/log.h"
#include "number_set.h"
#include "port/rx_clock.h"

#define NS 1000000000ull
#define DAY (86400 * NS)
#define EPOCH (20000 * DAY) /* of the time of day, some year 2024 */
#define PORT 77
#define RDMA_MAX 4

int __wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info);
int __wrap_rte_eth_read_clock(uint16_t port, uint64_t *clock);
struct ibv_device **__wrap_ibv_get_device_list(int *count);
void __wrap_ibv_free_device_list(struct ibv_device **list);
struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device);
int __wrap_ibv_close_device(struct ibv_context *context);
int __wrap_rte_mbuf_dyn_rx_timestamp_register(int *offset, uint64_t *flag);
uint64_t __wrap_rte_get_tsc_hz(void);
int __real_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_clock_gettime(clockid_t id, struct timespec *time);
int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

static struct {
	bool on;
	uint64_t capabilities;
	int info_error, clock_error, field_error;
	unsigned int error_after; /* readings that are answered before clock_error */
	uint64_t up;		  /* CLOCK_MONOTONIC, ns */
	uint64_t day;		  /* from there to the time of day */
	long double card;	  /* the card's clock: ticks */
	long double rate;	  /* ticks a ns */
	uint64_t latency;	  /* of a reading of it, ns */
	bool uneven;		  /* it is not read in the middle of that */
	unsigned int smooth;	  /* one look in so many is not interrupted; 0: all */
	uint64_t hz; /* of the TSC, as DPDK says; 0: what is renewed each second is always due */
	uint64_t random;
	unsigned int reads;
	char warned[400];
	/* RDMA devices; the one that is open, or NULL. */
	struct rte_device device;
	struct ibv_device rdma[RDMA_MAX];
	unsigned int rdma_count;
	struct verbs_context verbs;
	const struct ibv_device *opened;
	int lists, list_error, open_error, close_error, query_error;
	unsigned int opens, queries;
} fake;

static void pass(uint64_t ns)
{
	fake.up += ns;
	fake.card += (long double)ns * fake.rate;
}

static uint64_t card(void)
{
	/* It wraps. */
	return fake.card < 0x1p64L ? (uint64_t)fake.card : (uint64_t)(fake.card - 0x1p64L);
}

static uint64_t now(void)
{
	return fake.up + fake.day;
}

int __wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info)
{
	memset(info, 0, sizeof(*info));
	info->device = fake.device.name ? &fake.device : NULL;
	info->rx_offload_capa = fake.capabilities;
	return fake.info_error;
}

static uint64_t card_read(void)
{
	const uint64_t there =
		fake.uneven ? random_below(&fake.random, fake.latency + 1) : fake.latency / 2;
	uint64_t ticks;

	pass(there);
	ticks = card();
	pass(fake.latency - there);
	if (fake.smooth && random_below(&fake.random, fake.smooth))
		pass(300000);
	return ticks;
}

int __wrap_rte_eth_read_clock(uint16_t port, uint64_t *clock)
{
	assert_int_equal(port, PORT);
	if (fake.reads++ >= fake.error_after && fake.clock_error)
		return fake.clock_error;
	*clock = card_read();
	return 0;
}

/* As rdma-core's mlx5 does. */
static int query(struct ibv_context *context, struct ibv_values_ex *values)
{
	assert_ptr_equal(context, &fake.verbs.context);
	assert_non_null(fake.opened);
	assert_int_equal(values->comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	if (fake.queries++ >= fake.error_after && fake.query_error)
		return fake.query_error;
	values->raw_clock = (struct timespec){ .tv_nsec = (long)card_read() };
	return 0;
}

struct ibv_device **__wrap_ibv_get_device_list(int *count)
{
	struct ibv_device **list;

	errno = fake.list_error;
	if (errno)
		return NULL;
	fake.lists++;
	list = calloc(RDMA_MAX + 1, sizeof(struct ibv_device *));
	assert_non_null(list);
	for (unsigned int i = 0; i < fake.rdma_count; i++)
		list[i] = &fake.rdma[i];
	if (count)
		*count = (int)fake.rdma_count;
	return list;
}

void __wrap_ibv_free_device_list(struct ibv_device **list)
{
	fake.lists--;
	free(list);
}

struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device)
{
	assert_null(fake.opened);
	assert_int_equal(fake.lists, 1);
	fake.opens++;
	errno = fake.open_error > 0 ? fake.open_error : 0;
	if (fake.open_error)
		return NULL;
	fake.opened = device;
	return &fake.verbs.context;
}

int __wrap_ibv_close_device(struct ibv_context *context)
{
	assert_ptr_equal(context, &fake.verbs.context);
	assert_non_null(fake.opened);
	fake.opened = NULL;
	errno = fake.close_error;
	return fake.close_error ? -1 : 0;
}

int __wrap_rte_mbuf_dyn_rx_timestamp_register(int *offset, uint64_t *flag)
{
	*offset = 96;
	*flag = 1ull << 30;
	rte_errno = fake.field_error;
	return fake.field_error ? -1 : 0;
}

uint64_t __wrap_rte_get_tsc_hz(void)
{
	return fake.hz;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
	uint64_t ns;

	if (!fake.on)
		return __real_clock_gettime(id, time);
	pass(20);
	ns = id == CLOCK_REALTIME ? now() : fake.up;
	assert_true(id == CLOCK_REALTIME || id == CLOCK_MONOTONIC);
	time->tv_sec = (time_t)(ns / NS);
	time->tv_nsec = (long)(ns % NS);
	return 0;
}

/* A signal comes in the middle. */
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	const uint64_t ns = (uint64_t)time->tv_sec * NS + (uint64_t)time->tv_nsec;

	if (!fake.on)
		return __real_nanosleep(time, left);
	pass(ns > 1000 ? ns / 2 : ns);
	if (ns <= 1000)
		return 0;
	*left = (struct timespec){ .tv_nsec = (long)(ns - ns / 2) };
	errno = EINTR;
	return -1;
}

static void warned(void *context, enum gdrcap_log_level level, const char *line)
{
	assert_int_equal(level, GDRCAP_LOG_WARNING);
	snprintf(fake.warned, sizeof(fake.warned), "%s", line);
}

static struct log sink = { .line = warned };

static int fake_begin(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.on = true;
	fake.capabilities = RTE_ETH_RX_OFFLOAD_TIMESTAMP;
	fake.up = 100000 * NS;
	fake.day = EPOCH;
	fake.rate = 0.15625L; /* 156.25 MHz */
	fake.card = 1e15L;
	fake.latency = 800;
	fake.random = 1;
	fake.verbs.sz = sizeof(fake.verbs);
	fake.verbs.query_rt_values = query;
	fake.verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	log_open(&sink);
	return 0;
}

static int fake_end(void **state)
{
	fake.on = false;
	log_close(&sink);
	assert_null(fake.opened);
	assert_int_equal(fake.lists, 0);
	return 0;
}

static struct rx_clock opened(void)
{
	struct rx_clock clock;

	assert_int_equal(rx_clock_register(&clock, PORT, NULL), 0);
	assert_int_equal(rx_clock_open(&clock, NULL), 0);
	return clock;
}

static uint64_t apart(uint64_t one, uint64_t other)
{
	return one > other ? one - other : other - one;
}

/* The time of a frame that comes now is right to so many ns. */
static void is_right(const struct rx_clock *clock, uint64_t within)
{
	assert_in_range(apart(rx_clock_ns(clock, card()), now()), 0, within);
}

#endif
