/* SPDX-License-Identifier: BSD-3-Clause */
/* GET /metrics, by libmicrohttpd. */
#include "metrics_http.h"

#ifdef GDRCAP_WITH_HTTP
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Prometheus has one connection or two. More wait in the kernel, and what is silent for so long is closed. */
#define CONNECTIONS 32
#define SILENT_SECONDS 5
#define CONNECTION_BYTES 16384

struct metrics_http {
	struct MHD_Daemon *daemon;
	pthread_mutex_t lock; /* of the text */
	char *text;	      /* Writer: metrics_http_set(). Reader: the daemon's thread. */
	size_t bytes;
};

int metrics_http_possible(void)
{
	return 1;
}

static enum MHD_Result answer_with(struct MHD_Connection *connection, unsigned int status,
				   struct MHD_Response *response, const char *type)
{
	enum MHD_Result rc;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	rc = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return rc;
}

static enum MHD_Result say(struct MHD_Connection *connection, unsigned int status, const char *text)
{
	return answer_with(connection, status,
			   MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
							   MHD_RESPMEM_PERSISTENT),
			   "text/plain; charset=utf-8");
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_bytes, void **request)
{
	struct metrics_http *http = context;
	struct MHD_Response *response;

	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET or HEAD only\n");
	if (strcmp(url, "/metrics") != 0)
		return say(connection, MHD_HTTP_NOT_FOUND, "The metrics are at /metrics.\n");
	/* A copy: who reads slowly reads that. */
	pthread_mutex_lock(&http->lock);
	response = http->text ? MHD_create_response_from_buffer(http->bytes, http->text,
								MHD_RESPMEM_MUST_COPY)
			      : NULL;
	pthread_mutex_unlock(&http->lock);
	return answer_with(connection, MHD_HTTP_OK, response,
			   "text/plain; version=0.0.4; charset=utf-8");
}

struct metrics_http *metrics_http_start(int fd)
{
	struct metrics_http *http = calloc(1, sizeof(*http));
	sigset_t all, before;

	if (!http)
		return NULL;
	pthread_mutex_init(&http->lock, NULL);
	/* Signals are the other threads'. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	http->daemon = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO | MHD_USE_ITC, 0, NULL, NULL, answer,
		http, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned int)SILENT_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CONNECTION_BYTES, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (http->daemon)
		return http;
	pthread_mutex_destroy(&http->lock);
	free(http);
	return NULL;
}

void metrics_http_set(struct metrics_http *http, char *text, size_t bytes)
{
	char *before;

	pthread_mutex_lock(&http->lock);
	before = http->text;
	http->text = text;
	http->bytes = bytes;
	pthread_mutex_unlock(&http->lock);
	free(before);
}

void metrics_http_stop(struct metrics_http *http)
{
	if (!http)
		return;
	MHD_stop_daemon(http->daemon);
	pthread_mutex_destroy(&http->lock);
	free(http->text);
	free(http);
}
#else
int metrics_http_possible(void)
{
	return 0;
}

struct metrics_http *metrics_http_start(int fd)
{
	return NULL;
}

void metrics_http_set(struct metrics_http *http, char *text, size_t bytes)
{
}

void metrics_http_stop(struct metrics_http *http)
{
}
#endif
