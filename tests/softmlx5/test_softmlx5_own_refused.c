/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues of our own that cannot be made: what is told, and that nothing stays. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "device.h"
#include "nic.h"
#include "own_rig.h"

#define SLOTS 64u
#define SMALL_SHIFT 8u

static uint32_t objects(void)
{
	const struct soft_device *device = &soft_devices[1];
	uint32_t count = 0;

	nic_lock();
	for (uint32_t i = 0; i < SOFT_OBJECTS_MAX; i++)
		count += (device->cqs[i] != NULL) + (device->rqs[i] != NULL);
	for (uint32_t i = 0; i < SOFT_Q_COUNTERS; i++)
		count += device->q_counters[i] != NULL;
	nic_unlock();
	return count;
}

/* Whatever step fails, it is told and nothing stays. */
static void every_step_is_refused(void **state)
{
	static const struct {
		const char *knob, *says;
	} steps[] = {
		{ "1.refuse_umem=1", "the memory of a receive queue" },
		{ "1.refuse_umem=2", "the memory of a completion queue" },
		{ "1.refuse_object=1", "refuses to make a completion queue" },
		{ "1.refuse_object=2", "refuses to make a queue counter" },
		{ "1.refuse_object=3", "refuses to make a receive queue" },
	};
	struct own_rig *rig = *state;
	const uint32_t before = objects();
	struct gdrcap_error error;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		memset(&error, 0, sizeof(error));
		own_rig_faults("refuse_umem=off,refuse_object=off");
		own_rig_faults(steps[i].knob);
		assert_true(own_rig_queue(rig, 0, SLOTS, SMALL_SHIFT, &error) < 0);
		if (!strstr(error.text, steps[i].says) || !strstr(error.text, OWN_RECEIVER))
			fail_msg("%s", error.text);
		if (strstr(steps[i].knob, "object"))
			assert_non_null(strstr(error.text, "syndrome 0x50f7"));
		assert_int_equal(objects(), before);
		assert_null(rig->queue[0].rx.config.card);
	}
	own_rig_faults("refuse_umem=off,refuse_object=off");
	assert_int_equal(own_rig_queue(rig, 0, SLOTS, SMALL_SHIFT, &error), 0);
}

static void sizes_are_refused(void **state)
{
	const uint32_t slots[] = { 0, 3, 65536 };
	struct own_rig *rig = *state;
	struct gdrcap_error error;

	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(own_rig_queue(rig, 0, slots[i], SMALL_SHIFT, &error), -EINVAL);
		assert_non_null(strstr(error.text, "power of two"));
	}
	/* A port of the driver's own context takes no rule to a queue of ours. */
	assert_int_equal(own_rig_queue(rig, 0, SLOTS, SMALL_SHIFT, &error), 0);
	assert_int_equal(own_rx_destroy(&rig->queue[0].rx, &error), 0);
	rig->port[1].id = rig->port[0].id;
	assert_int_equal(own_rig_queue(rig, 0, SLOTS, SMALL_SHIFT, &error), -ENOTSUP);
	rig->port[1].id = 1;
	assert_non_null(strstr(error.text, "leave the queues to the driver"));
}

/* What the card does not make, and says so, is not asked of it; else the card's word counts. */
static void strides_are_refused(void **state)
{
	static const struct {
		uint32_t strides, shift, log_min;
		int ret;
		const char *says;
	} rows[] = {
		{ 16, SMALL_SHIFT, 3, 0, "" },
		{ 1, OWN_SLOT_SHIFT, 0, 0, "" },
		{ 48, SMALL_SHIFT, 3, -EINVAL, "64 slots with 48 a work entry" },
		{ 32, SMALL_SHIFT, 3, -EINVAL, "a power of two up to 16" },
		{ 4, SMALL_SHIFT, 3, -ENOTSUP, "4 frames a work entry; the card takes 8 to 65536" },
		{ 16, SMALL_SHIFT, 9, -ENOTSUP, "the card takes 512 to 65536, or one" },
		{ 16, OWN_SLOT_SHIFT, 3, -ENOTSUP, "slots of 16384 bytes" },
		{ 16, SMALL_SHIFT, 0, -ENOTSUP, "no receive queues with several frames" },
	};
	struct own_rig *rig = *state;
	const uint32_t before = objects();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gdrcap_error error = { 0 };

		rig->card.strides.frames_min = (uint8_t)rows[i].log_min;
		rig->card.strides.frames_max = rows[i].log_min ? 16 : 0;
		rig->strides = rows[i].strides;
		assert_int_equal(own_rig_queue(rig, 0, SLOTS, rows[i].shift, &error), rows[i].ret);
		if (!strstr(error.text, rows[i].says))
			fail_msg("%s", error.text);
		if (rows[i].ret == 0)
			assert_int_equal(own_rx_destroy(&rig->queue[0].rx, &error), 0);
		assert_int_equal(objects(), before);
	}
	rig->card.strides.frames_min = 3;
	rig->card.strides.frames_max = 16;
	rig->strides = 0;
}

static void arguments_are_refused(void **state)
{
	struct own_rig *rig = *state;
	struct gdrcap_error error;
	char out[128];

	assert_int_equal(devx_devargs(&rig->card, OWN_RECEIVER, out, 20, &error), -ENAMETOOLONG);
	assert_int_equal(
		devx_devargs(&rig->card, OWN_RECEIVER ",dv_flow_en=0x1", out, sizeof(out), &error),
		0);
	devx_probed(&rig->card, false);
}

static uint32_t descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	uint32_t count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* What a driver was not handed, or did not want, is closed. */
static void descriptors_are_closed(void **state)
{
	const uint32_t before = descriptors();
	struct connectx_card found;
	struct devx_card card;
	struct gdrcap_error error = { 0 };
	struct port port;
	char out[128];

	assert_int_equal(connectx_find(&found, "0000:aa:00.3", NULL, &error), 0);
	for (uint32_t i = 0; i < 3; i++) {
		if (devx_open(&card, &found, "mlx5_3", &error) < 0)
			fail_msg("%s", error.text);
		assert_int_equal(
			devx_devargs(&card, "0000:aa:00.3,nonsense=1", out, sizeof(out), &error),
			0);
		/* The driver closes it, EAL never asks the driver, nobody tries. */
		if (i == 0)
			assert_true(port_open(&port, out, "mlx5_3", &error) < 0);
		if (i < 2)
			devx_probed(&card, false);
		devx_close(&card);
		assert_null(card.context);
		assert_int_equal(descriptors(), before);
	}
	devx_close(&card);
}

/* What a queue names stays as long as the queue. */
static void order_of_the_end(void **state)
{
	struct own_rig *rig = *state;
	struct own_rx *rx = &rig->queue[0].rx;
	struct gdrcap_error error = { 0 };

	assert_int_equal(own_rig_queue(rig, 0, SLOTS, SMALL_SHIFT, &error), 0);
	assert_int_equal(devx_destroy(&rig->card, &rx->cq_object, "a completion queue", &error),
			 -EBUSY);
	assert_non_null(strstr(error.text, "cannot destroy a completion queue"));
	assert_int_equal(devx_destroy(&rig->card, &rx->counter, "a queue counter", &error), -EBUSY);
	assert_non_null(rx->counter.handle);
	assert_int_equal(own_rx_destroy(rx, &error), 0);
}

/* Rules reach the queues of the context that the driver was handed, and of no other. */
static void another_context(void **state)
{
	struct own_rig *rig = *state;
	const struct devx_card handed = rig->card;
	const struct frame_match every = { 0 };
	struct steering_config config = { .port = rig->port[1].id,
					  .name = OWN_RECEIVER,
					  .first_queue = OWN_RX_FLOW_QUEUE(0),
					  .queues = 1,
					  .match = &every };
	struct connectx_card found;
	struct steering steering;
	struct gdrcap_error error = { 0 };

	assert_int_equal(connectx_find(&found, OWN_RECEIVER, NULL, &error), 0);
	assert_int_equal(devx_open(&rig->card, &found, OWN_RECEIVER, &error), 0);
	assert_int_equal(own_rig_queue(rig, 0, SLOTS, SMALL_SHIFT, &error), 0);
	assert_true(steering_create(&steering, &config, &error) < 0);
	assert_int_equal(own_rx_destroy(&rig->queue[0].rx, &error), 0);
	devx_close(&rig->card);
	rig->card = handed;
	assert_null(ibv_import_device(STDIN_FILENO));
	assert_null(ibv_import_pd(rig->card.context, UINT16_MAX));
}

static void no_such_device(void **state)
{
	struct connectx_card found = { .rdma = "mlx5_77" };
	struct gdrcap_error error = { 0 };
	struct devx_card card;

	assert_int_equal(devx_open(&card, &found, "mlx5_77", &error), -ENODEV);
	assert_non_null(strstr(error.text, "mlx5_ib"));
}

/* A card, or firmware, that takes no commands. */
static void verbs_device_is_refused(void **state)
{
	struct gdrcap_error error = { 0 };
	struct connectx_card found;
	struct devx_card card;

	assert_int_equal(connectx_find(&found, OWN_RECEIVER, NULL, &error), 0);
	assert_int_equal(devx_open(&card, &found, OWN_RECEIVER, &error), -ENOTSUP);
	if (!strstr(error.text, "DevX") || !strstr(error.text, "leave the queues to the driver"))
		fail_msg("%s", error.text);
	assert_null(card.context);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest verbs[] = {
		cmocka_unit_test(verbs_device_is_refused),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_step_is_refused, own_rig_reset),
		cmocka_unit_test_teardown(sizes_are_refused, own_rig_reset),
		cmocka_unit_test_teardown(strides_are_refused, own_rig_reset),
		cmocka_unit_test_teardown(arguments_are_refused, own_rig_reset),
		cmocka_unit_test_teardown(descriptors_are_closed, own_rig_reset),
		cmocka_unit_test_teardown(order_of_the_end, own_rig_reset),
		cmocka_unit_test_teardown(another_context, own_rig_reset),
		cmocka_unit_test(no_such_device),
	};

	own_rig_init(argc, argv);
	if (argc > 1 && strcmp(argv[1], "verbs") == 0)
		return cmocka_run_group_tests(verbs, NULL, NULL);
	return cmocka_run_group_tests(tests, own_rig_setup, own_rig_teardown);
}
