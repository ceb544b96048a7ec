/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Providers: the drivers of devices whose memory accmem manages.
 *
 * A provider registers the memory of a device: accmem_provider_create(), then
 * accmem_provider_add_range() or accmem_provider_add_bar() for each range, then
 * accmem_provider_publish(). Programs can then open /dev/accmemN.
 * accmem_provider_unregister() takes the memory back at any time, and waits for no program.
 * Documentation/driver-api/provider.rst explains the interface;
 * Documentation/tutorials/provider.rst is the tutorial. The functions are described where
 * they are defined: driver/provider.c, driver/export/pin.c, and driver/vm/context.c for
 * accmem_context_put().
 *
 * Functions that return a pointer return an ERR_PTR() on failure. A module that calls
 * these functions imports the symbol namespace ACCMEM.
 */
#ifndef _LINUX_ACCMEM_PROVIDER_H
#define _LINUX_ACCMEM_PROVIDER_H

#include <linux/bits.h>
#include <linux/types.h>

#include <uapi/linux/accmem.h>

struct accmem_context;
struct accmem_pins;
struct accmem_provider;
struct device;
struct dma_fence;
struct module;
struct pci_dev;

#define ACCMEM_MAX_PROVIDERS \
	16 /* devices, with removed ones that programs still hold */
#define ACCMEM_MAX_RANGES 8 /* ranges of a device */
#define ACCMEM_MAX_PARTS 1024 /* parts that one call of accmem_pin() pins */

/**
 * enum accmem_range_flags - properties of a range
 * @ACCMEM_RANGE_EMULATED: use ordinary memory of the host in place of a range, and ignore
 *	&accmem_range.start. For tests, and for devices without memory.
 * @ACCMEM_RANGE_PAGES: give the range page structures, so that mappings can be pinned, and
 *	map the range write-back in folios of 2 MiB. The range must be memory that the host
 *	may cache. Without this flag programs map frames, in any cache mode, and mappings
 *	cannot be pinned.
 * @ACCMEM_RANGE_CLAIMED: the provider has claimed the range, for example because it uses
 *	another part of the BAR by itself, and releases the range after
 *	accmem_provider_unregister(). Only with ACCMEM_RANGE_IO. Without this flag accmem
 *	claims the range. All of the range must then be marked as reserved
 *	(IORES_DESC_RESERVED or IORES_DESC_SOFT_RESERVED) in the resource tree, but see
 *	ACCMEM_RANGE_DESCRIBED.
 * @ACCMEM_RANGE_PROBE: write to the range and read back before the range is used
 * @ACCMEM_RANGE_IO: the range is behind a bus and the host may not cache it. A program that
 *	requests the default cache mode gets write-combining. Not with
 *	ACCMEM_RANGE_EMULATED or ACCMEM_RANGE_PAGES. A range without this flag may be in the
 *	caches of the CPU. The CPU writes cache lines back at any time, also after
 *	accmem_provider_revoke(): such a range must answer until
 *	accmem_provider_unregister() has returned and all holders of its memory are gone.
 * @ACCMEM_RANGE_DESCRIBED: the firmware describes the range as reserved memory. So the
 *	resource tree need not have the range. If the resource tree has a part of
 *	the range, the whole range must be marked as reserved there.
 */
enum accmem_range_flags {
	ACCMEM_RANGE_EMULATED = BIT(0),
	ACCMEM_RANGE_PAGES = BIT(1),
	ACCMEM_RANGE_CLAIMED = BIT(2),
	ACCMEM_RANGE_PROBE = BIT(3),
	ACCMEM_RANGE_IO = BIT(4),
	ACCMEM_RANGE_DESCRIBED = BIT(5),
};

/**
 * struct accmem_range - a range of device memory
 * @start: physical address; a multiple of 2 MiB
 * @size: size in bytes, not 0; a multiple of 2 MiB, or of 4 KiB for ACCMEM_RANGE_EMULATED
 * @flags: bits of enum accmem_range_flags
 * @bandwidth: enum accmem_bandwidth
 * @node: NUMA node, which is online, or NUMA_NO_NODE
 * @pci: PCI device whose BAR contains the range, or NULL; only with ACCMEM_RANGE_IO. If the
 *	kernel has PCI_P2PDMA, another PCI device that cannot reach the BAR cannot import the
 *	memory. The device must stay on its bus until accmem_provider_unregister() returns.
 */
struct accmem_range {
	phys_addr_t start;
	u64 size;
	u32 flags;
	u32 bandwidth;
	int node;
	struct pci_dev *pci;
};

/**
 * struct accmem_provider_ops - work that the device does in place of the processor
 * @clear: start to zero @size bytes at @offset of range @range. Returns a fence that
 *	signals when the bytes are zero, NULL if they are zero already, or an ERR_PTR(). If
 *	the operation is absent, returns an ERR_PTR(), or if the fence has an error, the
 *	processor zeroes the bytes.
 * @copy: start to copy @size bytes from @from_offset of range @from to @to_offset of range
 *	@to. The two parts do not overlap. Returns as @clear: a fence, NULL or an ERR_PTR().
 *
 * Ranges have the numbers 0, 1 and so on, in the order in which they were added. Offsets
 * and sizes are in bytes, and are multiples of 4 KiB for @clear; @copy may have any.
 *
 * The caller gets a reference to the fence, and drops it. The fence must signal within a
 * bounded time, whatever programs do.
 *
 * The operations are called in process context, without a spinlock, and may sleep. Several
 * processors may call them at the same time. An operation calls no function of this header.
 * None runs when accmem_provider_revoke() or accmem_provider_unregister() has returned, and
 * none is called until accmem_provider_resume().
 */
struct accmem_provider_ops {
	struct dma_fence *(*clear)(void *priv, unsigned int range, u64 offset,
				   u64 size);
	struct dma_fence *(*copy)(void *priv, unsigned int to, u64 to_offset,
				  unsigned int from, u64 from_offset, u64 size);
};

/**
 * enum accmem_revoke_why - why a provider takes the memory back
 * @ACCMEM_REVOKE_RESET: the device is reset or sleeps; accmem_provider_resume() follows
 * @ACCMEM_REVOKE_GONE: the device does not come back; accmem_provider_resume() has no
 *	effect afterwards
 */
enum accmem_revoke_why {
	ACCMEM_REVOKE_RESET,
	ACCMEM_REVOKE_GONE,
};

/**
 * struct accmem_part - a part of a program's memory, for accmem_pin()
 * @address: device address inside a buffer
 * @size: size in bytes, not 0; the bytes lie in that buffer, or in its page of small buffers
 * @write: true if the device will write to the part
 * @range: out: number of the range where the part lies: 0 for the range that was added first
 * @offset: out: offset in the range, in bytes
 */
struct accmem_part {
	u64 address;
	u64 size;
	bool write;
	unsigned int range;
	u64 offset;
};

struct accmem_provider *
accmem_provider_create(struct device *parent,
		       const struct accmem_provider_ops *ops, void *priv);
int accmem_provider_add_range(struct accmem_provider *provider,
			      const struct accmem_range *range);
int accmem_provider_add_bar(struct accmem_provider *provider,
			    struct pci_dev *pdev, int bar);
int accmem_provider_publish(struct accmem_provider *provider);
unsigned int accmem_provider_revoke(struct accmem_provider *provider,
				    enum accmem_revoke_why why);
void accmem_provider_resume(struct accmem_provider *provider, bool kept);
int accmem_provider_retire(struct accmem_provider *provider, unsigned int range,
			   u64 offset, u64 size);
void accmem_provider_unregister(struct accmem_provider *provider);

struct accmem_context *accmem_context_from_fd(struct accmem_provider *provider,
					      int fd);
void accmem_context_put(struct accmem_context *ctx);
struct accmem_pins *accmem_pin(struct accmem_context *ctx,
			       struct accmem_part *parts, unsigned int nr);
void accmem_unpin(struct accmem_pins *pins, struct dma_fence *fence);

#endif /* _LINUX_ACCMEM_PROVIDER_H */
