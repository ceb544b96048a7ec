// SPDX-License-Identifier: MIT
/*
 * Pending pieces: pieces that were released at a position of a stream.
 *
 * Each stream has a list of its pending pieces. An allocation on the same stream may reuse
 * a pending piece at once. For all other requests a piece is free when the stream reaches
 * its position; accmem_pool_pending_reap() finds these pieces before a request fails.
 *
 * A piece that a request on the same stream got early stays in another list until the stream
 * reaches the position. If the piece is released before, it is pending again: without a
 * position of its own at the old one, else at both.
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
 * @then: another stream that must reach @then_position afterwards, or NO_STREAM
 * @then_position: position of that stream
 * @next: piece of the same stream that was released next
 */
struct pool_waiting {
	uint64_t offset;
	uint64_t usable;
	uint64_t position;
	int then;
	uint64_t then_position;
	struct pool_waiting *next;
};

#define NO_STREAM (-1)

/**
 * struct pool_pending - the pending pieces of a stream
 * @stream: descriptor of the stream
 * @first: first piece that was released
 * @last: link that the next piece is added to
 * @early: pieces that requests got early, and that are in use
 * @next: list of another stream
 */
struct pool_pending {
	int stream;
	struct pool_waiting *first;
	struct pool_waiting **last;
	struct pool_waiting *early;
	struct pool_pending *next;
};

static struct pool_pending *pending_of(struct accmem_pool *pool, int stream)
{
	struct pool_pending *p;

	for (p = pool->pending; p && p->stream != stream; p = p->next)
		;
	return p;
}

/* Make the list of a stream, at @link. */
static struct pool_pending *pending_new(struct pool_pending **link, int stream)
{
	struct pool_pending *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->stream = stream;
	p->last = &p->first;
	p->next = *link;
	*link = p;
	return p;
}

static int pending_create(struct accmem_pool *pool, int stream,
			  struct pool_pending **result)
{
	int ret = accmem_check_stream(pool->ctx, stream);

	if (ret)
		return ret;
	*result = pending_new(&pool->pending, stream);
	return *result ? 0 : -ENOMEM;
}

static void append(struct accmem_pool *pool, struct pool_pending *p,
		   struct pool_waiting *w)
{
	w->next = NULL;
	*p->last = w;
	p->last = &w->next;
	pool->pending_bytes += w->usable;
}

/* Remove the piece that @link points to from the list of pending pieces. */
static struct pool_waiting *take(struct accmem_pool *pool,
				 struct pool_pending *p,
				 struct pool_waiting **link)
{
	struct pool_waiting *w = *link;

	*link = w->next;
	if (!*link)
		p->last = link;
	pool->pending_bytes -= w->usable;
	return w;
}

/* Remove a piece that a request got early from its list. NULL: its position is reached. */
static struct pool_waiting *
take_early(struct accmem_pool *pool, uint64_t offset, struct pool_pending **of)
{
	struct pool_waiting **link, *w;
	struct pool_pending *p;

	for (p = pool->pending; p; p = p->next) {
		for (link = &p->early; (w = *link); link = &w->next) {
			if (w->offset != offset)
				continue;
			*link = w->next;
			*of = p;
			return w;
		}
	}
	return NULL;
}

/* Make a piece that a request got early pending again, at its position and at another. */
static bool append_early(struct accmem_pool *pool, uint64_t offset, int stream,
			 uint64_t position)
{
	struct pool_pending *p;
	struct pool_waiting *w = take_early(pool, offset, &p);

	if (!w)
		return false;
	if (stream == p->stream) {
		if (w->position < position)
			w->position = position;
	} else {
		w->then = stream;
		w->then_position = position;
	}
	append(pool, p, w);
	return true;
}

static void count_release(struct accmem_pool *pool, uint64_t usable)
{
	pool->stats.releases++;
	accmem_pool_count_live(pool, -(int64_t)usable);
}

int accmem_pool_pending_add(struct accmem_pool *pool, uint64_t offset,
			    int stream, uint64_t position)
{
	struct pool_waiting *w = calloc(1, sizeof(*w));
	struct pool_pending *p = pending_of(pool, stream);
	int ret = w ? 0 : -ENOMEM;
	bool early;

	if (!ret && !p)
		ret = pending_create(pool, stream, &p);
	if (!ret)
		ret = accmem_pool_piece_detach(pool, offset, &w->usable,
					       &early);
	if (ret) {
		free(w);
		return ret < 0 ? ret : 0;
	}
	count_release(pool, w->usable);
	if (early && append_early(pool, offset, stream, position)) {
		free(w);
		return 0;
	}
	w->offset = offset;
	w->position = position;
	w->then = NO_STREAM;
	append(pool, p, w);
	return 0;
}

int accmem_pool_pending_return(struct accmem_pool *pool, uint64_t offset)
{
	uint64_t usable;
	bool early;
	int ret = accmem_pool_piece_detach(pool, offset, &usable, &early);

	if (ret < 0)
		return ret;
	count_release(pool, ret ? 0 : usable);
	if (!ret && !append_early(pool, offset, NO_STREAM, 0))
		accmem_pool_piece_free(pool, offset);
	return 0;
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
	struct pool_waiting **link, *w;

	if (!p)
		return false;
	for (link = &p->first; *link && scan; link = &(*link)->next, scan--) {
		w = *link;
		if (w->usable != usable || w->then != NO_STREAM ||
		    sort_of(pool, w->offset) != sort)
			continue;
		take(pool, p, link);
		w->next = p->early;
		p->early = w;
		*position = w->position;
		*offset = w->offset;
		accmem_pool_piece_attach_early(pool, w->offset, length);
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

/* Forget the pieces in use whose position is reached: their release is an ordinary one. */
static void reap_early(struct pool_pending *p, uint64_t until)
{
	struct pool_waiting **link = &p->early, *w;

	while ((w = *link)) {
		if (w->position > until) {
			link = &w->next;
			continue;
		}
		*link = w->next;
		free(w);
	}
}

/*
 * A piece whose position is reached waits for its other stream, if it has one. False: there is
 * no memory for the list of that stream.
 */
static bool wait_for_other(struct accmem_pool *pool, struct pool_pending *p,
			   struct pool_waiting **link)
{
	struct pool_pending *other = pending_of(pool, (*link)->then);
	struct pool_waiting *w;

	if (!other)
		other = pending_new(&p->next, (*link)->then);
	if (!other)
		return false;
	w = take(pool, p, link);
	w->position = w->then_position;
	w->then = NO_STREAM;
	append(pool, other, w);
	return true;
}

/* Free the piece that @link points to, whose position is reached. Return its bytes. */
static uint64_t free_piece(struct accmem_pool *pool, struct pool_pending *p,
			   struct pool_waiting **link)
{
	struct pool_waiting *w = take(pool, p, link);
	uint64_t bytes = w->usable;

	accmem_pool_piece_free(pool, w->offset);
	free(w);
	return bytes;
}

static bool must_wait_for_other(const struct pool_waiting *w)
{
	return w->then != NO_STREAM && reached(w->then) < w->then_position;
}

static uint64_t reap_one(struct accmem_pool *pool, struct pool_pending *p)
{
	struct pool_waiting **link = &p->first;
	uint64_t until, bytes = 0;

	if (!p->first && !p->early)
		return 0;
	until = reached(p->stream);
	reap_early(p, until);
	while (*link) {
		if ((*link)->position > until)
			link = &(*link)->next;
		else if (!must_wait_for_other(*link))
			bytes += free_piece(pool, p, link);
		else if (!wait_for_other(pool, p, link))
			link = &(*link)->next;
	}
	return bytes;
}

uint64_t accmem_pool_pending_reap(struct accmem_pool *pool)
{
	struct pool_pending **link = &pool->pending, *p;
	uint64_t bytes = 0;

	while ((p = *link)) {
		bytes += reap_one(pool, p);
		if (p->first || p->early) {
			link = &p->next;
			continue;
		}
		*link = p->next;
		free(p);
	}
	return bytes;
}

static void drop_list(struct accmem_pool *pool, struct pool_pending *p)
{
	struct pool_pending **link = &pool->pending;

	while (*link != p)
		link = &(*link)->next;
	*link = p->next;
	free(p);
}

/* The next stream with this descriptor may be of another context: its list is another, too. */
void accmem_pool_pending_end_stream(struct accmem_pool *pool, int stream)
{
	struct pool_pending *p;
	struct pool_waiting *w;

	for (p = pool->pending; p; p = p->next)
		for (w = p->first; w; w = w->next)
			if (w->then == stream)
				w->then = NO_STREAM;
	p = pending_of(pool, stream);
	if (!p)
		return;
	reap_early(p, UINT64_MAX);
	while (p->first) {
		if (!must_wait_for_other(p->first))
			free_piece(pool, p, &p->first);
		else if (!wait_for_other(pool, p, &p->first))
			/* no memory for a list: the piece is lost */
			free(take(pool, p, &p->first));
	}
	drop_list(pool, p);
}

int accmem_pool_compare_offsets(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t *accmem_pool_pending_offsets(const struct accmem_pool *pool,
				      size_t *count)
{
	const struct pool_pending *p;
	const struct pool_waiting *w;
	uint64_t *offsets;
	size_t n = 0;

	for (p = pool->pending; p; p = p->next)
		for (w = p->first; w; w = w->next)
			n++;
	*count = 0;
	offsets = n ? malloc(n * sizeof(*offsets)) : NULL;
	if (!offsets)
		return NULL;
	for (p = pool->pending; p; p = p->next)
		for (w = p->first; w; w = w->next)
			offsets[(*count)++] = w->offset;
	qsort(offsets, n, sizeof(*offsets), accmem_pool_compare_offsets);
	return offsets;
}

/* At the pool's end the pieces go with their regions; a child does not own them. */
void accmem_pool_pending_disown(struct accmem_pool *pool)
{
	struct pool_pending *p;

	while ((p = pool->pending)) {
		reap_early(p, UINT64_MAX);
		while (p->first)
			free(take(pool, p, &p->first));
		pool->pending = p->next;
		free(p);
	}
}
