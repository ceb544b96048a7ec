// SPDX-License-Identifier: MIT
/*
 * Pending pieces: pieces that were released at a position of a stream.
 *
 * Each stream has a list of its pending pieces. An allocation on the same stream may reuse
 * a pending piece at once. For all other requests a piece is free when the stream reaches
 * its position; accmem_pool_pending_reap() finds these pieces before a request fails.
 *
 * A stream is identified by its descriptor. A stream ends when its descriptor is closed,
 * and its pieces are free then, even if another stream gets the descriptor. The library
 * says so before it closes a stream of its own (stream handles), and when a stream that it
 * opens gets the descriptor of a stream that the program has closed.
 *
 * Locking: accmem_pool.lock, held by all callers.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/stream.h"
#include "pool/base.h"
#include "pool/pending.h"
#include "pool/piece.h"
#include "pool/size.h"

/**
 * struct pool_waiting - a pending piece
 * @offset: offset of the piece
 * @usable: usable bytes
 * @position: position of the stream at which the piece is free
 * @next: piece of the same stream that was released next
 */
struct pool_waiting {
	uint64_t offset;
	uint64_t usable;
	uint64_t position;
	struct pool_waiting *next;
};

/**
 * struct pool_pending - the pending pieces of a stream
 * @stream: descriptor of the stream
 * @first: first piece that was released
 * @last: link that the next piece is added to
 * @next: list of another stream
 */
struct pool_pending {
	int stream;
	struct pool_waiting *first;
	struct pool_waiting **last;
	struct pool_pending *next;
};

static struct pool_pending *pending_of(struct accmem_pool *pool, int stream)
{
	struct pool_pending *p;

	for (p = pool->pending; p && p->stream != stream; p = p->next)
		;
	return p;
}

static int pending_create(struct accmem_pool *pool, int stream,
			  struct pool_pending **result)
{
	int ret = accmem_check_stream(pool->ctx, stream);
	struct pool_pending *p;

	if (ret)
		return ret;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->stream = stream;
	p->last = &p->first;
	p->next = pool->pending;
	pool->pending = p;
	*result = p;
	return 0;
}

int accmem_pool_pending_add(struct accmem_pool *pool, uint64_t offset,
			    int stream, uint64_t position)
{
	struct pool_waiting *w = calloc(1, sizeof(*w));
	struct pool_pending *p = pending_of(pool, stream);
	int ret = w ? 0 : -ENOMEM;

	if (!ret && !p)
		ret = pending_create(pool, stream, &p);
	if (!ret)
		ret = accmem_pool_piece_detach(pool, offset, &w->usable);
	if (ret) {
		free(w);
		return ret < 0 ? ret : 0;
	}
	w->offset = offset;
	w->position = position;
	*p->last = w;
	p->last = &w->next;
	pool->pending_bytes += w->usable;
	pool->stats.releases++;
	accmem_pool_count_live(pool, -(int64_t)w->usable);
	return 0;
}

/* Remove the piece that @link points to from its list. */
static uint64_t remove_piece(struct accmem_pool *pool, struct pool_pending *p,
			     struct pool_waiting **link)
{
	struct pool_waiting *w = *link;
	uint64_t offset = w->offset;

	*link = w->next;
	if (!*link)
		p->last = link;
	pool->pending_bytes -= w->usable;
	free(w);
	return offset;
}

static uint32_t sort_of(const struct accmem_pool *pool, uint64_t offset)
{
	uint64_t tag = pool_tag_at(pool, offset);

	return pool_tag_type(tag) == POOL_PAGE_SLAB ?
		       pool_slab_sort(pool_tag_slab(tag)) :
		       pool_tag_sort(tag);
}

bool accmem_pool_pending_reuse(struct accmem_pool *pool, uint32_t sort,
			       uint64_t length, int stream, uint32_t scan,
			       uint64_t *offset, uint64_t *position)
{
	struct pool_pending *p = pending_of(pool, stream);
	uint64_t usable = accmem_pool_size_usable(length);
	struct pool_waiting **link;

	if (!p)
		return false;
	for (link = &p->first; *link && scan; link = &(*link)->next, scan--) {
		if ((*link)->usable != usable ||
		    sort_of(pool, (*link)->offset) != sort)
			continue;
		*position = (*link)->position;
		*offset = remove_piece(pool, p, link);
		accmem_pool_piece_attach(pool, *offset, length);
		pool->stats.allocations++;
		accmem_pool_count_live(pool, usable);
		return true;
	}
	return false;
}

/* Position that a stream has reached. A stream whose query fails has ended. */
static uint64_t reached(int stream)
{
	struct accmem_stream_query query;

	if (accmem_query_stream(stream, &query) ||
	    query.state & ACCMEM_STREAM_ENDED)
		return UINT64_MAX;
	return query.reached;
}

static uint64_t reap_one(struct accmem_pool *pool, struct pool_pending *p)
{
	struct pool_waiting **link = &p->first;
	uint64_t until, bytes = 0;

	if (!p->first)
		return 0;
	until = reached(p->stream);
	while (*link) {
		if ((*link)->position > until) {
			link = &(*link)->next;
			continue;
		}
		bytes += (*link)->usable;
		accmem_pool_piece_free(pool, remove_piece(pool, p, link));
	}
	return bytes;
}

uint64_t accmem_pool_pending_reap(struct accmem_pool *pool)
{
	struct pool_pending **link = &pool->pending, *p;
	uint64_t bytes = 0;

	while ((p = *link)) {
		bytes += reap_one(pool, p);
		if (p->first) {
			link = &p->next;
			continue;
		}
		*link = p->next;
		free(p);
	}
	return bytes;
}

void accmem_pool_pending_end_stream(struct accmem_pool *pool, int stream)
{
	struct pool_pending *p = pending_of(pool, stream);

	while (p && p->first)
		accmem_pool_piece_free(pool, remove_piece(pool, p, &p->first));
}

bool accmem_pool_pending_has(const struct accmem_pool *pool, uint64_t offset)
{
	const struct pool_pending *p;
	const struct pool_waiting *w;

	for (p = pool->pending; p; p = p->next)
		for (w = p->first; w; w = w->next)
			if (w->offset == offset)
				return true;
	return false;
}

/* At the pool's end the pieces go with their regions; a child does not own them. */
void accmem_pool_pending_disown(struct accmem_pool *pool)
{
	struct pool_pending *p;

	while ((p = pool->pending)) {
		while (p->first)
			remove_piece(pool, p, &p->first);
		pool->pending = p->next;
		free(p);
	}
}
