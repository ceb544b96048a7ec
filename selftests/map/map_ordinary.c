// SPDX-License-Identifier: GPL-2.0
/*
 * What ordinary memory can do, and whether a mapping of a buffer can do it: the table
 * "Ordinary memory and mappings" of Documentation/userspace-api/accmem.rst, row by row.
 * A test has the name of its row.
 */
#include <elf.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "accmem_test.h"

#define LENGTH KIB(128) /* on arm64 the smallest stack of a thread */

FIXTURE(map_ordinary)
{
	int fd;
	struct accmem_alloc a;
	bool pages; /* the memory has page structures */
	char *p;
};

ACCMEM_VARIANTS(map_ordinary);

FIXTURE_SETUP(map_ordinary)
{
	struct accmem_info info;

	self->fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	self->pages = info.features & ACCMEM_FEATURE_PIN;
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, LENGTH, 0, &self->a));
	self->p = accmem_mapped(self->fd, &self->a, LENGTH);
	accmem_fill(self->p, LENGTH, 3);
}

FIXTURE_TEARDOWN(map_ordinary)
{
	munmap(self->p, LENGTH);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

/* --- execution, growth, copies -------------------------------------------- */

TEST_F(map_ordinary, executable)
{
	EXPECT_EQ(-1, mprotect(self->p, LENGTH, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(0, mprotect(self->p, LENGTH, PROT_NONE));
	EXPECT_EQ(0, mprotect(self->p, LENGTH, PROT_READ | PROT_WRITE));
}

TEST_F(map_ordinary, private_copy)
{
	EXPECT_EQ(MAP_FAILED, mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE, self->fd, self->a.mmap_offset));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(map_ordinary, mremap)
{
	char *to;

	EXPECT_EQ(MAP_FAILED,
		  mremap(self->p, LENGTH, 2 * LENGTH, MREMAP_MAYMOVE));
	EXPECT_EQ(EFAULT, errno);
	to = mmap(NULL, LENGTH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, to);
	ASSERT_EQ(to, mremap(self->p, LENGTH, LENGTH / 2,
			     MREMAP_MAYMOVE | MREMAP_FIXED, to));
	EXPECT_EQ(-1, accmem_check(to, LENGTH / 2, 3));
	ASSERT_EQ(to, mremap(to, LENGTH / 2, LENGTH / 4, 0));
	EXPECT_EQ(-1, accmem_check(to, LENGTH / 4, 3));
	munmap(to, LENGTH);
}

/* in a child: the first word is the parent's, and becomes 1 for both */
static int change_first_word(void *arg)
{
	uint64_t *word = arg;
	bool same = *word == 5;

	*word = 1;
	return same ? 0 : 1;
}

TEST_F(map_ordinary, fork)
{
	uint64_t *word = (uint64_t *)self->p;
	int err;

	*word = 5;
	EXPECT_EQ(0, accmem_in_child(change_first_word, word));
	EXPECT_EQ(1, *word);
	/* a child without it */
	EXPECT_EQ(0, madvise(self->p, LENGTH, MADV_DONTFORK));
	EXPECT_EQ(128 + SIGSEGV, accmem_in_child(change_first_word, word));
	/* later kernels do not take that back for a mapping that does not grow */
	*word = 5;
	err = madvise(self->p, LENGTH, MADV_DOFORK) ? errno : 0;
	EXPECT_TRUE(!err || err == EINVAL);
	EXPECT_EQ(err ? 128 + SIGSEGV : 0,
		  accmem_in_child(change_first_word, word));
}

/* --- madvise -------------------------------------------------------------- */

#define AS_LRU (-1) /* 0 with page structures, else EINVAL */

TEST_F(map_ordinary, madvise)
{
	static const struct {
		int advice;
		int err;
	} rows[] = {
		{ MADV_NORMAL, 0 },
		{ MADV_RANDOM, 0 },
		{ MADV_SEQUENTIAL, 0 },
		{ MADV_DONTNEED, AS_LRU },
		{ MADV_COLD, AS_LRU },
		{ MADV_PAGEOUT, AS_LRU },
		{ MADV_POPULATE_READ, AS_LRU },
		{ MADV_POPULATE_WRITE, AS_LRU },
		{ MADV_FREE, EINVAL },
		{ MADV_WIPEONFORK, EINVAL },
		{ MADV_DODUMP, EINVAL },
		{ MADV_DONTDUMP, 0 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		int want = rows[i].err == AS_LRU ? self->pages ? 0 : EINVAL :
						   rows[i].err;
		int ret = madvise(self->p, LENGTH, rows[i].advice);

		EXPECT_EQ(want, ret ? errno : 0)
		{
			TH_LOG("advice %d", rows[i].advice);
		}
		/* whatever is advised, the contents stay */
		EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 3));
	}
	EXPECT_EQ(0, mlock(self->p, LENGTH));
	EXPECT_EQ(0, munlock(self->p, LENGTH));
	EXPECT_EQ(0, msync(self->p, LENGTH, MS_ASYNC));
	EXPECT_EQ(-1, msync(self->p, LENGTH, MS_SYNC));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 3));
}

/* --- futexes -------------------------------------------------------------- */

static long futex_wake(void *word, int flags)
{
	return syscall(SYS_futex, word, FUTEX_WAKE | flags, 1, NULL, NULL, 0) <
			       0 ?
		       -errno :
		       0;
}

TEST_F(map_ordinary, private_futex)
{
	EXPECT_EQ(0, futex_wake(self->p, FUTEX_PRIVATE_FLAG));
}

struct both {
	pthread_mutex_t mutex;
	pthread_barrier_t barrier;
	unsigned int count;
};

static int count_locked(void *arg)
{
	struct both *both = arg;
	unsigned int i;

	pthread_barrier_wait(&both->barrier);
	for (i = 0; i < 1000; i++) {
		if (pthread_mutex_lock(&both->mutex))
			return 1;
		both->count++;
		if (!(i % 100))
			sched_yield();
		if (pthread_mutex_unlock(&both->mutex))
			return 2;
	}
	return 0;
}

static void make_both(struct both *both)
{
	pthread_mutexattr_t mutex;
	pthread_barrierattr_t barrier;

	memset(both, 0, sizeof(*both));
	pthread_mutexattr_init(&mutex);
	pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&both->mutex, &mutex);
	pthread_barrierattr_init(&barrier);
	pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&both->barrier, &barrier, 2);
}

/* Two processes, one with another mapping of the same memory */
TEST_F(map_ordinary, shared_futex)
{
	char *other = accmem_mapped(self->fd, &self->a, LENGTH);
	pid_t pid;

	if (!self->pages) {
		EXPECT_EQ(-EFAULT, futex_wake(self->p, 0));
		munmap(other, LENGTH);
		return;
	}
	EXPECT_EQ(0, futex_wake(self->p, 0));
	/* in the last page, of which no other buffer has a part */
	make_both((struct both *)(self->p + LENGTH - 4096));
	pid = fork();
	if (!pid) {
		munmap(self->p, LENGTH);
		_exit(count_locked(other + LENGTH - 4096));
	}
	EXPECT_EQ(0, count_locked(self->p + LENGTH - 4096));
	EXPECT_EQ(0, accmem_wait_child(pid));
	EXPECT_EQ(2000, ((struct both *)(other + LENGTH - 4096))->count);
	munmap(other, LENGTH);
}

struct sleeper {
	char *p;
	int ready[2];
	pid_t tid;
};

static void *sleep_on(void *arg)
{
	struct sleeper *s = arg;

	__atomic_store_n(&s->tid, gettid(), __ATOMIC_RELEASE);
	syscall(SYS_futex, s->p, FUTEX_WAIT, 0, NULL, NULL, 0);
	return NULL;
}

/* in a child: a thread sleeps on memory that is unmapped then */
static int sleep_on_unmapped(struct sleeper *s)
{
	char path[64], line[256] = {};
	pthread_t thread;

	if (pthread_create(&thread, NULL, sleep_on, s))
		return 1;
	while (!__atomic_load_n(&s->tid, __ATOMIC_ACQUIRE))
		sched_yield();
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", s->tid);
	while (!strstr(line, ") S "))
		accmem_read_file(path, line, sizeof(line));
	munmap(s->p, LENGTH);
	if (write(s->ready[1], "x", 1) != 1)
		return 2;
	pause();
	return 0;
}

/*
 * A futex belongs to a place in the memory of its context. Who sleeps on memory that was
 * unmapped and freed is not found by the next owner of the memory.
 */
TEST_F(map_ordinary, shared_futex_of_the_next_owner)
{
	struct accmem_alloc a = { .length = LENGTH,
				  .flags = ACCMEM_ALLOC_FIXED,
				  .address = self->a.address };
	struct sleeper s = { .p = self->p };
	int other = accmem_opened(variant->path);
	pid_t pid;
	char x;

	ASSERT_EQ(0, pipe(s.ready));
	memset(self->p, 0, 64);
	pid = self->pages ? fork() : -1;
	if (!pid)
		_exit(sleep_on_unmapped(&s));
	if (pid > 0)
		ASSERT_EQ(1, read(s.ready[0], &x, 1));
	munmap(self->p, LENGTH);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	ASSERT_EQ(0, accmem_ioctl_alloc(other, &a));
	self->p = accmem_mapped(other, &a, LENGTH);
	EXPECT_EQ(0, *self->p);
	if (pid > 0) {
		EXPECT_EQ(0, syscall(SYS_futex, self->p, FUTEX_WAKE, 100, NULL,
				     NULL, 0));
		kill(pid, SIGKILL);
		EXPECT_EQ(128 + SIGKILL, accmem_wait_child(pid));
	}
	close(s.ready[0]);
	close(s.ready[1]);
	close(other);
}

static void *return_arg(void *arg)
{
	return arg;
}

/* The kernel wakes pthread_join() by a shared futex in the stack of the thread. */
TEST_F(map_ordinary, stack_of_a_thread)
{
	pthread_attr_t attr;
	pthread_t thread;
	void *result;

	if (!self->pages)
		return; /* pthread_join() would wait for ever, see shared_futex */
	pthread_attr_init(&attr);
	ASSERT_EQ(0, pthread_attr_setstack(&attr, self->p, LENGTH));
	ASSERT_EQ(0, pthread_create(&thread, &attr, return_arg, self));
	ASSERT_EQ(0, pthread_join(thread, &result));
	EXPECT_EQ(self, result);
}

/* --- access by others ----------------------------------------------------- */

struct remote {
	pid_t pid;
	char *p;
	bool pages;
	char end[64]; /* the last bytes */
};

/* in a child: reads and writes the parent's mapping as a debugger */
static int debug_parent(void *arg)
{
	struct remote *r = arg;
	char path[32], bytes[2 * 4096];
	int mem;

	munmap(r->p, LENGTH);
	snprintf(path, sizeof(path), "/proc/%d/mem", r->pid);
	mem = open(path, O_RDWR);
	if (mem < 0)
		return 1;
	/* across two pages */
	if (pread(mem, bytes, sizeof(bytes), (uintptr_t)r->p) !=
		    sizeof(bytes) ||
	    accmem_check(bytes, sizeof(bytes), 3) != -1)
		return 2;
	/* across the end, into the page behind it */
	if (pread(mem, bytes, 128, (uintptr_t)r->p + LENGTH - 64) != 128 ||
	    memcmp(bytes, r->end, 64) ||
	    accmem_first_nonzero(bytes + 64, 64) != -1)
		return 3;
	accmem_fill(bytes, sizeof(bytes), 4);
	if (pwrite(mem, bytes, sizeof(bytes), (uintptr_t)r->p) != sizeof(bytes))
		return 4;
	return 0;
}

TEST_F(map_ordinary, debugger)
{
	char *room = mmap(NULL, LENGTH + 4096, PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct remote r = { .pid = getpid(), .p = room };

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	ASSERT_NE(MAP_FAILED, room);
	ASSERT_EQ(room,
		  mmap(room, LENGTH, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_FIXED, self->fd, self->a.mmap_offset));
	memcpy(r.end, room + LENGTH - 64, 64);
	EXPECT_EQ(0, accmem_in_child(debug_parent, &r));
	EXPECT_EQ(-1, accmem_check(self->p, 2 * 4096, 4));
	munmap(room, LENGTH + 4096);
}

/* in a child: a debugger has the rights of the mapping, and no more */
static int debug_read_only(void *arg)
{
	struct remote *r = arg;
	char path[32], byte = 1;
	int mem;

	snprintf(path, sizeof(path), "/proc/%d/mem", r->pid);
	mem = open(path, O_RDWR);
	if (mem < 0)
		return 1;
	if (pread(mem, &byte, 1, (uintptr_t)r->p) != 1)
		return 2;
	return pwrite(mem, &byte, 1, (uintptr_t)r->p) == -1 ? 0 : 3;
}

TEST_F(map_ordinary, debugger_of_a_read_only_mapping)
{
	struct remote r = { .pid = getpid() };

	r.p = accmem_mmap(self->fd, &self->a, LENGTH, PROT_READ);
	ASSERT_NE(NULL, r.p);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	EXPECT_EQ(0, accmem_in_child(debug_read_only, &r));
	munmap(r.p, LENGTH);
}

static int read_parent(void *arg)
{
	struct remote *r = arg;
	char bytes[4096];
	struct iovec here = { bytes, sizeof(bytes) };
	struct iovec there = { r->p, sizeof(bytes) };
	ssize_t n = process_vm_readv(r->pid, &here, 1, &there, 1, 0);

	if (!r->pages)
		return n == -1 && errno == EFAULT ? 0 : 1;
	return n == sizeof(bytes) &&
			       accmem_check(bytes, sizeof(bytes), 3) == -1 ?
		       0 :
		       2;
}

TEST_F(map_ordinary, process_vm_readv)
{
	struct remote r = { .pid = getpid(),
			    .p = self->p,
			    .pages = self->pages };

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	EXPECT_EQ(0, accmem_in_child(read_parent, &r));
}

/* --- core dumps ----------------------------------------------------------- */

#define CORE "/tmp/map_ordinary.core"

struct dump {
	char *p;
	const char *filter;
	int advice;
};

static int dump_core(void *arg)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	struct dump *d = arg;

	setrlimit(RLIMIT_CORE, &all);
	accmem_write_file("/proc/self/coredump_filter", d->filter);
	if (d->advice && madvise(d->p, LENGTH, d->advice))
		_exit(1);
	signal(SIGABRT, SIG_DFL);
	abort();
}

/* the segment of the core that begins at @address: its bytes in the file, or -1 */
static int64_t core_bytes_at(uint64_t address, bool *right)
{
	int fd = open(CORE, O_RDONLY);
	static char bytes[LENGTH];
	int64_t ret = -1;
	Elf64_Ehdr e;
	Elf64_Phdr h;
	unsigned int i;

	if (fd < 0 || read(fd, &e, sizeof(e)) != sizeof(e))
		return -2;
	for (i = 0; i < e.e_phnum; i++) {
		if (pread(fd, &h, sizeof(h), e.e_phoff + i * sizeof(h)) !=
			    sizeof(h) ||
		    h.p_type != PT_LOAD || h.p_vaddr != address)
			continue;
		ret = h.p_filesz;
		*right = ret == LENGTH &&
			 pread(fd, bytes, LENGTH, h.p_offset) == LENGTH &&
			 accmem_check(bytes, LENGTH, 3) == -1;
	}
	close(fd);
	return ret;
}

TEST_F(map_ordinary, core_dump)
{
	static const struct dump rows[] = {
		{ .filter = "0x33" }, /* the default of the kernel */
		{ .filter = "0x3b" }, /* and shared mappings of files */
		{ .filter = "0x3b", .advice = MADV_DONTDUMP },
	};
	char pattern[256] = {};
	unsigned int i;

	if (accmem_read_file("/proc/sys/kernel/core_pattern", pattern,
			     sizeof(pattern)) == -ENOENT)
		return; /* the debugging kernels make no core dumps */
	ASSERT_EQ(0, accmem_write_file("/proc/sys/kernel/core_pattern", CORE));
	accmem_write_file("/proc/sys/kernel/core_uses_pid", "0");
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct dump d = rows[i];
		bool right = false;
		int64_t n;

		d.p = self->p;
		unlink(CORE);
		EXPECT_EQ(128 + SIGABRT, accmem_in_child(dump_core, &d));
		n = core_bytes_at((uintptr_t)self->p, &right);
		EXPECT_EQ(i == 1 && self->pages, right);
		EXPECT_GE(i == 1 && self->pages ? LENGTH : 0, n);
		EXPECT_LE(-1, n)
		{
			TH_LOG("row %u: no core", i);
		}
	}
	unlink(CORE);
	accmem_write_file("/proc/sys/kernel/core_pattern", pattern);
}

ACCMEM_HARNESS_MAIN
