/* SPDX-License-Identifier: BSD-3-Clause */
/* Each option with a consumer of the caller's own: it is honoured, and tested, or it is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gdrcap.h"

#define REFUSED NULL
/* What has nothing to do with who takes the frames: receivers, senders and memory are the same. */
#define SAME "the tests of the built-in consumer"

/* A value that is not the default's, and where it is tested that it is honoured. */
static const struct {
	const char *key, *value;
	const char *host, *gpu;
} options[] = {
	{ "port", "net_null1", SAME, SAME },
	{ "tx_port", "net_null2", SAME, SAME },
	{ "queues", "2", "api_host", "api_gpu" },
	{ "burst", "7", "api_host", "api_gpu" },
	{ "descriptors", "512", SAME, SAME },
	{ "rx_by", "cpu", SAME, SAME },
	{ "rx_strides", "1", SAME, SAME },
	{ "gpu", "host", SAME, SAME },
	{ "memory", "host", SAME, SAME },
	{ "pool", "64M", SAME, SAME },
	{ "slot_bytes", "4096", SAME, SAME },
	{ "guard", "true", SAME, SAME },
	{ "flush", "none", "rx_worker", "rx_worker" },
	{ "split", "64", "e2e/test_connectx", "e2e/test_connectx" },
	{ "stale_check", "100", REFUSED, REFUSED },
	{ "dump_frames", "true", SAME, SAME },
	{ "consumer.name", "", SAME, SAME },
	{ "consumer.batch_times", "true", "api_host", REFUSED },
	{ "consumer.blocks", "2", REFUSED, REFUSED },
	{ "consumer.watchdog", "7", REFUSED, REFUSED },
	{ "sender.name", "host", "api_send", "api_send" },
	{ "sender.memory", "host", "api_send", "api_send" },
	{ "sender.thread", "caller", "api_send", "api_send" },
	{ "sender.by", "cpu", SAME, SAME },
	{ "frame.size", "64", "api_host", "api_gpu" },
	{ "frame.format", "udp", SAME, SAME },
	{ "frame.ethertype", "0x88b6", SAME, SAME },
	{ "frame.vlan", "5", SAME, SAME },
	{ "frame.src_mac", "02:00:00:00:00:07", SAME, SAME },
	{ "frame.dst_mac", "02:00:00:00:00:07", SAME, SAME },
	{ "frame.src_ip", "192.0.2.7", SAME, SAME },
	{ "frame.dst_ip", "192.0.2.7", SAME, SAME },
	{ "frame.src_port", "7", SAME, SAME },
	{ "frame.dst_port", "7", SAME, SAME },
	{ "streams", "3", "api_host", "api_gpu" },
	{ "first_stream", "3", SAME, SAME },
	{ "pattern.name", "counter8", REFUSED, REFUSED },
	{ "pattern.invert", "yes", REFUSED, REFUSED },
	{ "pattern.restart", "true", REFUSED, REFUSED },
	{ "pattern.value", "7", REFUSED, REFUSED },
	{ "pattern.seed", "7", REFUSED, REFUSED },
	{ "pattern.file", "/dev/zero", REFUSED, REFUSED },
	{ "custom.payload", "20", REFUSED, REFUSED },
	{ "custom.payload_bytes", "20", REFUSED, REFUSED },
	{ "custom.sequence_offset", "16", "api_frames", REFUSED },
	{ "custom.sequence_bytes", "2", "api_frames", REFUSED },
	{ "custom.sequence_order", "little", "custom", REFUSED },
	{ "custom.sequence_start", "7", "custom", REFUSED },
	{ "custom.sequence_step", "7", "custom", REFUSED },
	{ "custom.stream_offset", "14", "api_frames", REFUSED },
	{ "custom.stream_bytes", "2", "api_frames", REFUSED },
	/* Where the port is no card, gdrcap_create() refuses it for a kernel. */
	{ "match", "vlan=5", "api_frames", "api_frames" },
	{ "image", "gvsp,bytes=4096,piece=1024", "image_config", "image_config" },
	{ "allow_misfits", "true", SAME, SAME },
	{ "allow_late", "true", SAME, SAME },
	{ "pcap", "/dev/null", SAME, SAME },
	{ "loops", "7", SAME, SAME },
	{ "rate", "7kpps", SAME, SAME },
	{ "speed", "2x", SAME, SAME },
	{ "pcap_memory", "2M", SAME, SAME },
	{ "expect", "/dev/null", REFUSED, REFUSED },
	{ "save", "/tmp/a", REFUSED, REFUSED },
	{ "save_every", "7", REFUSED, REFUSED },
	{ "save_damaged", "/tmp/a", REFUSED, REFUSED },
	{ "save_around", "7", REFUSED, REFUSED },
	{ "clock", "cpu", "api_host", SAME },
	{ "cores", "0", SAME, SAME },
	{ "seconds", "7", SAME, SAME },
	{ "frames", "7", "api_host", "api_gpu" },
	{ "images", "7", "image_config", "image_config" },
	{ "start_at", "+7", SAME, SAME },
	{ "quiet", "7", SAME, SAME },
	{ "end", "never", REFUSED, REFUSED },
	{ "senders", "7", REFUSED, REFUSED },
	{ "ranges", "true", REFUSED, REFUSED },
	{ "idle", "7", SAME, SAME },
	{ "give_up", "7", SAME, SAME },
	{ "link_down", "end", SAME, SAME },
	{ "idle_sleep", "20", "api_wait", "api_wait" },
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))

/* A capture, or where `sends` a loopback, with one option more. */
static int checked(const char *consumer, int sends, size_t i, struct gdrcap_error *error)
{
	struct gdrcap_config *config = gdrcap_config_new();
	int ret = 0;

	assert_non_null(config);
	error->text[0] = '\0';
	ret |= gdrcap_config_set(config, "port", sends ? "ring:a" : "net_null0", NULL);
	ret |= sends ? gdrcap_config_set(config, "tx_port", "ring:a", NULL) : 0;
	ret |= gdrcap_config_set(config, "consumer", consumer, NULL);
	if (options[i].value[0])
		ret |= gdrcap_config_set(config, options[i].key, options[i].value, error);
	if (ret)
		print_error("%s: %s\n", options[i].key, error->text);
	assert_int_equal(ret, 0);
	ret = gdrcap_config_check(config, error);
	gdrcap_config_free(config);
	return ret;
}

static void is_honoured_or_refused(const char *consumer, size_t i, const char *where)
{
	struct gdrcap_error error = { 0 };
	const size_t name = strlen(options[i].key);
	const int ret = checked(consumer, 0, i, &error);
	const int refused = strstr(error.text, "the built-in consumer") != NULL;

	if (refused != !where)
		print_error("%s with %s: %d, %s\n", options[i].key, consumer, ret, error.text);
	assert_int_equal(refused, !where);
	if (!refused)
		return;
	assert_int_equal(ret, -EINVAL);
	assert_memory_equal(error.text, options[i].key, name);
	assert_int_equal(error.text[name], ':');
	/* It is its consumer that refuses it. */
	(void)checked("validate", 0, i, &error);
	assert_null(strstr(error.text, "the built-in consumer"));
}

static void each_option(void **state)
{
	const struct gdrcap_option *option;
	size_t count = 0;

	(void)state;
	for (; (option = gdrcap_option_at(count)) != NULL; count++) {
		size_t i = 0;

		while (i < OPTIONS && strcmp(options[i].key, option->key) != 0)
			i++;
		if (i == OPTIONS)
			print_error("%s: is it honoured, or refused?\n", option->key);
		assert_true(i < OPTIONS);
		is_honoured_or_refused("host", i, options[i].host);
		is_honoured_or_refused("gpu", i, options[i].gpu);
	}
	assert_int_equal(count, OPTIONS);
}

/* What a sender takes is honoured where there is one. */
static void senders_take_theirs(void **state)
{
	(void)state;
	for (size_t i = 0; i < OPTIONS; i++) {
		const int taken = strncmp(options[i].key, "pattern.", 8) == 0 ||
				  strcmp(options[i].key, "end") == 0;
		struct gdrcap_error error = { 0 };

		if (options[i].host)
			continue;
		(void)checked("host", 1, i, &error);
		assert_int_equal(strstr(error.text, "the built-in consumer") == NULL, taken);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_option),
		cmocka_unit_test(senders_take_theirs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
