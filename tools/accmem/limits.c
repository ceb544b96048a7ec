// SPDX-License-Identifier: GPL-2.0
/*
 * accmem limits: show the limits of the module, and set them.
 *
 * The kernel parses the values. All names are checked before the first value is written.
 */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "accmem.h"

static const char usage[] =
	"usage: accmem limits [--json] [--watch[=SECONDS]]\n"
	"       accmem limits NAME=VALUE...\n"
	"Show the limits, or set them until the module is unloaded (root). A value is a\n"
	"number, with a suffix K, M, G or T or without one. 0 is no limit; 0 for\n"
	"max_resident_bytes is half of the RAM, for max_resident_bytes_per_user half of\n"
	"max_resident_bytes, for overdue_ms and waiter_reserve_ms never.\n";

static const char *limit_text(size_t i, uint64_t value, char text[32])
{
	if (!limit_is_known(i, value))
		return "?";
	if (value) {
		snprintf(text, 32, "%" PRIu64, value);
		return text;
	}
	if (!strcmp(limit_names[i], "max_resident_bytes"))
		return "0 (half of the RAM)";
	if (!strcmp(limit_names[i], "max_resident_bytes_per_user"))
		return "0 (half of max_resident_bytes)";
	return strstr(limit_names[i], "_ms") ? "0 (never)" : "0 (no limit)";
}

static int show(const struct options *o, void *arg)
{
	static const struct column columns[] = {
		{ "LIMIT", false, 0 },
		{ "VALUE", false, 0 },
	};
	struct snapshot s = { 0 };
	struct table *t;
	char text[32];
	size_t i;

	(void)arg;
	if (!path_exists(PARAMETERS))
		return no_devices();
	limits_read(&s);
	if (o->json) {
		json_print(json_of_limits(&s));
		return STATUS_OK;
	}
	t = table_new(columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < NR_LIMITS; i++)
		table_add(t, "%s\t%s", limit_names[i],
			  limit_text(i, s.limits[i], text));
	table_print(t);
	table_free(t);
	return STATUS_OK;
}

/* Return the index of the limit in NAME=VALUE, or NR_LIMITS. */
static size_t limit_of(const char *argument)
{
	const char *equal = strchr(argument, '=');
	size_t i, length;

	for (i = 0; equal && i < NR_LIMITS; i++) {
		length = equal - argument;
		if (strlen(limit_names[i]) == length &&
		    !strncmp(limit_names[i], argument, length))
			return i;
	}
	return NR_LIMITS;
}

static int set(const char *argument)
{
	const char *name = limit_names[limit_of(argument)];
	const char *value = strchr(argument, '=') + 1;
	int err = -EINVAL;
	uint64_t number;
	char text[32];

	if (size_parse(value, &number)) {
		snprintf(text, sizeof(text), "%" PRIu64, number);
		err = write_text(text, PARAMETERS "/%s", name);
	}
	if (!err) {
		printf("%s=%llu\n", name,
		       (unsigned long long)read_number(PARAMETERS "/%s", name));
		return STATUS_OK;
	}
	if (err == -ENOENT)
		return no_devices();
	if (err == -EINVAL || err == -ERANGE)
		fprintf(stderr,
			"accmem: limits: %s: '%s' is not a number, with a suffix K, M, G or T or without one\n",
			name, value);
	else
		fprintf(stderr, "accmem: limits: %s: %s\n", name,
			strerror(-err));
	return STATUS_FAILED;
}

int command_limits(int argc, char **argv)
{
	struct options o;
	int status = options_parse(&o, argc, argv, "jw", usage), i;

	if (status >= 0)
		return status;
	if (optind == argc)
		return options_watch(&o, show, NULL);
	for (i = optind; i < argc; i++) {
		if (limit_of(argv[i]) == NR_LIMITS) {
			fprintf(stderr,
				"accmem: limits: %s is not NAME=VALUE with the name of a limit\n",
				argv[i]);
			return STATUS_USAGE;
		}
	}
	for (i = optind, status = STATUS_OK; i < argc && !status; i++)
		status = set(argv[i]);
	return status;
}
