/* SPDX-License-Identifier: BSD-3-Clause */
/* A memif with both ends in this process, for tests of sending. */
#ifndef GDRCAP_TEST_API_SEND_PIPE_H
#define GDRCAP_TEST_API_SEND_PIPE_H

#include "api_send.h"

#include <unistd.h>

#define MEMORY_BYTES (256u << 10)

/* Both ends of a memif in this process: what is sent is received. */
struct pipe {
	char folder[32], socket[64];
	struct gdrcap_session *session;
	struct gdrcap_tx *tx;
	uint8_t *memory;
};

static inline void pipe_folder(struct pipe *pipe)
{
	snprintf(pipe->folder, sizeof(pipe->folder), "/tmp/gdrcap-send-XXXXXX");
	assert_non_null(mkdtemp(pipe->folder));
	snprintf(pipe->socket, sizeof(pipe->socket), "socket-abstract=no,socket=%s/s",
		 pipe->folder);
}

static inline void pipe_config(struct gdrcap_config *config)
{
	api_set(config, "gpu", "host");
	api_set(config, "memory", "host");
	api_set(config, "frame.size", "%u", API_FRAME);
}

static inline void pipe_open(struct pipe *pipe)
{
	API_FREED struct gdrcap_config *config = gdrcap_config_new();

	pipe->memory = aligned_alloc(65536, MEMORY_BYTES);
	assert_non_null(pipe->memory);
	for (uint32_t i = 0; i < MEMORY_BYTES; i++)
		pipe->memory[i] = byte_of(i >> 8, i & 255);
	pipe_folder(pipe);
	pipe_config(config);
	api_set(config, "port", "net_memif0,role=server,%s", pipe->socket);
	api_set(config, "tx_port", "net_memif1,role=client,%s", pipe->socket);
	api_set(config, "consumer", "host");
	send_by_caller(config);
	pipe->session = api_create(config);
	pipe->tx = gdrcap_get_tx(pipe->session, 0);
	assert_non_null(pipe->tx);
}

static inline void pipe_close(struct pipe *pipe)
{
	gdrcap_destroy(pipe->session);
	rmdir(pipe->folder);
	free(pipe->memory);
}

#endif
