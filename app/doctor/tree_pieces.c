/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines or words of a file, of which nothing else is kept. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/tree_internal.h"

#define GREP_BYTES_MAX ((size_t)32 << 20)
#define GREP_CHUNK ((size_t)64 << 10)
#define LINE_BYTES_MAX 4096

struct pieces {
	const char *const *wanted;
	bool words; /* between blanks, by how they begin; else lines, by what is in them */
	char *text;
	size_t size, used;
	int count;
	bool full;
};

static bool piece_wanted(const struct pieces *pieces, const char *piece, size_t length)
{
	for (const char *const *wanted = pieces->wanted; *wanted; wanted++) {
		const size_t bytes = strlen(*wanted);

		if (pieces->words ? length >= bytes && memcmp(piece, *wanted, bytes) == 0
				  : memmem(piece, length, *wanted, bytes) != NULL)
			return true;
	}
	return false;
}

static void piece_take(struct pieces *pieces, const char *piece, size_t length)
{
	char line[LINE_BYTES_MAX];

	if (!piece_wanted(pieces, piece, length))
		return;
	length = length < sizeof(line) ? length : sizeof(line) - 1;
	memcpy(line, piece, length);
	tree_clean(line, length);
	if (pieces->used + strlen(line) + 2 > pieces->size) {
		pieces->full = true;
		return;
	}
	pieces->used +=
		(size_t)snprintf(pieces->text + pieces->used, pieces->size - pieces->used, "%s%s",
				 !pieces->count	 ? ""
				 : pieces->words ? " "
						 : "\n",
				 line);
	pieces->count++;
}

static size_t piece_length(const struct pieces *pieces, const char *piece, size_t most)
{
	const char *end;
	size_t length = 0;

	if (!pieces->words) {
		end = memchr(piece, '\n', most);
		return end ? (size_t)(end - piece) : most;
	}
	while (length < most && !isspace((unsigned char)piece[length]))
		length++;
	return length;
}

/* Takes what is whole of `have` bytes, all of them at the end of the file: how many are used up. A
 * piece that fills the whole buffer is cut. */
static size_t pieces_take(struct pieces *pieces, const char *buffer, size_t have, bool end)
{
	size_t at = 0;

	while (at < have && !pieces->full) {
		const size_t length = piece_length(pieces, buffer + at, have - at);

		if (at + length == have && !end && !(at == 0 && have == GREP_CHUNK))
			break;
		if (length)
			piece_take(pieces, buffer + at, length);
		at += length + 1;
	}
	return at < have ? at : have;
}

static int pieces_read(struct pieces *pieces, int fd)
{
	char *buffer = malloc(GREP_CHUNK);
	size_t have = 0, seen = 0, used;
	ssize_t got = 1;

	if (!buffer)
		return -ENOMEM;
	while (got > 0 && seen < GREP_BYTES_MAX && !pieces->full) {
		got = read(fd, buffer + have, GREP_CHUNK - have);
		if (got < 0)
			break;
		have += (size_t)got;
		seen += (size_t)got;
		used = pieces_take(pieces, buffer, have, got == 0);
		memmove(buffer, buffer + used, have - used);
		have -= used;
	}
	got = got < 0 ? -errno : 0;
	free(buffer);
	return pieces->count ? pieces->count : (int)got;
}

static int pieces_of(struct tree *tree, const char *path, struct pieces *pieces)
{
	char real[PATH_MAX];
	int fd, ret;

	pieces->text[0] = '\0';
	fd = tree_open_file(tree, path, real);
	if (fd < 0)
		return fd;
	ret = pieces_read(pieces, fd);
	close(fd);
	if (ret == -EACCES || ret == -EPERM)
		record_refused(tree->record, real, -ret);
	if (ret >= 0)
		record_pieces(tree->record, real, pieces->text, pieces->words ? ' ' : '\n');
	return ret;
}

int tree_grep(struct tree *tree, const char *path, const char *const *words, char *text,
	      size_t size)
{
	struct pieces pieces = { .wanted = words, .text = text, .size = size };

	return pieces_of(tree, path, &pieces);
}

int tree_words(struct tree *tree, const char *path, const char *const *starts, char *text,
	       size_t size)
{
	struct pieces pieces = { .wanted = starts, .words = true, .text = text, .size = size };

	return pieces_of(tree, path, &pieces);
}
