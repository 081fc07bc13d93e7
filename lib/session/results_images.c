/* SPDX-License-Identifier: BSD-3-Clause */
/* What a session tells of its images. */
#include "session/answer.h"
#include "session/session.h"

/* The accountant's, which stands still until it is returned; NULL after the last, and nothing is to be
 * returned. */
static const struct assembler *assembler_borrow(const struct gdrcap_session *session,
						uint32_t index)
{
	if (index >= session->images.count)
		return NULL;
	(void)accountant_borrow((struct accountant *)(uintptr_t)&session->workers.accountant);
	return &session->images.handed[index].assembler;
}

static void assembler_return(const struct gdrcap_session *session)
{
	accountant_return((struct accountant *)(uintptr_t)&session->workers.accountant);
}

int gdrcap_get_image_counts(const struct gdrcap_session *session, uint32_t index,
			    struct gdrcap_image_counts *counts, size_t size)
{
	const int ret = answer_check(session, "session", counts, size);
	const struct assembler *assembler;
	struct gdrcap_image_counts all;

	if (ret < 0)
		return ret;
	assembler = assembler_borrow(session, index);
	if (!assembler)
		return -ENOENT;
	assembler_counts(assembler, &all);
	assembler_return(session);
	answer_give(counts, size, &all, sizeof(all));
	return 0;
}

uint64_t session_images_complete(const struct gdrcap_session *session)
{
	struct gdrcap_image_counts counts;
	uint64_t complete = 0;

	for (uint32_t i = 0; gdrcap_get_image_counts(session, i, &counts, sizeof(counts)) == 0; i++)
		complete += counts.complete;
	return complete;
}

int gdrcap_get_image_stream(const struct gdrcap_session *session, uint32_t index, uint32_t stream,
			    uint64_t *id, struct gdrcap_image_counts *counts, size_t size)
{
	const struct assembler *assembler;
	struct gdrcap_image_counts all;
	int ret = answer_check(session, "session", counts, size);

	if (ret < 0 || !id)
		return ret < 0 ? ret : -EINVAL;
	assembler = assembler_borrow(session, index);
	if (!assembler)
		return -ENOENT;
	ret = assembler_stream_counts(assembler, stream, id, &all);
	assembler_return(session);
	if (ret == 0)
		answer_give(counts, size, &all, sizeof(all));
	return ret;
}

int gdrcap_get_refused(const struct gdrcap_session *session, uint32_t index, uint32_t n,
		       struct gdrcap_refused *refused, size_t size)
{
	int ret = answer_check(session, "session", refused, size);
	const struct assembler *assembler;
	struct gdrcap_refused all = { 0 };
	uint32_t at = 0;

	if (ret < 0)
		return ret;
	assembler = assembler_borrow(session, index);
	if (!assembler)
		return -ENOENT;
	for (uint32_t i = 0; i <= n && ret == 0; i++)
		ret = assembler_refused(assembler, &at, &all);
	assembler_return(session);
	if (ret == 0)
		answer_give(refused, size, &all, sizeof(all));
	return ret;
}

int gdrcap_get_conflict(const struct gdrcap_session *session, uint32_t index, uint32_t n,
			struct gdrcap_conflict *conflict, size_t size)
{
	int ret = answer_check(session, "session", conflict, size);
	const struct assembler *assembler;
	struct gdrcap_conflict all = { 0 };
	uint32_t at = 0;

	if (ret < 0)
		return ret;
	assembler = assembler_borrow(session, index);
	if (!assembler)
		return -ENOENT;
	for (uint32_t i = 0; i <= n && ret == 0; i++)
		ret = assembler_conflict(assembler, &at, &all);
	assembler_return(session);
	if (ret == 0)
		answer_give(conflict, size, &all, sizeof(all));
	return ret;
}

int gdrcap_get_incomplete(const struct gdrcap_session *session, uint32_t index, uint32_t n,
			  struct gdrcap_incomplete *incomplete, size_t size)
{
	const struct assembler *assembler;
	int ret = answer_check(session, "session", incomplete, size);

	if (ret < 0)
		return ret;
	assembler = assembler_borrow(session, index);
	if (!assembler)
		return -ENOENT;
	ret = n < assembler->incomplete_count ? 0 : -ENOENT;
	if (ret == 0)
		answer_give(incomplete, size, &assembler->incomplete[n],
			    sizeof(assembler->incomplete[n]));
	assembler_return(session);
	return ret;
}
