/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads from the caller's own memory: what is refused, what is in flight, what comes. */
#include "api_send_pipe.h"

static void register_fails(struct gdrcap_session *session, void *at, uint64_t bytes,
			   enum gdrcap_memory kind, int code, const char *part)
{
	struct gdrcap_error error = { 0 };

	api_failed(gdrcap_tx_register(session, at, bytes, kind, &error), code, &error, part);
	assert_int_equal(gdrcap_tx_register(session, at, bytes, kind, NULL), code);
}

static void register_memory(struct pipe *pipe, uint64_t bytes)
{
	assert_int_equal(
		gdrcap_tx_register(pipe->session, pipe->memory, bytes, GDRCAP_MEMORY_HOST, NULL),
		0);
}

/* A frame of 18 bytes in its slot and 82 at `at` of the memory. */
static void in_two(const struct pipe *pipe, struct gdrcap_tx_frame *frame, uint32_t at)
{
	assert_int_equal(gdrcap_tx_reserve(pipe->tx, frame, 1), 1);
	for (uint32_t i = 0; i < 18; i++)
		frame->data[i] = (uint8_t)(0xf0 + i);
	frame->bytes = 18;
	frame->flags = GDRCAP_TX_TELL;
	frame->payload = pipe->memory + at;
	frame->payload_bytes = 82;
}

/* It came, whole. */
static void came_in_two(struct pipe *pipe, uint32_t at)
{
	struct gdrcap_queue *queue = gdrcap_get_queue(pipe->session, 0);
	const struct gdrcap_batch *batch;
	const uint8_t *data;

	assert_int_equal(gdrcap_wait(queue, &batch, 1, -1), 1);
	assert_int_equal(batch->count, 1);
	assert_int_equal(gdrcap_frame_bytes(batch, 0), 100);
	data = gdrcap_frame(batch, 0);
	for (uint32_t i = 0; i < 18; i++)
		assert_int_equal(data[i], (uint8_t)(0xf0 + i));
	assert_memory_equal(data + 18, pipe->memory + at, 82);
	gdrcap_release(queue, &batch, 1);
}

static void told(struct pipe *pipe, int code)
{
	struct gdrcap_tx_done done;
	int n;

	do {
		n = gdrcap_tx_poll(pipe->tx, &done, 1);
		assert_true(n >= 0);
	} while (n == 0);
	assert_int_equal(done.code, code);
}

/* Memory that cannot be registered: of no kind, out of range, there already, the session's own. */
static void test_memory_refused(void **state)
{
	struct gdrcap_tx_frame frame;
	struct pipe pipe;
	uint8_t *memory, *slots;

	pipe_open(&pipe);
	memory = pipe.memory;
	in_two(&pipe, &frame, 0);
	slots = (uint8_t *)((uintptr_t)frame.data & ~(uintptr_t)65535);
	register_fails(pipe.session, memory, MEMORY_BYTES, GDRCAP_MEMORY_DEVICE, -ENOTSUP,
		       "port net_memif1");
	register_fails(pipe.session, memory, MEMORY_BYTES, GDRCAP_MEMORY_AUTO, -EINVAL,
		       "device, pinned");
	register_fails(pipe.session, memory + 4096, 65536, GDRCAP_MEMORY_HOST, -EINVAL, "64 KiB");
	register_fails(pipe.session, memory, 65537, GDRCAP_MEMORY_HOST, -EINVAL, "64 KiB");
	register_fails(pipe.session, memory, 0, GDRCAP_MEMORY_HOST, -EINVAL, "64 KiB");
	register_fails(pipe.session, memory, UINT64_MAX - 65535, GDRCAP_MEMORY_HOST, -EINVAL,
		       "the address space");
	register_fails(pipe.session, NULL, 65536, GDRCAP_MEMORY_HOST, -EINVAL, "64 KiB");
	/* It overlaps what is there: behind, around, before, within. */
	assert_int_equal(
		gdrcap_tx_register(pipe.session, memory + 65536, 131072, GDRCAP_MEMORY_HOST, NULL),
		0);
	register_fails(pipe.session, memory + 131072, 131072, GDRCAP_MEMORY_HOST, -EEXIST,
		       "already");
	register_fails(pipe.session, memory, MEMORY_BYTES, GDRCAP_MEMORY_HOST, -EEXIST, "already");
	register_fails(pipe.session, memory, 131072, GDRCAP_MEMORY_HOST, -EEXIST, "already");
	register_fails(pipe.session, memory + 131072, 65536, GDRCAP_MEMORY_HOST, -EEXIST,
		       "already");
	register_fails(pipe.session, slots, 65536, GDRCAP_MEMORY_HOST, -EEXIST,
		       "the session's own");
	/* Beside it there is no overlap. */
	register_memory(&pipe, 65536);
	assert_int_equal(gdrcap_tx_unregister(pipe.session, memory + 131072, NULL), -ENOENT);
	assert_int_equal(gdrcap_tx_unregister(pipe.session, NULL, NULL), -ENOENT);
	pipe_close(&pipe);
}

/* Payloads that are not all in one registered memory, or are the frame's own slot, or too long. */
static void test_payload_refused(void **state)
{
	struct gdrcap_tx_frame frame, other, wrong;
	struct pipe pipe;
	uint8_t *memory;

	pipe_open(&pipe);
	memory = pipe.memory;
	in_two(&pipe, &frame, 0);
	in_two(&pipe, &other, 0);
	refused(pipe.tx, &frame, 1, -EFAULT, "frame 0: its payload is not in registered memory");
	register_memory(&pipe, 65536);
	/* Two memories that meet are two. */
	assert_int_equal(
		gdrcap_tx_register(pipe.session, memory + 65536, 65536, GDRCAP_MEMORY_HOST, NULL),
		0);
	wrong = frame;
	wrong.payload = memory + 65536 - 1;
	refused(pipe.tx, &wrong, 1, -EFAULT, "reaches over its end");
	wrong.payload = memory + 131072 - 81;
	refused(pipe.tx, &wrong, 1, -EFAULT, "reaches over its end");
	wrong.payload = memory + 131072;
	refused(pipe.tx, &wrong, 1, -EFAULT, "not in registered");
	wrong.payload = (const void *)(UINTPTR_MAX - 40);
	refused(pipe.tx, &wrong, 1, -EFAULT, "not in registered");
	/* Slots are no payloads: its own, another's. */
	wrong.payload = frame.data;
	refused(pipe.tx, &wrong, 1, -EFAULT, "not in registered");
	wrong.payload = other.data + 10;
	refused(pipe.tx, &wrong, 1, -EFAULT, "not in registered");
	wrong = frame;
	wrong.bytes = 17;
	refused(pipe.tx, &wrong, 1, -EMSGSIZE, "17 and 82");
	wrong = frame;
	wrong.payload_bytes = UINT32_MAX;
	refused(pipe.tx, &wrong, 1, -EMSGSIZE, "frame 0");
	wrong.payload_bytes = 41;
	refused(pipe.tx, &wrong, 1, -EMSGSIZE, "it has 59 bytes");
	wrong.payload_bytes = 0;
	wrong.bytes = 60;
	refused(pipe.tx, &wrong, 1, -EMSGSIZE, "60 and 0");
	/* What was refused has lent nothing. */
	assert_int_equal(gdrcap_tx_unregister(pipe.session, memory, NULL), 0);
	assert_int_equal(gdrcap_tx_unregister(pipe.session, memory, NULL), -ENOENT);
	refused(pipe.tx, &frame, 1, -EFAULT, "not in registered");
	pipe_close(&pipe);
}

/* Two frames may have one payload, and pieces that overlap: nobody writes to them. */
static void test_two_pieces(void **state)
{
	const uint32_t at[] = { 65536 + 300, 65536 + 300, 65536 + 341 };
	struct gdrcap_tx_frame frame;
	struct gdrcap_error error = { 0 };
	struct pipe pipe;

	pipe_open(&pipe);
	register_memory(&pipe, MEMORY_BYTES);
	for (uint32_t i = 0; i < 3; i++) {
		in_two(&pipe, &frame, at[i]);
		assert_int_equal(submit(pipe.tx, &frame, 1), 0);
		/* Before the start it waits for sure; a port that copies gives it back at once. */
		if (i == 0)
			api_failed(gdrcap_tx_unregister(pipe.session, pipe.memory, &error), -EBUSY,
				   &error, ": 1; poll");
		if (i == 0)
			api_start(pipe.session);
		came_in_two(&pipe, at[i]);
		told(&pipe, 0);
	}
	assert_int_equal(gdrcap_tx_unregister(pipe.session, pipe.memory, &error), 0);
	api_stop(pipe.session);
	counts_are(pipe.session, 3, 3, 0);
	pipe_close(&pipe);
}

/* Frames in flight keep their memory until they are told, also where the run ends before. */
static void test_in_flight(void **state)
{
	struct gdrcap_tx_frame frame;
	struct gdrcap_error error = { 0 };
	struct pipe pipe;

	pipe_open(&pipe);
	register_memory(&pipe, MEMORY_BYTES);
	api_start(pipe.session);
	in_two(&pipe, &frame, 0);
	frame.time_ns = wall_ns() + 50000000000;
	assert_int_equal(submit(pipe.tx, &frame, 1), 0);
	refused(pipe.tx, &frame, 1, -EINVAL, "submitted already");
	api_failed(gdrcap_tx_unregister(pipe.session, pipe.memory, &error), -EBUSY, &error,
		   "poll until they are");
	assert_int_equal(gdrcap_stop(pipe.session, &error), 0);
	/* It is not told yet, but it has come back. */
	assert_int_equal(gdrcap_tx_unregister(pipe.session, pipe.memory, &error), 0);
	told(&pipe, -ECANCELED);
	counts_are(pipe.session, 1, 0, 1);
	pipe_close(&pipe);
}

/* After the end of the run nothing is taken, and nothing is left with the session. */
static void test_after_stop(void **state)
{
	struct gdrcap_tx_frame frames[2], more;
	struct gdrcap_error error = { 0 };
	struct pipe pipe;

	pipe_open(&pipe);
	register_memory(&pipe, MEMORY_BYTES);
	in_two(&pipe, &frames[0], 0);
	in_two(&pipe, &frames[1], 100);
	api_start(pipe.session);
	api_stop(pipe.session);
	refused(pipe.tx, frames, 2, -ESHUTDOWN, "gdrcap_tx_cancel");
	api_failed(gdrcap_tx_submit_after(pipe.tx, frames, 2, NULL, &error), -ESHUTDOWN, &error,
		   "gdrcap_tx_cancel");
	assert_int_equal(gdrcap_tx_unregister(pipe.session, pipe.memory, NULL), 0);
	assert_int_equal(gdrcap_tx_reserve(pipe.tx, &more, 1), -ESHUTDOWN);
	assert_int_equal(gdrcap_tx_cancel(pipe.tx, frames, 2), 0);
	refused(pipe.tx, frames, 1, -ESHUTDOWN, "the run is over");
	counts_are(pipe.session, 0, 0, 0);
	pipe_close(&pipe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_refused), cmocka_unit_test(test_payload_refused),
		cmocka_unit_test(test_two_pieces),     cmocka_unit_test(test_in_flight),
		cmocka_unit_test(test_after_stop),
	};

	return cmocka_run_group_tests_name("send_memory", tests, NULL, NULL);
}
