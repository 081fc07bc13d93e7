/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of runs over several machines: who says that it is ready, who waits for that. */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "options_inside.h"
#include "ready.h"

#define WAIT_READY_MS 60000u
#define WAIT_MOST_MS 86400000u

/* NULL, or what is wrong with FILE[,FILE...]; *count grows by its files. */
static const char *list_problem(const char *list, uint32_t *count)
{
	for (const char *at = list;; at++) {
		const size_t length = strcspn(at, ",");

		if (length == 0)
			return "is no list of files; give FILE[,FILE...], each of a receiver";
		if (++*count > READY_WAITED_MAX)
			return "is one file more than the 256 that can be waited for";
		at += length;
		if (!*at)
			return NULL;
	}
}

int options_wait_for(struct app_options *options, const char *list)
{
	const char *problem = list_problem(list, &options->wait_files);

	if (problem)
		return options_refuse(options, "--wait-ready: '%.60s' %s", list, problem);
	options->wait_ready[options->wait_lists++] = list;
	return 0;
}

int options_wait_limit(struct app_options *options, const char *seconds)
{
	if (parse_duration(seconds, &options->wait_ms) || options->wait_ms > WAIT_MOST_MS)
		return options_refuse(options,
				      "--wait-seconds: '%s' is not a time; allowed: 0, or "
				      "0.001..86400 s, at most three decimals",
				      seconds);
	options->wait_limited = 1;
	return 0;
}

const char *options_ready_file(const struct app_options *options)
{
	return options->ready && strcmp(options->ready, READY_STDOUT) ? options->ready : NULL;
}

/* Also refuses a line for who waits among saved frames. */
int options_ready_settle(struct app_options *options)
{
	if (options->wait_limited && !options->wait_lists)
		return options_refuse(options, "--wait-seconds: is of --wait-ready; give that too, "
					       "or leave it out");
	if (!options->wait_limited)
		options->wait_ms = WAIT_READY_MS;
	if (options->ready && !options->ready[0])
		return options_refuse(options, "--ready: give a file, or -");
	if (options->ready && !options_ready_file(options) && options->saves_to_stdout)
		return options_refuse(options, "--ready - and what is saved cannot both go to "
					       "standard output; give --ready a file");
	return 0;
}
