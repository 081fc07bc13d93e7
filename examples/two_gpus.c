/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several GPUs in one process, a session each: two_gpus FRAMES GPU[@CPUS] GPU[@CPUS] ..., such as
 * two_gpus 200M 0@0-7 1@8-15, or host for a GPU that is none. Each writes frames of 64 bytes, sends them over a wire
 * in this process and checks every bit: first one after the other, each alone, then all at once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gdrcap.h>

#define SESSIONS_MAX 16

static struct gdrcap_session *session_new(int index, const char *gpu, const char *frames)
{
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_session *session = NULL;
	struct gdrcap_error error = { .text = "no memory" };
	char wire[32], name[32];
	const char *cpus = strchr(gpu, '@');
	int ret = config ? 0 : -1;

	snprintf(wire, sizeof(wire), "ring:gpu%d", index);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(gpu, "@"), gpu);
	const char *const options[][2] = {
		{ "port", wire },
		{ "tx_port", wire },
		{ "gpu", name },
		{ "frame.size", "64" },
		{ "burst", "256" },
		{ "frames", frames },
		{ "cores", cpus ? cpus + 1 : NULL },
	};
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]) && ret == 0; i++)
		ret = gdrcap_config_set(config, options[i][0], options[i][1], &error);
	if (ret || gdrcap_create(config, &session, &error)) {
		fprintf(stderr, "two_gpus: %s: %s\n", gpu, error.text);
		exit(1);
	}
	gdrcap_config_free(config);
	return session;
}

/* To its end: millions of frames a second, of which each was right; less than 0 where not. */
static double session_end(struct gdrcap_session *session, const char *gpu, const char *how)
{
	struct gdrcap_summary sum;
	struct gdrcap_error error = { .text = "" };
	int ret;

	while (!gdrcap_wait_end(session, 1000))
		;
	ret = gdrcap_stop(session, &error);
	if (ret == 0)
		ret = gdrcap_get_summary(session, &sum, sizeof(sum));
	if (ret) {
		fprintf(stderr, "two_gpus: %s: %s\n", gpu, error.text);
		return -1;
	}
	printf("%-8s %-12s %8.2f Mpps, %llu frames, %llu lost, %llu damaged: %s on %u CPUs from %d on\n",
	       how, gpu, sum.mpps, (unsigned long long)sum.total.received,
	       (unsigned long long)sum.total.lost, (unsigned long long)sum.total.damaged, sum.gpu,
	       sum.core_count, sum.cores[0]);
	return sum.total.received && sum.total.valid == sum.total.sent && !sum.total.damaged &&
			       !sum.total.lost && !sum.total.duplicate
		       ? sum.mpps
		       : -1;
}

int main(int argc, char **argv)
{
	const int count = argc - 2;
	struct gdrcap_session *session[SESSIONS_MAX];
	struct gdrcap_error error;
	double alone = 0, together = 0;
	int wrong = 0;

	if (count < 1 || count > SESSIONS_MAX) {
		fprintf(stderr, "usage: two_gpus FRAMES GPU[@CPUS] GPU[@CPUS] ...\n");
		return 2;
	}
	for (int round = 0; round <= count; round++) {
		const int from = round < count ? round : 0, to = round < count ? round + 1 : count;

		for (int i = from; i < to; i++)
			session[i] = session_new(i, argv[2 + i], argv[1]);
		for (int i = from; i < to; i++)
			if (gdrcap_start(session[i], &error)) {
				fprintf(stderr, "two_gpus: %s: %s\n", argv[2 + i], error.text);
				return 1;
			}
		for (int i = from; i < to; i++) {
			const double mpps = session_end(session[i], argv[2 + i],
							round < count ? "alone" : "together");

			wrong += mpps < 0;
			*(round < count ? &alone : &together) += mpps;
		}
		/* Once all are stopped: to free memory is to wait for a GPU's kernels. */
		for (int i = from; i < to; i++)
			gdrcap_destroy(session[i]);
	}
	if (!wrong)
		printf("sum: %.2f Mpps one after the other, %.2f at once (%.1f %%)\n", alone,
		       together, 100 * together / alone);
	return wrong ? 3 : 0;
}
