/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration as the library's other parts take it. */
#ifndef GDRCAP_CONFIG_H
#define GDRCAP_CONFIG_H

#include <stdbool.h>

#include "gdrcap.h"
#include "pattern/frame.h"

/* Bytes of a slot before the frame: RTE_PKTMBUF_HEADROOM. */
#define CONFIG_HEADROOM 128u

/*
 * What gdrcap_create() works with: copies the caller's struct, whose size may be another version's
 * (a missing tail is zero), puts the defaults where zero stands for them, and checks everything.
 * 0 or -EINVAL.
 */
int config_complete(struct gdrcap_config *to, const struct gdrcap_config *from,
		    struct gdrcap_error *error);

/* Of a completed configuration; fields left out are zero, which lib/pattern/frame.c fills. */
void config_frame(const struct gdrcap_config *config, struct frame_config *frame);
/* The frames received: own or foreign, with the match rules. 0 or -EINVAL. */
int config_layout(const struct gdrcap_config *config, struct frame_layout *layout);
/* What depends on several options of foreign frames; of files, rates and rules. */
int config_check_foreign(const struct gdrcap_config *config, struct gdrcap_error *error);
int config_check_files(const struct gdrcap_config *config, struct gdrcap_error *error);
/* True when somebody asks for arrival times: files, or batches. */
static inline bool config_wants_times(const struct gdrcap_config *config)
{
	return config->save[0] || config->save_damaged[0] || config->batch_times;
}

/* How often the file is played; UINT64_MAX: for ever. */
uint64_t config_loops(const struct gdrcap_config *config);
struct pacing_config;
void config_pacing(const struct gdrcap_config *config, struct pacing_config *pacing);
/* Largest frame with FCS, and the slot that holds it (slot_bytes, or the least that does). */
uint32_t config_largest_frame(const struct gdrcap_config *config);
uint32_t config_slot_bytes(const struct gdrcap_config *config);
/* Ports before the first empty entry. */
unsigned int config_port_count(const char ports[GDRCAP_PORTS_MAX][256]);

/* For config_yaml.c: the same copy without defaults and checks, and the way back, which writes no
 * more than the caller's size. */
int config_import(struct gdrcap_config *to, const struct gdrcap_config *from,
		  struct gdrcap_error *error);
void config_export(struct gdrcap_config *to, const struct gdrcap_config *from);

#endif
