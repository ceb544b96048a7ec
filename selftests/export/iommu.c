// SPDX-License-Identifier: GPL-2.0
/*
 * Exports that a device behind an IOMMU imports: QEMU's pci-testdev on the machine of the
 * lane "pci", which has Intel's IOMMU. At the addresses of a mapping the device must reach the
 * exported memory and no other memory. The test finds what the device reaches in the kernel's
 * tables of the IOMMU.
 */
#include "export_util.h"

FIXTURE(iommu)
{
	int fd;
	struct accmem_alloc a;
	char *p;
};

FIXTURE_VARIANT(iommu)
{
	const char *path;
	uint32_t kind;
};

FIXTURE_VARIANT_ADD(iommu, emulated)
{
	.path = ACCMEM_DEV_EMULATED,
};
FIXTURE_VARIANT_ADD(iommu, phys)
{
	.path = ACCMEM_DEV_PHYS,
};
FIXTURE_VARIANT_ADD(iommu, bar)
{
	.path = ACCMEM_DEV_NOPAGES,
};
FIXTURE_VARIANT_ADD(iommu, host)
{
	.path = ACCMEM_DEV_EMULATED,
	.kind = ACCMEM_KIND_HOST,
};

static const uint64_t size = MIB(4) + KIB(12);

FIXTURE_SETUP(iommu)
{
	self->fd = accmem_opened(variant->path);
	self->a = (struct accmem_alloc){
		.length = size,
		.kind = variant->kind,
	};
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->a));
	self->p = accmem_mapped(self->fd, &self->a, size);
	accmem_fill(self->p, size, 1);
}

FIXTURE_TEARDOWN(iommu)
{
	munmap(self->p, size);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

/* reads all bytes by the addresses of the device, and writes the last page */
static void reach(struct __test_metadata *_metadata, int importer, char *p)
{
	char *bytes = malloc(size), page[4096];
	uint64_t at, part;

	for (at = 0; at < size; at += part) {
		part = size - at < KIB(512) ? size - at : KIB(512);
		ASSERT_EQ(0, importer_copy(importer, false, false, at,
					   bytes + at, part));
	}
	EXPECT_EQ(0, memcmp(bytes, p, size));
	memset(page, 0xc3, sizeof(page));
	ASSERT_EQ(0, importer_copy(importer, false, true, size - sizeof(page),
				   page, sizeof(page)));
	EXPECT_EQ(0, memcmp(page, p + size - sizeof(page), sizeof(page)));
	free(bytes);
}

/* attaches, maps, and checks that the addresses are those of an IOMMU */
static int attached(struct __test_metadata *_metadata, int d, uint32_t kind)
{
	struct test_importer_map map = { .direction = TEST_IMPORTER_BOTH };
	int importer = importer_attach(d, TEST_IMPORTER_PCI | kind);

	EXPECT_LE(0, importer);
	EXPECT_EQ(0, importer_call(importer, TEST_IMPORTER_MAP, &map));
	EXPECT_EQ(1, map.iommu);
	EXPECT_EQ(size, map.bytes);
	return importer;
}

TEST_F(iommu, the_device_reaches_the_memory)
{
	int d = export_all(self->fd, &self->a), importer;

	ASSERT_LE(0, d);
	importer = attached(_metadata, d, 0);
	reach(_metadata, importer, self->p);
	close(importer);
	importer = attached(_metadata, d, TEST_IMPORTER_DYNAMIC);
	reach(_metadata, importer, self->p);
	close(importer);
	close(d);
}

/* Two importers have the same memory mapped, each at DMA addresses of its own. */
TEST_F(iommu, twice)
{
	int d = export_all(self->fd, &self->a), one, two;

	ASSERT_LE(0, d);
	one = attached(_metadata, d, 0);
	two = attached(_metadata, d, TEST_IMPORTER_DYNAMIC);
	reach(_metadata, one, self->p);
	close(one);
	reach(_metadata, two, self->p);
	close(two);
	close(d);
}

/* FREE while the device has a mapping: the memory becomes free when the mapping ends. */
TEST_F(iommu, freed_while_the_device_has_it)
{
	int d = export_all(self->fd, &self->a), importer;

	ASSERT_LE(0, d);
	importer = attached(_metadata, d, 0);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	reach(_metadata, importer, self->p);
	close(importer);
	close(d);
}

TEST_HARNESS_MAIN
