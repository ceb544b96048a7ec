// SPDX-License-Identifier: GPL-2.0
/*
 * Shared memory under load. Threads of several processes write through mappings and as
 * the device, to neighbouring words of the same pieces, and are killed at any time.
 * Each word has one writer. The writer must find the value that it wrote last, on
 * either side. The word of a killed writer has the last value or the one that was
 * being written.
 */
#include "accmem_test.h"

#define PIECE MIB(2)
#define PROCESSES 3
#define THREADS 2
#define WRITERS (PROCESSES * THREADS)
#define PAGES 8 /* pages of a buffer that are written to */

static const uint64_t lengths[] = { KIB(4), KIB(4), KIB(64), PIECE + KIB(8) };
#define BUFFERS 4
#define LARGE 3 /* index of the large buffer, whose moves take long */

/* a writer's record of one of its words; outlives the writer */
struct word {
	uint64_t begun;
	uint64_t done;
};

struct log {
	struct word words[WRITERS][BUFFERS][PAGES];
	uint64_t calls;
	uint64_t busy; /* accesses of the device that were refused */
	uint32_t stop;
	uint32_t wrong;
	int error;
};

FIXTURE(shared_storm)
{
	int fd;
	struct accmem_alloc a[BUFFERS];
	char *map[BUFFERS];
	struct log *log;
};

ACCMEM_VARIANTS(shared_storm);

FIXTURE_SETUP(shared_storm)
{
	unsigned int i;

	self->fd = accmem_opened(variant->path);
	for (i = 0; i < BUFFERS; i++) {
		self->a[i] = (struct accmem_alloc){
			.length = lengths[i],
			.kind = ACCMEM_KIND_SHARED,
		};
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->a[i]));
		self->map[i] =
			accmem_mapped_huge(self->fd, &self->a[i], lengths[i]);
	}
	self->log = mmap(NULL, sizeof(*self->log), RW,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->log);
}

FIXTURE_TEARDOWN(shared_storm)
{
	unsigned int i;

	for (i = 0; i < BUFFERS; i++) {
		munmap(self->map[i], lengths[i]);
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a[i].address));
	}
	munmap(self->log, sizeof(*self->log));
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "host/resident_bytes", 0,
					20000));
}

/* --- one word ------------------------------------------------------------- */

struct writer {
	int fd;
	const struct accmem_alloc *a;
	char **map;
	struct log *log;
	unsigned int number;
	uint64_t seed;
};

/*
 * the offset of a word: half of the pages are at the start of the buffer, half at its
 * end
 */
static uint64_t word_at(unsigned int writer, unsigned int buf,
			unsigned int page)
{
	uint64_t pages = lengths[buf] / 4096;

	page = page % 2 ? pages - 1 - page / 2 % pages : page / 2 % pages;
	return (uint64_t)page * 4096 + writer * 8;
}

/* the page of the word in a smaller buffer */
static unsigned int page_of(unsigned int buf, unsigned int page)
{
	return page %
	       (lengths[buf] / 4096 < PAGES ? lengths[buf] / 4096 : PAGES);
}

/*
 * The driver takes a page for pinned while a fault has it. A fault whose processor stands
 * still for 100 ms makes an access fail: the writer tries again.
 */
static int device_word(const struct writer *w, unsigned int buf, uint64_t at,
		       uint64_t *value, uint32_t op)
{
	struct accmem_access access = {
		.size = sizeof(access),
		.address = w->a[buf].address + at,
		.length = sizeof(*value),
		.data = (uintptr_t)value,
		.op = op,
	};
	int err = accmem_ioctl_access(w->fd, &access);

	if (err == -EBUSY)
		__atomic_add_fetch(&w->log->busy, 1, __ATOMIC_RELAXED);
	while (err == -EBUSY &&
	       !__atomic_load_n(&w->log->stop, __ATOMIC_RELAXED))
		err = accmem_ioctl_access(w->fd, &access);
	return err;
}

static volatile uint64_t *mapped_word(char **map, unsigned int buf, uint64_t at)
{
	return (volatile uint64_t *)(map[buf] + at);
}

static void hint(const struct writer *w, unsigned int buf, uint64_t at,
		 uint32_t what)
{
	struct accmem_prefetch p = { .size = sizeof(p),
				     .flags = what % 2,
				     .address = w->a[buf].address + at,
				     .length = 8 };
	struct accmem_advise v = { .size = sizeof(v),
				   .address = w->a[buf].address + at,
				   .length = 8,
				   .advice = what % 16 < 2 };

	if (what % 4 < 2)
		accmem_ioctl(w->fd, ACCMEM_IOC_PREFETCH, &p);
	else
		accmem_ioctl(w->fd, ACCMEM_IOC_ADVISE, &v);
}

static int store(struct writer *w, unsigned int buf, unsigned int page)
{
	struct word *word = &w->log->words[w->number][buf][page];
	uint64_t at = word_at(w->number, buf, page), value = word->done + 1;
	int err = 0;

	__atomic_store_n(&word->begun, value, __ATOMIC_RELEASE);
	if (accmem_random(&w->seed) % 2)
		*mapped_word(w->map, buf, at) = value;
	else
		err = device_word(w, buf, at, &value, ACCMEM_ACCESS_WRITE);
	__atomic_store_n(&word->done, value, __ATOMIC_RELEASE);
	return err;
}

static int look(struct writer *w, unsigned int buf, unsigned int page)
{
	struct word *word = &w->log->words[w->number][buf][page];
	uint64_t at = word_at(w->number, buf, page), value = 0;
	int err = 0;

	if (accmem_random(&w->seed) % 2)
		value = *mapped_word(w->map, buf, at);
	else
		err = device_word(w, buf, at, &value, ACCMEM_ACCESS_READ);
	if (!err && value != word->done)
		__atomic_add_fetch(&w->log->wrong, 1, __ATOMIC_RELAXED);
	return err;
}

static void *write_on(void *arg)
{
	struct writer *w = arg;
	unsigned int buf, page;
	int err;

	while (!__atomic_load_n(&w->log->stop, __ATOMIC_RELAXED)) {
		buf = accmem_random(&w->seed) % 8;
		if (buf != LARGE)
			buf %= LARGE;
		page = page_of(buf, accmem_random(&w->seed) % PAGES);
		err = accmem_random(&w->seed) % 2 ? store(w, buf, page) :
						    look(w, buf, page);
		if (err)
			w->log->error = err;
		if (!(accmem_random(&w->seed) % 32))
			hint(w, buf, word_at(w->number, buf, page),
			     accmem_random(&w->seed));
		__atomic_add_fetch(&w->log->calls, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* --- processes ------------------------------------------------------------ */

static pid_t start(struct writer *first, uint64_t *seed)
{
	struct writer w[THREADS];
	pthread_t threads[THREADS];
	unsigned int i;
	pid_t pid;

	for (i = 0; i < THREADS; i++) {
		w[i] = *first;
		w[i].number += i;
		w[i].seed = accmem_random(seed);
	}
	pid = fork();
	if (pid)
		return pid;
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, write_on, &w[i]))
			_exit(1);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

/* checks the words of a dead writer; true if each has an allowed value */
static bool settle(struct log *log, char **map, unsigned int writer)
{
	unsigned int buf, i;
	bool ok = true;

	for (buf = 0; buf < BUFFERS; buf++) {
		for (i = 0; i < PAGES; i++) {
			struct word *word = &log->words[writer][buf][i];
			uint64_t value;

			if (page_of(buf, i) != i)
				continue;
			value = *mapped_word(map, buf, word_at(writer, buf, i));
			ok &= value == word->done || value == word->begun;
			word->done = value;
			word->begun = value;
		}
	}
	return ok;
}

TEST_F_TIMEOUT(shared_storm, no_word_is_lost, 3600)
{
	struct writer first = {
		.fd = self->fd, .a = self->a, .map = self->map, .log = self->log
	};
	uint64_t seed = accmem_seed(), wanted = accmem_scale(20000);
	unsigned int i, kills = 0;
	pid_t pid[PROCESSES];
	int64_t before = accmem_sysfs(variant->path, "shared_moves");

	for (i = 0; i < PROCESSES; i++) {
		first.number = i * THREADS;
		pid[i] = start(&first, &seed);
		ASSERT_LT(0, pid[i]);
	}
	while (__atomic_load_n(&self->log->calls, __ATOMIC_RELAXED) < wanted &&
	       !self->log->wrong && !self->log->error) {
		usleep(accmem_random(&seed) % 20000);
		i = accmem_random(&seed) % PROCESSES;
		kill(pid[i], SIGKILL);
		ASSERT_EQ(128 + SIGKILL, accmem_wait_child(pid[i]));
		kills++;
		first.number = i * THREADS;
		EXPECT_TRUE(settle(self->log, self->map, i * THREADS));
		EXPECT_TRUE(settle(self->log, self->map, i * THREADS + 1));
		pid[i] = start(&first, &seed);
		ASSERT_LT(0, pid[i]);
	}
	__atomic_store_n(&self->log->stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < PROCESSES; i++)
		EXPECT_EQ(0, accmem_wait_child(pid[i]));
	for (i = 0; i < WRITERS; i++)
		EXPECT_TRUE(settle(self->log, self->map, i));
	EXPECT_EQ(0, self->log->wrong);
	EXPECT_EQ(0, self->log->error);
	EXPECT_GT(self->log->calls / 500 + 2, self->log->busy);
	TH_LOG("%llu calls, %llu refused, %lld moves, %u kills",
	       (unsigned long long)self->log->calls,
	       (unsigned long long)self->log->busy,
	       (long long)(accmem_sysfs(variant->path, "shared_moves") -
			   before),
	       kills);
	EXPECT_LT(wanted / 8,
		  accmem_sysfs(variant->path, "shared_moves") - before);
}

ACCMEM_HARNESS_MAIN
