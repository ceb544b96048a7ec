/* SPDX-License-Identifier: MIT */
/* The last error of a tcgen05 call. */
#ifndef ACCMEM_RUNTIME_TCGEN05_ERROR_H
#define ACCMEM_RUNTIME_TCGEN05_ERROR_H

#include <stdint.h>

/*
 * Set the last error of the call @what if @error is one: a negative errno value other than
 * -EAGAIN and -EINTR, which are ordinary results. Return @error.
 */
int tcgen05_fail(int error, const char *what);
int tcgen05_fail_columns(int error, const char *what, uint32_t columns);

#endif /* ACCMEM_RUNTIME_TCGEN05_ERROR_H */
