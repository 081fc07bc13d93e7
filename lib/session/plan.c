/* SPDX-License-Identifier: BSD-3-Clause */
/* What a configuration comes to on this machine: memory kind, slots, pools. */
#include "session/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_mbuf_core.h>

#include "base/log.h"
#include "base/parse.h"
#include "config/config.h"
#include "gpu/gpu_drivers.h"
#include "memory/region.h"
#include "pattern/frame.h"
#include "port/devargs.h"
#include "port/port.h"
#include "session/plan_internal.h"

#define POOL_SLOTS 16384u
#define POOL_SLOTS_MIN 2048u
#define POOL_PAGES 64u /* a pool is so many pages, or up to twice that, or pages of REGION_ALIGN */
#define SLOT_SHIFT_MIN 8u
#define SLOT_SHIFT_MAX 14u
#define UMEM_SLOT_SHIFT 12u
#define EAL_BASE_BYTES ((size_t)128 << 20) /* EAL, ports' queues and rings */

_Static_assert(CONFIG_HEADROOM == RTE_PKTMBUF_HEADROOM, "checks of sizes do not ask DPDK");

const char *plan_memory_name(enum gdrcap_memory memory)
{
	static const char *const names[] = { "auto", "device", "pinned", "host" };

	return (unsigned int)memory < 4 ? names[memory] : "unknown";
}

/* A port of which direction so ever that cannot write, or read, memory that the CPU cannot address.
 */
static const char *copying_port(const struct gdrcap_config *config)
{
	for (uint32_t i = 0; i < PLAN_PORTS; i++) {
		const char *name = plan_port_name(config, i);
		const struct driver_facts *facts;

		if (!name[0])
			continue;
		facts = driver_facts_find(name);
		if (facts->writes == DRIVER_COPIES ||
		    (strncmp(name, "net_null", 8) == 0 && strstr(name, "copy=1")))
			return name;
	}
	return NULL;
}

static int plan_gpu(struct plan *plan, const struct gdrcap_config *config,
		    struct gdrcap_error *error)
{
	const bool automatic = !config->gpu[0] || strcmp(config->gpu, "auto") == 0;
	char why[256] = "";
	uint64_t ordinal = 0;
	int count;

	if (strcmp(config->gpu, "host") == 0 ||
	    (automatic && config->memory == GDRCAP_MEMORY_HOST) || (automatic && config->guard))
		return 0;
	count = gpu_cuda_count(why, sizeof(why));
	if (automatic) {
		plan->cuda = count > 0;
		return 0;
	}
	if (parse_u64(config->gpu, &ordinal) < 0)
		return error_set(error, -EINVAL, "gpu: \"%s\" is not auto, host or a CUDA ordinal",
				 config->gpu);
	if (ordinal >= (uint64_t)count)
		return error_set(
			error, -ENODEV,
			"gpu: there is no CUDA device %s (%d found%s%s); use --gpu host for none, "
			"or nvidia-smi -L to see them",
			config->gpu, count, why[0] ? ": " : "", why);
	plan->cuda = true;
	plan->ordinal = (int)ordinal;
	if (config->memory == GDRCAP_MEMORY_HOST)
		return error_set(
			error, -ENOTSUP,
			"memory: a kernel on GPU %s cannot read plain host memory; use pinned "
			"(host memory registered with the GPU), or --gpu host",
			config->gpu);
	return 0;
}

/* Mbufs that pass from one owner to another would go back to a pool that they are not from. */
static int plan_own_memory(const struct gdrcap_config *config, struct gdrcap_error *error)
{
	for (uint32_t i = 0; i < PLAN_PORTS; i++)
		if (plan_port_name(config, i)[0] &&
		    driver_facts_find(plan_port_name(config, i))->shared_mbufs)
			return error_set(
				error, -ENOTSUP,
				"port %s (%s) passes frames on in their sender's memory; use "
				"ring:NAME for a wire in this process, or net_memif between two",
				plan_port_name(config, i),
				driver_facts_find(plan_port_name(config, i))->what);
	return 0;
}

static int plan_memory(struct plan *plan, const struct gdrcap_config *config,
		       struct gdrcap_error *error)
{
	const char *copies = copying_port(config);

	plan->memory = config->memory;
	if (plan->memory == GDRCAP_MEMORY_AUTO)
		plan->memory = !copies	    ? GDRCAP_MEMORY_DEVICE
			       : plan->cuda ? GDRCAP_MEMORY_PINNED
					    : GDRCAP_MEMORY_HOST;
	if (plan->memory == GDRCAP_MEMORY_DEVICE && copies)
		return error_set(
			error, -ENOTSUP,
			"memory: port %s (%s) copies frames with the CPU and cannot reach GPU "
			"memory; use --memory %s, or a port that can: a ConnectX, or ring:NAME",
			copies, driver_facts_find(copies)->what, plan->cuda ? "pinned" : "host");
	if (config->guard && plan->memory != GDRCAP_MEMORY_DEVICE)
		return error_set(
			error, -ENOTSUP,
			"guard: only device memory can be guarded, and port %s needs %s memory",
			copies		     ? copies
			: config->port[0][0] ? config->port[0]
					     : config->tx_port[0],
			plan_memory_name(plan->memory));
	return 0;
}

static int plan_ports(struct plan *plan, const struct gdrcap_config *config,
		      struct gdrcap_error *error)
{
	for (uint32_t i = 0; i < PLAN_PORTS; i++) {
		const char *name = plan_port_name(config, i);
		int ret;

		if (!name[0])
			continue;
		plan->umem |= driver_facts_find(name)->umem;
		snprintf(plan_port_at(plan, i)->opened, PLAN_OPENED_BYTES, "%s", name);
		ret = port_name_is_connectx(name) ? plan_card(plan, config, i, error) : 0;
		if (ret < 0)
			return ret;
	}
	plan->receives = config->port[0][0] != '\0';
	plan->sends = config->tx_port[0][0] != '\0';
	while (plan->ports < GDRCAP_PORTS_MAX &&
	       (config->port[plan->ports][0] || config->tx_port[plan->ports][0]))
		plan->ports++;
	for (uint32_t i = 0; i < plan->ports; i++) {
		plan->wire[i] = port_name_is_wire(config->port[i]);
		plan->pools +=
			plan->queues * (plan->wire[i] || !plan->sends || !plan->receives ? 1 : 2);
	}
	return 0;
}

/* What the machine could give to programs now. */
static size_t memory_available(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib ? (size_t)kib << 10
		   : (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

/* DPDK's driver for files takes what it cannot read for the file's end, and says nothing. */
static int plan_port_files(const struct gdrcap_config *config, struct gdrcap_error *error)
{
	char path[sizeof(config->port[0])];
	int ret = 0;

	for (uint32_t p = 0; ret == 0 && p < GDRCAP_PORTS_MAX; p++) {
		const char *args = devargs_of(config->port[p]);

		if (strncmp(config->port[p], "net_pcap", strlen("net_pcap")) != 0)
			continue;
		for (unsigned int n = 0;
		     ret == 0 && devargs_value(args, "rx_pcap", n, path, sizeof(path)) >= 0; n++)
			ret = file_frames_check(path, error);
	}
	return ret;
}

/* Files are read once before anything is opened: slots and pools follow from their frames. */
static int plan_files(struct plan *plan, const struct gdrcap_config *config,
		      struct gdrcap_error *error)
{
	int ret = 0;

	plan->loops = config_loops(config);
	plan->file_memory = config->pcap_memory ? config->pcap_memory : memory_available() / 2;
	if (config->pcap[0])
		ret = file_frames_scan(config->pcap, &plan->pcap, error);
	if (ret == 0 && config->expect[0] && strcmp(config->expect, config->pcap) == 0)
		plan->expect = plan->pcap;
	else if (ret == 0 && config->expect[0])
		ret = file_frames_scan(config->expect, &plan->expect, error);
	plan->frame_bytes_max =
		(uint16_t)(RTE_MAX(plan->pcap.len_max, plan->expect.len_max) + FRAME_FCS_BYTES);
	return ret == 0 ? plan_port_files(config, error) : ret;
}

static int plan_lengths(struct plan *plan, const struct gdrcap_config *config,
			struct gdrcap_error *error)
{
	uint16_t *sizes = malloc(PARSE_FRAME_SIZES_MAX * sizeof(*sizes));
	int ret;

	if (!sizes)
		return error_set(error, -ENOMEM, "no memory for the list of frame sizes");
	ret = parse_frame_sizes(config->frame_size, FRAME_MIN_BYTES, FRAME_MAX_BYTES, sizes,
				PARSE_FRAME_SIZES_MAX, &plan->length_count);
	if (ret < 0) {
		free(sizes);
		return error_set(error, ret, "frame.size: \"%s\" is no list of sizes",
				 config->frame_size);
	}
	for (size_t i = 0; i < plan->length_count; i++) {
		/* A sender that plays a file has no sizes of its own. */
		if (!plan->pcap.frames || plan->receives)
			plan->frame_bytes_max = RTE_MAX(plan->frame_bytes_max, sizes[i]);
		sizes[i] = (uint16_t)(sizes[i] - FRAME_FCS_BYTES);
	}
	plan->lengths = sizes;
	return 0;
}

/* Tags that a rule asks for must reach those who apply the rule. */
static int plan_tags(const struct gdrcap_config *config, struct gdrcap_error *error)
{
	struct frame_match_rule rule;
	char why[128];

	for (uint32_t p = 0; p < GDRCAP_PORTS_MAX && config->port[p][0]; p++) {
		const struct driver_facts *facts = driver_facts_find(config->port[p]);

		for (uint32_t i = 0; facts->no_vlan && i < GDRCAP_MATCH_MAX; i++)
			if (config->match[i][0] &&
			    frame_match_parse(&rule, config->match[i], why, sizeof(why)) == 0 &&
			    (rule.fields & FRAME_MATCH_VLAN) && rule.vlan)
				return error_set(
					error, -ENOTSUP,
					"match: \"%s\": port %s (%s) does not deliver VLAN tags; use "
					"net_af_xdp0,iface=... or a ConnectX",
					config->match[i], config->port[p], facts->what);
		if (facts->no_vlan && (config->save[0] || config->expect[0]))
			log_warning("port %s (%s) does not deliver VLAN tags: tagged frames are "
				    "%s without",
				    config->port[p], facts->what,
				    config->save[0] ? "saved" : "compared");
	}
	return 0;
}

/* Bytes after the headroom that port `i` insists on in a slot. */
static uint32_t port_room(struct plan *plan, uint32_t i)
{
	const char *name = plan_port_at(plan, i)->opened;
	const bool fcs = driver_facts_find(name)->room_fcs;

	/* A card's own demand is on what it receives into. */
	if (fcs && i >= GDRCAP_PORTS_MAX)
		return 0;
	return RTE_MAX(port_room_min(name), fcs ? (uint32_t)plan->frame_bytes_max : 0u);
}

/* `need`: of the largest frame, or what a port insists on, and the headroom. */
static int slot_fits(const struct plan *plan, const struct gdrcap_config *config, uint32_t need,
		     struct gdrcap_error *error)
{
	const uint32_t most = 1u << (plan->umem ? UMEM_SLOT_SHIFT : SLOT_SHIFT_MAX);
	const uint32_t bytes = 1u << plan->slot_shift;

	if (need > most)
		return error_set(
			error, -EMSGSIZE,
			"frame.size: frames of up to %u bytes need slots of %u bytes on these "
			"ports, which can have %u at most%s; send and expect shorter ones",
			plan->frame_bytes_max, need, most,
			plan->umem ? " with an AF_XDP port" : "");
	if (need > bytes)
		return error_set(error, -EMSGSIZE,
				 "slot_bytes: %u are too few: frames of up to %u bytes need %u on "
				 "these ports; leave slot_bytes out, or give %u",
				 bytes, plan->frame_bytes_max, need, rte_align32pow2(need));
	return 0;
}

static int plan_slots(struct plan *plan, const struct gdrcap_config *config,
		      struct gdrcap_error *error)
{
	uint32_t need = plan->frame_bytes_max - FRAME_FCS_BYTES;
	int ret;

	for (uint32_t i = 0; i < PLAN_PORTS; i++)
		if (plan_port_name(config, i)[0])
			need = RTE_MAX(need, port_room(plan, i));
	need += RTE_PKTMBUF_HEADROOM;
	plan->slot_shift = config->slot_bytes ? (uint32_t)__builtin_ctz(config->slot_bytes)
					      : (uint32_t)__builtin_ctz(rte_align32pow2(need));
	plan->slot_shift = RTE_MAX(plan->slot_shift, SLOT_SHIFT_MIN);
	if (plan->umem && config->slot_bytes && plan->slot_shift != UMEM_SLOT_SHIFT)
		return error_set(
			error, -EINVAL,
			"slot_bytes: an AF_XDP port's slots have 4096 bytes; leave it out");
	if (plan->umem)
		plan->slot_shift = UMEM_SLOT_SHIFT;
	for (uint32_t i = 0; i < PLAN_PORTS; i++) {
		const char *name = plan_port_name(config, i);
		const struct driver_facts *facts = driver_facts_find(name);

		if (name[0] && port_frame_max(name) && plan->frame_bytes_max > port_frame_max(name))
			return error_set(
				error, -EMSGSIZE,
				"port %s (%s) carries frames of up to %u bytes; frame.size, or the "
				"file, has %u",
				name, facts->what, port_frame_max(name), plan->frame_bytes_max);
		if (name[0] && facts->no_vlan && config->vlan)
			return error_set(
				error, -ENOTSUP,
				"port %s (%s) does not deliver VLAN tags; send untagged frames, or "
				"use net_af_xdp0,iface=... or a ConnectX",
				name, facts->what);
	}
	ret = plan_tags(config, error);
	if (ret < 0)
		return ret;
	return slot_fits(plan, config, need, error);
}

/* Before EAL starts: it would spend minutes on tables for memory that is not there. */
static int plan_fits(const struct plan *plan, const struct gdrcap_config *config,
		     struct gdrcap_error *error)
{
	const size_t physical = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
	const bool elsewhere =
		config->memory_addr || (plan->cuda && plan->memory == GDRCAP_MEMORY_DEVICE);
	const size_t need =
		plan->eal_bytes + plan->heads_bytes + (elsewhere ? 0 : plan->region_bytes);

	if (need > physical)
		return error_set(
			error, -ENOMEM,
			"pool: %u slots need %zu MiB of this machine's memory, it has %zu MiB; "
			"ask for less with --pool",
			plan->pool_slots * plan->pools, need >> 20, physical >> 20);
	return 0;
}

/* Slots of a page, a power of two, so that few pages make up a pool of about so many slots. Pools
 * are whole pages: none has a part of another's. */
static uint64_t pool_page(uint64_t slots, uint32_t slot_shift)
{
	const uint64_t few = slots ? rte_align64prevpow2(slots) / POOL_PAGES : 0;

	return RTE_MAX((uint64_t)REGION_ALIGN >> slot_shift, few);
}

static int plan_pools(struct plan *plan, const struct gdrcap_config *config,
		      struct gdrcap_error *error)
{
	/* What the caches of a queue's two threads can hold is nobody else's: with fewer slots than
	 * that a sender would wait for ever. */
	const uint64_t wanted =
		RTE_MAX((uint64_t)POOL_SLOTS_MIN, (uint64_t)2 * REGION_POOL_CACHE_MOST +
							  2 * plan->descriptors + 4 * plan->burst);
	const uint64_t slots_min = RTE_ALIGN_CEIL(wanted, pool_page(wanted, plan->slot_shift));
	uint64_t slots = RTE_MAX(slots_min, (uint64_t)POOL_SLOTS);
	uint32_t pools;

	if (config->pool_bytes) {
		slots = (config->pool_bytes >> plan->slot_shift) / plan->pools;
		slots = RTE_ALIGN_FLOOR(slots, pool_page(slots, plan->slot_shift));
		if (slots < slots_min)
			return error_set(
				error, -EINVAL,
				"pool: these ports, queues and descriptors need at least %llu "
				"slots of "
				"%u bytes: %llu MiB",
				(unsigned long long)slots_min * plan->pools, 1u << plan->slot_shift,
				(unsigned long long)((slots_min * plan->pools << plan->slot_shift) +
						     (1u << 20) - 1) >>
					20);
		if (slots * plan->pools > UINT32_MAX / 4)
			return error_set(error, -EINVAL,
					 "pool: more than %u slots are not supported",
					 UINT32_MAX / 4);
	}
	plan->pool_slots = (uint32_t)slots;
	plan->region_bytes = config->memory_addr ? config->pool_bytes
						 : (size_t)slots * plan->pools << plan->slot_shift;
	/* Any slot of a receiving pool may hold the rest of a frame, whose beginning lies
	 * elsewhere. */
	if (config->split)
		plan->heads_bytes = (size_t)slots * plan->ports * plan->queues << REGION_HEAD_SHIFT;
	pools = plan->pools + (config->split ? plan->ports * plan->queues : 0);
	plan->eal_bytes = EAL_BASE_BYTES + plan_cards_bytes(plan) +
			  pools * region_pool_overhead(plan->pool_slots) +
			  (size_t)pools * 2 * sizeof(void *) * rte_align32pow2(plan->pool_slots);
	return plan_fits(plan, config, error);
}

int plan_create(struct plan *plan, const struct gdrcap_config *config, struct gdrcap_error *error)
{
	int ret;

	memset(plan, 0, sizeof(*plan));
	plan->queues = config->queues ? config->queues : 1;
	plan->burst = config->burst ? config->burst : 64;
	plan->descriptors = config->descriptors ? config->descriptors : 1024;
	plan->streams = config->pcap[0] ? 1 : RTE_MAX(config->streams, 1u);
	ret = plan_ports(plan, config, error);
	if (ret == 0)
		ret = plan_card_only(config, error);
	if (ret == 0)
		ret = plan_own_memory(config, error);
	if (ret == 0)
		ret = plan_gpu(plan, config, error);
	if (ret == 0)
		ret = plan_memory(plan, config, error);
	if (ret == 0)
		ret = plan_files(plan, config, error);
	if (ret == 0)
		ret = plan_lengths(plan, config, error);
	if (ret == 0)
		ret = plan_devargs(plan, config, error);
	if (ret == 0)
		ret = plan_slots(plan, config, error);
	if (ret == 0)
		ret = plan_pools(plan, config, error);
	if (ret < 0)
		plan_destroy(plan);
	return ret;
}

void plan_destroy(struct plan *plan)
{
	free(plan->lengths);
	memset(plan, 0, sizeof(*plan));
}
