// SPDX-License-Identifier: GPL-2.0
/*
 * accmem devices: list the devices, add one, remove one.
 *
 * Devices are added and removed by the files new_device and delete_device of their platform
 * driver. A removal takes the memory from the programs that use the device. So it needs
 * --force while a program has the device open.
 */
#include <dirent.h>
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "accmem.h"

#define DRIVERS "/sys/bus/platform/drivers"

static const char usage[] =
	"usage: accmem devices [--json] [--watch[=SECONDS]]\n"
	"       accmem devices add emulated SIZE[/CLASS][/nodeN][+...]\n"
	"       accmem devices add phys SIZE@ADDRESS[:nopages][/CLASS][/nodeN][+...]\n"
	"       accmem devices remove [--force] DEVICE\n"
	"List the devices; add a device; remove a device (root). --force removes a device that\n"
	"programs use: they lose its memory.\n";

static void add_row(struct table *t, const struct device *d)
{
	char size[2][16], files[32];
	size_t i, nr = 0;
	const char *host = "-";

	for (i = 0; i < d->nr_memories; i++) {
		if (strcmp(d->memories[i].name, "host"))
			nr++;
		else
			host = size_text(d->memories[i].value[CAPACITY],
					 size[1]);
	}
	table_add(t, "%s\t%s\t%zu\t%s\t%s\t%s", d->name,
		  size_text(d->value[CAPACITY], size[0]), nr, host,
		  number_text(d->contexts, files), d->parent);
}

static int show(const struct options *o, void *arg)
{
	static const struct column columns[] = {
		{ "DEVICE", false, 0 },	  { "CAPACITY", true, 0 },
		{ "CARVEOUTS", true, 1 }, { "HOST", true, 2 },
		{ "FILES", true, 2 },	  { "PARENT", false, 0 },
	};
	struct snapshot s;
	int status = snapshot_read(&s);
	struct table *t;
	size_t i;

	(void)arg;
	if (o->json) {
		json_print(json_of_devices(&s));
	} else if (!status) {
		t = table_new(columns, sizeof(columns) / sizeof(*columns));
		for (i = 0; i < s.nr_devices; i++)
			add_row(t, &s.devices[i]);
		table_print(t);
		table_free(t);
	}
	if (status)
		no_devices();
	snapshot_free(&s);
	return status;
}

/* Print the names of the devices that were not there before. */
static void show_new(const struct snapshot *before)
{
	struct snapshot s;
	size_t i;

	snapshot_read(&s);
	for (i = 0; i < s.nr_devices; i++) {
		if (!snapshot_device(before, s.devices[i].name))
			puts(s.devices[i].name);
	}
	snapshot_free(&s);
}

static const char *add_reason(int err)
{
	switch (err) {
	case -ENOENT:
		return "the module accmem is not loaded";
	case -EINVAL:
		return "the kernel refuses the description: see its log";
	case -EPERM:
		return "not permitted: the kernel may be locked down";
	default:
		return strerror(-err);
	}
}

static int add(int argc, char **argv)
{
	struct snapshot before;
	int err;

	if (argc != 2 ||
	    (strcmp(argv[0], "emulated") && strcmp(argv[0], "phys"))) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	snapshot_read(&before);
	/* A write of 0 bytes would succeed without reaching the driver. */
	err = *argv[1] ? write_text(argv[1], DRIVERS "/accmem-%s/new_device",
				    argv[0]) :
			 -EINVAL;
	if (err)
		fprintf(stderr, "accmem: devices: %s: %s\n", argv[1],
			add_reason(err));
	else
		show_new(&before);
	snapshot_free(&before);
	return err ? STATUS_FAILED : STATUS_OK;
}

static int remove_device(const struct device *d)
{
	int err = write_text(d->parent, DRIVERS "/%s/delete_device", d->driver);

	if (err == -ENOENT)
		fprintf(stderr,
			"accmem: devices: %s belongs to the driver %s: unbind %s from it\n",
			d->name, *d->driver ? d->driver : "of another device",
			d->parent);
	else if (err)
		fprintf(stderr, "accmem: devices: %s: %s\n", d->name,
			strerror(-err));
	return err ? STATUS_FAILED : STATUS_OK;
}

int command_devices(int argc, char **argv)
{
	struct options o;
	int status = options_parse(&o, argc, argv, "jw", usage), first;

	if (status >= 0)
		return status;
	if (optind == argc)
		return options_watch(&o, show, NULL);
	first = optind;
	optind = 0; /* getopt() begins again, with another list of arguments */
	if (!strcmp(argv[first], "add"))
		return add(argc - first - 1, argv + first + 1);
	if (!strcmp(argv[first], "remove"))
		return take_device(argc - first, argv + first, usage, "devices",
				   remove_device);
	fputs(usage, stderr);
	return STATUS_USAGE;
}
