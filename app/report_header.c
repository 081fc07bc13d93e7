/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run is about, for people, before it begins. */
#include <inttypes.h>
#include <string.h>

#include "report.h"

static const char *memory_words(const struct gdrcap_summary *summary)
{
	switch (summary->memory) {
	case GDRCAP_MEMORY_DEVICE:
		return strcmp(summary->driver, "gpu_host") ? "device (GPU memory)"
							   : "device (the CPU stands in for a GPU)";
	case GDRCAP_MEMORY_PINNED:
		return "pinned (host memory that the GPU reads)";
	case GDRCAP_MEMORY_HOST:
		return "host";
	default:
		return "not known";
	}
}

static void print_ports(FILE *to, const struct report *report)
{
	for (uint32_t i = 0;; i++) {
		const char *rx = report_option(report, "port", i);
		const char *tx = report_option(report, "tx_port", i);

		if (!rx && !tx)
			return;
		fprintf(to, "  %-10s%s%s%s\n", i ? "" : "ports", tx ? tx : "",
			tx && rx ? " -> " : "", rx ? rx : "");
	}
}

/* What is sent, what is expected, and which frames are meant at all. */
static void print_frames(FILE *to, const struct report *report)
{
	const char *format = report_option(report, "frame.format", 0);
	const char *pcap = report_option(report, "pcap", 0);
	const char *loops = report_option(report, "loops", 0);
	const char *rate = report_option(report, "rate", 0);
	const char *speed = report_option(report, "speed", 0);
	const int sends = report_option(report, "tx_port", 0) != NULL;
	const int custom = !strcmp(format, "custom");
	const int restarts = !strcmp(report_option(report, "pattern.restart", 0), "true");
	const char *rule;

	if (pcap)
		fprintf(to, "  %-10sof %s, played %s%s\n", "frames", pcap, loops,
			strcmp(loops, "1") ? " times" : " time");
	else if (sends)
		fprintf(to, "  %-10s%s bytes with FCS, %s\n", "frames",
			report_option(report, "frame.size", 0),
			custom			 ? "custom"
			: !strcmp(format, "udp") ? "IPv4/UDP"
						 : "Ethernet");
	if (sends)
		fprintf(to, "  %-10s%s%s\n", "rate",
			rate	? rate
			: speed ? speed
			: pcap	? "the file's own times"
				: "as fast as the port takes them",
			speed ? " the file's own times" : "");
	for (uint32_t i = 0; (rule = report_option(report, "match", i)); i++)
		fprintf(to, "  %-10s%s%s\n", i ? "" : "match", rule,
			report->summary.software_match ? " (applied in software)"
			: report->summary.steered      ? " (applied by the card)"
						       : "");
	for (uint32_t i = 0; i < report->image_count; i++)
		fprintf(to, "  %-10s%s\n", i ? "" : "images", report->images[i].name);
	if (report->image_count)
		return;
	if (report_option(report, "expect", 0))
		fprintf(to, "  %-10sframes of %s\n", "expected",
			report_option(report, "expect", 0));
	else if (!pcap)
		fprintf(to, "  %-10s%s%s%s\n", "pattern", report_option(report, "pattern.name", 0),
			restarts ? ", again in each frame" : "",
			custom ? ", in frames of a custom layout" : "");
}

/* Who drives queues that are not the driver's. */
static void print_by(FILE *to, const char *what, const char *by)
{
	if (by[0] && strcmp(by, "driver") != 0)
		fprintf(to, ", %s by the %s", what, strcmp(by, "gpu") ? "CPU's own queues" : "GPU");
}

void report_print_header(FILE *to, const struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;
	char region[REPORT_TEXT_BYTES], slots[REPORT_TEXT_BYTES], slot[REPORT_TEXT_BYTES];

	fprintf(to, "%s %s\n", report->version, report->command);
	print_ports(to, report);
	fprintf(to, "  %-10s%s a port", "queues", report_option(report, "queues", 0));
	if (summary->blocks)
		fprintf(to, ", %" PRIu32 " consumer worker%s each", summary->blocks,
			summary->blocks == 1 ? "" : "s");
	print_by(to, "received", summary->rx_by);
	print_by(to, "sent", summary->tx_by);
	fprintf(to, "\n");
	fprintf(to, "  %-10s%s%s%s: %s slots of %s = %s", "memory", memory_words(summary),
		summary->registration[0] ? ", via " : "", summary->registration,
		report_text_count(slots, summary->slots),
		report_text_bytes(slot, summary->slot_bytes),
		report_text_bytes(region, summary->region_bytes));
	if (summary->split)
		fprintf(to, "; split %" PRIu32 " bytes", summary->split);
	fprintf(to, "\n");
	fprintf(to, "  %-10s%s (driver %s)\n", "GPU", summary->gpu[0] ? summary->gpu : "not known",
		summary->driver[0] ? summary->driver : "not known");
	fprintf(to, "  %-10s", "cores");
	for (uint32_t i = 0; i < summary->core_count && i < GDRCAP_CORES_MAX; i++)
		fprintf(to, "%s%d", i ? "," : "", summary->cores[i]);
	fprintf(to, "%s\n", summary->core_count ? "" : "not pinned");
	print_frames(to, report);
	fprintf(to, "\n");
}
