/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening a card's clock: who reads it, driver or libibverbs, of what kind it is, what fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "rx_clock_scene.h"
#include "port/rx_clock_verbs.h"

/* Where the kernel shows devices, and which RDMA device is on which. */
static char root[64];
static const struct {
	const char *rdma, *device; /* NULL: it says nowhere on which */
} places[RDMA_MAX] = {
	{ "mlx5_0", "0000:3b:00.0" },
	{ "mlx5_9", NULL },
	{ "mlx5_2", "mlx5_core.sf.4" },
	{ "mlx5_bond_0", "0000:5e:00.0" },
};

__attribute__((format(printf, 2, 3))) static const char *path_of(char *path, const char *format,
								 ...)
{
	size_t used = (size_t)snprintf(path, 128, "%s/", root);
	va_list args;

	va_start(args, format);
	vsnprintf(path + used, 128 - used, format, args);
	va_end(args);
	return path;
}

static int places_make(void **state)
{
	char path[128], target[128];

	snprintf(root, sizeof(root), "/tmp/gdrcap-rx-clock-XXXXXX");
	assert_non_null(mkdtemp(root));
	for (unsigned int i = 0; i < RDMA_MAX; i++) {
		assert_int_equal(mkdir(path_of(path, "%s", places[i].rdma), 0700), 0);
		if (!places[i].device)
			continue;
		assert_int_equal(mkdir(path_of(path, "%s", places[i].device), 0700), 0);
		snprintf(target, sizeof(target), "../%s", places[i].device);
		assert_int_equal(symlink(target, path_of(path, "%s/device", places[i].rdma)), 0);
	}
	return 0;
}

static int places_remove(void **state)
{
	char path[128];

	for (unsigned int i = 0; i < RDMA_MAX; i++) {
		unlink(path_of(path, "%s/device", places[i].rdma));
		rmdir(path_of(path, "%s", places[i].rdma));
		if (places[i].device)
			rmdir(path_of(path, "%s", places[i].device));
	}
	return rmdir(root);
}

/* The driver reads no clock of a port that is this device. */
static void driver_refuses(const char *device)
{
	fake.clock_error = -ENOTSUP;
	fake.device.name = device;
	fake.rdma_count = RDMA_MAX;
	for (unsigned int i = 0; i < RDMA_MAX; i++) {
		snprintf(fake.rdma[i].name, sizeof(fake.rdma[i].name), "%s", places[i].rdma);
		path_of(fake.rdma[i].ibdev_path, "%s", places[i].rdma);
	}
}

static void has_no_clock(void **state)
{
	struct gdrcap_error error;
	struct rx_clock clock;

	assert_int_equal(rx_clock_register(&clock, PORT, &error), 0);
	assert_int_equal(clock.port, PORT);
	assert_int_equal(clock.offset, 96);
	assert_true(clock.flag == 1ull << 30);
	fake.field_error = ENOSPC;
	assert_int_equal(rx_clock_register(&clock, PORT, &error), -ENOSPC);
	assert_non_null(strstr(error.text, "room"));
	fake.field_error = 0;
	fake.capabilities = RTE_ETH_RX_OFFLOAD_SCATTER;
	assert_int_equal(rx_clock_register(&clock, PORT, &error), -ENOTSUP);
	fake.capabilities = RTE_ETH_RX_OFFLOAD_TIMESTAMP;
	fake.info_error = -ENODEV;
	assert_int_equal(rx_clock_register(&clock, PORT, &error), -ENOTSUP);
}

static void open_fails(int code, const char *text)
{
	struct gdrcap_error error;
	struct rx_clock clock;

	assert_int_equal(rx_clock_register(&clock, PORT, NULL), 0);
	fake.reads = 0;
	assert_int_equal(rx_clock_open(&clock, &error), code);
	if (!strstr(error.text, text))
		fail_msg("\"%s\" is not in \"%s\"", text, error.text);
}

static void cannot_be_read(void **state)
{
	/* At once, and in the middle. */
	for (fake.error_after = 0; fake.error_after < 16; fake.error_after += 5) {
		fake.clock_error = EOPNOTSUPP;
		open_fails(-ENOTSUP, fake.error_after < 8 ? "RDMA" : "not supported");
		/* mlx5 passes what libibverbs says. */
		fake.clock_error = EINVAL;
		open_fails(-EINVAL, "cannot be read: Invalid argument");
		fake.clock_error = -EIO;
		open_fails(-EIO, "cannot be read");
	}
	fake.clock_error = 0;
	fake.rate = 0;
	open_fails(-EIO, "stands still");
	fake.rate = -1;
	open_fails(-EIO, "stands still");
	fake.rate = 1e-6L;
	open_fails(-EIO, "stands still");
}

/* ---- libibverbs ---- */

static void verbs_read_it(void **state)
{
	struct rx_clock clock, copy;

	driver_refuses("0000:3b:00.0");
	clock = opened();
	copy = clock;
	assert_string_equal(fake.opened->name, "mlx5_0");
	assert_int_equal(fake.reads, 1);
	is_right(&clock, 20000);
	for (unsigned int i = 0; i < 10; i++) {
		pass(NS);
		rx_clock_renew(&clock);
		rx_clock_renew(&copy);
		is_right(&clock, 1000);
		is_right(&copy, 1000);
	}
	assert_int_equal(fake.reads, 1);
	assert_int_equal(fake.opens, 1);
	rx_clock_close(&clock);
	assert_null(fake.opened);
	rx_clock_close(&clock);
	assert_true(fake.warned[0] == '\0');
	/* Of real time, too. */
	fake.rate = 1;
	fake.card = (long double)now();
	fake.close_error = EBUSY;
	clock = opened();
	assert_true(clock.real_time && fake.opened);
	rx_clock_close(&clock);
	assert_non_null(strstr(fake.warned, "stays open"));
	fake.warned[0] = '\0';
}

/* Nothing is opened where the driver reads the clock, or says something else. */
static void verbs_not_needed(void **state)
{
	static const int codes[] = { -EIO, -ENODEV, EINVAL };
	struct rx_clock clock;

	driver_refuses("0000:3b:00.0");
	for (unsigned int i = 0; i < 3; i++) {
		fake.clock_error = codes[i];
		open_fails(codes[i] < 0 ? codes[i] : -codes[i], "cannot be read");
	}
	fake.clock_error = 0;
	clock = opened();
	assert_null(clock.verbs);
	rx_clock_close(&clock);
	/* What the memory held before does not matter. */
	memset(&clock, 0xff, sizeof(clock));
	clock.port = RX_CLOCK_CPU;
	fake.on = false;
	assert_int_equal(rx_clock_open(&clock, NULL), 0);
	rx_clock_close(&clock);
	assert_int_equal(fake.opens, 0);
}

static void verbs_find_it(void **state)
{
	static const struct {
		const char *device, *rdma; /* NULL: none */
	} cases[] = {
		{ "0000:3b:00.0", "mlx5_0" },	   { "3b:00.0", "mlx5_0" },
		{ "0000:3b:00.1", NULL },	   { "0001:3b:00.0", NULL },
		{ "mlx5_core.sf.4", "mlx5_2" },	   { "mlx5_core.sf.5", NULL },
		{ "0000:5e:00.0", "mlx5_bond_0" }, { "0000:5e:00.1", "mlx5_bond_0" },
		{ "0000:5f:00.1", NULL },	   { "net_ring0", NULL },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ibv_context *verbs;

		driver_refuses(cases[i].device);
		if (rx_clock_verbs_open(&verbs, PORT) != (cases[i].rdma ? 0 : -ENODEV) ||
		    (fake.opened ? !cases[i].rdma || strcmp(fake.opened->name, cases[i].rdma) != 0
				 : cases[i].rdma != NULL))
			fail_msg("%s is %s", cases[i].device,
				 fake.opened ? fake.opened->name : "none");
		if (verbs)
			rx_clock_verbs_close(verbs);
	}
}

/* Each says what else there is, and leaves nothing open. */
static void verbs_fail(void **state)
{
	static const char *const remedy = "give --clock cpu";

	/* No such device, none at all, none that is known. */
	driver_refuses("0000:3c:00.0");
	open_fails(-ENOTSUP, "was not found");
	open_fails(-ENOTSUP, remedy);
	fake.rdma_count = 0;
	open_fails(-ENOTSUP, "was not found");
	driver_refuses(NULL);
	open_fails(-ENOTSUP, "was not found");
	assert_int_equal(fake.opens, 0);
	/* libibverbs has none to show; it cannot open it. */
	driver_refuses("0000:3b:00.0");
	fake.list_error = ENOSYS;
	open_fails(-ENOTSUP, "cannot be opened: Function not implemented");
	fake.list_error = 0;
	fake.open_error = EACCES;
	open_fails(-ENOTSUP, "cannot be opened: Permission denied");
	open_fails(-ENOTSUP, remedy);
	fake.open_error = -1; /* and does not say why */
	open_fails(-ENOTSUP, "cannot be opened: Input/output error");
	fake.open_error = 0;
	/* It does not read the clock: its driver has no such call; it refuses, at once or later. */
	fake.verbs.query_rt_values = NULL;
	open_fails(-ENOTSUP, "does not either");
	open_fails(-ENOTSUP, remedy);
	fake.verbs.query_rt_values = query;
	fake.query_error = EOPNOTSUPP;
	open_fails(-ENOTSUP, "does not either");
	assert_null(fake.opened);
	fake.query_error = EINVAL;
	open_fails(-EINVAL, "cannot be read: Invalid argument");
	assert_null(fake.opened);
}

/* The driver refuses at once; libibverbs fails in the middle of the first measurement, at its end,
 * and in the second. */
static void verbs_fail_later(void **state)
{
	static const int codes[] = { EOPNOTSUPP, EINVAL, -EIO };

	driver_refuses("0000:3b:00.0");
	for (unsigned int i = 0; i < 30; i++) {
		struct gdrcap_error error;
		struct rx_clock clock;
		const int code = codes[i % 3];

		assert_int_equal(rx_clock_register(&clock, PORT, NULL), 0);
		fake.queries = 0;
		fake.reads = fake.error_after = i / 2;
		fake.query_error = code;
		assert_int_equal(rx_clock_open(&clock, &error), code < 0 ? code : -code);
		assert_int_equal(fake.queries, i / 2 + 1);
		assert_null(fake.opened);
		assert_non_null(strstr(error.text, "--clock cpu"));
	}
}

/* Its registers, or the page in their place, are read all the same. */
static void card_is_gone(void **state)
{
	static const long double last[] = { 0, 0x1p63L - 1, 0x1p64L - 1 };
	struct rx_clock clock, was;

	driver_refuses("0000:3b:00.0");
	clock = opened();
	for (unsigned int i = 0; i < 3; i++) {
		was = clock;
		pass(NS);
		fake.card = last[i];
		fake.rate = 0;
		rx_clock_renew(&clock);
		assert_true(clock.ticks == was.ticks && clock.ns == was.ns);
		assert_true(clock.slope == was.slope && clock.measured == was.measured);
	}
	rx_clock_close(&clock);
	open_fails(-EIO, "cannot be read");
	fake.card = 5000;
	open_fails(-EIO, "stands still");
	assert_null(fake.opened);
}

/* ---- real time ---- */

static void real_time(void **state)
{
	static const int64_t offs[] = { 0, 900000000, -900000000, 37000500000, -86300000500000 };
	static const char *const texts[] = { "", "", "", "37.000 s ahead of the system's",
					     "86300.000 s behind the system's" };

	fake.rate = 1;
	fake.latency = 0;
	for (unsigned int i = 0; i < 5; i++) {
		struct rx_clock clock;
		unsigned int reads;

		fake.warned[0] = '\0';
		fake.card = (long double)(now() + (uint64_t)offs[i]);
		clock = opened();
		assert_true(clock.real_time);
		if (!strstr(fake.warned, texts[i]) || (!texts[i][0] && fake.warned[0]))
			fail_msg("\"%s\" was to be in \"%s\"", texts[i], fake.warned);
		/* As they are, whatever the two clocks do; nothing is measured. */
		reads = fake.reads;
		pass(1234567891);
		rx_clock_renew(&clock);
		assert_int_equal(fake.reads, reads);
		assert_true(rx_clock_ns(&clock, card()) == card());
		assert_true(rx_clock_ns(&clock, card() + 5 * DAY) == card() + 5 * DAY);
		assert_true(rx_clock_ns(&clock, 0) == 0);
	}
	/* Two days off it is no time of day. */
	fake.card = (long double)(now() + 2 * DAY);
	assert_false(opened().real_time);
}

/* The driver reads another counter than the one that frames get. */
static void real_time_in_frames_only(void **state)
{
	struct rx_clock clock = opened();

	assert_false(clock.real_time);
	for (unsigned int i = 0; i < 5; i++) {
		pass(30000 * NS);
		rx_clock_renew(&clock);
		assert_true(rx_clock_ns(&clock, now()) == now());
		assert_true(rx_clock_ns(&clock, now() - 123456789) == now() - 123456789);
		is_right(&clock, 20000);
	}
	/* The CPU's ticks are never taken for that. */
	clock.port = RX_CLOCK_CPU;
	assert_true(apart(rx_clock_ns(&clock, now()), now()) > DAY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_begin, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(has_no_clock),	TEST(cannot_be_read),
		TEST(verbs_read_it),	TEST(verbs_not_needed),
		TEST(verbs_find_it),	TEST(verbs_fail),
		TEST(verbs_fail_later), TEST(card_is_gone),
		TEST(real_time),	TEST(real_time_in_frames_only),
	};

	return cmocka_run_group_tests(tests, places_make, places_remove);
}
