/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that a session reads and writes: no output is an input, and no two outputs are one file. */
#include "config/config_files.h"

#include <errno.h>

#include "base/log.h"
#include "base/output_file.h"
#include "config/config.h"
#include "port/devargs.h"

/* save, save_damaged, and a file for each sending queue. */
#define OUTPUTS_MAX (2u + GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX)

struct outputs {
	struct output {
		const char *option, *path;
	} of[OUTPUTS_MAX];
	uint32_t count;
	char sent[GDRCAP_PORTS_MAX]
		 [SETTINGS_NAME_BYTES]; /* paths of a port's, one after the other */
};

int config_inputs(const struct gdrcap_config *config, struct input_list *inputs)
{
	const struct settings *settings = &config->settings;
	char path[SETTINGS_NAME_BYTES];
	int ret = input_list_add_all(inputs, &config->read);

	if (!ret)
		ret = input_list_add_path(inputs, settings->pcap, "pcap");
	if (!ret)
		ret = input_list_add_path(inputs, settings->expect, "expect");
	if (!ret)
		ret = input_list_add_path(inputs, settings->pattern.file, "pattern.file");
	for (uint32_t i = 0; i < settings->rx.count; i++)
		for (unsigned int n = 0;
		     !ret && devargs_value(devargs_of(settings->rx.port[i].name), "rx_pcap", n,
					   path, sizeof(path)) >= 0;
		     n++)
			ret = input_list_add_path(inputs, path, "port");
	return ret;
}

static int output_check(const struct outputs *outputs, const struct output *output,
			const struct input_list *inputs, struct gdrcap_error *error)
{
	const char *input = input_list_find(inputs, output->path);

	if (input)
		return error_set(error, -EINVAL,
				 "%s: %s is a file that this run reads (%s); name another",
				 output->option, output->path, input);
	for (const struct output *other = outputs->of; other < output; other++)
		if (output_file_same(other->path, output->path))
			return error_set(error, -EINVAL,
					 "%s: %s is the file of %s too; name another",
					 output->option, output->path, other->option);
	return 0;
}

static void output_add(struct outputs *outputs, const char *option, const char *path)
{
	if (path[0] && outputs->count < OUTPUTS_MAX)
		outputs->of[outputs->count++] = (struct output){ option, path };
}

/* Files that DPDK's driver for files writes. */
static void outputs_add_port(struct outputs *outputs, const char *name, char *text)
{
	size_t used = 0;
	int bytes;

	for (unsigned int n = 0; n < GDRCAP_QUEUES_MAX; n++) {
		bytes = devargs_value(devargs_of(name), "tx_pcap", n, text + used,
				      SETTINGS_NAME_BYTES - used);
		if (bytes < 0)
			return;
		output_add(outputs, "tx_port", text + used);
		used += (size_t)bytes + 1;
	}
}

int config_check_outputs(const struct gdrcap_config *config, struct gdrcap_error *error)
{
	const struct settings *settings = &config->settings;
	struct outputs outputs = { .count = 0 };
	struct input_list inputs = { 0 };
	int ret;

	output_add(&outputs, "save", settings->save);
	output_add(&outputs, "save_damaged", settings->save_damaged);
	for (uint32_t i = 0; i < settings->tx.count; i++)
		outputs_add_port(&outputs, settings->tx.port[i].name, outputs.sent[i]);
	ret = outputs.count ? config_inputs(config, &inputs) : 0;
	if (ret)
		error_set(error, ret, "no memory for the list of files that are read");
	for (uint32_t i = 0; i < outputs.count && !ret; i++)
		ret = output_check(&outputs, &outputs.of[i], &inputs, error);
	input_list_free(&inputs);
	return ret;
}
