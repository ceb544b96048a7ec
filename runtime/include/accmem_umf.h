/* SPDX-License-Identifier: MIT */
/*
 * A memory provider of the Unified Memory Framework over accmem. The header is for
 * programs that have the framework's; link with -laccmem_umf -laccmem.
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
 * struct accmem_umf_params - what a provider is over
 * @size: bytes of this structure
 * @kind: enum accmem_kind of the memory
 * @device: device node, or NULL: see accmem_open()
 * @pool: a pool that stays as long as the provider, or NULL for one of its own
 * @carveout: index of the carveout
 * @unmapped: 1: the CPU does not reach device memory until accmem_pool_map()
 */
struct accmem_umf_params {
	uint32_t size;
	uint32_t kind;
	const char *device;
	struct accmem_pool *pool;
	uint32_t carveout;
	uint32_t unmapped;
};

/**
 * accmem_umf_provider_ops() - the provider's functions
 *
 * initialize() takes a struct accmem_umf_params, or NULL for device memory of the
 * default device.
 *
 * Results are UMF_RESULT_ERROR_INVALID_ARGUMENT for parameters that are none, for a size
 * of 0, and for a pointer that is no allocation of the provider, or has not the size that
 * is said (0 says nothing); _INVALID_ALIGNMENT for one that is no power of two;
 * _OUT_OF_HOST_MEMORY where there is no memory, of the device too, since the
 * framework has no other, or none within a limit or a pool's time; _NOT_SUPPORTED for
 * what the device has not; else _MEMORY_PROVIDER_SPECIFIC with a positive errno value.
 * A free of NULL succeeds.
 *
 * There is no purge, split, merge, and no IPC.
 *
 * Return: the functions.
 */
const umf_memory_provider_ops_t *accmem_umf_provider_ops(void);

/**
 * accmem_umf_pool() - the pool under a provider
 * @provider: as initialize() has made it
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
