/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults of ports and wires. */
#ifndef GDRCAP_TEST_WIRE_FAULTS_H
#define GDRCAP_TEST_WIRE_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Puts itself between a port that has started and its users. */
void wire_faults_install(uint16_t port);

/* The port was found silent. What it returns is true once a poll has found nothing after that. */
const _Atomic bool *wire_faults_silent(void);

/* What the card admits, over what it really counted. */
void wire_faults_stats(uint16_t port, uint64_t *missed, uint64_t *errors);

#endif
