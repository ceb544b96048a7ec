// SPDX-License-Identifier: GPL-2.0
/*
 * Rows: equal buffers that were allocated together, beside each other.
 *
 * A row is one memory, taken, charged, prepared and given an address at once,
 * and one object with all of its buffers. A buffer that is freed gives its piece
 * of the memory, and its address, back; the memory goes with the last of them,
 * and the row with it. Nothing that has to be known of one buffer's memory alone
 * is known of a row: one whose memory somebody is to refer to, for a mapping,
 * leaves the row before (accmem_buffer_extract()).
 *
 * Buffers whose frees wait keep their pieces and addresses; the memory is pending
 * when all that is left of it is.
 *
 * The addresses that are left are one place or several. Each is embedded in the
 * buffer that it began with, be that free or not.
 *
 * Locks: the context's lock; how much of the memory is left is known under the
 * carveout's.
 */
#include <linux/kernel.h>
#include <linux/slab.h>

#include "internal.h"
#include "memory/memory.h"
#include "vm/buffer.h"
#include "vm/bulk.h"
#include "vm/lookup.h"
#include "waitq/waiters.h"

/**
 * struct row_cell - one buffer of a row
 * @buf: the buffer
 * @place: a place that begins, or began, with it
 */
struct row_cell {
	struct accmem_buffer buf;
	struct accmem_place place;
};

/**
 * struct row - buffers beside each other
 * @memory: what is left of theirs
 * @nr: how many they were
 * @nr_left: those that have their addresses still
 * @nr_pending: as many of them wait to be free
 * @buffers: those that are published
 * @cells: all of them
 */
struct row {
	struct accmem_memory *memory;
	unsigned int nr;
	unsigned int nr_left;
	unsigned int nr_pending;
	struct accmem_buffer *buffers[ACCMEM_ROW_MAX];
	struct row_cell cells[];
};

/* one with all of its cells is a page */
static_assert(struct_size_t(struct row, cells, ACCMEM_ROW_MAX) <= SZ_4K);

static struct row_cell *to_cell(struct accmem_buffer *buf)
{
	return container_of(buf, struct row_cell, buf);
}

static struct row *to_row(struct accmem_buffer *buf)
{
	return container_of(to_cell(buf) - buf->cell, struct row, cells[0]);
}

/* A place ends before @first; what is after it is another one. */
static void row_cut(struct accmem_context *ctx, struct accmem_place *place,
		    struct row_cell *first)
{
	struct row *row = to_row(&first->buf);
	struct row_cell *cell, *end = row->cells + row->nr;
	u64 past = place->start + place->size;

	lockdep_assert_held(&ctx->lock);
	accmem_place_cut(ctx, place, &first->place,
			 first->buf.address - place->start);
	/* what is beyond its end has gone, and is not ours to change */
	for (cell = first; cell < end && cell->buf.address < past; cell++)
		/* who looks at what is pending has no lock of the context */
		smp_store_release(&cell->buf.place, &first->place);
}

static bool row_is_pending(const struct row *row)
{
	return row->nr_pending && row->nr_pending == row->nr_left;
}

static void row_adjust(struct accmem_context *ctx, struct row *row, int left,
		       int pending)
{
	bool before = row_is_pending(row), after;

	lockdep_assert_held(&ctx->lock);
	row->nr_left += left;
	row->nr_pending += pending;
	after = row_is_pending(row);
	/* what nothing is left of goes with the last piece */
	if (before != after && row->nr_left)
		accmem_memory_set_pending(row->memory, after);
}

static void row_set_pending(struct accmem_context *ctx,
			    struct accmem_buffer *buf, bool pending)
{
	row_adjust(ctx, to_row(buf), 0, pending ? 1 : -1);
}

/* where all that is left is one place, and the first of @bufs: how many that were */
static unsigned int row_remove_all(struct accmem_context *ctx,
				   struct accmem_buffer **bufs, unsigned int nr,
				   struct accmem_place **above)
{
	struct accmem_place *place = bufs[0]->place;
	struct row *row = to_row(bufs[0]);
	unsigned int left = row->nr_left, i;
	int pending = 0;

	if (left > nr || place->size != left * place->unit)
		return 0;
	for (i = 0; i < left; i++) {
		if (bufs[i]->place != place)
			return 0;
		pending += !!bufs[i]->pending.ctx;
	}
	row_adjust(ctx, row, -(int)left, -pending);
	accmem_place_erase_next(ctx, place, above);
	return left;
}

static void row_remove_one(struct accmem_context *ctx,
			   struct accmem_buffer *buf,
			   struct accmem_place **above)
{
	struct accmem_place *place = buf->place;
	u64 after = buf->address - place->start + place->unit;

	lockdep_assert_held(&ctx->lock);
	row_adjust(ctx, to_row(buf), -1, buf->pending.ctx ? -1 : 0);
	if (place->size == place->unit) {
		accmem_place_erase_next(ctx, place, above);
		return;
	}
	if (buf->address == place->start) {
		accmem_place_trim_start(ctx, place, above);
		return;
	}
	if (after < place->size) {
		/* the tree has to be right while something is inserted */
		accmem_place_erase_end(*above);
		*above = NULL;
		row_cut(ctx, place, to_cell(buf) + 1);
	}
	accmem_place_trim_end(ctx, place, above);
}

static unsigned int row_remove(struct accmem_context *ctx,
			       struct accmem_buffer **bufs, unsigned int nr,
			       struct accmem_place **above)
{
	unsigned int gone = row_remove_all(ctx, bufs, nr, above);

	if (gone)
		return gone;
	row_remove_one(ctx, bufs[0], above);
	return 1;
}

/* a buffer's piece of the carveout */
static struct accmem_run row_piece(struct accmem_buffer *buf)
{
	u64 size = buf->layout.footprint;

	return (struct accmem_run){
		.start = to_row(buf)->memory->run.start + buf->cell * size,
		.size = size,
	};
}

/* buffers of one row, at most as many as it has */
static void row_give(struct row *row, struct accmem_buffer **bufs,
		     unsigned int nr)
{
	struct accmem_run parts[ACCMEM_ROW_MAX], piece;
	unsigned int i, nr_parts = 0;

	for (i = 0; i < nr; i++) {
		piece = row_piece(bufs[i]);
		if (nr_parts &&
		    parts[nr_parts - 1].start + parts[nr_parts - 1].size ==
			    piece.start)
			parts[nr_parts - 1].size += piece.size;
		else
			parts[nr_parts++] = piece;
	}
	if (accmem_memory_give_parts(row->memory, parts, nr_parts, nr))
		kfree(row);
}

static void row_destroy(struct accmem_context *ctx, struct accmem_buffer **bufs,
			unsigned int nr)
{
	unsigned int same;
	struct row *row;

	for (; nr; nr -= same, bufs += same) {
		row = to_row(bufs[0]);
		for (same = 1; same < nr; same++) {
			if (to_row(bufs[same]) != row)
				break;
		}
		row_give(row, bufs, same);
	}
	accmem_waiters_came_back(ctx->dev, ctx->account->user);
}

static const struct accmem_place_ops row_place_ops = {
	.remove = row_remove,
	.destroy = row_destroy,
	.set_pending = row_set_pending,
	.shares_pieces = true,
};

static struct accmem_memory *row_take(struct accmem_context *ctx,
				      struct accmem_carveout *cv,
				      const struct accmem_alloc *req,
				      const struct accmem_layout *layout,
				      unsigned int nr)
{
	const struct accmem_memory_spec spec = {
		.size = layout->footprint * nr,
		.alignment = layout->alignment,
		.page_size = layout->page_size,
		.huge = layout->huge,
		.flags = req->flags | ACCMEM_ALLOC_CONTIGUOUS,
		.cache_mode = req->cache_mode,
		.buffers = nr,
	};

	return accmem_memory_create(ctx->account, cv, &spec);
}

/* all of a row is one place at first, embedded in the first buffer */
static int row_insert(struct accmem_context *ctx, struct row *row,
		      const struct accmem_layout *layout)
{
	struct accmem_place *place = &row->cells[0].place;
	int err;

	place->ops = &row_place_ops;
	place->size = row->memory->size;
	place->unit = layout->footprint;
	place->memory = row->memory;
	place->names = 0;
	place->buffers = row->buffers;
	spin_lock(&ctx->lock);
	err = accmem_place_insert(ctx, place, layout->alignment);
	spin_unlock(&ctx->lock);
	return err;
}

static void row_fill(struct row *row, const struct accmem_alloc *req,
		     const struct accmem_layout *layout,
		     struct accmem_buffer **bufs)
{
	struct accmem_place *place = &row->cells[0].place;
	u64 address = place->start;
	unsigned int i;

	for (i = 0; i < row->nr; i++, address += layout->footprint) {
		struct row_cell *cell = &row->cells[i];

		cell->buf.cell = i;
		cell->buf.place = place;
		cell->buf.address = address;
		cell->buf.length = req->length;
		cell->buf.layout = *layout;
		cell->buf.flags = accmem_alloc_flags(req);
		cell->buf.page_policy = req->page_policy;
		cell->buf.reserve = 0;
		cell->buf.resizing = false;
		accmem_pending_clear(&cell->buf.pending);
		bufs[i] = &cell->buf;
	}
}

/**
 * accmem_row_create() - make equal buffers beside each other
 * @ctx: the context
 * @cv: the carveout
 * @req: the request of each, which leaves open where it is and what is present
 * @layout: what it became: no small buffer; the footprint is a multiple of the
 *	alignment. The kernel need not map the memory.
 * @bufs: out: the buffers, which have not been published
 * @nr: how many, 2 to ACCMEM_ROW_MAX
 *
 * Return: 0; an error of accmem_buffer_create(), and there are none.
 */
int accmem_row_create(struct accmem_context *ctx, struct accmem_carveout *cv,
		      const struct accmem_alloc *req,
		      const struct accmem_layout *layout,
		      struct accmem_buffer **bufs, unsigned int nr)
{
	struct row *row =
		kmalloc(struct_size(row, cells, nr), GFP_KERNEL_ACCOUNT);
	struct accmem_run all;
	int err;

	if (!row)
		return -ENOMEM;
	row->nr = nr;
	row->nr_left = nr;
	row->nr_pending = 0;
	row->memory = row_take(ctx, cv, req, layout, nr);
	err = PTR_ERR_OR_ZERO(row->memory);
	if (err)
		goto err_free;
	all = row->memory->run;
	err = row_insert(ctx, row, layout);
	if (err)
		goto err_memory;
	row_fill(row, req, layout, bufs);
	return 0;

err_memory:
	accmem_memory_give_parts(row->memory, &all, 1, nr);
err_free:
	kfree(row);
	return err;
}

/**
 * accmem_row_extract() - a buffer leaves its row
 * @ctx: the context, whose lock is held
 * @buf: the buffer, which is published; it has no address then
 * @mem: an empty memory; gets the buffer's piece
 * @to: gets what @buf was: from then on the row may go with the others that leave it
 *
 * Return: whether it was the last one: accmem_row_destroy_empty() is called then,
 * without the lock.
 */
bool accmem_row_extract(struct accmem_context *ctx, struct accmem_buffer *buf,
			struct accmem_memory *mem, struct accmem_buffer *to)
{
	struct accmem_run piece = row_piece(buf);
	struct accmem_place *above = NULL;

	lockdep_assert_held(&ctx->lock);
	accmem_name_hide(ctx, buf, true);
	row_remove_one(ctx, buf, &above);
	accmem_place_erase_end(above);
	*to = *buf;
	return accmem_memory_move_part(to_row(buf)->memory, mem, &piece);
}

/**
 * accmem_row_destroy_empty() - give a row back that has no buffer left
 * @buf: the last of its buffers, which has been extracted. May sleep.
 */
void accmem_row_destroy_empty(struct accmem_buffer *buf)
{
	struct row *row = to_row(buf);

	accmem_memory_destroy_empty(row->memory);
	kfree(row);
}
