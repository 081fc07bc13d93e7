/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A memif server's listening socket, where DPDK's driver fails its host. Read in DPDK 22.11.
 *
 * A peer that closes its connection at once: the driver's first message to it fails, and the driver closes
 * the descriptor that EAL's interrupt thread still watches. That thread aborts the process when it builds
 * its list of descriptors anew. So the first message to a peer never fails for the driver: that the peer
 * has left is what the interrupt thread hears next, and then the driver cleans up in order.
 *
 * A peer that takes all descriptors: EAL aborts when it has none for its own list. Peers get none of the
 * last ones. A peer that writes nothing, or takes nothing, holds up no one: its socket does not block.
 *
 * A server that is closed: the driver frees what describes the listening socket, and neither closes it nor
 * has the interrupt thread forget it. A server that cannot be opened: the driver keeps the port's name. Both
 * are done here.
 *
 * How it is linked: as memif.c says. All other calls of these functions in what is linked are passed on as
 * they are.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4() */
#endif
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rte_interrupts.h>

#define DESCRIPTORS_KEPT 64u /* that peers do not get */
#define LISTENERS_MAX 64u
#define PAUSE_NS                                                                                   \
	10000000 /* where there is no descriptor: the interrupt thread would try again at once */

struct rte_eth_dev;

/* DPDK's, for drivers. */
int rte_eth_dev_release_port(struct rte_eth_dev *device);

/* The linker gives these names their meaning: --wrap. */
int __real_accept(int fd, struct sockaddr *address, socklen_t *bytes);
int __wrap_accept(int fd, struct sockaddr *address, socklen_t *bytes);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
int __real_memif_socket_init(struct rte_eth_dev *device, const char *name);
int __wrap_memif_socket_init(struct rte_eth_dev *device, const char *name);
void __real_memif_socket_remove_device(struct rte_eth_dev *device);
void __wrap_memif_socket_remove_device(struct rte_eth_dev *device);
int __real_rte_intr_callback_register(const struct rte_intr_handle *handle,
				      rte_intr_callback_fn call, void *arg);
int __wrap_rte_intr_callback_register(const struct rte_intr_handle *handle,
				      rte_intr_callback_fn call, void *arg);
void __real_rte_free(void *memory);
void __wrap_rte_free(void *memory);

/* What the interrupt thread calls for a listening socket. */
struct listener {
	int fd;
	rte_intr_callback_fn call; /* NULL: none */
	void *arg;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over listeners[] */
static struct listener listeners[LISTENERS_MAX];
static _Thread_local bool opening, closing; /* the driver, a port */
static _Thread_local int greeted =
	-1; /* the interrupt thread: the peer that came last; -1: it was greeted */

/* ---- peers ---- */

static bool is_among_the_last(int fd)
{
	struct rlimit most;

	return getrlimit(RLIMIT_NOFILE, &most) == 0 &&
	       (rlim_t)fd + DESCRIPTORS_KEPT >= most.rlim_cur;
}

int __wrap_accept(int fd, struct sockaddr *address, socklen_t *bytes)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int peer;

	if (!rte_thread_is_intr())
		return __real_accept(fd, address, bytes);
	peer = accept4(fd, address, bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (peer >= 0 && is_among_the_last(peer)) {
		close(peer);
		peer = -1;
		errno = EMFILE;
	} else if (peer < 0 && errno != EAGAIN) {
		const int code = errno;

		nanosleep(&pause, NULL);
		errno = code;
	}
	greeted = peer;
	return peer;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	const bool hello = greeted >= 0 && fd == greeted;
	ssize_t sent;

	if (!rte_thread_is_intr())
		return __real_sendmsg(fd, message, flags);
	sent = __real_sendmsg(fd, message, flags | MSG_NOSIGNAL);
	if (!hello)
		return sent;
	greeted = -1;
	return sent < 0 ? (ssize_t)message->msg_iov[0].iov_len : sent;
}

/* ---- the socket ---- */

int __wrap_memif_socket_init(struct rte_eth_dev *device, const char *name)
{
	int ret;

	opening = true;
	ret = __real_memif_socket_init(device, name);
	opening = false;
	/* The driver returns then, and does not look at the port again. */
	if (ret < 0)
		rte_eth_dev_release_port(device);
	return ret;
}

static void listener_keep(const struct listener *listener)
{
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < LISTENERS_MAX; i++)
		if (!listeners[i].call) {
			listeners[i] = *listener;
			break;
		}
	pthread_mutex_unlock(&lock);
}

static struct listener listener_take(const void *arg)
{
	struct listener found = { .fd = -1 };

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < LISTENERS_MAX; i++)
		if (listeners[i].call && listeners[i].arg == arg) {
			found = listeners[i];
			listeners[i].call = NULL;
			break;
		}
	pthread_mutex_unlock(&lock);
	return found;
}

/* EAL knows it by its descriptor. */
static void listener_close(const struct listener *listener)
{
	struct rte_intr_handle *handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	const struct timespec pause = { .tv_nsec = PAUSE_NS / 100 };

	if (handle && rte_intr_fd_set(handle, listener->fd) == 0) {
		/* It may be accepting a peer just now. */
		while (rte_intr_callback_unregister(handle, listener->call, listener->arg) ==
		       -EAGAIN)
			nanosleep(&pause, NULL);
		close(listener->fd);
	}
	rte_intr_instance_free(handle);
}

int __wrap_rte_intr_callback_register(const struct rte_intr_handle *handle,
				      rte_intr_callback_fn call, void *arg)
{
	const int ret = __real_rte_intr_callback_register(handle, call, arg);

	if (opening && ret == 0)
		listener_keep(&(struct listener){ rte_intr_fd_get(handle), call, arg });
	return ret;
}

void __wrap_memif_socket_remove_device(struct rte_eth_dev *device)
{
	closing = true;
	__real_memif_socket_remove_device(device);
	closing = false;
}

void __wrap_rte_free(void *memory)
{
	struct listener listener = { .fd = -1 };

	/* The driver frees what it has of the socket with the last port that uses it. */
	if (closing && memory)
		listener = listener_take(memory);
	if (listener.call)
		listener_close(&listener);
	__real_rte_free(memory);
}
