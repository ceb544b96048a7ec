// SPDX-License-Identifier: GPL-2.0
/*
 * Sheets: granules of one context that its small blocks are cut from.
 *
 * A sheet is a buffer without a name, which has the memory, the mappings and
 * the pins; a small block is a buffer without memory of its own. Mappings are
 * of the whole sheet. A block freed while there are some waits for the last of
 * them, since any of them shows it; then it is settled like any other buffer,
 * by the pages of its sheet, and its units can be taken again. A sheet is given
 * back when nothing of it is taken.
 *
 * Sheets of different cache modes are apart. What no mapping has ever shown is
 * zero still; on a sheet that was mapped, a block is cleared when it is taken.
 *
 * Locks: the context's lock > the carveout's lock.
 */
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/slab.h>

#include "accmem_drv.h"

/* offset of a block in its sheet */
static u64 offset_of(const struct accmem_buffer *buf)
{
	return buf->run.start - buf->sheet->buf.run.start;
}

static unsigned int unit_of(const struct accmem_buffer *buf)
{
	return offset_of(buf) / ACCMEM_SLAB_UNIT;
}

static struct accmem_slab *slab_of(struct accmem_buffer *buf)
{
	return buf->ctx->slabs[buf->cache_mode];
}

/* the slab of @buf's kind is there from its first block on */
static int make_slab(struct accmem_buffer *buf)
{
	struct accmem_context *ctx = buf->ctx;
	struct accmem_slab *slab;

	if (READ_ONCE(ctx->slabs[buf->cache_mode]))
		return 0;
	slab = kmalloc(sizeof(*slab), GFP_KERNEL_ACCOUNT);
	if (!slab)
		return -ENOMEM;
	accmem_slab_init(slab);
	mutex_lock(&ctx->lock);
	if (!ctx->slabs[buf->cache_mode]) {
		WRITE_ONCE(ctx->slabs[buf->cache_mode], slab);
		slab = NULL;
	}
	mutex_unlock(&ctx->lock);
	kfree(slab);
	return 0;
}

/* a sheet for blocks like @buf, which nobody knows of yet */
static struct accmem_sheet *new_sheet(struct accmem_buffer *buf)
{
	struct accmem_sheet *sheet;
	int err;

	sheet = kzalloc(sizeof(*sheet), GFP_KERNEL_ACCOUNT);
	if (!sheet)
		return ERR_PTR(-ENOMEM);
	accmem_buffer_init(&sheet->buf, buf->ctx, buf->cache_mode);
	INIT_LIST_HEAD(&sheet->waiting);
	sheet->buf.is_sheet = true;
	sheet->buf.length = ACCMEM_GRANULE;
	sheet->buf.layout = (struct accmem_layout){
		.usable = ACCMEM_GRANULE,
		.footprint = ACCMEM_GRANULE,
		.alignment = ACCMEM_GRANULE,
		.page_size = ACCMEM_GRANULE,
	};
	err = accmem_space_take(&sheet->buf);
	if (err) {
		accmem_context_put(buf->ctx);
		mutex_destroy(&sheet->buf.lock);
		kfree(sheet);
		return ERR_PTR(err);
	}
	err = buf->cv->ops->prepare(&sheet->buf);
	if (err) {
		accmem_buffer_put(&sheet->buf);
		return ERR_PTR(err);
	}
	return sheet;
}

static bool cut(struct accmem_buffer *buf)
{
	struct accmem_carveout *cv = buf->cv;
	struct accmem_slab_granule *units;
	unsigned int offset;

	lockdep_assert_held(&buf->ctx->lock);
	units = accmem_slab_alloc(slab_of(buf), buf->layout.footprint,
				  buf->layout.alignment, &offset);
	if (!units)
		return false;
	buf->sheet = container_of(units, struct accmem_sheet, units);
	buf->run.start = buf->sheet->buf.run.start + offset;
	buf->run.size = buf->layout.footprint;
	buf->runs = &buf->run;
	buf->nr_runs = 1;
	buf->state = ACCMEM_LIVE;
	accmem_carveout_lock(cv);
	cv->slack -= buf->layout.footprint;
	cv->nr_buffers++;
	cv->allocs++;
	accmem_carveout_unlock(cv);
	return true;
}

/* from a sheet that is there */
static bool cut_from_old(struct accmem_buffer *buf)
{
	bool done;

	lockdep_assert_held(&buf->ctx->lock);
	done = cut(buf);
	if (done)
		accmem_buffer_get(&buf->sheet->buf);
	return done;
}

/* from @sheet, whose reference is the block's then */
static int cut_from_new(struct accmem_buffer *buf, struct accmem_sheet *sheet)
{
	struct accmem_carveout *cv = buf->cv;
	int err;

	lockdep_assert_held(&buf->ctx->lock);
	err = accmem_context_insert(buf->ctx, &sheet->buf);
	if (err)
		return err;
	accmem_slab_add(slab_of(buf), &sheet->units);
	accmem_carveout_lock(cv);
	cv->slack += ACCMEM_GRANULE;
	accmem_carveout_unlock(cv);
	return WARN_ON_ONCE(!cut(buf)) ? -ENOMEM : 0;
}

/**
 * accmem_sheet_take() - take the units of a new small block
 * @buf: the block; its layout says how many
 *
 * Return: 0, -ENOMEM, -EINTR.
 */
int accmem_sheet_take(struct accmem_buffer *buf)
{
	struct accmem_context *ctx = buf->ctx;
	struct accmem_sheet *sheet;
	bool done;
	int err;

	err = make_slab(buf);
	if (err)
		return err;
	mutex_lock(&ctx->lock);
	done = cut_from_old(buf);
	mutex_unlock(&ctx->lock);
	if (done)
		return 0;

	sheet = new_sheet(buf);
	mutex_lock(&ctx->lock);
	/* another call may have brought one, or units of ours have settled */
	done = cut_from_old(buf);
	if (done)
		err = 0;
	else if (IS_ERR(sheet))
		err = PTR_ERR(sheet);
	else
		err = cut_from_new(buf, sheet);
	mutex_unlock(&ctx->lock);
	if (!IS_ERR(sheet) && (done || err))
		accmem_buffer_put(&sheet->buf);
	return err;
}

/**
 * accmem_sheet_prepare() - make a small block ready: zero, and present if asked
 * @buf: the block, which has no name yet
 *
 * Return: 0, -ENOMEM, -EINTR.
 */
int accmem_sheet_prepare(struct accmem_buffer *buf)
{
	struct accmem_buffer *own = &buf->sheet->buf;
	const struct accmem_backing_ops *ops = buf->cv->ops;

	if (READ_ONCE(own->mapped))
		ops->zero(own, offset_of(buf), buf->layout.footprint);
	if (buf->flags & ACCMEM_ALLOC_POPULATE && ops->populate)
		return ops->populate(own);
	return 0;
}

/* of an empty sheet, or one that has lost its context: no more live bytes */
static void detach_locked(struct accmem_sheet *sheet, u64 size)
{
	struct accmem_carveout *cv = sheet->buf.cv;

	lockdep_assert_held(&cv->lock);
	cv->slack -= size;
	cv->bytes[ACCMEM_LIVE] -= size;
	cv->bytes[ACCMEM_DETACHED] += size;
	sheet->buf.state = ACCMEM_DETACHED;
}

/**
 * accmem_sheet_give() - give the units of a small block back
 * @buf: the block; nobody refers to its memory. Allocates nothing.
 */
void accmem_sheet_give(struct accmem_buffer *buf)
{
	struct accmem_sheet *sheet = buf->sheet;
	struct accmem_carveout *cv = buf->cv;
	u64 size = buf->layout.footprint;
	int empty = 0;

	mutex_lock(&sheet->buf.ctx->lock);
	if (!sheet->retired)
		empty = accmem_slab_free(slab_of(buf), &sheet->units,
					 offset_of(buf), size);
	WARN_ON_ONCE(empty < 0);
	if (empty > 0)
		accmem_context_erase(buf->ctx, &sheet->buf);

	accmem_carveout_lock(cv);
	list_del_init(&buf->link);
	cv->nr_buffers--;
	cv->frees++;
	WRITE_ONCE(cv->bytes[buf->state], cv->bytes[buf->state] - size);
	cv->bytes[sheet->buf.state] += size;
	if (!sheet->retired)
		cv->slack += size;
	if (empty > 0)
		detach_locked(sheet, ACCMEM_GRANULE);
	accmem_carveout_unlock(cv);
	mutex_unlock(&sheet->buf.ctx->lock);
	accmem_buffer_put(&sheet->buf);
}

/**
 * accmem_sheet_retire() - the context of a sheet has ended
 * @own: the sheet, of which no block has a name
 *
 * The context's lock is held, and the sheet is out of its names.
 */
void accmem_sheet_retire(struct accmem_buffer *own)
{
	struct accmem_sheet *sheet = accmem_to_sheet(own);
	struct accmem_carveout *cv = own->cv;

	lockdep_assert_held(&own->ctx->lock);
	accmem_slab_remove(slab_of(own), &sheet->units);
	sheet->retired = true;
	accmem_carveout_lock(cv);
	detach_locked(sheet, accmem_slab_free_bytes(&sheet->units));
	accmem_carveout_unlock(cv);
}

/**
 * accmem_sheet_name() - a block can be found from now on
 * @buf: the block
 */
void accmem_sheet_name(struct accmem_buffer *buf)
{
	struct accmem_sheet *sheet = buf->sheet;
	unsigned int unit = unit_of(buf);

	lockdep_assert_held(&buf->ctx->lock);
	buf->address = sheet->buf.address + offset_of(buf);
	sheet->block[unit] = buf;
	sheet->starts |= BIT_ULL(unit);
}

/**
 * accmem_sheet_unname() - and no more
 * @buf: the block
 */
void accmem_sheet_unname(struct accmem_buffer *buf)
{
	struct accmem_sheet *sheet = buf->sheet;
	unsigned int unit = unit_of(buf);

	lockdep_assert_held(&buf->ctx->lock);
	sheet->starts &= ~BIT_ULL(unit);
	sheet->block[unit] = NULL;
}

/**
 * accmem_sheet_block() - the named block at a device address
 * @own: the sheet
 * @address: a device address in it
 *
 * Return: the block, or NULL.
 */
struct accmem_buffer *accmem_sheet_block(struct accmem_buffer *own, u64 address)
{
	struct accmem_sheet *sheet = accmem_to_sheet(own);
	unsigned int unit = (address - own->address) / ACCMEM_SLAB_UNIT;
	struct accmem_buffer *buf;
	u64 below;

	lockdep_assert_held(&own->ctx->lock);
	below = sheet->starts & (~0ull >> (ACCMEM_SLAB_UNITS - 1 - unit));
	if (!below)
		return NULL;
	buf = sheet->block[fls64(below) - 1];
	return address - buf->address < buf->layout.footprint ? buf : NULL;
}

/**
 * accmem_sheet_next() - the first named block from a device address on
 * @own: the sheet
 * @address: a device address in it, or at its end
 *
 * Return: the block, or NULL.
 */
struct accmem_buffer *accmem_sheet_next(struct accmem_buffer *own, u64 address)
{
	struct accmem_sheet *sheet = accmem_to_sheet(own);
	unsigned int unit = DIV_ROUND_UP(address - own->address,
					 ACCMEM_SLAB_UNIT);
	u64 above;

	lockdep_assert_held(&own->ctx->lock);
	if (unit >= ACCMEM_SLAB_UNITS)
		return NULL;
	above = sheet->starts & (~0ull << unit);
	return above ? sheet->block[__ffs64(above)] : NULL;
}

/**
 * accmem_sheet_wait() - let a block wait for the mappings of its sheet
 * @buf: the block, which nobody holds any more
 *
 * Return: whether there are any. accmem_sheet_unmap() goes on with it then.
 */
bool accmem_sheet_wait(struct accmem_buffer *buf)
{
	struct accmem_sheet *sheet = buf->sheet;
	bool mapped;

	mutex_lock(&sheet->buf.ctx->lock);
	mapped = sheet->mappings;
	if (mapped)
		list_add_tail(&buf->link, &sheet->waiting);
	mutex_unlock(&sheet->buf.ctx->lock);
	return mapped;
}

/**
 * accmem_sheet_map() - a mapping is being made
 * @own: the sheet
 */
void accmem_sheet_map(struct accmem_buffer *own)
{
	struct accmem_sheet *sheet = accmem_to_sheet(own);

	mutex_lock(&sheet->buf.ctx->lock);
	sheet->mappings++;
	mutex_unlock(&sheet->buf.ctx->lock);
}

/**
 * accmem_sheet_unmap() - a mapping has gone
 * @own: the sheet
 */
void accmem_sheet_unmap(struct accmem_buffer *own)
{
	struct accmem_sheet *sheet = accmem_to_sheet(own);
	struct accmem_buffer *buf, *next;
	LIST_HEAD(todo);

	mutex_lock(&sheet->buf.ctx->lock);
	if (!--sheet->mappings)
		list_splice_init(&sheet->waiting, &todo);
	mutex_unlock(&sheet->buf.ctx->lock);
	list_for_each_entry_safe(buf, next, &todo, link) {
		list_del_init(&buf->link);
		accmem_buffer_finish(buf);
	}
}

/**
 * accmem_sheet_largest() - the largest small block that needs no new sheet
 * @ctx: the context
 *
 * Return: bytes.
 */
u64 accmem_sheet_largest(struct accmem_context *ctx)
{
	unsigned int i;
	u64 most = 0;

	mutex_lock(&ctx->lock);
	for (i = 0; i < ARRAY_SIZE(ctx->slabs); i++) {
		if (ctx->slabs[i])
			most = max_t(u64, most,
				     accmem_slab_largest(ctx->slabs[i]));
	}
	mutex_unlock(&ctx->lock);
	return min(most, ACCMEM_SMALL_MAX);
}
