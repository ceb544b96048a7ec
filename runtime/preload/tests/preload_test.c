// SPDX-License-Identifier: MIT
/*
 * A program with the preload library under it, which serves blocks of 1 MiB and more:
 * what the calls of the heap promise, where the memory is, what a fork gets, and what
 * becomes of memory that is used as only ordinary memory can be. It is run by accmem
 * run; every test is a process of its own (test.c), and a fork by that.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "preload_tests.h"

/* Is it a mapping of the device, shared, as the kernel tells it? */
bool is_on_device(const void *pointer)
{
	uintptr_t start, end, at = (uintptr_t)pointer;
	char line[512], mode[5];
	bool found = false;
	FILE *maps = fopen("/proc/self/maps", "re");

	while (!found && fgets(line, sizeof(line), maps))
		found = sscanf(line, "%lx-%lx %4s", &start, &end, mode) == 3 &&
			at >= start && at < end;
	fclose(maps);
	return found && mode[3] == 's' && strstr(line, "accmem");
}

void fill(char *p, size_t size, unsigned int seed)
{
	size_t i;

	for (i = 0; i < size; i++)
		p[i] = (char)(i * 7 + i / 4096 + seed);
}

bool is_filled(const char *p, size_t size, unsigned int seed)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (p[i] != (char)(i * 7 + i / 4096 + seed))
			return false;
	return true;
}

/* what the compiler must not know: that no object is so large */
static volatile size_t huge = SIZE_MAX / 2;

static void large_is_on_device(void)
{
	char *large = malloc(MIB), *small = malloc(1000);

	CHECK(is_on_device(large));
	CHECK(is_on_device(large + MIB - 1));
	CHECK(!is_on_device(small));
	CHECK(malloc_usable_size(large) >= MIB);
	fill(large, MIB, 1);
	CHECK(is_filled(large, MIB, 1));
	free(large);
	free(small);
}

static void aligned_is_aligned(void)
{
	size_t alignment;
	void *p;

	for (alignment = 32; alignment <= 64 * KIB; alignment *= 2) {
		CHECK_EQ(posix_memalign(&p, alignment, MIB), 0);
		CHECK_EQ((uintptr_t)p % alignment, 0);
		CHECK(is_on_device(p) || alignment > 4096);
		free(p);
	}
	p = valloc(MIB);
	CHECK(is_on_device(p));
	free(p);
	p = aligned_alloc(64, MIB);
	CHECK(is_on_device(p));
	free(p);
	CHECK_EQ(posix_memalign(&p, 24, MIB), EINVAL);
}

static void calloc_is_zero(void)
{
	char *p = malloc(MIB);
	size_t i;

	memset(p, 0xff, MIB);
	free(p);
	p = calloc(1, MIB);
	CHECK(is_on_device(p));
	for (i = 0; i < MIB; i++)
		CHECK_EQ(p[i], 0);
	free(p);
	errno = 0;
	CHECK(!calloc(huge, 3));
	CHECK_EQ(errno, ENOMEM);
}

static void realloc_keeps(void)
{
	static const size_t sizes[] = { 1000, 200 * KIB, MIB,	  3 * MIB,
					MIB,  2000,	 2 * MIB, 2 * MIB + 1 };
	char *p = malloc(100);
	size_t i, old = 100;

	fill(p, old, 3);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		p = realloc(p, sizes[i]);
		CHECK(p);
		CHECK(is_filled(p, old < sizes[i] ? old : sizes[i], 3));
		CHECK(malloc_usable_size(p) >= sizes[i]);
		old = sizes[i];
		fill(p, old, 3);
	}
	errno = 0;
	CHECK(!reallocarray(p, huge, 3));
	CHECK_EQ(errno, ENOMEM);
	CHECK(!realloc(p, huge));
	CHECK(is_filled(p, old, 3));
	free(p);
}

/* What does not fit is the ordinary heap's. */
static void full_falls_back(void)
{
	enum { COUNT = 400 };
	static char *p[COUNT];
	bool fell_back = false;
	int i;

	for (i = 0; i < COUNT; i++) {
		p[i] = malloc(16 * MIB);
		CHECK(p[i]);
		p[i][0] = (char)i;
		if (!is_on_device(p[i])) {
			fell_back = true;
			break;
		}
	}
	CHECK(fell_back);
	CHECK(i > 0);
	do {
		CHECK_EQ(p[i][0], (char)i);
		free(p[i]);
	} while (i--);
	p[0] = malloc(16 * MIB);
	CHECK(is_on_device(p[0]));
	free(p[0]);
}

/* Each has what there was at the fork, and neither sees what the other writes. */
static void fork_copies(void)
{
	char *p = malloc(MIB);
	int go[2], status;
	pid_t child;
	char c;

	fill(p, MIB, 5);
	CHECK_EQ(pipe(go), 0);
	child = fork();
	if (!child) {
		if (read(go[0], &c, 1) != 1 || !is_filled(p, MIB, 5))
			_exit(1);
		fill(p, MIB, 6);
		free(p);
		p = malloc(MIB);
		_exit(is_on_device(p) ? 0 : 2);
	}
	CHECK(child > 0);
	CHECK(is_on_device(p));
	fill(p, MIB, 7);
	CHECK_EQ(write(go[1], "x", 1), 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK(is_filled(p, MIB, 7));
	free(p);
}

/* Forks; the child ends with what @check says. Return its status. */
int status_of_fork(bool (*check)(char *p), char *p)
{
	pid_t child = fork();
	int status = -1;

	if (!child)
		_exit(!check(p));
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	return status;
}

static bool is_as_filled(char *p)
{
	return is_filled(p, MIB, 1);
}

static void *allocate_when_cancelled(void *argument)
{
	pthread_cancel(pthread_self());
	free(malloc(MIB));
	return argument;
}

/* The first allocation of a child opens the device. */
static void malloc_is_no_cancellation_point(void)
{
	pthread_t thread;
	void *result;
	int status;
	pid_t child;

	child = fork();
	if (!child) {
		alarm(60);
		CHECK_EQ(pthread_create(&thread, NULL, allocate_when_cancelled,
					&status),
			 0);
		CHECK_EQ(pthread_join(thread, &result), 0);
		CHECK(result == &status);
		CHECK(is_on_device(malloc(MIB)));
		_exit(0);
	}
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static void *sleep_with_all_masked(void *argument)
{
	sigset_t all;

	sigfillset(&all);
	ppoll(NULL, 0, NULL, &all);
	return argument;
}

/* It cannot be told anything, and need not be. */
static void fork_beside_a_masked_thread(void)
{
	char *p = malloc(MIB);
	pthread_t thread;

	fill(p, MIB, 1);
	CHECK_EQ(pthread_create(&thread, NULL, sleep_with_all_masked, NULL), 0);
	usleep(10000);
	CHECK_EQ(status_of_fork(is_as_filled, p), 0);
	CHECK(is_on_device(p));
}

static atomic_bool end_writers;

static void *count(void *argument)
{
	_Atomic uint64_t *word = argument;
	uint64_t i = 0;

	do {
		if (atomic_fetch_add(word, 1) != i++)
			return NULL;
	} while (!atomic_load(&end_writers));
	return argument;
}

/* No write of another thread is lost, and the child has the memory without writers. */
static void fork_beside_writers(void)
{
	_Atomic uint64_t *words[4];
	pthread_t threads[4];
	char *p = malloc(MIB);
	void *result;
	int i;

	fill(p, MIB, 1);
	for (i = 0; i < 4; i++) {
		words[i] = calloc(1, MIB);
		CHECK_EQ(pthread_create(&threads[i], NULL, count, words[i]), 0);
	}
	for (i = 0; i < 4; i++)
		CHECK_EQ(status_of_fork(is_as_filled, p), 0);
	end_writers = true;
	for (i = 0; i < 4; i++) {
		CHECK_EQ(pthread_join(threads[i], &result), 0);
		CHECK(result && is_on_device(result));
	}
}

bool allocates(char *p)
{
	(void)p;
	p = malloc(MIB);
	fill(p, MIB, 1);
	return is_filled(p, MIB, 1);
}

static ucontext_t outer, inner;

static void run_coroutine(void)
{
	char bytes[4096];

	fill(bytes, sizeof(bytes), 1);
	CHECK_EQ(status_of_fork(allocates, NULL), 0);
	CHECK(is_filled(bytes, sizeof(bytes), 1));
	swapcontext(&inner, &outer);
}

static void fork_on_a_stack_on_the_device(void)
{
	getcontext(&inner);
	inner.uc_stack.ss_sp = malloc(MIB);
	inner.uc_stack.ss_size = MIB;
	makecontext(&inner, run_coroutine, 0);
	CHECK(is_on_device(inner.uc_stack.ss_sp));
	swapcontext(&outer, &inner);
}

static void *fork_in_thread(void *argument)
{
	usleep(10000);
	CHECK_EQ(status_of_fork(allocates, NULL), 0);
	return argument;
}

/* The end of a thread is a shared futex, which a device does not have. */
static void stack_of_a_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	void *stack;

	CHECK_EQ(posix_memalign(&stack, 4096, MIB), 0);
	CHECK(is_on_device(stack));
	pthread_attr_init(&attr);
	CHECK_EQ(pthread_attr_setstack(&attr, stack, MIB), 0);
	CHECK_EQ(pthread_create(&thread, &attr, fork_in_thread, NULL), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	free(stack);
}

static char *new_block(void)
{
	void *p;

	CHECK_EQ(posix_memalign(&p, 4096, 2 * MIB), 0);
	CHECK(is_on_device(p));
	fill(p, 2 * MIB, 1);
	return p;
}

static bool is_whole_but_a_page(char *p)
{
	return is_filled(p, MIB, 1) && is_on_device(p) == false;
}

static void guard_pages(void)
{
	char *p = new_block();

	CHECK_EQ(mprotect(p + MIB, 4096, PROT_NONE), 0);
	CHECK_EQ(status_of_fork(is_whole_but_a_page, p), 0);
	free(p);
	p = new_block();
	CHECK_EQ(mprotect(p, 4096, PROT_READ | PROT_EXEC), 0);
	CHECK(!is_on_device(p) && is_on_device(p + 4096));
	CHECK(is_filled(p, 2 * MIB, 1));
	free(p);
	free(new_block());
}

static bool is_whole_behind(char *p)
{
	return is_filled(p, MIB, 1);
}

static void pages_go(void)
{
	char *p = new_block();

	CHECK_EQ(munmap(p + MIB, MIB), 0);
	CHECK_EQ(status_of_fork(is_whole_behind, p), 0);
	free(p);
	errno = 0;
	p = new_block();
	CHECK_EQ(munmap(p + 1, MIB), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK(is_on_device(p));
	free(p);
}

/* Hints reach the ordinary pages of a block. */
static void hints_for_a_part(void)
{
	char *p = new_block();

	CHECK_EQ(madvise(p, MIB, MADV_DONTFORK), 0);
	CHECK(!is_on_device(p) && is_on_device(p + MIB));
	CHECK_EQ(madvise(p, 2 * MIB, MADV_DOFORK), 0);
	CHECK(is_on_device(p + MIB));
	CHECK_EQ(status_of_fork(is_whole_behind, p), 0);
	CHECK_EQ(madvise(p, 2 * MIB, MADV_HUGEPAGE), 0);
	free(p);
}

static void pages_move_away(void)
{
	char *p = new_block(), *to;

	to = mmap(NULL, MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mremap(p, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
	free(p);
	CHECK(is_filled(to, MIB, 1));
	free(new_block());
	CHECK(is_filled(to, MIB, 1));
}

static bool is_wiped(char *p)
{
	return !p[0] && !p[MIB - 1] && p[2 * MIB - 1] == 7;
}

static void advice_is_taken(void)
{
	char *p = new_block();

	CHECK_EQ(madvise(p, 2 * MIB, MADV_HUGEPAGE), 0);
	CHECK(is_on_device(p) && is_filled(p, 2 * MIB, 1));
	CHECK_EQ(madvise(p + MIB, 4096, MADV_DONTNEED), 0);
	CHECK_EQ(p[MIB] | p[MIB + 4095], 0);
	CHECK(is_on_device(p + MIB + 4096));
	CHECK(is_filled(p, MIB, 1));
	CHECK_EQ(madvise(p + MIB, MIB, MADV_FREE), 0);
	memset(p + MIB, 7, MIB);
	CHECK_EQ(madvise(p, MIB, MADV_WIPEONFORK), 0);
	CHECK_EQ(status_of_fork(is_wiped, p), 0);
	CHECK(is_filled(p, MIB, 1));
	free(p);
}

static void statistics_see_blocks(void)
{
	struct mallinfo2 before = mallinfo2(), now;
	char *p = malloc(8 * MIB);

	now = mallinfo2();
	CHECK(is_on_device(p));
	CHECK_EQ(now.hblkhd - before.hblkhd, 8 * MIB);
	CHECK_EQ(now.hblks - before.hblks, 1);
	free(p);
	CHECK_EQ(mallinfo2().hblkhd, before.hblkhd);
}

/* Allow the calls of a heap, and the end. Return false if the kernel has no filters. */
static bool filter_system_calls(void)
{
	static const int allowed[] = { SYS_mmap,  SYS_munmap,	 SYS_mremap,
				       SYS_brk,	  SYS_mprotect,	 SYS_madvise,
				       SYS_write, SYS_exit_group };
	struct sock_filter filter[2 * ARRAY_SIZE(allowed) + 2], *f = filter;
	struct sock_fprog program = { ARRAY_SIZE(filter), filter };
	size_t i;

	*f++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
	for (i = 0; i < ARRAY_SIZE(allowed); i++) {
		*f++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						    allowed[i], 0, 1);
		*f++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
						    SECCOMP_RET_ALLOW);
	}
	*f = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
					  SECCOMP_RET_KILL_PROCESS);
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return true;
	CHECK_EQ(errno, EINVAL);
	return false;
}

static void calls_are_filtered(void)
{
	char *p = malloc(MIB), *q = malloc(MIB), *r;
	bool is_filtered;

	/* a program that asks for filters goes on */
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL), -1);
	r = malloc(MIB);
	CHECK(is_on_device(r));
	free(r);
	CHECK(is_on_device(p));
	fill(p, MIB, 1);
	is_filtered = filter_system_calls();
	r = malloc(2 * MIB);
	CHECK(is_filtered || is_on_device(r));
	memset(r, 1, 2 * MIB);
	free(q);
	p = realloc(p, 3 * MIB);
	if (!is_filled(p, MIB, 1))
		_exit(1);
	free(p);
	free(r);
	_exit(0);
}

/* Calls of a program or another library that allocate, in place of the C library's */
static bool hooks_allocate;
static unsigned int hooked;

static void hook(void)
{
	if (!hooks_allocate)
		return;
	hooked++;
	free(malloc(MIB));
}

void *mmap64(void *start, size_t length, int protection, int flags, int fd,
	     off64_t offset)
{
	hook();
	return (void *)syscall(SYS_mmap, start, length, protection, flags, fd,
			       offset);
}

int ioctl(int fd, unsigned long command, ...)
{
	va_list args;
	void *argument;

	va_start(args, command);
	argument = va_arg(args, void *);
	va_end(args);
	hook();
	return syscall(SYS_ioctl, fd, command, argument);
}

static void hooks_are_called(void)
{
	char *p;

	alarm(30);
	hooks_allocate = true;
	p = malloc(2 * MIB);
	p = realloc(p, 4 * MIB);
	CHECK_EQ(status_of_fork(allocates, NULL), 0);
	hooks_allocate = false;
	CHECK(is_on_device(p));
	CHECK(hooked >= 3);
	free(p);
}

/* What is mapped stays, and what comes is the ordinary heap's. */
static void descriptors_are_closed(void)
{
	char *p = malloc(MIB), *q;

	fill(p, MIB, 2);
	closefrom(3);
	CHECK(is_filled(p, MIB, 2));
	q = malloc(MIB);
	CHECK(q && !is_on_device(q));
	free(q);
	free(p);
}

static void *churn(void *argument)
{
	unsigned int seed = (uintptr_t)argument, i, rounds = test_scale(100);
	char *p[8] = { NULL };

	for (i = 0; i < rounds; i++) {
		unsigned int k = rand_r(&seed) % 8;
		size_t size = MIB / 2 + rand_r(&seed) % MIB;

		free(p[k]);
		p[k] = malloc(size);
		if (!p[k])
			return NULL;
		memset(p[k], k, 64);
		p[k] = realloc(p[k], size + size / 2);
		if (!p[k] || p[k][0] != (char)k || p[k][63] != (char)k)
			return NULL;
	}
	for (i = 0; i < 8; i++)
		free(p[i]);
	return argument;
}

static void threads_share(void)
{
	pthread_t threads[4];
	uintptr_t i;
	void *result;

	for (i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, churn,
					(void *)(i + 1)),
			 0);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(pthread_join(threads[i], &result), 0);
		CHECK_EQ((uintptr_t)result, i + 1);
	}
}

/* Runs all tests, or the one that the argument names. */
int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "large memory is on the device, small is not",
		  large_is_on_device },
		{ "aligned memory is aligned", aligned_is_aligned },
		{ "calloc of what was used is zero", calloc_is_zero },
		{ "realloc keeps the bytes", realloc_keeps },
		{ "what does not fit falls back", full_falls_back },
		{ "mallinfo2 counts what is on the device",
		  statistics_see_blocks },
		{ "malloc is no cancellation point",
		  malloc_is_no_cancellation_point },
		{ "calls that allocate are called by the library",
		  hooks_are_called },
		{ "fork: two heaps", fork_copies },
		{ "fork beside a thread with all signals masked",
		  fork_beside_a_masked_thread },
		{ "fork beside threads that write", fork_beside_writers },
		{ "fork in a signal handler", fork_in_a_signal_handler },
		{ "fork on a stack on the device",
		  fork_on_a_stack_on_the_device },
		{ "fork without handlers", fork_without_handlers },
		{ "fork with shared descriptors",
		  fork_with_shared_descriptors },
		{ "forks that fail", forks_that_fail },
		{ "handlers of a fork use blocks", handlers_of_a_fork },
		{ "fork beside threads that use files", fork_beside_files },
		{ "the stack of a thread is ordinary memory",
		  stack_of_a_thread },
		{ "a guard page ends with its block", guard_pages },
		{ "pages that are unmapped are not copied", pages_go },
		{ "hints for a part of a block", hints_for_a_part },
		{ "pages that moved away stay", pages_move_away },
		{ "madvise does what it says", advice_is_taken },
		{ "a filter of system calls that allows a heap",
		  calls_are_filtered },
		{ "the program closes the descriptor", descriptors_are_closed },
		{ "threads allocate, resize and free", threads_share },
	};
	size_t i;

	if (argc == 1)
		return test_main(tests, ARRAY_SIZE(tests));
	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		if (!strcmp(tests[i].name, argv[1]))
			return test_main(&tests[i], 1);
	}
	return 1;
}
