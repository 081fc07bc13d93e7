/* SPDX-License-Identifier: BSD-3-Clause */
/* When each frame is due: at a rate, or at a file's times. */
#include "replay/pacing.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

/* No frame is due later than this: 56 years at 2.6 GHz. Keeps what hostile times add up to within
 * 64 bits. */
#define DUE_MOST ((uint64_t)1 << 62)
#define FRACTION_BITS 64

/* ---- text ---- */

/* A decimal number without sign or exponent at the text's start; returns what follows, or NULL. */
static const char *number_read(const char *text, double *value)
{
	double scale = 1;
	int digits = 0;

	*value = 0;
	for (; isdigit((unsigned char)*text); text++, digits++)
		*value = *value * 10 + (*text - '0');
	if (*text == '.') {
		text++;
		for (; isdigit((unsigned char)*text); text++, digits++) {
			*value = *value * 10 + (*text - '0');
			scale *= 10;
		}
	}
	*value /= scale;
	return digits > 0 && digits <= 30 ? text : NULL;
}

static int config_take(struct pacing_config *config, enum pacing_kind kind, double value,
		       double least, double most)
{
	if (!(value >= least && value <= most))
		return -EINVAL;
	config->kind = kind;
	config->value = value;
	return 0;
}

int pacing_parse_rate(const char *text, struct pacing_config *config)
{
	static const struct {
		const char *unit;
		enum pacing_kind kind;
		double factor;
	} units[] = {
		{ "bit", PACING_BITS, 1 },	{ "kbit", PACING_BITS, 1e3 },
		{ "mbit", PACING_BITS, 1e6 },	{ "gbit", PACING_BITS, 1e9 },
		{ "tbit", PACING_BITS, 1e12 },	{ "pps", PACING_FRAMES, 1 },
		{ "kpps", PACING_FRAMES, 1e3 }, { "mpps", PACING_FRAMES, 1e6 },
		{ "gpps", PACING_FRAMES, 1e9 },
	};
	double value;

	if (strcmp(text, "max") == 0) {
		*config = (struct pacing_config){ .kind = PACING_NONE };
		return 0;
	}
	text = number_read(text, &value);
	for (size_t i = 0; text && i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(text, units[i].unit) == 0)
			return config_take(config, units[i].kind, value * units[i].factor,
					   units[i].kind == PACING_BITS ? 1 : 0.001, 1e13);
	return -EINVAL;
}

int pacing_parse_speed(const char *text, struct pacing_config *config)
{
	double value;

	if (strcmp(text, "max") == 0) {
		*config = (struct pacing_config){ .kind = PACING_NONE };
		return 0;
	}
	text = number_read(text, &value);
	if (!text || (strcmp(text, "x") != 0 && *text))
		return -EINVAL;
	return config_take(config, PACING_ORIGINAL, value, 1e-6, 1e6);
}

/* ---- times ---- */

/* Ticks: `number` divided by `by`. */
static pacing_ticks ticks_from(uint64_t number, double by)
{
	/* A frame of some 2^14 bytes then still stays within 64 bits. */
	const pacing_ticks most = (pacing_ticks)1 << (46 + FRACTION_BITS);
	const pacing_ticks ticks = (pacing_ticks)number << FRACTION_BITS;
	long double quotient;

	if (by >= 1 && by < 0x1p63 && by == (double)(uint64_t)by) {
		const pacing_ticks exact = ticks / (uint64_t)by;

		return exact < most ? exact : most;
	}
	quotient = (long double)ticks / (long double)by;
	/* Also for what is no number. */
	return quotient < (long double)most ? (pacing_ticks)quotient : most;
}

void pacing_init(struct pacing *pacing, const struct pacing_config *config, uint64_t tsc_hz)
{
	memset(pacing, 0, sizeof(*pacing));
	pacing->config = *config;
	pacing->tsc_hz = tsc_hz;
	pacing->ns_per_tick = 1e9 / (double)tsc_hz;
	pacing->lag_most = tsc_hz / 1000 * PACING_LAG_MS;
	switch (config->kind) {
	case PACING_NONE:
		break;
	case PACING_BITS:
		pacing->ticks_per_byte = ticks_from(tsc_hz * 8, config->value);
		break;
	case PACING_FRAMES:
		pacing->ticks_per_frame = ticks_from(tsc_hz, config->value);
		break;
	case PACING_ORIGINAL:
		pacing->ticks_per_ns = ticks_from(tsc_hz, 1e9 * config->value);
		pacing->lag_most = UINT64_MAX;
		break;
	}
}

void pacing_start(struct pacing *pacing, uint64_t tsc)
{
	pacing->started = true;
	pacing->base_tsc = tsc;
}

static void due_add(struct pacing *pacing, pacing_ticks ticks)
{
	const pacing_ticks most = (pacing_ticks)DUE_MOST << FRACTION_BITS;

	pacing->due = ticks < most - pacing->due ? pacing->due + ticks : most;
}

uint64_t pacing_due(struct pacing *pacing, uint64_t file_ns)
{
	uint64_t gap;

	if (pacing->config.kind == PACING_ORIGINAL && file_ns > pacing->file_ns) {
		gap = file_ns - pacing->file_ns;
		pacing->file_ns = file_ns;
		/* One too long for the product is later than any run lasts. */
		due_add(pacing, pacing->ticks_per_ns < ~(pacing_ticks)0 / gap
					? pacing->ticks_per_ns * gap
					: ~(pacing_ticks)0);
	}
	return (uint64_t)(pacing->due >> FRACTION_BITS);
}

uint64_t pacing_next(struct pacing *pacing, uint32_t bytes, uint64_t file_ns)
{
	const uint64_t due = pacing_due(pacing, file_ns);

	/* For original times both are 0: the next frame's own time says when. */
	due_add(pacing,
		pacing->ticks_per_byte * (bytes + PACING_WIRE_OVERHEAD) + pacing->ticks_per_frame);
	return due;
}

/* ---- sent ---- */

/* Only the worker writes. */
static void count_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static void most_keep(_Atomic uint64_t *most, uint64_t value)
{
	if (value > atomic_load_explicit(most, memory_order_relaxed))
		atomic_store_explicit(most, value, memory_order_relaxed);
}

uint32_t pacing_ready(struct pacing *pacing, const uint64_t *due, uint32_t count, uint64_t now,
		      uint64_t ahead)
{
	uint64_t since = now - pacing->base_tsc;
	uint32_t n = 0;

	if (since > due[0] && since - due[0] > pacing->lag_most) {
		count_add(&pacing->rebased, 1);
		pacing->base_tsc = now - due[0];
		since = due[0];
	}
	while (n < count && due[n] <= since + ahead)
		n++;
	return n;
}

static uint32_t bucket_of(uint64_t ns)
{
	uint32_t octave, eighth;

	if (ns == 0)
		return 0;
	octave = 63u - (uint32_t)__builtin_clzll(ns);
	if (octave >= PACING_BUCKETS / 8)
		return PACING_BUCKETS - 1;
	eighth = (uint32_t)(octave >= 3 ? ns >> (octave - 3) : ns << (3 - octave)) & 7;
	return octave * 8 + eighth;
}

/* The largest whole number of ns in the bucket. */
static uint64_t bucket_last(uint32_t bucket)
{
	const uint32_t octave = bucket / 8, next = 8 + bucket % 8 + 1;

	return octave >= 3 ? ((uint64_t)next << (octave - 3)) - 1
			   : (((uint64_t)next << octave) + 7) / 8 - 1;
}

static void gap_count(struct pacing *pacing, uint64_t real, uint64_t asked)
{
	const uint64_t ticks = real > asked ? real - asked : asked - real;
	const uint64_t ns = (uint64_t)((double)ticks * pacing->ns_per_tick);

	count_add(&pacing->bucket[bucket_of(ns)], 1);
	most_keep(&pacing->gap_max_ns, ns);
}

void pacing_sent(struct pacing *pacing, const uint64_t *due, uint32_t count, uint64_t now)
{
	if (count == 0)
		return;
	if (pacing->last_sent)
		gap_count(pacing, now - pacing->last_sent, due[0] - pacing->last_due);
	for (uint32_t i = 1; i < count; i++)
		gap_count(pacing, 0, due[i] - due[i - 1]);
	count_add(&pacing->gaps, pacing->last_sent ? count : count - 1);
	pacing->last_sent = now;
	pacing->last_due = due[count - 1];
}

void pacing_handed(struct pacing *pacing, const uint64_t *due, uint32_t count, uint64_t now)
{
	const uint64_t since = now - pacing->base_tsc;

	for (uint32_t i = 0; i < count && due[i] < since; i++) {
		count_add(&pacing->late, 1);
		most_keep(&pacing->late_max_ns,
			  (uint64_t)((double)(since - due[i]) * pacing->ns_per_tick));
	}
}

void pacing_gaps(const struct pacing *const *pacings, uint32_t count, struct pacing_gaps *gaps)
{
	uint64_t sum[PACING_BUCKETS] = { 0 }, below = 0, last;

	memset(gaps, 0, sizeof(*gaps));
	for (uint32_t p = 0; p < count; p++) {
		for (uint32_t b = 0; b < PACING_BUCKETS; b++)
			sum[b] +=
				atomic_load_explicit(&pacings[p]->bucket[b], memory_order_relaxed);
		last = atomic_load_explicit(&pacings[p]->gap_max_ns, memory_order_relaxed);
		gaps->max_ns = last > gaps->max_ns ? last : gaps->max_ns;
	}
	for (uint32_t b = 0; b < PACING_BUCKETS; b++)
		gaps->count += sum[b];
	for (uint32_t b = 0; b < PACING_BUCKETS; b++) {
		if (sum[b] == 0)
			continue;
		last = bucket_last(b) < gaps->max_ns ? bucket_last(b) : gaps->max_ns;
		if (below < gaps->count - gaps->count / 2)
			gaps->p50_ns = last;
		if (below < gaps->count - gaps->count / 100)
			gaps->p99_ns = last;
		below += sum[b];
	}
}
