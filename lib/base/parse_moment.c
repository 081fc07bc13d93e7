/* SPDX-License-Identifier: BSD-3-Clause */
/* Moments of the wall clock from text: RFC 3339, seconds since 1970, seconds from now. */
#include <errno.h>
#include <stdbool.h>

#include "base/parse.h"

#define SECOND UINT64_C(1000000000)

/* Exactly `digits` of them. */
static bool take_fixed(const char **text, unsigned int digits, uint32_t *value)
{
	*value = 0;
	for (; digits; digits--, ++*text) {
		if (**text < '0' || **text > '9')
			return false;
		*value = *value * 10 + (uint32_t)(**text - '0');
	}
	return true;
}

static bool take_char(const char **text, char c)
{
	const bool there = **text == c;

	*text += there;
	return there;
}

/* ".5": up to nine decimals, to ns. None is right too. */
static bool take_decimals(const char **text, uint64_t *ns)
{
	uint64_t unit = SECOND;

	*ns = 0;
	if (!take_char(text, '.'))
		return true;
	if (**text < '0' || **text > '9')
		return false;
	for (; **text >= '0' && **text <= '9'; ++*text) {
		unit /= 10;
		if (!unit)
			return false;
		*ns += unit * (uint64_t)(**text - '0');
	}
	return true;
}

/* Whole seconds without leading zeros, and decimals, to the text's end. */
static int take_seconds(const char *text, uint64_t *ns)
{
	uint64_t seconds = 0, decimals;
	bool overflow = false;

	if (*text < '0' || *text > '9' || (text[0] == '0' && text[1] >= '0' && text[1] <= '9'))
		return -EINVAL;
	for (; *text >= '0' && *text <= '9'; text++) {
		overflow |= __builtin_mul_overflow(seconds, 10u, &seconds);
		overflow |= __builtin_add_overflow(seconds, (uint64_t)(*text - '0'), &seconds);
	}
	if (!take_decimals(&text, &decimals) || *text)
		return -EINVAL;
	overflow |= __builtin_mul_overflow(seconds, SECOND, &seconds);
	overflow |= __builtin_add_overflow(seconds, decimals, ns);
	return overflow ? -ERANGE : 0;
}

static uint32_t days_in(uint32_t year, uint32_t month)
{
	static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 && leap);
}

/* Days from 1970-01-01 to the day; its year is 1970 or later. */
static uint64_t days_to(uint32_t year, uint32_t month, uint32_t day)
{
	const uint32_t before = year - 1;
	uint64_t days = (year - 1970) * UINT64_C(365) + (before / 4 - 1969 / 4) -
			(before / 100 - 1969 / 100) + (before / 400 - 1969 / 400);

	for (uint32_t m = 1; m < month; m++)
		days += days_in(year, m);
	return days + day - 1;
}

/* "Z", "+01:00" or "-08:30": seconds that local time is ahead of UTC. */
static int take_zone(const char **text, int64_t *ahead)
{
	const int sign = **text == '-' ? -1 : 1;
	uint32_t hours, minutes;

	*ahead = 0;
	if (take_char(text, 'Z') || take_char(text, 'z'))
		return 0;
	if (!take_char(text, '+') && !take_char(text, '-'))
		return -EINVAL;
	if (!take_fixed(text, 2, &hours) || !take_char(text, ':') || !take_fixed(text, 2, &minutes))
		return -EINVAL;
	*ahead = sign * ((int64_t)hours * 3600 + minutes * 60);
	return hours > 23 || minutes > 59 ? -ERANGE : 0;
}

static int take_date(const char *text, uint64_t *ns)
{
	uint32_t year, month, day, hour, minute, second;
	uint64_t decimals, seconds;
	int64_t ahead;
	int ret;

	if (!take_fixed(&text, 4, &year) || !take_char(&text, '-') ||
	    !take_fixed(&text, 2, &month) || !take_char(&text, '-') ||
	    !take_fixed(&text, 2, &day) || !(take_char(&text, 'T') || take_char(&text, 't')) ||
	    !take_fixed(&text, 2, &hour) || !take_char(&text, ':') ||
	    !take_fixed(&text, 2, &minute) || !take_char(&text, ':') ||
	    !take_fixed(&text, 2, &second) || !take_decimals(&text, &decimals))
		return -EINVAL;
	ret = take_zone(&text, &ahead);
	if (ret == -EINVAL || *text)
		return -EINVAL;
	/* The clock has no leap seconds. 2554 is the last year whose ns fit 64 bits. */
	if (ret || year < 1970 || year > 2553 || month < 1 || month > 12 || day < 1 ||
	    day > days_in(year, month) || hour > 23 || minute > 59 || second > 59)
		return -ERANGE;
	seconds = days_to(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
	if (ahead > 0 && (uint64_t)ahead > seconds)
		return -ERANGE;
	*ns = (seconds - (uint64_t)ahead) * SECOND + decimals;
	return 0;
}

int parse_moment(const char *text, struct parse_moment *moment)
{
	struct parse_moment at = { 0 };
	int ret;

	if (!text)
		return -EINVAL;
	at.after = *text == '+';
	if (at.after)
		ret = take_seconds(text + 1, &at.ns);
	else if (text[0] && text[1] && text[2] && text[3] && text[4] == '-')
		ret = take_date(text, &at.ns);
	else
		ret = take_seconds(text, &at.ns);
	/* 1970 itself is nobody's time. */
	if (ret == 0 && !at.after && at.ns == 0)
		ret = -ERANGE;
	if (ret == 0)
		*moment = at;
	return ret;
}
