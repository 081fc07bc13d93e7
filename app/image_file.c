/* SPDX-License-Identifier: BSD-3-Clause */
/* Raw images one after the other, and pictures as PGM, PPM or PNG. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef GDRCAP_WITH_PNG
#include <png.h>
#endif

#include "base/output_file.h"
#include "image_file.h"

#define PATH_BYTES 4096
#define STALL_MS 10000 /* a pipe's reader that takes nothing for so long is given up */

static const char *const format_names[] = { "raw", "pgm", "ppm", "png" };

int image_format_of(const char *name)
{
	for (int i = IMAGE_RAW; i <= IMAGE_PNG; i++)
		if (!strcmp(name, format_names[i])) {
#ifndef GDRCAP_WITH_PNG
			if (i == IMAGE_PNG)
				return -ENOTSUP;
#endif
			return i;
		}
	return -EINVAL;
}

int image_bits_of(const char *layout)
{
	static const struct {
		const char *line;
		int bits;
	} known[] = {
		{ "\nconvert: none\n", 0 },	    { "\nconvert: swap16\n", 16 },
		{ "\nconvert: unpack10-be\n", 10 }, { "\nconvert: mono10p\n", 10 },
		{ "\nconvert: unpack12-be\n", 12 }, { "\nconvert: mono12p\n", 12 },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strstr(layout, known[i].line))
			return known[i].bits;
	return -EINVAL;
}

static int file_fail(struct image_file *file, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int file_fail(struct image_file *file, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(file->why, sizeof(file->why), format, args);
	va_end(args);
	return code;
}

static const char *file_why(int code)
{
	const char *why = output_file_why(code);

	return why ? why : strerror(-code);
}

/* Its descriptor, of a file that is empty now, or a negative errno. */
static int file_begin(const char *path)
{
	const int fd = output_file_open(path);
	int ret;

	/* pipes and devices have no length */
	if (fd < 0 || ftruncate(fd, 0) == 0 || errno == EINVAL)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

/* An input or somebody's document may have the name that a picture gets; only a picture is written over. */
static bool is_picture(const char *path)
{
	static const char *const begins[] = { "P5\n", "P6\n", "\x89PNG\r\n" };
	const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char head[8] = "";
	ssize_t got;

	if (fd < 0)
		return true; /* file_begin() says why, if it cannot be written */
	got = read(fd, head, sizeof(head) - 1);
	close(fd);
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (strncmp(head, begins[i], strlen(begins[i])) == 0)
			return true;
	return got <= 0;
}

static int fail_open(const char *path, int code, struct gdrcap_error *error)
{
	error->code = code;
	snprintf(error->text, sizeof(error->text), "--save-images: cannot write %s: %s", path,
		 file_why(code));
	return code;
}

/* Nothing is beside a pipe or a device. */
static int index_begin(struct image_file *file, struct gdrcap_error *error)
{
	struct stat status;
	int fd;

	if (fstat(file->fd, &status) || !S_ISREG(status.st_mode))
		return 0;
	file->index_path = image_index_path(file->path);
	if (!file->index_path)
		return fail_open(file->path, -ENOMEM, error);
	fd = file_begin(file->index_path);
	if (fd < 0)
		return fail_open(file->index_path, fd, error);
	file->index.file = (struct json_file){ .path = file->index_path, .fd = fd };
	return 0;
}

int image_file_open(struct image_file *file, struct gdrcap_error *error)
{
	file->fd = -1;
	if (file->format != IMAGE_RAW)
		return 0;
	file->fd = file_begin(file->path);
	if (file->fd < 0)
		return fail_open(file->path, file->fd, error);
	return index_begin(file, error);
}

static int raw_write(struct image_file *file, const uint8_t *data, size_t bytes)
{
	while (bytes) {
		const ssize_t wrote = write(file->fd, data, bytes);
		struct pollfd room = { .fd = file->fd, .events = POLLOUT };

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0 && errno == EAGAIN && poll(&room, 1, STALL_MS) == 0)
			return file_fail(file, -ETIMEDOUT,
					 "%s: its reader took nothing for 10 s; let it read",
					 file->path);
		if (wrote < 0 && errno == EAGAIN)
			continue;
		if (wrote < 0)
			return file_fail(file, -errno, "%s: %s", file->path, strerror(errno));
		data += wrote;
		bytes -= (size_t)wrote;
	}
	return 0;
}

/* Samples of a pixel and bytes of a sample; 0: the bytes are no such picture. */
static int picture_shape(const struct image_file *file, size_t bytes, uint32_t *samples,
			 uint32_t *depth)
{
	const size_t pixels = (size_t)file->width * file->height, each = bytes / pixels;

	*depth = file->bits || each == 2 || each == 6 ? 2 : 1;
	*samples = (uint32_t)each / *depth;
	if (bytes % pixels || each % *depth || (*samples != 1 && *samples != 3 && *samples != 4))
		return 0;
	return file->format == IMAGE_PGM   ? *samples == 1
	       : file->format == IMAGE_PPM ? *samples == 3
					   : 1;
}

/* Words to what a picture's file has: the more significant byte first, and in PNG 16 bits, of which the lower
 * ones repeat the upper. */
static void words_write(const struct image_file *file, uint8_t *data, size_t bytes)
{
	const int more = file->format == IMAGE_PNG ? 16 - file->bits : 0;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		const uint32_t word = data[i] | (uint32_t)data[i + 1] << 8;
		const uint32_t wide = more ? word << more | word >> (file->bits - more) : word;

		data[i] = (uint8_t)(wide >> 8);
		data[i + 1] = (uint8_t)wide;
	}
}

static int picture_netpbm(FILE *to, const struct image_file *file, const uint8_t *data,
			  size_t bytes, uint32_t depth)
{
	if (fprintf(to, "P%d\n%" PRIu32 " %" PRIu32 "\n%d\n", file->format == IMAGE_PGM ? 5 : 6,
		    file->width, file->height,
		    file->bits	 ? (1 << file->bits) - 1
		    : depth == 2 ? 65535
				 : 255) < 0)
		return -1;
	return fwrite(data, 1, bytes, to) == bytes ? 0 : -1;
}

#ifdef GDRCAP_WITH_PNG
static int picture_png(FILE *to, const struct image_file *file, const uint8_t *data,
		       uint32_t samples, uint32_t depth)
{
	static const int colour[] = { 0, PNG_COLOR_TYPE_GRAY, 0, PNG_COLOR_TYPE_RGB,
				      PNG_COLOR_TYPE_RGBA };
	const size_t row = (size_t)file->width * samples * depth;
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png ? png_create_info_struct(png) : NULL;

	if (!info) {
		png_destroy_write_struct(&png, NULL);
		errno = ENOMEM;
		return -1;
	}
	if (setjmp(png_jmpbuf(png))) {
		png_destroy_write_struct(&png, &info);
		return -1;
	}
	png_init_io(png, to);
	png_set_compression_level(png, 1); /* speed: a run waits for nobody */
	png_set_IHDR(png, info, file->width, file->height, (int)depth * 8, colour[samples],
		     PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_write_info(png, info);
	for (uint32_t y = 0; y < file->height; y++)
		png_write_row(png, data + y * row);
	png_write_end(png, info);
	png_destroy_write_struct(&png, &info);
	return 0;
}
#else
static int picture_png(FILE *to, const struct image_file *file, const uint8_t *data,
		       uint32_t samples, uint32_t depth)
{
	errno = ENOTSUP;
	return -1;
}
#endif

/* "out.png": "out-7.png". 0: it is too long. */
static int picture_path(const struct image_file *file, uint64_t seq, char path[PATH_BYTES])
{
	const char *slash = strrchr(file->path, '/'), *dot = strrchr(file->path, '.');
	const char *end = dot && dot > (slash ? slash : file->path) ? dot : strchr(file->path, 0);

	return snprintf(path, PATH_BYTES, "%.*s-%" PRIu64 "%s", (int)(end - file->path), file->path,
			seq, end) < PATH_BYTES;
}

static int picture_write(struct image_file *file, uint8_t *data, size_t bytes, uint64_t seq)
{
	uint32_t samples, depth;
	char path[PATH_BYTES];
	FILE *to;
	int ret, fd;

	if (!picture_shape(file, bytes, &samples, &depth))
		return file_fail(file, -EINVAL,
				 "an image of %zu bytes is no %s picture of %" PRIu32 " x %" PRIu32
				 " pixels; use another --image-format or --image-size",
				 bytes, format_names[file->format], file->width, file->height);
	if (!picture_path(file, seq, path))
		return file_fail(file, -ENAMETOOLONG, "%s", strerror(ENAMETOOLONG));
	if (!is_picture(path))
		return file_fail(file, -EEXIST,
				 "%s is there and is no picture; move it, or give another name",
				 path);
	fd = file_begin(path);
	if (fd < 0)
		return file_fail(file, fd, "%s: %s", path, file_why(fd));
	to = fdopen(fd, "w");
	if (!to) {
		close(fd);
		return file_fail(file, -ENOMEM, "%s: %s", path, strerror(ENOMEM));
	}
	if (file->bits)
		words_write(file, data, bytes);
	ret = file->format == IMAGE_PNG ? picture_png(to, file, data, samples, depth)
					: picture_netpbm(to, file, data, bytes, depth);
	if (ret)
		ret = errno ? -errno : -EIO;
	if (fclose(to) && !ret)
		ret = -errno;
	if (ret)
		(void)unlink(path); /* half a picture is none */
	return ret ? file_fail(file, ret, "%s: %s", path, strerror(-ret)) : 0;
}

int image_file_write(struct image_file *file, uint8_t *data, const struct image_about *about)
{
	const struct gdrcap_image *image = &about->image;
	int ret;

	if (file->format != IMAGE_RAW)
		return picture_write(file, data, image->bytes, image->seq);
	ret = raw_write(file, data, image->bytes);
	if (ret || !file->index.file.path)
		return ret;
	/* After the image: what the index names is there. */
	ret = image_index_add(&file->index, about);
	return ret ? file_fail(file, ret, "%s: %s", file->index_path, strerror(-ret)) : 0;
}

int image_file_close(struct image_file *file)
{
	const int fd = file->fd, index = json_file_close(&file->index.file);
	int ret = 0;

	file->fd = -1;
	if (fd >= 0 && output_file_close(fd))
		ret = file_fail(file, -errno, "%s: %s", file->path, strerror(errno));
	else if (index)
		ret = file_fail(file, index, "%s: %s", file->index_path, strerror(-index));
	free(file->index_path);
	file->index_path = NULL;
	return ret;
}
