/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving ports that are files: their sources, and the end of a run that receives from nothing else. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <rte_kvargs.h>

#include "base/log.h"
#include "port/devargs.h"
#include "session/plan_internal.h"
#include "session/session.h"

#define CLOCK_STEP_LEAST_US ((uint64_t)100)

/* What is said of how they are read. */
struct file_port {
	uint32_t files;
	bool loops;
};

static int arguments_read(const char *name, struct file_port *port, struct gdrcap_error *error)
{
	struct rte_kvargs *args = rte_kvargs_parse(devargs_of(name), NULL);
	int ret = 0;

	*port = (struct file_port){ 0 };
	if (!args)
		return error_set(error, -EINVAL,
				 "port %s: its arguments cannot be read; give rx_pcap=FILE", name);
	for (unsigned int i = 0; ret == 0 && i < args->count; i++) {
		const char *key = args->pairs[i].key, *value = args->pairs[i].value;

		if (strcmp(key, "rx_pcap") == 0)
			port->files++;
		else if (strcmp(key, "infinite_rx") == 0)
			port->loops = !value || strcmp(value, "0") != 0;
		else
			ret = error_set(
				error, -EINVAL,
				"port %s: a port that reads files has no argument %s; give it "
				"rx_pcap=FILE, for each queue, and infinite_rx=1",
				name, key);
	}
	rte_kvargs_free(args);
	return ret;
}

/* A pipe that were opened for this would lose its writer. */
static int file_check(const char *path, bool loops, struct gdrcap_error *error)
{
	struct pcap_file *file;
	struct stat status;
	int ret;

	if (stat(path, &status) == 0 && S_ISFIFO(status.st_mode)) {
		ret = loops ? error_set(
				      error, -EINVAL,
				      "%s: infinite_rx: a pipe cannot be read again; save it as a "
				      "file first",
				      path)
			    : 0;
		return error_of_config(error, ret);
	}
	ret = pcap_file_open_port(&file, path, error);
	if (ret == 0)
		pcap_file_close(file);
	return ret;
}

int session_file_ports_check(const struct settings *settings, struct gdrcap_error *error)
{
	char path[SETTINGS_NAME_BYTES];
	struct file_port port;
	int ret = 0;

	for (uint32_t p = 0; ret == 0 && p < settings->rx.count; p++) {
		const char *name = settings->rx.port[p].name, *args = devargs_of(name);

		if (!port_name_has_files(name))
			continue;
		ret = arguments_read(name, &port, error);
		if (ret == 0 && port.files != settings->queues)
			ret = error_set(
				error, -EINVAL,
				"port %s has %u files and %u queues; a queue reads one file: "
				"--queues %u",
				name, port.files, settings->queues, port.files);
		error_of_config(error, ret);
		for (uint32_t n = 0; ret == 0 && n < port.files; n++) {
			devargs_value(args, "rx_pcap", n, path, sizeof(path));
			ret = file_check(path, port.loops, error);
		}
	}
	return ret;
}

int session_sources_open(struct gdrcap_session *session, struct session_pair *pair,
			 struct gdrcap_error *error)
{
	const char *args = devargs_of(pair->rx.name);
	char path[SETTINGS_NAME_BYTES];
	struct file_port port;
	int ret = 0;

	if (!port_name_is_file(pair->rx.name))
		return 0;
	ret = arguments_read(pair->rx.name, &port, error);
	for (uint32_t q = 0; ret == 0 && q < session->settings.queues; q++) {
		const struct file_source_config config = {
			.path = path,
			.loops = port.loops,
			.pool = pair->rx_pool[q],
			.time_offset = pair->rx_clock.offset,
			.time_flag = pair->rx_clock.port == RX_CLOCK_FILE ? pair->rx_clock.flag : 0,
		};

		devargs_value(args, "rx_pcap", q, path, sizeof(path));
		ret = file_source_open(&pair->source[q], &config, error);
	}
	return ret;
}

void session_sources_close(struct session_pair *pair)
{
	for (uint32_t q = 0; q < GDRCAP_QUEUES_MAX; q++)
		file_source_close(pair->source[q]);
}

/* An image that a frame begins is over so long after that at the soonest. A source knows which of its own frames end
 * one, and not which of others' do. */
static uint64_t clock_step_us(const struct settings *settings)
{
	const bool alone = settings->ports * settings->queues == 1;
	uint64_t us = UINT64_MAX;

	for (uint32_t i = 0; i < settings->images; i++) {
		us = RTE_MIN(us, settings->image[i].timeout_us);
		if (!alone)
			us = RTE_MIN(us, settings->image[i].linger_us);
	}
	return RTE_MAX(us, CLOCK_STEP_LEAST_US);
}

int session_clock_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	struct source_clock *clock;

	if (!session->images.count || !session_reads_files_only(session))
		return 0;
	clock = aligned_alloc(SOURCE_CLOCK_LINE, sizeof(*clock));
	if (!clock)
		return error_set(error, -ENOMEM, "no memory for the files' clock");
	memset(clock, 0, sizeof(*clock));
	clock->step_ns = 1000 * clock_step_us(&session->settings);
	clock->count = session->settings.ports * session->settings.queues;
	clock->rings = session->workers.rx_rings;
	clock->wake = &session->workers.accountant.wake;
	session->ports.clock = clock;
	return 0;
}

/* In it an image that is open is closed, and then its stream is forgotten. */
static uint64_t silence_ns(const struct settings *settings)
{
	uint64_t us = 0;

	for (uint32_t i = 0; i < settings->images; i++)
		us = RTE_MAX(us, settings->image[i].timeout_us);
	return 3000 * us;
}

void session_source_attach(struct gdrcap_session *session, struct file_source *source,
			   uint32_t index)
{
	struct file_room *room = &session->ports.file_room;

	room->count = session->images.count;
	for (uint32_t i = 0; i < room->count; i++) {
		room->image[i].layout = &session->images.view[i].layout;
		room->image[i].linger_ns = 1000 * session->settings.image[i].linger_us;
		room->image[i].free = &session->images.handed[i].assembler.credits;
	}
	if (session->ports.clock) {
		source->config.clock = session->ports.clock;
		source->config.silence_ns = silence_ns(&session->settings);
	}
	file_source_attach(source, room, &session->workers.rx[index].ring, index);
}

bool session_reads_files_only(const struct gdrcap_session *session)
{
	const struct settings *settings = &session->settings;

	for (uint32_t p = 0; p < settings->rx.count; p++)
		if (!port_name_is_file(settings->rx.port[p].name))
			return false;
	return settings->rx.count && !settings->tx.count;
}

bool session_sources_are_over(const struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->workers.rx_count; i++)
		if (!atomic_load_explicit(&session->workers.rx[i].source_over,
					  memory_order_acquire))
			return false;
	return !settings_collects(&session->settings) || session->watch.stuck ||
	       session_bursts_collected(session) == session_bursts_published(session);
}

void session_watch_sources(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->workers.rx_count; i++) {
		const struct file_source *source =
			session->ports.pairs[i / session->settings.queues]
				.source[i % session->settings.queues];

		if (source && atomic_load_explicit(&source->failed, memory_order_acquire))
			session_fail(session, source->failed, source->error.text);
	}
}
