// SPDX-License-Identifier: GPL-2.0
/*
 * REALLOC. A buffer grows or shrinks in place or by a move. The tests check the
 * contents that it keeps and the memory that it gives back.
 */
#include "realloc_util.h"
#include "stream_util.h"

REALLOC_FIXTURE(realloc)

/*
 * T7: growth in a reservation allocates the missing memory only, keeps the address and
 * all contents, and copies nothing. The new part reads as zero (T5).
 */
TEST_F(realloc, grows_in_a_reservation)
{
	uint64_t length = KIB(64), before = accmem_free_now(self->fd);
	struct accmem_realloc r;
	struct accmem_alloc a;

	ASSERT_EQ(0, alloc(self->fd, length, MIB(4), &a));
	ASSERT_EQ(length, a.footprint);
	ASSERT_EQ(before - length, accmem_free_now(self->fd));
	ASSERT_EQ(0, fill_at(self->fd, a.address, length, 1));
	while (length < MIB(4)) {
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address,
						  length + KIB(64), 0, &r));
		ASSERT_EQ(a.address, r.address);
		ASSERT_EQ(0, r.copied);
		ASSERT_EQ(length + KIB(64), r.usable);
		ASSERT_EQ(length + KIB(64), r.footprint);
		ASSERT_EQ(a.mmap_offset, r.mmap_offset);
		ASSERT_EQ(0, r.free_bytes | r.largest_run);
		if (length == MIB(2))
			ASSERT_EQ(-1, check_at(self->fd, a.address, length,
					       r.usable, 1));
		length = r.usable;
		if (length == MIB(2))
			ASSERT_EQ(0, fill_at(self->fd, a.address, length, 1));
		ASSERT_EQ(before - length, accmem_free_now(self->fd));
	}
	ASSERT_TRUE(query_says(self->fd, a.address, length, length));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	ASSERT_EQ(-1, check_at(self->fd, a.address, MIB(2), length, 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	ASSERT_EQ(before, accmem_free_now(self->fd));
}

/* With mapped translation a reservation takes device addresses, and no memory. */
TEST_F(realloc, a_reservation_takes_no_memory)
{
	struct accmem_alloc a, b, c;

	if (self->identity)
		return;
	ASSERT_EQ(0, alloc(self->fd, GRANULE, 4 * self->info.capacity, &a));
	EXPECT_EQ(GRANULE, a.footprint);
	EXPECT_EQ(self->info.free_bytes - GRANULE, accmem_free_now(self->fd));
	/* the reserved addresses are taken, and belong to no buffer */
	EXPECT_EQ(-EEXIST, block(self->fd, &a, &b));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->fd, a.address + GRANULE));
	ASSERT_EQ(0, alloc(self->fd, GRANULE, MIB(64), &c));
	EXPECT_TRUE(c.address >= a.address + 4 * self->info.capacity ||
		    c.address + MIB(64) <= a.address);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, c.address));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	ASSERT_EQ(0, block(self->fd, &a, &b));
	ASSERT_EQ(0, unblock(self->fd, &b));
}

/* T5: a buffer grows in place without a reservation if nothing is behind it. */
TEST_F(realloc, grows_where_neighbours_allow)
{
	struct accmem_alloc a = {
		.length = KIB(64),
		.flags = RESIZABLE | ACCMEM_ALLOC_FIXED,
		.address = self->info.address_base + self->info.capacity / 2,
	};
	struct accmem_realloc r;
	struct accmem_alloc b;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, block(self->fd, &a, &b));
	ASSERT_EQ(-ENOMEM, accmem_ioctl_realloc(self->fd, a.address, KIB(128),
						IN_PLACE, &r));
	EXPECT_NE(0, r.free_bytes);
	EXPECT_NE(0, r.largest_run);
	EXPECT_EQ(a.address, r.address);
	ASSERT_EQ(0, unblock(self->fd, &b));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, KIB(128),
					  IN_PLACE, &r));
	ASSERT_EQ(a.address, r.address);
	ASSERT_EQ(KIB(128), r.footprint);
	ASSERT_TRUE(query_says(self->fd, a.address, KIB(128), KIB(128)));
	/* the new part belongs to the buffer */
	EXPECT_EQ(-EEXIST, block(self->fd, &a, &b));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* A cached buffer of the same context does not block growth. */
TEST_F(realloc, grows_over_what_is_kept)
{
	struct accmem_alloc a, b;
	struct accmem_realloc r;

	/* with identity translation it may be at the end of the free memory */
	if (self->identity)
		return;
	ASSERT_EQ(0, alloc(self->fd, KIB(64), 0, &a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, GRANULE, 0, &b));
	ASSERT_EQ(a.address + KIB(64), b.address);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, KIB(128),
					  IN_PLACE, &r));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* Allocates a buffer with 2 MiB free before it, which the context @fd keeps if freed. */
static int alloc_kept(int fd, struct accmem_alloc *kept)
{
	struct accmem_alloc low, b = { .length = KIB(64), .alignment = MIB(2) };

	low = b;
	*kept = b;
	if (accmem_ioctl_alloc(fd, &low) || accmem_ioctl_alloc(fd, kept))
		return -ENOMEM;
	if (low.address > kept->address) {
		b = *kept;
		*kept = low;
		low = b;
	}
	return accmem_ioctl_free(fd, low.address);
}

/* A cached buffer of another context does not block growth in place either. */
TEST_F(realloc, grows_over_what_others_keep)
{
	int other = accmem_opened(variant->path);
	struct accmem_alloc kept, a = {
		.length = MIB(2),
		.flags = RESIZABLE | ACCMEM_ALLOC_FIXED,
	};

	ASSERT_EQ(0, alloc_kept(other, &kept));
	a.address = kept.address - MIB(2);
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_ioctl_free(other, kept.address));
	EXPECT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(2) + KIB(64),
					  IN_PLACE, NULL));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	close(other);
}

/* Nor does it where the buffer might move, but cannot: a limit permits no second one. */
TEST_F(realloc, grows_over_what_others_keep_if_it_cannot_move)
{
	int64_t saved = accmem_param("max_bytes_per_context");
	int other = accmem_opened(variant->path);
	struct accmem_alloc kept, a = {
		.length = MIB(2),
		.flags = RESIZABLE | ACCMEM_ALLOC_FIXED,
	};
	struct accmem_realloc r;

	ASSERT_LE(0, saved);
	ASSERT_EQ(0, alloc_kept(other, &kept));
	a.address = kept.address - MIB(2);
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_ioctl_free(other, kept.address));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", MIB(4)));
	EXPECT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(2) + KIB(64),
					  0, &r));
	EXPECT_EQ(0, accmem_param_set("max_bytes_per_context", saved));
	EXPECT_EQ(a.address, r.address);
	EXPECT_EQ(0, r.copied);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	close(other);
}

/* Memory whose fence has signalled does not block growth either. */
TEST_F(realloc, grows_over_what_is_due)
{
	struct accmem_alloc b, a = {
		.length = KIB(64),
		.flags = RESIZABLE | ACCMEM_ALLOC_FIXED,
		.address = self->info.address_base + self->info.capacity / 2,
	};
	unsigned int i, rounds = accmem_scale(20);
	int fences = fence_device(), file;
	uint32_t id;

	ASSERT_LE(0, fences);
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	for (i = 0; i < rounds + 1; i++) {
		file = fence_created(fences, &id);
		ASSERT_EQ(0, block(self->fd, &a, &b));
		ASSERT_EQ(0, fence_free(self->fd, b.address, file));
		ASSERT_EQ(0, fence_signal(fences, id, 0, 0));
		close(file);
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, KIB(128),
						  IN_PLACE, NULL));
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, KIB(64),
						  IN_PLACE, NULL));
	}
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	close(fences);
}

/* T5: otherwise the buffer moves. Its old address is unknown, and its contents are kept. */
TEST_F(realloc, moves_where_they_do_not)
{
	struct accmem_alloc a, b;
	struct accmem_realloc r;

	ASSERT_EQ(0, alloc(self->fd, KIB(64), 0, &a));
	ASSERT_EQ(0, block(self->fd, &a, &b));
	ASSERT_EQ(0, fill_at(self->fd, a.address, KIB(64), 2));
	ASSERT_EQ(0,
		  accmem_ioctl_realloc(self->fd, a.address, KIB(256), 0, &r));
	ASSERT_NE(a.address, r.address);
	ASSERT_EQ(KIB(64), r.copied);
	ASSERT_EQ(-ENOENT, accmem_ioctl_free(self->fd, a.address));
	ASSERT_TRUE(query_says(self->fd, r.address, KIB(256), KIB(256)));
	ASSERT_EQ(-1, check_at(self->fd, r.address, KIB(64), KIB(256), 2));
	ASSERT_EQ(1 + !!b.address, accmem_sysfs(variant->path, "buffers"));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	ASSERT_EQ(0, unblock(self->fd, &b));
}

#define HOLES 8

/* A buffer grows by several runs. kmemleak checks the list of runs. */
TEST_F(realloc, grows_into_holes)
{
	uint64_t hole = self->info.capacity / (2 * HOLES) / MIB(2) * MIB(2);
	struct accmem_alloc a, pieces[2 * HOLES], rest;
	struct accmem_realloc r;
	unsigned int i;

	/* other devices have one run for each buffer */
	if (!(self->info.features & ACCMEM_FEATURE_SCATTER))
		return;
	for (i = 0; i < 2 * HOLES; i++)
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, hole, 0, &pieces[i]));
	while (!accmem_alloc_bytes(self->fd, MIB(2), 0, &rest))
		;
	for (i = 0; i < 2 * HOLES; i += 2)
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, pieces[i].address));
	ASSERT_EQ(0, accmem_drain(self->fd));
	ASSERT_EQ(0, alloc(self->fd, GRANULE, 0, &a));
	ASSERT_EQ(0, fill_at(self->fd, a.address, GRANULE, 7));
	for (i = 2; i < HOLES; i += 2) {
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, i * hole,
						  0, &r));
		EXPECT_LT(i / 2, r.nr_runs);
		a.address = r.address;
	}
	EXPECT_EQ(-1, check_at(self->fd, a.address, GRANULE, GRANULE, 7));
	/* shrinks to one run, and frees the blocking buffers */
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, GRANULE, 0, &r));
	EXPECT_EQ(1, r.nr_runs);
	EXPECT_EQ(-1, check_at(self->fd, r.address, GRANULE, GRANULE, 7));
}

/* Memory that was moved, freed and allocated again reads as zero. */
TEST_F(realloc, what_was_copied_is_cleared)
{
	const uint64_t lengths[] = { 100, KIB(8), KIB(64), MIB(2) };
	struct accmem_alloc a, b, c;
	struct accmem_realloc r;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		a = (struct accmem_alloc){ .length = lengths[i],
					   .flags = RESIZABLE };
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
		if (lengths[i] >= GRANULE)
			ASSERT_EQ(0, block(self->fd, &a, &b));
		ASSERT_EQ(0,
			  fill_at(self->fd, a.address, lengths[i] / 8 * 8, 5));
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address,
						  2 * lengths[i], 0, &r));
		ASSERT_NE(a.address, r.address);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
		c = (struct accmem_alloc){ .length = 2 * lengths[i],
					   .flags = RESIZABLE };
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &c));
		ASSERT_EQ(-1, check_at(self->fd, c.address, 0,
				       2 * lengths[i] / 8 * 8, 0));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, c.address));
		if (lengths[i] >= GRANULE)
			ASSERT_EQ(0, unblock(self->fd, &b));
	}
}

/*
 * Shrinking frees granules for all contexts. After growth the new part reads as zero.
 * Pages of 2 MiB stay whole where they may be mapped, and where they are the host's.
 */
TEST_F(realloc, shrinking_returns_granules)
{
	enum { UNTOUCHED, BY_DEVICE, MAPPED } how;
	uint64_t before = accmem_free_now(self->fd);
	bool phys = self->info.backing == ACCMEM_BACKING_PHYS;
	struct accmem_realloc r;
	struct accmem_alloc a, b;
	uint64_t kept;

	for (how = UNTOUCHED; how <= MAPPED; how++) {
		bool whole = how && self->pins && (how == MAPPED || !phys);

		ASSERT_EQ(0, alloc(self->fd, MIB(8), 0, &a));
		if (how == BY_DEVICE)
			ASSERT_EQ(0, device_fill_at(self->fd, a.address, MIB(8),
						    6));
		if (how == MAPPED)
			ASSERT_EQ(0, fill_at(self->fd, a.address, MIB(8), 6));
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address,
						  KIB(20) + 8, 0, &r));
		ASSERT_EQ(a.address, r.address);
		ASSERT_EQ(KIB(20) + 8, r.usable);
		kept = r.footprint;
		ASSERT_LE(KIB(24), kept);
		ASSERT_GE(whole ? MIB(4) : KIB(24), kept);
		ASSERT_EQ(before - kept, accmem_free_now(self->fd));
		ASSERT_EQ(kept, accmem_sysfs(variant->path, "live_bytes"));
		ASSERT_TRUE(query_says(self->fd, a.address, KIB(20) + 8, kept));
		a.footprint = kept;
		ASSERT_EQ(0, block(self->fd, &a, &b));
		ASSERT_EQ(0, unblock(self->fd, &b));
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(8),
						  0, &r));
		ASSERT_EQ(-1, check_at(self->fd, r.address,
				       how ? KIB(20) + 8 : 0, MIB(8), 6));
		ASSERT_EQ(before - MIB(8), accmem_free_now(self->fd));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	}
}

/*
 * A resized buffer that no program has mapped has no page table entries: a shrink leaves
 * it the granule that it needs, although the move before has written to it.
 */
TEST_F(realloc, a_copy_is_no_mapping)
{
	struct accmem_alloc a = {
		.length = 100,
		.flags = RESIZABLE,
		.page_policy = ACCMEM_PAGE_NORMAL_ONLY,
	};
	uint64_t before = accmem_free_now(self->fd);
	struct accmem_realloc r;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, device_fill_at(self->fd, a.address, 96, 6));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(3), 0, &r));
	ASSERT_EQ(100, r.copied);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, r.address, 100, 0, &r));
	EXPECT_EQ(GRANULE, r.footprint);
	EXPECT_EQ(before - GRANULE, accmem_free_now(self->fd));
	EXPECT_EQ(-1, check_at(self->fd, r.address, 96, 96, 6));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
}

/* Bytes between the length and the end of the last granule read as zero after growth. */
TEST_F(realloc, what_was_beyond_the_end_reads_as_zero)
{
	struct accmem_realloc r;
	struct accmem_alloc a;
	char *p;

	ASSERT_EQ(0, alloc(self->fd, GRANULE, 0, &a));
	p = map_at(self->fd, a.address, GRANULE);
	ASSERT_NE(NULL, p);
	accmem_fill(p, GRANULE, 7);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, 3000, 0, &r));
	ASSERT_EQ(GRANULE, r.footprint);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, 4000, 0, &r));
	EXPECT_EQ(a.address, r.address);
	EXPECT_EQ(-1, accmem_check(p, 3000, 7));
	EXPECT_EQ(-1, accmem_first_nonzero(p + 3000, 1000));
	unmap(p, GRANULE);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* A small buffer stays in its granule when it can, and can become a large one. */
TEST_F(realloc, small_buffers)
{
	static const struct {
		uint64_t from, to;
		bool stays;
	} rows[] = {
		{ 100, 120, true },    { 1000, 100, true },
		{ 100, 1000, false },  { 64, 2048, false },
		{ 2048, 4096, false }, { 8, KIB(64), false },
	};
	struct accmem_alloc a, other;
	struct accmem_realloc r;
	uint64_t kept;
	unsigned int i;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &other));
	ASSERT_EQ(0, fill_at(self->fd, other.address, 64, 10));
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		ASSERT_EQ(0, alloc(self->fd, rows[i].from, 0, &a));
		kept = (rows[i].from < rows[i].to ? rows[i].from : rows[i].to) /
		       8 * 8;
		ASSERT_EQ(0, fill_at(self->fd, a.address, rows[i].from / 8 * 8,
				     11));
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address,
						  rows[i].to, 0, &r));
		ASSERT_EQ(rows[i].stays, r.address == a.address);
		ASSERT_EQ(rows[i].to, r.usable);
		if (rows[i].to <= 2048)
			ASSERT_EQ(ALIGN_UP(rows[i].to, 64), r.footprint);
		ASSERT_TRUE(query_says(self->fd, r.address, rows[i].to,
				       r.footprint));
		ASSERT_EQ(-1, check_at(self->fd, r.address, kept,
				       rows[i].to / 8 * 8, 11))
		{
			TH_LOG("row %u", i);
		}
		ASSERT_EQ(-1, check_at(self->fd, other.address, 64, 64, 10));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	}
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, other.address));
}

/* A resized buffer keeps its page policy, cache mode, placement and population. */
TEST_F(realloc, keeps_what_it_was_asked_for)
{
	static const struct accmem_alloc rows[] = {
		{ .page_policy = ACCMEM_PAGE_NORMAL_ONLY },
		{ .page_policy = ACCMEM_PAGE_HUGE_FIRST },
		{ .page_policy = ACCMEM_PAGE_HUGE_ONLY },
		{ .flags = ACCMEM_ALLOC_CONTIGUOUS },
		{ .flags = ACCMEM_ALLOC_TOP_DOWN },
		{ .flags = ACCMEM_ALLOC_POPULATE },
		{ .flags = ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32 },
		{ .alignment = KIB(64) },
		{ .cache_mode = ACCMEM_CACHE_WC },
		{ .cache_mode = ACCMEM_CACHE_UC },
	};
	const uint64_t lengths[] = { KIB(512), MIB(3), MIB(5), KIB(12) };
	struct accmem_query q, first;
	struct accmem_realloc r;
	struct accmem_alloc a;
	uint64_t address;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		a = rows[i];
		if (!(self->info.cache_modes & 1 << a.cache_mode))
			continue;
		a.flags |= RESIZABLE;
		a.length = KIB(64);
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
		ASSERT_EQ(0, fill_at(self->fd, a.address, KIB(12), 12));
		ASSERT_EQ(0, accmem_ioctl_query(self->fd, a.address, &first));
		address = a.address;
		for (j = 0; j < ARRAY_SIZE(lengths); j++) {
			ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, address,
							  lengths[j], 0, &r))
			{
				TH_LOG("row %u length %u", i, j);
			}
			address = r.address;
			ASSERT_EQ(0, accmem_ioctl_query(self->fd, address, &q));
			EXPECT_EQ(first.alloc_flags, q.alloc_flags);
			EXPECT_EQ(first.page_policy, q.page_policy);
			EXPECT_EQ(first.cache_mode, q.cache_mode);
			EXPECT_LE(first.alignment, q.alignment);
			EXPECT_EQ(0, address % q.alignment);
			EXPECT_EQ(lengths[j] + (a.flags & ACCMEM_ALLOC_TAIL32 ?
							32 :
							0),
				  q.usable);
			EXPECT_EQ(q.footprint, r.footprint);
			EXPECT_EQ(q.nr_runs, r.nr_runs);
			EXPECT_EQ(q.mmap_offset, r.mmap_offset);
			if (a.flags & ACCMEM_ALLOC_CONTIGUOUS)
				EXPECT_EQ(1, q.nr_runs);
			ASSERT_EQ(-1, check_at(self->fd, address, KIB(12),
					       lengths[j], 12))
			{
				TH_LOG("row %u length %u", i, j);
			}
		}
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, address));
	}
}

/* The alignment of a resized buffer is that of a new buffer of its length. */
TEST_F(realloc, does_not_raise_the_alignment_for_good)
{
	static const struct accmem_alloc rows[] = {
		{ .alignment = 0 },
		{ .alignment = 256 },
		{ .alignment = KIB(64) },
		{ .page_policy = ACCMEM_PAGE_HUGE_FIRST },
		{ .page_policy = ACCMEM_PAGE_HUGE_FIRST, .alignment = 256 },
	};
	const uint64_t lengths[] = { 100, MIB(3), 100, MIB(5), KIB(12), 64 };
	struct accmem_alloc a, other;
	struct accmem_query q, fresh;
	struct accmem_realloc r;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		a = rows[i];
		a.flags = RESIZABLE;
		a.length = 200;
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
		for (j = 0; j < ARRAY_SIZE(lengths); j++) {
			ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address,
							  lengths[j], 0, &r));
			a.address = r.address;
			other = rows[i];
			other.length = lengths[j];
			ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &other));
			ASSERT_EQ(0, accmem_ioctl_query(self->fd, other.address,
							&fresh));
			ASSERT_EQ(0,
				  accmem_ioctl_query(self->fd, r.address, &q));
			EXPECT_EQ(fresh.alignment, q.alignment)
			{
				TH_LOG("row %u length %u", i, j);
			}
			EXPECT_EQ(0, r.address % q.alignment);
			EXPECT_EQ(fresh.page_size, q.page_size);
			ASSERT_EQ(0,
				  accmem_ioctl_free(self->fd, other.address));
		}
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	}
}

/* A buffer at a fixed address grows in place when it can. */
TEST_F(realloc, fixed)
{
	uint64_t at = self->info.address_base + self->info.capacity / 2;
	struct accmem_alloc a = { .length = KIB(64),
				  .address = at,
				  .flags = RESIZABLE | ACCMEM_ALLOC_FIXED };
	struct accmem_realloc r;
	struct accmem_query q;
	struct accmem_alloc b;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, fill_at(self->fd, at, KIB(64), 13));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, at, MIB(1), 0, &r));
	ASSERT_EQ(at, r.address);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, at, KIB(64), 0, &r));
	a = as_alloc(&r);
	ASSERT_EQ(0, block(self->fd, &a, &b));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, at, MIB(4), 0, &r));
	ASSERT_NE(at, r.address);
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, r.address, &q));
	EXPECT_EQ(RESIZABLE, q.alloc_flags);
	ASSERT_EQ(-1, check_at(self->fd, r.address, KIB(64), MIB(4), 13));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	ASSERT_EQ(0, unblock(self->fd, &b));
}

/*
 * Memory that may be used before a position is not freed by REALLOC before that
 * position.
 */
TEST_F(realloc, pending_memory_waits_for_its_position)
{
	struct accmem_alloc a = { .length = KIB(64), .flags = RESIZABLE }, b;
	int stream = stream_created(self->fd);
	struct accmem_realloc r;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, stream_free(self->fd, a.address, stream, 5));
	a = (struct accmem_alloc){ .length = KIB(64), .flags = RESIZABLE };
	ASSERT_EQ(0, stream_alloc(self->fd, stream, &a));
	ASSERT_EQ(5, a.position);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, KIB(8), 0, &r));
	EXPECT_EQ(KIB(64), r.footprint);
	EXPECT_EQ(KIB(64), accmem_sysfs(variant->path, "live_bytes"));
	/* the buffer moves; its old memory is not reused before the position */
	ASSERT_EQ(0, block(self->fd, &a, &b));
	ASSERT_EQ(0,
		  accmem_ioctl_realloc(self->fd, a.address, KIB(256), 0, &r));
	EXPECT_NE(a.address, r.address);
	EXPECT_EQ(KIB(64), accmem_sysfs(variant->path, "pending_bytes"));
	ASSERT_EQ(0, stream_signal(stream, 5));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "pending_bytes"));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	ASSERT_EQ(0, unblock(self->fd, &b));
	close(stream);
}

/* A reservation holds again after the buffer was longer and has shrunk. */
TEST_F(realloc, keeps_its_reservation_where_it_has_moved_beyond_it)
{
	struct accmem_alloc a, b,
		in_it = { .length = GRANULE, .flags = ACCMEM_ALLOC_FIXED };
	struct accmem_realloc r;

	if (self->identity)
		return; /* the reserved room can be used by others */
	ASSERT_EQ(0, alloc(self->fd, KIB(64), MIB(1), &a));
	b = (struct accmem_alloc){ .length = GRANULE,
				   .address = a.address + MIB(1),
				   .flags = ACCMEM_ALLOC_FIXED };
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &b));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(2), 0, &r));
	EXPECT_NE(a.address, r.address);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, r.address, KIB(64),
					  IN_PLACE, &r));
	in_it.address = r.address + KIB(512);
	EXPECT_EQ(-EEXIST, accmem_ioctl_alloc(self->fd, &in_it));
	in_it.address = r.address + MIB(1);
	EXPECT_EQ(0, accmem_ioctl_alloc(self->fd, &in_it));
	EXPECT_EQ(0, accmem_ioctl_realloc(self->fd, r.address, MIB(1), IN_PLACE,
					  &r));
}

/* A cancelled position frees the memory at once. */
TEST_F(realloc, memory_of_a_stream_that_has_ended_is_given_back)
{
	struct accmem_alloc a = { .length = KIB(64), .flags = RESIZABLE };
	int stream = stream_created(self->fd);
	struct accmem_realloc r;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, stream_free(self->fd, a.address, stream, 5));
	a = (struct accmem_alloc){ .length = KIB(64), .flags = RESIZABLE };
	ASSERT_EQ(0, stream_alloc(self->fd, stream, &a));
	ASSERT_EQ(5, a.position);
	close(stream);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, KIB(8), 0, &r));
	EXPECT_EQ(KIB(8), r.footprint);
	EXPECT_EQ(KIB(8), accmem_sysfs(variant->path, "live_bytes"));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "pending_bytes"));
}

ACCMEM_HARNESS_MAIN
