/* SPDX-License-Identifier: BSD-3-Clause */
/* What is asked of results. */
#include "summary/results.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

void results_run_now(struct results_run *run)
{
	struct timespec now;

	memset(run, 0, sizeof(*run));
	/* A name that does not fit may not be ended. */
	if (gethostname(run->host, sizeof(run->host) - 1))
		run->host[0] = '\0';
	run->pid = (uint32_t)getpid();
	clock_gettime(CLOCK_REALTIME, &now);
	run->started_ns = UINT64_C(1000000000) * (uint64_t)now.tv_sec + (uint64_t)now.tv_nsec;
}

const char *results_option(const struct results *results, const char *key, uint32_t index)
{
	return gdrcap_config_get(results->config, key, index);
}

bool results_receive(const struct results *results)
{
	return results_option(results, "port", 0) != NULL;
}

void results_images_add(struct gdrcap_image_counts *total, const struct gdrcap_image_counts *counts)
{
	const uint64_t cut = counts->cut_by_start + counts->cut_by_stop;
	const bool kept = counts->incomplete >= cut; /* else `incomplete: drop` */

	total->complete += counts->complete;
	total->misfit += counts->misfit;
	total->conflict += counts->conflict;
	/* the slower leg comes when the faster one has completed the image */
	total->late += counts->legs == 2 ? 0 : counts->late;
	total->incomplete += counts->incomplete - (kept ? cut : 0);
	total->dropped += counts->dropped - (kept ? 0 : cut);
	total->cut_by_start += counts->cut_by_start;
	total->cut_by_stop += counts->cut_by_stop;
	total->skipped += counts->skipped;
	total->pieces_lost += counts->pieces_lost;
	total->bytes += counts->bytes;
}

void results_images_total(const struct results *results, struct gdrcap_image_counts *total)
{
	memset(total, 0, sizeof(*total));
	for (uint32_t i = 0; i < results->image_count; i++)
		results_images_add(total, &results->images[i].counts);
}
