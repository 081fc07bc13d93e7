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
	"gdrcap capture --port net_af_packet0,iface=eth0 --format custom --pattern prbs31 "
	"--sequence-offset 14 --sequence-bytes 4 --custom-payload 18 --save-damaged bad.pcapng",
	"Frames of a file, that another machine replays, compared byte for byte",
	"gdrcap capture --port 0000:3b:00.0 --expect sent.pcap --match dst_port=4000",
	"For a day, with the counts so far in a file every minute",
	"gdrcap capture --config port.yaml --seconds 86400 --json-lines 60 > counts.jsonl",
	NULL,
};

int cmd_capture(int argc, char **argv)
{
	static const struct run_command command = {
		.options = {
			.name = "capture",
			.purpose = "Receives frames and checks every byte, until the sender's end "
				   "of stream, Ctrl-C, --seconds, --frames or --idle",
			.examples = capture_examples,
			.commands = GDRCAP_FOR_CAPTURE,
		},
		.receives = 1,
	};

	return run_command(argc, argv, &command);
}
