/* SPDX-License-Identifier: BSD-3-Clause */
/* The same in C++, as which gdrcap.h is read here. */
#include "test_api_sizes.c"
