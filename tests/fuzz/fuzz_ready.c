/* SPDX-License-Identifier: BSD-3-Clause */
/* libFuzzer: any bytes as the file of capture --ready: refused with a reason, not whole yet, or a host's name and its ports. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ready_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void file_check(const struct ready_file *file)
{
	const size_t length = strnlen(file->host, sizeof(file->host));

	if (!length || length == sizeof(file->host) || !file->ports ||
	    file->ports > GDRCAP_PORTS_MAX)
		abort();
	for (size_t i = 0; i < length; i++)
		if (file->host[i] < ' ' || file->host[i] > '~')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const int fd = memfd_create("ready", MFD_CLOEXEC);
	struct gdrcap_error error = { 0 };
	struct ready_file file;
	char path[64];
	int rc;

	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	memset(&file, '#', sizeof(file));
	rc = ready_file_read(path, &file, &error);
	close(fd);
	if (rc == 0)
		file_check(&file);
	else if (rc != -EAGAIN && (rc > 0 || error.code != rc ||
				   !memchr(error.text, '\0', sizeof(error.text)) || !error.text[0]))
		abort();
	else if (rc == -EAGAIN &&
		 memchr(data, '\n', bytes < READY_FILE_BYTES ? bytes : READY_FILE_BYTES))
		abort();
	return 0;
}
