// SPDX-License-Identifier: MIT
/*
 * Sockets through which an exporting process gives descriptors to others.
 *
 * The socket has a name in the abstract namespace, which all users see and may connect to.
 * A process answers only processes of its own effective user, and believes only answers of
 * these. The kernel reports the user and the process of either side (SO_PEERCRED). A peer
 * that does nothing is left after a time.
 *
 * Locking: none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "acl/socket.h"

#define BACKLOG 64
#define NAME_TRIES 16
#define ANSWER_SECONDS 1
#define FETCH_SECONDS 10

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

static void set_times(int socket, time_t seconds)
{
	const struct timeval time = { .tv_sec = seconds };

	setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
	setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
}

/* Another user may have taken some of the names. */
static int bind_name(int fd, uint64_t *base)
{
	struct sockaddr_un name;
	unsigned int n, tries;
	socklen_t length;

	for (tries = 0; tries < NAME_TRIES; tries++) {
		if (getrandom(&n, sizeof(n), 0) != sizeof(n))
			return -errno;
		n %= ACL_SHARE_NAMES;
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
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int ret;

	if (fd < 0)
		return -errno;
	ret = bind_name(fd, base);
	if (!ret && listen(fd, BACKLOG))
		ret = -errno;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

static int peer_of(int socket, struct ucred *peer)
{
	socklen_t length = sizeof(*peer);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, peer, &length))
		return -errno;
	return peer->uid == geteuid() ? 0 : -EACCES;
}

pid_t accmem_acl_socket_request(int connection, uint64_t *handle)
{
	struct ucred peer;
	ssize_t length;
	int ret;

	ret = peer_of(connection, &peer);
	if (ret)
		return ret;
	set_times(connection, ANSWER_SECONDS);
	length = recv(connection, handle, sizeof(*handle), 0);
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
	sendmsg(connection, &message, MSG_NOSIGNAL);
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
	int fd;

	length = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
	if (length < 0)
		return -errno;
	header = CMSG_FIRSTHDR(&message);
	if (!length || !header || header->cmsg_level != SOL_SOCKET ||
	    header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(sizeof(fd)))
		return -EACCES;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

static int fetch(int fd, uint64_t handle)
{
	pid_t pid = handle >> ACL_SHARE_PID_SHIFT;
	struct sockaddr_un name;
	struct ucred peer;
	socklen_t length;
	int ret;

	set_times(fd, FETCH_SECONDS);
	length =
		name_of(&name, pid,
			handle >> ACL_SHARE_NAME_SHIFT & (ACL_SHARE_NAMES - 1));
	if (connect(fd, (struct sockaddr *)&name, length))
		return -errno;
	ret = peer_of(fd, &peer);
	if (ret || peer.pid != pid)
		return ret ? ret : -EACCES;
	if (send(fd, &handle, sizeof(handle), MSG_NOSIGNAL) != sizeof(handle))
		return -errno;
	return receive_fd(fd);
}

int accmem_acl_socket_fetch(uint64_t handle)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int ret;

	if (fd < 0)
		return -errno;
	ret = fetch(fd, handle);
	close(fd);
	return ret == -EAGAIN ? -ETIMEDOUT : ret;
}
