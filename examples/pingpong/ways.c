/* SPDX-License-Identifier: BSD-3-Clause */
/* A session a way: its configuration, the start of all ranks, the play, and the end. */
#include "ways.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HELLO_MS 20u
#define AHEAD 128u /* batches that are put into the stream before they come */
#define TRIES_MS 200u
/* More time than this between two looks of the watch says that it had no core, or that the machine stood still. */
#define LOOK_MOST_S 0.1

const char *const way_names[WAYS] = { "cpu", "stream", "kernel" };
const char *const way_titles[WAYS] = { "CPU-driven", "stream-ordered", "kernel-driven" };

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void sleep_us(long us)
{
	const struct timespec pause = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&pause, NULL);
}

static int say(const struct wanted *wanted, enum way way, int ret, const char *text)
{
	fprintf(stderr, "pingpong, rank %" PRIu32 ", %s: %s\n", wanted->rank, way_titles[way],
		text);
	return ret;
}

/* ---- the session ---- */

/* {rank}, {next}, {previous}, {dir} and {way} in a value. False: it is too long. */
static bool expand(const struct wanted *wanted, enum way way, const char *value, char *to,
		   size_t bytes)
{
	char number[3][16];
	const struct {
		const char *name, *is;
	} words[] = { { "{rank}", number[0] },
		      { "{next}", number[1] },
		      { "{previous}", number[2] },
		      { "{dir}", wanted->dir },
		      { "{way}", way_names[way] } };
	size_t used = 0;

	snprintf(number[0], sizeof(number[0]), "%" PRIu32, wanted->rank);
	snprintf(number[1], sizeof(number[1]), "%" PRIu32, (wanted->rank + 1) % wanted->ranks);
	snprintf(number[2], sizeof(number[2]), "%" PRIu32,
		 (wanted->rank + wanted->ranks - 1) % wanted->ranks);
	while (*value && used + 1 < bytes) {
		size_t w = 0;

		while (w < 5 && strncmp(value, words[w].name, strlen(words[w].name)) != 0)
			w++;
		if (w == 5) {
			to[used++] = *value++;
			continue;
		}
		value += strlen(words[w].name);
		used += (size_t)snprintf(to + used, bytes - used, "%s", words[w].is);
	}
	if (*value || used >= bytes)
		return false;
	to[used] = '\0';
	return true;
}

static int option_set(struct gdrcap_config *config, const struct wanted *wanted, enum way way,
		      const char *key, const char *value, struct gdrcap_error *error)
{
	char text[512];

	if (!expand(wanted, way, value, text, sizeof(text))) {
		snprintf(error->text, sizeof(error->text), "%s: the value is too long", key);
		return -EINVAL;
	}
	return gdrcap_config_set(config, key, text, error);
}

static int config_make(struct gdrcap_config *config, const struct wanted *wanted, enum way way,
		       struct gdrcap_error *error)
{
	char cores[32], port[128], tx_port[128];
	const char *const defaults[][2] = {
		{ "port", port },
		{ "tx_port", tx_port },
		{ "frame.size", "68" },
		{ "consumer", way == WAY_CPU ? "host" : "gpu" },
		{ "sender", way == WAY_CPU ? "host" : "gpu" },
		{ "cores", cores },
	};
	int ret = 0;

	/* A link is named by the rank that sends. Each rank listens for the next one, and rank 0 for the last: so those
	 * that call find who listens, in whatever order they begin. */
	snprintf(port, sizeof(port),
		 "net_memif{rank}0,role=%s,id=0,socket-abstract=no,socket={dir}/{way}-{previous}",
		 wanted->rank ? "client" : "server");
	snprintf(tx_port, sizeof(tx_port),
		 "net_memif{rank}1,role=%s,id=0,socket-abstract=no,socket={dir}/{way}-{rank}",
		 wanted->rank + 1 < wanted->ranks ? "server" : "client");
	snprintf(cores, sizeof(cores), "%" PRIu32 "-%" PRIu32, wanted->local_rank * wanted->cores,
		 (wanted->local_rank + 1) * wanted->cores - 1);
	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]) - !wanted->cores && !ret; i++)
		ret = option_set(config, wanted, way, defaults[i][0], defaults[i][1], error);
	for (uint32_t i = 0; i < wanted->option_count && !ret; i++) {
		const char *option = wanted->options[i], *value = strchr(option, '=');
		char key[64];

		snprintf(key, sizeof(key), "%.*s", (int)(value - option), option);
		ret = option_set(config, wanted, way, key, value + 1, error);
	}
	return ret;
}

/* What a rank says while it waits for the next one to listen is not worth a line. */
static void log_errors(void *context, enum gdrcap_log_level level, const char *line)
{
	if (level == GDRCAP_LOG_ERROR)
		fprintf(stderr, "pingpong, rank %" PRIu32 ": %s\n",
			((const struct wanted *)context)->rank, line);
}

/* The next rank may not listen yet. */
static int session_make(struct player *player, const struct wanted *wanted, enum way way,
			struct gdrcap_error *error)
{
	struct gdrcap_config *config = gdrcap_config_new();
	const double until = now_s() + wanted->timeout_s;
	const char *gpu;
	int ret;

	if (!config)
		return -ENOMEM;
	gdrcap_config_set_log(config, log_errors, (void *)(uintptr_t)wanted);
	ret = config_make(config, wanted, way, error);
	if (ret == 0)
		do
			ret = gdrcap_create(config, &player->session, error);
		while (ret < 0 && error->kind != GDRCAP_ERROR_CONFIG && now_s() < until &&
		       (sleep_us(TRIES_MS * 1000), true));
	gpu = gdrcap_config_get(config, "gpu", 0);
	player->gpu = gpu ? atoi(gpu) : 0;
	gdrcap_config_free(config);
	return ret;
}

/* Who plays, by what the session has. */
static int player_make(struct player *player, const struct wanted *wanted, enum way way,
		       struct seat *seat, struct gdrcap_error *error)
{
	struct gdrcap_summary summary;
	int ret = session_make(player, wanted, way, error);

	if (ret < 0)
		return ret;
	gdrcap_get_summary(player->session, &summary, sizeof(summary));
	snprintf(seat->who, sizeof(seat->who), "%s", summary.gpu);
	player->ops = &player_cpu;
	if (strcmp(summary.driver, "gpu_host") != 0) {
#ifdef PINGPONG_GPU
		player->ops = &player_gpu;
#else
		snprintf(error->text, sizeof(error->text),
			 "this program was built without CUDA: give gpu=host");
		return -ENOTSUP;
#endif
	}
	player->queue = gdrcap_get_queue(player->session, 0);
	player->tx = gdrcap_get_tx(player->session, 0);
	if (way != WAY_CPU &&
	    (gdrcap_get_gpu_queue(player->queue, &player->gpu_queue, sizeof(player->gpu_queue)) ||
	     gdrcap_get_gpu_tx(player->tx, &player->gpu_tx, sizeof(player->gpu_tx)))) {
		snprintf(error->text, sizeof(error->text),
			 "this way needs consumer=gpu, sender=gpu");
		return -EINVAL;
	}
	snprintf(error->text, sizeof(error->text), "the player has no memory");
	ret = player->ops->open(player);
	return ret;
}

/* ---- the watch: a rank to which nothing comes any more ends ---- */

struct watch {
	struct player *player;
	double timeout_s;
	_Atomic bool over;
	bool fired;
	pthread_t thread;
};

static uint64_t steps_of(const struct player *player)
{
	return __atomic_load_n(&player->progress->steps, __ATOMIC_ACQUIRE);
}

static bool is_over(const struct player *player)
{
	return __atomic_load_n(&player->progress->over, __ATOMIC_ACQUIRE) != 0;
}

static void *watch_run(void *arg)
{
	struct watch *watch = arg;
	uint64_t seen = steps_of(watch->player);
	double looked_s = now_s(), waited_s = 0;

	while (!atomic_load(&watch->over)) {
		const uint64_t steps = steps_of(watch->player);
		const double gone_s = now_s() - looked_s;

		looked_s += gone_s;
		waited_s += gone_s < LOOK_MOST_S ? gone_s : LOOK_MOST_S;
		if (steps != seen)
			waited_s = 0;
		seen = steps;
		if (waited_s > watch->timeout_s) {
			watch->fired = true;
			/* It lets go whatever waits. */
			gdrcap_stop(watch->player->session, NULL);
			return NULL;
		}
		sleep_us(2000);
	}
	return NULL;
}

/* ---- hellos ---- */

static bool has_come(const struct player *player)
{
	struct gdrcap_summary summary;

	gdrcap_get_summary(player->session, &summary, sizeof(summary));
	return summary.total.received != 0;
}

static int hello_send(struct player *player, enum way way, uint64_t seq, struct gdrcap_error *error)
{
	struct CUstream_st *stream = player->stream;
	struct gdrcap_tx_frame frame;
	int ret;

	switch (way) {
	case WAY_CPU:
		ret = gdrcap_tx_reserve(player->tx, &frame, 1);
		if (ret <= 0)
			return ret;
		ret = player->ops->hello(player, frame.data);
		frame.bytes = (uint32_t)ret;
		return ret < 0 ? ret : gdrcap_tx_submit(player->tx, &frame, 1, error);
	case WAY_STREAM:
		ret = gdrcap_room_on_stream(player->tx, seq, 1, stream, error);
		if (ret == 0)
			ret = player->ops->hello_queue(player, seq, false);
		return ret ? ret : gdrcap_send_on_stream(player->tx, seq, 1, stream, error);
	default:
		return player->ops->hello_queue(player, seq, true);
	}
}

/* Rank 0, until one has gone round: how many it sent, or a negative errno. */
static int64_t hellos(struct player *player, enum way way, struct gdrcap_error *error)
{
	int64_t sent = 0;

	for (uint32_t ms = 0; !has_come(player); ms++, sleep_us(1000)) {
		int ret;

		if (ms % HELLO_MS)
			continue;
		ret = hello_send(player, way, (uint64_t)sent, error);
		if (ret < 0)
			return ret;
		sent++;
	}
	return sent;
}

/* ---- the ways ---- */

/* The CPU takes a batch, launches a kernel for each message, waits for it and submits. */
static int play_by_cpu(struct player *player, struct gdrcap_error *error)
{
	const struct gdrcap_batch *batch;
	struct gdrcap_tx_frame frame;
	bool reserved = false;
	int ret = 0;

	while (!is_over(player) && ret >= 0) {
		ret = gdrcap_wait(player->queue, &batch, 1, 1000);
		if (ret <= 0)
			continue;
		for (uint32_t i = 0; i < batch->count && ret >= 0; i++) {
			while (!reserved && (ret = gdrcap_tx_reserve(player->tx, &frame, 1)) == 0)
				;
			reserved |= ret > 0;
			if (!reserved)
				break;
			ret = player->ops->answer(player, gdrcap_frame(batch, i),
						  gdrcap_frame_bytes(batch, i), frame.data);
			if (ret <= 0)
				continue;
			frame.bytes = (uint32_t)ret;
			ret = gdrcap_tx_submit(player->tx, &frame, 1, error);
			reserved = false;
		}
		gdrcap_release(player->queue, &batch, 1);
	}
	if (reserved)
		gdrcap_tx_cancel(player->tx, &frame, 1);
	return ret < 0 ? ret : 0;
}

/* All that batch `seq` needs is in the stream before it comes. */
static int batch_queue(struct player *player, uint64_t seq, uint64_t tx_seq,
		       struct gdrcap_error *error)
{
	struct CUstream_st *stream = player->stream;
	int ret = gdrcap_wait_on_stream(player->queue, seq, stream, error);

	if (ret == 0)
		ret = gdrcap_room_on_stream(player->tx, tx_seq, ANSWERS_MAX, stream, error);
	if (ret == 0)
		ret = player->ops->batch(player, seq, tx_seq);
	if (ret == 0) /* those that the kernel did not fill are left out */
		ret = gdrcap_send_on_stream(player->tx, tx_seq, ANSWERS_MAX, stream, error);
	return ret ? ret : gdrcap_release_on_stream(player->queue, seq, stream, error);
}

/* The CPU keeps the stream filled, and takes no part in when things happen. */
static int play_by_stream(struct player *player, uint64_t tx_seq, struct gdrcap_error *error)
{
	uint64_t seq = 0;
	int ret = 0;

	while (!is_over(player) && ret == 0) {
		const uint64_t through =
			__atomic_load_n(&player->progress->batches, __ATOMIC_ACQUIRE);

		if (seq - through >= AHEAD) {
			sleep_us(20);
			continue;
		}
		ret = batch_queue(player, seq++, tx_seq, error);
		tx_seq += ANSWERS_MAX;
	}
	return ret;
}

/* One kernel plays; the CPU sleeps. */
static int play_by_kernel(struct player *player, const struct watch *watch)
{
	const int ret = player->ops->run(player);

	while (ret == 0 && !is_over(player) && !watch->fired)
		sleep_us(1000);
	return ret;
}

static int play(struct player *player, const struct wanted *wanted, enum way way,
		struct gdrcap_error *error)
{
	struct watch watch = { .player = player, .timeout_s = wanted->timeout_s };
	int64_t hello = 0;
	int ret;

	if (pthread_create(&watch.thread, NULL, watch_run, &watch))
		return -EAGAIN;
	if (wanted->rank == 0)
		hello = hellos(player, way, error);
	if (hello < 0)
		ret = (int)hello;
	else if (way == WAY_CPU)
		ret = play_by_cpu(player, error);
	else if (way == WAY_STREAM)
		ret = play_by_stream(player, (uint64_t)hello, error);
	else
		ret = play_by_kernel(player, &watch);
	atomic_store(&watch.over, true);
	pthread_join(watch.thread, NULL);
	/* The rank before leaves behind its last message, and if it is busy here, that may be lost. */
	if (wanted->rank == 0 && steps_of(player) > wanted->rounds)
		return 0;
	if (watch.fired) {
		snprintf(error->text, sizeof(error->text), "no message came for %.0f s",
			 wanted->timeout_s);
		return -ETIMEDOUT;
	}
	return is_over(player) ? 0 : ret ? ret : -EPROTO;
}

/* ---- a seat: a rank in this process ---- */

static uint32_t message_bytes(const struct wanted *wanted)
{
	uint32_t bytes = MESSAGE_MIN;

	for (uint32_t i = 0; i < wanted->option_count; i++) /* a message fills its frame */
		if (strncmp(wanted->options[i], "frame.size=", 11) == 0)
			bytes = (uint32_t)atoi(wanted->options[i] + 11) - 4;
	return bytes >= MESSAGE_MIN && bytes <= UINT16_MAX ? bytes : 0;
}

int seat_open(struct seat *seat, const struct wanted *wanted, enum way way)
{
	struct gdrcap_error error = { .text = "no memory" };
	int ret = 0;

	*seat = (struct seat){ .wanted = *wanted, .way = way };
	seat->player.first = (struct play){ .rank = wanted->rank,
					    .ranks = wanted->ranks,
					    .rounds = wanted->rounds,
					    .bytes = message_bytes(wanted) };
	seat->trip_ns = calloc(wanted->rounds, sizeof(*seat->trip_ns));
	seat->player.first.trip_ns = seat->trip_ns;
	if (!seat->trip_ns)
		ret = -ENOMEM;
	if (ret == 0 && !seat->player.first.bytes) {
		snprintf(error.text, sizeof(error.text), "frame.size: give one, 64 or more");
		ret = -EINVAL;
	}
	if (ret == 0)
		ret = player_make(&seat->player, &seat->wanted, way, seat, &error);
	if (ret == 0)
		ret = gdrcap_start(seat->player.session, &error);
	if (ret < 0)
		say(wanted, way, ret, error.text);
	seat->ret = ret;
	return ret;
}

void *seat_play(void *arg)
{
	struct seat *seat = arg;
	struct player *player = &seat->player;
	struct gdrcap_error error = { .text = "it could not be played" };
	struct gdrcap_summary summary;
	int stopped;

	seat->ret = play(player, &seat->wanted, seat->way, &error);
	if (seat->ret < 0)
		say(&seat->wanted, seat->way, seat->ret, error.text);
	/* The last message leaves, and whatever waits is let go, before the stream is waited for. */
	stopped = gdrcap_stop(player->session, &error);
	if (stopped && seat->ret == 0)
		seat->ret = say(&seat->wanted, seat->way, stopped, error.text);
	if (player->ops->end(player) < 0 && seat->ret == 0)
		seat->ret = -EIO;
	gdrcap_get_summary(player->session, &summary, sizeof(summary));
	if (seat->ret == 0 &&
	    (summary.sending_unsent || summary.sending_refused || summary.sending_failed))
		seat->ret = say(&seat->wanted, seat->way, -EIO, "some messages were not sent");
	return NULL;
}

void seat_close(struct seat *seat)
{
	struct player *player = &seat->player;

	gdrcap_destroy(player->session);
	if (player->own)
		player->ops->close(player);
	free(seat->trip_ns);
}
