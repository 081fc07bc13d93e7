/* SPDX-License-Identifier: BSD-3-Clause */
/* No file that a run writes is one that it reads, and no two of them are one file. */
#include "options_inside.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input_list.h"
#include "base/output_file.h"
#include "config/config_files.h"
#include "image_file.h"
#include "port/devargs.h"

#define PATH_BYTES 4096u

/* What a run writes. */
enum { JSON_FILE, TEXTFILE, READY, SOCKET, SAVED, SAVED_DAMAGED, SAVED_IMAGES, IMAGE_INDEX, FILES };

struct written {
	const char *flag, *path; /* NULL: none */
};

/* index: of raw images, or NULL. */
static void files_of(const struct app_options *options, struct written files[FILES],
		     const char *index)
{
	const bool is_socket = options->metrics && !strncmp(options->metrics, "unix:", 5);

	files[JSON_FILE] = (struct written){ "json-file", options->json_file };
	files[TEXTFILE] = (struct written){ "metrics-textfile", options->metrics_textfile };
	files[READY] = (struct written){ "ready", options_ready_file(options) };
	files[SOCKET] = (struct written){ "metrics", is_socket ? options->metrics + 5 : NULL };
	files[SAVED] = (struct written){ "save", gdrcap_config_get(options->config, "save", 0) };
	files[SAVED_DAMAGED] =
		(struct written){ "save-damaged",
				  gdrcap_config_get(options->config, "save_damaged", 0) };
	files[SAVED_IMAGES] = (struct written){ "save-images", options->save_images };
	files[IMAGE_INDEX] = (struct written){ "save-images", index };
}

static bool is_stdout(const char *path, const struct stat *out)
{
	struct stat file;

	return path && !stat(path, &file) && file.st_dev == out->st_dev &&
	       file.st_ino == out->st_ino;
}

static bool saves_to_stdout(const struct written files[FILES])
{
	struct stat out;

	return !fstat(STDOUT_FILENO, &out) &&
	       (is_stdout(files[READY].path, &out) || is_stdout(files[SAVED].path, &out) ||
		is_stdout(files[SAVED_DAMAGED].path, &out) ||
		is_stdout(files[SAVED_IMAGES].path, &out));
}

/* 0, or -EINVAL: `path` is one of the files before `end` too. */
static int apart(struct app_options *options, const char *flag, const char *path,
		 const struct written *files, const struct written *end)
{
	for (; files < end; files++)
		if (files->path && output_file_same(files->path, path))
			return options_refuse(options, "--%s and --%s are one file; name another",
					      files->flag, flag);
	return 0;
}

static int not_read(struct app_options *options, const char *flag, const char *path,
		    const struct input_list *inputs)
{
	const char *input = input_list_find(inputs, path);

	return input ? options_refuse(options,
				      "--%s would overwrite %s, which this run reads (%s); name "
				      "another",
				      flag, path, input)
		     : 0;
}

/* Files that ports send into. */
static int ports_check(struct app_options *options, const struct written files[FILES],
		       const struct input_list *inputs)
{
	const char *port;
	char path[PATH_BYTES];
	int ret = 0;

	for (uint32_t i = 0; !ret && (port = gdrcap_config_get(options->config, "tx_port", i)); i++)
		for (unsigned int n = 0;
		     !ret && devargs_value(devargs_of(port), "tx_pcap", n, path, sizeof(path)) >= 0;
		     n++) {
			ret = not_read(options, "tx-port", path, inputs);
			if (!ret)
				ret = apart(options, "tx-port", path, files, files + FILES);
		}
	return ret;
}

static int files_check(struct app_options *options, const struct written files[FILES],
		       const struct input_list *inputs)
{
	int ret = 0;

	for (int i = 0; i < FILES && !ret; i++) {
		if (!files[i].path)
			continue;
		ret = apart(options, files[i].flag, files[i].path, files, files + i);
		if (!ret)
			ret = not_read(options, files[i].flag, files[i].path, inputs);
	}
	return ret ? ret : ports_check(options, files, inputs);
}

/* What the library reads, and the lines that are waited for. */
static int inputs_of(const struct app_options *options, struct input_list *inputs)
{
	char path[PATH_BYTES];
	int ret = config_inputs(options->config, inputs);

	for (uint32_t i = 0; i < options->wait_lists; i++)
		for (const char *at = options->wait_ready[i]; !ret && *at; at += *at == ',') {
			const size_t length = strcspn(at, ",");

			if (snprintf(path, sizeof(path), "%.*s", (int)length, at) <
			    (int)sizeof(path))
				ret = input_list_add_path(inputs, path, "wait-ready");
			at += length;
		}
	return ret;
}

int options_files_stay(struct app_options *options)
{
	const bool indexed = options->save_images && options->save_format == IMAGE_RAW;
	char *index = indexed ? image_index_path(options->save_images) : NULL;
	struct input_list inputs = { 0 };
	struct written files[FILES];
	int ret = 0;

	files_of(options, files, index);
	options->saves_to_stdout = saves_to_stdout(files);
	if ((options->json || options->json_lines) && !options->json_file &&
	    options->saves_to_stdout)
		ret = options_refuse(options,
				     "--json and saved %s cannot both go to standard "
				     "output; save to a file",
				     options->save_images ? "images" : "frames");
	if (!ret)
		ret = (indexed && !index) || inputs_of(options, &inputs)
			      ? options_refuse(options, "out of memory")
			      : files_check(options, files, &inputs);
	if (!ret && options->save_images && gdrcap_config_get(options->config, "image", 1))
		ret = options_refuse(options, "--save-images: one file holds images of one layout; "
					      "give --image once");
	input_list_free(&inputs);
	free(index);
	return ret;
}
