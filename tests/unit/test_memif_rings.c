/* SPDX-License-Identifier: BSD-3-Clause */
/* What is read out of memory that a memif's other end writes: what is left, or that it is not known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <ethdev_driver.h>

#include "port/memif_rings.h"

#define PORT 3u
#define COOKIE 0x3E31F20u
#define LINE ((size_t)RTE_CACHE_LINE_SIZE)
#define STEP(log2) (2 * LINE + ((size_t)16 << (log2)))

/* Ends where its last byte ends, so that a sanitizer sees what is read behind it. */
static uint8_t *memory;
static size_t bytes;

static void memory_is(size_t wanted)
{
	memif_rings_forget(&rte_eth_devices[PORT]);
	free(memory);
	memory = malloc(wanted);
	assert_non_null(memory);
	memset(memory, 0, wanted);
	bytes = wanted;
	memif_rings_mapped(&rte_eth_devices[PORT], memory, bytes);
	/* A later piece is not looked at. */
	memif_rings_mapped(&rte_eth_devices[PORT], memory + bytes, 1 << 20);
}

static void ring_is(size_t at, uint16_t head, uint16_t tail)
{
	const uint32_t cookie = COOKIE;

	memcpy(memory + at, &cookie, sizeof(cookie));
	memcpy(memory + at + 6, &head, sizeof(head));
	memcpy(memory + at + LINE, &tail, sizeof(tail));
}

static void left_is(int server, uint32_t queues, uint64_t expected)
{
	uint64_t left = UINT64_MAX;

	assert_true(memif_rings_left(PORT, server, queues, &left));
	assert_int_equal(left, expected);
}

static void not_known(uint32_t queues)
{
	uint64_t left;

	assert_false(memif_rings_left(PORT, 0, queues, &left));
	assert_false(memif_rings_left(PORT, 1, queues, &left));
}

/* Two queues each way, of 8 places: each end's own are counted, over the numbers' wrap too. */
static void test_left(void **state)
{
	memory_is(4 * STEP(3));
	ring_is(0, 5, 0);
	ring_is(STEP(3), 2, 65534);
	ring_is(2 * STEP(3), 8, 0);
	ring_is(3 * STEP(3), 1, 65535);
	left_is(0, 2, 5 + 4);
	left_is(1, 2, 0 + 6);
	left_is(0, 1, 5);
	left_is(1, 1, 6);
	not_known(5);
	memif_rings_lost(PORT, false);
	memif_rings_forget(&rte_eth_devices[PORT]);
	not_known(1);
}

static void lost_is(bool server, uint64_t places, bool unknown)
{
	const struct memif_lost lost = memif_rings_lost(PORT, server);

	assert_int_equal(lost.places, places);
	assert_int_equal(lost.unknown, unknown);
}

/* What connections left behind when they ended is kept until it is asked for, and told once. */
static void test_lost(void **state)
{
	for (int server = 0; server < 2; server++) {
		memory_is(2 * STEP(3));
		memif_rings_lost(PORT, server);
		ring_is(0, 5, 0);
		ring_is(STEP(3), 8, 2);
		memory_is(2 * STEP(3)); /* that one has ended */
		ring_is(0, 3, 2);
		ring_is(STEP(3), 8, 0);
		memif_rings_forget(&rte_eth_devices[PORT]);
		memif_rings_forget(&rte_eth_devices[PORT]);
		lost_is(server, server ? 2 : 5 + 1, false);
		lost_is(server, 0, false);
		memory_is(2 * STEP(3));
		memif_rings_forget(&rte_eth_devices[PORT]);
		lost_is(server, 0, true);
	}
}

/* No ring, one, a ring that is cut, numbers that cannot be, rings to the end of the memory. */
static void test_hostile(void **state)
{
	not_known(1);
	memory_is(64);
	not_known(1);
	memory_is(4);
	not_known(1);
	memory_is(STEP(14) + 2 * LINE);
	not_known(1);
	ring_is(0, 0, 0);
	not_known(1);
	ring_is(STEP(14), 0, 0);
	left_is(0, 1, 0);
	memory_is(STEP(14) + 2 * LINE - 1);
	ring_is(0, 0, 0);
	memcpy(memory + STEP(14), &(uint32_t){ COOKIE }, sizeof(uint32_t));
	not_known(1);
	memory_is(2 * STEP(0));
	ring_is(0, 2, 0);
	ring_is(STEP(0), 0, 1);
	not_known(1);
	ring_is(0, 1, 0);
	ring_is(STEP(0), 1, 0);
	left_is(0, 1, 1);
	left_is(1, 1, 0);
	/* Every ring's length would fit: the shortest is taken, and what then is no ring ends them. */
	memory_is(1 << 16);
	for (size_t at = 0; at + 2 * LINE <= bytes; at += STEP(0))
		ring_is(at, 1, 0);
	left_is(0, 64, 64);
	not_known(UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_left),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests_name("memif_rings", tests, NULL, NULL);
}
