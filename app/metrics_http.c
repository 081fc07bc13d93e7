/* SPDX-License-Identifier: BSD-3-Clause */
/* GET /metrics, by libmicrohttpd. */
#include "metrics_http.h"

#ifdef GDRCAP_WITH_HTTP
#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "signals.h"

/* Prometheus has one connection or two. More wait in the kernel, and what is silent for so long is closed, as is what has
 * not brought a whole request, or taken its answer, for longer: a byte now and then is no silence. */
#define CONNECTIONS 32
#define SILENT_SECONDS 5
#define REQUEST_NS UINT64_C(10000000000)
#define CONNECTION_BYTES 16384

struct connection {
	int used;	   /* 1: there is one */
	int fd;		   /* -1: it has been shut down */
	uint64_t since_ns; /* it came, or brought its last request; of the monotonic clock */
};

struct metrics_http {
	struct MHD_Daemon *daemon;
	pthread_mutex_t lock; /* of all below */
	/* Writers: the daemon's thread, before a descriptor is closed; metrics_http_set(). */
	struct connection connections[CONNECTIONS];
	char *text; /* Writer: metrics_http_set(). Reader: the daemon's thread. */
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

/* On the daemon's thread, as connections come and before they are closed. */
static void notify(void *context, struct MHD_Connection *connection, void **place,
		   enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct metrics_http *http = context;
	struct connection *own = *place;

	pthread_mutex_lock(&http->lock);
	if (code == MHD_CONNECTION_NOTIFY_CLOSED && own)
		own->used = 0;
	for (int i = 0; code == MHD_CONNECTION_NOTIFY_STARTED && info && !*place && i < CONNECTIONS;
	     i++)
		if (!http->connections[i].used) {
			http->connections[i] = (struct connection){ .fd = info->connect_fd,
								    .used = 1,
								    .since_ns = clock_ns() };
			*place = &http->connections[i];
		}
	pthread_mutex_unlock(&http->lock);
}

/* A whole request came. */
static void note_request(struct metrics_http *http, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *own = info ? info->socket_context : NULL;

	if (!own)
		return;
	pthread_mutex_lock(&http->lock);
	own->since_ns = clock_ns();
	pthread_mutex_unlock(&http->lock);
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_bytes, void **request)
{
	struct metrics_http *http = context;
	struct MHD_Response *response;

	note_request(http, connection);
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
	sigset_t before;

	if (!http)
		return NULL;
	pthread_mutex_init(&http->lock, NULL);
	signals_hold(&before);
	http->daemon =
		MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO | MHD_USE_ITC, 0,
				 NULL, NULL, answer, http, MHD_OPTION_LISTEN_SOCKET, fd,
				 MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTIONS,
				 MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)SILENT_SECONDS,
				 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
				 MHD_OPTION_NOTIFY_CONNECTION, notify, http, MHD_OPTION_END);
	signals_release(&before);
	if (http->daemon)
		return http;
	pthread_mutex_destroy(&http->lock);
	free(http);
	return NULL;
}

/* The daemon sees their end then, and closes them. */
static void end_slow(struct metrics_http *http, uint64_t now_ns)
{
	for (int i = 0; i < CONNECTIONS; i++) {
		struct connection *each = &http->connections[i];

		if (each->used && each->fd >= 0 && now_ns > each->since_ns + REQUEST_NS) {
			shutdown(each->fd, SHUT_RDWR);
			each->fd = -1;
		}
	}
}

void metrics_http_set(struct metrics_http *http, char *text, size_t bytes, uint64_t now_ns)
{
	char *before;

	pthread_mutex_lock(&http->lock);
	end_slow(http, now_ns);
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

void metrics_http_set(struct metrics_http *http, char *text, size_t bytes, uint64_t now_ns)
{
}

void metrics_http_stop(struct metrics_http *http)
{
}
#endif
