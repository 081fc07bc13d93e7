/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the caller's that frames are sent from: registered, and given back. */
#include <errno.h>

#include <rte_common.h>

#include "base/guest.h"
#include "base/log.h"
#include "session/session.h"

/* By its address for cards or by the one for who writes it: the GPU's, or its threads on the CPU. */
static bool overlaps(const struct region *region, const void *addr, uint64_t bytes)
{
	const uintptr_t from = (uintptr_t)addr;
	const uintptr_t theirs[] = { (uintptr_t)region->base, (uintptr_t)region->device };

	for (size_t i = 0; region->bytes && i < RTE_DIM(theirs); i++)
		if (from < theirs[i] + region->bytes && theirs[i] < from + bytes)
			return true;
	return false;
}

static int check_place(const struct gdrcap_session *session, const void *addr, uint64_t bytes,
		       struct gdrcap_error *error)
{
	if ((uintptr_t)addr + bytes < (uintptr_t)addr)
		return error_set(error, -EINVAL,
				 "gdrcap_tx_register: %llu bytes at %p go beyond the end of the "
				 "address space",
				 (unsigned long long)bytes, addr);
	if (!addr || (uintptr_t)addr % REGION_ALIGN || !bytes || bytes % REGION_ALIGN)
		return error_set(
			error, -EINVAL,
			"gdrcap_tx_register: %llu bytes at %p; address and length are multiples "
			"of 64 KiB",
			(unsigned long long)bytes, addr);
	if (overlaps(&session->memory.region, addr, bytes) ||
	    overlaps(&session->memory.heads, addr, bytes) ||
	    overlaps(&session->memory.sending, addr, bytes))
		return error_set(
			error, -EEXIST,
			"gdrcap_tx_register: some of the %llu bytes at %p are the session's "
			"own, for frames; give memory beside it",
			(unsigned long long)bytes, addr);
	for (uint32_t i = 0; i < SEND_MEMORIES; i++)
		if (overlaps(&session->sending.memories[i].region, addr, bytes))
			return error_set(
				error, -EEXIST,
				"gdrcap_tx_register: some of the %llu bytes at %p are registered "
				"already; unregister those first",
				(unsigned long long)bytes, addr);
	return 0;
}

/* Every queue may be given it. */
static int check_ports(const struct gdrcap_session *session, enum gdrcap_memory kind,
		       struct gdrcap_error *error)
{
	for (uint32_t p = 0; p < session->settings.ports; p++) {
		const struct port *port =
			session_sending_port(session, p * session->settings.queues);

		if (!port_has_tx_segments(port))
			return error_set(
				error, -ENOTSUP,
				"gdrcap_tx_register: port %s (%s) sends frames of one piece only; copy the "
				"data into the slots, or send from a ConnectX, net_memif or "
				"net_af_packet",
				port->name, port->facts->what);
		if (kind == GDRCAP_MEMORY_DEVICE && port->facts->writes == DRIVER_COPIES)
			return error_set(
				error, -ENOTSUP,
				"gdrcap_tx_register: port %s (%s) copies frames with the CPU and cannot "
				"reach GPU memory; register pinned or host memory, or send from a "
				"ConnectX",
				port->name, port->facts->what);
	}
	return 0;
}

void session_memory_unmap(struct gdrcap_session *session, uint32_t p)
{
	for (uint32_t i = 0; i < SEND_MEMORIES; i++) {
		struct send_memory *memory = &session->sending.memories[i];

		if (memory->mapped >> p & 1)
			region_unmap_device(&memory->region,
					    port_device(session_sending_port(
						    session, p * session->settings.queues)));
		memory->mapped &= ~(1u << p);
	}
}

static void memory_close(struct gdrcap_session *session, struct send_memory *memory)
{
	for (uint32_t p = 0; p < session->settings.ports; p++)
		if (memory->mapped >> p & 1)
			region_unmap_device(&memory->region,
					    port_device(session_sending_port(
						    session, p * session->settings.queues)));
	memory->mapped = 0;
	region_destroy(&memory->region);
}

void session_memory_destroy(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < SEND_MEMORIES; i++)
		region_destroy(&session->sending.memories[i].region);
}

static int memory_open(struct gdrcap_session *session, struct send_memory *memory,
		       const struct region_config *config, struct gdrcap_error *error)
{
	int ret = region_create(&memory->region, config, error);

	for (uint32_t p = 0; ret == 0 && p < session->settings.ports; p++) {
		const struct port *port =
			session_sending_port(session, p * session->settings.queues);

		if (port->facts->writes != DRIVER_WRITES_DMA)
			continue;
		ret = region_map_device(&memory->region, port_device(port), error);
		memory->mapped |= (uint32_t)(ret == 0) << p;
	}
	if (ret < 0 && memory->region.base)
		memory_close(session, memory);
	return ret;
}

static int memory_register(struct gdrcap_session *session, const struct region_config *config,
			   struct gdrcap_error *error)
{
	for (uint32_t i = 0; i < SEND_MEMORIES; i++) {
		struct send_memory *memory = &session->sending.memories[i];
		int ret;

		if (memory->region.base)
			continue;
		ret = memory_open(session, memory, config, error);
		if (ret == 0)
			/* After all of the region. Partner: the acquire load in
			 * send_memory_find(). */
			atomic_store_explicit(&memory->open, 1, memory_order_release);
		return ret;
	}
	return error_set(
		error, -ENOSPC,
		"gdrcap_tx_register: %u pieces of memory are registered, and no more can be; "
		"register larger ones",
		SEND_MEMORIES);
}

int gdrcap_tx_register(struct gdrcap_session *session, void *addr, uint64_t bytes,
		       enum gdrcap_memory kind, struct gdrcap_error *error)
{
	const struct region_config config = {
		.gpu = session ? session->memory.gpu : 0,
		.kind = kind,
		.bytes = bytes,
		.slot_shift = REGION_IMAGE_SHIFT,
		.addr = addr,
		.cpu_workers = session && !session->plan.cuda,
	};
	int ret = guest_check(session, "session", error);

	if (ret < 0)
		return ret;
	LOG_SCOPE(&session->log);
	if (session->sending.count == 0)
		return error_set(
			error, -EINVAL,
			"gdrcap_tx_register: the session has no send queue; set sender: host");
	if (session->settings.sender == SENDER_GPU)
		return error_set(
			error, -ENOTSUP,
			"gdrcap_tx_register: a running kernel's frames (sender: gpu) are of one "
			"piece; write them into the slots, or set sender: host");
	if (kind != GDRCAP_MEMORY_DEVICE && kind != GDRCAP_MEMORY_PINNED &&
	    kind != GDRCAP_MEMORY_HOST)
		return error_set(
			error, -EINVAL,
			"gdrcap_tx_register: kind %d; say what the memory is: device, pinned or "
			"host",
			(int)kind);
	ret = check_ports(session, kind, error);
	if (ret < 0)
		return ret;
	session_ports_lock(session);
	ret = check_place(session, addr, bytes, error);
	if (ret == 0)
		ret = memory_register(session, &config, error);
	session_ports_unlock(session);
	return ret;
}

/* Frames that were lent from it and are not back. */
static uint64_t memory_lent(const struct gdrcap_session *session, uint32_t i)
{
	uint64_t lent = 0;

	for (uint32_t q = 0; q < session->sending.count; q++) {
		const struct send_lent *of = &session->sending.queues[q].lent[i];

		/* After the last access of the port. Partner: counter_add() in
		 * send_part_back(). */
		const uint64_t freed = atomic_load_explicit(&of->freed, memory_order_acquire);

		lent += atomic_load_explicit(&of->lent, memory_order_relaxed) - freed;
	}
	return lent;
}

int gdrcap_tx_unregister(struct gdrcap_session *session, void *addr, struct gdrcap_error *error)
{
	int ret = guest_check(session, "session", error);

	if (ret < 0)
		return ret;
	LOG_SCOPE(&session->log);
	ret = -ENOENT;
	session_ports_lock(session);
	for (uint32_t i = 0; addr && i < SEND_MEMORIES; i++) {
		struct send_memory *memory = &session->sending.memories[i];
		uint64_t lent;

		if (memory->region.base != addr)
			continue;
		atomic_store_explicit(&memory->open, 0, memory_order_relaxed);
		/* CLOSE MEMORY. Partner: LEND in send_lend_holds(). */
		atomic_thread_fence(memory_order_seq_cst);
		lent = memory_lent(session, i);
		if (lent) {
			atomic_store_explicit(&memory->open, 1, memory_order_release);
			ret = error_set(
				error, -EBUSY,
				"gdrcap_tx_unregister: frames that are not back, with payloads in the memory at %p: %llu; poll until they are, or destroy the session",
				addr, (unsigned long long)lent);
			break;
		}
		memory_close(session, memory);
		ret = 0;
		break;
	}
	session_ports_unlock(session);
	return ret == -ENOENT
		       ? error_set(error, ret,
				   "gdrcap_tx_unregister: no memory is registered that begins "
				   "at %p",
				   addr)
		       : ret;
}
