/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A capture of images in a program that waits for the whole device after each: cudaDeviceSynchronize() (which
 * torch.cuda.synchronize() is), cudaFree(), and the default stream. With the launched engine none of them
 * hangs. The frames come from a file that is played again and again; no kernel of a sender runs.
 *
 * Usage: test_images_sync_cuda [IMAGES]; "resident" for the engine with which it has to hang. 77 without a
 * GPU.
 */
#include <csignal>

#include <unistd.h>

#include "image_frames.cuh"

#define NUMBERS 100u /* images in the file */
#define HANG_SECONDS 40
#define FILE_BYTES 24u
#define PACKET_BYTES 16u

static bool hang_wanted;

static void hangs(int)
{
	static const char yes[] = "hangs, as it has to\nPASS\n", no[] = "FAIL: it hangs\n";

	if (hang_wanted)
		(void)!write(1, yes, sizeof(yes) - 1);
	else
		(void)!write(1, no, sizeof(no) - 1);
	_exit(!hang_wanted);
}

/* Frame `piece` of image `number`, as gdrcap's own senders write them: docs/frame-format.md. */
static void frame_make(uint8_t *frame, uint64_t number, uint32_t piece)
{
	const uint64_t sequence = number * PIECES + piece;

	memset(frame, 0, FRAME_BYTES - 4);
	memset(frame, 0xff, 6);
	frame[6] = 2;
	frame[12] = 0x88;
	frame[13] = 0xb5;
	frame[14] = 0x67;
	frame[15] = 0x43;
	for (uint32_t i = 0; i < 8; i++)
		frame[22 + i] = (uint8_t)(sequence >> 8 * (7 - i));
	for (uint32_t i = 0; i < PIECE; i++)
		frame[50 + i] = (uint8_t)(sequence * PIECE + i);
}

static void words_write(FILE *file, const uint32_t *words, size_t bytes)
{
	if (fwrite(words, bytes, 1, file) != 1) {
		printf("FAIL: the file cannot be written\n");
		exit(1);
	}
}

/* One piece of image 7 is missing. */
static void file_write(const char *path)
{
	static const uint32_t head[FILE_BYTES / 4] = { 0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1 };
	static uint32_t frame[(FRAME_BYTES + 3) / 4];
	FILE *file = fopen(path, "wb");

	if (!file) {
		printf("FAIL: no file %s\n", path);
		exit(1);
	}
	words_write(file, head, sizeof(head));
	for (uint32_t i = 0; i < NUMBERS * PIECES; i++) {
		const uint32_t packet[PACKET_BYTES / 4] = { 1, i, FRAME_BYTES - 4,
							    FRAME_BYTES - 4 };

		if (i == 7 * PIECES + 5)
			continue;
		frame_make((uint8_t *)frame, i / PIECES, i % PIECES);
		words_write(file, packet, sizeof(packet));
		words_write(file, frame, FRAME_BYTES - 4);
	}
	fclose(file);
}

__global__ static void image_kernel(struct gdrcap_image image, struct image_tally *tally)
{
	image_check(image, tally);
}

/* What a program that knows nothing of gdrcap does between two images. */
static void everything_that_waits(void)
{
	void *memory;

	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMalloc(&memory, 1 << 20));
	CUDA(cudaMemset(memory, 1, 1 << 20)); /* on the default stream */
	CUDA(cudaFree(memory));
	CUDA(cudaStreamSynchronize(0));
}

static int play(const char *path, const char *engine, const char *memory, uint64_t wanted)
{
	struct gdrcap_config *config = images_config("host", engine, memory, 0, 8);
	struct image_tally *device, tally;
	const struct gdrcap_image *image;
	struct gdrcap_image_counts counts;
	struct gdrcap_session *session;
	struct gdrcap_images *images;
	struct gdrcap_error error;
	uint64_t taken = 0;
	char port[300];
	bool good;

	snprintf(port, sizeof(port), "net_pcap0,rx_pcap=%s,infinite_rx=1", path);
	option_set(config, "tx_port", NULL);
	option_set(config, "pattern", NULL);
	option_set(config, "frames", NULL);
	option_set(config, "port", port);
	CUDA(cudaMalloc(&device, sizeof(*device)));
	CUDA(cudaMemset(device, 0, sizeof(*device)));
	api_check(gdrcap_create(config, &session, &error), &error, "create");
	gdrcap_config_free(config);
	images = gdrcap_get_images(session, 0);
	api_check(gdrcap_start(session, &error), &error, "start");
	while (taken < wanted) {
		const int n = gdrcap_image_wait(images, &image, 1, -1);

		api_check(n, NULL, "gdrcap_image_wait");
		image_kernel<<<1, 256>>>(*image, device);
		CUDA(cudaGetLastError());
		everything_that_waits();
		gdrcap_image_release(images, &image, 1);
		taken += (uint64_t)n;
	}
	/* in the run, too */
	CUDA(cudaMemcpy(&tally, device, sizeof(tally), cudaMemcpyDeviceToHost));
	api_check(gdrcap_stop(session, &error), &error, "stop");
	gdrcap_get_image_counts(session, 0, &counts, sizeof(counts));
	good = tally.images == wanted && tally.wrong == 0 && tally.complete && counts.misfit == 0;
	printf("%s, %s memory: %llu images, %llu complete, %llu wrong bytes; %llu begun, %llu "
	       "dropped: %s\n",
	       engine, memory, tally.images, tally.complete, tally.wrong,
	       (unsigned long long)counts.begun, (unsigned long long)counts.dropped,
	       good ? "passed" : "FAILED");
	fflush(stdout);
	gdrcap_destroy(session);
	CUDA(cudaFree(device));
	return good ? 0 : 1;
}

int main(int argc, char **argv)
{
	uint64_t images = argc > 1 ? strtoull(argv[1], NULL, 0) : 60;
	char path[] = "/tmp/gdrcap-images-XXXXXX";
	int devices = 0, failed = 0, fd;

	if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
		printf("no CUDA device here\n");
		return 77;
	}
	hang_wanted = argc > 1 && strcmp(argv[1], "resident") == 0;
	fd = mkstemp(path);
	if (fd < 0) {
		printf("FAIL: no file in /tmp\n");
		return 1;
	}
	close(fd);
	file_write(path);
	signal(SIGALRM, hangs);
	alarm(hang_wanted ? 10 : HANG_SECONDS);
	if (hang_wanted) {
		play(path, "resident", "auto", 300);
		printf("FAIL: a kernel that runs on, and nothing waits for it\n");
		return 1;
	}
	failed |= play(path, "auto", "auto", images);
	failed |= play(path, "launched", "pinned", images);
	unlink(path);
	printf("%s\n", failed ? "FAIL" : "PASS");
	return failed;
}
