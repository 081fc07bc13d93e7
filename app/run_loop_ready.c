/* SPDX-License-Identifier: BSD-3-Clause */
/* A run among those of other machines. */
#include "run_loop_ready.h"

#include <errno.h>

#include "ready.h"
#include "signals.h"

int run_ready_open(struct run *run)
{
	const struct app_options *options = run->options;
	const struct ready_wait wait = {
		.lists = options->wait_ready,
		.list_count = options->wait_lists,
		.limit_ms = options->wait_ms,
		.stopped = signals_stop,
		.log = run->log,
		.context = run,
	};
	struct gdrcap_error error = { 0 };
	int rc = options->ready ? ready_begin(options->ready, &error) : 0;

	/* What is wrong with the rest is to be told before one waits. */
	if (!rc && wait.list_count && gdrcap_config_check(options->config, &error)) {
		report_error(&run->report, REPORT_EXIT_USAGE, "%s", error.text);
		return -EINVAL;
	}
	if (!rc && wait.list_count)
		rc = ready_wait(&wait, &error);
	if (rc)
		report_error(&run->report, REPORT_EXIT_NOT_RUN, "%s", error.text);
	return rc;
}
