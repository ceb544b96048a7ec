/* SPDX-License-Identifier: MIT */
/* Sockets through which an exporting process gives descriptors to others. */
#ifndef ACCMEM_RUNTIME_ACL_SOCKET_H
#define ACCMEM_RUNTIME_ACL_SOCKET_H

#include <stdint.h>
#include <sys/types.h>

/*
 * A shareable handle: the process that exports, a number in the name of its socket, and a
 * random number. Process ids are below 2^22 (PID_MAX_LIMIT).
 */
#define ACL_SHARE_PID_SHIFT 42
#define ACL_SHARE_NAME_SHIFT 32
#define ACL_SHARE_NAMES 1024u

/*
 * Listen for requests. @base: out: the upper half of the handles that this process exports.
 * Returns the socket, or a negative errno value.
 */
int accmem_acl_socket_listen(uint64_t *base);

/*
 * Let importing processes see the present user of this process: the kernel reports the user
 * who has called listen(). Returns 0 or a negative errno value.
 */
int accmem_acl_socket_renew(int socket);

/*
 * Accept a connection. Returns its descriptor; -EACCES if the peer runs as another effective
 * user; another negative errno value.
 */
int accmem_acl_socket_accept(int socket);

/* A time in milliseconds, for deadlines */
int64_t accmem_acl_socket_now_ms(void);

/*
 * Read a request from a connection that has one. Returns the id of the process that
 * requests @handle, or a negative errno value.
 */
pid_t accmem_acl_socket_request(int connection, uint64_t *handle);

/* Answer with a descriptor, or with a refusal if @fd is negative. */
void accmem_acl_socket_answer(int connection, int fd);

/*
 * Get the descriptor of @handle from the process that exports it. Returns the descriptor;
 * -ECONNREFUSED if that process does not exist or exports nothing; -EACCES if it refuses, or
 * runs as another effective user; -ECONNRESET if it closes without an answer several times;
 * -ETIMEDOUT; another negative errno value.
 */
int accmem_acl_socket_fetch(uint64_t handle);

#endif /* ACCMEM_RUNTIME_ACL_SOCKET_H */
