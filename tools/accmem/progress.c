// SPDX-License-Identifier: GPL-2.0
/* The time, and messages about work that goes on. */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "util.h"

#define SECOND 1000000000ull

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

/* Print a message two seconds after the first call, and then at most every five seconds. */
void progress(const char *fmt, ...)
{
	static uint64_t next;
	uint64_t now = now_ns();
	va_list list;

	if (!next)
		next = now + 2 * SECOND;
	if (now < next)
		return;
	next = now + 5 * SECOND;
	fputs("accmem: ", stderr);
	va_start(list, fmt);
	vfprintf(stderr, fmt, list);
	va_end(list);
	fputc('\n', stderr);
}
