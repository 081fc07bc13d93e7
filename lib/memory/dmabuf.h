/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPU memory for a card where the kernel cannot find it by its address.
 *
 * The mlx5 driver registers memory by address. For GPU memory that takes the peer memory module
 * (nvidia-peermem). Without it a card can still be given the memory as a dma-buf, which DPDK's
 * driver does not know how to ask for. So its call ibv_reg_mr_iova2() is led through here: memory
 * that dmabuf_add() named, and that the kernel refuses by address, is registered as a dma-buf.
 *
 * How it is linked: every link that takes in the mlx5 driver needs -Wl,--wrap=ibv_reg_mr_iova2 (the
 * program, tests, libgdrcap.so, and the prelinked object of libgdrcap.a); without it the link fails
 * for want of __real_ibv_reg_mr_iova2. An embedder adds nothing to his own link: both libraries
 * carry the driver and this file, bound to each other. Exception: a libgdrcap.a made over an
 * installed DPDK does not carry the driver; its prelinked object must keep __wrap_ibv_reg_mr_iova2
 * visible, and gdrcap.pc's private flags name the option. libibverbs itself may be shared or
 * static; a preloaded one is respected.
 *
 * Where it holds: DPDK 22.11, as the tests show. The same two functions were read, not run, in
 * the sources of other DPDK releases: mlx5_glue.c calls ibv_reg_mr() with an access that is no
 * constant, which rdma-core's header turns into ibv_reg_mr_iova2(), and the driver keeps addr and
 * lkey of what that returns. It does not hold for a DPDK built with -Dibverbs_link=dlopen, or taken
 * as shared libraries: dmabuf_state() then says that no registration came by. Needs rdma-core 34.
 *
 * Control code, any thread.
 */
#ifndef GDRCAP_DMABUF_H
#define GDRCAP_DMABUF_H

#include <stddef.h>
#include <stdint.h>

#include "gdrcap.h"

enum dmabuf_way {
	DMABUF_WAY_NONE,    /* no card has registered it, or its driver does not come by here */
	DMABUF_WAY_ADDRESS, /* GPU memory: through the peer memory module */
	DMABUF_WAY_DMABUF,
	DMABUF_WAY_BOTH,    /* one card so, another so */
	DMABUF_WAY_REFUSED, /* the last card that asked got it neither way */
};

/* Memory, and who can make a dma-buf of it. */
struct dmabuf_memory {
	void *base;
	size_t bytes;
	/* A new file descriptor of a dma-buf of exactly these bytes, or a negative errno. Called
	 * when a card's driver is refused by address, so that a machine with the module needs no
	 * dma-buf, and no more once it succeeded. Must not call into this file. NULL: nobody can.
	 */
	int (*export_fd)(void *context, void *base, size_t bytes);
	void *context;
};

struct dmabuf_state {
	enum dmabuf_way way;
	uint32_t by_address, by_dmabuf; /* registrations that succeeded */
	/* Of the last refusal, positive errno; 0: not asked. */
	int address_error, export_error, dmabuf_error;
};

/* From before the memory is registered with a card until after it is no more. Ranges must not
 * overlap: -EEXIST. */
int dmabuf_add(const struct dmabuf_memory *memory, struct gdrcap_error *error);
void dmabuf_remove(const void *base);

/* What became of it so far; all zero for memory that was not added. */
void dmabuf_state(const void *base, struct dmabuf_state *state);

/* After a failed registration: both causes and their remedies, no full stop. */
void dmabuf_explain(const void *base, char *text, size_t bytes);

#endif
