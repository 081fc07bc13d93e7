/* SPDX-License-Identifier: BSD-3-Clause */
/* The gpudev of a back end, opened on first use. After eal_start(). */
#ifndef GDRCAP_GPU_OPEN_H
#define GDRCAP_GPU_OPEN_H

#include <stdbool.h>

#include "gdrcap.h"

/* "gpu_host" (guard 0 or 1) or "gpu_cuda" (ordinal). Returns its id, or a negative errno. */
int gpu_open_host(bool guard, struct gdrcap_error *error);
int gpu_open_cuda(int ordinal, struct gdrcap_error *error);

#endif
