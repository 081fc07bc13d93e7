/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest embedder: compiled as C11 and C++17 against the installed library. */
#include <gdrcap.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
	struct gdrcap_config config;
	struct gdrcap_session *session = NULL;
	struct gdrcap_error error;
	int rc;

	gdrcap_config_default(&config);
	printf("%s; frames of %s bytes, pattern %s\n", gdrcap_version(), config.frame_size,
	       config.pattern);

	memset(&error, 0, sizeof(error));
	strcpy(config.port[0], "no such port");
	rc = gdrcap_create(&config, &session, &error);
	printf("a wrong port: %d, %s\n", rc, error.text);
	if (rc >= 0 || error.code != rc || !error.text[0] || session) {
		gdrcap_destroy(session);
		return 1;
	}
	return 0;
}
