// SPDX-License-Identifier: GPL-2.0
/*
 * Devices that are reset or go away, for revoke.sh, which loads the module with a device
 * of each backing: the effects on calls, buffers and mappings. A test resets a device by a
 * write to the file "reset", and removes a device by unbinding its driver.
 */
#include "revoke_fixture.h"

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
		return; /* without page structures nothing can be pinned */
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
		EXPECT_EQ(0,
			  accmem_alloc_bytes(self->fd, i ? 4096 : 128, 0, &b));
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

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(1),
					ACCMEM_ALLOC_RESIZABLE, &a));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(2), 0, &r));
	RESET();
	EXPECT_EQ(-ECONNRESET,
		  accmem_ioctl_realloc(self->fd, r.address, MIB(4), 0, NULL));
	EXPECT_EQ(-ECONNRESET,
		  accmem_ioctl_realloc(self->fd, r.address, 4096, 0, NULL));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(1),
					ACCMEM_ALLOC_RESIZABLE, &a));
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
	EXPECT_EQ(EACCES,
		  accmem_as_user(1000, reset_as_user, (void *)variant->path));
	EXPECT_EQ(0, signal_at(self->p));
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
		return; /* without page structures nothing can be pinned */
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

/* The number of pages of a mapping that are in the page table. */
static int mapped_pages(const char *p)
{
	static uint64_t entries[LENGTH / 4096];
	int map = open("/proc/self/pagemap", O_RDONLY), n = 0;
	unsigned int i;

	if (map < 0 || pread(map, entries, sizeof(entries),
			     (uintptr_t)p / 4096 * 8) != sizeof(entries))
		err(1, "pagemap");
	close(map);
	for (i = 0; i < ARRAY_SIZE(entries); i++)
		n += entries[i] >> 63;
	return n;
}

/* No fault that began before the reset leaves a mapping behind. */
TEST_F_TIMEOUT(revoke, reset_against_faults, 180)
{
	unsigned int i, n = accmem_scale(100);
	int left = 0;
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
		while (!i && !atomic_load(&t[0].faults))
			usleep(1000);
		usleep(1000 + i % 7 * 1000);
		RESET();
		left = mapped_pages(self->p);
		for (j = 0; j < 2; j++) {
			atomic_store(&t[j].stop, 1);
			pthread_join(t[j].thread, NULL);
		}
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
		drop_mapping(&self->p);
		ASSERT_EQ(0,
			  accmem_alloc_bytes(self->fd, LENGTH,
					     i % 2 ? ACCMEM_ALLOC_TOP_DOWN : 0,
					     &self->a));
		self->p = accmem_mapped(self->fd, &self->a, LENGTH);
	}
	EXPECT_EQ(0, left);
	EXPECT_LT(0, atomic_load(&t[0].faults));
}

ACCMEM_HARNESS_MAIN
