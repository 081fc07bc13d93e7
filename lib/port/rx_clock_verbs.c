/* SPDX-License-Identifier: BSD-3-Clause */
/* A ConnectX's clock, asked by Verbs. */
#include "port/rx_clock_verbs.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_pci.h>

#include "base/log.h"

#define TICKS_MAX INT64_MAX /* the counter has 63 bits */

/* Chosen as the driver chooses: by the place on the PCI bus, which may be written in two ways. All
 * functions of bonded ports share the RDMA device of one. What is not on that bus (a subfunction)
 * has a name. */
static bool is_of(const struct ibv_device *rdma, const char *device)
{
	char link[sizeof(rdma->ibdev_path) + sizeof("/device")], path[PATH_MAX];
	struct rte_pci_addr ours, theirs;
	const char *name;

	snprintf(link, sizeof(link), "%s/device", rdma->ibdev_path);
	if (!realpath(link, path))
		return false;
	name = strrchr(path, '/') + 1;
	if (rte_pci_addr_parse(device, &ours) < 0 || rte_pci_addr_parse(name, &theirs) < 0)
		return strcmp(device, name) == 0;
	if (strstr(rdma->name, "bond"))
		ours.function = theirs.function;
	return rte_pci_addr_cmp(&ours, &theirs) == 0;
}

static int error_of(int code)
{
	return code ? -code : -EIO;
}

int rx_clock_verbs_open(struct ibv_context **verbs, uint16_t port)
{
	struct ibv_device **list, **at;
	struct rte_eth_dev_info info;
	int ret = -ENODEV;

	*verbs = NULL;
	if (rte_eth_dev_info_get(port, &info) < 0 || !info.device)
		return ret;
	errno = 0;
	list = ibv_get_device_list(NULL);
	if (!list)
		return error_of(errno);
	for (at = list; *at && !is_of(*at, rte_dev_name(info.device)); at++)
		;
	if (*at) {
		errno = 0;
		*verbs = ibv_open_device(*at);
		ret = *verbs ? 0 : error_of(errno);
	}
	ibv_free_device_list(list);
	return ret;
}

int rx_clock_verbs_read(struct ibv_context *verbs, uint64_t *ticks)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	int ret = ibv_query_rt_values_ex(verbs, &values);

	if (ret)
		return ret < 0 ? ret : -ret;
	/* All of it is in the ns, whatever its unit. */
	*ticks = (uint64_t)values.raw_clock.tv_nsec;
	/* Of a card that is gone all bits are read as 0 or as 1, and no error. */
	return *ticks == 0 || *ticks >= TICKS_MAX ? -EIO : 0;
}

void rx_clock_verbs_close(struct ibv_context *verbs)
{
	if (ibv_close_device(verbs))
		log_warning("an RDMA device that was opened for its clock stays open: %s",
			    strerror(errno));
}
