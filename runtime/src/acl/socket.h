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
 * Listen for requests, with the upper half of the handles in @base. Returns the socket, or
 * a negative errno value.
 */
int accmem_acl_socket_listen(uint64_t *base);

/* A time in milliseconds, for deadlines */
int64_t accmem_acl_socket_now_ms(void);

/*
 * Read a request from a connection that has one. Returns the process that asks for @handle; -EACCES if it has another effective user than this process; another
 * negative errno value.
 */
pid_t accmem_acl_socket_request(int connection, uint64_t *handle);

/* Answer with a descriptor, or with a refusal if @fd is negative. */
void accmem_acl_socket_answer(int connection, int fd);

/*
 * Get the descriptor of @handle from the process that exports it. Returns the descriptor;
 * -ECONNREFUSED if there is no such process, or it exports nothing; -EACCES if it refuses,
 * or has another effective user; -ECONNRESET if it gives no answer; -ETIMEDOUT; another
 * negative errno value.
 */
int accmem_acl_socket_fetch(uint64_t handle);

#endif /* ACCMEM_RUNTIME_ACL_SOCKET_H */
