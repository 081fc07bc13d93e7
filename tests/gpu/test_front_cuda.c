/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The front on a GPU, with its checkers, and a kernel that plays the card: frames of all lengths over many laps,
 * planted errors, an accountant that is late, slots on lease.
 * Usage: test_front_cuda [FRAMES]. 77 without a GPU.
 */
#include "front_scene.h"

static uint64_t frames_wanted = 300000;

/* All lengths, wraps of slots, queue and ring, batches of all sizes; nothing is lost or wrong. */
static bool test_lengths(uint32_t slots, uint32_t burst, uint32_t warps, uint32_t batch,
			 uint32_t pause_ns, uint32_t stride_shift)
{
	const struct card_queue card = {
		.batch = batch, .ragged = 1, .limit = frames_wanted, .pause_ns = pause_ns
	};
	struct fronts_config config = usual(&card);
	struct fronts_counts counts = { 0 };
	struct gdrcap_error error = { 0 };
	struct fronts *fronts;
	char what[64];

	config.slots = slots;
	config.burst = burst;
	config.warps = warps;
	config.stride_shift = stride_shift;
	snprintf(what, sizeof(what), "lengths %u/%u/%u/%u/%u", slots, burst, warps, batch,
		 1u << stride_shift);
	fronts = opened(&config);
	CHECK(fronts);
	if (fronts_play(fronts, 0, &counts, &error) < 0)
		fprintf(stderr, "FAIL: play: %s\n", error.text);
	print(what, fronts, &counts);
	CHECK(counts.frames == frames_wanted && counts.validated == frames_wanted);
	CHECK(counts.gaps == 0 && counts.damaged == 0);
	CHECK(fronts_end(fronts, FRONT_DRAIN, STOP_MS) == 0);
	CHECK(fronts_status(fronts, 0)->state == FRONT_ENDED);
	CHECK(fronts_status(fronts, 0)->frames == frames_wanted);
	CHECK(fronts_status(fronts, 0)->bursts == counts.bursts);
	CHECK(fronts_status(fronts, 0)->fault.kind == CQ_NONE);
	fronts_close(fronts);
	return true;
}

/* One bit of some frames of the list is wrong: exactly these are found, and what is wrong of them. */
static bool test_planted(uint32_t stride_shift)
{
	const struct card_queue card = { .batch = 300, .ragged = 1, .limit = frames_wanted };
	struct fronts_config config = usual(&card);
	struct fronts_counts counts = { 0 };
	struct gdrcap_error error = { 0 };
	struct fronts *fronts;
	uint64_t wrong = 0;

	config.stride_shift = stride_shift;
	for (uint32_t i = 5; i < LIST; i += 41)
		list_bytes[(size_t)list[i].at * 16 + list[i].len - 1 - i % 5] ^= 1u << i % 8;
	for (uint64_t w = 0; w < frames_wanted; w++)
		wrong += w % LIST >= 5 && (w % LIST - 5) % 41 == 0;
	fronts = opened(&config);
	CHECK(fronts);
	CHECK(fronts_play(fronts, 0, &counts, &error) == 0);
	print("planted", fronts, &counts);
	CHECK(counts.frames == frames_wanted && counts.validated == frames_wanted - wrong);
	CHECK(counts.damaged == wrong && counts.wrong_bits == wrong && counts.gaps == 0);
	fronts_close(fronts);
	for (uint32_t i = 5; i < LIST; i += 41)
		list_bytes[(size_t)list[i].at * 16 + list[i].len - 1 - i % 5] ^= 1u << i % 8;
	return true;
}

/* All that is lost is the card's out_of_buffer, and what is not lost is right. */
static bool loss_is_exact(const struct fronts *fronts, const struct fronts_counts *counts)
{
	const struct card_counts *card = fronts_card(fronts, 0);

	CHECK(card->over && counts->frames == card->completed);
	CHECK(card->wire == card->completed + card->out_of_buffer);
	CHECK(counts->validated == counts->frames && counts->damaged == 0);
	/* frames that were lost behind the last that came leave no gap */
	CHECK(counts->frames + counts->gaps <= card->wire);
	CHECK(counts->gaps <= card->out_of_buffer);
	return true;
}

/* ROOM: nobody reads verdicts until the card has sent all. No verdict is overwritten, no frame either. */
static bool test_late_accountant(uint32_t stride_shift)
{
	const struct card_queue card = { .batch = 8, .loses = 1, .limit = 100000 };
	struct fronts_config config = usual(&card);
	struct fronts_counts counts = { 0 };
	struct gdrcap_error error = { 0 };
	struct fronts *fronts;

	config.burst = 8;
	config.stride_shift = stride_shift;
	fronts = opened(&config);
	CHECK(fronts && fronts_begin(fronts, &error) == 0);
	CHECK(wait_for_card(fronts));
	CHECK(collect_until(fronts, UINT64_MAX, &counts));
	print("late accountant", fronts, &counts);
	CHECK(loss_is_exact(fronts, &counts));
	/* at most the ring's bursts, and the slots behind them */
	CHECK(fronts_card(fronts, 0)->completed <= 1024 * 8 + 1024);
	CHECK(fronts_card(fronts, 0)->out_of_buffer >= 100000 - 1024 * 8 - 1024);
	CHECK(fronts_end(fronts, FRONT_DRAIN, STOP_MS) == 0);
	fronts_close(fronts);
	return true;
}

/* LEASE: slots that are held are not written into, though they are checked and counted. */
static bool test_lease(uint32_t stride_shift)
{
	const struct card_queue card = { .batch = 100, .ragged = 1, .loses = 1 };
	struct fronts_config config = usual(&card);
	struct fronts_counts counts = { 0 };
	struct gdrcap_error error = { 0 };
	const uint8_t *slots;
	struct fronts *fronts;
	uint8_t *copy;
	uint32_t shift;

	config.leased = true;
	config.stride_shift = stride_shift;
	fronts = opened(&config);
	CHECK(fronts && fronts_begin(fronts, &error) == 0);
	CHECK(collect_until(fronts, config.slots, &counts));
	CHECK(fronts_card_stop(fronts) == 0);
	CHECK(fronts_card(fronts, 0)->completed == config.slots);
	print("all leased", fronts, &counts);
	CHECK(loss_is_exact(fronts, &counts) && counts.gaps == 0);
	slots = fronts_slots(fronts, &shift);
	copy = malloc((size_t)config.slots << shift);
	CHECK(copy &&
	      bench.ops->copy_out(bench.device, copy, slots, (size_t)config.slots << shift) == 0);
	for (uint32_t i = 0; i < config.slots; i++)
		CHECK(!memcmp(copy + ((size_t)i << shift), list_bytes + (size_t)list[i].at * 16,
			      list[i].len));
	free(copy);
	__atomic_store_n(&fronts_words(fronts, 0)->lease, UINT64_MAX, __ATOMIC_RELEASE);
	CHECK(fronts_begin(fronts, &error) == 0);
	CHECK(collect_until(fronts, 20 * config.slots, &counts));
	CHECK(fronts_card_stop(fronts) == 0);
	CHECK(collect_until(fronts, UINT64_MAX, &counts));
	print("lease over", fronts, &counts);
	CHECK(loss_is_exact(fronts, &counts));
	fronts_close(fronts);
	return true;
}

int main(int argc, char **argv)
{
	bool good;
	int ret;

	if (!open_bench(&ret))
		return ret;
	if (argc > 1)
		frames_wanted = strtoull(argv[1], NULL, 0);
	good = make_list() && test_lengths(1024, 256, 32, 700, 0, 0) &&
	       test_lengths(64, 32, 3, 64, 0, 0) && test_lengths(256, 64, 8, 3, 2000, 0) &&
	       test_lengths(1024, 256, 32, 700, 0, 8) && test_lengths(64, 32, 3, 64, 0, 4) &&
	       test_lengths(256, 64, 8, 3, 2000, 5) && test_planted(0) && test_planted(4) &&
	       test_late_accountant(0) && test_late_accountant(8) && test_lease(0) && test_lease(6);
	printf("%s\n", good ? "PASS" : "FAIL");
	free(list_bytes);
	if (good)
		kernel_cuda_ops.close(bench.device);
	return good ? 0 : 1;
}
