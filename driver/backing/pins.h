/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pins: does anybody have a page that no mapping shows?
 */
#ifndef ACCMEM_PINS_H
#define ACCMEM_PINS_H

#include <linux/types.h>

struct accmem_memory;

bool accmem_pins_idle(struct accmem_memory *mem);
bool accmem_pins_settle(struct accmem_memory *mem);

#endif /* ACCMEM_PINS_H */
