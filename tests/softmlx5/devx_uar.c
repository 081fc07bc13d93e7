/* SPDX-License-Identifier: BSD-3-Clause */
/* DevX: doorbell pages, and commands' completions, which the driver opens and the model never sends. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "nic.h"
#include "queues.h"

struct mlx5dv_devx_uar *mlx5dv_devx_alloc_uar(struct ibv_context *context, uint32_t flags)
{
	struct soft_uar *uar;

	nic_lock();
	uar = uar_create(soft_device(context));
	nic_unlock();
	return uar != NULL ? &uar->dv : NULL;
}

void mlx5dv_devx_free_uar(struct mlx5dv_devx_uar *devx_uar)
{
	nic_lock();
	uar_destroy(container(devx_uar, struct soft_uar, dv));
	nic_unlock();
}

int mlx5dv_devx_query_eqn(struct ibv_context *context, uint32_t vector, uint32_t *eqn)
{
	*eqn = 1;
	return 0;
}

struct mlx5dv_devx_cmd_comp *mlx5dv_devx_create_cmd_comp(struct ibv_context *context)
{
	struct mlx5dv_devx_cmd_comp *comp = calloc(1, sizeof(*comp));

	if (comp == NULL)
		return NULL;
	comp->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (comp->fd < 0) {
		free(comp);
		return NULL;
	}
	return comp;
}

void mlx5dv_devx_destroy_cmd_comp(struct mlx5dv_devx_cmd_comp *cmd_comp)
{
	close(cmd_comp->fd);
	free(cmd_comp);
}

int mlx5dv_devx_get_async_cmd_comp(struct mlx5dv_devx_cmd_comp *cmd_comp,
				   struct mlx5dv_devx_async_cmd_hdr *cmd_resp, size_t cmd_resp_len)
{
	return EAGAIN;
}
