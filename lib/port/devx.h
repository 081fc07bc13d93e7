/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ConnectX's objects made by us instead of DPDK's driver: commands of the card (DevX).
 *
 * The context and the protection domain are made here before EAL probes the port, and handed to the
 * driver by devargs: so both work on the same card with the same rights, rules of DPDK may lead to
 * queues of ours, and DPDK stays the owner of the port. Order:
 *
 *   devx_open(), devx_devargs(), rte_dev_probe(), devx_probed(), objects, ...,
 *   objects destroyed, the port closed and its device removed, devx_close().
 *
 * Control code, one thread at a time.
 */
#ifndef GDRCAP_DEVX_H
#define GDRCAP_DEVX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gdrcap.h"
#include "memory/dmabuf.h"
#include "port/connectx.h"
#include "port/prm.h"

struct ibv_context;
struct ibv_mr;
struct ibv_pd;
struct mlx5dv_devx_obj;
struct mlx5dv_devx_uar;
struct mlx5dv_devx_umem;

/* Work entries of several strides, each of which takes a frame: what a card can, all log2. */
struct devx_strides {
	uint8_t frames_min, frames_max; /* of a work entry; 0: the card has none */
	uint8_t bytes_min, bytes_max;	/* of a stride */
};

struct devx_card {
	struct ibv_context *context; /* NULL: not open */
	struct ibv_pd *pd;
	uint32_t pd_number;
	uint32_t event_queue;	     /* that completion queues name; none of ours is armed */
	struct mlx5dv_devx_uar *uar; /* the same: nobody writes to it */
	uint32_t log_cq_max, log_wq_max;
	uint8_t inline_mode;	  /* PRM_INLINE_MODE_* */
	uint8_t rx_time, tx_time; /* PRM_TS_*: as DPDK's driver asks for */
	struct devx_strides strides;
	int fd;	       /* of the context, for the driver, which closes it; -1: handed over */
	char name[64]; /* as the user calls the port, for error texts */
};

/* -ENOTSUP: a card, firmware, kernel or user without DevX; the text has the remedy. `name`: of the
 * port, as the user calls it. */
int devx_open(struct devx_card *card, const struct connectx_card *found, const char *name,
	      struct gdrcap_error *error);
/* Of a card that is not open: nothing. */
void devx_close(struct devx_card *card);

/* From what connectx_devargs() made to what rte_dev_probe() is to get. */
int devx_devargs(struct devx_card *card, const char *opened, char *out, size_t bytes,
		 struct gdrcap_error *error);
/* After rte_dev_probe(): `opened`: it succeeded, and the driver has the descriptor. */
void devx_probed(struct devx_card *card, bool opened);

/* ---- memory ---- */

/* Rings and records, as the card reaches them. */
struct devx_umem {
	struct mlx5dv_devx_umem *handle;
	uint32_t number;
	bool dmabuf; /* as a dma-buf, not by its address */
};
/* `what` is it for: for error texts, "the completion queue". With memory->export_fd (a GPU's) as a
 * dma-buf, and where that is refused, by address: nvidia-peermem. Page-aligned. */
int devx_umem_create(struct devx_card *card, struct devx_umem *umem,
		     const struct dmabuf_memory *memory, const char *what,
		     struct gdrcap_error *error);
void devx_umem_destroy(struct devx_umem *umem);

/* Memory for frames; the key is (*mr)->lkey. A GPU's by address or, where it was named by
 * dmabuf_add(), as a dma-buf. */
int devx_key_create(struct devx_card *card, struct ibv_mr **mr, void *base, size_t bytes,
		    struct gdrcap_error *error);
int devx_key_destroy(struct ibv_mr **mr);

/* A page with a doorbell register at uar->reg_addr. */
int devx_uar_create(struct devx_card *card, struct mlx5dv_devx_uar **uar,
		    struct gdrcap_error *error);
void devx_uar_destroy(struct mlx5dv_devx_uar **uar);

/* ---- objects ---- */

struct devx_object {
	struct mlx5dv_devx_obj *handle; /* NULL: not made */
	uint32_t number;
};
/* The command `in` makes it; `what` is it: for error texts. The number stands in the answer at
 * `answer`, usually PRM_NUMBER. Whatever was refused is told with the card's status and syndrome. */
int devx_create(struct devx_card *card, struct devx_object *object, const void *in, size_t in_bytes,
		struct prm_field answer, const char *what, struct gdrcap_error *error);
int devx_modify(struct devx_card *card, struct devx_object *object, const void *in, size_t in_bytes,
		const char *what, struct gdrcap_error *error);
/* 0, also of one that is not made; else it stays, which the text says. */
int devx_destroy(struct devx_card *card, struct devx_object *object, const char *what,
		 struct gdrcap_error *error);

struct devx_place {
	const struct devx_umem *umem;
	uint64_t offset;
};

/*
 * A completion queue of 64-byte entries, which the owner has preset to "invalid". The card does not
 * look at a consumer index (oi): the queue must have more entries than can come before they are
 * read. `first_only`: all completions go into entry 0 (collapsed).
 */
struct devx_cq_config {
	struct devx_place ring, record; /* of 64 << log_entries bytes, and of 8 */
	uint32_t log_entries;
	bool first_only;
};
int devx_cq_create(struct devx_card *card, struct devx_object *cq,
		   const struct devx_cq_config *config, struct gdrcap_error *error);

/* Counts the frames that came when no work entry was posted, of the queues that name it. */
int devx_counter_create(struct devx_card *card, struct devx_object *counter,
			struct gdrcap_error *error);
/* The card counts in 32 bits, and wraps. */
int devx_counter_read(struct devx_card *card, const struct devx_object *counter,
		      uint32_t *out_of_buffer, struct gdrcap_error *error);

/* A work queue's ring and its doorbell record, in the contexts of receive and send queues. */
struct devx_wq_config {
	struct devx_place ring, record;
	uint32_t log_entries, log_entry_bytes;
	/* Receive: strides of a work entry, and bytes of a stride; 0 strides: a cyclic queue. */
	uint32_t log_strides, log_stride_bytes;
	bool pads;    /* receive: writes are filled up to whole cache lines */
	uint32_t uar; /* send: page_id of its register */
};
void devx_wq_fill(const struct devx_card *card, void *wq, const struct devx_wq_config *config);

/* -ENOTSUP: the card makes no such striding queue; the text says what it makes. */
int devx_strides_check(const struct devx_card *card, uint32_t log_strides,
		       uint32_t log_stride_bytes, struct gdrcap_error *error);
/* A receive queue, cyclic or of strides, in the state reset. VLAN tags stay in the frames. In error, what was
 * posted comes back flushed. */
struct devx_rq_config {
	struct devx_wq_config wq;
	const struct devx_object *cq, *counter;
};
int devx_rq_create(struct devx_card *card, struct devx_object *rq,
		   const struct devx_rq_config *config, struct gdrcap_error *error);
/* As the card has it now: a queue that fails goes into error by itself. */
int devx_rq_state(struct devx_card *card, const struct devx_object *rq, enum prm_state *state,
		  struct gdrcap_error *error);
int devx_rq_modify(struct devx_card *card, struct devx_object *rq, enum prm_state from,
		   enum prm_state to, struct gdrcap_error *error);

#endif
