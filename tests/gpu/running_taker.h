/* SPDX-License-Identifier: BSD-3-Clause */
/* A running kernel that takes images, for a program in C. */
#ifndef GDRCAP_TEST_RUNNING_TAKER_H
#define GDRCAP_TEST_RUNNING_TAKER_H

#include "gdrcap.h"

#ifdef __cplusplus
extern "C" {
#endif

struct taker_words {	/* in pinned memory */
	uint64_t seen;	/* images so far */
	uint32_t wrong; /* images with a wrong byte */
};

/* 0, or -1. It leaves when the images end. */
int taker_start(const struct gdrcap_gpu_images *images, struct taker_words *words);

#ifdef __cplusplus
}
#endif
#endif
