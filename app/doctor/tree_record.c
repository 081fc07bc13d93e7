/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps what was read, and writes it as a tar file. */
#include "doctor/tree_record.h"

#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

/* Later ones know more. */
enum entry_kind { ENTRY_REFUSED, ENTRY_SEEN, ENTRY_FOLDER, ENTRY_PIECES, ENTRY_FILE, ENTRY_LINK };

struct record_entry {
	enum entry_kind kind;
	char *path;
	char *bytes; /* of a file, or a link's target */
	size_t length;
	int error; /* could not be read */
};

struct tree_record {
	void *entries; /* tsearch() tree of struct record_entry, by path */
	bool incomplete;
};

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct record_entry *)a)->path,
		      ((const struct record_entry *)b)->path);
}

static void entry_free(void *arg)
{
	struct record_entry *entry = arg;

	free(entry->path);
	free(entry->bytes);
	free(entry);
}

struct tree_record *record_create(void)
{
	return calloc(1, sizeof(struct tree_record));
}

void record_destroy(struct tree_record *record)
{
	if (!record)
		return;
	tdestroy(record->entries, entry_free);
	free(record);
}

/* The entry of that path, made where there is none; NULL: no memory. */
static struct record_entry *entry_of(struct tree_record *record, const char *path)
{
	struct record_entry *fresh = calloc(1, sizeof(*fresh));
	void *found;

	if (fresh)
		fresh->path = strdup(path);
	found = fresh && fresh->path ? tsearch(fresh, &record->entries, by_path) : NULL;
	if (found && *(struct record_entry **)found == fresh)
		return fresh;
	if (fresh)
		entry_free(fresh);
	if (!found)
		record->incomplete = true;
	return found ? *(struct record_entry **)found : NULL;
}

static void entry_fill(struct tree_record *record, struct record_entry *entry, enum entry_kind kind,
		       const char *bytes, size_t length)
{
	char *copy = malloc(length + 1);

	if (!copy) {
		record->incomplete = true;
		return;
	}
	memcpy(copy, bytes, length);
	copy[length] = '\0';
	free(entry->bytes);
	entry->kind = kind;
	entry->bytes = copy;
	entry->length = length;
}

void record_file(struct tree_record *record, const char *path, const char *bytes, size_t length)
{
	struct record_entry *entry = entry_of(record, path);

	if (entry && (entry->kind != ENTRY_FILE || length >= entry->length))
		entry_fill(record, entry, ENTRY_FILE, bytes, length);
}

/* True when the entry has the piece already. */
static bool has_piece(const struct record_entry *entry, const char *piece, size_t length)
{
	const char *at = entry->bytes, *end = at + entry->length;

	while (at < end) {
		const char *line = memchr(at, '\n', (size_t)(end - at));
		const size_t bytes = (size_t)((line ? line : end) - at);

		if (bytes == length && memcmp(at, piece, length) == 0)
			return true;
		at += bytes + 1;
	}
	return false;
}

void record_pieces(struct tree_record *record, const char *path, const char *text, char between)
{
	struct record_entry *entry = entry_of(record, path);

	if (!entry || entry->kind > ENTRY_PIECES)
		return;
	if (entry->kind != ENTRY_PIECES)
		entry_fill(record, entry, ENTRY_PIECES, "", 0);
	while (*text && entry->bytes) {
		const char *end = strchrnul(text, between);
		const size_t length = (size_t)(end - text);
		char *bytes;

		if (length && !has_piece(entry, text, length)) {
			bytes = realloc(entry->bytes, entry->length + length + 2);
			if (!bytes) {
				record->incomplete = true;
				return;
			}
			memcpy(bytes + entry->length, text, length);
			entry->length += length;
			bytes[entry->length++] = '\n';
			bytes[entry->length] = '\0';
			entry->bytes = bytes;
		}
		text = end + (*end == between);
	}
}

void record_link(struct tree_record *record, const char *path, const char *target)
{
	struct record_entry *entry = entry_of(record, path);

	if (entry && entry->kind != ENTRY_LINK)
		entry_fill(record, entry, ENTRY_LINK, target, strlen(target));
}

void record_seen(struct tree_record *record, const char *path, bool folder)
{
	struct record_entry *entry = path[0] ? entry_of(record, path) : NULL;

	if (entry && entry->kind <= ENTRY_SEEN)
		entry->kind = folder ? ENTRY_FOLDER : ENTRY_SEEN;
}

void record_refused(struct tree_record *record, const char *path, int error)
{
	struct record_entry *entry = entry_of(record, path);

	if (entry)
		entry->error = error;
}

const char *record_fact(const struct tree_record *record, const char *name, size_t *bytes)
{
	char path[PATH_MAX];
	struct record_entry key = { .path = path };
	void *found;

	snprintf(path, sizeof(path), "%s/%s", RECORD_FACTS, name);
	found = tfind(&key, &record->entries, by_path);
	if (!found)
		return NULL;
	*bytes = (*(struct record_entry **)found)->length;
	return (*(struct record_entry **)found)->bytes;
}

/* ---- writing ---- */

struct writing {
	struct archive *archive;
	struct archive_entry *header;
	char *refused; /* text of RECORD_REFUSED */
	size_t refused_bytes;
	time_t now;
	int ret;
};

static void write_one(struct writing *writing, const char *path, mode_t type, const char *bytes,
		      size_t length)
{
	struct archive_entry *header = archive_entry_clear(writing->header);

	archive_entry_set_pathname(header, path + 1);
	archive_entry_set_filetype(header, type);
	archive_entry_set_perm(header, type == AE_IFDIR ? 0755 : 0644);
	archive_entry_set_mtime(header, writing->now, 0);
	if (type == AE_IFLNK)
		archive_entry_set_symlink(header, bytes);
	archive_entry_set_size(header, type == AE_IFREG ? (la_int64_t)length : 0);
	/* A name that is no UTF-8 is worth a warning to it, and is written. */
	if (archive_write_header(writing->archive, header) < ARCHIVE_WARN ||
	    (type == AE_IFREG && length &&
	     archive_write_data(writing->archive, bytes, length) != (la_ssize_t)length)) {
		const int error = archive_errno(writing->archive);

		writing->ret = error > 0 ? -error : -EIO;
	}
}

static void refused_add(struct writing *writing, const struct record_entry *entry)
{
	const size_t room = strlen(entry->path) + 32;
	char *text = realloc(writing->refused, writing->refused_bytes + room);

	if (!text) {
		writing->ret = -ENOMEM;
		return;
	}
	writing->refused = text;
	writing->refused_bytes += (size_t)snprintf(text + writing->refused_bytes, room, "%d %s\n",
						   entry->error, entry->path);
}

static void write_entry(const void *node, VISIT visit, void *closure)
{
	static const mode_t types[] = {
		[ENTRY_SEEN] = AE_IFREG, [ENTRY_FOLDER] = AE_IFDIR, [ENTRY_PIECES] = AE_IFREG,
		[ENTRY_FILE] = AE_IFREG, [ENTRY_LINK] = AE_IFLNK,
	};
	const struct record_entry *entry = *(const struct record_entry *const *)node;
	struct writing *writing = closure;

	if ((visit != postorder && visit != leaf) || writing->ret < 0)
		return;
	/* What was refused before anybody saw what it is, is on the list only. */
	if (entry->kind != ENTRY_REFUSED)
		write_one(writing, entry->path, types[entry->kind], entry->bytes, entry->length);
	if (entry->error)
		refused_add(writing, entry);
}

int record_write(const struct tree_record *record, const char *path)
{
	struct writing writing = { .now = time(NULL) };

	if (record->incomplete)
		return -ENOMEM;
	writing.archive = archive_write_new();
	writing.header = archive_entry_new();
	if (!writing.archive || !writing.header) {
		writing.ret = -ENOMEM;
		goto out;
	}
	if (archive_write_set_format_pax_restricted(writing.archive) != ARCHIVE_OK ||
	    archive_write_open_filename(writing.archive, path) != ARCHIVE_OK) {
		writing.ret =
			archive_errno(writing.archive) > 0 ? -archive_errno(writing.archive) : -EIO;
		goto out;
	}
	twalk_r(record->entries, write_entry, &writing);
	if (writing.ret == 0 && writing.refused)
		write_one(&writing, RECORD_REFUSED, AE_IFREG, writing.refused,
			  writing.refused_bytes);
	if (archive_write_close(writing.archive) != ARCHIVE_OK && writing.ret == 0)
		writing.ret = -EIO;
	if (writing.ret < 0)
		unlink(path);
out:
	free(writing.refused);
	if (writing.header)
		archive_entry_free(writing.header);
	if (writing.archive)
		archive_write_free(writing.archive);
	return writing.ret;
}
