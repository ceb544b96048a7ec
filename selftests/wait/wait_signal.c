// SPDX-License-Identifier: GPL-2.0
/*
 * ALLOC with ACCMEM_ALLOC_WAIT and signals. A call that is restarted after the handler
 * keeps its place in the queue. A call that is not made again loses it after a while.
 */
#include "wait_util.h"

WAIT_FIXTURE(wait_signal)

TEST_F(wait_signal, a_signal_ends_it)
{
	struct waiter w = {};

	accmem_catch(SIGUSR1, 0);
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	pthread_kill(w.thread, SIGUSR1);
	EXPECT_EQ(-EINTR, waiter_end(&w));
	EXPECT_EQ(0, waiting(variant->path, "waiting"));
}

TEST_F(wait_signal, a_call_that_a_signal_restarts_keeps_its_place)
{
	struct waiter first = {}, second = {};
	int64_t signals;

	accmem_catch(SIGUSR1, SA_RESTART);
	ASSERT_TRUE(put_asleep(&first, variant->path, self->fd, PIECE, 1));
	ASSERT_TRUE(put_asleep(&second, variant->path, self->fd, PIECE, 2));
	signals = waiting(variant->path, "signals");
	pthread_kill(first.thread, SIGUSR1);
	while (waiting(variant->path, "signals") == signals)
		usleep(1000);
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 2));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_TRUE(waiter_is_done(&first, PATIENCE_MS));
	EXPECT_FALSE(waiter_is_done(&second, 20));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	EXPECT_EQ(0, waiter_end(&first));
	EXPECT_EQ(0, waiter_end(&second));
}

/* returns when the thread has made the call again */
static bool interrupt(struct waiter *w, const char *path, const char *state)
{
	int64_t signals = waiting(path, "signals");

	pthread_kill(w->thread, SIGUSR1);
	while (waiting(path, "signals") == signals)
		usleep(1000);
	return wait_for_state(path, state, 1);
}

/*
 * starts a waiter for two pieces, frees one, and lets others bypass the waiter until
 * memory is reserved for it
 */
static bool waiter_start_reserved(struct waiter *w, const char *path, int fd,
				  int other, uint64_t freed)
{
	if (!waiter_start(w, fd, 2 * PIECE, FOREVER) ||
	    !wait_for_state(path, "asleep", 1) ||
	    accmem_ioctl_free(other, freed))
		return false;
	while (pass_until_refused(other, 100) == 100)
		usleep(1000);
	return true;
}

TEST_F(wait_signal, a_call_that_a_signal_restarts_keeps_what_is_reserved)
{
	struct waiter w = {};
	struct accmem_alloc a;

	accmem_catch(SIGUSR1, SA_RESTART);
	ASSERT_EQ(0, accmem_param_set("waiter_reserve_ms", RESERVE_LONG_MS));
	ASSERT_TRUE(waiter_start_reserved(&w, variant->path, self->fd,
					  self->other, self->a[0].address));
	EXPECT_TRUE(interrupt(&w, variant->path, "reserved"));
	EXPECT_EQ(-ENOMEM, accmem_alloc_bytes(self->other, 4096, 0, &a));
	EXPECT_EQ(0, waiter_serve(&w, self->other, self->a[1].address));
}

static atomic_int in_handler, let_go;

static void linger(int sig)
{
	(void)sig;
	atomic_store(&in_handler, 1);
	while (!atomic_load(&let_go))
		usleep(1000);
}

/* sends a signal to a waiting thread; the handler of the signal runs until let_go is set */
static void interrupt_for_long(struct waiter *w, int sig)
{
	pthread_kill(w->thread, sig);
	while (!atomic_load(&in_handler))
		usleep(1000);
}

TEST_F(wait_signal, a_call_that_does_not_come_back_is_forgotten)
{
	struct sigaction action = { .sa_handler = linger,
				    .sa_flags = SA_RESTART };
	struct waiter first = {}, second = {};

	sigaction(SIGUSR1, &action, NULL);
	ASSERT_TRUE(put_asleep(&first, variant->path, self->fd, PIECE, 1));
	interrupt_for_long(&first, SIGUSR1);
	/* the call has not come back: others get the memory */
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_TRUE(waiter_start(&second, self->fd, PIECE, FOREVER));
	EXPECT_EQ(0, waiter_end(&second));
	ASSERT_TRUE(wait_for_state(variant->path, "interrupted", 0));
	EXPECT_EQ(0, waiting(variant->path, "waiting"));
	/* the call starts again, at the end of the queue */
	atomic_store(&let_go, 1);
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	EXPECT_EQ(0, waiter_serve(&first, self->other, self->a[1].address));
}

/*
 * Such a call is forgotten also while another waiter is restarted again and again and
 * has memory reserved.
 */
TEST_F(wait_signal, a_call_is_forgotten_beside_one_that_is_restarted_often)
{
	struct sigaction action = { .sa_handler = linger,
				    .sa_flags = SA_RESTART };
	struct waiter often = {}, lost = {};
	unsigned int i;

	accmem_catch(SIGUSR1, SA_RESTART);
	sigaction(SIGUSR2, &action, NULL);
	ASSERT_EQ(0, accmem_param_set("waiter_reserve_ms", RESERVE_LONG_MS));
	ASSERT_TRUE(waiter_start_reserved(&often, variant->path, self->fd,
					  self->other, self->a[0].address));
	ASSERT_TRUE(waiter_start(&lost, self->other, PIECE, FOREVER));
	/* beside the waiter with the reservation */
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	interrupt_for_long(&lost, SIGUSR2);
	for (i = 0; i < 1000 && waiting(variant->path, "waiting") > 1; i++) {
		EXPECT_TRUE(interrupt(&often, variant->path, "reserved"));
		usleep(10000);
	}
	EXPECT_EQ(1, waiting(variant->path, "waiting"));
	ASSERT_EQ(0, accmem_param_set("waiter_reserve_ms", 1000));
	EXPECT_EQ(0, waiter_serve(&often, self->other, self->a[1].address));
	atomic_store(&let_go, 1);
	EXPECT_EQ(0, waiter_serve(&lost, self->other, self->a[2].address));
}

/*
 * Such a call is forgotten also while other waiters have memory reserved and get it,
 * again and again.
 */
TEST_F(wait_signal, a_call_is_forgotten_beside_reservations_that_are_of_use)
{
	struct sigaction action = { .sa_handler = linger,
				    .sa_flags = SA_RESTART };
	struct waiter lost = {}, w = {};
	uint64_t until;
	unsigned int i;

	sigaction(SIGUSR2, &action, NULL);
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", PIECES * PIECE));
	ASSERT_EQ(0, accmem_param_set("waiter_reserve_ms", 900));
	ASSERT_TRUE(waiter_start_in(&lost, variant->path, self->other, PIECE,
				    "limited", 1));
	interrupt_for_long(&lost, SIGUSR2);
	until = accmem_ms() + PATIENCE_MS;
	while (waiting(variant->path, "waiting") && accmem_ms() < until) {
		ASSERT_TRUE(waiter_start_reserved(&w, variant->path, self->fd,
						  self->other,
						  self->a[0].address));
		ASSERT_EQ(0, waiter_serve(&w, self->other, self->a[1].address));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, w.a.address));
		for (i = 0; i < 2; i++)
			ASSERT_EQ(0, accmem_alloc_bytes(self->other, PIECE, 0,
							&self->a[i]));
	}
	EXPECT_EQ(0, waiting(variant->path, "waiting"));
	ASSERT_EQ(0, accmem_param_set("waiter_reserve_ms", 1000));
	atomic_store(&let_go, 1);
	EXPECT_EQ(0, waiter_serve(&lost, self->other, self->a[2].address));
}

static int wait_in_child(void *arg)
{
	struct accmem_alloc a;

	return alloc_wait(*(int *)arg, PIECE, FOREVER, &a);
}

TEST_F(wait_signal, a_waiter_that_is_killed_leaves_its_turn)
{
	struct waiter w = {};
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid)
		_exit(wait_in_child(&self->fd));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 2));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	EXPECT_EQ(1, waiting(variant->path, "waiting"));
	EXPECT_EQ(0, waiter_serve(&w, self->other, self->a[0].address));
}

WAIT_MAIN
