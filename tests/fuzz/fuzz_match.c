/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer: any bytes as two rules of --match, a line each, and behind the first zero byte as a frame. What
 * is refused is told why; what is accepted is the same again from a text of its own, and names the frame that is
 * made from it; two rules that name one frame are said to meet.
 */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pattern/frame_match.h"

#define RULES 2u
#define TEXT_MAX 400u
#define FRAME_MAX 200u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void expect(int right, const char *what)
{
	if (!right) {
		fprintf(stderr, "%s\n", what);
		abort();
	}
}

/* ---- a rule as text ---- */

struct text {
	char at[TEXT_MAX];
	size_t bytes;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	text->bytes += (size_t)vsnprintf(text->at + text->bytes, sizeof(text->at) - text->bytes,
					 format, arguments);
	va_end(arguments);
	expect(text->bytes < sizeof(text->at), "a rule's text is short");
}

static void add_mac(struct text *text, const char *name, const uint8_t mac[6])
{
	add(text, ",%s=%02x:%02x:%02x:%02x:%02x:%02x", name, mac[0], mac[1], mac[2], mac[3], mac[4],
	    mac[5]);
}

static void add_address(struct text *text, const char *name, const struct frame_match_rule *rule,
			const uint8_t address[16], uint32_t prefix)
{
	char host[INET6_ADDRSTRLEN];

	expect(inet_ntop(rule->ip_version == 4 ? AF_INET : AF_INET6, address, host, sizeof(host)) !=
		       NULL,
	       "an address");
	add(text, ",%s=%s/%u", name, host, prefix);
}

static void rule_print(struct text *text, const struct frame_match_rule *rule)
{
	text->bytes = 0;
	if (rule->fields & FRAME_MATCH_DST_PORT)
		add(text, ",dst_port=%u", rule->dst_port);
	if (rule->fields & FRAME_MATCH_SRC_PORT)
		add(text, ",src_port=0x%x", rule->src_port);
	if (rule->fields & FRAME_MATCH_DST_IP)
		add_address(text, "dst_ip", rule, rule->dst_ip, rule->dst_prefix);
	if (rule->fields & FRAME_MATCH_SRC_IP)
		add_address(text, "src_ip", rule, rule->src_ip, rule->src_prefix);
	if (rule->fields & FRAME_MATCH_VLAN)
		add(text, ",vlan=%u", rule->vlan);
	if (rule->fields & FRAME_MATCH_ETHERTYPE)
		add(text, ",ethertype=%u", rule->ethertype);
	if (rule->fields & FRAME_MATCH_DST_MAC)
		add_mac(text, "dst_mac", rule->dst_mac);
	if (rule->fields & FRAME_MATCH_SRC_MAC)
		add_mac(text, "src_mac", rule->src_mac);
}

static void is_same_again(const struct frame_match_rule *rule)
{
	struct frame_match_rule again;
	struct text text;
	char why[160];

	rule_print(&text, rule);
	expect(frame_match_parse(&again, text.at + 1, why, sizeof(why)) == 0, text.at);
	expect(!memcmp(rule, &again, sizeof(again)), "the same rule again");
}

/* ---- a frame that a rule names ---- */

struct frame {
	uint8_t at[FRAME_MAX];
	uint32_t len;
};

static void put16(struct frame *frame, uint32_t value)
{
	frame->at[frame->len++] = (uint8_t)(value >> 8);
	frame->at[frame->len++] = (uint8_t)value;
}

static void put(struct frame *frame, const uint8_t *bytes, uint32_t count)
{
	memcpy(frame->at + frame->len, bytes, count);
	frame->len += count;
}

static uint32_t type_of(const struct frame_match_rule *rule)
{
	if (rule->fields & FRAME_MATCH_ETHERTYPE)
		return rule->ethertype;
	if (rule->ip_version == 6)
		return 0x86dd;
	return rule->ip_version == 4 || rule->fields & (FRAME_MATCH_SRC_PORT | FRAME_MATCH_DST_PORT)
		       ? 0x0800
		       : 0x88b5;
}

static void frame_make(struct frame *frame, const struct frame_match_rule *rule)
{
	static const uint8_t ip4[12] = { 0x45, [8] = 64, [9] = 17 };
	static const uint8_t ip6[8] = { 0x60, [6] = 17, [7] = 64 };
	const uint32_t type = type_of(rule);

	memset(frame, 0, sizeof(*frame));
	put(frame, rule->dst_mac, 6);
	put(frame, rule->src_mac, 6);
	if (rule->vlan) {
		put16(frame, 0x8100);
		put16(frame, 0xe000u | rule->vlan);
	}
	put16(frame, type);
	if (type == 0x0800) {
		put(frame, ip4, sizeof(ip4));
		put(frame, rule->src_ip, 4);
		put(frame, rule->dst_ip, 4);
	} else if (type == 0x86dd) {
		put(frame, ip6, sizeof(ip6));
		put(frame, rule->src_ip, 16);
		put(frame, rule->dst_ip, 16);
	}
	put16(frame, rule->src_port);
	put16(frame, rule->dst_port);
}

/* From memory of its own, so that the sanitizer sees a read beyond what may be read. */
static int names(const struct frame_match_rule *rule, const uint8_t *frame, uint32_t len)
{
	const uint32_t readable = len < FRAME_MATCH_BYTES ? len : FRAME_MATCH_BYTES;
	const struct frame_match match = { .count = 1, .rule[0] = *rule };
	uint8_t *copy = malloc(readable ? readable : 1);
	int yes;

	if (!copy)
		abort();
	memcpy(copy, frame, readable);
	yes = frame_matches(&match, copy, len);
	free(copy);
	return yes;
}

/* ---- the input ---- */

/* False: it is none, and why is said. */
static int rule_read(struct frame_match_rule *rule, const char *text, size_t bytes)
{
	char *copy = strndup(text, bytes), why[160];
	int rc;

	if (!copy)
		abort();
	memset(why, '#', sizeof(why));
	rc = frame_match_parse(rule, copy, why, sizeof(why));
	if (rc)
		expect(rc < 0 && memchr(why, '\0', sizeof(why)) && !strncmp(why, "is ", 3),
		       "why it is refused");
	free(copy);
	return rc == 0;
}

static void both(const struct frame_match_rule *rule, const uint8_t *frame, uint32_t len)
{
	if (names(&rule[0], frame, len) && names(&rule[1], frame, len))
		expect(frame_match_meets(&rule[0], false, &rule[1], false) &&
			       frame_match_meets(&rule[1], false, &rule[0], false),
		       "two rules that name one frame meet");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const char *text = (const char *)data;
	const size_t length = strnlen(text, bytes);
	const size_t rest = length < bytes ? bytes - length - 1 : 0;
	const char *second = memchr(text, '\n', length);
	struct frame_match_rule rule[RULES];
	struct frame frame;
	int read[RULES];

	read[0] = rule_read(&rule[0], text, second ? (size_t)(second - text) : length);
	read[1] = second && rule_read(&rule[1], second + 1, length - (size_t)(second + 1 - text));
	for (uint32_t i = 0; i < RULES; i++) {
		if (!read[i])
			continue;
		is_same_again(&rule[i]);
		frame_make(&frame, &rule[i]);
		expect(names(&rule[i], frame.at, frame.len), "a frame that is made from a rule");
		if (read[0] && read[1])
			both(rule, frame.at, frame.len);
		if (rest && rest <= UINT16_MAX)
			(void)names(&rule[i], data + length + 1, (uint32_t)rest);
	}
	if (read[0] && read[1] && rest && rest <= UINT16_MAX)
		both(rule, data + length + 1, (uint32_t)rest);
	return 0;
}
