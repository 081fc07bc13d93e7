/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps what was read, and writes it as a folder. */
#include "doctor/tree_record.h"

#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
	const char *root; /* a folder of ours, in which nobody else writes */
	bool links;	  /* this time these, else all others */
	FILE *refused;	  /* RECORD_REFUSED; NULL: nothing yet */
	int ret;
};

/* A link in place of a folder would lead elsewhere. */
static int folder_make(const char *full)
{
	struct stat status;

	if (mkdir(full, 0755) == 0)
		return 0;
	if (errno != EEXIST || lstat(full, &status) < 0)
		return -errno;
	return S_ISDIR(status.st_mode) ? 0 : -ENOTDIR;
}

/* `full`: where `path` is in the new folder. Makes the folders on its way, and with `folder` itself. */
static int place_make(char full[2 * PATH_MAX], const char *root, const char *path, bool folder)
{
	const size_t begin = strlen(root);
	int ret = 0;

	snprintf(full, 2 * PATH_MAX, "%s%s", root, path);
	for (char *slash = full + begin; !ret && (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		ret = folder_make(full);
		*slash = '/';
	}
	return ret || !folder ? ret : folder_make(full);
}

static int file_write(const char *full, const char *bytes, size_t length)
{
	FILE *file = fopen(full, "we");
	int ret = file ? 0 : -errno;

	if (file && length && fwrite(bytes, length, 1, file) != 1)
		ret = errno ? -errno : -EIO;
	if (file && fclose(file) == EOF && ret == 0)
		ret = -errno;
	return ret;
}

static void refused_add(struct writing *writing, const struct record_entry *entry)
{
	char full[2 * PATH_MAX];

	if (!writing->refused) {
		writing->ret = place_make(full, writing->root, RECORD_REFUSED, false);
		writing->refused = writing->ret < 0 ? NULL : fopen(full, "we");
		if (!writing->refused) {
			writing->ret = writing->ret < 0 ? writing->ret : -errno;
			return;
		}
	}
	fprintf(writing->refused, "%d %s\n", entry->error, entry->path);
}

static void write_entry(const void *node, VISIT visit, void *closure)
{
	const struct record_entry *entry = *(const struct record_entry *const *)node;
	const bool is_link = entry->kind == ENTRY_LINK, folder = entry->kind == ENTRY_FOLDER;
	struct writing *writing = closure;
	char full[2 * PATH_MAX];

	if ((visit != postorder && visit != leaf) || writing->ret < 0 || is_link != writing->links)
		return;
	/* What was refused before anybody saw what it is, is on the list only. */
	if (entry->kind != ENTRY_REFUSED)
		writing->ret = place_make(full, writing->root, entry->path, folder);
	if (writing->ret == 0 && is_link)
		writing->ret = symlink(entry->bytes, full) < 0 ? -errno : 0;
	else if (writing->ret == 0 && entry->kind != ENTRY_REFUSED && !folder)
		writing->ret = file_write(full, entry->bytes, entry->length);
	if (writing->ret == 0 && entry->error)
		refused_add(writing, entry);
}

int record_write(const struct tree_record *record, const char *path)
{
	struct writing writing = { .root = path };

	if (record->incomplete)
		return -ENOMEM;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (mkdir(path, 0755) < 0)
		return -errno;
	twalk_r(record->entries, write_entry, &writing);
	/* Last, so that no link of a hostile tree leads what is written elsewhere. */
	writing.links = true;
	twalk_r(record->entries, write_entry, &writing);
	if (writing.refused && fclose(writing.refused) == EOF && writing.ret == 0)
		writing.ret = -errno;
	return writing.ret;
}
