/* SPDX-License-Identifier: MIT */
/* The last error of a tcgen05 call. */
#ifndef ACCMEM_RUNTIME_TCGEN05_ERROR_H
#define ACCMEM_RUNTIME_TCGEN05_ERROR_H

/*
 * Set the last error of a call, which @format names, if @error is a negative errno value other
 * than -EAGAIN and -EINTR, which are ordinary results. Return @error.
 */
int tcgen05_fail(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif /* ACCMEM_RUNTIME_TCGEN05_ERROR_H */
