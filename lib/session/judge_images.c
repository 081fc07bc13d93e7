/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run says of its images that their counts alone do not. */
#include "base/log.h"
#include "session/session.h"

void session_images_judge(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->images.count; i++) {
		const char *name = session->settings.image[i].name;
		struct gdrcap_image_counts counts;

		if (gdrcap_get_image_counts(session, i, &counts, sizeof(counts)) < 0)
			return;
		if (counts.restarts)
			session_message(
				session, GDRCAP_LOG_WARNING,
				"images '%s': numbers went back, or more than %u ahead, times: %llu; a sender began anew, or what was between is lost "
				"and not in skipped",
				name, ASSEMBLER_JUMP, (unsigned long long)counts.restarts);
		if (counts.misfit)
			session_message(
				session, GDRCAP_LOG_WARNING,
				"images '%s': frames that match and do not fit the layout: %llu; nothing of them is in an image; compare piece, bytes "
				"and data.payload with what the sender sends",
				name, (unsigned long long)counts.misfit);
	}
}
