// SPDX-License-Identifier: MIT
/*
 * What the environment asks of the preload library, and what it says.
 *
 * Owns the settings. They are read once, by the constructor, before the program
 * has a second thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

struct settings preload_settings = {
	.device = "/dev/accmem0",
	.threshold = 128 * KIB,
	.aligned = 16 * KIB,
	.cache = 64 * MIB,
	.limit = SIZE_MAX,
};

/* On the stack, and by write(): there may be no heap, and no stdio any more. */
void settings_say(int fd, const char *format, ...)
{
	int error = errno, length;
	char line[512];
	va_list args;

	va_start(args, format);
	length = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (length > (int)sizeof(line) - 1)
		length = sizeof(line) - 1;
	if (length > 0 && write(fd, line, length) != length)
		error = errno;
	errno = error;
}

/* A number with an optional K, M or G. */
static bool settings_size(const char *text, size_t *size)
{
	static const char units[] = "KMG";
	unsigned long long number;
	const char *unit;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (errno || (*end && (!unit || end[1])))
		return false;
	if (unit &&
	    __builtin_mul_overflow(number, KIB << 10 * (unit - units), &number))
		return false;
	*size = number;
	return true;
}

static void settings_read_size(const char *name, size_t *size)
{
	const char *text = getenv(name);

	if (text && !settings_size(text, size))
		settings_say(STDERR_FILENO,
			     "accmem run: %s=%.40s is no size: not used\n",
			     name, text);
}

static void settings_read_text(const char *name, char *text, size_t size)
{
	const char *value = getenv(name);

	if (value && strlen(value) < size)
		memcpy(text, value, strlen(value) + 1);
	else if (value)
		settings_say(STDERR_FILENO,
			     "accmem run: %s is too long: not used\n", name);
}

void settings_read(void)
{
	struct settings *s = &preload_settings;

	settings_read_text("ACCMEM_RUN_DEVICE", s->device, sizeof(s->device));
	settings_read_text("ACCMEM_RUN_STATS", s->stats, sizeof(s->stats));
	settings_read_size("ACCMEM_RUN_THRESHOLD", &s->threshold);
	settings_read_size("ACCMEM_RUN_ALIGNED", &s->aligned);
	settings_read_size("ACCMEM_RUN_CACHE", &s->cache);
	settings_read_size("ACCMEM_RUN_LIMIT", &s->limit);
	/* below that a buffer shares its page, and with it its mapping */
	if (s->threshold < GRANULE)
		s->threshold = GRANULE;
	if (s->aligned < GRANULE)
		s->aligned = GRANULE;
}
