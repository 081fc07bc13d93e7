/* SPDX-License-Identifier: BSD-3-Clause */
/* A ConnectX by PCI address, interface or RDMA device: found, and why it is not. */
#include "port/connectx.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "port/dpdk_release.h"

#define VENDOR_MELLANOX 0x15b3u
#define PAD_BYTES 64u /* what the card pads its writes to: a cache line of x86 and of most ARM */
#define VALUE_BYTES 64u
#define ARGUMENTS_MAX 32u

/* ---- names ---- */

/* The part before the devargs. False: empty or too long. */
static bool name_cut(const char *port, char *name, size_t bytes)
{
	const size_t length = strcspn(port, ",");

	if (length == 0 || length >= bytes)
		return false;
	memcpy(name, port, length);
	name[length] = '\0';
	return true;
}

/* "3b:00.0" and "0000:3b:00.0" as the latter. */
static bool pci_read(const char *name, char *pci, size_t bytes)
{
	unsigned int domain = 0, bus, device, function;
	int end = 0;

	if (sscanf(name, "%4x:%2x:%2x.%1u%n", &domain, &bus, &device, &function, &end) != 4 ||
	    name[end]) {
		domain = 0;
		end = 0;
		if (sscanf(name, "%2x:%2x.%1u%n", &bus, &device, &function, &end) != 3 || name[end])
			return false;
	}
	snprintf(pci, bytes, "%04x:%02x:%02x.%u", domain, bus, device, function);
	return true;
}

/* ---- the kernel's files ---- */

__attribute__((format(printf, 3, 4))) static bool path_make(char *path, const char *root,
							    const char *format, ...)
{
	va_list args;
	size_t at = (size_t)snprintf(path, PATH_MAX, "%s/", root);
	int more;

	if (at >= PATH_MAX)
		return false;
	va_start(args, format);
	more = vsnprintf(path + at, PATH_MAX - at, format, args);
	va_end(args);
	return more >= 0 && (size_t)more < PATH_MAX - at;
}

static bool line_read(const char *path, char *line, size_t bytes)
{
	FILE *file = fopen(path, "re");
	bool ok;

	if (!file)
		return false;
	ok = fgets(line, (int)bytes, file) != NULL;
	fclose(file);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

static long number_read(const char *path, long otherwise)
{
	char line[32];

	return line_read(path, line, sizeof(line)) ? strtol(line, NULL, 0) : otherwise;
}

/* Last part of what the link names. */
static bool link_read(const char *path, char *target, size_t bytes)
{
	char whole[PATH_MAX];
	const ssize_t length = readlink(path, whole, sizeof(whole) - 1);
	const char *last;
	size_t used;

	if (length < 0)
		return false;
	whole[length] = '\0';
	last = strrchr(whole, '/');
	last = last ? last + 1 : whole;
	used = strlen(last);
	if (used >= bytes)
		return false;
	memcpy(target, last, used + 1);
	return true;
}

/* The first name in a folder, by the alphabet; "" for none. */
static void entry_read(const char *path, char *name, size_t bytes)
{
	DIR *folder = opendir(path);
	struct dirent *entry;

	name[0] = '\0';
	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < bytes &&
		    (!name[0] || strcmp(entry->d_name, name) < 0))
			snprintf(name, bytes, "%s", entry->d_name);
	if (folder)
		closedir(folder);
}

static const char *root_find(const char *root, char *buffer, size_t bytes)
{
	static const char below[] = "/bus/pci/devices";
	const char *devices = getenv("SYSFS_PCI_DEVICES");
	const size_t length = devices ? strlen(devices) : 0, tail = sizeof(below) - 1;

	if (root)
		return root;
	if (length <= tail || length - tail >= bytes || strcmp(devices + length - tail, below) != 0)
		return "/sys";
	memcpy(buffer, devices, length - tail);
	buffer[length - tail] = '\0';
	return buffer;
}

/* A representor's interface hangs on its card's PCI address: opened so it would be the card. */
static bool is_representor(const char *root, const char *name)
{
	char path[PATH_MAX], line[32];
	unsigned int card, part;

	return path_make(path, root, "class/net/%s/phys_port_name", name) &&
	       line_read(path, line, sizeof(line)) &&
	       (sscanf(line, "pf%uvf%u", &card, &part) == 2 ||
		sscanf(line, "pf%usf%u", &card, &part) == 2);
}

/* 0, -ENOENT, -ENOTSUP. */
static int device_find(const char *root, const char *name, char *pci, size_t bytes,
		       struct gdrcap_error *error)
{
	static const char *const classes[] = { "net", "infiniband" };
	char path[PATH_MAX], device[64];

	if (name[0] == '.' || strchr(name, '/'))
		return error_set(error, -ENOENT, "\"%s\" is not the name of a port", name);
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (!path_make(path, root, "class/%s/%s/device", classes[i], name) ||
		    !link_read(path, device, sizeof(device)))
			continue;
		if (i == 0 && is_representor(root, name))
			return error_set(error, -ENOTSUP,
					 "%s is a representor, which cannot be opened by itself; "
					 "give the port that it stands for, or its card's own",
					 name);
		if (pci_read(device, pci, bytes))
			return 0;
		if (strncmp(device, "mlx5_core.", strlen("mlx5_core.")) == 0)
			return error_set(error, -ENOTSUP,
					 "%s is a sub-function (%s); give a port that has a PCI "
					 "address of its own",
					 name, device);
	}
	if (path_make(path, root, "class/net/%s", name) && access(path, F_OK) == 0)
		return error_set(
			error, -ENODEV,
			"%s is an interface, but no ConnectX's; use net_af_packet0,iface=%s, "
			"through the kernel, or give a ConnectX (rdma link)",
			name, name);
	return error_set(
		error, -ENOENT,
		"there is no interface and no RDMA device called %s (ip link, rdma link); a "
		"ConnectX is 0000:3b:00.0, enp59s0f0np0 or mlx5_0, another card's interface "
		"eth0 is net_af_packet0,iface=eth0",
		name);
}

/* The mlx5 driver works beside the kernel's, not instead of it. */
static int driver_check(const struct connectx_card *card, const char *root,
			struct gdrcap_error *error)
{
	char path[PATH_MAX], driver[32] = "none";

	if (path_make(path, root, "bus/pci/devices/%s/driver", card->pci))
		link_read(path, driver, sizeof(driver));
	if (strcmp(driver, "mlx5_core") == 0)
		return 0;
	return error_set(error, -ENODEV,
			 "%s belongs to the kernel driver %s; a ConnectX is used together with "
			 "mlx5_core: dpdk-devbind.py --bind=mlx5_core %s",
			 card->pci, driver, card->pci);
}

int connectx_find(struct connectx_card *card, const char *name, const char *root,
		  struct gdrcap_error *error)
{
	char buffer[PATH_MAX], path[PATH_MAX], own[64];
	long vendor;
	int ret = 0;

	memset(card, 0, sizeof(*card));
	card->numa_node = -1;
	root = root_find(root, buffer, sizeof(buffer));
	if (!name_cut(name, own, sizeof(own)))
		return error_set(error, -ENOENT, "\"%s\" is not the name of a port", name);
	if (!pci_read(own, card->pci, sizeof(card->pci)))
		ret = device_find(root, own, card->pci, sizeof(card->pci), error);
	if (ret < 0)
		return ret;
	vendor = path_make(path, root, "bus/pci/devices/%s/vendor", card->pci)
			 ? number_read(path, -1)
			 : -1;
	if (vendor < 0)
		return error_set(error, -ENOENT, "there is no PCI device %s (lspci -D)", card->pci);
	if (vendor != VENDOR_MELLANOX)
		return error_set(error, -ENODEV,
				 "%s is not a ConnectX: its vendor is 0x%04lx, not 0x%04x (NVIDIA "
				 "Mellanox); an interface of another card is "
				 "net_af_packet0,iface=NAME",
				 own, vendor, VENDOR_MELLANOX);
	ret = driver_check(card, root, error);
	if (ret < 0)
		return ret;
	if (path_make(path, root, "bus/pci/devices/%s/device", card->pci))
		card->device = (uint16_t)number_read(path, 0);
	if (path_make(path, root, "bus/pci/devices/%s/numa_node", card->pci))
		card->numa_node = (int)number_read(path, -1);
	if (path_make(path, root, "bus/pci/devices/%s/net", card->pci))
		entry_read(path, card->interface, sizeof(card->interface));
	if (path_make(path, root, "bus/pci/devices/%s/infiniband", card->pci))
		entry_read(path, card->rdma, sizeof(card->rdma));
	return 0;
}

/* ---- devargs ---- */

/* One "KEY=VALUE" of the user's, inside his text. */
struct argument {
	const char *key, *value;
	size_t key_bytes, value_bytes; /* no '=': value NULL */
};

/* Splits at commas, except within brackets: "KEY=[0,2]". */
static int arguments_split(const char *port, struct argument *argument, size_t most, size_t *count,
			   struct gdrcap_error *error)
{
	const char *at = port + strcspn(port, ",");
	int depth = 0;

	*count = 0;
	while (*at) {
		const char *start = ++at, *equals;

		for (; *at && (*at != ',' || depth > 0); at++)
			depth += (*at == '[') - (*at == ']');
		if (at == start || *count == most || depth != 0)
			return error_set(error, -EINVAL,
					 "port %s: its arguments are not KEY=VALUE,...", port);
		equals = memchr(start, '=', (size_t)(at - start));
		argument[*count].key = start;
		argument[*count].key_bytes = (size_t)((equals ? equals : at) - start);
		argument[*count].value = equals ? equals + 1 : NULL;
		argument[*count].value_bytes = equals ? (size_t)(at - equals - 1) : 0;
		(*count)++;
	}
	return 0;
}

/* Reads it as the driver does. False: no number. */
static bool argument_number(const struct argument *argument, long *number)
{
	char text[VALUE_BYTES], *end;

	if (!argument->value || argument->value_bytes == 0 || argument->value_bytes >= sizeof(text))
		return false;
	memcpy(text, argument->value, argument->value_bytes);
	text[argument->value_bytes] = '\0';
	*number = strtol(text, &end, 0);
	return *end == '\0';
}

static bool key_is(const struct argument *argument, const char *key)
{
	return argument->key_bytes == strlen(key) &&
	       memcmp(argument->key, key, argument->key_bytes) == 0;
}

static bool memory_hidden(const struct connectx_use *use)
{
	return !use->cpu_reads;
}

static bool always(const struct connectx_use *use)
{
	return true;
}

static bool receives(const struct connectx_use *use)
{
	return use->receives;
}

static bool own_rx(const struct connectx_use *use)
{
	return use->own_rx;
}

/* And the driver takes that for a mistake: dpdk_release.h. */
static bool sends_nothing(const struct connectx_use *use)
{
	return DPDK_SENDS_TOGETHER && !use->sends;
}

/* A write that does not fill a line of the receiver's memory makes it read, change and write back:
 * padded to whole lines, frames of other lengths cost no more. The slot has room: it starts at a
 * multiple of 64 and is one long. */
static bool lengths_odd(const struct connectx_use *use)
{
	if (!use->receives)
		return false;
	for (size_t i = 0; i < use->length_count; i++)
		if (use->lengths[i] % PAD_BYTES)
			return true;
	return use->length_count == 0;
}

#define INLINE_WHY                                                                                 \
	"the CPU would copy frames into the card's descriptors, and it cannot read this memory"

#define IMPORT_WHY "the session opens the card itself"

/*
 * What the driver must be told, and what it may not. By default it inlines frames as soon as there
 * are 8 send queues (16 on a BlueField): the same program would work with 4 and crash with 8.
 */
static const struct rule {
	const char *key;
	const char *set;  /* NULL: not set by us, only looked at */
	long least, most; /* what the user may say where the rule applies; 1, 0: nothing */
	bool (*applies)(const struct connectx_use *use);
	const char *why;
} rules[] = {
	{ "txq_inline_max", "0", 0, 0, memory_hidden, INLINE_WHY },
	{ "txq_inline_mpw", "0", 0, 0, memory_hidden, INLINE_WHY },
	{ "txq_inline_min", NULL, 0, 0, memory_hidden, INLINE_WHY },
	{ "txq_inline", NULL, 0, 0, memory_hidden, INLINE_WHY },	 /* older name of _max */
	{ "txq_max_inline_len", NULL, 0, 0, memory_hidden, INLINE_WHY }, /* of _mpw */
	{ "mprq_en", "0", 0, 0, always,
	  "a multi-packet receive queue puts several frames into one buffer, and the driver has it "
	  "not for pools over external memory, as all of ours are" },
	{ "dv_flow_en", "1", 0, 1, always,
	  "rules are made one by one at start, in the driver's software steering (1) or through "
	  "Verbs (0); hardware steering (2) wants templates and queues of rules set up "
	  "beforehand" },
	{ "cmd_fd", NULL, 1, 0, always, IMPORT_WHY },
	{ "pd_handle", NULL, 1, 0, always, IMPORT_WHY },
	{ "dv_flow_en", NULL, 1, 1, own_rx,
	  "the driver leads frames to receive queues of our own (rx_by) only with 1" },
	{ "rxq_cqe_comp_en", NULL, 0, 0, own_rx,
	  "completions of receive queues of our own (rx_by) are never compressed" },
	{ "rxq_cqe_comp_en", "0", LONG_MIN, LONG_MAX, receives,
	  "with compressed completions a receive queue that was in error takes the driver's vector "
	  "functions out of step, which ends in a crash" },
	{ "rxq_pkt_pad_en", "1", LONG_MIN, LONG_MAX, lengths_odd,
	  "frames that do not fill their last 64 bytes are padded on their way into memory: "
	  "partial "
	  "writes are slow" },
	{ "txq_mem_algn", "0", 0, 0, sends_nothing,
	  "the driver finds no memory for the send queues of a port that has none" },
};
#define RULES (sizeof(rules) / sizeof(rules[0]))

void connectx_reasons(const char *port, const char *opened, char *text, size_t bytes)
{
	/* Behind the name and what the user said. */
	const char *added = opened + strcspn(opened, ",") + strlen(port + strcspn(port, ","));
	const struct rule *last = NULL;
	size_t used = 0;

	text[0] = '\0';
	for (size_t r = 0; r <= RULES && used < bytes; r++) {
		const struct rule *rule = r < RULES ? &rules[r] : NULL;
		char argument[VALUE_BYTES];

		if (rule) {
			snprintf(argument, sizeof(argument), ",%s=%s", rule->key,
				 rule->set ? rule->set : "");
			if (!rule->set || !strstr(added, argument))
				continue;
		}
		if (last && (!rule || strcmp(rule->why, last->why) != 0))
			used += (size_t)snprintf(text + used, bytes - used, " (%s)", last->why);
		if (rule && used < bytes)
			used += (size_t)snprintf(text + used, bytes - used, "%s%s",
						 !last				? ""
						 : strcmp(rule->why, last->why) ? "; "
										: ", ",
						 argument + 1);
		last = rule;
	}
}

/* The user's argument `a` against the rules and his other arguments. */
static int argument_check(const char *port, const struct connectx_use *use,
			  const struct argument *argument, size_t a, struct gdrcap_error *error)
{
	const int bytes = (int)argument[a].key_bytes;
	long number;

	if (key_is(&argument[a], "representor"))
		return error_set(error, -EINVAL,
				 "port %s: representors cannot be opened; leave it out", port);
	for (size_t i = 0; i < a; i++)
		if (argument[i].key_bytes == argument[a].key_bytes &&
		    memcmp(argument[i].key, argument[a].key, argument[a].key_bytes) == 0)
			return error_set(error, -EINVAL, "port %s: %.*s is there twice", port,
					 bytes, argument[a].key);
	for (size_t r = 0; r < RULES; r++) {
		const struct rule *rule = &rules[r];

		if (!key_is(&argument[a], rule->key) || !rule->applies(use))
			continue;
		if (!argument_number(&argument[a], &number))
			return error_set(error, -EINVAL, "port %s: %s takes a number", port,
					 rule->key);
		if (number < rule->least || number > rule->most)
			return error_set(error, -EINVAL,
					 "port %s: %s=%ld is refused: %s; leave it out", port,
					 rule->key, number, rule->why);
	}
	return 0;
}

/* Until ConnectX-5 the card wants the first bytes of what it sends in the descriptor, whatever
 * txq_inline_max says. */
static int card_check(const struct connectx_use *use, struct gdrcap_error *error)
{
	const uint16_t device = use->card->device;
	/* ConnectX-4, its virtual function, ConnectX-4 Lx, its virtual function */
	const bool inlines = device >= 0x1013 && device <= 0x1016;

	if (!inlines || !use->sends || use->cpu_reads)
		return 0;
	return error_set(error, -ENOTSUP,
			 "port %s is a ConnectX-4, which cannot send from GPU memory: the CPU must "
			 "hand it each frame's first bytes; use --memory pinned, or send from a "
			 "ConnectX-5 or later",
			 use->card->pci);
}

static bool append(char *out, size_t bytes, size_t *at, const char *text, size_t length)
{
	if (length >= bytes - *at)
		return false;
	memcpy(out + *at, text, length);
	*at += length;
	out[*at] = '\0';
	return true;
}

int connectx_devargs(const char *port, const struct connectx_use *use, char *out, size_t bytes,
		     struct gdrcap_error *error)
{
	const size_t name = strcspn(port, ",");
	struct argument argument[ARGUMENTS_MAX];
	size_t count = 0, at = 0;
	bool fits;
	int ret;

	ret = card_check(use, error);
	if (ret < 0)
		return ret;
	ret = arguments_split(port, argument, ARGUMENTS_MAX, &count, error);
	for (size_t a = 0; ret == 0 && a < count; a++)
		ret = argument_check(port, use, argument, a, error);
	if (ret < 0)
		return error_of_config(error, ret);
	fits = bytes > 0 && append(out, bytes, &at, use->card->pci, strlen(use->card->pci)) &&
	       append(out, bytes, &at, port + name, strlen(port + name));
	for (size_t r = 0; r < RULES && fits; r++) {
		const struct rule *rule = &rules[r];
		char text[VALUE_BYTES];
		bool given = false;

		for (size_t a = 0; a < count; a++)
			given |= key_is(&argument[a], rule->key);
		if (!rule->set || given || !rule->applies(use))
			continue;
		snprintf(text, sizeof(text), ",%s=%s", rule->key, rule->set);
		fits = append(out, bytes, &at, text, strlen(text));
	}
	return fits ? 0
		    : error_set(error, -ENAMETOOLONG, "port %s: its arguments are too long", port);
}
