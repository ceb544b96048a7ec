// SPDX-License-Identifier: GPL-2.0
/*
 * REALLOC of buffers that prefer large pages. Normal pages serve where there is no room
 * for large ones.
 */
#include "realloc_util.h"

REALLOC_FIXTURE(realloc_pages)

/*
 * If no large page is free, a buffer that has to move moves to normal pages. A
 * pin prevents the move with -EBUSY, but only if there is memory to move to.
 */
TEST_F(realloc_pages, moves_where_no_large_pages_are_left)
{
	unsigned int n = 0, i, nr = self->info.capacity / MIB(1);
	struct accmem_alloc a = { .length = MIB(2),
				  .flags = RESIZABLE,
				  .page_policy = ACCMEM_PAGE_HUGE_FIRST };
	struct accmem_alloc *pieces, behind;
	struct accmem_realloc r;
	char *p;
	int pipes[2];

	/* on other devices a buffer is one run */
	if (!(self->info.features & ACCMEM_FEATURE_SCATTER))
		return;
	pieces = calloc(nr, sizeof(*pieces));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(MIB(2), a.page_size);
	ASSERT_EQ(0, block(self->fd, &a, &behind));
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

/* If no large page is free, a buffer that can grow in place gets normal pages. */
TEST_F(realloc_pages, grows_where_no_large_pages_are_left)
{
	unsigned int n = 0, i, nr = self->info.capacity / MIB(1);
	struct accmem_alloc a = { .length = MIB(2),
				  .flags = RESIZABLE,
				  .page_policy = ACCMEM_PAGE_HUGE_FIRST,
				  .reserve = MIB(6) };
	struct accmem_alloc *pieces;
	struct accmem_realloc r;
	int pipes[2];
	char *p;

	/* on other devices a buffer is one run */
	if (!(self->info.features & ACCMEM_FEATURE_SCATTER))
		return;
	pieces = calloc(nr, sizeof(*pieces));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	while (!accmem_alloc_bytes(self->fd, MIB(1), 0, &pieces[n]))
		n++;
	for (i = 0; i < n; i += 2)
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, pieces[i].address));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(4), IN_PLACE,
					  &r));
	EXPECT_EQ(a.address, r.address);
	EXPECT_EQ(GRANULE, r.page_size);
	/* a pin prevents the move, but not the growth */
	p = map_at(self->fd, a.address, MIB(4));
	ASSERT_NE(NULL, p);
	accmem_fill(p, MIB(4), 22);
	ASSERT_TRUE(accmem_pin(pipes, p, GRANULE));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(6), 0, &r));
	EXPECT_EQ(a.address, r.address);
	accmem_unpin(pipes);
	unmap(p, MIB(4));
	EXPECT_EQ(-1, check_at(self->fd, a.address, MIB(4), MIB(6), 22));
	free(pieces);
}

/* A buffer whose address is no multiple of 2 MiB grows by normal pages. */
TEST_F(realloc_pages, grows_at_an_address_of_normal_pages)
{
	struct accmem_alloc a = {
		.length = KIB(512),
		.flags = RESIZABLE | ACCMEM_ALLOC_FIXED,
		.page_policy = ACCMEM_PAGE_HUGE_FIRST,
		.address = self->info.address_base + self->info.capacity / 2 +
			   MIB(1),
	};
	struct accmem_alloc b;
	struct accmem_realloc r;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, fill_at(self->fd, a.address, KIB(512), 23));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(3), IN_PLACE,
					  &r));
	EXPECT_EQ(a.address, r.address);
	EXPECT_EQ(MIB(3), r.footprint);
	EXPECT_EQ(GRANULE, r.page_size);
	EXPECT_EQ(-1, check_at(self->fd, r.address, KIB(512), MIB(3), 23));
	a = as_alloc(&r);
	ASSERT_EQ(0, block(self->fd, &a, &b));
	EXPECT_EQ(-ENOMEM, accmem_ioctl_realloc(self->fd, a.address, MIB(4),
						IN_PLACE, &r));
	ASSERT_EQ(0, unblock(self->fd, &b));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* A limit that refuses the size of large pages leaves normal ones. */
TEST_F(realloc_pages, grows_to_a_limit_by_normal_pages)
{
	struct accmem_alloc a = { .length = MIB(4),
				  .flags = RESIZABLE,
				  .page_policy = ACCMEM_PAGE_HUGE_FIRST,
				  .reserve = MIB(8) };
	int64_t saved = accmem_param("max_bytes_per_context");
	struct accmem_realloc r;
	int err;

	ASSERT_LE(0, saved);
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", MIB(7)));
	err = accmem_ioctl_realloc(self->fd, a.address, MIB(6) + KIB(512),
				   IN_PLACE, &r);
	EXPECT_EQ(0, accmem_param_set("max_bytes_per_context", saved));
	/* owned folios are charged as a whole */
	ASSERT_EQ(accmem_owns_folios(&self->info) ? -EDQUOT : 0, err);
	if (!err)
		EXPECT_EQ(MIB(6) + KIB(512), r.footprint);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

ACCMEM_HARNESS_MAIN
