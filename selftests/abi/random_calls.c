// SPDX-License-Identifier: GPL-2.0
/*
 * Random calls from hostile processes. Their threads share contexts, streams and CTAs.
 * Most calls are correct except for one word. Meanwhile the threads map, touch, pin,
 * unmap and fork, and the processes are killed at any time. The results of the calls
 * do not matter. When all processes have ended, all memory must be free again.
 */
#include <sys/time.h>

#include "accmem_test.h"
#include "random_words.h"

#define PROCESSES 3
#define THREADS 3
#define CONTEXTS 2
#define MAPS 16
#define WORDS 64 /* of a call's argument, at most */
#define BYTES 4096u
#define NOWHERE_NEAR GIB(16)
#define TICK_US 20000 /* interval of signals, which interrupt waits */

struct piece {
	void *p;
	size_t length;
};

/* shared by the threads of a process */
static int contexts[CONTEXTS];
static struct piece maps[MAPS];
static pthread_mutex_t maps_lock = PTHREAD_MUTEX_INITIALIZER;

static __thread sigjmp_buf on_fault;
static __thread bool may_fault;
static __thread uint32_t args[WORDS];

/* --- calls ---------------------------------------------------------------- */

static int some_context(void)
{
	return contexts[below(CONTEXTS)];
}

static bool call(int fd, unsigned long cmd, void *arg)
{
	bool good = ioctl(fd, cmd, arg) >= 0;

	__atomic_add_fetch(&pool->calls, 1, __ATOMIC_RELAXED);
	if (good)
		__atomic_add_fetch(&pool->good, 1, __ATOMIC_RELAXED);
	return good;
}

static void remember(uint64_t address, uint64_t offset, uint64_t length)
{
	pool->bufs[below(BUFFERS)] = (struct known){ address, offset, length };
}

static void keep_file(int fd)
{
	int old = __atomic_exchange_n(&files[below(FILES)], fd,
				      __ATOMIC_RELAXED);

	if (old > 2)
		close(old);
}

static void alloc(void)
{
	static const uint32_t flags[] = {
		0,
		0,
		ACCMEM_ALLOC_ROUND32,
		ACCMEM_ALLOC_POPULATE,
		ACCMEM_ALLOC_CONTIGUOUS,
		ACCMEM_ALLOC_TOP_DOWN,
		ACCMEM_ALLOC_FIXED,
		ACCMEM_ALLOC_STREAM,
		ACCMEM_ALLOC_RESIZABLE,
		ACCMEM_ALLOC_RESIZABLE,
		ACCMEM_ALLOC_WAIT,
	};
	struct accmem_alloc a = {
		.size = sizeof(a),
		.flags = flags[below(sizeof(flags) / sizeof(*flags))],
		.length = some_length(),
		.kind = below(3),
	};

	if (one_in(4))
		a.alignment = 1ull << below(24);
	if (one_in(8))
		a.cache_mode = below(3);
	if (one_in(8))
		a.page_policy = below(5);
	if (a.flags == ACCMEM_ALLOC_FIXED)
		a.address = some_buffer().address;
	if (a.flags == ACCMEM_ALLOC_STREAM)
		a.stream = some_file();
	if (a.flags == ACCMEM_ALLOC_RESIZABLE && one_in(2))
		a.reserve = a.length * (1 + below(4));
	if (a.flags == ACCMEM_ALLOC_WAIT)
		a.deadline_ns = soon();
	spoil(&a, sizeof(a));
	if (call(some_context(), ACCMEM_IOC_ALLOC, &a))
		remember(a.address, a.mmap_offset, a.usable);
}

static void release(void)
{
	struct accmem_free f = { .size = sizeof(f),
				 .address = some_buffer().address };

	if (one_in(3)) {
		f.flags = one_in(2) ? ACCMEM_FREE_STREAM : ACCMEM_FREE_FENCE;
		f.fd = some_file();
		f.position = below(64);
	}
	spoil(&f, sizeof(f));
	call(some_context(), ACCMEM_IOC_FREE, &f);
}

static void resize(void)
{
	struct known old = some_buffer();
	struct accmem_realloc r = { .size = sizeof(r),
				    .flags = one_in(4),
				    .address = old.address,
				    .length = some_length() };

	spoil(&r, sizeof(r));
	if (call(some_context(), ACCMEM_IOC_REALLOC, &r))
		remember(r.address, r.mmap_offset, r.usable);
}

static void device_access(void)
{
	struct known buf = some_buffer();
	struct accmem_access a = { .size = sizeof(a),
				   .address = buf.address,
				   .length = 1 + below(BYTES),
				   .data = (uintptr_t)bytes,
				   .op = below(3) };

	if (buf.length > a.length)
		a.address += accmem_random(&seed) % (buf.length - a.length);
	if (a.op == ACCMEM_ACCESS_FILL)
		a.data = below(256);
	spoil(&a, sizeof(a));
	call(some_context(), ACCMEM_IOC_ACCESS, &a);
}

static void hint(void)
{
	struct known buf = some_buffer();
	struct accmem_prefetch p = { .size = sizeof(p),
				     .flags = below(2),
				     .address = buf.address,
				     .length = 1 + below(MIB(3)) };
	struct accmem_advise v = { .size = sizeof(v),
				   .address = buf.address,
				   .length = buf.length,
				   .advice = below(2) };

	if (p.length > buf.length)
		p.length = buf.length;
	spoil(&p, sizeof(p));
	spoil(&v, sizeof(v));
	if (one_in(2))
		call(some_context(), ACCMEM_IOC_PREFETCH, &p);
	else
		call(some_context(), ACCMEM_IOC_ADVISE, &v);
}

static void shrink(void)
{
	struct accmem_pressure s = { .size = sizeof(s),
				     .flags = below(3),
				     .fd = -1 };

	spoil(&s, sizeof(s));
	call(some_context(), ACCMEM_IOC_PRESSURE, &s);
}

static void stream_create(void)
{
	struct accmem_stream_create s = { .size = sizeof(s) };

	spoil(&s, sizeof(s));
	if (call(some_context(), ACCMEM_IOC_STREAM_CREATE, &s))
		keep_file(s.fd);
}

static void stream_signal(void)
{
	struct accmem_stream_signal s = { .size = sizeof(s),
					  .position = below(64) };

	spoil(&s, sizeof(s));
	call(some_file(), ACCMEM_IOC_STREAM_SIGNAL, &s);
}

static void stream_wait(void)
{
	struct accmem_stream_wait w = { .size = sizeof(w),
					.flags = one_in(2),
					.position = below(64),
					.deadline_ns = soon() };

	spoil(&w, sizeof(w));
	call(some_file(), ACCMEM_IOC_STREAM_WAIT, &w);
}

static void stream_import(void)
{
	struct accmem_stream_import s = { .size = sizeof(s),
					  .position = below(64),
					  .fd = some_file() };

	spoil(&s, sizeof(s));
	call(some_file(), ACCMEM_IOC_STREAM_IMPORT, &s);
}

static void stream_export(void)
{
	struct accmem_stream_export s = { .size = sizeof(s),
					  .position = below(64) };

	spoil(&s, sizeof(s));
	if (call(some_file(), ACCMEM_IOC_STREAM_EXPORT, &s))
		keep_file(s.fd);
}

static void export_buffer(void)
{
	struct accmem_export_buffer e = {
		.size = sizeof(e),
		.flags = one_in(4) ? ACCMEM_EXPORT_READ_ONLY : 0,
		.address = some_buffer().address & ~4095ull,
		.length = 4096 * below(3),
	};

	spoil(&e, sizeof(e));
	if (call(some_context(), ACCMEM_IOC_EXPORT, &e))
		keep_file(e.fd);
}

static void import_buffer(void)
{
	struct accmem_import_buffer i = {
		.size = sizeof(i),
		.fd = some_file(),
		.offset = 4096 * below(2),
		.length = 4096 * below(3),
	};

	spoil(&i, sizeof(i));
	if (call(some_context(), ACCMEM_IOC_IMPORT, &i))
		remember(i.address, i.mmap_offset, i.length);
}

static void launch(void)
{
	struct accmem_tmem_setup s = { .size = sizeof(s),
				       .nr_sms = 1 + below(3),
				       .columns = 512 };
	struct accmem_tmem_launch l = { .size = sizeof(l),
					.launch = below(3),
					.cluster = below(3),
					.rank = below(2),
					.sm = below(2),
					.cta_group = 1 + below(2) };

	spoil(&s, sizeof(s));
	spoil(&l, sizeof(l));
	if (one_in(16))
		call(some_context(), ACCMEM_IOC_TMEM_SETUP, &s);
	if (call(some_context(), ACCMEM_IOC_TMEM_LAUNCH, &l))
		keep_file(l.fd);
}

static void columns(void)
{
	struct accmem_cta_alloc a = { .size = sizeof(a),
				      .flags = below(4),
				      .columns = 32u << below(5),
				      .deadline_ns = soon(),
				      .destination = (uintptr_t)bytes };
	struct accmem_cta_dealloc d = { .size = sizeof(d),
					.address = 32 * below(16),
					.columns = 32u << below(5),
					.deadline_ns = soon() };

	spoil(&a, sizeof(a));
	spoil(&d, sizeof(d));
	if (one_in(2))
		call(some_file(), ACCMEM_IOC_CTA_ALLOC, &a);
	else
		call(some_file(), ACCMEM_IOC_CTA_DEALLOC, &d);
}

/* any command, with any argument, on any file */
static void anything(void)
{
	unsigned int i;

	for (i = 0; i < WORDS; i += 2) {
		uint64_t word = one_in(2) ? 0 : some_word();

		memcpy(&args[i], &word, sizeof(word));
	}
	if (!one_in(8))
		args[0] = 4 * (1 + below(40));
	call(one_in(2) ? some_context() : some_file(),
	     _IO(ACCMEM_IOC_MAGIC, below(0x28)), one_in(8) ? NULL : args);
}

/* --- mappings ------------------------------------------------------------- */

/*
 * takes a mapping out of the table, so that no other thread changes it; others may
 * touch it
 */
static struct piece take_map(void)
{
	unsigned int i = below(MAPS);
	struct piece piece;

	pthread_mutex_lock(&maps_lock);
	piece = maps[i];
	maps[i].p = NULL;
	pthread_mutex_unlock(&maps_lock);
	return piece;
}

static void put_map(struct piece piece)
{
	unsigned int i = below(MAPS);
	struct piece old;

	pthread_mutex_lock(&maps_lock);
	old = maps[i];
	maps[i] = piece;
	pthread_mutex_unlock(&maps_lock);
	if (old.p)
		munmap(old.p, old.length);
}

static void map(void)
{
	struct known buf = some_buffer();
	struct piece piece = { .length = buf.length };

	if (one_in(2))
		piece.length = KIB(4) * (1 + below(1024));
	if (!piece.length || piece.length > MIB(16))
		return;
	piece.p = mmap(NULL, piece.length, below(4), MAP_SHARED, some_context(),
		       buf.offset + (one_in(4) ? KIB(4) * below(16) : 0));
	if (piece.p != MAP_FAILED)
		put_map(piece);
}

static void change_map(void)
{
	struct piece piece = take_map();
	size_t half = piece.length / 2 & ~4095ull;
	void *p;

	if (!piece.p)
		return;
	switch (below(5)) {
	case 0:
		munmap(piece.p, piece.length);
		return;
	case 1:
		mprotect(piece.p, piece.length, below(4));
		break;
	case 2:
		if (half)
			mprotect((char *)piece.p + half, half, below(4));
		break;
	case 3:
		madvise(piece.p, piece.length, below(26));
		break;
	default:
		p = mremap(piece.p, piece.length, piece.length, MREMAP_MAYMOVE);
		if (p != MAP_FAILED)
			piece.p = p;
	}
	put_map(piece);
}

static void faulted(int signal)
{
	(void)signal;
	if (may_fault)
		siglongjmp(on_fault, 1);
	_exit(3);
}

static void touch_at(volatile char *p, size_t length, bool write)
{
	may_fault = true;
	if (!sigsetjmp(on_fault, 1)) {
		if (write)
			p[accmem_random(&seed) % length] = 1;
		else
			(void)p[accmem_random(&seed) % length];
	}
	may_fault = false;
}

/* touches a mapping, which may be unmapped meanwhile */
static void touch(void)
{
	struct piece piece;

	pthread_mutex_lock(&maps_lock);
	piece = maps[below(MAPS)];
	pthread_mutex_unlock(&maps_lock);
	if (piece.p)
		touch_at(piece.p, piece.length, one_in(2));
}

/* puts pages of a mapping into a pipe, and reads the pipe into another mapping */
static void pin(void)
{
	struct piece piece = take_map();
	struct iovec from = { piece.p, 4096 };
	int ends[2];

	if (!piece.p)
		return;
	if (!pipe2(ends, O_NONBLOCK | O_CLOEXEC)) {
		vmsplice(ends[1], &from, 1, 0);
		device_access();
		release();
		if (read(ends[0], one_in(2) ? piece.p : bytes, 4096) < 0)
			device_access();
		close(ends[0]);
		close(ends[1]);
	}
	put_map(piece);
}

static void child(void)
{
	unsigned int i;
	pid_t pid;

	if (!one_in(16))
		return;
	pid = fork();
	if (!pid) {
		for (i = 0; i < MAPS; i++)
			if (maps[i].p)
				touch_at(maps[i].p, maps[i].length, i % 2);
		_exit(0);
	}
	if (pid > 0)
		accmem_wait_child(pid);
}

/*
 * Lets one of the kernel's next allocations fail, on kernels with fault injection: in
 * the call, or in the write that ends the injection.
 */
static void fail_soon(void)
{
	static const char file[] = "/proc/thread-self/fail-nth";
	char text[16];

	if (!one_in(8))
		return;
	snprintf(text, sizeof(text), "%u", 1 + below(8));
	if (accmem_write_file(file, text))
		return;
	anything();
	accmem_write_file(file, "0");
}

/* --- processes ------------------------------------------------------------ */

static void (*const steps[])(void) = {
	alloc,	       alloc,	      alloc,	     alloc,
	release,       release,	      release,	     resize,
	device_access, device_access, hint,	     hint,
	shrink,	       stream_create, stream_signal, stream_wait,
	stream_import, stream_export, launch,	     columns,
	export_buffer, export_buffer, import_buffer, import_buffer,
	anything,      anything,      map,	     map,
	map,	       change_map,    change_map,    touch,
	touch,	       touch,	      touch,	     pin,
	child,	       fail_soon,
};

/* a random address in a call must not hit memory of the test */
static void *run(void *arg)
{
	seed = (uintptr_t)arg;
	bytes = mmap(NULL, 2 * NOWHERE_NEAR, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED)
		_exit(2);
	bytes += NOWHERE_NEAR;
	if (mprotect(bytes, BYTES, PROT_READ | PROT_WRITE))
		_exit(2);
	while (!__atomic_load_n(&pool->stop, __ATOMIC_RELAXED))
		steps[below(sizeof(steps) / sizeof(*steps))]();
	return NULL;
}

static void interrupted(int signal)
{
	(void)signal;
}

static void handle(int signal, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	sigaction(signal, &action, NULL);
}

static void live(uint64_t first_seed)
{
	struct itimerval tick = { { 0, TICK_US }, { 0, TICK_US } };
	pthread_t threads[THREADS];
	unsigned int i;

	handle(SIGSEGV, faulted);
	handle(SIGBUS, faulted);
	handle(SIGALRM, interrupted);
	setitimer(ITIMER_REAL, &tick, NULL);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run,
				   (void *)(uintptr_t)(first_seed + i)))
			_exit(1);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static pid_t start(uint64_t *from)
{
	uint64_t first_seed = accmem_random(from);
	pid_t pid = fork();

	if (!pid) {
		live(first_seed);
		_exit(0);
	}
	return pid;
}

FIXTURE(random_calls)
{
	uint64_t seed;
};

ACCMEM_VARIANTS(random_calls);

FIXTURE_SETUP(random_calls)
{
	unsigned int i;

	self->seed = accmem_seed();
	pool = mmap(NULL, sizeof(*pool), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, pool);
	for (i = 0; i < CONTEXTS; i++)
		contexts[i] = accmem_opened(variant->path);
}

FIXTURE_TEARDOWN(random_calls)
{
	unsigned int i;

	for (i = 0; i < CONTEXTS; i++)
		close(contexts[i]);
	munmap(pool, sizeof(*pool));
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "host/resident_bytes", 0,
					20000));
}

TEST_F_TIMEOUT(random_calls, nothing_is_lost, 3600)
{
	uint64_t wanted = accmem_scale(20000);
	pid_t pid[PROCESSES];
	unsigned int i;

	for (i = 0; i < PROCESSES; i++) {
		pid[i] = start(&self->seed);
		ASSERT_LT(0, pid[i]);
	}
	while (__atomic_load_n(&pool->calls, __ATOMIC_RELAXED) < wanted) {
		usleep(accmem_random(&self->seed) % 100000);
		i = accmem_random(&self->seed) % PROCESSES;
		accmem_stop(pid[i]);
		pid[i] = start(&self->seed);
		ASSERT_LT(0, pid[i]);
	}
	__atomic_store_n(&pool->stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < PROCESSES; i++) {
		usleep(50000);
		accmem_stop(pid[i]);
	}
	TH_LOG("%llu calls, of which %llu did something",
	       (unsigned long long)pool->calls, (unsigned long long)pool->good);
	EXPECT_LT(wanted / 8, pool->good);
}

ACCMEM_HARNESS_MAIN
