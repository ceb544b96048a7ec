// SPDX-License-Identifier: MIT
/*
 * The calls that the preload library takes the place of: those of the heap, and
 * the few that it must know about to fork.
 *
 * A pointer is the device's if it lies in a window, which is a comparison; all
 * others go to the next malloc(), the C library's or the program's. While that is
 * looked up, a few bytes of static memory serve who allocates.
 *
 * A program that has some of the calls itself, and not others, is left alone: one
 * would free what the other has allocated.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define EXPORT __attribute__((visibility("default")))

static struct {
	void *(*malloc)(size_t size);
	void *(*calloc)(size_t count, size_t size);
	void *(*realloc)(void *pointer, size_t size);
	void (*free)(void *pointer);
	void *(*memalign)(size_t alignment, size_t size);
	int (*posix_memalign)(void **pointer, size_t alignment, size_t size);
	void *(*aligned_alloc)(size_t alignment, size_t size);
	void *(*valloc)(size_t size);
	void *(*pvalloc)(size_t size);
	size_t (*malloc_usable_size)(void *pointer);
	int (*malloc_trim)(size_t pad);
	pid_t (*fork)(void);
	int (*pthread_sigmask)(int how, const sigset_t *set, sigset_t *old);
	int (*sigprocmask)(int how, const sigset_t *set, sigset_t *old);
} next;

static atomic_bool is_resolved;
static __thread bool is_resolving __attribute__((tls_model("initial-exec")));
static _Alignas(16) char early[16384];
static atomic_size_t early_used;
static int stats_fd = -1;

static void *preload_early(size_t size)
{
	size_t at;

	if (size > sizeof(early))
		return NULL;
	at = atomic_fetch_add(&early_used, (size + 15) & ~15ul);
	return at + size <= sizeof(early) ? early + at : NULL;
}

static bool preload_is_early(const void *pointer)
{
	return (uintptr_t)pointer - (uintptr_t)early < sizeof(early);
}

#define RESOLVE(name) \
	(next.name = (__typeof__(next.name))dlsym(RTLD_NEXT, #name))

/* false: on the way here already */
static bool preload_resolve(void)
{
	if (atomic_load_explicit(&is_resolved, memory_order_acquire))
		return true;
	if (is_resolving)
		return false;
	is_resolving = true;
	RESOLVE(malloc);
	RESOLVE(calloc);
	RESOLVE(realloc);
	RESOLVE(free);
	RESOLVE(memalign);
	RESOLVE(posix_memalign);
	RESOLVE(aligned_alloc);
	RESOLVE(valloc);
	RESOLVE(pvalloc);
	RESOLVE(malloc_usable_size);
	RESOLVE(malloc_trim);
	RESOLVE(fork);
	RESOLVE(pthread_sigmask);
	RESOLVE(sigprocmask);
	is_resolving = false;
	atomic_store_explicit(&is_resolved, true, memory_order_release);
	return true;
}

EXPORT void *malloc(size_t size)
{
	void *p;

	if (!preload_resolve())
		return preload_early(size);
	p = heap_wants(size) ? heap_alloc(size, 0, false, false) : NULL;
	return p ? p : next.malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
	size_t bytes;
	void *p = NULL;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	if (!preload_resolve())
		return preload_early(bytes);
	if (heap_wants(bytes))
		p = heap_alloc(bytes, 0, true, false);
	return p ? p : next.calloc(count, size);
}

EXPORT void free(void *pointer)
{
	if (device_window_has(pointer))
		heap_free(pointer);
	else if (pointer && !preload_is_early(pointer) && preload_resolve())
		next.free(pointer);
}

static size_t preload_usable(void *pointer)
{
	if (device_window_has(pointer))
		return heap_usable(pointer);
	if (preload_is_early(pointer))
		return early + sizeof(early) - (char *)pointer;
	return next.malloc_usable_size ? next.malloc_usable_size(pointer) : 0;
}

/* The old one stays when there is no new one. */
static void *preload_move(void *pointer, size_t size, void *to)
{
	size_t old = preload_usable(pointer);

	if (!to)
		return NULL;
	memcpy(to, pointer, old < size ? old : size);
	free(pointer);
	return to;
}

static void *preload_realloc_block(void *pointer, size_t size)
{
	void *to = NULL;

	if (!size) {
		heap_free(pointer);
		return NULL;
	}
	if (size >= preload_settings.aligned && heap_resize(pointer, size))
		return pointer;
	if (heap_wants(size))
		to = heap_alloc(size, 0, false, size > preload_usable(pointer));
	return preload_move(pointer, size, to ? to : next.malloc(size));
}

EXPORT void *realloc(void *pointer, size_t size)
{
	void *to;

	if (!pointer)
		return malloc(size);
	if (!preload_resolve())
		return preload_move(pointer, size, preload_early(size));
	if (device_window_has(pointer))
		return preload_realloc_block(pointer, size);
	if (preload_is_early(pointer))
		return preload_move(pointer, size, malloc(size));
	/* one that is large is there because it did not fit */
	if (!heap_wants(size) || !next.malloc_usable_size ||
	    heap_wants(preload_usable(pointer)))
		return next.realloc(pointer, size);
	to = heap_alloc(size, 0, false, true);
	return to ? preload_move(pointer, size, to) :
		    next.realloc(pointer, size);
}

EXPORT void *reallocarray(void *pointer, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(pointer, bytes);
}

static bool preload_is_power_of_2(size_t n)
{
	return n && !(n & (n - 1));
}

/* What is wrong with an alignment is the next one's to say. */
static void *preload_aligned(size_t alignment, size_t size)
{
	if (!preload_resolve() || !preload_is_power_of_2(alignment) ||
	    !heap_wants_aligned(size))
		return NULL;
	return heap_alloc(size, alignment, false, false);
}

EXPORT int posix_memalign(void **pointer, size_t alignment, size_t size)
{
	void *p = NULL;

	if (alignment % sizeof(void *) == 0)
		p = preload_aligned(alignment, size);
	if (!p)
		return preload_resolve() ?
			       next.posix_memalign(pointer, alignment, size) :
			       ENOMEM;
	*pointer = p;
	return 0;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	void *p = preload_aligned(alignment, size);

	if (p || !preload_resolve())
		return p;
	return next.aligned_alloc(alignment, size);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
	void *p = preload_aligned(alignment, size);

	return p || !preload_resolve() ? p : next.memalign(alignment, size);
}

EXPORT void *valloc(size_t size)
{
	void *p = preload_aligned(GRANULE, size);

	return p || !preload_resolve() ? p : next.valloc(size);
}

EXPORT void *pvalloc(size_t size)
{
	void *p = preload_aligned(GRANULE, size);

	return p || !preload_resolve() ? p : next.pvalloc(size);
}

EXPORT size_t malloc_usable_size(void *pointer)
{
	return pointer && preload_resolve() ? preload_usable(pointer) : 0;
}

EXPORT int malloc_trim(size_t pad)
{
	int trimmed = heap_trim();

	if (preload_resolve() && next.malloc_trim)
		trimmed |= next.malloc_trim(pad);
	return trimmed;
}

/* A child that could not be given its heap has ended by itself. */
EXPORT pid_t fork(void)
{
	pid_t child;
	int error;

	if (!preload_resolve()) {
		errno = EAGAIN;
		return -1;
	}
	child = next.fork();
	error = fork_error();
	if (child <= 0 || !error)
		return child;
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	errno = -error;
	return -1;
}

/* The signal that stops a thread is never masked. */
static const sigset_t *preload_mask(int how, const sigset_t *set,
				    sigset_t *copy)
{
	if (!set || how == SIG_UNBLOCK)
		return set;
	*copy = *set;
	sigdelset(copy, stop_signal());
	return copy;
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t copy;

	preload_resolve();
	return next.pthread_sigmask(how, preload_mask(how, set, &copy), old);
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t copy;

	preload_resolve();
	return next.sigprocmask(how, preload_mask(how, set, &copy), old);
}

/*
 * Does the name stand for a call of this library? A program that is not position
 * independent has an address of its own for it, of a jump, and does not define it.
 */
static bool preload_is_from(const Dl_info *here, const char *name)
{
	void *address = dlsym(RTLD_DEFAULT, name);
	const Elf64_Sym *symbol = NULL;
	Dl_info found;

	if (!address ||
	    !dladdr1(address, &found, (void **)&symbol, RTLD_DL_SYMENT))
		return false;
	return found.dli_fbase == here->dli_fbase ||
	       (symbol && symbol->st_shndx == SHN_UNDEF);
}

/* Does the program use all of these, or another's? */
static bool preload_is_complete(void)
{
	static const char *const names[] = {
		"malloc",	  "calloc",
		"realloc",	  "free",
		"posix_memalign", "aligned_alloc",
		"memalign",	  "malloc_usable_size",
	};
	Dl_info first;
	size_t i;

	if (!dladdr(&preload_settings, &first))
		return false;
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!preload_is_from(&first, names[i]))
			return false;
	return true;
}

/* Before the program redirects its standard error, or closes it. */
static void preload_open_stats(void)
{
	const char *where = preload_settings.stats;

	if (!*where)
		return;
	if (!strcmp(where, "1"))
		stats_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 64);
	else
		stats_fd = open(where,
				O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
				0666);
}

__attribute__((constructor)) static void preload_start(void)
{
	preload_resolve();
	if (getauxval(AT_SECURE))
		return;
	settings_read();
	if (!preload_is_complete()) {
		settings_say(STDERR_FILENO,
			     "accmem run: %s has a malloc() of its own: left alone\n",
			     program_invocation_short_name);
		return;
	}
	preload_open_stats();
	stop_start();
	fork_start();
	heap_start();
}

/* In one write, so that lines of several processes do not mix. */
__attribute__((destructor)) static void preload_end(void)
{
	const struct stats *s = &heap_stats;
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {
		{ "pid", getpid() },
		{ "peak", s->peak },
		{ "allocations", s->allocations },
		{ "reused", s->reused },
		{ "resized", s->resized },
		{ "fallbacks", s->fallbacks },
		{ "copied", s->copied },
		{ "evacuations", s->evacuations },
	};
	char text[384];
	size_t i, used = 0;

	if (stats_fd < 0)
		return;
	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		used += snprintf(text + used, sizeof(text) - used,
				 " %s=%" PRIu64, numbers[i].name,
				 numbers[i].value);
	settings_say(stats_fd, "accmem-run: program=%.80s device=%s%s\n",
		     program_invocation_short_name, preload_settings.device,
		     text);
}
