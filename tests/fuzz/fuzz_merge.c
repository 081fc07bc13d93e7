/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer: any bytes as the files of gdrcap merge, which lines "%%" part: summaries, JSON lines, ranges. What is
 * said of them is whole text that no terminal obeys, JSON that adds up, and the same a second time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "merge/merge.h"

#define FILES_MAX 4u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char parted[] = "\n%%\n";

static void expect(int right, const char *what)
{
	if (!right) {
		fprintf(stderr, "%s\n", what);
		abort();
	}
}

static void is_text(const char *text, size_t bytes, const char *what)
{
	expect(memchr(text, '\0', bytes) != NULL && text[0], what);
}

static void input_check(const struct merge_input *input)
{
	expect(input->state != MERGE_READ || input->sends || input->receives,
	       "it sends, or receives");
	if (input->state != MERGE_READ) {
		is_text(input->why, sizeof(input->why), "why it was not read");
		expect(!input->streams && !input->errors, "nothing of it is left");
	}
	for (uint32_t i = 0; i < input->stream_count; i++) {
		const struct merge_ranges *ranges = &input->streams[i].ranges;
		uint64_t numbers = 0, work = 1u << 20;

		expect(input->streams[i].id < MERGE_STREAM_IDS, "a stream's id");
		if (ranges->known && merge_unite(ranges, 1, &work, &numbers) == 0)
			expect(numbers == input->streams[i].counts.of[MERGE_VALID].count +
						  input->streams[i].counts.of[MERGE_DAMAGED].count,
			       "as many numbers as frames");
	}
}

/* Where all of it is known. */
static void adds_up(const struct merge_counts *counts)
{
	const struct merge_count *of = counts->of;

	for (int i = 0; i < MERGE_COUNTS; i++)
		if (!of[i].known)
			return;
	expect((unsigned __int128)of[MERGE_VALID].count + of[MERGE_DAMAGED].count +
			       of[MERGE_LOST].count ==
		       of[MERGE_SENT].count,
	       "sent is valid, damaged or lost");
	expect((unsigned __int128)of[MERGE_VALID].count + of[MERGE_DAMAGED].count +
			       of[MERGE_DUPLICATE].count + of[MERGE_FILTERED].count ==
		       of[MERGE_RECEIVED].count,
	       "received is valid, damaged, duplicate or filtered");
}

static char *printed(const struct merge *merge, int json, size_t *bytes)
{
	char *text = NULL;
	FILE *to = open_memstream(&text, bytes);

	if (!to)
		abort();
	if (json)
		expect(merge_print_json(to, merge) == 0, "it is printed");
	else
		merge_print_text(to, merge, false);
	fclose(to);
	return text;
}

static void merge_check(const struct merge *merge)
{
	json_error_t error;
	size_t bytes;
	char *text = printed(merge, 0, &bytes);
	json_t *object;

	for (size_t i = 0; i < bytes; i++)
		expect((uint8_t)text[i] >= 0x20 || text[i] == '\n', "a terminal obeys it");
	expect(bytes && text[bytes - 1] == '\n', "whole lines");
	free(text);
	text = printed(merge, 1, &bytes);
	object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
	expect(json_is_object(object), "JSON");
	expect((merge->status == REPORT_EXIT_OK) == !merge->error_count, "a reason for failing");
	json_decref(object);
	free(text);
	adds_up(&merge->total);
	for (uint32_t i = 0; i < merge->stream_count; i++)
		adds_up(&merge->streams[i].counts);
	if (merge->status == REPORT_EXIT_OK)
		expect(merge->total.of[MERGE_SENT].known &&
			       merge->total.of[MERGE_SENT].count ==
				       merge->total.of[MERGE_VALID].count,
		       "a pass has each frame");
}

/* A copy of its own size, so that the sanitizer sees what is read behind it. */
static void give(struct merge_input *input, const char *text, size_t bytes)
{
	char *copy = malloc(bytes ? bytes : 1);

	if (!copy)
		abort();
	memcpy(copy, text, bytes);
	input->file = "fuzz";
	if (merge_text(input, copy, bytes) != 0)
		abort();
	free(copy);
	input_check(input);
}

static uint32_t give_all(struct merge_input *inputs, const char *text, size_t bytes)
{
	uint32_t count = 0;

	while (count < FILES_MAX) {
		const char *end = memmem(text, bytes, parted, sizeof(parted) - 1);
		const size_t length = end ? (size_t)(end - text) : bytes;

		give(&inputs[count++], text, length);
		if (!end)
			break;
		text = end + sizeof(parted) - 1;
		bytes -= length + sizeof(parted) - 1;
	}
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct merge merge;
	static struct merge_input inputs[FILES_MAX];

	memset(&merge, 0, sizeof(merge));
	memset(inputs, 0, sizeof(inputs));
	merge.inputs = inputs;
	merge.input_count = give_all(inputs, (const char *)data, bytes);
	if (merge_join(&merge) == 0)
		merge_check(&merge);
	for (uint32_t i = 0; i < merge.input_count; i++)
		merge_input_free(&inputs[i]);
	merge_free(&merge);
	return 0;
}
