/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of a command, for people and for a shell. */
#include <stdio.h>
#include <string.h>

#include "options_inside.h"

#define HELP_COLUMNS 80
#define HELP_INDENT 27 /* where the sentences begin */

bool options_takes(const struct options_command *command, const struct gdrcap_option *option)
{
	return (option->commands & command->commands) != 0;
}

/* Prints `text` from column `column` on, wrapped, each line indented by `indent`. */
static void help_wrap(const char *text, size_t column, size_t indent)
{
	while (*text) {
		size_t word = strcspn(text, " ");

		if (column > indent && column + 1 + word > HELP_COLUMNS) {
			putchar('\n');
			column = 0;
		}
		if (column < indent) {
			printf("%*s", (int)(indent - column), "");
			column = indent;
		} else if (column > indent) {
			putchar(' ');
			column++;
		}
		fwrite(text, 1, word, stdout);
		column += word;
		text += word;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void help_option(const struct gdrcap_option *option, int negatable)
{
	char text[512];
	int column;

	column = printf("  --%s%s%s%s", negatable ? "[no-]" : "", option->flag,
			option->argument ? " " : "", option->argument ? option->argument : "");
	if (column + 2 > HELP_INDENT) {
		putchar('\n');
		column = 0;
	}
	snprintf(text, sizeof(text), "%s%s", option->help,
		 option->is_list ? " Repeat the option for more." : "");
	help_wrap(text, (size_t)column, HELP_INDENT);
}

void options_help(const struct options_command *command, const struct gdrcap_option *const own[])
{
	const char *heading = NULL, *const * example;
	const struct gdrcap_option *option;
	char purpose[256];
	size_t i;

	snprintf(purpose, sizeof(purpose), "%s.", command->purpose);
	if (purpose[0] >= 'a' && purpose[0] <= 'z')
		purpose[0] -= 'a' - 'A';
	printf("Usage: gdrcap %s [OPTION]...\n", command->name);
	help_wrap(purpose, 0, 0);
	if (command->examples && command->examples[0])
		printf("\nExamples:\n");
	for (example = command->examples; example && example[0] && example[1]; example += 2)
		printf("  # %s\n  %s\n", example[0], example[1]);
	for (i = 0; (option = gdrcap_option_at(i)); i++) {
		if (!options_takes(command, option))
			continue;
		if (!heading || strcmp(heading, option->group))
			printf("\n%s:\n", option->group);
		heading = option->group;
		help_option(option, !option->argument);
	}
	printf("\nProgram:\n");
	for (i = 0; own[i]; i++)
		help_option(own[i], 0);
}

static void complete_option(const char *dashes, const struct gdrcap_option *option)
{
	printf("%s%s %s", dashes, option->flag, option->argument ? option->argument : "-");
	for (size_t i = 0; option->words && option->words[i]; i++)
		printf(" %s", option->words[i]);
	printf("\n");
}

void options_list(const struct options_command *command, const struct gdrcap_option *const own[])
{
	const struct gdrcap_option *option;

	for (size_t i = 0; (option = gdrcap_option_at(i)); i++) {
		if (!options_takes(command, option))
			continue;
		complete_option("--", option);
		if (!option->argument)
			complete_option("--no-", option);
	}
	for (size_t i = 0; own[i]; i++)
		complete_option("--", own[i]);
}
