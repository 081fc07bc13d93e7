/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the plan: what concerns ConnectX (plan_cards.c). */
#ifndef GDRCAP_PLAN_INTERNAL_H
#define GDRCAP_PLAN_INTERNAL_H

#include "session/plan.h"

/* As settings_port() counts them. */
static inline struct plan_port *plan_port_at(struct plan *plan, uint32_t i)
{
	return i < GDRCAP_PORTS_MAX ? &plan->port[i] : &plan->tx_port[i - GDRCAP_PORTS_MAX];
}

/* Is there a ConnectX of port i's name? */
int plan_card(struct plan *plan, const struct settings *settings, uint32_t i,
	      struct gdrcap_error *error);
/* What only a ConnectX does, asked of another. */
int plan_card_only(const struct settings *settings, struct gdrcap_error *error);
/* What the drivers are to be told, once it is known which memory and which frames. */
int plan_devargs(struct plan *plan, const struct settings *settings, struct gdrcap_error *error);
/* What it takes of EAL's memory. */
size_t plan_cards_bytes(const struct plan *plan, const struct settings *settings);

/* Ports that are files: their arguments, and that the files can be read. file_ports.c. */
int session_file_ports_check(const struct settings *settings, struct gdrcap_error *error);

#endif
