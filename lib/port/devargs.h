/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments in a port's name, as DPDK's drivers read them: "net_pcap0,rx_pcap=a,rx_pcap=b". */
#ifndef GDRCAP_DEVARGS_H
#define GDRCAP_DEVARGS_H

#include <stddef.h>

/* What stands after the device's name; "" where nothing does. */
const char *devargs_of(const char *port);

/* The `n`-th value, from 0, that `args` give `key`: returns its letters, of which as many as fit are
 * copied as a string; -1: there is none, or no driver could read these arguments. */
int devargs_value(const char *args, const char *key, unsigned int n, char *value, size_t bytes);

#endif
