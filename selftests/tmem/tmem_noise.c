// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of Tensor Memory with several users. A user who breaks rules all the time
 * suppresses no message about another user. Closing and opening the device in between
 * does not raise the rate limit of a user.
 */
#include "tmem_calls.h"
#include "tmem_util.h"

#define NOISY_USER 23001
#define QUIET_USER 23002
#define LEAVING_USER 23004

FIXTURE(tmem_noise)
{
	mode_t mode;
	int log;
};

/* Other users may open the device. */
FIXTURE_SETUP(tmem_noise)
{
	struct stat st;

	ASSERT_EQ(0, stat(ACCMEM_DEV_EMULATED, &st));
	self->mode = st.st_mode & 07777;
	ASSERT_EQ(0, chmod(ACCMEM_DEV_EMULATED, 0666));
	self->log = accmem_log_open();
	ASSERT_LE(0, self->log);
}

FIXTURE_TEARDOWN(tmem_noise)
{
	EXPECT_EQ(0, chmod(ACCMEM_DEV_EMULATED, self->mode));
	close(self->log);
}

struct misuses {
	uint32_t columns; /* the number identifies them in the log */
	int nr;
};

/* makes @nr allocs of a number of columns that is not allowed */
static int misuse_as_user(void *arg)
{
	const struct misuses *m = arg;
	int cta, err, i, fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR);
	uint32_t at;

	cta = fd < 0 ? fd : CTA_LAUNCH(fd, .cta_group = 1);
	if (cta < 0)
		return 1;
	for (i = 0; i < m->nr; i++) {
		err = CTA_ALLOC(cta, .columns = m->columns,
				.destination = (uintptr_t)&at);
		if (err != -EDOM)
			return 2;
	}
	return 0;
}

/* a number of columns that is not allowed, different in each run */
static uint32_t some_columns(uint32_t n)
{
	return 1000000u + getpid() * 4u + n;
}

static int count_user_lines(int log, uint32_t columns)
{
	char what[64];

	if (lseek(log, 0, SEEK_SET) < 0)
		return -1;
	snprintf(what, sizeof(what), "alloc of %u columns", columns);
	return accmem_log_count(log, "tmem_noise[", what, NULL);
}

TEST_F(tmem_noise, one_users_messages_do_not_hide_anothers)
{
	struct misuses noise = { some_columns(1), 3000 };
	struct misuses word = { some_columns(2), 1 };
	int n;

	EXPECT_EQ(0, accmem_as_user(NOISY_USER, misuse_as_user, &noise));
	EXPECT_EQ(0, accmem_as_user(QUIET_USER, misuse_as_user, &word));
	n = count_user_lines(self->log, noise.columns);
	EXPECT_LE(1, n);
	EXPECT_GT(3000, n);
	EXPECT_EQ(1, count_user_lines(self->log, word.columns));
}

/* the same, but the device is closed after each alloc */
static int misuse_and_leave(void *arg)
{
	struct misuses *m = arg;
	int i, fd, cta, err;
	uint32_t at;

	for (i = 0; i < m->nr; i++) {
		fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR);
		cta = fd < 0 ? fd : CTA_LAUNCH(fd, .cta_group = 1);
		if (cta < 0)
			return 1;
		err = CTA_ALLOC(cta, .columns = m->columns,
				.destination = (uintptr_t)&at);
		if (err != -EDOM)
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
	int n;

	EXPECT_EQ(0, accmem_as_user(LEAVING_USER, misuse_and_leave, &noise));
	n = count_user_lines(self->log, noise.columns);
	EXPECT_LE(1, n);
	/* ten messages in five seconds */
	EXPECT_LE(n, 10 + (int)((accmem_ms() - start) / 5000 + 1) * 10);
}

/*
 * closes the context of a CTA: the CTA does not count as a context, but it can still
 * cause a message
 */
static int outlive_context(void *arg)
{
	const uint32_t *columns = arg;
	int cta, fd = accmem_opened(ACCMEM_DEV_EMULATED);

	cta = fd < 0 ? fd : CTA_LAUNCH(fd, .cta_group = 1);
	if (cta < 0)
		return 1;
	close(fd);
	fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR);
	if (accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR) != -EMFILE)
		return 3;
	return CTA_ALLOC(cta, .columns = *columns) == -EFAULT ? 0 : 4;
}

TEST_F(tmem_noise, a_cta_outlives_its_context_and_counts_as_none)
{
	int64_t limit = accmem_param("max_contexts_per_user");
	uint32_t columns = some_columns(3);
	int status;

	ASSERT_EQ(0, accmem_param_set("max_contexts_per_user", 1));
	status = accmem_as_user(QUIET_USER + 1, outlive_context, &columns);
	EXPECT_EQ(0, accmem_param_set("max_contexts_per_user", limit));
	EXPECT_EQ(0, status);
	EXPECT_EQ(1, count_user_lines(self->log, columns));
}

ACCMEM_HARNESS_MAIN
