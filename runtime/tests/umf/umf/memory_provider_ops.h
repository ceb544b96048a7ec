/* SPDX-License-Identifier: MIT */
/*
 * The structure of a memory provider's functions as the releases of the Unified Memory
 * Framework declare it, and nothing else of the framework. UMF_MINOR is the version of
 * the structure: 9, 10, 11, or 100 to 102 for 1.0 to 1.2.
 *
 *	0.9	optional functions are in two structures of their own
 *	0.10	free() is in the first of them
 *	0.11	as 0.9; the structure has a version of its own
 *	1.0	all functions are in one structure; results and const as below; ctl()
 *	1.1	two functions for properties; UMF_VERSION_CURRENT stays 1.0
 *	1.2	get_cache_line_size()
 */
#ifndef ACCMEM_RUNTIME_UMF_H
#define ACCMEM_RUNTIME_UMF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#define UMF_MAKE_VERSION(major, minor) (((major) << 16) | ((minor)&0xffff))
#if UMF_MINOR >= 100
#define UMF_VERSION_CURRENT UMF_MAKE_VERSION(1, 0)
#else
#define UMF_VERSION_CURRENT UMF_MAKE_VERSION(0, UMF_MINOR)
#endif
#if UMF_MINOR >= 11
#define UMF_PROVIDER_OPS_VERSION_CURRENT \
	UMF_MAKE_VERSION(UMF_MINOR / 100, UMF_MINOR % 100)
#endif

typedef enum umf_result_t {
	UMF_RESULT_SUCCESS = 0,
	UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY = 1,
	UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC = 2,
	UMF_RESULT_ERROR_INVALID_ARGUMENT = 3,
	UMF_RESULT_ERROR_INVALID_ALIGNMENT = 4,
	UMF_RESULT_ERROR_NOT_SUPPORTED = 5,
#if UMF_MINOR >= 101
	UMF_RESULT_ERROR_INVALID_CTL_PATH = 9,
#endif
	UMF_RESULT_ERROR_UNKNOWN = 0x7ffffffe
} umf_result_t;

#if UMF_MINOR >= 100
#define UMF_CONST const
typedef umf_result_t umf_finalize_fn(void *provider);
typedef umf_result_t umf_name_fn(void *provider, const char **name);
typedef umf_result_t umf_error_fn(void *provider, const char **message,
				  int32_t *error);
#else
#define UMF_CONST
typedef void umf_finalize_fn(void *provider);
typedef const char *umf_name_fn(void *provider);
typedef void umf_error_fn(void *provider, const char **message, int32_t *error);
#endif
typedef umf_result_t umf_range_fn(void *provider, void *ptr, size_t size);

#define UMF_IPC_FUNCTIONS(prefix)                                            \
	umf_result_t (*prefix##get_ipc_handle_size)(void *provider,          \
						    size_t *size);           \
	umf_result_t (*prefix##get_ipc_handle)(void *provider,               \
					       const void *ptr, size_t size, \
					       void *providerIpcData);       \
	umf_result_t (*prefix##put_ipc_handle)(void *provider,               \
					       void *providerIpcData);       \
	umf_result_t (*prefix##open_ipc_handle)(void *provider,              \
						void *providerIpcData,       \
						void **ptr);                 \
	umf_range_fn *prefix##close_ipc_handle;

#if UMF_MINOR >= 100
typedef enum umf_ctl_query_type {
	CTL_QUERY_READ,
	CTL_QUERY_WRITE,
	CTL_QUERY_RUNNABLE,
} umf_ctl_query_type_t;

typedef enum ctl_query_source {
	CTL_UNKNOWN_QUERY_SOURCE,
	CTL_QUERY_PROGRAMMATIC,
	CTL_QUERY_CONFIG_INPUT,
} umf_ctl_query_source_t;
#else
typedef struct umf_memory_provider_ext_ops_t {
#if UMF_MINOR == 10
	umf_range_fn *free;
#endif
	umf_range_fn *purge_lazy;
	umf_range_fn *purge_force;
	umf_result_t (*allocation_merge)(void *provider, void *low, void *high,
					 size_t total);
	umf_result_t (*allocation_split)(void *provider, void *ptr,
					 size_t total, size_t first);
} umf_memory_provider_ext_ops_t;

typedef struct umf_memory_provider_ipc_ops_t {
	UMF_IPC_FUNCTIONS()
} umf_memory_provider_ipc_ops_t;
#endif

typedef struct umf_memory_provider_ops_t {
	uint32_t version;
	umf_result_t (*initialize)(UMF_CONST void *params, void **provider);
	umf_finalize_fn *finalize;
	umf_result_t (*alloc)(void *provider, size_t size, size_t alignment,
			      void **ptr);
#if UMF_MINOR != 10
	umf_range_fn *free;
#endif
	umf_error_fn *get_last_native_error;
	umf_result_t (*get_recommended_page_size)(void *provider, size_t size,
						  size_t *pageSize);
	umf_result_t (*get_min_page_size)(void *provider, UMF_CONST void *ptr,
					  size_t *pageSize);
	umf_name_fn *get_name;
#if UMF_MINOR >= 100
	umf_range_fn *ext_purge_lazy;
	umf_range_fn *ext_purge_force;
	umf_result_t (*ext_allocation_merge)(void *provider, void *low,
					     void *high, size_t total);
	umf_result_t (*ext_allocation_split)(void *provider, void *ptr,
					     size_t total, size_t first);
	UMF_IPC_FUNCTIONS(ext_)
	umf_result_t (*ext_ctl)(void *provider, umf_ctl_query_source_t source,
				const char *name, void *arg, size_t size,
				umf_ctl_query_type_t type, va_list args);
#else
	umf_memory_provider_ext_ops_t ext;
	umf_memory_provider_ipc_ops_t ipc;
#endif
#if UMF_MINOR >= 101
	void (*ext_properties[2])(void);
#endif
#if UMF_MINOR >= 102
	umf_result_t (*get_cache_line_size)(void *provider, size_t *size);
#endif
} umf_memory_provider_ops_t;

#endif /* ACCMEM_RUNTIME_UMF_H */
