// SPDX-License-Identifier: MIT
/*
 * An event loop of one thread that runs the CTAs of several clusters, as a simulator
 * does: pairs on two SMs, whose calls are queued, each made for a whole warp. Before
 * that, one CTA by itself with a window.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <tcgen05.h>

#define CLUSTERS 3
#define CTAS (2 * CLUSTERS)
#define COLUMNS 256u
#define ALL_LANES 0xffffffffu

struct sim_cta {
	struct tcgen05_cta *cta;
	struct tcgen05_warp *warp;
	uint64_t id;
	unsigned int number, sm;
};

static struct sim_cta ctas[CTAS];
static const struct accmem_tmem_map *map[2];
static unsigned int running;

static void check(int ret, const char *what)
{
	if (ret) {
		fprintf(stderr, "accmem-events: %s: %s\n", what,
			strerror(-ret));
		exit(EXIT_FAILURE);
	}
}

/* the registers of a warp that hold the same in each lane */
struct lanes {
	uint32_t lane[TCGEN05_WARP_LANES];
};

static struct lanes in_each_lane(uint32_t value)
{
	struct lanes lanes;
	int i;

	for (i = 0; i < TCGEN05_WARP_LANES; i++)
		lanes.lane[i] = value;
	return lanes;
}

/* an alloc stores its address in the CTA's shared memory, and nowhere else */
static void use_window(struct accmem_context *ctx)
{
	static uint32_t shared[64], outside;
	struct tcgen05_place place = { .launch = 1,
				       .cta_group = 1,
				       .window = shared,
				       .window_length = sizeof(shared) };
	uint32_t *destinations[TCGEN05_WARP_LANES];
	struct tcgen05_warp *warp;
	struct tcgen05_cta *cta;
	int i;

	for (i = 0; i < TCGEN05_WARP_LANES; i++)
		destinations[i] = &shared[5];
	check(tcgen05_launch(ctx, &place, &cta), "launch");
	check(tcgen05_warp_create(cta, TCGEN05_WARP_LANES, &warp), "warp");
	if (tcgen05_alloc(cta, &outside, 32) != -EFAULT)
		check(-EPROTO, "alloc outside of the window");
	check(tcgen05_warp_alloc_all(warp, ALL_LANES, destinations,
				     in_each_lane(32).lane),
	      "alloc");
	printf("window: 32 columns at column %u\n", tcgen05_column(shared[5]));
	check(tcgen05_dealloc(cta, shared[5], 32), "dealloc");
	tcgen05_warp_destroy(warp);
	tcgen05_exit(cta);
}

/* the CTA goes on to its first call, which waits for the peer and for columns */
static void begin(struct sim_cta *c, int epoll)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };
	struct accmem_cta_query query;

	check(tcgen05_query(c->cta, &query), "query");
	c->id = query.id;
	c->sm = query.sm;
	check(tcgen05_warp_create(c->cta, TCGEN05_WARP_LANES, &c->warp),
	      "warp");
	tcgen05_warp_set_number(c->warp, 1);
	if (!map[c->sm])
		check(tcgen05_map(c->cta, &map[c->sm]), "map");
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, tcgen05_fd(c->cta), &event))
		check(-errno, "epoll");
	check(tcgen05_warp_queue_alloc_all(c->warp, ALL_LANES,
					   in_each_lane(COLUMNS).lane, 0, 0),
	      "alloc");
	running++;
}

static void launch_clusters(struct accmem_context *ctx, int epoll)
{
	struct tcgen05_cta *pair[2];
	unsigned int i;

	for (i = 0; i < CTAS; i += 2) {
		struct tcgen05_place places[2] = {
			{ .launch = 2,
			  .cluster = i / 2,
			  .rank = 0,
			  .sm = 0,
			  .cta_group = 2 },
			{ .launch = 2,
			  .cluster = i / 2,
			  .rank = 1,
			  .sm = 1,
			  .cta_group = 2 },
		};

		check(tcgen05_launch_cluster(ctx, places, 2, pair), "cluster");
		ctas[i] = (struct sim_cta){ .cta = pair[0], .number = i };
		ctas[i + 1] =
			(struct sim_cta){ .cta = pair[1], .number = i + 1 };
		begin(&ctas[i], epoll);
		begin(&ctas[i + 1], epoll);
	}
}

/* what the emulation of tcgen05.ld asks before each access */
static int may_access(const struct sim_cta *c, uint32_t column,
		      uint32_t columns)
{
	return tcgen05_owners(map[c->sm], c->id, column, columns) ==
	       TCGEN05_SELF;
}

static void use_columns(struct sim_cta *c, uint32_t address)
{
	uint32_t column = tcgen05_column(address);

	printf("CTA %u: %u columns at column %u of SM %u\n", c->number, COLUMNS,
	       column, c->sm);
	if (!may_access(c, column, COLUMNS) ||
	    may_access(c, (column + COLUMNS) % 512, 1))
		check(-EACCES, "map page");
	check(tcgen05_warp_queue_dealloc_all(c->warp, ALL_LANES,
					     in_each_lane(address).lane,
					     in_each_lane(COLUMNS).lane, 0, 0),
	      "dealloc");
}

static void end(struct sim_cta *c)
{
	check(tcgen05_warp_relinquish_all(c->warp, ALL_LANES), "relinquish");
	tcgen05_warp_destroy(c->warp);
	tcgen05_exit(c->cta);
	running--;
}

/* an event: the call of a CTA has ended */
static void step(struct sim_cta *c)
{
	struct accmem_cta_completion done;

	check(tcgen05_next_completion(c->cta, &done), "completion");
	check(done.result, "queued call");
	if (done.call == _IOC_NR(ACCMEM_IOC_CTA_ALLOC))
		use_columns(c, done.address);
	else
		end(c);
}

int main(int argc, char **argv)
{
	struct tcgen05_config config = { .nr_sms = 2, .strict = 1 };
	struct accmem_context *ctx;
	struct epoll_event event;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	check(accmem_open(argc > 1 ? argv[1] : NULL, &ctx), "open");
	check(tcgen05_setup(ctx, &config), "setup");
	use_window(ctx);
	launch_clusters(ctx, epoll);
	while (running) {
		if (epoll_wait(epoll, &event, 1, -1) == 1)
			step(event.data.ptr);
		else if (errno != EINTR)
			check(-errno, "epoll");
	}
	if (tcgen05_owner(map[0], 0) || tcgen05_owner(map[1], 511))
		check(-EBUSY, "columns of nobody");
	tcgen05_unmap(map[0]);
	tcgen05_unmap(map[1]);
	accmem_close(ctx);
	return 0;
}
