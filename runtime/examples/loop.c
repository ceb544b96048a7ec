// SPDX-License-Identifier: MIT
/*
 * An event loop that keeps two streams busy. Each job adds the squares of numbers that
 * the CPU has written, and needs scratch memory for them. A thread stands for the device:
 * it does the jobs in order, and signals a position of the job's stream after each.
 */
#include <accmem_pool.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define STREAMS 2
#define JOBS 3 /* of each stream */
#define COUNT 1000u

/* A job as the device sees it: memory, and the position that ends the job. */
struct job {
	uint64_t *numbers; /* numbers[0] becomes the result */
	uint64_t *scratch;
	uint64_t position;
	int stream;
};

struct stream {
	int fd;
	uint64_t submitted; /* the last position that a job ends */
	uint64_t *numbers; /* of the job in flight */
};

static struct accmem_pool *pool;
static struct stream streams[STREAMS];
static int queue[2]; /* a pipe with the jobs of the device */
static int running; /* jobs in flight */

static void check(int ret, const char *what)
{
	if (ret) {
		fprintf(stderr, "accmem-loop: %s: %s (%s)\n", what,
			strerror(-ret), accmem_last_error());
		exit(EXIT_FAILURE);
	}
}

static void *device(void *unused)
{
	struct job job;
	uint64_t sum;
	unsigned int i;

	while (read(queue[0], &job, sizeof(job)) == sizeof(job)) {
		for (i = 0, sum = 0; i < COUNT; i++) {
			job.scratch[i] = job.numbers[i] * job.numbers[i];
			sum += job.scratch[i];
		}
		job.numbers[0] = sum;
		/* The next job of the stream may get the memory now, others at the position. */
		check(accmem_pool_release_at(pool, job.scratch, job.stream,
					     job.position),
		      "release");
		check(accmem_signal(job.stream, job.position), "signal");
	}
	return unused;
}

/* Memory for the CPU and the device; or for work on a stream only. */
static void *allocate(const struct stream *on)
{
	struct accmem_pool_request req = {
		.length = COUNT * sizeof(uint64_t),
		.mapped = 1,
	};

	if (on) {
		req.on_stream = 1;
		req.stream = on->fd;
	}
	check(accmem_pool_allocate(pool, &req), "allocate");
	return req.pointer;
}

static void submit(struct stream *s)
{
	struct job job = { .stream = s->fd, .position = s->submitted + 1 };
	unsigned int i;
	int ret;

	job.numbers = allocate(NULL);
	for (i = 0; i < COUNT; i++)
		job.numbers[i] = i + job.position;
	job.scratch = allocate(s);
	if (write(queue[1], &job, sizeof(job)) != sizeof(job))
		exit(EXIT_FAILURE);
	/* the descriptor becomes readable at this position, which may be reached already */
	ret = accmem_try_wait(s->fd, job.position);
	check(ret == -EAGAIN ? 0 : ret, "wait");
	s->numbers = job.numbers;
	s->submitted = job.position;
	running++;
}

/* The job in flight of a stream is done. Its descriptor stays readable without a next job. */
static void complete(int epoll, struct stream *s)
{
	/* what the job has stored is seen after this call */
	check(accmem_try_wait(s->fd, s->submitted), "wait");
	printf("stream %d, job %llu: %llu\n", (int)(s - streams),
	       (unsigned long long)s->submitted,
	       (unsigned long long)s->numbers[0]);
	check(accmem_pool_release(pool, s->numbers), "release");
	running--;
	if (s->submitted < JOBS)
		submit(s);
	else
		epoll_ctl(epoll, EPOLL_CTL_DEL, s->fd, NULL);
}

static void watch(int epoll, int fd, struct stream *s)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = s };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event)) {
		perror("accmem-loop: epoll");
		exit(EXIT_FAILURE);
	}
}

static void run(int epoll)
{
	struct epoll_event event;

	while (running) {
		if (epoll_wait(epoll, &event, 1, -1) != 1)
			continue;
		/* the device was reset or removed, and the memory of the jobs is lost */
		if (event.events & (EPOLLERR | EPOLLHUP))
			check(-ENODEV, "poll");
		if (event.data.ptr)
			complete(epoll, event.data.ptr);
		else /* another context waits for memory */
			accmem_pool_yield(pool);
	}
}

int main(int argc, char **argv)
{
	struct accmem_pool_options options = { .flags = ACCMEM_POOL_PASSIVE };
	int i, epoll = epoll_create1(EPOLL_CLOEXEC);
	struct accmem_context *ctx;
	pthread_t thread;

	check(accmem_open(argc > 1 ? argv[1] : NULL, &ctx), "open");
	check(accmem_pool_create(ctx, &options, &pool), "pool");
	if (pipe(queue) || pthread_create(&thread, NULL, device, NULL))
		return EXIT_FAILURE;
	watch(epoll, accmem_fd(ctx), NULL);
	for (i = 0; i < STREAMS; i++) {
		check(accmem_open_stream(ctx, &streams[i].fd), "stream");
		submit(&streams[i]);
		watch(epoll, streams[i].fd, &streams[i]);
	}
	run(epoll);
	close(queue[1]);
	pthread_join(thread, NULL);
	for (i = 0; i < STREAMS; i++)
		close(streams[i].fd);
	accmem_pool_destroy(pool);
	accmem_close(ctx);
	return 0;
}
