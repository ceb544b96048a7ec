/* SPDX-License-Identifier: MIT */
/*
 * Helpers that every folder of the library uses: the size of an array, and code that
 * pthread_cancel() does not interrupt.
 */
#ifndef ACCMEM_RUNTIME_CORE_UTIL_H
#define ACCMEM_RUNTIME_CORE_UTIL_H

#include <pthread.h>
#include <unistd.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Disable cancellation of the calling thread, and restore it. Between the two calls a
 * thread may hold a lock, or be waited for, without a cancellation point. @state is the
 * value that accmem_cancel_off() returned.
 */
static inline int accmem_cancel_off(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void accmem_cancel_restore(int state)
{
	pthread_setcancelstate(state, NULL);
}

/* close() without a cancellation point, for a caller that holds a lock. */
static inline void accmem_close_locked(int fd)
{
	int state = accmem_cancel_off();

	close(fd);
	accmem_cancel_restore(state);
}

#endif /* ACCMEM_RUNTIME_CORE_UTIL_H */
