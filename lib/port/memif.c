/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A memif peer that leaves, and one that takes away memory that it gave.
 *
 * When a peer leaves, DPDK's driver marks the connection as broken, and unmaps the memory that it
 * shared with the peer, from EAL's interrupt thread: also while a worker, which found the connection
 * whole, copies a burst into that memory. So the driver's call of memif_free_regions() is led
 * through here, and waits until no worker can be there.
 *
 * A server's memory is the client's: files whose descriptors it sends. One that is shorter than it
 * says, or is cut short later, ends the process that reads from it (SIGBUS). The kernel can promise
 * that a file stays as long as it is (F_SEAL_SHRINK), and DPDK's and libmemif's clients let it. So
 * each file that memif_connect() maps is asked for that promise first, where the driver's call of
 * mmap() is led through here; without it the connection is refused. What the peer writes into that
 * memory, the driver still believes: see the README on who may connect.
 *
 * The memory that a connection is made of is noted where it is mapped, a client's own in
 * memif_init_regions_and_queues(): memif_rings.h looks into it.
 *
 * How it is linked: as lib/memory/dmabuf.h says of ibv_reg_mr_iova2(), with -Wl,--wrap=NAME. It
 * needs the driver as an archive; the functions that meet are in two of its files. All other calls
 * of mmap() in what is linked so come by too, and are passed on as they are. Read in DPDK 22.11, run
 * there.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/log.h"
#include "base/thread.h"
#include "port/memif_rings.h"

struct rte_eth_dev;

/* The linker gives these names their meaning: --wrap. */
void __real_memif_free_regions(struct rte_eth_dev *device);
void __wrap_memif_free_regions(struct rte_eth_dev *device);
int __real_memif_connect(struct rte_eth_dev *device);
int __wrap_memif_connect(struct rte_eth_dev *device);
int __real_memif_init_regions_and_queues(struct rte_eth_dev *device);
int __wrap_memif_init_regions_and_queues(struct rte_eth_dev *device);
void *__real_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__real_mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);

static _Thread_local bool connecting;
static _Thread_local const struct rte_eth_dev *mapping_for; /* NULL: it is not memif that maps */

void __wrap_memif_free_regions(struct rte_eth_dev *device)
{
	threads_go_round();
	memif_rings_forget(device);
	__real_memif_free_regions(device);
}

int __wrap_memif_connect(struct rte_eth_dev *device)
{
	int ret;

	connecting = true;
	mapping_for = device;
	ret = __real_memif_connect(device);
	mapping_for = NULL;
	connecting = false;
	return ret;
}

int __wrap_memif_init_regions_and_queues(struct rte_eth_dev *device)
{
	int ret;

	mapping_for = device;
	ret = __real_memif_init_regions_and_queues(device);
	mapping_for = NULL;
	return ret;
}

/* Why a peer's file may not be mapped; NULL: it may. Seals are asked for first: a file that can still
 * be cut has no length to go by. */
static const char *peer_refused(int fd, size_t bytes)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	struct statfs system;
	struct stat file;

	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return "it can still be made shorter (it lacks F_SEAL_SHRINK)";
	/* Of huge pages there may be none left at the first access. */
	if (fstatfs(fd, &system) < 0 || system.f_type != TMPFS_MAGIC)
		return "it is not a memory file of ordinary pages";
	if (fstat(fd, &file) < 0 || file.st_size < 0 || bytes == 0 ||
	    (uint64_t)file.st_size < bytes)
		return "it is shorter than the peer says";
	return NULL;
}

static bool may_map(size_t bytes, int fd)
{
	const char *why = connecting && fd >= 0 ? peer_refused(fd, bytes) : NULL;

	if (!why)
		return true;
	log_warning("memif: a peer was turned away, since the memory that it shares could end this "
		    "process: %s; who may connect is for the socket's directory to say, and for "
		    "secret=",
		    why);
	errno = EPERM;
	return false;
}

static void *mapped(void *at, size_t bytes, int fd)
{
	if (mapping_for && fd >= 0 && at != MAP_FAILED)
		memif_rings_mapped(mapping_for, at, bytes);
	return at;
}

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (!may_map(bytes, fd))
		return MAP_FAILED;
	return mapped(__real_mmap(address, bytes, protection, flags, fd, offset), bytes, fd);
}

void *__wrap_mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (!may_map(bytes, fd))
		return MAP_FAILED;
	return mapped(__real_mmap64(address, bytes, protection, flags, fd, offset), bytes, fd);
}
