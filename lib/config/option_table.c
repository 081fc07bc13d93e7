/* SPDX-License-Identifier: BSD-3-Clause */
/* The option table. */
#include <string.h>

#include "config/option_parse.h"
#include "config/option_table.h"
#include "config/settings.h"
#include "pattern/pattern.h"

#define FIELD(member)                                                                              \
	.offset = offsetof(struct settings, member), .width = sizeof(((struct settings *)0)->member)
#define LIST(list, entry)                                                                          \
	.offset = offsetof(struct settings, list.entry),                                           \
	.width = sizeof(((struct settings *)0)->list.entry[0]), .length = SETTINGS_NAME_BYTES - 1, \
	.count_offset = offsetof(struct settings, list.count),                                     \
	.most = sizeof(((struct settings *)0)->list.entry) /                                       \
		sizeof(((struct settings *)0)->list.entry[0])
#define NAMED(list, heading, takers, name, word, value, sentence)                                  \
	.named = {                                                                                 \
		.key = name,                                                                       \
		.flag = word,                                                                      \
		.argument = value,                                                                 \
		.help = sentence,                                                                  \
		.is_list = list,                                                                   \
		.group = heading,                                                                  \
		.commands = takers,                                                                \
	}
#define SINGLE(...) NAMED(0, __VA_ARGS__)
#define SEVERAL(...) NAMED(1, __VA_ARGS__)

/* Headings of --help. */
#define PORTS "Ports"
#define GPU "GPU and memory"
#define CONSUMER "Consumer"
#define SENDER "Sender"
#define FRAMES "Frames"
#define PATTERN "Pattern"
#define OTHERS "Others' frames"
#define IMAGES "Images"
#define FILES "Files and rates"
#define RUN "Run"

/* Commands: a loopback receives and sends. */
#define LOOPBACK GDRCAP_FOR_LOOPBACK
#define RX (LOOPBACK | GDRCAP_FOR_CAPTURE)
#define TX (LOOPBACK | GDRCAP_FOR_REPLAY)
#define ALL (RX | TX)
#define LIBRARY 0 /* of no command: commands have the built-in consumer */

static const char *const consumer_names[] = { "validate", "host", "gpu", NULL };
static const char *const gpu_names[] = { "auto", "host", NULL };
static const char *const memory_names[] = { "auto", "device", "pinned", "host", NULL };
static const char *const rx_by_names[] = { "driver", "cpu", "gpu", NULL };
static const char *const flush_names[] = { "auto", "host", "none", NULL };
_Static_assert(FRAME_ETHERNET == 0 && FRAME_IPV4_UDP == 1 && FRAME_CUSTOM == 2, "format_names");
static const char *const clock_names[] = { "auto", "cpu", "card", NULL };
static const char *const format_names[] = { "ethernet", "udp", "custom", NULL };
static const char *const sender_names[] = { "replay", "host", "gpu", NULL };
static const char *const sender_threads[] = { "session", "caller", NULL };
static const char *const tx_by_names[] = { "driver", "cpu", "gpu", NULL };
static const char *const order_names[] = { "big", "little", NULL };
static const char *const end_names[] = { "stream", "never", NULL };
static const char *const link_down_names[] = { "wait", "end", NULL };
static const char *const invert_names[] = { "auto", "no", "yes", NULL };

#define PATH "a file's path"
#define PORT_ALLOWED                                                                               \
	"ring:NAME, a DPDK vdev such as net_af_packet0,iface=eth0, or a ConnectX: 0000:3b:00.0, "  \
	"enp59s0f0np0 or mlx5_0"

/* In the order of --help and of docs/configuration.md. */
static const struct option_row rows[] = {
	{ SEVERAL(PORTS, RX, "port", "port", "PORT",
		  "Port to receive on: ring:NAME (a wire in this process), a DPDK vdev such as "
		  "net_af_packet0,iface=eth0, or a ConnectX by PCI address, interface or mlx5_N; up "
		  "to 8."),
	  .type = OPTION_LIST, LIST(rx, port), .parse = option_parse_port,
	  .allowed = PORT_ALLOWED },
	{ SEVERAL(PORTS, TX, "tx_port", "tx-port", "PORT",
		  "Port to send from; in a loopback the first plays into the first receiving port, "
		  "and so on. One for each receiving port, or none of the other kind."),
	  .type = OPTION_LIST, LIST(tx, port), .parse = option_parse_port,
	  .allowed = PORT_ALLOWED },
	{ SINGLE(PORTS, ALL, "queues", "queues", "NUMBER",
		 "Receive queues of each port, 1..16; default 1."),
	  .type = OPTION_NUMBER, FIELD(queues), .min = 1, .max = GDRCAP_QUEUES_MAX,
	  .initial = "1" },
	{ SINGLE(PORTS, ALL, "burst", "burst", "FRAMES",
		 "Frames in one burst at most, 1..256; default 64."),
	  .type = OPTION_NUMBER, FIELD(burst), .min = 1, .max = 256, .initial = "64" },
	{ SINGLE(PORTS, ALL, "descriptors", "descriptors", "NUMBER",
		 "Descriptors of each receive and send ring, 64..32768; default 1024. net_af_packet has "
		 "framecnt in the port's name instead: net_af_packet0,iface=eth0,framecnt=4096."),
	  .type = OPTION_NUMBER, FIELD(descriptors), .min = 64, .max = 32768, .initial = "1024" },
	{ SINGLE(PORTS, RX, "rx_by", "rx-by", "WHO",
		 "Who takes received frames from the card: driver (DPDK's), cpu (a thread at each of "
		 "receive queues of our own, ConnectX only) or gpu (the GPU itself); default driver."),
	  .type = OPTION_ENUM, FIELD(rx_by), .named.words = rx_by_names, .initial = "driver" },
	{ SINGLE(PORTS, RX, "rx_strides", "rx-strides", "FRAMES",
		 "Frames of a work entry of receive queues of our own, so that the card reads one for "
		 "so many frames, a power of two, 1..8192; default 1."),
	  .type = OPTION_NUMBER, FIELD(rx_strides), .min = 1, .max = 8192, .initial = "1" },

	{ SINGLE(GPU, ALL, "gpu", "gpu", "GPU",
		 "GPU that takes the frames: auto (the first CUDA device, else the CPU), host (CPU "
		 "threads), or a CUDA ordinal 0..255; default auto."),
	  .type = OPTION_TEXT, FIELD(gpu), .parse = option_parse_gpu, .named.words = gpu_names,
	  .allowed = "auto, host, or a CUDA ordinal 0..255", .initial = "auto" },
	{ SINGLE(GPU, ALL, "memory", "memory", "KIND",
		 "Where the frames land: auto, device, pinned or host; default auto (device where "
		 "the port can write it, else pinned where there is a GPU, else host)."),
	  .type = OPTION_ENUM, FIELD(memory), .named.words = memory_names, .initial = "auto" },
	{ SINGLE(GPU, ALL, "pool", "pool", "BYTES",
		 "Size of the memory for frames in bytes, with K, M or G (powers of 1024), 0 or "
		 "1M..1T; each queue has its part; default 0 (chosen from rings and frames, and "
		 "printed)."),
	  .type = OPTION_SIZE, FIELD(pool_bytes), .min = UINT64_C(1) << 20,
	  .max = UINT64_C(1) << 40, .zero = 1 },
	{ SINGLE(GPU, ALL, "slot_bytes", "slot-bytes", "BYTES",
		 "Room for one frame and 128 bytes before it, a power of two, 0 or 256..16K bytes; "
		 "default 0 (from the largest frame)."),
	  .type = OPTION_SIZE, FIELD(slot_bytes), .min = 256, .max = 16384, .zero = 1 },
	{ SINGLE(GPU, ALL, "guard", "guard", NULL,
		 "With the host as GPU: the CPU's path gets addresses that fault when a payload is "
		 "touched; true or false, default false."),
	  .type = OPTION_BOOL, FIELD(guard), .max = 1, .initial = "false" },
	{ SINGLE(GPU, RX, "flush", "flush", "KIND",
		 "How a card's writes are made visible to a running kernel: auto, host or none; "
		 "default auto (what the GPU says it needs)."),
	  .type = OPTION_ENUM, FIELD(flush), .named.words = flush_names, .initial = "auto" },
	{ SINGLE(GPU, RX, "split", "split", "BYTES",
		 "Header-data split: the first bytes of each frame, as many as this, land in host memory, the rest "
		 "in the frames' memory, 0 or 32..128 bytes, ConnectX only; default 0 (frames lie "
		 "whole)."),
	  .type = OPTION_NUMBER, FIELD(split), .min = 32, .max = 128, .zero = 1 },
	{ SINGLE(GPU, RX, "stale_check", "stale-check", "US",
		 "The consumer poisons slots, to tell frames that it sees before their bytes are "
		 "there from damaged ones, and waits for these bytes for this long: 0 or 1..1000000 us, "
		 "100 is enough for a card; default 0 (off)."),
	  .type = OPTION_NUMBER, FIELD(stale_us), .min = 1, .max = 1000000, .zero = 1 },
	{ SINGLE(GPU, ALL, "dump_frames", "dump-frames", NULL,
		 "Core dumps have the frames' memory too; true or false, default false."),
	  .type = OPTION_BOOL, FIELD(dump_frames), .max = 1, .initial = "false" },

	{ SINGLE(CONSUMER, LIBRARY, "consumer.name", "consumer", "NAME",
		 "Who takes the frames: validate (built in: checks every byte), host (the program's "
		 "threads, by gdrcap_poll()) or gpu (its running kernel); default validate."),
	  .type = OPTION_ENUM, FIELD(consumer), .named.words = consumer_names,
	  .initial = "validate" },
	{ SINGLE(CONSUMER, LIBRARY, "consumer.batch_times", "batch-times", NULL,
		 "Batches for the program's threads carry arrival times; true or false, default "
		 "false."),
	  .type = OPTION_BOOL, FIELD(batch_times), .max = 1, .initial = "false" },
	{ SINGLE(CONSUMER, RX, "consumer.blocks", "blocks", "NUMBER",
		 "Thread blocks (on the host: threads) that check the frames of one queue, 0 or "
		 "1..1024; default 0 (chosen)."),
	  .type = OPTION_NUMBER, FIELD(blocks), .min = 1, .max = 1024, .zero = 1 },
	{ SINGLE(CONSUMER, ALL, "consumer.watchdog", "watchdog", "SECONDS",
		 "A consumer without progress for this long is reported, 0.1..3600 s; default 2 s."),
	  .type = OPTION_DURATION, FIELD(watchdog_ms), .min = 100, .max = 3600000, .initial = "2" },

	{ SINGLE(SENDER, LIBRARY, "sender.name", "sender", "NAME",
		 "Whose frames are sent: replay (built in: a pattern's or a file's), host (the program's, by "
		 "gdrcap_tx_submit()) or gpu (its running kernel's); default replay."),
	  .type = OPTION_ENUM, FIELD(sender), .named.words = sender_names, .initial = "replay" },
	{ SINGLE(SENDER, LIBRARY, "sender.memory", "sender-memory", "KIND",
		 "Where the slots of the program's frames to be sent are: auto, device, pinned or host; default auto "
		 "(as memory)."),
	  .type = OPTION_ENUM, FIELD(sender_memory), .named.words = memory_names,
	  .initial = "auto" },
	{ SINGLE(SENDER, LIBRARY, "sender.thread", "sender-thread", "THREAD",
		 "Who hands the program's frames to the port: session (a thread of its own) or caller "
		 "(gdrcap_tx_submit() itself, with one core less); default session."),
	  .type = OPTION_ENUM, FIELD(sender_thread), .named.words = sender_threads,
	  .initial = "session" },

	{ SINGLE(SENDER, TX, "sender.by", "tx-by", "NAME",
		 "Who drives the built-in sender's queues: driver (DPDK's, a port of any kind), cpu (a "
		 "thread that writes a ConnectX's work entries itself, without mbufs) or gpu (a running "
		 "kernel, likewise); default driver."),
	  .type = OPTION_ENUM, FIELD(tx_by), .named.words = tx_by_names, .initial = "driver" },

	{ SINGLE(FRAMES, ALL, "frame.size", "frame-size", "SIZES",
		 "Frame sizes in bytes with FCS, 64..9216: one (64), a list (64,512,1518), a range "
		 "(64-1518: each size in turn), or imix; default 1518."),
	  .type = OPTION_TEXT, FIELD(sizes), .length = 255, .parse = option_parse_sizes,
	  .allowed = "64, 64,512,1518, 64-1518 or imix, each 64..9216 bytes with FCS",
	  .initial = "1518" },
	{ SINGLE(FRAMES, ALL, "frame.format", "format", "FORMAT",
		 "What carries the payload: ethernet, udp (IPv4), or custom (somebody else's "
		 "frames, described by custom.*); default ethernet."),
	  .type = OPTION_ENUM, FIELD(frame.format), .named.words = format_names,
	  .initial = "ethernet" },
	{ SINGLE(FRAMES, ALL, "frame.ethertype", "ethertype", "HEX",
		 "EtherType of frames of format ethernet, 0x600..0xffff; default 0x88b5."),
	  .type = OPTION_HEX, FIELD(frame.ethertype), .min = 0x600, .max = 0xffff,
	  .initial = "0x88b5" },
	{ SINGLE(FRAMES, ALL, "frame.vlan", "vlan", "ID",
		 "VLAN id of the 802.1Q tag, 0..4094; default 0 (no tag)."),
	  .type = OPTION_NUMBER, FIELD(frame.vlan), .max = 4094 },
	{ SINGLE(FRAMES, TX, "frame.src_mac", "src-mac", "MAC",
		 "Source MAC address, not a group address; default the first sending port's own, or "
		 "02:00:00:00:00:01 where it has none."),
	  .type = OPTION_TEXT, FIELD(frame.src_mac), .parse = option_parse_src_mac, .empty = 1,
	  .allowed = "six bytes such as 02:00:00:00:00:01, not a group address" },
	{ SINGLE(FRAMES, TX, "frame.dst_mac", "dst-mac", "MAC",
		 "Destination MAC address; default 02:00:00:00:00:02."),
	  .type = OPTION_TEXT, FIELD(frame.dst_mac), .parse = option_parse_dst_mac, .empty = 1,
	  .initial = "02:00:00:00:00:02", .allowed = "six bytes such as 02:00:00:00:00:02" },
	{ SINGLE(FRAMES, TX, "frame.src_ip", "src-ip", "ADDRESS",
		 "Source IPv4 address of format udp; default 192.0.2.1."),
	  .type = OPTION_TEXT, FIELD(frame.src_ip), .parse = option_parse_src_ip, .empty = 1,
	  .initial = "192.0.2.1", .allowed = "an IPv4 address such as 192.0.2.1, not multicast" },
	{ SINGLE(FRAMES, TX, "frame.dst_ip", "dst-ip", "ADDRESS",
		 "Destination IPv4 address of format udp; default 192.0.2.2."),
	  .type = OPTION_TEXT, FIELD(frame.dst_ip), .parse = option_parse_dst_ip, .empty = 1,
	  .initial = "192.0.2.2", .allowed = "an IPv4 address such as 192.0.2.2" },
	{ SINGLE(FRAMES, TX, "frame.src_port", "src-port", "NUMBER",
		 "Source port of format udp, 1..65535; stream N has the N-th after it, so that a "
		 "card spreads streams over queues; default 12345."),
	  .type = OPTION_NUMBER, FIELD(frame.src_port), .min = 1, .max = 65535,
	  .initial = "12345" },
	{ SINGLE(FRAMES, ALL, "frame.dst_port", "dst-port", "NUMBER",
		 "Destination port of format udp, 1..65535; default 12345."),
	  .type = OPTION_NUMBER, FIELD(frame.dst_port), .min = 1, .max = 65535,
	  .initial = "12345" },
	{ SINGLE(FRAMES, TX, "streams", "streams", "NUMBER",
		 "Streams sent, each with its own sequence numbers, spread over the sending queues, "
		 "0 or 1..1024; default 0 (one a queue)."),
	  .type = OPTION_NUMBER, FIELD(streams), .min = 1, .max = GDRCAP_STREAMS_MAX, .zero = 1 },
	{ SINGLE(FRAMES, TX, "first_stream", "first-stream", "NUMBER",
		 "Id of a replay's first stream, 0..65535: where several send to one receiver, each "
		 "has ids of its own; default 0."),
	  .type = OPTION_NUMBER, FIELD(first_stream), .max = 65535 },

	{ SINGLE(PATTERN, ALL, "pattern.name", "pattern", "PATTERN",
		 "Payload pattern: prbs7, 9, 11, 15, 20, 23 or 31, counter8, counter16be and the "
		 "like, constant, random, file, ...; default prbs31."),
	  .type = OPTION_ENUM, FIELD(pattern.kind), .named.words = pattern_names,
	  .initial = "prbs31" },
	{ SINGLE(PATTERN, ALL, "pattern.invert", "pattern-invert", "WHEN",
		 "PRBS bits inverted: auto (15, 23 and 31, as in ITU-T O.150), no or yes; default "
		 "auto."),
	  .type = OPTION_ENUM, FIELD(pattern.invert), .named.words = invert_names,
	  .initial = "auto" },
	{ SINGLE(PATTERN, ALL, "pattern.restart", "pattern-restart", NULL,
		 "The pattern starts again in each frame; true or false, default false (it runs on "
		 "through the stream)."),
	  .type = OPTION_BOOL, FIELD(pattern.restart), .max = 1, .initial = "false" },
	{ SINGLE(PATTERN, ALL, "pattern.value", "pattern-value", "BYTE",
		 "Byte of the pattern constant, 0..255; default 0."),
	  .type = OPTION_NUMBER, FIELD(pattern.value), .max = 255 },
	{ SINGLE(PATTERN, ALL, "pattern.seed", "pattern-seed", "NUMBER",
		 "Seed of the pattern random, 0..2^64-1; default 0."),
	  .type = OPTION_NUMBER, FIELD(pattern.seed), .max = UINT64_MAX },
	{ SINGLE(PATTERN, ALL, "pattern.file", "pattern-file", "FILE",
		 "File whose bytes are the pattern file, repeated; no default."),
	  .type = OPTION_TEXT, FIELD(pattern.file), .parse = option_parse_path, .empty = 1,
	  .allowed = PATH },

	{ SINGLE(OTHERS, RX, "custom.payload", "custom-payload", "BYTES",
		 "Offset of the payload in a frame of a custom layout, 14..100 bytes from the frame's first; "
		 "default 14."),
	  .type = OPTION_NUMBER, FIELD(custom.payload), .min = 14, .max = 100, .initial = "14" },
	{ SINGLE(OTHERS, RX, "custom.payload_bytes", "custom-payload-bytes", "BYTES",
		 "Length of its payload, 0 or 1..9198 bytes; default 0 (to the frame's end)."),
	  .type = OPTION_NUMBER, FIELD(custom.payload_bytes), .min = 1, .max = 9198, .zero = 1 },
	{ SINGLE(OTHERS, RX, "custom.sequence_offset", "sequence-offset", "BYTES",
		 "Offset of its sequence number, 0..111 bytes from the frame's first; default 0."),
	  .type = OPTION_NUMBER, FIELD(custom.sequence.offset), .max = 111 },
	{ SINGLE(OTHERS, RX, "custom.sequence_bytes", "sequence-bytes", "BYTES",
		 "Length of its sequence number, 0..8 bytes; default 0 (there is none: a PRBS is "
		 "followed by its own phase)."),
	  .type = OPTION_NUMBER, FIELD(custom.sequence.bytes), .max = 8 },
	{ SINGLE(OTHERS, RX, "custom.sequence_order", "sequence-order", "ORDER",
		 "Byte order of its sequence number: big or little; default big."),
	  .type = OPTION_ENUM, FIELD(custom.sequence.little), .named.words = order_names,
	  .initial = "big" },
	{ SINGLE(OTHERS, RX, "custom.sequence_start", "sequence-start", "NUMBER",
		 "Sequence number with which its sender begins, 0..2^64-1; default 0."),
	  .type = OPTION_NUMBER, FIELD(custom.sequence_start), .max = UINT64_MAX },
	{ SINGLE(OTHERS, RX, "custom.sequence_step", "sequence-step", "NUMBER",
		 "Step from one sequence number to the next, 1..2^32-1; default 1."),
	  .type = OPTION_NUMBER, FIELD(custom.sequence_step), .min = 1, .max = UINT32_MAX,
	  .initial = "1" },
	{ SINGLE(OTHERS, RX, "custom.stream_offset", "stream-offset", "BYTES",
		 "Offset of its stream id, big-endian, 0..111 bytes from the frame's first; default "
		 "0."),
	  .type = OPTION_NUMBER, FIELD(custom.stream.offset), .max = 111 },
	{ SINGLE(OTHERS, RX, "custom.stream_bytes", "stream-bytes", "BYTES",
		 "Length of its stream id, 0..2 bytes; default 0 (one stream)."),
	  .type = OPTION_NUMBER, FIELD(custom.stream.bytes), .max = 2 },
	{ SEVERAL(OTHERS, RX, "match", "match", "RULE",
		  "Frames that are meant, FIELD=VALUE,... with src_mac, dst_mac, ethertype, vlan, "
		  "src_ip, dst_ip (/PREFIX), src_port and dst_port (UDP); up to 8 rules, one must "
		  "fit; default every frame."),
	  .type = OPTION_LIST, LIST(match, rule), .parse = option_parse_match,
	  .allowed = "FIELD=VALUE,... such as vlan=5,dst_ip=192.0.2.0/24,dst_port=4000" },

	{ SEVERAL(IMAGES, RX, "image", "image", "LAYOUT",
		  "Images are assembled, and not frames checked: a preset (gvsp, rtp-raw or spead, "
		  "with ,KEY=VALUE,...), a YAML file, or in YAML a map (docs/images.md); up to 4."),
	  .type = OPTION_IMAGES, .offset = offsetof(struct settings, image),
	  .width = sizeof(struct image_settings), .empty = 1,
	  .count_offset = offsetof(struct settings, images), .most = SETTINGS_IMAGES_MAX,
	  .allowed = "gvsp, rtp-raw or spead with ,KEY=VALUE,..., a YAML file, or a map" },
	{ SINGLE(IMAGES, RX, "allow_misfits", "allow-misfits", NULL,
		 "Pass a run in which matching frames did not fit the layout, if images came; true or "
		 "false, default false."),
	  .type = OPTION_BOOL, FIELD(allow_misfits), .max = 1, .initial = "false" },
	{ SINGLE(IMAGES, RX, "allow_late", "allow-late", NULL,
		 "Pass a run in which frames with data came for images that had been handed out; true or "
		 "false, default false."),
	  .type = OPTION_BOOL, FIELD(allow_late), .max = 1, .initial = "false" },

	{ SINGLE(FILES, TX, "pcap", "pcap", "FILE",
		 "Frames to send come from this pcap or pcapng file; no default (the pattern)."),
	  .type = OPTION_TEXT, FIELD(pcap), .parse = option_parse_path, .empty = 1,
	  .allowed = PATH },
	{ SINGLE(FILES, TX, "loops", "loops", "COUNT",
		 "How often the file is played: 1..2^32-1, also 10k, or forever; default 1."),
	  .type = OPTION_TEXT, FIELD(loops), .parse = option_parse_loops,
	  .allowed = "1..2^32-1, also 10k, or forever", .initial = "1" },
	{ SINGLE(FILES, TX, "rate", "rate", "RATE",
		 "Rate sent at: bits a second on the wire, with FCS, preamble and gap (9.5gbit, "
		 "100mbit), frames a second (2mpps, 500kpps, 1000pps), or max; default max, or for "
		 "a file its own times."),
	  .type = OPTION_TEXT, FIELD(rate), .parse = option_parse_rate, .empty = 1,
	  .allowed = "max, 9.5gbit, 100mbit, 2mpps, 500kpps, 1000pps" },
	{ SINGLE(FILES, TX, "speed", "speed", "FACTOR",
		 "Times between a file's frames are divided by this: 1x, 2x, 0.5x; default 1x."),
	  .type = OPTION_TEXT, FIELD(speed), .parse = option_parse_speed, .empty = 1,
	  .allowed = "a factor such as 2x or 0.5x, 0.000001..1000000" },
	{ SINGLE(FILES, ALL, "pcap_memory", "pcap-memory", "BYTES",
		 "Memory that a file's frames may take, with K, M or G (powers of 1024), 0 or "
		 "1M..1T; a larger file is read while it is sent; default 0 (half of what is "
		 "free)."),
	  .type = OPTION_SIZE, FIELD(pcap_memory), .min = UINT64_C(1) << 20,
	  .max = UINT64_C(1) << 40, .zero = 1 },
	{ SINGLE(FILES, RX, "expect", "expect", "FILE",
		 "Frames received are compared, in order, with this pcap or pcapng file's; no "
		 "default."),
	  .type = OPTION_TEXT, FIELD(expect), .parse = option_parse_path, .empty = 1,
	  .allowed = PATH },
	{ SINGLE(FILES, RX, "save", "save", "FILE",
		 "All frames received are written to this file, as pcapng; no default."),
	  .type = OPTION_TEXT, FIELD(save), .parse = option_parse_path, .empty = 1,
	  .allowed = PATH },
	{ SINGLE(FILES, RX, "save_every", "save-every", "COUNT",
		 "Saves every n-th frame of a queue, 1..2^32-1; default 1."),
	  .type = OPTION_COUNT, FIELD(save_every), .min = 1, .max = UINT32_MAX, .initial = "1" },
	{ SINGLE(FILES, RX, "save_damaged", "save-damaged", "FILE",
		 "Damaged frames are written to this file, as pcapng with comments that say what "
		 "is wrong; no default."),
	  .type = OPTION_TEXT, FIELD(save_damaged), .parse = option_parse_path, .empty = 1,
	  .allowed = PATH },
	{ SINGLE(FILES, RX, "save_around", "save-around", "FRAMES",
		 "Frames before and after each damaged one that are saved with it, 0..256; default "
		 "0."),
	  .type = OPTION_NUMBER, FIELD(save_around), .max = 256 },
	{ SINGLE(FILES, RX, "clock", "clock", "CLOCK",
		 "Clock of the arrival times in saved files: auto, cpu or card; default auto (the "
		 "card's where it has one, a file's own times)."),
	  .type = OPTION_ENUM, FIELD(clock), .named.words = clock_names, .initial = "auto" },

	{ SINGLE(RUN, ALL, "cores", "cores", "CPUS",
		 "CPUs of the workers, such as 2,4-7, up to 64; default those that no other session "
		 "and no other gdrcap has, near the port's NUMA node first."),
	  .type = OPTION_TEXT, FIELD(cores), .length = 255, .parse = option_parse_cores, .empty = 1,
	  .allowed = "CPU numbers such as 2,4-7, none twice, up to 64" },
	{ SINGLE(RUN, ALL, "seconds", "seconds", "SECONDS",
		 "The run ends after this time, 0..31622400 s, decimals allowed; default 0 (no "
		 "limit)."),
	  .type = OPTION_DURATION, FIELD(seconds_ms), .max = UINT64_C(31622400000) },
	{ SINGLE(RUN, ALL, "frames", "frames", "COUNT",
		 "The run ends after this many frames sent (or, without a sender, received, "
		 "filtered ones too, with those that are there by then; fewer are a failure, unless "
		 "the time was over), 0..2^64-1, also 10M or 1e6; default 0 (no limit)."),
	  .type = OPTION_COUNT, FIELD(frames), .max = UINT64_MAX },
	{ SINGLE(RUN, RX, "images", "images", "COUNT",
		 "The run ends after this many whole images, with those that are there by then; "
		 "fewer are a failure, unless the time was over; 0..2^64-1; default 0 (no limit)."),
	  .type = OPTION_COUNT, FIELD(images_wanted), .max = UINT64_MAX },
	{ SINGLE(RUN, TX, "start_at", "start-at", "TIME",
		 "The first frame is sent at this time of the system's clock: "
		 "2026-11-26T12:00:00.5Z, seconds since 1970 (UTC), or +SECONDS from the start of "
		 "the run, 366 days ahead at most; no default (at once)."),
	  .type = OPTION_TEXT, FIELD(start), .parse = option_parse_start,
	  .allowed =
		  "2026-11-26T12:00:00Z or with an offset such as +01:00, seconds since 1970, or "
		  "+SECONDS up to 31622400; nine decimals at most" },
	{ SINGLE(RUN, RX, "quiet", "quiet-time", "SECONDS",
		 "Silence that ends the wait for frames in flight, 0.001..60 s; default 0.2 s."),
	  .type = OPTION_DURATION, FIELD(quiet_ms), .min = 1, .max = 60000, .initial = "0.2" },
	{ SINGLE(RUN, ALL, "end", "end", "WHEN",
		 "End-of-stream frames: stream (a replay of a pattern sends them after its last "
		 "frame, a capture ends when all came) or never; default stream."),
	  .type = OPTION_ENUM, FIELD(end), .named.words = end_names, .initial = "stream" },
	{ SINGLE(RUN, RX, "senders", "senders", "NUMBER",
		 "Senders, told apart by source address, whose end-of-stream frames a capture waits "
		 "for, 1..1024; default 1 (and any other that it has heard of)."),
	  .type = OPTION_NUMBER, FIELD(senders), .min = 1, .max = 1024, .initial = "1" },
	{ SINGLE(RUN, RX, "ranges", "ranges", NULL,
		 "The summary has which sequence numbers of each stream came, so that gdrcap merge "
		 "settles streams whose frames are spread over several receivers; true or false, "
		 "default false."),
	  .type = OPTION_BOOL, FIELD(ranges), .max = 1, .initial = "false" },
	{ SINGLE(RUN, RX, "idle", "idle", "SECONDS",
		 "A capture ends after this time without a frame, once one came (files as ports end "
		 "it at their own end), 0 or 0.01..86400 s; default 0 (never)."),
	  .type = OPTION_DURATION, FIELD(idle_ms), .min = 10, .max = 86400000, .zero = 1 },
	{ SINGLE(RUN, TX, "give_up", "give-up", "SECONDS",
		 "A replay fails after its ports took no frame for this long, since the other end left "
		 "or never came, 0 or 0.1..86400 s; default 60 s (0: it waits for ever). A memif "
		 "client's other end must be there within 5 s, before the run."),
	  .type = OPTION_DURATION, FIELD(give_up_ms), .min = 100, .max = 86400000, .zero = 1,
	  .initial = "60" },
	{ SINGLE(RUN, ALL, "link_down", "link-down", "WHAT",
		 "A link that goes down in the run: wait (a warning, and the run goes on when it is "
		 "up again) or end (the run fails); default wait. An interface that is deleted ends "
		 "the run anyway."),
	  .type = OPTION_ENUM, FIELD(link_down), .named.words = link_down_names,
	  .initial = "wait" },
	{ SINGLE(RUN, ALL, "idle_sleep", "idle-sleep", "US",
		 "Sleep of idle threads: auto (they sleep until another thread or the kernel wakes "
		 "them; with a ConnectX or a GPU they poll), 0 (they poll), or 10..10000 us (they "
		 "sleep, for this long at most where nothing wakes them); default auto."),
	  .type = OPTION_TEXT, FIELD(idle_sleep_us), .parse = option_parse_idle_sleep,
	  .allowed = "auto, 0 or 10..10000", .initial = "auto" },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))
_Static_assert(ROWS <= GDRCAP_OPTIONS_MAX, "what is kept for each option has room for all");
_Static_assert(GDRCAP_MATCH_MAX == FRAME_MATCH_RULES, "all rules have room in a frame_layout");
_Static_assert(GDRCAP_MATCH_MAX <= UINT8_MAX && GDRCAP_PORTS_MAX <= UINT8_MAX,
	       "struct gdrcap_config counts values in a byte");
_Static_assert(OPTION_TEXT_MAX < SETTINGS_PATH_BYTES, "a path is kept whole");

const struct option_row *option_at(size_t index)
{
	return index < ROWS ? &rows[index] : NULL;
}

const struct gdrcap_option *gdrcap_option_at(size_t index)
{
	const struct option_row *row = option_at(index);

	return row ? &row->named : NULL;
}

const struct option_row *option_find(const char *name)
{
	/* All paths first: `quiet` is one, and must not be shadowed by a flag. */
	for (size_t i = 0; i < 2 * ROWS; i++) {
		const struct option_row *row = &rows[i % ROWS];

		if (!strcmp(i < ROWS ? row->named.key : row->named.flag, name))
			return row;
	}
	return NULL;
}

void option_consider(struct nearest *nearest, const char *prefix, bool flags)
{
	for (size_t i = 0; i < ROWS; i++)
		if (!strncmp(rows[i].named.key, prefix, strlen(prefix)))
			nearest_consider(nearest, flags ? rows[i].named.flag : rows[i].named.key);
}
