/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that a session of a configuration reads and writes. */
#ifndef GDRCAP_CONFIG_FILES_H
#define GDRCAP_CONFIG_FILES_H

#include "base/input_list.h"
#include "gdrcap.h"

/* Adds what the configuration was read from, and what a session of it reads. 0 or -ENOMEM. */
int config_inputs(const struct gdrcap_config *config, struct input_list *inputs);
/* 0, or -EINVAL: an output is one of these, or of another option too. */
int config_check_outputs(const struct gdrcap_config *config, struct gdrcap_error *error);

#endif
