// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings of buffers. New memory reads as zero. All mappings in all processes show
 * the same contents. A mapping has the rights of its file, and it stays valid until
 * munmap(), also when the buffer is freed or the context is closed.
 */
#include <sys/socket.h>

#include "accmem_test.h"

#define LENGTH (MIB(4) + 3 * 4096)

FIXTURE(map)
{
	int fd;
	struct accmem_info info;
	struct accmem_alloc buf;
	char *p;
};

ACCMEM_VARIANTS(map);

FIXTURE_SETUP(map)
{
	self->fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, LENGTH, 0, &self->buf));
	self->p = accmem_mapped(self->fd, &self->buf, LENGTH);
}

FIXTURE_TEARDOWN(map)
{
	munmap(self->p, LENGTH);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 10000));
}

TEST_F(map, zero_at_first)
{
	EXPECT_EQ(-1, accmem_first_nonzero(self->p, LENGTH));
	accmem_fill(self->p, LENGTH, 1);
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 1));
}

/* Memory that the same context has written to reads as zero, too. */
TEST_F(map, zero_again)
{
	struct accmem_alloc buf;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, LENGTH, 0, &buf));
		EXPECT_EQ(-1, check_at(self->fd, buf.address, 0, LENGTH, 0));
		ASSERT_EQ(0, fill_at(self->fd, buf.address, LENGTH, i));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, buf.address));
	}
}

TEST_F(map, two_mappings_agree)
{
	char *q = accmem_mapped(self->fd, &self->buf, LENGTH);

	accmem_fill(self->p, LENGTH, 2);
	EXPECT_EQ(-1, accmem_check(q, LENGTH, 2));
	accmem_fill(q, LENGTH, 3);
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 3));
	munmap(q, LENGTH);
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 3));
}

TEST_F(map, part_of_the_buffer)
{
	const uint64_t offsets[] = { 4096, MIB(2), MIB(2) + 4096,
				     LENGTH - 8192 };
	unsigned int i;
	char *q;

	accmem_fill(self->p, LENGTH, 4);
	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		q = accmem_mmap_at(NULL, self->fd,
				   self->buf.mmap_offset + offsets[i], 8192,
				   RW, MAP_SHARED);
		ASSERT_NE(NULL, q);
		EXPECT_EQ(0, memcmp(q, self->p + offsets[i], 8192));
		q[100]++;
		EXPECT_EQ(q[100], self->p[offsets[i] + 100]);
		munmap(q, 8192);
	}
}

TEST_F(map, munmap_a_hole)
{
	char *q = accmem_mapped_huge(self->fd, &self->buf, LENGTH);
	uint64_t value;

	/* 4 KiB of a page that may have a huge entry */
	accmem_fill(q, LENGTH, 5);
	ASSERT_EQ(0, munmap(q + MIB(1), 4096));
	EXPECT_EQ(SIGSEGV, accmem_try_read(q + MIB(1), &value));
	EXPECT_EQ(0, memcmp(q, self->p, MIB(1)));
	EXPECT_EQ(0, memcmp(q + MIB(1) + 4096, self->p + MIB(1) + 4096,
			    LENGTH - MIB(1) - 4096));
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 5));
	munmap(q, LENGTH);
}

TEST_F(map, mprotect)
{
	char *at = self->p + MIB(2) + 4096;

	accmem_fill(self->p, LENGTH, 6);
	ASSERT_EQ(0, mprotect(at, 4096, PROT_READ));
	EXPECT_EQ(SIGSEGV, accmem_try_write(at, 0));
	EXPECT_EQ(0, accmem_try_write(at + 4096, *(uint64_t *)(at + 4096)));
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 6));
	ASSERT_EQ(0, mprotect(at, 4096, PROT_NONE));
	EXPECT_EQ(SIGSEGV, accmem_try_read(at, &(uint64_t){ 0 }));
	ASSERT_EQ(0, mprotect(at, 4096, RW));
	EXPECT_EQ(0, accmem_try_write(at, *(uint64_t *)at));
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 6));
}

struct shared {
	int fd;
	char *p;
	uint64_t address;
	int socket;
};

static int child_of_fork(void *arg)
{
	struct shared *s = arg;
	struct accmem_query q;

	if (accmem_check(s->p, LENGTH, 7) != -1)
		return 1;
	accmem_fill(s->p, LENGTH, 8);
	if (accmem_ioctl_query(s->fd, s->address, &q))
		return 2;
	return accmem_ioctl_free(s->fd, s->address) ? 3 : 0;
}

/* A child has the mapping and the context, and may free the buffer. */
TEST_F(map, fork_shares)
{
	struct shared s = { .fd = self->fd, .p = self->p,
			    .address = self->buf.address };

	accmem_fill(self->p, LENGTH, 7);
	EXPECT_EQ(0, accmem_in_child(child_of_fork, &s));
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 8));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->fd, self->buf.address));
	EXPECT_EQ(1, accmem_sysfs(variant->path, "contexts"));
}

static int receive_fd(int socket)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	int fd = -1;

	if (recvmsg(socket, &msg, 0) != 1)
		return -1;
	c = CMSG_FIRSTHDR(&msg);
	if (c)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static int send_fd(int socket, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(socket, &msg, 0) == 1 ? 0 : -1;
}

static int child_of_socket(void *arg)
{
	struct shared *s = arg;
	struct accmem_query q;
	char *p;
	int fd;

	close(s->fd);
	fd = receive_fd(s->socket);
	if (fd < 0)
		return 1;
	if (accmem_ioctl_query(fd, s->address, &q))
		return 2;
	p = accmem_mmap_at(NULL, fd, q.mmap_offset, LENGTH, RW, MAP_SHARED);
	if (!p)
		return 3;
	accmem_fill(p, LENGTH, 9);
	return 0;
}

TEST_F(map, passed_fd_shares)
{
	int sockets[2];
	struct shared s = { .fd = self->fd, .address = self->buf.address };

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets));
	ASSERT_EQ(0, send_fd(sockets[0], self->fd));
	s.socket = sockets[1];
	EXPECT_EQ(0, accmem_in_child(child_of_socket, &s));
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 9));
	EXPECT_EQ(1, accmem_sysfs(variant->path, "contexts"));
	close(sockets[0]);
	close(sockets[1]);
}

/* A context stays open while its file is in the queue of a socket. */
TEST_F(map, context_in_a_socket)
{
	int sockets[2], fd;
	struct accmem_query q;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets));
	ASSERT_EQ(0, send_fd(sockets[0], self->fd));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(1, accmem_sysfs(variant->path, "contexts"));
	fd = receive_fd(sockets[1]);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, accmem_ioctl_query(fd, self->buf.address, &q));
	ASSERT_EQ(0, send_fd(sockets[0], fd));
	close(fd);
	close(sockets[0]);
	close(sockets[1]);
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "contexts", 0, 5000));
}

TEST_F(map, read_only_file)
{
	int fd = accmem_dev_open(variant->path, O_RDONLY);
	struct accmem_alloc buf;
	uint64_t evil = 0x4141414141414141ull;
	char *p;
	int mem;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, accmem_alloc_bytes(fd, 8192, 0, &buf));
	EXPECT_EQ(NULL, accmem_mmap(fd, &buf, 8192, PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	p = accmem_mmap(fd, &buf, 8192, PROT_READ);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(SIGSEGV, accmem_try_write(p, evil));
	/* a write as a debugger makes it fails, too */
	mem = open("/proc/self/mem", O_RDWR);
	ASSERT_LE(0, mem);
	EXPECT_EQ(-1, pwrite(mem, &evil, sizeof(evil), (uintptr_t)p));
	EXPECT_EQ(-1, accmem_first_nonzero(p, 8192));
	close(mem);
	munmap(p, 8192);
	close(fd);
}

/* true if one of @n buffers overlaps @a */
static bool overlaps(const struct accmem_alloc *bufs, int n,
		     const struct accmem_alloc *a)
{
	int i;

	for (i = 0; i < n; i++)
		if (bufs[i].address < a->address + a->footprint &&
		    a->address < bufs[i].address + bufs[i].footprint)
			return true;
	return false;
}

TEST_F(map, free_while_mapped)
{
	static struct accmem_alloc all[256];
	int64_t live = accmem_sysfs(variant->path, "live_bytes");
	int other = accmem_opened(variant->path), n;
	uint64_t value, rest;

	EXPECT_EQ(self->buf.footprint, live);
	accmem_fill(self->p, LENGTH, 10);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->buf.address));
	EXPECT_EQ(self->buf.footprint,
		  accmem_sysfs(variant->path, "detached_bytes"));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "live_bytes"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	EXPECT_EQ(NULL, accmem_mmap(self->fd, &self->buf, 4096, RW));
	EXPECT_EQ(ENXIO, errno);

	/* no context gets the memory meanwhile */
	n = accmem_take_all(other, 0, all, ARRAY_SIZE(all));
	ASSERT_LT(0, n);
	/* except memory in a large page of the first context */
	rest = accmem_free_now(other);
	EXPECT_GT(MIB(2), rest);
	if (self->info.translation == ACCMEM_TRANSLATION_IDENTITY) {
		EXPECT_FALSE(overlaps(all, n, &self->buf));
	}
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 10));
	accmem_fill(self->p, LENGTH, 11);
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 11));

	/* a part of the mapping keeps all of the buffer */
	ASSERT_EQ(0, munmap(self->p, LENGTH - 4096));
	EXPECT_EQ(0, accmem_try_read(self->p + LENGTH - 4096, &value));
	EXPECT_EQ(rest, accmem_free_now(other));
	ASSERT_EQ(0, munmap(self->p + LENGTH - 4096, 4096));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "free_bytes",
					rest + self->buf.footprint, 5000));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "detached_bytes"));
	close(other);
}

TEST_F(map, close_while_mapped)
{
	accmem_fill(self->p, LENGTH, 12);
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(0, accmem_sysfs(variant->path, "contexts"));
	EXPECT_EQ(self->buf.footprint,
		  accmem_sysfs(variant->path, "detached_bytes"));
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 12));
	accmem_fill(self->p, LENGTH, 13);
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 13));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
}

/* Pages that were never touched can be accessed after the context was closed. */
TEST_F(map, close_before_first_touch)
{
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(-1, accmem_first_nonzero(self->p, LENGTH));
	accmem_fill(self->p, LENGTH, 14);
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 14));
}

/* A mapping of one buffer does not keep the other buffers of the context. */
TEST_F(map, mapping_keeps_its_buffer_only)
{
	struct accmem_alloc other;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(32), 0, &other));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "free_bytes",
					self->info.capacity -
						self->buf.footprint,
					5000));
}

static int child_outlives(void *arg)
{
	struct shared *s = arg;

	/* the parent has freed the buffer: this mapping is the last reference */
	return accmem_check(s->p, LENGTH, 15) == -1 ? 0 : 1;
}

TEST_F(map, child_keeps_mapping)
{
	struct shared s = { .p = self->p };
	int pipes[2];
	char byte = 0;
	pid_t pid;

	ASSERT_EQ(0, pipe(pipes));
	accmem_fill(self->p, LENGTH, 15);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(self->fd);
		_exit(read(pipes[0], &byte, 1) == 1 ? child_outlives(&s) : 9);
	}
	munmap(self->p, LENGTH);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->buf.address));
	EXPECT_EQ(self->buf.footprint,
		  accmem_sysfs(variant->path, "detached_bytes"));
	ASSERT_EQ(1, write(pipes[1], &byte, 1));
	EXPECT_EQ(0, accmem_wait_child(pid));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "free_bytes",
					self->info.capacity, 5000));
}

TEST_F(map, every_cache_mode)
{
	struct accmem_alloc buf;
	unsigned int mode;
	char *p;

	for (mode = ACCMEM_CACHE_WB; mode <= ACCMEM_CACHE_UC; mode++) {
		if (!(self->info.cache_modes & (1 << mode)))
			continue;
		buf = (struct accmem_alloc){ .length = MIB(2) + 4096,
					     .cache_mode = mode };
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &buf));
		p = accmem_mapped(self->fd, &buf, buf.length);
		EXPECT_EQ(-1, accmem_first_nonzero(p, buf.length));
		accmem_fill(p, buf.length, mode);
		EXPECT_EQ(-1, accmem_check(p, buf.length, mode));
		munmap(p, buf.length);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, buf.address));
	}
}

TEST_F(map, populate)
{
	struct accmem_alloc buf;
	int64_t before = accmem_sysfs(variant->path, "resident_bytes");

	ASSERT_LE(0, before);
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(8),
					ACCMEM_ALLOC_POPULATE, &buf));
	if (self->info.features & ACCMEM_FEATURE_FIRST_TOUCH) {
		EXPECT_LE(before + (int64_t)MIB(8),
			  accmem_sysfs(variant->path, "resident_bytes"));
	}
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, buf.address));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "resident_bytes",
					before, 5000));
}

ACCMEM_HARNESS_MAIN
