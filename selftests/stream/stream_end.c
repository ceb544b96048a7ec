// SPDX-License-Identifier: GPL-2.0
/*
 * Streams that userspace signals, second part: how they end, how callers wait for
 * them, what happens when a position is never reached, and what sysfs and the trace
 * show.
 */
#include <sys/prctl.h>
#include <sys/time.h>

#include "stream_util.h"

#define PATIENCE_MS 20000

STREAM_FIXTURE(stream_end)

/* --- the end --------------------------------------------------------------- */

TEST_F(stream_end, the_last_close_cancels)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(1));
	int copy = dup(self->stream);

	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 3));
	close(self->stream);
	EXPECT_EQ(MIB(1), stream_pending(variant->path));
	close(copy);
	self->stream = -1;
	EXPECT_EQ(0, stream_pending(variant->path));
	EXPECT_EQ(self->info.free_bytes, accmem_free_now(self->fd));
}

TEST_F(stream_end, the_end_of_the_context_cancels)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(1));
	struct pollfd pollfd = { .fd = self->stream, .events = POLLIN };

	ASSERT_EQ(0, stream_signal(self->stream, 2));
	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 3));
	EXPECT_EQ(0, poll(&pollfd, 1, 0) & POLLHUP);
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(0, stream_pending(variant->path));
	EXPECT_EQ(-ECANCELED, stream_wait(self->stream, 3, 0, 0));
	EXPECT_EQ(-ECANCELED, stream_try(self->stream, 3));
	EXPECT_EQ(0, stream_try(self->stream, 2));
	EXPECT_EQ(-ECANCELED, stream_signal(self->stream, 3));
	EXPECT_EQ(ACCMEM_STREAM_ENDED, stream_query(self->stream).state);
	EXPECT_EQ(2, stream_query(self->stream).reached);
	ASSERT_EQ(1, poll(&pollfd, 1, 0));
	EXPECT_EQ(POLLHUP, pollfd.revents & POLLHUP);
}

/* Buffers that took pending memory are freed like all others. */
TEST_F(stream_end, the_end_of_the_context_frees_what_was_taken)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(1));
	struct accmem_alloc b = { .length = MIB(1) };

	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 3));
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
	ASSERT_EQ(a.address, b.address);
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(0, stream_pending(variant->path));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "live_bytes"));
}

static int die_with_pending(void *arg)
{
	const char *path = arg;
	int fd = accmem_dev_open(path, O_RDWR), stream = stream_create(fd), i;

	for (i = 0; i < 100; i++) {
		struct accmem_alloc a = { .length = i % 3 ? 4096 : 64 };

		ACCMEM_MUST(!accmem_ioctl_alloc(fd, &a));
		if (i % 5)
			ACCMEM_MUST(!stream_free(fd, a.address, stream,
						 1 + i % 7));
	}
	raise(SIGKILL);
	return 1;
}

TEST_F(stream_end, a_killed_process_leaves_nothing_pending)
{
	EXPECT_EQ(128 + SIGKILL, accmem_in_child(die_with_pending,
						 (void *)variant->path));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "pending_bytes", 0,
					PATIENCE_MS));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "buffers", 0,
					PATIENCE_MS));
}

/* --- waits ----------------------------------------------------------------- */

TEST_F(stream_end, waits_end_at_once)
{
	ASSERT_EQ(0, stream_signal(self->stream, 5));
	EXPECT_EQ(0, stream_wait(self->stream, 5, 0, 0));
	EXPECT_EQ(0, stream_wait(self->stream, 0, 0, 0));
	EXPECT_EQ(0, stream_wait(self->stream, 5, 0, 1));
	EXPECT_EQ(0, stream_try(self->stream, 4));
	EXPECT_EQ(-EAGAIN, stream_try(self->stream, 6));
	EXPECT_EQ(-ETIMEDOUT, stream_wait(self->stream, 6, 0, 1));
	EXPECT_EQ(-ETIMEDOUT, stream_wait(self->stream, 6, 0,
					  stream_now() - 1));
}

TEST_F(stream_end, a_deadline_is_absolute)
{
	uint64_t deadline = stream_in_ms(50);

	EXPECT_EQ(-ETIMEDOUT, stream_wait(self->stream, 1, 0, deadline));
	EXPECT_LE(deadline, stream_now());
}

struct waiter {
	pthread_t thread;
	int stream;
	uint64_t position;
	uint64_t deadline_ns;
	int ret;
};

static void *wait_for(void *arg)
{
	struct waiter *w = arg;

	w->ret = stream_wait(w->stream, w->position, 0, w->deadline_ns);
	return NULL;
}

/* Each waiter is woken by its own position, not by an earlier one. */
TEST_F(stream_end, waiters_are_woken_by_their_position)
{
	struct waiter w[8];
	unsigned int i, at;

	for (i = 0; i < ARRAY_SIZE(w); i++) {
		w[i] = (struct waiter){ .stream = self->stream,
					.position = 1 + i / 2, .ret = 1 };
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, wait_for,
					    &w[i]));
	}
	for (at = 1; at <= ARRAY_SIZE(w) / 2; at++) {
		ASSERT_EQ(0, stream_signal(self->stream, at));
		for (i = 2 * at - 2; i < 2 * at; i++) {
			ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
			EXPECT_EQ(0, w[i].ret);
		}
		for (; i < ARRAY_SIZE(w); i++)
			EXPECT_EQ(1, __atomic_load_n(&w[i].ret,
						     __ATOMIC_RELAXED));
	}
}

TEST_F(stream_end, the_end_of_the_context_wakes_waiters)
{
	struct waiter w = { .stream = self->stream, .position = 1, .ret = 1 };

	ASSERT_EQ(0, pthread_create(&w.thread, NULL, wait_for, &w));
	usleep(20000);
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(-ECANCELED, w.ret);
}

static volatile int alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static void alarm_every_ms(unsigned int ms, int flags)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = flags };
	struct itimerval timer = { { 0, ms * 1000 }, { 0, ms * 1000 } };

	alarms = 0;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

TEST_F(stream_end, a_signal_interrupts)
{
	alarm_every_ms(20, 0);
	EXPECT_EQ(-EINTR, stream_wait(self->stream, 1, 0, 0));
	alarm_every_ms(0, 0);
}

TEST_F(stream_end, a_signal_restarts_with_the_same_deadline)
{
	uint64_t deadline;

	alarm_every_ms(20, SA_RESTART);
	deadline = stream_in_ms(100);
	EXPECT_EQ(-ETIMEDOUT, stream_wait(self->stream, 1, 0, deadline));
	EXPECT_LE(deadline, stream_now());
	EXPECT_LT(0, alarms);
	alarm_every_ms(0, 0);
}

TEST_F(stream_end, poll_is_about_what_was_asked_for)
{
	struct pollfd pollfd = { .fd = self->stream, .events = POLLIN };

	EXPECT_EQ(0, poll(&pollfd, 1, 0));
	ASSERT_EQ(0, stream_signal(self->stream, 1));
	EXPECT_EQ(1, poll(&pollfd, 1, 0));
	EXPECT_EQ(POLLIN, pollfd.revents);
	EXPECT_EQ(-EAGAIN, stream_try(self->stream, 5));
	EXPECT_EQ(0, poll(&pollfd, 1, 0));
	ASSERT_EQ(0, stream_signal(self->stream, 4));
	EXPECT_EQ(0, poll(&pollfd, 1, 10));
	ASSERT_EQ(0, stream_signal(self->stream, 5));
	EXPECT_EQ(1, poll(&pollfd, 1, 0));
}

static void *signal_later(void *arg)
{
	usleep(20000);
	stream_signal(*(int *)arg, 1);
	return NULL;
}

TEST_F(stream_end, poll_wakes)
{
	struct pollfd pollfd = { .fd = self->stream, .events = POLLIN };
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, signal_later,
				    &self->stream));
	EXPECT_EQ(1, poll(&pollfd, 1, PATIENCE_MS));
	pthread_join(thread, NULL);
}

/* poll() is about the position of the last try, also if that was reached already. */
TEST_F(stream_end, poll_is_about_what_was_reached_when_asked_for)
{
	struct pollfd pollfd = { .fd = self->stream, .events = POLLIN };

	ASSERT_EQ(0, stream_signal(self->stream, 5));
	EXPECT_EQ(-EAGAIN, stream_try(self->stream, 9));
	EXPECT_EQ(0, poll(&pollfd, 1, 0));
	EXPECT_EQ(0, stream_try(self->stream, 5));
	EXPECT_EQ(1, poll(&pollfd, 1, 0));
	EXPECT_EQ(POLLIN, pollfd.revents);
}

struct poller {
	pthread_t thread;
	int stream;
	int ret;
};

static void *sleep_in_poll(void *arg)
{
	struct poller *p = arg;
	struct pollfd pollfd = { .fd = p->stream, .events = POLLIN };

	p->ret = poll(&pollfd, 1, PATIENCE_MS);
	return NULL;
}

/* A thread in poll() is woken when another thread tries a position that is reached. */
TEST_F(stream_end, poll_wakes_by_what_another_asks_for)
{
	struct poller p = { .stream = self->stream, .ret = -1 };

	ASSERT_EQ(0, stream_signal(self->stream, 5));
	EXPECT_EQ(-EAGAIN, stream_try(self->stream, 9));
	ASSERT_EQ(0, pthread_create(&p.thread, NULL, sleep_in_poll, &p));
	usleep(20000);
	EXPECT_EQ(0, stream_try(self->stream, 5));
	ASSERT_EQ(0, pthread_join(p.thread, NULL));
	EXPECT_EQ(1, p.ret);
}

/* --- what does not come ---------------------------------------------------- */

TEST_F(stream_end, overdue_memory_is_quarantined_and_stays)
{
	int64_t usual = accmem_param("overdue_ms");
	struct accmem_alloc a = stream_allocate(self->fd, MIB(2)), b;
	int log = accmem_log_open();
	char text[512];
	int64_t start;

	ASSERT_LE(0, log);
	lseek(log, 0, SEEK_END);
	ASSERT_EQ(0, accmem_param_set("overdue_ms", 100));
	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 1));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "quarantined_bytes",
					MIB(2), PATIENCE_MS));
	EXPECT_EQ(0, stream_pending(variant->path));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	/* the memory is counted before the message is written */
	EXPECT_TRUE(accmem_log_gets(log, "a fence that does not come",
				    PATIENCE_MS));
	snprintf(text, sizeof(text), "/proc/self/fdinfo/%d", self->fd);
	EXPECT_LT(0, accmem_read_file(text, text, sizeof(text)));
	EXPECT_NE(NULL, strstr(text, "accmem-overdue:\t2097152\n"));
	/* only the position frees the memory */
	start = accmem_sysfs(variant->path, "free_bytes");
	usleep(300000);
	accmem_drain(self->fd);
	EXPECT_EQ(start, accmem_sysfs(variant->path, "free_bytes"));
	/* an ALLOC on the stream may still take the memory */
	b = (struct accmem_alloc){ .length = MIB(2) };
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
	EXPECT_EQ(a.address, b.address);
	EXPECT_EQ(0, accmem_sysfs(variant->path, "quarantined_bytes"));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "quarantined_bytes",
					MIB(2), PATIENCE_MS));
	ASSERT_EQ(0, stream_signal(self->stream, 1));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "quarantined_bytes"));
	EXPECT_EQ(start + (int64_t)MIB(2),
		  accmem_sysfs(variant->path, "free_bytes"));
	EXPECT_EQ(0, accmem_param_set("overdue_ms", usual));
	close(log);
}

/* A name cannot begin a line of the log. /dev/kmsg shows a backslash as \x5c. */
TEST_F(stream_end, names_in_the_log_are_escaped)
{
	int64_t usual = accmem_param("overdue_ms");
	int fd, stream, log = accmem_log_open();
	struct accmem_alloc a;
	char name[16];

	ASSERT_LE(0, log);
	lseek(log, 0, SEEK_END);
	ASSERT_EQ(0, prctl(PR_GET_NAME, name));
	ASSERT_EQ(0, prctl(PR_SET_NAME, "x\nBUG: y"));
	fd = accmem_opened(variant->path);
	ASSERT_EQ(0, prctl(PR_SET_NAME, name));
	stream = stream_created(fd);
	a = stream_allocate(fd, MIB(2));
	ASSERT_EQ(0, accmem_param_set("overdue_ms", 100));
	ASSERT_EQ(0, stream_free(fd, a.address, stream, 1));
	EXPECT_TRUE(accmem_log_gets(log, ": x\\x5cnBUG: y[", PATIENCE_MS));
	ASSERT_EQ(0, stream_signal(stream, 1));
	EXPECT_EQ(0, accmem_param_set("overdue_ms", usual));
	close(stream);
	close(fd);
	close(log);
}

/* --- what can be seen ------------------------------------------------------ */

TEST_F(stream_end, can_be_seen)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(1));
	char text[4096], file[64];

	ASSERT_EQ(0, stream_signal(self->stream, 3));
	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 5));
	snprintf(file, sizeof(file), "/proc/self/fdinfo/%d", self->stream);
	ASSERT_LT(0, accmem_read_file(file, text, sizeof(text)));
	EXPECT_NE(NULL, strstr(text, "accmem-stream:\t1\n"));
	EXPECT_NE(NULL, strstr(text, "accmem-stream-reached:\t3\n"));
	EXPECT_NE(NULL, strstr(text, "accmem-stream-claimed:\t3\n"));
	EXPECT_NE(NULL, strstr(text, "accmem-stream-pending:\t1\n"));
	EXPECT_NE(NULL, strstr(text, "accmem-stream-error:\t0\n"));
	EXPECT_NE(NULL, strstr(text, "accmem-stream-ended:\t0\n"));
	snprintf(file, sizeof(file), "/proc/self/fdinfo/%d", self->fd);
	ASSERT_LT(0, accmem_read_file(file, text, sizeof(text)));
	EXPECT_NE(NULL, strstr(text, "accmem-pending:\t1048576\n"));
	EXPECT_NE(NULL, strstr(text, "accmem-overdue:\t0\n"));
	ASSERT_LT(0, accmem_debug_read(variant->path, "streams", text,
				       sizeof(text)));
	EXPECT_NE(NULL, strstr(text, " 1 3 3 1 0\n"));
	/* INFO has the feature */
	EXPECT_NE(0, self->info.features & ACCMEM_FEATURE_STREAM);
}

TEST_F(stream_end, can_be_traced)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(1));
	char last[256];

	if (!accmem_trace_start())
		SKIP(return, "no tracing in this kernel");
	EXPECT_EQ(0, stream_free(self->fd, a.address, self->stream, 5));
	EXPECT_EQ(0, stream_signal(self->stream, 5));
	EXPECT_EQ(1, accmem_trace_count("accmem_pend",
					"stream=1 position=5", last,
					sizeof(last)));
	EXPECT_EQ(1, accmem_trace_count("accmem_stream_reach",
					"stream=1 position=5", last,
					sizeof(last)));
	accmem_trace_stop();
}

ACCMEM_HARNESS_MAIN
