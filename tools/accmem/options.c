// SPDX-License-Identifier: GPL-2.0
/*
 * The options that commands share, and messages that several commands print.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "accmem.h"

#define WATCH_SECONDS 2.0
#define WATCH_LEAST 0.1
#define WATCH_MOST 86400.0

static bool seconds_parse(double *seconds, const char *text)
{
	char *end;

	*seconds = WATCH_SECONDS;
	if (!text)
		return true;
	*seconds = strtod(text, &end);
	return end != text && !*end && *seconds >= WATCH_LEAST &&
	       *seconds <= WATCH_MOST;
}

static int usage_error(const char *usage)
{
	fputs(usage, stderr);
	return STATUS_USAGE;
}

/*
 * Parse the options. @allowed has the first letters of the options that the command accepts.
 * Return -1 if the command can go on: optind is the index of its first argument. Else return
 * the status with which the command has to end.
 */
int options_parse(struct options *o, int argc, char **argv, const char *allowed,
		  const char *usage)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "watch", optional_argument, NULL, 'w' },
		{ "force", no_argument, NULL, 'f' },
		{ "owners", no_argument, NULL, 'o' },
		{ "states", no_argument, NULL, 't' },
		{ "svg", no_argument, NULL, 's' },
		{ "report", no_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	memset(o, 0, sizeof(*o));
	while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return STATUS_OK;
		}
		if (c == '?' || !strchr(allowed, c))
			return usage_error(usage);
		if (c == 'w' && !seconds_parse(&o->watch, optarg)) {
			fprintf(stderr,
				"accmem: --watch: %s is not a number of seconds from %.1f to %.0f\n",
				optarg, WATCH_LEAST, WATCH_MOST);
			return STATUS_USAGE;
		}
		o->json |= c == 'j';
		o->force |= c == 'f';
		o->owners |= c == 'o';
		o->states |= c == 't';
		o->svg |= c == 's';
		o->report |= c == 'r';
	}
	return -1;
}

/*
 * Show once, or again and again until a signal ends the command. On a terminal each output
 * replaces the one before.
 */
int options_watch(const struct options *o,
		  int (*show)(const struct options *o, void *arg), void *arg)
{
	struct timespec pause = {
		.tv_sec = o->watch,
		.tv_nsec = (o->watch - (time_t)o->watch) * 1e9,
	};
	int status;

	for (;;) {
		if (o->watch && !o->json && output_is_terminal())
			fputs("\033[H\033[J", stdout);
		status = show(o, arg);
		if (fflush(stdout) || ferror(stdout))
			return STATUS_FAILED;
		if (!o->watch)
			return status;
		nanosleep(&pause, NULL);
	}
}

/* Parse a number, which may be hexadecimal, with a suffix K, M, G or T or without one. */
bool size_parse(const char *text, uint64_t *size)
{
	static const char suffixes[] = "KMGT";
	const char *suffix;
	int shift = 0;
	char *end;

	errno = 0;
	/* a zero before a number does not make it octal */
	*size = strtoull(text, &end, strncasecmp(text, "0x", 2) ? 10 : 16);
	if (errno || !isdigit((unsigned char)*text) || end == text)
		return false;
	suffix = *end ? strchr(suffixes, *end) : NULL;
	if (suffix) {
		shift = 10 * (suffix - suffixes + 1);
		end++;
	}
	if (*end || *size > UINT64_MAX >> shift)
		return false;
	*size <<= shift;
	return true;
}

int no_devices(void)
{
	fputs("accmem: there is no device: the module accmem is not loaded, or it has none\n",
	      stderr);
	return STATUS_NO_DEVICE;
}

int no_device(const char *name)
{
	fprintf(stderr, "accmem: there is no device %s\n", name);
	return STATUS_NO_DEVICE;
}

/*
 * Read a snapshot, to be freed also after a failure. Return STATUS_OK; STATUS_NO_DEVICE, after
 * a message, if there is no device, or not the one that is named. @name may be NULL.
 */
int snapshot_with(struct snapshot *s, const char *name)
{
	if (snapshot_read(s))
		return no_devices();
	return name && !snapshot_device(s, name) ? no_device(name) : STATUS_OK;
}

/*
 * A command that takes the memory of one device, which the arguments name, from all
 * programs: it needs --force while programs have the device open.
 */
int take_device(int argc, char **argv, const char *usage, const char *command,
		int (*take)(const struct device *d))
{
	struct options o;
	int status = options_parse(&o, argc, argv, "f", usage);
	const struct device *d;
	struct snapshot s;

	if (status >= 0)
		return status;
	if (optind != argc - 1) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	snapshot_read(&s);
	d = snapshot_device(&s, argv[optind]);
	if (!d) {
		status = no_device(argv[optind]);
	} else if (in_use(d) && !o.force) {
		fprintf(stderr,
			"accmem: %s: %s is in use: --force takes the memory from the programs\n",
			command, d->name);
		status = STATUS_FAILED;
	} else {
		status = take(d);
	}
	snapshot_free(&s);
	return status;
}
