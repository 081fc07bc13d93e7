/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Takes images until the run is over, and prints what is missing. Usage: images CONFIG.yaml (with consumer: host, image:).
 * Exit status 3: something was lost, or wrong.
 */
#include <inttypes.h>
#include <stdio.h>

#include <gdrcap.h>

static void take(const struct gdrcap_image *image)
{
	struct gdrcap_range missing[4];
	const int holes = gdrcap_image_missing(image, missing, 4);

	/* image->data is a device pointer with a GPU: launch kernels on it, or gdrcap_image_copy() it */
	printf("stream %" PRIu64 " image %" PRIu64 ": %" PRIu64 " of %" PRIu64 " bytes%s",
	       image->stream_id, image->number, image->placed, image->bytes,
	       image->end == GDRCAP_IMAGE_COMPLETE ? "\n" : ", missing");
	for (int i = 0; i < holes; i++)
		if (i < 4)
			printf(" %" PRIu64 "+%" PRIu64 "%s", missing[i].from, missing[i].bytes,
			       i + 1 == holes ? "\n"
			       : i == 3	      ? " ...\n"
					      : "");
}

int main(int argc, char **argv)
{
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_session *session = NULL;
	const struct gdrcap_image *image[8];
	struct gdrcap_image_counts counts;
	struct gdrcap_error error;
	int n = -1, passed = 0;

	if (argc != 2 || !config || gdrcap_config_load(config, argv[1], &error) ||
	    gdrcap_create(config, &session, &error) || gdrcap_start(session, &error)) {
		fprintf(stderr, "images: %s\n", argc == 2 && config ? error.text : "give one file");
		gdrcap_destroy(session);
		gdrcap_config_free(config);
		return 1;
	}
	gdrcap_config_free(config);
	struct gdrcap_images *images = gdrcap_get_images(session, 0);

	/* -ESHUTDOWN: the run is over, and the last image was taken */
	while (images && (n = gdrcap_image_wait(images, image, 8, -1)) >= 0) {
		for (int i = 0; i < n; i++)
			take(image[i]);
		gdrcap_image_release(images, image, (unsigned int)n);
	}
	n = gdrcap_stop(session, &error);
	if (!gdrcap_get_image_counts(session, 0, &counts, sizeof(counts)))
		printf("%" PRIu64 " complete, %" PRIu64 " incomplete, %" PRIu64 " dropped, %" PRIu64
		       " skipped\n",
		       counts.complete, counts.incomplete, counts.dropped, counts.skipped);
	if (!n)
		passed = gdrcap_judge(session, &error);
	if (n || passed)
		fprintf(stderr, "images: %s\n", error.text);
	gdrcap_destroy(session);
	return n ? 1 : passed ? 3 : 0;
}
