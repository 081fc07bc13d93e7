/* SPDX-License-Identifier: BSD-3-Clause */
/* What other files need of the DevX objects. */
#ifndef SOFT_DEVX_H
#define SOFT_DEVX_H

#include "soft.h"
#include "soft_steering.h"

/* The object's content if it is of that kind, or NULL. */
struct soft_hash *devx_hash(struct mlx5dv_devx_obj *object);
struct soft_counter *devx_counter(struct mlx5dv_devx_obj *object);

#endif
