/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run writes is none of the files that it reads. */
#include "options_inside.h"

#include <errno.h>
#include <stdbool.h>
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

/* The option whose file of frames or images is at this path (NULL: any), or is what was found there (NULL: any);
 * NULL: none. The library knows the others that it reads. */
static const char *saves(const struct app_options *options, const char *path,
			 const struct stat *other)
{
	const struct {
		const char *flag, *path;
	} files[] = {
		{ "save", gdrcap_config_get(options->config, "save", 0) },
		{ "save-damaged", gdrcap_config_get(options->config, "save_damaged", 0) },
		{ "save-images", options->save_images },
		{ "ready", options_ready_file(options) },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (files[i].path && (!path || !strcmp(files[i].path, path)) &&
		    (!other || is_file(files[i].path, other)))
			return files[i].flag;
	return NULL;
}

/* The option whose file, which the run writes, is this one. */
static const char *writes(const struct app_options *options, const struct stat *other)
{
	return is_file(options->json_file, other)	   ? "json-file"
	       : is_file(options->metrics_textfile, other) ? "metrics-textfile"
							   : saves(options, NULL, other);
}

/* Refuses lines among frames, in a file that is there or will be. */
static int log_stays(struct app_options *options, const char *flag, const char *path)
{
	const char *other = path ? saves(options, path, NULL) : NULL;
	struct stat file;

	if (path && !other && !stat(path, &file) && S_ISREG(file.st_mode))
		other = saves(options, NULL, &file);
	return other ? options_refuse(options, "--%s and --%s are one file; name another", flag,
				      other)
		     : 0;
}

/* The same of files that ports read. */
static const char *overwrites_port(const struct app_options *options)
{
	const char *port, *flag = NULL;
	char path[4096];
	struct stat file;

	for (uint32_t i = 0; !flag && (port = gdrcap_config_get(options->config, "port", i)); i++)
		for (unsigned int n = 0; !flag && devargs_value(devargs_of(port), "rx_pcap", n,
								path, sizeof(path)) >= 0;
		     n++)
			if (!stat(path, &file))
				flag = writes(options, &file);
	return flag;
}

int options_files_stay(struct app_options *options, const char *config_path,
		       const char *const *images, uint32_t image_count)
{
	const char *flag;
	struct stat file;

	options->saves_to_stdout = !fstat(STDOUT_FILENO, &file) && saves(options, NULL, &file);
	if (log_stays(options, "json-file", options->json_file) ||
	    log_stays(options, "metrics-textfile", options->metrics_textfile))
		return -EINVAL;
	if (options->json_file && options->metrics_textfile &&
	    !strcmp(options->json_file, options->metrics_textfile))
		return options_refuse(
			options, "--json-file and --metrics-textfile are one file; name another");
	if ((options->json || options->json_lines) && !options->json_file &&
	    options->saves_to_stdout)
		return options_refuse(options,
				      "--json and saved %s cannot both go to standard "
				      "output; save to a file",
				      options->save_images ? "images" : "frames");
	if (config_path && !stat(config_path, &file)) {
		flag = writes(options, &file);
		if (flag)
			return options_refuse(
				options, "--%s would overwrite the --config file; name another",
				flag);
	}
	flag = overwrites_port(options);
	if (flag)
		return options_refuse(
			options, "--%s would overwrite a file that a --port reads; name another",
			flag);
	for (uint32_t i = 0; i < image_count; i++) {
		flag = stat(images[i], &file) ? NULL : writes(options, &file);
		if (flag)
			return options_refuse(options,
					      "--%s would overwrite an --image file; name another",
					      flag);
	}
	return 0;
}
