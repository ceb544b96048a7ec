// SPDX-License-Identifier: GPL-2.0
/*
 * ALLOC with ACCMEM_ALLOC_WAIT: which waiter is served first, which requests may
 * bypass a waiter, and how memory is reserved for a waiter that was bypassed too
 * often.
 */
#include "wait_util.h"

#define USER 12345

WAIT_FIXTURE(wait_order)

TEST_F(wait_order, the_first_to_come_is_served_first)
{
	struct waiter w[4] = {};
	int64_t wakeups;
	int i;

	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(put_asleep(&w[i], variant->path, self->fd, PIECE,
				       i + 1));
	}
	wakeups = waiting(variant->path, "wakeups");
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(0,
			  waiter_serve(&w[i], self->other, self->a[i].address));
		EXPECT_EQ(i, w[i].order);
	}
	EXPECT_EQ(wakeups + 4, waiting(variant->path, "wakeups"));
}

TEST_F(wait_order, all_that_fit_are_woken_once_each)
{
	struct waiter w[PIECES] = {};
	int64_t wakeups, in_vain;
	int i;

	for (i = 0; i < PIECES; i++)
		ASSERT_TRUE(put_asleep(&w[i], variant->path, self->fd, PIECE,
				       i + 1));
	wakeups = waiting(variant->path, "wakeups");
	in_vain = waiting(variant->path, "in_vain");
	close(self->other);
	self->other = -1;
	for (i = 0; i < PIECES; i++) {
		EXPECT_EQ(0, waiter_end(&w[i]));
	}
	EXPECT_EQ(wakeups + PIECES, waiting(variant->path, "wakeups"));
	EXPECT_EQ(in_vain, waiting(variant->path, "in_vain"));
}

TEST_F(wait_order, too_little_wakes_nobody)
{
	struct waiter w = {};
	int64_t wakeups;

	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, 3 * PIECE, 1));
	wakeups = waiting(variant->path, "wakeups");
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	EXPECT_FALSE(waiter_is_done(&w, 50));
	EXPECT_EQ(wakeups, waiting(variant->path, "wakeups"));
	EXPECT_EQ(0, waiter_serve(&w, self->other, self->a[2].address));
	EXPECT_EQ(wakeups + 1, waiting(variant->path, "wakeups"));
}

TEST_F(wait_order, a_younger_one_that_fits_passes)
{
	struct waiter large = {}, small = {};

	ASSERT_TRUE(put_asleep(&large, variant->path, self->fd, 3 * PIECE, 1));
	ASSERT_TRUE(put_asleep(&small, variant->path, self->fd, PIECE, 2));
	EXPECT_EQ(0, waiter_serve(&small, self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[2].address));
	EXPECT_EQ(0, waiter_serve(&large, self->other, self->a[3].address));
}

TEST_F(wait_order, a_large_request_is_passed_a_bounded_number_of_times)
{
	struct waiter w = {};
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_param_set("waiter_reserve_ms", RESERVE_LONG_MS));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, 2 * PIECE, 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	EXPECT_EQ(16, pass_until_refused(self->other, 100));
	EXPECT_EQ(1, in_state(variant->path, "reserved"));
	/* freed memory is reserved for the waiter */
	EXPECT_EQ(-ENOMEM, accmem_alloc_bytes(self->other, 4096, 0, &a));
	EXPECT_EQ(-ETIMEDOUT,
		  alloc_wait(self->other, 4096, in_ms(self->fd, 20), &a));
	EXPECT_EQ(0, waiter_serve(&w, self->other, self->a[1].address));
	/* the reservation has ended */
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[2].address));
	EXPECT_EQ(0, accmem_alloc_bytes(self->other, PIECE, 0, &a));
}

/*
 * Lets a buffer grow to a piece and shrink again until that fails. Returns the number
 * of successes.
 */
static int grow_until_refused(int fd, uint64_t address, int most)
{
	struct accmem_realloc r;
	int n = 0;

	while (n < most && !accmem_ioctl_realloc(fd, address, PIECE, 0, &r)) {
		address = r.address;
		if (accmem_ioctl_realloc(fd, address, PIECE / 2, 0, &r))
			return -1;
		n++;
	}
	return n;
}

/* Growth in place takes memory, so it counts as a bypass. */
TEST_F(wait_order, growth_passes_a_large_request_a_bounded_number_of_times)
{
	struct accmem_alloc a = { .length = PIECE / 2,
				  .alignment = PIECE,
				  .flags = ACCMEM_ALLOC_RESIZABLE };
	struct waiter w = {};

	ASSERT_EQ(0, accmem_param_set("waiter_reserve_ms", RESERVE_LONG_MS));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->other, &a));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, 2 * PIECE, 1));
	EXPECT_EQ(16, grow_until_refused(self->other, a.address, 100));
	EXPECT_EQ(1, in_state(variant->path, "reserved"));
	EXPECT_EQ(0, waiter_end_by_close(&w, &self->other));
}

/*
 * A reservation holds free memory of the device. It holds up neither requests for host
 * memory nor small buffers that fit in slab pages which their context has already.
 */
TEST_F(wait_order, a_reservation_holds_up_nobody_who_needs_nothing_of_it)
{
	struct accmem_alloc a = { .length = 64 }, host = {
		.length = PIECE,
		.kind = ACCMEM_KIND_HOST,
		.flags = ACCMEM_ALLOC_WAIT,
	};
	struct waiter w = {};

	ASSERT_EQ(0, accmem_param_set("waiter_reserve_ms", RESERVE_LONG_MS));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->other, &a));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, 2 * PIECE, 1));
	while (!accmem_alloc_bytes(self->other, KIB(4), 0, &a))
		ASSERT_EQ(0, accmem_ioctl_free(self->other, a.address));
	ASSERT_EQ(1, in_state(variant->path, "reserved"));
	host.deadline_ns = in_ms(self->fd, 2000);
	EXPECT_EQ(0, accmem_ioctl_alloc(self->other, &host));
	EXPECT_EQ(0, alloc_wait(self->other, 64, in_ms(self->fd, 2000), &a));
	EXPECT_EQ(-ETIMEDOUT,
		  alloc_wait(self->other, KIB(4), in_ms(self->fd, 20), &a));
	EXPECT_EQ(1, in_state(variant->path, "reserved"));
	EXPECT_EQ(0, waiter_end_by_close(&w, &self->other));
}

/* An ALLOC of host memory bypasses no waiter for device memory. */
TEST_F(wait_order, host_memory_is_no_pass)
{
	struct waiter w = {};
	struct accmem_alloc a;
	unsigned int i;

	ASSERT_EQ(0, accmem_param_set("waiter_reserve_ms", RESERVE_LONG_MS));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, 2 * PIECE, 1));
	for (i = 0; i < 20; i++) {
		a = (struct accmem_alloc){ .length = KIB(4),
					   .kind = ACCMEM_KIND_HOST };
		ASSERT_EQ(0, accmem_ioctl_alloc(self->other, &a));
		ASSERT_EQ(0, accmem_ioctl_free(self->other, a.address));
	}
	EXPECT_EQ(0, in_state(variant->path, "reserved"));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	EXPECT_EQ(0, accmem_alloc_bytes(self->other, KIB(4), 0, &a));
	EXPECT_EQ(0, waiter_end_by_close(&w, &self->other));
}

TEST_F(wait_order, memory_is_not_reserved_for_ever)
{
	struct waiter w = {}, next = {};
	int64_t expired = waiting(variant->path, "expired");
	uint64_t until = accmem_ms() + PATIENCE_MS;
	/* a user whose reservation was unused in another test gets none for a while */
	int fd = opened_by(variant->path, USER + 1);
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_param_set("waiter_reserve_ms", RESERVE_LONG_MS));
	ASSERT_TRUE(put_asleep(&w, variant->path, fd, 4 * PIECE, 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	/* a refusal would end the reservation early */
	EXPECT_EQ(16, pass_until_reserved(variant->path, self->other, 100));
	ASSERT_EQ(0, accmem_param_set("waiter_reserve_ms", 400));
	/* the reservation expires: another waiter gets memory */
	ASSERT_TRUE(waiter_start(&next, self->other, PIECE, FOREVER));
	EXPECT_EQ(0, waiter_end(&next));
	EXPECT_EQ(expired + 1, waiting(variant->path, "expired"));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, next.a.address));
	/* and so does an ALLOC that does not wait */
	while (accmem_alloc_bytes(self->other, PIECE, 0, &a) &&
	       accmem_ms() < until)
		usleep(1000);
	EXPECT_GT(until, accmem_ms());
	/* the first waiter has only lost its place in the queue */
	EXPECT_EQ(0, waiter_end_by_close(&w, &self->other));
	close(fd);
}

TEST_F(wait_order, users_take_turns)
{
	struct waiter w[4] = {};
	int i, user;

	user = opened_by(variant->path, USER);
	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(waiter_start(&w[i], i == 3 ? user : self->fd, PIECE,
					 FOREVER));
		ASSERT_TRUE(wait_for_state(variant->path, "asleep", i + 1));
	}
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0,
			  accmem_ioctl_free(self->other, self->a[i].address));
		while (atomic_load(&order) != i + 1)
			usleep(1000);
	}
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(0, waiter_end(&w[i]));
	}
	/* the last waiter belongs to the other user, so it is served second */
	EXPECT_EQ(0, w[0].order);
	EXPECT_EQ(1, w[3].order);
	EXPECT_EQ(2, w[1].order);
	EXPECT_EQ(3, w[2].order);
	close(user);
}

/* A change applies to existing waiters and to existing reservations. */
TEST_F(wait_order, the_time_of_reservations_can_be_changed)
{
	uint64_t until = accmem_ms() + PATIENCE_MS;
	struct waiter w = {};
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_param_set("waiter_reserve_ms", 0));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, 2 * PIECE, 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	EXPECT_EQ(100, pass_until_refused(self->other, 100));
	ASSERT_EQ(0, accmem_param_set("waiter_reserve_ms", 600000));
	EXPECT_TRUE(wait_for_state(variant->path, "reserved", 1));
	EXPECT_EQ(1, pass_until_refused(self->other, 100));
	ASSERT_EQ(0, accmem_param_set("waiter_reserve_ms", 10));
	while (accmem_alloc_bytes(self->other, PIECE, 0, &a) &&
	       accmem_ms() < until)
		usleep(1000);
	EXPECT_GT(until, accmem_ms());
	EXPECT_EQ(0, waiter_end_by_close(&w, &self->other));
}

/*
 * Allocates and frees 64 KiB for some time. True if at most one in a hundred requests was
 * refused.
 */
static bool others_are_served(int fd, unsigned int ms)
{
	uint64_t until = accmem_ms() + ms;
	unsigned int refused = 0, n = 0;
	struct accmem_alloc a;

	/* at least 200 requests, for which a slow machine needs longer than @ms */
	for (; n <= 200 || accmem_ms() < until; n++) {
		if (accmem_alloc_bytes(fd, KIB(64), 0, &a))
			refused++;
		else
			accmem_ioctl_free(fd, a.address);
	}
	printf("# %u of %u requests were refused\n", refused, n);
	return refused * 100 <= n;
}

/*
 * A request of another user waits for all memory, of which @other has 4 KiB. Nearly all
 * memory is free: the request must not keep others from it.
 */
static bool wait_in_vain(const char *path, int other,
			 const struct accmem_alloc *pieces)
{
	int victim = accmem_opened(path), fd = opened_by(path, USER), i, err;
	struct waiter w = {};
	struct accmem_alloc a;
	bool served;

	err = accmem_param_set("waiter_reserve_ms", 200);
	if (err || !put_asleep(&w, path, fd, LEFT, 1))
		return false;
	for (i = 0; i < PIECES && !err; i++) {
		err = accmem_ioctl_free(other, pieces[i].address);
		if (!i && !err)
			err = accmem_alloc_bytes(other, KIB(4), 0, &a);
	}
	/* A reservation that a busy host has made long counts less in a longer time. */
	served = others_are_served(victim, 600) ||
		 others_are_served(victim, 3000) ||
		 others_are_served(victim, 10000);
	err = err ?: accmem_ioctl_free(other, a.address);
	close(victim);
	err = err ?: waiter_end(&w);
	close(fd);
	return !err && served;
}

TEST_F(wait_order, a_request_that_its_own_memory_prevents_costs_others_nothing)
{
	int64_t reservations = waiting(variant->path, "reservations");
	int victim = accmem_opened(variant->path);
	struct waiter w = {};
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_param_set("waiter_reserve_ms", 200));
	/* a folio for each context */
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(4), 0, &a));
	accmem_catch(SIGUSR1, 0);
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, self->info.capacity,
			       1));
	EXPECT_TRUE(others_are_served(victim, 300));
	EXPECT_EQ(reservations, waiting(variant->path, "reservations"));
	pthread_kill(w.thread, SIGUSR1);
	EXPECT_EQ(-EINTR, waiter_end(&w));
	close(victim);
}

TEST_F(wait_order, a_request_that_idle_memory_prevents_costs_others_little)
{
	EXPECT_TRUE(wait_in_vain(variant->path, self->other, self->a));
}

/* Memory that was free when a reservation began is for everybody. */
TEST_F(wait_order, a_reservation_holds_only_what_is_freed_after_it_began)
{
	uint64_t until = accmem_ms() + PATIENCE_MS;
	struct waiter w = {};
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_param_set("waiter_reserve_ms", RESERVE_LONG_MS));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, 2 * PIECE, 1));
	while (!accmem_alloc_bytes(self->other, KIB(64), 0, &a) &&
	       !in_state(variant->path, "reserved") && accmem_ms() < until)
		ASSERT_EQ(0, accmem_ioctl_free(self->other, a.address));
	ASSERT_EQ(1, in_state(variant->path, "reserved"));
	EXPECT_EQ(0, accmem_alloc_bytes(self->other, PIECE / 2, 0, &a));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, a.address));
	EXPECT_EQ(-ENOMEM, accmem_alloc_bytes(self->other, PIECE / 2, 0, &a));
	EXPECT_EQ(0, waiter_end_by_close(&w, &self->other));
}

WAIT_MAIN
