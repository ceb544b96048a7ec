/* SPDX-License-Identifier: MIT */
/*
 * SYCL on accmem: what fork() means to it. A child finds the lock of what all objects have
 * in common free, and tells by its generation what is its parent's.
 */
#ifndef ACCMEM_SYCL_FORK_HPP
#define ACCMEM_SYCL_FORK_HPP

#include <atomic>
#include <pthread.h>

namespace accmem {
namespace sycl {
namespace detail {

/* How many forks have led to this process. */
inline std::atomic<unsigned int> &generation()
{
	static std::atomic<unsigned int> count{ 0 };

	return count;
}

/* A pthread_mutex_t, which is there before any object and after the last one. */
inline pthread_mutex_t common_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Who has one makes no call of libaccmem, whose own locks a fork may take before this
 * one and after it.
 */
class common_guard {
public:
	common_guard() { pthread_mutex_lock(&common_lock); }
	~common_guard() { pthread_mutex_unlock(&common_lock); }
	common_guard(const common_guard &) = delete;
	common_guard &operator=(const common_guard &) = delete;
};

/* From the program's start on: a child may be forked in the middle of anything later. */
inline const int forks_are_watched = pthread_atfork(
	[] { pthread_mutex_lock(&common_lock); },
	[] { pthread_mutex_unlock(&common_lock); },
	[] {
		generation().fetch_add(1);
		pthread_mutex_unlock(&common_lock);
	});

} // namespace detail
} // namespace sycl
} // namespace accmem

#endif // ACCMEM_SYCL_FORK_HPP
