// SPDX-License-Identifier: GPL-2.0
/*
 * REALLOC of buffers that prefer large pages. Normal pages serve where there is no room
 * for large ones.
 */
#include "realloc_util.h"

REALLOC_FIXTURE(realloc_pages)

/*
 * Large pages are a preference: if none is free, the buffer moves to normal pages. A
 * pin prevents the move with -EBUSY, but only if there is memory to move to.
 */
TEST_F(realloc_pages, moves_where_no_large_pages_are_left)
{
	unsigned int n = 0, i, nr = self->info.capacity / MIB(1);
	struct accmem_alloc a = { .length = MIB(2),
				  .flags = RESIZABLE,
				  .page_policy = ACCMEM_PAGE_HUGE_FIRST,
				  .reserve = MIB(4) };
	struct accmem_alloc *pieces;
	struct accmem_realloc r;
	char *p;
	int pipes[2];

	/* on other devices a buffer is one run */
	if (!(self->info.features & ACCMEM_FEATURE_SCATTER))
		return;
	pieces = calloc(nr, sizeof(*pieces));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(MIB(2), a.page_size);
	p = map_at(self->fd, a.address, MIB(2));
	ASSERT_NE(NULL, p);
	accmem_fill(p, MIB(2), 21);
	ASSERT_TRUE(accmem_pin(pipes, p, GRANULE));
	while (!accmem_alloc_bytes(self->fd, MIB(1), 0, &pieces[n]))
		n++;
	EXPECT_EQ(-ENOMEM,
		  accmem_ioctl_realloc(self->fd, a.address, MIB(4), 0, &r));
	for (i = 0; i < n; i += 2)
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, pieces[i].address));
	EXPECT_EQ(-EBUSY,
		  accmem_ioctl_realloc(self->fd, a.address, MIB(4), 0, &r));
	accmem_unpin(pipes);
	EXPECT_EQ(-ENOMEM, accmem_ioctl_realloc(self->fd, a.address, MIB(4),
						IN_PLACE, &r));
	ASSERT_TRUE(query_says(self->fd, a.address, MIB(2), MIB(2)));
	ASSERT_EQ(0,
		  accmem_ioctl_realloc(self->fd, a.address, MIB(4), 0, &r));
	EXPECT_EQ(MIB(2), r.copied);
	EXPECT_EQ(GRANULE, r.page_size);
	EXPECT_EQ(-1, check_at(self->fd, r.address, MIB(2), MIB(4), 21));
	unmap(p, MIB(2));
	free(pieces);
}

ACCMEM_HARNESS_MAIN
