/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that ports send into (net_pcap...,tx_pcap=FILE): whether all that they were given is there. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include <rte_common.h>

#include "port/devargs.h"
#include "port/held_files.h"
#include "replay/pcap_file.h"
#include "session/session.h"

#define FILE_HEADER 24u
#define FRAME_HEADER 16u

struct sent_files {
	char path[SETTINGS_NAME_BYTES]; /* of the last */
	uint64_t bytes;			/* of frames and their headers, of all */
	bool known;			/* they are files, and can be looked at */
};

static bool path_of(const struct port *port, unsigned int n, char path[SETTINGS_NAME_BYTES])
{
	return strncmp(port->name, "net_pcap", strlen("net_pcap")) == 0 &&
	       devargs_value(devargs_of(port->name), "tx_pcap", n, path, SETTINGS_NAME_BYTES) >= 0;
}

/* /dev/null: all that is sent into it is where it was meant to be. */
static bool takes_all(const struct stat *stat_of)
{
	return S_ISCHR(stat_of->st_mode) && major(stat_of->st_rdev) == 1 &&
	       minor(stat_of->st_rdev) == 3;
}

static void look_for_unseen(struct gdrcap_session *session, struct session_pair *pair)
{
	char path[SETTINGS_NAME_BYTES];
	struct stat stat_of;

	for (unsigned int n = 0; path_of(&pair->tx, n, path); n++) {
		if (stat(path, &stat_of) == 0 && (S_ISREG(stat_of.st_mode) || takes_all(&stat_of)))
			continue;
		pair->tx_unseen = true;
		session_message(
			session, GDRCAP_LOG_WARNING,
			"%s is a pipe or a device, and its driver does not say which frames "
			"it could not write: those count as sent, and nobody will know; name "
			"a file, or /dev/null",
			path);
	}
}

void session_sent_files_look(struct gdrcap_session *session)
{
	const bool sends = session->workers.tx_count || session->sending.count;

	for (uint32_t p = 0; sends && p < session->settings.ports; p++)
		look_for_unseen(session, &session->ports.pairs[p]);
}

int session_sent_files_begin(struct gdrcap_session *session, struct gdrcap_error *error)
{
	int ret = 0;

	for (uint32_t p = 0; ret == 0 && p < session->settings.ports; p++) {
		const struct session_pair *pair = &session->ports.pairs[p];

		ret = held_files_begin(pair->both ? pair->rx.held : pair->tx.held, error);
	}
	return ret;
}

static void files_look(struct gdrcap_session *session, struct session_pair *pair,
		       struct sent_files *files)
{
	struct stat stat_of;
	int ret;

	memset(files, 0, sizeof(*files));
	for (unsigned int n = 0; path_of(&pair->tx, n, files->path); n++) {
		ret = stat(files->path, &stat_of);
		pair->tx_unseen |= ret < 0;
		if (ret < 0)
			session_message(session, GDRCAP_LOG_WARNING,
					"%s: whether all that was sent is in it is not known: %s",
					files->path, strerror(errno));
		if (ret < 0 || !S_ISREG(stat_of.st_mode)) {
			files->known = false;
			return;
		}
		files->known = true;
		files->bytes += (uint64_t)stat_of.st_size -
				RTE_MIN((uint64_t)stat_of.st_size, (uint64_t)FILE_HEADER);
	}
}

/* Those that a reader finds: up to the first place where something is missing. */
static uint64_t frames_in_files(const struct port *port)
{
	char path[SETTINGS_NAME_BYTES];
	struct gdrcap_error error;
	struct pcap_file *file;
	uint64_t frames = 0;

	for (unsigned int n = 0; path_of(port, n, path); n++) {
		if (pcap_file_open(&file, path, NULL, &error) < 0)
			continue;
		while (pcap_file_skip(file, &error) > 0)
			frames++;
		pcap_file_close(file);
	}
	return frames;
}

/* DPDK's driver for files does not look whether its writes succeed, and calls each frame sent. */
void session_sent_files_judge(struct gdrcap_session *session)
{
	const bool sends = session->workers.tx_count || session->sending.count;

	for (uint32_t p = 0; sends && p < session->settings.ports; p++) {
		struct session_pair *pair = &session->ports.pairs[p];
		struct port_counters counters;
		struct sent_files files;
		struct statvfs system = { 0 };
		uint64_t wanted, found;

		files_look(session, pair, &files);
		if (!files.known)
			continue;
		session_port_counters(session, &pair->tx, &counters);
		wanted = counters.tx_bytes + FRAME_HEADER * counters.tx_frames;
		if (files.bytes >= wanted)
			continue;
		found = frames_in_files(&pair->tx);
		pair->tx_unwritten = RTE_MAX(counters.tx_frames, found + 1) - found;
		(void)statvfs(files.path, &system);
		session_message(
			session, GDRCAP_LOG_ERROR,
			"%s lacks %llu of %llu bytes that were sent into it, and can be "
			"read up to frame %llu of %llu: writing it failed; its file system has "
			"%llu KiB left: make room there, raise ulimit -f, or name another place",
			files.path, (unsigned long long)(wanted - files.bytes),
			(unsigned long long)wanted, (unsigned long long)found,
			(unsigned long long)counters.tx_frames,
			(unsigned long long)system.f_bavail * system.f_frsize >> 10);
	}
}
