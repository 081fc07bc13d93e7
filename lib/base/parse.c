/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers, sizes, durations, rates, addresses and lists from text. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/parse.h"

/* <ctype.h> depends on the locale and on the sign of char. */
static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Takes the decimal digits at *text, at least one, no leading zero. */
static int take_decimal(const char **text, uint64_t *value)
{
	const char *at = *text;
	uint64_t sum = 0;
	int overflow = 0;

	if (!is_digit(*at) || (at[0] == '0' && is_digit(at[1])))
		return -EINVAL;
	for (; is_digit(*at); at++) {
		overflow |= __builtin_mul_overflow(sum, 10u, &sum);
		overflow |= __builtin_add_overflow(sum, (uint64_t)(*at - '0'), &sum);
	}
	*text = at;
	*value = sum;
	return overflow ? -ERANGE : 0;
}

int parse_u64(const char *text, uint64_t *value)
{
	uint64_t sum = 0;
	int overflow = 0, ret;

	if (!text)
		return -EINVAL;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		text += 2;
		if (!*text)
			return -EINVAL;
		for (; *text; text++) {
			if (hex_value(*text) < 0)
				return -EINVAL;
			overflow |= sum >> 60 != 0;
			sum = sum << 4 | (uint64_t)hex_value(*text);
		}
		ret = overflow ? -ERANGE : 0;
	} else {
		ret = take_decimal(&text, &sum);
		if (*text)
			return -EINVAL;
	}
	if (!ret)
		*value = sum;
	return ret;
}

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit *unit_find(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (!strcmp(units->name, name))
			return units;
	return NULL;
}

int parse_size(const char *text, uint64_t *bytes)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "K", UINT64_C(1) << 10 },
		{ "KiB", UINT64_C(1) << 10 },
		{ "M", UINT64_C(1) << 20 },
		{ "MiB", UINT64_C(1) << 20 },
		{ "G", UINT64_C(1) << 30 },
		{ "GiB", UINT64_C(1) << 30 },
		{ "T", UINT64_C(1) << 40 },
		{ "TiB", UINT64_C(1) << 40 },
		{ NULL, 0 },
	};
	const struct unit *unit;
	uint64_t number;
	int ret;

	if (!text)
		return -EINVAL;
	ret = take_decimal(&text, &number);
	if (ret == -EINVAL)
		return ret;
	unit = unit_find(units, text);
	if (!unit)
		return -EINVAL;
	if (ret || __builtin_mul_overflow(number, unit->factor, &number))
		return -ERANGE;
	*bytes = number;
	return 0;
}

/* A decimal number as digits * 10^-places; the fraction's trailing zeros are dropped. */
struct decimal {
	uint64_t digits;
	unsigned int places;
};

static int take_fraction(const char **text, struct decimal *number)
{
	const char *at = *text;
	unsigned int zeros = 0;
	int ret;

	number->places = 0;
	ret = take_decimal(&at, &number->digits);
	if (ret == -EINVAL)
		return ret;
	if (*at == '.') {
		at++;
		if (!is_digit(*at))
			return -EINVAL;
		for (; is_digit(*at); at++) {
			unsigned int i;

			zeros++;
			if (*at == '0')
				continue;
			for (i = 0; i < zeros; i++)
				if (__builtin_mul_overflow(number->digits, 10u, &number->digits))
					ret = -ERANGE;
			if (__builtin_add_overflow(number->digits, (uint64_t)(*at - '0'),
						   &number->digits))
				ret = -ERANGE;
			number->places += zeros;
			zeros = 0;
			if (ret == -ERANGE) { /* read on, but count no further */
				number->digits = 1;
				number->places = 0;
			}
		}
	}
	*text = at;
	return ret;
}

/* digits * factor * 10^(tens - places), -EINVAL where that is not whole. */
static int decimal_scale(const struct decimal *number, uint64_t factor, uint64_t tens,
			 uint64_t *result)
{
	uint64_t product = number->digits;
	unsigned int places = number->places;

	if (product == 0) {
		*result = 0;
		return 0;
	}
	if (tens > 19u + places)
		return -ERANGE;
	/* Powers of ten cancel first, so that only a result too large overflows. */
	for (; tens && places; tens--)
		places--;
	for (; places && factor % 10 == 0; places--)
		factor /= 10;
	for (; tens; tens--)
		if (__builtin_mul_overflow(product, 10u, &product))
			return -ERANGE;
	if (__builtin_mul_overflow(product, factor, &product))
		return -ERANGE;
	for (; places; places--) {
		if (product % 10)
			return -EINVAL;
		product /= 10;
	}
	*result = product;
	return 0;
}

int parse_count(const char *text, uint64_t *count)
{
	static const struct unit units[] = {
		{ "", 1 },	  { "k", 1000 },       { "K", 1000 },
		{ "M", 1000000 }, { "G", 1000000000 }, { NULL, 0 },
	};
	const struct unit *unit = units;
	struct decimal number;
	uint64_t tens = 0;
	int ret, ret_tens = 0;

	if (!text)
		return -EINVAL;
	ret = take_fraction(&text, &number);
	if (ret == -EINVAL)
		return ret;
	if (*text == 'e' || *text == 'E') {
		text++;
		if (*text == '+')
			text++;
		ret_tens = take_decimal(&text, &tens);
		if (ret_tens == -EINVAL || *text)
			return -EINVAL;
	} else {
		unit = unit_find(units, text);
		if (!unit)
			return -EINVAL;
	}
	if (ret || (ret_tens && number.digits))
		return -ERANGE;
	return decimal_scale(&number, unit->factor, tens, count);
}

int parse_duration(const char *text, uint64_t *ms)
{
	static const struct unit units[] = {
		{ "", 1000 },	  { "ms", 1 },	    { "s", 1000 },
		{ "min", 60000 }, { "h", 3600000 }, { NULL, 0 },
	};
	const struct unit *unit;
	struct decimal number;
	int ret;

	if (!text)
		return -EINVAL;
	ret = take_fraction(&text, &number);
	if (ret == -EINVAL)
		return ret;
	unit = unit_find(units, text);
	if (!unit)
		return -EINVAL;
	return ret ? ret : decimal_scale(&number, unit->factor, 0, ms);
}

int parse_bool(const char *text, uint32_t *value)
{
	static const struct unit words[] = {
		{ "true", 1 }, { "yes", 1 }, { "on", 1 }, { "1", 1 },  { "false", 0 },
		{ "no", 0 },   { "off", 0 }, { "0", 0 },  { NULL, 0 },
	};
	const struct unit *word = text ? unit_find(words, text) : NULL;

	if (!word)
		return -EINVAL;
	*value = (uint32_t)word->factor;
	return 0;
}

/* Takes "N" or "N-M" at *text, then a comma that something follows or the end. */
static int take_range(const char **text, uint64_t *low, uint64_t *high)
{
	int ret, ret_high = 0;

	ret = take_decimal(text, low);
	if (ret == -EINVAL)
		return ret;
	*high = *low;
	if (**text == '-') {
		++*text;
		ret_high = take_decimal(text, high);
		if (ret_high == -EINVAL)
			return ret_high;
	}
	if (**text == ',') {
		++*text;
		if (!**text)
			return -EINVAL;
	} else if (**text) {
		return -EINVAL;
	}
	if (ret || ret_high)
		return -ERANGE;
	return *low <= *high ? 0 : -EINVAL;
}

int parse_cpu_list(const char *text, int *cpus, size_t max, size_t *count)
{
	uint8_t seen[PARSE_CPUS] = { 0 };
	uint64_t low, high;
	size_t n = 0;
	int ret;

	if (!text || !*text)
		return -EINVAL;
	while (*text) {
		ret = take_range(&text, &low, &high);
		if (ret)
			return ret;
		if (high >= PARSE_CPUS)
			return -ERANGE;
		for (; low <= high; low++) {
			if (seen[low]++)
				return -EINVAL;
			if (n == max)
				return -E2BIG;
			cpus[n++] = (int)low;
		}
	}
	*count = n;
	return 0;
}

int parse_frame_sizes(const char *text, uint16_t least, uint16_t most, uint16_t *sizes, size_t max,
		      size_t *count)
{
	/* Simple IMIX with no run of equal sizes longer than two. */
	static const uint16_t imix[] = { 64, 594, 64, 594, 64, 64, 1518, 64, 594, 64, 594, 64 };
	const size_t imix_count = sizeof(imix) / sizeof(imix[0]);
	uint64_t low, high;
	size_t n = 0;
	int ret;

	if (!text || !*text)
		return -EINVAL;
	if (!strcmp(text, "imix")) {
		if (imix_count > max)
			return -E2BIG;
		memcpy(sizes, imix, sizeof(imix));
		*count = imix_count;
		return 0;
	}
	while (*text) {
		ret = take_range(&text, &low, &high);
		if (ret)
			return ret;
		if (low < least || high > most)
			return -ERANGE;
		if (high - low >= max - n)
			return -E2BIG;
		for (; low <= high; low++)
			sizes[n++] = (uint16_t)low;
	}
	*count = n;
	return 0;
}

int parse_mac(const char *text, uint8_t mac[6])
{
	uint8_t bytes[6];
	unsigned int i;
	char separator;

	if (!text || strlen(text) != 17)
		return -EINVAL;
	separator = text[2];
	if (separator != ':' && separator != '-')
		return -EINVAL;
	for (i = 0; i < 6; i++, text += 3) {
		if (hex_value(text[0]) < 0 || hex_value(text[1]) < 0)
			return -EINVAL;
		if (text[2] != (i < 5 ? separator : '\0'))
			return -EINVAL;
		bytes[i] = (uint8_t)(hex_value(text[0]) << 4 | hex_value(text[1]));
	}
	memcpy(mac, bytes, sizeof(bytes));
	return 0;
}

int parse_ipv4(const char *text, uint32_t *address)
{
	struct in_addr in;

	if (!text || inet_pton(AF_INET, text, &in) != 1)
		return -EINVAL;
	*address = ntohl(in.s_addr);
	return 0;
}
