// SPDX-License-Identifier: MIT
/*
 * The functions that the preload library replaces: those of the heap, and those that need
 * ordinary memory.
 *
 * A pointer belongs to the device if a block starts there. Other pointers go to the next
 * malloc(): that of the C library or of another preloaded library.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define EXPORT __attribute__((visibility("default")))

/* The functions of the next library */
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
	struct mallinfo2 (*mallinfo2)(void);
	void (*malloc_stats)(void);
	pid_t (*fork)(void);
	pid_t (*_Fork)(void);
	int (*mprotect)(void *start, size_t length, int protection);
	int (*madvise)(void *start, size_t length, int advice);
	void *(*mremap)(void *start, size_t length, size_t new_length,
			int flags, ...);
	int (*munmap)(void *start, size_t length);
	int (*pthread_attr_setstack)(pthread_attr_t *attr, void *stack,
				     size_t size);
	int (*prctl)(int option, ...);
	long (*syscall)(long number, ...);
} next;

#define RESOLVE(name) \
	(next.name = (__typeof__(next.name))dlsym(RTLD_NEXT, #name))

struct settings preload_settings = {
	.device = "/dev/accmem0",
	.threshold = SIZE_MAX, /* until the constructor has run */
	.limit = SIZE_MAX,
};
struct stats preload_stats;
static atomic_bool is_resolved;
static __thread bool is_resolving __attribute__((tls_model("initial-exec")));
static int stats_fd = -1;
static struct stat stats_file;

/* Return false if this thread is in dlsym() already, which tolerates a NULL of malloc(). */
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
	RESOLVE(mallinfo2);
	RESOLVE(malloc_stats);
	RESOLVE(fork);
	RESOLVE(_Fork);
	RESOLVE(mprotect);
	RESOLVE(madvise);
	RESOLVE(mremap);
	RESOLVE(munmap);
	RESOLVE(pthread_attr_setstack);
	RESOLVE(prctl);
	RESOLVE(syscall);
	is_resolving = false;
	atomic_store_explicit(&is_resolved, true, memory_order_release);
	return true;
}

/* --- the heap --- */

EXPORT void *malloc(size_t size)
{
	void *p;

	if (!preload_resolve())
		return NULL;
	p = heap_alloc(size, 1);
	return p ? p : next.malloc(size);
}

/* Memory of a new buffer reads as zero. */
EXPORT void *calloc(size_t count, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	if (!preload_resolve())
		return NULL;
	p = heap_alloc(bytes, 1);
	return p ? p : next.calloc(count, size);
}

EXPORT void free(void *pointer)
{
	struct block *block = heap_find(pointer);

	if (block)
		heap_free(block);
	else if (pointer && preload_resolve())
		next.free(pointer);
}

static size_t preload_usable(void *pointer)
{
	struct block *block = heap_find(pointer);

	return block ? block->length : next.malloc_usable_size(pointer);
}

/*
 * A block that grows gets a quarter more, because it will probably grow again. A block
 * that shrinks below half moves, so that the device memory can be reused. A large block
 * of the ordinary heap stays there: the device had no room for it, or another thread had the
 * lock of the blocks.
 */
EXPORT void *realloc(void *pointer, size_t size)
{
	struct block *block = heap_find(pointer);
	size_t old;
	void *to = NULL;

	if (!pointer)
		return malloc(size);
	if (!preload_resolve())
		return NULL;
	old = preload_usable(pointer);
	if (!block && (old >= preload_settings.threshold || size <= old))
		return next.realloc(pointer, size);
	if (block && !size) {
		heap_free(block);
		return NULL;
	}
	if (size <= old && size >= old / 2)
		return pointer;
	if (size > old && size <= PTRDIFF_MAX)
		to = heap_try(size + size / 4, 1);
	if (!to)
		to = heap_alloc(size, 1);
	if (!to && !block)
		return next.realloc(pointer, size);
	if (!to)
		to = next.malloc(size);
	if (!to)
		return NULL;
	memcpy(to, pointer, old < size ? old : size);
	free(pointer);
	return to;
}

/* An invalid alignment is left to the next library, which returns the error. */
static void *preload_aligned(size_t alignment, size_t size)
{
	if (!preload_resolve() || !alignment || alignment & (alignment - 1))
		return NULL;
	return heap_alloc(size, alignment);
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

	return p || !preload_resolve() ? p :
					 next.aligned_alloc(alignment, size);
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

/* Blocks count as those that the C library maps one by one. */
EXPORT struct mallinfo2 mallinfo2(void)
{
	struct mallinfo2 sums = { 0 };

	if (preload_resolve() && next.mallinfo2)
		sums = next.mallinfo2();
	sums.hblks += preload_stats.blocks;
	sums.hblkhd += preload_stats.bytes;
	return sums;
}

EXPORT void malloc_stats(void)
{
	if (preload_resolve() && next.malloc_stats)
		next.malloc_stats();
	preload_print(STDERR_FILENO,
		      "%s:\nblocks           = %10zu\n"
		      "bytes            = %10zu\n",
		      preload_settings.device, preload_stats.blocks,
		      preload_stats.bytes);
}

/* --- functions that need ordinary memory --- */

bool preload_move(void *from, size_t length, void *target)
{
	return next.mremap(from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
			   target) == target;
}

void preload_unmap(void *start, size_t length)
{
	next.munmap(start, length);
}

/* Pages that are gone cannot be copied for a fork. */
EXPORT int munmap(void *start, size_t length)
{
	preload_resolve();
	/* the kernel returns an error for a start in the middle of a page */
	if ((uintptr_t)start % GRANULE == 0 &&
	    !heap_make_ordinary(start, length, HEAP_KEEP))
		return -1;
	return next.munmap(start, length);
}

EXPORT int mprotect(void *start, size_t length, int protection)
{
	preload_resolve();
	if (!heap_make_ordinary(start, length, HEAP_KEEP))
		return -1;
	return next.mprotect(start, length, protection);
}

/* Return true for advice that changes no byte. Programs give it for any large memory. */
static bool preload_is_hint(int advice)
{
	switch (advice) {
	case MADV_NORMAL:
	case MADV_RANDOM:
	case MADV_SEQUENTIAL:
	case MADV_WILLNEED:
	case MADV_DOFORK:
	case MADV_MERGEABLE:
	case MADV_UNMERGEABLE:
	case MADV_HUGEPAGE:
	case MADV_NOHUGEPAGE:
	case MADV_DONTDUMP:
	case MADV_DODUMP:
	case MADV_COLD:
	case MADV_PAGEOUT:
	case MADV_POPULATE_READ:
	case MADV_POPULATE_WRITE:
		return true;
	}
	return false;
}

/* Give a hint for the parts of the range that are not on the device. */
static int preload_hint(char *start, size_t length, int advice)
{
	bool is_on_device;
	size_t part;
	int ret = 0;

	do {
		part = heap_part(start, length, &is_on_device);
		if (!is_on_device && next.madvise(start, part, advice))
			ret = -1;
		start += part;
		length -= part;
	} while (length);
	return ret;
}

static bool preload_drops_bytes(int advice)
{
	return advice == MADV_DONTNEED || advice == MADV_FREE;
}

EXPORT int madvise(void *start, size_t length, int advice)
{
	preload_resolve();
	/* the kernel returns an error for a start in the middle of a page */
	if ((uintptr_t)start % GRANULE)
		return next.madvise(start, length, advice);
	if (preload_is_hint(advice))
		return preload_hint(start, length, advice);
	if (!heap_make_ordinary(start, length,
				preload_drops_bytes(advice) ? HEAP_DROP :
							      HEAP_KEEP))
		return -1;
	return next.madvise(start, length, advice);
}

EXPORT void *mremap(void *start, size_t length, size_t new_length, int flags,
		    ...)
{
	va_list args;
	void *target;

	va_start(args, flags);
	target = va_arg(args, void *);
	va_end(args);
	preload_resolve();
	if (!heap_make_ordinary(start, length, HEAP_KEEP) ||
	    (flags & MREMAP_FIXED &&
	     !heap_make_ordinary(target, new_length, HEAP_KEEP)))
		return MAP_FAILED;
	return next.mremap(start, length, new_length, flags, target);
}

/* The C library and the kernel wait for the end of a thread by a futex in its stack. */
EXPORT int pthread_attr_setstack(pthread_attr_t *attr, void *stack, size_t size)
{
	preload_resolve();
	return heap_make_ordinary(stack, size, HEAP_KEEP) ?
		       next.pthread_attr_setstack(attr, stack, size) :
		       ENOMEM;
}

/* A seccomp filter that allows a heap's calls may forbid ioctl(). */
EXPORT int prctl(int option, ...)
{
	unsigned long a[4];
	int before, ret;
	va_list args;
	size_t i;

	va_start(args, option);
	for (i = 0; i < ARRAY_SIZE(a); i++)
		a[i] = va_arg(args, unsigned long);
	va_end(args);
	preload_resolve();
	/* a filter of NULL: see preload_is_filter() */
	if (option != PR_SET_SECCOMP || (a[0] == SECCOMP_MODE_FILTER && !a[1]))
		return next.prctl(option, a[0], a[1], a[2], a[3]);
	before = device_filter();
	ret = next.prctl(option, a[0], a[1], a[2], a[3]);
	if (ret)
		device_unfilter(before);
	return ret;
}

/* --- forks --- */

static long preload_fork(const long *arguments)
{
	(void)arguments;
	return next.fork();
}

EXPORT pid_t fork(void)
{
	preload_resolve();
	return fork_call(preload_fork, NULL);
}

/* Return the flags of a system call that forks. */
static uint64_t preload_fork_flags(const long *a)
{
	if (a && a[0] == SYS_clone)
		return a[1];
	return a && a[0] == SYS_clone3 ? *(const uint64_t *)a[1] : 0;
}

/* Fork without the handlers of pthread_atfork(), by a system call if @a is not NULL. */
static long preload_bare_fork(const long *a)
{
	uint64_t flags = preload_fork_flags(a);
	long child = -1;
	int error;

	fork_prepare();
	if (!fork_has_failed())
		child = a ? next.syscall(a[0], a[1], a[2], a[3], a[4], a[5],
					 a[6]) :
			    next._Fork();
	if (child) {
		error = errno;
		fork_parent();
		errno = error;
	} else if (flags & CLONE_FILES) {
		fork_child_sharing_files();
	} else {
		fork_child();
	}
	return child;
}

EXPORT pid_t _Fork(void)
{
	preload_resolve();
	return fork_call(preload_bare_fork, NULL);
}

static bool preload_is_fork(const long *a)
{
	switch (a[0]) {
#ifdef SYS_fork
	case SYS_fork:
		return true;
#endif
	case SYS_clone:
		return !(preload_fork_flags(a) & CLONE_VM);
	case SYS_clone3:
		return a[1] && a[2] >= 8 && !(preload_fork_flags(a) & CLONE_VM);
	}
	return false;
}

/* Programs ask by a filter of NULL whether there are filters. That call always fails. */
static bool preload_is_filter(const long *a)
{
	return a[0] == SYS_seccomp &&
	       (a[1] == SECCOMP_SET_MODE_STRICT ||
		(a[1] == SECCOMP_SET_MODE_FILTER && a[3]));
}

EXPORT long syscall(long number, ...)
{
	long a[7] = { number }, ret;
	int before;
	va_list args;
	size_t i;

	va_start(args, number);
	for (i = 1; i < ARRAY_SIZE(a); i++)
		a[i] = va_arg(args, long);
	va_end(args);
	preload_resolve();
	if (preload_is_fork(a))
		return fork_call(preload_bare_fork, a);
	if (!preload_is_filter(a))
		return next.syscall(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
	before = device_filter();
	ret = next.syscall(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
	/* A positive value is a new listener, or a thread that could not be filtered. */
	if (ret < 0 || (ret && !(a[2] & SECCOMP_FILTER_FLAG_NEW_LISTENER)))
		device_unfilter(before);
	return ret;
}

/* --- start and end --- */

/* Format on the stack, and use write(): the heap or stdio may not be usable. */
void preload_print(int fd, const char *format, ...)
{
	int error = errno, length;
	char line[512];
	va_list args;

	va_start(args, format);
	length = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (length > (int)sizeof(line) - 1)
		length = sizeof(line) - 1;
	if (length > 0 && write(fd, line, length) != length)
		error = errno;
	errno = error;
}

/* getenv(), which does not know the environment yet */
static const char *preload_getenv(char **environment, const char *name)
{
	size_t length = strlen(name);

	for (; *environment; environment++)
		if (!strncmp(*environment, name, length) &&
		    (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

/* Return the bytes that the environment names, or @otherwise. */
static size_t preload_size(char **environment, const char *name,
			   size_t otherwise)
{
	const char *text = preload_getenv(environment, name);
	unsigned long long bytes;
	char *end;

	if (!text)
		return otherwise;
	errno = 0;
	bytes = strtoull(text, &end, 10);
	if (errno || end == text || *end || strchr(text, '-')) {
		preload_print(STDERR_FILENO,
			      "accmem run: %s: %s is no number\n", name, text);
		return otherwise;
	}
	return bytes;
}

/* The program may redirect or close its standard error, and close this descriptor. */
static void preload_open_stats(const char *where)
{
	int fd = STDERR_FILENO;

	if (strcmp(where, "1") != 0)
		fd = open(where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
			  0666);
	if (fd < 0) {
		preload_print(STDERR_FILENO, "accmem run: %s: %s\n", where,
			      strerror(errno));
		return;
	}
	stats_fd = device_move_high(fd);
	if (stats_fd < 0 || fstat(stats_fd, &stats_file)) {
		preload_print(STDERR_FILENO, "accmem run: statistics: %s\n",
			      strerror(errno));
		stats_fd = -1;
	}
	if (fd != STDERR_FILENO)
		close(fd);
}

/* Runs before the C library is initialised (-z initfirst). */
__attribute__((constructor)) static void preload_start(int argc, char **argv,
						       char **environment)
{
	struct settings *s = &preload_settings;
	const char *device = preload_getenv(environment, "ACCMEM_RUN_DEVICE");
	const char *where = preload_getenv(environment, "ACCMEM_RUN_STATS");
	size_t threshold =
		preload_size(environment, "ACCMEM_RUN_THRESHOLD", 16ul << 20);

	(void)argc;
	(void)argv;
	preload_resolve();
	if (getauxval(AT_SECURE))
		return;
	if (device)
		s->device = strdup(device);
	s->limit = preload_size(environment, "ACCMEM_RUN_LIMIT", SIZE_MAX);
	if (where)
		preload_open_stats(where);
	if (device_get() < 0) {
		preload_print(STDERR_FILENO,
			      "accmem run: %s: %s: the ordinary heap is used\n",
			      s->device, strerror(errno));
		return;
	}
	/* Let the other heap start now: later, a seccomp filter may forbid its calls. */
	next.free(next.malloc(1));
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	/* A smaller buffer shares its page, and so its mapping, with others. */
	s->threshold = threshold < GRANULE ? GRANULE : threshold;
}

/* Copy the name of the program. It is one word, and nothing that controls a terminal. */
static void copy_program(char name[80])
{
	const char *from = program_invocation_short_name;
	size_t i;

	for (i = 0; i < 79 && from[i]; i++)
		name[i] = from[i] > ' ' && from[i] <= '~' ? from[i] : '?';
	name[i] = '\0';
}

static void preload_print_stats(void)
{
	const struct stats *s = &preload_stats;
	char program[80], bytes[80], blocks[64];

	snprintf(bytes, sizeof(bytes), "peak=%zu copied=%zu returned=%zu",
		 s->peak, s->copied, s->returned);
	snprintf(blocks, sizeof(blocks), "allocations=%zu fallbacks=%zu",
		 s->allocations, s->fallbacks);
	copy_program(program);
	preload_print(stats_fd,
		      "accmem-run: program=%s device=%s pid=%d %s %s\n",
		      program, preload_settings.device, getpid(), bytes,
		      blocks);
}

/* In one write, so that lines of several processes do not mix. No reader is no signal. */
__attribute__((destructor)) static void preload_end(void)
{
	const struct timespec now = { 0 };
	sigset_t pipe, old, pending;

	if (device_is_filtered() || !device_is_file(stats_fd, &stats_file))
		return;
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &old);
	sigpending(&pending);
	preload_print_stats();
	if (!sigismember(&pending, SIGPIPE))
		sigtimedwait(&pipe, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}
