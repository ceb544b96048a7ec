/* SPDX-License-Identifier: MIT */
/* Streams: a queue and a thread each. */
#ifndef ACCMEM_RUNTIME_ACL_STREAM_H
#define ACCMEM_RUNTIME_ACL_STREAM_H

#include "acl/types.h"

/* The stream, or the current device's default stream where @stream is NULL; or NULL. */
aclrtStream accmem_acl_stream_resolve(aclrtStream stream, aclError *error);

/* Queue @op: the stream runs it in its turn, and drops it. */
aclError accmem_acl_stream_add(aclrtStream stream, struct acl_op *op);

/* End the streams of a device. */
void accmem_acl_streams_end(struct acl_device *device);

/* Wait for what has been queued on the streams of a device, or of all with NULL. */
void accmem_acl_streams_wait(struct acl_device *device);

/* Has a device a stream? */
bool accmem_acl_streams_exist(struct acl_device *device);

#endif /* ACCMEM_RUNTIME_ACL_STREAM_H */
