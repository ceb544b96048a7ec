// SPDX-License-Identifier: MIT
/*
 * The text of each thread's last error: accmem_last_error().
 *
 * The text is stored in a buffer of the thread, and stays valid until the thread's next
 * error. The calls of accmem.h set it if they fail; the functions behind them that the
 * pools call (core/buffer.h, core/call.h, core/stream.h) do not.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <accmem_pool.h>

#include "core/error.h"

#define MESSAGE_SIZE 384

static __thread char message[MESSAGE_SIZE];

const char *accmem_last_error(void)
{
	return message;
}

void accmem_set_last_error(const char *format, ...)
{
	char text[MESSAGE_SIZE];
	va_list args;

	/* an argument may be the last error */
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	memcpy(message, text, sizeof(text));
}

int accmem_fail(int error, const char *format, ...)
{
	char text[MESSAGE_SIZE];
	va_list args;

	if (error >= 0)
		return error;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	accmem_set_last_error("%s: %s", text, strerror(-error));
	return error;
}

int accmem_fail_at(int error, const char *what, uint64_t address)
{
	const char *text =
		error == -ENOENT ? "no buffer of this context is there" :
		error == -EINVAL ? "it is inside a buffer, not at its start" :
				   strerror(-error);

	if (error < 0)
		accmem_set_last_error("%s of address %#" PRIx64 ": %s", what,
				      address, text);
	return error;
}
