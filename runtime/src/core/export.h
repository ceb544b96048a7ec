/* SPDX-License-Identifier: MIT */
/* Exports and imports that do not set the text of the last error. */
#ifndef ACCMEM_RUNTIME_CORE_EXPORT_H
#define ACCMEM_RUNTIME_CORE_EXPORT_H

#include <accmem.h>

/* As accmem_export() and accmem_import(). */
int accmem_export_now(struct accmem_context *ctx, uint64_t address,
		      uint64_t length, uint32_t flags, int *fd);
int accmem_import_now(struct accmem_context *ctx, int fd, uint64_t offset,
		      uint64_t length, uint64_t *address);

#endif /* ACCMEM_RUNTIME_CORE_EXPORT_H */
