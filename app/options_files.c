/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run writes is none of the files that it reads, and each is another. */
#include "options_inside.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/devargs.h"

static bool is_file(const char *path, const struct stat *other)
{
	struct stat file;

	return path && !stat(path, &file) && file.st_dev == other->st_dev &&
	       file.st_ino == other->st_ino;
}

/* The folder that a path's last name is in. False: there is none. */
static bool folder_of(const char *path, struct stat *folder, const char **name)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX];

	*name = slash ? slash + 1 : path;
	if (!slash)
		return !stat(".", folder);
	/* With the slash: of "/x" it is all that there is. */
	return snprintf(parent, sizeof(parent), "%.*s", (int)(*name - path), path) <
		       (int)sizeof(parent) &&
	       !stat(parent, folder);
}

/* Whatever their spelling, and also where nothing is there yet. */
static bool one_file(const char *a, const char *b)
{
	const char *name_a, *name_b;
	struct stat file, other;

	if (!strcmp(a, b) || (!stat(b, &file) && is_file(a, &file)))
		return true;
	return folder_of(a, &file, &name_a) && folder_of(b, &other, &name_b) &&
	       file.st_dev == other.st_dev && file.st_ino == other.st_ino &&
	       !strcmp(name_a, name_b);
}

/* What a run writes. */
enum { JSON_FILE, TEXTFILE, READY, SOCKET, SAVED, FILES = SAVED + 3 };

struct written {
	const char *flag, *path; /* NULL: none */
};

static void files_of(const struct app_options *options, struct written files[FILES])
{
	const bool is_socket = options->metrics && !strncmp(options->metrics, "unix:", 5);

	files[JSON_FILE] = (struct written){ "json-file", options->json_file };
	files[TEXTFILE] = (struct written){ "metrics-textfile", options->metrics_textfile };
	files[READY] = (struct written){ "ready", options_ready_file(options) };
	files[SOCKET] = (struct written){ "metrics", is_socket ? options->metrics + 5 : NULL };
	files[SAVED] = (struct written){ "save", gdrcap_config_get(options->config, "save", 0) };
	files[SAVED + 1] = (struct written){ "save-damaged", gdrcap_config_get(options->config,
									       "save_damaged", 0) };
	files[SAVED + 2] = (struct written){ "save-images", options->save_images };
}

/* The option, from `first` on, whose file this is; NULL: none. */
static const char *writes(const struct written files[FILES], int first, const struct stat *other)
{
	for (int i = first; i < FILES; i++)
		if (is_file(files[i].path, other))
			return files[i].flag;
	return NULL;
}

/* Each of them is another file. The library, and --save-images, know what is saved with what. */
static int apart(struct app_options *options, const struct written files[FILES])
{
	for (int i = 0; i < SAVED; i++)
		for (int j = i + 1; files[i].path && j < FILES; j++)
			if (files[j].path && one_file(files[i].path, files[j].path))
				return options_refuse(options,
						      "--%s and --%s are one file; name another",
						      files[i].flag, files[j].flag);
	return 0;
}

/* The same of files that ports read. */
static const char *overwrites_port(const struct app_options *options,
				   const struct written files[FILES])
{
	const char *port, *flag = NULL;
	char path[4096];
	struct stat file;

	for (uint32_t i = 0; !flag && (port = gdrcap_config_get(options->config, "port", i)); i++)
		for (unsigned int n = 0; !flag && devargs_value(devargs_of(port), "rx_pcap", n,
								path, sizeof(path)) >= 0;
		     n++)
			if (!stat(path, &file))
				flag = writes(files, 0, &file);
	return flag;
}

int options_files_stay(struct app_options *options, const char *config_path,
		       const char *const *images, uint32_t image_count)
{
	struct written files[FILES];
	const char *flag;
	struct stat file;

	files_of(options, files);
	options->saves_to_stdout =
		!fstat(STDOUT_FILENO, &file) &&
		(is_file(files[READY].path, &file) || writes(files, SAVED, &file));
	if (apart(options, files))
		return -EINVAL;
	if ((options->json || options->json_lines) && !options->json_file &&
	    options->saves_to_stdout)
		return options_refuse(options,
				      "--json and saved %s cannot both go to standard "
				      "output; save to a file",
				      options->save_images ? "images" : "frames");
	if (config_path && !stat(config_path, &file)) {
		flag = writes(files, 0, &file);
		if (flag)
			return options_refuse(
				options, "--%s would overwrite the --config file; name another",
				flag);
	}
	flag = overwrites_port(options, files);
	if (flag)
		return options_refuse(
			options, "--%s would overwrite a file that a --port reads; name another",
			flag);
	for (uint32_t i = 0; i < image_count; i++) {
		flag = stat(images[i], &file) ? NULL : writes(files, 0, &file);
		if (flag)
			return options_refuse(options,
					      "--%s would overwrite an --image file; name another",
					      flag);
	}
	return 0;
}
