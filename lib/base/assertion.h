/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of what callers promise, compiled in by Meson's option `assertions`: one that fails says
 * on stderr what was done and which rule it breaks, and ends the process. */
#ifndef GDRCAP_ASSERTION_H
#define GDRCAP_ASSERTION_H

#ifdef GDRCAP_ASSERTIONS
#define assertion(condition, ...)                                                                  \
	do {                                                                                       \
		if (!(condition))                                                                  \
			assertion_failed(__VA_ARGS__);                                             \
	} while (0)
#else
#define assertion(condition, ...) ((void)0)
#endif

void assertion_failed(const char *format, ...)
	__attribute__((noreturn, cold, format(printf, 1, 2)));

#endif
