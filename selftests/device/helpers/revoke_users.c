// SPDX-License-Identifier: GPL-2.0
/*
 * Devices that are reset or go away, for revoke.sh: the effects on calls that sleep, on
 * pending frees, on CTAs, on other processes, and on host memory and shared memory.
 */
#include <sys/prctl.h>

#include "revoke_fixture.h"
#include "stream_util.h"
#include "../../wait/wait_util.h"

/* --- sleepers ------------------------------------------------------------- */

/* Takes all memory: a call that waits has to sleep. */
static int take_all(int fd)
{
	static struct accmem_alloc a[4096];

	return accmem_take_all(fd, ACCMEM_CACHE_WB, a, ARRAY_SIZE(a));
}

#define REVOKE_FOR(gone) \
	((gone) ? target_unbind(&self->target) : device_reset(variant->path))

/* as waiter_start(), until the thread sleeps */
static bool put_to_sleep(struct waiter *w, const char *path, int fd,
			 uint64_t deadline_ns, int n)
{
	if (waiter_start(w, fd, 4096, deadline_ns) &&
	    wait_for_state(path, "asleep", n))
		return true;
	printf("# done %d: %d\n", atomic_load(&w->done), w->err);
	return false;
}

static void check_waiters(struct __test_metadata *_metadata,
			  FIXTURE_DATA(revoke) * self,
			  const FIXTURE_VARIANT(revoke) * variant, bool gone)
{
	int fds[3] = { self->fd, accmem_opened(variant->path),
		       accmem_opened(variant->path) };
	int i, wanted = gone ? -ENODEV : -ECONNRESET;
	struct waiter w[3] = {};
	uint64_t until;

	ASSERT_LT(0, take_all(self->fd));
	for (i = 0; i < 3; i++) {
		until = i == 2 ? in_ms(self->fd, 600000) : FOREVER;
		ASSERT_TRUE(put_to_sleep(&w[i], variant->path, fds[i], until,
					 i + 1));
	}
	ASSERT_EQ(0, REVOKE_FOR(gone));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(wanted, waiter_end(&w[i]));
	close(fds[1]);
	close(fds[2]);
}

TEST_F(revoke, reset_wakes_waiters)
{
	int i;

	check_waiters(_metadata, self, variant, false);
	EXPECT_EQ(0, waiting(variant->path, "waiting"));
	/* many times, since the reset is over before a waiter runs */
	for (i = 0; i < 3; i++) {
		drop_mapping(&self->p);
		drop_file(&self->fd);
		ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
		self->fd = accmem_opened(variant->path);
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, LENGTH, 0, &self->a));
		self->p = accmem_mapped(self->fd, &self->a, LENGTH);
		check_waiters(_metadata, self, variant, false);
	}
}

TEST_F(revoke, gone_wakes_waiters)
{
	check_waiters(_metadata, self, variant, true);
}

static void check_interrupted(struct __test_metadata *_metadata,
			      FIXTURE_DATA(revoke) * self,
			      const FIXTURE_VARIANT(revoke) * variant,
			      int flags)
{
	struct waiter w = {};

	accmem_catch(SIGUSR1, flags);
	ASSERT_LT(0, take_all(self->fd));
	ASSERT_TRUE(put_to_sleep(&w, variant->path, self->fd, FOREVER, 1));
	pthread_kill(w.thread, SIGUSR1);
	RESET();
	EXPECT_EQ(true, waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_TRUE(w.err == -ECONNRESET || (!flags && w.err == -EINTR));
}

TEST_F(revoke, reset_and_an_interrupted_waiter)
{
	check_interrupted(_metadata, self, variant, 0);
}

TEST_F(revoke, reset_and_a_waiter_that_restarts)
{
	check_interrupted(_metadata, self, variant, SA_RESTART);
}

/* a thread in STREAM_WAIT, or in poll() of a file */
struct sleeper {
	pthread_t thread;
	pid_t tid;
	int fd;
	bool polls;
	int events;
	atomic_int done;
	int result;
};

static void *sleeper_main(void *arg)
{
	struct sleeper *s = arg;
	struct pollfd p = { .fd = s->fd, .events = s->events };

	__atomic_store_n(&s->tid, gettid(), __ATOMIC_RELEASE);
	if (!s->polls)
		s->result = stream_wait(s->fd, 5, 0, 0);
	else if (poll(&p, 1, 60000) < 0)
		s->result = -errno;
	else
		s->result = p.revents;
	atomic_store(&s->done, 1);
	return NULL;
}

static void sleeper_start(struct sleeper *s, int fd, bool polls, int events)
{
	*s = (struct sleeper){ .fd = fd, .polls = polls, .events = events };
	if (pthread_create(&s->thread, NULL, sleeper_main, s))
		err(1, "thread");
	if (!accmem_until_asleep(&s->tid, PATIENCE_MS))
		errx(1, "the thread does not sleep");
}

static int sleeper_end(struct sleeper *s)
{
	uint64_t until = accmem_ms() + PATIENCE_MS;

	while (!atomic_load(&s->done)) {
		if (accmem_ms() > until)
			return -ETIME;
		usleep(1000);
	}
	pthread_join(s->thread, NULL);
	return s->result;
}

TEST_F(revoke, reset_leaves_streams_alone)
{
	int stream = stream_created(self->fd), file;
	struct sleeper s, polls;

	ASSERT_EQ(0, stream_signal(stream, 1));
	file = stream_export(stream, 1);
	ASSERT_LE(0, file);
	stream_try(stream, 5);
	sleeper_start(&s, stream, false, 0);
	sleeper_start(&polls, stream, true, POLLIN);
	RESET();
	usleep(50000);
	EXPECT_EQ(0, atomic_load(&s.done));
	EXPECT_EQ(0, atomic_load(&polls.done));
	EXPECT_EQ(1, stream_query(stream).reached);
	EXPECT_EQ(0, stream_query(stream).state);
	EXPECT_EQ(0, stream_signal(stream, 5));
	EXPECT_EQ(0, sleeper_end(&s));
	EXPECT_EQ(POLLIN, sleeper_end(&polls) & POLLIN);
	close(file);
	close(stream);
}

TEST_F(revoke, gone_ends_streams)
{
	int stream = stream_created(self->fd);
	struct sleeper s, polls;

	ASSERT_EQ(0, stream_signal(stream, 1));
	stream_try(stream, 5);
	sleeper_start(&s, stream, false, 0);
	sleeper_start(&polls, stream, true, POLLIN);
	UNBIND();
	EXPECT_EQ(-ECANCELED, sleeper_end(&s));
	EXPECT_LT(0, sleeper_end(&polls));
	EXPECT_EQ(ACCMEM_STREAM_ENDED, stream_query(stream).state);
	EXPECT_EQ(0, stream_wait(stream, 1, 0, 0));
	EXPECT_EQ(-ECANCELED, stream_signal(stream, 6));
	close(stream);
}

TEST_F(revoke, gone_wakes_pollers_of_the_file)
{
	struct sleeper s;

	EXPECT_EQ(0, revents_of(self->fd));
	sleeper_start(&s, self->fd, true, POLLIN);
	UNBIND();
	EXPECT_EQ(POLLERR | POLLHUP, sleeper_end(&s));
	EXPECT_EQ(POLLERR | POLLHUP, revents_of(self->fd));
}

/* --- pending frees -------------------------------------------------------- */

TEST_F(revoke, reset_with_a_pending_free)
{
	int stream = stream_created(self->fd);
	struct accmem_alloc a;

	ASSERT_EQ(0, stream_free(self->fd, self->a.address, stream, 5));
	drop_mapping(&self->p);
	RESET();
	EXPECT_LT(0, stream_pending(variant->path));
	/* the buffer is there until its position is reached */
	EXPECT_EQ(-ECONNRESET, accmem_alloc_bytes(self->fd, 4096, 0, &a));
	EXPECT_EQ(0, stream_signal(stream, 5));
	EXPECT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &a));
	EXPECT_EQ(0, device_byte(self->fd, a.address));
	close(stream);
}

TEST_F(revoke, reset_before_a_free_with_a_dependency)
{
	int stream = stream_created(self->fd), fences = fence_device();
	struct accmem_alloc a;
	uint32_t id;
	int file;

	ASSERT_LE(0, fences);
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &a));
	file = fence_created(fences, &id);
	RESET();
	EXPECT_EQ(0, stream_free(self->fd, self->a.address, stream, 5));
	EXPECT_EQ(0, fence_free(self->fd, a.address, file));
	drop_mapping(&self->p);
	EXPECT_EQ(-ECONNRESET, accmem_alloc_bytes(self->fd, 4096, 0, &a));
	EXPECT_EQ(0, stream_signal(stream, 5));
	EXPECT_EQ(-ECONNRESET, accmem_alloc_bytes(self->fd, 4096, 0, &a));
	EXPECT_EQ(0, fence_signal(fences, id, 0, 0));
	EXPECT_EQ(0,
		  accmem_sysfs_wait(variant->path, "pending_bytes", 0, 20000) +
			  1);
	EXPECT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &a));
	close(file);
	close(fences);
	close(stream);
}

TEST_F(revoke, gone_finishes_frees_on_a_stream)
{
	int stream = stream_created(self->fd);
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &a));
	ASSERT_EQ(0, stream_free(self->fd, self->a.address, stream, 5));
	UNBIND();
	/* a free after the end does not wait either */
	EXPECT_EQ(0, stream_free(self->fd, a.address, stream, 7));
	EXPECT_EQ(0, stream_query(stream).pending);
	EXPECT_EQ(SIGBUS, signal_at(self->p));
	close(stream);
}

/* The fence of another driver ends the frees and the steps of a device that is gone. */
TEST_F(revoke, gone_before_an_imported_fence)
{
	int stream = stream_created(self->fd), fences = fence_device();
	int file, exported;
	uint32_t id;

	ASSERT_LE(0, fences);
	file = fence_created(fences, &id);
	ASSERT_EQ(0, stream_import(stream, 5, file));
	exported = stream_export(stream, 5);
	ASSERT_LE(0, exported);
	ASSERT_EQ(0, stream_free(self->fd, self->a.address, stream, 5));
	UNBIND();
	EXPECT_EQ(0, fence_status(exported));
	drop_mapping(&self->p);
	drop_file(&self->fd);
	close(stream);
	usleep(50000);
	EXPECT_EQ(0, fence_signal(fences, id, 0, 0));
	EXPECT_EQ(1, fence_settle(exported));
	close(exported);
	close(file);
	close(fences);
}

/* A step of a stream outlives all files of its device, and then the device. */
TEST_F(revoke, gone_before_the_fence_of_a_step)
{
	int stream = stream_created(self->fd), fences = fence_device();
	int file, exported;
	uint32_t id;

	ASSERT_LE(0, fences);
	file = fence_created(fences, &id);
	ASSERT_EQ(0, stream_import(stream, 5, file));
	exported = stream_export(stream, 5);
	ASSERT_LE(0, exported);
	drop_mapping(&self->p);
	drop_file(&self->fd);
	close(stream);
	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	UNBIND();
	usleep(50000);
	EXPECT_EQ(0, fence_signal(fences, id, 0, 0));
	EXPECT_EQ(1, fence_settle(exported));
	close(exported);
	close(file);
	close(fences);
}

/* --- Tensor Memory -------------------------------------------------------- */

static int cta_setup(int fd)
{
	struct accmem_tmem_setup setup = { .size = sizeof(setup), .nr_sms = 1 };

	return accmem_ioctl(fd, ACCMEM_IOC_TMEM_SETUP, &setup);
}

static int cta_launch(int fd)
{
	struct accmem_tmem_launch launch = { .size = sizeof(launch),
					     .launch = 1,
					     .cta_group = 1 };

	return accmem_ioctl(fd, ACCMEM_IOC_TMEM_LAUNCH, &launch) ?: launch.fd;
}

static int cta_alloc(int cta, uint32_t columns)
{
	static uint32_t address;
	struct accmem_cta_alloc a = { .size = sizeof(a),
				      .columns = columns,
				      .cta_group = 1,
				      .destination = (uintptr_t)&address };

	return accmem_ioctl(cta, ACCMEM_IOC_CTA_ALLOC, &a);
}

struct cta_call {
	pthread_t thread;
	pid_t tid;
	int cta;
	int result;
};

static void *cta_main(void *arg)
{
	struct cta_call *call = arg;

	__atomic_store_n(&call->tid, gettid(), __ATOMIC_RELEASE);
	call->result = cta_alloc(call->cta, 512);
	return NULL;
}

static void check_ctas(struct __test_metadata *_metadata,
		       FIXTURE_DATA(revoke) * self,
		       const FIXTURE_VARIANT(revoke) * variant, bool gone)
{
	struct cta_call call = {};
	int first;

	ASSERT_EQ(0, cta_setup(self->fd));
	first = cta_launch(self->fd);
	call.cta = cta_launch(self->fd);
	ASSERT_LE(0, first);
	ASSERT_LE(0, call.cta);
	ASSERT_EQ(0, cta_alloc(first, 512));
	ASSERT_EQ(0, pthread_create(&call.thread, NULL, cta_main, &call));
	ASSERT_TRUE(accmem_until_asleep(&call.tid, PATIENCE_MS));
	ASSERT_EQ(0, REVOKE_FOR(gone));
	pthread_join(call.thread, NULL);
	EXPECT_EQ(-ECONNRESET, call.result);
	EXPECT_EQ(-ECONNRESET, cta_alloc(first, 32));
	close(first);
	close(call.cta);
}

TEST_F(revoke, reset_ends_calls_of_ctas)
{
	int cta;

	check_ctas(_metadata, self, variant, false);
	EXPECT_EQ(-ECONNRESET, cta_setup(self->fd));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	ASSERT_EQ(0, cta_setup(self->fd));
	cta = cta_launch(self->fd);
	EXPECT_EQ(0, cta_alloc(cta, 512));
	close(cta);
}

TEST_F(revoke, gone_ends_calls_of_ctas)
{
	check_ctas(_metadata, self, variant, true);
}

/* --- other processes ------------------------------------------------------ */

static int expect_bus(void *p)
{
	return signal_at(p) == SIGBUS ? 0 : 1;
}

static void check_fork(struct __test_metadata *_metadata,
		       FIXTURE_DATA(revoke) * self,
		       const FIXTURE_VARIANT(revoke) * variant, bool gone)
{
	int begin[2], ready[2], status;
	char byte = 0;
	pid_t pid;

	ASSERT_EQ(0, pipe(begin));
	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memset(self->p, 1, LENGTH);
		if (write(ready[1], &byte, 1) != 1 ||
		    read(begin[0], &byte, 1) != 1)
			_exit(2);
		_exit(expect_bus(self->p));
	}
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	ASSERT_EQ(0, REVOKE_FOR(gone));
	EXPECT_EQ(1, write(begin[1], &byte, 1));
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, accmem_in_child(expect_bus, self->p));
	close(begin[0]);
	close(begin[1]);
	close(ready[0]);
	close(ready[1]);
}

TEST_F(revoke, reset_ends_inherited_mappings)
{
	check_fork(_metadata, self, variant, false);
}

TEST_F(revoke, gone_ends_inherited_mappings)
{
	check_fork(_metadata, self, variant, true);
}

static void check_debugger(struct __test_metadata *_metadata,
			   FIXTURE_DATA(revoke) * self,
			   const FIXTURE_VARIANT(revoke) * variant, bool gone)
{
	int mem = open("/proc/self/mem", O_RDWR);
	struct iovec local, remote = { self->p, 1 };
	char byte = 0;

	ASSERT_LE(0, mem);
	ASSERT_EQ(1, pread(mem, &byte, 1, (uintptr_t)self->p));
	EXPECT_EQ((char)0xa5, byte);
	ASSERT_EQ(0, REVOKE_FOR(gone));
	local = (struct iovec){ &byte, 1 };
	EXPECT_EQ(-1, pread(mem, &byte, 1, (uintptr_t)self->p));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(-1, pwrite(mem, &byte, 1, (uintptr_t)self->p));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(-1, process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
	EXPECT_EQ(-1, write(mem, self->p, 1));
	close(mem);
}

TEST_F(revoke, reset_keeps_debuggers_out)
{
	check_debugger(_metadata, self, variant, false);
}

TEST_F(revoke, gone_keeps_debuggers_out)
{
	check_debugger(_metadata, self, variant, true);
}

/* A stopped process that holds a bit of everything delays nothing. */
static void check_stopped(struct __test_metadata *_metadata,
			  FIXTURE_DATA(revoke) * self,
			  const FIXTURE_VARIANT(revoke) * variant, bool gone)
{
	uint64_t begin;
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		struct accmem_alloc a;
		int fd = accmem_opened(variant->path);
		int pipes[2], stream = stream_created(fd);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		accmem_alloc_bytes(fd, 64, 0, &a);
		accmem_alloc_bytes(fd, LENGTH, 0, &a);
		memset(accmem_mapped(fd, &a, LENGTH), 1, LENGTH);
		if (self->info.features & ACCMEM_FEATURE_PIN)
			accmem_pin(pipes, accmem_mapped(fd, &a, LENGTH), 4096);
		cta_setup(fd);
		cta_launch(fd);
		stream_free(fd, a.address, stream, 9);
		raise(SIGSTOP);
		_exit(expect_bus(self->p));
	}
	ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));
	begin = accmem_ms();
	ASSERT_EQ(0, REVOKE_FOR(gone));
	EXPECT_GT(5000, accmem_ms() - begin);
	kill(pid, SIGCONT);
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(revoke, reset_waits_for_no_process)
{
	check_stopped(_metadata, self, variant, false);
}

TEST_F(revoke, gone_waits_for_no_process)
{
	check_stopped(_metadata, self, variant, true);
}

/* --- other kinds of memory ------------------------------------------------ */

static void check_kind(struct __test_metadata *_metadata,
		       FIXTURE_DATA(revoke) * self,
		       const FIXTURE_VARIANT(revoke) * variant, uint32_t kind,
		       bool gone)
{
	struct accmem_alloc a = { .length = LENGTH, .kind = kind };
	char *p;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	p = accmem_mapped(self->fd, &a, LENGTH);
	memset(p, 1, LENGTH);
	EXPECT_EQ(1, device_byte(self->fd, a.address));
	EXPECT_EQ(1, *(volatile char *)p);
	ASSERT_EQ(0, REVOKE_FOR(gone));
	EXPECT_EQ(SIGBUS, signal_at(p));
	EXPECT_EQ(SIGBUS, signal_at(p + LENGTH - 8));
	EXPECT_EQ(0,
		  all_calls(self->fd, a.address, gone ? -ENODEV : -ECONNRESET));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(SIGBUS, signal_at(p));
	munmap(p, LENGTH);
	if (gone)
		return;
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(0, device_byte(self->fd, a.address));
	p = accmem_mapped(self->fd, &a, LENGTH);
	EXPECT_EQ(-1, accmem_first_nonzero(p, LENGTH));
	munmap(p, LENGTH);
}

TEST_F(revoke, reset_of_shared_memory)
{
	check_kind(_metadata, self, variant, ACCMEM_KIND_SHARED, false);
}

TEST_F(revoke, gone_of_shared_memory)
{
	check_kind(_metadata, self, variant, ACCMEM_KIND_SHARED, true);
}

TEST_F(revoke, reset_of_host_memory)
{
	check_kind(_metadata, self, variant, ACCMEM_KIND_HOST, false);
}

TEST_F(revoke, gone_of_host_memory)
{
	check_kind(_metadata, self, variant, ACCMEM_KIND_HOST, true);
}

ACCMEM_HARNESS_MAIN
