/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run is about, for people, before it begins. */
#include <inttypes.h>
#include <string.h>

#include "base/json_line.h"
#include "base/text.h"
#include "report.h"

static const char *memory_words(const json_t *memory)
{
	const char *kind = json_text_at(memory, "kind");

	return !strcmp(kind, "device")	 ? "device (GPU memory)"
	       : !strcmp(kind, "pinned") ? "pinned (host memory that the GPU reads)"
	       : *kind			 ? kind
					 : "not known";
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
	const char *applied = json_text_at(report->object, "match.applied");
	const json_t *images = json_object_get(report->object, "images"), *image;
	const char *rule;
	size_t n = 0;

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
			!strcmp(applied, "software") ? " (applied in software)"
			: !strcmp(applied, "card")   ? " (applied by the card)"
						     : "");
	json_array_foreach (images, n, image)
		fprintf(to, "  %-10s%s\n", n ? "" : "images", json_text_at(image, "name"));
	if (n)
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
	const json_t *object = report->object, *memory = json_object_get(object, "memory");
	const json_t *cores = json_object_get(object, "cores"), *core;
	const char *gpu = json_text_at(memory, "gpu"), *driver = json_text_at(memory, "driver");
	const char *registration = json_text_at(memory, "registration");
	const uint64_t blocks = json_count_at(object, "blocks");
	const uint64_t split = json_count_at(memory, "split");
	char region[REPORT_TEXT_BYTES], slots[TEXT_COUNT_BYTES], slot[REPORT_TEXT_BYTES];
	size_t i;

	fprintf(to, "%s %s\n", json_text_at(object, "version"), report->command);
	print_ports(to, report);
	fprintf(to, "  %-10s%s a port", "queues", report_option(report, "queues", 0));
	if (blocks)
		fprintf(to, ", %" PRIu64 " consumer worker%s each", blocks, report_plural(blocks));
	print_by(to, "received", json_text_at(object, "rx_by"));
	print_by(to, "sent", json_text_at(object, "tx_by"));
	fprintf(to, "\n");
	fprintf(to, "  %-10s%s%s%s: %s slots of %s = %s", "memory", memory_words(memory),
		registration[0] ? ", via " : "", registration,
		text_count(slots, json_count_at(memory, "slots")),
		report_text_bytes(slot, json_count_at(memory, "slot_bytes")),
		report_text_bytes(region, json_count_at(memory, "region_bytes")));
	if (split)
		fprintf(to, "; split %" PRIu64 " bytes", split);
	fprintf(to, "\n");
	fprintf(to, "  %-10s%s (driver %s)\n", "GPU", gpu[0] ? gpu : "not known",
		driver[0] ? driver : "not known");
	fprintf(to, "  %-10s", "cores");
	json_array_foreach (cores, i, core)
		fprintf(to, "%s%" JSON_INTEGER_FORMAT, i ? "," : "", json_integer_value(core));
	fprintf(to, "%s\n", i ? "" : "not pinned");
	print_frames(to, report);
	fprintf(to, "\n");
}
