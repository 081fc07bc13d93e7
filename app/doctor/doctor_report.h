/* SPDX-License-Identifier: BSD-3-Clause */
/* What `gdrcap doctor` has to say, in two shapes: docs/doctor.md. */
#ifndef GDRCAP_APP_DOCTOR_H
#define GDRCAP_APP_DOCTOR_H

#include <stdio.h>

#include <jansson.h>

#include "doctor/examine.h"

#define DOCTOR_SCHEMA "gdrcap.doctor/1"

/* For people: worst first, then what is fine in one line a group; all: each check. */
void doctor_print_text(FILE *to, const struct gdrcap_doctor *doctor, int all, int colour);

/* NULL when memory is short. */
json_t *doctor_to_json(const struct gdrcap_doctor *doctor);
/* One line, ended by a line feed and flushed. 0 or a negative errno. */
int doctor_print_json(FILE *to, const struct gdrcap_doctor *doctor);
/* The same shape for what could not be examined: no checks, able null, and why. */
int doctor_print_json_error(FILE *to, const char *why);

#endif
