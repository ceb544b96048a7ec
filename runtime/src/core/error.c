// SPDX-License-Identifier: MIT
/*
 * The text of each thread's last error: accmem_last_error().
 *
 * The text is stored in a buffer of the thread, and stays valid until the thread's next
 * error.
 */
#include <stdarg.h>
#include <stdio.h>

#include <accmem_pool.h>

#define MESSAGE_SIZE 384

static __thread char message[MESSAGE_SIZE];

const char *accmem_last_error(void)
{
	return message;
}

void accmem_set_last_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
}
