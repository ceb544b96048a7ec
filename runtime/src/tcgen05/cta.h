/* SPDX-License-Identifier: MIT */
/* The calls of a CTA that warps make, too. */
#ifndef ACCMEM_RUNTIME_TCGEN05_CTA_H
#define ACCMEM_RUNTIME_TCGEN05_CTA_H

#include <tcgen05.h>

/* An alloc or dealloc of a CTA. All of @req is set but its size. */
int tcgen05_call_alloc(struct tcgen05_cta *cta, struct accmem_cta_alloc req);
int tcgen05_call_dealloc(struct tcgen05_cta *cta,
			 struct accmem_cta_dealloc req);

#endif /* ACCMEM_RUNTIME_TCGEN05_CTA_H */
