/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another's traffic on the cable: the frames of the pcap file SOFTMLX5_PLAY, sent by the machine at
 * its other end as fast as the receiver takes them. Setting `play` says when, and how often.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nic.h"

#define MAGIC_US 0xa1b2c3d4u
#define MAGIC_NS 0xa1b23c4du
#define FILE_HEADER 24
#define RECORD_HEADER 16
#define PASS_FRAMES 32

static struct {
	uint8_t *data; /* in the byte order of this machine */
	size_t bytes;
} file;

static struct {
	size_t at; /* of the next record; 0: at the file's start */
	uint64_t rounds;
} player[SOFT_DEVICES_MAX];

static bool file_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat info;
	uint32_t magic = 0;

	if (fd < 0)
		return false;
	if (fstat(fd, &info) == 0 && info.st_size > FILE_HEADER)
		file.data = malloc((size_t)info.st_size);
	while (file.data != NULL && file.bytes < (size_t)info.st_size) {
		ssize_t got = read(fd, file.data + file.bytes, (size_t)info.st_size - file.bytes);

		if (got <= 0)
			break;
		file.bytes += (size_t)got;
	}
	close(fd);
	if (file.bytes > FILE_HEADER)
		memcpy(&magic, file.data, sizeof(magic));
	return magic == MAGIC_US || magic == MAGIC_NS;
}

void play_init(void)
{
	const char *path = getenv("SOFTMLX5_PLAY");

	if (path == NULL || file_read(path))
		return;
	fprintf(stderr, "softmlx5: %s is not a pcap file of this machine's byte order\n", path);
	file.bytes = 0;
}

/* The record at *at, a copy of it: the receiver may change its frame. */
static bool next_frame(size_t *at, struct soft_frame *frame)
{
	static uint8_t copy[SOFT_FRAME_MAX + 64];
	uint32_t length;

	if (*at == 0)
		*at = FILE_HEADER;
	if (file.bytes < *at + RECORD_HEADER)
		return false;
	memcpy(&length, file.data + *at + 8, sizeof(length));
	*at += RECORD_HEADER;
	if (length > SOFT_FRAME_MAX || length > file.bytes - *at)
		return false;
	memcpy(copy, file.data + *at, length);
	*at += length;
	*frame = (struct soft_frame){ .data = copy, .length = length };
	return true;
}

unsigned int play_run(struct soft_device *device)
{
	unsigned int index = device->index, sent = 0;
	struct soft_frame frame;

	if (device->faults.play == 0)
		player[index].rounds = player[index].at = 0;
	while (sent < PASS_FRAMES && player[index].rounds < device->faults.play &&
	       wire_ready(device)) {
		if (!next_frame(&player[index].at, &frame)) {
			player[index].at = 0;
			player[index].rounds++;
			continue;
		}
		wire_send(device, &frame);
		sent++;
	}
	if (sent > 0)
		completion_flush();
	return sent;
}
