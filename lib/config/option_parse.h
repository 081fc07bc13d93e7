/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers of the option table's texts. Each puts the text's meaning where `to` points, in the type
 * that struct settings has there, and returns NULL; or says what is wrong ("is not ...") and leaves
 * *to as it was. */
#ifndef GDRCAP_OPTION_PARSE_H
#define GDRCAP_OPTION_PARSE_H

#include <stdbool.h>

const char *option_parse_port(const char *text, void *to);
const char *option_parse_gpu(const char *text, void *to);
const char *option_parse_sizes(const char *text, void *to);
const char *option_parse_src_mac(const char *text, void *to);
const char *option_parse_dst_mac(const char *text, void *to);
const char *option_parse_src_ip(const char *text, void *to);
const char *option_parse_dst_ip(const char *text, void *to);
const char *option_parse_cores(const char *text, void *to);
const char *option_parse_match(const char *text, void *to);
const char *option_parse_path(const char *text, void *to);
const char *option_parse_loops(const char *text, void *to);
const char *option_parse_rate(const char *text, void *to);
const char *option_parse_start(const char *text, void *to);
const char *option_parse_idle_sleep(const char *text, void *to);
const char *option_parse_speed(const char *text, void *to);

#endif
