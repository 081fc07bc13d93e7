/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DMA to memory of the process.
 *
 * plain:  memory that the CPU can touch too.
 * hidden: memory that the CPU cannot touch (PROT_NONE), as that of a GPU: whoever reads a payload
 * with the CPU gets SIGSEGV. The card writes through a second mapping of the same pages, so they
 * must be shared (MAP_SHARED, anonymous or of a file).
 *
 * A dma-buf is a file whose pages can be mapped (memfd, udmabuf).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"

#define MAPS_LINE 512

enum access {
	ACCESS_NONE, /* not mapped, or not in whole */
	ACCESS_HIDDEN,
	ACCESS_PLAIN,
};

/* What the CPU may do with [address, address + length). Read and write, or nothing at all: both
 * count. */
static enum access memory_access(uintptr_t address, uint64_t length)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t end = address + length, start, stop;
	enum access found = ACCESS_NONE, here;
	char line[MAPS_LINE], flags[8];

	if (maps == NULL)
		return ACCESS_NONE;
	while (address < end && fgets(line, sizeof(line), maps) != NULL) {
		if (sscanf(line, "%lx-%lx %7s", &start, &stop, flags) != 3 || stop <= address)
			continue;
		if (start > address)
			break;
		here = flags[0] == 'r' ? ACCESS_PLAIN : ACCESS_HIDDEN;
		if (found != ACCESS_NONE && here != found)
			break;
		found = here;
		address = stop;
	}
	fclose(maps);
	return address >= end ? found : ACCESS_NONE;
}

static void place_write(struct soft_region *region, uint64_t offset, const void *from,
			size_t length)
{
	memcpy(region->place + offset, from, length);
}

static void place_read(struct soft_region *region, uint64_t offset, void *to, size_t length)
{
	memcpy(to, region->place + offset, length);
}

static int plain_attach(struct soft_region *region, int file, uint64_t file_offset)
{
	if (file >= 0 || memory_access((uintptr_t)region->ibv.addr, region->length) != ACCESS_PLAIN)
		return 0;
	region->place = region->ibv.addr;
	return 1;
}

/* Page-aligned start and length of the mapping. */
static void mapping_of(const struct soft_region *region, uint64_t start, uint64_t *first,
		       uint64_t *length)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	*first = start / page * page;
	*length = (start + region->length - *first + page - 1) / page * page;
}

static int hidden_attach(struct soft_region *region, int file, uint64_t file_offset)
{
	uint64_t start = file >= 0 ? file_offset : (uintptr_t)region->ibv.addr;
	uint64_t first, length;
	void *alias;

	mapping_of(region, start, &first, &length);
	if (file >= 0) {
		alias = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)first);
		if (alias == MAP_FAILED)
			return -errno;
	} else {
		if (memory_access((uintptr_t)region->ibv.addr, region->length) != ACCESS_HIDDEN)
			return 0;
		/* An old size of 0 makes a second mapping of shared pages; private ones give
		 * EINVAL. */
		alias = mremap((void *)(uintptr_t)first, 0, length, MREMAP_MAYMOVE);
		if (alias == MAP_FAILED)
			return -errno;
		if (mprotect(alias, length, PROT_READ | PROT_WRITE) < 0) {
			munmap(alias, length);
			return -errno;
		}
	}
	region->plugin = alias;
	region->place = (uint8_t *)alias + (start - first);
	return 1;
}

static void hidden_detach(struct soft_region *region)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t before = (uint64_t)(region->place - (uint8_t *)region->plugin);

	munmap(region->plugin, (before + region->length + page - 1) / page * page);
}

const struct soft_dma soft_dma_plain = {
	.name = "plain",
	.direct = true,
	.attach = plain_attach,
	.write = place_write,
	.read = place_read,
};

const struct soft_dma soft_dma_hidden = {
	.name = "hidden",
	.peer = true,
	.direct = true,
	.attach = hidden_attach,
	.detach = hidden_detach,
	.write = place_write,
	.read = place_read,
};
