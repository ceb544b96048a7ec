// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Allocator for the free space of a range: the public calls.
 *
 * The *.inc.c files of this folder are parts of this translation unit and compile only
 * here. Each call runs through several of them in a few dozen instructions, and is
 * twice as slow without inlining. A new part is included below, after the parts that it
 * uses.
 *
 * Locking: the caller serialises all calls on one instance.
 */
#include "internal.h"

/* Each part uses only the parts above it. */
#include "map.inc.c" /* bitmaps of granules: used, dirty */
#include "summary.inc.c" /* bitmaps with a summary */
#include "size_classes.inc.c" /* free runs by size class */
#include "index.inc.c" /* free runs by address; adds and removes runs */
#include "find.inc.c" /* searches by address and by size */
#include "lifetimes.inc.c" /* predicted lifetimes of big blocks */
#include "owners.inc.c" /* owners of folios of 2 MiB */
#include "big.inc.c" /* placement of big requests, by lifetimes */
#include "best_fit.inc.c" /* placement of all other requests */
#include "split_merge.inc.c" /* cuts blocks from runs and merges them */
#include "cache.inc.c" /* the order cache: freed blocks, by size */
#include "multi_owner.inc.c" /* placement among folios of several owners */
#include "metadata.inc.c" /* layout of the metadata */
#include "dirty.inc.c" /* public calls for dirty marks */

/* Requests */

static __always_inline int buddy_check(const struct buddy *b,
				       const struct accmem_buddy_request *req,
				       u32 flags, struct wanted *w)
{
	u64 bytes = b->nr << ACCMEM_GRANULE_SHIFT;
	u64 end = req->end ? req->end : bytes;

	if (!req->size || !is_power_of_2(req->align))
		return -EINVAL;
	if ((req->size | req->align | req->start | end) & (ACCMEM_GRANULE - 1))
		return -EINVAL;
	if (req->start > end || end > bytes || (req->flags & ~flags))
		return -EINVAL;
	w->n = req->size >> ACCMEM_GRANULE_SHIFT;
	w->align = req->align >> ACCMEM_GRANULE_SHIFT;
	w->lo = req->start >> ACCMEM_GRANULE_SHIFT;
	w->hi = end >> ACCMEM_GRANULE_SHIFT;
	w->high = req->flags & ACCMEM_BUDDY_TOP_DOWN;
	w->owner = owner_is_bound(b, req->owner) ? req->owner : 0;
	return w->n > b->nr_free ? -ENOSPC : 0;
}

/* Record the start of a lifetime; the request may repeat. */
static inline void buddy_block_begins(struct buddy *b, u64 lo, u64 n)
{
	if (lifetime_is_big(b, n))
		lifetime_begins(b, lo, n);
}

/*
 * Place a request. Cached blocks merge first if they could hide a fit. If there is no
 * candidate and @f->more is set, the search was not complete.
 */
static struct candidate buddy_place(struct buddy *b, const struct wanted *w,
				    struct find *f)
{
	struct candidate cand;

	if (w->high || w->lo || w->hi != b->nr)
		cached_merge_all(b);
	cached_merge_some(b);
	for (;;) {
		f->from = NOWHERE;
		f->more = false;
		cand = fit_place(b, w, f);
		if (w->owner && cand.run.size &&
		    !owner_permits(b, w->owner, cand.at, w->n))
			cand = multi_place(b, w);
		if (cand.run.size || !b->nr_cached_blocks)
			return cand;
		cached_merge_all(b);
	}
}

/* Serve a request without a window or flags from the order cache. */
static inline bool buddy_alloc_cached(struct buddy *b,
				      const struct accmem_buddy_request *req,
				      u64 *offset)
{
	u64 n = req->size >> ACCMEM_GRANULE_SHIFT, at;

	if (!b->nr_cached_blocks || req->start | req->end | req->flags ||
	    n - 1 >= b->cached_max || !is_power_of_2(req->align) ||
	    (req->size | req->align) & (ACCMEM_GRANULE - 1))
		return false;
	at = cached_alloc(b, n, req->align >> ACCMEM_GRANULE_SHIFT, req->owner);
	if (at == NOWHERE)
		return false;
	block_count_alloc(b, at, n, req->owner);
	*offset = at << ACCMEM_GRANULE_SHIFT;
	return true;
}

static void buddy_alloc_at(struct buddy *b, const struct candidate *cand, u64 n,
			   u64 owner)
{
	split_alloc(b, cand, n, owner);
	buddy_block_begins(b, cand->at, n);
}

static noinline int buddy_alloc_placed(struct buddy *b,
				       const struct accmem_buddy_request *req,
				       u64 *offset)
{
	struct find find = { .words = FIND_WORDS };
	struct candidate cand;
	struct wanted w;
	int err;

	err = buddy_check(b, req, ACCMEM_BUDDY_TOP_DOWN, &w);
	if (err)
		return err;
	cand = buddy_place(b, &w, &find);
	if (!cand.run.size)
		return find.more ? -EAGAIN : -ENOSPC;
	buddy_alloc_at(b, &cand, w.n, req->owner);
	*offset = cand.at << ACCMEM_GRANULE_SHIFT;
	return 0;
}

int accmem_buddy_alloc(struct accmem_buddy *range,
		       const struct accmem_buddy_request *req, u64 *offset)
{
	struct buddy *b = buddy_of(range);

	b->frees_since_alloc = 0;
	if (buddy_alloc_cached(b, req, offset))
		return 0;
	return buddy_alloc_placed(b, req, offset);
}

int accmem_buddy_alloc_scan(struct accmem_buddy *range,
			    const struct accmem_buddy_request *req, u64 *cursor,
			    u64 *offset)
{
	struct buddy *b = buddy_of(range);
	bool own = b->owners && req->flags & ACCMEM_BUDDY_OWN;
	struct candidate cand;
	struct wanted w;
	int err;

	err = buddy_check(b, req, ACCMEM_BUDDY_TOP_DOWN | ACCMEM_BUDDY_OWN, &w);
	if (err)
		return err;
	cached_merge_all(b);
	err = own || w.owner ? scan_owned(b, &w, own, cursor, &cand) :
			       scan_any(b, &w, cursor, &cand);
	if (err)
		return err;
	buddy_alloc_at(b, &cand, w.n, req->owner);
	*offset = cand.at << ACCMEM_GRANULE_SHIFT;
	return 0;
}

int accmem_buddy_alloc_runs(struct accmem_buddy *range,
			    const struct accmem_buddy_request *req,
			    struct accmem_run *runs, unsigned int max_runs,
			    unsigned int *nr_runs)
{
	struct buddy *b = buddy_of(range);
	struct find find = { .words = FIND_WORDS };
	struct pieces p = { .last = ~0ull };
	unsigned int nr = 0, i;
	struct candidate cand;
	struct wanted w;
	u64 lo, n;
	int err;

	b->frees_since_alloc = 0;
	err = buddy_check(b, req, ACCMEM_BUDDY_TOP_DOWN, &w);
	if (err)
		return err;
	w.owner = 0;
	p.from = w.lo;
	for (err = -E2BIG; nr < max_runs; w.n -= n) {
		n = w.n;
		cand = buddy_place(b, &w, &find);
		if (!cand.run.size)
			cand = fit_next_piece(b, &w, &p, &n, &find);
		if (!n) {
			err = find.more ? -E2BIG : -ENOSPC;
			break;
		}
		split_alloc(b, &cand, n, 0);
		run_bytes(&runs[nr++], cand.at, cand.at + n);
		if (n == w.n) {
			for (i = 0; i < nr; i++) {
				lo = runs[i].start >> ACCMEM_GRANULE_SHIFT;
				n = runs[i].size >> ACCMEM_GRANULE_SHIFT;
				buddy_block_begins(b, lo, n);
			}
			*nr_runs = nr;
			return 0;
		}
	}
	while (nr--) {
		lo = runs[nr].start >> ACCMEM_GRANULE_SHIFT;
		n = runs[nr].size >> ACCMEM_GRANULE_SHIFT;
		block_count_free(b, lo, n, 0);
		merge_block_at(b, lo, n);
	}
	return err;
}

static noinline void buddy_free_untracked(struct buddy *b, u16 id, u64 lo,
					  u64 n)
{
	tracked_forget(b, id);
	cached_merge_some(b);
	merge_block_at(b, lo, n);
}

static noinline int buddy_free_unknown(struct buddy *b, u64 lo, u64 n,
				       u64 owner)
{
	unsigned int level;

	if (!n || lo >= b->nr || n > b->nr - lo)
		return -EINVAL;
	level = map_level(&b->used, lo, lo + n);
	if (!map_is_set(&b->used, level, lo, lo + n) ||
	    !tracked_release(b, lo, lo + n))
		return -EINVAL;
	block_count_free(b, lo, n, owner);
	if (lifetime_is_big(b, n))
		lifetime_ends(b, lo, n);
	if (cached_add(b, lo, n))
		return 0;
	cached_merge_some(b);
	merge_block(b, level, lo, n);
	return 0;
}

int accmem_buddy_free_owned(struct accmem_buddy *range, u64 offset, u64 size,
			    u64 owner)
{
	struct buddy *b = buddy_of(range);
	u64 lo = offset >> ACCMEM_GRANULE_SHIFT;
	u64 n = size >> ACCMEM_GRANULE_SHIFT;
	const struct tracked_block *k;
	u16 id;

	if ((offset | size) & (ACCMEM_GRANULE - 1))
		return -EINVAL;
	id = b->nr_tracked > b->nr_cached_blocks ? tracked_find(b, lo + n - 1) :
						   0;
	k = &b->tracked[id];
	if (!id || !tracked_is_outstanding(k) || k->lo != lo || k->n != n)
		return buddy_free_unknown(b, lo, n, owner);
	block_count_free(b, lo, n, owner);
	if (cached_has_room(b, n))
		cached_push(b, id, n);
	else
		buddy_free_untracked(b, id, lo, n);
	return 0;
}

int accmem_buddy_free(struct accmem_buddy *range, u64 offset, u64 size)
{
	return accmem_buddy_free_owned(range, offset, size, 0);
}

int accmem_buddy_retire(struct accmem_buddy *range, u64 offset)
{
	struct candidate cand = { .at = offset >> ACCMEM_GRANULE_SHIFT };
	struct buddy *b = buddy_of(range);

	if (offset & (ACCMEM_GRANULE - 1) || cand.at >= b->nr)
		return -EINVAL;
	if (cached_overlaps(b, cand.at, cand.at + 1))
		cached_merge_all(b);
	cand.run = index_run_around(b, cand.at);
	if (!cand.run.size)
		return -EBUSY;
	split_alloc(b, &cand, 1, OWNER_RETIRED);
	lifetime_forget(b, cand.at);
	return 0;
}

void accmem_buddy_set_cache(struct accmem_buddy *range, bool on)
{
	struct buddy *b = buddy_of(range);

	b->cached_max = on ? b->room : 0;
	if (!on)
		cached_merge_all(b);
}

u64 accmem_buddy_free_bytes(const struct accmem_buddy *range)
{
	return buddy_of(range)->nr_free << ACCMEM_GRANULE_SHIFT;
}

int accmem_buddy_largest_run_of(struct accmem_buddy *range, u64 owner,
				u64 *cursor, u64 *largest)
{
	struct buddy *b = buddy_of(range);
	struct scan scan = { .word = *cursor, .words = FIND_WORDS };
	u64 n = *cursor ? *largest >> ACCMEM_GRANULE_SHIFT : 0, i, all;
	struct run run = {}, wild;
	int err = 0;

	cached_merge_all(b);
	wild = wild_run(b);
	all = longest_in_range(b);
	if (all)
		run = index_find(b, 0, b->nr, all, 1, false, NULL);
	n = max(n, owner_trim(b, owner, &run).size);
	n = max(n, owner_trim(b, owner, &wild).size);
	while (n < all) {
		i = scan_next(b, &scan, b->nr, n + 1, &err);
		if (i == NOWHERE)
			break;
		n = max(n, scan_longest(b, owner, i));
	}
	*cursor = scan.word;
	*largest = n << ACCMEM_GRANULE_SHIFT;
	return n < all && err == -EAGAIN ? -EAGAIN : 0;
}

/* Owners */

void accmem_buddy_set_owners(struct accmem_buddy *range,
			     struct accmem_buddy_folio *folios)
{
	buddy_of(range)->owners = folios;
}

u64 accmem_buddy_claimed(const struct accmem_buddy *range, u64 offset, u64 size)
{
	const struct buddy *b = buddy_of(range);

	if (!b->owners)
		return size;
	return cover_alone(b, offset >> ACCMEM_GRANULE_SHIFT,
			   size >> ACCMEM_GRANULE_SHIFT, true)
	       << ACCMEM_GRANULE_SHIFT;
}

int accmem_buddy_chown(struct accmem_buddy *range, u64 offset, u64 size,
		       u64 from, u64 to)
{
	struct buddy *b = buddy_of(range);

	return b->owners ?
		       owner_change(b, offset >> ACCMEM_GRANULE_SHIFT,
				    size >> ACCMEM_GRANULE_SHIFT, from, to) :
		       0;
}

u64 accmem_buddy_folio_owner(const struct accmem_buddy *range, u64 offset)
{
	const struct buddy *b = buddy_of(range);

	if (WARN_ON_ONCE(!b->owners))
		return 0;
	return b->owners[offset >> ACCMEM_BUDDY_FOLIO_SHIFT].owner;
}

unsigned int accmem_buddy_folio_used(const struct accmem_buddy *range,
				     u64 offset)
{
	const struct buddy *b = buddy_of(range);
	u64 folio = offset >> ACCMEM_BUDDY_FOLIO_SHIFT;
	u64 lo = folio << FOLIO_ORDER;

	if (WARN_ON_ONCE(!b->owners))
		return 0;
	if (owner_folio_recorded(&b->owners[folio]))
		return b->owners[folio].used;
	/* Without a record, all of the folio is used or none of it; retired granules have one. */
	if (map_next(&b->used, lo, false) == lo ||
	    cached_overlaps(b, lo, lo + 1))
		return 0;
	return owner_folio_granules(b, folio);
}

bool accmem_buddy_next_free(struct accmem_buddy *range, u64 offset,
			    struct accmem_run *run)
{
	u64 pos = offset >> ACCMEM_GRANULE_SHIFT, lo;
	struct buddy *b = buddy_of(range);

	cached_merge_all(b);
	lo = map_next(&b->used, pos, false);
	if (lo >= b->nr)
		return false;
	run_bytes(run, lo, map_next(&b->used, lo, true));
	return true;
}

bool accmem_buddy_free_around(struct accmem_buddy *range, u64 offset,
			      struct accmem_run *run)
{
	u64 lo = offset >> ACCMEM_GRANULE_SHIFT;
	struct buddy *b = buddy_of(range);
	struct run around;

	cached_merge_all(b);
	around = index_run_around(b, lo);
	run_bytes(run, around.start, around.start + around.size);
	return around.size;
}

/* Creation */

/*
 * Bytes of all parts before @end, at most 2 GiB; 0 if @size is not acceptable
 */
static size_t buddy_meta_bytes(u64 size, enum metadata_part end)
{
	if (!size || size > ACCMEM_BUDDY_MAX_SIZE ||
	    size & (ACCMEM_GRANULE - 1))
		return 0;
	return metadata_words(size >> ACCMEM_GRANULE_SHIFT, end) * sizeof(u64);
}

size_t accmem_buddy_meta_size(u64 size)
{
	return buddy_meta_bytes(size, METADATA_PARTS);
}

size_t accmem_buddy_meta_zeroed(u64 size)
{
	return buddy_meta_bytes(size, METADATA_ZEROED);
}

int accmem_buddy_init(struct accmem_buddy *range, u64 size, void *meta)
{
	struct buddy *b = buddy_of(range);
	struct run all = {};

	if (!accmem_buddy_meta_size(size))
		return -EINVAL;
	memset(b, 0, sizeof(*b));
	b->nr = size >> ACCMEM_GRANULE_SHIFT;
	b->nr_free = b->nr;
	b->top = longest_top(b->nr);
	b->room = cached_room(b->nr);
	b->short_of = cached_free_min(b->nr);
	lifetime_init(b);
	b->tracked_hash_shift = tracked_hash_shift(b->nr);
	b->tracked_bits_shift = tracked_bits_shift(b->nr);
	metadata_lay_out(b, meta);
	accmem_buddy_set_cache(range, true);
	class_list_init(b);
	all.size = b->nr;
	index_show(b, &all);
	wild_set(b, &all);
	return 0;
}
