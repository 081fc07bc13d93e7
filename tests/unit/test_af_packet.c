/* SPDX-License-Identifier: BSD-3-Clause */
/* af_packet.c: what the driver is told, and that no frame asked for can be cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "port/af_packet.h"

#define OPENED_BYTES 512u

/* From TPACKET_V2: of a slot, the part before a received frame, in <linux/if_packet.h> and
 * tpacket_rcv(): the header and an address of 20 bytes, room for 16 of a link's header, aligned to
 * 16; the frame begins 14 before that. */
#define KERNEL_AT (80u - 14u)

static uint32_t number_in(const char *opened, const char *key)
{
	const char *at = strstr(opened, key);
	unsigned int number = 0;

	assert_non_null(at);
	assert_int_equal(sscanf(at + strlen(key), "%u", &number), 1);
	return number;
}

/* Every frame size: the longest frame comes whole, is known to, and the kernel and the driver take
 * the ring. */
static void every_frame_size(void **state)
{
	const uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	char opened[OPENED_BYTES];

	for (uint32_t size = 64; size <= 16000; size++) {
		struct af_packet_ring ring;
		uint32_t slot, block;

		assert_int_equal(af_packet_devargs("net_af_packet0,iface=eth0", (uint16_t)size,
						   opened, sizeof(opened), NULL),
				 0);
		assert_int_equal(strncmp(opened, "net_af_packet0,iface=eth0,", 26), 0);
		slot = number_in(opened, ",framesz=");
		block = number_in(opened, ",blocksz=");
		af_packet_ring(&ring, opened);
		assert_int_equal(ring.slot_bytes, slot);
		assert_true(size - 4 < slot - KERNEL_AT);
		assert_true(size - 4 < af_packet_cut(&ring));
		assert_true(af_packet_cut(&ring) <= slot - KERNEL_AT);
		assert_true(af_packet_room(&ring) >= slot - KERNEL_AT);
		assert_int_equal(slot % 16, 0);
		assert_int_equal(block % page, 0);
		assert_int_equal(block % slot, 0);
		/* framecnt, which is 512 */
		assert_int_equal(512 / (block / slot) * (block / slot), 512);
	}
}

static void says(const char *port, uint16_t size, int code, const char *first, const char *second)
{
	struct gdrcap_error error = { .text = "" };
	char opened[OPENED_BYTES];

	assert_int_equal(af_packet_devargs(port, size, opened, sizeof(opened), &error), code);
	if (!strstr(error.text, first) || !strstr(error.text, second))
		print_error("%s: %s\n", port, error.text);
	assert_non_null(strstr(error.text, first));
	assert_non_null(strstr(error.text, second));
}

/* What the user gave stays; what cannot work is refused with numbers and a remedy. */
static void as_the_user_says(void **state)
{
	char opened[OPENED_BYTES];

	assert_int_equal(af_packet_devargs("net_af_packet0,iface=a,framesz=4096,blocksz=8192", 1518,
					   opened, sizeof(opened), NULL),
			 0);
	assert_string_equal(opened, "net_af_packet0,iface=a,framesz=4096,blocksz=8192");
	/* A block follows the slots. */
	assert_int_equal(af_packet_devargs("net_af_packet0,framesz=16384,iface=a", 9018, opened,
					   sizeof(opened), NULL),
			 0);
	assert_string_equal(opened, "net_af_packet0,framesz=16384,iface=a,blocksz=16384");
	/* The last one counts, as the driver has it. */
	says("net_af_packet0,iface=a,framesz=16384,framesz=2048", 9018, -EMSGSIZE, "framesz=2048",
	     "9018");
	says("net_af_packet0,iface=a,framesz=2048", 1972, -EMSGSIZE, "up to 1971 bytes",
	     "give 2560");
	says("net_af_packet0,iface=a,framesz=64", 64, -EMSGSIZE, "up to 0 bytes", "give 2048");
	says("net_af_packet0,iface=a,framesz=2050", 64, -EINVAL, "framesz=2050", "16");
	says("net_af_packet0,iface=a,framesz=2000000000", 64, -EINVAL, "framesz=2000000000",
	     "65536");
	says("net_af_packet0,iface=a,blocksz=5000", 64, -EINVAL, "blocksz=5000",
	     "leave blocksz out");
	says("net_af_packet0,iface=a,blocksz=1024", 64, -EINVAL, "blocksz=1024", "framesz=2048");
	says("net_af_packet0,iface=a,framecnt=511", 64, -EINVAL, "framecnt=511", "give 512");
	says("net_af_packet0,iface=a,framecnt=2000000", 1518, -EINVAL, "framecnt=2000000", "2 GiB");
	says("net_af_packet0,iface=a,framesz=x", 64, -EINVAL, "framesz=", "number");
	says("net_af_packet0,iface=a,framesz", 64, -EINVAL, "framesz=", "number");
	says("net_af_packet0,iface=a,frmesz=2048", 64, -EINVAL, "\"frmesz\"", "framesz");
	says("net_af_packet0,iface=a,", 64, -EINVAL, "\"\"", "framesz");
}

static void too_long(void **state)
{
	char opened[40];

	says("net_af_packet0,iface=a", 1518, 0, "", "");
	for (size_t bytes = 1; bytes < sizeof(opened); bytes++)
		assert_int_equal(
			af_packet_devargs("net_af_packet0,iface=eth0", 1518, opened, bytes, NULL),
			-ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_frame_size),
		cmocka_unit_test(as_the_user_says),
		cmocka_unit_test(too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
