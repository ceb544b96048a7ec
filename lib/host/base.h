/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the installed headers of the cores have in common. */
#ifndef ACCMEM_CORE_BASE_H
#define ACCMEM_CORE_BASE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* A doubly linked list, as the kernel's struct list_head; private to the cores */
struct accmem_core_list {
	struct accmem_core_list *next, *prev;
};

#endif /* ACCMEM_CORE_BASE_H */
