/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer: any bytes as a pcap or pcapng file; the first byte may put a good head before them,
 * and a good record before each stretch of them, so that no seeds are needed. What is read is whole
 * and in range, twice the same; its frames, in memory, make a table in which each is found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/file_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define FRAMES_MAX 1024u
#define DATA_MAX ((size_t)1 << 18)

struct loaded {
	struct frame_store_view view;
	struct store_frame *frames;
	uint8_t *data;
	uint64_t time_sum;
	size_t used;
	int end; /* what the last call said */
};

static void expect(int right, const char *what)
{
	if (!right) {
		fprintf(stderr, "%s\n", what);
		abort();
	}
}

static void is_text(const struct gdrcap_error *error, int code)
{
	expect(code < 0 && error->code == code, "the error's code");
	expect(memchr(error->text, '\0', sizeof(error->text)) != NULL && error->text[0],
	       "the error's text");
}

/* All frames, as far as there is room. */
static void load(struct loaded *loaded, struct pcap_file *file)
{
	struct gdrcap_error error = { 0 };
	struct pcap_frame frame;

	memset(&loaded->view, 0, sizeof(loaded->view));
	loaded->used = 0;
	loaded->time_sum = 0;
	while ((loaded->end = pcap_file_next(file, &frame, &error)) > 0) {
		const size_t room = (size_t)store_pieces(frame.len) * STORE_PIECE_BYTES;

		expect(frame.len >= 14 && frame.len <= 9212, "a length in range");
		if (loaded->view.count == FRAMES_MAX || room > DATA_MAX - loaded->used)
			break;
		loaded->frames[loaded->view.count++] = (struct store_frame){
			.at = loaded->used,
			.len = frame.len,
		};
		memcpy(loaded->data + loaded->used, frame.bytes, frame.len);
		memset(loaded->data + loaded->used + frame.len, 0, room - frame.len);
		loaded->used += room;
		loaded->time_sum += frame.time_ns;
	}
	if (loaded->end < 0)
		is_text(&error, loaded->end);
	loaded->view.data = loaded->data;
	loaded->view.frames = loaded->frames;
	loaded->view.data_bytes = loaded->used;
}

static void is_found(const struct frame_store_view *view, uint32_t index)
{
	const struct store_frame *frame = &view->frames[index];
	const uint32_t pieces = store_pieces(frame->len);
	const struct store_bucket *bucket;
	uint64_t sum[STORE_PARTS] = { 0 };

	expect(frame->class_first <= index, "a class's first frame");
	expect(view->frames[frame->class_first].class_first == frame->class_first, "a class");
	for (uint32_t i = 0; i < pieces; i++) {
		uint32_t word[4];

		memcpy(word, view->data + frame->at + (size_t)i * 16, sizeof(word));
		sum[store_part_of(i, pieces)] += store_hash_piece(i, word);
	}
	bucket = store_find(view, store_hash_frame(frame->len, sum));
	expect(bucket && (bucket->shared || bucket->frame == frame->class_first + 1),
	       "a frame is found");
	for (uint32_t part = 0; part < STORE_PARTS; part++) {
		bucket = store_find(view, store_hash_part(part, frame->len, sum[part]));
		expect(bucket && (bucket->shared || bucket->frame == frame->class_first + 1),
		       "a part is found");
	}
}

static void index_of(struct loaded *loaded)
{
	struct store_bucket *buckets;

	if (file_frames_index(&loaded->view, loaded->frames, &buckets) < 0)
		return;
	for (uint32_t i = 0; i < loaded->view.count; i++)
		is_found(&loaded->view, i);
	free(buckets);
}

static size_t copy(uint8_t *to, size_t at, const void *from, size_t bytes)
{
	memcpy(to + at, from, bytes);
	return at + bytes;
}

/* Each stretch: a byte that says how long it is, of those left, and the frame's first bytes. */
static size_t records(uint8_t *to, size_t at, const uint8_t *data, size_t bytes)
{
	while (bytes > 2) {
		const uint32_t len = 14 + data[0] % 64u * (data[1] & 1 ? 1 : 144);
		const uint32_t given = len < bytes - 2 ? len : (uint32_t)bytes - 2;
		const uint32_t head[4] = { data[1], data[1], len, len };

		if (at + sizeof(head) + len > DATA_MAX)
			break;
		at = copy(to, at, head, sizeof(head));
		at = copy(to, at, data + 2, given);
		memset(to + at, 0, len - given);
		at += len - given;
		data += 2 + given;
		bytes -= 2 + given;
	}
	return at;
}

/* The file that the fuzzer's bytes mean; `to` has room for DATA_MAX. */
static size_t compose(uint8_t *to, const uint8_t *data, size_t bytes)
{
	static const uint32_t pcap[6] = { 0xa1b2c3d4, 4 << 16 | 2, 0, 0, 65535, 1 };
	static const uint32_t pcapng[12] = { 0x0a0d0d0a, 28, 0x1a2b3c4d, 1, UINT32_MAX, UINT32_MAX,
					     28,	 1,  20,	 1, 65535,	20 };
	const uint8_t how = data[0];
	size_t at = 0;

	data++;
	bytes--;
	if (bytes > DATA_MAX / 2)
		bytes = DATA_MAX / 2;
	if ((how & 3) == 1 || (how & 3) == 3)
		at = copy(to, at, pcap, sizeof(pcap));
	else if ((how & 3) == 2)
		at = copy(to, at, pcapng, sizeof(pcapng));
	return (how & 3) == 3 ? records(to, at, data, bytes) : copy(to, at, data, bytes);
}

static void play(struct loaded *loaded, FILE *stream)
{
	struct gdrcap_error error = { 0 };
	struct pcap_file *file;
	uint64_t time_sum;
	uint32_t count;
	int ret = pcap_file_open(&file, "fuzz", stream, &error);

	if (ret < 0) {
		is_text(&error, ret);
		return;
	}
	load(loaded, file);
	count = loaded->view.count;
	time_sum = loaded->time_sum;
	ret = loaded->end;
	expect(pcap_file_rewind(file, &error) == 0, "opened again");
	load(loaded, file);
	expect(loaded->view.count == count && loaded->time_sum == time_sum && loaded->end == ret,
	       "the same a second time");
	index_of(loaded);
	pcap_file_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct loaded loaded = { 0 };
	uint8_t *whole;
	FILE *stream;
	size_t size;

	if (bytes == 0)
		return 0;
	whole = malloc(DATA_MAX);
	loaded.frames = calloc(FRAMES_MAX, sizeof(*loaded.frames));
	loaded.data = malloc(DATA_MAX);
	if (!whole || !loaded.frames || !loaded.data)
		abort();
	size = compose(whole, data, bytes);
	stream = size ? fmemopen(whole, size, "r") : NULL;
	if (stream)
		play(&loaded, stream);
	free(whole);
	free(loaded.frames);
	free(loaded.data);
	return 0;
}
