/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a session was told to do: each option's value in its own type, parsed once, with the defaults
 * of the option table; plain data, so it is copied by assignment. settings_settle() makes it whole.
 */
#ifndef GDRCAP_SETTINGS_H
#define GDRCAP_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"
#include "gdrcap.h"
#include "pattern/frame.h"
#include "pattern/image_layout.h"
#include "port/driver_table.h"
#include "replay/pacing.h"

#define SETTINGS_PATH_BYTES 512u
/* A sender waits so long at most: 366 days. */
#define SETTINGS_START_MOST_NS (UINT64_C(366) * 86400 * 1000000000)
#define SETTINGS_NAME_BYTES 256u /* of a port, of a rule */

enum direction { DIRECTION_LOOPBACK, DIRECTION_CAPTURE, DIRECTION_REPLAY };
enum gpu_kind { GPU_AUTO, GPU_HOST, GPU_CUDA }; /* auto: the first CUDA device, else the CPU */
enum consumer_kind {
	CONSUMER_VALIDATE, /* built in: checks every payload byte */
	CONSUMER_HOST,	   /* the caller's thread: gdrcap_poll() */
	CONSUMER_GPU,	   /* the caller's running kernel: gdrcap_get_gpu_queue() */
};
/* Whose frames leave through the sending ports. */
enum sender_kind {
	SENDER_REPLAY, /* built in: a pattern's, or a file's */
	SENDER_HOST,   /* the caller's: gdrcap_tx_submit() */
	SENDER_GPU,    /* the caller's running kernel's: gdrcap_get_gpu_tx() */
};
/* Which thread hands the caller's frames to the port. */
enum sender_thread { SENDER_THREAD_SESSION, SENDER_THREAD_CALLER };
/* Who takes received frames from the card. */
enum rx_by_kind {
	RX_BY_DRIVER, /* DPDK's */
	RX_BY_CPU,    /* a thread at a receive queue of our own */
	RX_BY_GPU,    /* a block of a kernel at one */
};
/* Who drives the built-in sender's queues. */
enum tx_by_kind {
	TX_BY_DRIVER, /* DPDK's driver, by mbufs */
	TX_BY_CPU,    /* a thread, by work entries of our own: tx_own.h */
	TX_BY_GPU,    /* a running kernel, likewise */
};
enum flush_kind { FLUSH_AUTO, FLUSH_HOST, FLUSH_NONE };
enum invert_kind { INVERT_AUTO, INVERT_NO, INVERT_YES };
/* Whose clock arrival times are from. */
enum clock_kind {
	CLOCK_AUTO, /* the card's where it has one, else the CPU's */
	CLOCK_CPU,  /* when the poll that brought the frame returned */
	CLOCK_CARD,
};
enum end_kind {
	/* A capture with the built-in consumer ends when the sender says so; a replay says so. To
	 * the caller's own consumer end-of-stream frames are frames like others. */
	END_STREAM,
	END_NEVER, /* end-of-stream frames are not sent, and mean nothing */
};
/* What a link that goes down in the run does. An interface that is deleted and a card that is removed
 * end it with an error anyway. */
enum link_down_kind {
	LINK_DOWN_WAIT, /* a warning and an event; the run goes on when it is up again */
	LINK_DOWN_END,	/* the run ends with -ENETDOWN */
};

/* A port as it is named, and what is known of its driver. */
struct port_spec {
	char name[SETTINGS_NAME_BYTES]; /* "": there is none */
	const struct driver_facts *facts;
	bool wire;     /* one end of a software wire in this process */
	bool connectx; /* PCI address, interface or RDMA device: whether there is one, plan.c asks */
	bool copies;   /* with the CPU: only into, or from, memory that the CPU can address */
};
struct port_list {
	uint32_t count;
	struct port_spec port[GDRCAP_PORTS_MAX];
};

/* Frames sent and expected. */
struct frame_sizes {
	uint32_t count;
	uint16_t least, largest;		/* with FCS */
	uint16_t length[PARSE_FRAME_SIZES_MAX]; /* the sender's cycle, in memory: without FCS */
};

struct gpu_choice {
	enum gpu_kind kind;
	uint32_t ordinal; /* GPU_CUDA */
};

struct core_list {
	uint32_t count; /* 0: near the port's NUMA node */
	int cpu[GDRCAP_CORES_MAX];
};

struct match_rule {
	char text[SETTINGS_NAME_BYTES];
	struct frame_match_rule rule;
};
struct match_list {
	uint32_t count;
	struct match_rule rule[GDRCAP_MATCH_MAX];
};

#define SETTINGS_IMAGES_MAX 4u

/* What places on a GPU: finite kernels, or one that runs on. */
enum image_engine {
	IMAGE_ENGINE_AUTO, /* resident where a kernel of the caller's takes the images, else launched */
	IMAGE_ENGINE_LAUNCHED,
	IMAGE_ENGINE_RESIDENT,
};

/* What an image is, and when it is handed out: one entry of `image`. */
struct image_settings {
	struct image_layout layout;	/* its match: of `match`, or of the session's */
	struct match_list match;	/* the layout's own */
	char name[SETTINGS_NAME_BYTES]; /* given, or of the preset or the file; settled: never "" */
	uint32_t ring, open;		/* buffers; images of a stream that may be open */
	uint64_t timeout_us, linger_us;
	int fill; /* a byte, into what is missing; -1: nothing */
	bool drop_incomplete, drop_oldest;
	enum image_engine engine;
};

/* The caller's own memory for images: buffer i of `ring` at addr + i * stride. */
struct image_buffers {
	void *addr; /* NULL: the session's */
	uint64_t bytes, stride;
};

struct settings {
	/* Ports: tx.port[i] plays into rx.port[i] where there are both. */
	struct port_list rx, tx;
	uint32_t ports; /* pairs of a receiving and a sending port, or the one kind there is */
	enum direction direction;
	uint32_t queues, burst, descriptors;
	enum rx_by_kind rx_by;
	uint32_t rx_strides; /* frames of a work entry of own receive queues; 1: cyclic */

	/* GPU and memory */
	struct gpu_choice gpu;
	enum gdrcap_memory memory;
	uint64_t pool_bytes; /* 0: chosen */
	void *memory_addr;   /* the caller's own region, of memory_bytes; NULL: allocated */
	uint64_t memory_bytes;
	uint32_t slot_bytes; /* 0: from the largest frame */
	bool guard, dump_frames;
	enum flush_kind flush;
	uint32_t split, stale_us; /* 0: off */

	/* Consumer */
	enum consumer_kind consumer;
	bool batch_times;
	bool times;	 /* somebody asks for arrival times: files, or batches */
	uint32_t blocks; /* 0: chosen */
	uint32_t watchdog_ms;
	enum sender_kind sender;
	enum tx_by_kind tx_by;
	enum gdrcap_memory sender_memory; /* of its slots; AUTO: `memory` */
	enum sender_thread sender_thread;

	/* Frames */
	struct frame_sizes sizes;
	struct frame_config frame;
	struct frame_layout layout; /* of `frame`, `custom` and `match` */
	uint32_t streams;	    /* 0: one a queue */
	uint32_t first_stream;
	struct {
		enum pattern_kind kind;
		enum invert_kind invert;
		bool restart;
		uint8_t value;
		uint64_t seed;
		char file[SETTINGS_PATH_BYTES];
	} pattern;
	struct frame_custom custom;
	struct match_list match; /* with images, settled: of all layouts */

	/* Images instead of frames; 0: none */
	uint32_t images;
	struct image_settings image[SETTINGS_IMAGES_MAX];
	struct image_buffers image_buffers[SETTINGS_IMAGES_MAX];

	/* Files and rates; a path that is "": no such file */
	char pcap[SETTINGS_PATH_BYTES], expect[SETTINGS_PATH_BYTES];
	char save[SETTINGS_PATH_BYTES], save_damaged[SETTINGS_PATH_BYTES];
	uint32_t save_every, save_around;
	uint64_t loops;			  /* UINT64_MAX: for ever */
	struct pacing_config rate, speed; /* as given; value 0: not */
	struct pacing_config pacing;	  /* of all senders together */
	uint64_t pcap_memory;		  /* 0: chosen */
	enum clock_kind clock;

	/* Run; times and counts of 0: no limit */
	struct core_list cores;
	uint64_t seconds_ms, frames;
	uint64_t images_wanted; /* whole ones */
	enum end_kind end;
	enum link_down_kind link_down; /* of a port whose link was up */
	struct parse_moment start;     /* of the built-in sender; all 0: at once */
	bool ranges, allow_misfits, allow_late;
	uint32_t quiet_ms, senders, idle_ms, give_up_ms;
	uint32_t idle_sleep_us; /* 0: idle workers poll; SETTINGS_IDLE_AUTO: as the ports want it */
};

#define SETTINGS_IDLE_AUTO UINT32_MAX

/* Fills in what follows from several options, once each has its value, and checks what does not go
 * together. 0 or -EINVAL. */
int settings_settle(struct settings *settings, struct gdrcap_error *error);

static inline bool settings_receives(const struct settings *settings)
{
	return settings->direction != DIRECTION_REPLAY;
}

/* Frames of the session's own making. */
static inline bool settings_sends(const struct settings *settings)
{
	return settings->direction != DIRECTION_CAPTURE && settings->sender == SENDER_REPLAY;
}

/* The caller has send queues. */
static inline bool settings_lends(const struct settings *settings)
{
	return settings->sender != SENDER_REPLAY;
}

/* Port `i` of both lists is one port, which sends what the caller gives it and receives. */
static inline bool settings_is_both(const struct settings *settings, uint32_t i)
{
	return settings_lends(settings) && settings->rx.port[i].name[0] &&
	       !settings->rx.port[i].wire &&
	       __builtin_strcmp(settings->rx.port[i].name, settings->tx.port[i].name) == 0;
}

static inline bool settings_validates(const struct settings *settings)
{
	return settings->consumer == CONSUMER_VALIDATE;
}

/* The session's own workers take the frames, to check them or to assemble images, and its accountant the
 * results. */
static inline bool settings_collects(const struct settings *settings)
{
	return settings_validates(settings) || settings->images;
}

/* When the first frame is to be sent; 0: at once. */
static inline bool settings_starts_later(const struct settings *settings)
{
	return settings->start.ns || settings->start.after;
}
/* -EINVAL: it has passed at `now`, ns since 1970, or is more than a year away. */
int settings_check_start(const struct settings *settings, uint64_t now, struct gdrcap_error *error);

/* Receive queues are the session's own, not the driver's. */
static inline bool settings_own_queues(const struct settings *settings)
{
	return settings->rx_by != RX_BY_DRIVER;
}

/* The CPU stands in for a GPU, whatever the machine has. */
static inline bool settings_gpu_is_host(const struct settings *settings)
{
	return settings->gpu.kind == GPU_HOST ||
	       (settings->gpu.kind == GPU_AUTO &&
		(settings->memory == GDRCAP_MEMORY_HOST || settings->guard));
}

static inline bool settings_is_custom(const struct settings *settings)
{
	return settings->frame.format == FRAME_CUSTOM;
}

/* Ports of both lists by one number: receiving ones from 0, sending ones from GDRCAP_PORTS_MAX. */
#define SETTINGS_PORTS (2u * GDRCAP_PORTS_MAX)
/* Bytes with FCS of the largest frame that options tell of: files may have larger ones. 0: none. */
uint16_t settings_frame_bytes(const struct settings *settings);
/* -EMSGSIZE where slot_bytes is given and less than the `need` of frames of up to `frame_bytes`. */
int settings_slot_fits(const struct settings *settings, uint32_t frame_bytes, uint32_t need,
		       struct gdrcap_error *error);

static inline const struct port_spec *settings_port(const struct settings *settings, uint32_t i)
{
	return i < GDRCAP_PORTS_MAX ? &settings->rx.port[i]
				    : &settings->tx.port[i - GDRCAP_PORTS_MAX];
}

#endif
