// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_buddy: free space of a range.
 *
 * The public calls. accmem_buddy_map.h knows which granules are used,
 * accmem_buddy_classes.h and accmem_buddy_runs.h find free runs by size and by
 * place, accmem_buddy_place.h chooses among them, accmem_buddy_big.h for big requests,
 * by how long blocks will live, which accmem_buddy_lives.h foresees.
 * accmem_buddy_change.h cuts and merges runs, accmem_buddy_marks.h keeps the dirty
 * marks, accmem_buddy_cache.h the blocks that wait for a request of their size,
 * accmem_buddy_park.h says which ones do, and accmem_buddy_meta.h where in the
 * metadata each has its part.
 *
 * Owns the metadata it was given and takes no lock: the caller serialises.
 */
#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/string.h>

#include "accmem_buddy.h"
#include "accmem_buddy_meta.h"
#include "accmem_buddy_park.h"
#include "accmem_layout.h"

static void run_of(struct accmem_run *run, u64 lo, u64 hi)
{
	run->start = lo << ACCMEM_GRANULE_SHIFT;
	run->size = (hi - lo) << ACCMEM_GRANULE_SHIFT;
}

/* Requests */

static __always_inline int check_request(const struct accmem_buddy *b,
					 const struct accmem_buddy_request *req,
					 struct want *w)
{
	u64 bytes = b->nr << ACCMEM_GRANULE_SHIFT;
	u64 end = req->end ? req->end : bytes;

	if (!req->size || !is_power_of_2(req->align))
		return -EINVAL;
	if ((req->size | req->align | req->start | end) & (ACCMEM_GRANULE - 1))
		return -EINVAL;
	if (req->start > end || end > bytes ||
	    (req->flags & ~ACCMEM_BUDDY_TOP_DOWN))
		return -EINVAL;
	w->n = req->size >> ACCMEM_GRANULE_SHIFT;
	w->align = req->align >> ACCMEM_GRANULE_SHIFT;
	w->lo = req->start >> ACCMEM_GRANULE_SHIFT;
	w->hi = end >> ACCMEM_GRANULE_SHIFT;
	w->high = req->flags & ACCMEM_BUDDY_TOP_DOWN;
	return w->n > b->nr_free ? -ENOSPC : 0;
}

/* A block has been taken for a request, which may come again. */
static inline void begin_block(struct accmem_buddy *b, u64 lo, u64 n)
{
	if (is_big(b, n))
		life_begins(b, lo, n);
}

/* It comes back; the map has it yet. */
static inline void end_block(struct accmem_buddy *b, u64 lo, u64 n)
{
	account_give(b, lo, n);
	if (is_big(b, n))
		life_ends(b, lo, n);
}

/* Place is found where the order cache keeps none from being seen. */
static struct spot place_among_all(struct accmem_buddy *b, const struct want *w)
{
	struct spot spot;

	if (w->high || w->lo || w->hi != b->nr)
		unpark_all(b);
	unpark_some(b, w->n);
	for (;;) {
		spot = place(b, w);
		if (spot.run.size || !b->nr_parked)
			return spot;
		unpark_all(b);
	}
}

/* What asks for no window and no end may be served by the order cache. */
static inline bool alloc_parked(struct accmem_buddy *b,
				const struct accmem_buddy_request *req,
				u64 *offset)
{
	u64 n = req->size >> ACCMEM_GRANULE_SHIFT, at;

	if (!b->nr_parked || req->start | req->end | req->flags ||
	    n - 1 >= b->parked_max)
		return false;
	if ((req->size | req->align) & (ACCMEM_GRANULE - 1) ||
	    !is_power_of_2(req->align))
		return false;
	at = parked_take(b, n, req->align >> ACCMEM_GRANULE_SHIFT);
	if (at == NOWHERE)
		return false;
	account_take(b, at, n);
	*offset = at << ACCMEM_GRANULE_SHIFT;
	return true;
}

static noinline int alloc_placed(struct accmem_buddy *b,
				 const struct accmem_buddy_request *req,
				 u64 *offset)
{
	struct spot spot;
	struct want w;
	int err;

	err = check_request(b, req, &w);
	if (err)
		return err;
	spot = place_among_all(b, &w);
	if (!spot.run.size)
		return -ENOSPC;
	take(b, &spot, w.n);
	begin_block(b, spot.at, w.n);
	*offset = spot.at << ACCMEM_GRANULE_SHIFT;
	return 0;
}

int accmem_buddy_alloc(struct accmem_buddy *b,
		       const struct accmem_buddy_request *req, u64 *offset)
{
	b->ebb = 0;
	if (alloc_parked(b, req, offset))
		return 0;
	return alloc_placed(b, req, offset);
}

/* The longest piece that may stand before others, taken; false if none. */
static bool take_piece(struct accmem_buddy *b, const struct want *w,
		       struct pieces *p, struct accmem_run *run)
{
	struct spot spot;
	u64 n;

	spot = next_piece(b, w, p, &n);
	if (!n)
		return false;
	take(b, &spot, n);
	run_of(run, spot.at, spot.at + n);
	return true;
}

static void begin_runs(struct accmem_buddy *b, const struct accmem_run *runs,
		       unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		begin_block(b, runs[i].start >> ACCMEM_GRANULE_SHIFT,
			    runs[i].size >> ACCMEM_GRANULE_SHIFT);
}

int accmem_buddy_alloc_runs(struct accmem_buddy *b,
			    const struct accmem_buddy_request *req,
			    struct accmem_run *runs, unsigned int max_runs,
			    unsigned int *nr_runs)
{
	struct pieces p = { .last = ~0ull };
	unsigned int nr = 0;
	struct spot spot;
	struct want w;
	u64 lo, n;
	int err;

	b->ebb = 0;
	err = check_request(b, req, &w);
	if (err)
		return err;
	p.from = w.lo;
	for (err = -E2BIG; nr < max_runs; nr++) {
		spot = place_among_all(b, &w);
		if (spot.run.size) {
			take(b, &spot, w.n);
			run_of(&runs[nr++], spot.at, spot.at + w.n);
			begin_runs(b, runs, nr);
			*nr_runs = nr;
			return 0;
		}
		if (!take_piece(b, &w, &p, &runs[nr])) {
			err = -ENOSPC;
			break;
		}
		w.n -= runs[nr].size >> ACCMEM_GRANULE_SHIFT;
	}
	while (nr--) {
		lo = runs[nr].start >> ACCMEM_GRANULE_SHIFT;
		n = runs[nr].size >> ACCMEM_GRANULE_SHIFT;
		account_give(b, lo, n);
		merge_at(b, lo, n);
	}
	return err;
}

static noinline void free_forgotten(struct accmem_buddy *b, u16 id, u64 lo,
				    u64 n)
{
	kept_forget(b, id);
	unpark_some(b, n);
	merge_at(b, lo, n);
}

static noinline int free_unknown(struct accmem_buddy *b, u64 lo, u64 n)
{
	unsigned int level;

	if (!n || lo >= b->nr || n > b->nr - lo)
		return -EINVAL;
	level = map_level(b, lo, lo + n);
	if (!map_is_used(b, level, lo, lo + n) || !kept_release(b, lo, lo + n))
		return -EINVAL;
	end_block(b, lo, n);
	if (park(b, lo, n))
		return 0;
	unpark_some(b, n);
	merge(b, level, lo, n);
	return 0;
}

int accmem_buddy_free(struct accmem_buddy *b, u64 offset, u64 size)
{
	u64 lo = offset >> ACCMEM_GRANULE_SHIFT;
	u64 n = size >> ACCMEM_GRANULE_SHIFT;
	u16 id;

	if ((offset | size) & (ACCMEM_GRANULE - 1))
		return -EINVAL;
	id = has_lent(b) ? kept_find(b, lo) : 0;
	if (!id || !b->kept[id].lent || b->kept[id].n != n)
		return free_unknown(b, lo, n);
	account_give(b, lo, n);
	if (has_room(b, n))
		parked_push(b, id, n);
	else
		free_forgotten(b, id, lo, n);
	return 0;
}

void accmem_buddy_set_cache(struct accmem_buddy *b, bool on)
{
	u64 max = min_t(u64, parked_share(b->nr), ACCMEM_BUDDY_PARKED_MAX);

	b->parked_max = on ? max : 0;
	if (!on)
		unpark_all(b);
}

u64 accmem_buddy_free_bytes(const struct accmem_buddy *b)
{
	return b->nr_free << ACCMEM_GRANULE_SHIFT;
}

u64 accmem_buddy_largest_run(struct accmem_buddy *b, u64 align)
{
	struct want any = {
		.n = 1,
		.align = max_t(u64, align >> ACCMEM_GRANULE_SHIFT, 1),
		.hi = b->nr,
	};
	u64 n;

	unpark_all(b);
	longest_spot(b, &any, 0, ~0ull, &n);
	return n << ACCMEM_GRANULE_SHIFT;
}

bool accmem_buddy_next_free(struct accmem_buddy *b, u64 offset,
			    struct accmem_run *run)
{
	u64 pos = offset >> ACCMEM_GRANULE_SHIFT, lo, hi, end;

	lo = parked_next(b, pos, next_free(b, pos));
	if (lo >= b->nr)
		return false;
	end = lo;
	do {
		hi = end;
		end = next_used(b, parked_end(b, hi));
	} while (end != hi);
	run_of(run, lo, hi);
	return true;
}

/* Dirty marks */

/* Free granules of [@lo, @hi) that are dirty */
static u64 count_free_dirty(struct accmem_buddy *b, u64 lo, u64 hi)
{
	u64 n = parked_dirty(b, lo, hi), end;

	for (lo = next_free(b, lo); lo < hi; lo = next_free(b, end)) {
		end = min(hi, next_used(b, lo));
		n += count_dirty(b, lo, end);
	}
	return n;
}

static void mark(struct accmem_buddy *b, u64 offset, u64 size, bool dirty)
{
	u64 lo = offset >> ACCMEM_GRANULE_SHIFT;
	u64 n = size >> ACCMEM_GRANULE_SHIFT;

	if (WARN_ON_ONCE((offset | size) & (ACCMEM_GRANULE - 1)) ||
	    WARN_ON_ONCE(lo > b->nr || n > b->nr - lo) || !n)
		return;
	b->nr_free_dirty -= count_free_dirty(b, lo, lo + n);
	mark_set(b, lo, lo + n, dirty);
	b->nr_free_dirty += count_free_dirty(b, lo, lo + n);
}

void accmem_buddy_mark_dirty(struct accmem_buddy *b, u64 offset, u64 size)
{
	mark(b, offset, size, true);
}

void accmem_buddy_mark_clean(struct accmem_buddy *b, u64 offset, u64 size)
{
	mark(b, offset, size, false);
}

bool accmem_buddy_next_dirty(const struct accmem_buddy *b, u64 offset, u64 size,
			     u64 max, struct accmem_run *run)
{
	u64 lo = offset >> ACCMEM_GRANULE_SHIFT;
	u64 n = size >> ACCMEM_GRANULE_SHIFT, hi;

	if (lo >= b->nr)
		return false;
	hi = lo + min(n, b->nr - lo);
	lo = mark_next(b, lo, hi, true);
	n = min(max >> ACCMEM_GRANULE_SHIFT, hi - lo);
	if (!n)
		return false;
	run_of(run, lo, mark_next(b, lo, lo + n, false));
	return true;
}

u64 accmem_buddy_free_dirty_bytes(const struct accmem_buddy *b)
{
	return b->nr_free_dirty << ACCMEM_GRANULE_SHIFT;
}

/* Where free and dirty granules alternate, pairs that one call steps over */
#define TAKE_DIRTY_STEPS 32

int accmem_buddy_take_dirty(struct accmem_buddy *b, u64 max,
			    struct accmem_run *run)
{
	u64 limit = max >> ACCMEM_GRANULE_SHIFT, lo, hi;
	unsigned int steps;
	struct spot spot;

	if (!limit)
		return -EINVAL;
	if (!b->nr_free_dirty)
		return -ENOENT;
	unpark_all(b);
	for (steps = 0; steps < TAKE_DIRTY_STEPS; steps++) {
		lo = next_free(b, b->cursor);
		lo = mark_next(b, lo, b->nr, true);
		b->cursor = lo < b->nr ? lo : 0;
		if (lo == b->nr || next_free(b, lo) != lo)
			continue;
		hi = lo + min(limit, next_used(b, lo) - lo);
		hi = mark_next(b, lo, hi, false);
		spot.at = lo;
		spot.run = run_around(b, lo);
		take(b, &spot, hi - lo);
		life_forget(b, lo);
		run_of(run, lo, hi);
		b->cursor = hi < b->nr ? hi : 0;
		return 0;
	}
	return -EAGAIN;
}

/* Creation */

static bool is_size(u64 size)
{
	return size && size <= ACCMEM_BUDDY_MAX_SIZE &&
	       !(size & (ACCMEM_GRANULE - 1));
}

size_t accmem_buddy_meta_size(u64 size)
{
	u64 bytes;

	if (!is_size(size))
		return 0;
	bytes = meta_words(size >> ACCMEM_GRANULE_SHIFT) * sizeof(u64);
	return (size_t)bytes == bytes ? bytes : 0;
}

size_t accmem_buddy_meta_zeroed(u64 size)
{
	if (!accmem_buddy_meta_size(size))
		return 0;
	return zeroed_words(size >> ACCMEM_GRANULE_SHIFT) * sizeof(u64);
}

int accmem_buddy_init(struct accmem_buddy *b, u64 size, void *meta)
{
	struct span all = {};

	if (!accmem_buddy_meta_size(size))
		return -EINVAL;
	memset(b, 0, sizeof(*b));
	b->nr = size >> ACCMEM_GRANULE_SHIFT;
	b->nr_free = b->nr;
	b->top = top_level(b->nr);
	b->map_top = map_top(b->nr);
	b->room = parked_room(b->nr);
	b->short_of = parked_free_min(b->nr);
	lives_init(b);
	b->kept_hash_shift = kept_hash_shift(b->nr);
	b->kept_start_shift = kept_start_shift(b->nr);
	lay_out(b, meta);
	accmem_buddy_set_cache(b, true);
	map_init(b);
	lists_init(b);
	all.size = b->nr;
	run_show(b, &all);
	wild_set(b, &all);
	return 0;
}
