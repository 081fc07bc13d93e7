/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One GPU of this process. Inside kernels/cuda only.
 *
 * While a persistent kernel runs, a call that waits for the whole device waits for ever. So all
 * that allocates, frees or loads code happens when the GPU is opened for the first time or closed
 * for the last, and what is needed later comes from there: pinned memory, streams, a memory pool.
 */
#ifndef GDRCAP_CUDA_DEVICE_CUH
#define GDRCAP_CUDA_DEVICE_CUH

#include <pthread.h>

#include "kernels/cuda/job.cuh"

#define DEVICE_JOBS_MAX 6u	/* two sessions that check, write and have fronts */
#define DEVICE_BLOCKS_MAX 4096u /* of a job */
#define STAGING_BYTES ((size_t)4 << 20)
#define REGISTER_PAGE 4096u /* in which a card's registers are mapped */

/* Pinned. Writers: gate: start(); started: blocks. */
struct job_control {
	uint32_t gate; /* enum gate_state */
	uint32_t reserved[15];
	uint32_t started[DEVICE_BLOCKS_MAX];
};

struct kernel_workers {
	struct kernel_device *device;
	const struct kernel_program *program;
	cudaStream_t stream;
	struct job_control *control;
	void *memory;			 /* of the pool: struct device_job and its tables */
	bool busy;			 /* between start() and join(); under the device's lock */
	struct place_launcher *launcher; /* of finite kernels; NULL: a persistent one runs */
	uint32_t per_ring, blocks;
	uint32_t room; /* blocks that others leave room for: those of the first whose place it is */
	uint32_t blocks_per_unit; /* that fit a multiprocessor */
	uint32_t groups, threads; /* of a block: groups of work threads; all threads */
	size_t shared_bytes;	  /* of a block */
};

struct kernel_device {
	int ordinal;
	uint32_t handles; /* open() less close(); under the table's lock */
	uint32_t units;
	uint32_t ticks_per_us;	   /* of its clock at most */
	size_t block_shared_bytes; /* that a block can have */
	int32_t writes_ordering, flush_options;
	bool stream_words; /* streams wait for words of 64 bits, and write them */
	char name[64];
	struct kernel_program program[PROGRAMS];
	cudaMemPool_t pool;
	cudaStream_t copy_stream;
	cudaEvent_t copied;
	uint8_t *staging;	    /* pinned, STAGING_BYTES */
	pthread_mutex_t copy_lock;  /* over copied and staging */
	struct kernel_copy *copies; /* pinned, KERNEL_COPIES_MAX */
	cudaEvent_t gathered;
	pthread_mutex_t gather_lock;  /* over copies and gathered: sessions share the GPU */
	pthread_mutex_t lock;	      /* over job[].busy and what start() decides from it */
	struct job_control *controls; /* pinned, one a job */
	struct kernel_workers job[DEVICE_JOBS_MAX];
};

/* The CUDA Runtime's own context of a GPU that was opened, current for the calling thread until it is popped. */
cudaError_t context_push(int ordinal);
void context_pop(void);

/* Makes a GPU current for a scope. Not by cudaSetDevice(): setting the caller's device again afterwards would
 * make a context on a GPU that nobody uses, where he has chosen none. */
class current_device
{
      public:
	explicit current_device(int ordinal) : error(context_push(ordinal))
	{
	}
	~current_device()
	{
		if (error == cudaSuccess)
			context_pop();
	}
	current_device(const current_device &) = delete;
	current_device &operator=(const current_device &) = delete;
	const cudaError_t error;
};

/* How many groups of work threads a block of the program has: as many as shared memory is for,
 * of which a block then has *shared_bytes. */
uint32_t program_groups(const struct kernel_program *program, size_t block_shared_bytes,
			size_t *shared_bytes);

/* Copies the job, its tables and its store into memory of the pool: workers->memory, even where it fails later. */
int job_upload(struct kernel_workers *workers, const struct kernel_job *job);

/* Records cause and remedy; `what` was being done. Returns a negative errno. */
int cuda_fail(cudaError_t error, const char *what);

int cuda_fill(struct kernel_device *device, void *at, uint8_t byte, size_t bytes);
int cuda_copy_in(struct kernel_device *device, void *to, const void *from, size_t bytes);
int cuda_copy_out(struct kernel_device *device, void *to, const void *from, size_t bytes);
int cuda_gather(struct kernel_device *device, const struct kernel_copy *copies, uint32_t count);

int cuda_sum(struct kernel_device *device, void *stream, const struct kernel_sum *sums,
	     uint32_t count);
/* Before anything runs for long; waited for with what follows in the copy stream. */
int cuda_sum_load(struct kernel_device *device);

/* True when the GPU and its driver have these: asked once, when it is opened. */
bool cuda_stream_words_find(int ordinal);
int cuda_wait_word(struct kernel_device *device, void *stream, const uint64_t *word,
		   uint64_t least);
int cuda_write_word(struct kernel_device *device, void *stream, uint64_t *word, uint64_t value);

int cuda_place_close_whole(struct kernel_device *device, const struct place_view *view,
			   const struct place_whole *images, uint32_t count);
int cuda_place_close(struct kernel_device *device, const struct place_view *view, uint32_t slot,
		     uint32_t use, uint32_t pieces, int fill);

int cuda_workers_start(struct kernel_device *device, const struct kernel_job *job,
		       struct kernel_workers **started);
int cuda_workers_join(struct kernel_workers *workers, unsigned int timeout_ms);
int cuda_workers_running(struct kernel_workers *workers);
bool cuda_workers_starved(struct kernel_workers *workers);
uint32_t cuda_workers_per_ring(const struct kernel_workers *workers);

#endif
