/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames counted by EtherType, with no file: raw port=net_af_packet0,iface=eth0 seconds=10 (KEY=VALUE ...). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <gdrcap.h>

static uint64_t frames[0x10000], bytes[0x10000]; /* by EtherType; below 0x600 it is a length */

static void count(const struct gdrcap_batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		const uint8_t *frame = gdrcap_frame(batch, i);
		const uint32_t length = gdrcap_frame_bytes(batch, i);

		if (length < 14) /* no whole header */
			continue;
		frames[frame[12] << 8 | frame[13]]++;
		bytes[frame[12] << 8 | frame[13]] += length;
	}
}

int main(int argc, char **argv)
{
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_session *session = NULL;
	const struct gdrcap_batch *batches[32];
	struct gdrcap_error error = { .text = "no memory" };
	/* gpu=0 and memory=device: frames in GPU memory, for kernels instead of count() */
	int n, ret = !config || gdrcap_config_set(config, "consumer.name", "host", &error) ||
		     gdrcap_config_set(config, "gpu", "host", &error);

	for (int i = 1; i < argc && !ret; i++) {
		char *value = strchr(argv[i], '=');

		if (value)
			*value++ = '\0';
		ret = gdrcap_config_set(config, argv[i], value ? value : "true", &error);
	}
	if (ret || gdrcap_create(config, &session, &error) || gdrcap_start(session, &error)) {
		fprintf(stderr, "raw: %s\n", error.text);
		gdrcap_destroy(session);
		gdrcap_config_free(config);
		return 1;
	}
	gdrcap_config_free(config);
	/* -ESHUTDOWN: the run is over, and the last batch was taken */
	while ((n = gdrcap_wait(gdrcap_get_queue(session, 0), batches, 32, -1)) >= 0) {
		for (int i = 0; i < n; i++)
			count(batches[i]);
		gdrcap_release(gdrcap_get_queue(session, 0), batches, (unsigned int)n);
	}
	ret = gdrcap_stop(session, &error);
	if (ret)
		fprintf(stderr, "raw: %s\n", error.text);
	for (uint32_t type = 0; type < 0x10000; type++)
		if (frames[type])
			printf("0x%04x: %" PRIu64 " frames, %" PRIu64 " bytes\n", type,
			       frames[type], bytes[type]);
	gdrcap_destroy(session);
	return ret != 0;
}
