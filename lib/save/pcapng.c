/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes pcapng blocks. */
#include "save/pcapng.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/output_file.h"

#define BUFFER_BYTES (1u << 20)

#define BLOCK_SECTION 0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_STATISTICS 5u
#define BLOCK_FRAME 6u

#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define LINK_ETHERNET 1u
#define DIRECTION_INBOUND 1u

enum option {
	OPTION_END = 0,
	OPTION_COMMENT = 1,
	SECTION_APPLICATION = 4,
	INTERFACE_NAME = 2,
	INTERFACE_DESCRIPTION = 3,
	INTERFACE_RESOLUTION = 9,
	FRAME_FLAGS = 2,
	FRAME_DROPCOUNT = 4,
	STATISTICS_START = 2,
	STATISTICS_END = 3,
	STATISTICS_RECEIVED = 4,
	STATISTICS_DROPPED = 5,
	STATISTICS_ACCEPTED = 6,
	STATISTICS_DELIVERED = 8,
};

/* Where the next bytes of a block go. */
struct block {
	uint8_t *start, *at;
};

int pcapng_open(struct pcapng *file, const char *path)
{
	memset(file, 0, sizeof(*file));
	file->fd = -1;
	file->stall_ms = PCAPNG_STALL_MS;
	file->buffer = malloc(BUFFER_BYTES);
	if (!file->buffer)
		return file->error = -ENOMEM;
	file->fd = output_file_open(path);
	if (file->fd < 0)
		return file->error = file->fd;
	return 0;
}

/* ---- calls that may not return ---- */

static void system_enter(struct pcapng *file)
{
	/* What this thread did before the place. Partner: pcapng_give_up(). */
	atomic_store_explicit(&file->place, PCAPNG_IN_SYSTEM, memory_order_release);
}

/* False: the file is somebody else's by now. */
static bool system_leave(struct pcapng *file)
{
	int place = PCAPNG_IN_SYSTEM;

	return atomic_compare_exchange_strong_explicit(&file->place, &place, PCAPNG_HERE,
						       memory_order_relaxed, memory_order_relaxed);
}

/* -ECANCELED means something else here. */
static int system_error(int code)
{
	return code == ECANCELED ? -EIO : -code;
}

/* The reader has taken nothing since `since`: waits until it does. */
static int reader_wait(struct pcapng *file, uint64_t since)
{
	struct pollfd room = { .fd = file->fd, .events = POLLOUT };
	const uint64_t gone = now_ms() - since;

	file->stalled = gone >= file->stall_ms;
	if (file->stalled)
		return -ETIMEDOUT;
	if (poll(&room, 1, (int)(file->stall_ms - gone)) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static uint8_t *put16(uint8_t *at, uint32_t value)
{
	const uint16_t v = (uint16_t)value;

	memcpy(at, &v, sizeof(v));
	return at + sizeof(v);
}

static uint8_t *put32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

/* A time: the high half first, whatever the byte order is. */
static uint8_t *put_time(uint8_t *at, uint64_t ns)
{
	return put32(put32(at, (uint32_t)(ns >> 32)), (uint32_t)ns);
}

static uint32_t padded(uint32_t bytes)
{
	return (bytes + 3) & ~3u;
}

static uint8_t *put_bytes(uint8_t *at, const void *from, uint32_t bytes)
{
	memset(at + bytes, 0, padded(bytes) - bytes);
	if (bytes)
		memcpy(at, from, bytes);
	return at + padded(bytes);
}

static void put_option(struct block *block, enum option code, const void *value, uint32_t bytes)
{
	block->at = put_bytes(put16(put16(block->at, code), bytes), value, bytes);
}

static void put_option64(struct block *block, enum option code, uint64_t value)
{
	put_option(block, code, &value, sizeof(value));
}

static void put_option_time(struct block *block, enum option code, uint64_t ns)
{
	uint8_t time[8];

	put_time(time, ns);
	put_option(block, code, time, sizeof(time));
}

static uint32_t text_bytes(const char *text)
{
	return text ? (uint32_t)strnlen(text, PCAPNG_TEXT_MAX) : 0;
}

/* Texts are UTF-8: what is not printable ASCII in a name from outside becomes '?'. */
static void put_option_text(struct block *block, enum option code, const char *text)
{
	const uint32_t bytes = text_bytes(text);
	uint8_t *at = block->at + 4;

	if (bytes == 0)
		return;
	put_option(block, code, text, bytes);
	for (uint32_t i = 0; i < bytes; i++)
		if (at[i] < 0x20 || at[i] > 0x7e)
			at[i] = '?';
}

/* The blocks that the file took as a whole are in it; the rest of the buffer is not, and returned
 * is whether it took a part of one. */
static bool buffer_drop(struct pcapng *file)
{
	const uint32_t out = file->out;
	uint32_t whole = 0;

	while (whole < out) {
		const uint32_t bytes = get32(file->buffer + whole + 4);

		if (bytes > out - whole)
			break;
		if (get32(file->buffer + whole) == BLOCK_FRAME)
			file->frames++;
		whole += bytes;
	}
	file->bytes += whole;
	file->used = file->out = file->pending = 0;
	return whole != out;
}

/*
 * A write failed in the middle of the buffer: the file keeps the blocks that are whole. Where it
 * cannot be cut (a pipe, a device), its reader has seen part of a block.
 */
static int write_failed(struct pcapng *file, int error)
{
	int ret;

	file->error = error;
	file->torn = buffer_drop(file);
	if (!file->torn)
		return error;
	system_enter(file);
	ret = ftruncate(file->fd, (off_t)file->bytes);
	if (!system_leave(file))
		return -ECANCELED;
	file->torn = ret < 0;
	return error;
}

bool pcapng_give_up(struct pcapng *file)
{
	int place = PCAPNG_IN_SYSTEM;

	/* All that the other thread did is seen. Partner: system_enter(). */
	if (!atomic_compare_exchange_strong_explicit(&file->place, &place, PCAPNG_GIVEN_UP,
						     memory_order_acquire, memory_order_relaxed))
		return false;
	file->torn |= buffer_drop(file);
	if (!file->error)
		file->error = -ETIMEDOUT;
	return true;
}

int pcapng_flush(struct pcapng *file)
{
	uint64_t since = now_ms();

	while (!file->error && file->out < file->used) {
		ssize_t n;
		int ret;

		system_enter(file);
		n = write(file->fd, file->buffer + file->out, file->used - file->out);
		ret = n < 0 ? system_error(errno) : -EIO;
		if (!system_leave(file))
			return -ECANCELED;
		if (n > 0) {
			file->out += (uint32_t)n;
			atomic_fetch_add_explicit(&file->moved, (uint64_t)n, memory_order_relaxed);
			since = now_ms();
			continue;
		}
		if (ret == -EAGAIN)
			ret = reader_wait(file, since);
		if (ret < 0 && ret != -EINTR)
			return write_failed(file, ret);
	}
	if (file->error)
		return file->error;
	file->bytes += file->used;
	file->frames += file->pending;
	file->used = file->out = file->pending = 0;
	return 0;
}

/* Makes room for a block of at most `bytes` bytes. */
static int block_begin(struct pcapng *file, struct block *block, uint32_t type, uint32_t bytes)
{
	if (file->error)
		return file->error;
	if (bytes > BUFFER_BYTES)
		return -EMSGSIZE;
	if (bytes > BUFFER_BYTES - file->used) {
		const int ret = pcapng_flush(file);

		if (ret)
			return ret;
	}
	block->start = file->buffer + file->used;
	block->at = put32(block->start, type) + 4; /* the length, twice, comes at the end */
	return 0;
}

static void block_end(struct pcapng *file, struct block *block)
{
	const uint32_t bytes = (uint32_t)(block->at - block->start) + 4;

	put32(block->start + 4, bytes);
	put32(block->at, bytes);
	file->used += bytes;
}

int pcapng_begin(struct pcapng *file, const char *application)
{
	struct block block;
	int ret;

	/* A pipe or a device has no length. */
	if (!file->error && ftruncate(file->fd, 0) < 0 && errno != EINVAL)
		file->error = -errno;
	ret = block_begin(file, &block, BLOCK_SECTION, 64 + PCAPNG_TEXT_MAX);
	if (ret)
		return ret;
	block.at = put32(block.at, BYTE_ORDER_MAGIC);
	block.at = put16(block.at, 1); /* version 1.0 */
	block.at = put16(block.at, 0);
	block.at = put32(block.at, UINT32_MAX); /* the section's length is not known */
	block.at = put32(block.at, UINT32_MAX);
	put_option_text(&block, SECTION_APPLICATION, application);
	put_option(&block, OPTION_END, NULL, 0);
	block_end(file, &block);
	return 0;
}

int pcapng_interface(struct pcapng *file, const char *name, const char *description,
		     uint32_t snaplen)
{
	const uint8_t resolution = 9; /* 10^-9 s */
	struct block block;
	int ret = block_begin(file, &block, BLOCK_INTERFACE, 64 + 2 * PCAPNG_TEXT_MAX);

	if (ret)
		return ret;
	block.at = put16(block.at, LINK_ETHERNET);
	block.at = put16(block.at, 0);
	block.at = put32(block.at, snaplen);
	put_option_text(&block, INTERFACE_NAME, name);
	put_option_text(&block, INTERFACE_DESCRIPTION, description);
	put_option(&block, INTERFACE_RESOLUTION, &resolution, sizeof(resolution));
	put_option(&block, OPTION_END, NULL, 0);
	block_end(file, &block);
	return 0;
}

int pcapng_frame(struct pcapng *file, const struct pcapng_frame *frame)
{
	const uint32_t flags = DIRECTION_INBOUND;
	struct block block;
	int ret;

	if (frame->captured > PCAPNG_SNAPLEN_MAX)
		return -EMSGSIZE;
	ret = block_begin(file, &block, BLOCK_FRAME,
			  128 + padded(frame->captured) + padded(text_bytes(frame->comment)));
	if (ret)
		return ret;
	block.at = put32(block.at, frame->interface);
	block.at = put_time(block.at, frame->time_ns);
	block.at = put32(block.at, frame->captured);
	block.at = put32(block.at, frame->length);
	block.at = put_bytes(block.at, frame->bytes, frame->captured);
	put_option_text(&block, OPTION_COMMENT, frame->comment);
	put_option(&block, FRAME_FLAGS, &flags, sizeof(flags));
	if (frame->dropped)
		put_option64(&block, FRAME_DROPCOUNT, frame->dropped);
	put_option(&block, OPTION_END, NULL, 0);
	block_end(file, &block);
	file->pending++;
	return 0;
}

int pcapng_statistics(struct pcapng *file, const struct pcapng_statistics *statistics)
{
	struct block block;
	int ret = block_begin(file, &block, BLOCK_STATISTICS, 256);

	if (ret)
		return ret;
	block.at = put32(block.at, statistics->interface);
	block.at = put_time(block.at, statistics->end_ns);
	put_option_time(&block, STATISTICS_START, statistics->start_ns);
	put_option_time(&block, STATISTICS_END, statistics->end_ns);
	if (statistics->port_known) {
		put_option64(&block, STATISTICS_RECEIVED, statistics->received);
		put_option64(&block, STATISTICS_DROPPED, statistics->dropped);
	}
	put_option64(&block, STATISTICS_ACCEPTED, statistics->accepted);
	put_option64(&block, STATISTICS_DELIVERED, statistics->delivered);
	put_option(&block, OPTION_END, NULL, 0);
	block_end(file, &block);
	return 0;
}

int pcapng_close(struct pcapng *file)
{
	int ret = pcapng_flush(file);

	if (ret == -ECANCELED || pcapng_is_given_up(file))
		return ret;
	if (file->fd >= 0) {
		system_enter(file);
		ret = output_file_close(file->fd) < 0 ? system_error(errno) : 0;
		if (!system_leave(file))
			return -ECANCELED;
		/* A network file system says only here that it is full. */
		if (!file->error)
			file->error = ret;
	}
	file->fd = -1;
	free(file->buffer);
	file->buffer = NULL;
	return file->error;
}
