// SPDX-License-Identifier: MIT
/*
 * Sockets through which an exporting process gives descriptors to others.
 *
 * The socket has a name in the abstract namespace, which all users see and may connect to.
 * A process answers only processes of its own effective user, and accepts only answers of
 * such processes. The kernel reports the user and the process id of the peer (SO_PEERCRED).
 * The exporting process waits 1 second for a request, the importing process 10 seconds for an
 * answer. The sockets do not block, and each wait is repeated until its deadline, so that a
 * signal does not end it.
 *
 * Before Linux 6.16 a peer of any user can send a descriptor whose last close takes as long as
 * the peer likes, and so stop the answers. Later kernels refuse such descriptors
 * (SO_PASSRIGHTS).
 *
 * Locking: none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "acl/socket.h"

#define BACKLOG 64
#define FETCH_MS 10000
#define FULL_MS 10 /* between two tries to connect, while the backlog is full */
#define TRIES \
	4 /* an exporting process with many connections closes the oldest */

/* since Linux 6.16 */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* The control message with one descriptor. */
union fd_message {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

static socklen_t name_of(struct sockaddr_un *name, pid_t pid, unsigned int n)
{
	int length;

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	/* the name begins with a zero byte, and has none at its end */
	length = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
			  "accmem-acl-%d-%u", (int)pid, n);
	return offsetof(struct sockaddr_un, sun_path) + 1 + length;
}

int64_t accmem_acl_socket_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Wait for @events until @end. */
static int wait_for(int fd, short events, int64_t end)
{
	struct pollfd poller = { .fd = fd, .events = events };
	int64_t left;
	int n;

	do {
		left = end - accmem_acl_socket_now_ms();
		if (left <= 0)
			return -ETIMEDOUT;
		n = poll(&poller, 1, left);
	} while (!n || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : 0;
}

/* Another user may have taken some of the names. */
static int bind_name(int fd, uint64_t *base)
{
	struct sockaddr_un name;
	unsigned int n, tries;
	socklen_t length;

	if (getrandom(&n, sizeof(n), 0) != sizeof(n))
		return -errno;
	for (tries = 0; tries < ACL_SHARE_NAMES; tries++) {
		n = (n + 1) % ACL_SHARE_NAMES;
		length = name_of(&name, getpid(), n);
		if (!bind(fd, (struct sockaddr *)&name, length)) {
			*base = (uint64_t)getpid() << ACL_SHARE_PID_SHIFT |
				(uint64_t)n << ACL_SHARE_NAME_SHIFT;
			return 0;
		}
		if (errno != EADDRINUSE)
			return -errno;
	}
	return -EADDRINUSE;
}

int accmem_acl_socket_listen(uint64_t *base)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	int none = 0, ret;

	if (fd < 0)
		return -errno;
	/* connections inherit it */
	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &none, sizeof(none));
	ret = bind_name(fd, base);
	if (!ret && listen(fd, BACKLOG))
		ret = -errno;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

int accmem_acl_socket_renew(int socket)
{
	return listen(socket, BACKLOG) ? -errno : 0;
}

static int peer_of(int socket, struct ucred *peer)
{
	socklen_t length = sizeof(*peer);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, peer, &length))
		return -errno;
	return peer->uid == geteuid() ? 0 : -EACCES;
}

int accmem_acl_socket_accept(int socket)
{
	int fd = accept4(socket, NULL, NULL, SOCK_CLOEXEC);
	struct ucred peer;
	int ret;

	if (fd < 0)
		return -errno;
	ret = peer_of(fd, &peer);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

pid_t accmem_acl_socket_request(int connection, uint64_t *handle)
{
	struct ucred peer;
	ssize_t length;
	int ret;

	ret = peer_of(connection, &peer);
	if (ret)
		return ret;
	length = recv(connection, handle, sizeof(*handle), MSG_DONTWAIT);
	if (length < 0)
		return -errno;
	return length == sizeof(*handle) ? peer.pid : -EPROTO;
}

void accmem_acl_socket_answer(int connection, int fd)
{
	union fd_message control = {
		.header = { .cmsg_level = SOL_SOCKET,
			    .cmsg_type = SCM_RIGHTS,
			    .cmsg_len = CMSG_LEN(sizeof(fd)) },
	};
	char byte = fd >= 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	/* the peer may have gone */
	sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A message holds one descriptor. The buffer has room for two, for alignment. */
static int take_fd(struct cmsghdr *header)
{
	size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int), i;
	int fd;

	for (i = 0; i < count; i++) {
		memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
		if (count == 1)
			return fd;
		close(fd);
	}
	return -EPROTO;
}

static int receive_fd(int connection)
{
	union fd_message control;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header;
	ssize_t length;

	length = recvmsg(connection, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (length < 0)
		return -errno;
	/* the process has ended, or may pass no more descriptors */
	if (!length)
		return -ECONNRESET;
	header = CMSG_FIRSTHDR(&message);
	if (message.msg_flags & MSG_CTRUNC && !header)
		return -EMFILE;
	if (!header || header->cmsg_level != SOL_SOCKET ||
	    header->cmsg_type != SCM_RIGHTS)
		return -EACCES;
	return take_fd(header);
}

/* While the backlog is full, connect() fails with EAGAIN. */
static int connect_by(int fd, const struct sockaddr_un *name, socklen_t length,
		      int64_t end)
{
	while (connect(fd, (const struct sockaddr *)name, length)) {
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (accmem_acl_socket_now_ms() >= end)
			return -ETIMEDOUT;
		poll(NULL, 0, FULL_MS);
	}
	return 0;
}

static int fetch_by(int fd, uint64_t handle, int64_t end)
{
	pid_t pid = handle >> ACL_SHARE_PID_SHIFT;
	struct sockaddr_un name;
	struct ucred peer;
	socklen_t length;
	int ret;

	length =
		name_of(&name, pid,
			handle >> ACL_SHARE_NAME_SHIFT & (ACL_SHARE_NAMES - 1));
	ret = connect_by(fd, &name, length, end);
	if (ret)
		return ret;
	ret = peer_of(fd, &peer);
	if (ret || peer.pid != pid)
		return ret ? ret : -EACCES;
	if (send(fd, &handle, sizeof(handle), MSG_NOSIGNAL) != sizeof(handle))
		return -errno;
	ret = wait_for(fd, POLLIN, end);
	return ret ? ret : receive_fd(fd);
}

static int fetch(uint64_t handle, int64_t end)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	int ret;

	if (fd < 0)
		return -errno;
	ret = fetch_by(fd, handle, end);
	close(fd);
	return ret;
}

int accmem_acl_socket_fetch(uint64_t handle)
{
	const int64_t end = accmem_acl_socket_now_ms() + FETCH_MS;
	int tries = 0, ret;

	do {
		ret = fetch(handle, end);
	} while ((ret == -ECONNRESET || ret == -EPIPE) && ++tries < TRIES &&
		 !poll(NULL, 0, FULL_MS));
	return ret == -EPIPE ? -ECONNRESET : ret;
}
