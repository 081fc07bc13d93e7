/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules that choose frames: parsed, printed, prepared for the checkers. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pattern/frame_match.h"

#define VALUE_BYTES 64 /* "IPv6 address/prefix" and more */

/* Where what is wrong is told. */
struct why {
	char *text;
	size_t bytes;
};

__attribute__((format(printf, 2, 3))) static int fail(const struct why *why, const char *format,
						      ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (why->bytes)
		vsnprintf(why->text, why->bytes, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

/* A number from `least` to `most`, decimal or 0x...; no sign or space. False: it is none. */
static bool number_read(const char *text, unsigned long least, unsigned long most, uint16_t *value)
{
	const bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	unsigned long number;

	if (!*digits || strlen(digits) > 8 ||
	    strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789") != strlen(digits))
		return false;
	number = strtoul(digits, NULL, hex ? 16 : 10);
	if (number < least || number > most)
		return false;
	*value = (uint16_t)number;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int mac_read(struct frame_match_rule *rule, const char *name, const char *value,
		    const struct why *why)
{
	uint8_t *mac = !strcmp(name, "src_mac") ? rule->src_mac : rule->dst_mac;

	/* "xx:xx:xx:xx:xx:xx" */
	if (strlen(value) != 17)
		goto err;
	for (unsigned int i = 0; i < 6; i++) {
		const int high = hex_digit(value[3 * i]), low = hex_digit(value[3 * i + 1]);

		if (high < 0 || low < 0 || (i < 5 && value[3 * i + 2] != ':'))
			goto err;
		mac[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
err:
	return fail(why, "is wrong at \"%s=%s\": a MAC address is like 02:00:00:00:00:01", name,
		    value);
}

static int ethertype_read(struct frame_match_rule *rule, const char *name, const char *value,
			  const struct why *why)
{
	if (!number_read(value, 0x600, 0xffff, &rule->ethertype))
		return fail(why, "is wrong at \"%s=%s\": an EtherType is 0x0600 to 0xffff", name,
			    value);
	if (rule->ethertype == 0x8100 || rule->ethertype == 0x88a8)
		return fail(why,
			    "is wrong at \"%s=%s\": that is a VLAN tag, and the EtherType is taken "
			    "behind the tags; use vlan=",
			    name, value);
	return 0;
}

static int vlan_read(struct frame_match_rule *rule, const char *name, const char *value,
		     const struct why *why)
{
	if (!number_read(value, 0, 4094, &rule->vlan))
		return fail(why, "is wrong at \"%s=%s\": a VLAN id is 0 (untagged) to 4094", name,
			    value);
	return 0;
}

static int port_read(struct frame_match_rule *rule, const char *name, const char *value,
		     const struct why *why)
{
	uint16_t *port = !strcmp(name, "src_port") ? &rule->src_port : &rule->dst_port;

	if (!number_read(value, 0, 65535, port))
		return fail(why, "is wrong at \"%s=%s\": a UDP port is 0 to 65535", name, value);
	return 0;
}

/* Bits behind the prefix do not count: 0, so that a card's rule can be made from the address. */
static void address_cut(uint8_t address[16], uint32_t prefix)
{
	for (uint32_t i = 0; i < 16; i++) {
		const uint32_t bits = prefix > 8 * i ? prefix - 8 * i : 0;

		if (bits < 8)
			address[i] &= (uint8_t)(0xff00u >> bits);
	}
}

static int address_read(struct frame_match_rule *rule, const char *name, const char *value,
			const struct why *why)
{
	const bool src = !strcmp(name, "src_ip");
	uint8_t *address = src ? rule->src_ip : rule->dst_ip, version;
	const char *slash = strchr(value, '/');
	char host[VALUE_BYTES];
	uint16_t prefix;

	snprintf(host, sizeof(host), "%.*s", (int)(slash ? slash - value : (long)strlen(value)),
		 value);
	if (inet_pton(AF_INET, host, address) == 1)
		version = 4;
	else if (inet_pton(AF_INET6, host, address) == 1)
		version = 6;
	else
		return fail(why, "is wrong at \"%s=%s\": not an IPv4 or IPv6 address", name, value);
	prefix = version == 4 ? 32 : 128;
	if (slash && (slash[1] == '0' || !number_read(slash + 1, 1, prefix, &prefix)))
		return fail(why, "is wrong at \"%s=%s\": a prefix is 1 to %u bits", name, value,
			    version == 4 ? 32 : 128);
	if (rule->ip_version && rule->ip_version != version)
		return fail(why, "is wrong at \"%s=%s\": both addresses must be of one IP version",
			    name, value);
	rule->ip_version = version;
	address_cut(address, prefix);
	if (src)
		rule->src_prefix = (uint8_t)prefix;
	else
		rule->dst_prefix = (uint8_t)prefix;
	return 0;
}

static const struct {
	const char *name;
	enum frame_match_field field;
	int (*read)(struct frame_match_rule *rule, const char *name, const char *value,
		    const struct why *why);
} fields[] = {
	{ "src_mac", FRAME_MATCH_SRC_MAC, mac_read },
	{ "dst_mac", FRAME_MATCH_DST_MAC, mac_read },
	{ "ethertype", FRAME_MATCH_ETHERTYPE, ethertype_read },
	{ "vlan", FRAME_MATCH_VLAN, vlan_read },
	{ "src_ip", FRAME_MATCH_SRC_IP, address_read },
	{ "dst_ip", FRAME_MATCH_DST_IP, address_read },
	{ "src_port", FRAME_MATCH_SRC_PORT, port_read },
	{ "dst_port", FRAME_MATCH_DST_PORT, port_read },
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

/* One "FIELD=VALUE"; changes the text. */
static int field_read(struct frame_match_rule *rule, char *text, const struct why *why)
{
	char *value = strchr(text, '=');
	size_t f;

	if (!*text)
		return fail(why, "is wrong: a FIELD=VALUE is empty");
	if (!value)
		return fail(why, "is wrong at \"%s\": a rule is FIELD=VALUE, others after commas",
			    text);
	*value++ = '\0';
	for (f = 0; f < FIELDS && strcmp(text, fields[f].name); f++)
		;
	if (f == FIELDS)
		return fail(why,
			    "is wrong at \"%s\": the fields are src_mac, dst_mac, ethertype, vlan, "
			    "src_ip, dst_ip, src_port and dst_port",
			    text);
	if (rule->fields & fields[f].field)
		return fail(why, "is wrong: %s is there twice", text);
	rule->fields |= fields[f].field;
	return fields[f].read(rule, text, value, why);
}

/* A rule that no frame can agree with is a mistake. */
static int rule_check(const struct frame_match_rule *rule, const struct why *why)
{
	const bool ports = rule->fields & (FRAME_MATCH_SRC_PORT | FRAME_MATCH_DST_PORT);
	const bool ip4 = rule->ethertype == 0x0800, ip6 = rule->ethertype == 0x86dd;

	if (!(rule->fields & FRAME_MATCH_ETHERTYPE))
		return 0;
	if (rule->ip_version && !(rule->ip_version == 4 ? ip4 : ip6))
		return fail(why, "is of no frame: EtherType 0x%04x has no IPv%u address",
			    rule->ethertype, rule->ip_version);
	if (ports && !ip4 && !ip6)
		return fail(why, "is of no frame: EtherType 0x%04x has no UDP ports",
			    rule->ethertype);
	return 0;
}

int frame_match_parse(struct frame_match_rule *rule, const char *text, char *why, size_t why_bytes)
{
	const struct why told = { why, why_bytes };
	char field[VALUE_BYTES];

	memset(rule, 0, sizeof(*rule));
	if (!*text)
		return fail(&told, "is empty: a rule is FIELD=VALUE, others after commas");
	for (;;) {
		const size_t bytes = strcspn(text, ",");

		if (bytes >= sizeof(field))
			return fail(&told, "is wrong at \"%.20s...\": too long", text);
		memcpy(field, text, bytes);
		field[bytes] = '\0';
		if (field_read(rule, field, &told))
			return -EINVAL;
		if (!text[bytes])
			return rule_check(rule, &told);
		text += bytes + 1;
	}
}

/* ---- two rules ---- */

static bool addresses_meet(const uint8_t a[16], uint32_t a_prefix, const uint8_t b[16],
			   uint32_t b_prefix)
{
	const uint32_t prefix = a_prefix < b_prefix ? a_prefix : b_prefix;

	for (uint32_t bit = 0; bit < prefix; bit++)
		if ((a[bit / 8] ^ b[bit / 8]) & 0x80u >> bit % 8)
			return false;
	return true;
}

/* IPv4 or IPv6; 0: it may be either, or none. */
static uint32_t version_of(const struct frame_match_rule *rule)
{
	const bool has_type = rule->fields & FRAME_MATCH_ETHERTYPE;

	if (rule->ip_version)
		return rule->ip_version;
	return has_type && rule->ethertype == 0x0800   ? 4
	       : has_type && rule->ethertype == 0x86dd ? 6
						       : 0;
}

/* No frame of this rule is IP. */
static bool is_no_ip(const struct frame_match_rule *rule)
{
	return (rule->fields & FRAME_MATCH_ETHERTYPE) && !version_of(rule);
}

static bool is_ip(const struct frame_match_rule *rule, bool udp)
{
	return udp || version_of(rule) ||
	       (rule->fields & (FRAME_MATCH_SRC_PORT | FRAME_MATCH_DST_PORT));
}

bool frame_match_meets(const struct frame_match_rule *a, bool a_udp,
		       const struct frame_match_rule *b, bool b_udp)
{
	const uint32_t both = a->fields & b->fields;

	if ((is_no_ip(a) && is_ip(b, b_udp)) || (is_no_ip(b) && is_ip(a, a_udp)) ||
	    (is_no_ip(a) && a_udp) || (is_no_ip(b) && b_udp) ||
	    (version_of(a) && version_of(b) && version_of(a) != version_of(b)))
		return false;
	return !((both & FRAME_MATCH_SRC_MAC && memcmp(a->src_mac, b->src_mac, 6)) ||
		 (both & FRAME_MATCH_DST_MAC && memcmp(a->dst_mac, b->dst_mac, 6)) ||
		 (both & FRAME_MATCH_ETHERTYPE && a->ethertype != b->ethertype) ||
		 (both & FRAME_MATCH_VLAN && a->vlan != b->vlan) ||
		 (both & FRAME_MATCH_SRC_PORT && a->src_port != b->src_port) ||
		 (both & FRAME_MATCH_DST_PORT && a->dst_port != b->dst_port) ||
		 (both & FRAME_MATCH_SRC_IP &&
		  !addresses_meet(a->src_ip, a->src_prefix, b->src_ip, b->src_prefix)) ||
		 (both & FRAME_MATCH_DST_IP &&
		  !addresses_meet(a->dst_ip, a->dst_prefix, b->dst_ip, b->dst_prefix)));
}
