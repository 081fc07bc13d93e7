/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer: any bytes as YAML, as the configuration struct's bytes, and as one option's value.
 * What was accepted must stay accepted when it is completed again.
 */
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(const struct gdrcap_config *config)
{
	struct gdrcap_config once, twice;
	struct gdrcap_error error;
	struct frame_config frame;

	if (config_complete(&once, config, &error)) {
		if (!memchr(error.text, '\0', sizeof(error.text)) || error.code >= 0)
			abort();
		return;
	}
	if (config_complete(&twice, &once, &error) || memcmp(&once, &twice, sizeof(once)))
		abort();
	config_frame(&once, &frame);
	if (config_slot_bytes(&once) < CONFIG_HEADROOM + config_largest_frame(&once))
		abort();
}

static void fuzz_set(const uint8_t *data, size_t bytes)
{
	const struct gdrcap_option *option;
	struct gdrcap_config config;
	struct gdrcap_error error;
	size_t count = 0;
	char *value;

	while (gdrcap_option_at(count))
		count++;
	option = gdrcap_option_at(data[0] % count);
	value = malloc(bytes);
	if (!value)
		return;
	memcpy(value, data + 1, bytes - 1);
	value[bytes - 1] = '\0';
	gdrcap_config_default(&config);
	strcpy(config.port[0], "net_null0");
	/* Whatever one option accepts is in range by itself. */
	gdrcap_config_set(&config, option->key, value, data[0] & 1, &error);
	gdrcap_config_set(&config, value, "1", 0, &error);
	check(&config);
	free(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct gdrcap_config config;
	struct gdrcap_error error;

	gdrcap_config_default(&config);
	if (!gdrcap_config_parse(&config, "fuzz", (const char *)data, bytes, &error))
		check(&config);
	if (!bytes)
		return 0;
	fuzz_set(data, bytes);
	/* From the ports on; log and memory_addr are the caller's own. */
	gdrcap_config_default(&config);
	if (bytes > sizeof(config) - sizeof(config.size))
		bytes = sizeof(config) - sizeof(config.size);
	memcpy((char *)&config + sizeof(config.size), data, bytes);
	check(&config);
	return 0;
}
