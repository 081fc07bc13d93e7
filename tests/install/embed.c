/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest embedder: compiled as C11 and C++17 against the installed library. */
#include <gdrcap.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_session *session = NULL;
	struct gdrcap_error error;
	int rc;

	printf("%s; frames of %s bytes, pattern %s\n", gdrcap_version(),
	       gdrcap_config_get(config, "frame.size", 0), gdrcap_config_get(config, "pattern", 0));

	memset(&error, 0, sizeof(error));
	rc = gdrcap_config_set(config, "port", "no such port", &error);
	printf("no port's name: %d, %s\n", rc, error.text);
	if (rc >= 0 || gdrcap_config_set(config, "port", "nosuchport", NULL) < 0)
		return 1;
	rc = gdrcap_create(config, &session, &error);
	gdrcap_config_free(config);
	printf("a wrong port: %d, %s\n", rc, error.text);
	if (rc >= 0 || error.code != rc || !error.text[0] || session) {
		gdrcap_destroy(session);
		return 1;
	}
	return 0;
}
