/* SPDX-License-Identifier: MIT */
/* The last error, in words: what was refused, of what, and why. */
#ifndef ACCMEM_RUNTIME_CORE_ERROR_H
#define ACCMEM_RUNTIME_CORE_ERROR_H

#include <stdint.h>

/*
 * Each function sets the last error if @error is negative, and returns @error. The first
 * one adds the text of @error to the text that the caller formats.
 */
int accmem_fail(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The call @what, on the buffer at a device address. */
int accmem_fail_at(int error, const char *what, uint64_t address);

#endif /* ACCMEM_RUNTIME_CORE_ERROR_H */
