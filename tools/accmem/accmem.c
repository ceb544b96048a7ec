// SPDX-License-Identifier: GPL-2.0
/*
 * accmem: select the command. Each command has a source of its own.
 */
#include <stdio.h>
#include <string.h>

#include "accmem.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "run", command_run },
};

static int help(FILE *to, int status)
{
	fputs("usage: accmem run [OPTION...] [--] PROGRAM [ARGUMENT...]\n", to);
	return status;
}

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; argc >= 2 && i < sizeof(commands) / sizeof(*commands);
	     i++) {
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	}
	if (argc == 2 && !strcmp(argv[1], "--help"))
		return help(stdout, 0);
	return help(stderr, 125);
}
