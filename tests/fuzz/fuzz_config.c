/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer: any bytes as YAML, as an option's name and as its value. What an option accepted is its
 * value in YAML too, and what settles can be planned with.
 */
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(const struct gdrcap_config *config)
{
	static struct settings settings;
	struct gdrcap_error error;

	if (config_settle(config, &settings, &error)) {
		if (!memchr(error.text, '\0', sizeof(error.text)) || error.code >= 0)
			abort();
		return;
	}
	if (!settings.ports || settings.ports > GDRCAP_PORTS_MAX || !settings.sizes.count ||
	    settings.sizes.count > PARSE_FRAME_SIZES_MAX ||
	    settings.sizes.least > settings.sizes.largest ||
	    settings.layout.match.count > FRAME_MATCH_RULES)
		abort();
}

/* The texts that are kept give the same values again. */
static void check_again(const struct gdrcap_config *config)
{
	struct gdrcap_config *again = gdrcap_config_new();
	const struct option_row *row;
	const char *text;

	for (size_t i = 0; again && (row = option_at(i)); i++) {
		const char *at = (const char *)&config->settings + row->offset;

		for (uint32_t k = 0;
		     config->given[i] && (text = gdrcap_config_get(config, row->named.key, k)); k++)
			if ((strlen(text) > OPTION_TEXT_MAX && row->type != OPTION_IMAGES) ||
			    (k ? gdrcap_config_add : gdrcap_config_set)(again, row->named.key, text,
									NULL))
				abort();
		if (memcmp(at, (const char *)&again->settings + row->offset, row->width))
			abort();
	}
	gdrcap_config_free(again);
}

static void fuzz_set(const uint8_t *data, size_t bytes)
{
	struct gdrcap_config *config = gdrcap_config_new();
	char *value = malloc(bytes);
	struct gdrcap_error error;
	size_t count = 0;
	const char *key;

	while (gdrcap_option_at(count))
		count++;
	if (config && value) {
		key = gdrcap_option_at(data[0] % count)->key;
		memcpy(value, data + 1, bytes - 1);
		value[bytes - 1] = '\0';
		gdrcap_config_set(config, "port", "net_null0", &error);
		gdrcap_config_set(config, key, value, &error);
		gdrcap_config_add(config, key, value, &error);
		gdrcap_config_set(config, value, "1", &error);
		check(config);
		check_again(config);
	}
	free(value);
	gdrcap_config_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_error error;

	if (config && !gdrcap_config_parse(config, "fuzz", (const char *)data, bytes, &error)) {
		check(config);
		check_again(config);
	}
	gdrcap_config_free(config);
	if (bytes)
		fuzz_set(data, bytes);
	return 0;
}
