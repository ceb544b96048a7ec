// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The naive reference allocator of the property tests and of the fuzzer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/layout/layout.h"
#include "model.h"

#define G ACCMEM_GRANULE

bool model_all(const struct model *m, u64 offset, u64 size, u8 bit, bool set)
{
	u64 i;

	for (i = offset / G; i < (offset + size) / G; i++)
		if (!!(m->granule[i] & bit) != set)
			return false;
	return true;
}

void model_set(struct model *m, u64 offset, u64 size, u8 bit, bool set)
{
	u64 i;

	for (i = offset / G; i < (offset + size) / G; i++) {
		if (set)
			m->granule[i] |= bit;
		else
			m->granule[i] &= ~bit;
	}
}

u64 model_count(const struct model *m, u8 mask, u8 value)
{
	u64 i, n = 0;

	for (i = 0; i < m->nr; i++)
		n += (m->granule[i] & mask) == value;
	return n * G;
}

u64 model_folio_used(const struct model *m, u64 i)
{
	u64 n = 0, end;

	i -= i % MODEL_FOLIO;
	end = i + MODEL_FOLIO < m->nr ? i + MODEL_FOLIO : m->nr;
	for (; i < end; i++)
		n += (m->granule[i] & (MODEL_USED | MODEL_RETIRED)) ==
		     MODEL_USED;
	return n;
}

u64 model_folio_cleaning(const struct model *m, u64 i)
{
	u64 n = 0, end;

	i -= i % MODEL_FOLIO;
	end = i + MODEL_FOLIO < m->nr ? i + MODEL_FOLIO : m->nr;
	for (; i < end; i++)
		n += m->granule[i] & MODEL_USED && m->taker[i] == MODEL_CLEANER;
	return n;
}

/* Its owner may have given back the rest of what the cleaner has a part of. */
static void update_owners(struct model *m, u64 offset, u64 size)
{
	u64 i = offset / G - offset / G % MODEL_FOLIO;

	for (; m->rule && i < (offset + size) / G; i += MODEL_FOLIO) {
		u64 cleaning = model_folio_cleaning(m, i);

		if (cleaning && cleaning == model_folio_used(m, i))
			m->owner[i / MODEL_FOLIO] = MODEL_CLEANER;
	}
}

void model_alloc(struct model *m, u64 offset, u64 size, u8 owner)
{
	u64 i;

	for (i = offset / G; m->rule && i < (offset + size) / G; i++) {
		if ((i == offset / G || i % MODEL_FOLIO == 0) &&
		    !model_folio_used(m, i))
			m->owner[i / MODEL_FOLIO] = owner;
		m->granule[i] |= MODEL_USED;
		m->taker[i] = owner;
	}
	model_set(m, offset, size, MODEL_USED, true);
}

void model_free(struct model *m, u64 offset, u64 size)
{
	model_set(m, offset, size, MODEL_USED, false);
	update_owners(m, offset, size);
}

void model_chown(struct model *m, u64 offset, u64 size, u8 owner)
{
	u64 i;

	for (i = offset / G; i < (offset + size) / G; i++) {
		m->owner[i / MODEL_FOLIO] = owner;
		m->taker[i] = owner;
	}
}

void model_retire(struct model *m, u64 offset)
{
	m->granule[offset / G] |= MODEL_USED | MODEL_RETIRED;
	m->taker[offset / G] = MODEL_NOBODY;
}

struct model model_view(const struct model *m, u64 owner)
{
	struct model view = *m;
	u64 i;

	if (!m->rule || !owner || owner == MODEL_CLEANER)
		return view;
	view.granule = malloc(m->nr);
	if (!view.granule)
		abort();
	memcpy(view.granule, m->granule, m->nr);
	for (i = 0; i < m->nr; i += MODEL_FOLIO)
		if (m->owner[i / MODEL_FOLIO] != owner &&
		    model_folio_used(m, i))
			memset(view.granule + i, MODEL_USED,
			       m->nr - i < MODEL_FOLIO ? m->nr - i :
							 MODEL_FOLIO);
	return view;
}

void model_view_free(const struct model *m, struct model *view)
{
	if (view->granule != m->granule)
		free(view->granule);
}

/* Longest free run with an aligned start in granules [lo, hi) */
static u64 longest(const u8 *granule, u64 lo, u64 hi, u64 align, u64 *where)
{
	u64 best = 0, run = 0, i;

	for (i = hi; i-- > lo;) {
		run = granule[i] & MODEL_USED ? 0 : run + 1;
		if (run > best && i % align == 0) {
			best = run;
			*where = i;
		}
	}
	return best;
}

u64 model_largest(const struct model *m)
{
	u64 where;

	return longest(m->granule, 0, m->nr, 1, &where) * G;
}

static u64 window_end(const struct model *m,
		      const struct accmem_buddy_request *req)
{
	return req->end ? req->end / G : m->nr;
}

bool model_fits(const struct model *m, const struct accmem_buddy_request *req)
{
	u64 where;

	return longest(m->granule, req->start / G, window_end(m, req),
		       req->align / G, &where) >= req->size / G;
}

bool model_lawful(const struct model *m, const struct accmem_buddy_request *req,
		  u64 offset)
{
	u64 end = window_end(m, req) * G;

	return offset % req->align == 0 && offset >= req->start &&
	       offset <= end && req->size <= end - offset &&
	       model_all(m, offset, req->size, MODEL_USED, false);
}

bool model_next(const struct model *m, u64 offset, u8 bit, bool set,
		struct accmem_run *run)
{
	u64 i = offset / G, first;

	while (i < m->nr && !!(m->granule[i] & bit) != set)
		i++;
	first = i;
	while (i < m->nr && !!(m->granule[i] & bit) == set)
		i++;
	run->start = first * G;
	run->size = (i - first) * G;
	return i > first;
}

int model_runs_result(const struct model *m,
		      const struct accmem_buddy_request *req,
		      unsigned int max_runs)
{
	u64 n = req->size / G, align = req->align / G, piece, at = 0;
	int ret = -E2BIG;
	u8 *copy;

	if (req->size > model_count(m, MODEL_USED, 0))
		return -ENOSPC;
	copy = malloc(m->nr);
	if (!copy)
		abort();
	memcpy(copy, m->granule, m->nr);
	while (max_runs--) {
		piece = longest(copy, req->start / G, window_end(m, req), align,
				&at);
		if (piece >= n) {
			ret = 0;
			break;
		}
		piece -= piece % align;
		if (!piece) {
			ret = -ENOSPC;
			break;
		}
		memset(copy + at, MODEL_USED, piece);
		n -= piece;
	}
	free(copy);
	return ret;
}
