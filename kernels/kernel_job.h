/* SPDX-License-Identifier: BSD-3-Clause */
/* What every back end checks of a job before it starts workers. Not for users of kernels.h. */
#ifndef GDRCAP_KERNEL_JOB_H
#define GDRCAP_KERNEL_JOB_H

#include "kernels/kernels.h"

#define KERNEL_RINGS_MAX 1024u
#define KERNEL_WORKERS_MAX 1024u       /* of one ring */
#define KERNEL_FRONT_BURSTS_MAX 16384u /* of a ring with a front */

#ifdef __cplusplus
extern "C" {
#endif

/* 0, or -EINVAL with kernel_error() set. */
int kernel_job_check(const struct kernel_job *job);

#ifdef __cplusplus
}
#endif
#endif
