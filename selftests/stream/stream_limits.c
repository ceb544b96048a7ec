// SPDX-License-Identifier: GPL-2.0
/*
 * What a user can make a stream hold: imported fences, exported fences and waiting
 * calls. Each is counted for the user of the stream, shown in debugfs and limited.
 */
#include "stream_util.h"

#define USER 65534
#define LIMIT 8
#define MANY 2000
#define FAR (1ull << 40) /* a position that no test reaches by steps */

STREAM_FIXTURE(stream_limits)

/* the number of a user in a column of the file "users", 0 for a user without a line */
static int64_t user_count(uid_t uid, const char *column)
{
	static char text[1 << 16];
	char *line, *word, *state, *lines;
	int64_t id = -1, value = -1;
	int n, index = -1;

	if (accmem_read_file("/sys/kernel/debug/accmem/users", text,
			     sizeof(text)) < 0)
		return -1;
	line = strtok_r(text, "\n", &lines);
	/* the first word of the first line is a number sign */
	word = strtok_r(line, " ", &state);
	for (n = 0; (word = strtok_r(NULL, " ", &state)); n++)
		index = strcmp(word, column) ? index : n;
	if (index < 0)
		return -1;
	while ((line = strtok_r(NULL, "\n", &lines))) {
		word = strtok_r(line, " ", &state);
		for (n = 0; word; n++, word = strtok_r(NULL, " ", &state)) {
			id = n ? id : atoll(word);
			value = n == index ? atoll(word) : value;
		}
		if (id == uid)
			return value;
	}
	return 0;
}

/* waits until the user has @value in a column; false after 20 s */
static bool user_comes_to(uid_t uid, const char *column, int64_t value)
{
	uint64_t end = accmem_ms() + 20000;

	while (user_count(uid, column) != value && accmem_ms() < end)
		usleep(1000);
	return user_count(uid, column) == value;
}

static int64_t module_references(void)
{
	char text[32];

	if (accmem_read_file("/sys/module/accmem/refcnt", text, sizeof(text)) <
	    0)
		return -1;
	return atoll(text);
}

/* References of fences that earlier tests have dropped go after an RCU grace period. */
static bool references_fall_to(int64_t references)
{
	uint64_t end = accmem_ms() + 20000;

	while (module_references() > references && accmem_ms() < end)
		usleep(1000);
	return module_references() <= references;
}

TEST_F(stream_limits, imports_of_one_fence_in_succession_are_one)
{
	unsigned int i, n = accmem_scale(MANY) + 2;
	uint32_t id;
	int file = fence_created(self->fences, &id);

	/* the fences of earlier tests may not have gone yet */
	ASSERT_TRUE(user_comes_to(0, "fences", 0));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, stream_import(self->stream, i + 1, file));
	EXPECT_EQ(1, user_count(0, "fences"));
	EXPECT_EQ(n, stream_query(self->stream).claimed);
	EXPECT_EQ(0, stream_query(self->stream).reached);
	ASSERT_EQ(0, fence_signal(self->fences, id, 0, 0));
	EXPECT_EQ(0, stream_settle(self->stream, n));
	EXPECT_TRUE(user_comes_to(0, "fences", 0));
	close(file);
}

/* The error of a fence is that of all its positions, and of no earlier one. */
TEST_F(stream_limits, positions_of_one_fence_have_its_error)
{
	uint32_t ids[2];
	int files[2], exports[4], i;

	for (i = 0; i < 2; i++)
		files[i] = fence_created(self->fences, &ids[i]);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, stream_import(self->stream, i + 1, files[i / 2]));
		exports[i] = stream_export(self->stream, i + 1);
		ASSERT_LE(0, exports[i]);
	}
	ASSERT_EQ(0, fence_signal(self->fences, ids[0], 0, 0));
	ASSERT_EQ(0, fence_signal(self->fences, ids[1], -EIO, 0));
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(i < 2 ? 1 : -EIO, fence_settle(exports[i]));
		close(exports[i]);
	}
	for (i = 0; i < 2; i++)
		close(files[i]);
}

TEST_F(stream_limits, exports_of_one_position_are_one)
{
	int file, exports[3];
	unsigned int i;
	int64_t start;
	uint32_t id;

	/* the fences of earlier tests may not have gone yet */
	ASSERT_TRUE(user_comes_to(0, "fences", 0));
	start = user_count(0, "fences");
	file = fence_created(self->fences, &id);
	ASSERT_EQ(0, stream_import(self->stream, 2, file));
	for (i = 0; i < 3; i++) {
		exports[i] = stream_export(self->stream, 1);
		ASSERT_LE(0, exports[i]);
		EXPECT_EQ(start + 2, user_count(0, "fences"));
	}
	close(exports[0]);
	EXPECT_EQ(start + 2, user_count(0, "fences"));
	ASSERT_EQ(0, fence_signal(self->fences, id, 0, 0));
	EXPECT_EQ(1, fence_settle(exports[1]));
	EXPECT_EQ(1, fence_settle(exports[2]));
	close(exports[1]);
	close(exports[2]);
	EXPECT_TRUE(user_comes_to(0, "fences", start));
	close(file);
}

/* The position is never reached meanwhile, and each export is a new file. */
TEST_F(stream_limits, an_export_that_nobody_holds_leaves)
{
	int64_t start = user_count(0, "fences"), references;
	unsigned int i, n = accmem_scale(MANY) + 2;
	int file, export;
	uint32_t id;

	file = fence_created(self->fences, &id);
	ASSERT_EQ(0, stream_import(self->stream, n, file));
	references = module_references();
	for (i = 0; i < n; i++) {
		export = stream_export(self->stream, i % 2 + 1);
		ASSERT_LE(0, export);
		close(export);
		ASSERT_EQ(start + 1, user_count(0, "fences"));
	}
	EXPECT_TRUE(references_fall_to(references));
	export = stream_export(self->stream, 1);
	ASSERT_LE(0, export);
	ASSERT_EQ(0, fence_signal(self->fences, id, 0, 0));
	EXPECT_EQ(1, fence_settle(export));
	close(export);
	close(file);
}

/* --- waiting calls ---------------------------------------------------------- */

struct waiting {
	int stream;
	uint64_t position;
	pthread_t thread;
	int result;
};

/* If the limit is reached, another call is about to give up. */
static void *waits(void *arg)
{
	struct waiting *w = arg;

	do {
		w->result = stream_settle(w->stream, w->position);
	} while (w->result == -EDQUOT);
	return NULL;
}

/* starts @n threads that wait for the positions from @first on */
static struct waiting *waiters(int stream, uint64_t first, unsigned int n)
{
	struct waiting *all = calloc(n, sizeof(*all));
	pthread_attr_t attr;
	unsigned int i;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (i = 0; all && i < n; i++) {
		all[i] = (struct waiting){ .stream = stream,
					   .position = first + i };
		if (pthread_create(&all[i].thread, &attr, waits, &all[i]))
			err(1, "thread");
	}
	return all;
}

/* the number of waiters that returned something else than 0 */
static unsigned int join(struct waiting *all, unsigned int n)
{
	unsigned int i, bad = 0;

	for (i = 0; i < n; i++) {
		pthread_join(all[i].thread, NULL);
		bad += !!all[i].result;
	}
	free(all);
	return bad;
}

TEST_F(stream_limits, a_signal_wakes_the_waiters_that_it_reaches)
{
	enum { WAITERS = 12 };
	struct waiting *all = waiters(self->stream, 1, WAITERS);
	unsigned int i;

	ASSERT_TRUE(user_comes_to(0, "waits", WAITERS));
	for (i = 3; i <= WAITERS; i += 3) {
		ASSERT_EQ(0, stream_signal(self->stream, i));
		EXPECT_TRUE(user_comes_to(0, "waits", WAITERS - i));
	}
	EXPECT_EQ(0, join(all, WAITERS));
}

/* The time in ns of the fastest of some signals, each of which reaches one position. */
static uint64_t signal_time(int stream)
{
	uint64_t from = stream_query(stream).reached, start, best = ~0ull;
	unsigned int i;

	for (i = 1; i <= 100; i++) {
		start = stream_now();
		if (stream_signal(stream, from + i))
			return ~0ull;
		start = stream_now() - start;
		best = start < best ? start : best;
	}
	return best;
}

TEST_F(stream_limits, waiters_that_a_signal_does_not_reach_cost_nothing)
{
	unsigned int i, n = accmem_scale(1000) + 1;
	uint64_t alone = 0, beside = ~0ull;
	struct waiting *all;

	/* the host may be slower for some time */
	for (i = 1; i <= 5 && beside > 2 * alone; i++) {
		usleep(i > 1 ? 200000 : 0);
		alone = signal_time(self->stream);
		all = waiters(self->stream, i * FAR, n);
		ASSERT_TRUE(user_comes_to(0, "waits", n));
		beside = signal_time(self->stream);
		ASSERT_EQ(0, stream_signal(self->stream, i * FAR + n));
		EXPECT_EQ(0, join(all, n));
		EXPECT_TRUE(user_comes_to(0, "waits", 0));
	}
	TH_LOG("a signal takes %llu ns, beside %u waiters %llu ns",
	       (unsigned long long)alone, n, (unsigned long long)beside);
	EXPECT_GE(2 * alone, beside);
}

static int waits_up_to_the_limit(void *arg)
{
	int fd = accmem_opened(arg), stream = stream_created(fd);
	struct waiting *all = waiters(stream, 2, LIMIT);
	uint64_t end = accmem_ms() + 20000;
	int err;

	/* the others may not sleep yet */
	do {
		err = stream_wait(stream, 1, 0, stream_in_ms(1));
	} while (err == -ETIMEDOUT && accmem_ms() < end);
	ACCMEM_MUST(err == -EDQUOT);
	ACCMEM_MUST(stream_try(stream, 1) == -EAGAIN);
	ACCMEM_MUST(!stream_signal(stream, LIMIT + 1));
	ACCMEM_MUST(!join(all, LIMIT));
	ACCMEM_MUST(stream_wait(stream, FAR, 0, stream_in_ms(1)) == -ETIMEDOUT);
	return 0;
}

TEST_F(stream_limits, so_many_calls_of_a_user_wait_at_most)
{
	int64_t limit = accmem_param("max_waits_per_user");
	struct stat st;

	ASSERT_EQ(0, stat(variant->path, &st));
	ASSERT_EQ(0, accmem_param_set("max_waits_per_user", LIMIT));
	ASSERT_EQ(0, chmod(variant->path, 0666));
	EXPECT_EQ(0, accmem_as_user(USER, waits_up_to_the_limit,
				    (void *)variant->path));
	EXPECT_EQ(0, user_count(USER, "waits"));
	EXPECT_EQ(0, accmem_param_set("max_waits_per_user", limit));
	EXPECT_EQ(0, chmod(variant->path, st.st_mode & 07777));
}

/* --- a user at the limit ---------------------------------------------------- */

struct tenant {
	const char *path;
	int fences;
	int files[2];
	uint32_t ids[2];
};

static int imports_up_to_the_limit(void *arg)
{
	struct tenant *t = arg;
	int fd = accmem_opened(t->path), stream = stream_created(fd);
	unsigned int i;
	int exports[2];

	for (i = 0; i < LIMIT - 1; i++)
		ACCMEM_MUST(!stream_import(stream, i + 1, t->files[i % 2]));
	/* another export of a position needs no other fence */
	for (i = 0; i < 2; i++) {
		exports[i] = stream_export(stream, 1);
		ACCMEM_MUST(exports[i] >= 0);
	}
	ACCMEM_MUST(stream_export(stream, 2) == -EDQUOT);
	close(exports[0]);
	close(exports[1]);
	ACCMEM_MUST(!stream_import(stream, LIMIT, t->files[(LIMIT - 1) % 2]));
	ACCMEM_MUST(stream_import(stream, LIMIT + 1, t->files[0]) == -EDQUOT);
	ACCMEM_MUST(stream_query(stream).claimed == LIMIT);
	ACCMEM_MUST(stream_export(stream, 1) == -EDQUOT);
	/* another position of the last fence needs no other */
	ACCMEM_MUST(!stream_import(stream, LIMIT + 1, t->files[1]));
	return 0;
}

static int imports_again(void *arg)
{
	struct tenant *t = arg;
	int fd = accmem_opened(t->path), stream = stream_created(fd), export;

	ACCMEM_MUST(!stream_import(stream, 1, t->files[0]));
	export = stream_export(stream, 1);
	ACCMEM_MUST(export >= 0 && fence_settle(export) == 1);
	return 0;
}

TEST_F(stream_limits, a_user_has_at_most_so_many_fences)
{
	int64_t limit = accmem_param("max_fences_per_user");
	struct tenant t = { .path = variant->path, .fences = self->fences };
	unsigned int i;
	struct stat st;

	ASSERT_EQ(0, stat(variant->path, &st));
	for (i = 0; i < 2; i++)
		t.files[i] = fence_created(self->fences, &t.ids[i]);
	ASSERT_EQ(0, accmem_param_set("max_fences_per_user", LIMIT));
	ASSERT_EQ(0, chmod(variant->path, 0666));
	EXPECT_EQ(0, accmem_as_user(USER, imports_up_to_the_limit, &t));
	/* the process has gone; its streams wait for the fences */
	EXPECT_EQ(LIMIT, user_count(USER, "fences"));
	/* root is exempt */
	for (i = 0; i < 2 * LIMIT; i++)
		EXPECT_EQ(0,
			  stream_import(self->stream, i + 1, t.files[i % 2]));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, fence_signal(self->fences, t.ids[i], 0, 0));
	EXPECT_TRUE(user_comes_to(USER, "fences", 0));
	EXPECT_EQ(0, accmem_as_user(USER, imports_again, &t));
	EXPECT_EQ(0, stream_settle(self->stream, 2 * LIMIT));
	EXPECT_EQ(0, accmem_param_set("max_fences_per_user", limit));
	EXPECT_EQ(0, chmod(variant->path, st.st_mode & 07777));
	for (i = 0; i < 2; i++)
		close(t.files[i]);
}

static int opens_when_its_frees_are_due(void *arg)
{
	unsigned int i, rounds = accmem_scale(50);
	struct tenant *t = arg;
	struct accmem_alloc a;
	int fd, file;
	uint32_t id;

	for (i = 0; i < rounds + 1; i++) {
		file = fence_created(t->fences, &id);
		fd = accmem_dev_open(t->path, O_RDWR);
		ACCMEM_MUST(fd >= 0);
		ACCMEM_MUST(!accmem_alloc_bytes(fd, KIB(64), 0, &a));
		ACCMEM_MUST(!fence_free(fd, a.address, file));
		close(fd);
		ACCMEM_MUST(accmem_dev_open(t->path, O_RDWR) == -EMFILE);
		ACCMEM_MUST(!fence_signal(t->fences, id, 0, 0));
		close(file);
	}
	return 0;
}

/* A closed context counts while its memory is pending, and no longer. */
TEST_F(stream_limits, a_context_whose_frees_are_due_does_not_count)
{
	int64_t limit = accmem_param("max_contexts_per_user");
	struct tenant t = { .path = variant->path, .fences = self->fences };
	struct stat st;

	ASSERT_EQ(0, stat(variant->path, &st));
	ASSERT_EQ(0, accmem_param_set("max_contexts_per_user", 1));
	ASSERT_EQ(0, chmod(variant->path, 0666));
	EXPECT_EQ(0, accmem_as_user(USER, opens_when_its_frees_are_due, &t));
	EXPECT_EQ(0, accmem_param_set("max_contexts_per_user", limit));
	EXPECT_EQ(0, chmod(variant->path, st.st_mode & 07777));
}

ACCMEM_HARNESS_MAIN
