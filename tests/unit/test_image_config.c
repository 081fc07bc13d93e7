/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts of images: presets, YAML, files, and with other options. */
#include "image_option.h"
#include "config/image_draft.h"
#include "image_wire.h"

#include <unistd.h>

static struct settings settings;

static bool is_field(const struct image_field *a, const struct image_field *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* ---- what is accepted ---- */

static void test_gvsp(void **state)
{
	const struct image_settings *own = loaded("gvsp,bytes=307200,piece=1364");
	const struct image_layout *layout = &own->layout;
	const struct image_field width = wire_field(24, 4), time = wire_field(12, 8);

	assert_string_equal(own->name, "gvsp");
	assert_int_equal(layout->base, IMAGE_BASE_UDP);
	assert_int_equal(layout->parser, IMAGE_PARSER_GVSP);
	assert_int_equal(layout->bytes, 307200);
	assert_int_equal(layout->row_bytes, 307200);
	assert_int_equal(layout->pitch, 307200);
	assert_int_equal(layout->pieces, 226);
	assert_int_equal(layout->row_pieces, 226);
	assert_int_equal(image_piece_bytes(layout, 225), 300);
	/* only the trailer says how large this image is */
	assert_int_equal(layout->known, 0);
	assert_int_equal(layout->partial, 1);
	assert_int_equal(layout->number_first, 1);
	assert_int_equal(layout->late, 64);
	assert_int_equal(layout->counts, 1);
	assert_int_equal(layout->place_terms, 0);
	assert_true(is_field(&layout->timestamp, &time));
	assert_true(is_field(&layout->fields[0], &width));
	assert_int_equal(own->ring, 8);
	assert_int_equal(own->open, 2);
	assert_int_equal(own->timeout_us, 100000);
	assert_int_equal(own->linger_us, 1000);
	assert_int_equal(own->fill, 0);
	assert_false(own->drop_incomplete);
	assert_false(own->drop_oldest);
	assert_int_equal(own->engine, IMAGE_ENGINE_AUTO);
	own = loaded("gvsp,bytes=4K,piece=1K,ring=2,timeout=0.5,linger=0,fill=none,incomplete=drop,"
		     "full=drop_oldest,engine=resident,late=7,name=left,size=fixed,"
		     "timestamp.at=20,timestamp.bytes=4");
	assert_string_equal(own->name, "left");
	assert_int_equal(own->ring, 2);
	assert_int_equal(own->open, 1);
	assert_int_equal(own->timeout_us, 500000);
	assert_int_equal(own->linger_us, 0);
	assert_int_equal(own->fill, -1);
	assert_true(own->drop_incomplete);
	assert_true(own->drop_oldest);
	assert_int_equal(own->engine, IMAGE_ENGINE_RESIDENT);
	assert_int_equal(own->layout.known, 1);
	assert_int_equal(own->layout.partial, 0);
	assert_int_equal(own->layout.late, 7);
	assert_int_equal(own->layout.timestamp.at, 20);
	assert_int_equal(own->layout.timestamp.bytes, 4);
}

static void test_rtp_raw(void **state)
{
	const struct image_settings *own =
		loaded("rtp-raw,width=1280,height=720,sampling=YCbCr-4:2:2,depth=10,pitch=4096");
	const struct image_layout *layout = &own->layout;

	assert_int_equal(layout->parser, IMAGE_PARSER_RTP_RAW);
	assert_int_equal(layout->group_pixels, 2);
	assert_int_equal(layout->group_bytes, 5);
	assert_int_equal(layout->piece, 5);
	assert_int_equal(layout->row_bytes, 3200);
	assert_int_equal(layout->pitch, 4096);
	assert_int_equal(layout->bytes, 4096 * 720);
	assert_int_equal(layout->pieces, 640 * 720);
	assert_int_equal(layout->known, 1);
	assert_int_equal(layout->late, 90000);
	assert_int_equal(layout->counts, 0);
	assert_int_equal(layout->number_modulus, UINT64_C(1) << 32);
	layout = &loaded("rtp-raw,width=64,height=2,group.pixels=4,group.bytes=15")->layout;
	assert_int_equal(layout->row_bytes, 240);
	assert_int_equal(layout->pitch, 240);
	layout = &loaded("rtp-raw,width=64,height=2,sampling=RGB")->layout;
	assert_int_equal(layout->bytes, 384);
}

static void test_spead(void **state)
{
	const struct image_layout *layout = &loaded("spead,bytes=1M")->layout;
	const struct image_field heap = wire_item(1), offset = wire_item(3);

	assert_int_equal(layout->parser, IMAGE_PARSER_SPEAD);
	assert_int_equal(layout->piece, 8);
	assert_int_equal(layout->pieces, 131072);
	assert_int_equal(layout->known, 0);
	assert_int_equal(layout->number_modulus, UINT64_C(1) << 48);
	assert_true(is_field(&layout->number, &heap));
	assert_int_equal(layout->place_terms, 1);
	assert_true(is_field(&layout->place[0], &offset));
	/* images of many heaps: how large they are is not what item 2 says */
	layout = &loaded("{parser: spead, number: {item: 0x1600, divide: 4194304}, place: [{item: "
			 "0x1600, divide: 4096, modulo: 1024, times: 8192}, {item: 3}], bytes: 8M}")
			  ->layout;
	assert_int_equal(layout->known, 1);
	assert_int_equal(layout->place_terms, 2);
	assert_int_equal(layout->place[0].at, 0x1600);
	assert_int_equal(layout->number_modulus, UINT64_C(1) << 26);
}

/* A camera as GVSP, by fields: as much of it as a table can say. */
static void test_packets(void **state)
{
	const struct image_layout *layout =
		&loaded("base: udp\n"
			"kind:    {at: 4, bytes: 1, mask: 0x7f}\n"
			"number:  {at: 2, bytes: 2, wrap: 65535, first: 1}\n"
			"index:   {at: 5, bytes: 3, subtract: 1}\n"
			"begin:   {kind: 1, timestamp: {at: 12, bytes: 8}, fields: [{at: 24, "
			"bytes: 4}, {at: 28, bytes: 4}]}\n"
			"data:    {kind: 3, payload: 8, piece: 1364}\n"
			"end:     {kind: 2, pieces: {at: 5, bytes: 3, subtract: 1}}\n"
			"bytes: 307200\n")
			 ->layout;
	struct image_field index = wire_field(5, 3), kind = wire_field(4, 1);

	index.subtract = 1;
	assert_true(is_field(&layout->end_pieces, &index));
	index.times = 1364;
	assert_int_equal(layout->place_terms, 1);
	assert_true(is_field(&layout->place[0], &index));
	kind.mask = 0x7f;
	assert_true(is_field(&layout->kind, &kind));
	assert_int_equal(layout->kind_begin, 1);
	assert_int_equal(layout->kind_data, 3);
	assert_int_equal(layout->kind_end, 2);
	assert_int_equal(layout->payload, 8);
	assert_int_equal(layout->number_first, 1);
	assert_int_equal(layout->number_modulus, 65535);
	assert_int_equal(layout->known, 0);
	assert_int_equal(layout->timestamp.at, 12);
	assert_int_equal(layout->fields[1].at, 28);
	assert_int_equal(layout->fields[2].bytes, 0);
}

static void test_fields(void **state)
{
	const struct image_layout *layout =
		&loaded("base: frame\n"
			"stream: {at: 12, bytes: 2, little: true}\n"
			"number: {at: 0, bytes: 8, divide: 1024}\n"
			"place:\n"
			"  - {at: 0, bytes: 8, modulo: 1024, times: 8192}\n"
			"  - {at: 8, bytes: 2, times: 8388608}\n"
			"index:\n"
			"  - {at: 0, bytes: 8, modulo: 1024}\n"
			"  - {at: 8, bytes: 2, times: 1024}\n"
			"data: {payload: 16, piece: 8192, payload_more: {at: 14, bytes: 1, times: 4}, "
			"length: {at: 15, bytes: 2}}\n"
			"end: {mark: {at: 20, bit: 0}}\n"
			"pieces: 16384\n"
			"counts: false\n"
			"match: [\"ethertype=0x88b5\", \"ethertype=0x88b6\"]\n")
			 ->layout;

	assert_int_equal(layout->base, IMAGE_BASE_FRAME);
	assert_int_equal(layout->stream.little, 1);
	assert_int_equal(layout->bytes, 134217728);
	assert_int_equal(layout->number_modulus, UINT64_C(1) << 54);
	assert_int_equal(layout->place_terms, 2);
	assert_int_equal(layout->payload_more.times, 4);
	assert_int_equal(layout->length.bytes, 2);
	assert_int_equal(layout->known, 1);
	assert_int_equal(layout->counts, 0);
	/* the highest bit of byte 20 */
	assert_int_equal(layout->end_mark.at, 20);
	assert_int_equal(layout->end_mark.bytes, 1);
	assert_int_equal(layout->end_mark.shift, 7);
	assert_int_equal(layout->end_mark.mask, 1);
	assert_int_equal(layout->match.count, 2);
	assert_int_equal(layout->match.rule[1].ethertype, 0x88b6);
	/* 28 bits of a word behind 4 others */
	layout = &loaded("{number: {at: 0, bits: 4}, place: {at: 0, bit: 4, bits: 28}, bytes: 4K, "
			 "piece: 64}")
			  ->layout;
	assert_int_equal(layout->place[0].bytes, 4);
	assert_int_equal(layout->place[0].shift, 0);
	assert_int_equal(layout->place[0].mask, 0xfffffff);
	assert_int_equal(layout->number.shift, 4);
	assert_int_equal(layout->number_modulus, 16);
	assert_int_equal(layout->late, 4);
	/* rows: the padding behind the last is of the image or not */
	layout = &loaded("{number: {at: 0, bytes: 2}, place: {at: 2, bytes: 4}, bytes: 4090, "
			 "piece: 64, row: 900, pitch: 1K}")
			  ->layout;
	assert_int_equal(layout->row_pieces, 15);
	assert_int_equal(layout->pieces, 60);
	assert_int_equal(image_piece_bytes(layout, 59), 4);
	assert_int_equal(image_piece_place(layout, 59), 3072 + 14 * 64);
	layout = &loaded("{number: {at: 0, bytes: 2}, place: {at: 2, bytes: 4}, bytes: 3172, "
			 "piece: 64, row: 900, pitch: 1K}")
			  ->layout;
	assert_int_equal(layout->pieces, 47);
	assert_int_equal(image_piece_bytes(layout, 46), 36);
}

/* What is kept is YAML that gives the same again, and is kept as it is. */
static void test_explain(void **state)
{
	static const char *const texts[] = {
		"gvsp,bytes=307200,piece=1364",
		"gvsp,bytes=4096,piece=1024,fill=none,incomplete=drop,full=drop_oldest,linger=0.25",
		"rtp-raw,width=1280,height=720,sampling=RGBA,depth=12,pitch=8192",
		"spead,bytes=1M,number.item=0x1600,number.divide=4096,number.first=3,late=0",
		"gvsp,bytes=384000,piece=1340,convert=mono10p",
		("{number: {at: 0, bytes: 8, little: true, shift: 3, mask: 0xffff, subtract: 5, "
		 "divide: 7, modulo: 900, wrap: 300, first: 10}, index: {at: 9, bytes: 1}, data: "
		 "{payload: 3, piece: 1K, payload_more: {at: 1, bytes: 1}, length: {at: 2, bytes: "
		 "2}}, row: 4K, pitch: 4K, bytes: 16K, end: {mark: {at: 4, bit: 3}, pieces: {at: 5, "
		 "bytes: 2}}, match: [vlan=5, \"dst_ip=fe80::1\"], engine: resident}"),
		("{base: frame, kind: {at: 0, bytes: 1}, data: {kind: 0}, begin: {kind: 255}, number: "
		 "{at: 0, bytes: 8}, bytes: 64, piece: 64, name: one}"),
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const struct image_settings own = *loaded(texts[i]);
		char *text = strdup(gdrcap_config_get(config, "image", 0));

		assert_memory_equal(loaded(text), &own, sizeof(own));
		assert_string_equal(gdrcap_config_get(config, "image", 0), text);
		free(text);
	}
}

/* ---- where it comes from ---- */

#define TINY "{number: {at: 0, bytes: 2}, bytes: 64, piece: 64}"

static void test_lists(void **state)
{
	assert_int_equal(0,
			 yaml("image:\n  - gvsp,bytes=4K,piece=1K\n  - number: {at: 0, bytes: 2}\n"
			      "    bytes: 64\n    piece: 64\n"));
	assert_int_equal(config->settings.images, 2);
	assert_int_equal(config->settings.image[0].layout.parser, IMAGE_PARSER_GVSP);
	assert_int_equal(config->settings.image[1].layout.bytes, 64);
	assert_non_null(gdrcap_config_get(config, "image", 1));
	assert_null(gdrcap_config_get(config, "image", 2));
	assert_int_equal(0, gdrcap_config_add(config, "image", TINY, &error));
	assert_int_equal(0, gdrcap_config_add(config, "image", TINY, &error));
	assert_int_equal(-EINVAL, gdrcap_config_add(config, "image", TINY, &error));
	assert_has(error.text, "image: more than 4 are given");
	assert_int_equal(config->settings.images, 4);
	assert_int_equal(0, set("image", TINY));
	assert_int_equal(config->settings.images, 1);
	assert_int_equal(0, set("image", ""));
	assert_int_equal(config->settings.images, 0);
	assert_int_equal(0, yaml("image: gvsp,bytes=4K,piece=1K\n"));
	assert_int_equal(0, yaml("image: " TINY "\n"));
	assert_int_equal(-EINVAL, yaml("image: []\n"));
	assert_int_equal(-EINVAL, yaml("image: [[]]\n"));
	assert_int_equal(-EINVAL, yaml("port: {number: {at: 0, bytes: 2}}\n"));
}

static void test_file(void **state)
{
	char path[] = "/tmp/gdrcap_image_XXXXXX.yaml", list[sizeof(path) + 32];
	FILE *file = fdopen(mkstemps(path, 5), "w");

	fputs("image:\n  - " TINY "\n  - gvsp,bytes=4K,piece=1K\nmatch: [vlan=5]\n", file);
	fclose(file);
	fresh();
	assert_int_equal(0, set("image", path));
	assert_int_equal(config->settings.images, 2);
	assert_int_equal(config->settings.image[1].match.rule[0].rule.vlan, 5);
	assert_int_equal(config->settings.image[1].layout.match.rule[0].vlan, 5);
	assert_int_equal(config->settings.match.count, 0);
	/* one layout is called as its file is */
	file = fopen(path, "w");
	fputs("image: " TINY "\n", file);
	fclose(file);
	assert_int_equal(0, set("image", path));
	assert_int_equal(0, strncmp(config->settings.image[0].name, "gdrcap_image_", 13));
	assert_null(strchr(config->settings.image[0].name, '.'));

	file = fopen(path, "w");
	fputs("image: " TINY "\nqueues: 2\n", file);
	fclose(file);
	assert_refused(path, "image: '/tmp/gdrcap_image_", "gives queues too");
	file = fopen(path, "w");
	fputs("match: vlan=5\n", file);
	fclose(file);
	assert_refused(path, "image: '/tmp/gdrcap_image_", "has no image:");
	file = fopen(path, "w");
	fprintf(file, "\nimage: %s\n", path);
	fclose(file);
	assert_refused(path, "image: /tmp/gdrcap_image_", ".yaml:2: image: '/tmp/");
	assert_has(error.text, "is neither a preset (gvsp, rtp-raw, spead) nor a map");
	file = fopen(path, "w");
	fputs("image:\n  bytes: 64\n  piece: 0\n", file);
	fclose(file);
	assert_refused(path, "image: /tmp/gdrcap_image_",
		       ".yaml:3: image.piece: '0' is out of range; allowed: 1..9216");
	/* a config file may name a file of images */
	file = fopen(path, "w");
	fputs("image: " TINY "\n", file);
	fclose(file);
	snprintf(list, sizeof(list), "image: [%s, gvsp,]\n", path);
	assert_int_equal(-EINVAL, yaml(list));
	snprintf(list, sizeof(list), "image: [%s]\n", path);
	assert_int_equal(0, yaml(list));
	assert_int_equal(config->settings.images, 1);
	unlink(path);
	assert_refused(path, "image: '/tmp/gdrcap_image_", "there is no such file");
}

/* The page for users has every key, and its YAML loads. */
static void test_documentation(void **state)
{
	char path[4096], page[32768], word[64], *yaml_text;
	FILE *file;

	snprintf(path, sizeof(path), "%.*s/../../docs/images.md",
		 (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__);
	file = fopen(path, "r");
	assert_non_null(file);
	page[fread(page, 1, sizeof(page) - 1, file)] = '\0';
	assert_true(feof(file));
	fclose(file);
	for (enum image_key key = 0; key < IMAGE_KEYS; key++) {
		snprintf(word, sizeof(word),
			 key == IMAGE_KEY_NUMBER_WORD ? "`%s: timestamp`"
			 : key == IMAGE_KEY_END_WORD  ? "`%s: marker`"
						      : "`%s`",
			 image_key_path(key));
		assert_has(page, word);
	}
	for (enum field_key key = 0; key < FIELD_KEYS; key++) {
		snprintf(word, sizeof(word), key == FIELD_KEY_LITTLE ? "`%s: true`" : "`%s`",
			 image_field_key_name(key));
		assert_has(page, word);
	}
	yaml_text = strstr(page, "```yaml\n");
	assert_non_null(yaml_text);
	*strstr(yaml_text + 8, "```") = '\0';
	if (yaml(yaml_text + 8))
		fail_msg("%s", error.text);
	assert_int_equal(config->settings.images, 1);
}

/* ---- with other options ---- */

static int settles(const char *key, const char *value)
{
	memset(&error, 0, sizeof(error));
	if (key)
		assert_int_equal(0, set(key, value));
	return config_settle(config, &settings, &error);
}

static void capture(const char *text)
{
	if (image(text))
		fail_msg("%s", error.text);
	assert_int_equal(0, set("port", "net_null0"));
	assert_int_equal(0, set("consumer", "host"));
}

static void test_together(void **state)
{
	static const struct {
		const char *key, *value, *part;
	} cases[] = {
		{ "consumer", "validate", "image: images are handed to the program's own" },
		{ "split", "64", "split: is of frames, and this assembles images" },
		{ "stale_check", "100", "stale_check: is of frames" },
		{ "batch-times", "true", "consumer.batch_times: is of frames" },
		{ "save", "/tmp/a", "save: is of frames" },
		{ "save_damaged", "/tmp/a", "save_damaged: is of frames" },
		{ "expect", "/tmp/a", "expect: is of frames" },
		{ "pattern", "prbs7", "pattern.name: is of frames" },
		{ "sequence-offset", "14", "custom.sequence_offset: is of frames" },
		{ "sequence-bytes", "4", "custom.sequence_bytes: is of frames" },
		{ "sequence-order", "little", "custom.sequence_order: is of frames" },
		{ "sequence-start", "4", "custom.sequence_start: is of frames" },
		{ "sequence-step", "4", "custom.sequence_step: is of frames" },
		{ "stream-offset", "4", "custom.stream_offset: is of frames" },
		{ "stream-bytes", "2", "custom.stream_bytes: is of frames" },
		{ "format", "custom", "frame.format: custom describes frames" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		capture("gvsp,bytes=4K,piece=1K");
		if (!settles(cases[i].key, cases[i].value))
			fail_msg("accepted: %s", cases[i].key);
		assert_has(error.text, cases[i].part);
	}
	/* our placing workers have these */
	capture("gvsp,bytes=4K,piece=1K");
	assert_int_equal(0, settles("blocks", "4"));
	assert_int_equal(0, settles("watchdog", "4"));
	assert_int_equal(0, settles("consumer", "gpu"));
	/* nothing received */
	assert_int_equal(0, set("tx_port", "net_null1"));
	assert_int_equal(0, settles(NULL, NULL));
	assert_int_equal(0, set("port", NULL));
	assert_int_equal(-EINVAL, settles("port", NULL));
	assert_has(error.text, "image: is of frames received");
}

static void test_match(void **state)
{
	/* the session's rules are those of layouts without any of their own */
	capture("{number: {at: 0, bytes: 2}, bytes: 64, piece: 64, match: [dst_port=1]}");
	assert_int_equal(0, gdrcap_config_add(config, "image", "gvsp,bytes=4K,piece=1K", &error));
	assert_int_equal(0, settles("match", "dst_port=7"));
	assert_int_equal(settings.image[0].layout.match.count, 1);
	assert_int_equal(settings.image[0].layout.match.rule[0].dst_port, 1);
	assert_int_equal(settings.image[1].layout.match.count, 1);
	assert_int_equal(settings.image[1].layout.match.rule[0].dst_port, 7);
	/* cards are given the rules of all */
	assert_int_equal(settings.match.count, 2);
	assert_string_equal(settings.match.rule[0].text, "dst_port=1");
	assert_int_equal(settings.layout.match.count, 2);
	assert_int_equal(settings.layout.match.rule[1].dst_port, 7);
	assert_string_equal(settings.image[0].name, "image0");
	assert_string_equal(settings.image[1].name, "gvsp");
	assert_int_equal(0, settles("match", "dst_port=7,vlan=5"));
	assert_int_equal(-EINVAL, settles("match", "dst_port=1"));
	assert_has(error.text, "image: a frame can be of 'image0' and of 'gvsp'");
	/* or none, where one of them takes every frame, or there are too many */
	capture("{base: frame, number: {at: 0, bytes: 2}, bytes: 64, piece: 64, match: "
		"[ethertype=0x88b5]}");
	assert_int_equal(0, gdrcap_config_add(config, "image", "gvsp,bytes=4K,piece=1K", &error));
	assert_int_equal(0, settles(NULL, NULL));
	assert_int_equal(settings.match.count, 0);
	assert_int_equal(settings.layout.match.count, 0);
	capture("{number: {at: 0, bytes: 2}, bytes: 64, piece: 64, match: [vlan=1, vlan=2, vlan=3, "
		"vlan=4, vlan=5, vlan=6, vlan=7, vlan=8]}");
	assert_int_equal(0, settles(NULL, NULL));
	assert_int_equal(settings.match.count, 8);
	assert_int_equal(0, gdrcap_config_add(config, "image", "gvsp,bytes=4K,piece=1K", &error));
	assert_int_equal(0, settles("match", "vlan=9"));
	assert_int_equal(settings.match.count, 0);
	/* a rule that no frame of the layout agrees with */
	capture("{number: {at: 0, bytes: 2}, bytes: 64, piece: 64, match: [ethertype=0x88b5]}");
	assert_int_equal(-EINVAL, settles(NULL, NULL));
	assert_has(error.text, "no frame of EtherType 0x88b5 has UDP");
	capture("gvsp,bytes=4K,piece=1K");
	assert_int_equal(0, gdrcap_config_add(config, "image", "gvsp,bytes=4K,piece=1K", &error));
	assert_int_equal(-EINVAL, settles(NULL, NULL));
	assert_has(error.text, "image: two are called 'gvsp'");
}

/* Layouts that a frame could be of both, and such that none can. */
static void test_meet(void **state)
{
	static const struct {
		const char *a, *b;
		int meet;
	} cases[] = {
		{ "base: udp", "base: udp", 1 },
		{ "base: udp", "base: frame", 1 },
		{ "base: udp", "base: frame, match: [ethertype=0x88b5]", 0 },
		{ "base: udp", "base: frame, match: [ethertype=0x0800]", 1 },
		{ "base: udp, match: [vlan=1]", "base: udp, match: [vlan=2]", 0 },
		{ "base: udp, match: [vlan=1, vlan=2]", "base: udp, match: [vlan=3, vlan=2]", 1 },
		{ "base: udp, match: [vlan=1]", "base: udp, match: [\"dst_port=2\"]", 1 },
		{ "base: udp, match: [vlan=0]", "base: udp, match: [vlan=2]", 0 },
		{ "match: [src_port=1]", "match: [src_port=2]", 0 },
		{ "match: [dst_port=1]", "match: [dst_port=2]", 0 },
		{ "match: [src_port=1]", "match: [dst_port=2]", 1 },
		{ "match: [dst_ip=10.0.0.0/8]", "match: [dst_ip=10.1.0.0/16]", 1 },
		{ "match: [dst_ip=10.0.0.0/16]", "match: [dst_ip=10.1.0.0/16]", 0 },
		{ "match: [src_ip=10.0.0.1]", "match: [src_ip=10.0.0.2]", 0 },
		{ "match: [src_ip=10.0.0.1]", "match: [\"dst_ip=fe80::1\"]", 0 },
		{ "match: [src_ip=10.0.0.1]", "match: [ethertype=0x86dd]", 0 },
		{ "match: [src_ip=10.0.0.1]", "match: [ethertype=0x0800]", 1 },
		{ "match: [\"src_ip=fe80::1\"]", "match: [\"src_ip=fe80::2\"]", 0 },
		{ "match: [\"src_mac=02:00:00:00:00:01\"]",
		  "match: [\"src_mac=02:00:00:00:00:02\"]", 0 },
		{ "match: [\"dst_mac=02:00:00:00:00:01\"]",
		  "match: [\"dst_mac=02:00:00:00:00:02\"]", 0 },
		{ "match: [\"dst_mac=02:00:00:00:00:01\"]",
		  "match: [\"dst_mac=02:00:00:00:00:01\"]", 1 },
		{ "base: frame, match: [ethertype=0x88b5]", "match: [dst_port=1]", 0 },
		{ "base: frame, match: [ethertype=0x88b5]", "base: frame, match: [src_ip=10.0.0.1]",
		  0 },
		{ "base: frame, match: [ethertype=0x88b5]", "base: frame, match: [dst_port=4]", 0 },
		{ "kind: {at: 9, bytes: 1}, data: {kind: 1}",
		  "kind: {at: 9, bytes: 1}, data: {kind: 2}", 0 },
		{ "kind: {at: 9, bytes: 1}, data: {kind: 1}",
		  "kind: {at: 8, bytes: 1}, data: {kind: 2}", 1 },
		{ "kind: {at: 9, bytes: 1}, data: {kind: 1}, begin: {kind: 3}",
		  "kind: {at: 9, bytes: 1}, data: {kind: 2}, end: {kind: 3}", 1 },
		{ "kind: {at: 9, bytes: 1}, data: {kind: 1}",
		  "base: frame, kind: {at: 9, bytes: 1}, data: {kind: 2}", 1 },
	};
	char text[2][256];

	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		const char *a = i % 2 ? cases[i / 2].b : cases[i / 2].a;
		const char *b = i % 2 ? cases[i / 2].a : cases[i / 2].b;

		snprintf(text[0], sizeof(text[0]),
			 "{number: {at: 0, bytes: 2}, bytes: 64, piece: 64, %s}", a);
		snprintf(text[1], sizeof(text[1]),
			 "{number: {at: 0, bytes: 2}, bytes: 64, piece: 64, %s}", b);
		capture(text[0]);
		if (gdrcap_config_add(config, "image", text[1], &error))
			fail_msg("%s", error.text);
		if (settles(NULL, NULL) != (cases[i / 2].meet ? -EINVAL : 0))
			fail_msg("%s | %s: %s", a, b, error.text);
		if (cases[i / 2].meet)
			assert_has(error.text, "image: a frame can be of");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gvsp),	 cmocka_unit_test(test_rtp_raw),
		cmocka_unit_test(test_spead),	 cmocka_unit_test(test_packets),
		cmocka_unit_test(test_fields),	 cmocka_unit_test(test_explain),
		cmocka_unit_test(test_lists),	 cmocka_unit_test(test_file),
		cmocka_unit_test(test_together), cmocka_unit_test(test_match),
		cmocka_unit_test(test_meet),	 cmocka_unit_test(test_documentation),
	};
	const int ret = cmocka_run_group_tests(tests, NULL, NULL);

	gdrcap_config_free(config);
	return ret;
}
