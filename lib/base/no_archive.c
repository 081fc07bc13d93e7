/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In place of libarchive: DPDK, where it was built with libarchive, unpacks a card's firmware with it. No driver of ours loads firmware; if one did, it
 * would hear that there is no memory, which is how this interface fails.
 */
struct archive;
struct archive_entry;

#define FATAL (-30) /* ARCHIVE_FATAL */

struct archive *archive_read_new(void);
int archive_read_support_format_raw(struct archive *archive);
int archive_read_support_filter_xz(struct archive *archive);
int archive_read_support_filter_zstd(struct archive *archive);
int archive_read_open_filename(struct archive *archive, const char *name, unsigned long block);
int archive_read_next_header(struct archive *archive, struct archive_entry **entry);
long archive_read_data(struct archive *archive, void *to, unsigned long bytes);
int archive_read_free(struct archive *archive);

struct archive *archive_read_new(void)
{
	return 0;
}

int archive_read_support_format_raw(struct archive *archive)
{
	return FATAL;
}

int archive_read_support_filter_xz(struct archive *archive)
{
	return FATAL;
}

int archive_read_support_filter_zstd(struct archive *archive)
{
	return FATAL;
}

int archive_read_open_filename(struct archive *archive, const char *name, unsigned long block)
{
	return FATAL;
}

int archive_read_next_header(struct archive *archive, struct archive_entry **entry)
{
	return FATAL;
}

long archive_read_data(struct archive *archive, void *to, unsigned long bytes)
{
	return FATAL;
}

int archive_read_free(struct archive *archive)
{
	return 0;
}
