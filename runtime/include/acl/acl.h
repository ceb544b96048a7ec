/* SPDX-License-Identifier: MIT */
/*
 * Device memory by the names of Ascend's ACL, on accmem: see acl(3).
 *
 * Device N is /dev/accmemN; device 0 is $ACCMEM_DEVICE if that is set. A thread that has
 * not called aclrtSetDevice() uses device 0. A program need call neither aclInit() nor
 * aclrtSetDevice().
 *
 * The functions return ACL_SUCCESS or an error code; aclGetRecentErrMsg() describes the
 * error. They are thread-safe, except that no other call may use a stream or an event
 * while it is destroyed. A device may be closed while other threads are in calls: the
 * memory that these use stays until they have ended.
 */
#ifndef ACCMEM_ACL_H
#define ACCMEM_ACL_H

#include <acl/acl_rt.h>

#endif /* ACCMEM_ACL_H */
