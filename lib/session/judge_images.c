/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run says of its images that their counts alone do not. */
#include <string.h>

#include "base/log.h"
#include "session/session.h"

/* Filtered frames are others', but for what this program does not handle. */
static bool is_worth_a_word(const struct gdrcap_refused *refused)
{
	static const char *const reasons[] = { "tag", "fragment", "gvsp_format" };

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(refused->reason, reasons[i]) == 0)
			return true;
	return refused->misfit;
}

static void refused_judge(struct gdrcap_session *session, uint32_t index, const char *name)
{
	struct gdrcap_refused refused;

	for (uint32_t n = 0; !gdrcap_get_refused(session, index, n, &refused, sizeof(refused)); n++)
		if (is_worth_a_word(&refused))
			session_message(session, GDRCAP_LOG_WARNING,
					"images '%s': %llu frames %s%s", name,
					(unsigned long long)refused.frames, refused.text,
					refused.misfit ? " (they do not fit the layout)" : "");
}

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
		refused_judge(session, i, name);
	}
}
