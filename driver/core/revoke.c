// SPDX-License-Identifier: GPL-2.0
/*
 * Revocation: the state of a device's memory, and the end of its use.
 *
 * States of accmem_carveouts.epoch: even, memory may be used -> odd, revoked -> even, or
 * revoked for good. core/revoke.h has the checks.
 *
 * One SRCU domain serves all devices, since its read sections are short.
 *
 * Locks: the caller serialises the revocations of one device.
 */
#include "core/revoke.h"

DEFINE_SRCU(accmem_users_of_memory);

/**
 * accmem_revoke() - take the memory of a device back
 * @carveouts: the carveouts of the device
 * @gone: the memory does not come back
 *
 * When the function returns, no code is between accmem_enter() and accmem_exit(), and no
 * accmem_enter() succeeds. Mappings still show the memory: the caller removes them.
 *
 * Context: Process context. Waits for the sections that have begun. May sleep.
 */
void accmem_revoke(struct accmem_carveouts *carveouts, bool gone)
{
	if (gone)
		WRITE_ONCE(carveouts->gone, true);
	/* Pairs with smp_rmb() in accmem_revoked_error(). */
	smp_store_release(&carveouts->epoch, carveouts->epoch | 1);
	synchronize_srcu(&accmem_users_of_memory);
}

/**
 * accmem_restore() - end the revocation of memory that is not gone
 * @carveouts: the carveouts of the device, revoked
 * @kept: the contents are as before
 *
 * Context: Process context. Does not sleep.
 */
void accmem_restore(struct accmem_carveouts *carveouts, bool kept)
{
	/* Pairs with the read of the epoch after srcu_read_lock(): the memory is ready. */
	smp_store_release(&carveouts->epoch,
			  kept ? carveouts->epoch - 1 : carveouts->epoch + 1);
}
