/* SPDX-License-Identifier: BSD-3-Clause */
/* What the doctor's live tests do, on the host's GPU and the software ConnectX. With the argument
 * "refused" the card registers nothing (SOFTMLX5_FAULTS=refuse=1/1/0,refuse_umem=1/1/0). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/eal.h"
#include "doctor/live_gpu.h"
#include "gpu/gpu_open.h"

static struct live_gpu gpu;
static bool refused;

static int setup(void **state)
{
	const struct eal_needs needs = { .memory_bytes = (size_t)64 << 20 };
	struct gdrcap_error error = { 0 };
	int ret;

	if (eal_start(&needs, &error) < 0)
		fail_msg("%s", error.text);
	ret = gpu_open_host(false, &error);
	assert_true(ret >= 0);
	gpu.gpu = (int16_t)ret;
	gpu.ops = &kernel_host_ops;
	gpu.ordinal = -1;
	return gpu.ops->open(0, &gpu.device);
}

static int teardown(void **state)
{
	gpu.ops->close(gpu.device);
	return 0;
}

static void test_copy(void **state)
{
	struct gdrcap_error error = { 0 };
	double rate = 0;

	if (live_copy(&gpu, &rate, &error) < 0)
		fail_msg("%s", error.text);
	assert_true(rate > 0);
}

static void test_kernel(void **state)
{
	struct gdrcap_error error = { 0 };
	double us = 0;

	if (live_kernel(&gpu, &us, &error) < 0)
		fail_msg("%s", error.text);
	assert_true(us > 0);
}

/* A device whose memory comes out wrong: the verdict is not "right". */
static int wrong_copy(struct kernel_device *device, void *to, const void *from, size_t bytes)
{
	uint8_t copy[256];

	assert_true(bytes <= sizeof(copy));
	memcpy(copy, from, bytes);
	copy[bytes - 1] ^= 4;
	return kernel_host_ops.copy_in(device, to, copy, bytes);
}

static void test_kernel_wrong(void **state)
{
	struct kernel_ops ops = kernel_host_ops;
	const struct live_gpu wrong = { gpu.gpu, &ops, gpu.device, -1 };
	struct gdrcap_error error = { 0 };
	double us;

	ops.copy_in = wrong_copy;
	assert_int_equal(live_kernel(&wrong, &us, &error), -EIO);
	assert_non_null(strstr(error.text, "damaged"));
}

static void test_register(void **state)
{
	struct live_registration result;

	live_register(&gpu, "mlx5_0", &result);
	assert_int_equal(result.open, 0);
	assert_int_equal(result.allocate, 0);
	assert_int_equal(result.by_address, refused ? ENOMEM : 0);
	assert_int_equal(result.export, 0);
	assert_int_equal(result.as_dmabuf, refused ? ENOMEM : 0);
	live_register(&gpu, "mlx5_99", &result);
	assert_int_equal(result.open, ENODEV);
}

static void test_umem(void **state)
{
	struct live_umem result;

	live_umem(&gpu, "mlx5_0", &result);
	assert_int_equal(result.open, 0);
	assert_int_equal(result.allocate, 0);
	assert_int_equal(result.by_address, refused ? ENOMEM : 0);
	assert_int_equal(result.export, 0);
	assert_int_equal(result.as_dmabuf, refused ? ENOMEM : 0);
	assert_int_equal(result.doorbell, 0);
	assert_int_equal(result.mapping, LIVE_NOT_TRIED); /* no GPU */
	live_umem(&gpu, "mlx5_99", &result);
	assert_int_equal(result.open, ENODEV);
	/* A card, firmware or kernel without commands of the card. */
	setenv("SOFTMLX5_DEVX", "0", 1);
	live_umem(&gpu, "mlx5_0", &result);
	assert_int_equal(result.open, EOPNOTSUPP);
	unsetenv("SOFTMLX5_DEVX");
}

static void test_reasons(void **state)
{
	static const int errors[] = { EFAULT, EINVAL, ENOMEM, EPROTONOSUPPORT, EOPNOTSUPP, EPERM };

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		for (int dmabuf = 0; dmabuf < 2; dmabuf++)
			assert_true(live_register_reason(errors[i], dmabuf)[0] != '\0');
	assert_non_null(strstr(live_register_reason(EFAULT, 0), "nvidia-peermem"));
	assert_string_equal(live_register_reason(EXDEV, 0), "");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy),	     cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_kernel_wrong), cmocka_unit_test(test_register),
		cmocka_unit_test(test_umem),	     cmocka_unit_test(test_reasons),
	};

	refused = argc > 1 && strcmp(argv[1], "refused") == 0;
	return cmocka_run_group_tests(tests, setup, teardown);
}
