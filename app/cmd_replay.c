/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrcap replay: sends frames of a file or of a pattern, at a rate or at their own times. */
#include <stddef.h>

#include "cmd.h"
#include "options.h"
#include "run_loop.h"

static const char *const replay_examples[] = {
	"A file's frames, at the times they have there",
	"gdrcap replay --tx-port net_af_packet0,iface=eth0 --pcap frames.pcap",
	"The same twice as fast, a hundred times",
	"gdrcap replay --tx-port 0000:3b:00.0 --pcap frames.pcap --speed 2x --loops 100",
	"A pattern at 9.5 Gb/s on the wire, for a capture on another machine to check",
	"gdrcap replay --tx-port 0000:3b:00.0 --rate 9.5gbit --frame-size 64-1518 --seconds 60",
	"To a capture in another process on this machine, which is started first with "
	"--port net_memif0,role=server,socket=/run/gdrcap/wire,socket-abstract=no",
	"gdrcap replay --tx-port net_memif0,role=client,socket=/run/gdrcap/wire,socket-abstract=no "
	"--frames 1M",
	NULL,
};

int cmd_replay(int argc, char **argv)
{
	static const struct run_command command = {
		.options = {
			.name = "replay",
			.purpose = "Sends frames of a pcap file or of a pattern, until the file's "
				   "end, Ctrl-C, --seconds or --frames",
			.examples = replay_examples,
			.commands = GDRCAP_FOR_REPLAY,
		},
		.sends = 1,
	};

	return run_command(argc, argv, &command);
}
