/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's ports: opened, given pools over the region, configured, started. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mempool.h>

#include "log.h"
#include "session.h"

#define WIRE_FRAMES_MAX 4096u /* on a software wire at once: bounds what a stop has to drain */

static struct rte_mempool *pair_pool(struct gdrcap_session *session, const char *direction,
				     uint32_t index, int numa_node, struct gdrcap_error *error)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "gc%u_%s%u", session->number, direction, index);
	return region_pool_create(&session->region, name, session->plan.pool_slots,
				  session->plan.umem, numa_node, error);
}

static int pair_open_wire(struct gdrcap_session *session, uint32_t index,
			  struct gdrcap_error *error)
{
	struct session_pair *pair = &session->pairs[index];
	const struct plan *plan = &session->plan;
	int ret;

	ret = port_wire_open(&pair->wire, &pair->tx, &pair->rx, session->config.port[index],
			     (uint16_t)plan->queues,
			     RTE_MIN(WIRE_FRAMES_MAX, rte_align32pow2(plan->pool_slots)), error);
	if (ret < 0)
		return ret;
	pair->rx_pool = pair_pool(session, "w", index, -1, error);
	if (!pair->rx_pool)
		return -ENOMEM;
	pair->tx_pool = pair->rx_pool;
	return 0;
}

static int pair_open_ports(struct gdrcap_session *session, uint32_t index,
			   struct gdrcap_error *error)
{
	struct session_pair *pair = &session->pairs[index];
	const char *rx_name = session->config.port[index];
	const char *tx_name = session->config.tx_port[index];
	const bool rx_first = !tx_name[0] || port_name_listens(rx_name);
	int ret = 0;

	if (rx_first)
		ret = port_open(&pair->rx, rx_name, error);
	if (ret == 0 && tx_name[0])
		ret = port_open(&pair->tx, tx_name, error);
	if (ret == 0 && !rx_first && rx_name[0])
		ret = port_open(&pair->rx, rx_name, error);
	if (ret < 0)
		return ret;
	if (rx_name[0]) {
		pair->rx_pool = pair_pool(session, "r", index, pair->rx.numa_node, error);
		if (!pair->rx_pool)
			return -ENOMEM;
	}
	if (!tx_name[0])
		return 0;
	pair->tx_pool = pair_pool(session, "t", index, pair->tx.numa_node, error);
	return pair->tx_pool ? 0 : -ENOMEM;
}

/* A card that sends at the times written into its frames keeps them better than a CPU. */
static bool sends_on_time(const struct gdrcap_session *session, const struct port *port,
			  uint16_t tx_queues)
{
	return session->pacing.kind != PACING_NONE && tx_queues && tx_clock_supported(port->id);
}

static int port_prepare(struct gdrcap_session *session, struct port *port, uint16_t rx_queues,
			uint16_t tx_queues, struct rte_mempool *pool, bool *mapped,
			struct gdrcap_error *error)
{
	const uint16_t most = RTE_MAX(rx_queues, tx_queues);
	const struct port_queues queues = {
		.rx_queues = port->facts->both_ways ? most : rx_queues,
		.tx_queues = port->facts->both_ways ? most : tx_queues,
		.descriptors = (uint16_t)session->plan.descriptors,
		.frame_bytes_max = session->plan.frame_bytes_max,
		.rx_pool = pool,
		.send_on_timestamp = sends_on_time(session, port, tx_queues),
	};
	int ret;

	port->rx_queues = queues.rx_queues;
	port->tx_queues = queues.tx_queues;
	if (port->facts->writes == DRIVER_WRITES_DMA) {
		ret = region_map_device(&session->region, port_device(port), error);
		if (ret < 0)
			return ret;
		*mapped = true;
	}
	ret = port_configure(port, &queues, error);
	return ret < 0 ? ret : port_start(port, error);
}

static void pair_close(struct gdrcap_session *session, struct session_pair *pair)
{
	if (pair->tx_clocked)
		tx_clock_close(&pair->tx_clock);
	/* Ports first: closing one gives back the mbufs in its queues. */
	port_stop(&pair->tx);
	port_stop(&pair->rx);
	if (pair->tx_mapped)
		region_unmap_device(&session->region, port_device(&pair->tx));
	if (pair->rx_mapped)
		region_unmap_device(&session->region, port_device(&pair->rx));
	port_close(&pair->tx);
	port_close(&pair->rx);
	port_wire_close(&pair->wire);
	if (pair->tx_pool != pair->rx_pool)
		rte_mempool_free(pair->tx_pool);
	rte_mempool_free(pair->rx_pool);
	memset(pair, 0, sizeof(*pair));
}

static int pair_create(struct gdrcap_session *session, uint32_t index, struct gdrcap_error *error)
{
	struct session_pair *pair = &session->pairs[index];
	const uint16_t queues = (uint16_t)session->plan.queues;
	int ret;

	ret = session->plan.wire[index] ? pair_open_wire(session, index, error) :
					  pair_open_ports(session, index, error);
	if (ret == 0 && pair->tx.open && !port_name_listens(pair->rx.name))
		ret = port_prepare(session, &pair->tx, 0, queues, pair->tx_pool, &pair->tx_mapped,
				   error);
	if (ret == 0 && pair->rx.open)
		ret = port_prepare(session, &pair->rx, queues, 0, pair->rx_pool, &pair->rx_mapped,
				   error);
	if (ret == 0 && pair->tx.open && !pair->tx.started)
		ret = port_prepare(session, &pair->tx, 0, queues, pair->tx_pool, &pair->tx_mapped,
				   error);
	if (ret == 0 && pair->tx.open && sends_on_time(session, &pair->tx, queues)) {
		struct gdrcap_error why;

		pair->tx_clocked = tx_clock_open(&pair->tx_clock, pair->tx.id, rte_get_tsc_hz(),
						 &why) == 0;
		if (!pair->tx_clocked)
			log_warning("%s", why.text);
	}
	if (ret < 0)
		pair_close(session, pair);
	return ret;
}

int session_ports_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	for (uint32_t i = 0; i < session->plan.ports; i++) {
		int ret = pair_create(session, i, error);

		if (ret < 0) {
			while (i-- > 0)
				pair_close(session, &session->pairs[i]);
			return ret;
		}
	}
	return 0;
}

void session_ports_destroy(struct gdrcap_session *session)
{
	for (uint32_t i = session->plan.ports; i-- > 0;)
		pair_close(session, &session->pairs[i]);
}
