/* SPDX-License-Identifier: MIT */
/*
 * SYCL on accmem: fork(). The lock of all common objects is free in a child, and a
 * generation number distinguishes objects of the child from those of its parent.
 */
#ifndef ACCMEM_SYCL_FORK_HPP
#define ACCMEM_SYCL_FORK_HPP

#include <atomic>
#include <pthread.h>

namespace accmem {
namespace sycl {
namespace detail {

/* Number of forks from the first process to this process. */
inline std::atomic<unsigned int> &generation()
{
	static std::atomic<unsigned int> count{ 0 };

	return count;
}

/* A pthread_mutex_t, since it exists before all objects and after them. */
inline pthread_mutex_t common_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Holds the common lock. Its owner must not call libaccmem, whose locks fork() may take
 * before this lock and after it.
 */
class common_guard {
public:
	common_guard() { pthread_mutex_lock(&common_lock); }
	~common_guard() { pthread_mutex_unlock(&common_lock); }
	common_guard(const common_guard &) = delete;
	common_guard &operator=(const common_guard &) = delete;
};

/* At the start of the program, before any object can be in use during a fork. */
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
