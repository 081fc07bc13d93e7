/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A software ConnectX: the objects that the model's files share.
 *
 * The model stands in for libibverbs and libmlx5: it defines the public ibv_* and mlx5dv_*
 * functions that DPDK's mlx5 driver calls, and a thread of its own does what the card would do.
 * Whatever the driver and the card share (rings, doorbell records, doorbell registers, commands)
 * has the format of the device and is read and written as the device would.
 *
 * One lock (nic.h) guards every object: the card's thread holds it for a pass, the driver's control
 * calls for a call.
 */
#ifndef SOFT_H
#define SOFT_H

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "faults.h"

#define SOFT_DEVICES_MAX 8
#define SOFT_FRAME_MAX 10240
#define SOFT_OBJECTS_MAX 4096
#define SOFT_SEGMENT 16		/* bytes: the unit of a send WQE */
#define SOFT_LOG_STRIDES_MAX 16 /* of a WQE */
#define SOFT_BLOCK 64		/* bytes: a CQE, and the unit of a send ring */

#define container(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

enum soft_state {
	SOFT_RESET,
	SOFT_READY,
	SOFT_ERROR,
};

/* Counted by the card; read through the netdev, the sysfs file and the DevX queue counter. */
struct soft_counters {
	uint64_t rx_packets_phy;
	uint64_t rx_bytes_phy;
	uint64_t tx_packets_phy;
	uint64_t tx_bytes_phy;
	uint64_t rx_discards_phy;
	uint64_t tx_discards_phy;
	uint64_t rx_crc_errors_phy;
	uint64_t rx_oversize_phy;
	uint64_t tx_pause_phy;
	uint64_t rx_pause_phy;
	uint64_t out_of_buffer;
	uint64_t rx_wqe_err;
	uint64_t unicast[2], multicast[2], broadcast[2]; /* packets: received, sent */
	uint64_t unicast_bytes[2], multicast_bytes[2], broadcast_bytes[2];
	/* No counter of a ConnectX: for the model's own tests. */
	uint64_t to_kernel; /* frames that no rule wanted */
	uint64_t dropped_by_rule;
	uint64_t bad_doorbells; /* register writes that do not fit the doorbell record */
	uint64_t bad_keys;	/* DMA refused */
	uint64_t cq_overruns;
	uint64_t flushed;    /* WQEs of queues in error */
	uint64_t compressed; /* completions written without an entry of their own */
	uint64_t interrupts; /* of completion queues, that the driver has taken */
};

/* A ring or a record in memory that the card's thread does not touch itself, as a GPU's. */
struct soft_far {
	struct soft_region *region; /* NULL: it is near */
	uint64_t offset;
};

/* A set of counters that receive queues name. */
struct soft_q_counter {
	uint32_t number; /* 1 to SOFT_Q_COUNTERS - 1; 0 is what queues name that name none */
	uint64_t out_of_buffer;
};
#define SOFT_Q_COUNTERS 256

/* A page of doorbell registers. The driver writes, the card takes. */
struct soft_uar {
	struct soft_device *device;
	uint8_t *page;
	uint32_t number;
	struct mlx5dv_devx_uar dv;
};

#define SOFT_UAR_CQ 0x20  /* where in the page a CQ is armed */
#define SOFT_UAR_SQ 0x800 /* where in the page a send queue's doorbell rings */

struct soft_cq {
	struct ibv_cq_ex ibv; /* starts with the fields of struct ibv_cq */
	struct soft_device *device;
	uint32_t number;
	uint32_t log_size;
	uint32_t next;		 /* producer: entries written since creation */
	struct mlx5_cqe64 *ring; /* NULL: */
	struct soft_far far;
	volatile uint32_t *record; /* driver: its consumer index */
	bool own_memory;
	bool overrun_ignored; /* no consumer index is looked at */
	bool compress;
	uint8_t compress_format; /* as in the CQ context */
	struct soft_uar *uar;
	struct soft_channel *channel; /* where its events go; NULL: it has none */
	bool armed;
	bool fired;	   /* an event was sent ... */
	uint8_t fired_arm; /* ... for the arming of this number, which is not armed again */
	uint32_t armed_at; /* the entry from which on there is to be an event */
};

struct soft_rq {
	struct ibv_wq ibv;
	struct soft_device *device;
	uint32_t number;
	enum soft_state state;
	uint32_t log_size;   /* WQEs */
	uint32_t log_stride; /* bytes of a WQE */
	uint8_t *ring;
	volatile uint32_t *record; /* driver: WQEs posted; NULL: */
	struct soft_far far_record;
	uint16_t
		far_posted; /* as it was when last looked at: when no WQE is left, as a card does */
	bool own_memory;
	uint16_t next;	      /* WQE that the next frame takes */
	uint16_t next_stride; /* MPRQ: stride in that WQE */
	bool striding;
	uint8_t log_strides;	 /* strides of a WQE */
	uint8_t log_stride_size; /* bytes of a stride */
	bool vlan_strip;
	bool flushes;			/* in error, what was posted comes back */
	uint32_t file;			/* of the context that made it */
	struct soft_q_counter *counter; /* NULL: the device's */
	bool split_time; /* time stamps: seconds and nanoseconds in a half each; else nanoseconds */
	struct soft_cq *cq;
	uint64_t frames;
};

struct soft_sq {
	struct ibv_qp ibv; /* the Verbs object, where there is one */
	struct soft_device *device;
	uint32_t number;
	enum soft_state state;
	uint32_t log_size; /* blocks */
	uint8_t *ring;
	volatile uint32_t *record; /* driver: [1]: blocks posted */
	uint32_t *own_record;
	bool own_memory;
	bool rung; /* a doorbell register was written since the record was last caught up with */
	uint16_t next; /* block that the card reads next */
	uint16_t last; /* first block of the WQE before that */
	struct soft_cq *cq;
	struct soft_uar *uar;
	bool own_uar;
	struct soft_hash *hash; /* a QP that only receives */
};

/* Where frames go: one RQ or one of several, chosen by a hash. */
struct soft_hash {
	struct soft_device *device;
	uint32_t number;
	uint32_t table; /* DevX: the RQ table's number */
	uint32_t log_size;
	struct soft_rq **queues; /* 1 << log_size */
	bool hashes;
	uint8_t key[40];
	uint32_t fields; /* enum soft_hash_field */
	bool ipv6;
	bool udp;
	uint32_t (*terms)[256]; /* of the key: by byte of the tuple and its value */
};

struct soft_device {
	struct ibv_device ibv;
	uint8_t after_ibv[4096]; /* zeros, where the real library looks for its own fields */
	unsigned int index;
	unsigned int opens;
	struct soft_context *contexts;
	char pci[16];
	char ifname[IFNAMSIZ];
	unsigned int ifindex;
	uint8_t mac[6];
	unsigned int mtu;
	bool up;	       /* as set by the administrator */
	bool link;	       /* the cable */
	uint64_t link_back_ns; /* when a link that a knob took down comes back; 0: never */
	bool paused;	       /* its sender, by the receiver's flow control */
	struct soft_device *peer;
	uint64_t *clock; /* the register of time; NULL: none */
	struct soft_counters count;
	uint64_t oob_reported; /* what the sysfs file says */
	struct soft_faults faults;
	struct soft_steering *steering;
	struct soft_q_counter *q_counters[SOFT_Q_COUNTERS];

	struct soft_cq *cqs[SOFT_OBJECTS_MAX];
	struct soft_rq *rqs[SOFT_OBJECTS_MAX];
	struct soft_sq *sqs[SOFT_OBJECTS_MAX];
	struct soft_hash *hashes[SOFT_OBJECTS_MAX];
	struct soft_uar *uars[SOFT_OBJECTS_MAX];
	unsigned int cq_end, sq_end, rq_end, uar_end; /* first free number that was never used */
};

/* What open_device() returns. */
struct soft_context {
	struct soft_device *device;
	struct soft_context *next; /* of this device */
	bool devx;
	uint32_t file; /* of the kernel's: contexts that share it share objects */
	bool told_gone;
	bool told_up; /* link state that the driver was last told of */
	struct verbs_context verbs;
};

struct soft_pd {
	struct ibv_pd ibv;
	uint32_t number;
	uint32_t file;
	struct soft_pd *next; /* of all that were allocated */
};

extern struct soft_device soft_devices[SOFT_DEVICES_MAX];
extern unsigned int soft_device_count;

static inline struct soft_context *soft_context(struct ibv_context *context)
{
	return container(context, struct soft_context, verbs.context);
}

static inline struct soft_device *soft_device(struct ibv_context *context)
{
	return soft_context(context)->device;
}

/* A free slot of a table of SOFT_OBJECTS_MAX pointers, from 1 on; 0: none. Sets *end. */
uint32_t soft_slot(void *const *table, unsigned int *end);

/* One line on stderr, where SOFTMLX5_VERBOSE is set. */
void soft_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
