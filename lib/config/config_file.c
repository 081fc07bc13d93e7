/* SPDX-License-Identifier: BSD-3-Clause */
/* Options from a YAML file or from its text: all of them, or none where one is wrong. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/input_file.h"
#include "base/log.h"
#include "base/text.h"
#include "config/config.h"
#include "config/yaml_reader.h"

static int config_parse(struct gdrcap_config *config, const char *name, const char *text,
			size_t bytes, struct gdrcap_error *error)
{
	struct gdrcap_config *copy;
	int ret;

	if (!config)
		return error_set(error, -EINVAL, "no configuration is given");
	if (!name)
		name = "configuration";
	copy = config_copy(config);
	if (!copy)
		return error_set(error, -ENOMEM, "%s: out of memory", name);
	ret = config_read_yaml(copy, name, text, bytes, error);
	if (ret)
		gdrcap_config_free(copy);
	else
		config_replace(config, copy);
	return ret;
}

int gdrcap_config_parse(struct gdrcap_config *config, const char *name, const char *text,
			size_t bytes, struct gdrcap_error *error)
{
	return error_of_config(error, config_parse(config, name, text, bytes, error));
}

/* The whole file, at most YAML_BYTES_MAX + 1 bytes of it. 0 or a negative errno. */
static int file_read(int fd, char *text, size_t *bytes)
{
	ssize_t got;

	for (*bytes = 0; *bytes <= YAML_BYTES_MAX; *bytes += (size_t)got) {
		got = read(fd, text + *bytes, YAML_BYTES_MAX + 1 - *bytes);
		if (got < 0 && errno == EINTR) {
			got = 0;
			continue;
		}
		if (got < 0)
			return -errno;
		if (!got)
			break;
	}
	return 0;
}

static int config_load(struct gdrcap_config *config, const char *path, struct gdrcap_error *error)
{
	char name[TEXT_QUOTE_BYTES * 3];
	struct stat status;
	size_t bytes = 0;
	char *text;
	int fd, ret;

	if (!config)
		return error_set(error, -EINVAL, "no configuration is given");
	if (!path || !*path)
		return error_set(error, -EINVAL, "no configuration file is given");
	text_quote(name, sizeof(name), path);
	fd = input_file_open(path, &status);
	if (fd == -ESPIPE)
		return error_set(error, -EINVAL, "%s: is not a regular file; give a YAML file",
				 name);
	if (fd < 0)
		return error_set(error, fd, "%s: cannot be opened: %s; %s", name, strerror(-fd),
				 input_file_remedy(fd));
	if (status.st_size > (off_t)YAML_BYTES_MAX) {
		ret = yaml_reader_too_large(name, error);
		goto close_file;
	}
	text = malloc(YAML_BYTES_MAX + 1);
	if (!text) {
		ret = error_set(error, -ENOMEM, "%s: out of memory", name);
		goto close_file;
	}
	ret = file_read(fd, text, &bytes);
	if (ret)
		error_set(error, ret, "%s: cannot be read: %s", name, strerror(-ret));
	else if (input_list_add(&config->read, &status, config->is_image_file ? "image" : "config"))
		ret = error_set(error, -ENOMEM, "%s: out of memory", name);
	else
		ret = config_parse(config, path, text, bytes, error);
	free(text);
close_file:
	close(fd);
	return ret;
}

int gdrcap_config_load(struct gdrcap_config *config, const char *path, struct gdrcap_error *error)
{
	CANCEL_OFF;
	return error_of_config(error, config_load(config, path, error));
}
