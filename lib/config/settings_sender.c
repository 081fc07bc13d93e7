/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that mean nothing where the frames to be sent are the caller's: refused, never accepted and
 * ignored. */
#include <errno.h>

#include "base/log.h"
#include "config/settings_internal.h"

int settings_check_sender(const struct settings *settings, struct gdrcap_error *error)
{
	const struct {
		bool given;
		const char *text;
	} checks[] = {
		{ !settings->tx.count,
		  "sender: host, or gpu, needs a port to send from; give tx_port, which may be the receiving "
		  "port too" },
		{ settings->pcap[0] != 0,
		  "pcap: a file is played by the built-in sender; leave it out, or sender: host or gpu" },
		{ settings->streams != 0,
		  "streams: are those of the built-in sender; leave it out, or sender: host or gpu" },
		{ settings->rate.value > 0,
		  "rate: is kept by the built-in sender; of the caller's frames each has its own time "
		  "(time_ns): leave it out, or sender: host or gpu" },
		{ settings->speed.value > 0,
		  "speed: is of a file that the built-in sender plays; of the caller's frames each has "
		  "its own time (time_ns): leave it out, or sender: host or gpu" },
		{ settings->frames && !settings->rx.count,
		  "frames: are those received, or the built-in sender's; here the caller submits as "
		  "many as he wants: leave it out" },
		{ settings->frame.vlan != 0 && !settings->rx.count,
		  "frame.vlan: is of frames that the session makes; the caller writes his headers: "
		  "leave it out" },
	};

	if (!settings_lends(settings) && settings->sender_memory != GDRCAP_MEMORY_AUTO)
		return error_set(error, -EINVAL,
				 "sender.memory: is of the caller's frames; the built-in sender's "
				 "are in `memory`: leave it out, or set sender: host or gpu");
	if (settings->sender_thread == SENDER_THREAD_CALLER && settings->sender != SENDER_HOST)
		return error_set(error, -EINVAL,
				 "sender.thread: caller is of frames that the program's threads "
				 "submit; leave it out, or set sender: host");
	if (!settings_lends(settings))
		return 0;
	for (uint32_t i = 0;
	     settings->sender_memory != GDRCAP_MEMORY_AUTO && i < settings->tx.count; i++) {
		const struct port_spec *port = &settings->tx.port[i];

		if (port->wire)
			return error_set(
				error, -EINVAL,
				"sender.memory: port %s (%s) hands frames over in the receiver's "
				"memory; leave it out, and set memory",
				port->name, port->facts->what);
		if (settings->sender_memory == GDRCAP_MEMORY_DEVICE && port->copies)
			return error_set(
				error, -ENOTSUP,
				"sender.memory: port %s (%s) copies frames with the CPU and "
				"cannot reach GPU memory; use pinned or host",
				port->name, port->facts->what);
	}
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (checks[i].given)
			return error_set(error, -EINVAL, "%s", checks[i].text);
	return 0;
}
