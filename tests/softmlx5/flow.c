/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules by mlx5dv_dr_*: domains, tables, matchers, actions. The flow engine of dv_flow_en=1. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft_devx.h"
#include "nic.h"
#include "soft_steering.h"

#define CRITERIA_OUTER 1 /* the only part of a match that the model knows */

enum action_type {
	ACTION_DROP,
	ACTION_MISS,
	ACTION_TAG,
	ACTION_COUNT,
	ACTION_HASH,
	ACTION_TABLE,
	ACTION_POP_VLAN,
};

struct mlx5dv_dr_domain {
	struct soft_device *device;
	bool receive;
};

struct mlx5dv_dr_table {
	struct soft_table *table;
	struct soft_table own; /* below the root */
};

struct mlx5dv_dr_matcher {
	struct mlx5dv_dr_table *table;
	uint32_t priority;
	uint64_t mask[FIELDS_SIZE / 8];
};

struct mlx5dv_dr_action {
	enum action_type type;
	uint32_t tag;
	struct soft_hash *hash;
	struct soft_counter *counter;
	struct soft_table *table;
};

struct mlx5dv_dr_rule {
	struct soft_rule rule;
};

struct mlx5dv_dr_domain *mlx5dv_dr_domain_create(struct ibv_context *ctx,
						 enum mlx5dv_dr_domain_type type)
{
	struct mlx5dv_dr_domain *domain;

	if (type == MLX5DV_DR_DOMAIN_TYPE_FDB) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	domain = calloc(1, sizeof(*domain));
	if (domain != NULL) {
		domain->device = soft_device(ctx);
		domain->receive = type == MLX5DV_DR_DOMAIN_TYPE_NIC_RX;
	}
	return domain;
}

int mlx5dv_dr_domain_destroy(struct mlx5dv_dr_domain *domain)
{
	free(domain);
	return 0;
}

int mlx5dv_dr_domain_sync(struct mlx5dv_dr_domain *domain, uint32_t flags)
{
	return 0;
}

void mlx5dv_dr_domain_set_reclaim_device_memory(struct mlx5dv_dr_domain *domain, bool enable)
{
}

void mlx5dv_dr_domain_allow_duplicate_rules(struct mlx5dv_dr_domain *domain, bool allow)
{
}

struct mlx5dv_dr_table *mlx5dv_dr_table_create(struct mlx5dv_dr_domain *domain, uint32_t level)
{
	struct mlx5dv_dr_table *table = calloc(1, sizeof(*table));

	if (table == NULL)
		return NULL;
	table->own = (struct soft_table){ .device = domain->device,
					  .level = level,
					  .receive = domain->receive };
	table->table = level == 0 && domain->receive ? steering_root(domain->device) : &table->own;
	return table;
}

int mlx5dv_dr_table_destroy(struct mlx5dv_dr_table *table)
{
	if (table->own.users != 0)
		return EBUSY;
	free(table);
	return 0;
}

struct mlx5dv_dr_matcher *mlx5dv_dr_matcher_create(struct mlx5dv_dr_table *table, uint16_t priority,
						   uint8_t match_criteria_enable,
						   struct mlx5dv_flow_match_parameters *mask)
{
	struct mlx5dv_dr_matcher *matcher;

	/* A mask of other headers would be a rule that the model cannot keep. */
	if (match_criteria_enable & ~CRITERIA_OUTER) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if ((table->table->level == 0 && priority >= PRIORITIES) ||
	    (match_criteria_enable && mask->match_sz < FIELDS_SIZE)) {
		errno = EINVAL;
		return NULL;
	}
	matcher = calloc(1, sizeof(*matcher));
	if (matcher == NULL)
		return NULL;
	matcher->table = table;
	matcher->priority = priority;
	if (match_criteria_enable)
		memcpy(matcher->mask, mask->match_buf, FIELDS_SIZE);
	return matcher;
}

int mlx5dv_dr_matcher_destroy(struct mlx5dv_dr_matcher *matcher)
{
	free(matcher);
	return 0;
}

static struct mlx5dv_dr_action *action_create(enum action_type type)
{
	struct mlx5dv_dr_action *action = calloc(1, sizeof(*action));

	if (action != NULL)
		action->type = type;
	return action;
}

struct mlx5dv_dr_action *mlx5dv_dr_action_create_drop(void)
{
	return action_create(ACTION_DROP);
}

struct mlx5dv_dr_action *mlx5dv_dr_action_create_default_miss(void)
{
	return action_create(ACTION_MISS);
}

struct mlx5dv_dr_action *mlx5dv_dr_action_create_pop_vlan(void)
{
	return action_create(ACTION_POP_VLAN);
}

struct mlx5dv_dr_action *mlx5dv_dr_action_create_tag(uint32_t tag)
{
	struct mlx5dv_dr_action *action = action_create(ACTION_TAG);

	if (action != NULL)
		action->tag = tag;
	return action;
}

struct mlx5dv_dr_action *mlx5dv_dr_action_create_dest_table(struct mlx5dv_dr_table *table)
{
	struct mlx5dv_dr_action *action = action_create(ACTION_TABLE);

	if (action != NULL)
		action->table = table->table;
	return action;
}

struct mlx5dv_dr_action *mlx5dv_dr_action_create_dest_ibv_qp(struct ibv_qp *ibqp)
{
	struct soft_sq *sq = container(ibqp, struct soft_sq, ibv);
	struct mlx5dv_dr_action *action;

	if (sq->hash == NULL) {
		errno = EINVAL;
		return NULL;
	}
	action = action_create(ACTION_HASH);
	if (action != NULL)
		action->hash = sq->hash;
	return action;
}

struct mlx5dv_dr_action *mlx5dv_dr_action_create_dest_devx_tir(struct mlx5dv_devx_obj *obj)
{
	struct soft_hash *hash = devx_hash(obj);
	struct mlx5dv_dr_action *action;

	if (hash == NULL) {
		errno = EINVAL;
		return NULL;
	}
	action = action_create(ACTION_HASH);
	if (action != NULL)
		action->hash = hash;
	return action;
}

struct mlx5dv_dr_action *mlx5dv_dr_action_create_flow_counter(struct mlx5dv_devx_obj *devx_obj,
							      uint32_t offset)
{
	struct soft_counter *counter = devx_counter(devx_obj);
	struct mlx5dv_dr_action *action;

	if (counter == NULL || offset != 0) {
		errno = EINVAL;
		return NULL;
	}
	action = action_create(ACTION_COUNT);
	if (action != NULL)
		action->counter = counter;
	return action;
}

int mlx5dv_dr_action_destroy(struct mlx5dv_dr_action *action)
{
	free(action);
	return 0;
}

static int add_action(struct soft_rule *rule, const struct mlx5dv_dr_action *action)
{
	switch (action->type) {
	case ACTION_DROP:
		rule->drop = true;
		return 0;
	case ACTION_MISS:
		rule->miss = true;
		return 0;
	case ACTION_TAG:
		rule->tagged = true;
		rule->tag = action->tag;
		return 0;
	case ACTION_COUNT:
		if (rule->counter_count == RULE_COUNTERS_MAX)
			return EINVAL;
		rule->counters[rule->counter_count++] = action->counter;
		return 0;
	case ACTION_HASH:
		rule->hash = action->hash;
		return 0;
	case ACTION_TABLE:
		rule->jump = action->table;
		return 0;
	case ACTION_POP_VLAN:
		rule->pop_vlan = true;
		return 0;
	}
	return EOPNOTSUPP;
}

struct mlx5dv_dr_rule *mlx5dv_dr_rule_create(struct mlx5dv_dr_matcher *matcher,
					     struct mlx5dv_flow_match_parameters *value,
					     size_t num_actions, struct mlx5dv_dr_action *actions[])
{
	struct mlx5dv_dr_rule *rule = calloc(1, sizeof(*rule));
	int error = 0;

	if (rule == NULL)
		return NULL;
	for (size_t i = 0; error == 0 && i < num_actions; i++)
		error = add_action(&rule->rule, actions[i]);
	if (error == 0 && rule->rule.hash != NULL &&
	    soft_fault(&matcher->table->table->device->faults.refuse_rule))
		error = ENOSPC;
	if (error != 0) {
		free(rule);
		errno = error;
		return NULL;
	}
	rule->rule.priority = matcher->priority;
	if (value->match_sz >= FIELDS_SIZE) {
		memcpy(rule->rule.mask, matcher->mask, FIELDS_SIZE);
		memcpy(rule->rule.value, value->match_buf, FIELDS_SIZE);
	}
	nic_lock();
	steering_insert(matcher->table->table, &rule->rule);
	nic_unlock();
	return rule;
}

int mlx5dv_dr_rule_destroy(struct mlx5dv_dr_rule *rule)
{
	nic_lock();
	steering_remove(&rule->rule);
	nic_unlock();
	free(rule);
	return 0;
}
