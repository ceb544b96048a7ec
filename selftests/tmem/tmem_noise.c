// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of Tensor Memory to several users: who breaks rules all the time hides nobody
 * else's, and gets no more of them by leaving in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tmem_obs_util.h"

TMEM_OBS_FIXTURE(tmem_noise)

#define NOISY_USER 23001
#define QUIET_USER 23002
#define LEAVING_USER 23004

/* lets other users in; returns the mode to go back to */
static mode_t let_users_in(void)
{
	struct stat st;

	if (stat(ACCMEM_DEV_EMULATED, &st) || chmod(ACCMEM_DEV_EMULATED, 0666))
		return 0;
	return st.st_mode;
}

static int launch_single(int fd)
{
	struct accmem_tmem_launch req = { .size = sizeof(req), .cta_group = 1 };
	int err = accmem_ioctl(fd, ACCMEM_IOC_TMEM_LAUNCH, &req);

	return err ?: req.fd;
}

static int alloc_at(int cta, uint32_t columns, uint32_t *at)
{
	struct accmem_cta_alloc req = { .size = sizeof(req),
					.columns = columns,
					.destination = (uintptr_t)at };

	return accmem_ioctl(cta, ACCMEM_IOC_CTA_ALLOC, &req);
}

struct misuses {
	uint32_t columns; /* by which they are known in the log */
	int nr;
};

/* a user who asks for what no alloc can be, so many times */
static int misuse_as_user(void *arg)
{
	const struct misuses *m = arg;
	int cta, i, fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR);
	uint32_t at;

	cta = fd < 0 ? fd : launch_single(fd);
	if (cta < 0)
		return 1;
	for (i = 0; i < m->nr; i++) {
		if (alloc_at(cta, m->columns, &at) != -EDOM)
			return 2;
	}
	return 0;
}

/* a number that no alloc takes, and that is in the log of no other run */
static uint32_t some_columns(uint32_t n)
{
	return 1000000u + getpid() * 4u + n;
}

static int count_user_lines(int log, uint32_t columns)
{
	char record[ACCMEM_LOG_RECORD], what[64];
	int n = 0;

	if (lseek(log, 0, SEEK_SET) < 0)
		return -1;
	snprintf(what, sizeof(what), "alloc of %u columns", columns);
	while (accmem_log_next(log, record))
		n += strstr(record, "tmem_noise[") && strstr(record, what);
	return n;
}

TEST_F(tmem_noise, one_users_messages_do_not_hide_anothers)
{
	struct misuses noise = { some_columns(1), 3000 };
	struct misuses word = { some_columns(2), 1 };
	int n, log = accmem_log_open();

	mode_t mode = let_users_in();

	ASSERT_TRUE(mode);
	ASSERT_LE(0, log);
	EXPECT_EQ(0, accmem_as_user(NOISY_USER, misuse_as_user, &noise));
	EXPECT_EQ(0, accmem_as_user(QUIET_USER, misuse_as_user, &word));
	EXPECT_EQ(0, chmod(ACCMEM_DEV_EMULATED, mode));
	n = count_user_lines(log, noise.columns);
	EXPECT_LE(1, n);
	EXPECT_GT(3000, n);
	EXPECT_EQ(1, count_user_lines(log, word.columns));
	close(log);
}

/* the same, with nothing open between the calls */
static int misuse_and_leave(void *arg)
{
	struct misuses *m = arg;
	int i, fd, cta;
	uint32_t at;

	for (i = 0; i < m->nr; i++) {
		fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR);
		cta = fd < 0 ? fd : launch_single(fd);
		if (cta < 0)
			return 1;
		if (alloc_at(cta, m->columns, &at) != -EDOM)
			return 2;
		close(cta);
		close(fd);
	}
	return 0;
}

TEST_F(tmem_noise, messages_are_not_forgotten_with_what_is_open)
{
	struct misuses noise = { some_columns(3), 200 };
	uint64_t start = accmem_ms();
	int n, log = accmem_log_open();
	mode_t mode = let_users_in();

	ASSERT_TRUE(mode);
	ASSERT_LE(0, log);
	EXPECT_EQ(0, accmem_as_user(LEAVING_USER, misuse_and_leave, &noise));
	EXPECT_EQ(0, chmod(ACCMEM_DEV_EMULATED, mode));
	n = count_user_lines(log, noise.columns);
	EXPECT_LE(1, n);
	/* ten in five seconds */
	EXPECT_LE(n, 10 + (int)((accmem_ms() - start) / 5000 + 1) * 10);
	close(log);
}

/* the CTA is left: it is no context, and can still be the subject of a message */
static int outlive_context(void *arg)
{
	const uint32_t *columns = arg;
	int cta, fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR);

	cta = fd < 0 ? fd : launch_single(fd);
	if (cta < 0)
		return 1;
	close(fd);
	fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR);
	if (fd < 0)
		return 2;
	if (accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR) != -EMFILE)
		return 3;
	return alloc_at(cta, *columns, NULL) == -EFAULT ? 0 : 4;
}

TEST_F(tmem_noise, a_cta_outlives_its_context_and_counts_as_none)
{
	int64_t limit = accmem_param("max_contexts_per_user");
	uint32_t columns = some_columns(3);
	int status, log = accmem_log_open();
	mode_t mode = let_users_in();

	ASSERT_TRUE(mode);
	ASSERT_LE(0, log);
	ASSERT_EQ(0, accmem_param_set("max_contexts_per_user", 1));
	status = accmem_as_user(QUIET_USER + 1, outlive_context, &columns);
	EXPECT_EQ(0, accmem_param_set("max_contexts_per_user", limit));
	EXPECT_EQ(0, chmod(ACCMEM_DEV_EMULATED, mode));
	EXPECT_EQ(0, status);
	EXPECT_EQ(1, count_user_lines(log, columns));
	close(log);
}

ACCMEM_HARNESS_MAIN
