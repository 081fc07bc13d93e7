/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory registrations of the mlx5 driver, with a dma-buf in place of an address. */
#include "memory/dmabuf.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "base/log.h"

struct entry {
	LIST_ENTRY(entry) next;
	struct dmabuf_memory memory;
	int fd; /* -1: not made yet. Open as long as the entry: a driver registers a pool only when
		 * its port starts */
	struct dmabuf_state state;
};

static LIST_HEAD(, entry) entries = LIST_HEAD_INITIALIZER(entries);
static pthread_mutex_t entries_lock = PTHREAD_MUTEX_INITIALIZER;

/* The linker gives these names their meaning: --wrap. */
struct ibv_mr *__real_ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       unsigned int access);
struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       unsigned int access);

/* The entry that all of it lies in. */
static struct entry *entry_find(const void *addr, size_t bytes)
{
	struct entry *entry;

	LIST_FOREACH(entry, &entries, next)
	{
		const uintptr_t offset = (uintptr_t)addr - (uintptr_t)entry->memory.base;

		if (offset < entry->memory.bytes && bytes <= entry->memory.bytes - offset)
			return entry;
	}
	return NULL;
}

int dmabuf_add(const struct dmabuf_memory *memory, struct gdrcap_error *error)
{
	const uintptr_t start = (uintptr_t)memory->base, last = start + memory->bytes - 1;
	struct entry *entry, *other;

	if (memory->bytes == 0 || last < start)
		return error_set(error, -EINVAL, "%zu bytes at %p are not memory", memory->bytes,
				 memory->base);
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return error_set(error, -ENOMEM, "no memory to note the region");
	entry->memory = *memory;
	entry->fd = -1;
	pthread_mutex_lock(&entries_lock);
	LIST_FOREACH(other, &entries, next)
	{
		const uintptr_t other_start = (uintptr_t)other->memory.base;

		if (start < other_start + other->memory.bytes && other_start <= last) {
			pthread_mutex_unlock(&entries_lock);
			free(entry);
			return error_set(error, -EEXIST,
					 "the region overlaps another session's: give each "
					 "session memory of its own");
		}
	}
	LIST_INSERT_HEAD(&entries, entry, next);
	pthread_mutex_unlock(&entries_lock);
	return 0;
}

void dmabuf_remove(const void *base)
{
	struct entry *entry;

	pthread_mutex_lock(&entries_lock);
	entry = entry_find(base, 1);
	if (entry && entry->memory.base == base) {
		LIST_REMOVE(entry, next);
		if (entry->fd >= 0)
			close(entry->fd);
		free(entry);
	}
	pthread_mutex_unlock(&entries_lock);
}

static int entry_fd(struct entry *entry)
{
	int fd;

	if (entry->fd >= 0)
		return entry->fd;
	fd = entry->memory.export_fd
		     ? entry->memory.export_fd(entry->memory.context, entry->memory.base,
					       entry->memory.bytes)
		     : -ENOTSUP;
	if (fd < 0) {
		entry->state.export_error = -fd;
		return fd;
	}
	entry->state.export_error = 0;
	entry->fd = fd;
	return fd;
}

static struct ibv_mr *register_dmabuf(struct entry *entry, struct ibv_pd *pd, void *addr,
				      size_t length, uint64_t iova, unsigned int access)
{
	const uint64_t offset = (uintptr_t)addr - (uintptr_t)entry->memory.base;
	const int fd = entry_fd(entry);
	struct ibv_mr *mr;

	if (fd < 0)
		return NULL;
	errno = 0;
	mr = ibv_reg_dmabuf_mr(pd, offset, length, iova, fd, (int)access);
	if (!mr) {
		entry->state.dmabuf_error = errno ? errno : EIO;
		return NULL;
	}
	/* libibverbs notes the offset there; DPDK's driver looks memory up by this address. Nobody
	 * else uses it: ibv_dereg_mr() does so only for memory registered by address. */
	mr->addr = addr;
	return mr;
}

/* Registered, one way or the other; NULL with errno, as libibverbs does. */
static struct ibv_mr *register_entry(struct entry *entry, struct ibv_pd *pd, void *addr,
				     size_t length, uint64_t iova, unsigned int access)
{
	struct dmabuf_state *state = &entry->state;
	struct ibv_mr *mr;

	errno = 0;
	mr = __real_ibv_reg_mr_iova2(pd, addr, length, iova, access);
	if (mr) {
		state->by_address++;
	} else {
		state->address_error = errno ? errno : EIO;
		mr = register_dmabuf(entry, pd, addr, length, iova, access);
		if (mr)
			state->by_dmabuf++;
	}
	if (!mr) {
		state->way = DMABUF_WAY_REFUSED;
		errno = state->address_error;
	} else if (state->by_address && state->by_dmabuf) {
		state->way = DMABUF_WAY_BOTH;
	} else {
		state->way = state->by_dmabuf ? DMABUF_WAY_DMABUF : DMABUF_WAY_ADDRESS;
	}
	return mr;
}

struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       unsigned int access)
{
	struct entry *entry;
	struct ibv_mr *mr;
	int code;

	pthread_mutex_lock(&entries_lock);
	entry = entry_find(addr, length);
	if (entry) {
		mr = register_entry(entry, pd, addr, length, iova, access);
		code = errno;
		pthread_mutex_unlock(&entries_lock);
		errno = code;
		return mr;
	}
	pthread_mutex_unlock(&entries_lock);
	return __real_ibv_reg_mr_iova2(pd, addr, length, iova, access);
}

void dmabuf_state(const void *base, struct dmabuf_state *state)
{
	const struct entry *entry;

	memset(state, 0, sizeof(*state));
	pthread_mutex_lock(&entries_lock);
	entry = entry_find(base, 1);
	if (entry)
		*state = entry->state;
	pthread_mutex_unlock(&entries_lock);
}

void dmabuf_explain(const void *base, char *text, size_t bytes)
{
	struct dmabuf_state state;
	char second[320];

	dmabuf_state(base, &state);
	if (!state.address_error) {
		snprintf(text, bytes,
			 "the card's driver gave up before it asked the kernel: its "
			 "own words are above");
		return;
	}
	if (state.export_error == ENOTSUP)
		snprintf(second, sizeof(second),
			 "as dma-buf the GPU does not give it: that needs NVIDIA's open kernel "
			 "modules and driver 515 or later (nvidia-smi -q)");
	else if (state.export_error)
		snprintf(second, sizeof(second),
			 "a dma-buf of it cannot be made: %s (the whole of it must be one "
			 "allocation, and there must be file descriptors left, ulimit -n)",
			 strerror(state.export_error));
	else
		snprintf(second, sizeof(second),
			 "as dma-buf the card's kernel driver refuses it: %s (needs Linux 5.12 or "
			 "later, built with CONFIG_INFINIBAND_ON_DEMAND_PAGING)",
			 strerror(state.dmabuf_error));
	snprintf(text, bytes, "by address the kernel refuses it: %s (%s); %s",
		 strerror(state.address_error),
		 state.address_error == ENOMEM
			 ? "raise the locked-memory limit, ulimit -l unlimited"
			 : "load the peer memory module, modprobe nvidia-peermem",
		 second);
}
