/* SPDX-License-Identifier: BSD-3-Clause */
/* The cards and how the system shows them. */
#ifndef SOFT_DEVICE_H
#define SOFT_DEVICE_H

#include "soft.h"

/* device.c: makes the cards, once, as soon as the process has verbs; until then nothing is done or said, and the
 * environment stays as it is for the program that this one starts. */
void devices_wake(void);

/* sysfs.c: the folders below SYSFS_PCI_DEVICES that DPDK reads. 0 or negative errno. */
int sysfs_create(void);
void sysfs_remove(void);
/* Of the tree, as /sys is. */
const char *sysfs_root(void);
/* Brings the card's register of time, which the driver maps, up to date. */
void device_clock(struct soft_device *device);
/* Brings the files with counters up to date. */
void device_report(struct soft_device *device);

/* netdev.c: the card whose network interface that is, or NULL. */
struct soft_device *netdev_by_name(const char *name);

#define NETDEV_STATS_MAX 64

/* netdev_stats.c */
unsigned int netdev_stats_count(void);
const char *netdev_stats_name(unsigned int i);
uint64_t netdev_stats_value(const struct soft_device *device, unsigned int i);

/* devx_caps.c: answers QUERY_HCA_CAP. 0 or a positive errno. */
int devx_query_caps(struct soft_device *device, const void *in, void *out, size_t out_length);

/* The operations of struct verbs_context; verbs.c and verbs_flow.c. */
void verbs_fill(struct verbs_context *verbs);
void verbs_flow_fill(struct verbs_context *verbs);

/* soft_steering.c: the receive side's tables of a card. */
struct soft_steering *soft_steering_create(void);
void soft_steering_destroy(struct soft_steering *steering);

#endif
