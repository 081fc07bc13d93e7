/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines of the commands that have options of their own: doctor, bench and merge. */
#include <errno.h>
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
		int column = printf("  --%s%s%s", flags[i].name, flags[i].argument ? " " : "",
				    flags[i].argument ? flags[i].argument : "");

		column += printf("%*s", column < INDENT ? INDENT - column : 0, "");
		flags_print_words(flags[i].help, column, INDENT);
	}
}

/* The one that an argument names; NULL: none, which is said. */
static const struct flag *flag_of(const char *command, const struct flag *flags, size_t count,
				  const char *argument)
{
	const size_t length = strcspn(argument, "=");
	struct nearest nearest;
	char name[32];

	for (size_t i = 0; i < count; i++)
		if ((strncmp(argument, "--", 2) == 0 && length == strlen(flags[i].name) + 2 &&
		     strncmp(argument + 2, flags[i].name, length - 2) == 0) ||
		    (strcmp(argument, "-h") == 0 && strcmp(flags[i].name, "help") == 0))
			return &flags[i];
	snprintf(name, sizeof(name), "%.*s", (int)length, argument);
	nearest = (struct nearest){ .name = name + strspn(name, "-") };
	for (size_t i = 0; i < count && argument[0] == '-'; i++)
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

int flags_parse(const char *command, const struct flag *flags, size_t count, int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--complete") == 0) {
		for (size_t i = 0; i < count; i++)
			printf("--%s %s\n", flags[i].name,
			       flags[i].argument ? flags[i].argument : "-");
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		const struct flag *flag = flag_of(command, flags, count, argv[i]);
		const char *value = strchr(argv[i], '=');

		if (!flag)
			return -EINVAL;
		if (!flag->argument && value)
			return flags_refuse(command, flag->name, "takes no value");
		if (!flag->argument && !flag->on)
			return 1;
		if (!flag->argument) {
			*flag->on = 1;
			continue;
		}
		if (flag->text ? *flag->text != NULL : *flag->number != 0)
			return flags_refuse(command, flag->name, "is given twice");
		value = value ? value + 1 : ++i < argc ? argv[i] : NULL;
		if (!value || !value[0])
			return flags_refuse(command, flag->name, "needs a value");
		if (flag->text)
			*flag->text = value;
		else if (number_of(command, flag, value) < 0)
			return -EINVAL;
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
