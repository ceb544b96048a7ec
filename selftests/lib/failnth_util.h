/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Failed allocations. sweep() makes a call again and again and lets each of its
 * allocations fail once. Rounds check that a call makes no allocation at all.
 *
 * Needs a kernel with fault injection (debug-6.12). With ACCMEM_FAIL_VERBOSE=2 in the
 * environment the kernel logs the stack of each failure.
 */
#ifndef FAILNTH_UTIL_H
#define FAILNTH_UTIL_H

#include "accmem_test.h"

#define N_MAX 2000
#define DEBUG "/sys/kernel/debug/"

static int nth_fd = -1;
static int log_fd = -1;

static inline bool can_inject(void)
{
	return !access("/proc/self/fail-nth", W_OK) &&
	       !access(DEBUG "failslab", F_OK) &&
	       !access(DEBUG "fail_page_alloc", F_OK);
}

static inline int set(const char *attr, const char *name, const char *value)
{
	char file[128];
	int err;

	snprintf(file, sizeof(file), DEBUG "%s/%s", attr, name);
	err = accmem_write_file(file, value);
	if (err)
		printf("# %s: %s\n", file, strerror(-err));
	return err;
}

static inline int set_both(const char *name, const char *value)
{
	int err = set("failslab", name, value);

	return err ?: set("fail_page_alloc", name, value);
}

/* the verbosity in the log: ACCMEM_FAIL_VERBOSE, or @usual */
static inline int set_verbose(const char *usual)
{
	return set_both("verbose", getenv("ACCMEM_FAIL_VERBOSE") ?: usual);
}

/*
 * Allocations that may sleep fail as well, and allocations of every order. The log gets
 * no stack for each of them.
 */
static inline int configure(void)
{
	static const char *const others[] = { "fail_usercopy", "fail_futex",
					      "fail_make_request",
					      "fail_io_timeout" };
	char file[128];
	unsigned int i;
	int err;

	err = set_both("ignore-gfp-wait", "N");
	err = err ?: set("fail_page_alloc", "ignore-gfp-highmem", "N");
	err = err ?: set("fail_page_alloc", "min-order", "0");
	err = err ?: set_verbose("0");
	/* other points of failure do not count: no stack leads through page 0 */
	for (i = 0; i < ARRAY_SIZE(others) && !err; i++) {
		snprintf(file, sizeof(file), DEBUG "%s", others[i]);
		if (!access(file, F_OK))
			err = set(others[i], "require-start", "1") ?:
				      set(others[i], "require-end", "2");
	}
	return err;
}

/* With @only, only allocations below a function of the module count; else all do. */
static inline int only_module(bool only)
{
	char start[32] = "0", end[32] = "0xffffffffffffffff";
	unsigned long long text = 0, size = 0;
	char line[512];
	FILE *f;
	int err;

	f = only ? fopen("/proc/modules", "r") : NULL;
	while (f && !text && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "accmem %llu %*s %*s %*s %llx", &size,
			   &text) != 2)
			text = 0;
	}
	if (f)
		fclose(f);
	if (only && !text)
		return -ENOENT;
	if (only) {
		snprintf(start, sizeof(start), "%#llx", text);
		snprintf(end, sizeof(end), "%#llx", text + size);
	}
	err = set_both("require-start", start);
	err = err ?: set_both("require-end", end);
	return err ?: set_both("stacktrace-depth", "32");
}

static inline void arm(unsigned int nth)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", nth);

	if (pwrite(nth_fd, text, n, 0) != n)
		abort();
}

/* ends the injection; true if a failure was injected */
static inline bool disarm(void)
{
	char text[16] = "";

	if (pread(nth_fd, text, sizeof(text) - 1, 0) <= 0)
		abort();
	if (pwrite(nth_fd, "0", 1, 0) != 1)
		abort();
	return atoi(text) == 0;
}

#define NEED_INJECTION()                                                   \
	do {                                                               \
		if (!can_inject())                                         \
			SKIP(return, "no fault injection in this kernel"); \
	} while (0)

/*
 * Makes @call with its first allocation failing, then with its second, and so on, until
 * no failure is injected and the call succeeds. @call undoes what it does, and returns
 * 0 or -errno. Returns the number of calls that failed.
 */
static inline unsigned int sweep(struct __test_metadata *_metadata,
				 const char *what, const char *path, int fd,
				 int (*call)(const char *path, int fd))
{
	int64_t start = accmem_sysfs(path, "free_bytes");
	int64_t buffers = accmem_sysfs(path, "buffers");
	unsigned int nth, failed = 0;
	bool injected = true;
	int err = 0;

	/* fills the kernel's caches; the context's own cache would hide the call */
	ASSERT_EQ(0, call(path, fd));
	disarm();
	ASSERT_EQ(start, accmem_sysfs(path, "free_bytes"));
	for (nth = 1; nth < N_MAX && injected; nth++) {
		ASSERT_EQ(0, accmem_drain(fd));
		arm(nth);
		err = call(path, fd);
		injected = disarm();
		failed += err != 0;
		if (err) {
			EXPECT_TRUE(injected)
			{
				TH_LOG("%s failed by itself: %d", what, err);
			}
		}
		ASSERT_EQ(start, accmem_sysfs(path, "free_bytes"))
		{
			TH_LOG("%s, failure %u", what, nth);
		}
		ASSERT_EQ(buffers, accmem_sysfs(path, "buffers"));
	}
	EXPECT_FALSE(injected);
	EXPECT_EQ(0, err);
	printf("# %s %s: %u points, %u failures seen\n", path, what, nth - 2,
	       failed);
	return failed;
}

/* calls that allocate, and calls that do not */
#define SWEEP(call) \
	EXPECT_LT(0u, sweep(_metadata, #call, variant->path, self->fd, call))
#define SWEEP_NONE(call) \
	EXPECT_EQ(0u, sweep(_metadata, #call, variant->path, self->fd, call))

/*
 * Rounds that check that a call makes no allocation. A test has two ways to make the
 * call, which take turns. The first round of each way runs without injection, since KASAN
 * may allocate for the first free with a stack, and the program for the first call of a
 * function. The later rounds inject failures, until each way had a round without one.
 *
 * The kernel's checkers (KASAN, the debug objects) allocate for pools of their own in any
 * call. They use __GFP_NOWARN, so the log has no record of this failure, and the round is
 * repeated. A call that always allocates has no round without a failure.
 */
struct rounds {
	unsigned int nr; /* number of this round, from 1; its last bit is the way */
	unsigned int clean; /* ways that had a round without a failure, a bit each */
};

#define BOTH_WAYS 3
#define WALKED 2
#define ROUNDS_MAX 100

static inline bool next_round(struct rounds *r)
{
	if (!r->nr && set_verbose("1"))
		abort();
	r->nr++;
	return r->nr <= ROUNDS_MAX && r->clean != BOTH_WAYS;
}

static inline void arm_round(struct rounds *r)
{
	if (lseek(log_fd, 0, SEEK_END) < 0)
		abort();
	arm(r->nr > WALKED);
}

/* false if an allocation was seen */
static inline bool disarm_round(struct rounds *r)
{
	bool failed = disarm();

	if (r->nr <= WALKED)
		return true;
	if (!failed)
		r->clean |= 1u << (r->nr & 1);
	return !failed ||
	       !accmem_log_has(log_fd, "FAULT_INJECTION: forcing a failure");
}

/* opens the file that injects into this thread, and the log; false if one is missing */
static inline bool open_both(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/fail-nth",
		 (int)syscall(SYS_gettid));
	nth_fd = open(path, O_RDWR | O_CLOEXEC);
	log_fd = accmem_log_open();
	return nth_fd >= 0 && log_fd >= 0;
}

/* The setup does not skip: each test does, so that its name is in the results. */
#define FAILNTH_FIXTURE(fixture)                                        \
	FIXTURE(fixture)                                                \
	{                                                               \
		int fd;                                                 \
		struct accmem_info info;                                \
	};                                                              \
	ACCMEM_VARIANTS(fixture);                                       \
	FIXTURE_SETUP(fixture)                                          \
	{                                                               \
		self->fd = accmem_opened(variant->path);                \
		ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info)); \
		if (!can_inject())                                      \
			return;                                         \
		ASSERT_EQ(0, configure());                              \
		ASSERT_EQ(0, only_module(false));                       \
		ASSERT_TRUE(open_both());                               \
	}                                                               \
	FIXTURE_TEARDOWN(fixture)                                       \
	{                                                               \
		if (can_inject())                                       \
			only_module(false);                             \
		close(self->fd);                                        \
		EXPECT_TRUE(accmem_is_idle(variant->path, 20000));      \
	}

#endif /* FAILNTH_UTIL_H */
