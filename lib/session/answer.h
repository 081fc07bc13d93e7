/* SPDX-License-Identifier: BSD-3-Clause */
/* Structs that results are put into, of the size that the caller's gdrcap.h has: "Sizes" there. */
#ifndef GDRCAP_ANSWER_H
#define GDRCAP_ANSWER_H

#include <errno.h>
#include <string.h>

#include "base/guest.h"

#define ANSWER_BYTES_MIN 8u /* gdrcap.h promises it */

/* 0 when there is a session, a queue or the like to ask, and a place for the answer. */
static inline int answer_check(const void *asked, const char *what, const void *to, size_t size)
{
	const int ret = guest_check(asked, what, NULL);

	return ret == 0 && (!to || size < ANSWER_BYTES_MIN) ? -EINVAL : ret;
}

/* What an older caller's struct lacks is left out, what a newer one's has in addition is 0. */
static inline void answer_give(void *to, size_t size, const void *from, size_t bytes)
{
	memcpy(to, from, size < bytes ? size : bytes);
	if (size > bytes)
		memset((char *)to + bytes, 0, size - bytes);
}

#endif
