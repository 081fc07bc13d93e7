/* SPDX-License-Identifier: BSD-3-Clause */
/* From the session into the report. */
#include "run_loop_ranges.h"

#include <stdlib.h>

#include "base/parse.h"

void run_ranges_collect(struct run *run)
{
	struct report *report = &run->report;
	const char *asked = report_option(report, "ranges", 0);
	uint32_t on = 0;

	if (!asked || parse_bool(asked, &on) || !on)
		return;
	report->has_ranges = 1;
	for (uint32_t i = 0; i < report->stream_count; i++) {
		struct report_stream *stream = &report->streams[i];
		const int count = gdrcap_get_ranges(run->session, i, NULL, 0);

		if (count < 0)
			continue;
		/* Without memory they are not known, and the counts are. */
		stream->ranges = calloc((size_t)count + 1, sizeof(*stream->ranges));
		if (!stream->ranges)
			continue;
		stream->range_count = (uint32_t)count;
		gdrcap_get_ranges(run->session, i, stream->ranges, stream->range_count);
	}
}

void run_ranges_free(struct run *run)
{
	for (uint32_t i = 0; i < run->report.stream_count; i++) {
		free(run->report.streams[i].ranges);
		run->report.streams[i].ranges = NULL;
	}
}
