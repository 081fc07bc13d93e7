/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A control loop: each frame that comes is answered with a command to its sender, over UDP, with how many
 * came so far: answer CONFIG.yaml. The configuration has consumer: host, sender: host, and a tx_port, which
 * may be the port itself. The CPU reads and writes the frames here (memory: host or pinned); with
 * memory: device a kernel does, between gdrcap_tx_reserve() and gdrcap_tx_submit_after().
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <gdrcap.h>

#define COMMAND_BYTES 18u
#define SENDER_AT 6u

/* To who sent `frame`: 46 bytes of headers at most, 60 bytes at least. */
static void command_write(struct gdrcap_tx_frame *to, const uint8_t *frame, uint64_t count)
{
	struct gdrcap_tx_headers headers = {
		.src_mac = { 0x02, 0, 0, 0, 0, 0x99 },
		.src_ip = 0x0a000001,
		.dst_ip = 0x0a000002,
		.src_port = 4000,
		.dst_port = 4001,
	};
	uint8_t data[COMMAND_BYTES] = "COMMAND ";

	memcpy(headers.dst_mac, frame + SENDER_AT, 6);
	for (int i = 0; i < 8; i++)
		data[8 + i] = (uint8_t)(count >> (56 - 8 * i));
	const int bytes = gdrcap_tx_write_headers(to->data, &headers, data, sizeof(data));

	memcpy(to->data + bytes, data, sizeof(data));
	to->bytes = (uint32_t)bytes + COMMAND_BYTES;
}

/* One command a frame; those for which there was no slot, or the run is over. */
static uint64_t answer(struct gdrcap_tx *tx, const struct gdrcap_batch *batch, uint64_t *count)
{
	struct gdrcap_tx_frame frames[64];
	uint32_t done = 0;

	while (done < batch->count) {
		const uint32_t left = batch->count - done;
		const int n = gdrcap_tx_reserve(tx, frames, left < 64 ? left : 64);

		for (int i = 0; i < n; i++)
			command_write(&frames[i], gdrcap_frame(batch, done + (uint32_t)i),
				      ++*count);
		/* No slot is free: the port does not keep up. A loop that must not wait says so. */
		if (n <= 0 || gdrcap_tx_submit(tx, frames, (unsigned int)n, NULL) < 0)
			break;
		done += (uint32_t)n;
	}
	return batch->count - done;
}

int main(int argc, char **argv)
{
	struct gdrcap_config *config = gdrcap_config_new();
	const struct gdrcap_batch *batches[16];
	struct gdrcap_session *session = NULL;
	struct gdrcap_tx_counts counts;
	struct gdrcap_error error;
	uint64_t count = 0, held_up = 0;
	int n = -1;

	if (argc != 2 || !config || gdrcap_config_load(config, argv[1], &error) ||
	    gdrcap_create(config, &session, &error) || gdrcap_start(session, &error)) {
		fprintf(stderr, "answer: %s\n", argc == 2 && config ? error.text : "give one file");
		gdrcap_destroy(session);
		gdrcap_config_free(config);
		return 1;
	}
	gdrcap_config_free(config);
	struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
	struct gdrcap_tx *tx = gdrcap_get_tx(session, 0);

	/* -ESHUTDOWN: the run is over, and the last batch was taken */
	while (queue && tx && (n = gdrcap_wait(queue, batches, 16, -1)) >= 0) {
		for (int i = 0; i < n; i++)
			held_up += answer(tx, batches[i], &count);
		gdrcap_release(queue, batches, (unsigned int)n);
	}
	n = gdrcap_stop(session, &error);
	if (n)
		fprintf(stderr, "answer: %s\n", error.text);
	else if (!gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts)))
		printf("%" PRIu64 " came, %" PRIu64 " answered, %" PRIu64 " held up, %" PRIu64
		       " unsent\n",
		       count + held_up, counts.sent, held_up, counts.unsent);
	gdrcap_destroy(session);
	return n != 0;
}
