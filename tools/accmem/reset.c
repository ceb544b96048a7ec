// SPDX-License-Identifier: GPL-2.0
/*
 * accmem reset: take the memory of a device from all programs.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "accmem.h"

static const char usage[] =
	"usage: accmem reset [--force] DEVICE\n"
	"Take the memory from all programs, as a reset of the device that loses the contents\n"
	"(root). --force is needed while programs have the device open.\n";

static int reset(const struct device *d)
{
	int err = write_text("1", CLASS "/%s/reset", d->name);

	if (err == -EBUSY)
		fprintf(stderr,
			"accmem: reset: %s: its driver has revoked the memory, or another driver keeps a mapping of memory that it has imported\n",
			d->name);
	else if (err)
		fprintf(stderr, "accmem: reset: %s: %s\n", d->name,
			strerror(-err));
	return err ? STATUS_FAILED : STATUS_OK;
}

int command_reset(int argc, char **argv)
{
	return take_device(argc, argv, usage, "reset", reset);
}
