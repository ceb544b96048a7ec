// SPDX-License-Identifier: GPL-2.0
/*
 * Devices that are reset or go away, for revoke.sh, which loads the module with a device
 * of each backing. A reset is a write to the file "reset", and the end of a device the
 * unbinding of its driver. Each test leaves the device bound, idle, and with its number.
 */
#include <sys/prctl.h>

#include "revoke_util.h"
#include "stream_util.h"
#include "../../wait/wait_util.h"

#define LENGTH MIB(2)

FIXTURE(revoke)
{
	struct target target;
	struct accmem_info info;
	struct accmem_alloc a;
	uint64_t capacity;
	int fd;
	char *p;
};

ACCMEM_VARIANTS(revoke);

FIXTURE_SETUP(revoke)
{
	target_find(&self->target, variant->path);
	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	self->capacity = accmem_sysfs(variant->path, "capacity");
	self->fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, LENGTH, 0, &self->a));
	self->p = accmem_mapped(self->fd, &self->a, LENGTH);
	memset(self->p, 0xa5, LENGTH);
}

FIXTURE_TEARDOWN(revoke)
{
	if (self->p)
		munmap(self->p, LENGTH);
	if (self->fd >= 0)
		close(self->fd);
	EXPECT_TRUE(target_restore(&self->target));
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	EXPECT_EQ(self->capacity, accmem_sysfs(variant->path, "free_bytes"));
}

#define RESET() ASSERT_EQ(0, device_reset(variant->path))
#define UNBIND() ASSERT_EQ(0, target_unbind(&self->target))

static void drop_mapping(char **p)
{
	munmap(*p, LENGTH);
	*p = NULL;
}

static void drop_file(int *fd)
{
	close(*fd);
	*fd = -1;
}

/* The results of all calls of the device file that need a good context. */
static int all_calls(int fd, uint64_t address, int wanted)
{
	struct accmem_alloc a;
	struct accmem_info info;
	struct accmem_query q;
	struct accmem_realloc r;
	struct accmem_prefetch prefetch = { .size = sizeof(prefetch),
					    .address = address,
					    .length = 4096 };
	struct accmem_advise advise = { .size = sizeof(advise),
					.address = address,
					.length = 4096 };
	struct accmem_pressure pressure = { .size = sizeof(pressure) };
	struct accmem_tmem_setup setup = { .size = sizeof(setup), .nr_sms = 1 };
	struct accmem_tmem_launch launch = { .size = sizeof(launch),
					     .cta_group = 1 };
	struct accmem_tmem_member member = {};
	struct accmem_tmem_cluster cluster = { .size = sizeof(cluster),
					       .cta_group = 1,
					       .nr_members = 1,
					       .members = (uintptr_t)&member };
	const int results[] = {
		accmem_ioctl_info(fd, &info),
		accmem_info_of(fd, ACCMEM_INFO_HOST, &info),
		accmem_alloc_bytes(fd, 64, 0, &a),
		accmem_alloc_bytes(fd, 4096, ACCMEM_ALLOC_WAIT, &a),
		accmem_ioctl_query(fd, address, &q),
		accmem_ioctl_realloc(fd, address, 4096, 0, &r),
		device_byte(fd, address),
		device_fill(fd, address, 4096, 1),
		accmem_ioctl(fd, ACCMEM_IOC_PREFETCH, &prefetch),
		accmem_ioctl(fd, ACCMEM_IOC_ADVISE, &advise),
		accmem_ioctl(fd, ACCMEM_IOC_PRESSURE, &pressure),
		stream_create(fd),
		accmem_ioctl(fd, ACCMEM_IOC_TMEM_SETUP, &setup),
		accmem_ioctl(fd, ACCMEM_IOC_TMEM_LAUNCH, &launch),
		accmem_ioctl(fd, ACCMEM_IOC_TMEM_CLUSTER, &cluster),
		mmap(NULL, 4096, RW, MAP_SHARED, fd, 0) == MAP_FAILED ? -errno :
									0,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(results); i++) {
		if (results[i] != wanted) {
			printf("# call %u: %d instead of %d\n", i, results[i],
			       wanted);
			return i + 1;
		}
	}
	return 0;
}

/* --- a reset -------------------------------------------------------------- */

TEST_F(revoke, reset_ends_a_mapping)
{
	RESET();
	EXPECT_EQ(SIGBUS, signal_at(self->p));
	EXPECT_EQ(SIGBUS, signal_at(self->p + LENGTH - 8));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(SIGBUS, signal_at(self->p));
	drop_mapping(&self->p);
	EXPECT_EQ(0, accmem_alloc_bytes(self->fd, LENGTH, 0, &self->a));
	self->p = accmem_mapped(self->fd, &self->a, LENGTH);
	EXPECT_EQ(-1, accmem_first_nonzero(self->p, LENGTH));
}

TEST_F(revoke, reset_refuses_all_calls_until_the_buffers_are_freed)
{
	struct accmem_alloc more;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &more));
	RESET();
	EXPECT_EQ(0, all_calls(self->fd, self->a.address, -ECONNRESET));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->fd, 0));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(0, all_calls(self->fd, more.address, -ECONNRESET));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, more.address));
	EXPECT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	EXPECT_EQ(0, self->info.context_bytes -
			     (self->info.translation ? LENGTH : MIB(2)));
	/* the mapping of before still holds its memory */
	EXPECT_EQ(SIGBUS, signal_at(self->p));
}

TEST_F(revoke, reset_does_not_concern_a_context_without_buffers)
{
	int other = accmem_opened(variant->path);
	struct accmem_alloc a;

	RESET();
	RESET();
	EXPECT_EQ(0, revents_of(other));
	EXPECT_EQ(0, accmem_ioctl_info(other, &self->info));
	EXPECT_EQ(0, accmem_alloc_bytes(other, 4096, 0, &a));
	EXPECT_EQ(0, device_byte(other, a.address));
	RESET();
	EXPECT_EQ(-ECONNRESET, device_byte(other, a.address));
	EXPECT_EQ(0, accmem_ioctl_free(other, a.address));
	EXPECT_EQ(0, accmem_alloc_bytes(other, 4096, 0, &a));
	EXPECT_EQ(0, device_byte(other, a.address));
	close(other);
}

TEST_F(revoke, reset_of_a_device_that_nobody_uses)
{
	drop_mapping(&self->p);
	drop_file(&self->fd);
	RESET();
	RESET();
}

TEST_F(revoke, reset_ends_a_detached_mapping)
{
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	RESET();
	EXPECT_EQ(SIGBUS, signal_at(self->p));
	EXPECT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	drop_file(&self->fd);
	RESET();
	EXPECT_EQ(SIGBUS, signal_at(self->p));
}

TEST_F(revoke, reset_with_pinned_pages)
{
	struct accmem_alloc a;
	int pipes[2];

	if (!(self->info.features & ACCMEM_FEATURE_PIN))
		SKIP(return, "no page structures");
	ASSERT_TRUE(accmem_pin(pipes, self->p, 4096));
	RESET();
	EXPECT_EQ(SIGBUS, signal_at(self->p));
	drop_mapping(&self->p);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_LT(0, accmem_sysfs(variant->path, "quarantined_bytes"));
	EXPECT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &a));
	RESET();
	EXPECT_LT(0, accmem_sysfs(variant->path, "quarantined_bytes"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	accmem_unpin(pipes);
}

TEST_F(revoke, reset_drops_cached_buffers)
{
	struct accmem_alloc a[4], b;
	unsigned int i;

	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	drop_mapping(&self->p);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, i < 2 ? 64 : 4096, 0,
						&a[i]));
		ASSERT_EQ(0, device_fill(self->fd, a[i].address, 64, 0x77));
	}
	for (i = 0; i < 4; i++)
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	RESET();
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(0, accmem_alloc_bytes(self->fd, i < 2 ? 64 : 4096, 0,
						&b));
		EXPECT_EQ(0, device_byte(self->fd, b.address));
		EXPECT_EQ(0, device_byte(self->fd, b.address + 63));
	}
}

TEST_F(revoke, reset_with_buffers_freed_to_the_cache_afterwards)
{
	struct accmem_alloc a[3], b;
	unsigned int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, i ? 4096 : 128, 0,
						&a[i]));
	RESET();
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	EXPECT_EQ(-ECONNRESET, accmem_alloc_bytes(self->fd, 4096, 0, &b));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, accmem_alloc_bytes(self->fd, i ? 4096 : 128, 0,
						&b));
		EXPECT_EQ(0, device_fill(self->fd, b.address, 128, 1));
		EXPECT_EQ(1, device_byte(self->fd, b.address));
	}
}

TEST_F(revoke, reset_with_small_buffers)
{
	struct accmem_alloc a, b;
	char *p;

	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &b));
	p = map_at(self->fd, a.address, 64);
	ASSERT_NE(NULL, p);
	*p = 1;
	RESET();
	EXPECT_EQ(SIGBUS, signal_at(p));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(-ECONNRESET, accmem_alloc_bytes(self->fd, 64, 0, &a));
	EXPECT_EQ(-ECONNRESET, device_byte(self->fd, b.address));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	EXPECT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &a));
	EXPECT_EQ(0, device_byte(self->fd, a.address));
	EXPECT_EQ(SIGBUS, signal_at(p));
	unmap(p, 64);
	p = map_at(self->fd, a.address, 64);
	EXPECT_EQ(-1, accmem_first_nonzero(p, 64));
	unmap(p, 64);
}

/* What is freed in place by REALLOC is of before the reset, too. */
TEST_F(revoke, reset_of_a_resizable_buffer)
{
	struct accmem_alloc a;
	struct accmem_realloc r;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(1), ACCMEM_ALLOC_RESIZABLE,
					&a));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(2), 0, &r));
	RESET();
	EXPECT_EQ(-ECONNRESET, accmem_ioctl_realloc(self->fd, r.address, MIB(4),
						    0, NULL));
	EXPECT_EQ(-ECONNRESET, accmem_ioctl_realloc(self->fd, r.address, 4096,
						    0, NULL));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(1), ACCMEM_ALLOC_RESIZABLE,
					&a));
	ASSERT_EQ(0, device_fill(self->fd, a.address, MIB(1), 3));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(3), 0, &r));
	EXPECT_EQ(3, device_byte(self->fd, r.address + MIB(1) - 1));
	EXPECT_EQ(0, device_byte(self->fd, r.address + MIB(1)));
}

/* All memory has bytes that nobody may see after the reset, also where it was free. */
TEST_F(revoke, reset_shows_no_byte_of_before)
{
	struct accmem_alloc a[64];
	uint64_t most = accmem_touchable(self->fd), sum = 0;
	int i, n = 0, other;
	char *p;

	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	drop_mapping(&self->p);
	while (n < 24 && sum + MIB(2) < most &&
	       !accmem_alloc_bytes(self->fd, MIB(2), 0, &a[n])) {
		if (n % 2) {
			p = accmem_mapped(self->fd, &a[n], MIB(2));
			memset(p, 0x5a, MIB(2));
			munmap(p, MIB(2));
		} else {
			ASSERT_EQ(0, device_fill(self->fd, a[n].address, MIB(2),
						 0x5a));
		}
		sum += MIB(2);
		n++;
	}
	ASSERT_LT(4, n);
	for (i = 0; i < n / 2; i++)
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	RESET();
	for (i = n / 2; i < n; i++)
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	other = accmem_opened(variant->path);
	for (i = 0; i < n; i++) {
		int fd = i % 2 ? other : self->fd;

		ASSERT_EQ(0, accmem_alloc_bytes(fd, MIB(2), 0, &a[i]));
		p = accmem_mapped(fd, &a[i], MIB(2));
		EXPECT_EQ(-1, accmem_first_nonzero(p, MIB(2)));
		munmap(p, MIB(2));
	}
	close(other);
}

TEST_F(revoke, reset_takes_only_the_text_1)
{
	EXPECT_EQ(-EINVAL, device_reset_with(variant->path, "0"));
	EXPECT_EQ(-EINVAL, device_reset_with(variant->path, "2"));
	EXPECT_EQ(-EINVAL, device_reset_with(variant->path, "reset"));
	EXPECT_EQ(-EINVAL, device_reset_with(variant->path, "11"));
	EXPECT_EQ(-EINVAL, device_reset_with(variant->path, "\n"));
	EXPECT_EQ(0, signal_at(self->p));
	EXPECT_EQ(0, device_reset_with(variant->path, "1\n"));
	EXPECT_EQ(SIGBUS, signal_at(self->p));
}

static int reset_as_user(void *path)
{
	return -device_reset(path);
}

TEST_F(revoke, reset_is_for_root)
{
	EXPECT_EQ(EACCES, accmem_as_user(1000, reset_as_user,
					 (void *)variant->path));
	EXPECT_EQ(0, signal_at(self->p));
}

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

	ASSERT_LT(0, take_all(self->fd));
	for (i = 0; i < 3; i++)
		ASSERT_TRUE(put_to_sleep(&w[i], variant->path, fds[i],
					 i == 2 ? in_ms(self->fd, 600000) :
						  FOREVER,
					 i + 1));
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
			      const FIXTURE_VARIANT(revoke) * variant, int flags)
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
	usleep(100000);
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
	EXPECT_EQ(0, accmem_sysfs_wait(variant->path, "pending_bytes", 0,
				       20000) + 1);
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
	usleep(200000);
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
	int cta;
	int result;
};

static void *cta_main(void *arg)
{
	struct cta_call *call = arg;

	call->result = cta_alloc(call->cta, 512);
	return NULL;
}

static void check_ctas(struct __test_metadata *_metadata,
		       FIXTURE_DATA(revoke) * self,
		       const FIXTURE_VARIANT(revoke) * variant, bool gone)
{
	struct cta_call call;
	int first;

	ASSERT_EQ(0, cta_setup(self->fd));
	first = cta_launch(self->fd);
	call.cta = cta_launch(self->fd);
	ASSERT_LE(0, first);
	ASSERT_LE(0, call.cta);
	ASSERT_EQ(0, cta_alloc(first, 512));
	ASSERT_EQ(0, pthread_create(&call.thread, NULL, cta_main, &call));
	usleep(200000);
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
	int begin[2], status;
	char byte = 0;
	pid_t pid;

	ASSERT_EQ(0, pipe(begin));
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memset(self->p, 1, LENGTH);
		if (read(begin[0], &byte, 1) != 1)
			_exit(2);
		_exit(expect_bus(self->p));
	}
	usleep(50000);
	ASSERT_EQ(0, REVOKE_FOR(gone));
	EXPECT_EQ(1, write(begin[1], &byte, 1));
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, accmem_in_child(expect_bus, self->p));
	close(begin[0]);
	close(begin[1]);
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
	EXPECT_EQ(0, all_calls(self->fd, a.address,
			       gone ? -ENODEV : -ECONNRESET));
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

/* --- the end of a device -------------------------------------------------- */

TEST_F(revoke, gone_refuses_all_calls)
{
	char file[64];
	int fd;

	UNBIND();
	EXPECT_EQ(SIGBUS, signal_at(self->p));
	EXPECT_EQ(0, all_calls(self->fd, self->a.address, -ENODEV));
	EXPECT_EQ(-1, access(variant->path, F_OK));
	EXPECT_EQ(-1, open(variant->path, O_RDWR));
	EXPECT_GT(0, accmem_sysfs(variant->path, "capacity"));
	snprintf(file, sizeof(file), "/proc/self/fd/%d", self->fd);
	fd = open(file, O_RDWR);
	EXPECT_GT(0, fd);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(0, all_calls(self->fd, self->a.address, -ENODEV));
	EXPECT_EQ(SIGBUS, signal_at(self->p));
}

TEST_F(revoke, gone_after_a_reset)
{
	RESET();
	UNBIND();
	EXPECT_EQ(0, all_calls(self->fd, self->a.address, -ENODEV));
	EXPECT_EQ(SIGBUS, signal_at(self->p));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
}

/* What holds the range of a device that is gone. A range can be claimed once. */
static bool is_held(const struct target *t, const char *path)
{
	char now[64];
	bool held;

	if (!strncmp(t->driver, "accmem-phys", 11))
		return target_bind(t) == -EBUSY;
	if (target_bind(t) || !target_node(t, now, sizeof(now)))
		return false;
	held = strcmp(now, path);
	target_unbind(t);
	return held;
}

TEST_F(revoke, gone_is_held_by_a_file)
{
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	drop_mapping(&self->p);
	UNBIND();
	EXPECT_TRUE(is_held(&self->target, variant->path));
}

TEST_F(revoke, gone_is_held_by_a_mapping)
{
	drop_file(&self->fd);
	UNBIND();
	EXPECT_TRUE(is_held(&self->target, variant->path));
	EXPECT_EQ(SIGBUS, signal_at(self->p));
}

TEST_F(revoke, gone_is_held_by_a_detached_mapping)
{
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	UNBIND();
	drop_file(&self->fd);
	EXPECT_TRUE(is_held(&self->target, variant->path));
	EXPECT_EQ(SIGBUS, signal_at(self->p));
}

TEST_F(revoke, gone_is_held_by_pinned_pages)
{
	int pipes[2];

	if (!(self->info.features & ACCMEM_FEATURE_PIN))
		SKIP(return, "no page structures");
	ASSERT_TRUE(accmem_pin(pipes, self->p, 4096));
	UNBIND();
	EXPECT_EQ(SIGBUS, signal_at(self->p));
	drop_mapping(&self->p);
	drop_file(&self->fd);
	EXPECT_TRUE(is_held(&self->target, variant->path));
	usleep(100000);
	EXPECT_TRUE(is_held(&self->target, variant->path));
	accmem_unpin(pipes);
}

TEST_F(revoke, gone_with_cached_and_small_buffers)
{
	struct accmem_alloc a[6];
	unsigned int i;

	for (i = 0; i < 6; i++)
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, i < 3 ? 64 : 4096, 0,
						&a[i]));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a[0].address));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a[3].address));
	UNBIND();
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a[1].address));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a[4].address));
}

TEST_F(revoke, gone_and_bound_again)
{
	struct accmem_alloc a;
	char path[64], *p;
	int fd;

	drop_mapping(&self->p);
	drop_file(&self->fd);
	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	UNBIND();
	ASSERT_TRUE(target_restore(&self->target));
	ASSERT_TRUE(target_node(&self->target, path, sizeof(path)));
	fd = accmem_opened(path);
	ASSERT_EQ(0, accmem_alloc_bytes(fd, LENGTH, 0, &a));
	p = accmem_mapped(fd, &a, LENGTH);
	EXPECT_EQ(-1, accmem_first_nonzero(p, LENGTH));
	munmap(p, LENGTH);
	close(fd);
}

/* --- mappings that are made meanwhile ------------------------------------- */

struct toucher {
	pthread_t thread;
	char *p;
	atomic_int stop;
	atomic_int faults;
};

/* Faults in one page after another, again and again. */
static void *toucher_main(void *arg)
{
	struct toucher *t = arg;
	uint64_t at = 0;

	while (!atomic_load(&t->stop)) {
		if (!at)
			madvise(t->p, LENGTH, MADV_DONTNEED);
		if (!bus_try(t->p + at, false))
			break;
		atomic_fetch_add(&t->faults, 1);
		at = (at + 4096) % LENGTH;
	}
	return NULL;
}

/* The number of pages of a mapping that can be read still. */
static unsigned int readable_pages(char *p)
{
	unsigned int n = 0;
	uint64_t at;

	for (at = 0; at < LENGTH; at += 4096)
		n += bus_try(p + at, false);
	return n;
}

/* No fault that began before the reset leaves a mapping behind. */
TEST_F(revoke, reset_against_faults)
{
	unsigned int i, n = accmem_scale(100), left = 0;
	struct toucher t[2] = {};

	bus_is_caught();
	for (i = 0; i < n && !left; i++) {
		unsigned int j;

		for (j = 0; j < 2; j++) {
			t[j].p = self->p;
			atomic_store(&t[j].stop, 0);
			ASSERT_EQ(0, pthread_create(&t[j].thread, NULL,
						    toucher_main, &t[j]));
		}
		usleep(1000 + i % 7 * 1000);
		RESET();
		left = readable_pages(self->p);
		for (j = 0; j < 2; j++) {
			atomic_store(&t[j].stop, 1);
			pthread_join(t[j].thread, NULL);
		}
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
		drop_mapping(&self->p);
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, LENGTH,
						i % 2 ? ACCMEM_ALLOC_TOP_DOWN : 0,
						&self->a));
		self->p = accmem_mapped(self->fd, &self->a, LENGTH);
	}
	EXPECT_EQ(0, left);
	EXPECT_LT(0, atomic_load(&t[0].faults));
}

TEST_HARNESS_MAIN
