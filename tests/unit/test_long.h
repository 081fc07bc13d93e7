/* SPDX-License-Identifier: BSD-3-Clause */
/* `make check-long` sets TEST_LONG=1 and plays all there is. Elsewhere tests play fewer of many alike cases. */
#ifndef GDRCAP_TEST_LONG_H
#define GDRCAP_TEST_LONG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline bool test_is_long(void)
{
	const char *asked = getenv("TEST_LONG");

	return asked && strcmp(asked, "1") == 0;
}

static inline uint64_t test_cases(uint64_t all, uint64_t some)
{
	return test_is_long() ? all : some;
}

#endif
