// SPDX-License-Identifier: GPL-2.0
/*
 * A user of a device that loses its memory, for the shell tests:
 *
 *   revoked gone PATH	until the device is gone
 *   revoked reset PATH	until after a reset
 *
 * The program has a buffer with a mapping, all other memory, a thread that waits for memory,
 * and a stream with a pending free and a thread that waits for the position of the free. The
 * program prints "held", waits for the revocation, and checks its effects. Then it prints
 * "ok", or "not ok" with the reason on standard error, and ends.
 */
#include "accmem_test.h"
#include "stream_util.h"

#define PATIENCE_MS 60000
#define BUFS 64

static const char mark[] = "memory of a PCI device";

struct user {
	int fd;
	int err; /* what calls fail with */
	char *p;
	struct accmem_alloc buf;
	struct accmem_alloc rest[BUFS];
	int nr_rest;
	int stream;
	_Atomic int waiter; /* 1, or the result of the wait for memory */
	_Atomic int sleeper; /* 1, or the result of the wait for the position */
};

#define CHECK(cond)                                                          \
	do {                                                                 \
		if (!(cond)) {                                               \
			fprintf(stderr, "# line %d: %s\n", __LINE__, #cond); \
			return false;                                        \
		}                                                            \
	} while (0)

static void *wait_for_memory(void *arg)
{
	struct user *u = arg;
	struct accmem_alloc a = { .length = MIB(4),
				  .flags = ACCMEM_ALLOC_WAIT };

	u->waiter = accmem_ioctl_alloc(u->fd, &a);
	return NULL;
}

static void *wait_for_position(void *arg)
{
	struct user *u = arg;

	u->sleeper = stream_settle(u->stream, 1);
	return NULL;
}

static bool begin(struct user *u)
{
	struct accmem_alloc a;

	u->stream = stream_create(u->fd);
	CHECK(u->stream >= 0);
	CHECK(!accmem_alloc_bytes(u->fd, 4096, 0, &a));
	CHECK(!stream_free(u->fd, a.address, u->stream, 1));
	CHECK(!accmem_alloc_bytes(u->fd, MIB(4), 0, &u->buf));
	u->p = accmem_mapped(u->fd, &u->buf, MIB(4));
	CHECK(u->p);
	memset(u->p, 0xaa, MIB(4));
	memcpy(u->p, mark, sizeof(mark));
	u->nr_rest = accmem_take_all(u->fd, ACCMEM_CACHE_WC, u->rest, BUFS);
	CHECK(u->nr_rest >= 0);
	return true;
}

/* Waits until the mapping is gone, and the waiter has an answer. */
static bool lose(struct user *u)
{
	uint64_t end = accmem_ms() + PATIENCE_MS;
	struct accmem_alloc a;
	int sig, err;

	do {
		usleep(1000);
		sig = accmem_try_write(u->p + 4096, 1);
	} while (!sig && accmem_ms() < end);
	CHECK(sig == SIGBUS);
	while (u->waiter == 1 && accmem_ms() < end)
		usleep(1000);
	CHECK(u->waiter == u->err);
	while (u->err == -ENODEV && u->sleeper == 1 && accmem_ms() < end)
		usleep(1000);
	CHECK(u->sleeper == (u->err == -ENODEV ? -ECANCELED : 1));
	err = accmem_alloc_bytes(u->fd, 4096, 0, &a);
	CHECK(err == u->err);
	return true;
}

/* After a reset: all buffers of before are freed, then there is zeroed memory again. */
static bool go_on(struct user *u)
{
	uint64_t end = accmem_ms() + PATIENCE_MS;
	struct accmem_alloc a;
	char *p;
	int err;

	CHECK(accmem_try_write(u->p, 1) == SIGBUS);
	munmap(u->p, MIB(4));
	CHECK(!stream_signal(u->stream, 1));
	CHECK(!accmem_ioctl_free(u->fd, u->buf.address));
	while (u->nr_rest)
		CHECK(!accmem_ioctl_free(u->fd, u->rest[--u->nr_rest].address));
	do {
		usleep(1000);
		err = accmem_alloc_bytes(u->fd, MIB(16), 0, &a);
	} while (err == u->err && accmem_ms() < end);
	CHECK(!err);
	p = accmem_mapped(u->fd, &a, MIB(16));
	CHECK(p);
	CHECK(accmem_first_nonzero(p, MIB(16)) == -1);
	memset(p, 1, MIB(16));
	return true;
}

int main(int argc, char **argv)
{
	struct user u = { .waiter = 1, .sleeper = 1 };
	pthread_t waiter, sleeper;
	bool gone, good;

	if (argc != 3)
		return 2;
	gone = !strcmp(argv[1], "gone");
	u.err = gone ? -ENODEV : -ECONNRESET;
	u.fd = accmem_dev_open(argv[2], O_RDWR);
	if (u.fd < 0)
		return 2;
	good = begin(&u);
	if (pthread_create(&waiter, NULL, wait_for_memory, &u) ||
	    pthread_create(&sleeper, NULL, wait_for_position, &u))
		return 2;
	usleep(50000);
	puts("held");
	fflush(stdout);
	good = good && lose(&u) && (gone || go_on(&u));
	puts(good ? "ok" : "not ok");
	return !good;
}
