// SPDX-License-Identifier: MIT
/*
 * Shareable handles of the ACL front-end: numbers that stand for memory of a process.
 *
 * A share is a dma-buf of the memory of a handle, with a list of the processes that may
 * import it. The number of the share contains the id of the exporting process. Another
 * process sends the number to the socket of the exporting process, and gets the descriptor
 * of the dma-buf (socket.c). A thread of the exporting process answers. The thread starts
 * with the first share, and exists until the process ends.
 *
 * A named process is kept as an id and a pidfd, since a later process may get the same id.
 *
 * Locking: accmem_acl_shares_lock protects the shares, and the connections against fork().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "acl/error.h"
#include "acl/locks.h"
#include "acl/share.h"
#include "acl/socket.h"
#include "core/util.h"

#define MAX_PEERS 64 /* connections that have sent no request yet */
#define PATIENCE_MS 1000
#define PAUSE_MS 10

/**
 * struct named - a process that may import a share
 * @pid: process id
 * @pidfd: descriptor of the process, which tells whether the process has ended
 */
struct named {
	pid_t pid;
	int pidfd;
};

/**
 * struct share - memory for other processes
 * @number: the shareable handle
 * @fd: descriptor of the dma-buf
 * @any: any process of the user that knows @number may import
 * @nr_named: number of entries in @named
 * @named: the processes that may import
 * @next: next in @shares
 */
struct share {
	uint64_t number;
	int fd;
	bool any;
	size_t nr_named;
	struct named *named;
	struct share *next;
};

/* Protected by accmem_acl_shares_lock. */
static struct share *shares;
static int server = -1; /* the socket */
static uint64_t server_base; /* the upper half of the numbers */

static struct share **share_find(uint64_t number)
{
	struct share **link;

	for (link = &shares; *link && (*link)->number != number;
	     link = &(*link)->next)
		;
	return link;
}

static void named_close(struct named *named, size_t count)
{
	while (count--)
		accmem_close_locked(named[count].pidfd);
	free(named);
}

static void share_free(struct share *share)
{
	named_close(share->named, share->nr_named);
	accmem_close_locked(share->fd);
	free(share);
}

/* Returns 1 if the process has ended, 0 if it is alive, -1 if that is not known. */
static int has_ended(const struct named *named)
{
	struct pollfd end = { .fd = named->pidfd, .events = POLLIN };

	return poll(&end, 1, 0);
}

static bool may_import(const struct share *share, pid_t pid)
{
	size_t i;

	for (i = 0; i < share->nr_named; i++)
		if (share->named[i].pid == pid && !has_ended(&share->named[i]))
			return true;
	return share->any;
}

/* The lock is held until the answer is sent: no fork() happens, and no share is freed. */
static void serve(int connection)
{
	const struct share *share;
	uint64_t number;
	pid_t pid = accmem_acl_socket_request(connection, &number);

	if (pid <= 0)
		return;
	share = *share_find(number);
	accmem_acl_socket_answer(connection, share && may_import(share, pid) ?
						     share->fd :
						     -1);
}

/**
 * struct peers - what the thread waits for
 * @fds: the socket, then the connections in the order of their ages
 * @until: when a connection without a request is closed, in milliseconds
 * @count: number of connections
 */
struct peers {
	struct pollfd fds[1 + MAX_PEERS];
	int64_t until[1 + MAX_PEERS];
	unsigned int count;
};

/* Changed by the thread, under accmem_acl_shares_lock. */
static struct peers peers;

/* Remove a connection, and return its descriptor. */
static int peer_remove(unsigned int i)
{
	unsigned int behind = peers.count - i;
	int fd = peers.fds[i].fd;

	memmove(&peers.fds[i], &peers.fds[i + 1], behind * sizeof(*peers.fds));
	memmove(&peers.until[i], &peers.until[i + 1],
		behind * sizeof(*peers.until));
	peers.count--;
	return fd;
}

/*
 * Serve the connections that have a request. Remove these, and those that are too old. Returns
 * the number of the descriptors that are to be closed.
 */
static unsigned int peers_serve(int *closing)
{
	const int64_t now = accmem_acl_socket_now_ms();
	unsigned int i = 1, n = 0;

	pthread_mutex_lock(&accmem_acl_shares_lock);
	while (i <= peers.count) {
		if (peers.fds[i].revents)
			serve(peers.fds[i].fd);
		if (peers.fds[i].revents || now >= peers.until[i])
			closing[n++] = peer_remove(i);
		else
			i++;
	}
	pthread_mutex_unlock(&accmem_acl_shares_lock);
	return n;
}

/*
 * Accept a connection. If there are MAX_PEERS, the oldest is closed. Returns 0 or a negative
 * errno value.
 */
static int peer_accept(void)
{
	int fd = accmem_acl_socket_accept(peers.fds[0].fd), oldest = -1;

	if (fd < 0)
		return fd;
	pthread_mutex_lock(&accmem_acl_shares_lock);
	if (peers.count == MAX_PEERS)
		oldest = peer_remove(1);
	peers.count++;
	peers.fds[peers.count] = (struct pollfd){ .fd = fd, .events = POLLIN };
	peers.until[peers.count] = accmem_acl_socket_now_ms() + PATIENCE_MS;
	pthread_mutex_unlock(&accmem_acl_shares_lock);
	if (oldest >= 0)
		close(oldest);
	return 0;
}

/*
 * Returns 0; a negative errno value if poll() failed, or no connection could be accepted. A
 * descriptor is closed without the lock, since the close may take long.
 */
static int server_turn(void)
{
	int closing[MAX_PEERS];
	unsigned int n;

	if (poll(peers.fds, 1 + peers.count, peers.count ? PAUSE_MS : -1) < 0)
		return -EAGAIN;
	n = peers_serve(closing);
	while (n--)
		close(closing[n]);
	return peers.fds[0].revents ? peer_accept() : 0;
}

/* The program has closed the socket, or has another file in its place. */
static bool is_closed(int error)
{
	return error == -EBADF || error == -ENOTSOCK || error == -EINVAL;
}

static void *server_work(void *unused)
{
	int ret;

	(void)unused;
	do {
		ret = server_turn();
		/* too many open files, or a peer that has gone */
		if (ret && ret != -EACCES)
			poll(NULL, 0, PAUSE_MS);
	} while (!is_closed(ret));
	pthread_mutex_lock(&accmem_acl_shares_lock);
	server = -1;
	pthread_mutex_unlock(&accmem_acl_shares_lock);
	return NULL;
}

/* The thread blocks all signals, so that handlers run in threads of the program. */
static int server_start_thread(int fd)
{
	sigset_t all, before;
	pthread_t thread;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	peers.fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	ret = pthread_create(&thread, NULL, server_work, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!ret)
		pthread_detach(thread);
	return -ret;
}

static int server_start(void)
{
	int fd, ret;

	if (server >= 0) {
		accmem_acl_socket_renew(server);
		return 0;
	}
	fd = accmem_acl_socket_listen(&server_base);
	if (fd < 0)
		return fd;
	ret = server_start_thread(fd);
	if (ret)
		accmem_close_locked(fd);
	else
		server = fd;
	return ret;
}

static int share_add(int fd, bool any, uint64_t *number)
{
	struct share *share;
	uint32_t random;
	int ret = server_start();

	if (ret)
		return ret;
	share = calloc(1, sizeof(*share));
	if (!share)
		return -ENOMEM;
	share->fd = fd;
	share->any = any;
	do {
		if (getrandom(&random, sizeof(random), 0) != sizeof(random)) {
			ret = -errno;
			free(share);
			return ret;
		}
		share->number = server_base | random;
	} while (*share_find(share->number));
	share->next = shares;
	shares = share;
	*number = share->number;
	return 0;
}

int accmem_acl_share_add(int fd, bool any, uint64_t *number)
{
	int state = accmem_cancel_off(), ret;

	pthread_mutex_lock(&accmem_acl_shares_lock);
	ret = share_add(fd, any, number);
	pthread_mutex_unlock(&accmem_acl_shares_lock);
	accmem_cancel_restore(state);
	return ret;
}

void accmem_acl_share_remove(uint64_t number)
{
	struct share **link, *share;

	pthread_mutex_lock(&accmem_acl_shares_lock);
	link = share_find(number);
	share = *link;
	if (share) {
		*link = share->next;
		share_free(share);
	}
	pthread_mutex_unlock(&accmem_acl_shares_lock);
}

/* If the child kept the socket, the name would stay in use after the parent has ended. */
void accmem_acl_shares_disown(void)
{
	struct share *share;

	while (shares) {
		share = shares;
		shares = share->next;
		share_free(share);
	}
	while (peers.count)
		accmem_close_locked(peer_remove(peers.count));
	if (server >= 0)
		accmem_close_locked(server);
	server = -1;
}

/* Make an array of the processes, with an open pidfd for each. */
static int named_open(const int32_t *pids, size_t count, struct named **result)
{
	struct named *named = calloc(count, sizeof(*named));
	size_t i;
	int ret;

	if (!named)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		named[i].pid = pids[i];
		named[i].pidfd = syscall(SYS_pidfd_open, pids[i], 0);
		if (named[i].pidfd < 0) {
			ret = -errno;
			named_close(named, i);
			return ret;
		}
	}
	*result = named;
	return 0;
}

/* Forget the processes that have ended. */
static void share_prune(struct share *share)
{
	size_t i, kept = 0;

	for (i = 0; i < share->nr_named; i++) {
		if (has_ended(&share->named[i]) > 0)
			accmem_close_locked(share->named[i].pidfd);
		else
			share->named[kept++] = share->named[i];
	}
	share->nr_named = kept;
}

static int share_name(uint64_t number, const struct named *named, size_t count)
{
	struct share *share = *share_find(number);
	struct named *all;
	size_t i, n;

	if (!share)
		return -ENOENT;
	share_prune(share);
	all = reallocarray(share->named, share->nr_named + count, sizeof(*all));
	if (!all)
		return -ENOMEM;
	share->named = all;
	for (i = 0; i < count; i++) {
		for (n = 0; n < share->nr_named && all[n].pid != named[i].pid;
		     n++)
			;
		if (n < share->nr_named)
			accmem_close_locked(named[i].pidfd);
		else
			all[share->nr_named++] = named[i];
	}
	return 0;
}

/* On success the share owns the pidfds in @named, else they are closed. Frees @named. */
static aclError name_processes(uint64_t number, struct named *named,
			       size_t count)
{
	int ret;

	pthread_mutex_lock(&accmem_acl_shares_lock);
	ret = share_name(number, named, count);
	pthread_mutex_unlock(&accmem_acl_shares_lock);
	if (ret)
		named_close(named, count);
	else
		free(named);
	if (ret == -ENOENT)
		return accmem_acl_fail(ACL_ERROR_RT_INVALID_HANDLE,
				       "this process has not exported it");
	return ret ? accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory") :
		     ACL_SUCCESS;
}

aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid,
					 size_t pidNum)
{
	struct named *named = NULL;
	int state, ret;
	aclError error;

	if (!pid || !pidNum)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "pid is NULL, or pidNum is 0");
	state = accmem_cancel_off();
	ret = named_open(pid, pidNum, &named);
	if (ret == -EINVAL || ret == -ESRCH)
		error = accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
					"there is no such process");
	else if (ret)
		error = accmem_acl_failed("naming of processes", ret);
	else
		error = name_processes(shareableHandle, named, pidNum);
	accmem_cancel_restore(state);
	return error;
}

aclError aclrtDeviceGetBareTgid(int32_t *pid)
{
	if (!pid)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM, "pid is NULL");
	*pid = getpid();
	return ACL_SUCCESS;
}
