/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of a card (rte_flow): isolation, created, counted, destroyed. */
#include "port/steering.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#include "base/eal.h"
#include "base/log.h"
#include "port/steering_pattern.h"

#define ACTIONS_MAX 4u /* mark, count, queue or rss, end */
#define WHY_BYTES 320

/* What a rule's frames go through, with all that it points to: not to be copied. */
struct actions {
	struct rte_flow_action action[ACTIONS_MAX];
	uint32_t count;
	struct rte_flow_action_mark mark;
	struct rte_flow_action_count counter;
	struct rte_flow_action_queue queue;
	struct rte_flow_action_rss rss;
	uint16_t queues[GDRCAP_QUEUES_MAX];
};

/* A rule on its way to the card. */
struct work {
	const struct steering_config *config;
	uint32_t rule;
	uint64_t hash_fields; /* of IP and UDP that the card hashes */
	struct steering_pattern pattern[STEERING_PARTS_MAX];
	uint32_t patterns;
	struct actions actions;
};

static const struct rte_flow_attr ingress = { .ingress = 1 };

/* ---- the card's own words ---- */

static const char *item_name(enum rte_flow_item_type type)
{
	switch (type) {
	case RTE_FLOW_ITEM_TYPE_ETH:
		return "Ethernet header";
	case RTE_FLOW_ITEM_TYPE_VLAN:
		return "VLAN tag";
	case RTE_FLOW_ITEM_TYPE_IPV4:
		return "IPv4 header";
	case RTE_FLOW_ITEM_TYPE_IPV6:
		return "IPv6 header";
	case RTE_FLOW_ITEM_TYPE_UDP:
		return "UDP header";
	default:
		return "end of the pattern";
	}
}

static const char *action_name(enum rte_flow_action_type type)
{
	switch (type) {
	case RTE_FLOW_ACTION_TYPE_MARK:
		return "mark";
	case RTE_FLOW_ACTION_TYPE_COUNT:
		return "count";
	case RTE_FLOW_ACTION_TYPE_QUEUE:
		return "queue";
	case RTE_FLOW_ACTION_TYPE_RSS:
		return "spread over queues";
	default:
		return "end of the actions";
	}
}

/* Where in the rule the card's complaint points, if it points into it. */
static void where_tell(const struct steering_pattern *pattern, const struct actions *actions,
		       const void *cause, char *where, size_t bytes)
{
	where[0] = '\0';
	for (uint32_t i = 0; cause && i <= pattern->items; i++) {
		const struct rte_flow_item *item = &pattern->item[i];

		if (cause == item || cause == item->spec || cause == item->mask)
			snprintf(where, bytes, " at its %s", item_name(item->type));
	}
	for (uint32_t i = 0; cause && i <= actions->count; i++) {
		const struct rte_flow_action *action = &actions->action[i];

		if (cause == action || cause == action->conf)
			snprintf(where, bytes, " at its action \"%s\"", action_name(action->type));
	}
}

/* "MESSAGE at its VLAN tag (Operation not supported)" */
static void words(const struct steering_pattern *pattern, const struct actions *actions,
		  const struct rte_flow_error *told, int code, char *why)
{
	char where[64];

	where_tell(pattern, actions, told->cause, where, sizeof(where));
	snprintf(why, WHY_BYTES, "%s%s (%s)", told->message ? told->message : "no reason given",
		 where, rte_strerror(-code));
}

static const char *rule_text(const struct work *work)
{
	const struct steering_config *config = work->config;

	if (config->text && config->text[work->rule])
		return config->text[work->rule];
	return config->match->count ? "" : "every frame";
}

static int refused(const struct work *work, int code, const char *why, struct gdrcap_error *error)
{
	if (code == -ENOMEM)
		return error_set(error, code,
				 "port %s: no memory for rule %u, \"%s\": %s; " EAL_MEMORY_REMEDY,
				 work->config->name, work->rule + 1, rule_text(work), why);
	return error_set(error, code,
			 "port %s: the card refuses rule %u, \"%s\": %s; change or remove the "
			 "rule, or see what this card and its firmware can match",
			 work->config->name, work->rule + 1, rule_text(work), why);
}

/* ---- a rule's actions ---- */

static void action_add(struct actions *actions, enum rte_flow_action_type type, const void *conf)
{
	actions->action[actions->count].type = type;
	actions->action[actions->count].conf = conf;
	actions->count++;
}

static void actions_make(struct work *work, const struct steering_rule *rule)
{
	const struct steering_config *config = work->config;
	struct actions *actions = &work->actions;

	memset(actions, 0, sizeof(*actions));
	if (rule->marked) {
		actions->mark.id = STEERING_MARK(work->rule);
		action_add(actions, RTE_FLOW_ACTION_TYPE_MARK, &actions->mark);
	}
	if (rule->counted)
		action_add(actions, RTE_FLOW_ACTION_TYPE_COUNT, &actions->counter);
	if (rule->spread) {
		for (uint16_t q = 0; q < config->queues; q++)
			actions->queues[q] = (uint16_t)(config->first_queue + q);
		actions->rss = (struct rte_flow_action_rss){
			.func = RTE_ETH_HASH_FUNCTION_DEFAULT,
			.types = work->hash_fields,
			.key = config->rss_key,
			.key_len = config->rss_key ? config->rss_key_bytes : 0,
			.queue = actions->queues,
			.queue_num = config->queues,
		};
		action_add(actions, RTE_FLOW_ACTION_TYPE_RSS, &actions->rss);
	} else {
		actions->queue.index =
			(uint16_t)(config->first_queue + work->rule % config->queues);
		action_add(actions, RTE_FLOW_ACTION_TYPE_QUEUE, &actions->queue);
	}
	actions->action[actions->count].type = RTE_FLOW_ACTION_TYPE_END;
}

/* ---- asking and making ---- */

static int part_validate(const struct work *work, uint32_t part, char *why)
{
	const struct steering_pattern *pattern = &work->pattern[part];
	struct rte_flow_error told = { 0 };
	int ret = rte_flow_validate(work->config->port, &ingress, pattern->item,
				    work->actions.action, &told);

	if (ret == 0)
		return 0;
	ret = ret < 0 && ret != -1 ? ret : -EIO;
	words(pattern, &work->actions, &told, ret, why);
	return ret;
}

/* Validates the parts that the rule means nothing without. */
static int needed_validate(const struct work *work, char *why)
{
	int ret = 0;

	for (uint32_t i = 0; i < work->patterns && ret == 0; i++)
		if (work->pattern[i].needed)
			ret = part_validate(work, i, why);
	return ret;
}

static int work_begin(struct work *work, const struct steering_config *config, uint32_t rule,
		      uint64_t hash_fields, struct gdrcap_error *error)
{
	static const struct frame_match_rule every = { 0 };

	memset(work, 0, sizeof(*work));
	work->config = config;
	work->rule = rule;
	work->hash_fields = hash_fields;
	work->patterns = steering_patterns(
		config->match->count ? &config->match->rule[rule] : &every, work->pattern);
	if (work->patterns == 0)
		return error_of_config(
			error,
			error_set(error, -EINVAL,
				  "rule %u, \"%s\", is of no frame: its EtherType, addresses and "
				  "ports contradict each other",
				  rule + 1, rule_text(work)));
	return 0;
}

/* Decides what the rule's frames go through: marks and counters are of use, but not needed. */
static int rule_validate(struct work *work, struct steering_rule *rule, struct gdrcap_error *error)
{
	const struct steering_config *config = work->config;
	char why[WHY_BYTES] = "", first[WHY_BYTES] = "";
	int ret = -EINVAL;

	rule->spread =
		config->queues > 1 && work->hash_fields &&
		(!config->match->count || steering_may_be_ip(&config->match->rule[work->rule]));
	for (uint32_t less = 0; less < 4 && ret != 0; less++) {
		rule->marked = !(less & 2);
		rule->counted = !(less & 1);
		actions_make(work, rule);
		ret = needed_validate(work, why);
		if (less == 0)
			memcpy(first, why, sizeof(first));
	}
	if (ret < 0)
		return refused(work, ret, why, error);
	if (!rule->marked || !rule->counted)
		log_info("port %s, rule %u: the card does not %s its frames: %s", config->name,
			 work->rule + 1,
			 rule->marked	 ? "count"
			 : rule->counted ? "mark"
					 : "mark or count",
			 first);
	return 0;
}

static int part_create(const struct work *work, uint32_t part, struct steering_rule *rule,
		       char *why)
{
	const struct steering_pattern *pattern = &work->pattern[part];
	struct rte_flow_error told = { 0 };
	int ret;

	rte_errno = 0;
	rule->flow[rule->parts] = rte_flow_create(work->config->port, &ingress, pattern->item,
						  work->actions.action, &told);
	if (rule->flow[rule->parts]) {
		rule->parts++;
		rule->tags_most = pattern->tags > rule->tags_most ? pattern->tags : rule->tags_most;
		return 0;
	}
	ret = rte_errno ? -rte_errno : -EIO;
	words(pattern, &work->actions, &told, ret, why);
	return ret;
}

static int rule_create(struct work *work, struct steering_rule *rule, struct gdrcap_error *error)
{
	char why[WHY_BYTES] = "";

	actions_make(work, rule);
	for (uint32_t i = 0; i < work->patterns; i++) {
		int ret = work->pattern[i].needed ? 0 : part_validate(work, i, why);

		if (ret == 0)
			ret = part_create(work, i, rule, why);
		if (ret == 0)
			continue;
		if (work->pattern[i].needed)
			return refused(work, ret, why, error);
		/* Harmless where the driver's untagged pattern takes tagged frames as well, as with
		 * dv_flow_en=0, and where nobody sends such frames. */
		log_info(
			"port %s, rule %u: no pattern of its own for frames with %u VLAN tag%s: %s",
			work->config->name, work->rule + 1, work->pattern[i].tags,
			work->pattern[i].tags == 1 ? "" : "s", why);
	}
	return 0;
}

static int config_check(const struct steering_config *config, uint64_t *hash_fields,
			struct gdrcap_error *error)
{
	struct rte_eth_dev_info info;
	int ret;

	if (config->queues == 0 || config->queues > GDRCAP_QUEUES_MAX ||
	    config->match->count > STEERING_RULES_MAX)
		return error_set(error, -EINVAL, "port %s: 1 to %u queues and up to %u rules",
				 config->name, GDRCAP_QUEUES_MAX, STEERING_RULES_MAX);
	ret = rte_eth_dev_info_get(config->port, &info);
	if (ret < 0)
		return error_set(error, ret, "port %s does not tell what it hashes: %s",
				 config->name, rte_strerror(-ret));
	*hash_fields = info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
	return 0;
}

/*
 * mlx5's driver keeps what rules share in a list for each lcore, and loses an entry that another
 * lcore's thread lets go (DPDK 22.11: __list_cache_clean() frees it only when the first one makes
 * another; closing the port does not). A port's rules come and go on the caller's thread and on the
 * session's control thread, so both do it as a thread that is no lcore: one list for all of them.
 * The driver locks that one. Broken: test_connectx_faults.py, test_revoked_key, with LeakSanitizer.
 */
static unsigned int lcore_leave(void)
{
	const unsigned int lcore = rte_lcore_id();

	RTE_PER_LCORE(_lcore_id) = LCORE_ID_ANY;
	return lcore;
}

static void lcore_return(unsigned int lcore)
{
	RTE_PER_LCORE(_lcore_id) = lcore;
}

int steering_create(struct steering *steering, const struct steering_config *config,
		    struct gdrcap_error *error)
{
	const uint32_t rules = config->match->count ? config->match->count : 1;
	const unsigned int lcore = lcore_leave();
	struct work work;
	uint64_t hash_fields = 0;
	int ret;

	memset(steering, 0, sizeof(*steering));
	steering->port = config->port;
	ret = config_check(config, &hash_fields, error);
	for (uint32_t r = 0; r < rules && ret == 0; r++) {
		ret = work_begin(&work, config, r, hash_fields, error);
		if (ret == 0)
			ret = rule_validate(&work, &steering->rule[r], error);
	}
	for (uint32_t r = 0; r < rules && ret == 0; r++) {
		ret = work_begin(&work, config, r, hash_fields, error);
		steering->rules = r + 1;
		if (ret == 0)
			ret = rule_create(&work, &steering->rule[r], error);
	}
	lcore_return(lcore);
	if (ret < 0)
		steering_destroy(steering);
	return ret;
}

void steering_query(const struct steering *steering, struct steering_hits hits[STEERING_RULES_MAX])
{
	const struct rte_flow_action count[] = {
		{ .type = RTE_FLOW_ACTION_TYPE_COUNT },
		{ .type = RTE_FLOW_ACTION_TYPE_END },
	};

	memset(hits, 0, STEERING_RULES_MAX * sizeof(*hits));
	for (uint32_t r = 0; r < steering->rules; r++) {
		const struct steering_rule *rule = &steering->rule[r];

		hits[r].known = rule->counted && rule->parts;
		for (uint32_t i = 0; i < rule->parts && hits[r].known; i++) {
			struct rte_flow_query_count counter = { 0 };
			struct rte_flow_error told;

			hits[r].known = rte_flow_query(steering->port, rule->flow[i], count,
						       &counter, &told) == 0 &&
					counter.hits_set;
			hits[r].frames += counter.hits;
			hits[r].bytes += counter.bytes_set ? counter.bytes : 0;
		}
		/* Half of a rule's frames is not their number. */
		if (!hits[r].known)
			memset(&hits[r], 0, sizeof(hits[r]));
	}
}

void steering_destroy(struct steering *steering)
{
	const unsigned int lcore = lcore_leave();

	for (uint32_t r = steering->rules; r-- > 0;) {
		struct steering_rule *rule = &steering->rule[r];

		while (rule->parts > 0) {
			struct rte_flow_error told = { 0 };

			rule->parts--;
			if (rte_flow_destroy(steering->port, rule->flow[rule->parts], &told) < 0)
				log_warning("a rule of port %u stays in the card: %s",
					    steering->port,
					    told.message ? told.message : rte_strerror(rte_errno));
		}
	}
	lcore_return(lcore);
	memset(steering, 0, sizeof(*steering));
}

int steering_isolate(uint16_t port, const char *name, struct gdrcap_error *error)
{
	struct rte_flow_error told = { 0 };
	const int ret = rte_flow_isolate(port, 1, &told);

	if (ret == 0)
		return 1;
	if (ret == -ENOSYS || ret == -ENOTSUP)
		return 0;
	return error_set(error, ret,
			 "port %s does not let its rules alone decide what it receives: %s (%s); "
			 "is it started already?",
			 name, told.message ? told.message : "no reason given", rte_strerror(-ret));
}

void steering_release(uint16_t port)
{
	struct rte_flow_error told = { 0 };
	const int ret = rte_flow_isolate(port, 0, &told);

	if (ret < 0)
		log_warning("port %u goes on to receive what rules say, and nothing else: %s (%s)",
			    port, told.message ? told.message : "no reason given",
			    rte_strerror(-ret));
}
