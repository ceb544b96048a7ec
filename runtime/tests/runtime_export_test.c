// SPDX-License-Identifier: MIT
/*
 * Exports and imports of libaccmem on a device: /dev/accmem0, or the one in
 * $ACCMEM_DEVICE. Built with FAKE_DEVICE it runs on the host over fake_device.c instead.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <accmem_pool.h>

#include "runtime_tests.h"

#define KIB 1024ull
#define PAGE 4096ull

static int export_of(struct accmem_context *ctx, uint64_t address,
		     uint64_t length, uint32_t flags)
{
	int fd = -1;

	CHECK_EQ(accmem_export(ctx, address, length, flags, &fd), 0);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	return fd;
}

static uint64_t import_of(struct accmem_context *ctx, int fd, uint64_t offset,
			  uint64_t length)
{
	uint64_t address;

	CHECK_EQ(accmem_import(ctx, fd, offset, length, &address), 0);
	return address;
}

static void an_import_is_the_same_memory(void)
{
	struct accmem_context *ctx = open_device(), *other = open_device();
	uint64_t address = new_buffer(ctx, 64 * KIB), name;
	unsigned char *p = map(ctx, address), *q;
	int fd = export_of(ctx, address, 0, 0);
	struct accmem_query query;

	p[5] = 42;
	name = import_of(other, fd, 0, 0);
	close(fd);
	CHECK_EQ(accmem_get_query(other, name, &query), 0);
	CHECK_EQ(query.usable, 64 * KIB);
	CHECK(query.alloc_flags & ACCMEM_QUERY_IMPORTED);
	q = map(other, name);
	CHECK_EQ(q[5], 42);
	q[64 * KIB - 1] = 43;
	CHECK_EQ(p[64 * KIB - 1], 43);

	/* the exporter's name may go, and the memory stays the importer's */
	CHECK_EQ(accmem_release(ctx, address), 0);
	memset(map(ctx, new_buffer(ctx, 64 * KIB)), 1, 64 * KIB);
	CHECK_EQ(q[5], 42);
	CHECK_EQ(accmem_release(other, name), 0);
	CHECK(!readable(q));
	CHECK_EQ(accmem_release(other, name), -ENOENT);
	accmem_close(other);
	accmem_close(ctx);
}

static void a_part_is_all_that_an_importer_gets(void)
{
	struct accmem_context *ctx = open_device(), *other = open_device();
	uint64_t address = new_buffer(ctx, 64 * KIB), name, more;
	unsigned char *p = map(ctx, address), *q;
	int fd = export_of(ctx, address + 2 * PAGE, 4 * PAGE, 0);
	struct accmem_query query;

	p[3 * PAGE] = 3;
	CHECK_EQ(accmem_import(other, fd, 0, 5 * PAGE, &more), -ENXIO);
	CHECK_EQ(accmem_import(other, fd, 4 * PAGE, 0, &more), -ENXIO);
	CHECK_EQ(accmem_import(other, fd, -PAGE, PAGE, &more), -ENXIO);
	name = import_of(other, fd, PAGE, 2 * PAGE);
	q = map(other, name);
	CHECK_EQ(q[0], 3);
	CHECK_EQ(accmem_get_query(other, name + 2 * PAGE, &query), -ENOENT);
	close(fd);
	accmem_close(other);
	accmem_close(ctx);
}

/* A buffer that shares its page cannot be exported; a buffer with its own page can. */
static void small_buffers_are_not_exported(void)
{
	struct accmem_context *ctx = open_device();
	struct accmem_alloc req = { .length = 100, .alignment = PAGE };
	uint64_t address, i;
	int fd;

	for (i = 0; i < 64; i++) {
		address = new_buffer(ctx, 64);
		CHECK_EQ(accmem_export(ctx, address, 0, 0, &fd), -EPERM);
		CHECK_EQ(accmem_export(ctx, address & -PAGE, PAGE, 0, &fd),
			 -EPERM);
	}
	CHECK(strstr(accmem_last_error(), "shares a page"));
	CHECK_EQ(accmem_allocate(ctx, &req), 0);
	close(export_of(ctx, req.address, PAGE, 0));
	accmem_close(ctx);
}

static void exports_of_wrong_parts_are_refused(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, 64 * KIB);
	int fd;

	CHECK_EQ(accmem_export(ctx, address + 64, PAGE, 0, &fd), -EINVAL);
	CHECK_EQ(accmem_export(ctx, address, PAGE + 64, 0, &fd), -EINVAL);
	CHECK_EQ(accmem_export(ctx, address, PAGE, 0x80, &fd), -EINVAL);
	CHECK_EQ(accmem_export(ctx, address, 68 * KIB, 0, &fd), -ENXIO);
	CHECK(strstr(accmem_last_error(), "export of 69632 bytes at address"));
	CHECK_EQ(accmem_export(ctx, address, -PAGE, 0, &fd), -EOVERFLOW);
	CHECK_EQ(accmem_release(ctx, address), 0);
	CHECK_EQ(accmem_export(ctx, address, PAGE, 0, &fd), -ENOENT);
	accmem_close(ctx);
}

static void imports_of_wrong_descriptors_are_refused(void)
{
	struct accmem_context *ctx = open_device(), *other = open_device();
	int fd = export_of(ctx, new_buffer(ctx, 64 * KIB), 0, 0);
	int foreign = open("/dev/null", O_RDWR);
	uint64_t name = 1, charge = get_info(other).context_bytes;

	CHECK(foreign >= 0);
	CHECK_EQ(accmem_import(other, fd, 64, 0, &name), -EINVAL);
	CHECK_EQ(accmem_import(other, fd, 0, 64, &name), -EINVAL);
	CHECK_EQ(accmem_import(other, foreign, 0, 0, &name), -EINVAL);
	CHECK_EQ(accmem_import(other, accmem_fd(ctx), 0, 0, &name), -EINVAL);
	close(fd);
	CHECK_EQ(accmem_import(other, fd, 0, 0, &name), -EBADF);
	CHECK(strstr(accmem_last_error(), "import of 0 bytes at offset 0 of"));
	CHECK_EQ(accmem_import(other, -1, 0, 0, &name), -EBADF);
	CHECK_EQ(name, 1);
	CHECK_EQ(get_info(other).context_bytes, charge);
	close(foreign);
	accmem_close(other);
	accmem_close(ctx);
}

static void a_read_only_export_is_mapped_for_reading(void)
{
	struct accmem_context *ctx = open_device(), *other = open_device();
	uint64_t address = new_buffer(ctx, 64 * KIB), name;
	int fd = export_of(ctx, address, 0, ACCMEM_EXPORT_READ_ONLY);
	unsigned char *p;

	map(ctx, address)[PAGE] = 9;
	CHECK_EQ(accmem_import(other, fd, 0, 0, &name), -EACCES);
	CHECK(mmap(NULL, 64 * KIB, RW, MAP_SHARED, fd, 0) == MAP_FAILED);
	CHECK_EQ(errno, EACCES);
	p = mmap(NULL, 64 * KIB, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	CHECK_EQ(p[PAGE], 9);
	CHECK(mprotect(p, PAGE, RW) < 0);
	munmap(p, 64 * KIB);
	close(fd);
	accmem_close(other);
	accmem_close(ctx);
}

/* Send a descriptor to another process. */
static void send_fd(int socket, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS,
				  .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct iovec byte = { "x", 1 };
	struct msghdr message = { .msg_iov = &byte,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	CHECK_EQ(sendmsg(socket, &message, 0), 1);
}

static int receive_fd(int socket)
{
	char byte, room[CMSG_SPACE(sizeof(int))]
		__attribute__((aligned(__alignof__(struct cmsghdr))));
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = room,
				  .msg_controllen = sizeof(room) };
	int fd;

	CHECK_EQ(recvmsg(socket, &message, MSG_CMSG_CLOEXEC), 1);
	CHECK(CMSG_FIRSTHDR(&message));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static void wait_for(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/* The importing process: it adds 1 to the byte that it reads. */
static void add_one(int socket)
{
	struct accmem_context *ctx = open_device();
	int fd = receive_fd(socket);
	uint64_t name = import_of(ctx, fd, 4 * PAGE, 0);
	unsigned char *q = map(ctx, name);
	char byte;

	close(fd);
	CHECK_EQ(q[0], 100);
	q[0]++;
	CHECK_EQ(write(socket, "", 1), 1);
	/* the exporter has released the memory, and closed all that it had */
	CHECK_EQ(read(socket, &byte, 1), 0);
	CHECK_EQ(q[0], 101);
	CHECK_EQ(q[1], 0);
	CHECK_EQ(accmem_release(ctx, name), 0);
	wait_until_all_is_free(ctx);
	accmem_close(ctx);
	_exit(0);
}

static void memory_goes_to_another_process(void)
{
	struct accmem_context *ctx;
	unsigned char *p;
	uint64_t address;
	int sockets[2], fd;
	char byte;
	pid_t pid;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets),
		 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(sockets[0]);
		add_one(sockets[1]);
	}
	close(sockets[1]);
	ctx = open_device();
	address = new_buffer(ctx, 64 * KIB);
	p = map(ctx, address);
	p[4 * PAGE] = 100;
	fd = export_of(ctx, address, 0, 0);
	send_fd(sockets[0], fd);
	close(fd);
	CHECK_EQ(read(sockets[0], &byte, 1), 1);
	CHECK_EQ(p[4 * PAGE], 101);
	CHECK_EQ(accmem_release(ctx, address), 0);
	accmem_close(ctx);
	close(sockets[0]);
	wait_for(pid);
}

static struct accmem_pool *new_pool(struct accmem_context *ctx)
{
	struct accmem_pool *pool;

	CHECK_EQ(accmem_pool_create(ctx, NULL, &pool), 0);
	return pool;
}

static unsigned char *new_exportable(struct accmem_pool *pool, uint64_t length)
{
	struct accmem_pool_request req = { .length = length,
					   .mapped = 1,
					   .exportable = 1 };

	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	CHECK_EQ(req.address % PAGE, 0);
	return req.pointer;
}

static void a_pool_exports_what_is_exportable(void)
{
	struct accmem_context *ctx = open_device();
	struct accmem_pool *pool = new_pool(ctx), *other = new_pool(ctx);
	struct accmem_pool_request req = { .length = MIB, .alignment = PAGE };
	unsigned char *p = new_exportable(pool, 16 * PAGE);
	int fd;

	/* a piece of a pool's buffer cannot be exported */
	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	CHECK_EQ(accmem_pool_export(pool, req.pointer, 0, 0, &fd), -EPERM);
	CHECK(strstr(accmem_last_error(), "is not exportable"));
	req.flags = ACCMEM_ALLOC_POPULATE; /* a buffer of its own, by chance */
	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	CHECK_EQ(accmem_pool_export(pool, req.pointer, 0, 0, &fd), -EPERM);
	CHECK_EQ(accmem_pool_export(pool, &req, 0, 0, &fd), -ENOENT);
	CHECK_EQ(accmem_pool_export(other, p, 0, 0, &fd), -ENOENT);
	CHECK_EQ(accmem_pool_export(pool, p + 64, PAGE, 0, &fd), -EINVAL);
	CHECK_EQ(accmem_pool_export(pool, p, 64, 0, &fd), -EINVAL);
	CHECK_EQ(accmem_pool_export(pool, p + PAGE, 16 * PAGE, 0, &fd), -ENXIO);
	CHECK_EQ(accmem_pool_export(pool, p + PAGE, 2 * PAGE, 0, &fd), 0);
	close(fd);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	CHECK_EQ(accmem_pool_export(pool, p, 0, 0, &fd), -ENOENT);

	req.exportable = 2;
	CHECK_EQ(accmem_pool_allocate(pool, &req), -EINVAL);
	CHECK(strstr(accmem_last_error(), "are 0 or 1"));
	/* memory of earlier work on a stream is not zeroed */
	req.exportable = 1;
	req.on_stream = 1;
	CHECK_EQ(accmem_pool_allocate(pool, &req), -EINVAL);
	accmem_pool_destroy(other);
	accmem_pool_destroy(pool);
	accmem_close(ctx);
}

/* Whatever the exporter's pool does with its memory, the importer sees none of it. */
static void a_hostile_importer_sees_the_export_only(void)
{
	struct accmem_context *ctx = open_device(), *other = open_device();
	struct accmem_pool *pool = new_pool(ctx), *importer = new_pool(other);
	unsigned char *p = new_exportable(pool, 100), *q, *others[64];
	unsigned int i, j;
	void *pointer;
	int fd;

	p[0] = 1;
	CHECK_EQ(accmem_pool_export(pool, p, 0, 0, &fd), 0);
	CHECK_EQ(accmem_pool_import(importer, fd, 0, PAGE + 64, &pointer),
		 -EINVAL);
	CHECK_EQ(accmem_pool_import(importer, fd, 0, 2 * PAGE, &pointer),
		 -ENXIO);
	CHECK_EQ(accmem_pool_import(importer, fd, 0, 0, &pointer), 0);
	close(fd);
	CHECK_EQ(accmem_pool_usable_size(importer, pointer), PAGE);
	CHECK_EQ(accmem_pool_map(importer, pointer), 0);
	q = pointer;
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	for (i = 0; i < 64; i++) {
		others[i] = i % 2 ? new_exportable(pool, 64) :
				    accmem_pool_malloc(pool, 64 << (i % 16));
		CHECK(others[i]);
		CHECK_EQ(accmem_pool_map(pool, others[i]), 0);
		memset(others[i], 0xff, 64);
	}
	CHECK_EQ(q[0], 1);
	for (j = 1; j < PAGE; j++)
		CHECK_EQ(q[j], 0);
	CHECK_EQ(accmem_pool_release(importer, pointer), 0);
	accmem_pool_destroy(importer);
	accmem_pool_destroy(pool);
	accmem_close(other);
	accmem_close(ctx);
}

static void an_imported_allocation_is_like_others(void)
{
	struct accmem_context *ctx = open_device(), *other = open_device();
	struct accmem_pool *pool = new_pool(ctx), *importer = new_pool(other);
	unsigned char *p = new_exportable(pool, 16 * PAGE), *q;
	struct accmem_pool_stats before, after;
	struct accmem_pool_block block;
	void *pointer;
	int fd, again;

	CHECK_EQ(accmem_pool_export(pool, p, 0, 0, &fd), 0);
	accmem_pool_get_stats(importer, &before);
	CHECK_EQ(accmem_pool_import(importer, -1, 0, 0, &pointer), -EBADF);
	CHECK(strstr(accmem_last_error(), "of descriptor -1: "));
	CHECK_EQ(accmem_pool_import(importer, fd, PAGE, 4 * PAGE, &pointer), 0);
	close(fd);
	q = pointer;
	CHECK_EQ(accmem_pool_lookup(importer, q + PAGE, &block), 0);
	CHECK(block.pointer == pointer);
	CHECK_EQ(block.length, 4 * PAGE);
	CHECK_EQ(block.address, accmem_pool_address(importer, pointer));
	CHECK_EQ(accmem_pool_find(pointer, &block), 0);
	CHECK(block.pool == importer);
	accmem_pool_get_stats(importer, &after);
	CHECK_EQ(after.live_bytes - before.live_bytes, 4 * PAGE);
	CHECK_EQ(accmem_pool_map(importer, q), 0);
	p[PAGE] = 7;
	CHECK_EQ(q[0], 7);

	CHECK_EQ(accmem_pool_export(importer, q, 0, 0, &again), -EPERM);
	CHECK_EQ(accmem_pool_reallocate(importer, &pointer, PAGE), -EPERM);
	CHECK_EQ(accmem_pool_release(importer, q + 64), -EINVAL);
	CHECK_EQ(accmem_pool_release(importer, q), 0);
	CHECK(!readable(q));
	CHECK_EQ(accmem_pool_release(importer, q), -ENOENT);
	accmem_pool_get_stats(importer, &after);
	CHECK_EQ(after.live_bytes, before.live_bytes);
	CHECK_EQ(after.reserved_bytes, before.reserved_bytes);
	CHECK_EQ(p[PAGE], 7);
	accmem_pool_destroy(importer);
	accmem_pool_destroy(pool);
	accmem_close(other);
	accmem_close(ctx);
}

/* The end of a pool releases its imports; the memory is free after the last user. */
static void the_end_of_a_pool_ends_its_imports(void)
{
	struct accmem_context *ctx = open_device(), *other = open_device();
	struct accmem_pool *pool = new_pool(ctx), *importer = new_pool(other);
	unsigned char *p = new_exportable(pool, MIB);
	void *pointer;
	int fd;

	CHECK_EQ(accmem_pool_export(pool, p, 0, 0, &fd), 0);
	CHECK_EQ(accmem_pool_import(importer, fd, 0, 0, &pointer), 0);
	CHECK(get_info(other).context_bytes >= MIB);
	close(fd);
	accmem_pool_destroy(importer);
#ifndef FAKE_DEVICE
	CHECK_EQ(get_info(other).context_bytes, 0);
#endif
	accmem_pool_destroy(pool);
	accmem_close(ctx);
#ifndef FAKE_DEVICE
	wait_until_all_is_free(other);
#endif
	accmem_close(other);
}

static void a_child_does_not_export_what_is_the_parents(void)
{
	struct accmem_context *ctx = open_device();
	struct accmem_pool *pool = new_pool(ctx);
	unsigned char *p = new_exportable(pool, PAGE);
	pid_t pid = fork();
	int fd;

	CHECK(pid >= 0);
	if (!pid) {
		CHECK_EQ(accmem_pool_export(pool, p, 0, 0, &fd), -EPERM);
		_exit(0);
	}
	wait_for(pid);
	CHECK_EQ(accmem_pool_export(pool, p, 0, 0, &fd), 0);
	close(fd);
	accmem_pool_destroy(pool);
	accmem_close(ctx);
}

#ifdef FAKE_DEVICE
static void revoke_exports(void)
{
	fake_revoked = true;
}

static void a_driver_without_exports_says_so(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, 64 * KIB);
	int fd;

	fake_no_exports = true;
	CHECK_EQ(accmem_export(ctx, address, 0, 0, &fd), -ENOTTY);
	CHECK_EQ(accmem_import(ctx, 0, 0, 0, &address), -ENOTTY);
	accmem_close(ctx);
}

/* As stale_mapping_goes_when_its_address_is_reused in runtime_map_test. */
static void a_stale_mapping_is_none_of_the_import(void)
{
	struct accmem_context *ctx = open_device(), *other = open_device();
	int fd = export_of(ctx, new_buffer(ctx, 64 * KIB), 0, 0);
	uint64_t address = new_buffer(other, 64 * KIB);
	struct accmem_free req = { .size = sizeof(req), .address = address };
	unsigned char *stale = map(other, address);

	CHECK_EQ(ioctl(accmem_fd(other), ACCMEM_IOC_FREE, &req), 0);
	CHECK(readable(stale));
	CHECK_EQ(import_of(other, fd, 0, 0), address);
	CHECK(!readable(stale));
	CHECK_EQ(accmem_unmap(other, address), -ENOENT);
	close(fd);
	accmem_close(other);
	accmem_close(ctx);
}
#else
/* The contents are lost. Contexts that have no buffers go on. */
static void revoke_exports(void)
{
	const char *device = getenv("ACCMEM_DEVICE");
	char path[64];
	int file;

	snprintf(path, sizeof(path), "/sys/class/accmem/%s/reset",
		 device && *device ? device + strlen("/dev/") : "accmem0");
	file = open(path, O_WRONLY);
	CHECK(file >= 0);
	CHECK_EQ(write(file, "1", 1), 1);
	close(file);
}
#endif

static void a_revoked_export_is_not_imported(void)
{
	struct accmem_context *ctx = open_device(), *other = open_device();
	int fd = export_of(ctx, new_buffer(ctx, 64 * KIB), 0, 0);
	struct accmem_pool *pool = new_pool(other);
	void *pointer;
	uint64_t name;

	revoke_exports();
	CHECK_EQ(accmem_import(other, fd, 0, 0, &name), -ECONNRESET);
	CHECK_EQ(accmem_pool_import(pool, fd, 0, 0, &pointer), -ECONNRESET);
	close(fd);
	accmem_pool_destroy(pool);
	accmem_close(other);
	accmem_close(ctx);
}

static const struct test tests[] = {
	ROW(an_import_is_the_same_memory),
	ROW(a_part_is_all_that_an_importer_gets),
	ROW(small_buffers_are_not_exported),
	ROW(exports_of_wrong_parts_are_refused),
	ROW(imports_of_wrong_descriptors_are_refused),
	ROW(a_read_only_export_is_mapped_for_reading),
	ROW(memory_goes_to_another_process),
	ROW(a_pool_exports_what_is_exportable),
	ROW(a_hostile_importer_sees_the_export_only),
	ROW(an_imported_allocation_is_like_others),
	ROW(the_end_of_a_pool_ends_its_imports),
	ROW(a_child_does_not_export_what_is_the_parents),
	ROW(a_revoked_export_is_not_imported),
#ifdef FAKE_DEVICE
	ROW(a_driver_without_exports_says_so),
	ROW(a_stale_mapping_is_none_of_the_import),
#endif
};

int main(void)
{
#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
