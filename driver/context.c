// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts: who owns buffers, and by which names.
 *
 * A context is one open file of a device; fork and fd passing share it, and it
 * ends with the last reference to the file. It names its buffers by device
 * address, in an rbtree whose nodes are embedded in the buffers: naming
 * allocates nothing, and unnaming cannot fail. Sheets are in it too, and small
 * blocks are found through them.
 *
 * The structure itself lives until its last buffer has gone, because charges
 * and the ownership of compound pages refer to it.
 *
 * Locks: device.lock > context.lock.
 */
#include <linux/cred.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "accmem_drv.h"
#include "tmem.h"
#include "trace.h"

static atomic64_t next_id;

static struct accmem_buffer *to_buffer(struct rb_node *node)
{
	return rb_entry_safe(node, struct accmem_buffer, node);
}

/* device addresses that a buffer takes: its footprint, whatever it uses */
static u64 buffer_end(const struct accmem_buffer *buf)
{
	return buf->address + buf->layout.footprint;
}

/**
 * accmem_context_open() - make a context for a file being opened
 * @dev: the device
 *
 * Return: the context; -EMFILE or -ENOMEM.
 */
struct accmem_context *accmem_context_open(struct accmem_device *dev)
{
	struct accmem_context *ctx;
	unsigned int i;
	int err;

	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return ERR_PTR(-ENOMEM);
	kref_init(&ctx->refs);
	ctx->dev = dev;
	ctx->id = atomic64_inc_return(&next_id);
	ctx->pid = task_tgid_nr(current);
	get_task_comm(ctx->comm, current);
	mutex_init(&ctx->lock);
	ctx->names = RB_ROOT;
	ctx->cursor = dev->address_base;
	for (i = 0; i < ACCMEM_FOLIO_CLASSES; i++)
		INIT_LIST_HEAD(&ctx->partial[i]);
	accmem_stash_init(&ctx->stash);
	err = accmem_user_open(ctx, current_uid());
	if (err) {
		mutex_destroy(&ctx->lock);
		kfree(ctx);
		return ERR_PTR(err);
	}

	mutex_lock(&dev->lock);
	list_add_tail(&ctx->link, &dev->contexts);
	dev->nr_contexts++;
	mutex_unlock(&dev->lock);
	return ctx;
}

static void release_context(struct kref *refs)
{
	struct accmem_context *ctx =
		container_of(refs, struct accmem_context, refs);

	unsigned int i;

	WARN_ON_ONCE(atomic64_read(&ctx->bytes));
	accmem_user_close(ctx);
	for (i = 0; i < ARRAY_SIZE(ctx->slabs); i++)
		kfree(ctx->slabs[i]);
	mutex_destroy(&ctx->lock);
	kfree(ctx);
}

void accmem_context_put(struct accmem_context *ctx)
{
	kref_put(&ctx->refs, release_context);
}

static void insert_node(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	struct rb_node **link = &ctx->names.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = buf->address < to_buffer(parent)->address ?
			       &parent->rb_left :
			       &parent->rb_right;
	}
	rb_link_node(&buf->node, parent, link);
	rb_insert_color(&buf->node, &ctx->names);
}

/* the lowest buffer or sheet that ends above @address */
static struct accmem_buffer *first_above(struct accmem_context *ctx,
					 u64 address)
{
	struct rb_node *node = ctx->names.rb_node;
	struct accmem_buffer *found = NULL;

	lockdep_assert_held(&ctx->lock);
	while (node) {
		struct accmem_buffer *buf = to_buffer(node);

		if (buffer_end(buf) > address) {
			found = buf;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

/*
 * The first room for @buf at or after @from and below @limit. Addresses are
 * handed out in ascending order and come round only after the whole span, so
 * that a stale address seldom names something new.
 */
static u64 find_room(struct accmem_context *ctx, const struct accmem_buffer *buf,
		     u64 from, u64 limit)
{
	u64 alignment = buf->layout.alignment;
	u64 size = buf->layout.footprint;
	struct accmem_buffer *next;
	u64 address;

	if (size >= ACCMEM_FOLIO)
		alignment = max_t(u64, alignment, ACCMEM_FOLIO);
	address = ALIGN(from, alignment);
	next = first_above(ctx, address);
	while (next && next->address < address + size) {
		address = ALIGN(buffer_end(next), alignment);
		next = to_buffer(rb_next(&next->node));
		if (fatal_signal_pending(current))
			return 0;
		cond_resched();
	}
	return address <= limit && limit - address >= size ? address : 0;
}

/* the buffer that has a name and contains @address */
static struct accmem_buffer *find_named(struct accmem_context *ctx, u64 address)
{
	struct accmem_buffer *buf = first_above(ctx, address);

	if (!buf || buf->address > address)
		return NULL;
	return buf->is_sheet ? accmem_sheet_block(buf, address) : buf;
}

static int choose_address(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	struct accmem_device *dev = ctx->dev;
	u64 limit = dev->address_base + dev->address_span;
	u64 address;

	if (buf->cv->translation == ACCMEM_TRANSLATION_IDENTITY) {
		buf->address = dev->address_base + buf->run.start;
		return 0;
	}
	address = find_room(ctx, buf, ctx->cursor, limit);
	if (!address)
		address = find_room(ctx, buf, dev->address_base, limit);
	if (!address)
		return -ENOMEM;
	buf->address = address;
	ctx->cursor = buffer_end(buf);
	return 0;
}

/**
 * accmem_context_insert() - give a buffer or sheet its device addresses
 * @ctx: the context, whose lock is held
 * @buf: the buffer or sheet
 *
 * Return: 0, or -ENOMEM when no device address is left for it.
 */
int accmem_context_insert(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	int err;

	lockdep_assert_held(&ctx->lock);
	err = choose_address(ctx, buf);
	if (!err)
		insert_node(ctx, buf);
	return err;
}

/**
 * accmem_context_erase() - undo accmem_context_insert()
 * @ctx: the context, whose lock is held
 * @buf: the buffer or sheet
 */
void accmem_context_erase(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	lockdep_assert_held(&ctx->lock);
	rb_erase(&buf->node, &ctx->names);
}

/**
 * accmem_context_name() - give a buffer its device address
 * @ctx: the context
 * @buf: the buffer; from here on other threads can find it
 *
 * Return: 0, or -ENOMEM when no device address is left for it.
 */
int accmem_context_name(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	int err = 0;

	mutex_lock(&ctx->lock);
	if (buf->sheet)
		accmem_sheet_name(buf);
	else
		err = accmem_context_insert(ctx, buf);
	if (!err) {
		buf->named = true;
		ctx->nr_names++;
		ctx->named_bytes += buf->layout.footprint;
	}
	mutex_unlock(&ctx->lock);
	return err;
}

static void unname_locked(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	lockdep_assert_held(&ctx->lock);
	trace_accmem_free(buf);
	if (buf->sheet)
		accmem_sheet_unname(buf);
	else
		accmem_context_erase(ctx, buf);
	buf->named = false;
	ctx->nr_names--;
	ctx->named_bytes -= buf->layout.footprint;
}

/**
 * accmem_context_unname() - take a buffer's name away
 * @ctx: the context
 * @buf: the buffer, of which the caller has a reference
 *
 * Return: whether it had its name still. If so, the reference of the name is
 * the caller's now, to hand to accmem_buffer_detach().
 */
bool accmem_context_unname(struct accmem_context *ctx,
			   struct accmem_buffer *buf)
{
	bool named;

	mutex_lock(&ctx->lock);
	named = buf->named;
	if (named)
		unname_locked(ctx, buf);
	mutex_unlock(&ctx->lock);
	return named;
}

/**
 * accmem_context_find() - the buffer at a device address
 * @ctx: the context
 * @address: any address inside the buffer
 *
 * Return: the buffer, with a reference, or NULL.
 */
struct accmem_buffer *accmem_context_find(struct accmem_context *ctx,
					  u64 address)
{
	struct accmem_buffer *buf;

	mutex_lock(&ctx->lock);
	buf = find_named(ctx, address);
	if (buf)
		accmem_buffer_get(buf);
	mutex_unlock(&ctx->lock);
	return buf;
}

/**
 * accmem_context_mappable() - what a mapping at a device address is of
 * @ctx: the context
 * @address: a multiple of the page size
 *
 * Return: the buffer, or the sheet as long as a block of it has its name, with
 * a reference; or NULL.
 */
struct accmem_buffer *accmem_context_mappable(struct accmem_context *ctx,
					      u64 address)
{
	struct accmem_buffer *buf;

	mutex_lock(&ctx->lock);
	buf = first_above(ctx, address);
	if (buf && buf->address > address)
		buf = NULL;
	if (buf && buf->is_sheet && !accmem_sheet_next(buf, buf->address))
		buf = NULL;
	if (buf)
		accmem_buffer_get(buf);
	mutex_unlock(&ctx->lock);
	return buf;
}

/**
 * accmem_context_free() - free a buffer by its name
 * @ctx: the context
 * @address: its device address
 *
 * Return: 0; -ENOENT when there is no buffer, -EINVAL when @address is inside
 * one.
 */
int accmem_context_free(struct accmem_context *ctx, u64 address)
{
	struct accmem_buffer *buf, *goes = NULL;
	int err = 0;

	mutex_lock(&ctx->lock);
	buf = find_named(ctx, address);
	if (!buf) {
		err = -ENOENT;
	} else if (buf->address < address) {
		err = -EINVAL;
	} else {
		unname_locked(ctx, buf);
		goes = accmem_stash_put(ctx, buf);
	}
	mutex_unlock(&ctx->lock);
	if (goes)
		accmem_buffer_detach(goes);
	return err;
}

/*
 * Takes one name away, in *buf then, or one sheet that has none left. False
 * when there is nothing left.
 */
static bool take_name(struct accmem_context *ctx, struct accmem_buffer **buf)
{
	struct accmem_buffer *first;

	*buf = NULL;
	mutex_lock(&ctx->lock);
	first = to_buffer(rb_first(&ctx->names));
	if (first)
		*buf = first->is_sheet ?
			       accmem_sheet_next(first, first->address) : first;
	if (*buf) {
		unname_locked(ctx, *buf);
	} else if (first) {
		accmem_context_erase(ctx, first);
		accmem_sheet_retire(first);
	}
	mutex_unlock(&ctx->lock);
	return first;
}

/**
 * accmem_context_end() - the last reference to the file has gone
 * @ctx: the context; the caller's reference goes with it
 *
 * Every name goes; memory follows as its mappings and pins go.
 */
void accmem_context_end(struct accmem_context *ctx)
{
	struct accmem_device *dev = ctx->dev;
	struct accmem_buffer *buf;

	mutex_lock(&dev->lock);
	list_del(&ctx->link);
	dev->nr_contexts--;
	mutex_unlock(&dev->lock);

	accmem_tmem_end(ctx);
	accmem_stash_drain(ctx);
	while (take_name(ctx, &buf)) {
		if (buf)
			accmem_buffer_detach(buf);
		cond_resched();
	}
	accmem_user_leave(ctx);
	accmem_context_put(ctx);
}
