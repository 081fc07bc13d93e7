/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU backend places images: each byte, each bit, each count, through real burst rings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "place_rig.h"

static struct place_rig rig;
static struct wire wire;

/* The image in `slot` is `number`'s, whole; its padding was not written. */
static void assert_image(const struct place_view *view, uint32_t slot, uint64_t number)
{
	const struct image_layout *layout = &view->layout;
	const uint8_t *image = rig_image(view, slot);

	for (uint64_t i = 0; i < layout->bytes; i++) {
		const uint8_t want =
			i % layout->pitch < layout->row_bytes ? wire_pixel(number, i) : 0xa5;

		if (image[i] != want)
			fail_msg("image %llu, byte %llu: %02x, not %02x",
				 (unsigned long long)number, (unsigned long long)i, image[i], want);
	}
	for (uint32_t p = 0; p < layout->pieces; p++)
		assert_true(rig_present(view, view->present, slot, p));
}

static void test_gvsp_images(void **state)
{
	const struct image_layout layout = wire_layout_gvsp(10000, 1364);

	rig_create(&rig, &layout, 8, 2);
	for (uint64_t block = 65534; block < 65534 + 4; block++) {
		const uint64_t number = block > 65535 ? block - 65535 : block;

		for (uint32_t id = 0; id < layout.pieces + 2; id++) {
			wire_gvsp_packet(&wire, &layout, 0, number, id);
			rig_wire(&rig, &wire);
		}
	}
	rig_flush(&rig);
	assert_int_equal(rig_frames(&rig, PLACE_PLACED), 4 * (layout.pieces + 2));
	for (uint32_t s = 0; s < 4; s++) {
		const struct place_head *head = &rig.view[0].shared->head[s];
		const struct rig_sums sums = rig_sums(&rig, s, 1);
		const uint64_t number = s > 1 ? s - 1 : 65534 + s;

		assert_int_equal(head->number, 65534 + s);
		assert_int_equal(head->timestamp, 1000 * number);
		assert_int_equal(head->fields[0], 640);
		assert_int_equal(head->fields[1], 480);
		assert_int_equal(sums.bytes, 10000);
		assert_int_equal(sums.pieces, layout.pieces);
		assert_int_equal(sums.expected, layout.pieces);
		assert_int_equal(sums.ends, 1);
		assert_image(&rig.view[0], s, number);
	}
	rig_destroy(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gvsp_images),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
