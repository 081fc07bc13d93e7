/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The card's network interface, of which there is none: its name, number, state and counters are
 * answered here, and everything else goes to the C library.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "device.h"
#include "nic.h"

#define LINK_MODE_WORDS 3
#define SPEED 100000 /* Mbit/s */

struct soft_device *netdev_by_name(const char *name)
{
	for (unsigned int i = 0; i < soft_device_count; i++)
		if (strncmp(name, soft_devices[i].ifname, IFNAMSIZ) == 0)
			return &soft_devices[i];
	return NULL;
}

unsigned int if_nametoindex(const char *ifname)
{
	struct soft_device *device = netdev_by_name(ifname);
	unsigned int (*next)(const char *);

	if (device != NULL)
		return device->ifindex;
	next = dlsym(RTLD_NEXT, "if_nametoindex");
	return next(ifname);
}

char *if_indextoname(unsigned int ifindex, char ifname[IF_NAMESIZE])
{
	char *(*next)(unsigned int, char *);

	for (unsigned int i = 0; i < soft_device_count; i++)
		if (soft_devices[i].ifindex == ifindex)
			return strcpy(ifname, soft_devices[i].ifname);
	next = dlsym(RTLD_NEXT, "if_indextoname");
	return next(ifindex, ifname);
}

static int answer_link(struct soft_device *device, struct ethtool_link_settings *link)
{
	uint32_t *supported = link->link_mode_masks;

	if (link->link_mode_masks_nwords != LINK_MODE_WORDS) {
		/* The first of two calls asks for the size. */
		link->link_mode_masks_nwords = -LINK_MODE_WORDS;
		return 0;
	}
	link->speed = wire_up(device) ? SPEED : (uint32_t)SPEED_UNKNOWN;
	link->duplex = DUPLEX_FULL;
	link->autoneg = AUTONEG_ENABLE;
	memset(supported, 0, 3 * LINK_MODE_WORDS * sizeof(*supported));
	supported[ETHTOOL_LINK_MODE_100000baseCR4_Full_BIT / 32] |=
		1u << ETHTOOL_LINK_MODE_100000baseCR4_Full_BIT % 32;
	return 0;
}

static int answer_strings(struct ethtool_gstrings *strings)
{
	if (strings->string_set != ETH_SS_STATS)
		return EOPNOTSUPP;
	strings->len = netdev_stats_count();
	for (unsigned int i = 0; i < strings->len; i++)
		snprintf((char *)strings->data + i * ETH_GSTRING_LEN, ETH_GSTRING_LEN, "%s",
			 netdev_stats_name(i));
	return 0;
}

static int answer_ethtool(struct soft_device *device, void *data)
{
	struct ethtool_drvinfo *driver = data;
	struct ethtool_stats *stats = data;
	struct ethtool_pauseparam *pause = data;
	struct ethtool_sset_info *sets = data;
	uint32_t command;

	memcpy(&command, data, sizeof(command));
	switch (command) {
	case ETHTOOL_GLINKSETTINGS:
		return answer_link(device, data);
	case ETHTOOL_GDRVINFO:
		snprintf(driver->driver, sizeof(driver->driver), "mlx5_core");
		snprintf(driver->bus_info, sizeof(driver->bus_info), "%s", device->pci);
		driver->n_stats = netdev_stats_count();
		driver->n_priv_flags = 0;
		return 0;
	case ETHTOOL_GSTRINGS:
		return answer_strings(data);
	case ETHTOOL_GSTATS:
		stats->n_stats = netdev_stats_count();
		nic_lock();
		for (unsigned int i = 0; i < stats->n_stats; i++)
			stats->data[i] = netdev_stats_value(device, i);
		nic_unlock();
		return 0;
	case ETHTOOL_GSSET_INFO:
		sets->sset_mask &= 1ull << ETH_SS_STATS;
		if (sets->sset_mask != 0)
			sets->data[0] = netdev_stats_count();
		return 0;
	case ETHTOOL_GPAUSEPARAM:
		pause->autoneg = 0;
		pause->rx_pause = device->peer->faults.pause != 0;
		pause->tx_pause = device->faults.pause != 0;
		return 0;
	case ETHTOOL_SPAUSEPARAM:
		return 0;
	default:
		return EOPNOTSUPP;
	}
}

/* 0 or a positive errno. */
static int answer(struct soft_device *device, unsigned long request, struct ifreq *ifr)
{
	switch (request) {
	case SIOCGIFFLAGS:
		ifr->ifr_flags = IFF_BROADCAST | IFF_MULTICAST;
		if (device->up)
			ifr->ifr_flags |= IFF_UP;
		if (wire_up(device))
			ifr->ifr_flags |= IFF_RUNNING;
		return 0;
	case SIOCSIFFLAGS:
		nic_lock();
		device->up = (ifr->ifr_flags & IFF_UP) != 0;
		nic_unlock();
		return 0;
	case SIOCGIFMTU:
		ifr->ifr_mtu = (int)device->mtu;
		return 0;
	case SIOCSIFMTU:
		if (ifr->ifr_mtu < 68 || ifr->ifr_mtu > 9978)
			return EINVAL;
		device->mtu = (unsigned int)ifr->ifr_mtu;
		return 0;
	case SIOCGIFHWADDR:
		memset(&ifr->ifr_hwaddr, 0, sizeof(ifr->ifr_hwaddr));
		ifr->ifr_hwaddr.sa_family = 1; /* ARPHRD_ETHER */
		memcpy(ifr->ifr_hwaddr.sa_data, device->mac, sizeof(device->mac));
		return 0;
	case SIOCGIFINDEX:
		ifr->ifr_ifindex = (int)device->ifindex;
		return 0;
	case SIOCETHTOOL:
		return answer_ethtool(device, ifr->ifr_data);
	default:
		return EOPNOTSUPP;
	}
}

/* Requests that take a struct ifreq: SIOCADDRT (0x890b) to SIOCWANDEV (0x894a). */
static bool takes_ifreq(unsigned long request)
{
	return request > 0x890b && request <= 0x894a;
}

int ioctl(int fd, unsigned long request, ...)
{
	static int (*next)(int, unsigned long, ...);
	struct soft_device *device;
	va_list args;
	void *data;
	int error;

	va_start(args, request);
	data = va_arg(args, void *);
	va_end(args);
	if (takes_ifreq(request) && data != NULL) {
		device = netdev_by_name(((struct ifreq *)data)->ifr_name);
		if (device != NULL) {
			error = answer(device, request, data);
			if (error == 0)
				return 0;
			errno = error;
			return -1;
		}
	}
	if (next == NULL)
		next = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	return next(fd, request, data);
}
