/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of a subcommand that has few options, all of them its own. */
#ifndef GDRCAP_APP_FLAGS_H
#define GDRCAP_APP_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One option: of `on`, `text` and `number` at most one is there; none: --help. Without a name: what takes
 * the words that are no options, such as files, and all after "--"; then `words` has room for argc, and `number`
 * counts them. */
struct flag {
	const char *name;     /* "run-time" */
	const char *argument; /* "MS"; NULL: takes none */
	const char *help;
	int *on;
	const char **text; /* points into argv */
	uint32_t *number;
	const char **words;   /* point into argv */
	uint32_t least, most; /* of the number */
};

/* 0; 1: --help was asked for; 2: a shell asked (--complete), and has its answer; -EINVAL: the error is
 * on stderr. */
int flags_parse(const char *command, const struct flag *flags, size_t count, int argc, char **argv);
/* "gdrcap COMMAND: --NAME WHAT" on stderr; returns -EINVAL. */
int flags_refuse(const char *command, const char *name, const char *what);
/* True when an argument is that one: what a program that asked for JSON gets though the rest of its
 * command line is wrong, says FLAGS_WRONG. */
bool flags_asked(int argc, char **argv, const char *argument);
#define FLAGS_WRONG "the command line is wrong: standard error says where"
/* The options' part of --help, on standard output. */
void flags_print(const struct flag *flags, size_t count);
/* Words, broken before the 97th column; lines after the first begin at `indent`. `column` is where
 * the first begins. Ends the line. */
void flags_print_words(const char *text, int column, int indent);

#endif
