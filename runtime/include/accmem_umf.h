/* SPDX-License-Identifier: MIT */
/*
 * A memory provider of the Unified Memory Framework over accmem. The header is for
 * programs that include the framework's headers; they link with -laccmem_umf -laccmem.
 *
 *	struct accmem_umf_params params = { .size = sizeof(params) };
 *
 *	umfMemoryProviderCreate(accmem_umf_provider_ops(), &params, &provider);
 */
#ifndef ACCMEM_UMF_H
#define ACCMEM_UMF_H

#include <accmem_pool.h>
#include <umf/memory_provider_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct accmem_umf_params - parameters of a provider
 * @size: bytes of this structure. With 0, or with the size of the structure before
 *	@exportable was added, the members from @exportable on are not read
 * @kind: enum accmem_kind of the memory
 * @device: device node, or NULL: see accmem_open()
 * @pool: a pool that exists as long as the provider, or NULL for a pool of its own
 * @carveout: index of the carveout
 * @unmapped: 1: the CPU may access device memory only after accmem_pool_map()
 * @exportable: 1: other processes may open allocations. Each allocation is then a buffer of
 *	the driver, and costs a system call
 * @reserved: 0
 */
struct accmem_umf_params {
	uint32_t size;
	uint32_t kind;
	const char *device;
	struct accmem_pool *pool;
	uint32_t carveout;
	uint32_t unmapped;
	uint32_t exportable;
	uint32_t reserved;
};

/**
 * accmem_umf_provider_ops() - get the provider's functions
 *
 * initialize() takes a struct accmem_umf_params, or NULL for device memory of the default
 * device. A free of NULL succeeds.
 *
 * Of the optional functions there are split and merge, and ctl() since version 1.0 of the
 * functions. Parts of an allocation are freed one by one; the pool gets the memory when
 * all are freed. Parts of different allocations are not merged. ctl() knows the
 * following paths; the values to read are size_t:
 * - "stats.allocated_memory" and "stats.peak_memory", to read;
 * - "stats.peak_memory.reset", to run;
 * - "pool", to read: the pool, as accmem_umf_pool() returns it. The framework does not
 *   return what initialize() has made.
 *
 * There is no purge, since device memory cannot leave an address that stays allocated.
 *
 * IPC: the handle of an allocation contains the id of this process and the number of a
 * descriptor, which this process keeps open until the handle is put. Another process opens
 * the handle by duplicating the descriptor. The kernel permits this if the other process
 * may ptrace(2) this one: see PR_SET_PTRACER in prctl(2). The other process then has the
 * bytes of the allocation, and no others, until it closes the handle.
 *
 * The parts of a split allocation have handles if they consist of whole pages; the last part
 * always has a handle if it begins at a page. A handle can be opened by any provider of the
 * same device, also by one without @exportable. On a device with identity translation, the
 * opening provider must have another context than the exporting one, and can open the
 * handle only once. The framework itself opens a handle once, however often it is used.
 *
 * The functions return these errors:
 * - UMF_RESULT_ERROR_INVALID_ARGUMENT for invalid parameters; for a size of 0; for a
 *   pointer that is no allocation of the provider; for a size of a free that is neither
 *   0 nor the allocation's; for a size of a split or a merge that is not the
 *   allocation's.
 *   From the IPC calls also: for bytes that are no handle; for a handle that was put; for
 *   closing a pointer that no handle was opened at; for the handle of a part that does not
 *   consist of whole pages.
 * - UMF_RESULT_ERROR_INVALID_ALIGNMENT for an alignment that is neither a power of two nor
 *   a multiple of the smallest page. For a multiple that is no power of two the
 *   allocation takes up to that much more memory, and its pointer is aligned, not its
 *   device address.
 * - UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY if memory of the host or of the device is short,
 *   since the framework has no other code; also within a limit, or when the time of a
 *   pool is over.
 * - UMF_RESULT_ERROR_NOT_SUPPORTED for memory that the device does not have; for a merge of
 *   parts that are not neighbours in one allocation; for a handle of an allocation that is
 *   not exportable, or on a driver without exports.
 * - UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC with a positive errno value for all other
 *   errors.
 *
 * Return: the functions.
 */
const umf_memory_provider_ops_t *accmem_umf_provider_ops(void);

/**
 * accmem_umf_pool() - get the pool of a provider
 * @provider: the provider that initialize() has made
 *
 * For trim, peaks and statistics.
 *
 * Return: the pool.
 */
struct accmem_pool *accmem_umf_pool(void *provider);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_UMF_H */
