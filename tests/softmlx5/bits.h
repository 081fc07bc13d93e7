/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fields of the device's commands and contexts.
 *
 * They are big-endian and counted in bits from the start of the structure, the most significant bit
 * of a dword first. A field does not cross a dword, except those of 64 bits, which are two.
 */
#ifndef SOFT_BITS_H
#define SOFT_BITS_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

struct soft_field {
	uint16_t bit;
	uint8_t width;
};

#define SOFT_FIELD(bit, width) ((struct soft_field){ bit, width })

static inline uint32_t bits_get(const void *base, struct soft_field field)
{
	uint32_t dword;
	unsigned int shift = 32 - field.bit % 32 - field.width;

	memcpy(&dword, (const uint8_t *)base + field.bit / 32 * 4, sizeof(dword));
	dword = be32toh(dword) >> shift;
	return field.width == 32 ? dword : dword & ((1u << field.width) - 1);
}

static inline void bits_set(void *base, struct soft_field field, uint32_t value)
{
	uint8_t *place = (uint8_t *)base + field.bit / 32 * 4;
	unsigned int shift = 32 - field.bit % 32 - field.width;
	uint32_t mask = field.width == 32 ? UINT32_MAX : ((1u << field.width) - 1) << shift;
	uint32_t dword;

	memcpy(&dword, place, sizeof(dword));
	dword = htobe32((be32toh(dword) & ~mask) | ((value << shift) & mask));
	memcpy(place, &dword, sizeof(dword));
}

static inline uint64_t bits_get64(const void *base, unsigned int bit)
{
	uint64_t qword;

	memcpy(&qword, (const uint8_t *)base + bit / 8, sizeof(qword));
	return be64toh(qword);
}

static inline void bits_set64(void *base, unsigned int bit, uint64_t value)
{
	value = htobe64(value);
	memcpy((uint8_t *)base + bit / 8, &value, sizeof(value));
}

#endif
