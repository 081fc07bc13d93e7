/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel interfaces under ports: checked before they are opened, and watched. */
#include "port/interface.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "port/af_packet.h"
#include "port/devargs.h"
#include "port/driver_table.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif
#define CAPABILITY_BPF 39 /* Linux 5.8; before, CAP_SYS_ADMIN has it */

bool interface_of(const char *port, char name[IF_NAMESIZE])
{
	const char *args = devargs_of(port);
	char second[IF_NAMESIZE];
	int bytes;

	if (devargs_value(args, "iface", 1, second, sizeof(second)) >= 0)
		return false;
	bytes = devargs_value(args, "iface", 0, name, IF_NAMESIZE);
	return bytes > 0 && bytes < IF_NAMESIZE;
}

static bool capable(unsigned int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	/* Who cannot tell lets the kernel decide. */
	if (syscall(SYS_capget, &header, data) < 0)
		return true;
	return data[capability / 32].effective >> (capability % 32) & 1;
}

static int rights_check(const char *port, const char *named, struct gdrcap_error *error)
{
	const bool xdp = driver_facts_find(port)->umem;

	if (!capable(CAP_NET_RAW))
		return error_set(error, -EPERM,
				 "port %s: this process may not open raw sockets; be root, or have "
				 "CAP_NET_RAW and CAP_NET_ADMIN (setcap "
				 "cap_net_raw,cap_net_admin,cap_ipc_lock+ep PROGRAM)",
				 named);
	if (xdp &&
	    (!capable(CAP_NET_ADMIN) || (!capable(CAPABILITY_BPF) && !capable(CAP_SYS_ADMIN))))
		return error_set(
			error, -EPERM,
			"port %s: this process may not put an XDP program on an interface; be "
			"root, or have CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF",
			named);
	return 0;
}

/* Can the kernel do it at all? */
static int kernel_check(const char *port, const char *named, struct gdrcap_error *error)
{
	const bool xdp = driver_facts_find(port)->umem;
	/* Protocol 0: it hears nothing. */
	const int fd = socket(xdp ? AF_XDP : AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (errno == EPERM || errno == EACCES)
		return error_set(error, -EPERM,
				 "port %s: the kernel refuses a raw socket to this process: a "
				 "container's or service's filter (seccomp) forbids it",
				 named);
	if (errno != EAFNOSUPPORT)
		return error_set(error, -errno, "port %s: no raw socket can be had: %s", named,
				 strerror(errno));
	return error_set(error, -ENOTSUP, "port %s: this kernel has no %s sockets (CONFIG_%s)%s",
			 named, xdp ? "AF_XDP" : "AF_PACKET", xdp ? "XDP_SOCKETS" : "PACKET",
			 xdp ? "; use net_af_packet0,iface=..." : "");
}

/* AF_PACKET's driver locks its rings in memory. */
static int lock_check(const char *port, const char *named, struct gdrcap_error *error)
{
	struct af_packet_ring ring;
	struct rlimit limit;
	uint64_t bytes;

	if (!port_name_is_af_packet(port) || capable(CAP_IPC_LOCK) ||
	    getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return 0;
	af_packet_ring(&ring, port);
	bytes = (uint64_t)2 * ring.slot_bytes * ring.frames * ring.queues;
	if (bytes <= limit.rlim_cur)
		return 0;
	return error_set(
		error, -ENOMEM,
		"port %s: its rings take %llu KiB of locked memory, and this process may lock "
		"%llu KiB; raise ulimit -l, have CAP_IPC_LOCK, or give a smaller framecnt=",
		named, (unsigned long long)bytes >> 10, (unsigned long long)limit.rlim_cur >> 10);
}

int interface_check(const char *port, const char *named, struct gdrcap_error *error)
{
	char name[IF_NAMESIZE];
	int ret;

	if (!interface_of(port, name)) {
		ret = error_set(error, -EINVAL,
				"port %s: it must name one interface of at most %u letters: "
				"%.*s,iface=eth0",
				named, IF_NAMESIZE - 1, (int)strcspn(port, ","), port);
		return error_of_config(error, ret);
	}
	if (if_nametoindex(name) == 0)
		return error_set(error, -ENODEV,
				 "port %s: there is no interface \"%s\" in this network namespace; "
				 "ip link shows those that there are",
				 named, name);
	ret = rights_check(port, named, error);
	if (ret == 0)
		ret = kernel_check(port, named, error);
	return ret == 0 ? lock_check(port, named, error) : ret;
}

int interface_hear_all(unsigned int index, const char *port)
{
	const struct packet_mreq all = { .mr_ifindex = (int)index, .mr_type = PACKET_MR_PROMISC };
	/* Protocol 0: it hears nothing itself. */
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd > 0 && setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) == 0)
		return fd;
	log_warning("port %s: its interface may not hear what is for other addresses: %s", port,
		    strerror(errno));
	if (fd >= 0)
		close(fd);
	return 0;
}

static int ask(const char *name, unsigned long question, struct ifreq *request)
{
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int ret;

	memset(request, 0, sizeof(*request));
	snprintf(request->ifr_name, sizeof(request->ifr_name), "%s", name);
	if (fd < 0)
		return -errno;
	ret = ioctl(fd, question, request) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

bool interface_up(const char *name)
{
	const short up = IFF_UP | IFF_RUNNING;
	struct ifreq request;

	return ask(name, SIOCGIFFLAGS, &request) < 0 || (request.ifr_flags & up) == up;
}

bool interface_hears_all(const char *name)
{
	struct ifreq request;

	return ask(name, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_PROMISC);
}

void interface_set_hears_all(const char *name)
{
	struct ifreq request;
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && ask(name, SIOCGIFFLAGS, &request) == 0) {
		request.ifr_flags |= IFF_PROMISC;
		(void)ioctl(fd, SIOCSIFFLAGS, &request);
	}
	if (fd >= 0)
		close(fd);
}

uint32_t interface_mtu(const char *name)
{
	struct ifreq request;

	return ask(name, SIOCGIFMTU, &request) < 0 || request.ifr_mtu < 0
		       ? 0
		       : (uint32_t)request.ifr_mtu;
}

/* As /proc/net/dev has it, of the calling thread's network namespace. */
static uint64_t dropped_read(const char *name)
{
	const size_t letters = strlen(name);
	FILE *file = fopen("/proc/thread-self/net/dev", "re");
	unsigned long long dropped = 0;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		const char *at = line + strspn(line, " ");

		/* Bytes, frames, errors, drops. */
		if (strncmp(at, name, letters) == 0 && at[letters] == ':')
			(void)sscanf(at + letters + 1, "%*u %*u %*u %llu", &dropped);
	}
	if (file)
		fclose(file);
	return dropped;
}

void interface_watch(struct interface *interface, unsigned int index, const char *port)
{
	char name[IF_NAMESIZE];

	memset(interface, 0, sizeof(*interface));
	if (index == 0)
		return;
	interface->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (interface->socket < 0) {
		log_warning("port %s: nobody will notice when its interface is deleted: %s", port,
			    strerror(errno));
		return;
	}
	interface->index = index;
	if (if_indextoname(index, name))
		interface->dropped_before = dropped_read(name);
}

uint64_t interface_dropped(const struct interface *interface, char name[IF_NAMESIZE])
{
	uint64_t dropped;

	if (!interface->index || !if_indextoname(interface->index, name))
		return 0;
	dropped = dropped_read(name);
	return dropped > interface->dropped_before ? dropped - interface->dropped_before : 0;
}

bool interface_is_gone(const struct interface *interface)
{
	struct ifreq request = { .ifr_ifindex = (int)interface->index };

	return interface->index && ioctl(interface->socket, SIOCGIFNAME, &request) < 0 &&
	       errno == ENODEV;
}

void interface_forget(struct interface *interface)
{
	if (interface->index)
		close(interface->socket);
	interface->index = 0;
}
