/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the selftests share: calls on a device that return 0 or a negative
 * errno value, patterns, touches that may fault, counters in sysfs, and the
 * fixture variants.
 *
 * Environment:
 *   ACCMEM_SCALE	per cent of the usual counts (default 100)
 *   ACCMEM_SEED	seed of the random tests (default: from the clock)
 *   ACCMEM_BACKING	emulated, phys or nopages: of fixtures that have variants
 *			on it, the variants that are on another do not run
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

/* Every lane has these three devices: a missing one fails the test. */
#define ACCMEM_VARIANTS(fixture)                     \
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
	};                                            \
	FIXTURE_VARIANT_ADD(fixture, nopages)         \
	{                                             \
		.path = ACCMEM_DEV_NOPAGES,           \
	}

/* calls: 0 or -errno */
int accmem_dev_open(const char *path, int flags);
int accmem_ioctl(int fd, unsigned long cmd, void *arg);
int accmem_ioctl_info(int fd, struct accmem_info *info);
int accmem_ioctl_alloc(int fd, struct accmem_alloc *alloc);
int accmem_ioctl_free(int fd, uint64_t address);
int accmem_ioctl_query(int fd, uint64_t address, struct accmem_query *query);
int accmem_ioctl_access(int fd, struct accmem_access *access);
/* the common case: @length bytes with @flags, everything else default */
int accmem_alloc_bytes(int fd, uint64_t length, uint32_t flags,
		       struct accmem_alloc *alloc);
/*
 * REALLOC to @length bytes; @r, unless it is NULL, gets the answer, or what came
 * back with an error
 */
int accmem_ioctl_realloc(int fd, uint64_t address, uint64_t length,
			 uint32_t flags, struct accmem_realloc *r);
/* BATCH; @done, unless it is NULL, gets accmem_batch.done */
int accmem_ioctl_batch(int fd, struct accmem_batch *batch);
int accmem_batch_allocs(int fd, uint32_t flags,
			struct accmem_batch_alloc *entries, uint32_t count,
			uint32_t *done);
int accmem_batch_frees(int fd, uint32_t flags,
		       struct accmem_batch_free *entries, uint32_t count,
		       uint32_t *done);
uint64_t accmem_free_now(int fd);
/* empties the caches of freed buffers of all contexts: by an ALLOC that fails */
int accmem_drain(int fd);
/*
 * Allocates everything that is left, run by run, in at most @max buffers.
 * Returns the number of buffers, or -errno of an unexpected failure.
 */
int accmem_take_all(int fd, uint32_t cache_mode, struct accmem_alloc *bufs,
		    int max);

/* mappings: NULL with errno set on failure */
void *accmem_mmap(int fd, const struct accmem_alloc *alloc, uint64_t length,
		  int prot);
void *accmem_mmap_at(void *hint, int fd, uint64_t offset, uint64_t length,
		     int prot, int flags);
/* maps so that address and offset agree modulo 2 MiB */
void *accmem_mmap_huge(int fd, const struct accmem_alloc *alloc,
		       uint64_t length);

/* contents; offsets of the first difference, or -1 */
void accmem_fill(void *p, uint64_t length, uint64_t seed);
int64_t accmem_check(const void *p, uint64_t length, uint64_t seed);
int64_t accmem_first_nonzero(const void *p, uint64_t length);
/* one word of every 4 KiB */
int64_t accmem_sample_nonzero(const void *p, uint64_t length);
uint64_t accmem_checksum(const void *p, uint64_t length);

/* 0, or the signal that the access raised */
int accmem_try_read(const volatile void *p, uint64_t *value);
int accmem_try_write(volatile void *p, uint64_t value);
/* writes to a word in each @step of @length bytes from *@at on, which tells how far it came */
int accmem_try_touch(volatile void *p, volatile uint64_t *at, uint64_t length,
		     uint64_t step);

/* counters of the device at @path, and parameters of the module */
int64_t accmem_sysfs(const char *path, const char *name);
int64_t accmem_param(const char *name);
int accmem_param_set(const char *name, int64_t value);
/* -1 when reached within @ms, else the last value */
int64_t accmem_sysfs_wait(const char *path, const char *name, int64_t value,
			  int ms);
/* free + live + detached + pending + quarantined == capacity */
bool accmem_accounts_balance(const char *path);
/* everything free, no contexts, no buffers; waits for at most @ms */
bool accmem_is_idle(const char *path, int ms);
/* bytes of the device that a test may make present */
uint64_t accmem_touchable(int fd);
int accmem_write_file(const char *path, const char *text);

/*
 * The kernel's trace of the module's events. start() empties it and returns
 * false where the kernel has none; stop() leaves the events as start() found
 * them. count() is the number of lines since then with @event, and @detail in
 * what it says; @last gets the text of the last one's detail, or is NULL.
 */
bool accmem_trace_start(void);
bool accmem_trace_stop(void);
int accmem_trace_count(const char *event, const char *detail, char *last,
		       size_t size);
int accmem_read_file(const char *path, char *buf, size_t size);

/*
 * The kernel's log, from its first record; lseek() to its end skips what there
 * is. The next record, of ACCMEM_LOG_RECORD bytes at most, or false where there
 * is none yet; whether one of those that are there has @text in it, which is the
 * last that is read then; whether one has it within @ms.
 */
#define ACCMEM_LOG_RECORD 2048
int accmem_log_open(void);
bool accmem_log_next(int log, char *record);
bool accmem_log_has(int log, const char *text);
bool accmem_log_gets(int log, const char *text, int ms);

/* runs @fn in a child; its exit status, or 128 + signal */
int accmem_in_child(int (*fn)(void *arg), void *arg);
int accmem_wait_child(pid_t pid);

/* counts */
unsigned int accmem_scale(unsigned int n);
uint64_t accmem_seed(void);
uint32_t accmem_random(uint64_t *state);
uint64_t accmem_ms(void);

/*
 * Tenants beside each other. The file of an attribute in sysfs; a file of the
 * device in debugfs, as accmem_read_file(); a number in its file "lock_stats", or
 * a negative value.
 */
void accmem_sysfs_file(const char *path, const char *name, char *file,
		       size_t size);
int accmem_debug_read(const char *path, const char *name, char *text,
		      size_t size);
int64_t accmem_lock_stats(const char *path, const char *key);
/* does a compound page belong to one context? */
bool accmem_owns_folios(const struct accmem_info *info);
/*
 * What a context that holds these buffers, and nothing else, is charged: whole
 * compound pages where they have owners, else the granules that they lie in.
 */
uint64_t accmem_charge_of(const struct accmem_info *info,
			  const struct accmem_alloc *a, unsigned int n);
/* exit status of @fn in a child that is the unprivileged user @uid */
int accmem_as_user(uid_t uid, int (*fn)(void *arg), void *arg);
/*
 * A child that calls @prepare once, which returns 0 or fails the start, and
 * @step until accmem_stop(); both may be NULL, and then it spins. Returns its
 * id when it is ready, or -1.
 */
pid_t accmem_start(int (*prepare)(void *arg), void (*step)(void *arg),
		   void *arg);
void accmem_stop(pid_t pid);
/* a step that waits for accmem_stop() */
void accmem_rest(void *unused);
/*
 * Nanoseconds that this process has neither run nor waited for a processor since
 * it was at @since, which is 0 for a beginning: it slept, for a lock or a page.
 * Where the kernel does not say how long, each time counts as 10 ms.
 */
int64_t accmem_slept(int64_t since);
/* nanoseconds that @n calls of @fn take, by the wall clock */
uint64_t accmem_time(void (*fn)(void *arg), void *arg, unsigned int n);

/* is the variant on the backing, as in nopages_wc? */
bool accmem_is_on(const char *variant, const char *backing);

#ifdef __KSELFTEST_HARNESS_H
/*
 * An emulated guest with sanitizers needs more than the 30 s of the harness,
 * and a test of a hundred times the counts a hundred times as much.
 */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 240

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
		for (t = f->tests; t; t = t->next) {
			if (accmem_scale(100) > 100)
				t->timeout = accmem_scale(t->timeout);
		}
	}
	return test_harness_run(argc, argv);
}

#define ACCMEM_HARNESS_MAIN                             \
	int main(int argc, char **argv)                 \
	{                                               \
		return accmem_harness_main(argc, argv); \
	}
#endif

/* In a child: says which condition does not hold, and ends the function with 1 */
#define ACCMEM_MUST(condition)                                           \
	do {                                                             \
		if (!(condition)) {                                      \
			printf("# line %d: %s\n", __LINE__, #condition); \
			return 1;                                        \
		}                                                        \
	} while (0)

#endif /* ACCMEM_UTIL_H */
