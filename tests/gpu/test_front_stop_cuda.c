/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The front on a GPU stops: when it is told to, in whatever it does, and at what a broken card completes.
 * Usage: test_front_stop_cuda. 77 without a GPU.
 */
#include "front_scene.h"

#define FAULT_AT 777u

/* Until the front says that it failed, or nothing comes for long. */
static bool wait_for_failure(struct fronts *fronts, struct fronts_counts *counts)
{
	const time_t until = time(NULL) + HANG_SECONDS;

	while (__atomic_load_n(&fronts_status(fronts, 0)->state, __ATOMIC_ACQUIRE) !=
	       FRONT_FAILED) {
		fronts_collect(fronts, counts);
		if (time(NULL) > until)
			return false;
	}
	while (fronts_collect(fronts, counts))
		;
	return true;
}

/* What was before the completion is published, checked and counted; it is told, and what follows is
 * counted as flushed. */
static bool test_fault(enum card_fault fault, enum cq_kind kind, uint32_t batch,
		       uint32_t stride_shift)
{
	const struct card_queue card = {
		.batch = batch, .ragged = 1, .limit = 5000, .fault = fault, .fault_at = FAULT_AT
	};
	struct fronts_config config = usual(&card);
	const struct front_status *status;
	struct fronts_counts counts = { 0 };
	struct gdrcap_error error = { 0 };
	struct fronts *fronts;
	char what[64];

	config.stride_shift = stride_shift;
	fronts = opened(&config);
	CHECK(fronts && fronts_begin(fronts, &error) == 0);
	CHECK(wait_for_failure(fronts, &counts));
	CHECK(fronts_card_stop(fronts) == 0);
	CHECK(wait_for_card(fronts));
	CHECK(fronts_end(fronts, FRONT_DRAIN, STOP_MS) == 0);
	while (fronts_collect(fronts, &counts))
		;
	snprintf(what, sizeof(what), "fault %d, batches of %u, %u strides", fault, batch,
		 1u << stride_shift);
	print(what, fronts, &counts);
	status = fronts_status(fronts, 0);
	CHECK(status->state == FRONT_ENDED && status->fault.kind == kind);
	CHECK(status->fault.index == FAULT_AT && status->fault.next == FAULT_AT);
	CHECK(status->frames == counts.frames && status->bursts == counts.bursts);
	/* what is not in the last word is looked at after the turn has gone on: what was under way then is checked, too */
	if (kind == CQ_LENGTH || fault == CARD_ODD_ENTRY || fault == CARD_FILLER)
		CHECK(counts.frames > FAULT_AT && counts.damaged == 1);
	else
		CHECK(counts.frames == FAULT_AT && counts.damaged == 0);
	CHECK(counts.validated == counts.frames - counts.damaged && counts.gaps == 0);
	CHECK(status->next == fronts_card(fronts, 0)->completed);
	fronts_close(fronts);
	return true;
}

/* After an error completion the queue is reset under the checkers: what comes then is received as before, and what is
 * lost are the frames that the card had completed behind the error. */
static bool test_restart(uint32_t stride_shift)
{
	const struct card_queue card = { .batch = 50,
					 .ragged = 1,
					 .limit = 40000,
					 .fault = CARD_ERROR,
					 .fault_at = 3 * 1024 + 100 };
	struct fronts_config config = usual(&card);
	struct fronts_counts counts = { 0 };
	struct gdrcap_error error = { 0 };
	uint64_t lost, before;
	struct fronts *fronts;

	config.stride_shift = stride_shift;
	fronts = opened(&config);
	CHECK(fronts && fronts_begin(fronts, &error) == 0);
	CHECK(wait_for_failure(fronts, &counts) && wait_for_card(fronts));
	CHECK(fronts_end(fronts, FRONT_DRAIN, STOP_MS) == 0);
	/* freed, and told a moment later */
	CHECK(collect_until(fronts, card.fault_at, &counts));
	before = counts.frames;
	CHECK(before == card.fault_at);
	lost = fronts_card(fronts, 0)->wire - before;
	CHECK(lost > 0 && lost <= card.batch);
	CHECK(fronts_restart(fronts, &error) == 0 && fronts_begin(fronts, &error) == 0);
	CHECK(collect_until(fronts, card.limit - lost, &counts) && wait_for_card(fronts));
	CHECK(fronts_end(fronts, FRONT_DRAIN, STOP_MS) == 0);
	print("restart", fronts, &counts);
	CHECK(counts.frames == card.limit - lost && counts.validated == counts.frames);
	CHECK(counts.gaps == lost && fronts_card(fronts, 0)->wire == card.limit);
	CHECK(fronts_status(fronts, 0)->frames == counts.frames - before);
	fronts_close(fronts);
	return true;
}

/* Before anything came. */
static bool test_stop_idle(enum front_phase phase)
{
	const struct card_queue card = { .batch = 64 };
	const struct fronts_config config = usual(&card);
	struct fronts *fronts = opened(&config);

	CHECK(fronts);
	CHECK(fronts_end(fronts, phase, STOP_MS) == 0);
	CHECK(fronts_status(fronts, 0)->state == FRONT_ENDED);
	CHECK(fronts_status(fronts, 0)->frames == 0 && fronts_status(fronts, 0)->bursts == 0);
	fronts_close(fronts);
	return true;
}

/* While the card goes on: what was published is freed, and nothing is half done. */
static bool test_stop_loaded(enum front_phase phase, bool collects)
{
	const struct card_queue card = { .batch = 64, .ragged = 1, .loses = 1 };
	const struct fronts_config config = usual(&card);
	const struct front_status *status;
	struct fronts_counts counts = { 0 };
	struct gdrcap_error error = { 0 };
	struct fronts *fronts = opened(&config);

	CHECK(fronts && fronts_begin(fronts, &error) == 0);
	status = fronts_status(fronts, 0);
	while (__atomic_load_n(&status->frames, __ATOMIC_RELAXED) < 3000)
		if (collects)
			fronts_collect(fronts, &counts);
	if (phase == FRONT_DRAIN)
		CHECK(fronts_card_stop(fronts) == 0);
	CHECK(fronts_end(fronts, phase, STOP_MS) == 0);
	CHECK(fronts_card_stop(fronts) == 0);
	CHECK(collect_until(fronts, status->frames, &counts));
	print(phase == FRONT_DRAIN ? "drained" : "left", fronts, &counts);
	CHECK(status->state == FRONT_ENDED && status->fault.kind == CQ_NONE);
	CHECK(counts.frames == status->frames && counts.bursts == status->bursts);
	CHECK(counts.validated == counts.frames);
	CHECK(phase != FRONT_DRAIN || counts.frames == fronts_card(fronts, 0)->completed);
	fronts_close(fronts);
	return true;
}

/* A card that does not keep its side of ARRIVED is found out: so what the other tests say is worth something. */
static bool test_disordered_card(enum card_fault fault)
{
	const struct card_queue card = { .batch = 200, .limit = 20000, .fault = fault };
	const struct fronts_config config = usual(&card);
	struct fronts_counts counts = { 0 };
	struct gdrcap_error error = { 0 };
	struct fronts *fronts = opened(&config);
	const struct front_status *status;
	const time_t until = time(NULL) + HANG_SECONDS;

	CHECK(fronts && fronts_begin(fronts, &error) == 0);
	status = fronts_status(fronts, 0);
	/* it may stop the front, too */
	while (!fronts_are_through(fronts) &&
	       __atomic_load_n(&status->state, __ATOMIC_ACQUIRE) != FRONT_FAILED) {
		fronts_collect(fronts, &counts);
		CHECK(time(NULL) <= until);
	}
	CHECK(fronts_card_stop(fronts) == 0);
	print(fault == CARD_EARLY ? "early card" : "torn completions", fronts, &counts);
	CHECK(counts.validated < counts.frames || status->state == FRONT_FAILED);
	fronts_close(fronts);
	return true;
}

int main(void)
{
	bool good;
	int ret;

	if (!open_bench(&ret))
		return ret;
	good = make_list() && test_stop_idle(FRONT_DRAIN) && test_stop_idle(FRONT_LEAVE) &&
	       test_stop_loaded(FRONT_DRAIN, true) && test_stop_loaded(FRONT_LEAVE, false) &&
	       test_fault(CARD_ERROR, CQ_ERROR, 1, 0) && test_fault(CARD_ERROR, CQ_ERROR, 64, 0) &&
	       test_fault(CARD_ODD_COUNTER, CQ_ORDER, 1, 0) &&
	       test_fault(CARD_ODD_COUNTER, CQ_ORDER, 300, 0) &&
	       test_fault(CARD_TOO_LONG, CQ_LENGTH, 1, 0) &&
	       test_fault(CARD_TOO_LONG, CQ_LENGTH, 300, 0) &&
	       test_fault(CARD_ERROR, CQ_ERROR, 64, 4) &&
	       test_fault(CARD_ODD_COUNTER, CQ_ORDER, 300, 4) &&
	       test_fault(CARD_ODD_ENTRY, CQ_ORDER, 1, 4) &&
	       test_fault(CARD_ODD_ENTRY, CQ_ORDER, 300, 4) &&
	       test_fault(CARD_FILLER, CQ_FILLER, 300, 4) && test_restart(0) && test_restart(4) &&
	       test_disordered_card(CARD_EARLY) && test_disordered_card(CARD_TORN);
	printf("%s\n", good ? "PASS" : "FAIL");
	free(list_bytes);
	if (good)
		kernel_cuda_ops.close(bench.device);
	return good ? 0 : 1;
}
