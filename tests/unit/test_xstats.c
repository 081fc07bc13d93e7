/* SPDX-License-Identifier: BSD-3-Clause */
/* xstats.c: counters by name, from doubles of a driver and of the kernel's interface beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>

#include <rte_ethdev.h>

#include "port/xstats.h"

#define PORT 3
#define COUNTERS 8

struct counter {
	const char *name;
	uint64_t value;
};

static struct {
	struct counter driver[COUNTERS], kernel[COUNTERS];
	unsigned int driver_reads;
	uint32_t kernel_count; /* 0: no interface */
	bool driver_fails, kernel_fails, kernel_grows;
} card;

int __wrap_rte_eth_xstats_get_id_by_name(uint16_t port, const char *name, uint64_t *id);
int __wrap_rte_eth_xstats_get_id_by_name(uint16_t port, const char *name, uint64_t *id)
{
	assert_int_equal(port, PORT);
	for (uint64_t i = 0; i < COUNTERS; i++)
		if (card.driver[i].name && strcmp(card.driver[i].name, name) == 0) {
			*id = i + 100;
			return 0;
		}
	return -EINVAL;
}

int __wrap_rte_eth_xstats_get_by_id(uint16_t port, const uint64_t *ids, uint64_t *values,
				    unsigned int count);
int __wrap_rte_eth_xstats_get_by_id(uint16_t port, const uint64_t *ids, uint64_t *values,
				    unsigned int count)
{
	assert_int_equal(port, PORT);
	assert_true(count > 0 && values);
	card.driver_reads++;
	if (card.driver_fails)
		return -EIO;
	for (unsigned int i = 0; i < count; i++) {
		assert_in_range(ids[i], 100, 100 + COUNTERS - 1);
		values[i] = card.driver[ids[i] - 100].value;
	}
	return (int)count;
}

int __wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info)
{
	memset(info, 0, sizeof(*info));
	info->if_index = card.kernel_count ? 42 : 0;
	return 0;
}

char *__wrap_if_indextoname(unsigned int index, char *name);
char *__wrap_if_indextoname(unsigned int index, char *name)
{
	assert_int_equal(index, 42);
	return strcpy(name, "enp59s0f0np0");
}

int __wrap_ioctl(int fd, unsigned long what, ...);
int __wrap_ioctl(int fd, unsigned long what, ...)
{
	struct ifreq *request;
	uint32_t *question;
	va_list args;

	va_start(args, what);
	request = va_arg(args, struct ifreq *);
	va_end(args);
	assert_int_equal(what, SIOCETHTOOL);
	assert_string_equal(request->ifr_name, "enp59s0f0np0");
	question = (uint32_t *)(void *)request->ifr_data;
	if (card.kernel_fails) {
		errno = EOPNOTSUPP;
		return -1;
	}
	if (*question == ETHTOOL_GSSET_INFO) {
		((struct ethtool_sset_info *)(void *)question)->data[0] =
			card.kernel_count + card.kernel_grows;
	} else if (*question == ETHTOOL_GSTRINGS) {
		struct ethtool_gstrings *names = (struct ethtool_gstrings *)(void *)question;

		assert_int_equal(names->string_set, ETH_SS_STATS);
		assert_int_equal(names->len, card.kernel_count);
		for (uint32_t i = 0; i < names->len; i++)
			strncpy((char *)names->data + i * ETH_GSTRING_LEN, card.kernel[i].name,
				ETH_GSTRING_LEN);
	} else if (*question == ETHTOOL_GSTATS) {
		struct ethtool_stats *stats = (struct ethtool_stats *)(void *)question;

		assert_int_equal(stats->n_stats, card.kernel_count);
		for (uint32_t i = 0; i < stats->n_stats; i++)
			((uint64_t *)(void *)stats->data)[i] = card.kernel[i].value;
	} else {
		fail_msg("ethtool command %u", *question);
	}
	return 0;
}

static struct xstats xstats;
static struct xstats_values values;

static int setup(void **state)
{
	memset(&card, 0, sizeof(card));
	memset(&xstats, 0xa5, sizeof(xstats));
	memset(&values, 0xa5, sizeof(values));
	return 0;
}

static void expect(enum xstats_cause cause, uint64_t count)
{
	assert_true(xstats_known(&values, cause));
	assert_int_equal(values.count[cause], count);
}

static void unknown(enum xstats_cause cause)
{
	assert_false(xstats_known(&values, cause));
	assert_int_equal(values.count[cause], 0);
}

/* As DPDK 22.11's mlx5 driver names them, with the kernel for what it lacks. */
static void mlx5(void **state)
{
	card.driver[0] = (struct counter){ "rx_phy_discard_packets", 50 };
	card.driver[1] = (struct counter){ "rx_good_packets", 9 };
	card.driver[2] = (struct counter){ "rx_out_of_buffer", 1000 };
	card.driver[3] = (struct counter){ "rx_phy_crc_errors", 0 };
	card.kernel[0] = (struct counter){ "rx_packets", 5 };
	card.kernel[1] = (struct counter){ "rx_pause_ctrl_phy", 70 };
	/* At the plug the kernel's counts, as that goes on while a port is started again; of our
	 * queues the driver's, as the kernel knows only its own. */
	card.kernel[2] = (struct counter){ "rx_discards_phy", 12345 };
	card.kernel[3] = (struct counter){ "tx_pause_ctrl_phy", 80 };
	card.kernel[4] = (struct counter){ "rx_out_of_buffer", 31 };
	card.kernel_count = 5;
	xstats_open(&xstats, PORT);
	assert_int_equal(card.driver_reads, 1);
	xstats_read(&xstats, &values);
	assert_int_equal(card.driver_reads, 2); /* one question */
	expect(XSTATS_NO_BUFFER, 0);
	expect(XSTATS_CARD_FULL, 0);
	expect(XSTATS_PAUSE_RX, 0);
	unknown(XSTATS_WIRE_SYMBOL);
	unknown(XSTATS_TX_DISCARD);
	card.driver[0].value = 0;
	card.kernel[2].value = 12352;
	card.driver[2].value = 1003;
	card.kernel[4].value = 99;
	card.driver[3].value = 1;
	card.kernel[1].value = 72;
	card.kernel[3].value = 84;
	xstats_read(&xstats, &values);
	expect(XSTATS_CARD_FULL, 7);
	expect(XSTATS_NO_BUFFER, 3);
	expect(XSTATS_WIRE_CRC, 1);
	expect(XSTATS_PAUSE_RX, 2);
	expect(XSTATS_PAUSE_TX, 4);
	assert_int_equal(__builtin_popcount(values.known), 5);
}

/* A start makes the driver count anew, and the kernel not. */
static void started_again(void **state)
{
	struct xstats_values before;

	card.driver[0] = (struct counter){ "rx_out_of_buffer", 1000 };
	card.driver[1] = (struct counter){ "rx_wqe_errors", 5 };
	card.kernel[0] = (struct counter){ "rx_discards_phy", 40 };
	card.kernel_count = 1;
	xstats_open(&xstats, PORT);
	card.driver[0].value = 1007;
	card.kernel[0].value = 42;
	xstats_read(&xstats, &before);
	card.driver[0].value = 0;
	card.driver[1].value = 6; /* of another driver: it went on */
	card.kernel[0].value = 43;
	xstats_go_on(&xstats, &before);
	card.driver[0].value = 2;
	xstats_read(&xstats, &values);
	expect(XSTATS_NO_BUFFER, 7 + 2);
	expect(XSTATS_QUEUE_ERROR, 1);
	expect(XSTATS_CARD_FULL, 3);
	/* and once more */
	card.driver[0].value = 0;
	xstats_go_on(&xstats, &values);
	xstats_read(&xstats, &values);
	expect(XSTATS_NO_BUFFER, 7 + 2);
}

static void kernel_names(void **state)
{
	/* another driver, which has the kernel's names */
	card.driver[4] = (struct counter){ "rx_discards_phy", 5 };
	xstats_open(&xstats, PORT);
	card.driver[4].value = 6;
	xstats_read(&xstats, &values);
	expect(XSTATS_CARD_FULL, 1);
	assert_int_equal(__builtin_popcount(values.known), 1);
}

static void nothing(void **state)
{
	xstats_open(&xstats, PORT); /* a software port */
	xstats_read(&xstats, &values);
	assert_int_equal(values.known, 0);
	assert_int_equal(card.driver_reads, 0);
	card.kernel_count = 1;
	card.kernel[0] = (struct counter){ "rx_pause_ctrl_phy", 1 };
	card.kernel_fails = true;
	xstats_open(&xstats, PORT);
	xstats_read(&xstats, &values);
	assert_int_equal(values.known, 0);
}

/* What cannot be read is unknown, and not what it was. */
static void failures(void **state)
{
	card.driver[0] = (struct counter){ "rx_out_of_buffer", 10 };
	card.kernel[0] = (struct counter){ "rx_pause_ctrl_phy", 20 };
	card.kernel_count = 1;
	xstats_open(&xstats, PORT);
	card.driver_fails = true;
	card.kernel[0].value = 21;
	xstats_read(&xstats, &values);
	unknown(XSTATS_NO_BUFFER);
	expect(XSTATS_PAUSE_RX, 1);
	card.driver_fails = false;
	card.kernel_grows = true; /* its positions are no longer those that were looked up */
	card.driver[0].value = 15;
	xstats_read(&xstats, &values);
	expect(XSTATS_NO_BUFFER, 5);
	unknown(XSTATS_PAUSE_RX);
	/* no base: never known */
	card.driver_fails = true;
	card.kernel_grows = false;
	xstats_open(&xstats, PORT);
	card.driver_fails = false;
	xstats_read(&xstats, &values);
	unknown(XSTATS_NO_BUFFER);
}

static void too_many(void **state)
{
	card.kernel_count = UINT32_MAX;
	xstats_open(&xstats, PORT);
	xstats_read(&xstats, &values);
	assert_int_equal(values.known, 0);
}

static void names(void **state)
{
	for (int c = 0; c < XSTATS_CAUSES; c++)
		for (int d = 0; d < c; d++)
			assert_string_not_equal(xstats_cause_name((enum xstats_cause)c),
						xstats_cause_name((enum xstats_cause)d));
	assert_string_equal(xstats_cause_name(XSTATS_CAUSES), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(mlx5, setup),
		cmocka_unit_test_setup(started_again, setup),
		cmocka_unit_test_setup(kernel_names, setup),
		cmocka_unit_test_setup(nothing, setup),
		cmocka_unit_test_setup(failures, setup),
		cmocka_unit_test_setup(too_many, setup),
		cmocka_unit_test_setup(names, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
