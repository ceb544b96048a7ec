/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads that use every feature of a device while the device is reset, removed and added. The
 * results of the calls are not known in advance, but each error is documented, and new memory
 * has no old bytes. The threads open the device anew after each context.
 */
#ifndef STORM_H
#define STORM_H

#include "export_util.h"
#include "revoke_util.h"
#include "stream_util.h"

#define THREADS 5
#define BUFFERS 8

struct worker {
	pthread_t thread;
	const char *directory; /* in sysfs, of the parent of the accmem device */
	atomic_int *stop;
	uint64_t seed;
	const char *what; /* what was wrong, or NULL */
	int result;
	atomic_ulong good;
	unsigned long refused;
};

struct buffer {
	struct accmem_alloc a;
	char *p;
	uint64_t length;
};

static bool is_known(int err)
{
	static const int known[] = { 0,		 -ECONNRESET, -ENODEV,
				     -ENOMEM,	 -ETIMEDOUT,  -EDQUOT,
				     -ECANCELED, -EBUSY,      -EAGAIN,
				     -ENOENT,	 -EEXIST,     -ERANGE };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(known); i++) {
		if (err == known[i])
			return true;
	}
	return false;
}

/* Counts a result, and notes one that must not be. */
static int saw(struct worker *w, const char *what, int err)
{
	if (err > 0)
		err = 0;
	if (err)
		w->refused++;
	else
		w->good++;
	if (!is_known(err) && !w->what) {
		w->what = what;
		w->result = err;
	}
	return err;
}

static void buffer_drop(struct worker *w, int fd, struct buffer *b)
{
	if (b->a.address)
		saw(w, "FREE", accmem_ioctl_free(fd, b->a.address));
	if (b->p && accmem_random(&w->seed) % 2) {
		bus_try(b->p, true);
		munmap(b->p, b->length);
		b->p = NULL;
	} else if (b->p) {
		munmap(b->p, b->length);
	}
	memset(b, 0, sizeof(*b));
}

/* A new buffer is zero, whatever was there before. */
static void buffer_make(struct worker *w, int fd, struct buffer *b)
{
	uint32_t r = accmem_random(&w->seed);
	uint64_t at = 0;
	volatile bool dirty = false;

	b->length = r % 3 ? MIB(1) << r % 2 : 64ull << r % 8;
	b->a = (struct accmem_alloc){
		.length = b->length,
		.flags = r & 8 ? ACCMEM_ALLOC_RESIZABLE : 0,
	};
	if (r % 16 == 1) {
		b->a.flags |= ACCMEM_ALLOC_WAIT;
		b->a.deadline_ns = stream_now() + 20000000;
	}
	if (r % 16 == 2) {
		b->a.kind = ACCMEM_KIND_SHARED;
		b->a.flags = 0;
	} else if (r % 16 == 3) {
		b->a.kind = ACCMEM_KIND_HOST;
	}
	if (saw(w, "ALLOC", accmem_ioctl_alloc(fd, &b->a))) {
		b->a.address = 0;
		return;
	}
	if (b->length < 4096)
		return;
	b->p = accmem_mmap(fd, &b->a, b->length, RW);
	while (b->p && at < b->length) {
		if (sigsetjmp(bus_jump, 1))
			break;
		if (*(volatile char *)(b->p + at))
			dirty = true;
		*(volatile char *)(b->p + at) = 0x55;
		at += 4096;
	}
	if (dirty && !w->what)
		w->what = "bytes of before";
}

static void use_access(struct worker *w, int fd, struct buffer *b)
{
	if (b->a.address && b->length >= 64) {
		saw(w, "ACCESS", device_fill(fd, b->a.address, 64, 0x33));
		saw(w, "ACCESS", device_byte(fd, b->a.address));
	}
}

static void use_realloc(struct worker *w, int fd, struct buffer *b)
{
	struct accmem_realloc r;

	if (!b->a.address || !(b->a.flags & ACCMEM_ALLOC_RESIZABLE) || b->p)
		return;
	if (!saw(w, "REALLOC",
		 accmem_ioctl_realloc(fd, b->a.address, b->length * 2, 0, &r)))
		b->a.address = r.address;
}

static void use_stream(struct worker *w, int fd, struct buffer *b, int stream,
		       uint64_t *position)
{
	if (stream < 0 || !b->a.address)
		return;
	++*position;
	if (saw(w, "FREE", stream_free(fd, b->a.address, stream, *position)))
		return;
	b->a.address = 0;
	buffer_drop(w, fd, b);
	saw(w, "SIGNAL", stream_signal(stream, *position));
	saw(w, "WAIT", stream_wait(stream, *position, 0, stream_in_ms(100)));
}

static void use_pin(struct buffer *b)
{
	struct iovec iov = { b->p, 4096 };
	int pipes[2];

	if (!b->p || pipe2(pipes, O_NONBLOCK))
		return;
	if (vmsplice(pipes[1], &iov, 1, 0) > 0)
		usleep(1000);
	close(pipes[0]);
	close(pipes[1]);
}

/* A second name of the memory in the same context. */
static void use_export(struct worker *w, int fd, struct buffer *b)
{
	struct accmem_import_buffer import = { .size = sizeof(import) };

	if (!b->a.address || b->length < 4096 || b->a.kind)
		return;
	import.fd = export_all(fd, &b->a);
	if (saw(w, "EXPORT", import.fd) < 0)
		return;
	if (!saw(w, "IMPORT", accmem_ioctl(fd, ACCMEM_IOC_IMPORT, &import)))
		saw(w, "FREE", accmem_ioctl_free(fd, import.address));
	close(import.fd);
}

static void use_tmem(struct worker *w, int fd)
{
	struct accmem_tmem_setup setup = { .size = sizeof(setup), .nr_sms = 1 };
	struct accmem_tmem_launch launch = { .size = sizeof(launch),
					     .launch = 1,
					     .cta_group = 1 };
	uint32_t address;
	struct accmem_cta_alloc a = { .size = sizeof(a),
				      .columns = 512,
				      .cta_group = 1,
				      .deadline_ns = stream_in_ms(5),
				      .destination = (uintptr_t)&address };

	saw(w, "SETUP", accmem_ioctl(fd, ACCMEM_IOC_TMEM_SETUP, &setup));
	/* EINVAL: a reset has ended what was set up */
	if (accmem_ioctl(fd, ACCMEM_IOC_TMEM_LAUNCH, &launch))
		return;
	saw(w, "CTA_ALLOC", accmem_ioctl(launch.fd, ACCMEM_IOC_CTA_ALLOC, &a));
	close(launch.fd);
}

/* A context, its stream and its buffers. */
struct use {
	int fd;
	int stream;
	uint64_t position;
	struct buffer b[BUFFERS];
};

static struct buffer *any_buffer(struct worker *w, struct use *u)
{
	return &u->b[accmem_random(&w->seed) % BUFFERS];
}

/* Make a call, or a few, of any kind. */
static void use_any(struct worker *w, struct use *u)
{
	struct buffer *b = any_buffer(w, u);
	struct accmem_info info;

	switch (accmem_random(&w->seed) % 10) {
	case 0:
	case 1:
		buffer_drop(w, u->fd, b);
		buffer_make(w, u->fd, b);
		break;
	case 2:
		use_access(w, u->fd, b);
		break;
	case 3:
		use_realloc(w, u->fd, b);
		break;
	case 4:
		use_stream(w, u->fd, b, u->stream, &u->position);
		break;
	case 5:
		use_pin(b);
		break;
	case 6:
		use_tmem(w, u->fd);
		break;
	case 7:
		use_export(w, u->fd, b);
		break;
	case 8:
		if (b->p)
			bus_try(b->p, true);
		saw(w, "INFO", accmem_ioctl_info(u->fd, &info));
		break;
	default:
		for (u->position++; accmem_random(&w->seed) % 4;)
			buffer_drop(w, u->fd, any_buffer(w, u));
	}
}

/* Close what is left, in one of several orders. */
static void use_end(struct worker *w, struct use *u)
{
	unsigned int i;

	if (u->stream >= 0 && accmem_random(&w->seed) % 2) {
		close(u->stream);
		u->stream = -1;
	}
	for (i = 0; i < BUFFERS; i++) {
		if (accmem_random(&w->seed) % 2)
			buffer_drop(w, u->fd, &u->b[i]);
	}
	close(u->fd);
	for (i = 0; i < BUFFERS; i++) {
		if (u->b[i].p) {
			bus_try(u->b[i].p, true);
			munmap(u->b[i].p, u->b[i].length);
		}
	}
	if (u->stream >= 0)
		close(u->stream);
}

/* One context, from its open to its close. */
static void use_device(struct worker *w, int fd)
{
	struct use u = { .fd = fd, .stream = stream_create(fd) };
	unsigned int i;

	saw(w, "STREAM_CREATE", u.stream);
	for (i = 0; i < 60 && !atomic_load(w->stop); i++)
		use_any(w, &u);
	use_end(w, &u);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	char path[64];
	int fd;

	while (!atomic_load(w->stop)) {
		fd = device_node(w->directory, path, sizeof(path)) ?
			     open(path, O_RDWR | O_CLOEXEC) :
			     -1;
		if (fd >= 0)
			use_device(w, fd);
		else
			usleep(1000);
	}
	return NULL;
}

static void storm_start(struct worker *w, const char *directory,
			atomic_int *stop)
{
	uint64_t seed = accmem_seed();
	unsigned int i;

	bus_is_caught();
	for (i = 0; i < THREADS; i++) {
		w[i].directory = directory;
		w[i].stop = stop;
		w[i].seed = seed + i * 7919;
		if (pthread_create(&w[i].thread, NULL, worker_main, &w[i]))
			err(1, "pthread_create");
	}
}

/* true when each thread has made a call that succeeded */
static bool storm_is_seen(struct worker *w)
{
	unsigned int i;

	for (i = 0; i < THREADS && atomic_load(&w[i].good); i++)
		;
	return i == THREADS;
}

/* Ends the threads. False if one of them has seen what must not be, or nothing. */
static bool storm_end(struct worker *w, atomic_int *stop)
{
	bool good = storm_is_seen(w);
	unsigned int i;

	atomic_store(stop, 1);
	for (i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		if (w[i].what) {
			good = false;
			fprintf(stderr, "# %s: %d\n", w[i].what, w[i].result);
		}
		fprintf(stderr, "# thread %u: %lu good, %lu refused\n", i,
			atomic_load(&w[i].good), w[i].refused);
	}
	return good;
}

#endif /* STORM_H */
