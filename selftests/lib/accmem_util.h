/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers of all selftests: calls on a device, which return 0 or a negative errno
 * value; patterns; accesses that may fault; counters in sysfs; and fixtures with a
 * variant for each device.
 *
 * Environment:
 *   ACCMEM_SCALE	per cent of the usual counts (default 100)
 *   ACCMEM_SEED	seed of the random tests (default: from the clock)
 *   ACCMEM_BACKING	emulated, phys or nopages: a fixture with variants on this
 *			backing runs only these
 */
#ifndef ACCMEM_UTIL_H
#define ACCMEM_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <linux/accmem.h>

#define ACCMEM_DEV_EMULATED "/dev/accmem0"
#define ACCMEM_DEV_PHYS "/dev/accmem1"
#define ACCMEM_DEV_NOPAGES "/dev/accmem2"

#define KIB(x) ((uint64_t)(x) << 10)
#define MIB(x) ((uint64_t)(x) << 20)
#define GIB(x) ((uint64_t)(x) << 30)
#define ALIGN_UP(x, a) (((x) + (a) - 1) / (a) * (a))

/*
 * Fixture variants. Each variant is a device, whose path is in variant->path. A test whose
 * device is missing is skipped, which is a failure in a lane: every lane has the three
 * devices. The devices "with
 * pages" have memory that can be pinned. On the "reserved" devices a device address
 * is the place in the carveout.
 */
#define ACCMEM_VARIANTS_WITH_PAGES(fixture)           \
	FIXTURE_VARIANT(fixture)                      \
	{                                             \
		const char *path;                     \
	};                                            \
	FIXTURE_VARIANT_ADD(fixture, emulated)        \
	{                                             \
		.path = ACCMEM_DEV_EMULATED,          \
	};                                            \
	FIXTURE_VARIANT_ADD(fixture, phys)            \
	{                                             \
		.path = ACCMEM_DEV_PHYS,              \
	}

#define ACCMEM_VARIANTS(fixture)                      \
	ACCMEM_VARIANTS_WITH_PAGES(fixture);          \
	FIXTURE_VARIANT_ADD(fixture, nopages)         \
	{                                             \
		.path = ACCMEM_DEV_NOPAGES,           \
	}

#define ACCMEM_VARIANTS_RESERVED(fixture)             \
	FIXTURE_VARIANT(fixture)                      \
	{                                             \
		const char *path;                     \
	};                                            \
	FIXTURE_VARIANT_ADD(fixture, phys)            \
	{                                             \
		.path = ACCMEM_DEV_PHYS,              \
	};                                            \
	FIXTURE_VARIANT_ADD(fixture, nopages)         \
	{                                             \
		.path = ACCMEM_DEV_NOPAGES,           \
	}

/*
 * A fixture with a context of an idle device. The device must be idle after the test,
 * too. The test may use @a for a buffer.
 */
#define ACCMEM_FIXTURE(fixture)                                         \
	FIXTURE(fixture)                                                \
	{                                                               \
		int fd;                                                 \
		struct accmem_info info;                                \
		struct accmem_alloc a;                                  \
	};                                                              \
	ACCMEM_VARIANTS(fixture);                                       \
	FIXTURE_SETUP(fixture)                                          \
	{                                                               \
		ASSERT_TRUE(accmem_is_idle(variant->path, 20000));      \
		self->fd = accmem_opened(variant->path);                \
		ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info)); \
	}                                                               \
	FIXTURE_TEARDOWN(fixture)                                       \
	{                                                               \
		close(self->fd);                                        \
		EXPECT_TRUE(accmem_is_idle(variant->path, 20000));      \
	}

/* calls: 0 or -errno */
int accmem_dev_open(const char *path, int flags);
/* skips the test of this process if @path is a device of the lanes, and missing */
void accmem_skip_without(const char *path);
int accmem_ioctl(int fd, unsigned long cmd, void *arg);
int accmem_ioctl_info(int fd, struct accmem_info *info);
int accmem_info_of(int fd, uint32_t flags, struct accmem_info *info);
int accmem_ioctl_alloc(int fd, struct accmem_alloc *alloc);
int accmem_ioctl_free(int fd, uint64_t address);
int accmem_ioctl_query(int fd, uint64_t address, struct accmem_query *query);
int accmem_ioctl_access(int fd, struct accmem_access *access);
/* ALLOC of @length bytes with @flags; the other arguments are 0 */
int accmem_alloc_bytes(int fd, uint64_t length, uint32_t flags,
		       struct accmem_alloc *alloc);
/* REALLOC to @length bytes; @r may be NULL, else it gets the answer, also of a failure */
int accmem_ioctl_realloc(int fd, uint64_t address, uint64_t length,
			 uint32_t flags, struct accmem_realloc *r);
uint64_t accmem_free_now(int fd);
/* empties the caches of freed buffers of all contexts, by an ALLOC that must fail */
int accmem_drain(int fd);
/*
 * Allocates all free memory, one run at a time, in at most @max buffers. Returns the
 * number of buffers, or -errno of an unexpected failure.
 */
int accmem_take_all(int fd, uint32_t cache_mode, struct accmem_alloc *bufs,
		    int max);

/* mappings: NULL with errno set on failure */
void *accmem_mmap(int fd, const struct accmem_alloc *alloc, uint64_t length,
		  int prot);
void *accmem_mmap_at(void *hint, int fd, uint64_t offset, uint64_t length,
		     int prot, int flags);
/* maps at an address that equals the offset modulo 2 MiB, so huge entries can be used */
void *accmem_mmap_huge(int fd, const struct accmem_alloc *alloc,
		       uint64_t length);

/* pins the pages of @length bytes at @p: a pipe references them until accmem_unpin() */
bool accmem_pin(int pipes[2], void *p, size_t length);
void accmem_unpin(const int pipes[2]);
/* writes to the first page of a buffer, pins it and frees the buffer; 0 or -errno */
int accmem_free_pinned(int fd, const struct accmem_alloc *alloc, int pipes[2]);

/* contents; the checks return the offset of the first difference, or -1 */
void accmem_fill(void *p, uint64_t length, uint64_t seed);
int64_t accmem_check(const void *p, uint64_t length, uint64_t seed);
int64_t accmem_first_nonzero(const void *p, uint64_t length);
/* checks one word of every 4 KiB */
int64_t accmem_sample_nonzero(const void *p, uint64_t length);
uint64_t accmem_checksum(const void *p, uint64_t length);

/* one access; 0, or the signal that it raised */
int accmem_try_read(const volatile void *p, uint64_t *value);
int accmem_try_write(volatile void *p, uint64_t value);
/* writes a word every @step bytes, from offset *@at to @length; *@at is the progress */
int accmem_try_touch(volatile void *p, volatile uint64_t *at, uint64_t length,
		     uint64_t step);

/* counters of the device at @path, and parameters of the module */
int64_t accmem_sysfs(const char *path, const char *name);
int64_t accmem_param(const char *name);
int accmem_param_set(const char *name, int64_t value);
/* -1 if the counter has @value within @ms, else its last value */
int64_t accmem_sysfs_wait(const char *path, const char *name, int64_t value,
			  int ms);
/* free + live + detached + pending + quarantined + retired == capacity */
bool accmem_accounts_balance(const char *path);
/* true if all memory is free or retired and no context is open, within @ms */
bool accmem_is_idle(const char *path, int ms);
/* the number of bytes that a test may touch without using up the host's memory */
uint64_t accmem_touchable(int fd);
int accmem_write_file(const char *path, const char *text);

/*
 * The kernel's trace of the module's events. start() empties the trace, and returns
 * false if the kernel has no tracing. stop() enables or disables the events as they
 * were before start(). count() returns the number of lines since start() with @event
 * and @detail in them; @last may be NULL, else it gets the last line from @detail on.
 */
bool accmem_trace_start(void);
bool accmem_trace_stop(void);
int accmem_trace_count(const char *event, const char *detail, char *last,
		       size_t size);
int accmem_read_file(const char *path, char *buf, size_t size);

/*
 * The kernel's log. open() starts at the first record, and lseek() to the end skips
 * the existing records. next() reads a record of at most ACCMEM_LOG_RECORD bytes, and
 * returns false if there is none. has() reads records up to the first with @text in
 * it. gets() waits up to @ms for such a record.
 */
#define ACCMEM_LOG_RECORD 2048
int accmem_log_open(void);
bool accmem_log_next(int log, char *record);
bool accmem_log_has(int log, const char *text);
bool accmem_log_gets(int log, const char *text, int ms);
/* the number of unread records with all of the texts in them; NULL ends the list */
__attribute__((sentinel)) int accmem_log_count(int log, ...);

/* the number in the line "accmem-@key:" in the fdinfo of @fd, or -1 */
int64_t accmem_fdinfo(int fd, const char *key);
/* the charge of a context, or ~0 */
uint64_t accmem_charged(int fd);

/* the number of open descriptors below 256 */
unsigned int accmem_nr_descriptors(void);

/* gives a signal a handler that does nothing; @flags are those of sigaction() */
void accmem_catch(int sig, int flags);

/* runs @fn in a child; its exit status, or 128 + signal */
int accmem_in_child(int (*fn)(void *arg), void *arg);
int accmem_wait_child(pid_t pid);

/*
 * Steps that a test only prepares itself with: they end the program if they fail.
 * opened() opens a device to read and write, and mapped() maps the start of a buffer.
 */
int accmem_opened(const char *path);
/*
 * opens the device of a test module, which lies beside the module under test, and loads
 * it if necessary; -1 with errno set on failure
 */
int accmem_open_test_device(const char *device, const char *module);
/* the number of page faults of this process; of writes to each page of @length bytes */
long accmem_faults(void);
long accmem_faults_to_write(volatile char *p, uint64_t length);
void *accmem_mapped(int fd, const struct accmem_alloc *alloc, uint64_t length);
void *accmem_mapped_huge(int fd, const struct accmem_alloc *alloc,
			 uint64_t length);

/* counts */
unsigned int accmem_scale(unsigned int n);
uint64_t accmem_seed(void);
uint32_t accmem_random(uint64_t *state);
uint64_t accmem_ms(void);

/*
 * Tenants. sysfs_file() makes the name of an attribute's file. debug_read() reads a
 * file of the device in debugfs, as accmem_read_file() does. shared() returns a number
 * in the device's debugfs file "lock_stats", or a negative value.
 */
void accmem_sysfs_file(const char *path, const char *name, char *file,
		       size_t size);
int accmem_debug_read(const char *path, const char *name, char *text,
		      size_t size);
int64_t accmem_lock_stats(const char *path, const char *key);
/*
 * The bytes that `runs` lists in @state for a context; for all contexts and free memory
 * if @context is NULL; in all states if @state is NULL; -1 if it cannot be read.
 */
int64_t accmem_run_bytes(const char *path, const char *state,
			 const char *context);
/* true if a compound page can belong to one context only */
bool accmem_owns_folios(const struct accmem_info *info);
/*
 * The charge of a context that has these buffers and no others: the compound pages
 * that they lie in if those have owners, else the granules.
 */
uint64_t accmem_charge_of(const struct accmem_info *info,
			  const struct accmem_alloc *a, unsigned int n);
/* runs @fn in a child as the unprivileged user @uid; its exit status */
int accmem_as_user(uid_t uid, int (*fn)(void *arg), void *arg);
/*
 * Starts a child that calls @prepare once and then @step until accmem_stop(). Without
 * @step the child spins. Returns the id of the child when @prepare has returned 0, or
 * -1 if it has failed.
 */
pid_t accmem_start(int (*prepare)(void *arg), void (*step)(void *arg),
		   void *arg);
void accmem_stop(pid_t pid);
/* for @step: sleeps until accmem_stop() */
void accmem_rest(void *unused);
/*
 * The time in ns that this process has slept, for a lock or a page: it has neither run
 * nor waited for a processor. @since is the result of an earlier call, or 0. If the
 * kernel has no such statistics, each voluntary context switch counts as 10 ms.
 */
int64_t accmem_slept(int64_t since);
/* true if the thread @tid of this process sleeps in a system call */
bool accmem_is_asleep(pid_t tid);
/* waits up to @ms until the thread that has stored its id at @tid sleeps in a system call */
bool accmem_until_asleep(const pid_t *tid, unsigned int ms);
/* the time in ns that @n calls of @fn take */
uint64_t accmem_time(void (*fn)(void *arg), void *arg, unsigned int n);

/* true if the variant's name begins with the backing, as that of nopages_wc */
bool accmem_is_on(const char *variant, const char *backing);

#ifdef __KSELFTEST_HARNESS_H
/*
 * The default of 30 s is too short for a busy emulated machine. A kernel with checkers is
 * several times slower. A test with a hundred times the counts needs a hundred times as
 * long.
 */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 60
#define ACCMEM_CHECKERS_FACTOR 4

static inline int accmem_harness_timeout(int timeout)
{
	const char *kernel = getenv("ACCMEM_KERNEL");

	if (kernel && strncmp(kernel, "stock", 5))
		timeout *= ACCMEM_CHECKERS_FACTOR;
	return accmem_scale(100) > 100 ? (int)accmem_scale(timeout) : timeout;
}

static inline void accmem_harness_select(struct __fixture_metadata *f,
					 const char *backing)
{
	struct __fixture_variant_metadata *all = f->variant, *v, *next;

	for (v = all; v && !accmem_is_on(v->name, backing); v = v->next)
		;
	if (!v)
		return;
	f->variant = NULL;
	for (v = all; v; v = next) {
		next = v->next;
		if (accmem_is_on(v->name, backing))
			__register_fixture_variant(f, v);
	}
}

static inline int accmem_harness_main(int argc, char **argv)
{
	const char *backing = getenv("ACCMEM_BACKING");
	struct __fixture_metadata *f;
	struct __test_metadata *t;

	for (f = __fixture_list; f; f = f->next) {
		if (backing)
			accmem_harness_select(f, backing);
		for (t = f->tests; t; t = t->next)
			t->timeout = accmem_harness_timeout(t->timeout);
	}
	return test_harness_run(argc, argv);
}

#define ACCMEM_HARNESS_MAIN                             \
	int main(int argc, char **argv)                 \
	{                                               \
		return accmem_harness_main(argc, argv); \
	}
#endif

/* for functions of a child: prints a condition that does not hold, and returns 1 */
#define ACCMEM_MUST(condition)                                           \
	do {                                                             \
		if (!(condition)) {                                      \
			printf("# line %d: %s\n", __LINE__, #condition); \
			return 1;                                        \
		}                                                        \
	} while (0)

#endif /* ACCMEM_UTIL_H */
