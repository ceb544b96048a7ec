// SPDX-License-Identifier: GPL-2.0
/*
 * accmem: select the command. Each command has a source of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "accmem.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "bench", command_bench },	{ "cdi", command_cdi },
	{ "check", command_check },	{ "devices", command_devices },
	{ "explain", command_explain }, { "limits", command_limits },
	{ "map", command_map },		{ "metrics", command_metrics },
	{ "record", command_record },	{ "replay", command_replay },
	{ "reset", command_reset },	{ "retire", command_retire },
	{ "run", command_run },		{ "tmem", command_tmem },
	{ "top", command_top },		{ "who", command_who },
};

static int run_command(int argc, char **argv)
{
	size_t i;

	for (i = 0; argc >= 2 && i < sizeof(commands) / sizeof(*commands);
	     i++) {
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	}
	return command_show(argc, argv);
}

int main(int argc, char **argv)
{
	int status = run_command(argc, argv);

	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "accmem: output: %s\n", strerror(errno));
		return STATUS_FAILED;
	}
	return status;
}
