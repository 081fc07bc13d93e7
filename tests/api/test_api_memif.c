/* SPDX-License-Identifier: BSD-3-Clause */
/* A memif server's port of one process, again and again: after its end, and after it could not be had. */
#include "api.h"

#include <dirent.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void config_of(struct gdrcap_config **config, const char *socket_name)
{
	api_config(config, "validate", 0);
	api_unset(*config, "tx_port");
	api_unset(*config, "frames");
	api_set(*config, "port", "net_memif0,role=server,socket=%s", socket_name);
}

/* Without epoll descriptors: DPDK's interrupt thread closes its own and opens a new one at any time. */
static unsigned int descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	unsigned int count = 0;

	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		char what[64];
		const ssize_t bytes =
			readlinkat(dirfd(folder), entry->d_name, what, sizeof(what) - 1);

		what[bytes > 0 ? bytes : 0] = 0;
		count += !strstr(what, "[eventpoll]") && bytes > 0;
	}
	closedir(folder);
	return count;
}

/* What has this socket, as DPDK's driver would. */
static int socket_taken(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", name);
	assert_int_equal(
		bind(fd, (const struct sockaddr *)&address,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))),
		0);
	return fd;
}

static void session_of(const struct gdrcap_config *config)
{
	struct gdrcap_session *session = api_create(config);

	api_start(session);
	api_stop(session);
	gdrcap_destroy(session);
}

/* Its socket is an abstract one, as is the default. */
static void again(void **state)
{
	struct gdrcap_config *config API_FREED = NULL;
	unsigned int before = 0;
	char name[64];

	snprintf(name, sizeof(name), "gdrcap-test-again-%d", (int)getpid());
	config_of(&config, name);
	for (unsigned int i = 0; i < 4; i++) {
		session_of(config);
		if (i == 0)
			before = descriptors();
	}
	/* that thread closes what it waited for when it has a core: the test's time limit ends what stays */
	while (descriptors() > before)
		usleep(1000);
	/* And it is free for others. */
	close(socket_taken(name));
}

static void refused_first(void **state)
{
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_session *session;
	struct gdrcap_error error;
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "gdrcap-test-refused-%d", (int)getpid());
	config_of(&config, name);
	fd = socket_taken(name);
	for (unsigned int i = 0; i < 2; i++) {
		assert_true(gdrcap_create(config, &session, &error) < 0);
		assert_non_null(strstr(error.text, "Address already in use"));
	}
	close(fd);
	session_of(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(again),
		cmocka_unit_test(refused_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
