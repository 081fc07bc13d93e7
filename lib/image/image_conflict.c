/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames for places that were filled, in words. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "image/assembler_internal.h"

static void sender_text(const struct image_sender *sender, char *to, size_t bytes)
{
	const int family = sender->ip_bytes == 4 ? AF_INET : AF_INET6;
	const uint8_t *mac = sender->mac;
	char vlan[16] = "", ip[INET6_ADDRSTRLEN + 3] = "", port[8] = "";

	if (sender->tagged)
		snprintf(vlan, sizeof(vlan), " vlan %u", sender->vlan);
	if (sender->ip_bytes)
		inet_ntop(family, sender->ip, ip, sizeof(ip));
	if (sender->port)
		snprintf(port, sizeof(port), ":%u", sender->port);
	snprintf(to, bytes, "%02x:%02x:%02x:%02x:%02x:%02x%s%s%s%s%s%s", mac[0], mac[1], mac[2],
		 mac[3], mac[4], mac[5], vlan, ip[0] ? " " : "",
		 sender->ip_bytes == 16 && port[0] ? "[" : "", ip,
		 sender->ip_bytes == 16 && port[0] ? "]" : "", port);
}

bool assembler_is_alien(const struct assembler *assembler, struct assembler_stream *stream,
			const struct place_head *head)
{
	if (assembler->config.view->layout.legs != 1)
		return false;
	if (!stream->has_sender || stream->sender_silences != stream->silences) {
		stream->sender = head->sender;
		stream->sender_silences = stream->silences;
		stream->has_sender = true;
		return false;
	}
	if (memcmp(&stream->sender, &head->sender, sizeof(head->sender)) == 0)
		return false;
	if (!stream->has_other) {
		stream->other = head->sender;
		stream->other_number = head->number;
		stream->has_other = true;
	}
	return true;
}

int assembler_conflict(const struct assembler *assembler, uint32_t *at,
		       struct gdrcap_conflict *conflict)
{
	for (; *at < assembler->streams; ++*at) {
		const struct assembler_stream *stream = &assembler->stream[*at];
		const struct place_conflict *note = &assembler->config.view->shared->conflict[*at];

		/* partner: place_note_conflict() */
		const bool noted = __atomic_load_n(&note->noted, __ATOMIC_ACQUIRE);

		if (!stream->counts.conflict || (!noted && !stream->has_other))
			continue;
		*conflict = (struct gdrcap_conflict){
			.frames = stream->counts.conflict,
			.stream_id = stream->id,
			.number = noted ? note->number : stream->other_number,
			.stream = *at,
			.other_bytes = noted ? (int)note->bytes : 0,
		};
		sender_text(noted ? &note->first : &stream->sender, conflict->first,
			    sizeof(conflict->first));
		sender_text(noted ? &note->second : &stream->other, conflict->second,
			    sizeof(conflict->second));
		++*at;
		return 0;
	}
	return -ENOENT;
}
