/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues of our own in place of the driver's (rx_by, sender.by): what they cannot have is refused by the
 * configuration alone, before any card is looked at. */
#include <errno.h>

#include "base/log.h"
#include "config/settings_internal.h"

struct refusal {
	bool given;
	const char *text;
};

/* With the first that is given; 0: none is. */
static int refuse(const struct refusal *refusals, size_t count, struct gdrcap_error *error)
{
	for (size_t i = 0; i < count; i++)
		if (refusals[i].given)
			return error_set(error, -ENOTSUP, "%s", refusals[i].text);
	return 0;
}

static int rx_by_check(const struct settings *settings, struct gdrcap_error *error)
{
	const struct refusal refusals[] = {
		{ !settings_receives(settings),
		  "rx_by: is of the receiver, and nothing is received; leave it out" },
		{ settings->split != 0,
		  "rx_by: receive queues of our own do not split frames in two; leave split out, or "
		  "rx_by" },
		{ settings->clock == CLOCK_CARD,
		  "rx_by: frames of receive queues of our own have the CPU's times; leave clock out, "
		  "or rx_by" },
	};
	int ret;

	if (!settings_own_queues(settings))
		return 0;
	ret = refuse(refusals, sizeof(refusals) / sizeof(refusals[0]), error);
	for (uint32_t i = 0; ret == 0 && i < settings->rx.count; i++)
		if (!settings->rx.port[i].connectx)
			ret = error_set(
				error, -ENOTSUP,
				"rx_by: port %s (%s) has no queues but its driver's; receive from a "
				"ConnectX, or leave rx_by out",
				settings->rx.port[i].name, settings->rx.port[i].facts->what);
	return ret;
}

static int tx_by_check(const struct settings *settings, struct gdrcap_error *error)
{
	const bool gpu = settings->tx_by == TX_BY_GPU;
	const struct refusal refusals[] = {
		{ settings_lends(settings),
		  "sender.by: is of the built-in sender; the caller's frames leave by the driver: leave it "
		  "out, or sender: host or gpu" },
		{ !settings->tx.count,
		  "sender.by: is of the sender, and nothing is sent; leave it out" },
		{ gpu && settings->rate.value > 0,
		  "sender.by: a kernel (gpu) sends as fast as the card takes frames, and the card keeps no "
		  "times for it; leave rate out, or use sender.by: cpu" },
		{ gpu && settings->pcap[0],
		  "sender.by: a kernel (gpu) sends a pattern's frames, and no file's; leave pcap out, or use "
		  "sender.by: cpu" },
		{ gpu && settings_gpu_is_host(settings),
		  "sender.by: a kernel (gpu) needs a CUDA device, and gpu, memory or guard say that the host "
		  "stands in for one; leave these out, or use sender.by: cpu" },
	};
	int ret;

	if (settings->tx_by == TX_BY_DRIVER)
		return 0;
	ret = refuse(refusals, sizeof(refusals) / sizeof(refusals[0]), error);
	for (uint32_t i = 0; ret == 0 && i < settings->tx.count; i++)
		if (!settings->tx.port[i].connectx)
			ret = error_set(
				error, -ENOTSUP,
				"sender.by: port %s (%s) has no queues but its driver's; send from a "
				"ConnectX-5 or later, or leave sender.by out",
				settings->tx.port[i].name, settings->tx.port[i].facts->what);
	return ret;
}

static int strides_check(const struct settings *settings, struct gdrcap_error *error)
{
	if (settings->rx_strides & (settings->rx_strides - 1))
		return error_set(
			error, -EINVAL,
			"rx_strides: %u is not a power of two; allowed: 1, 2, 4, ... 8192, "
			"of which a card takes some",
			settings->rx_strides);
	if (settings->rx_strides > 1 && !settings_own_queues(settings))
		return error_set(
			error, -EINVAL,
			"rx_strides: work entries of several frames are those of receive "
			"queues of our own; give rx_by cpu or gpu, or leave rx_strides out");
	return 0;
}

int settings_check_own_queues(const struct settings *settings, struct gdrcap_error *error)
{
	int ret = rx_by_check(settings, error);

	if (ret == 0)
		ret = tx_by_check(settings, error);
	return ret < 0 ? ret : strides_check(settings, error);
}
