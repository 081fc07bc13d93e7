/* SPDX-License-Identifier: BSD-3-Clause */
/* Images in memory that is the caller's own. */
#include "api_images.h"

#include <sys/mman.h>

#define RING 4u
#define STRIDE (((BYTES + 63u) / 64u + 1u) * 64u)
#define GUARD 0x5au
#define PAGE 65536u

/* Of `bytes`, between pages that nobody may touch; it ends right before the second. */
static uint8_t *memory_map(size_t bytes)
{
	const size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
	uint8_t *raw = mmap(NULL, pages + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(raw != MAP_FAILED);
	assert_int_equal(mprotect(raw + PAGE, pages, PROT_READ | PROT_WRITE), 0);
	memset(raw + PAGE, GUARD, pages);
	return raw + PAGE + pages - bytes;
}

static void memory_unmap(uint8_t *memory, size_t bytes)
{
	const size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;

	munmap(memory + bytes - pages - PAGE, pages + 2 * PAGE);
}

static void set_memory(struct gdrcap_config *config, void *addr, uint64_t bytes, uint64_t stride)
{
	assert_int_equal(gdrcap_config_set_image_memory(config, 0, addr, bytes, stride), 0);
}

/* What lies behind each image is as it was. */
static void check_between(const uint8_t *memory)
{
	for (uint32_t i = 0; i < RING; i++)
		for (uint32_t at = BYTES; at < STRIDE; at++)
			assert_int_equal(memory[i * STRIDE + at], GUARD);
}

static void every_byte(void **state)
{
	const size_t bytes = RING * STRIDE;
	uint8_t *memory = memory_map(bytes);

	(void)state;
	/* Twice: it is free for the next session. */
	for (int i = 0; i < 2; i++) {
		struct gdrcap_config *config API_FREED = NULL;
		const struct gdrcap_image *image[RING];
		struct gdrcap_session *session;
		struct gdrcap_images *images;
		uint32_t used = 0;
		uint64_t taken = 0;
		int n;

		images_config(&config, "host", 200 * PIECES + 10, RING);
		set_memory(config, memory, bytes, STRIDE);
		session = api_create(config);
		images = gdrcap_get_images(session, 0);
		api_start(session);
		while ((n = gdrcap_image_wait(images, image, RING, -1)) > 0) {
			for (int k = 0; k < n; k++) {
				const size_t at = (size_t)(image[k]->data - memory);

				assert_true(image[k]->data >= memory && at < bytes);
				assert_int_equal(at % STRIDE, 0);
				used |= 1u << at / STRIDE;
				check_bytes(image[k]);
				taken++;
			}
			gdrcap_image_release(images, image, (unsigned int)n);
		}
		assert_int_equal(n, -ESHUTDOWN);
		assert_true(taken >= RING);
		assert_int_equal(used, (1u << RING) - 1);
		api_stop(session);
		gdrcap_destroy(session);
		check_between(memory);
	}
	/* Images were here, and it is still ours. */
	memset(memory, 0, bytes);
	memory_unmap(memory, bytes);
}

/* It is not cleared, and by `fill: none` what did not come is as it was. */
static void as_it_was(void **state)
{
	const size_t bytes = RING * STRIDE;
	uint8_t *memory = memory_map(bytes);
	struct gdrcap_config *config API_FREED = NULL;
	struct gdrcap_session *session;

	(void)state;
	images_config(&config, "host", 10, RING);
	api_set(config, "image",
		"{base: frame, kind: {at: 14, bytes: 2}, data: {kind: 0x6743, payload: 50}, "
		"number: {at: 22, bytes: 8, divide: 64}, index: {at: 22, bytes: 8, modulo: 64}, "
		"piece: %u, pieces: %u, ring: %u, fill: none}",
		PIECE, PIECES, RING);
	set_memory(config, memory, bytes, STRIDE);
	session = api_create(config);
	api_start(session);
	api_wait_end(session);
	api_stop(session);
	for (size_t slot = 0; slot < RING; slot++)
		for (size_t at = slot ? 0 : 10 * PIECE; at < STRIDE; at++)
			assert_int_equal(memory[slot * STRIDE + at], GUARD);
	gdrcap_destroy(session);
	memory_unmap(memory, bytes);
}

static void refused(void **state)
{
	const size_t bytes = RING * STRIDE;
	uint8_t *memory = memory_map(bytes);
	struct gdrcap_config *config API_FREED = NULL;

	(void)state;
	images_config(&config, "host", 10, RING);
	set_memory(config, memory + 32, bytes, STRIDE);
	api_create_fails(config, -EINVAL, "multiples of 64");
	set_memory(config, memory, bytes, STRIDE + 32);
	api_create_fails(config, -EINVAL, "multiples of 64");
	set_memory(config, memory, bytes, (BYTES - 1) / 64 * 64);
	api_create_fails(config, -EINVAL, "less than an image's 9344 bytes");
	set_memory(config, memory, bytes, 0);
	api_create_fails(config, -EINVAL, "stride 0");
	set_memory(config, memory, bytes - 1, STRIDE);
	api_create_fails(config, -EINVAL, "are 3 buffers for 'own', and ring: is 4");
	set_memory(config, memory, UINT64_MAX / 64 * 64, STRIDE * 2);
	api_create_fails(config, -EFAULT, "is not all there");
	set_memory(config, memory, bytes, STRIDE);
	assert_int_equal(gdrcap_config_set_image_memory(config, 1, memory, bytes, STRIDE), 0);
	api_create_fails(config, -EINVAL, "images of description 1, and there are 1");
	assert_int_equal(
		gdrcap_config_add(config, "image", "gvsp,bytes=4096,piece=1024,ring=4", NULL), 0);
	api_create_fails(config, -EINVAL, "the same memory");
	assert_int_equal(
		gdrcap_config_set_image_memory(config, GDRCAP_IMAGES_MAX, memory, bytes, STRIDE),
		-EINVAL);
	assert_int_equal(gdrcap_config_set_image_memory(NULL, 0, memory, bytes, STRIDE), -EINVAL);
	memory_unmap(memory, bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte),
		cmocka_unit_test(as_it_was),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
