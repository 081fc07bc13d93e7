/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_drops.c: a port's sockets are found, and nobody else's are read: the kernel's counter
 * begins again with each answer. On the loopback interface, which hears what this process sends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "port/kernel_drops.h"

#define SLOT 2048u
#define ROOM ((uint32_t)sysconf(_SC_PAGESIZE) / SLOT) /* frames in a ring of one page */

/* As the af_packet driver opens it, on interface `index`. */
static int ring_open(unsigned int index)
{
	const struct tpacket_req ring = { SLOT * ROOM, 1, SLOT, ROOM };
	const struct sockaddr_ll address = { .sll_family = AF_PACKET,
					     .sll_protocol = htons(ETH_P_ALL),
					     .sll_ifindex = (int)index };
	const int fd = socket(AF_PACKET, SOCK_RAW, 0), version = TPACKET_V2;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)), 0);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Each is heard twice on the loopback interface, as it leaves and as it comes. */
static void send_frames(int count)
{
	const struct sockaddr_ll address = { .sll_family = AF_PACKET,
					     .sll_ifindex = (int)if_nametoindex("lo") };
	const uint8_t frame[60] = { [12] = 0x88, 0xb6 };
	const int fd = socket(AF_PACKET, SOCK_RAW, 0);

	assert_true(fd >= 0);
	for (int i = 0; i < count; i++)
		assert_int_equal(sendto(fd, frame, sizeof(frame), 0,
					(const struct sockaddr *)&address, sizeof(address)),
				 sizeof(frame));
	close(fd);
}

static void until(struct kernel_drops *drops, uint64_t count)
{
	while (kernel_drops_read(drops) < count)
		sched_yield();
	assert_true(kernel_drops_read(drops) == count);
}

static void own_sockets(void **state)
{
	const unsigned int lo = if_nametoindex("lo");
	struct kernel_sockets before, after;
	const int others = ring_open(lo);
	struct kernel_drops *drops;
	struct tpacket_stats stats;
	socklen_t bytes = sizeof(stats);
	int own, replaced;

	kernel_sockets_list(&before);
	assert_true(before.known);
	assert_null(kernel_drops_open(&before, lo, 1));
	own = ring_open(lo);
	kernel_sockets_list(&after);
	assert_int_equal(after.count, before.count + 1);
	/* Not as many as there should be, of another interface, or there before. */
	assert_null(kernel_drops_open(&before, lo, 2));
	assert_null(kernel_drops_open(&before, lo + 1000, 1));
	assert_null(kernel_drops_open(&after, lo, 1));
	drops = kernel_drops_open(&before, lo, 1);
	assert_non_null(drops);

	send_frames(5 * (int)ROOM);
	until(drops, 9 * ROOM);
	send_frames((int)ROOM);
	until(drops, 11 * ROOM);
	assert_int_equal(getsockopt(others, SOL_PACKET, PACKET_STATISTICS, &stats, &bytes), 0);
	assert_int_equal(stats.tp_drops, 11 * ROOM);

	/* Its number is another's: what was counted stays. */
	close(own);
	replaced = ring_open(lo);
	assert_int_equal(replaced, own);
	send_frames(5 * (int)ROOM);
	assert_true(kernel_drops_read(drops) == 11 * ROOM);
	close(replaced);
	assert_true(kernel_drops_read(drops) == 11 * ROOM);
	kernel_drops_close(drops);
	close(others);
}

static void too_many(void **state)
{
	const unsigned int lo = if_nametoindex("lo");
	int fds[KERNEL_SOCKETS_MAX + 1];
	struct kernel_sockets before;

	for (uint32_t i = 0; i <= KERNEL_SOCKETS_MAX; i++)
		fds[i] = socket(AF_PACKET, SOCK_RAW, 0);
	kernel_sockets_list(&before);
	assert_false(before.known);
	assert_null(kernel_drops_open(&before, lo, 0));
	for (uint32_t i = 0; i <= KERNEL_SOCKETS_MAX; i++)
		close(fds[i]);
}

static int loopback_up(void **state)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	const int ret = ioctl(fd, SIOCSIFFLAGS, &request);

	close(fd);
	return ret;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_sockets),
		cmocka_unit_test(too_many),
	};

	/* Where nobody else's frames come. */
	if (unshare(CLONE_NEWNET) < 0) {
		print_message("making a network namespace needs root\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, loopback_up, NULL);
}
