/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that mean nothing to the caller's own consumer: refused, never accepted and ignored. */
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
};

static const struct {
	const char *key;
	unsigned int when;
} refused[] = {
	{ "stale_check", OWN },
	{ "consumer.batch_times", OWN_GPU },
	{ "consumer.blocks", OWN },
	{ "consumer.watchdog", OWN },
	{ "pattern.name", OWN | RECEIVED },
	{ "pattern.invert", OWN | RECEIVED },
	{ "pattern.restart", OWN | RECEIVED },
	{ "pattern.value", OWN | RECEIVED },
	{ "pattern.seed", OWN | RECEIVED },
	{ "pattern.file", OWN | RECEIVED },
	{ "custom.payload", OWN },
	{ "custom.payload_bytes", OWN },
	{ "custom.sequence_offset", OWN_GPU },
	{ "custom.sequence_bytes", OWN_GPU },
	{ "custom.sequence_order", OWN_GPU },
	{ "custom.sequence_start", OWN_GPU },
	{ "custom.sequence_step", OWN_GPU },
	{ "custom.stream_offset", OWN_GPU },
	{ "custom.stream_bytes", OWN_GPU },
	{ "expect", OWN },
	{ "save", OWN },
	{ "save_every", OWN },
	{ "save_damaged", OWN },
	{ "save_around", OWN },
	{ "end", OWN | RECEIVED },
	{ "senders", OWN },
};

/* `defaults` is for the row's default to be put into. */
static bool is_given(const struct option_row *row, const struct settings *settings,
		     struct settings *defaults)
{
	option_set_default(row, defaults);
	return memcmp((const char *)settings + row->offset, (const char *)defaults + row->offset,
		      row->width) != 0;
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
		if (!(refused[i].when & consumer) ||
		    ((refused[i].when & RECEIVED) && settings_sends(settings)))
			continue;
		row = option_find(refused[i].key);
		given = is_given(row, settings, defaults);
	}
	free(defaults);
	if (!given)
		return 0;
	return error_set(error, -EINVAL,
			 "%s: needs the built-in consumer; the caller's own (consumer: %s) has the "
			 "frames; leave it out",
			 row->named.key, consumer & OWN_GPU ? "gpu" : "host");
}
