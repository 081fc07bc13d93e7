/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A guest in somebody else's program: one that ends, forks, is killed, calls back, or calls
 * wrongly, at any moment. Each scenario is a process of its own, which this program starts and
 * judges: test_api_guest NAME [gpu]; with `gpu` on the first CUDA device and in its memory.
 */
#include "guest_cases.h"

bool on_gpu;

static const struct {
	const char *name;
	int (*run)(void);
} scenarios[] = {
	{ "exit_main", exit_main },
	{ "exit_stopped", exit_stopped },
	{ "exit_late", exit_late },
	{ "exit_unused", exit_unused },
	{ "exit_two", exit_two },
	{ "exit_thread", exit_thread },
	{ "exit_holding", exit_holding },
	{ "exit_create", exit_create },
	{ "exit_callback", exit_callback },
	{ "exit_sending", exit_sending },
	{ "fork_exit", fork_exit },
	{ "fork_calls", fork_calls },
	{ "fork_clone", fork_clone },
	{ "fork_after", fork_after },
	{ "fork_before", fork_before },
	{ "killed", killed },
	{ "two_at_once", two_at_once },
	{ "old_dirs", old_dirs },
	{ "nulls", nulls },
	{ "signals", signals },
	{ "callback_stop", callback_stop },
	{ "callback_stop_self", callback_stop_self },
	{ "callback_not_nested", callback_not_nested },
	{ "asserts_release", asserts_release },
	{ "asserts_release_after", asserts_release_after },
	{ "asserts_poll", asserts_poll },
	{ "asserts_destroy", asserts_destroy },
};

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	int status;
	pid_t child;

	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (strcmp(name, scenarios[i].name) != 0)
			continue;
		on_gpu = argc > 2 && strcmp(argv[2], "gpu") == 0;
		child = fork();
		if (child == 0) {
			alarm(HANGS_S);
			return scenarios[i].run();
		}
		if (child < 0 || waitpid(child, &status, 0) != child)
			return 1;
		if (WIFSIGNALED(status))
			fprintf(stderr, "%s: ended by signal %d\n", name, WTERMSIG(status));
		return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	}
	fprintf(stderr, "%s: there is no scenario \"%s\"\n", argv[0], name);
	return 2;
}
