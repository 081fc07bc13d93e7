/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which sockets share an interface's frames (PACKET_FANOUT), where DPDK's af_packet driver decides
 * otherwise than a capture needs it.
 *
 * The driver puts each socket into a group whose number is made from the process's id and the
 * interface's, and has the kernel put together the fragments of IPv4 datagrams for it. So two ports
 * on one interface, of one process or of two that have the same id in their containers, would share
 * its frames, each without a word about the other's; and fragments would never arrive as sent. Here
 * each port's sockets are in a group that the kernel makes for them alone, without defragmentation.
 *
 * The driver's call of setsockopt() is led through here, as lib/memory/dmabuf.h says of
 * ibv_reg_mr_iova2(); all other calls in what is linked so come by too, and are passed on as they
 * are. Read in DPDK 22.11 and Linux 6.1.
 */
#ifndef GDRCAP_FANOUT_H
#define GDRCAP_FANOUT_H

/* Around the opening of a port on this thread. */
void fanout_begin(void);
void fanout_end(void);

#endif
