/* SPDX-License-Identifier: BSD-3-Clause */
/* What a session's frames are: their layout and pattern, and the files that they are of. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input_file.h"
#include "base/log.h"
#include "session/session.h"

static int pattern_file_map(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const char *path = session->settings.pattern.file;
	struct stat status;
	void *map;
	int fd;

	if (!path[0])
		return 0;
	fd = input_file_open(path, &status);
	if (fd < 0 && fd != -ESPIPE)
		return error_set(error, fd, "pattern.file: %s: %s; %s", path, strerror(-fd),
				 input_file_remedy(fd));
	if (fd < 0 || status.st_size == 0) {
		if (fd >= 0)
			close(fd);
		return error_set(
			error, -EINVAL,
			"pattern.file: %s is empty or not a regular file; save the bytes as a "
			"file first",
			path);
	}
	map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return error_set(error, -errno, "pattern.file: %s: %s", path, strerror(errno));
	session->frames.pattern_file = map;
	session->frames.pattern_file_bytes = (size_t)status.st_size;
	return 0;
}

int session_frames_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct settings *settings = &session->settings;
	struct pattern_config pattern = {
		.kind = settings->pattern.kind,
		.restart = settings->pattern.restart,
		.invert = settings->pattern.invert == INVERT_AUTO
				  ? -1
				  : settings->pattern.invert == INVERT_YES,
		.value = settings->pattern.value,
		.seed = settings->pattern.seed,
	};
	int ret;

	session->frames.layout = settings->layout;
	ret = pattern_file_map(session, error);
	if (ret < 0)
		return ret;
	pattern.file = session->frames.pattern_file;
	pattern.file_bytes = session->frames.pattern_file_bytes;
	ret = pattern_init(&session->frames.pattern, &pattern);
	if (ret < 0)
		return error_set(error, ret, "pattern: %s cannot be prepared: %s",
				 pattern_name(pattern.kind), strerror(-ret));
	return 0;
}

void session_frames_destroy(struct gdrcap_session *session)
{
	pattern_free(&session->frames.pattern);
	if (session->frames.pattern_file)
		munmap(session->frames.pattern_file, session->frames.pattern_file_bytes);
}

/* A file's frames in memory that the device reads: to be played, to be compared with. */
int session_files_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct plan *plan = &session->plan;
	const bool shared =
		plan->pcap.frames && strcmp(session->settings.pcap, session->settings.expect) == 0;
	struct file_frames_config config = {
		.path = session->settings.expect,
		.scan = &plan->expect,
		.match = &session->frames.layout.match,
		.gpu = session->memory.gpu,
		.memory_max = plan->file_memory,
		.expect = true,
		.dump = session->settings.dump_frames,
		.loops = session->settings.loops == UINT64_MAX ? 0 : session->settings.loops,
	};
	int ret = 0;

	if (plan->expect.frames)
		ret = file_frames_create(&session->frames.expect, &config, error);
	if (ret < 0 || !plan->pcap.frames)
		return ret;
	if (shared) {
		session->frames.file = session->frames.expect;
		return 0;
	}
	config.path = session->settings.pcap;
	config.scan = &plan->pcap;
	config.match = NULL;
	config.expect = false;
	ret = file_frames_create(&session->frames.file, &config, error);
	if (ret < 0) {
		file_frames_destroy(session->frames.expect);
		session->frames.expect = NULL;
	}
	return ret;
}

void session_files_destroy(struct gdrcap_session *session)
{
	if (session->frames.file != session->frames.expect)
		file_frames_destroy(session->frames.file);
	file_frames_destroy(session->frames.expect);
}
