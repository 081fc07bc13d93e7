/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's own log lines, on their way to the session that they are about. */
#include "base/log_dpdk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_log.h>

#include "base/log.h"

#define LINE_BYTES 1024

/* Of this thread: the line that has not ended yet. */
static _Thread_local struct {
	size_t used;
	char text[LINE_BYTES];
} begun;

static void line_end(void)
{
	const int level = rte_log_cur_msg_loglevel();

	begun.text[begun.used] = '\0';
	if (begun.used)
		log_driver_line(level <= (int)RTE_LOG_WARNING ? GDRCAP_LOG_WARNING
							      : GDRCAP_LOG_DEBUG,
				begun.text);
	begun.used = 0;
}

/* Under the stream's lock, in the thread that logs. A message comes in one piece or in several. */
static ssize_t stream_write(void *cookie, const char *text, size_t bytes)
{
	(void)cookie;
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] == '\n')
			line_end();
		else if (begun.used < sizeof(begun.text) - 1)
			begun.text[begun.used++] = text[i];
	}
	return (ssize_t)bytes;
}

int log_dpdk_take(void)
{
	const cookie_io_functions_t functions = { .write = stream_write };
	/* Never closed: DPDK's threads log until the process ends. */
	static FILE *stream;

	if (!stream)
		stream = fopencookie(NULL, "w", functions);
	if (!stream)
		return -ENOMEM;
	/* With a buffer a thread's fflush() would write what another thread has printed. */
	setvbuf(stream, NULL, _IONBF, 0);
	return rte_openlog_stream(stream) == 0 ? 0 : -ENOMEM;
}
