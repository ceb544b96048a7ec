/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions in dma-buf.
 */
#ifndef ACCMEM_COMPAT_DMA_BUF_H
#define ACCMEM_COMPAT_DMA_BUF_H

#include <linux/dma-buf.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/pci-p2pdma.h>

/*
 * MODULE_IMPORT_NS(): cdd30ebb1b9f ("module: Convert symbol namespace to string
 * literal"), 6.13. Before it, the namespace is a bare word.
 */
#ifdef ACCMEM_HAVE_NS_WORD
#define ACCMEM_IMPORT_DMA_BUF MODULE_IMPORT_NS(DMA_BUF)
#else
#define ACCMEM_IMPORT_DMA_BUF MODULE_IMPORT_NS("DMA_BUF")
#endif

/*
 * dma_buf_invalidate_mappings() and dma_buf_attach_revocable(): 7.1. Before them, the
 * first is dma_buf_move_notify(), after which an importer may keep its mappings.
 * ACCMEM_DMA_BUF_ATTACH_OP is the operation of an importer that they call.
 */
#ifdef ACCMEM_HAVE_REVOCABLE
#define ACCMEM_DMA_BUF_CAN_REVOKE true
#define ACCMEM_DMA_BUF_ATTACH_OP invalidate_mappings
#else
#define ACCMEM_DMA_BUF_CAN_REVOKE false
#define ACCMEM_DMA_BUF_ATTACH_OP move_notify

static inline void dma_buf_invalidate_mappings(struct dma_buf *dma_buf)
{
	dma_buf_move_notify(dma_buf);
}

static inline bool dma_buf_attach_revocable(struct dma_buf_attachment *attach)
{
	return false;
}
#endif

/* Can @dev reach a BAR of @memory? A kernel without PCI_P2PDMA does not know. */
static inline bool accmem_p2pdma_is_possible(struct pci_dev *memory,
					     struct device *dev)
{
	return !IS_ENABLED(CONFIG_PCI_P2PDMA) ||
	       pci_p2pdma_distance(memory, dev, false) >= 0;
}

#endif /* ACCMEM_COMPAT_DMA_BUF_H */
