/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Test importers: the ioctls of /dev/test-importer.
 *
 * An open file is one importer. It attaches to one dma-buf, maps it, and accesses the
 * memory. The module is for tests only: never load it on a machine in production.
 */
#ifndef ACCMEM_TEST_IMPORTER_H
#define ACCMEM_TEST_IMPORTER_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Kinds of importers.
 *
 * DYNAMIC  unmaps when the exporter asks for it; without DYNAMIC the importer is static
 * SLOW     unmaps TEST_IMPORTER_SLOW_MS later
 * KEEPS    never unmaps when it is asked to
 * NO_MASK  its device cannot do DMA
 * NARROW   its device has 24 address lines
 * PCI      its device is QEMU's pci-testdev, which may be behind an IOMMU; ENODEV if the
 *          machine has no pci-testdev
 * SECOND_PCI  likewise, with the machine's second pci-testdev
 */
#define TEST_IMPORTER_DYNAMIC 0x1u
#define TEST_IMPORTER_SLOW 0x2u
#define TEST_IMPORTER_KEEPS 0x4u
#define TEST_IMPORTER_NO_MASK 0x8u
#define TEST_IMPORTER_NARROW 0x10u
#define TEST_IMPORTER_PCI 0x20u
#define TEST_IMPORTER_SECOND_PCI 0x40u

#define TEST_IMPORTER_SLOW_MS 100

/* Directions of a mapping, as enum dma_data_direction of the kernel. */
#define TEST_IMPORTER_BOTH 0u
#define TEST_IMPORTER_READS 1u
#define TEST_IMPORTER_WRITES 2u

/**
 * struct test_importer_attach - attach to a dma-buf
 * @fd: file descriptor of the dma-buf
 * @kind: TEST_IMPORTER_* bits
 */
struct test_importer_attach {
	__s32 fd;
	__u32 kind;
};

/**
 * struct test_importer_map - map the dma-buf for the device
 * @direction: in: TEST_IMPORTER_BOTH, _READS or _WRITES
 * @nr: out: number of entries of the table
 * @bytes: out: sum of the lengths of the entries
 * @pages: out: 1 if the entries have page structures
 * @iommu: out: 1 if an IOMMU translates the DMA addresses
 */
struct test_importer_map {
	__u32 direction;
	__u32 nr;
	__u64 bytes;
	__u32 pages;
	__u32 iommu;
};

/**
 * struct test_importer_copy - access the memory
 * @offset: offset in the dma-buf
 * @length: bytes
 * @data: address of @length bytes of the caller's memory
 * @write: 1 to write to the dma-buf, 0 to read
 * @by_cpu: 1 to use the kernel's mapping (VMAP), 0 to use the DMA addresses (MAP)
 */
struct test_importer_copy {
	__u64 offset;
	__u64 length;
	__u64 data;
	__u32 write;
	__u32 by_cpu;
};

/**
 * struct test_importer_query - state of the importer
 * @notified: number of requests of the exporter to unmap
 * @mapped: 1 if the importer has a mapping
 */
struct test_importer_query {
	__u32 notified;
	__u32 mapped;
};

#define TEST_IMPORTER_ATTACH _IOW('I', 0, struct test_importer_attach)
#define TEST_IMPORTER_DETACH _IO('I', 1)
#define TEST_IMPORTER_MAP _IOWR('I', 2, struct test_importer_map)
#define TEST_IMPORTER_UNMAP _IO('I', 3)
#define TEST_IMPORTER_VMAP _IO('I', 4)
#define TEST_IMPORTER_VUNMAP _IO('I', 5)
#define TEST_IMPORTER_COPY _IOW('I', 6, struct test_importer_copy)
#define TEST_IMPORTER_QUERY _IOR('I', 7, struct test_importer_query)

#endif /* ACCMEM_TEST_IMPORTER_H */
