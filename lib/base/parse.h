/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text to values, strictly: no blanks, no signs, no locale, nothing left over. Each returns 0;
 * -EINVAL when the text is not of the form; -ERANGE when it is but the value does not fit.
 * Results are written only on success. `text` may be any NUL-ended string; NULL is -EINVAL.
 */
#ifndef GDRCAP_PARSE_H
#define GDRCAP_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* The longest cycle of frame sizes: every size of the widest range, and as many more. */
#define PARSE_FRAME_SIZES_MAX 16384u
/* Highest CPU number + 1 that a CPU list may name: the kernel's own limit. */
#define PARSE_CPUS 8192

/* Decimal without leading zeros, or 0x and hexadecimal digits. */
int parse_u64(const char *text, uint64_t *value);

/* Bytes: a decimal number, optionally with K, M, G or T (also KiB, ...): powers of 1024. */
int parse_size(const char *text, uint64_t *bytes);

/* A count: "1000000", "10M" (k, K, M, G: powers of 1000), "1e6", "2.5M". Must come out whole. */
int parse_count(const char *text, uint64_t *count);

/* Seconds to milliseconds: "10", "0.25" (at most three decimals), or with a unit: "250ms", "10s",
 * "5min", "12h". Must come out in whole milliseconds. */
int parse_duration(const char *text, uint64_t *ms);

/* A time: "2026-11-26T12:00:00.5Z" or with an offset as of +01:00 (RFC 3339), "1795694400.25" (seconds since 1970 UTC), or
 * "+2.5" (seconds from a moment that the caller knows). Up to nine decimals. */
struct parse_moment {
	uint64_t ns;	/* since 1970 UTC, then never 0; or from that moment */
	uint64_t after; /* 1: from that moment */
};
int parse_moment(const char *text, struct parse_moment *moment);

/* "true", "yes", "on", "1" or "false", "no", "off", "0". */
int parse_bool(const char *text, uint32_t *value);

/* "2,4-7": CPU numbers in the order given. -EINVAL also for a CPU named twice, -E2BIG for more than
 * `max`. The empty text is -EINVAL. */
int parse_cpu_list(const char *text, int *cpus, size_t max, size_t *count);

/*
 * Frame sizes in bytes with FCS, `least`..`most` (-ERANGE outside), as the cycle
 * that the sender goes through: "64"; "64,512,1518"; "64-1518" (each size of the range in turn);
 * both mixed; "imix" (64, 594 and 1518 in the ratio 7:4:1, interleaved). -E2BIG: more than `max`.
 */
int parse_frame_sizes(const char *text, uint16_t least, uint16_t most, uint16_t *sizes, size_t max,
		      size_t *count);

/* "02:00:00:00:00:01", colons or dashes. */
int parse_mac(const char *text, uint8_t mac[6]);

/* Dotted quad, in host byte order. */
int parse_ipv4(const char *text, uint32_t *address);

#endif
