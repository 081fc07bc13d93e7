/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An embedder that uses DPDK itself. EAL starts once a process, so each scenario is a process:
 * test_api_embedder [NAME]; all, one after the other, without a name.
 */
#include "api.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_eth_ring.h>
#include <rte_malloc.h>
#include <rte_ring.h>

static void own_eal_start(void)
{
	static char *argv[] = { (char *)"embedder",
				(char *)"--no-huge",
				(char *)"--no-pci",
				(char *)"-m",
				(char *)"512",
				(char *)"--no-telemetry",
				(char *)"--no-shconf",
				(char *)"-l",
				(char *)"0",
				(char *)"--log-level=*:error",
				NULL };

	assert_true(rte_eal_init(10, argv) >= 0);
}

static void clean_run(uint64_t frames)
{
	struct gdrcap_session *session;
	struct gdrcap_summary summary;
	struct gdrcap_config *config API_FREED = NULL;

	api_config(&config, "validate", frames);
	session = api_create(config);
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	gdrcap_get_summary(session, &summary, sizeof(summary));
	assert_true(summary.total.valid == frames);
	assert_true(summary.total.received == frames);
	gdrcap_destroy(session);
}

static void api_create_fails_once(const struct gdrcap_config *config, const char *part)
{
	struct gdrcap_session *session = NULL;
	struct gdrcap_error error = { 0 };
	int ret = gdrcap_create(config, &session, &error);

	assert_true(ret < 0);
	api_failed(ret, ret, &error, part);
	assert_null(session);
}

/* EAL is the embedder's: sessions use it and leave it alone. */
static void own_eal(void **state)
{
	void *memory;

	own_eal_start();
	for (int i = 0; i < 3; i++)
		clean_run(5000);
	memory = rte_malloc(NULL, 1 << 20, 64);
	assert_non_null(memory);
	rte_free(memory);
	assert_int_equal(rte_eth_dev_count_avail(), 0);
	assert_int_equal(rte_eal_cleanup(), 0);
}

/* A port that the embedder opened and left to the session; it is still there afterwards. */
static void own_port(void **state)
{
	uint16_t id;

	own_eal_start();
	assert_int_equal(rte_vdev_init("net_null0", "size=64,copy=0"), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name("net_null0", &id), 0);
	for (int i = 0; i < 2; i++) {
		struct gdrcap_session *session;
		struct gdrcap_summary summary;
		struct gdrcap_config *config API_FREED = NULL;

		api_config(&config, "validate", 20000);
		api_set(config, "port", "net_null0");
		api_unset(config, "tx_port");
		session = api_create(config);
		/* It has one user at a time. */
		api_create_fails(config, -EBUSY, "stop it first");
		api_start(session);
		api_wait_end(session);
		api_stop(session);
		gdrcap_get_summary(session, &summary, sizeof(summary));
		assert_true(summary.total.received >= 20000);
		/* Nobody wrote a frame: what is in memory is not ours. */
		assert_true(summary.total.filtered == summary.total.received);
		gdrcap_destroy(session);
		assert_true(rte_eth_dev_is_valid_port(id));
	}
	assert_int_equal(rte_eth_dev_close(id), 0);
	assert_int_equal(rte_vdev_uninit("net_null0"), 0);
}

/* A wire of the embedder's carries its mbufs, which are in no session's memory and pools. */
static void own_wire(void **state)
{
	struct gdrcap_config *config API_FREED = NULL;
	struct rte_ring *ring;

	own_eal_start();
	ring = rte_ring_create("ring", 1024, SOCKET_ID_ANY, 0);
	assert_non_null(ring);
	assert_true(rte_eth_from_rings("own", &ring, 1, &ring, 1, 0) >= 0);
	api_config(&config, "validate", 500);
	api_set(config, "port", "net_ring_own");
	api_unset(config, "tx_port");
	api_create_fails(config, -ENOTSUP, "ring:NAME");
	api_set(config, "tx_port", "net_ring_own");
	api_set(config, "port", "net_null0");
	api_create_fails(config, -ENOTSUP, "net_ring_own");
}

/* Bytes of address space that this process has. */
static rlim_t address_space(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long long pages = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%llu", &pages), 1);
	fclose(file);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* Without file descriptors EAL is not started, since DPDK would end the process, and may be later. Without memory
 * it cannot start, nor be started twice: a second session is told so, and not misled into an EAL that stopped half
 * way. */
static void failed_eal(void **state)
{
	const int next = dup(STDERR_FILENO);
	struct gdrcap_config *config API_FREED = NULL;
	struct rlimit limit;

	assert_true(next >= 0);
	assert_int_equal(close(next), 0);
	api_config(&config, "validate", 1000);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	for (rlim_t left = 0; left < 12; left++) {
		limit.rlim_cur = (rlim_t)next + left;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		api_create_fails(config, -EMFILE, "ulimit -n");
	}
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = address_space() + (48 << 20);
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	api_create_fails_once(config, "MiB of");
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	for (int i = 0; i < 2; i++)
		api_create_fails(config, -EALREADY, "new process");
}

/* An ordinary user without a usable run-time directory needs none, and hears nothing of it. */
static void no_runtime_dir(void **state)
{
	char said[] = "/tmp/gdrcap-said-XXXXXX";
	const int fd = mkstemp(said);
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;

	assert_true(fd >= 0);
	assert_int_equal(unlink(said), 0);
	assert_int_equal(geteuid() ? 0 : setuid(65534), 0);
	assert_int_equal(setenv("XDG_RUNTIME_DIR", "/proc/nowhere", 1), 0);
	assert_true(dup2(fd, STDERR_FILENO) >= 0);
	api_config(&config, "validate", 1000);
	session = api_create(config);
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	gdrcap_destroy(session);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(own_eal),    cmocka_unit_test(own_port),	cmocka_unit_test(own_wire),
	cmocka_unit_test(failed_eal), cmocka_unit_test(no_runtime_dir),
};

static int scenario_run(const struct CMUnitTest *test)
{
	const struct CMUnitTest one[] = { *test };

	return cmocka_run_group_tests_name(test->name, one, NULL, NULL);
}

/* In a process of its own. */
static int scenario_spawn(const char *program, const char *name)
{
	const pid_t child = fork();
	int status;

	if (child == 0) {
		execl(program, program, name, (char *)NULL);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 1;
	if (WIFSIGNALED(status))
		fprintf(stderr, "%s: ended by signal %d\n", name, WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (argc == 1)
			failed |= scenario_spawn("/proc/self/exe", tests[i].name);
		else if (strcmp(argv[1], tests[i].name) == 0)
			return scenario_run(&tests[i]);
	}
	if (argc == 1)
		return failed;
	fprintf(stderr, "%s: there is no scenario %s\n", argv[0], argv[1]);
	return 2;
}
