/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrcap loopback: plays known frames from one port into the other and proves every byte. */
#include <errno.h>
#include <string.h>

#include "cmd.h"
#include "options.h"
#include "run_loop.h"

#define DEFAULT_WIRE "ring:wire"
#define DEFAULT_SECONDS "10"

static void step_shown(void *context, const struct gdrcap_step *step)
{
	struct run *run = context;
	struct report *report = &run->report;

	report->step_count++;
	if (run->text) {
		report_print_step(run->text, step, report->step_count, run->colour);
		fflush(run->text);
	}
}

static int loopback_selftest(struct run *run)
{
	struct gdrcap_error error = { 0 };
	int rc;

	if (run->text)
		fprintf(run->text, "The first frame, step by step:\n");
	rc = gdrcap_selftest(run->session, step_shown, run, &error);
	if (rc)
		report_error(&run->report, rc == -EIO ? REPORT_EXIT_FRAMES : REPORT_EXIT_NOT_RUN,
			     "%s", error.text);
	else if (run->text)
		fprintf(run->text, "\n");
	return rc;
}

/* A wire in this process has the same name at both ends, so one end names the other. */
static int loopback_complete(struct gdrcap_config *config, struct gdrcap_error *error)
{
	const char *port;
	int rc = 0;

	if (!gdrcap_config_get(config, "port", 0) && !gdrcap_config_get(config, "tx_port", 0))
		rc = gdrcap_config_set(config, "port", DEFAULT_WIRE, error);
	if (!gdrcap_config_get(config, "tx_port", 0))
		for (uint32_t i = 0; !rc && (port = gdrcap_config_get(config, "port", i)) &&
				     !strncmp(port, "ring:", 5);
		     i++)
			rc = gdrcap_config_add(config, "tx_port", port, error);
	if (!rc && !gdrcap_config_get(config, "seconds", 0) &&
	    !gdrcap_config_get(config, "frames", 0) && !gdrcap_config_get(config, "pcap", 0))
		rc = gdrcap_config_set(config, "seconds", DEFAULT_SECONDS, error);
	return rc;
}

static const char *const loopback_examples[] = {
	"A wire inside this process, for ten seconds: needs no card and no GPU",
	"gdrcap loopback",
	"From one card into the other's queue in GPU memory, all frame sizes",
	"gdrcap loopback --tx-port 0000:3b:00.0 --port 0000:3b:00.1 --frame-size 64-1518",
	"The same by the kernel's interface names; is the GPU ever told of a frame too early?",
	"gdrcap loopback --tx-port enp59s0f0np0 --port enp59s0f1np1 --stale-check 100",
	"Ten million frames over a veth pair, the result as JSON",
	"gdrcap loopback --tx-port net_af_packet0,iface=veth0 "
	"--port net_af_packet1,iface=veth1 --frames 10M --json",
	NULL,
};

int cmd_loopback(int argc, char **argv)
{
	static const struct run_command command = {
		.options = {
			.name = "loopback",
			.purpose = "Plays known frames from one port into the other and proves "
				   "every byte; for 10 s without --seconds and --frames",
			.examples = loopback_examples,
			.commands = GDRCAP_FOR_LOOPBACK,
			.complete = loopback_complete,
		},
		.selftest = loopback_selftest,
		.receives = 1,
		.sends = 1,
	};

	return run_command(argc, argv, &command);
}
