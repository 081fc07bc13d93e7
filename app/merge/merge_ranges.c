/* SPDX-License-Identifier: BSD-3-Clause */
/* Which frames of a stream came to a receiver, as its summary has them: believed where they are what its counts say. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <jansson.h>

#include "merge/merge.h"

static int refuse(struct merge_input *input, const struct merge_stream *stream, const char *why)
{
	return merge_refuse(input, MERGE_REFUSED,
			    "does not add up: stream %" PRIu32 ": its ranges %s", stream->id, why);
}

/* [first, length] or [first, length, step, times]. False: it is neither, or beyond 64 bits. */
static bool row_of(const json_t *value, struct gdrcap_numbers *row)
{
	const size_t size = json_array_size(value);
	uint64_t *const to[] = { &row->first, &row->length, &row->step, &row->times };
	unsigned __int128 end;

	*row = (struct gdrcap_numbers){ .times = 1 };
	if (size != 2 && size != 4)
		return false;
	for (size_t i = 0; i < size; i++) {
		struct merge_count count;

		if (!merge_count_of(json_array_get(value, i), &count) || !count.known)
			return false;
		*to[i] = count.count;
	}
	if (row->length == 0 || (size == 4 && (row->times < 2 || row->step <= row->length)))
		return false;
	end = row->first + (unsigned __int128)row->step * (row->times - 1) + row->length;
	return end <= UINT64_MAX;
}

/* Of the counts beside them. */
static int check(struct merge_input *input, struct merge_stream *stream, unsigned __int128 numbers)
{
	const struct merge_count *of = stream->counts.of;
	const struct merge_ranges *ranges = &stream->ranges;

	if (!of[MERGE_VALID].known || !of[MERGE_DAMAGED].known || !of[MERGE_SENT].known)
		return refuse(input, stream, "are there, and its counts are not");
	if (numbers != (unsigned __int128)of[MERGE_VALID].count + of[MERGE_DAMAGED].count)
		return refuse(input, stream, "have not as many frames as are valid or damaged");
	/* From the first that came, or as the stream's end, or its sender, said. */
	if (of[MERGE_SENT].count != ranges->end - ranges->first &&
	    of[MERGE_SENT].count < ranges->end)
		return refuse(input, stream, "have frames beyond those that were sent");
	return 0;
}

int merge_ranges_read(struct merge_input *input, const json_t *array, struct merge_stream *stream)
{
	struct merge_ranges *ranges = &stream->ranges;
	const size_t size = json_array_size(array);
	unsigned __int128 numbers = 0;

	if (!array || json_is_null(array))
		return 0;
	if (!json_is_array(array))
		return refuse(input, stream, "are no list");
	input->range_count += size <= GDRCAP_RANGES_MOST ? (uint32_t)size : GDRCAP_RANGES_MOST;
	if (size > GDRCAP_RANGES_STREAM_MOST || input->range_count > GDRCAP_RANGES_MOST)
		return refuse(input, stream, "are more than a run has");
	ranges->rows = calloc(size + 1, sizeof(*ranges->rows));
	if (!ranges->rows)
		return -ENOMEM;
	for (size_t i = 0; i < size; i++) {
		struct gdrcap_numbers *row = &ranges->rows[i];

		if (!row_of(json_array_get(array, i), row))
			return refuse(
				input, stream,
				"have one that is not [first, length] or [first, length, step, "
				"times] of such numbers");
		if (i && row->first < ranges->end)
			return refuse(input, stream, "overlap, or run backwards");
		if (i == 0)
			ranges->first = row->first;
		ranges->end = merge_row_end(row);
		numbers += (unsigned __int128)row->length * row->times;
	}
	ranges->count = (uint32_t)size;
	ranges->known = true;
	return check(input, stream, numbers);
}
