// SPDX-License-Identifier: MIT
/*
 * The last error of a tcgen05 call, in words: the rule that it broke, and the row of the
 * conformance table.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <accmem_pool.h>

#include "tcgen05/error.h"

static const struct {
	int error;
	const char *text;
} texts[] = {
	{ EDOM, "the number of columns is no power of two in [32, 512] (P7)" },
	{ ENOSPC, "more columns than the SM could ever have free (P2)" },
	{ ERANGE, "more columns than in the alloc before (P8)" },
	{ EPERM, "the CTA has relinquished (P9)" },
	{ EFAULT,
	  "the destination cannot be written, or is outside of the window (P10)" },
	{ EBUSY,
	  "another call waits, or its completion has not been read (P11)" },
	{ EPIPE, "the peer has exited (P4, P12)" },
	{ EPROTO, "the peers make different calls (P12, P20)" },
	{ EBADR, "the arguments of the peers differ (P4, P12)" },
	{ EPROTOTYPE, "the launch has another cta_group (P13)" },
	{ EILSEQ, "the lanes disagree (P14 to P16)" },
	{ ESRCH, "a lane has left or is not active (P14 to P16)" },
	{ EEXIST, "the rank is in use, or the cluster is complete (P19)" },
	{ EADDRINUSE, "the peer is on the same SM (P19)" },
	{ ENXIO, "there is no such SM, lane or column (P3, P19)" },
	{ ENOENT, "nothing is allocated there (P3)" },
	{ EACCES, "another CTA holds the columns (P3)" },
	{ EADDRNOTAVAIL, "the address is inside an allocation (P3)" },
	{ EMSGSIZE, "not the number of columns of the allocation (P18)" },
	{ EDEADLK, "a deadlock: every holder waits for columns (P2)" },
	{ EUSERS, "the context has as many CTAs as it may have" },
	{ ECONNRESET, "the context has ended, or was reset" },
};

static const char *text_of(int error)
{
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (texts[i].error == error)
			return texts[i].text;
	return strerror(error);
}

int tcgen05_fail(int error, const char *format, ...)
{
	char call[64];
	va_list args;

	if (!error || error == -EAGAIN || error == -EINTR)
		return error;
	va_start(args, format);
	vsnprintf(call, sizeof(call), format, args);
	va_end(args);
	accmem_set_last_error("%s: %s", call, text_of(-error));
	return error;
}
