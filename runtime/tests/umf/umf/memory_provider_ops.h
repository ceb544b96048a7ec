/* SPDX-License-Identifier: MIT */
/*
 * The memory provider's functions as version UMF_MINOR, or 100 times the major one
 * more, of the Unified Memory Framework declares them. Of nothing else of it is there
 * anything here.
 */
#ifndef ACCMEM_RUNTIME_UMF_H
#define ACCMEM_RUNTIME_UMF_H

#include <stddef.h>
#include <stdint.h>

#define UMF_MAKE_VERSION(major, minor) (((major) << 16) | ((minor)&0xffff))
#define UMF_VERSION_CURRENT UMF_MAKE_VERSION(UMF_MINOR / 100, UMF_MINOR % 100)

typedef enum umf_result_t {
	UMF_RESULT_SUCCESS = 0,
	UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY = 1,
	UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC = 2,
	UMF_RESULT_ERROR_INVALID_ARGUMENT = 3,
	UMF_RESULT_ERROR_INVALID_ALIGNMENT = 4,
	UMF_RESULT_ERROR_NOT_SUPPORTED = 5,
	UMF_RESULT_ERROR_USER_SPECIFIC = 6,
	UMF_RESULT_ERROR_DEPENDENCY_UNAVAILABLE = 7,
	UMF_RESULT_ERROR_OUT_OF_RESOURCES = 8,
	UMF_RESULT_ERROR_UNKNOWN = 0x7ffffffe
} umf_result_t;

#if UMF_MINOR >= 11
#define UMF_PROVIDER_OPS_VERSION_CURRENT UMF_VERSION_CURRENT
#define UMF_CONST const
#else
#define UMF_CONST
#endif

#if UMF_MINOR >= 100
typedef umf_result_t umf_finalize_fn(void *provider);
typedef umf_result_t umf_name_fn(void *provider, const char **name);
typedef umf_result_t umf_error_fn(void *provider, const char **message,
				  int32_t *error);
#else
typedef void umf_finalize_fn(void *provider);
typedef const char *umf_name_fn(void *provider);
typedef void umf_error_fn(void *provider, const char **message, int32_t *error);
#endif

/* Optional functions are in structures of their own before 0.11. */
typedef struct umf_memory_provider_ops_t {
	uint32_t version;
	umf_result_t (*initialize)(UMF_CONST void *params, void **provider);
	umf_finalize_fn *finalize;
	umf_result_t (*alloc)(void *provider, size_t size, size_t alignment,
			      void **ptr);
	umf_result_t (*free)(void *provider, void *ptr, size_t size);
	umf_error_fn *get_last_native_error;
	umf_result_t (*get_recommended_page_size)(void *provider, size_t size,
						  size_t *pageSize);
	umf_result_t (*get_min_page_size)(void *provider, UMF_CONST void *ptr,
					  size_t *pageSize);
	umf_name_fn *get_name;
	void (*optional[12])(void);
} umf_memory_provider_ops_t;

#endif /* ACCMEM_RUNTIME_UMF_H */
