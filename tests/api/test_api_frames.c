/* SPDX-License-Identifier: BSD-3-Clause */
/* What the caller's own consumer is told of frames: rules, gaps, lengths, tags. */
#include "api.h"

#include <stdlib.h>
#include <unistd.h>

#define FRAMES_MAX 64u

/* A frame of a custom layout: EtherType 0x1234, stream id at 14, sequence number at 16, both of two bytes,
 * big-endian. */
struct custom {
	uint16_t stream, number;
	uint16_t vlan; /* 0: untagged */
};

static void custom_write(char *path, const struct custom *frames, uint32_t count)
{
	static const uint8_t header[24] = { 0xd4, 0xc3,	       0xb2, 0xa1, 2, 0, 4,
					    0,	  [16] = 0xff, 0xff, 0,	   0, 1 };
	FILE *file = fdopen(mkstemp(path), "w");

	assert_non_null(file);
	assert_int_equal(fwrite(header, sizeof(header), 1, file), 1);
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t tag = frames[i].vlan ? 4 : 0, bytes = 60 + tag + i;
		const uint32_t record[] = { 100, i, bytes, bytes };
		uint8_t frame[60 + 4 + FRAMES_MAX] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1 };
		uint8_t *at = frame + 12;

		if (tag) {
			*at++ = 0x81;
			*at++ = 0;
			*at++ = (uint8_t)(0x20 | frames[i].vlan >> 8);
			*at++ = (uint8_t)frames[i].vlan;
		}
		*at++ = 0x12;
		*at++ = 0x34;
		*at++ = (uint8_t)(frames[i].stream >> 8);
		*at++ = (uint8_t)frames[i].stream;
		*at++ = (uint8_t)(frames[i].number >> 8);
		*at++ = (uint8_t)frames[i].number;
		assert_int_equal(fwrite(record, sizeof(record), 1, file), 1);
		assert_int_equal(fwrite(frame, bytes, 1, file), 1);
	}
	assert_int_equal(fclose(file), 0);
}

static void custom_config(struct gdrcap_config **config, const char *path, uint64_t frames)
{
	api_config(config, "host", frames);
	api_unset(*config, "tx_port");
	api_unset(*config, "pattern");
	api_set(*config, "port", "net_pcap0,rx_pcap=%s", path);
	api_set(*config, "frame.format", "custom");
	api_set(*config, "custom.stream_offset", "14");
	api_set(*config, "custom.stream_bytes", "2");
	api_set(*config, "custom.sequence_offset", "16");
	api_set(*config, "custom.sequence_bytes", "2");
}

struct seen {
	struct gdrcap_gap gap[FRAMES_MAX]; /* their frame: of all */
	uint32_t gaps, frames, batches;
	uint32_t bytes[FRAMES_MAX], wire_bytes[FRAMES_MAX];
	int vlan[FRAMES_MAX];
};

/* All that a session's first queue has, until `frames` came or all of the run did. */
static void see(struct gdrcap_session *session, struct seen *seen, uint32_t frames, int gaps)
{
	struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
	struct gdrcap_gap gap[FRAMES_MAX];
	const struct gdrcap_batch *batch;

	memset(seen, 0, sizeof(*seen));
	while (seen->frames < frames) {
		int n = gdrcap_wait(queue, &batch, 1, -1);

		assert_int_equal(n, 1);
		assert_int_equal(batch->seq, seen->batches++);
		assert_in_range(batch->count, 1, FRAMES_MAX - seen->frames);
		n = gaps ? gdrcap_get_gaps(queue, batch, gap, FRAMES_MAX, sizeof(gap[0])) : 0;
		assert_true(n >= 0);
		for (int i = 0; i < n; i++) {
			gap[i].frame += seen->frames;
			seen->gap[seen->gaps++] = gap[i];
		}
		for (uint32_t i = 0; i < batch->count; i++, seen->frames++) {
			seen->bytes[seen->frames] = gdrcap_frame_bytes(batch, i);
			seen->wire_bytes[seen->frames] = gdrcap_frame_wire_bytes(batch, i);
			seen->vlan[seen->frames] = gdrcap_frame_vlan(batch, i);
			assert_null(gdrcap_frame_head(batch, i));
			assert_int_equal(gdrcap_frame_head_bytes(batch, i), 0);
		}
		gdrcap_release(queue, &batch, 1);
	}
}

static void gap_is(const struct gdrcap_gap *gap, uint32_t stream, uint32_t frame, uint64_t first,
		   uint64_t count, uint32_t late)
{
	assert_int_equal(gap->stream, stream);
	assert_int_equal(gap->frame, frame);
	assert_true(gap->first == first && gap->count == count);
	assert_int_equal(gap->late, late);
}

/* Two streams: one with holes and a late frame, one that lacks the largest number and 0, which
 * follows it. */
static void gaps_are_told(void **state)
{
	static const struct custom frames[] = {
		{ 1, 5, 0 }, { 1, 6, 0 }, { 7, 65534, 0 }, { 1, 9, 0 },	 { 1, 7, 0 },
		{ 1, 7, 0 }, { 7, 1, 0 }, { 7, 2, 0 },	   { 1, 10, 0 },
	};
	const uint32_t count = sizeof(frames) / sizeof(frames[0]);
	char path[] = "/tmp/gdrcap_test_api_XXXXXX";
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct seen seen;

	(void)state;
	custom_write(path, frames, count);
	custom_config(&config, path, count);
	session = api_create(config);
	api_start(session);
	see(session, &seen, count, 1);
	assert_int_equal(seen.gaps, 4);
	gap_is(&seen.gap[0], 1, 3, 7, 2, 0);
	gap_is(&seen.gap[1], 1, 4, 7, 1, 1);
	gap_is(&seen.gap[2], 1, 5, 7, 1, 1);
	gap_is(&seen.gap[3], 7, 6, 65535, 2, 0);
	api_wait_end(session);
	api_stop(session);
	gdrcap_destroy(session);
	unlink(path);
}

/* Our own frames over a wire in this process begin with 0: what the first batch had is missing to who did
 * not look at it, and nothing else. */
static void own_frames_begin_with_0(void **state)
{
	const struct gdrcap_batch *batch;
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_gap gap[256];
	struct gdrcap_queue *queue;
	uint64_t frames = 0, first = 0, missing = 0;

	(void)state;
	api_config(&config, "host", 5000);
	api_set(config, "streams", "3");
	session = api_create(config);
	queue = gdrcap_get_queue(session, 0);
	api_start(session);
	while (frames < 5000) {
		int n = 0;

		assert_int_equal(gdrcap_wait(queue, &batch, 1, -1), 1);
		assert_int_equal(
			gdrcap_get_gaps(queue, batch, gap, batch->count - 1, sizeof(gap[0])),
			-EINVAL);
		if (frames)
			n = gdrcap_get_gaps(queue, batch, gap, 256, sizeof(gap[0]));
		else
			first = batch->count;
		assert_true(n >= 0);
		for (int i = 0; i < n; i++) {
			assert_true(gap[i].first == 0);
			missing += gap[i].count;
		}
		frames += batch->count;
		gdrcap_release(queue, &batch, 1);
	}
	assert_true(first > 0 && missing == first);
	api_wait_end(session);
	api_stop(session);
	gdrcap_destroy(session);
}

/* Rules choose what the caller gets, and the rest is counted; whole batches of the rest are no batches. */
static void rules_choose(void **state)
{
	struct custom frames[FRAMES_MAX];
	char path[] = "/tmp/gdrcap_test_api_XXXXXX";
	const struct gdrcap_batch *batch;
	struct gdrcap_session *session;
	struct gdrcap_summary summary;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_counts counts;
	struct seen seen;

	(void)state;
	for (uint32_t i = 0; i < FRAMES_MAX; i++)
		frames[i] = (struct custom){ 1, (uint16_t)i, i % 3 == 1 ? 5 : i >= 32 ? 4 : 0 };
	custom_write(path, frames, FRAMES_MAX);
	custom_config(&config, path, FRAMES_MAX);
	api_set(config, "burst", "2");
	api_set(config, "match", "vlan=5");
	session = api_create(config);
	api_start(session);
	see(session, &seen, 21, 0);
	for (uint32_t i = 0; i < 21; i++) {
		assert_int_equal(seen.vlan[i], 5);
		assert_int_equal(seen.bytes[i], 64 + 3 * i + 1);
		assert_int_equal(seen.wire_bytes[i], 68 + 3 * i + 1);
	}
	api_wait_end(session);
	api_stop(session);
	/* What comes after the last that is meant is counted when it is polled. */
	assert_int_equal(gdrcap_poll(gdrcap_get_queue(session, 0), &batch, 1), -ESHUTDOWN);
	assert_int_equal(gdrcap_get_summary(session, &summary, sizeof(summary)), 0);
	assert_true(summary.total.received == FRAMES_MAX);
	assert_true(summary.total.filtered == FRAMES_MAX - 21);
	assert_int_equal(gdrcap_get_queue_counts(session, 0, &counts, sizeof(counts)), 0);
	assert_true(counts.filtered == FRAMES_MAX - 21);
	gdrcap_destroy(session);
	/* Without them all come, the untagged too. */
	api_unset(config, "match");
	session = api_create(config);
	api_start(session);
	see(session, &seen, FRAMES_MAX, 0);
	for (uint32_t i = 0; i < FRAMES_MAX; i++)
		assert_int_equal(seen.vlan[i], frames[i].vlan ? frames[i].vlan : -1);
	api_wait_end(session);
	api_stop(session);
	gdrcap_destroy(session);
	/* A running kernel gets all that comes: nobody chooses for it. */
	api_config(&config, "gpu", FRAMES_MAX);
	api_set(config, "match", "vlan=5");
	api_create_fails(config, -ENOTSUP, "match: port ring:test");
	unlink(path);
}

/* Where nothing says which frame of its stream it is. */
static void no_numbers_no_gaps(void **state)
{
	static const struct custom frames[] = { { 1, 5, 0 } };
	char path[] = "/tmp/gdrcap_test_api_XXXXXX";
	const struct gdrcap_batch *batch;
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_queue *queue;
	struct gdrcap_gap gap[1];

	(void)state;
	custom_write(path, frames, 1);
	custom_config(&config, path, 1);
	api_unset(config, "custom.sequence_bytes");
	api_unset(config, "custom.sequence_offset");
	session = api_create(config);
	queue = gdrcap_get_queue(session, 0);
	api_start(session);
	assert_int_equal(gdrcap_wait(queue, &batch, 1, -1), 1);
	assert_int_equal(gdrcap_get_gaps(queue, batch, gap, 1, sizeof(gap[0])), -EINVAL);
	assert_int_equal(gdrcap_get_gaps(NULL, batch, gap, 1, sizeof(gap[0])), -EINVAL);
	assert_int_equal(gdrcap_get_gaps(queue, NULL, gap, 1, sizeof(gap[0])), -EINVAL);
	assert_int_equal(gdrcap_get_gaps(queue, batch, NULL, 1, sizeof(gap[0])), -EINVAL);
	gdrcap_release(queue, &batch, 1);
	api_stop(session);
	gdrcap_destroy(session);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gaps_are_told),
		cmocka_unit_test(own_frames_begin_with_0),
		cmocka_unit_test(rules_choose),
		cmocka_unit_test(no_numbers_no_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
