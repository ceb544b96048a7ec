/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mmap: map buffers into processes.
 */
#ifndef ACCMEM_MMAP_H
#define ACCMEM_MMAP_H

struct file;
struct vm_area_struct;

int accmem_mmap(struct file *file, struct vm_area_struct *vma);
unsigned long accmem_mmap_area(struct file *file, unsigned long address,
			       unsigned long size, unsigned long pgoff,
			       unsigned long flags);

#endif /* ACCMEM_MMAP_H */
