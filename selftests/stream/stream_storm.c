// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts that free at positions and after fences, while others allocate, signals
 * come, and processes die: memory under a pending free is never handed to another
 * before its time (T10).
 *
 * The checker knows nothing of the driver. It has a word for each 64 bytes of a
 * carveout with identity translation, where a device address says which memory it
 * is: the word is claimed by whoever is given the memory, and cleared right before
 * the call that makes it free. Who is given what is claimed has found a fault,
 * unless the one who claimed it was about to die. Where addresses are virtual,
 * each worker checks that its own are not handed out twice.
 */
#include <sys/time.h>

#include "stream_util.h"

#define UNIT 64
#define WORKERS 5
#define WORKERS_MAX 1024 /* processes started */
#define STREAMS 2
#define LIVE 12
#define PENDING 48

struct shared {
	uint32_t stop;
	uint32_t faults;
	uint32_t frees; /* frees that waited */
	uint32_t taken; /* buffers taken before their position */
	uint32_t deaths;
	uint8_t dying[WORKERS_MAX];
	uint64_t base;
	uint64_t nr_units; /* 0 if addresses are virtual */
	uint32_t units[];
};

/*
 * a buffer, and the positions that its free waits for; 0: it does not wait for that
 * stream
 */
struct record {
	uint64_t address;
	uint64_t length;
	uint64_t need[STREAMS];
	uint32_t fence; /* 1 + number of the fence */
};

struct worker {
	struct shared *shared;
	const char *path;
	uint32_t id; /* from 1 */
	uint64_t random;
	int fd;
	int fences;
	int streams[STREAMS];
	uint64_t reached[STREAMS];
	struct record live[LIVE];
	unsigned int nr_live;
	struct record pending[PENDING];
	unsigned int nr_pending;
};

static void fault(struct worker *w, const char *what, uint64_t address)
{
	printf("# worker %u: %s at %#llx\n", w->id, what,
	       (unsigned long long)address);
	fflush(stdout);
	__atomic_add_fetch(&w->shared->faults, 1, __ATOMIC_RELAXED);
}

#define MUST(w, condition)                                    \
	do {                                                  \
		if (!(condition))                             \
			fault(w, #condition, __LINE__);       \
	} while (0)

static uint32_t pick(struct worker *w, uint32_t n)
{
	return accmem_random(&w->random) % n;
}

/* --- the checker ----------------------------------------------------------- */

static void claim_unit(struct worker *w, uint64_t address)
{
	struct shared *s = w->shared;
	uint32_t *unit = &s->units[(address - s->base) / UNIT];
	uint32_t old = __atomic_exchange_n(unit, w->id, __ATOMIC_SEQ_CST);

	if (old && !__atomic_load_n(&s->dying[old], __ATOMIC_SEQ_CST))
		fault(w, "memory of another", address);
}

static void claim(struct worker *w, const struct record *r)
{
	uint64_t at;

	if (!w->shared->nr_units)
		return;
	for (at = r->address; at < r->address + r->length; at += UNIT)
		claim_unit(w, at);
}

static void disclaim(struct worker *w, const struct record *r)
{
	struct shared *s = w->shared;
	uint64_t at;

	if (!s->nr_units)
		return;
	for (at = r->address; at < r->address + r->length; at += UNIT)
		__atomic_store_n(&s->units[(at - s->base) / UNIT], 0,
				 __ATOMIC_SEQ_CST);
}

static bool overlaps(const struct record *a, const struct record *b)
{
	return a->address < b->address + b->length &&
	       b->address < a->address + a->length;
}

static void check_own(struct worker *w, const struct record *r)
{
	unsigned int i;

	for (i = 0; i < w->nr_live; i++)
		if (overlaps(r, &w->live[i]))
			fault(w, "a live buffer of its own", r->address);
	for (i = 0; i < w->nr_pending; i++)
		if (overlaps(r, &w->pending[i]))
			fault(w, "a pending buffer of its own", r->address);
}

static unsigned int nr_needs(const struct worker *w, const struct record *r)
{
	unsigned int i, n = r->fence != 0;

	for (i = 0; i < STREAMS; i++)
		n += r->need[i] > w->reached[i];
	return n;
}

/* forgets buffers that wait for nothing: the next call may give their memory to others */
static void forget_due(struct worker *w)
{
	unsigned int i;

	for (i = 0; i < w->nr_pending;) {
		if (nr_needs(w, &w->pending[i])) {
			i++;
			continue;
		}
		disclaim(w, &w->pending[i]);
		w->pending[i] = w->pending[--w->nr_pending];
	}
}

/* --- what workers do ------------------------------------------------------- */

/* finds the record of @a, which took pending memory */
static void take_pending(struct worker *w, const struct accmem_alloc *a,
			 unsigned int stream)
{
	struct record *r;
	unsigned int i;

	for (i = 0; i < w->nr_pending; i++) {
		r = &w->pending[i];
		if (r->address != a->address)
			continue;
		MUST(w, r->length == a->footprint);
		MUST(w, r->need[stream] == a->position);
		MUST(w, nr_needs(w, r) == 1);
		w->live[w->nr_live++] = *r;
		w->pending[i] = w->pending[--w->nr_pending];
		__atomic_add_fetch(&w->shared->taken, 1, __ATOMIC_RELAXED);
		return;
	}
	fault(w, "taken before its time, and was not pending", a->address);
}

static void do_alloc(struct worker *w)
{
	static const uint64_t lengths[] = { 64, 512, 4096, KIB(64), KIB(256) };
	struct accmem_alloc a = {
		.length = lengths[pick(w, ARRAY_SIZE(lengths))]
	};
	unsigned int stream = pick(w, STREAMS);
	struct record r = {};
	int err;

	if (w->nr_live == LIVE)
		return;
	err = pick(w, 2) ? stream_alloc(w->fd, w->streams[stream], &a) :
			   accmem_ioctl_alloc(w->fd, &a);
	if (err) {
		MUST(w, err == -ENOMEM);
		return;
	}
	if (a.position) {
		take_pending(w, &a, stream);
		return;
	}
	r.address = a.address;
	r.length = a.footprint;
	check_own(w, &r);
	claim(w, &r);
	w->live[w->nr_live++] = r;
}

static void free_after_fence(struct worker *w, struct record *r)
{
	uint32_t id;
	int file = fence_create(w->fences, &id);

	MUST(w, file >= 0);
	r->fence = id + 1;
	MUST(w, !fence_free(w->fd, r->address, file));
	close(file);
}

static void do_free(struct worker *w)
{
	unsigned int i, stream = pick(w, STREAMS);
	struct record r;
	uint64_t at;

	if (!w->nr_live || w->nr_pending == PENDING)
		return;
	i = pick(w, w->nr_live);
	r = w->live[i];
	w->live[i] = w->live[--w->nr_live];
	switch (pick(w, 4)) {
	case 0:
		if (!nr_needs(w, &r))
			disclaim(w, &r);
		MUST(w, !accmem_ioctl_free(w->fd, r.address));
		break;
	case 1:
		free_after_fence(w, &r);
		break;
	default:
		at = w->reached[stream] + pick(w, 5);
		if (at > r.need[stream])
			r.need[stream] = at;
		if (!nr_needs(w, &r))
			disclaim(w, &r);
		MUST(w, !stream_free(w->fd, r.address, w->streams[stream],
				     at));
	}
	if (!nr_needs(w, &r))
		return;
	w->pending[w->nr_pending++] = r;
	__atomic_add_fetch(&w->shared->frees, 1, __ATOMIC_RELAXED);
}

static void do_signal(struct worker *w)
{
	unsigned int stream = pick(w, STREAMS);

	w->reached[stream] += 1 + pick(w, 2);
	forget_due(w);
	MUST(w, !stream_signal(w->streams[stream], w->reached[stream]));
}

static void do_fence(struct worker *w)
{
	unsigned int i;
	uint32_t id;

	if (!w->nr_pending)
		return;
	i = pick(w, w->nr_pending);
	if (!w->pending[i].fence)
		return;
	id = w->pending[i].fence - 1;
	w->pending[i].fence = 0;
	forget_due(w);
	MUST(w, !fence_signal(w->fences, id, 0, pick(w, 2)));
}

/* the end of a stream ends all waits for it; the next stream begins at 0 */
static void do_end(struct worker *w)
{
	unsigned int stream = pick(w, STREAMS), i;

	if (pick(w, 8))
		return;
	w->reached[stream] = ~0ull;
	forget_due(w);
	close(w->streams[stream]);
	for (i = 0; i < w->nr_live; i++)
		w->live[i].need[stream] = 0;
	for (i = 0; i < w->nr_pending; i++)
		w->pending[i].need[stream] = 0;
	w->reached[stream] = 0;
	w->streams[stream] = stream_create(w->fd);
	MUST(w, w->streams[stream] >= 0);
}

static void do_wait(struct worker *w)
{
	unsigned int stream = pick(w, STREAMS);
	uint64_t at = w->reached[stream];

	MUST(w, !stream_wait(w->streams[stream], at, 0, 0));
	MUST(w, stream_wait(w->streams[stream], at + 1, 0,
			    stream_now() + 200000) == -ETIMEDOUT);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void begin(struct worker *w)
{
	struct sigaction action = { .sa_handler = on_alarm,
				    .sa_flags = SA_RESTART };
	struct itimerval timer = { { 0, 1500 }, { 0, 1500 } };
	unsigned int i;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	w->fd = accmem_dev_open(w->path, O_RDWR);
	w->fences = fence_device();
	MUST(w, w->fd >= 0 && w->fences >= 0);
	for (i = 0; i < STREAMS; i++)
		w->streams[i] = stream_create(w->fd);
}

static void work(struct worker *w)
{
	static void (*const acts[])(struct worker *w) = {
		do_alloc, do_alloc, do_alloc, do_free,	do_free,
		do_free,  do_signal, do_fence, do_fence, do_end, do_wait,
	};

	begin(w);
	while (!__atomic_load_n(&w->shared->stop, __ATOMIC_RELAXED))
		acts[pick(w, ARRAY_SIZE(acts))](w);
	/* the context ends, and all of its memory is freed */
	__atomic_store_n(&w->shared->dying[w->id], 1, __ATOMIC_SEQ_CST);
	_exit(0);
}

/* --- the test -------------------------------------------------------------- */

FIXTURE(stream_storm)
{
	int fd;
	struct accmem_info info;
	struct shared *shared;
	size_t size;
	int fences;
};

ACCMEM_VARIANTS(stream_storm);

FIXTURE_SETUP(stream_storm)
{
	self->fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	/* loads the module before the workers need it */
	self->fences = fence_device();
	ASSERT_LE(0, self->fences);
	self->size = sizeof(struct shared) +
		     self->info.capacity / UNIT * sizeof(uint32_t);
	self->shared = mmap(NULL, self->size, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ASSERT_NE(MAP_FAILED, self->shared);
	self->shared->base = self->info.address_base;
	if (self->info.translation == ACCMEM_TRANSLATION_IDENTITY)
		self->shared->nr_units = self->info.capacity / UNIT;
}

FIXTURE_TEARDOWN(stream_storm)
{
	munmap(self->shared, self->size);
	close(self->fences);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 30000));
}

static pid_t start(struct shared *shared, const char *path, uint32_t id)
{
	struct worker w = { .shared = shared,
			    .path = path,
			    .id = id,
			    .random = accmem_seed() + id };
	pid_t pid = fork();

	if (!pid)
		work(&w);
	return pid;
}

/* The checker finds a planted fault. */
TEST_F(stream_storm, the_checker_sees)
{
	struct worker a = { .shared = self->shared, .id = 1 };
	struct worker b = { .shared = self->shared, .id = 2 };
	struct record r = { .address = self->info.address_base,
			    .length = 4096 };

	a.live[a.nr_live++] = r;
	check_own(&a, &r);
	EXPECT_EQ(1, self->shared->faults);
	self->shared->nr_units = self->info.capacity / UNIT;
	claim(&a, &r);
	EXPECT_EQ(1, self->shared->faults);
	claim(&b, &r);
	EXPECT_EQ(1 + 4096 / UNIT, self->shared->faults);
	disclaim(&b, &r);
	claim(&a, &r);
	self->shared->dying[1] = 1;
	claim(&b, &r);
	EXPECT_EQ(1 + 4096 / UNIT, self->shared->faults);
}

/* The storm goes on until it had frees and deaths: the workers may not run for a while. */
static bool goes_on(const struct shared *s, unsigned int i, unsigned int deaths,
		    uint64_t end)
{
	if (s->faults)
		return false;
	return i < deaths ||
	       (accmem_ms() < end && (s->frees <= deaths || !s->taken));
}

TEST_F(stream_storm, t10_nobody_is_given_pending_memory)
{
	uint64_t seed = accmem_seed(), end = accmem_ms() + 30000;
	unsigned int deaths = accmem_scale(100), i, victim;
	struct shared *s = self->shared;
	uint32_t ids[WORKERS], next = 1;
	pid_t pids[WORKERS];
	int status;

	printf("# seed %llu\n", (unsigned long long)seed);
	if (deaths > WORKERS_MAX - 2 * WORKERS)
		deaths = WORKERS_MAX - 2 * WORKERS;
	fflush(stdout);
	for (i = 0; i < WORKERS; i++) {
		ids[i] = next++;
		pids[i] = start(s, variant->path, ids[i]);
		ASSERT_LT(0, pids[i]);
	}
	for (i = 0; goes_on(s, i, deaths, end); i++) {
		usleep(2000 + accmem_random(&seed) % 20000);
		if (next == WORKERS_MAX)
			continue;
		victim = accmem_random(&seed) % WORKERS;
		__atomic_store_n(&s->dying[ids[victim]], 1, __ATOMIC_SEQ_CST);
		kill(pids[victim], SIGKILL);
		ASSERT_EQ(pids[victim], waitpid(pids[victim], &status, 0));
		EXPECT_EQ(SIGKILL, status);
		ids[victim] = next++;
		pids[victim] = start(s, variant->path, ids[victim]);
		ASSERT_LT(0, pids[victim]);
		/* the accounts balance at any time */
		EXPECT_TRUE(accmem_accounts_balance(variant->path));
	}
	s->stop = 1;
	for (i = 0; i < WORKERS; i++) {
		EXPECT_EQ(0, accmem_wait_child(pids[i]));
	}
	EXPECT_EQ(0, s->faults);
	EXPECT_LT(deaths, s->frees);
	EXPECT_LT(0, s->taken);
	printf("# %s: %u frees waited, %u taken before their time\n",
	       variant->path, s->frees, s->taken);
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "pending_bytes", 0,
					30000));
}

ACCMEM_HARNESS_MAIN
