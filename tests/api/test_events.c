/* SPDX-License-Identifier: BSD-3-Clause */
/* A run's events: what is told, when, and through which descriptor. What goes wrong is planted between
 * the library and DPDK, or is done to an interface of a network namespace of this process's own. */
#include "api_events.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "kernels/host/host_workers.h"
#include "save/save.h"
#include "session/session.h"

/* ---- what is planted ---- */

static _Atomic bool link_is_down, consumer_stands, saver_misses;
static _Atomic uint64_t port_misses;

int __real_rte_eth_link_get_nowait(uint16_t port, struct rte_eth_link *link);
int __wrap_rte_eth_link_get_nowait(uint16_t port, struct rte_eth_link *link);
int __wrap_rte_eth_link_get_nowait(uint16_t port, struct rte_eth_link *link)
{
	const int ret = __real_rte_eth_link_get_nowait(port, link);

	if (ret == 0 && link_is_down)
		link->link_status = RTE_ETH_LINK_DOWN;
	return ret;
}

void __real_save_counts(const struct save *save, struct save_counts *counts);
void __wrap_save_counts(const struct save *save, struct save_counts *counts);
void __wrap_save_counts(const struct save *save, struct save_counts *counts)
{
	static uint64_t missed;

	__real_save_counts(save, counts);
	missed += saver_misses;
	counts->missed += missed;
}

void __real_port_counters(const struct port *port, struct port_counters *counters);
void __wrap_port_counters(const struct port *port, struct port_counters *counters);
void __wrap_port_counters(const struct port *port, struct port_counters *counters)
{
	__real_port_counters(port, counters);
	counters->missed += port_misses;
}

uint32_t __real_host_burst_check(const struct burst_ring_view *ring, const struct host_work *work,
				 uint64_t burst, uint64_t ready);
uint32_t __wrap_host_burst_check(const struct burst_ring_view *ring, const struct host_work *work,
				 uint64_t burst, uint64_t ready);
uint32_t __wrap_host_burst_check(const struct burst_ring_view *ring, const struct host_work *work,
				 uint64_t burst, uint64_t ready)
{
	while (consumer_stands && !__atomic_load_n(ring->stop, __ATOMIC_RELAXED))
		sched_yield();
	return __real_host_burst_check(ring, work, burst, ready);
}

/* ---- a run's ---- */

static void a_run(void **state)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_event event;
	struct pollfd fd = { .events = POLLIN };
	unsigned int links = 0;

	api_config(&config, "validate", 1000);
	session = api_create(config);
	fd.fd = gdrcap_event_fd(session);
	assert_int_equal(gdrcap_event_fd(session), fd.fd);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(gdrcap_get_event(session, &event, sizeof(event)), 0);
	assert_int_equal(gdrcap_get_event(session, NULL, sizeof(event)), -EINVAL);
	assert_int_equal(gdrcap_get_event(NULL, &event, sizeof(event)), -EINVAL);
	assert_int_equal(gdrcap_event_fd(NULL), -EINVAL);
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	/* The order of these two is not fixed, that of all is: the end comes last. */
	for (api_event(session, &event); event.kind != GDRCAP_EVENT_END;
	     api_event(session, &event)) {
		if (event.kind == GDRCAP_EVENT_LINK_UP) {
			api_event_is_of(&event, 0, links == 1, -1);
			links++;
		} else {
			assert_int_equal(event.kind, GDRCAP_EVENT_FIRST_FRAME);
			api_event_is_of(&event, -1, 0, -1);
		}
	}
	assert_int_equal(links, 2);
	assert_int_equal(event.code, 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(gdrcap_get_event(session, &event, sizeof(event)), 0);
	gdrcap_destroy(session);
}

/* Nobody asks: the oldest stay, those in between are counted, and the end is there. */
static void nobody_asks(void **state)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_event event;
	uint64_t told = 0, more = 100;

	api_config(&config, "validate", 1);
	session = api_create(config);
	for (uint32_t i = 0; i < EVENTS_MAX - 1 + more; i++) {
		event = event_of(GDRCAP_EVENT_NO_SLOTS);
		event.count = i;
		session_event(session, event, "%u", i);
	}
	api_start(session);
	api_wait_end(session);
	for (api_event(session, &event); event.kind != GDRCAP_EVENT_END;
	     api_event(session, &event)) {
		assert_true(event.count == told++);
		assert_true(event.dropped == 0);
	}
	assert_true(told == EVENTS_MAX - 1);
	/* And the run's own. */
	assert_true(event.dropped >= more && event.dropped <= more + 3);
	api_stop(session);
	gdrcap_destroy(session);
}

/* ---- links ---- */

static void link_goes_down(void **state)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_event event;

	api_config(&config, "validate", 0);
	session = api_begin(config);
	api_wait_event(session, GDRCAP_EVENT_FIRST_FRAME);
	link_is_down = true;
	event = api_wait_event(session, GDRCAP_EVENT_LINK_DOWN);
	api_event_is_of(&event, 0, 0, -1);
	event = api_wait_event(session, GDRCAP_EVENT_LINK_DOWN);
	api_event_is_of(&event, 0, 1, -1);
	assert_int_equal(gdrcap_wait_end(session, 0), 0);
	link_is_down = false;
	event = api_wait_event(session, GDRCAP_EVENT_LINK_UP);
	api_event_is_of(&event, 0, 0, -1);
	api_wait_event(session, GDRCAP_EVENT_LINK_UP);
	assert_int_equal(gdrcap_stop(session, NULL), 0);
	event = api_wait_event(session, GDRCAP_EVENT_END);
	assert_int_equal(event.code, 0);
	gdrcap_destroy(session);
}

static void link_down_ends(void **state)
{
	struct gdrcap_error error = { 0 };
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_event event;

	api_config(&config, "validate", 0);
	api_set(config, "link_down", "end");
	session = api_begin(config);
	api_wait_event(session, GDRCAP_EVENT_FIRST_FRAME);
	link_is_down = true;
	api_wait_event(session, GDRCAP_EVENT_LINK_DOWN);
	event = api_wait_event(session, GDRCAP_EVENT_END);
	link_is_down = false;
	assert_int_equal(event.code, -ENETDOWN);
	assert_non_null(strstr(event.text, "its link is down"));
	api_failed(gdrcap_stop(session, &error), -ENETDOWN, &error, "its link is down");
	gdrcap_destroy(session);
}

/* ---- who is late ---- */

static void consumer_late(void **state)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_event event;

	api_config(&config, "validate", 0);
	api_set(config, "consumer.watchdog", "0.1");
	session = api_begin(config);
	api_wait_event(session, GDRCAP_EVENT_FIRST_FRAME);
	consumer_stands = true;
	event = api_wait_event(session, GDRCAP_EVENT_CONSUMER_LATE);
	assert_true(event.count > 0);
	consumer_stands = false;
	api_wait_event(session, GDRCAP_EVENT_CONSUMER_MOVES);
	gdrcap_stop(session, NULL);
	gdrcap_destroy(session);
}

/* Of frames that the caller takes nobody else says that some are missing. */
static void port_missed(void **state)
{
	const struct gdrcap_batch *batch[64];
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_event event = { 0 };
	struct gdrcap_queue *queue;
	uint64_t missed = 0;
	bool said = false;
	const char *text;

	(void)state;
	api_config(&config, "host", 0);
	session = api_begin(config);
	queue = gdrcap_get_queue(session, 0);
	port_misses = 5;
	while (event.kind != GDRCAP_EVENT_MISSED_OVER) {
		const int n = gdrcap_wait(queue, batch, 64, 1000);

		assert_true(n >= 0);
		gdrcap_release(queue, batch, (unsigned int)n);
		if (gdrcap_get_event(session, &event, sizeof(event)) != 1)
			continue;
		if (event.kind == GDRCAP_EVENT_MISSED) {
			assert_int_equal(event.port, 0);
			missed = event.count;
		}
	}
	assert_int_equal(missed, 5);
	assert_int_equal(event.count, 5);
	gdrcap_stop(session, NULL);
	for (uint32_t i = 0; (text = gdrcap_get_message(session, i)) != NULL; i++)
		said |= strstr(text, "were not received") != NULL;
	assert_true(said);
	gdrcap_destroy(session);
	port_misses = 0;
}

static void saver_behind(void **state)
{
	char path[] = "/tmp/gdrcap-events-XXXXXX";
	const int file = mkstemp(path);
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_event event;
	uint64_t missed;

	assert_true(file >= 0);
	close(file);
	api_config(&config, "validate", 0);
	api_set(config, "save", "%s", path);
	api_set(config, "save_every", "1000000");
	session = api_begin(config);
	api_wait_event(session, GDRCAP_EVENT_FIRST_FRAME);
	saver_misses = true;
	event = api_wait_event(session, GDRCAP_EVENT_SAVER_BEHIND);
	missed = event.count;
	assert_true(missed > 0);
	saver_misses = false;
	event = api_wait_event(session, GDRCAP_EVENT_SAVER_MOVES);
	assert_true(event.count >= missed);
	gdrcap_stop(session, NULL);
	gdrcap_destroy(session);
	unlink(path);
}

/* A pipe's frames, more than the pool has slots for: the caller keeps them, and gives them back. No more come then, so
 * that slots stay free however slow the caller is. */
#define FILE_FRAMES 20000u

static void *pipe_write(void *path)
{
	static const uint32_t header[6] = { 0xa1b2c3d4, 4u << 16 | 2, 0, 0, 65535, 1 };
	static const uint32_t record[4] = { 1600000000, 0, 60, 60 };
	static const uint8_t frame[60] = { 2, [12] = 0x88, [13] = 0xb5 };
	FILE *file = fopen(path, "wb");

	if (!file)
		return NULL;
	fwrite(header, sizeof(header), 1, file);
	for (uint32_t i = 0; i < FILE_FRAMES; i++) {
		fwrite(record, sizeof(record), 1, file);
		fwrite(frame, sizeof(frame), 1, file);
	}
	return fclose(file) == 0 ? path : NULL;
}

static void out_of_slots(void **state)
{
	static const struct gdrcap_batch *kept[FILE_FRAMES];
	char folder[] = "/tmp/gdrcap-events-XXXXXX", path[64];
	const struct gdrcap_batch *batch;
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_queue *queue;
	struct gdrcap_event event;
	uint64_t frames = 0, times;
	unsigned int n = 0;
	pthread_t writer;
	void *written;
	int end;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/pipe", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	/* kept open: at a pipe's end the run is over */
	end = open(path, O_RDWR);
	assert_true(end >= 0);
	assert_int_equal(pthread_create(&writer, NULL, pipe_write, path), 0);
	api_config(&config, "host", 0);
	api_set(config, "port", "net_pcap0,rx_pcap=%s", path);
	api_unset(config, "pattern");
	api_unset(config, "tx_port");
	api_set(config, "pool", "%llu", (unsigned long long)(8 << 20));
	session = api_begin(config);
	queue = gdrcap_get_queue(session, 0);
	while (gdrcap_get_event(session, &event, sizeof(event)) == 0 ||
	       event.kind != GDRCAP_EVENT_NO_SLOTS)
		if (gdrcap_poll(queue, &kept[n], 1) == 1)
			frames += kept[n++]->count;
	api_event_is_of(&event, 0, 0, 0);
	times = event.count;
	assert_true(times > 0);
	gdrcap_release(queue, kept, n);
	for (; frames < FILE_FRAMES; frames += batch->count) {
		assert_int_equal(gdrcap_wait(queue, &batch, 1, -1), 1);
		gdrcap_release(queue, &batch, 1);
	}
	assert_int_equal(pthread_join(writer, &written), 0);
	assert_ptr_equal(written, path);
	event = api_wait_event(session, GDRCAP_EVENT_SLOTS_AGAIN);
	api_event_is_of(&event, 0, 0, 0);
	assert_true(event.count >= times);
	api_stop(session);
	gdrcap_destroy(session);
	close(end);
	unlink(path);
	rmdir(folder);
}

/* ---- a kernel interface ---- */

static bool ip(const char *arguments)
{
	char command[128];

	snprintf(command, sizeof(command), "ip link %s >/dev/null 2>&1", arguments);
	return system(command) == 0;
}

static void interface(void **state)
{
	struct gdrcap_error error = { 0 };
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_event event;

	if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0 ||
	    !ip("add gcev0 type veth peer name gcev1") || !ip("set gcev0 up") ||
	    !ip("set gcev1 up")) {
		print_message("no veth pair can be made here\n");
		skip();
	}
	api_config(&config, "validate", 0);
	api_set(config, "port", "net_af_packet0,iface=gcev1");
	api_unset(config, "tx_port");
	session = api_begin(config);
	event = api_wait_event(session, GDRCAP_EVENT_LINK_UP);
	api_event_is_of(&event, 0, 0, -1);
	assert_true(ip("set gcev1 down"));
	event = api_wait_event(session, GDRCAP_EVENT_LINK_DOWN);
	api_event_is_of(&event, 0, 0, -1);
	assert_true(ip("set gcev1 up"));
	api_wait_event(session, GDRCAP_EVENT_LINK_UP);
	/* As when a cable is pulled. */
	assert_true(ip("set gcev0 down"));
	api_wait_event(session, GDRCAP_EVENT_LINK_DOWN);
	assert_int_equal(gdrcap_wait_end(session, 0), 0);
	assert_true(ip("del gcev0"));
	event = api_wait_event(session, GDRCAP_EVENT_PORT_GONE);
	api_event_is_of(&event, 0, 0, -1);
	assert_non_null(strstr(event.text, "interface is gone"));
	/* Nothing of it is up again. */
	api_event(session, &event);
	assert_int_equal(event.kind, GDRCAP_EVENT_END);
	assert_int_equal(event.code, -ENODEV);
	api_failed(gdrcap_stop(session, &error), -ENODEV, &error, "interface is gone");
	gdrcap_destroy(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run),	  cmocka_unit_test(nobody_asks),
		cmocka_unit_test(link_goes_down), cmocka_unit_test(link_down_ends),
		cmocka_unit_test(consumer_late),  cmocka_unit_test(saver_behind),
		cmocka_unit_test(port_missed),	  cmocka_unit_test(out_of_slots),
		cmocka_unit_test(interface),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
