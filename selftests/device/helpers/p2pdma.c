// SPDX-License-Identifier: GPL-2.0
/*
 * Exports of a BAR to other PCI devices, for p2pdma.sh: the device of the path in ACCMEM_BAR
 * is below a switch with the second pci-testdev of the machine; the first is not.
 */
#include "export_util.h"

#define SIZE MIB(4)

FIXTURE(p2pdma)
{
	int fd;
	int dma_buf;
	struct accmem_alloc a;
};

FIXTURE_SETUP(p2pdma)
{
	ASSERT_NE(NULL, getenv("ACCMEM_BAR"));
	self->fd = accmem_opened(getenv("ACCMEM_BAR"));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, SIZE, 0, &self->a));
	self->dma_buf = export_all(self->fd, &self->a);
	ASSERT_LE(0, self->dma_buf);
}

FIXTURE_TEARDOWN(p2pdma)
{
	close(self->dma_buf);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(getenv("ACCMEM_BAR"), 20000));
}

TEST_F(p2pdma, a_device_that_cannot_reach_the_bar_is_refused)
{
	EXPECT_EQ(-EOPNOTSUPP,
		  importer_attach(self->dma_buf, TEST_IMPORTER_PCI));
	EXPECT_EQ(-EOPNOTSUPP,
		  importer_attach(self->dma_buf,
				  TEST_IMPORTER_PCI | TEST_IMPORTER_DYNAMIC));
}

TEST_F(p2pdma, a_device_below_the_same_switch_reaches_the_bar)
{
	char *p = accmem_mapped(self->fd, &self->a, SIZE), byte = 0;
	int importer;

	importer = importer_attach(self->dma_buf, TEST_IMPORTER_SECOND_PCI);
	ASSERT_LE(0, importer);
	ASSERT_EQ(0, importer_map(importer, TEST_IMPORTER_BOTH));
	p[SIZE - 1] = 0x5a;
	EXPECT_EQ(0, importer_copy(importer, false, false, SIZE - 1, &byte, 1));
	EXPECT_EQ(0x5a, byte);
	close(importer);
	munmap(p, SIZE);
}

/* The check is for PCI devices only: nothing is known about others. */
TEST_F(p2pdma, a_device_of_another_bus_is_accepted)
{
	int importer = importer_attach(self->dma_buf, 0);

	EXPECT_LE(0, importer);
	close(importer);
}

ACCMEM_HARNESS_MAIN
