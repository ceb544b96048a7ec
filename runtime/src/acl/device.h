/* SPDX-License-Identifier: MIT */
/* The table of open devices. */
#ifndef ACCMEM_RUNTIME_ACL_DEVICE_H
#define ACCMEM_RUNTIME_ACL_DEVICE_H

#include "acl/types.h"

/* Check that @id is in the range of device numbers. Sets the last error. */
aclError accmem_acl_device_check_id(int32_t id);

/* Return device @id, opened if necessary; NULL with the code in @error. In a call. */
struct acl_device *accmem_acl_device_open(int32_t id, aclError *error);

/* Do the same for an @id that was checked. The caller holds accmem_acl_devices_lock. */
struct acl_device *accmem_acl_device_open_locked(int32_t id, aclError *error);

/* Return the calling thread's device; NULL with the code in @error. In a call. */
struct acl_device *accmem_acl_device_current(aclError *error);

/* Return the calling thread's device, or NULL if it is not open. In a call. */
struct acl_device *accmem_acl_device_opened(void);

/*
 * Find an allocation of a device's pool, as accmem_pool_find(). -ENOENT for an allocation of a
 * pool that is not of the ACL functions.
 */
int accmem_acl_device_find_block(const void *pointer,
				 struct accmem_pool_block *block);

/* Set the calling thread's device. */
void accmem_acl_device_select(int32_t id);

/* Return device @id, or NULL if it is not open. The caller holds the lock. */
struct acl_device *accmem_acl_device_find(int32_t id);

/* Remove device @id from the table and return it, or NULL. The caller holds the lock. */
struct acl_device *accmem_acl_device_unlink(int32_t id);

/* Return the number of the device that has @pool, or -1. */
int32_t accmem_acl_device_of(const struct accmem_pool *pool);

#endif /* ACCMEM_RUNTIME_ACL_DEVICE_H */
