/* SPDX-License-Identifier: BSD-3-Clause */
/* app/merge: how many different numbers rows of several receivers have, against a bit for each. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "merge/merge.h"
#include "number_set.h"

#define ROUNDS 3000
#define RECEIVERS_MAX 5u

static uint64_t unite(const struct merge_ranges *ranges, uint32_t count, int status)
{
	uint64_t work = 1 << 27, numbers = 0;

	assert_int_equal(merge_unite(ranges, count, &work, &numbers), status);
	return numbers;
}

#define SPACE 5000u

static void test_random_rows(void **state)
{
	static struct gdrcap_numbers rows[RECEIVERS_MAX][64];
	static uint8_t there[SPACE];

	for (uint64_t n = 1; n <= ROUNDS; n++) {
		struct merge_ranges ranges[RECEIVERS_MAX] = { 0 };
		const uint32_t count = 1 + (uint32_t)(n % RECEIVERS_MAX);
		uint64_t numbers = 0, random = n;

		memset(there, 0, sizeof(there));
		for (uint32_t r = 0; r < count; r++) {
			uint64_t at = random_below(&random, 50);

			ranges[r].rows = rows[r];
			for (;;) {
				struct gdrcap_numbers row = { at, 1 + random_below(&random, 9), 0,
							      1 };

				if (random_below(&random, 3)) {
					row.step = row.length + 1 + random_below(&random, 12);
					row.times = 2 + random_below(&random, 200);
				}
				at = merge_row_end(&row) + random_below(&random, 30);
				if (at > SPACE || ranges[r].count == 64)
					break;
				rows[r][ranges[r].count++] = row;
				for (uint64_t t = 0; t < row.times; t++)
					memset(&there[row.first + t * row.step], 1, row.length);
			}
		}
		for (uint32_t i = 0; i < SPACE; i++)
			numbers += there[i];
		assert_int_equal(unite(ranges, count, 0), numbers);
	}
}

/* A year of frames, in turn: no time; and what would take for ever is not known. */
static void test_large_rows(void **state)
{
	struct gdrcap_numbers rows[] = {
		{ 0, 1, 3, 1000000000000000 },
		{ 1, 1, 3, 1000000000000000 },
		{ 2, 1, 3, 999999999999999 },
	};
	struct merge_ranges ranges[] = {
		{ .rows = &rows[0], .count = 1 },
		{ .rows = &rows[1], .count = 1 },
		{ .rows = &rows[2], .count = 1 },
	};

	assert_true(unite(ranges, 3, 0) == 2999999999999999);
	rows[2] = (struct gdrcap_numbers){ 0, 1, 2, 1500000000000000 };
	assert_true(unite(ranges, 3, 0) == 2500000000000000);
	rows[0] = (struct gdrcap_numbers){ 0, 1, 1000003, 1000000000 };
	rows[1] = (struct gdrcap_numbers){ 0, 1, 999983, 1000000000 };
	unite(ranges, 2, -EOVERFLOW);
	rows[0] = (struct gdrcap_numbers){ 0, 1, 2, UINT64_MAX / 2 };
	rows[1] = (struct gdrcap_numbers){ 0, UINT64_MAX / 2, UINT64_MAX / 2 + 1, 1 };
	rows[1].step = 0;
	assert_true(unite(ranges, 2, 0) == UINT64_MAX / 2 + UINT64_MAX / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_rows),
		cmocka_unit_test(test_large_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
