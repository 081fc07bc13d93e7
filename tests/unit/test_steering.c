/* SPDX-License-Identifier: BSD-3-Clause */
/* steering.c: what the card is asked for, against doubles of rte_flow_*() that write it down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#include "base/log.h"
#include "port/steering.h"
#include "port/steering_pattern.h"

#define PORT 7
#define ASKED_MAX 128

/* The card: what it was asked, and what it refuses. */
static struct card {
	int isolate;   /* its answer */
	bool releases; /* the isolation is expected to be undone */
	unsigned int isolated;
	char validated[ASKED_MAX][512], created[ASKED_MAX][512];
	unsigned int validations, creations, destroyed, queries;
	bool alive[ASKED_MAX];
	const char *refuse; /* what is in a rule that it refuses, or NULL */
	const char *refuse_create;
	const char *words;
	bool blame_item; /* the cause is the pattern's second item, else the first action's conf */
	bool silent;	 /* does not answer queries */
	uint64_t hash;
} card;

static void mac_add(char *text, size_t bytes, const char *name, const struct rte_ether_addr *spec,
		    const struct rte_ether_addr *mask)
{
	const uint8_t *a = spec->addr_bytes, *m = mask->addr_bytes;
	const size_t at = strlen(text);

	if (!(m[0] | m[1] | m[2] | m[3] | m[4] | m[5]))
		return;
	for (int i = 0; i < 6; i++)
		assert_int_equal(m[i], 0xff);
	snprintf(text + at, bytes - at, " %s %02x:%02x:%02x:%02x:%02x:%02x", name, a[0], a[1], a[2],
		 a[3], a[4], a[5]);
}

static void number_add(char *text, size_t bytes, const char *name, rte_be16_t spec, rte_be16_t mask)
{
	const size_t at = strlen(text);

	if (mask)
		snprintf(text + at, bytes - at, " %s %x/%x", name, ntohs(spec), ntohs(mask));
}

static void address_add(char *text, size_t bytes, const char *name, int family, const void *spec,
			const void *mask)
{
	static const uint8_t none[16];
	char a[INET6_ADDRSTRLEN], m[INET6_ADDRSTRLEN];
	const size_t at = strlen(text);

	if (!memcmp(mask, none, family == AF_INET ? 4 : 16))
		return;
	inet_ntop(family, spec, a, sizeof(a));
	inet_ntop(family, mask, m, sizeof(m));
	snprintf(text + at, bytes - at, " %s %s/%s", name, a, m);
}

static void item_write(char *text, size_t bytes, const struct rte_flow_item *item)
{
	const size_t at = strlen(text);

	assert_null(item->last);
	assert_int_equal(!item->spec, !item->mask);
	if (item->type == RTE_FLOW_ITEM_TYPE_ETH) {
		const struct rte_flow_item_eth *s = item->spec, *m = item->mask;

		snprintf(text + at, bytes - at, "eth");
		if (!s)
			return;
		mac_add(text, bytes, "dst", &s->hdr.dst_addr, &m->hdr.dst_addr);
		mac_add(text, bytes, "src", &s->hdr.src_addr, &m->hdr.src_addr);
		number_add(text, bytes, "type", s->hdr.ether_type, m->hdr.ether_type);
		if (m->has_vlan)
			strcat(text, s->has_vlan ? " tagged" : " untagged");
	} else if (item->type == RTE_FLOW_ITEM_TYPE_VLAN) {
		const struct rte_flow_item_vlan *s = item->spec, *m = item->mask;

		snprintf(text + at, bytes - at, "vlan");
		assert_non_null(s); /* else the default mask */
		number_add(text, bytes, "tci", s->hdr.vlan_tci, m->hdr.vlan_tci);
		number_add(text, bytes, "type", s->hdr.eth_proto, m->hdr.eth_proto);
		if (m->has_more_vlan)
			strcat(text, s->has_more_vlan ? " more" : " last");
	} else if (item->type == RTE_FLOW_ITEM_TYPE_IPV4) {
		const struct rte_flow_item_ipv4 *s = item->spec, *m = item->mask;

		snprintf(text + at, bytes - at, "ipv4");
		if (!s)
			return;
		address_add(text, bytes, "src", AF_INET, &s->hdr.src_addr, &m->hdr.src_addr);
		address_add(text, bytes, "dst", AF_INET, &s->hdr.dst_addr, &m->hdr.dst_addr);
	} else if (item->type == RTE_FLOW_ITEM_TYPE_IPV6) {
		const struct rte_flow_item_ipv6 *s = item->spec, *m = item->mask;

		snprintf(text + at, bytes - at, "ipv6");
		if (!s)
			return;
		address_add(text, bytes, "src", AF_INET6, &s->hdr.src_addr, &m->hdr.src_addr);
		address_add(text, bytes, "dst", AF_INET6, &s->hdr.dst_addr, &m->hdr.dst_addr);
	} else if (item->type == RTE_FLOW_ITEM_TYPE_UDP) {
		const struct rte_flow_item_udp *s = item->spec, *m = item->mask;

		snprintf(text + at, bytes - at, "udp");
		number_add(text, bytes, "src", s->hdr.src_port, m->hdr.src_port);
		number_add(text, bytes, "dst", s->hdr.dst_port, m->hdr.dst_port);
	} else {
		fail_msg("item %d", item->type);
	}
}

static void action_write(char *text, size_t bytes, const struct rte_flow_action *action)
{
	const size_t at = strlen(text);

	if (action->type == RTE_FLOW_ACTION_TYPE_MARK) {
		const struct rte_flow_action_mark *mark = action->conf;

		snprintf(text + at, bytes - at, "mark %u", mark->id);
	} else if (action->type == RTE_FLOW_ACTION_TYPE_COUNT) {
		assert_non_null(action->conf);
		snprintf(text + at, bytes - at, "count");
	} else if (action->type == RTE_FLOW_ACTION_TYPE_QUEUE) {
		const struct rte_flow_action_queue *queue = action->conf;

		snprintf(text + at, bytes - at, "queue %u", queue->index);
	} else if (action->type == RTE_FLOW_ACTION_TYPE_RSS) {
		const struct rte_flow_action_rss *rss = action->conf;

		assert_int_equal(rss->types, card.hash & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP));
		assert_int_equal(!rss->key, !rss->key_len);
		for (uint32_t q = 0; q < rss->queue_num; q++)
			assert_int_equal(rss->queue[q], q);
		snprintf(text + at, bytes - at, "rss %u key %u", rss->queue_num, rss->key_len);
	} else {
		fail_msg("action %d", action->type);
	}
}

/* "eth / vlan tci 5/fff / end > mark 1 / count / queue 0" */
static void rule_write(char *text, size_t bytes, const struct rte_flow_attr *attr,
		       const struct rte_flow_item *item, const struct rte_flow_action *action)
{
	assert_true(attr->ingress && !attr->egress && !attr->transfer);
	assert_int_equal(attr->group, 0);
	assert_int_equal(attr->priority, 0);
	text[0] = '\0';
	for (; item->type != RTE_FLOW_ITEM_TYPE_END; item++) {
		item_write(text, bytes, item);
		strcat(text, " / ");
	}
	strcat(text, "end >");
	for (; action->type != RTE_FLOW_ACTION_TYPE_END; action++) {
		strcat(text, " ");
		action_write(text, bytes, action);
	}
}

int __wrap_rte_flow_isolate(uint16_t port, int set, struct rte_flow_error *told);
int __wrap_rte_flow_isolate(uint16_t port, int set, struct rte_flow_error *told)
{
	assert_int_equal(port, PORT);
	assert_int_equal(set, !card.releases);
	card.isolated++;
	if (card.isolate)
		told->message = card.words;
	return card.isolate;
}

int __wrap_rte_flow_validate(uint16_t port, const struct rte_flow_attr *attr,
			     const struct rte_flow_item pattern[],
			     const struct rte_flow_action actions[], struct rte_flow_error *told);
int __wrap_rte_flow_validate(uint16_t port, const struct rte_flow_attr *attr,
			     const struct rte_flow_item pattern[],
			     const struct rte_flow_action actions[], struct rte_flow_error *told)
{
	char *text = card.validated[card.validations++];

	assert_int_equal(port, PORT);
	assert_true(card.validations < ASKED_MAX);
	rule_write(text, sizeof(card.validated[0]), attr, pattern, actions);
	if (!card.refuse || !strstr(text, card.refuse))
		return 0;
	told->type = RTE_FLOW_ERROR_TYPE_ITEM;
	told->cause = card.blame_item ? (const void *)&pattern[1] : actions[0].conf;
	told->message = card.words;
	return -ENOTSUP;
}

struct rte_flow *__wrap_rte_flow_create(uint16_t port, const struct rte_flow_attr *attr,
					const struct rte_flow_item pattern[],
					const struct rte_flow_action actions[],
					struct rte_flow_error *told);
struct rte_flow *__wrap_rte_flow_create(uint16_t port, const struct rte_flow_attr *attr,
					const struct rte_flow_item pattern[],
					const struct rte_flow_action actions[],
					struct rte_flow_error *told)
{
	char *text = card.created[card.creations];

	assert_int_equal(port, PORT);
	assert_true(card.creations < ASKED_MAX);
	rule_write(text, sizeof(card.created[0]), attr, pattern, actions);
	if (card.refuse_create && strstr(text, card.refuse_create)) {
		told->message = card.words;
		rte_errno = EEXIST;
		return NULL;
	}
	card.alive[card.creations] = true;
	return (struct rte_flow *)(uintptr_t)(0x1000 + card.creations++);
}

static unsigned int flow_index(const struct rte_flow *flow)
{
	const unsigned int index = (unsigned int)(uintptr_t)flow - 0x1000;

	assert_true(index < card.creations && card.alive[index]);
	return index;
}

int __wrap_rte_flow_destroy(uint16_t port, struct rte_flow *flow, struct rte_flow_error *told);
int __wrap_rte_flow_destroy(uint16_t port, struct rte_flow *flow, struct rte_flow_error *told)
{
	assert_int_equal(port, PORT);
	card.alive[flow_index(flow)] = false;
	card.destroyed++;
	return 0;
}

int __wrap_rte_flow_query(uint16_t port, struct rte_flow *flow,
			  const struct rte_flow_action *action, void *data,
			  struct rte_flow_error *told);
int __wrap_rte_flow_query(uint16_t port, struct rte_flow *flow,
			  const struct rte_flow_action *action, void *data,
			  struct rte_flow_error *told)
{
	struct rte_flow_query_count *count = data;
	const unsigned int index = flow_index(flow);

	assert_int_equal(port, PORT);
	assert_int_equal(action->type, RTE_FLOW_ACTION_TYPE_COUNT);
	assert_int_equal(count->reset, 0);
	card.queries++;
	if (card.silent && index % 2)
		return -ENOTSUP;
	count->hits_set = 1;
	count->hits = 1000 + index;
	count->bytes_set = 1;
	count->bytes = 64000 + index;
	return 0;
}

int __wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info)
{
	memset(info, 0, sizeof(*info));
	info->flow_type_rss_offloads = card.hash;
	return 0;
}

static struct frame_match match;
static const char *texts[FRAME_MATCH_RULES];
static struct steering steering;
static struct gdrcap_error error;

static int setup(void **state)
{
	memset(&card, 0, sizeof(card));
	memset(&match, 0, sizeof(match));
	memset(&steering, 0xa5, sizeof(steering));
	card.hash = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP;
	error.text[0] = '\0';
	return 0;
}

static void rule_add(const char *text)
{
	char why[128];

	texts[match.count] = text;
	if (frame_match_parse(&match.rule[match.count], text, why, sizeof(why)))
		fail_msg("%s %s", text, why);
	match.count++;
}

static int create(uint16_t queues)
{
	const struct steering_config config = {
		.port = PORT,
		.name = "0000:3b:00.0",
		.queues = queues,
		.match = &match,
		.text = texts,
	};

	return steering_create(&steering, &config, &error);
}

static void expect_created(const char *const *expected, unsigned int count)
{
	for (unsigned int i = 0; i < count && i < card.creations; i++)
		assert_string_equal(card.created[i], expected[i]);
	assert_int_equal(card.creations, count);
}

static void patterns(void **state)
{
	static const struct {
		const char *rule;
		const char *created[6];
	} cases[] = {
		{ "ethertype=0x88b5",
		  { "eth type 88b5/ffff / end >", "eth / vlan type 88b5/ffff / end >",
		    "eth / vlan more / vlan type 88b5/ffff / end >" } },
		{ "vlan=5",
		  { "eth / vlan tci 5/fff / end >", "eth / vlan tci 5/fff more / end >" } },
		{ "vlan=0",
		  { "eth untagged / end >", "eth / vlan tci 0/fff / end >",
		    "eth / vlan tci 0/fff more / end >" } },
		{ "vlan=7,ethertype=0x88b5",
		  { "eth / vlan tci 7/fff type 88b5/ffff / end >",
		    "eth / vlan tci 7/fff more / vlan type 88b5/ffff / end >" } },
		{ "src_mac=02:00:00:00:00:01,dst_mac=02:00:00:00:00:02",
		  { "eth dst 02:00:00:00:00:02 src 02:00:00:00:00:01 / end >" } },
		{ "vlan=0,dst_ip=192.0.2.0/23,src_ip=192.0.2.9,dst_port=4000",
		  { "eth untagged / ipv4 src 192.0.2.9/255.255.255.255 dst "
		    "192.0.2.0/255.255.254.0 / udp dst fa0/ffff / end >",
		    "eth / vlan tci 0/fff / ipv4 src 192.0.2.9/255.255.255.255 dst "
		    "192.0.2.0/255.255.254.0 / udp dst fa0/ffff / end >",
		    "eth / vlan tci 0/fff more / ipv4 src 192.0.2.9/255.255.255.255 dst "
		    "192.0.2.0/255.255.254.0 / udp dst fa0/ffff / end >" } },
		{ "vlan=9,src_ip=2001:db8::/33,src_port=1",
		  { "eth / vlan tci 9/fff / ipv6 src 2001:db8::/ffff:ffff:8000:: / udp src "
		    "1/ffff / end >",
		    "eth / vlan tci 9/fff more / ipv6 src 2001:db8::/ffff:ffff:8000:: / udp src "
		    "1/ffff / end >" } },
		{ "dst_port=53",
		  { "eth / ipv4 / udp dst 35/ffff / end >", "eth / ipv6 / udp dst 35/ffff / end >",
		    "eth / vlan / ipv4 / udp dst 35/ffff / end >",
		    "eth / vlan / ipv6 / udp dst 35/ffff / end >",
		    "eth / vlan more / ipv4 / udp dst 35/ffff / end >",
		    "eth / vlan more / ipv6 / udp dst 35/ffff / end >" } },
		{ "ethertype=0x86dd,dst_port=53,vlan=1",
		  { "eth / vlan tci 1/fff / ipv6 / udp dst 35/ffff / end >",
		    "eth / vlan tci 1/fff more / ipv6 / udp dst 35/ffff / end >" } },
		{ "ethertype=0x0800,vlan=1",
		  { "eth / vlan tci 1/fff / ipv4 / end >",
		    "eth / vlan tci 1/fff more / ipv4 / end >" } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned int count = 0;

		setup(state);
		rule_add(cases[i].rule);
		assert_int_equal(create(1), 0);
		for (; count < 6 && cases[i].created[count]; count++) {
			char expected[512];

			snprintf(expected, sizeof(expected), "%s mark 1 count queue 0",
				 cases[i].created[count]);
			assert_true(count < card.creations);
			assert_string_equal(card.created[count], expected);
		}
		assert_int_equal(card.creations, count);
		assert_int_equal(steering.rules, 1);
		assert_int_equal(steering.rule[0].parts, count);
		assert_true(steering.rule[0].marked && steering.rule[0].counted);
		steering_destroy(&steering);
		assert_int_equal(card.destroyed, count);
	}
}

static void every_frame(void **state)
{
	static const char *const one[] = { "eth / end > mark 1 count queue 0" };
	static const char *const four[] = { "eth / end > mark 1 count rss 4 key 0" };

	assert_int_equal(create(1), 0);
	expect_created(one, 1);
	assert_int_equal(steering.rules, 1);
	assert_false(steering.rule[0].spread);
	steering_destroy(&steering);
	setup(state);
	assert_int_equal(create(4), 0);
	expect_created(four, 1);
	assert_true(steering.rule[0].spread);
	steering_destroy(&steering);
}

/* IP frames by their hash, others a queue a rule. */
static void spreading(void **state)
{
	static const char *const expected[] = {
		"eth / vlan tci 1/fff / ipv4 / end > mark 1 count rss 4 key 0",
		"eth / vlan tci 1/fff more / ipv4 / end > mark 1 count rss 4 key 0",
		"eth / vlan tci 2/fff type 88b5/ffff / end > mark 2 count queue 1",
		"eth / vlan tci 2/fff more / vlan type 88b5/ffff / end > mark 2 count queue 1",
		"eth dst 02:00:00:00:00:02 / end > mark 3 count rss 4 key 0",
		"eth / vlan tci 3/fff type 88b5/ffff / end > mark 4 count queue 3",
		"eth / vlan tci 3/fff more / vlan type 88b5/ffff / end > mark 4 count queue 3",
		"eth / vlan tci 4/fff type 88b5/ffff / end > mark 5 count queue 0",
		"eth / vlan tci 4/fff more / vlan type 88b5/ffff / end > mark 5 count queue 0",
	};

	rule_add("vlan=1,ethertype=0x0800");
	rule_add("vlan=2,ethertype=0x88b5");
	rule_add("dst_mac=02:00:00:00:00:02");
	rule_add("vlan=3,ethertype=0x88b5");
	rule_add("vlan=4,ethertype=0x88b5");
	assert_int_equal(create(4), 0);
	expect_created(expected, 9);
	assert_int_equal(steering.rules, 5);
	assert_true(steering.rule[0].spread && !steering.rule[1].spread && steering.rule[2].spread);
	/* nothing is made before all is validated: 1 + 1 + 1 + 1 + 1 needed parts, then the rest */
	assert_true(card.validations >= 5);
	steering_destroy(&steering);
	setup(state);
	card.hash = 0; /* a card that hashes nothing */
	assert_int_equal(create(4), 0);
	assert_string_equal(card.created[0], "eth / end > mark 1 count queue 0");
	assert_false(steering.rule[0].spread);
	steering_destroy(&steering);
}

static void own_key(void **state)
{
	static const uint8_t key[40] = { 1 };
	const struct steering_config config = {
		.port = PORT,
		.name = "x",
		.queues = 2,
		.match = &match,
		.rss_key = key,
		.rss_key_bytes = sizeof(key),
	};

	assert_int_equal(steering_create(&steering, &config, &error), 0);
	assert_string_equal(card.created[0], "eth / end > mark 1 count rss 2 key 40");
	steering_destroy(&steering);
}

static void refused_rule(void **state)
{
	rule_add("ethertype=0x88b5");
	rule_add("vlan=77");
	card.refuse = "tci 4d/fff";
	card.words = "VLAN cannot be empty";
	card.blame_item = true;
	assert_int_equal(create(1), -ENOTSUP);
	assert_int_equal(error.code, -ENOTSUP);
	assert_non_null(strstr(error.text, "port 0000:3b:00.0"));
	assert_non_null(strstr(error.text, "rule 2, \"vlan=77\""));
	assert_non_null(strstr(error.text, "VLAN cannot be empty at its VLAN tag"));
	/* nothing was made: the first rule alone would lie */
	assert_int_equal(card.creations, 0);
	assert_int_equal(steering.rules, 0);

	setup(state);
	rule_add("vlan=77");
	card.refuse = "queue 0"; /* whatever its marks and counters */
	card.words = NULL;
	assert_int_equal(create(1), -ENOTSUP);
	assert_non_null(strstr(error.text, "no reason given at its action \"queue\""));
	assert_int_equal(card.validations, 4);
}

static void refused_at_creation(void **state)
{
	rule_add("ethertype=0x88b5");
	rule_add("vlan=77");
	card.refuse_create = "tci 4d/fff / end";
	card.words = "cannot create flow";
	assert_int_equal(create(1), -EEXIST);
	assert_non_null(
		strstr(error.text, "rule 2, \"vlan=77\": cannot create flow (File exists)"));
	assert_int_equal(card.creations, 3); /* of the first rule */
	assert_int_equal(card.destroyed, 3);
	assert_int_equal(steering.rules, 0);
}

/* Marks, counters and tagged frames: what a card has not is left out, and known to be. */
static void less(void **state)
{
	struct steering_hits hits[STEERING_RULES_MAX];

	rule_add("ethertype=0x88b5");
	card.refuse = "count";
	assert_int_equal(create(1), 0);
	assert_string_equal(card.created[0], "eth type 88b5/ffff / end > mark 1 queue 0");
	assert_true(steering.rule[0].marked && !steering.rule[0].counted);
	steering_query(&steering, hits);
	assert_false(hits[0].known);
	assert_int_equal(card.queries, 0);
	steering_destroy(&steering);

	setup(state);
	rule_add("ethertype=0x88b5");
	card.refuse = "mark";
	assert_int_equal(create(1), 0);
	assert_string_equal(card.created[0], "eth type 88b5/ffff / end > count queue 0");
	assert_true(!steering.rule[0].marked && steering.rule[0].counted);
	steering_destroy(&steering);

	setup(state);
	rule_add("ethertype=0x88b5");
	card.refuse = "more / vlan";
	assert_int_equal(create(1), 0);
	assert_int_equal(card.creations, 2);
	assert_int_equal(steering.rule[0].tags_most, 1);
	steering_destroy(&steering);

	setup(state);
	rule_add("ethertype=0x88b5");
	card.refuse_create = "/ vlan"; /* validated, and not made */
	assert_int_equal(create(1), 0);
	assert_int_equal(card.creations, 1);
	assert_int_equal(steering.rule[0].tags_most, 0);
	steering_destroy(&steering);
	assert_int_equal(card.destroyed, 1);
}

static void hits_summed(void **state)
{
	struct steering_hits hits[STEERING_RULES_MAX];

	rule_add("vlan=3");
	rule_add("vlan=4");
	assert_int_equal(create(1), 0);
	steering_query(&steering, hits);
	assert_true(hits[0].known && hits[1].known);
	assert_int_equal(hits[0].frames, 1000 + 1001);
	assert_int_equal(hits[1].frames, 1002 + 1003);
	assert_int_equal(hits[1].bytes, 64002 + 64003);
	for (unsigned int r = 2; r < STEERING_RULES_MAX; r++)
		assert_false(hits[r].known);
	card.silent = true; /* to every second question: half of it is not the number */
	steering_query(&steering, hits);
	assert_false(hits[0].known);
	assert_int_equal(hits[0].frames, 0);
	steering_destroy(&steering);
	steering_query(&steering, hits);
	assert_false(hits[0].known);
}

static void isolation(void **state)
{
	assert_int_equal(steering_isolate(PORT, "p", &error), 1);
	card.isolate = -ENOSYS; /* no rte_flow at all */
	assert_int_equal(steering_isolate(PORT, "p", &error), 0);
	card.isolate = -ENOTSUP;
	assert_int_equal(steering_isolate(PORT, "p", &error), 0);
	card.isolate = -EBUSY;
	card.words = "port must be stopped first";
	assert_int_equal(steering_isolate(PORT, "p", &error), -EBUSY);
	assert_non_null(strstr(error.text, "port must be stopped first"));
	assert_int_equal(card.isolated, 4);
	/* Undone; a refusal is only told. */
	card.releases = true;
	steering_release(PORT);
	card.isolate = 0;
	steering_release(PORT);
	assert_int_equal(card.isolated, 6);
}

static void hostile(void **state)
{
	rule_add("ethertype=0x88b5");
	assert_int_equal(create(0), -EINVAL);
	assert_int_equal(create(GDRCAP_QUEUES_MAX + 1), -EINVAL);
	match.count = FRAME_MATCH_RULES + 1;
	assert_int_equal(create(1), -EINVAL);
	match.count = 1;
	match.rule[0].fields |= FRAME_MATCH_DST_IP; /* without a version, and no IP EtherType */
	assert_int_equal(create(1), -EINVAL);
	match.rule[0].fields = FRAME_MATCH_DST_IP | FRAME_MATCH_ETHERTYPE;
	match.rule[0].ethertype = 0x0800;
	match.rule[0].ip_version = 6;
	assert_int_equal(create(1), -EINVAL);
	assert_int_equal(card.validations, 0);
}

/* ---- what the patterns mean, against what the checker means ---- */

struct made_frame {
	uint8_t bytes[128];
	uint32_t tags, behind; /* offset of what follows the EtherType */
	uint16_t type[3];      /* EtherType or TPID after the addresses, and after each tag */
	uint16_t tci[2];
};

static uint32_t draw_state;

static uint32_t draw(uint32_t below)
{
	draw_state = draw_state * 1664525u + 1013904223u;
	return (draw_state >> 8) % below;
}

static void be16_put(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void frame_make(struct made_frame *frame)
{
	static const uint16_t types[] = { 0x0800, 0x86dd, 0x88b5, 0x0806 };
	const uint16_t type = types[draw(4)];
	const uint8_t protocol = draw(4) ? 17 : 6;
	uint8_t *at = frame->bytes + 12;

	memset(frame, 0, sizeof(*frame));
	frame->bytes[5] = (uint8_t)draw(2);
	frame->bytes[11] = (uint8_t)draw(2);
	frame->tags = draw(3);
	for (uint32_t t = 0; t < frame->tags; t++, at += 4) {
		frame->type[t] = 0x8100;
		frame->tci[t] = (uint16_t)(draw(8) << 13 | draw(3));
		be16_put(at, 0x8100);
		be16_put(at + 2, frame->tci[t]);
	}
	frame->type[frame->tags] = type;
	be16_put(at, type);
	at += 2;
	frame->behind = (uint32_t)(at - frame->bytes);
	if (type == 0x0800) {
		at[0] = 0x45;
		at[9] = protocol;
		at[15] = (uint8_t)draw(3);
		at[19] = (uint8_t)draw(3);
		at += 20;
	} else {
		at[0] = 0x60;
		at[6] = protocol;
		at[23] = (uint8_t)draw(3);
		at[39] = (uint8_t)draw(3);
		at += 40;
	}
	be16_put(at, (uint16_t)draw(3));
	be16_put(at + 2, (uint16_t)draw(3));
}

static bool masked_equal(const void *a, const void *b, const void *mask, size_t bytes)
{
	const uint8_t *x = a, *y = b, *m = mask;

	for (size_t i = 0; i < bytes; i++)
		if ((x[i] ^ y[i]) & m[i])
			return false;
	return true;
}

/* The pattern read to the letter: each item is the next header, a type names what follows. */
static bool pattern_matches(const struct steering_pattern *pattern, const struct made_frame *frame)
{
	const uint8_t *ip = frame->bytes + frame->behind;
	uint32_t tag = 0;
	bool more = false, is4 = false;

	for (uint32_t i = 0; i < pattern->items; i++) {
		const struct rte_flow_item *item = &pattern->item[i];
		const uint16_t type = frame->type[more ? frame->tags : tag];
		const rte_be16_t here = htons(type);

		if (item->type == RTE_FLOW_ITEM_TYPE_ETH) {
			const struct rte_flow_item_eth *s = item->spec, *m = item->mask;

			if (s &&
			    (!masked_equal(frame->bytes, &s->hdr.dst_addr, &m->hdr.dst_addr, 6) ||
			     !masked_equal(frame->bytes + 6, &s->hdr.src_addr, &m->hdr.src_addr,
					   6) ||
			     !masked_equal(&here, &s->hdr.ether_type, &m->hdr.ether_type, 2) ||
			     (m->has_vlan && s->has_vlan != !!frame->tags)))
				return false;
		} else if (item->type == RTE_FLOW_ITEM_TYPE_VLAN) {
			const struct rte_flow_item_vlan *s = item->spec, *m = item->mask;
			rte_be16_t tci, next;

			if (tag == frame->tags)
				return false;
			tci = htons(frame->tci[tag++]);
			next = htons(frame->type[tag]);
			if (!masked_equal(&tci, &s->hdr.vlan_tci, &m->hdr.vlan_tci, 2) ||
			    !masked_equal(&next, &s->hdr.eth_proto, &m->hdr.eth_proto, 2))
				return false;
			/* as the mlx5 driver: one tag unless told that there are more */
			if (i + 1 == pattern->items && !m->has_more_vlan && tag < frame->tags)
				return false;
			more = m->has_more_vlan;
			if (more && tag == frame->tags)
				return false;
		} else if (item->type == RTE_FLOW_ITEM_TYPE_IPV4) {
			const struct rte_flow_item_ipv4 *s = item->spec, *m = item->mask;

			is4 = true;
			if (type != 0x0800 ||
			    (s && (!masked_equal(ip + 12, &s->hdr.src_addr, &m->hdr.src_addr, 4) ||
				   !masked_equal(ip + 16, &s->hdr.dst_addr, &m->hdr.dst_addr, 4))))
				return false;
		} else if (item->type == RTE_FLOW_ITEM_TYPE_IPV6) {
			const struct rte_flow_item_ipv6 *s = item->spec, *m = item->mask;

			if (type != 0x86dd ||
			    (s && (!masked_equal(ip + 8, &s->hdr.src_addr, &m->hdr.src_addr, 16) ||
				   !masked_equal(ip + 24, &s->hdr.dst_addr, &m->hdr.dst_addr, 16))))
				return false;
		} else {
			const struct rte_flow_item_udp *s = item->spec, *m = item->mask;
			const uint8_t *udp = ip + (is4 ? 20 : 40);

			if (ip[is4 ? 9 : 6] != 17 ||
			    !masked_equal(udp, &s->hdr.src_port, &m->hdr.src_port, 2) ||
			    !masked_equal(udp + 2, &s->hdr.dst_port, &m->hdr.dst_port, 2))
				return false;
		}
	}
	return true;
}

static void rule_make(struct frame_match_rule *rule)
{
	static const char *const v4[] = { "0.0.0.0", "0.0.0.1", "0.0.0.2/31", "0.0.0.0/8" };
	static const char *const v6[] = { "::", "::1", "::2/127", "::/64" };
	static const char *const types[] = { "0x0800", "0x86dd", "0x88b5" };
	const bool six = draw(2);
	char text[256], why[128];

	do {
		text[0] = '\0';
		if (!draw(3))
			sprintf(text + strlen(text), ",src_mac=00:00:00:00:00:0%u", draw(2));
		if (!draw(3))
			sprintf(text + strlen(text), ",dst_mac=00:00:00:00:00:0%u", draw(2));
		if (!draw(3))
			sprintf(text + strlen(text), ",ethertype=%s", types[draw(3)]);
		if (!draw(2))
			sprintf(text + strlen(text), ",vlan=%u", draw(3));
		if (!draw(3))
			sprintf(text + strlen(text), ",src_ip=%s", (six ? v6 : v4)[draw(4)]);
		if (!draw(3))
			sprintf(text + strlen(text), ",dst_ip=%s", (six ? v6 : v4)[draw(4)]);
		if (!draw(3))
			sprintf(text + strlen(text), ",src_port=%u", draw(3));
		if (!draw(3))
			sprintf(text + strlen(text), ",dst_port=%u", draw(3));
	} while (!text[0] || frame_match_parse(rule, text + 1, why, sizeof(why)));
}

static void same_meaning(void **state)
{
	struct steering_pattern pattern[STEERING_PARTS_MAX];
	struct frame_match one = { .count = 1 };
	struct made_frame frame;
	unsigned int hits = 0;

	draw_state = 4;
	for (unsigned int n = 0; n < 20000; n++) {
		uint32_t count;

		rule_make(&one.rule[0]);
		count = steering_patterns(&one.rule[0], pattern);
		assert_in_range(count, 1, STEERING_PARTS_MAX);
		for (unsigned int f = 0; f < 20; f++) {
			bool steered = false;

			frame_make(&frame);
			for (uint32_t i = 0; i < count; i++)
				steered |= pattern_matches(&pattern[i], &frame);
			assert_int_equal(steered,
					 frame_matches(&one, frame.bytes, sizeof(frame.bytes)));
			hits += steered;
		}
	}
	assert_true(hits > 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(patterns, setup),
		cmocka_unit_test_setup(every_frame, setup),
		cmocka_unit_test_setup(spreading, setup),
		cmocka_unit_test_setup(own_key, setup),
		cmocka_unit_test_setup(refused_rule, setup),
		cmocka_unit_test_setup(refused_at_creation, setup),
		cmocka_unit_test_setup(less, setup),
		cmocka_unit_test_setup(hits_summed, setup),
		cmocka_unit_test_setup(isolation, setup),
		cmocka_unit_test_setup(hostile, setup),
		cmocka_unit_test_setup(same_meaning, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
