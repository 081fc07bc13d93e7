/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stream-ordered control on a real GPU, by the public API: batches, images and send slots that kernels wait for
 * in CUDA streams, every frame's and every image's bytes compared by kernels; streams that wait when the run
 * ends, by a stop and by exit().
 *
 * Usage: test_on_stream_cuda [BATCHES]; "exit" ends the process while a stream waits. BATCHES KEY=VALUE...: only
 * batches and images in GPU memory, by these options besides. 77 without a GPU.
 */
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include <unistd.h>

#include "on_stream_kernels.cuh"

#define BURST 8u
#define BLOCKS 2u
#define THREADS 128u
#define RING 64u
#define SEND_MOST 32u /* frames of one order */

static double now_s(void)
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
		.count();
}

template <typename T> static T *on_gpu(void)
{
	T *memory;

	CUDA(cudaMalloc(&memory, sizeof(T)));
	CUDA(cudaMemset(memory, 0, sizeof(T)));
	CUDA(cudaDeviceSynchronize());
	return memory;
}

template <typename T> static T from_gpu(const T *memory)
{
	T value;

	CUDA(cudaMemcpy(&value, memory, sizeof(T), cudaMemcpyDeviceToHost));
	return value;
}

static char **more_options; /* KEY=VALUE; up to NULL */

static struct gdrcap_session *session_open(const char *memory, const char *sender, uint64_t frames)
{
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_session *session;
	struct gdrcap_error error;

	option_set(config, "port", "ring:test");
	option_set(config, "tx_port", "ring:test");
	option_set(config, "gpu", "0");
	option_set(config, "frame.size", std::to_string(FRAME).c_str());
	option_set(config, "burst", std::to_string(BURST).c_str());
	option_set(config, "consumer", "gpu");
	option_set(config, "memory", memory);
	if (sender)
		option_set(config, "sender", sender);
	else {
		option_set(config, "pattern", "counter8");
		option_set(config, "frames", std::to_string(frames).c_str());
	}
	options_set(config, more_options);
	api_check(gdrcap_create(config, &session, &error), &error, "create");
	gdrcap_config_free(config);
	return session;
}

static struct gdrcap_gpu_queue queue_view(struct gdrcap_session *session)
{
	struct gdrcap_gpu_queue view;

	api_check(gdrcap_get_gpu_queue(gdrcap_get_queue(session, 0), &view, sizeof(view)), NULL,
		  "gdrcap_get_gpu_queue");
	return view;
}

/* Puts wait, kernel and release of batch `seq` into the stream; false when there will be no such batch. */
static bool batch_queue(struct gdrcap_queue *queue, const struct gdrcap_gpu_queue &view,
			uint64_t seq, cudaStream_t stream, struct tally *tally)
{
	struct gdrcap_error error;
	int ret;

	while ((ret = gdrcap_wait_on_stream(queue, seq, stream, &error)) == -EAGAIN)
		usleep(100);
	if (ret == -ESHUTDOWN)
		return false;
	api_check(ret, &error, "gdrcap_wait_on_stream");
	batch_kernel<<<BLOCKS, THREADS, 0, stream>>>(view, seq, tally);
	CUDA(cudaGetLastError());
	ret = gdrcap_release_on_stream(queue, seq, stream, &error);
	if (ret != -ESHUTDOWN) /* the stop came in between */
		api_check(ret, &error, "gdrcap_release_on_stream");
	return true;
}

/* Two streams take turns, so that releases are not in the batches' order. */
static int test_batches(const char *memory, uint64_t frames)
{
	struct gdrcap_session *session = session_open(memory, NULL, frames);
	struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
	const struct gdrcap_gpu_queue view = queue_view(session);
	struct tally *tally = on_gpu<struct tally>(), seen;
	struct gdrcap_summary summary;
	struct gdrcap_error error;
	cudaStream_t stream[2];
	const double begun = now_s();
	bool good;

	for (auto &one : stream)
		CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
	if (gdrcap_wait_on_stream(queue, 0, stream[0], &error) != -EINVAL)
		return printf("FAIL: a wait before the start\n");
	api_check(gdrcap_start(session, &error), &error, "start");
	std::thread stopper([session] {
		while (!gdrcap_wait_end(session, 1000))
			;
		gdrcap_stop(session, NULL);
	});
	for (uint64_t seq = 0; batch_queue(queue, view, seq, stream[seq & 1], tally); seq++)
		;
	stopper.join();
	for (auto one : stream)
		CUDA(cudaStreamSynchronize(one));
	seen = from_gpu(tally);
	for (int i = 0; i < 1000; i++) {
		gdrcap_get_summary(session, &summary, sizeof(summary));
		if (summary.in_flight == 0)
			break;
		usleep(1000);
	}
	good = seen.frames == frames && seen.wrong == 0 && seen.batches == summary.bursts &&
	       seen.sum == (unsigned long long)frames * (frames - 1) / 2 &&
	       summary.total.received == frames && summary.in_flight == 0 &&
	       gdrcap_stop(session, &error) == 0;
	printf("batches, %s memory: %llu batches of %llu, %llu frames of %llu, %llu wrong, numbers "
	       "%s, %llu waits that the end let go, %llu out, %.2f s: %s\n",
	       memory, seen.batches, (unsigned long long)summary.bursts, seen.frames,
	       (unsigned long long)frames, seen.wrong,
	       seen.sum == (unsigned long long)frames * (frames - 1) / 2 ? "right" : "WRONG",
	       seen.over, (unsigned long long)summary.in_flight, now_s() - begun,
	       good ? "passed" : "FAILED");
	gdrcap_destroy(session);
	for (auto one : stream)
		CUDA(cudaStreamDestroy(one));
	CUDA(cudaFree(tally));
	return !good;
}

/* ---- images ---- */

static int test_images(const char *engine, const char *memory, uint64_t count)
{
	struct gdrcap_config *config = images_config("gpu", engine, memory, count, RING);
	struct image_tally *tally = on_gpu<struct image_tally>(), seen;
	struct gdrcap_image_counts counts;
	struct gdrcap_gpu_images view;
	struct gdrcap_session *session;
	struct gdrcap_images *images;
	struct gdrcap_error error;
	cudaStream_t stream;
	bool good;
	int ret;

	/* what one block may keep up with: the more images are seen */
	option_set(config, "rate", more_options ? "40kpps" : "400kpps");
	options_set(config, more_options);
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	api_check(gdrcap_create(config, &session, &error), &error, "create");
	gdrcap_config_free(config);
	images = gdrcap_get_images(session, 0);
	api_check(gdrcap_get_gpu_images(images, &view, sizeof(view)), NULL, "gpu images");
	api_check(gdrcap_start(session, &error), &error, "start");
	for (uint64_t seq = 0;; seq++) {
		while ((ret = gdrcap_image_wait_on_stream(images, seq, stream, &error)) == -EAGAIN)
			usleep(100);
		if (ret == -ESHUTDOWN)
			break;
		api_check(ret, &error, "gdrcap_image_wait_on_stream");
		image_kernel<<<1, 512, 0, stream>>>(view, seq, tally);
		CUDA(cudaGetLastError());
		ret = gdrcap_image_release_on_stream(images, seq, stream, &error);
		if (ret != -ESHUTDOWN)
			api_check(ret, &error, "gdrcap_image_release_on_stream");
	}
	/* before the stop: by the run's own end */
	CUDA(cudaStreamSynchronize(stream));
	api_check(gdrcap_stop(session, &error), &error, "stop");
	seen = from_gpu(tally);
	gdrcap_get_image_counts(session, 0, &counts, sizeof(counts));
	/* Where the kernels do not keep up images are dropped, and some begin again without what came meanwhile. */
	good = seen.wrong == 0 && seen.images == counts.complete + counts.incomplete &&
	       seen.complete == counts.complete && counts.begun >= count &&
	       counts.frames == count * PIECES && counts.complete;
	printf("images, %s, %s memory: %llu seen, %llu complete, %llu wrong bytes; %llu begun, %llu "
	       "dropped: %s\n",
	       engine, memory, seen.images, seen.complete, seen.wrong,
	       (unsigned long long)counts.begun, (unsigned long long)counts.dropped,
	       good ? "passed" : "FAILED");
	gdrcap_destroy(session);
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(tally));
	return !good;
}

/* ---- sending ---- */

/* One stream sends, another takes; the CPU does nothing for a frame but the port's. */
static int test_sending(const char *memory, uint64_t orders)
{
	struct gdrcap_session *session = session_open(memory, "gpu", 0);
	struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
	struct gdrcap_tx *tx = gdrcap_get_tx(session, 0);
	const struct gdrcap_gpu_queue view = queue_view(session);
	struct sending *sending = on_gpu<struct sending>(), seen;
	struct gdrcap_tx_counts counts;
	struct gdrcap_gpu_tx gpu_tx;
	struct gdrcap_error error;
	cudaStream_t sends, takes;
	uint64_t seq = 0;
	bool good;

	CUDA(cudaStreamCreateWithFlags(&sends, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&takes, cudaStreamNonBlocking));
	api_check(gdrcap_get_gpu_tx(tx, &gpu_tx, sizeof(gpu_tx)), NULL, "gdrcap_get_gpu_tx");
	api_check(gdrcap_start(session, &error), &error, "start");
	std::thread taker([&] {
		uint64_t batch = 0;

		CUDA(cudaSetDevice(0));
		for (;; batch++) {
			int ret;

			while ((ret = gdrcap_wait_on_stream(queue, batch, takes, NULL)) == -EAGAIN)
				usleep(100);
			if (ret)
				break;
			compare_kernel<<<1, THREADS, 0, takes>>>(view, batch, sending);
			CUDA(cudaGetLastError());
			gdrcap_release_on_stream(queue, batch, takes, NULL);
		}
	});
	for (uint64_t i = 0; i < orders; i++) {
		const uint32_t count = 1 + (uint32_t)(i % SEND_MOST);

		api_check(gdrcap_room_on_stream(tx, seq, count, sends, &error), &error, "room");
		fill_kernel<<<1, THREADS, 0, sends>>>(gpu_tx, seq, count, sending);
		CUDA(cudaGetLastError());
		api_check(gdrcap_send_on_stream(tx, seq, count, sends, &error), &error, "send");
		seq += count;
	}
	CUDA(cudaStreamSynchronize(sends));
	cudaStream_t copies;

	CUDA(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
	for (double until = now_s() + 60; now_s() < until; usleep(1000)) {
		CUDA(cudaMemcpyAsync(&seen, sending, sizeof(seen), cudaMemcpyDefault, copies));
		CUDA(cudaStreamSynchronize(copies));
		if (seen.next == seen.number)
			break;
	}
	api_check(gdrcap_stop(session, &error), &error, "stop");
	taker.join();
	CUDA(cudaStreamSynchronize(takes));
	seen = from_gpu(sending);
	gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts));
	good = seen.next == seen.number && seen.wrong == 0 && seen.wrong_room == 0 &&
	       seen.over == 0 && counts.sent == seen.number && counts.refused == 0 &&
	       counts.unsent == 0 && counts.submitted == seen.number && seen.number;
	printf("sending, %s memory: %llu frames written, %llu sent, %llu came, %llu wrong, %llu "
	       "without room: %s\n",
	       memory, seen.number, (unsigned long long)counts.sent, seen.next, seen.wrong,
	       seen.wrong_room, good ? "passed" : "FAILED");
	gdrcap_destroy(session);
	for (auto one : { sends, takes, copies })
		CUDA(cudaStreamDestroy(one));
	CUDA(cudaFree(sending));
	return !good;
}

/* ---- ends ---- */

/* Streams that wait, for batches and for room, go when the run is stopped; their kernels hear of it. */
static int test_stop(void)
{
	const uint64_t waits = GDRCAP_STREAM_AHEAD;
	struct gdrcap_session *session = session_open("device", "gpu", 0);
	struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
	struct gdrcap_tx *tx = gdrcap_get_tx(session, 0);
	const struct gdrcap_gpu_queue view = queue_view(session);
	struct sending *sending = on_gpu<struct sending>(), sent;
	struct tally *tally = on_gpu<struct tally>(), seen;
	struct gdrcap_gpu_tx gpu_tx;
	struct gdrcap_tx_counts counts;
	struct gdrcap_error error;
	cudaStream_t stream, sends;
	bool good, waited;
	double stopped;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&sends, cudaStreamNonBlocking));
	api_check(gdrcap_get_gpu_tx(tx, &gpu_tx, sizeof(gpu_tx)), NULL, "gdrcap_get_gpu_tx");
	api_check(gdrcap_start(session, &error), &error, "start");
	for (uint64_t seq = 0; seq < waits; seq++)
		batch_queue(queue, view, seq, stream, tally);
	good = gdrcap_wait_on_stream(queue, waits, stream, &error) == -EAGAIN;
	/* more than there is room for, ever: nobody has submitted any */
	for (int i = 0; i < 3; i++) {
		const uint64_t seq = (uint64_t)gpu_tx.count * 3 + (uint64_t)i * 8;

		api_check(gdrcap_room_on_stream(tx, seq, 8, sends, &error), &error, "room");
		fill_kernel<<<1, THREADS, 0, sends>>>(gpu_tx, seq, 8, sending);
		CUDA(cudaGetLastError());
		api_check(gdrcap_send_on_stream(tx, seq, 8, sends, &error), &error, "send");
	}
	usleep(100000);
	waited = cudaStreamQuery(stream) == cudaErrorNotReady &&
		 cudaStreamQuery(sends) == cudaErrorNotReady;
	stopped = now_s();
	good = good && waited && gdrcap_stop(session, &error) == 0;
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaStreamSynchronize(sends));
	stopped = now_s() - stopped;
	seen = from_gpu(tally);
	sent = from_gpu(sending);
	gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts));
	good = good && seen.over == waits && seen.batches == 0 && seen.wrong == 0 &&
	       sent.over == 3 && counts.submitted == 0 && counts.refused == 0;
	printf("a stop while streams wait: %llu of %llu kernels heard of it, and %llu of 3 that send, "
	       "%.0f ms; %s: %s\n",
	       seen.over, (unsigned long long)waits, sent.over, stopped * 1e3,
	       gdrcap_stop(session, &error) ? error.text : "no error", good ? "passed" : "FAILED");
	gdrcap_destroy(session);
	for (auto one : { stream, sends })
		CUDA(cudaStreamDestroy(one));
	CUDA(cudaFree(tally));
	CUDA(cudaFree(sending));
	return !good;
}

/* In a process of its own. */
static void exit_while_waiting(void)
{
	struct gdrcap_session *session = session_open("device", "gpu", 0);
	const struct gdrcap_gpu_queue view = queue_view(session);
	struct tally *tally = on_gpu<struct tally>();
	struct gdrcap_error error;
	cudaStream_t stream;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	api_check(gdrcap_start(session, &error), &error, "start");
	batch_queue(gdrcap_get_queue(session, 0), view, 0, stream, tally);
	usleep(50000);
	exit(cudaStreamQuery(stream) == cudaErrorNotReady ? 0 : 1);
}

static int test_exit(const char *program)
{
	const std::string command = std::string("timeout 60 '") + program + "' exit";
	const double begun = now_s();
	const int ret = system(command.c_str());

	printf("exit() while a stream waits: %d, %.1f s: %s\n", ret, now_s() - begun,
	       ret ? "FAILED" : "passed");
	return ret != 0;
}

int main(int argc, char **argv)
{
	const bool exits = argc > 1 && strcmp(argv[1], "exit") == 0;
	const uint64_t batches = argc > 1 ? strtoull(argv[1], NULL, 0) : 110000;
	int devices = 0, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
		printf("no CUDA device here\n");
		return 77;
	}
	/* Loaded before anything waits: lazy loading would wait for the whole device. */
	for (auto kernel : { (const void *)batch_kernel, (const void *)image_kernel,
			     (const void *)fill_kernel, (const void *)compare_kernel })
		CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
					  0));
	if (exits)
		exit_while_waiting();
	if (argc > 2 && strchr(argv[2], '=')) {
		more_options = argv + 2;
		failed = test_batches("device", batches * BURST);
		failed |= test_images("resident", "device", batches / 20);
		printf("%s\n", failed ? "FAIL" : "PASS");
		return failed;
	}
	for (const char *memory : { "device", "pinned" }) {
		failed |= test_batches(memory, batches * BURST);
		failed |= test_sending(memory, batches / 10);
		for (const char *engine : { "resident", "launched" })
			failed |= test_images(engine, memory, batches / 20);
	}
	failed |= test_stop();
	/* compute-sanitizer has no use for a process that ends so */
	if (argc < 3)
		failed |= test_exit(argv[0]);
	printf("%s\n", failed ? "FAIL" : "PASS");
	return failed;
}
