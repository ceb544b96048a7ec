// SPDX-License-Identifier: MIT
/*
 * Forks. The mappings of a device are shared with the child of a fork, but the child needs
 * a heap of its own. So fork_prepare() copies the blocks to ordinary memory; the child
 * moves the copies to the addresses of the blocks, and the parent drops them.
 *
 * No thread is stopped. While other threads write, blocks are copied again and again
 * until nothing has changed since the last time: then the copies are of one moment. After
 * PASSES times, the copies may mix several moments.
 *
 * vfork(), posix_spawn() and exec copy nothing.
 *
 * Locking: the lock of the blocks is held from fork_prepare() on, exclusively. So no
 * block is allocated, freed or made ordinary meanwhile. The library is initialised before the
 * others (-z initfirst). So fork_prepare() runs after the handlers of other libraries, and
 * fork_child() before them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "preload.h"

#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)
#define PASSES 4
#define STACK_SIZE (256ul << 10)

/* On a stack of its own */
struct fork_call {
	ucontext_t here, there;
	long (*call)(const long *arguments);
	const long *arguments;
	long result;
	int error;
};

static __thread bool has_failed __attribute__((tls_model("initial-exec")));
static __thread struct fork_call *current
	__attribute__((tls_model("initial-exec")));

bool fork_has_failed(void)
{
	return has_failed;
}

/* Return true if a page was copied. Zero pages are not written, so they need no memory. */
static bool fork_copy(struct block *block)
{
	size_t at = 0, end;
	bool changed = false;

	while ((end = heap_run(block, &at, block->length)) > at)
		for (; at < end; at += GRANULE)
			if (memcmp(block->copy + at, block->start + at,
				   GRANULE)) {
				memcpy(block->copy + at, block->start + at,
				       GRANULE);
				changed = true;
			}
	return changed;
}

static bool fork_copy_all(void)
{
	struct block *block = NULL;
	bool changed = false;

	while ((block = heap_next(block)))
		changed |= fork_copy(block);
	return changed;
}

static void fork_drop(void)
{
	struct block *block = NULL;

	while ((block = heap_next(block))) {
		if (block->copy)
			preload_unmap(block->copy, block->length);
		block->copy = NULL;
	}
}

void fork_prepare(void)
{
	int passes = __libc_single_threaded ? 1 : PASSES;
	struct block *block = NULL;
	void *copy;

	heap_lock_for_fork();
	has_failed = false;
	while (!has_failed && (block = heap_next(block))) {
		copy = mmap(NULL, block->length, PROT_READ | PROT_WRITE,
			    ANONYMOUS, -1, 0);
		has_failed = copy == MAP_FAILED;
		block->copy = has_failed ? NULL : copy;
		preload_stats.copied += block->length;
	}
	while (!has_failed && passes-- && fork_copy_all())
		;
}

void fork_parent(void)
{
	fork_drop();
	heap_unlock_parent();
}

/* Move the copy over the block, so that no page is shared with the parent. */
static void fork_install_copy(struct block *block)
{
	size_t at = 0, end;

	while ((end = heap_run(block, &at, block->length)) > at) {
		if (!preload_move(block->copy + at, end - at,
				  block->start + at))
			abort();
		at = end;
	}
	preload_unmap(block->copy, block->length);
	block->copy = NULL;
	block->is_on_device = false;
}

/* A child without its copies ends before the program can see it. */
static void fork_start_child(bool shares_files)
{
	struct block *block = NULL;

	if (has_failed)
		_exit(127);
	while ((block = heap_next(block)))
		fork_install_copy(block);
	device_close_inherited(shares_files);
	preload_stats = (struct stats){ 0 };
	heap_unlock_child();
}

void fork_child(void)
{
	fork_start_child(false);
}

void fork_child_sharing_files(void)
{
	fork_start_child(true);
}

static void fork_on_other_stack(void)
{
	current->result = current->call(current->arguments);
	current->error = errno;
}

/*
 * On a stack on the device, parent and child would write to the same frames until the
 * child has its copies. So fork on another stack.
 */
static long fork_switch(long (*call)(const long *arguments),
			const long *arguments)
{
	struct fork_call *f = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
				   ANONYMOUS, -1, 0);
	long result;

	if (f == MAP_FAILED)
		return -1;
	f->call = call;
	f->arguments = arguments;
	getcontext(&f->there);
	f->there.uc_stack.ss_sp = f + 1;
	f->there.uc_stack.ss_size = STACK_SIZE - sizeof(*f);
	f->there.uc_link = &f->here;
	makecontext(&f->there, fork_on_other_stack, 0);
	current = f;
	swapcontext(&f->here, &f->there);
	result = f->result;
	errno = f->error;
	preload_unmap(f, STACK_SIZE);
	return result;
}

long fork_call(long (*call)(const long *arguments), const long *arguments)
{
	char *page = (char *)((uintptr_t)&call & -GRANULE);
	bool is_on_device;
	long child;

	heap_part(page, GRANULE, &is_on_device);
	child = is_on_device ? fork_switch(call, arguments) : call(arguments);
	if (!has_failed)
		return child;
	has_failed = false;
	while (child > 0 && waitpid(child, NULL, __WALL) < 0 && errno == EINTR)
		;
	errno = ENOMEM;
	return -1;
}
