// SPDX-License-Identifier: GPL-2.0
/*
 * accmem cdi generate: a description of the devices for the Container Device Interface
 * (CDI), as JSON.
 *
 * The kind of a CDI device is a DNS name of its vendor, a slash and a class. The vendor is
 * "accmem", a name of one label, since the project has no domain. Each device of the system
 * is an entry, and the entry "all" has all of them. A name must begin with a letter and end
 * with a letter or a digit, which the names of the devices do.
 *
 * A container runtime refuses a specification that is newer than the runtime. The default
 * is version 0.5.0, which podman of Debian 12 reads. Nothing that the command prints needs a
 * newer version.
 *
 * The specification has no number, no owner and no mode of a device file: the numbers may be
 * others after a reboot. The runtime reads the number when the container starts, and gives the
 * file to the user of the container's first process.
 */
#include <getopt.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accmem.h"

#define KIND "accmem/memory"

static const char usage[] =
	"usage: accmem cdi generate [-o FILE] [--cdi-version VERSION] [DEVICE...]\n"
	"Print a CDI specification of the devices, or of all devices, for container runtimes,\n"
	"or write it to FILE:\n"
	"  accmem cdi generate -o /etc/cdi/accmem.json\n"
	"VERSION is 0.5.0 (the default), 0.6.0, 0.7.0, 0.8.0, 1.0.0 or 1.1.0.\n";

static const char *const versions[] = { "0.5.0", "0.6.0", "0.7.0",
					"0.8.0", "1.0.0", "1.1.0" };

/* Return the index of a version, or -1 if the command does not know it. */
static int version_index(const char *text)
{
	size_t i;

	for (i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		if (!strcmp(text, versions[i]))
			return i;
	}
	return -1;
}

static struct json_object *of_node(const char *name)
{
	struct json_object *o = json_object_new_object();
	char path[32];

	snprintf(path, sizeof(path), "/dev/%s", name);
	json_add_text(o, "path", path);
	json_add_text(o, "permissions", "rw");
	return o;
}

static struct json_object *of_devices(const char *name,
				      const char *const *nodes, size_t nr)
{
	struct json_object *edits = json_object_new_object();
	struct json_object *array = json_object_new_array();
	struct json_object *o = json_object_new_object();
	size_t i;

	for (i = 0; i < nr; i++)
		json_object_array_add(array, of_node(nodes[i]));
	json_object_object_add(edits, "deviceNodes", array);
	json_add_text(o, "name", name);
	json_object_object_add(o, "containerEdits", edits);
	return o;
}

static struct json_object *of_specification(const char *const *names, size_t nr,
					    int version)
{
	struct json_object *array = json_object_new_array();
	struct json_object *o = json_object_new_object();
	size_t i;

	for (i = 0; i < nr; i++)
		json_object_array_add(array,
				      of_devices(names[i], &names[i], 1));
	json_object_array_add(array, of_devices("all", names, nr));
	json_add_text(o, "cdiVersion", versions[version]);
	json_add_text(o, "kind", KIND);
	json_object_object_add(o, "devices", array);
	return o;
}

static void print_specification(FILE *f, void *specification)
{
	json_write(f, specification);
}

/* Add a device to the names, unless it is there. */
static void add_name(const char ***names, size_t *nr, const char *name)
{
	size_t i;

	for (i = 0; i < *nr; i++) {
		if (!strcmp((*names)[i], name))
			return;
	}
	*names = grow(*names, *nr, sizeof(**names));
	(*names)[(*nr)++] = name;
}

static int generate(const char *path, int version, size_t nr_wanted,
		    char **wanted)
{
	struct json_object *specification;
	const char **names = NULL;
	struct snapshot s;
	size_t nr = 0, i;
	int status = snapshot_with(&s, NULL);

	for (i = 0; !status && i < nr_wanted; i++) {
		if (snapshot_device(&s, wanted[i]))
			add_name(&names, &nr, wanted[i]);
		else
			status = no_device(wanted[i]);
	}
	for (i = 0; !nr_wanted && i < s.nr_devices; i++)
		add_name(&names, &nr, s.devices[i].name);
	if (!status) {
		specification = of_specification(names, nr, version);
		status = write_file("cdi", path, print_specification,
				    specification);
		json_object_put(specification);
	}
	free(names);
	snapshot_free(&s);
	return status;
}

/* Parse the options behind "generate". Return -1, or the status of the command. */
static int parse(int argc, char **argv, int *version, const char **path)
{
	static const struct option options[] = {
		{ "cdi-version", required_argument, NULL, 'v' },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "+ho:", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return STATUS_OK;
		}
		if (c == 'v')
			*version = version_index(optarg);
		if (c == 'o')
			*path = optarg;
		if (c == '?' || *version < 0) {
			fputs(usage, stderr);
			return STATUS_USAGE;
		}
	}
	return -1;
}

int command_cdi(int argc, char **argv)
{
	const char *path = NULL;
	struct options o;
	int status = options_parse(&o, argc, argv, "", usage), version = 0;

	if (status >= 0)
		return status;
	if (optind == argc || strcmp(argv[optind], "generate")) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	argc -= optind;
	argv += optind;
	optind = 0; /* getopt() begins again, with another list of arguments */
	status = parse(argc, argv, &version, &path);
	return status >= 0 ?
		       status :
		       generate(path, version, argc - optind, argv + optind);
}
