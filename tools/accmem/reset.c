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

static int reset(const struct device *d, bool force)
{
	int err;

	if (in_use(d) && !force) {
		fprintf(stderr,
			"accmem: reset: %s has open files: --force takes the memory from the programs\n",
			d->name);
		return STATUS_FAILED;
	}
	err = write_text("1", CLASS "/%s/reset", d->name);
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
	struct options o;
	int status = options_parse(&o, argc, argv, "f", usage);
	struct snapshot s;
	struct device *d;

	if (status >= 0)
		return status;
	if (optind != argc - 1) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	snapshot_read(&s);
	d = snapshot_device(&s, argv[optind]);
	status = d ? reset(d, o.force) : no_device(argv[optind]);
	snapshot_free(&s);
	return status;
}
