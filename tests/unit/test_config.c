/* SPDX-License-Identifier: BSD-3-Clause */
/* Options: table, YAML, gdrcap_config_set(), defaults, checks, profiles and their documentation. */
#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/config.h"

static struct gdrcap_error error;

/* Of one case after the other, and what it settles to. */
static struct gdrcap_config *config;
static struct settings settings;

static void fresh(void)
{
	gdrcap_config_free(config);
	config = gdrcap_config_new();
	assert_non_null(config);
}

static int yaml(const char *text)
{
	memset(&error, 0, sizeof(error));
	fresh();
	return gdrcap_config_parse(config, "f.yaml", text, strlen(text), &error);
}

static int set(const char *key, const char *value)
{
	return gdrcap_config_set(config, key, value, &error);
}

static const char *get(const char *key)
{
	return gdrcap_config_get(config, key, 0);
}

/* Two configurations were given the same, and came to the same. */
static void assert_same(const struct gdrcap_config *a, const struct gdrcap_config *b)
{
	const struct option_row *row;
	size_t i;

	for (i = 0; (row = option_at(i)); i++) {
		const char *at = (const char *)&a->settings, *bt = (const char *)&b->settings;
		const uint32_t entries = row->named.is_list ? row->most : 1;
		const char *text;

		assert_int_equal(a->given[i], b->given[i]);
		for (uint32_t k = 0; (text = gdrcap_config_get(a, row->named.key, k)); k++)
			assert_string_equal(text, gdrcap_config_get(b, row->named.key, k));
		assert_memory_equal(at + row->offset, bt + row->offset,
				    (size_t)entries * row->width);
	}
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

/* The error begins with "f.yaml:LINE: START" and says `part`; the configuration is untouched. */
static void assert_yaml_error(const char *text, int line, const char *start, const char *part)
{
	struct gdrcap_config *untouched = gdrcap_config_new();
	char beginning[128];

	if (!yaml(text))
		fail_msg("accepted: %s", text);
	assert_int_equal(error.code, -EINVAL);
	snprintf(beginning, sizeof(beginning), "f.yaml:%d: %s", line, start);
	if (strncmp(error.text, beginning, strlen(beginning)))
		fail_msg("'%s' does not begin with '%s'", error.text, beginning);
	assert_has(error.text, part);
	assert_same(config, untouched);
	gdrcap_config_free(untouched);
}

static void test_defaults(void **state)
{
	const struct settings *own;

	fresh();
	own = &config->settings;
	assert_int_equal(own->rx.count, 0);
	assert_int_equal(own->queues, 1);
	assert_int_equal(own->burst, 64);
	assert_int_equal(own->descriptors, 1024);
	assert_int_equal(own->gpu.kind, GPU_AUTO);
	assert_int_equal(own->memory, GDRCAP_MEMORY_AUTO);
	assert_int_equal(own->pool_bytes, 0);
	assert_int_equal(own->watchdog_ms, 2000);
	assert_int_equal(own->give_up_ms, 60000);
	assert_int_equal(own->sizes.count, 1);
	assert_int_equal(own->sizes.length[0], 1514);
	assert_int_equal(own->frame.ethertype, 0x88b5);
	assert_int_equal(own->frame.dst_port, 12345);
	assert_int_equal(own->pattern.kind, PATTERN_PRBS31);
	assert_int_equal(own->quiet_ms, 200);
	assert_int_equal(own->consumer, CONSUMER_VALIDATE);
	assert_null(get("port"));
	assert_null(get("seconds"));
	assert_string_equal(get("frame.size"), "1518");
	assert_string_equal(get("frame-size"), "1518");
	assert_null(gdrcap_config_get(config, "frame.size", 1));
	assert_null(get("no such"));
}

typedef uint8_t station[6];
typedef int cpu_list[GDRCAP_CORES_MAX];

/* One value of each option that is not its default, as written and as stored. */
static const struct sample {
	const char *key, *value;
	size_t offset, width;
	const void *bytes;
} samples[] = {
#define SAMPLE(key, value, member, type, ...)                                                      \
	{                                                                                          \
		key, value, offsetof(struct settings, member),                                     \
			sizeof(((struct settings *)0)->member), &(const type)                      \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define U8(key, value, member, number) SAMPLE(key, value, member, uint8_t, number)
#define U16(key, value, member, number) SAMPLE(key, value, member, uint16_t, number)
#define U32(key, value, member, number) SAMPLE(key, value, member, uint32_t, number)
#define U64(key, value, member, number) SAMPLE(key, value, member, uint64_t, number)
#define DOUBLE(key, value, member, number) SAMPLE(key, value, member, double, number)
#define TEXT(key, value, member)                                                                   \
	{                                                                                          \
		key, value, offsetof(struct settings, member), sizeof(value), value                \
	}
	TEXT("port", "net_af_packet0,iface=veth0", rx.port[0].name),
	TEXT("tx_port", "0000:3b:00.1", tx.port[0].name),
	U32("queues", "16", queues, 16),
	U32("burst", "256", burst, 256),
	U32("descriptors", "1000", descriptors, 1000),
	U32("rx_by", "cpu", rx_by, RX_BY_CPU),
	U32("rx_strides", "64", rx_strides, 64),
	U32("gpu", "3", gpu.ordinal, 3),
	U32("memory", "pinned", memory, GDRCAP_MEMORY_PINNED),
	U64("pool", "2GiB", pool_bytes, UINT64_C(2) << 30),
	U32("slot_bytes", "4K", slot_bytes, 4096),
	U8("guard", "true", guard, 1),
	U32("flush", "none", flush, FLUSH_NONE),
	U32("split", "64", split, 64),
	U32("stale_check", "100", stale_us, 100),
	U8("dump_frames", "true", dump_frames, 1),
	U32("consumer.name", "gpu", consumer, CONSUMER_GPU),
	U8("consumer.batch_times", "true", batch_times, 1),
	U32("consumer.blocks", "132", blocks, 132),
	U32("consumer.watchdog", "0.5", watchdog_ms, 500),
	U32("sender.name", "host", sender, SENDER_HOST),
	U32("sender.memory", "pinned", sender_memory, GDRCAP_MEMORY_PINNED),
	U32("sender.thread", "caller", sender_thread, SENDER_THREAD_CALLER),
	U32("sender.by", "cpu", tx_by, TX_BY_CPU),
	U16("frame.size", "64-1518,9000", sizes.largest, 9000),
	U32("frame.format", "udp", frame.format, FRAME_IPV4_UDP),
	U16("frame.ethertype", "0x88B6", frame.ethertype, 0x88b6),
	U16("frame.vlan", "4094", frame.vlan, 4094),
	SAMPLE("frame.src_mac", "02:aa:BB:00:00:01", frame.src_mac, station, 2, 0xaa, 0xbb, 0, 0,
	       1),
	SAMPLE("frame.dst_mac", "ff-ff-ff-ff-ff-ff", frame.dst_mac, station, 255, 255, 255, 255,
	       255, 255),
	U32("frame.src_ip", "10.0.0.1", frame.src_ip, 0x0a000001),
	U32("frame.dst_ip", "239.1.2.3", frame.dst_ip, 0xef010203),
	U16("frame.src_port", "65535", frame.src_port, 65535),
	U16("frame.dst_port", "1", frame.dst_port, 1),
	U32("streams", "1024", streams, 1024),
	U32("first_stream", "65535", first_stream, 65535),
	U32("pattern.name", "counter16be", pattern.kind, PATTERN_COUNTER16_BE),
	U32("pattern.invert", "no", pattern.invert, INVERT_NO),
	U8("pattern.restart", "yes", pattern.restart, 1),
	U8("pattern.value", "0xff", pattern.value, 255),
	U64("pattern.seed", "18446744073709551615", pattern.seed, UINT64_MAX),
	TEXT("pattern.file", "/tmp/x y.bin", pattern.file),
	U32("custom.payload", "18", custom.payload, 18),
	U32("custom.payload_bytes", "1000", custom.payload_bytes, 1000),
	U16("custom.sequence_offset", "14", custom.sequence.offset, 14),
	U8("custom.sequence_bytes", "4", custom.sequence.bytes, 4),
	U8("custom.sequence_order", "little", custom.sequence.little, 1),
	U64("custom.sequence_start", "18446744073709551615", custom.sequence_start, UINT64_MAX),
	U64("custom.sequence_step", "1400", custom.sequence_step, 1400),
	U16("custom.stream_offset", "12", custom.stream.offset, 12),
	U8("custom.stream_bytes", "2", custom.stream.bytes, 2),
	TEXT("match", "vlan=5,dst_ip=192.0.2.0/24,dst_port=4000", match.rule[0].text),
	{ "image", "gvsp,bytes=4096,piece=1024", offsetof(struct settings, image[0].name), 5,
	  "gvsp" },
	U8("allow_misfits", "true", allow_misfits, 1),
	U8("allow_late", "true", allow_late, 1),
	TEXT("pcap", "/tmp/x y.pcap", pcap),
	U64("loops", "forever", loops, UINT64_MAX),
	DOUBLE("rate", "9.5gbit", rate.value, 9.5e9),
	DOUBLE("speed", "2x", speed.value, 2),
	U64("pcap_memory", "8G", pcap_memory, UINT64_C(8) << 30),
	TEXT("expect", "e.pcapng", expect),
	TEXT("save", "all.pcapng", save),
	U32("save_every", "1k", save_every, 1000),
	TEXT("save_damaged", "bad.pcapng", save_damaged),
	U32("save_around", "256", save_around, 256),
	U32("clock", "card", clock, CLOCK_CARD),
	SAMPLE("cores", "2,4-7", cores.cpu, cpu_list, 2, 4, 5, 6, 7),
	U64("seconds", "1.5", seconds_ms, 1500),
	U64("frames", "10M", frames, 10000000),
	U64("images", "40", images_wanted, 40),
	U64("start_at", "+7.5", start.ns, 7500000000),
	U32("quiet", "0.001", quiet_ms, 1),
	U32("end", "never", end, END_NEVER),
	U32("senders", "3", senders, 3),
	U8("ranges", "true", ranges, 1),
	U32("idle", "2.5", idle_ms, 2500),
	U32("give_up", "7", give_up_ms, 7000),
	U32("link_down", "end", link_down, LINK_DOWN_END),
	U32("idle_sleep", "1000", idle_sleep_us, 1000),
};
#define SAMPLES (sizeof(samples) / sizeof(samples[0]))

static void sample_yaml(const struct sample *sample, char to[256])
{
	const char *dot = strchr(sample->key, '.');

	if (dot)
		snprintf(to, 256, "%.*s:\n  %s: %s\n", (int)(dot - sample->key), sample->key,
			 dot + 1, sample->value);
	else
		snprintf(to, 256, "%s: %s\n", sample->key, sample->value);
}

/* Every option, one way each: the same value in the same place, and the text as it was written. */
static void test_each_option(void **state)
{
	const struct gdrcap_option *option;
	char text[256];
	size_t i;

	for (i = 0; (option = gdrcap_option_at(i)); i++) {
		struct gdrcap_config *by_key = gdrcap_config_new();
		struct gdrcap_config *by_flag = gdrcap_config_new();
		struct gdrcap_config *unset = gdrcap_config_new();
		const char *at;

		assert_true(i < SAMPLES);
		assert_string_equal(option->key, samples[i].key);
		sample_yaml(&samples[i], text);
		if (yaml(text))
			fail_msg("%s", error.text);
		at = (const char *)&config->settings + samples[i].offset;
		assert_memory_equal(at, samples[i].bytes, samples[i].width);
		assert_memory_not_equal((const char *)&unset->settings + samples[i].offset, at,
					samples[i].width);
		/* what a preset stands for is kept: test_image_config.c */
		if (strcmp(samples[i].value, "yes") && strcmp(option->key, "image"))
			assert_string_equal(get(option->key), samples[i].value);
		assert_int_equal(0,
				 gdrcap_config_set(by_key, option->key, samples[i].value, &error));
		assert_int_equal(0,
				 gdrcap_config_set(by_flag, option->flag, samples[i].value, NULL));
		assert_same(config, by_key);
		assert_same(config, by_flag);
		/* Back to the default. */
		assert_int_equal(0, gdrcap_config_set(by_key, option->key, NULL, &error));
		assert_same(by_key, unset);
		gdrcap_config_free(by_key);
		gdrcap_config_free(by_flag);
		gdrcap_config_free(unset);
	}
	assert_int_equal(i, SAMPLES);
	/* A switch has one spelling. */
	assert_int_equal(0, yaml("guard: on\n"));
	assert_string_equal(get("guard"), "true");
}

/* All at once, in one file and by a sequence of calls. */
static void test_round_trip(void **state)
{
	static const char text[] =
		"# comment\n---\nport: [ring:a, \"ring:b\"]\ntx_port:\n  - ring:a\n  - ring:b\n"
		"queues: 2\npattern:\n  name: random\n  seed: 7\nframe: {size: imix}\nseconds: "
		"10\n...\n";
	static const struct {
		const char *key, *value;
		int add;
	} calls[] = {
		{ "port", "ring:x", 0 },     { "port", "ring:y", 1 },	 { "port", "ring:a", 0 },
		{ "port", "ring:b", 1 },     { "tx-port", "ring:a", 0 }, { "tx_port", "ring:b", 1 },
		{ "queues", "2", 0 },	     { "pattern", "random", 0 }, { "pattern-seed", "7", 0 },
		{ "frame-size", "imix", 0 }, { "seconds", "10", 0 },
	};
	struct gdrcap_config *by_calls = gdrcap_config_new();
	size_t i;

	assert_int_equal(0, yaml(text));
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		assert_int_equal(0, (calls[i].add ? gdrcap_config_add : gdrcap_config_set)(
					    by_calls, calls[i].key, calls[i].value, &error));
	assert_same(config, by_calls);
	gdrcap_config_free(by_calls);
	assert_int_equal(0, gdrcap_config_check(config, &error));
	assert_int_equal(config->settings.rx.count, 2);
	assert_string_equal(gdrcap_config_get(config, "port", 1), "ring:b");
	assert_null(gdrcap_config_get(config, "port", 2));
	/* A second file replaces what it names, and nothing else. */
	assert_int_equal(0, gdrcap_config_parse(config, "g", "port: ring:c", 12, &error));
	assert_null(gdrcap_config_get(config, "port", 1));
	assert_string_equal(gdrcap_config_get(config, "tx_port", 1), "ring:b");
}

static void test_pattern_shorthand(void **state)
{
	assert_int_equal(0, yaml("pattern: prbs7\nconsumer: host\n"));
	assert_int_equal(config->settings.pattern.kind, PATTERN_PRBS7);
	assert_int_equal(config->settings.consumer, CONSUMER_HOST);
	assert_yaml_error("\npattern: prbs8\n", 2, "pattern.name: 'prbs8'", "prbs31");
	assert_yaml_error("pattern: prbs7\npattern:\n  seed: 1\n", 2, "pattern: is given twice",
			  "first in line 1");
	assert_yaml_error("frame: 1518\n", 1, "frame: is not a map", "allowed");
	assert_yaml_error("consumer: {name: me}\n", 1, "consumer.name: 'me'",
			  "validate, host, gpu");
}

static void test_yaml_errors(void **state)
{
	/* Keys */
	assert_yaml_error("port: ring:a\nburts: 1\n", 2, "burts: is an unknown key",
			  "did you mean 'burst'");
	assert_yaml_error("frame:\n  size: 64\n  sise: 64\n", 3, "frame.sise: is an unknown key",
			  "did you mean 'frame.size'");
	assert_yaml_error("zzzzzzzz: 1\n", 1, "zzzzzzzz: is an unknown key",
			  "docs/configuration.md");
	assert_yaml_error("frame.size: 64\n", 1, "frame.size: is not a key here",
			  "written as a map");
	assert_yaml_error("frame-size: 64\n", 1, "frame-size: is not a key here",
			  "the option is frame.size");
	assert_yaml_error("frame:\n  queues: 1\n", 2, "frame.queues: is not a key here",
			  "outermost level");
	assert_yaml_error("queues: 1\nburst: 2\nqueues: 1\n", 3, "queues: is given twice",
			  "first in line 1");
	assert_yaml_error("frame:\n  size: 64\n  size: 64\n", 3, "frame.size: is given twice",
			  "first in line 2");
	assert_yaml_error("frame: {}\nframe: {}\n", 2, "frame: is given twice", "line 1");
	assert_yaml_error("? [a]\n: 1\n", 1, "a key must be a word", "");
	assert_yaml_error("\"queues\\0\": 1\n", 1, "a key holds a NUL byte", "");
	assert_yaml_error("ports_ports_ports_ports_ports_ports_ports_ports_ports_ports_ports_: 1\n",
			  1, "a key is longer", "");
	assert_yaml_error("\"\\e[31m\": 1\n", 1, "?[31m: is an unknown key", "");
	/* Types */
	assert_yaml_error("queues: [1]\n", 1, "queues: is a list", "allowed: 1..16");
	assert_yaml_error("queues:\n  a: 1\n", 2, "queues: is a map", "allowed: 1..16");
	assert_yaml_error("queues:\n", 1, "queues: has no value", "allowed: 1..16");
	assert_yaml_error("\nport: ~\n", 2, "port: has no value", "ring:NAME");
	assert_yaml_error("port:\n- ring:a\n- [b]\n", 3, "port: is a list of something else", "");
	assert_yaml_error("port: []\n", 1, "port: is an empty list", "");
	assert_yaml_error("idle_sleep: never\n", 1, "idle_sleep: 'never' is neither auto nor a",
			  "auto, 0 or 10..10000");
	assert_yaml_error("queues: one\n", 1, "queues: 'one' is not a whole number", "1..16");
	assert_yaml_error("queues: 1.0\n", 1, "queues: '1.0' is not a whole number", "1..16");
	assert_yaml_error("guard: maybe\n", 1, "guard: 'maybe'", "allowed: true or false");
	assert_yaml_error("memory: gpu\n", 1, "memory: 'gpu'", "auto, device, pinned, host");
	assert_yaml_error("frame:\n  ethertype: 88b5\n", 2, "frame.ethertype: '88b5'",
			  "allowed: 0x600..0xffff");
	assert_yaml_error("seconds: soon\n", 1, "seconds: 'soon' is not a time", "0..31622400 s");
	assert_yaml_error("pool: 2GB\n", 1, "pool: '2GB' is not a size", "0 or 1M..1T");
	/* Ranges */
	assert_yaml_error("queues: 0\n", 1, "queues: '0' is out of range", "1..16");
	assert_yaml_error("queues: 17\n", 1, "queues: '17' is out of range", "1..16");
	assert_yaml_error("queues: 4294967297\n", 1, "queues: '4294967297' is out of range", "");
	assert_yaml_error("burst: 257\n", 1, "burst: '257' is out of range", "1..256");
	assert_yaml_error("frame:\n  vlan: 4095\n", 2, "frame.vlan: '4095' is out of range",
			  "0..4094");
	assert_yaml_error("frame:\n  src_port: 65537\n", 2, "frame.src_port: '65537'", "1..65535");
	assert_yaml_error("pattern:\n  seed: 18446744073709551616\n", 2,
			  "pattern.seed:", "0..2^64-1");
	assert_yaml_error("quiet: 0\n", 1, "quiet: '0' is out of range", "0.001..60 s");
	assert_yaml_error("frame:\n  size: 63\n", 2, "frame.size: '63' is out of range",
			  "64..9216");
	assert_yaml_error("cores: 1,1\n", 1, "cores: '1,1' is not a list of CPUs", "none twice");
	assert_yaml_error("gpu: 256\n", 1, "gpu: '256' is out of range", "0..255");
	assert_yaml_error("frame:\n  src_mac: 03:00:00:00:00:01\n", 2,
			  "frame.src_mac:", "group address");
	assert_yaml_error("frame: {dst_mac: 00:00:00:00:00:00}\n", 1, "frame.dst_mac:", "zero");
	assert_yaml_error("frame: {src_ip: 224.0.0.1}\n", 1, "frame.src_ip:", "multicast");
	assert_yaml_error("port: eth 0\n", 1, "port: 'eth 0' is not a port's name",
			  "net_af_packet0,iface=eth0");
	assert_yaml_error("port: net_\n", 1, "port: 'net_' is not a port's name", "");
	assert_yaml_error("port: \",a=b\"\n", 1, "port: ',a=b' is not a port's name", "");
	assert_yaml_error("port: a/b\n", 1, "port: 'a/b' is not a port's name", "mlx5_0");
	assert_yaml_error("port: \"\"\n", 1, "port: '' is empty", "");
	assert_yaml_error("port: ring:a/b\n", 1, "port: 'ring:a/b'", "name its wire");
	assert_yaml_error("cores: \"1\\n\"\n", 1, "cores: '1?' holds a control character", "");
	assert_yaml_error("cores: \"1\\02\"\n", 1, "cores: holds a NUL byte", "");
	assert_yaml_error(
		"port:\n- ring:1\n- ring:2\n- ring:3\n- ring:4\n- ring:5\n- ring:6\n- ring:7\n"
		"- ring:8\n- ring:9\n",
		10, "port: more than 8", "up to 8");
}

static void test_yaml_structure(void **state)
{
	static const char bad_utf8[] = "queues: 1\nport: \xff\xfe\n";

	assert_yaml_error("- a\n", 1, "is not a map", "port: ring:wire");
	assert_yaml_error("text\n", 1, "is not a map", "");
	assert_yaml_error("queues: 1\n---\nqueues: 2\n", 2, "a second document", "");
	assert_yaml_error("queues: 1\n---\n", 2, "a second document", "");
	assert_yaml_error("a: &x 1\n", 1, "a: is an unknown key", "");
	assert_yaml_error("queues: &x 1\n", 1, "anchors", "not allowed");
	assert_yaml_error("&x queues: 1\n", 1, "anchors", "not allowed");
	assert_yaml_error("queues: 1\nburst: *x\n", 2, "aliases", "not allowed");
	assert_yaml_error("frame:\n  <<: {size: 64}\n", 2, "merge keys", "not allowed");
	assert_yaml_error("queues: !!str 1\n", 1, "tags", "not allowed");
	assert_yaml_error("frame:\n  size: 64\n burst: 2\n", 3, "is not YAML", "");
	assert_yaml_error("frame:\n\tsize: 64\n", 2, "is not YAML", "not with tabs");
	assert_yaml_error("port: [ring:a\n", 2, "is not YAML", "");
	assert_yaml_error(bad_utf8, 2, "is not text", "UTF-8");
}

static void test_yaml_empty(void **state)
{
	static const char *const texts[] = { "",	"\n\n", "# nothing\n", "---\n",
					     "--- ~\n", "{}\n", "frame: {}\n" };
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(-EINVAL, yaml(texts[i]));
		assert_has(error.text, "f.yaml: is empty");
	}
	assert_int_equal(-EINVAL, gdrcap_config_parse(config, NULL, NULL, 0, &error));
	assert_has(error.text, "is empty");
}

static void test_yaml_hostile(void **state)
{
	static const char laughs[] = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\n";
	const size_t deep = 100000, large = 10u << 20;
	char *text;

	assert_yaml_error(laughs, 1, "a: is an unknown key", "");
	assert_yaml_error("port: &a [ring:a]\ntx_port: *a\n", 1, "anchors", "");

	text = malloc(large);
	assert_non_null(text);
	memset(text, '[', deep);
	fresh();
	assert_int_equal(-EINVAL, gdrcap_config_parse(config, "deep", text, deep, &error));
	assert_has(error.text, "deep:1: is not a map");
	memcpy(text, "port: ", 6);
	assert_int_equal(-EINVAL, gdrcap_config_parse(config, "deep", text, deep, &error));
	assert_has(error.text, "deep:1: port: is a list of something else");
	memset(text, '{', deep);
	assert_int_equal(-EINVAL, gdrcap_config_parse(config, "deep", text, deep, &error));
	assert_has(error.text, "deep:1: a key must be a word");

	memset(text, '#', large);
	assert_int_equal(-EINVAL, gdrcap_config_parse(config, "large", text, large, &error));
	assert_has(error.text, "large: is larger than 1 MiB");
	assert_int_equal(-EINVAL, gdrcap_config_parse(config, "large", text, 1u << 20, &error));
	assert_has(error.text, "is empty");

	/* A value as long as the file may be: cut in the error text. */
	memset(text, 'a', 1u << 20);
	memcpy(text, "cores: ", 7);
	assert_int_equal(-EINVAL, gdrcap_config_parse(config, "long", text, 1u << 20, &error));
	assert_has(error.text, "long:1: cores: 'aaa");
	assert_has(error.text, "...' is longer than 255 characters");

	memcpy(text, "queues: 1\n\0", 11);
	assert_int_equal(-EINVAL, gdrcap_config_parse(config, "nul", text, 11, &error));
	assert_has(error.text, "nul:2: holds a NUL byte");
	free(text);
}

/* Texts as long as may be, and one more. */
static void test_text_limits(void **state)
{
	char text[600], size[600] = "64";

	fresh();
	memset(text, 'f', sizeof(text));
	text[511] = '\0';
	assert_int_equal(0, set("pattern.file", text));
	assert_string_equal(config->settings.pattern.file, text);
	text[511] = 'f';
	text[512] = '\0';
	assert_int_equal(-EINVAL, set("pattern.file", text));
	assert_has(error.text, "pattern.file: 'ffff");
	assert_has(error.text, "longer than 511 characters");
	assert_int_equal(strlen(get("pattern.file")), 511);
	assert_int_equal(0, set("pattern.file", ""));
	assert_string_equal(config->settings.pattern.file, "");
	assert_null(get("pattern.file"));
	/* Numbers are kept as texts too. */
	memset(text, '0', 520);
	memcpy(text, "0x", 2);
	text[520] = '\0';
	assert_int_equal(-EINVAL, set("pattern.seed", text));
	assert_has(error.text, "longer than 511 characters");
	text[511] = '\0';
	assert_int_equal(0, set("pattern.seed", text));
	while (strlen(size) < 253)
		strcat(size, ",64");
	assert_int_equal(0, set("frame.size", size));
	strcat(size, ",64");
	assert_int_equal(-EINVAL, set("frame.size", size));
	assert_int_equal(config->settings.sizes.count, 85);
}

static void test_set_errors(void **state)
{
	int i;

	fresh();
	assert_int_equal(-EINVAL, set("frame-sise", "64"));
	assert_has(error.text, "frame-sise: unknown option; did you mean 'frame");
	assert_int_equal(0, set("frame.size", "imix"));
	assert_int_equal(-EINVAL, set("frame-size", "64,9"));
	assert_has(error.text, "frame-size: '64,9' is out of range; allowed: ");
	/* What was there stays. */
	assert_int_equal(config->settings.sizes.count, 12);
	assert_int_equal(config->settings.sizes.length[6], 1514);
	assert_string_equal(get("frame.size"), "imix");
	assert_int_equal(-EINVAL, set(NULL, "9"));
	assert_int_equal(-EINVAL, gdrcap_config_set(NULL, "queues", "1", &error));
	assert_int_equal(-EINVAL, gdrcap_config_add(config, "queues", "1", &error));
	assert_has(error.text, "queues: takes one value");
	for (i = 0; i < GDRCAP_PORTS_MAX; i++)
		assert_int_equal(0, gdrcap_config_add(config, "port", "ring:a", &error));
	assert_int_equal(-EINVAL, gdrcap_config_add(config, "port", "ring:a", &error));
	assert_has(error.text, "up to 8");
	assert_int_equal(-EINVAL, set("port", "a/b"));
	assert_int_equal(config->settings.rx.count, GDRCAP_PORTS_MAX);
	assert_string_equal(config->settings.rx.port[0].name, "ring:a");
	/* One in the place of all. */
	assert_int_equal(0, set("port", "net_null0"));
	assert_int_equal(config->settings.rx.count, 1);
	assert_string_equal(config->settings.rx.port[1].name, "");
	assert_null(gdrcap_config_get(config, "port", 1));
	/* Zero where it has a meaning of its own. */
	assert_int_equal(0, set("pool", "0"));
	assert_int_equal(0, set("frames", "0"));
	assert_int_equal(-EINVAL, set("src-port", "0"));
	assert_int_equal(-EINVAL, set("port", "a\033b"));
	assert_has(error.text, "'a?b' holds a control character");
	assert_int_equal(-EINVAL, set("port", "a\xc2\x9b"
					      "b"));
	assert_has(error.text, "'a??b' holds a control character");
	assert_int_equal(-EINVAL, gdrcap_config_check(NULL, &error));
}

/* What is known of a port is found when it is named. */
static void test_port_facts(void **state)
{
	const struct port_spec *port;

	fresh();
	port = config->settings.rx.port;
	assert_int_equal(0, set("port", "net_null0,copy=1"));
	assert_true(port->copies && !port->wire && !port->connectx);
	assert_int_equal(0, set("port", "net_null0,copy=0"));
	assert_true(!port->copies && port->facts->writes == DRIVER_PASSES_ON);
	assert_int_equal(0, set("port", "ring:a"));
	assert_true(port->wire && !port->copies);
	assert_int_equal(0, set("port", "mlx5_0,mprq_en=1"));
	assert_true(port->connectx && !port->copies);
	assert_int_equal(0, set("port", "net_af_packet0,iface=a"));
	assert_true(port->copies && port->facts->no_vlan);
}

static void assert_check(const char *text, const char *start, const char *part)
{
	if (yaml(text))
		fail_msg("%s", error.text);
	if (!start) {
		if (config_settle(config, &settings, &error))
			fail_msg("%s", error.text);
		return;
	}
	if (!gdrcap_config_check(config, &error))
		fail_msg("passed: %s", text);
	assert_int_equal(error.code, -EINVAL);
	assert_int_equal(error.kind, GDRCAP_ERROR_CONFIG);
	if (strncmp(error.text, start, strlen(start)))
		fail_msg("'%s' does not begin with '%s'", error.text, start);
	assert_has(error.text, part);
}

#define RING "port: ring:a\ntx_port: ring:a\n"

static void test_check_ports(void **state)
{
	assert_check(RING, NULL, NULL);
	assert_check("queues: 1\n", "port: none is given", "PCI");
	assert_check("port: ring:a\n", "port: nothing plays into 'ring:a'", "tx_port: ring:a");
	assert_check("port: net_null0\ntx_port: ring:a\n", "tx_port: nothing receives from", "");
	assert_check("port: [ring:a, ring:b]\ntx_port: [ring:b, ring:a]\n",
		     "port: nothing plays into 'ring:a'", "same place");
	assert_check("port: [ring:a, net_null0]\ntx_port: ring:a\n", "tx_port: 1 for 2",
		     "one for each");
	assert_check("port: net_null0\ntx_port: [net_null1, net_null2]\n", "tx_port: 2 for 1", "");
	assert_check("port: [ring:a, ring:a]\ntx_port: [ring:a, ring:a]\n", "port: 'ring:a'",
		     "twice");
	assert_check("port: ['0000:3b:00.0', '3B:00.0,mprq_en=1']\n", "port: '3B:00.0", "twice");
	assert_check("port: ['0000:3b:00.0', '0001:3b:00.0']\n", NULL, NULL);
	assert_check("port: ['net_null0,copy=0', 'net_null0']\n", "port: 'net_null0'", "twice");
	assert_check("port: [net_null0, net_null1]\ntx_port: [net_null2, 'net_null2,copy=1']\n",
		     "tx_port: 'net_null2,copy=1'", "twice");
	assert_check("port: net_null0\ntx_port: net_null0\n", "tx_port: 'net_null0' is in port too",
		     "only a ring");
	assert_check("port: net_null0\n", NULL, NULL);
	/* Whether there are such, is found out when they are opened. */
	assert_check("port: enp59s0f0np0\ntx_port: 'mlx5_1,dv_flow_en=0'\n", NULL, NULL);
	assert_check("port: mlx5_0\ntx_port: 'mlx5_0,dv_flow_en=0'\n",
		     "tx_port: 'mlx5_0,dv_flow_en=0' is in port too", "only a ring");
	assert_check("tx_port: net_null0\n", NULL, NULL);
	assert_check("tx_port: ring:a\n", "tx_port: nothing receives from 'ring:a'",
		     "port: ring:a");
	assert_check(RING "burst: 256\ndescriptors: 64\n", "burst: 256 is more than the 64", "");
}

static void test_check_memory(void **state)
{
	assert_check(RING "gpu: host\nmemory: device\nguard: true\n", NULL, NULL);
	assert_check(RING "guard: true\n", NULL, NULL);
	assert_check(RING "gpu: 0\nguard: true\n", "guard: ", "gpu: host");
	assert_check(RING "memory: host\nguard: true\n", "guard: ", "memory: device");
	assert_check(RING "gpu: 0\nmemory: host\n", "memory: host memory is not visible", "pinned");
	assert_check(RING "slot_bytes: 3000\n", "slot_bytes: 3000 is not a power of two", "");
	assert_check(RING "slot_bytes: 2048\n", NULL, NULL);
	assert_int_equal(0, yaml(RING "slot_bytes: 1024\n"));
	assert_int_equal(-EMSGSIZE, gdrcap_config_check(config, &error));
	assert_has(error.text, "give 2048");
	/* The caller's own. */
	assert_int_equal(0, yaml(RING));
	gdrcap_config_set_memory(config, (void *)(uintptr_t)4096, 1u << 20);
	assert_int_equal(-EINVAL, gdrcap_config_check(config, &error));
	assert_has(error.text, "gdrcap_config_set_memory: 0x1000 is not aligned");
	gdrcap_config_set_memory(config, (void *)(uintptr_t)65536, 0);
	assert_int_equal(-EINVAL, gdrcap_config_check(config, &error));
	assert_has(error.text, "a pool of 0 bytes");
	gdrcap_config_set_memory(config, (void *)(uintptr_t)65536, 1u << 20);
	assert_int_equal(0, config_settle(config, &settings, &error));
	assert_ptr_equal(settings.memory_addr, (void *)(uintptr_t)65536);
	assert_int_equal(settings.pool_bytes, 1u << 20);
	assert_int_equal(0, set("guard", "true"));
	assert_int_equal(-EINVAL, gdrcap_config_check(config, &error));
	assert_has(error.text, "guard: ");
	assert_int_equal(0, set("guard", NULL));
	assert_int_equal(0, set("pool", "1M"));
	assert_int_equal(-EINVAL, gdrcap_config_check(config, &error));
	assert_has(error.text, "leave pool out");
}

static void test_check_frames(void **state)
{
	assert_check(RING "frame: {size: 64}\n", NULL, NULL);
	assert_check(RING "frame: {size: 81, format: udp}\n", "frame.size: 81 bytes", "82..9216");
	assert_check(RING "frame: {size: 82, format: udp}\n", NULL, NULL);
	assert_check(RING "frame: {size: 82, format: udp, vlan: 1}\n", "frame.size: 82 bytes",
		     "VLAN");
	assert_check(RING "frame: {size: 86, format: udp, vlan: 1}\n", NULL, NULL);
	assert_check(RING "frame: {size: imix, format: udp}\n", "frame.size: 64 bytes", "");
	assert_check(RING "frame: {size: 9216}\n", NULL, NULL);
	assert_check(RING "frame: {ethertype: 0x8100}\n", "frame.ethertype: 0x8100", "frame.vlan");
	assert_check(RING "pattern: file\n", "pattern.file: is missing", "path");
	assert_check(RING "pattern: {name: file, file: x}\n", NULL, NULL);
	assert_check(RING "pattern: {file: x}\n", "pattern.file: is for the pattern file only",
		     "prbs31");
}

#define CUSTOM "port: net_null0\nframe: {format: custom}\n"

static void test_check_custom(void **state)
{
	assert_check(CUSTOM, NULL, NULL);
	assert_check(CUSTOM "custom: {sequence_offset: 104, sequence_bytes: 8}\n", NULL, NULL);
	assert_check(CUSTOM "custom: {sequence_offset: 105, sequence_bytes: 8}\n",
		     "custom.sequence_offset: 8 bytes at 105", "first 112 bytes");
	assert_check(CUSTOM "custom: {stream_offset: 111, stream_bytes: 2}\n",
		     "custom.stream_offset: 2 bytes at 111", "first 112 bytes");
	assert_check(CUSTOM "custom: {sequence_bytes: 1, sequence_start: 256}\n",
		     "custom.sequence_start: 256 does not fit 1 bytes", "");
	assert_check(CUSTOM "custom: {sequence_bytes: 1, sequence_step: 256}\n",
		     "custom.sequence_step: 256 does not fit 1 bytes", "");
	/* Order is one queue's. */
	assert_check(CUSTOM "queues: 2\n", "queues: frames without a sequence number", "");
	assert_check(CUSTOM "queues: 2\ncustom: {sequence_bytes: 4}\n", NULL, NULL);
	assert_check(CUSTOM "queues: 2\npattern: {name: prbs31, restart: true}\n", NULL, NULL);
	assert_check("port: [net_null0, net_null1]\nexpect: a\n", "queues: a file's frames", "");
	assert_check("port: net_null0\nqueues: 2\nexpect: a\n", "queues: a file's frames", "");
	/* Only a PRBS tells where in it a frame is. */
	assert_check(CUSTOM "pattern: counter32be\n", "pattern: without a sequence number",
		     "pattern.restart: true");
	assert_check(CUSTOM "pattern: {name: counter32be, restart: true}\n", NULL, NULL);
	assert_check(CUSTOM "pattern: counter32be\ncustom: {sequence_bytes: 4}\n", NULL, NULL);
	assert_check(CUSTOM "pattern: constant\n", NULL, NULL);
	assert_check("tx_port: net_null0\nframe: {format: custom}\n",
		     "frame.format: frames of a custom layout can be received, not made", "pcap");
	assert_check(CUSTOM "expect: a.pcap\n", "expect: ", "one of expect and format: custom");
}

static void test_check_files(void **state)
{
	assert_check("tx_port: net_null0\npcap: a.pcap\nspeed: 2x\nloops: forever\n", NULL, NULL);
	assert_check("tx_port: net_null0\nspeed: 2x\n", "speed: ", "rate");
	assert_check("tx_port: net_null0\npcap: a\nspeed: 2x\nrate: 1gbit\n",
		     "rate: ", "one of rate and speed");
	assert_check("tx_port: [net_null0, net_null1]\npcap: a\n", "pcap: a file's order", "");
	assert_check("tx_port: net_null0\nqueues: 2\npcap: a\n", "pcap: a file's order", "");
	assert_check("port: net_null0\npcap: a\n", "pcap: a capture sends nothing", "expect");
	assert_check("port: net_null0\nrate: 1gbit\n", "rate: is of the sender", "");
	assert_check("port: net_null0\nrate: max\n", NULL, NULL);
	assert_check("tx_port: net_null0\nsave: a\n", "save: is about frames received", "");
	assert_check("tx_port: net_null0\nmatch: vlan=5\n", "match: is about frames received", "");
	assert_check("port: net_null0\nsave: a\nsave_damaged: a\n", "save_damaged: a is the file",
		     "another");
	assert_check("port: net_null0\nsave: a\nsave_damaged: /dev/../../a\n", NULL, NULL);
	assert_check("port: net_null0\nsave: /a\nsave_damaged: /./a\n",
		     "save_damaged: /./a is the file of save too", "another");
	assert_check("tx_port: ['net_pcap0,tx_pcap=a', 'net_pcap1,tx_pcap=./a']\n",
		     "tx_port: ./a is the file of tx_port too", "another");
	assert_check("port: net_null0\nsave: /dev/null\nsave_damaged: /dev/null\n", NULL, NULL);
	assert_check("port: net_null0\nsave_around: 3\n", "save_around: ", "save_damaged");
	assert_check("port: net_null0\nsave_around: 3\nsave_damaged: b\n", NULL, NULL);
	/* What would mean nothing is no option. */
	assert_check("tx_port: net_null0\nloops: 2\n", "loops: ", "pcap");
	assert_check("tx_port: net_null0\npcap: a\nstreams: 2\n", "streams: ", "one stream");
	assert_check("port: net_null0\npcap_memory: 1G\n", "pcap_memory: ", "expect");
	assert_check("port: net_null0\nsave_every: 2\n", "save_every: ", "save");
	assert_check("port: net_null0\ncustom: {sequence_bytes: 4}\n", "custom: ", "format");
	assert_check(RING "idle: 2\n", "idle: ", "elsewhere");
	/* A file's sender has its sizes from there. */
	assert_check("tx_port: net_null0\npcap: a\nframe: {size: 64, vlan: 5}\n", NULL, NULL);
}

/* By what it is read from too, which no session opens again. */
static void test_check_inputs(void **state)
{
	char path[] = "/tmp/gdrcap_config_XXXXXX", text[160];
	const int fd = mkstemp(path);

	assert_true(fd >= 0);
	dprintf(fd, "port: net_null0\nsave: %s\n", path);
	close(fd);
	gdrcap_config_free(config);
	config = gdrcap_config_new();
	assert_int_equal(0, gdrcap_config_load(config, path, &error));
	assert_int_equal(-EINVAL, gdrcap_config_check(config, &error));
	assert_has(error.text, "is a file that this run reads (config)");
	snprintf(text, sizeof(text), "port: net_null0\nsave: %s\nexpect: %s\n", path, path);
	assert_check(text, "save: /tmp/", "this run reads (expect)");
	snprintf(text, sizeof(text), "tx_port: 'net_pcap0,tx_pcap=%s'\npcap: %s\n", path, path);
	assert_check(text, "tx_port: /tmp/", "this run reads (pcap)");
	unlink(path);
}

/* Numbers that receivers have in common. */
static void test_check_ranges(void **state)
{
	assert_check("port: net_null0\nranges: true\n", NULL, NULL);
	assert_check("port: 'ring:a'\ntx_port: 'ring:a'\nranges: true\n", NULL, NULL);
	assert_check("tx_port: net_null0\nranges: true\n", "ranges: is about frames received", "");
	assert_check("tx_port: net_null0\nranges: false\n", NULL, NULL);
	assert_check("port: net_null0\nranges: true\nframe: {format: custom}\n",
		     "ranges: is of gdrcap's own frames", "a custom layout");
	assert_check("port: net_null0\nranges: true\nexpect: a.pcap\n",
		     "ranges: is of gdrcap's own frames", "a file (expect)");
	assert_check("port: net_null0\nconsumer: host\nranges: true\n",
		     "ranges: needs the built-in consumer", "");
}

/* Options about how frames are received. */
static void test_check_receiver(void **state)
{
	assert_check("port: mlx5_0\nsplit: 64\n", NULL, NULL);
	assert_check("tx_port: net_null0\nsplit: 64\n", "split: is about frames received", "leave");
	assert_check("tx_port: net_null0\nstale_check: 100\n", "stale_check: is about frames", "");
	assert_check("port: net_null0\nstale_check: 100\n", NULL, NULL);
	assert_check("port: net_null0\nstale_check: 100\nsave: a\n",
		     "stale_check: writes over frames", "so save would");
	assert_check("port: net_null0\nstale_check: 100\nsave_damaged: a\n",
		     "stale_check: writes over frames", "so save_damaged would");
	assert_check("port: net_null0\nclock: cpu\n", "clock: is of the arrival times", "save");
	assert_check("port: net_null0\nclock: auto\n", NULL, NULL);
	assert_check("port: net_null0\nclock: cpu\nsave_damaged: a\n", NULL, NULL);
	assert_check("tx_port: net_null0\nclock: cpu\n", "clock: is about frames received", "");
	/* Batches have times too; the caller's own consumer is told of no stale frames. */
	assert_check("port: mlx5_0\nconsumer: host\nclock: card\n", "clock: is of the arrival", "");
#define HOST "port: mlx5_0\nconsumer: {name: host, batch_times: true}\nclock: card\n"
	assert_check(HOST, NULL, NULL);
	assert_true(settings.times);
	assert_check(HOST "stale_check: 1\n", "stale_check: needs the built-in consumer", "");
	assert_check(HOST "save: a\n", "save: needs the built-in consumer", "");
	/* A card applies rules for it: plan.c knows whether there is one. */
	assert_check(HOST "match: vlan=5\n", NULL, NULL);
#undef HOST
}

static void test_sender_options(void **state)
{
	assert_check("tx_port: net_null0\nrate: 9.5gbit\n", NULL, NULL);
	assert_int_equal(settings.direction, DIRECTION_REPLAY);
	assert_int_equal(settings.pacing.kind, PACING_BITS);
	assert_true(settings.pacing.value == 9.5e9);
	assert_int_equal(settings.loops, 1);
	/* A file's own times, unless something else is asked for. */
	assert_check("tx_port: net_null0\npcap: a\nloops: forever\n", NULL, NULL);
	assert_int_equal(settings.pacing.kind, PACING_ORIGINAL);
	assert_true(settings.pacing.value == 1);
	assert_true(settings.loops == UINT64_MAX);
	assert_check("tx_port: net_null0\npcap: a\nloops: 10k\nspeed: 2x\n", NULL, NULL);
	assert_int_equal(settings.loops, 10000);
	assert_int_equal(settings.pacing.kind, PACING_ORIGINAL);
	assert_true(settings.pacing.value == 2);
	assert_check("tx_port: net_null0\npcap: a\nrate: max\n", NULL, NULL);
	assert_int_equal(settings.pacing.kind, PACING_NONE);
	assert_check("tx_port: net_null0\n", NULL, NULL);
	assert_int_equal(settings.pacing.kind, PACING_NONE);
	/* A file that is played into our own port is what is expected there. */
	assert_check(RING "pcap: a\n", NULL, NULL);
	assert_int_equal(settings.direction, DIRECTION_LOOPBACK);
	assert_string_equal(settings.expect, "a");
	assert_check(RING "pcap: a\nconsumer: host\n", NULL, NULL);
	assert_string_equal(settings.expect, "");
}

static void test_lengths_are_without_fcs(void **state)
{
	assert_check(RING "frame: {size: '64,9216,100'}\n", NULL, NULL);
	assert_int_equal(settings.sizes.least, 64);
	assert_int_equal(settings.sizes.largest, 9216);
	assert_int_equal(settings.sizes.count, 3);
	assert_int_equal(settings.sizes.length[0], 60);
	assert_int_equal(settings.sizes.length[1], 9212);
	assert_int_equal(settings.sizes.length[2], 96);
}

static void test_layout(void **state)
{
	const struct frame_layout *layout = &settings.layout;

	assert_check(CUSTOM "custom: {sequence_offset: 14, sequence_bytes: 4, sequence_step: 3, "
			    "sequence_order: little, payload: 18, payload_bytes: 100, "
			    "stream_offset: 12, stream_bytes: 2}\n"
			    "match: [vlan=5, 'dst_ip=192.0.2.0/24,dst_port=4000']\n",
		     NULL, NULL);
	assert_int_equal(layout->format, FRAME_CUSTOM);
	assert_int_equal(layout->custom.sequence.offset, 14);
	assert_int_equal(layout->custom.sequence.bytes, 4);
	assert_int_equal(layout->custom.sequence.little, 1);
	assert_int_equal(layout->custom.sequence_step, 3);
	assert_int_equal(layout->custom.stream.offset, 12);
	assert_int_equal(layout->custom.stream.bytes, 2);
	assert_int_equal(layout->custom.payload, 18);
	assert_int_equal(layout->custom.payload_bytes, 100);
	assert_int_equal(layout->custom.self_phase, 1);
	assert_int_equal(layout->match.count, 2);
	assert_int_equal(layout->match.rule[0].vlan, 5);
	assert_int_equal(layout->match.rule[1].dst_port, 4000);
	assert_check(CUSTOM "pattern: {restart: true}\n", NULL, NULL);
	assert_int_equal(layout->custom.self_phase, 0);
	assert_check(RING "frame: {format: udp, vlan: 7, dst_port: 99}\n", NULL, NULL);
	assert_int_equal(layout->format, FRAME_IPV4_UDP);
	assert_int_equal(layout->vlan, 7);
	assert_int_equal(layout->udp_port, 99);
	assert_int_equal(layout->match.count, 0);
}

/* ---- files ---- */

static void assert_load_error(const char *path, int code, const char *part)
{
	fresh();
	assert_int_equal(code, gdrcap_config_load(config, path, &error));
	assert_int_equal(code, error.code);
	assert_has(error.text, part);
}

static void test_load(void **state)
{
	char folder[] = "/tmp/gdrcap_test_config_XXXXXX", path[64], message[128];
	FILE *file;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/f.yaml", folder);
	assert_load_error(path, -ENOENT, "cannot be opened: No such file");
	assert_load_error(folder, -EINVAL, "is not a regular file");
	assert_load_error("/dev/zero", -EINVAL, "is not a regular file");
	assert_load_error(NULL, -EINVAL, "no configuration file");
	assert_load_error("", -EINVAL, "no configuration file");
	assert_int_equal(0, mkfifo(path, 0600)); /* without a writer: must not wait for one */
	assert_load_error(path, -EINVAL, "is not a regular file");
	unlink(path);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("queues: 1\nburst: x\n", file);
	fclose(file);
	snprintf(message, sizeof(message), "%s:2: burst: 'x' is not a whole number", path);
	assert_load_error(path, -EINVAL, message);
	file = fopen(path, "w");
	fputs("queues: 5\n", file);
	fclose(file);
	fresh();
	assert_int_equal(0, gdrcap_config_load(config, path, &error));
	assert_string_equal(get("queues"), "5");
	assert_int_equal(0, truncate(path, 10 << 20));
	assert_load_error(path, -EINVAL, "is larger than 1 MiB");
	assert_int_equal(0, truncate(path, 0));
	assert_load_error(path, -EINVAL, "is empty");
	unlink(path);
	rmdir(folder);
}

/* The source tree, from this file's own path, which the compiler was given. */
static const char *source_path(const char *file)
{
	static char path[4096];
	int length = (int)(strrchr(__FILE__, '/') - __FILE__);

	snprintf(path, sizeof(path), "%.*s/../../%s", length, __FILE__, file);
	return path;
}

static void test_profiles(void **state)
{
	glob_t found;
	size_t i;

	assert_int_equal(0, glob(source_path("config/*.yaml"), 0, NULL, &found));
	assert_true(found.gl_pathc >= 7);
	for (i = 0; i < found.gl_pathc; i++) {
		const char *name = strrchr(found.gl_pathv[i], '/') + 1;

		fresh();
		/* layouts of images, for any port */
		if (!strncmp(name, "image-", 6) &&
		    (set("port", "net_null0") || set("consumer", "host") ||
		     set("image", found.gl_pathv[i])))
			fail_msg("%s", error.text);
		if (gdrcap_config_load(config, found.gl_pathv[i], &error) ||
		    gdrcap_config_check(config, &error))
			fail_msg("%s", error.text);
	}
	globfree(&found);
}

/* Each row of the table is a row of docs/configuration.md, in the same order; nothing else is. */
static void test_documentation(void **state)
{
	FILE *doc = fopen(source_path("docs/configuration.md"), "r");
	const struct gdrcap_option *option;
	char line[1024], expected[1024], flag[128];
	size_t i = 0;

	assert_non_null(doc);
	while (fgets(line, sizeof(line), doc)) {
		if (strncmp(line, "| `", 3))
			continue;
		option = gdrcap_option_at(i++);
		if (!option)
			fail_msg("documented, but no option: %s", line);
		if (option->commands)
			snprintf(flag, sizeof(flag), "`--%s%s%s`", option->flag,
				 option->argument ? " " : "",
				 option->argument ? option->argument : "");
		else
			snprintf(flag, sizeof(flag), "no flag");
		snprintf(expected, sizeof(expected), "| `%s` | %s | %s |\n", option->key, flag,
			 option->help);
		assert_string_equal(line, expected);
	}
	assert_null(gdrcap_option_at(i));
	fclose(doc);
}

/* The sentences say the ranges and defaults that hold, and no name means two options. */
static void test_table(void **state)
{
	const struct option_row *row, *other;
	char allowed[OPTION_ALLOWED_BYTES], initial[64];
	size_t i, j;

	for (i = 0; (row = option_at(i)); i++) {
		const char *help = row->named.help;

		option_allowed(row, allowed);
		if (row->type >= OPTION_NUMBER && row->type != OPTION_ENUM)
			assert_has(help, allowed);
		/* But for the patterns, which are many. */
		for (j = 0; row->type == OPTION_ENUM && row->named.words != pattern_names &&
			    row->named.words[j];
		     j++)
			assert_has(help, row->named.words[j]);
		if (row->initial) {
			snprintf(initial, sizeof(initial), "default %s", row->initial);
			assert_has(help, initial);
		}
		assert_int_equal(help[strlen(help) - 1], '.');
		assert_int_equal(row->named.is_list,
				 row->type == OPTION_LIST || row->type == OPTION_IMAGES);
		assert_int_equal(!row->named.argument, row->type == OPTION_BOOL);
		for (j = 0; (other = option_at(j)); j++)
			if (i != j) {
				assert_string_not_equal(row->named.key, other->named.key);
				assert_string_not_equal(row->named.flag, other->named.flag);
				assert_string_not_equal(row->named.flag, other->named.key);
			}
	}
	assert_true(i <= GDRCAP_OPTIONS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_each_option),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_pattern_shorthand),
		cmocka_unit_test(test_yaml_errors),
		cmocka_unit_test(test_yaml_structure),
		cmocka_unit_test(test_yaml_empty),
		cmocka_unit_test(test_yaml_hostile),
		cmocka_unit_test(test_text_limits),
		cmocka_unit_test(test_set_errors),
		cmocka_unit_test(test_port_facts),
		cmocka_unit_test(test_check_ports),
		cmocka_unit_test(test_check_memory),
		cmocka_unit_test(test_check_frames),
		cmocka_unit_test(test_check_custom),
		cmocka_unit_test(test_check_files),
		cmocka_unit_test(test_check_inputs),
		cmocka_unit_test(test_check_ranges),
		cmocka_unit_test(test_check_receiver),
		cmocka_unit_test(test_sender_options),
		cmocka_unit_test(test_lengths_are_without_fcs),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_profiles),
		cmocka_unit_test(test_documentation),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
