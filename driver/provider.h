/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Providers: initialisation. <linux/accmem_provider.h> has what drivers call.
 */
#ifndef ACCMEM_PROVIDER_H
#define ACCMEM_PROVIDER_H

int accmem_provider_init(void);

#endif /* ACCMEM_PROVIDER_H */
