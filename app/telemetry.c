/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers clients of DPDK's telemetry, protocol v2: a request and an answer are a message each. */
#include "telemetry.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json_line.h"
#include "signals.h"
#include "telemetry_socket.h"

/* One more, and who has been silent for longest has to go: a client that does nothing shuts nobody out. */
#define CLIENTS 16
#define COMMAND_BYTES 56 /* DPDK's, as are the 1023 bytes of a request */
#define REQUEST_BYTES 1024
#define ANSWER_BYTES 65536 /* which clients are told */
/* After each round, of one request a client: so they cost a core a few percent at most, however many they send. */
#define PAUSE_MS 10

struct client {
	int fd;		/* -1: none */
	uint64_t heard; /* the round that it came in, or last asked in */
};

struct telemetry {
	struct unix_path place;
	int listener, stop; /* `stop`: an event descriptor, readable when the thread is to end */
	int started;	    /* 1: there is a thread */
	pthread_t thread;
	/* The thread's alone. */
	struct client clients[CLIENTS];
	uint64_t round;
	char answer[ANSWER_BYTES];

	pthread_mutex_t lock; /* of all below */
	json_t *counts;	      /* command -> value; NULL: none yet. Writer: telemetry_set() */
	const char *version;
};

/* `parameters`: what follows the comma; NULL: none. All hold the lock. */
typedef json_t *(*answer_fn)(struct telemetry *telemetry, const char *command,
			     const char *parameters);

static json_t *answer_list(struct telemetry *telemetry, const char *command,
			   const char *parameters);
static json_t *answer_help(struct telemetry *telemetry, const char *command,
			   const char *parameters);

static json_t *answer_info(struct telemetry *telemetry, const char *command, const char *parameters)
{
	return json_pack("{s:s, s:i, s:i}", "version", telemetry->version, "pid", (int)getpid(),
			 "max_output_len", ANSWER_BYTES);
}

static json_t *answer_counts(struct telemetry *telemetry, const char *command,
			     const char *parameters)
{
	json_t *value = json_object_get(telemetry->counts, command);

	return value ? json_incref(value) : json_null();
}

/* The ids of all, or one. */
static json_t *answer_streams(struct telemetry *telemetry, const char *command,
			      const char *parameters)
{
	const json_t *streams = json_object_get(telemetry->counts, command);
	json_t *ids = parameters ? NULL : json_array();
	json_t *stream;
	size_t n;

	if (!streams) {
		json_decref(ids);
		return json_null();
	}
	json_array_foreach (streams, n, stream) {
		json_t *id = json_object_get(stream, "stream");
		char digits[32];

		if (!parameters) {
			json_add(&ids, json_incref(id));
			continue;
		}
		snprintf(digits, sizeof(digits), "%" JSON_INTEGER_FORMAT, json_integer_value(id));
		if (!strcmp(digits, parameters))
			return json_incref(stream);
	}
	return parameters ? json_null() : ids;
}

static const struct command {
	const char *name;
	answer_fn answer;
	const char *help;
} commands[] = {
	{ "/", answer_list, "The commands. No parameters." },
	{ "/gdrcap/metrics", answer_counts,
	  "The metrics of docs/metrics.md, of the last second. No parameters." },
	{ "/gdrcap/streams", answer_streams,
	  "The streams' ids; with an id as parameter that stream's counts, as in the JSON summary." },
	{ "/gdrcap/summary", answer_counts,
	  "The JSON summary of the last second, without parts and messages (docs/json.md). No "
	  "parameters." },
	{ "/help", answer_help, "What a command answers. Parameter: the command." },
	{ "/info", answer_info, "Version, process id, the longest answer. No parameters." },
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static json_t *answer_list(struct telemetry *telemetry, const char *command, const char *parameters)
{
	json_t *names = json_array();

	for (size_t i = 0; i < COMMANDS; i++)
		json_add(&names, json_string(commands[i].name));
	return names;
}

static json_t *answer_help(struct telemetry *telemetry, const char *command, const char *parameters)
{
	const struct command *found = command_find(parameters ? parameters : command);

	if (!found)
		return json_null();
	return parameters ? json_pack("{s:s}", found->name, found->help) : json_string(found->help);
}

/* A name is part of the answer: what is no printable ASCII is '?' there, as nothing of ours has it. */
static void cut_name(char *to, size_t bytes, const char *request)
{
	size_t n = strcspn(request, ",");

	n = n < bytes ? n : bytes - 1;
	for (size_t i = 0; i < n; i++)
		to[i] = request[i] >= ' ' && request[i] <= '~' ? request[i] : '?';
	to[n] = '\0';
}

/* Writes the answer to a request, and returns its length; 0: no memory. */
static size_t answer(struct telemetry *telemetry, const char *request)
{
	const size_t flags = JSON_COMPACT | JSON_ENSURE_ASCII | RESULTS_JSON_FLAGS;
	const char *comma = strchr(request, ',');
	const struct command *command;
	char name[COMMAND_BYTES];
	json_t *object;
	size_t bytes;

	cut_name(name, sizeof(name), request);
	/* A longer name than is kept is none of ours. */
	command = strcspn(request, ",") < sizeof(name) ? command_find(name) : NULL;
	pthread_mutex_lock(&telemetry->lock);
	object = json_pack(
		"{s:o}", name,
		command ? command->answer(telemetry, name, comma && comma[1] ? comma + 1 : NULL)
			: json_null());
	bytes = object ? json_dumpb(object, telemetry->answer, ANSWER_BYTES, flags) : 0;
	json_decref(object);
	pthread_mutex_unlock(&telemetry->lock);
	if (bytes <= ANSWER_BYTES)
		return bytes;
	return (size_t)snprintf(telemetry->answer, ANSWER_BYTES, "{\"%s\":null}", command->name);
}

static void client_close(struct client *client)
{
	close(client->fd);
	client->fd = -1;
}

/* Who does not take what it asked for is let go. */
static void client_send(struct client *client, const char *text, size_t bytes)
{
	if (!bytes || send(client->fd, text, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)bytes)
		client_close(client);
}

static void client_serve(struct telemetry *telemetry, struct client *client)
{
	char request[REQUEST_BYTES];
	const ssize_t bytes = recv(client->fd, request, sizeof(request) - 1, MSG_DONTWAIT);

	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (bytes <= 0) {
		client_close(client);
		return;
	}
	request[bytes] = '\0';
	client->heard = telemetry->round;
	client_send(client, telemetry->answer, answer(telemetry, request));
}

static void client_accept(struct telemetry *telemetry)
{
	const int fd = accept4(telemetry->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct client *place = &telemetry->clients[0];
	const int room = 2 * ANSWER_BYTES;
	json_t *info;
	size_t bytes;

	if (fd < 0)
		return;
	for (struct client *each = place; each < telemetry->clients + CLIENTS; each++)
		if (place->fd >= 0 && (each->fd < 0 || each->heard < place->heard))
			place = each;
	if (place->fd >= 0)
		client_close(place);
	*place = (struct client){ .fd = fd, .heard = telemetry->round };
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	/* The first message is nobody's answer. */
	info = answer_info(telemetry, NULL, NULL);
	bytes = info ? json_dumpb(info, telemetry->answer, ANSWER_BYTES, JSON_COMPACT) : 0;
	json_decref(info);
	client_send(place, telemetry->answer, bytes);
}

static void *serve(void *context)
{
	struct telemetry *telemetry = context;
	struct pollfd fds[2 + CLIENTS];

	for (;;) {
		fds[0] = (struct pollfd){ .fd = telemetry->stop, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = telemetry->listener, .events = POLLIN };
		for (int i = 0; i < CLIENTS; i++)
			fds[2 + i] =
				(struct pollfd){ .fd = telemetry->clients[i].fd, .events = POLLIN };
		(void)poll(fds, 2 + CLIENTS, -1);
		if (fds[0].revents)
			return NULL;
		telemetry->round++;
		for (int i = 0; i < CLIENTS; i++)
			if (telemetry->clients[i].fd >= 0 && fds[2 + i].revents)
				client_serve(telemetry, &telemetry->clients[i]);
		if (fds[1].revents)
			client_accept(telemetry);
		(void)poll(fds, 1, PAUSE_MS);
	}
}

struct telemetry *telemetry_open(char *why, size_t bytes)
{
	struct telemetry *telemetry = calloc(1, sizeof(*telemetry));

	if (!telemetry) {
		snprintf(why, bytes, "out of memory");
		return NULL;
	}
	for (int i = 0; i < CLIENTS; i++)
		telemetry->clients[i].fd = -1;
	pthread_mutex_init(&telemetry->lock, NULL);
	telemetry->version = gdrcap_version();
	telemetry->listener = -1;
	telemetry->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (telemetry->stop < 0)
		snprintf(why, bytes, "no descriptor: %s; see ulimit -n", strerror(errno));
	else
		telemetry->listener = telemetry_socket_open(&telemetry->place, why, bytes);
	if (telemetry->listener >= 0)
		return telemetry;
	telemetry_close(telemetry);
	return NULL;
}

const char *telemetry_path(const struct telemetry *telemetry)
{
	return telemetry->place.path;
}

int telemetry_start(struct telemetry *telemetry)
{
	sigset_t before;
	int rc;

	signals_hold(&before);
	rc = pthread_create(&telemetry->thread, NULL, serve, telemetry);
	signals_release(&before);
	telemetry->started = rc == 0;
	return -rc;
}

/* "NAME{LABELS} VALUE" of each line that is no comment. */
static json_t *metrics_to_json(const char *text)
{
	json_t *object = json_object();

	while (object && *text) {
		const size_t length = strcspn(text, "\n");
		char line[1024], *space;

		snprintf(line, sizeof(line), "%.*s", (int)length, text);
		text += length + (text[length] == '\n');
		space = line[0] == '#' || length >= sizeof(line) ? NULL : strrchr(line, ' ');
		if (!space)
			continue;
		*space++ = '\0';
		(void)json_object_set_new(object, line,
					  strchr(space, '.')
						  ? json_number(strtod(space, NULL))
						  : json_count(strtoull(space, NULL, 10)));
	}
	return object;
}

void telemetry_set(struct telemetry *telemetry, const struct report *report, const json_t *streams,
		   const char *metrics)
{
	json_t *summary = report_to_json(report, true);
	json_t *counts, *before;

	/* They may be longer than an answer, and are on standard error. */
	json_object_del(summary, "messages");
	counts = json_pack("{s:o, s:o, s:O}", "/gdrcap/metrics", metrics_to_json(metrics),
			   "/gdrcap/summary", summary, "/gdrcap/streams", streams);
	if (!counts)
		return;
	pthread_mutex_lock(&telemetry->lock);
	before = telemetry->counts;
	telemetry->counts = counts;
	pthread_mutex_unlock(&telemetry->lock);
	json_decref(before);
}

void telemetry_close(struct telemetry *telemetry)
{
	const uint64_t one = 1;

	if (!telemetry)
		return;
	if (telemetry->started && write(telemetry->stop, &one, sizeof(one)) == sizeof(one))
		pthread_join(telemetry->thread, NULL);
	for (int i = 0; i < CLIENTS; i++)
		if (telemetry->clients[i].fd >= 0)
			client_close(&telemetry->clients[i]);
	unix_path_remove(&telemetry->place);
	if (telemetry->listener >= 0)
		close(telemetry->listener);
	if (telemetry->stop >= 0)
		close(telemetry->stop);
	pthread_mutex_destroy(&telemetry->lock);
	json_decref(telemetry->counts);
	free(telemetry);
}
