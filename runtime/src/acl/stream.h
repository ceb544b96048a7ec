/* SPDX-License-Identifier: MIT */
/* Streams: each has a queue of operations, and a thread that runs them. */
#ifndef ACCMEM_RUNTIME_ACL_STREAM_H
#define ACCMEM_RUNTIME_ACL_STREAM_H

#include "acl/types.h"

/* Queue @op. The stream's thread runs it and drops it. */
aclError accmem_acl_stream_add(aclrtStream stream, struct acl_op *op);

/* Return @stream, or the current device's default stream if @stream is NULL; or NULL. */
aclrtStream accmem_acl_stream_resolve(aclrtStream stream, aclError *error);

/* End all streams of a device, and wait until they have ended. */
void accmem_acl_streams_end(struct acl_device *device);

/*
 * Fail if @stream waits until a function that the calling thread runs has returned: a host
 * function of the stream, or a callback that blocks it. A wait for the stream would then
 * never end. The second function checks a device's streams; NULL: all streams.
 */
aclError accmem_acl_stream_check_wait(aclrtStream stream);
aclError accmem_acl_streams_check_wait(struct acl_device *device);

/*
 * Wait for the queued operations of a device's streams; NULL: of all streams. Fails as
 * accmem_acl_streams_check_wait(), before it waits for any.
 */
aclError accmem_acl_streams_wait(struct acl_device *device);

/* Does the device have a stream? */
bool accmem_acl_streams_exist(struct acl_device *device);

#endif /* ACCMEM_RUNTIME_ACL_STREAM_H */
