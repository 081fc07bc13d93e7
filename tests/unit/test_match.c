/* SPDX-License-Identifier: BSD-3-Clause */
/* Match rules: what is read of a rule's text, and which frames a rule names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "pattern/frame_match.h"

/* ---- frames, byte by byte as the RFCs have them ---- */

struct bytes {
	uint8_t at[160];
	uint32_t len;
};

static void add(struct bytes *to, const void *bytes, size_t n)
{
	memcpy(to->at + to->len, bytes, n);
	to->len += (uint32_t)n;
}

static void add16(struct bytes *to, unsigned int value)
{
	const uint8_t bytes[2] = { (uint8_t)(value >> 8), (uint8_t)value };

	add(to, bytes, 2);
}

/* 02:00:00:00:0a:0b to 02:00:00:00:0c:0d */
static struct bytes ethernet(void)
{
	static const uint8_t macs[12] = { 2, 0, 0, 0, 0xc, 0xd, 2, 0, 0, 0, 0xa, 0xb };
	struct bytes frame = { .len = 0 };

	add(&frame, macs, 12);
	return frame;
}

/* 192.0.2.77 to 198.51.100.9, UDP 1000 to 4000; `words` of options */
static void add_ip4(struct bytes *frame, unsigned int options, unsigned int fragment,
		    unsigned int protocol)
{
	uint8_t ip[20] = { [8] = 64, [12] = 192, 0, 2, 77, 198, 51, 100, 9 };

	ip[0] = (uint8_t)(0x45 + options);
	ip[6] = (uint8_t)(fragment >> 8);
	ip[7] = (uint8_t)fragment;
	ip[9] = (uint8_t)protocol;
	add16(frame, 0x0800);
	add(frame, ip, 20);
	for (unsigned int i = 0; i < options; i++)
		add(frame, "\x01\x01\x01\x01", 4);
	add16(frame, 1000);
	add16(frame, 4000);
	add(frame, "\0\x08\0\0", 4);
}

/* 2001:db8::4d to 2001:db8:1::9 */
static void add_ip6(struct bytes *frame, unsigned int next_header)
{
	uint8_t ip[40] = { 0x60, [8] = 0x20, 1,	   0xd, 0xb8, [23] = 0x4d, [24] = 0x20,
			   1,	 0xd,	     0xb8, 0,	1,    [39] = 9 };

	ip[6] = (uint8_t)next_header;
	add16(frame, 0x86dd);
	add(frame, ip, 40);
	add16(frame, 1000);
	add16(frame, 4000);
	add(frame, "\0\x08\0\0", 4);
}

/* On a copy of exactly the bytes that may be read, so that a sanitizer sees any other read. */
static int matches_len(const char *rule, const struct bytes *frame, uint32_t len)
{
	const uint32_t readable = len < FRAME_MATCH_BYTES ? len : FRAME_MATCH_BYTES;
	uint8_t *copy = malloc(readable ? readable : 1);
	struct frame_match match = { .count = 1 };
	char why[160] = "";
	int yes;

	assert_non_null(copy);
	memcpy(copy, frame->at, readable);
	if (frame_match_parse(&match.rule[0], rule, why, sizeof(why)))
		fail_msg("\"%s\" %s", rule, why);
	yes = frame_matches(&match, copy, len);
	free(copy);
	return yes;
}

static int matches(const char *rule, const struct bytes *frame)
{
	return matches_len(rule, frame, frame->len);
}

static void names(const char *rule, const struct bytes *frame)
{
	if (!matches(rule, frame))
		fail_msg("\"%s\" does not name the frame", rule);
}

static void names_not(const char *rule, const struct bytes *frame)
{
	if (matches(rule, frame))
		fail_msg("\"%s\" names the frame", rule);
}

static void test_ethernet(void **state)
{
	struct bytes frame = ethernet();

	add16(&frame, 0x88b5);
	add(&frame, "payload", 7);
	names("src_mac=02:00:00:00:0a:0b", &frame);
	names("dst_mac=02:00:00:00:0C:0D", &frame);
	names("dst_mac=02:00:00:00:0c:0d,src_mac=02:00:00:00:0a:0b,ethertype=0x88b5,vlan=0",
	      &frame);
	names("ethertype=34997", &frame);
	names_not("src_mac=02:00:00:00:0c:0d", &frame);
	names_not("dst_mac=02:00:00:00:0c:0c", &frame);
	names_not("dst_mac=82:00:00:00:0c:0d", &frame);
	names_not("ethertype=0x88b6", &frame);
	names_not("vlan=1", &frame);
	names_not("src_ip=192.0.2.77", &frame);
	names_not("dst_port=4000", &frame);
	assert_true(matches_len("dst_mac=02:00:00:00:0c:0d", &frame, 14));
	assert_false(matches_len("dst_mac=02:00:00:00:0c:0d", &frame, 13));
	assert_false(matches_len("vlan=0", &frame, 0));
}

static void test_tags(void **state)
{
	struct bytes one = ethernet(), two = one, three = one, priority = one, cut;

	add(&one, "\x81\0\x60\x05", 4); /* priority 3, VID 5 */
	add16(&one, 0x88b5);
	names("vlan=5,ethertype=0x88b5", &one);
	names_not("vlan=0", &one);
	names_not("vlan=6", &one);
	names_not("vlan=5,ethertype=0x88b6", &one);

	add(&two, "\x88\xa8\x0f\xfe\x81\0\0\x07", 8);
	add_ip4(&two, 10, 0, 17); /* as far in as it can be */
	names("vlan=4094,dst_port=4000,src_port=1000", &two);
	names_not("vlan=7", &two);
	cut = two;
	cut.len = FRAME_MATCH_BYTES;
	names("src_port=1000", &cut);
	cut.len--;
	names_not("src_port=1000", &cut);
	names("src_ip=192.0.2.77", &cut);
	for (cut.len = 0; cut.len < 22; cut.len++)
		names_not("vlan=4094", &cut);
	names("vlan=4094", &cut);

	add(&three, "\x81\0\0\x05\x81\0\0\x06\x81\0\0\x07\x08\0", 14);
	names("vlan=5", &three);
	names_not("ethertype=0x0800", &three);
	names_not("ethertype=0x8101", &three);

	add(&priority, "\x81\0\xe0\0", 4); /* VID 0: no VLAN */
	add16(&priority, 0x88b5);
	names("vlan=0,ethertype=0x88b5", &priority);
}

static void test_ip4(void **state)
{
	struct bytes frame = ethernet(), other, tagged;

	add_ip4(&frame, 0, 0, 17);
	names("src_ip=192.0.2.77,dst_ip=198.51.100.9,src_port=1000,dst_port=4000", &frame);
	names("ethertype=0x0800,dst_ip=198.51.100.9", &frame);
	names("src_ip=192.0.2.64/26,dst_ip=128.0.0.0/1", &frame);
	names("src_ip=192.0.2.76/31", &frame);
	names("src_ip=192.0.2.79/30", &frame); /* bits behind the prefix do not count */
	names_not("src_ip=192.0.2.78/31", &frame);
	names_not("src_ip=192.0.2.76", &frame);
	names_not("dst_ip=0.0.0.0/1", &frame);
	names_not("dst_ip=192.0.2.77", &frame);
	names_not("src_port=4000", &frame);
	names_not("dst_port=1000", &frame);
	names_not("dst_ip=::1", &frame);
	for (uint32_t len = 0; len < 14 + 24; len++) {
		assert_false(matches_len("dst_port=4000", &frame, len));
		assert_int_equal(matches_len("dst_ip=198.51.100.9", &frame, len), len >= 34);
	}
	assert_true(matches_len("dst_port=4000", &frame, 14 + 24));

	tagged = ethernet();
	add(&tagged, "\x81\0\0\x05", 4);
	add_ip4(&tagged, 3, 0x4000, 17); /* do not fragment */
	names("vlan=5,dst_ip=198.51.100.9,dst_port=4000", &tagged);

	other = ethernet();
	add_ip4(&other, 0, 0x2000, 17); /* first fragment */
	names("dst_port=4000", &other);
	other = ethernet();
	add_ip4(&other, 0, 0x2001, 17); /* a later one: these are not ports */
	names_not("dst_port=4000", &other);
	names("dst_ip=198.51.100.9", &other);
	other = ethernet();
	add_ip4(&other, 0, 0, 6); /* TCP */
	names_not("dst_port=4000", &other);
	other = frame;
	other.at[14] = 0x44; /* header too short */
	names_not("dst_ip=198.51.100.9", &other);
	names("ethertype=0x0800", &other);
	other.at[14] = 0x65; /* not version 4 */
	names_not("dst_ip=198.51.100.9", &other);
}

static void test_ip6(void **state)
{
	struct bytes frame = ethernet(), other = ethernet();

	add_ip6(&frame, 17);
	names("src_ip=2001:db8::4d,dst_ip=2001:db8:1::9,dst_port=4000", &frame);
	names("dst_ip=2001:db8:1::/48,src_ip=2001:db8::/32,ethertype=0x86dd", &frame);
	names("src_ip=2001:db8::4c/127", &frame);
	names_not("src_ip=2001:db8::4c", &frame);
	names_not("src_ip=2001:db8::4e/127", &frame);
	names_not("dst_ip=2001:db8::/48", &frame);
	names_not("dst_ip=32.1.13.184", &frame); /* the same first four bytes */
	for (uint32_t len = 0; len < 14 + 44; len++) {
		assert_false(matches_len("dst_port=4000", &frame, len));
		assert_int_equal(matches_len("src_ip=2001:db8::4d", &frame, len), len >= 54);
	}
	add_ip6(&other, 44); /* a fragment header */
	names_not("dst_port=4000", &other);
	names("src_ip=2001:db8::4d", &other);
	other.at[14] = 0x50;
	names_not("src_ip=2001:db8::4d", &other);
}

static void test_rules_together(void **state)
{
	struct frame_match match = { .count = 0 };
	struct bytes frame = ethernet();
	char why[80];

	add16(&frame, 0x88b5);
	assert_true(frame_matches(&match, frame.at, frame.len));
	assert_true(frame_matches(&match, frame.at, 0));
	assert_int_equal(frame_match_parse(&match.rule[0], "vlan=1", why, sizeof(why)), 0);
	assert_int_equal(frame_match_parse(&match.rule[1], "vlan=0", why, sizeof(why)), 0);
	match.count = 1;
	assert_false(frame_matches(&match, frame.at, frame.len));
	match.count = 2;
	assert_true(frame_matches(&match, frame.at, frame.len));
	match.rule[1].fields = 0; /* every frame, however short */
	assert_true(frame_matches(&match, frame.at, 0));
	match.rule[1].fields = 1u << 20; /* a field that nobody knows is no frame's */
	assert_false(frame_matches(&match, frame.at, frame.len));
	match.rule[FRAME_MATCH_RULES - 1].fields = 1u << 20;
	for (unsigned int r = 2; r < FRAME_MATCH_RULES; r++)
		match.rule[r].fields = 1u << 20;
	match.count = UINT32_MAX; /* does not lead out of the array */
	assert_false(frame_matches(&match, frame.at, frame.len));
}

static void test_parse(void **state)
{
	struct frame_match_rule rule;
	char why[160];

	memset(&rule, 0x55, sizeof(rule));
	assert_int_equal(frame_match_parse(&rule, "vlan=5,dst_ip=192.0.2.255/25,dst_port=0x10", why,
					   sizeof(why)),
			 0);
	assert_int_equal(rule.fields, FRAME_MATCH_VLAN | FRAME_MATCH_DST_IP | FRAME_MATCH_DST_PORT);
	assert_int_equal(rule.vlan, 5);
	assert_int_equal(rule.ip_version, 4);
	assert_int_equal(rule.dst_prefix, 25);
	assert_int_equal(rule.src_prefix, 0);
	assert_int_equal(rule.dst_port, 16);
	assert_memory_equal(rule.dst_ip, "\xc0\0\x02\x80\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_int_equal(
		frame_match_parse(&rule, "src_ip=2001:db8:ffff:ffff::1/33", why, sizeof(why)), 0);
	assert_int_equal(rule.ip_version, 6);
	assert_int_equal(rule.src_prefix, 33);
	assert_memory_equal(rule.src_ip, "\x20\x01\x0d\xb8\x80\0\0\0\0\0\0\0\0\0\0\0", 16);
}

static void test_parse_refuses(void **state)
{
	static const struct {
		const char *text, *word;
	} wrong[] = {
		{ "", "is empty" },
		{ ",", "is empty" },
		{ "vlan=1,", "is empty" },
		{ "vlan", "FIELD=VALUE" },
		{ "vlan:5", "FIELD=VALUE" },
		{ "vlna=5", "the fields are" },
		{ " vlan=5", "the fields are" },
		{ "vlan=", "VLAN id" },
		{ "vlan=4095", "0 (untagged) to 4094" },
		{ "vlan=-1", "VLAN id" },
		{ "vlan= 1", "VLAN id" },
		{ "vlan=+1", "VLAN id" },
		{ "vlan=0x", "VLAN id" },
		{ "vlan=1x", "VLAN id" },
		{ "vlan=4294967297", "VLAN id" },
		{ "vlan=1,vlan=2", "vlan is there twice" },
		{ "src_port=65536", "UDP port" },
		{ "ethertype=0x5ff", "EtherType" },
		{ "ethertype=0x10000", "EtherType" },
		{ "ethertype=0x8100", "VLAN tag" },
		{ "ethertype=0x88a8", "VLAN tag" },
		{ "src_mac=02:00:00:00:00", "MAC address" },
		{ "src_mac=02:00:00:00:00:0g", "MAC address" },
		{ "src_mac=02-00-00-00-00-00", "MAC address" },
		{ "src_mac=02:00:00:00:00:000", "MAC address" },
		{ "src_ip=192.0.2", "not an IPv4 or IPv6" },
		{ "src_ip=192.0.2.256", "not an IPv4 or IPv6" },
		{ "src_ip=:::1", "not an IPv4 or IPv6" },
		{ "src_ip=host", "not an IPv4 or IPv6" },
		{ "src_ip=192.0.2.1/0", "1 to 32" },
		{ "src_ip=192.0.2.1/33", "1 to 32" },
		{ "src_ip=192.0.2.1/", "1 to 32" },
		{ "src_ip=::1/129", "1 to 128" },
		{ "src_ip=::1/0x10", "1 to 128" },
		{ "src_ip=::1,dst_ip=192.0.2.1", "one IP version" },
		{ "ethertype=0x86dd,dst_ip=192.0.2.1", "no IPv4" },
		{ "ethertype=0x88b5,dst_port=1", "no UDP ports" },
		{ "src_ip=1111111111111111111111111111111111111111111111111111111111111111111111",
		  "too long" },
	};
	struct frame_match_rule rule;
	char why[160];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		strcpy(why, "nothing");
		assert_int_equal(frame_match_parse(&rule, wrong[i].text, why, sizeof(why)),
				 -EINVAL);
		if (!strstr(why, wrong[i].word) || strncmp(why, "is ", 3) ||
		    why[strlen(why) - 1] == '.')
			fail_msg("\"%s\" %s", wrong[i].text, why);
	}
	/* a short or missing buffer for the words */
	assert_int_equal(frame_match_parse(&rule, "vlan=9999", why, 8), -EINVAL);
	assert_int_equal(strlen(why), 7);
	assert_int_equal(frame_match_parse(&rule, "vlan=9999", NULL, 0), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ethernet),
		cmocka_unit_test(test_tags),
		cmocka_unit_test(test_ip4),
		cmocka_unit_test(test_ip6),
		cmocka_unit_test(test_rules_together),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_parse_refuses),
	};

	return cmocka_run_group_tests_name("match", tests, NULL, NULL);
}
