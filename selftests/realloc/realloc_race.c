// SPDX-License-Identifier: GPL-2.0
/*
 * REALLOC while other threads touch, resize or free the buffer, or while the caller is
 * killed.
 */
#include <sched.h>

#include "realloc_util.h"

REALLOC_FIXTURE(realloc_race)

static atomic_int touching;

/* causes faults, without using up the processor */
static void *touch_on_and_on(void *p)
{
	volatile char *c = p;

	while (atomic_load(&touching)) {
		*c = 1;
		sched_yield();
	}
	return NULL;
}

/* Doubles a buffer of 64 KiB at @address @rounds times. Returns how often REALLOC was busy. */
static unsigned int busy_moves(struct __test_metadata *_metadata, int fd,
			       uint64_t address, unsigned int rounds)
{
	unsigned int i, busy = 0;
	struct accmem_realloc r;
	struct accmem_alloc a;
	char *p;

	for (i = 0; i < rounds; i++) {
		a = (struct accmem_alloc){
			.length = KIB(64),
			.address = address,
			.flags = RESIZABLE | ACCMEM_ALLOC_FIXED,
		};
		/* the old memory may be in quarantine for a moment */
		while (accmem_ioctl_alloc(fd, &a) == -ENOMEM)
			;
		p = map_at(fd, a.address, KIB(64));
		ASSERT_NE(NULL, p);
		*p = 1;
		unmap(p, KIB(64));
		busy += accmem_ioctl_realloc(fd, a.address, KIB(128), 0, &r) ==
			-EBUSY;
		ASSERT_EQ(0, accmem_ioctl_free(fd, r.address));
	}
	return busy;
}

/* Faults of a neighbour do not look like a pin. */
TEST_F(realloc_race, moves_while_its_neighbour_is_touched)
{
	unsigned int i, rounds = 200 + accmem_scale(1000), busy = 1;
	struct accmem_alloc b = {
		.length = KIB(64),
		.address = self->info.address_base + self->info.capacity / 2,
		.flags = ACCMEM_ALLOC_FIXED,
	};
	pthread_t threads[3];
	char *touched;

	b.address += KIB(64);
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &b));
	touched = map_at(self->fd, b.address, KIB(64));
	ASSERT_NE(NULL, touched);
	atomic_store(&touching, 1);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, touch_on_and_on,
					    touched + i * GRANULE));
	/* the host may stop a processor in a fault, so one series of three must pass */
	for (i = 0; i < 3 && busy; i++)
		busy = busy_moves(_metadata, self->fd, b.address - KIB(64),
				  rounds);
	EXPECT_EQ(0, busy);
	atomic_store(&touching, 0);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	unmap(touched, KIB(64));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
}

/*
 * Lets a buffer grow by a move while threads access it through a mapping. A fault
 * references a page for a moment, which is not a pin. Returns the number of moves.
 */
static unsigned int move_while_touched(int fd, char *at, uint64_t length,
				       unsigned int rounds)
{
	uint64_t shown = ALIGN_UP(length, GRANULE);
	struct accmem_alloc a, b;
	unsigned int moved = 0, busy = 1 + rounds / 20;
	struct accmem_realloc r;
	int err;

	while (rounds--) {
		a = (struct accmem_alloc){ .length = length,
					   .alignment = length,
					   .flags = RESIZABLE };
		/* the old memory may be in quarantine for a moment */
		do {
			err = accmem_ioctl_alloc(fd, &a);
		} while (err == -ENOMEM);
		if (err || !accmem_mmap_at(at, fd, a.mmap_offset, shown, RW,
					   MAP_SHARED | MAP_FIXED))
			return 0;
		/* if that fails, another buffer is behind it */
		if (block(fd, &a, &b))
			b.address = 0;
		/* until all threads access it */
		usleep(rounds % 4 * 500);
		err = accmem_ioctl_realloc(fd, a.address, 2 * length, 0, &r);
		/* a processor that the host does not run may be in a fault for long */
		if (err == -EBUSY && busy) {
			busy--;
			r.address = a.address;
		} else if (err) {
			printf("# REALLOC: %d\n", err);
			return 0;
		}
		moved += r.address != a.address;
		if (accmem_ioctl_free(fd, r.address) || unblock(fd, &b))
			return 0;
	}
	return moved;
}

TEST_F(realloc_race, moves_while_it_is_touched)
{
	static const uint64_t lengths[] = { KIB(1), KIB(64), MIB(2) };
	unsigned int i, j, rounds = 20 + accmem_scale(200);
	pthread_t threads[3];
	char *hole, *p;

	hole = mmap(NULL, MIB(4), RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, hole);
	p = (char *)ALIGN_UP((uintptr_t)hole, MIB(2));
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		atomic_store(&touching, 1);
		for (j = 0; j < ARRAY_SIZE(threads); j++)
			ASSERT_EQ(0, pthread_create(&threads[j], NULL,
						    touch_on_and_on,
						    p + j / 2 * GRANULE));
		EXPECT_LT(rounds / 2,
			  move_while_touched(self->fd, p, lengths[i], rounds));
		atomic_store(&touching, 0);
		for (j = 0; j < ARRAY_SIZE(threads); j++)
			pthread_join(threads[j], NULL);
	}
	munmap(hole, MIB(4));
}

/* REALLOC of a pinned buffer fails soon, also while threads access the buffer. */
TEST_F(realloc_race, stays_where_it_is_pinned_and_touched)
{
	uint64_t before, ms = ~0ull;
	struct accmem_realloc r;
	struct accmem_alloc a, b;
	int i, err, pipes[2];
	pthread_t thread;
	char *p;

	if (!self->pins)
		return;
	ASSERT_EQ(0, alloc(self->fd, KIB(64), 0, &a));
	ASSERT_EQ(0, block(self->fd, &a, &b));
	p = map_at(self->fd, a.address, KIB(64));
	ASSERT_NE(NULL, p);
	ASSERT_TRUE(accmem_pin(pipes, p, GRANULE));
	atomic_store(&touching, 1);
	ASSERT_EQ(0, pthread_create(&thread, NULL, touch_on_and_on, p));
	/* 30 ms, and some time for an emulated machine, which may pause in a call */
	for (i = 0; i < 3 && ms >= 1000; i++) {
		before = accmem_ms();
		EXPECT_EQ(-EBUSY, accmem_ioctl_realloc(self->fd, a.address,
						       MIB(1), 0, &r));
		ms = accmem_ms() - before;
	}
	EXPECT_GT(1000, ms);
	accmem_unpin(pipes);
	/* a processor that the host does not run may be in a fault for long */
	i = 5;
	do {
		err = accmem_ioctl_realloc(self->fd, a.address, MIB(1), 0, &r);
	} while (err == -EBUSY && --i);
	EXPECT_EQ(0, err);
	EXPECT_NE(a.address, r.address);
	atomic_store(&touching, 0);
	pthread_join(thread, NULL);
	unmap(p, KIB(64));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	ASSERT_EQ(0, unblock(self->fd, &b));
}

struct shrinking {
	char *p;
	atomic_uint resized; /* odd: the memory at @p has been freed */
	atomic_uint touches; /* accesses that have begun */
	atomic_bool end;
	unsigned int shown; /* accesses that succeeded */
	unsigned int wrong; /* accesses to freed memory that succeeded */
};

/* waits until the thread begins another access, and for a time that depends on @round */
static void let_touch(struct shrinking *s, unsigned int round)
{
	unsigned int began = atomic_load(&s->touches);
	volatile unsigned int spin;

	while (atomic_load(&s->touches) == began)
		;
	for (spin = round % 64 * 256; spin; spin--)
		;
}

static void *touch_what_goes(void *arg)
{
	struct shrinking *s = arg;
	unsigned int before, i;
	int sig;

	/* a fault on the first page may map all pages up to the last */
	for (i = 0; !atomic_load(&s->end); i++) {
		before = atomic_load(&s->resized);
		atomic_fetch_add(&s->touches, 1);
		sig = accmem_try_write(s->p + (i % 2 ? MIB(2) - GRANULE : 0),
				       1);
		s->shown += !sig;
		if (before & 1 && before == atomic_load(&s->resized))
			s->wrong += sig != SIGBUS;
	}
	return NULL;
}

/* A fault that began before the buffer shrank does not map freed memory afterwards. */
TEST_F(realloc_race, what_has_gone_is_a_sigbus_whoever_touched_it_meanwhile)
{
	unsigned int i, rounds = 20 + accmem_scale(300);
	struct accmem_alloc a = { .length = MIB(4),
				  .alignment = MIB(2),
				  .flags = RESIZABLE,
				  .reserve = MIB(4) };
	struct shrinking s = {};
	struct accmem_realloc r;
	pthread_t thread;
	char *p;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	p = accmem_mapped_huge(self->fd, &a, MIB(4));
	s.p = p + MIB(2);
	ASSERT_EQ(0, pthread_create(&thread, NULL, touch_what_goes, &s));
	for (i = 0; i < rounds; i++) {
		let_touch(&s, i);
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(2),
						  0, &r));
		ASSERT_EQ(a.address, r.address);
		ASSERT_EQ(MIB(2), r.footprint);
		atomic_fetch_add(&s.resized, 1);
		usleep(500);
		atomic_fetch_add(&s.resized, 1);
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(4),
						  0, &r));
		ASSERT_EQ(a.address, r.address);
	}
	atomic_store(&s.end, true);
	pthread_join(thread, NULL);
	EXPECT_LT(0, s.shown);
	EXPECT_EQ(0, s.wrong);
	munmap(p, MIB(4));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* shared by both processes */
struct dying {
	struct accmem_realloc r;
	atomic_int calls; /* REALLOC has begun, and has ended */
};

/* a child doubles the buffer; if @us is not 0, it is killed that long after the begin */
static uint64_t double_and_die(int fd, const struct accmem_alloc *a,
			       struct dying *d, unsigned int us)
{
	uint64_t began;
	pid_t pid;

	d->r = (struct accmem_realloc){ .size = sizeof(d->r),
					.address = a->address,
					.length = 2 * a->length };
	atomic_store(&d->calls, 0);
	pid = fork();
	if (!pid) {
		atomic_store(&d->calls, 1);
		if (!accmem_ioctl(fd, ACCMEM_IOC_REALLOC, &d->r))
			atomic_store(&d->calls, 2);
		for (;;)
			pause();
	}
	while (!atomic_load(&d->calls))
		;
	began = accmem_ms();
	while (!us && atomic_load(&d->calls) == 1)
		usleep(100);
	began = accmem_ms() - began;
	usleep(us);
	kill(pid, SIGKILL);
	accmem_wait_child(pid);
	return 1000 * began;
}

/*
 * A process is killed in REALLOC. Another process that shares the file and the mapping
 * finds the old buffer or the resized one, and can use it.
 */
TEST_F(realloc_race, killed_while_it_moves)
{
	const uint64_t length = MIB(12), before = accmem_free_now(self->fd);
	unsigned int i, rounds = 4 + accmem_scale(16), unmoved = 0;
	struct dying *d =
		mmap(NULL, GRANULE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct accmem_alloc a, b;
	struct accmem_query q;
	uint64_t us = 0, took;
	char *p;

	ASSERT_NE(MAP_FAILED, d);
	/* the first time may be much too long: more rounds halve it until one is in time */
	for (i = 0; i < rounds || (!unmoved && i < rounds + 30); i++) {
		if (i >= rounds)
			us = us / 2 + 1;
		ASSERT_EQ(0, alloc(self->fd, length, 0, &a));
		ASSERT_EQ(0, block(self->fd, &a, &b));
		p = map_at(self->fd, a.address, length);
		ASSERT_NE(NULL, p);
		accmem_fill(p, length, i);
		took = double_and_die(self->fd, &a, d,
				      i < rounds ? us * i / rounds : us);
		if (!i) {
			ASSERT_EQ(2, atomic_load(&d->calls));
			us = took + rounds;
		}
		ASSERT_EQ(-1, accmem_check(p, length, i));
		if (!accmem_ioctl_query(self->fd, a.address, &q)) {
			unmoved++;
			ASSERT_TRUE(query_says(self->fd, a.address, length,
					       length));
			ASSERT_EQ(length,
				  accmem_sysfs(variant->path, "live_bytes") -
					  !!b.address * GRANULE);
			ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
		} else {
			ASSERT_EQ(-1, check_at(self->fd, d->r.address, length,
					       2 * length, i));
			ASSERT_EQ(0, accmem_ioctl_free(self->fd, d->r.address));
		}
		ASSERT_EQ(-1, accmem_check(p, length, i));
		unmap(p, length);
		ASSERT_EQ(0, unblock(self->fd, &b));
		ASSERT_EQ(-1, accmem_sysfs_wait(variant->path, "free_bytes",
						before, 20000));
	}
	TH_LOG("%u of %u died before it had moved", unmoved, i);
	EXPECT_LT(0, unmoved);
	munmap(d, GRANULE);
}

/*
 * Threads resize, map, access, free and query the same few buffers. A call succeeds or
 * fails with a documented error, and no memory is lost.
 */
#define STORM_SLOTS 4

struct storm {
	int fd;
	unsigned int rounds;
	_Atomic uint64_t slots[STORM_SLOTS];
	_Atomic int strange;
};

static void storm_expect(struct storm *s, const char *what, int err,
			 const int *known)
{
	for (; *known; known++)
		if (err == *known)
			return;
	if (err && !s->strange)
		printf("# %s: %d\n", what, err);
	if (err)
		s->strange = 1;
}

static void *storm_resize(void *arg)
{
	static const int known[] = { -ENOENT, -EBUSY, -EINVAL, 0 };
	static const uint64_t lengths[] = { 100,      KIB(4), KIB(100),
					    KIB(512), MIB(2), MIB(3) };
	struct storm *s = arg;
	uint64_t seed = accmem_seed() + (uintptr_t)&seed, address;
	struct accmem_realloc r;
	unsigned int i, slot;
	int err;

	for (i = 0; i < s->rounds; i++) {
		slot = accmem_random(&seed) % STORM_SLOTS;
		address = s->slots[slot];
		err = accmem_ioctl_realloc(s->fd, address,
					   lengths[accmem_random(&seed) %
						   ARRAY_SIZE(lengths)],
					   0, &r);
		storm_expect(s, "REALLOC", err, known);
		if (!err && r.address != address)
			atomic_compare_exchange_strong(&s->slots[slot],
						       &address, r.address);
	}
	return NULL;
}

/* only one thread may call accmem_try_write() */
static void *storm_touch(void *arg)
{
	struct storm *s = arg;
	uint64_t seed = accmem_seed() + (uintptr_t)&seed, value, at;
	unsigned int i, j;
	struct accmem_query q;
	char *p;

	for (i = 0; i < s->rounds; i++) {
		if (accmem_ioctl_query(s->fd,
				       s->slots[accmem_random(&seed) %
						STORM_SLOTS],
				       &q))
			continue;
		p = accmem_mmap_at(NULL, s->fd, q.mmap_offset,
				   ALIGN_UP(q.footprint, GRANULE), RW,
				   MAP_SHARED);
		if (!p)
			continue;
		/* a freed page is SIGBUS */
		for (j = 0; j < 8; j++) {
			at = accmem_random(&seed) %
			     ALIGN_UP(q.footprint, GRANULE);
			accmem_try_write(p + at / 8 * 8, at);
			accmem_try_read(p + at / 8 * 8, &value);
		}
		munmap(p, ALIGN_UP(q.footprint, GRANULE));
	}
	return NULL;
}

static void *storm_renew(void *arg)
{
	static const int known[] = { -ENOENT, -EBUSY, -EINVAL, 0 };
	struct storm *s = arg;
	uint64_t seed = accmem_seed() + (uintptr_t)&seed;
	struct accmem_alloc a;
	unsigned int i, slot;
	int err;

	for (i = 0; i < s->rounds; i++) {
		slot = accmem_random(&seed) % STORM_SLOTS;
		err = accmem_ioctl_free(s->fd, s->slots[slot]);
		storm_expect(s, "FREE", err, known);
		if (err)
			continue;
		if (alloc(s->fd, KIB(64) << slot, slot & 1 ? MIB(4) : 0, &a)) {
			s->strange = 1;
			break;
		}
		s->slots[slot] = a.address;
	}
	return NULL;
}

TEST_F(realloc_race, storm)
{
	void *(*const threads[])(void *) = { storm_resize, storm_resize,
					     storm_touch, storm_renew };
	struct storm s = { .fd = accmem_dev_open(variant->path, O_RDWR),
			   .rounds = accmem_scale(400) };
	pthread_t ids[ARRAY_SIZE(threads)];
	struct accmem_alloc a;
	unsigned int i;

	ASSERT_LE(0, s.fd);
	for (i = 0; i < STORM_SLOTS; i++) {
		ASSERT_EQ(0, alloc(s.fd, KIB(64), 0, &a));
		s.slots[i] = a.address;
	}
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&ids[i], NULL, threads[i], &s));
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(ids[i], NULL);
	EXPECT_EQ(0, s.strange);
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	close(s.fd);
}

struct resizing {
	int fd;
	uint64_t address;
	int err;
	atomic_int done;
};

static void *grow_in_thread(void *arg)
{
	struct resizing *g = arg;

	g->err = accmem_ioctl_realloc(g->fd, g->address, MIB(32), IN_PLACE,
				      NULL);
	atomic_store(&g->done, 1);
	return NULL;
}

/* The buffer grows by many runs, whose pages are made present. */
TEST_F(realloc_race, query_tells_nothing_of_it_before_it_is_over)
{
	struct accmem_alloc a = { .length = MIB(2),
				  .flags = RESIZABLE | ACCMEM_ALLOC_POPULATE,
				  .reserve = MIB(32) };
	uint64_t size = self->info.capacity / 512, strange = 0;
	struct accmem_alloc bufs[512];
	struct accmem_query before, q;
	struct resizing g;
	pthread_t thread;
	int i, n = 0;

	if (self->identity)
		return; /* the buffer has one run at first */
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	while (n < 512 && !accmem_alloc_bytes(self->fd, size, 0, &bufs[n]))
		n++;
	for (i = 0; i < n; i += 2)
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, bufs[i].address));
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, a.address, &before));
	g = (struct resizing){ .fd = self->fd, .address = a.address };
	ASSERT_EQ(0, pthread_create(&thread, NULL, grow_in_thread, &g));
	do {
		ASSERT_EQ(0, accmem_ioctl_query(self->fd, a.address, &q));
		strange += q.footprint == before.footprint &&
			   q.nr_runs != before.nr_runs;
	} while (!atomic_load(&g.done));
	pthread_join(thread, NULL);
	ASSERT_EQ(0, g.err);
	EXPECT_EQ(0, strange);
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, a.address, &q));
	EXPECT_LT(before.nr_runs, q.nr_runs);
	EXPECT_EQ(MIB(32), q.footprint);
}

ACCMEM_HARNESS_MAIN
