// SPDX-License-Identifier: GPL-2.0
/*
 * Limits of users and contexts. open() fails with EMFILE and ALLOC with EDQUOT. An
 * unprivileged user who allocates as much as possible stops at the limit; the machine
 * and the other users go on.
 */
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>

#include "accmem_test.h"

#define USER_A 65534
#define USER_B 65533

static const char *const names[] = { "max_contexts_per_user",
				     "max_buffers_per_user",
				     "max_bytes_per_user",
				     "max_bytes_per_context" };

FIXTURE(limits)
{
	int64_t saved[4];
	mode_t mode;
};

ACCMEM_VARIANTS(limits);

FIXTURE_SETUP(limits)
{
	struct rlimit files = { 20000, 20000 };
	struct stat st;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		self->saved[i] = accmem_param(names[i]);
		ASSERT_LE(0, self->saved[i])
		{
			TH_LOG("no parameter %s", names[i]);
		}
	}
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	ASSERT_EQ(0, stat(variant->path, &st));
	self->mode = st.st_mode & 07777;
	ASSERT_EQ(0, chmod(variant->path, 0666));
	ASSERT_TRUE(accmem_is_idle(variant->path, 10000));
}

FIXTURE_TEARDOWN(limits)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		EXPECT_EQ(0, accmem_param_set(names[i], self->saved[i]));
	}
	chmod(variant->path, self->mode);
	EXPECT_TRUE(accmem_is_idle(variant->path, 30000));
}

struct user {
	const char *path;
	uid_t uid;
	int (*fn)(const char *path);
};

static int as_user(void *arg)
{
	struct user *u = arg;

	if (u->uid && (setgroups(0, NULL) || setgid(u->uid) || setuid(u->uid)))
		return 250;
	return u->fn(u->path);
}

static int run_as(const char *path, uid_t uid, int (*fn)(const char *path))
{
	struct user u = { path, uid, fn };

	return accmem_in_child(as_user, &u);
}

/* --- contexts ------------------------------------------------------------ */

static int opens_three(const char *path)
{
	int fd[4];

	fd[0] = accmem_opened(path);
	fd[1] = accmem_opened(path);
	fd[2] = accmem_opened(path);
	ACCMEM_MUST(accmem_dev_open(path, O_RDWR) == -EMFILE);
	/* a duplicated descriptor is not another context */
	ACCMEM_MUST((fd[3] = dup(fd[0])) >= 0);
	ACCMEM_MUST(accmem_dev_open(path, O_RDWR) == -EMFILE);
	/* a closed context makes room */
	close(fd[1]);
	fd[1] = accmem_opened(path);
	ACCMEM_MUST(accmem_dev_open(path, O_RDWR) == -EMFILE);
	return 0;
}

static int opens_one(const char *path)
{
	int fd = accmem_opened(path);

	close(fd);
	return 0;
}

static int opens_none(const char *path)
{
	ACCMEM_MUST(accmem_dev_open(path, O_RDWR) == -EMFILE);
	return 0;
}

static int opens_four(const char *path)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		ACCMEM_MUST(accmem_dev_open(path, O_RDWR) >= 0);
	return 0;
}

TEST_F(limits, contexts)
{
	ASSERT_EQ(0, accmem_param_set(names[0], 3));
	EXPECT_EQ(0, run_as(variant->path, USER_A, opens_three));
	/* the count has returned to 0 */
	EXPECT_EQ(0, run_as(variant->path, USER_A, opens_three));
	EXPECT_EQ(0, run_as(variant->path, USER_B, opens_three));
	/* root has CAP_SYS_RESOURCE */
	EXPECT_EQ(0, run_as(variant->path, 0, opens_four));
	/* 0 means no limit */
	ASSERT_EQ(0, accmem_param_set(names[0], 0));
	EXPECT_EQ(0, run_as(variant->path, USER_A, opens_four));
}

/* A user at its limit does not affect another user. */
TEST_F(limits, contexts_are_counted_by_user)
{
	int ready[2];
	char byte;
	pid_t pid;

	ASSERT_EQ(0, accmem_param_set(names[0], 3));
	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct user u = { variant->path, USER_A, opens_three };
		char result = as_user(&u);

		/* the contexts of the child are still open */
		(void)!write(ready[1], &result, 1);
		pause();
		_exit(0);
	}
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	EXPECT_EQ(0, byte);
	EXPECT_EQ(0, run_as(variant->path, USER_B, opens_one));
	/* two processes of a user share the limit */
	EXPECT_EQ(0, run_as(variant->path, USER_A, opens_none));
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, accmem_wait_child(pid));
	EXPECT_EQ(0, run_as(variant->path, USER_A, opens_one));
	close(ready[0]);
	close(ready[1]);
}

/* --- buffers and bytes --------------------------------------------------- */

static int allocates_five(const char *path)
{
	struct accmem_alloc a[6];
	uint64_t before;
	int fd[2], i;

	fd[0] = accmem_opened(path);
	fd[1] = accmem_opened(path);
	for (i = 0; i < 5; i++)
		ACCMEM_MUST(!accmem_alloc_bytes(fd[i & 1], 4096, 0, &a[i]));
	before = accmem_free_now(fd[0]);
	ACCMEM_MUST(accmem_alloc_bytes(fd[0], 4096, 0, &a[5]) == -EDQUOT);
	ACCMEM_MUST(accmem_alloc_bytes(fd[1], 4096, 0, &a[5]) == -EDQUOT);
	ACCMEM_MUST(accmem_free_now(fd[0]) == before);
	ACCMEM_MUST(!accmem_ioctl_free(fd[0], a[0].address));
	ACCMEM_MUST(!accmem_alloc_bytes(fd[1], 4096, 0, &a[0]));
	ACCMEM_MUST(accmem_alloc_bytes(fd[0], 4096, 0, &a[5]) == -EDQUOT);
	return 0;
}

static int allocates_six(const char *path)
{
	struct accmem_alloc a;
	int fd, i;

	fd = accmem_opened(path);
	for (i = 0; i < 6; i++)
		ACCMEM_MUST(!accmem_alloc_bytes(fd, 4096, 0, &a));
	return 0;
}

TEST_F(limits, buffers)
{
	ASSERT_EQ(0, accmem_param_set(names[1], 5));
	EXPECT_EQ(0, run_as(variant->path, USER_A, allocates_five));
	EXPECT_EQ(0, run_as(variant->path, USER_A, allocates_five));
	EXPECT_EQ(0, run_as(variant->path, 0, allocates_six));
	ASSERT_EQ(0, accmem_param_set(names[1], 0));
	EXPECT_EQ(0, run_as(variant->path, USER_A, allocates_six));
}

/* fills a limit of MIB(4), of a user or of a context */
static int fills_4m(int fd, int other)
{
	struct accmem_alloc a, b, c;
	char *p;

	ACCMEM_MUST(!accmem_alloc_bytes(fd, MIB(2), 0, &a));
	ACCMEM_MUST(!accmem_alloc_bytes(other, MIB(2), 0, &b));
	ACCMEM_MUST(accmem_alloc_bytes(fd, 4096, 0, &c) == -EDQUOT);
	ACCMEM_MUST(accmem_alloc_bytes(fd, GIB(1), 0, &c) == -EDQUOT);
	/* a mapping keeps the memory of a freed buffer, and its charge */
	p = accmem_mmap(fd, &a, MIB(2), RW);
	ACCMEM_MUST(p);
	ACCMEM_MUST(!accmem_ioctl_free(fd, a.address));
	ACCMEM_MUST(accmem_alloc_bytes(fd, 4096, 0, &c) == -EDQUOT);
	ACCMEM_MUST(!munmap(p, MIB(2)));
	ACCMEM_MUST(!accmem_alloc_bytes(fd, MIB(2), 0, &a));
	ACCMEM_MUST(accmem_alloc_bytes(other, 4096, 0, &c) == -EDQUOT);
	return 0;
}

static int fills_user(const char *path)
{
	int fd, other;

	fd = accmem_opened(path);
	other = accmem_opened(path);
	return fills_4m(fd, other);
}

static int fills_context(const char *path)
{
	struct accmem_info info;
	struct accmem_alloc a;
	int fd, second;

	fd = accmem_opened(path);
	ACCMEM_MUST(!accmem_ioctl_info(fd, &info));
	ACCMEM_MUST(info.context_limit == MIB(4));
	ACCMEM_MUST(!fills_4m(fd, fd));
	ACCMEM_MUST(!accmem_ioctl_info(fd, &info));
	ACCMEM_MUST(info.context_bytes == MIB(4));
	/* another context of the user has a limit of its own */
	second = accmem_opened(path);
	ACCMEM_MUST(!accmem_alloc_bytes(second, MIB(4), 0, &a));
	ACCMEM_MUST(accmem_alloc_bytes(second, 4096, 0, &a) == -EDQUOT);
	return 0;
}

static int fills_8m(const char *path)
{
	struct accmem_alloc a;
	int fd = accmem_opened(path);

	ACCMEM_MUST(!accmem_alloc_bytes(fd, MIB(8), 0, &a));
	return 0;
}

TEST_F(limits, bytes_of_a_user)
{
	ASSERT_EQ(0, accmem_param_set(names[2], MIB(4)));
	EXPECT_EQ(0, run_as(variant->path, USER_A, fills_user));
	EXPECT_EQ(0, run_as(variant->path, USER_A, fills_user));
	EXPECT_EQ(0, run_as(variant->path, 0, fills_8m));
	ASSERT_EQ(0, accmem_param_set(names[2], 0));
	EXPECT_EQ(0, run_as(variant->path, USER_A, fills_8m));
}

TEST_F(limits, bytes_of_a_context)
{
	ASSERT_EQ(0, accmem_param_set(names[3], MIB(4)));
	EXPECT_EQ(0, run_as(variant->path, USER_A, fills_context));
	/* the limit of a context applies to root, too */
	EXPECT_EQ(0, run_as(variant->path, 0, fills_context));
	ASSERT_EQ(0, accmem_param_set(names[3], 0));
	EXPECT_EQ(0, run_as(variant->path, USER_A, fills_8m));
}

/*
 * Large pages are a preference: a limit that refuses their size leaves normal pages. In
 * owned folios the charge of normal pages is as large, and the limit refuses both.
 */
TEST_F(limits, large_pages_beyond_a_limit_become_normal_ones)
{
	const uint32_t flags[] = { 0, ACCMEM_ALLOC_WAIT };
	int fd = accmem_opened(variant->path);
	struct accmem_alloc a, normal;
	struct accmem_info info;
	unsigned int i;
	int err;

	ASSERT_EQ(0, accmem_ioctl_info(fd, &info));
	ASSERT_EQ(0, accmem_param_set(names[3], MIB(7)));
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		normal = (struct accmem_alloc){
			.length = MIB(6) + KIB(512),
			.flags = flags[i],
			.page_policy = ACCMEM_PAGE_NORMAL_ONLY,
		};
		if (flags[i])
			normal.deadline_ns = accmem_ms() * 1000000 + 1000000000;
		a = normal;
		a.page_policy = ACCMEM_PAGE_HUGE_FIRST;
		err = accmem_ioctl_alloc(fd, &normal);
		EXPECT_EQ(accmem_owns_folios(&info) ? -EDQUOT : 0, err);
		if (!err)
			EXPECT_EQ(0, accmem_ioctl_free(fd, normal.address));
		EXPECT_EQ(err, accmem_ioctl_alloc(fd, &a));
		if (err)
			continue;
		EXPECT_EQ(4096, a.page_size);
		EXPECT_EQ(normal.footprint, a.footprint);
		EXPECT_EQ(0, accmem_ioctl_free(fd, a.address));
	}
	close(fd);
}

static int limit_file;

static bool lower_limit_to(const char *value)
{
	return pwrite(limit_file, value, strlen(value), 0) ==
	       (ssize_t)strlen(value);
}

static int fills_its_folio(const char *path)
{
	struct accmem_alloc a;
	int fd = accmem_opened(path);

	ACCMEM_MUST(!accmem_alloc_bytes(fd, KIB(64), 0, &a));
	ACCMEM_MUST(lower_limit_to("1048576"));
	ACCMEM_MUST(!accmem_alloc_bytes(fd, KIB(64), 0, &a));
	ACCMEM_MUST(!accmem_alloc_bytes(fd, KIB(64), ACCMEM_ALLOC_WAIT, &a));
	ACCMEM_MUST(accmem_alloc_bytes(fd, MIB(2), 0, &a) == -EDQUOT);
	return 0;
}

/*
 * A folio is charged as a whole. Its free part serves its context, also when the limit
 * was lowered.
 */
TEST_F(limits, a_charged_folio_serves_above_the_limit)
{
	if (strcmp(variant->path, ACCMEM_DEV_PHYS))
		return;
	limit_file = open("/sys/module/accmem/parameters/max_bytes_per_user",
			  O_WRONLY);
	ASSERT_LE(0, limit_file);
	EXPECT_EQ(0, run_as(variant->path, USER_A, fills_its_folio));
	close(limit_file);
}

/*
 * A request that is larger than all memory is refused. Its size must not overflow the
 * sum of charges, nor hide the charge of another thread for a moment.
 */
static int hides_behind_a_huge_one(const char *path)
{
	unsigned int i, granted = 0;
	struct accmem_alloc a, huge;
	int fd, other, err = 0;
	pid_t pid;

	fd = accmem_opened(path);
	other = accmem_opened(path);
	ACCMEM_MUST(!accmem_alloc_bytes(fd, MIB(2), 0, &a));
	ACCMEM_MUST((pid = fork()) >= 0);
	if (!pid)
		for (;;)
			accmem_alloc_bytes(other, -MIB(2), 0, &huge);
	for (i = 0; i < accmem_scale(4000) && !err; i++) {
		if (!accmem_alloc_bytes(fd, MIB(4), 0, &a))
			granted++;
		if (i % 16)
			continue;
		/* a request below the limit is not refused meanwhile */
		err = accmem_alloc_bytes(fd, MIB(1), 0, &a);
		if (!err)
			err = accmem_ioctl_free(fd, a.address);
	}
	kill(pid, SIGKILL);
	accmem_wait_child(pid);
	ACCMEM_MUST(!granted);
	ACCMEM_MUST(!err);
	ACCMEM_MUST(accmem_alloc_bytes(fd, -MIB(4), 0, &huge) == -EDQUOT);
	return 0;
}

static int huge_without_a_limit(const char *path)
{
	struct accmem_alloc a, huge;
	int fd = accmem_opened(path);

	ACCMEM_MUST(!accmem_alloc_bytes(fd, MIB(2), 0, &a));
	ACCMEM_MUST(accmem_alloc_bytes(fd, -MIB(2), 0, &huge) == -ENOMEM);
	ACCMEM_MUST(accmem_alloc_bytes(fd, -MIB(4), 0, &huge) == -ENOMEM);
	return 0;
}

TEST_F(limits, a_sum_does_not_wrap)
{
	ASSERT_EQ(0, accmem_param_set(names[2], MIB(4)));
	EXPECT_EQ(0, run_as(variant->path, USER_A, hides_behind_a_huge_one));
	ASSERT_EQ(0, accmem_param_set(names[2], 0));
	EXPECT_EQ(0, run_as(variant->path, USER_A, huge_without_a_limit));
}

/* A value that does not fit the type of a parameter is refused and changes nothing. */
TEST_F(limits, parameters_refuse_garbage)
{
	static const char *const garbage[] = { "-1", "x", "",
					       "99999999999999999999999" };
	char file[128];
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(file, sizeof(file), "/sys/module/accmem/parameters/%s",
			 names[i]);
		for (j = 0; j < ARRAY_SIZE(garbage); j++) {
			if (!*garbage[j])
				continue; /* writes nothing */
			EXPECT_GT(0, accmem_write_file(file, garbage[j]))
			{
				TH_LOG("%s took '%s'", names[i], garbage[j]);
			}
			EXPECT_EQ(self->saved[i], accmem_param(names[i]));
		}
	}
}

/* --- 10,000 contexts ----------------------------------------------------- */

/* opens contexts up to the limit, 10,000 at most */
static int opens_10000(const char *path)
{
	unsigned int want = accmem_scale(10000), opened, n, full = 0, other = 0;
	int64_t most = accmem_param(names[0]);
	struct accmem_alloc a;
	int fd, err;

	if (most && want > most)
		want = most;
	for (opened = 0; opened < accmem_scale(10000); opened++) {
		fd = accmem_dev_open(path, O_RDWR);
		if (fd < 0) {
			ACCMEM_MUST(fd == -EMFILE || fd == -ENOMEM);
			break;
		}
		/* allocates until a call is refused, or the context has its share */
		for (err = 0, n = 0; !err && n < 16; n++) {
			err = accmem_alloc_bytes(fd, MIB(1), 0, &a);
			if (err == -ENOMEM || err == -EDQUOT)
				full++;
			else if (err)
				other++;
		}
	}
	printf("# %u contexts, %u of them refused memory\n", opened, full);
	ACCMEM_MUST(opened == want);
	ACCMEM_MUST(!other);
	return 0;
}

TEST_F(limits, ten_thousand_contexts)
{
	EXPECT_EQ(0, run_as(variant->path, USER_A, opens_10000));
	EXPECT_TRUE(accmem_is_idle(variant->path, 30000));
	/* without limits, only the memory ends it */
	EXPECT_EQ(0, accmem_param_set(names[0], 0));
	EXPECT_EQ(0, accmem_param_set(names[1], 0));
	EXPECT_EQ(0, accmem_param_set(names[2], 0));
	EXPECT_EQ(0, run_as(variant->path, USER_A, opens_10000));
	EXPECT_TRUE(accmem_is_idle(variant->path, 30000));
	EXPECT_EQ(0, run_as(variant->path, USER_B, opens_one));
}

/* --- host memory ---------------------------------------------------------- */

#define SHARE MIB(8)

/* touches twice the share; SIGBUS must come at the share, at the end of a large page */
static int touches_its_share(const char *path)
{
	struct accmem_alloc a = { .length = 2 * SHARE };
	volatile uint64_t at = 0;
	int fd = accmem_opened(path);
	void *p;

	ACCMEM_MUST(!accmem_ioctl_alloc(fd, &a));
	p = accmem_mapped(fd, &a, a.length);
	ACCMEM_MUST(accmem_try_touch(p, &at, a.length, 4096) == SIGBUS);
	ACCMEM_MUST(at <= SHARE && at > SHARE - MIB(2));
	munmap(p, a.length);
	close(fd);
	fd = accmem_opened(path);
	a = (struct accmem_alloc){ .length = 2 * SHARE,
				   .flags = ACCMEM_ALLOC_POPULATE };
	ACCMEM_MUST(accmem_ioctl_alloc(fd, &a) == -ENOMEM);
	close(fd);
	return 0;
}

static int touches_more(const char *path)
{
	struct accmem_alloc a = { .length = 2 * SHARE,
				  .flags = ACCMEM_ALLOC_POPULATE };
	int fd = accmem_opened(path);

	ACCMEM_MUST(!accmem_ioctl_alloc(fd, &a));
	return 0;
}

static int takes_its_share(void *arg)
{
	struct user u = { arg, USER_A, touches_its_share };
	static int fd;

	if (as_user(&u))
		return 1;
	/* keeps it; the first attempt has ended with its file */
	fd = accmem_opened(arg);
	return accmem_alloc_bytes(fd, SHARE, ACCMEM_ALLOC_POPULATE,
				  &(struct accmem_alloc){});
}

/* One user takes what he can; that of the other is there when she touches it. */
TEST_F(limits, host_memory_that_is_present)
{
	int64_t share = accmem_param("max_resident_bytes_per_user");
	pid_t pid;

	if (strcmp(variant->path, ACCMEM_DEV_EMULATED))
		return;
	ASSERT_EQ(0, accmem_param_set("max_resident_bytes_per_user", SHARE));
	pid = accmem_start(takes_its_share, accmem_rest, (void *)variant->path);
	EXPECT_LT(0, pid);
	EXPECT_EQ(0, run_as(variant->path, USER_B, touches_its_share));
	EXPECT_EQ(0, run_as(variant->path, 0, touches_more));
	if (pid > 0)
		accmem_stop(pid);
	EXPECT_EQ(0, accmem_param_set("max_resident_bytes_per_user", share));
}

/* --- user namespaces ------------------------------------------------------ */

#define SUBORDINATE 100000

struct space {
	const char *path;
	uid_t creator;
	int ready[2], mapped[2];
};

/* opens the device as the user @uid of the namespace; returns to user 0 of it */
static int open_as(const char *path, uid_t uid)
{
	int fd;

	if (setresuid(uid, uid, 0))
		return -errno;
	fd = accmem_dev_open(path, O_RDWR);
	return setresuid(-1, 0, -1) ? -errno : fd;
}

/* in a new namespace of @creator: each of its users opens the device once */
static int opens_as_each(void *arg)
{
	struct space *s = arg;
	unsigned int i;
	char byte = 0;

	if (s->creator &&
	    (setgroups(0, NULL) || setgid(s->creator) || setuid(s->creator)))
		return 250;
	if (unshare(CLONE_NEWUSER))
		return KSFT_SKIP;
	/* the maps are for root to write: the process has become undumpable */
	prctl(PR_SET_DUMPABLE, 1);
	ACCMEM_MUST(write(s->ready[1], &byte, 1) == 1);
	ACCMEM_MUST(read(s->mapped[0], &byte, 1) == 1);
	for (i = 1; i <= 3; i++)
		ACCMEM_MUST(open_as(s->path, i) >= 0);
	if (s->creator)
		ACCMEM_MUST(open_as(s->path, 4) == -EMFILE);
	else
		ACCMEM_MUST(open_as(s->path, 4) >= 0);
	return 0;
}

/* runs opens_as_each() in a namespace of @creator with subordinate ids */
static int in_namespace(const char *path, uid_t creator)
{
	struct space s = { .path = path, .creator = creator };
	char file[64], map[64], byte = 0;
	pid_t pid;

	if (pipe(s.ready) || pipe(s.mapped))
		return 1;
	pid = fork();
	if (!pid)
		_exit(opens_as_each(&s));
	close(s.ready[1]);
	if (pid > 0 && read(s.ready[0], &byte, 1) == 1) {
		snprintf(file, sizeof(file), "/proc/%d/uid_map", pid);
		snprintf(map, sizeof(map), "0 %u 1\n1 %u 9\n", creator,
			 SUBORDINATE);
		if (accmem_write_file(file, map))
			kill(pid, SIGKILL);
		(void)!write(s.mapped[1], &byte, 1);
	}
	close(s.ready[0]);
	close(s.mapped[0]);
	close(s.mapped[1]);
	return accmem_wait_child(pid);
}

TEST_F(limits, subordinate_ids_do_not_multiply_them)
{
	int status;

	ASSERT_EQ(0, accmem_param_set(names[0], 3));
	status = in_namespace(variant->path, USER_A);
	if (status == KSFT_SKIP)
		SKIP(return, "no user namespaces");
	EXPECT_EQ(0, status);
	/* those of root are of users of their own */
	EXPECT_EQ(0, in_namespace(variant->path, 0));
}

ACCMEM_HARNESS_MAIN
