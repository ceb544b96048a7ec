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
 * The specification has no owner and no mode of a device file. The runtime then gives the
 * file to the user of the container's first process.
 */
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "accmem.h"

#define KIND "accmem/memory"

static const char usage[] =
	"usage: accmem cdi generate [--cdi-version VERSION] [DEVICE...]\n"
	"Print a CDI specification of the devices, or of all devices, for container runtimes:\n"
	"  accmem cdi generate >/etc/cdi/accmem.json\n"
	"VERSION is 0.5.0 (the default), 0.6.0, 0.7.0, 0.8.0, 1.0.0 or 1.1.0.\n";

static const char *const versions[] = { "0.5.0", "0.6.0", "0.7.0",
					"0.8.0", "1.0.0", "1.1.0" };

struct node {
	const char *name;
	dev_t number;
};

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

static struct json_object *of_node(const struct node *node)
{
	struct json_object *o = json_object_new_object();
	char path[32];

	snprintf(path, sizeof(path), "/dev/%s", node->name);
	json_add_text(o, "path", path);
	json_add_text(o, "type", "c");
	json_add_number(o, "major", major(node->number));
	json_add_number(o, "minor", minor(node->number));
	json_add_text(o, "permissions", "rw");
	return o;
}

static struct json_object *of_device(const char *name, const struct node *nodes,
				     size_t nr)
{
	struct json_object *edits = json_object_new_object();
	struct json_object *array = json_object_new_array();
	struct json_object *o = json_object_new_object();
	size_t i;

	for (i = 0; i < nr; i++)
		json_object_array_add(array, of_node(&nodes[i]));
	json_object_object_add(edits, "deviceNodes", array);
	json_add_text(o, "name", name);
	json_object_object_add(o, "containerEdits", edits);
	return o;
}

static void print_specification(const struct node *nodes, size_t nr,
				int version)
{
	struct json_object *array = json_object_new_array();
	struct json_object *o = json_object_new_object();
	size_t i;

	for (i = 0; i < nr; i++)
		json_object_array_add(array,
				      of_device(nodes[i].name, &nodes[i], 1));
	json_object_array_add(array, of_device("all", nodes, nr));
	json_add_text(o, "cdiVersion", versions[version]);
	json_add_text(o, "kind", KIND);
	json_object_object_add(o, "devices", array);
	json_print(o);
}

/* Read the number of the device file, which must be the one that the kernel has made. */
static int node_read(struct node *node)
{
	char number[32], found[32], *path = path_of("/dev/%s", node->name);
	struct stat file;
	int err = stat(path, &file) ? errno : 0;

	free(path);
	if (err) {
		fprintf(stderr, "accmem: cdi: /dev/%s: %s\n", node->name,
			strerror(err));
		return STATUS_FAILED;
	}
	node->number = file.st_rdev;
	snprintf(found, sizeof(found), "%u:%u", major(node->number),
		 minor(node->number));
	if (!S_ISCHR(file.st_mode) ||
	    !read_word(number, sizeof(number), CLASS "/%s/dev", node->name) ||
	    strcmp(number, found)) {
		fprintf(stderr,
			"accmem: cdi: /dev/%s is not the file of the device\n",
			node->name);
		return STATUS_FAILED;
	}
	return STATUS_OK;
}

/* Add a device to the nodes, unless it is there. */
static int node_add(struct node **nodes, size_t *nr, const char *name)
{
	size_t i;

	for (i = 0; i < *nr; i++) {
		if (!strcmp((*nodes)[i].name, name))
			return STATUS_OK;
	}
	*nodes = grow(*nodes, *nr, sizeof(**nodes));
	(*nodes)[*nr].name = name;
	return node_read(&(*nodes)[(*nr)++]);
}

static int generate(int version, size_t nr_names, char **names)
{
	struct node *nodes = NULL;
	struct snapshot s;
	size_t nr = 0, i;
	int status = snapshot_with(&s, NULL);

	for (i = 0; !status && i < nr_names; i++) {
		status = snapshot_device(&s, names[i]) ?
				 node_add(&nodes, &nr, names[i]) :
				 no_device(names[i]);
	}
	for (i = 0; !status && !nr_names && i < s.nr_devices; i++)
		status = node_add(&nodes, &nr, s.devices[i].name);
	if (!status)
		print_specification(nodes, nr, version);
	free(nodes);
	snapshot_free(&s);
	return status;
}

/* Parse the options behind "generate". Return -1, or the status of the command. */
static int parse(int argc, char **argv, int *version)
{
	static const struct option options[] = {
		{ "cdi-version", required_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return STATUS_OK;
		}
		if (c == 'v')
			*version = version_index(optarg);
		if (c == '?' || *version < 0) {
			fputs(usage, stderr);
			return STATUS_USAGE;
		}
	}
	return -1;
}

int command_cdi(int argc, char **argv)
{
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
	status = parse(argc, argv, &version);
	return status >= 0 ? status :
			     generate(version, argc - optind, argv + optind);
}
