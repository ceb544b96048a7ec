// SPDX-License-Identifier: GPL-2.0
/*
 * IMPORT of dma-bufs that the kernel makes of ordinary memory: those of udmabuf and of the
 * system heap. The distribution's Linux 7.3 has both.
 */
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>

#include "order_util.h"

ACCMEM_FIXTURE(import_heaps)

/* Refuses the dma-buf, which can be used afterwards. */
static void refuse(struct __test_metadata *_metadata, int fd, int d)
{
	unsigned int open = accmem_nr_descriptors();
	char *p;

	ASSERT_LE(0, d);
	EXPECT_EQ(-EOPNOTSUPP, import_foreign(fd, d));
	p = mmap(NULL, KIB(64), RW, MAP_SHARED, d, 0);
	ASSERT_NE(MAP_FAILED, p);
	accmem_fill(p, KIB(64), 1);
	EXPECT_EQ(-EOPNOTSUPP, import_foreign(fd, d));
	EXPECT_EQ(-1, accmem_check(p, KIB(64), 1));
	munmap(p, KIB(64));
	EXPECT_EQ(open, accmem_nr_descriptors());
	EXPECT_EQ(0, accmem_charged(fd));
}

TEST_F(import_heaps, udmabuf)
{
	struct udmabuf_create create = { .size = KIB(64) };
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), d;

	ASSERT_LE(0, device);
	create.memfd = memfd_create("memory", MFD_ALLOW_SEALING);
	ASSERT_LE(0, (int)create.memfd);
	ASSERT_EQ(0, ftruncate(create.memfd, KIB(64)));
	ASSERT_EQ(0, fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK));
	d = ioctl(device, UDMABUF_CREATE, &create);
	refuse(_metadata, self->fd, d);
	close(d);
	close(create.memfd);
	close(device);
}

TEST_F(import_heaps, system_heap)
{
	struct dma_heap_allocation_data heap = {
		.len = KIB(64),
		.fd_flags = O_RDWR | O_CLOEXEC,
	};
	int device = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);

	ASSERT_LE(0, device);
	ASSERT_EQ(0, ioctl(device, DMA_HEAP_IOCTL_ALLOC, &heap));
	refuse(_metadata, self->fd, heap.fd);
	close(heap.fd);
	close(device);
}

ACCMEM_HARNESS_MAIN
