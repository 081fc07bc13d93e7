/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer: any bytes as a layout of images, and, behind the first zero byte, as a frame of it. The first
 * byte says what stands before the layout's text, so that deep checks are reached, the second whether the
 * frame has UDP around it. A layout that is accepted is the same again from what is kept of it, and
 * makes no part outside of the frame or of the image.
 */
#include <stdlib.h>
#include <string.h>

#include "../unit/image_probe.h"
#include "../unit/image_wire.h"
#include "config/config.h"

#define TEXT_MAX 1500u
#define FRAME_MAX 1500u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char *const beginnings[] = {
	"",
	"gvsp,bytes=8K,piece=64,",
	"rtp-raw,width=16,height=4,sampling=RGB,depth=10,",
	"spead,bytes=8K,",
	"spead,bytes=8000,piece=40,convert=mono10p,",
	"bytes: 8K\npiece: 64\n",
	"bytes: 8K\npiece: 64\nnumber: {at: 0, bytes: 1}\n",
	"bytes: 8K\npiece: 8\nnumber: {at: 0, bytes: 1}\nplace: {at: 1, bytes: 2}\n",
	"parser: spead\nbytes: 8K\nnumber: {item: 1, divide: 3}\nplace:\n- {item: 3}\n- ",
};
#define BEGINNINGS (sizeof(beginnings) / sizeof(beginnings[0]))

static void check_again(const struct gdrcap_config *config)
{
	struct gdrcap_config *again = gdrcap_config_new();
	const char *text;

	for (uint32_t i = 0; again && (text = gdrcap_config_get(config, "image", i)); i++)
		if (gdrcap_config_set(again, "image", text, NULL) ||
		    memcmp(&config->settings.image[i], &again->settings.image[0],
			   sizeof(again->settings.image[0])) ||
		    strcmp(gdrcap_config_get(again, "image", 0), text))
			abort();
	gdrcap_config_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct gdrcap_config *config;
	struct gdrcap_error error = { 0 };
	char text[2 * TEXT_MAX];
	struct wire wire;
	size_t length, rest;

	if (bytes < 2)
		return 0;
	length = strnlen((const char *)data + 2, bytes - 2);
	rest = bytes - 2 - length;
	if (length > TEXT_MAX || rest > FRAME_MAX)
		return 0;
	strcpy(text, beginnings[data[0] % BEGINNINGS]);
	strncat(text, (const char *)data + 2, length);
	config = gdrcap_config_new();
	if (config && !gdrcap_config_set(config, "image", text, &error)) {
		const struct image_layout *layout = &config->settings.image[0].layout;

		check_again(config);
		wire.len = (uint32_t)rest;
		memcpy(data[1] & 1 ? wire_udp(&wire, &wire_plain, (uint32_t)rest) : wire.at,
		       data + bytes - rest, rest);
		image_probe(layout, wire.at, wire.len);
	} else if (config && (error.code >= 0 || !memchr(error.text, '\0', sizeof(error.text)))) {
		abort();
	}
	gdrcap_config_free(config);
	return 0;
}
