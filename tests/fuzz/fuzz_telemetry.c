/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer: any bytes as a request to the telemetry socket. The answer is one JSON object of printable ASCII, with one key,
 * and no longer than clients were told. The requests' reader is the file's own, hence the file.
 */
#include "../../app/telemetry.c" /* NOLINT(bugprone-suspicious-include) */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void expect(int right, const char *what)
{
	if (!right) {
		fprintf(stderr, "%s\n", what);
		abort();
	}
}

/* A run with two streams, and a summary that is longer than an answer. */
static struct telemetry *made(void)
{
	static struct telemetry telemetry = { .lock = PTHREAD_MUTEX_INITIALIZER, .version = "1" };
	json_t *long_one = json_array();

	for (int i = 0; i < ANSWER_BYTES / 2; i++)
		json_add(&long_one, json_integer(i));
	telemetry.counts = json_pack("{s:o, s:o, s:[{s:i, s:i}, {s:i}]}", "/gdrcap/metrics",
				     metrics_to_json("# HELP\ngdrcap_frames_total{port=\"0\"} 12\n"
						     "gdrcap_seconds 0.5\n"),
				     "/gdrcap/summary", long_one, "/gdrcap/streams", "stream", 0,
				     "lost", 3, "stream", 65535);
	if (!telemetry.counts)
		abort();
	return &telemetry;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct telemetry *telemetry;
	char request[REQUEST_BYTES];
	json_t *object;
	size_t length;

	if (!telemetry)
		telemetry = made();
	/* As it is received. */
	if (bytes >= sizeof(request))
		bytes = sizeof(request) - 1;
	memcpy(request, data, bytes);
	request[bytes] = '\0';
	memset(telemetry->answer, 0, sizeof(telemetry->answer));
	length = answer(telemetry, request);
	expect(length && length <= ANSWER_BYTES, "the answer's length");
	for (size_t i = 0; i < length; i++)
		expect(telemetry->answer[i] >= ' ' && telemetry->answer[i] <= '~',
		       "printable ASCII");
	object = json_loadb(telemetry->answer, length, JSON_REJECT_DUPLICATES, NULL);
	expect(json_is_object(object) && json_object_size(object) == 1, "one key");
	json_decref(object);
	return 0;
}
