/* SPDX-License-Identifier: MIT */
/* fork() of a program that uses the ACL front-end. */
#ifndef ACCMEM_RUNTIME_ACL_FORK_H
#define ACCMEM_RUNTIME_ACL_FORK_H

/* 0, or a negative errno value if the fork handlers could not be registered. */
int accmem_acl_fork_error(void);

#endif /* ACCMEM_RUNTIME_ACL_FORK_H */
