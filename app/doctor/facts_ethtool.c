/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel's driver says of an interface: questions that need no rights. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>

#include "doctor/facts.h"

#define COUNTERS_MAX 65536u
#define LINK_WORDS_MAX 127 /* of the kernel's bit maps: a signed 8-bit number */

struct asked {
	struct tree *tree;
	const char *interface;
	int socket;
};

static int ask(const struct asked *asked, void *question)
{
	struct ifreq request = { 0 };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", asked->interface);
	request.ifr_data = question;
	return ioctl(asked->socket, SIOCETHTOOL, &request) < 0 ? -errno : 0;
}

static void fact(const struct asked *asked, const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "ethtool/%s/%s", asked->interface, name);
	tree_fact_set(asked->tree, path, value);
}

static void ask_driver(const struct asked *asked)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };

	if (ask(asked, &info) < 0)
		return;
	/* The kernel ends them, except where the driver fills them to the last byte. */
	info.driver[sizeof(info.driver) - 1] = '\0';
	info.version[sizeof(info.version) - 1] = '\0';
	info.fw_version[sizeof(info.fw_version) - 1] = '\0';
	fact(asked, "driver", info.driver);
	fact(asked, "driver_version", info.version);
	fact(asked, "firmware", info.fw_version);
}

static void ask_pause(const struct asked *asked)
{
	struct ethtool_pauseparam pause = { .cmd = ETHTOOL_GPAUSEPARAM };
	char text[64];

	if (ask(asked, &pause) < 0)
		return;
	snprintf(text, sizeof(text), "rx %s, tx %s, autonegotiated %s",
		 pause.rx_pause ? "on" : "off", pause.tx_pause ? "on" : "off",
		 pause.autoneg ? "on" : "off");
	fact(asked, "pause", text);
}

/* Asked twice: the first time the kernel says how long its bit maps are. */
static void ask_speed(const struct asked *asked)
{
	union {
		struct ethtool_link_settings settings;
		uint32_t room[sizeof(struct ethtool_link_settings) / sizeof(uint32_t) +
			      3 * LINK_WORDS_MAX];
	} link = { .settings = { .cmd = ETHTOOL_GLINKSETTINGS } };
	int8_t words;
	char text[32];

	if (ask(asked, &link) < 0)
		return;
	words = link.settings.link_mode_masks_nwords;
	if (words >= 0)
		return;
	memset(&link, 0, sizeof(link));
	link.settings.cmd = ETHTOOL_GLINKSETTINGS;
	link.settings.link_mode_masks_nwords = (int8_t)-words;
	if (ask(asked, &link) < 0)
		return;
	snprintf(text, sizeof(text), "%u", link.settings.speed);
	fact(asked, "speed", link.settings.speed == (uint32_t)SPEED_UNKNOWN ? "unknown" : text);
}

static bool counter_wanted(const char *name)
{
	static const char *const wanted[] = {
		"rx_out_of_buffer",  "rx_discards_phy", "rx_pause_ctrl_phy",
		"tx_pause_ctrl_phy", "rx_global_pause", "tx_global_pause",
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (strncmp(name, wanted[i], ETH_GSTRING_LEN) == 0)
			return true;
	return false;
}

static uint32_t counters_of(const struct asked *asked)
{
	union {
		struct ethtool_sset_info info;
		uint32_t room[sizeof(struct ethtool_sset_info) / sizeof(uint32_t) + 1];
	} sets = { .info = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ull << ETH_SS_STATS } };
	uint32_t count = 0;

	if (ask(asked, &sets) == 0 && sets.info.sset_mask)
		memcpy(&count, sets.info.data, sizeof(count));
	return count <= COUNTERS_MAX ? count : 0;
}

static void ask_counters(const struct asked *asked)
{
	const uint32_t count = counters_of(asked);
	struct ethtool_gstrings *names;
	struct ethtool_stats *values;

	if (count == 0)
		return;
	/* The kernel writes as many as it has by now, whatever it is told: room for some more. */
	names = calloc(1, sizeof(*names) + 2 * (size_t)count * ETH_GSTRING_LEN);
	values = calloc(1, sizeof(*values) + 2 * (size_t)count * sizeof(values->data[0]));
	if (names && values) {
		names->cmd = ETHTOOL_GSTRINGS;
		names->string_set = ETH_SS_STATS;
		names->len = count;
		values->cmd = ETHTOOL_GSTATS;
		values->n_stats = count;
		if (ask(asked, names) == 0 && ask(asked, values) == 0 && names->len == count &&
		    values->n_stats == count)
			for (uint32_t i = 0; i < count; i++) {
				const char *name =
					(const char *)names->data + (size_t)i * ETH_GSTRING_LEN;
				char path[64], text[32];

				if (!counter_wanted(name))
					continue;
				snprintf(path, sizeof(path), "stat/%.*s", ETH_GSTRING_LEN, name);
				snprintf(text, sizeof(text), "%llu",
					 (unsigned long long)values->data[i]);
				fact(asked, path, text);
			}
	}
	free(names);
	free(values);
}

void facts_ethtool(struct tree *tree, const char *interface)
{
	const struct asked asked = {
		.tree = tree,
		.interface = interface,
		.socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
	};

	if (asked.socket < 0)
		return;
	ask_driver(&asked);
	ask_pause(&asked);
	ask_speed(&asked);
	ask_counters(&asked);
	close(asked.socket);
}
