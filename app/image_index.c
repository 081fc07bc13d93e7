/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of a raw images' index. */
#include "image_index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "summary/results.h"

char *image_index_path(const char *images)
{
	char *path;

	return asprintf(&path, "%s.jsonl", images) < 0 ? NULL : path;
}

int image_about_fill(struct image_about *about, const struct gdrcap_image *image)
{
	const int ranges =
		image->end == GDRCAP_IMAGE_COMPLETE ? 0 : gdrcap_image_missing(image, NULL, 0);

	if (ranges > about->room) {
		struct gdrcap_range *more =
			realloc(about->missing, (size_t)ranges * sizeof(*about->missing));

		if (!more)
			return -ENOMEM;
		about->missing = more;
		about->room = ranges;
	}
	about->image = *image;
	about->ranges = ranges;
	if (ranges)
		gdrcap_image_missing(image, about->missing, (unsigned int)ranges);
	return 0;
}

static void line_print(FILE *to, const struct image_about *about, uint64_t at)
{
	const struct gdrcap_image *image = &about->image;

	fprintf(to,
		"{\"seq\":%" PRIu64 ",\"number\":%" PRIu64 ",\"stream_id\":%" PRIu64
		",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"timestamp\":%" PRIu64
		",\"first_time\":%" PRIu64 ",\"last_time\":%" PRIu64
		",\"end\":\"%s\",\"missing\":[",
		image->seq, image->number, image->stream_id, at, image->bytes, image->timestamp,
		image->first_time, image->last_time, results_end_names[image->end]);
	for (int i = 0; i < about->ranges; i++)
		fprintf(to, "%s[%" PRIu64 ",%" PRIu64 "]", i ? "," : "", about->missing[i].from,
			about->missing[i].bytes);
	fprintf(to, "]}\n");
}

int image_index_add(struct image_index *index, const struct image_about *about)
{
	size_t bytes = 0;
	char *line = NULL;
	FILE *to = open_memstream(&line, &bytes);
	int ret = -ENOMEM;

	if (!to)
		return ret;
	line_print(to, about, index->at);
	index->at += about->image.bytes;
	if (fclose(to) == 0)
		ret = json_file_write(&index->file, line, bytes);
	free(line);
	return ret;
}
