// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers for the calls: ioctls, mappings, contents of memory, and accesses that may
 * fault. The contracts are in accmem_util.h. The other helpers are in accmem_system.c.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "accmem_util.h"
#include "kselftest.h"

void accmem_skip_without(const char *path)
{
	const char *kind = NULL;

	if (!access(path, F_OK))
		return;
	if (!strcmp(path, ACCMEM_DEV_EMULATED))
		kind = "emulated";
	else if (!strcmp(path, ACCMEM_DEV_PHYS))
		kind = "phys, with page structures";
	else if (!strcmp(path, ACCMEM_DEV_NOPAGES))
		kind = "phys, :nopages";
	if (!kind)
		return;
	printf("# needs %s (%s): CONTRIBUTING.md has the command\n", path,
	       kind);
	fflush(stdout);
	_exit(KSFT_SKIP);
}

int accmem_dev_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		accmem_skip_without(path);
	return fd < 0 ? -errno : fd;
}

int accmem_ioctl(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

int accmem_info_of(int fd, uint32_t flags, struct accmem_info *info)
{
	*info = (struct accmem_info){ .size = sizeof(*info), .flags = flags };
	return accmem_ioctl(fd, ACCMEM_IOC_INFO, info);
}

int accmem_ioctl_info(int fd, struct accmem_info *info)
{
	return accmem_info_of(fd, 0, info);
}

uint64_t accmem_charged(int fd)
{
	struct accmem_info info;

	return accmem_ioctl_info(fd, &info) ? ~0ull : info.context_bytes;
}

int accmem_ioctl_alloc(int fd, struct accmem_alloc *alloc)
{
	alloc->size = sizeof(*alloc);
	return accmem_ioctl(fd, ACCMEM_IOC_ALLOC, alloc);
}

int accmem_ioctl_free(int fd, uint64_t address)
{
	struct accmem_free req = { .size = sizeof(req), .address = address };

	return accmem_ioctl(fd, ACCMEM_IOC_FREE, &req);
}

int accmem_ioctl_access(int fd, struct accmem_access *access)
{
	access->size = sizeof(*access);
	return accmem_ioctl(fd, ACCMEM_IOC_ACCESS, access);
}

int accmem_ioctl_query(int fd, uint64_t address, struct accmem_query *query)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	query->address = address;
	return accmem_ioctl(fd, ACCMEM_IOC_QUERY, query);
}

int accmem_ioctl_realloc(int fd, uint64_t address, uint64_t length,
			 uint32_t flags, struct accmem_realloc *r)
{
	struct accmem_realloc req = { .size = sizeof(req),
				      .flags = flags,
				      .address = address,
				      .length = length };
	int err = accmem_ioctl(fd, ACCMEM_IOC_REALLOC, &req);

	if (r)
		*r = req;
	return err;
}

int accmem_alloc_bytes(int fd, uint64_t length, uint32_t flags,
		       struct accmem_alloc *alloc)
{
	memset(alloc, 0, sizeof(*alloc));
	alloc->length = length;
	alloc->flags = flags;
	return accmem_ioctl_alloc(fd, alloc);
}

int accmem_drain(int fd)
{
	struct accmem_info info;
	struct accmem_alloc a;
	int err = accmem_ioctl_info(fd, &info);

	if (err)
		return err;
	err = accmem_alloc_bytes(fd, info.capacity + 4096, 0, &a);
	return err == -ENOMEM ? 0 : err ?: -EINVAL;
}

uint64_t accmem_free_now(int fd)
{
	struct accmem_info info;

	return accmem_ioctl_info(fd, &info) ? 0 : info.free_bytes;
}

int accmem_take_all(int fd, uint32_t cache_mode, struct accmem_alloc *bufs,
		    int max)
{
	struct accmem_info info;
	int n, err;

	for (n = 0; n < max; n++) {
		err = accmem_ioctl_info(fd, &info);
		if (err)
			return err;
		if (!info.free_bytes || !info.largest_run)
			return n;
		bufs[n] = (struct accmem_alloc){
			.length = info.largest_run,
			.cache_mode = cache_mode,
			.flags = ACCMEM_ALLOC_CONTIGUOUS,
		};
		err = accmem_ioctl_alloc(fd, &bufs[n]);
		if (err)
			return err;
	}
	return n;
}

void *accmem_mmap_at(void *hint, int fd, uint64_t offset, uint64_t length,
		     int prot, int flags)
{
	void *p = mmap(hint, length, prot, flags, fd, offset);

	return p == MAP_FAILED ? NULL : p;
}

void *accmem_mmap(int fd, const struct accmem_alloc *alloc, uint64_t length,
		  int prot)
{
	return accmem_mmap_at(NULL, fd, alloc->mmap_offset, length, prot,
			      MAP_SHARED);
}

void *accmem_mmap_huge(int fd, const struct accmem_alloc *alloc,
		       uint64_t length)
{
	const uint64_t huge = MIB(2);
	uintptr_t base, want;
	void *hole;

	hole = mmap(NULL, length + 2 * huge, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (hole == MAP_FAILED)
		return NULL;
	base = (uintptr_t)hole;
	want = base + (huge - base % huge) % huge + alloc->mmap_offset % huge;
	munmap(hole, length + 2 * huge);
	return accmem_mmap_at((void *)want, fd, alloc->mmap_offset, length,
			      PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_FIXED_NOREPLACE);
}

int accmem_opened(const char *path)
{
	int fd = accmem_dev_open(path, O_RDWR);

	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

void *accmem_mapped(int fd, const struct accmem_alloc *alloc, uint64_t length)
{
	void *p = accmem_mmap(fd, alloc, length, PROT_READ | PROT_WRITE);

	if (!p)
		err(1, "mmap of %llu bytes", (unsigned long long)length);
	return p;
}

void *accmem_mapped_huge(int fd, const struct accmem_alloc *alloc,
			 uint64_t length)
{
	void *p = accmem_mmap_huge(fd, alloc, length);

	if (!p)
		err(1, "mmap of %llu bytes", (unsigned long long)length);
	return p;
}

bool accmem_pin(int pipes[2], void *p, size_t length)
{
	struct iovec iov = { .iov_base = p, .iov_len = length };

	return !pipe(pipes) &&
	       vmsplice(pipes[1], &iov, 1, 0) == (ssize_t)length;
}

void accmem_unpin(const int pipes[2])
{
	close(pipes[0]);
	close(pipes[1]);
}

int accmem_free_pinned(int fd, const struct accmem_alloc *alloc, int pipes[2])
{
	char *p = accmem_mapped(fd, alloc, 4096);

	*p = 1;
	if (!accmem_pin(pipes, p, 4096))
		return -errno;
	munmap(p, 4096);
	return accmem_ioctl_free(fd, alloc->address);
}

static uint64_t pattern_word(uint64_t seed, uint64_t index)
{
	/* odd, so that no word of a pattern is ever zero */
	return ((seed + index) * 0x9e3779b97f4a7c15ull) | 1;
}

void accmem_fill(void *p, uint64_t length, uint64_t seed)
{
	uint64_t *word = p, i;

	for (i = 0; i < length / sizeof(*word); i++)
		word[i] = pattern_word(seed, i);
}

int64_t accmem_check(const void *p, uint64_t length, uint64_t seed)
{
	const uint64_t *word = p;
	uint64_t i;

	for (i = 0; i < length / sizeof(*word); i++)
		if (word[i] != pattern_word(seed, i))
			return i * sizeof(*word);
	return -1;
}

int64_t accmem_first_nonzero(const void *p, uint64_t length)
{
	const uint64_t *word = p;
	uint64_t i, n = length / sizeof(*word);

	for (i = 0; i + 8 <= n; i += 8)
		if (word[i] | word[i + 1] | word[i + 2] | word[i + 3] |
		    word[i + 4] | word[i + 5] | word[i + 6] | word[i + 7])
			break;
	for (; i < n; i++)
		if (word[i])
			return i * sizeof(*word);
	return -1;
}

int64_t accmem_sample_nonzero(const void *p, uint64_t length)
{
	const char *byte = p;
	uint64_t page, offset;

	for (page = 0; page + 4096 <= length; page += 4096) {
		offset = page + (pattern_word(page, 1) >> 20) % 512 * 8;
		if (*(const uint64_t *)(byte + offset))
			return offset;
	}
	return -1;
}

uint64_t accmem_checksum(const void *p, uint64_t length)
{
	const uint64_t *word = p;
	uint64_t sum = 0, i;

	for (i = 0; i < length / sizeof(*word); i++)
		sum = (sum << 1 | sum >> 63) ^ word[i];
	return sum;
}

static sigjmp_buf try_env;

static void try_handler(int sig)
{
	siglongjmp(try_env, sig);
}

struct try_signals {
	struct sigaction bus, segv;
};

/* Until try_end(), SIGBUS and SIGSEGV jump to try_env. */
static void try_begin(struct try_signals *old)
{
	struct sigaction act = { .sa_handler = try_handler };

	sigaction(SIGBUS, &act, &old->bus);
	sigaction(SIGSEGV, &act, &old->segv);
}

static void try_end(const struct try_signals *old)
{
	sigaction(SIGBUS, &old->bus, NULL);
	sigaction(SIGSEGV, &old->segv, NULL);
}

static int try_access(volatile void *p, uint64_t *value, bool write)
{
	struct try_signals old;
	int sig;

	try_begin(&old);
	sig = sigsetjmp(try_env, 1);
	if (!sig) {
		if (write)
			*(volatile uint64_t *)p = *value;
		else
			*value = *(volatile uint64_t *)p;
	}
	try_end(&old);
	return sig;
}

int accmem_try_read(const volatile void *p, uint64_t *value)
{
	return try_access((volatile void *)p, value, false);
}

int accmem_try_write(volatile void *p, uint64_t value)
{
	return try_access(p, &value, true);
}

int accmem_try_touch(volatile void *p, volatile uint64_t *at, uint64_t length,
		     uint64_t step)
{
	struct try_signals old;
	int sig;

	try_begin(&old);
	sig = sigsetjmp(try_env, 1);
	if (!sig) {
		for (; *at < length; *at += step)
			*(volatile uint64_t *)((char *)p + *at) = *at + 1;
	}
	try_end(&old);
	return sig;
}

bool accmem_owns_folios(const struct accmem_info *info)
{
	return info->backing == ACCMEM_BACKING_PHYS &&
	       info->features & ACCMEM_FEATURE_PIN;
}

/* true if @a has a part in the unit of @size bytes at @at */
static bool is_in(const struct accmem_alloc *a, uint64_t at, uint64_t size)
{
	return a->address < at + size && a->address + a->footprint > at;
}

uint64_t accmem_charge_of(const struct accmem_info *info,
			  const struct accmem_alloc *a, unsigned int n)
{
	uint64_t size = accmem_owns_folios(info) ? MIB(2) : 4096, at, sum = 0;
	unsigned int i, j;

	for (i = 0; i < n; i++) {
		at = a[i].address / size * size;
		for (; at < a[i].address + a[i].footprint; at += size) {
			/* the unit is counted with its first buffer */
			for (j = 0; j < i && !is_in(&a[j], at, size); j++)
				;
			sum += j == i ? size : 0;
		}
	}
	return sum;
}
