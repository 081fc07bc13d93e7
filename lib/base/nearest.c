/* SPDX-License-Identifier: BSD-3-Clause */
/* How far two names are from each other, and how near is near. */
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 32u

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Edits (insert, delete, replace, swap neighbours) from a to b; both shorter than NAME_MAX_BYTES. */
static unsigned int edits_between(const char *a, const char *b)
{
	unsigned int cost[NAME_MAX_BYTES][NAME_MAX_BYTES];
	const size_t m = strlen(a), n = strlen(b);

	for (unsigned int i = 0; i <= m; i++) {
		for (unsigned int j = 0; j <= n; j++) {
			unsigned int best;

			if (!i || !j) {
				cost[i][j] = i + j;
				continue;
			}
			best = least(cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
				     least(cost[i - 1][j], cost[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = least(best, cost[i - 2][j - 2] + 1);
			cost[i][j] = best;
		}
	}
	return cost[m][n];
}

void nearest_consider(struct nearest *nearest, const char *candidate)
{
	const size_t length = strlen(nearest->name);
	const unsigned int most = length < 4 ? 1 : 1 + (unsigned int)(length < 9 ? length / 3 : 3);
	unsigned int edits;

	if (length < 2 || length >= NAME_MAX_BYTES || strlen(candidate) >= NAME_MAX_BYTES)
		return;
	/* What is written out further is near: --frame, --frame-size. */
	edits = length > 2 && !strncmp(nearest->name, candidate, length)
			? 1
			: edits_between(nearest->name, candidate);
	if (edits > most || (nearest->best && edits >= nearest->edits))
		return;
	nearest->best = candidate;
	nearest->edits = edits;
}

const char *nearest_hint(struct nearest *nearest, const char *dashes)
{
	if (!nearest->best)
		return "";
	snprintf(nearest->hint, sizeof(nearest->hint), "; did you mean '%s%s'?", dashes,
		 nearest->best);
	return nearest->hint;
}
