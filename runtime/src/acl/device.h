/* SPDX-License-Identifier: MIT */
/* Devices: open, current, and the table of them. */
#ifndef ACCMEM_RUNTIME_ACL_DEVICE_H
#define ACCMEM_RUNTIME_ACL_DEVICE_H

#include "acl/types.h"

/* Could there be a device @id? Sets the last error if not. */
aclError accmem_acl_device_check_id(int32_t id);

/* Device @id, opened if need be; NULL with the code in @error. In a call. */
struct acl_device *accmem_acl_device_open(int32_t id, aclError *error);

/* The same for an @id that was checked; with the devices' lock held. */
struct acl_device *accmem_acl_device_open_locked(int32_t id, aclError *error);

/* The calling thread's device; NULL with the code in @error. In a call. */
struct acl_device *accmem_acl_device_current(aclError *error);

/* Set the calling thread's device. */
void accmem_acl_device_select(int32_t id);

/* Device @id if it is open, or NULL; with the devices' lock held. */
struct acl_device *accmem_acl_device_find(int32_t id);

/* The same, and take it out of the table. */
struct acl_device *accmem_acl_device_unlink(int32_t id);

/* The number of the device whose pool @pool is; -1 */
int32_t accmem_acl_device_of(const struct accmem_pool *pool);

#endif /* ACCMEM_RUNTIME_ACL_DEVICE_H */
