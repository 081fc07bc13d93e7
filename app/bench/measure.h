/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How fast is the path on this machine: each stage alone and the whole, beside the physical limit
 * of each, measured in the same run.
 *
 * Every figure is the median of several runs after a warm-up, and says how many frames it stands
 * for, how many of them were validated byte by byte, and how many were lost.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "gdrcap.h"

#define GDRCAP_BENCH_RUNS_MAX 51

/** What a stage is measured with; 0 or "": it has no such parameter. */
struct gdrcap_bench_point {
	char stage[24];	      /**< "rx_worker": stable; gdrcap_bench_stage_at() describes it */
	uint32_t frame_bytes; /**< with FCS */
	uint32_t burst;	      /**< frames in a burst at most */
	uint32_t blocks;      /**< thread blocks (CPU threads) a queue */
	uint32_t queues;      /**< receive or send queues, each with a core of its own */
	char pattern[16];     /**< "prbs31", "counter16be", ... */
	char memory[16];      /**< "device", "pinned", "host" */
	char source
		[16]; /**< of frames: "ring", "null", "resident", "card"; of ports that were given
			       * who takes received frames from them: "driver", "cpu", "gpu" */
};

struct gdrcap_bench_result {
	struct gdrcap_bench_point point;
	char error[256]; /**< "": measured; else why not, with the remedy */
	uint32_t runs;
	double run[GDRCAP_BENCH_RUNS_MAX]; /**< each run's value, the stage's unit, in time order */
	double median, least, most;
	double limit;	 /**< physical limit, same unit, measured in this bench; 0: there is none */
	double of_limit; /**< 0..1: what part of the limit was reached; 0: there is none */
	double mpps, gbps; /**< of the median run; gbps: bits of frames with FCS, without preamble
			    * and gap; 0: not a rate of frames */
	/* Of the median run. */
	double seconds;
	uint64_t frames;	/**< that went through */
	uint64_t validated;	/**< found right, every payload byte */
	uint64_t damaged, lost; /**< of all runs and of the warm-up */
	int sequence_checked; /**< 0: a source without content repeats frames, so only bytes are */
	double p50_ns, p99_ns, p999_ns, max_ns; /**< of a latency; else 0 */
	uint64_t samples;			/**< of a latency */
	char note[128];				/**< "": what a reader has to know besides */
	/** Simple operations a nanosecond that the slowest of the cores did, all at work, just before
	 * and just after each run: the mean, in time order; 0: not known. */
	double core_speed[GDRCAP_BENCH_RUNS_MAX];
};

struct gdrcap_bench_stage {
	const char *id;
	const char *group; /**< "limit", "cpu", "consumer", "latency", "sender", "path",
			    * "image", "idle" */
	const char *what;  /**< one sentence: what is timed, from where to where */
	const char *unit;  /**< "ns/frame", "Mpps", "Gb/s", "ns", "part", "reads/s" */
	int less_is_better;
	const char *limit; /**< id of the stage that measures its limit; NULL: none */
};
/** Stage `index` in the order of measuring, or NULL after the last. */
const struct gdrcap_bench_stage *gdrcap_bench_stage_at(size_t index);

/** What figures depend on. Texts are "" where unknown. */
struct gdrcap_bench_machine {
	char cpu[128], gpu[64], gpu_driver[32], cuda[32], kernel[128];
	uint32_t cpus;	    /**< that this process may use */
	uint32_t gpu_units; /**< multiprocessors; 0, as texts of the GPU "": CPU threads stand in */
	uint64_t memory_bytes, cache_bytes; /**< of the host; its last-level cache */
	int hugepages;			    /**< 1: EAL has them */
};

struct gdrcap_bench_config {
	const char *gpu;    /**< as option gpu */
	const char *cores;  /**< as option cores; NULL or "": all of this process */
	const char *stages; /**< ids or groups, separated by commas; NULL or "": all */
	/** Ports as options port and tx_port, cabled to each other: whole paths are measured over these
	 * only. Both or neither. */
	const char *port, *tx_port;
	const char *
		rx_by; /**< with ports: as option rx_by, several separated by commas; NULL: "driver" */
	const char *tx_by; /**< with ports: as option tx_by; NULL: "driver" */
	uint32_t quick;	   /**< 1: fewer points and shorter runs, 8 minutes at most */
	uint32_t runs;	   /**< a point, 1..GDRCAP_BENCH_RUNS_MAX; 0: 5 */
	uint32_t run_ms;   /**< each; 0: chosen */
	/** After each point: save it. May be NULL. */
	void (*result)(void *context, const struct gdrcap_bench_result *result);
	/** Before each point. May be NULL. */
	void (*progress)(void *context, const struct gdrcap_bench_point *point, uint32_t done,
			 uint32_t points, double seconds_left);
	/** Asked often: not 0 ends the bench after the run that is on. May be NULL. */
	int (*stop)(void *context);
	void *context;
};

/** Facts of this machine; starts the GPU's driver. */
int gdrcap_bench_machine(const struct gdrcap_bench_config *config,
			 struct gdrcap_bench_machine *machine, struct gdrcap_error *error);
/** Measures. 0, -EINTR when stop() said so, -ETIME when the 8 minutes of a quick bench are over
 * (the error says which points are left), -EINVAL for a wrong configuration, or an error that ended
 * it; a point that cannot be measured here (no GPU, too few cores) is a result with its error and
 * ends nothing. One of which a run failed ends nothing either, but -EIO comes of it at the end, with
 * what the first said. Stages that limit chosen ones are measured with them. */
int gdrcap_bench_run(const struct gdrcap_bench_config *config, struct gdrcap_error *error);

#endif
