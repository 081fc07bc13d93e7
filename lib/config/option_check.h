/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of the option table's texts. Each returns NULL, or what is wrong: "is not ...". */
#ifndef GDRCAP_OPTION_CHECK_H
#define GDRCAP_OPTION_CHECK_H

const char *option_check_port(const char *text);
const char *option_check_gpu(const char *text);
const char *option_check_frame_size(const char *text);
const char *option_check_src_mac(const char *text);
const char *option_check_dst_mac(const char *text);
const char *option_check_src_ip(const char *text);
const char *option_check_dst_ip(const char *text);
const char *option_check_pattern(const char *text);
const char *option_check_cores(const char *text);
const char *option_check_match(const char *text);
const char *option_check_loops(const char *text);
const char *option_check_rate(const char *text);
const char *option_check_speed(const char *text);

/* Do both texts name one device, whatever their arguments? */
int port_is_same(const char *a, const char *b);

#endif
