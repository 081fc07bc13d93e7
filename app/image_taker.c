/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes images and gives them back; writes copies of them. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_taker.h"

#define TAKE_MAX 8u		/* images at once */
#define COPIES_BYTES (1u << 28) /* that wait for the writer, at most; two images may of any size */

/* Of an image: waits for the writer, or for the next image. */
struct copy {
	struct copy *next;
	uint8_t *data;
	size_t room;
	struct image_about about;
};

struct image_thread {
	struct image_taker *taker;
	struct gdrcap_images *images;
	pthread_t thread;
};

struct image_taker {
	struct image_thread thread[GDRCAP_IMAGES_MAX];
	uint32_t count, started;
	struct image_taker_config config;
	struct image_file file; /* the writer's, while there is one */
	int saves;
	pthread_t writer;
	int writes;
	pthread_mutex_t lock; /* over what follows */
	pthread_cond_t changed;
	struct copy *first, *last; /* they wait for the writer */
	struct copy *free;	   /* the one that was written last first */
	uint32_t waiting;
	size_t waiting_bytes;
	int over, failure; /* a negative errno of the writer's, or of a GPU that was to copy */
	struct image_taker_counts counts;
};

static int fail(struct gdrcap_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct gdrcap_error *error, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	error->code = code;
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return code;
}

/* ---- writing ---- */

/* The next to write, until nothing more will come: NULL. With the lock. */
static struct copy *copy_next(struct image_taker *taker)
{
	struct copy *copy;

	while (!taker->first && !taker->over)
		pthread_cond_wait(&taker->changed, &taker->lock);
	copy = taker->first;
	if (copy)
		taker->first = copy->next;
	return copy;
}

static void *writer_main(void *argument)
{
	struct image_taker *taker = argument;
	struct copy *copy;

	pthread_mutex_lock(&taker->lock);
	while ((copy = copy_next(taker))) {
		int ret = taker->failure;

		pthread_mutex_unlock(&taker->lock);
		if (!ret)
			ret = image_file_write(&taker->file, copy->data, &copy->about);
		pthread_mutex_lock(&taker->lock);
		if (ret)
			taker->failure = ret;
		taker->counts.saved += !ret;
		taker->counts.missed += ret != 0;
		taker->waiting--;
		taker->waiting_bytes -= copy->about.image.bytes;
		copy->next = taker->free;
		taker->free = copy;
	}
	pthread_mutex_unlock(&taker->lock);
	return NULL;
}

static void copies_free(struct copy *copy)
{
	while (copy) {
		struct copy *next = copy->next;

		free(copy->about.missing);
		free(copy->data);
		free(copy);
		copy = next;
	}
}

/* Room for an image; NULL: there is none now. */
static struct copy *copy_room(struct image_taker *taker, size_t bytes)
{
	struct copy *copy = NULL;

	pthread_mutex_lock(&taker->lock);
	if (!taker->failure &&
	    (taker->waiting < 2 || taker->waiting_bytes + bytes <= COPIES_BYTES)) {
		copy = taker->free ? taker->free : calloc(1, sizeof(*copy));
		taker->free = taker->free ? copy->next : NULL;
	}
	pthread_mutex_unlock(&taker->lock);
	if (!copy || copy->room >= bytes)
		return copy;
	copy->next = NULL;
	free(copy->data);
	copy->data = malloc(bytes);
	copy->room = copy->data ? bytes : 0;
	if (copy->data)
		return copy;
	copies_free(copy);
	return NULL;
}

static void image_save(struct image_taker *taker, const struct gdrcap_image *image)
{
	struct copy *copy = copy_room(taker, image->bytes);
	int ret = copy ? image_about_fill(&copy->about, image) : 0;

	if (copy && !ret)
		ret = gdrcap_image_copy(image, 0, image->bytes, copy->data);
	pthread_mutex_lock(&taker->lock);
	if (!copy || ret) {
		taker->counts.missed++;
		taker->failure = ret ? ret : taker->failure;
	} else {
		copy->next = NULL;
		*(taker->first ? &taker->last->next : &taker->first) = copy;
		taker->last = copy;
		taker->waiting++;
		taker->waiting_bytes += image->bytes;
		pthread_cond_signal(&taker->changed);
	}
	pthread_mutex_unlock(&taker->lock);
	if (ret) {
		copy->next = NULL;
		copies_free(copy);
	}
}

/* ---- taking ---- */

static void *thread_main(void *argument)
{
	const struct image_thread *thread = argument;
	struct image_taker *taker = thread->taker;
	const struct gdrcap_image *image[TAKE_MAX];
	int n;

	while ((n = gdrcap_image_wait(thread->images, image, TAKE_MAX, -1)) >= 0) {
		for (int i = 0; i < n && taker->saves; i++)
			if (image[i]->seq % taker->config.every == 0)
				image_save(taker, image[i]);
		gdrcap_image_release(thread->images, image, (unsigned int)n);
	}
	return NULL;
}

static int file_open(struct image_taker *taker, struct gdrcap_error *error)
{
	if (!taker->config.file.path)
		return 0;
	taker->file = taker->config.file;
	taker->saves = image_file_open(&taker->file, error) == 0;
	return taker->saves ? 0 : error->code;
}

struct image_taker *image_taker_open(struct gdrcap_session *session,
				     const struct image_taker_config *config,
				     struct gdrcap_error *error)
{
	struct image_taker *taker = calloc(1, sizeof(*taker));

	if (!taker) {
		fail(error, -ENOMEM, "no memory for the images' thread");
		return NULL;
	}
	taker->config = *config;
	taker->file.fd = -1;
	pthread_mutex_init(&taker->lock, NULL);
	pthread_cond_init(&taker->changed, NULL);
	for (; taker->count < GDRCAP_IMAGES_MAX; taker->count++) {
		struct image_thread *thread = &taker->thread[taker->count];

		thread->taker = taker;
		thread->images = gdrcap_get_images(session, taker->count);
		if (!thread->images)
			break;
	}
	if (file_open(taker, error) < 0) {
		image_taker_close(taker);
		return NULL;
	}
	return taker;
}

int image_taker_start(struct image_taker *taker, struct gdrcap_error *error)
{
	sigset_t all, before;
	int ret = 0;

	/* signals are the main thread's */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (taker->saves) {
		ret = pthread_create(&taker->writer, NULL, writer_main, taker);
		taker->writes = ret == 0;
	}
	for (; ret == 0 && taker->started < taker->count; taker->started += ret == 0)
		ret = pthread_create(&taker->thread[taker->started].thread, NULL, thread_main,
				     &taker->thread[taker->started]);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret ? fail(error, -ret, "a thread for images cannot be made: %s", strerror(ret)) : 0;
}

int image_taker_finish(struct image_taker *taker, struct gdrcap_error *error)
{
	while (taker->started)
		pthread_join(taker->thread[--taker->started].thread, NULL);
	pthread_mutex_lock(&taker->lock);
	taker->over = 1;
	pthread_cond_signal(&taker->changed);
	pthread_mutex_unlock(&taker->lock);
	if (taker->writes)
		pthread_join(taker->writer, NULL);
	taker->writes = 0;
	if (image_file_close(&taker->file) && !taker->failure)
		taker->failure = -EIO;
	if (taker->failure)
		return fail(error, taker->failure,
			    "--save-images: %s; the images after it are not saved",
			    taker->file.why[0] ? taker->file.why : strerror(-taker->failure));
	return 0;
}

void image_taker_counts(struct image_taker *taker, struct image_taker_counts *counts)
{
	pthread_mutex_lock(&taker->lock);
	*counts = taker->counts;
	pthread_mutex_unlock(&taker->lock);
}

void image_taker_close(struct image_taker *taker)
{
	if (!taker)
		return;
	(void)image_file_close(&taker->file);
	copies_free(taker->free);
	pthread_cond_destroy(&taker->changed);
	pthread_mutex_destroy(&taker->lock);
	free(taker);
}
