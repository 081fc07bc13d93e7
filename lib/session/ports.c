/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's ports: opened, given pools over the regions, configured, started, given rules. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>

#include "base/log.h"
#include "port/af_packet.h"
#include "session/session.h"

#define SCALAR_DESCRIPTORS_MAX 16384u
#define WIRE_FRAMES_MAX 4096u /* on a software wire at once: bounds what a stop has to drain */

/* One a queue. */
static int pair_pools(struct gdrcap_session *session, struct rte_mempool **pools,
		      struct region *region, const char *direction, uint32_t index, int numa_node,
		      struct gdrcap_error *error)
{
	const struct plan *plan = &session->plan;
	enum region_pool_use use = REGION_POOL_CACHED;

	/* What a send queue of the caller's has given away is back when it lies in the pool: no thread
	 * may keep any. It is given back by the queue's own; on a wire by the receiver's, and what a
	 * driver does with its UMEM is its own. */
	if (settings_lends(&session->settings) && direction[0] == 'w')
		use = REGION_POOL_SHARED;
	else if (settings_lends(&session->settings) && direction[0] == 't')
		use = plan->umem ? REGION_POOL_SHARED : REGION_POOL_ONE;
	for (uint32_t q = 0; q < session->settings.queues; q++) {
		char name[RTE_MEMPOOL_NAMESIZE];

		snprintf(name, sizeof(name), "gc%u_%s%u.%u", session->number, direction, index, q);
		pools[q] = region_pool_create(region, name, plan->pool_slots, plan->umem, use,
					      numa_node, error);
		if (!pools[q])
			return -ENOMEM;
	}
	return 0;
}

static int pair_open_wire(struct gdrcap_session *session, uint32_t index,
			  struct gdrcap_error *error)
{
	struct session_pair *pair = &session->ports.pairs[index];
	const struct plan *plan = &session->plan;
	int ret;

	ret = port_wire_open(&pair->wire, &pair->tx, &pair->rx,
			     session->settings.rx.port[index].name,
			     (uint16_t)session->settings.queues,
			     RTE_MIN(WIRE_FRAMES_MAX, rte_align32pow2(plan->pool_slots)), error);
	if (ret < 0)
		return ret;
	ret = pair_pools(session, pair->rx_pool, &session->memory.region, "w", index, -1, error);
	memcpy(pair->tx_pool, pair->rx_pool, sizeof(pair->tx_pool));
	return ret;
}

/* Opens the port that the plan names so, as `opened`; says what a ConnectX is and what its driver is told. */
static int pair_open_port(struct port *port, const struct plan_port *planned, const char *opened,
			  const char *named, struct gdrcap_error *error)
{
	const struct connectx_card *card = &planned->card;
	char reasons[768];
	int ret = port_open(port, opened, named, error);

	if (ret == 0 && port_name_is_af_packet(named) && port->device[0])
		log_info("port %s: opened as %s", named, planned->opened);
	if (ret < 0 || !card->pci[0])
		return ret;
	if (port->device[0] == '\0') {
		log_info("port %s: %s, with the arguments that the embedder opened it with", named,
			 card->pci);
		return 0;
	}
	connectx_reasons(named, planned->opened, reasons, sizeof(reasons));
	log_info("port %s: %s, interface %s, %s; set: %s", named, card->pci,
		 card->interface[0] ? card->interface : "none here", card->rdma, reasons);
	return 0;
}

/* With queues of our own the card is ours before it is the driver's. */
static int pair_open_rx(struct gdrcap_session *session, uint32_t index, struct gdrcap_error *error)
{
	struct session_pair *pair = &session->ports.pairs[index];
	const struct plan_port *planned = &session->plan.port[index];
	const char *name = session->settings.rx.port[index].name;
	char opened[PLAN_OPENED_BYTES];
	int ret;

	if (!settings_own_queues(&session->settings))
		return pair_open_port(&pair->rx, planned, planned->opened, name, error);
	ret = session_fronts_check(session, error);
	if (ret < 0)
		return ret;
	ret = own_queues_open(&pair->own, &planned->card, name, planned->opened, opened,
			      sizeof(opened), error);
	if (ret < 0)
		return ret;
	session_fronts_memory(session, &pair->own->gpu);
	ret = pair_open_port(&pair->rx, planned, opened, name, error);
	devx_probed(&pair->own->card, ret == 0 && pair->rx.device[0]);
	if (ret == 0 && !pair->rx.device[0])
		ret = error_set(
			error, -EBUSY,
			"rx_by: port %s was opened before, without queues of our own; leave "
			"rx_by out, or the port to the session",
			name);
	return ret;
}

static int pair_rx_pools(struct gdrcap_session *session, uint32_t index, struct gdrcap_error *error)
{
	struct session_pair *pair = &session->ports.pairs[index];
	const int node = pair->rx.numa_node;
	int ret;

	if (pair->own)
		return 0;
	ret = pair_pools(session, pair->rx_pool, &session->memory.region, "r", index, node, error);

	if (ret == 0 && session->settings.split)
		ret = pair_pools(session, pair->head_pool, &session->memory.heads, "h", index, node,
				 error);
	return ret;
}

static int pair_open_ports(struct gdrcap_session *session, uint32_t index,
			   struct gdrcap_error *error)
{
	struct session_pair *pair = &session->ports.pairs[index];
	const struct plan_port *tx = &session->plan.tx_port[index];
	const char *rx_name = session->settings.rx.port[index].name;
	const char *tx_name = session->settings.tx.port[index].name;
	const bool both = settings_is_both(&session->settings, index);
	const bool rx_first = !tx_name[0] || port_name_listens(rx_name);
	int ret = 0;

	if (rx_first)
		ret = pair_open_rx(session, index, error);
	if (ret == 0 && both && !rx_first)
		ret = pair_open_rx(session, index, error);
	if (ret == 0 && tx_name[0] && !both)
		ret = pair_open_port(&pair->tx, tx, tx->opened, tx_name, error);
	if (ret == 0 && !both && !rx_first && rx_name[0])
		ret = pair_open_rx(session, index, error);
	if (ret == 0 && rx_name[0])
		ret = pair_rx_pools(session, index, error);
	if (ret < 0 || !tx_name[0])
		return ret;
	pair->both = both;
	return pair_pools(session, pair->tx_pool, session_sending_region(session), "t", index,
			  both ? pair->rx.numa_node : pair->tx.numa_node, error);
}

/* A card that sends at the times written into its frames keeps them better than a CPU. */
static bool sends_on_time(const struct gdrcap_session *session, const struct port *port,
			  uint16_t tx_queues)
{
	return session->settings.pacing.kind != PACING_NONE && tx_queues &&
	       session->settings.tx_by == TX_BY_DRIVER && tx_clock_supported(port->id);
}

/* ---- arrival times ---- */

/* Whose clock: decided before the port is configured. */
static int pair_choose_clock(struct gdrcap_session *session, struct session_pair *pair,
			     struct gdrcap_error *error)
{
	const enum clock_kind asked = session->settings.clock;
	struct gdrcap_error why = { .text = "its driver has no such offload" };
	int ret = -ENOTSUP;

	pair->rx_clock.port = RX_CLOCK_CPU;
	if (!session->settings.times || asked == CLOCK_CPU || pair->own)
		return 0;
	if (port_name_is_file(pair->rx.name))
		return rx_clock_register_file(&pair->rx_clock, error);
	if (port_has_rx_timestamps(&pair->rx))
		ret = rx_clock_register(&pair->rx_clock, pair->rx.id, &why);
	if (ret == 0)
		return 0;
	pair->rx_clock.port = RX_CLOCK_CPU;
	if (asked != CLOCK_CARD)
		return 0;
	return error_set(
		error, ret,
		"clock: port %s does not say when frames came: %s; leave clock out for the "
		"CPU's, or receive from a ConnectX that has a clock",
		pair->rx.name, why.text);
}

/* After the start. */
static int pair_open_clock(struct gdrcap_session *session, struct session_pair *pair,
			   struct gdrcap_error *error)
{
	struct gdrcap_error why;
	int ret;

	if (!session->settings.times)
		return 0;
	ret = rx_clock_open(&pair->rx_clock, &why);
	if (ret < 0 && pair->rx_clock.port != RX_CLOCK_CPU &&
	    session->settings.clock == CLOCK_AUTO) {
		log_info("%s; arrival times are the CPU's", why.text);
		pair->rx_clock.port = RX_CLOCK_CPU;
		ret = rx_clock_open(&pair->rx_clock, &why);
	}
	return ret < 0 ? error_set(error, ret, "clock: %s", why.text) : 0;
}

/* ---- both directions ---- */

/* A card may write, or read, only what is registered with it. */
static void port_unmap(struct gdrcap_session *session, const struct port *port, uint32_t *mapped)
{
	struct region *regions[] = { &session->memory.region, &session->memory.heads,
				     &session->memory.sending };

	for (uint32_t i = RTE_DIM(regions); i-- > 0;)
		if (*mapped >> i & 1)
			region_unmap_device(regions[i], port_device(port));
	*mapped = 0;
}

static int port_map(struct gdrcap_session *session, const struct port *port, bool receives,
		    bool sends, uint32_t *mapped, struct gdrcap_error *error)
{
	struct session_memory *memory = &session->memory;
	const struct {
		struct region *region;
		bool used;
	} regions[] = {
		{ &memory->region, receives || !memory->sending.bytes },
		{ &memory->heads, receives && memory->heads.bytes },
		{ &memory->sending, sends && memory->sending.bytes },
	};
	int ret = 0;

	if (port->facts->writes != DRIVER_WRITES_DMA)
		return 0;
	for (uint32_t i = 0; ret == 0 && i < RTE_DIM(regions); i++) {
		if (!regions[i].used)
			continue;
		ret = region_map_device(regions[i].region, port_device(port), error);
		*mapped |= (uint32_t)(ret == 0) << i;
	}
	if (ret < 0)
		port_unmap(session, port, mapped);
	return ret;
}

static struct port_queues queues_of(const struct gdrcap_session *session, struct port *port,
				    uint16_t rx_queues, uint16_t tx_queues)
{
	const uint16_t most = RTE_MAX(rx_queues, tx_queues);

	port->rx_queues = port->facts->both_ways ? most : rx_queues;
	port->tx_queues = port->facts->both_ways ? most : tx_queues;
	return (struct port_queues){
		.rx_queues = port->rx_queues,
		.tx_queues = port->tx_queues,
		.descriptors = (uint16_t)session->settings.descriptors,
		.frame_bytes_max = session->plan.frame_bytes_max,
		.sends = tx_queues != 0,
		.segments = tx_queues != 0 && session->settings.sender == SENDER_HOST,
	};
}

/* An embedder may have opened the port with arguments that let the CPU copy frames into the card's
 * descriptors: a crash at the first frame from memory that it cannot read. */
static int inlining_check(const struct gdrcap_session *session, const struct port *port,
			  struct gdrcap_error *error)
{
	struct rte_eth_burst_mode mode = { 0 };

	if (port->facts->writes != DRIVER_WRITES_DMA ||
	    (session->memory.region.kind != GDRCAP_MEMORY_DEVICE &&
	     !settings_lends(&session->settings)) ||
	    rte_eth_tx_burst_mode_get(port->id, 0, &mode) != 0 || !strstr(mode.info, "INLINE"))
		return 0;
	return error_set(
		error, -EINVAL,
		"port %s copies frames into its descriptors with the CPU (%s), which cannot "
		"read GPU memory; open it with txq_inline_max=0,txq_inline_mpw=0",
		port->name, mode.info);
}

static int tx_prepare(struct gdrcap_session *session, struct session_pair *pair,
		      struct gdrcap_error *error)
{
	const uint16_t count = (uint16_t)session->settings.queues;
	struct port_queues queues = queues_of(session, &pair->tx, 0, count);
	int ret;

	queues.rx_pool = pair->tx_pool;
	queues.send_on_timestamp = sends_on_time(session, &pair->tx, count);
	ret = port_map(session, &pair->tx, false, true, &pair->tx_mapped, error);
	if (ret == 0)
		ret = port_configure(&pair->tx, &queues, error);
	if (ret == 0)
		ret = port_start(&pair->tx, error);
	if (ret == 0)
		ret = inlining_check(session, &pair->tx, error);
	if (ret == 0)
		xstats_open(&pair->tx_xstats, pair->tx.id);
	return ret;
}

/* Before the port is configured: what it can do of what is asked for. */
static int rx_ask(struct gdrcap_session *session, struct session_pair *pair,
		  struct gdrcap_error *error)
{
	struct port *port = &pair->rx;
	int ret;

	if (session->settings.split && !port_has_split(port))
		return error_set(
			error, -ENOTSUP,
			"split: port %s cannot split frames in two; leave split out, or use "
			"a ConnectX-5 or later with firmware 16.28 or later",
			port->name);
	ret = pair_choose_clock(session, pair, error);
	if (ret < 0 || port->facts->writes != DRIVER_WRITES_DMA)
		return ret;
	ret = steering_isolate(port->id, port->name, error);
	if (ret == 0)
		log_info("port %s has no rules: it receives everything, and the consumer chooses",
			 port->name);
	port->isolated = ret == 1;
	return ret < 0 ? ret : 0;
}

/* So long, the completion queue of the mlx5 driver's scalar functions, of twice that length where
 * completions are compressed, has a length that does not fit their 16 bits: nothing is received. */
static int scalar_check(const struct gdrcap_session *session, const struct session_pair *pair,
			struct gdrcap_error *error)
{
	const struct plan_port *planned = &session->plan.port[pair - session->ports.pairs];
	const struct port *port = &pair->rx;
	struct rte_eth_burst_mode mode = { 0 };

	if (port->facts->writes != DRIVER_WRITES_DMA || session->settings.split ||
	    session->settings.descriptors <= SCALAR_DESCRIPTORS_MAX ||
	    strstr(planned->opened, ",rxq_cqe_comp_en=0") ||
	    rte_eth_rx_burst_mode_get(port->id, 0, &mode) != 0 || !strstr(mode.info, "Scalar"))
		return 0;
	return error_set(
		error, -EINVAL,
		"descriptors: port %s receives with its driver's scalar functions, which have "
		"at most %u with compressed completions; ask for fewer, or give "
		"rxq_cqe_comp_en=0",
		port->name, SCALAR_DESCRIPTORS_MAX);
}

static int rx_prepare(struct gdrcap_session *session, struct session_pair *pair,
		      struct gdrcap_error *error)
{
	const uint16_t count = (uint16_t)session->settings.queues;
	/* A driver wants one queue at least: where the receiving ones are ours, one to send. */
	struct port_queues queues = queues_of(session, &pair->rx, pair->own ? 0 : count,
					      pair->both ? count : pair->own != NULL);
	int ret;

	ret = port_map(session, &pair->rx, true, pair->both, &pair->rx_mapped, error);
	if (ret == 0)
		ret = rx_ask(session, pair, error);
	if (ret < 0)
		return ret;
	queues.rx_pool = pair->rx_pool;
	queues.head_pool = pair->head_pool;
	queues.split = (uint16_t)session->settings.split;
	queues.rx_timestamps = pair->rx_clock.port < RX_CLOCK_FILE;
	/* Interfaces have sockets to sleep on. */
	queues.rx_interrupts = session->plan.idle_us && !pair->rx.facts->interface &&
			       !pair->rx.facts->joins && !pair->own;
	ret = port_configure(&pair->rx, &queues, error);
	if (ret == 0)
		ret = port_start(&pair->rx, error);
	if (ret == 0 && pair->both)
		ret = inlining_check(session, &pair->rx, error);
	if (ret == 0)
		ret = scalar_check(session, pair, error);
	if (ret == 0)
		ret = session_sources_open(session, pair, error);
	if (ret == 0 && pair->own)
		ret = own_queues_create(pair->own, &pair->rx, &session->memory.region, count,
					session->plan.pool_slots, session->settings.rx_strides,
					error);
	if (ret == 0)
		ret = session_rules_create(session, pair, error);
	if (ret == 0)
		session_rules_tell(session, pair);
	if (ret == 0)
		ret = pair_open_clock(session, pair, error);
	if (ret == 0)
		xstats_open(&pair->rx_xstats, pair->rx.id);
	if (ret == 0 && pair->both)
		xstats_open(&pair->tx_xstats, pair->rx.id);
	return ret;
}

static void pair_close(struct gdrcap_session *session, struct session_pair *pair)
{
	if (pair->tx_clocked)
		tx_clock_close(&pair->tx_clock);
	/* The thread that writes a session that was given up's files may still look at its copy. */
	if (!session->run.given_up)
		rx_clock_close(&pair->rx_clock);
	steering_destroy(&pair->steering);
	own_queues_destroy(pair->own);
	/* Ports first: closing one gives back the mbufs in its queues. */
	port_stop(&pair->tx);
	port_stop(&pair->rx);
	if (pair->rx.isolated && pair->rx.device[0] == '\0')
		steering_release(pair->rx.id);
	session_memory_unmap(session, (uint32_t)(pair - session->ports.pairs));
	port_unmap(session, &pair->tx, &pair->tx_mapped);
	port_unmap(session, &pair->rx, &pair->rx_mapped);
	port_close(&pair->tx);
	port_close(&pair->rx);
	own_queues_close(&pair->own);
	interface_forget(&pair->tx_interface);
	interface_forget(&pair->rx_interface);
	port_wire_close(&pair->wire);
	session_sources_close(pair);
	for (uint32_t q = 0; q < session->settings.queues; q++) {
		if (pair->tx_pool[q] != pair->rx_pool[q])
			rte_mempool_free(pair->tx_pool[q]);
		rte_mempool_free(pair->head_pool[q]);
		rte_mempool_free(pair->rx_pool[q]);
	}
	memset(pair, 0, sizeof(*pair));
}

static int pair_create(struct gdrcap_session *session, uint32_t index, struct gdrcap_error *error)
{
	struct session_pair *pair = &session->ports.pairs[index];
	const uint16_t queues = (uint16_t)session->settings.queues;
	int ret;

	ret = session->settings.rx.port[index].wire ? pair_open_wire(session, index, error)
						    : pair_open_ports(session, index, error);
	if (ret == 0 && pair->tx.open && !port_name_listens(pair->rx.name))
		ret = tx_prepare(session, pair, error);
	if (ret == 0 && pair->rx.open)
		ret = rx_prepare(session, pair, error);
	if (ret == 0 && pair->tx.open && !pair->tx.started)
		ret = tx_prepare(session, pair, error);
	interface_watch(&pair->rx_interface, port_interface_index(&pair->rx), pair->rx.name);
	interface_watch(&pair->tx_interface, port_interface_index(&pair->tx), pair->tx.name);
	if (ret == 0 && pair->tx.open && sends_on_time(session, &pair->tx, queues)) {
		struct gdrcap_error why;

		pair->tx_clocked =
			tx_clock_open(&pair->tx_clock, pair->tx.id, rte_get_tsc_hz(), &why) == 0;
		if (!pair->tx_clocked)
			log_warning("%s", why.text);
	}
	if (ret < 0)
		pair_close(session, pair);
	return ret;
}

/* A receiver tells senders apart by their source address, and so does a switch: where the user gave
 * none, ours is the port's own. Those of software ports without one keep the layout's. */
static void source_choose(struct gdrcap_session *session)
{
	struct rte_ether_addr mac;

	if (settings_sends(&session->settings) &&
	    rte_is_zero_ether_addr((const void *)session->settings.frame.src_mac) &&
	    session->frames.layout.format != FRAME_CUSTOM &&
	    rte_eth_macaddr_get(session->ports.pairs[0].tx.id, &mac) == 0 &&
	    rte_is_valid_assigned_ether_addr(&mac))
		memcpy(&session->frames.layout.templ[RTE_ETHER_ADDR_LEN], mac.addr_bytes,
		       sizeof(mac.addr_bytes));
}

int session_ports_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	session_rules_choose(session);
	for (uint32_t i = 0; i < session->settings.ports; i++) {
		int ret = pair_create(session, i, error);

		if (ret < 0) {
			while (i-- > 0)
				pair_close(session, &session->ports.pairs[i]);
			return ret;
		}
	}
	source_choose(session);
	return 0;
}

void session_ports_destroy(struct gdrcap_session *session)
{
	for (uint32_t i = session->settings.ports; i-- > 0;)
		pair_close(session, &session->ports.pairs[i]);
}
