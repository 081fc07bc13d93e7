/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrcap capture: receives, checks every byte and counts each frame until it is told to stop. */
#include <stddef.h>

#include "cmd.h"
#include "options.h"
#include "run_loop.h"

static const char *const capture_examples[] = {
	"Until Ctrl-C, from a card straight into GPU memory",
	"gdrcap capture --port 0000:3b:00.0",
	"A million frames from a kernel interface, sent over UDP",
	"gdrcap capture --port net_af_packet0,iface=eth0 --format udp --frames 1M",
	"An FPGA's PRBS-31 behind a 32-bit counter at offset 14; what is damaged goes to a file",
	"gdrcap capture --port net_af_packet0,iface=eth0 --format foreign --pattern prbs31 "
	"--sequence-offset 14 --sequence-bytes 4 --foreign-payload 18 --save-damaged bad.pcapng",
	"Frames of a file, that another machine replays, compared byte for byte",
	"gdrcap capture --port 0000:3b:00.0 --expect sent.pcap --match dst_port=4000",
	"For a day, with the counts so far in a file every minute",
	"gdrcap capture --config port.yaml --seconds 86400 --json-lines 60 > counts.jsonl",
	NULL,
};

/* Without what only a sender needs. The sizes stay: the largest decides the slots'. */
static const char *const capture_flags[] = {
	"port", "queues", "burst", "descriptors", "gpu", "memory", "pool", "slot-bytes", "guard",
	"flush", "split", "stale-check", "dump-frames", "blocks", "watchdog", "frame-size", "format", "ethertype",
	"vlan", "dst-port",
	"pattern", "pattern-invert", "pattern-restart", "pattern-value", "pattern-seed",
	"pattern-file", "foreign-payload", "foreign-payload-bytes", "sequence-offset",
	"sequence-bytes", "sequence-order", "sequence-start", "sequence-step", "stream-offset",
	"stream-bytes", "match", "pcap-memory", "expect", "save", "save-every", "save-damaged",
	"save-around", "clock", "cores", "seconds", "frames", "quiet-time", "end", "senders", "idle", NULL,
};

int cmd_capture(int argc, char **argv)
{
	static const struct run_command command = {
		.options = {
			.name = "capture",
			.purpose = "Receives frames and checks every byte, until the sender's end "
				   "of stream, Ctrl-C, --seconds, --frames or --idle",
			.examples = capture_examples,
			.flags = capture_flags,
		},
		.receives = 1,
	};

	return run_command(argc, argv, &command);
}
