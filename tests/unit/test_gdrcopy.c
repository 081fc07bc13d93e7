/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/gpu/gdrcopy.c against a library that stands in for GDRCopy's.
 * usage: test_gdrcopy FAKE-LIBRARY, whose soname is libgdrapi.so.2: once loaded, it is what
 * dlopen() finds under that name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fake_gdrapi.h"
#include "gpu/gdrcopy.h"

#define GPU 0x7f0000230000ul /* a multiple of 64 KiB */

static struct fake_gdrapi *fake;

static int fake_reset(void **state)
{
	memset(fake, 0, sizeof(*fake));
	return 0;
}

static int fake_is_idle(void **state)
{
	return fake->open || fake->pinned || fake->mapped || fake->misuse;
}

static struct gdrcopy *opened(void)
{
	struct gdrcopy *gdrcopy = NULL;
	char why[256] = "";

	assert_int_equal(gdrcopy_open(&gdrcopy, why, sizeof(why)), 0);
	assert_non_null(gdrcopy);
	return gdrcopy;
}

static void whole_pages_are_pinned(void **state)
{
	static const struct {
		unsigned long offset;
		size_t bytes, span;
	} cases[] = {
		{ 0, 1, 65536 },       { 0, 65536, 65536 },    { 0, 65537, 131072 },
		{ 100, 65436, 65536 }, { 100, 65437, 131072 }, { 65535, 2, 131072 },
	};
	struct gdrcopy *gdrcopy = opened();
	struct gdrcopy_mapping mapping;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(
			gdrcopy_map(gdrcopy, GPU + cases[i].offset, cases[i].bytes, &mapping), 0);
		assert_int_equal(fake->gpu, GPU);
		assert_int_equal(fake->bytes, cases[i].span);
		assert_ptr_equal(mapping.cpu, (uint8_t *)mapping.base + cases[i].offset);
		memset(mapping.cpu, 1, cases[i].bytes);
		assert_int_equal(gdrcopy_unmap(gdrcopy, &mapping), 0);
	}
	gdrcopy_close(gdrcopy);
}

static void offset_of_the_kernel_is_added(void **state)
{
	struct gdrcopy *gdrcopy = opened();
	struct gdrcopy_mapping mapping;

	fake->shift = 65536;
	assert_int_equal(gdrcopy_map(gdrcopy, GPU + 7, 10, &mapping), 0);
	assert_ptr_equal(mapping.cpu, (uint8_t *)mapping.base + 65536 + 7);
	assert_int_equal(gdrcopy_unmap(gdrcopy, &mapping), 0);
	gdrcopy_close(gdrcopy);
}

static void failures_undo_what_was_done(void **state)
{
	struct gdrcopy *gdrcopy = opened();
	struct gdrcopy_mapping mapping;

	fake->fail_pin = ENOMEM;
	assert_int_equal(gdrcopy_map(gdrcopy, GPU, 1, &mapping), -ENOMEM);
	fake->fail_pin = -1;
	assert_int_equal(gdrcopy_map(gdrcopy, GPU, 1, &mapping), -EIO);
	fake->fail_pin = 0;
	fake->fail_map = EAGAIN;
	assert_int_equal(gdrcopy_map(gdrcopy, GPU, 1, &mapping), -EAGAIN);
	assert_int_equal(fake->pinned, 0);
	fake->fail_map = 0;
	fake->fail_info = EINVAL;
	assert_int_equal(gdrcopy_map(gdrcopy, GPU, 1, &mapping), -EINVAL);
	assert_int_equal(fake->mapped, 0);
	assert_int_equal(fake->pinned, 0);
	fake->fail_info = 0;
	/* a mapping that begins behind what was asked for */
	fake->shift = -65536ul;
	assert_int_equal(gdrcopy_map(gdrcopy, GPU, 1, &mapping), -EIO);
	assert_int_equal(fake->mapped, 0);
	fake->shift = 0;
	gdrcopy_close(gdrcopy);
}

static void missing_module_is_named(void **state)
{
	struct gdrcopy *gdrcopy = NULL;
	char why[256] = "";

	fake->fail_open = 1;
	assert_int_equal(gdrcopy_open(&gdrcopy, why, sizeof(why)), -ENOTSUP);
	assert_null(gdrcopy);
	assert_non_null(strstr(why, "modprobe gdrdrv"));
}

#define with_fake(test) cmocka_unit_test_setup_teardown(test, fake_reset, fake_is_idle)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		with_fake(whole_pages_are_pinned),
		with_fake(offset_of_the_kernel_is_added),
		with_fake(failures_undo_what_was_done),
		with_fake(missing_module_is_named),
	};
	void *library;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FAKE-LIBRARY\n", argv[0]);
		return 2;
	}
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	fake = library ? dlsym(library, "fake_gdrapi") : NULL;
	if (!fake) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
