/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's interfaces by DPDK's af_packet driver: what its ring is to be told, so that it holds
 * the frames that are asked for, and how one is known that it did not hold. Control code.
 *
 * The kernel writes each frame into a slot of the ring (devarg framesz), and of a longer one only
 * the beginning; the driver passes that on as if it were all. So a slot always has room for more
 * than the longest frame: what fills it was cut.
 */
#ifndef GDRCAP_AF_PACKET_H
#define GDRCAP_AF_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gdrcap.h"

bool port_name_is_af_packet(const char *name);

/*
 * From "net_af_packet0,iface=eth0,..." as the user gave it to what the driver is to get for frames
 * of up to `frame_bytes_max` (with FCS): framesz and blocksz are added where they are missing.
 * -EINVAL, -EMSGSIZE: what the user gave cannot work, and why.
 */
int af_packet_devargs(const char *port, uint16_t frame_bytes_max, char *out, size_t bytes,
		      struct gdrcap_error *error);

/* Of a port's devargs, "iface=eth0,framesz=..." or the same after its name. */
struct af_packet_ring {
	uint32_t slot_bytes; /* framesz, the kernel's header included */
	uint32_t frames;     /* framecnt */
	uint32_t queues;     /* qpairs */
};
void af_packet_ring(struct af_packet_ring *ring, const char *args);
/* Bytes that the driver insists on in an mbuf, after the headroom. */
uint32_t af_packet_room(const struct af_packet_ring *ring);
/*
 * Has the kernel send what the driver has put into a socket's ring. 0: nothing is left there. The
 * driver asks once for each burst and takes no for yes: what the kernel then had no room for, or dropped,
 * stays in the ring until the next burst, and behind the last one for ever. *moved: set where some left.
 */
int af_packet_flush(int socket, bool *moved);
/* A received frame of so many bytes in memory, or more, may have been longer. */
uint32_t af_packet_cut(const struct af_packet_ring *ring);

#endif
