/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines of the commands that have options of their own: doctor, bench, merge and report. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "flags.h"

#define COLUMNS 96
#define INDENT 24

int flags_refuse(const char *command, const char *name, const char *what)
{
	fprintf(stderr, "gdrcap %s: --%s %s\n", command, name, what);
	return -EINVAL;
}

void flags_print_words(const char *text, int column, int indent)
{
	while (*text) {
		const int length = (int)strcspn(text, " ");

		if (column + 1 + length > COLUMNS)
			column = printf("\n%*s", indent, "") - 1;
		column += printf(" %.*s", length, text);
		text += length;
		text += strspn(text, " ");
	}
	printf("\n");
}

void flags_print(const struct flag *flags, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!flags[i].name)
			continue;
		int column = printf("  --%s%s%s", flags[i].name, flags[i].argument ? " " : "",
				    flags[i].argument ? flags[i].argument : "");

		column += printf("%*s", column < INDENT ? INDENT - column : 0, "");
		flags_print_words(flags[i].help, column, INDENT);
	}
}

/* No option: "-" is standard input. */
static bool is_word(const char *argument)
{
	return argument[0] != '-' || argument[1] == '\0';
}

/* `length`: of the argument, without its value. */
static bool flag_is(const struct flag *flag, const char *argument, size_t length)
{
	if (!flag->name)
		return false;
	if (strcmp(argument, "-h") == 0)
		return strcmp(flag->name, "help") == 0;
	return strncmp(argument, "--", 2) == 0 && length == strlen(flag->name) + 2 &&
	       strncmp(argument + 2, flag->name, length - 2) == 0;
}

/* The one that an argument names; NULL: none, which is said. */
static const struct flag *flag_of(const char *command, const struct flag *flags, size_t count,
				  const char *argument, bool word)
{
	const size_t length = strcspn(argument, "=");
	struct nearest nearest;
	char name[32];

	for (size_t i = 0; i < count; i++)
		if (word ? flags[i].words != NULL : flag_is(&flags[i], argument, length))
			return &flags[i];
	snprintf(name, sizeof(name), "%.*s", (int)length, argument);
	nearest = (struct nearest){ .name = name + strspn(name, "-") };
	for (size_t i = 0; i < count && argument[0] == '-'; i++)
		if (flags[i].name)
			nearest_consider(&nearest, flags[i].name);
	fprintf(stderr, "gdrcap %s: unknown %s '%.*s'%s; 'gdrcap %s --help' lists the options\n",
		command, argument[0] == '-' ? "option" : "argument", (int)length, argument,
		nearest_hint(&nearest, "--"), command);
	return NULL;
}

static int number_of(const char *command, const struct flag *flag, const char *text)
{
	const int is_number = text[0] && strspn(text, "0123456789") == strlen(text);
	const unsigned long long number = is_number ? strtoull(text, NULL, 10) : 0;
	char what[96];

	snprintf(what, sizeof(what), "is not a number from %u to %u", flag->least, flag->most);
	if (!is_number || strlen(text) > 10 || number < flag->least || number > flag->most)
		return flags_refuse(command, flag->name, what);
	*flag->number = (uint32_t)number;
	return 0;
}

/* The option at argv[*at], with its value. 0; 1: help is asked for; -EINVAL. */
static int flag_take(const char *command, const struct flag *flag, int argc, char **argv, int *at)
{
	const char *value = strchr(argv[*at], '=');

	if (!flag->argument && value)
		return flags_refuse(command, flag->name, "takes no value");
	if (!flag->argument && !flag->on)
		return 1;
	if (!flag->argument) {
		*flag->on = 1;
		return 0;
	}
	if (flag->text ? *flag->text != NULL : *flag->number != 0)
		return flags_refuse(command, flag->name, "is given twice");
	value = value ? value + 1 : ++*at < argc ? argv[*at] : NULL;
	if (!value || !value[0])
		return flags_refuse(command, flag->name, "needs a value");
	if (!flag->text)
		return number_of(command, flag, value);
	*flag->text = value;
	return 0;
}

int flags_parse(const char *command, const struct flag *flags, size_t count, int argc, char **argv)
{
	bool words = false; /* all that follows, whatever it begins with */

	if (argc == 2 && strcmp(argv[1], "--complete") == 0) {
		for (size_t i = 0; i < count; i++)
			printf("%s%s %s\n", flags[i].name ? "--" : "",
			       flags[i].name ? flags[i].name : "-",
			       flags[i].argument ? flags[i].argument : "-");
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		const struct flag *flag;
		int rc;

		if (!words && strcmp(argv[i], "--") == 0) {
			words = true;
			continue;
		}
		flag = flag_of(command, flags, count, argv[i], words || is_word(argv[i]));
		if (!flag)
			return -EINVAL;
		if (flag->words) {
			flag->words[(*flag->number)++] = argv[i];
			continue;
		}
		rc = flag_take(command, flag, argc, argv, &i);
		if (rc)
			return rc;
	}
	return 0;
}

bool flags_asked(int argc, char **argv, const char *argument)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], argument) == 0)
			return true;
	return false;
}
