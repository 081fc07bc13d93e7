/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that mean nothing to the caller's own consumer, of frames or of images: refused, never accepted
 * and ignored. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/option_table.h"
#include "config/settings_internal.h"

enum {
	OWN_HOST = 1u << CONSUMER_HOST,
	OWN_GPU = 1u << CONSUMER_GPU,
	OWN = OWN_HOST | OWN_GPU,
	RECEIVED = 1u << 8, /* only where nothing is sent: a sender takes it */
	FRAMES = 1u << 9,   /* only of frames: our placing workers take it */
	IMAGES = 1u << 10,  /* not with images, whoever takes them */
};

static const struct {
	const char *key;
	unsigned int when;
} refused[] = {
	{ "split", IMAGES },
	{ "stale_check", OWN },
	{ "consumer.batch_times", OWN_GPU | IMAGES },
	{ "consumer.blocks", OWN | FRAMES },
	{ "consumer.watchdog", OWN | FRAMES },
	{ "pattern.name", OWN | RECEIVED },
	{ "pattern.invert", OWN | RECEIVED },
	{ "pattern.restart", OWN | RECEIVED },
	{ "pattern.value", OWN | RECEIVED },
	{ "pattern.seed", OWN | RECEIVED },
	{ "pattern.file", OWN | RECEIVED },
	{ "custom.payload", OWN },
	{ "custom.payload_bytes", OWN },
	{ "custom.sequence_offset", OWN_GPU | IMAGES },
	{ "custom.sequence_bytes", OWN_GPU | IMAGES },
	{ "custom.sequence_order", OWN_GPU | IMAGES },
	{ "custom.sequence_start", OWN_GPU | IMAGES },
	{ "custom.sequence_step", OWN_GPU | IMAGES },
	{ "custom.stream_offset", OWN_GPU | IMAGES },
	{ "custom.stream_bytes", OWN_GPU | IMAGES },
	{ "expect", OWN },
	{ "save", OWN },
	{ "save_every", OWN },
	{ "save_damaged", OWN },
	{ "save_around", OWN },
	{ "end", OWN | RECEIVED },
	{ "senders", OWN },
	{ "ranges", OWN },
};

/* `defaults` is for the row's default to be put into. */
static bool is_given(const struct option_row *row, const struct settings *settings,
		     struct settings *defaults)
{
	option_set_default(row, defaults);
	return memcmp((const char *)settings + row->offset, (const char *)defaults + row->offset,
		      row->width) != 0;
}

/* `consumer`: the bit of the one there is. */
static bool is_refused(unsigned int when, unsigned int consumer, const struct settings *settings)
{
	if (settings->images && (when & IMAGES))
		return true;
	return (when & consumer) && !((when & RECEIVED) && settings_sends(settings)) &&
	       !((when & FRAMES) && settings->images);
}

int settings_check_consumer(const struct settings *settings, struct gdrcap_error *error)
{
	const unsigned int consumer = 1u << settings->consumer;
	const struct option_row *row = NULL;
	struct settings *defaults;
	bool given = false;

	if (settings_validates(settings))
		return 0;
	defaults = calloc(1, sizeof(*defaults));
	if (!defaults)
		return error_set(error, -ENOMEM, "no memory for the configuration");
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]) && !given; i++) {
		if (!is_refused(refused[i].when, consumer, settings))
			continue;
		row = option_find(refused[i].key);
		given = is_given(row, settings, defaults);
	}
	free(defaults);
	if (!given)
		return 0;
	if (settings->images)
		return error_set(error, -EINVAL,
				 "%s: is of frames, and this assembles images; leave it out",
				 row->named.key);
	return error_set(error, -EINVAL,
			 "%s: needs the built-in consumer; the caller's own (consumer: %s) has the "
			 "frames; leave it out",
			 row->named.key, consumer & OWN_GPU ? "gpu" : "host");
}
