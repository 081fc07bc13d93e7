/* SPDX-License-Identifier: BSD-3-Clause */
/* interface.c: each reason for which a port of a kernel's interface cannot be opened has a text and
 * a code of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port/interface.h"

static void refused(const char *port, int code, const char *first, const char *second)
{
	struct gdrcap_error error = { .text = "" };

	assert_int_equal(interface_check(port, port, &error), code);
	if (!strstr(error.text, first) || !strstr(error.text, second))
		print_error("%s: %s\n", port, error.text);
	assert_non_null(strstr(error.text, first));
	assert_non_null(strstr(error.text, second));
}

static void names(void **state)
{
	char name[IF_NAMESIZE];

	assert_true(interface_of("net_af_packet0,qpairs=1,iface=eth0,framesz=2048", name));
	assert_string_equal(name, "eth0");
	assert_true(interface_of("net_af_packet0,iface=fifteen_letters", name));
	assert_false(interface_of("net_af_packet0,iface=sixteen__letters", name));
	assert_false(interface_of("net_af_packet0", name));
	assert_false(interface_of("net_af_packet0,iface=", name));
	assert_false(interface_of("net_af_packet0,xiface=eth0", name));
	assert_false(interface_of("net_af_packet0,iface=a,iface=b", name));
}

static void named(void **state)
{
	refused("net_af_packet0", -EINVAL, "must name one interface", "net_af_packet0,iface=");
	refused("net_af_packet0,qpairs=1", -EINVAL, "must name one interface", "iface=");
	refused("net_af_xdp0,iface=", -EINVAL, "must name one interface", "net_af_xdp0,iface=");
	refused("net_af_packet0,iface=sixteen__letters", -EINVAL, "at most 15 letters", "iface=");
	refused("net_af_packet0,iface=nosuch0", -ENODEV, "no interface \"nosuch0\"", "ip link");
}

/* Only these capabilities, of whoever we are. */
static void capabilities_keep(uint64_t kept)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) < 0)
		_exit(1);
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		data[i].effective &= (uint32_t)(kept >> 32 * i);
	if (syscall(SYS_capset, &header, data) < 0)
		_exit(1);
}

/* In a process of its own, whose rights are gone afterwards. */
static void refused_with(const char *port, uint64_t kept, int code, const char *first,
			 const char *second)
{
	const pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		const struct rlimit limit = { 1 << 16, 1 << 16 };
		struct gdrcap_error error = { .text = "" };

		if (setrlimit(RLIMIT_MEMLOCK, &limit) < 0)
			_exit(1);
		capabilities_keep(kept);
		if (interface_check(port, port, &error) == code && strstr(error.text, first) &&
		    strstr(error.text, second))
			_exit(0);
		fprintf(stderr, "%s: %d, %s\n", port, error.code, error.text);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void rights(void **state)
{
	const uint64_t raw = 1ull << CAP_NET_RAW, lock = 1ull << CAP_IPC_LOCK,
		       admin = 1ull << CAP_NET_ADMIN;

	refused_with("net_af_packet0,iface=lo", 0, -EPERM, "raw sockets", "CAP_NET_RAW");
	refused_with("net_af_xdp0,iface=lo", 0, -EPERM, "raw sockets", "CAP_NET_RAW");
	/* A name that does not exist is that first. */
	refused_with("net_af_packet0,iface=nosuch0", 0, -ENODEV, "nosuch0", "ip link");
	if (geteuid() != 0)
		return;
	refused_with("net_af_packet0,iface=lo", raw, -ENOMEM, "take 2048 KiB of locked memory",
		     "lock 64 KiB");
	refused_with("net_af_packet0,iface=lo,framesz=16384,framecnt=64,qpairs=2", raw, -ENOMEM,
		     "take 4096 KiB", "CAP_IPC_LOCK");
	refused_with("net_af_packet0,iface=lo", raw | lock, 0, "", "");
	refused_with("net_af_xdp0,iface=lo", raw | admin, -EPERM, "XDP program", "CAP_BPF");
	refused_with("net_af_xdp0,iface=lo", raw, -EPERM, "XDP program", "CAP_NET_ADMIN");
}

static void looks(void **state)
{
	assert_int_equal(interface_mtu("nosuch0"), 0);
	assert_true(interface_up("nosuch0"));
	assert_true(interface_mtu("lo") >= 1500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(named),
		cmocka_unit_test(rights),
		cmocka_unit_test(looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
