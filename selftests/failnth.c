// SPDX-License-Identifier: GPL-2.0
/*
 * Each allocation that the kernel makes for a call fails once: the first, the
 * second, and so on until there was nothing left to fail. After each failure
 * nothing is left behind. FREE and close allocate nothing at all.
 *
 * Needs a kernel with fault injection (debug-6.12). With ACCMEM_FAIL_VERBOSE=2
 * in the environment the kernel logs the stack of each failure.
 */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "kselftest_harness.h"
#include "stream_util.h"

#define RW (PROT_READ | PROT_WRITE)
#define N_MAX 2000
#define DEBUG "/sys/kernel/debug/"

static int nth_fd = -1;
static int log_fd = -1;

static bool can_inject(void)
{
	return !access("/proc/self/fail-nth", W_OK) &&
	       !access(DEBUG "failslab", F_OK) &&
	       !access(DEBUG "fail_page_alloc", F_OK);
}

static int set(const char *attr, const char *name, const char *value)
{
	char file[128];
	int err;

	snprintf(file, sizeof(file), DEBUG "%s/%s", attr, name);
	err = accmem_write_file(file, value);
	if (err)
		printf("# %s: %s\n", file, strerror(-err));
	return err;
}

static int set_both(const char *name, const char *value)
{
	int err = set("failslab", name, value);

	return err ?: set("fail_page_alloc", name, value);
}

/* of the log; the environment's, or what is usual */
static int set_verbose(const char *usual)
{
	return set_both("verbose", getenv("ACCMEM_FAIL_VERBOSE") ?: usual);
}

/*
 * Allocations that may sleep fail too, and of every order; without a stack in
 * the log for each.
 */
static int configure(void)
{
	static const char *const others[] = { "fail_usercopy", "fail_futex",
					      "fail_make_request",
					      "fail_io_timeout" };
	char file[128];
	unsigned int i;
	int err;

	err = set_both("ignore-gfp-wait", "N");
	err = err ?: set("fail_page_alloc", "ignore-gfp-highmem", "N");
	err = err ?: set("fail_page_alloc", "min-order", "0");
	err = err ?: set_verbose("0");
	/* what is no allocation is not counted: no stack leads through page 0 */
	for (i = 0; i < ARRAY_SIZE(others) && !err; i++) {
		snprintf(file, sizeof(file), DEBUG "%s", others[i]);
		if (!access(file, F_OK))
			err = set(others[i], "require-start", "1") ?:
			      set(others[i], "require-end", "2");
	}
	return err;
}

/*
 * Only what is allocated below a function of the module counts; or, with
 * @only false, everything again.
 */
static int only_module(bool only)
{
	char start[32] = "0", end[32] = "0xffffffffffffffff";
	unsigned long long text = 0, size = 0;
	char line[512];
	FILE *f;
	int err;

	f = only ? fopen("/proc/modules", "r") : NULL;
	while (f && !text && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "accmem %llu %*s %*s %*s %llx", &size,
			   &text) != 2)
			text = 0;
	}
	if (f)
		fclose(f);
	if (only && !text)
		return -ENOENT;
	if (only) {
		snprintf(start, sizeof(start), "%#llx", text);
		snprintf(end, sizeof(end), "%#llx", text + size);
	}
	err = set_both("require-start", start);
	err = err ?: set_both("require-end", end);
	return err ?: set_both("stacktrace-depth", "32");
}

static void arm(unsigned int nth)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", nth);

	if (pwrite(nth_fd, text, n, 0) != n)
		abort();
}

/* whether the failure was spent; in any case there is none left */
static bool disarm(void)
{
	char text[16] = "";

	if (pread(nth_fd, text, sizeof(text) - 1, 0) <= 0)
		abort();
	if (pwrite(nth_fd, "0", 1, 0) != 1)
		abort();
	return atoi(text) == 0;
}

FIXTURE(failnth)
{
	int fd;
	struct accmem_info info;
	char nth[64];
};

ACCMEM_VARIANTS(failnth);

FIXTURE_SETUP(failnth)
{
	/* in each test, so that a kernel without it says so in its name */
	self->fd = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	if (!can_inject())
		return;
	ASSERT_EQ(0, configure());
	ASSERT_EQ(0, only_module(false));
	snprintf(self->nth, sizeof(self->nth), "/proc/self/task/%d/fail-nth",
		 (int)syscall(SYS_gettid));
	nth_fd = open(self->nth, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, nth_fd);
	log_fd = accmem_log_open();
	ASSERT_LE(0, log_fd);
}

FIXTURE_TEARDOWN(failnth)
{
	if (can_inject())
		only_module(false);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

#define NEED_INJECTION()                                               \
	do {                                                            \
		if (!can_inject())                                      \
			SKIP(return, "no fault injection in this kernel"); \
	} while (0)

/*
 * @call is made with failure 1, 2, …; it undoes itself and returns 0 or
 * -errno. At the end, nothing was injected and the call has worked.
 */
static void sweep(struct __test_metadata *_metadata, const char *what,
		  const char *path, int fd,
		  int (*call)(const char *path, int fd))
{
	int64_t start = accmem_sysfs(path, "free_bytes");
	int64_t buffers = accmem_sysfs(path, "buffers");
	unsigned int nth, failed = 0;
	bool injected = true;
	int err = 0;

	/* the kernel's caches are warm; contexts' own would hide the call */
	ASSERT_EQ(0, call(path, fd));
	disarm();
	ASSERT_EQ(start, accmem_sysfs(path, "free_bytes"));
	for (nth = 1; nth < N_MAX && injected; nth++) {
		ASSERT_EQ(0, accmem_drain(fd));
		arm(nth);
		err = call(path, fd);
		injected = disarm();
		failed += err != 0;
		if (err) {
			EXPECT_TRUE(injected) {
				TH_LOG("%s failed by itself: %d", what, err);
			}
		}
		ASSERT_EQ(start, accmem_sysfs(path, "free_bytes")) {
			TH_LOG("%s, failure %u", what, nth);
		}
		ASSERT_EQ(buffers, accmem_sysfs(path, "buffers"));
	}
	EXPECT_FALSE(injected);
	EXPECT_EQ(0, err);
	printf("# %s %s: %u points, %u failures seen\n", path, what, nth - 2,
	       failed);
}

#define SWEEP(call) sweep(_metadata, #call, variant->path, self->fd, call)

static int open_close(const char *path, int fd)
{
	(void)fd;
	fd = accmem_dev_open(path, O_RDWR);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

TEST_F(failnth, open)
{
	NEED_INJECTION();
	SWEEP(open_close);
	EXPECT_EQ(1, accmem_sysfs(variant->path, "contexts"));
}

static int alloc_with(int fd, struct accmem_alloc a)
{
	int err = accmem_ioctl_alloc(fd, &a);

	if (!err)
		err = accmem_ioctl_free(fd, a.address);
	return err;
}

static int alloc_block(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd, (struct accmem_alloc){ .length = 100 });
}

static int alloc_block_populated(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd, (struct accmem_alloc){
				      .length = 100,
				      .flags = ACCMEM_ALLOC_POPULATE });
}

static int alloc_small(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd, (struct accmem_alloc){ .length = 4096 });
}

static int alloc_huge(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd, (struct accmem_alloc){
				      .length = MIB(4),
				      .page_policy = ACCMEM_PAGE_HUGE_ONLY });
}

static int alloc_populated(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd, (struct accmem_alloc){
				      .length = KIB(64),
				      .flags = ACCMEM_ALLOC_POPULATE });
}

static int alloc_uncached(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd, (struct accmem_alloc){
				      .length = KIB(64),
				      .cache_mode = ACCMEM_CACHE_UC });
}

static int alloc_host(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd,
			  (struct accmem_alloc){ .length = KIB(64),
						 .kind = ACCMEM_KIND_HOST });
}

static int alloc_host_block(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd,
			  (struct accmem_alloc){ .length = 100,
						 .kind = ACCMEM_KIND_HOST });
}

static uint64_t fixed_address;

static int alloc_fixed(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd, (struct accmem_alloc){
				      .length = KIB(64),
				      .address = fixed_address,
				      .flags = ACCMEM_ALLOC_FIXED });
}

TEST_F(failnth, alloc)
{
	NEED_INJECTION();
	SWEEP(alloc_block);
	SWEEP(alloc_block_populated);
	SWEEP(alloc_small);
	SWEEP(alloc_huge);
	SWEEP(alloc_populated);
	SWEEP(alloc_host);
	SWEEP(alloc_host_block);
	EXPECT_EQ(0, accmem_sysfs(variant->path, "host/live_bytes"));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "host/resident_bytes"));
	fixed_address = self->info.address_base + self->info.capacity / 2;
	SWEEP(alloc_fixed);
	if (self->info.cache_modes & (1 << ACCMEM_CACHE_UC))
		SWEEP(alloc_uncached);
}

/* for all of the memory, of which a granule is taken */
static int alloc_in_vain(const char *path, int fd)
{
	struct accmem_info info;
	struct accmem_alloc a;
	int err = accmem_ioctl_info(fd, &info);

	(void)path;
	if (err)
		return err;
	a = (struct accmem_alloc){ .length = info.capacity,
				   .flags = ACCMEM_ALLOC_WAIT,
				   .deadline_ns = info.now_ns + 2000000 };
	err = accmem_ioctl_alloc(fd, &a);
	return err == -ETIMEDOUT ? 0 : err ?: -EEXIST;
}

TEST_F(failnth, alloc_that_waits)
{
	struct accmem_alloc a;

	NEED_INJECTION();
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &a));
	SWEEP(alloc_in_vain);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* more than all that is left in one piece */
static uint64_t scattered_bytes;

static int alloc_scattered(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd,
			  (struct accmem_alloc){ .length = scattered_bytes });
}

TEST_F(failnth, alloc_scattered)
{
	struct accmem_alloc *bufs = calloc(256, sizeof(*bufs));
	struct accmem_info info;
	uint64_t piece = self->info.capacity / 128 / MIB(2) * MIB(2);
	int n = 0, i;

	NEED_INJECTION();
	if (!(self->info.features & ACCMEM_FEATURE_SCATTER))
		return; /* alloc has it all */
	ASSERT_LE(MIB(2), piece);
	while (n < 256 && !accmem_alloc_bytes(self->fd, piece, 0, &bufs[n]))
		n++;
	for (i = 0; i < n; i += 2) {
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, bufs[i].address));
	}
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	scattered_bytes = info.largest_run + 24 * piece;
	ASSERT_GE(info.free_bytes, scattered_bytes);
	SWEEP(alloc_scattered);
	for (i = 1; i < n; i += 2) {
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, bufs[i].address));
	}
	free(bufs);
}

static struct accmem_alloc mapped;

static int map_unmap(const char *path, int fd)
{
	void *p = accmem_mmap(fd, &mapped, mapped.footprint, RW);

	(void)path;
	if (!p)
		return -errno;
	munmap(p, mapped.footprint);
	return 0;
}

TEST_F(failnth, mmap)
{
	NEED_INJECTION();
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(4), 0, &mapped));
	SWEEP(map_unmap);
}

/*
 * A first touch works, or is a signal, and works the next time. What memory is
 * behind it then is one page of the policy's size.
 */
static void sweep_touch(struct __test_metadata *_metadata, const char *path,
			int fd, uint64_t length, uint32_t policy)
{
	int64_t start = accmem_sysfs(path, "free_bytes");
	bool emulated = !strcmp(path, ACCMEM_DEV_EMULATED);
	unsigned int nth, signals = 0;
	bool injected = true;
	int sig;

	for (nth = 1; nth < N_MAX && injected; nth++) {
		struct accmem_alloc a = { .length = length,
					  .page_policy = policy };
		int64_t resident;
		char *p;

		ASSERT_EQ(0, accmem_ioctl_alloc(fd, &a));
		resident = accmem_sysfs(path, "resident_bytes");
		p = accmem_mmap_huge(fd, &a, length);
		ASSERT_NE(NULL, p);
		arm(nth);
		sig = accmem_try_write(p, 1);
		injected = disarm();
		signals += sig != 0;
		ASSERT_TRUE(!sig || (sig == SIGBUS && injected));
		ASSERT_EQ(0, accmem_try_write(p, 1));
		if (emulated)
			resident += a.page_size;
		ASSERT_EQ(resident, accmem_sysfs(path, "resident_bytes"));
		ASSERT_EQ(-1, accmem_first_nonzero(p + 8, length - 8));
		munmap(p, length);
		ASSERT_EQ(0, accmem_ioctl_free(fd, a.address));
		ASSERT_EQ(start, accmem_sysfs(path, "free_bytes"));
	}
	EXPECT_FALSE(injected);
	printf("# %s touch of %llu KiB: %u points, %u signals\n", path,
	       (unsigned long long)(length >> 10), nth - 2, signals);
}

TEST_F(failnth, first_touch)
{
	NEED_INJECTION();
	sweep_touch(_metadata, variant->path, self->fd, KIB(64),
		    ACCMEM_PAGE_NORMAL_ONLY);
	sweep_touch(_metadata, variant->path, self->fd, MIB(4),
		    ACCMEM_PAGE_HUGE_ONLY);
}

#define ENTRIES 40u

static struct accmem_batch_alloc entries[ENTRIES];
static struct accmem_batch_free gone[ENTRIES];

/* what was allocated is freed; 0, or the first error of the batch or in it */
static int free_entries(int fd, int err)
{
	unsigned int i, n = 0;

	for (i = 0; i < ENTRIES; i++) {
		if (entries[i].result == 0)
			gone[n++].address = entries[i].address;
		else if (entries[i].result < 0 && !err)
			err = entries[i].result;
	}
	return accmem_batch_frees(fd, 0, gone, n, NULL) ?: err;
}

static int alloc_entries(int fd, uint32_t flags)
{
	unsigned int i;

	for (i = 0; i < ENTRIES; i++)
		entries[i] = (struct accmem_batch_alloc){
			.length = i < ENTRIES / 2 ? 4096 : 100 + i,
			.result = 1,
		};
	return accmem_batch_allocs(fd, flags, entries, ENTRIES, NULL);
}

static int batch_each(const char *path, int fd)
{
	(void)path;
	return free_entries(fd, alloc_entries(fd, 0));
}

static int batch_all(const char *path, int fd)
{
	int err = alloc_entries(fd, ACCMEM_BATCH_ATOMIC);

	(void)path;
	/* no result means anything after a failure */
	return err ?: free_entries(fd, 0);
}

/* it may fail for memory, and then nothing has been freed */
static int batch_free_all(const char *path, int fd)
{
	uint32_t done = ENTRIES;
	int err = alloc_entries(fd, 0);
	unsigned int i, n = 0;

	(void)path;
	if (err)
		return free_entries(fd, err);
	for (i = 0; i < ENTRIES; i++) {
		if (!entries[i].result)
			gone[n++].address = entries[i].address;
	}
	err = accmem_batch_frees(fd, ACCMEM_BATCH_ATOMIC, gone, n, &done);
	if (err && done)
		return -EBADF;
	for (i = 0; i < ENTRIES; i++) {
		if (entries[i].result < 0 && !err)
			return entries[i].result;
	}
	return err ? free_entries(fd, err) : 0;
}

/* a buffer of many that came together is mapped, which gives it its own memory */
static int batch_map(const char *path, int fd)
{
	struct accmem_alloc one = {};
	int err = alloc_entries(fd, ACCMEM_BATCH_ATOMIC);
	void *p;

	(void)path;
	if (err)
		return err;
	one.mmap_offset = entries[7].mmap_offset;
	p = accmem_mmap(fd, &one, 4096, RW);
	if (p)
		munmap(p, 4096);
	else
		err = -errno;
	return free_entries(fd, err);
}

TEST_F(failnth, batch)
{
	NEED_INJECTION();
	SWEEP(batch_each);
	SWEEP(batch_all);
	SWEEP(batch_free_all);
	SWEEP(batch_map);
}

/* Resizes a buffer of @from bytes; one that cannot be is what it was (T6). */
static int resize(int fd, uint64_t from, uint64_t reserve, uint64_t to,
		  bool touched)
{
	struct accmem_alloc a = { .length = from,
				  .reserve = reserve,
				  .flags = ACCMEM_ALLOC_RESIZABLE |
					   ACCMEM_ALLOC_POPULATE };
	struct accmem_realloc r;
	struct accmem_query q;
	int err = accmem_ioctl_alloc(fd, &a);
	char *p = NULL;

	if (err)
		return err;
	if (touched)
		p = accmem_mmap(fd, &a, ALIGN_UP(from, 4096), RW);
	if (p) {
		accmem_fill(p, from, 1);
		munmap(p, ALIGN_UP(from, 4096));
	}
	err = accmem_ioctl_realloc(fd, a.address, to, 0, &r);
	if (!err)
		return accmem_ioctl_free(fd, r.address);
	if (accmem_ioctl_query(fd, a.address, &q) || q.length != from ||
	    q.usable != from || accmem_ioctl_free(fd, a.address))
		return -EBADF;
	return err;
}

static int resize_grow(const char *path, int fd)
{
	(void)path;
	return resize(fd, KIB(64), MIB(1), KIB(512), false);
}

static int access_write(const char *path, int fd)
{
	static char data[KIB(80)];
	struct accmem_access r = { .op = ACCMEM_ACCESS_WRITE,
				   .length = sizeof(data),
				   .data = (uintptr_t)data };
	struct accmem_alloc a;
	int err;

	(void)path;
	err = accmem_alloc_bytes(fd, sizeof(data), 0, &a);
	if (err)
		return err;
	r.address = a.address;
	err = accmem_ioctl_access(fd, &r);
	return accmem_ioctl_free(fd, a.address) ?: err;
}

TEST_F(failnth, access)
{
	NEED_INJECTION();
	SWEEP(access_write);
}

/* one byte of each side, in the first page and the last; -EBADF: a byte was lost */
static int shared_round(int fd, const struct accmem_alloc *a, char *map)
{
	static const char d[] = "d";
	struct accmem_access r = { .op = ACCMEM_ACCESS_WRITE,
				   .address = a->address + 1,
				   .length = 1,
				   .data = (uintptr_t)d };
	char byte = 0, *last = map + a->length - 1;
	uint64_t word;
	int err, sig;

	sig = accmem_try_write(map, 'c');
	if (sig)
		return sig == SIGBUS ? -ENOMEM : -EBADF;
	err = accmem_ioctl_access(fd, &r);
	if (err)
		return map[0] == 'c' ? err : -EBADF;
	r.op = ACCMEM_ACCESS_READ;
	r.address = a->address;
	r.data = (uintptr_t)&byte;
	err = accmem_ioctl_access(fd, &r);
	if (err)
		return err;
	if (byte != 'c')
		return -EBADF;
	if (accmem_try_read(map, &word) || accmem_try_write(last - 7, 0))
		return -ENOMEM;
	return map[0] == 'c' && map[1] == 'd' ? 0 : -EBADF;
}

static int shared_small(const char *path, int fd)
{
	struct accmem_alloc a = { .length = KIB(12),
				  .kind = ACCMEM_KIND_SHARED };
	char *map;
	int err;

	(void)path;
	err = accmem_ioctl_alloc(fd, &a);
	if (err)
		return err;
	map = accmem_mmap(fd, &a, KIB(12), PROT_READ | PROT_WRITE);
	err = map ? shared_round(fd, &a, map) : -errno;
	if (map)
		munmap(map, KIB(12));
	return accmem_ioctl_free(fd, a.address) ?: err;
}

TEST_F(failnth, shared)
{
	NEED_INJECTION();
	SWEEP(shared_small);
}

static int resize_shrink(const char *path, int fd)
{
	(void)path;
	return resize(fd, KIB(64), 0, KIB(8), true);
}

static int resize_move(const char *path, int fd)
{
	(void)path;
	return resize(fd, 512, 0, KIB(64), true);
}

TEST_F(failnth, realloc)
{
	NEED_INJECTION();
	SWEEP(resize_grow);
	SWEEP(resize_shrink);
	SWEEP(resize_move);
}

static int query_it(const char *path, int fd)
{
	struct accmem_query q;

	(void)path;
	return accmem_ioctl_query(fd, mapped.address + 1, &q);
}

static int info_it(const char *path, int fd)
{
	struct accmem_info info;

	(void)path;
	return accmem_ioctl_info(fd, &info);
}

TEST_F(failnth, query_and_info)
{
	NEED_INJECTION();
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &mapped));
	SWEEP(query_it);
	SWEEP(info_it);
}

/* --- Tensor Memory -------------------------------------------------------- */

static int setup_sms(const char *path, int fd)
{
	struct accmem_tmem_setup req = { .size = sizeof(req),
					 .nr_sms = ACCMEM_TMEM_SMS_MAX };
	int err;

	/* once a context */
	fd = accmem_dev_open(path, O_RDWR);
	if (fd < 0)
		return fd;
	err = accmem_ioctl(fd, ACCMEM_IOC_TMEM_SETUP, &req);
	close(fd);
	return err;
}

static int launch_cta(int fd)
{
	struct accmem_tmem_launch req = { .size = sizeof(req),
					  .cta_group = 1 };
	int err = accmem_ioctl(fd, ACCMEM_IOC_TMEM_LAUNCH, &req);

	return err ?: req.fd;
}

static int launch_exit(const char *path, int fd)
{
	int cta = launch_cta(fd);

	(void)path;
	if (cta < 0)
		return cta;
	close(cta);
	return 0;
}

/* the first launch of a context sets up its SMs, too */
static int first_launch(const char *path, int fd)
{
	int err;

	fd = accmem_dev_open(path, O_RDWR);
	if (fd < 0)
		return fd;
	err = launch_exit(path, fd);
	close(fd);
	return err;
}

/* one that is reserved, and not put back, is in its way */
static int next_fd(int fd)
{
	int next = dup(fd);

	close(next);
	return next;
}

static unsigned int lost_fds;

/* two pairs */
static int launch_cluster(const char *path, int fd)
{
	struct accmem_tmem_setup setup = { .size = sizeof(setup), .nr_sms = 2 };
	struct accmem_tmem_member m[4] = { { .rank = 0, .sm = 0 },
					   { .rank = 1, .sm = 1 },
					   { .rank = 2, .sm = 0 },
					   { .rank = 3, .sm = 1 } };
	struct accmem_tmem_cluster req = { .size = sizeof(req), .cta_group = 2,
					   .nr_members = 4,
					   .members = (uintptr_t)m };
	int err, next, i;

	fd = accmem_dev_open(path, O_RDWR);
	if (fd < 0)
		return fd;
	next = next_fd(fd);
	err = accmem_ioctl(fd, ACCMEM_IOC_TMEM_SETUP, &setup);
	err = err ?: accmem_ioctl(fd, ACCMEM_IOC_TMEM_CLUSTER, &req);
	for (i = 0; i < 4 && !err; i++)
		close(m[i].fd);
	lost_fds += next_fd(fd) != next;
	close(fd);
	return err;
}

static int alloc_columns(int cta, uint32_t columns, uint64_t deadline_ns,
			 uint32_t *at)
{
	struct accmem_cta_alloc req = { .size = sizeof(req),
					.columns = columns,
					.deadline_ns = deadline_ns,
					.destination = (uintptr_t)at };

	return accmem_ioctl(cta, ACCMEM_IOC_CTA_ALLOC, &req);
}

static int queue_columns(int cta, uint32_t columns, uint64_t deadline_ns)
{
	struct accmem_cta_alloc req = { .size = sizeof(req),
					.flags = ACCMEM_CTA_QUEUED,
					.columns = columns,
					.deadline_ns = deadline_ns };

	return accmem_ioctl(cta, ACCMEM_IOC_CTA_ALLOC, &req);
}

static int dealloc_columns(int cta, uint32_t columns, uint32_t at)
{
	struct accmem_cta_dealloc req = { .size = sizeof(req),
					  .columns = columns,
					  .address = at };

	return accmem_ioctl(cta, ACCMEM_IOC_CTA_DEALLOC, &req);
}

TEST_F(failnth, tmem_setup_and_launch)
{
	NEED_INJECTION();
	SWEEP(setup_sms);
	SWEEP(first_launch);
	SWEEP(launch_exit);
	SWEEP(launch_cluster);
	EXPECT_EQ(0, lost_fds);
}

/* the first of an SM makes the page */
static int map_sm(const char *path, int fd)
{
	int cta, err = 0;
	void *p;

	fd = accmem_dev_open(path, O_RDWR);
	if (fd < 0)
		return fd;
	cta = launch_cta(fd);
	if (cta < 0) {
		close(fd);
		return cta;
	}
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, cta, 0);
	if (p == MAP_FAILED)
		err = -errno;
	else
		munmap(p, 4096);
	close(cta);
	close(fd);
	return err;
}

/* a queued alloc that waits, one that need not, and where both are counted */
static int queue_both(const char *path, int fd)
{
	struct accmem_cta_eventfd e = { .size = sizeof(e) };
	struct accmem_cta_cancel cancel = { .size = sizeof(cancel) };
	struct accmem_cta_completion done;
	int cta[2], i, err = 0;

	(void)path;
	e.fd = eventfd(0, EFD_NONBLOCK);
	if (e.fd < 0)
		return -errno;
	for (i = 0; i < 2 && !err; i++) {
		cta[i] = launch_cta(fd);
		if (cta[i] < 0) {
			err = cta[i];
			break;
		}
		err = accmem_ioctl(cta[i], ACCMEM_IOC_CTA_EVENTFD, &e);
		err = err ?: queue_columns(cta[i], 512, i ? ~0ull : 0);
	}
	if (!err)
		err = accmem_ioctl(cta[1], ACCMEM_IOC_CTA_CANCEL, &cancel);
	if (!err && read(cta[0], &done, sizeof(done)) != sizeof(done))
		err = -errno;
	if (!err && (done.result || done.address))
		err = -1000;
	while (i--)
		close(cta[i]);
	close(e.fd);
	return err;
}

TEST_F(failnth, tmem_map_and_queue)
{
	NEED_INJECTION();
	SWEEP(map_sm);
	SWEEP(queue_both);
}

/* --- streams --------------------------------------------------------------- */

static int fences = -1;

static int create_stream(const char *path, int fd)
{
	int stream = stream_create(fd);

	(void)path;
	if (stream < 0)
		return stream;
	close(stream);
	return 0;
}

/* of a fence that is to come, and of one of the past; the fence is made before */
static int import_file = -1;

static int import_fence(const char *path, int stream)
{
	uint64_t at = stream_query(stream).claimed + 1;

	(void)path;
	return stream_import(stream, at, import_file);
}

static int export_position(const char *path, int stream)
{
	int file = stream_export(stream, stream_query(stream).claimed);

	(void)path;
	if (file < 0)
		return file;
	close(file);
	return 0;
}

/* as sweep(), of a call that leaves nothing that counters show */
static void sweep_stream(struct __test_metadata *_metadata, int stream,
			 int (*call)(const char *path, int fd))
{
	unsigned int nth, failed = 0;
	bool injected = true;
	int err;

	ASSERT_EQ(0, call(NULL, stream));
	for (nth = 1; nth < N_MAX && injected; nth++) {
		struct accmem_stream_query before = stream_query(stream);

		arm(nth);
		err = call(NULL, stream);
		injected = disarm();
		failed += err != 0;
		if (err) {
			EXPECT_TRUE(injected);
			EXPECT_EQ(before.claimed, stream_query(stream).claimed);
		}
	}
	EXPECT_FALSE(injected);
	EXPECT_EQ(0, err);
	EXPECT_LT(0, failed);
}

TEST_F(failnth, streams)
{
	uint32_t ids[2];
	int stream, i;

	NEED_INJECTION();
	SWEEP(create_stream);
	fences = fence_device();
	ASSERT_LE(0, fences);
	stream = stream_create(self->fd);
	ASSERT_LE(0, stream);
	/* what is reached, then what is claimed */
	sweep_stream(_metadata, stream, export_position);
	for (i = 0; i < 2; i++) {
		import_file = fence_create(fences, &ids[i]);
		ASSERT_LE(0, import_file);
		if (!i)
			ASSERT_EQ(0, fence_signal(fences, ids[i], 0, 0));
		sweep_stream(_metadata, stream, import_fence);
		sweep_stream(_metadata, stream, export_position);
		close(import_file);
	}
	ASSERT_EQ(0, fence_signal(fences, ids[1], 0, 0));
	EXPECT_EQ(0, stream_settle(stream, stream_query(stream).claimed));
	close(stream);
	close(fences);
}

static int stream_for_alloc;

/* memory that is pending already, and memory that is not */
static int alloc_on_stream(const char *path, int fd)
{
	struct accmem_alloc a = { .length = KIB(64),
				  .flags = ACCMEM_ALLOC_TOP_DOWN };
	int err = stream_alloc(fd, stream_for_alloc, &a);
	uint64_t at = stream_query(stream_for_alloc).reached + 1;

	(void)path;
	if (err)
		return err;
	err = stream_free(fd, a.address, stream_for_alloc, at);
	if (err)
		return err;
	a = (struct accmem_alloc){ .length = KIB(64),
				   .flags = ACCMEM_ALLOC_TOP_DOWN };
	err = stream_alloc(fd, stream_for_alloc, &a);
	if (!err)
		err = accmem_ioctl_free(fd, a.address);
	return stream_signal(stream_for_alloc, at) ?: err;
}

TEST_F(failnth, alloc_on_a_stream)
{
	NEED_INJECTION();
	stream_for_alloc = stream_create(self->fd);
	ASSERT_LE(0, stream_for_alloc);
	SWEEP(alloc_on_stream);
	close(stream_for_alloc);
}

/* --- what must not allocate ---------------------------------------------- */

/*
 * Rounds in which nothing may be allocated, in either of two ways, which take
 * turns: each is walked once, since KASAN may allocate where it sees the stack
 * of a free for the first time (and the program where it first calls something),
 * and then armed until it was seen to work without a failure.
 *
 * The kernel's checkers refill pools of their own (KASAN of stacks, the debug
 * objects) now and then, in whichever call it is. They ask for no warning, so
 * that the log has nothing of such a failure, as it has of others, and the
 * round is repeated. What allocates every time has no clean round.
 */
struct rounds {
	unsigned int nr; /* of this one, from 1; its last bit is the way */
	unsigned int clean; /* a bit for each way */
};

#define BOTH_WAYS 3
#define WALKED 2
#define ROUNDS_MAX 100

static bool next_round(struct rounds *r)
{
	if (!r->nr && set_verbose("1"))
		abort();
	r->nr++;
	return r->nr <= ROUNDS_MAX && r->clean != BOTH_WAYS;
}

static void arm_round(struct rounds *r)
{
	if (lseek(log_fd, 0, SEEK_END) < 0)
		abort();
	arm(r->nr > WALKED);
}

/* false if it was seen to allocate */
static bool disarm_round(struct rounds *r)
{
	bool failed = disarm();

	if (r->nr <= WALKED)
		return true;
	if (!failed)
		r->clean |= 1u << (r->nr & 1);
	return !failed ||
	       !accmem_log_has(log_fd, "FAULT_INJECTION: forcing a failure");
}

static struct accmem_alloc many[64];

static int allocate_many(int fd, bool map)
{
	unsigned int i;
	char *p;

	for (i = 0; i < ARRAY_SIZE(many); i++) {
		if (accmem_alloc_bytes(fd, 512u << (i % 11), 0, &many[i]))
			return -1;
		if (!map || i % 2)
			continue;
		p = accmem_mmap(fd, &many[i], many[i].length, RW);
		if (!p)
			return -1;
		memset(p, 1, many[i].length);
		munmap(p, many[i].length);
	}
	return 0;
}

TEST_F(failnth, free_allocates_nothing)
{
	struct rounds r = {};
	unsigned int i;

	NEED_INJECTION();
	while (next_round(&r)) {
		ASSERT_EQ(0, allocate_many(self->fd, r.nr & 1));
		arm_round(&r);
		for (i = 0; i < ARRAY_SIZE(many); i++)
			EXPECT_EQ(0,
				  accmem_ioctl_free(self->fd, many[i].address));
		EXPECT_TRUE(disarm_round(&r));
	}
	EXPECT_EQ(BOTH_WAYS, r.clean);
}

TEST_F(failnth, free_of_a_batch_allocates_nothing)
{
	struct rounds r = {};
	uint32_t done;
	unsigned int i;

	NEED_INJECTION();
	while (next_round(&r)) {
		ASSERT_EQ(0, alloc_entries(self->fd, ACCMEM_BATCH_ATOMIC));
		for (i = 0; i < ENTRIES; i++)
			gone[i].address = entries[r.nr & 1 ? i :
						  ENTRIES - 1 - i].address;
		arm_round(&r);
		EXPECT_EQ(0, accmem_batch_frees(self->fd, 0, gone, ENTRIES,
						&done));
		EXPECT_TRUE(disarm_round(&r));
		EXPECT_EQ(ENTRIES, done);
	}
	EXPECT_EQ(BOTH_WAYS, r.clean);
}

/* Nor at a position, nor after a fence; nor does the end of what it waits for. */
TEST_F(failnth, pending_frees_allocate_nothing)
{
	struct rounds r = {};
	unsigned int i;
	uint32_t id;
	int stream, file, device;

	NEED_INJECTION();
	device = fence_device();
	ASSERT_LE(0, device);
	stream = stream_create(self->fd);
	ASSERT_LE(0, stream);
	while (next_round(&r)) {
		file = fence_create(device, &id);
		ASSERT_LE(0, file);
		ASSERT_EQ(0, allocate_many(self->fd, r.nr & 1));
		arm_round(&r);
		for (i = 0; i < ARRAY_SIZE(many); i++)
			EXPECT_EQ(0, i % 2 ? fence_free(self->fd,
							many[i].address, file) :
					     stream_free(self->fd,
							 many[i].address,
							 stream, 2 * r.nr));
		EXPECT_EQ(-EAGAIN, stream_try(stream, 2 * r.nr));
		EXPECT_EQ(0, stream_signal(stream, 2 * r.nr));
		EXPECT_EQ(-ERANGE, stream_signal(stream, 2 * r.nr));
		EXPECT_EQ(2 * r.nr, stream_query(stream).reached);
		EXPECT_EQ(-ETIMEDOUT, stream_wait(stream, 2 * r.nr + 1, 0,
						  stream_in_ms(5)));
		EXPECT_TRUE(disarm_round(&r));
		ASSERT_EQ(0, fence_signal(device, id, 0, 0));
		close(file);
	}
	EXPECT_EQ(BOTH_WAYS, r.clean);
	close(stream);
	close(device);
}

/* with pending frees, and with a stream that is open still */
TEST_F(failnth, close_with_pending_frees_allocates_nothing)
{
	struct rounds r = {};
	unsigned int i;
	int fd, stream;

	NEED_INJECTION();
	ASSERT_EQ(0, only_module(true));
	while (next_round(&r)) {
		fd = accmem_dev_open(variant->path, O_RDWR);
		ASSERT_LE(0, fd);
		stream = stream_create(fd);
		ASSERT_LE(0, stream);
		ASSERT_EQ(0, allocate_many(fd, false));
		for (i = 0; i < ARRAY_SIZE(many); i += 2)
			ASSERT_EQ(0, stream_free(fd, many[i].address, stream,
						 1));
		arm_round(&r);
		EXPECT_EQ(0, close(r.nr & 1 ? fd : stream));
		EXPECT_EQ(0, close(r.nr & 1 ? stream : fd));
		EXPECT_TRUE(disarm_round(&r));
	}
	EXPECT_EQ(BOTH_WAYS, r.clean);
}

/*
 * Also of the last mapping of a buffer that has no name any more. The core's
 * own bookkeeping of mappings does allocate, and is not asked about.
 */
TEST_F(failnth, munmap_of_freed_allocates_nothing)
{
	struct rounds r = {};
	struct accmem_alloc a;
	char *p;

	NEED_INJECTION();
	ASSERT_EQ(0, only_module(true));
	while (next_round(&r)) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(2), 0, &a));
		p = accmem_mmap(self->fd, &a, MIB(2), RW);
		ASSERT_NE(NULL, p);
		memset(p, 1, MIB(2));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
		arm_round(&r);
		EXPECT_EQ(0, munmap(p, MIB(2)));
		EXPECT_TRUE(disarm_round(&r));
	}
	EXPECT_EQ(BOTH_WAYS, r.clean);
}

/* The core's end of a file does, where it checks its own objects. */
TEST_F(failnth, close_allocates_nothing)
{
	struct rounds r = {};
	int fd;

	NEED_INJECTION();
	ASSERT_EQ(0, only_module(true));
	while (next_round(&r)) {
		fd = accmem_dev_open(variant->path, O_RDWR);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, allocate_many(fd, r.nr & 1));
		arm_round(&r);
		EXPECT_EQ(0, close(fd));
		EXPECT_TRUE(disarm_round(&r));
		ASSERT_EQ(1, accmem_sysfs(variant->path, "contexts"));
	}
	EXPECT_EQ(BOTH_WAYS, r.clean);
}

/* Nor does a call that waits, or one that is refused. */
TEST_F(failnth, tmem_calls_allocate_nothing)
{
	struct accmem_cta_relinquish relinquish = { .size = 8 };
	struct accmem_cta_completion done;
	struct accmem_cta_query query;
	struct rounds r = {};
	uint32_t at = 1;
	int a, b;

	NEED_INJECTION();
	while (next_round(&r)) {
		a = launch_cta(self->fd);
		b = launch_cta(self->fd);
		ASSERT_LE(0, a);
		ASSERT_LE(0, b);
		arm_round(&r);
		EXPECT_EQ(0, alloc_columns(a, 512, 0, &at));
		EXPECT_EQ(-EDOM, alloc_columns(b, 1, 0, &at));
		EXPECT_EQ(-ETIMEDOUT,
			  alloc_columns(b, 64, accmem_ms() * 1000000ull + 1,
					&at));
		EXPECT_EQ(-ETIMEDOUT,
			  alloc_columns(b, 64, (accmem_ms() + 20) * 1000000ull,
					&at));
		EXPECT_EQ(-ENXIO, dealloc_columns(b, 64, 512));
		EXPECT_EQ(0, queue_columns(b, 32, ~0ull));
		EXPECT_EQ(0, dealloc_columns(a, 512, 0));
		EXPECT_EQ((ssize_t)sizeof(done), read(b, &done, sizeof(done)));
		EXPECT_EQ(0, done.result);
		EXPECT_EQ(0, accmem_ioctl(a, ACCMEM_IOC_CTA_RELINQUISH,
					  &relinquish));
		query = (struct accmem_cta_query){ .size = sizeof(query) };
		EXPECT_EQ(0, accmem_ioctl(a, ACCMEM_IOC_CTA_QUERY, &query));
		EXPECT_TRUE(disarm_round(&r));
		close(a);
		close(b);
	}
	EXPECT_EQ(BOTH_WAYS, r.clean);
}

/* with columns, too, which are reported; the core's end of a file may */
TEST_F(failnth, tmem_exit_allocates_nothing)
{
	struct rounds r = {};
	uint32_t at = 1;
	int cta;

	NEED_INJECTION();
	ASSERT_EQ(0, only_module(true));
	while (next_round(&r)) {
		cta = launch_cta(self->fd);
		ASSERT_LE(0, cta);
		ASSERT_EQ(0, alloc_columns(cta, 512, 0, &at));
		arm_round(&r);
		EXPECT_EQ(0, close(cta));
		EXPECT_TRUE(disarm_round(&r));
	}
	EXPECT_EQ(BOTH_WAYS, r.clean);
}

/* The means of these tests work: a call that allocates does see a failure. */
TEST_F(failnth, injection_works)
{
	struct rounds r = {};
	bool seen = false;
	int err = 0;

	NEED_INJECTION();
	arm(1);
	EXPECT_GT(0, accmem_dev_open(variant->path, O_RDWR));
	EXPECT_TRUE(disarm());
	/* and, of the module's own, one is the context, which the log has */
	ASSERT_EQ(0, only_module(true));
	while (!seen && next_round(&r)) {
		arm_round(&r);
		err = open_close(variant->path, -1);
		seen = !disarm_round(&r);
	}
	EXPECT_TRUE(seen);
	EXPECT_EQ(-ENOMEM, err);
	EXPECT_EQ(0, r.clean);
}

ACCMEM_HARNESS_MAIN
