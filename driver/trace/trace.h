/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of accmem, except those of Tensor Memory.
 *
 * Each event names the device and the context. Sizes and addresses are in bytes.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM accmem

#if !defined(ACCMEM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define ACCMEM_TRACE_H

#include <linux/tracepoint.h>

#include "types/context_types.h"

DECLARE_EVENT_CLASS(accmem_buffer,
	TP_PROTO(const struct accmem_context *ctx,
		 const struct accmem_buffer *buf),
	TP_ARGS(ctx, buf),
	TP_STRUCT__entry(
		__field(unsigned int, device)
		__field(u64, context)
		__field(u64, address)
		__field(u64, length)
		__field(u64, footprint)
		__field(unsigned int, runs)
	),
	TP_fast_assign(
		__entry->device = ctx->account->accounts->index;
		__entry->context = ctx->account->id;
		__entry->address = buf->address;
		__entry->length = buf->length;
		__entry->footprint = buf->layout.footprint;
		__entry->runs = accmem_buffer_bo(buf)->nr_runs;
	),
	TP_printk("accmem%u context=%llu address=%#llx length=%llu footprint=%llu runs=%u",
		  __entry->device, __entry->context, __entry->address,
		  __entry->length, __entry->footprint, __entry->runs)
);

/* A buffer was published: its address is valid from now on. */
DEFINE_EVENT(accmem_buffer, accmem_alloc,
	TP_PROTO(const struct accmem_context *ctx,
		 const struct accmem_buffer *buf),
	TP_ARGS(ctx, buf)
);

/* A buffer was unpublished: its address is not valid any more. */
DEFINE_EVENT(accmem_buffer, accmem_free,
	TP_PROTO(const struct accmem_context *ctx,
		 const struct accmem_buffer *buf),
	TP_ARGS(ctx, buf)
);

/* A buffer was resized, in place or by a copy to another address; copied: bytes. */
TRACE_EVENT(accmem_realloc,
	TP_PROTO(const struct accmem_context *ctx,
		 const struct accmem_buffer *buf, u64 from, u64 copied),
	TP_ARGS(ctx, buf, from, copied),
	TP_STRUCT__entry(
		__field(unsigned int, device)
		__field(u64, context)
		__field(u64, from)
		__field(u64, address)
		__field(u64, length)
		__field(u64, footprint)
		__field(u64, copied)
	),
	TP_fast_assign(
		__entry->device = ctx->account->accounts->index;
		__entry->context = ctx->account->id;
		__entry->from = from;
		__entry->address = buf->address;
		__entry->length = buf->length;
		__entry->footprint = buf->layout.footprint;
		__entry->copied = copied;
	),
	TP_printk("accmem%u context=%llu from=%#llx address=%#llx length=%llu footprint=%llu copied=%llu",
		  __entry->device, __entry->context, __entry->from,
		  __entry->address, __entry->length, __entry->footprint,
		  __entry->copied)
);

/* Memory has failed; retired and pending: bytes of the carveout afterwards. */
TRACE_EVENT(
	accmem_retire,
	TP_PROTO(const struct accmem_carveout *cv, u64 offset, u64 size,
		 unsigned int cause, u64 retired, u64 pending),
	TP_ARGS(cv, offset, size, cause, retired, pending),
	TP_STRUCT__entry(__field(unsigned int, device) __field(unsigned int,
							       carveout)
				 __field(u64, offset) __field(u64, size)
					 __field(unsigned int, cause)
						 __field(u64, retired)
							 __field(u64, pending)),
	TP_fast_assign(__entry->device = cv->carveouts->accounts->index;
		       __entry->carveout = cv->index; __entry->offset = offset;
		       __entry->size = size; __entry->cause = cause;
		       __entry->retired = retired; __entry->pending = pending;),
	TP_printk(
		"accmem%u carveout=%u offset=%#llx size=%llu cause=%u retired=%llu pending=%llu",
		__entry->device, __entry->carveout, __entry->offset,
		__entry->size, __entry->cause, __entry->retired,
		__entry->pending));

/* All runs of a buffer object, or a part of them, were freed. */
TRACE_EVENT(accmem_release,
	TP_PROTO(const struct accmem_bo *bo, u64 size, unsigned int runs),
	TP_ARGS(bo, size, runs),
	TP_STRUCT__entry(
		__field(unsigned int, device)
		__field(u64, context)
		__field(u64, size)
		__field(unsigned int, runs)
	),
	TP_fast_assign(
		__entry->device = bo->account->accounts->index;
		__entry->context = bo->account->id;
		__entry->size = size;
		__entry->runs = runs;
	),
	TP_printk("accmem%u context=%llu size=%llu runs=%u",
		  __entry->device, __entry->context, __entry->size,
		  __entry->runs)
);

/* A free becomes pending on a position of a stream, or on a fence (stream 0). */
TRACE_EVENT(accmem_pend,
	TP_PROTO(const struct accmem_context *ctx,
		 const struct accmem_buffer *buf),
	TP_ARGS(ctx, buf),
	TP_STRUCT__entry(
		__field(unsigned int, device)
		__field(u64, context)
		__field(u64, address)
		__field(u64, footprint)
		__field(u64, stream)
		__field(u64, position)
	),
	TP_fast_assign(
		const struct accmem_dep *dep = &buf->pending.deps[0];

		__entry->device = ctx->account->accounts->index;
		__entry->context = ctx->account->id;
		__entry->address = buf->address;
		__entry->footprint = buf->layout.footprint;
		__entry->stream = dep->position ? dep->stream->id : 0;
		__entry->position = dep->position;
	),
	TP_printk("accmem%u context=%llu address=%#llx footprint=%llu stream=%llu position=%llu",
		  __entry->device, __entry->context, __entry->address,
		  __entry->footprint, __entry->stream, __entry->position)
);

/* A stream has reached a position. */
TRACE_EVENT(accmem_stream_reach,
	TP_PROTO(const struct accmem_stream *stream, u64 position),
	TP_ARGS(stream, position),
	TP_STRUCT__entry(
		__field(unsigned int, device)
		__field(u64, context)
		__field(u64, stream)
		__field(u64, position)
	),
	TP_fast_assign(
		__entry->device = stream->accounts->index;
		__entry->context = stream->context;
		__entry->stream = stream->id;
		__entry->position = position;
	),
	TP_printk("accmem%u context=%llu stream=%llu position=%llu",
		  __entry->device, __entry->context, __entry->stream,
		  __entry->position)
);

/* A pending free is overdue. */
TRACE_EVENT(accmem_overdue,
	TP_PROTO(const struct accmem_account *account, u64 size,
		 unsigned int ms),
	TP_ARGS(account, size, ms),
	TP_STRUCT__entry(
		__field(unsigned int, device)
		__field(u64, context)
		__field(u64, size)
		__field(unsigned int, ms)
	),
	TP_fast_assign(
		__entry->device = account->accounts->index;
		__entry->context = account->id;
		__entry->size = size;
		__entry->ms = ms;
	),
	TP_printk("accmem%u context=%llu size=%llu ms=%u",
		  __entry->device, __entry->context, __entry->size,
		  __entry->ms)
);

TRACE_EVENT(accmem_map,
	TP_PROTO(const struct accmem_bo *bo, u64 offset, u64 size),
	TP_ARGS(bo, offset, size),
	TP_STRUCT__entry(
		__field(unsigned int, device)
		__field(u64, context)
		__field(u64, address)
		__field(u64, offset)
		__field(u64, size)
	),
	TP_fast_assign(
		__entry->device = bo->account->accounts->index;
		__entry->context = bo->account->id;
		__entry->address = bo->cv->carveouts->address_base +
				   bo->offset;
		__entry->offset = offset;
		__entry->size = size;
	),
	TP_printk("accmem%u context=%llu address=%#llx offset=%llu size=%llu",
		  __entry->device, __entry->context, __entry->address,
		  __entry->offset, __entry->size)
);

/*
 * A piece of a shared buffer object was made valid on the other side. copied=0: no
 * copy was necessary.
 */
TRACE_EVENT(accmem_move,
	TP_PROTO(const struct accmem_bo *bo, u64 offset, u64 size,
		 bool to_device, bool copied),
	TP_ARGS(bo, offset, size, to_device, copied),
	TP_STRUCT__entry(
		__field(unsigned int, device)
		__field(u64, context)
		__field(u64, address)
		__field(u64, size)
		__field(bool, to_device)
		__field(bool, copied)
	),
	TP_fast_assign(
		__entry->device = bo->account->accounts->index;
		__entry->context = bo->account->id;
		__entry->address = bo->cv->carveouts->address_base +
				   bo->offset + offset;
		__entry->size = size;
		__entry->to_device = to_device;
		__entry->copied = copied;
	),
	TP_printk("accmem%u context=%llu address=%#llx size=%llu to=%s copied=%d",
		  __entry->device, __entry->context, __entry->address,
		  __entry->size, __entry->to_device ? "device" : "host",
		  __entry->copied)
);

/* Class of events of a waiter: it begins to wait, or it is woken to try again. */
DECLARE_EVENT_CLASS(accmem_waiter,
	TP_PROTO(const struct accmem_waiter *w),
	TP_ARGS(w),
	TP_STRUCT__entry(
		__field(unsigned int, device)
		__field(u64, context)
		__field(u64, length)
		__field(u64, need)
		__field(u32, carveouts)
	),
	TP_fast_assign(
		__entry->device = w->ws->index;
		__entry->context = w->account->id;
		__entry->length = w->req.length;
		__entry->need = w->q.need;
		__entry->carveouts = w->demand.carveouts;
	),
	TP_printk("accmem%u context=%llu length=%llu need=%llu carveouts=%#x",
		  __entry->device, __entry->context, __entry->length,
		  __entry->need, __entry->carveouts)
);

DEFINE_EVENT(accmem_waiter, accmem_wait,
	TP_PROTO(const struct accmem_waiter *w),
	TP_ARGS(w)
);

DEFINE_EVENT(accmem_waiter, accmem_wake,
	TP_PROTO(const struct accmem_waiter *w),
	TP_ARGS(w)
);

/*
 * A waiter leaves the queue. bypassed: how often the waiter was passed at the front.
 * error: 0 if the request was served.
 */
TRACE_EVENT(accmem_wait_end,
	TP_PROTO(const struct accmem_waiter *w, u64 now, int error),
	TP_ARGS(w, now, error),
	TP_STRUCT__entry(
		__field(unsigned int, device)
		__field(u64, context)
		__field(u64, length)
		__field(u64, waited)
		__field(u32, bypassed)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->device = w->ws->index;
		__entry->context = w->account->id;
		__entry->length = w->req.length;
		__entry->waited = now - w->since;
		__entry->bypassed = w->q.bypassed;
		__entry->error = error;
	),
	TP_printk("accmem%u context=%llu length=%llu waited=%llu bypassed=%u error=%d",
		  __entry->device, __entry->context, __entry->length,
		  __entry->waited, __entry->bypassed, __entry->error)
);

/* An allocation has failed. For ENOMEM, free and largest show the reason. */
TRACE_EVENT(accmem_fail,
	TP_PROTO(const struct accmem_context *ctx,
		 const struct accmem_alloc *req, int error),
	TP_ARGS(ctx, req, error),
	TP_STRUCT__entry(
		__field(unsigned int, device)
		__field(u64, context)
		__field(u64, length)
		__field(u64, alignment)
		__field(u32, policy)
		__field(u32, carveouts)
		__field(u64, free)
		__field(u64, largest)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->device = ctx->account->accounts->index;
		__entry->context = ctx->account->id;
		__entry->length = req->length;
		__entry->alignment = req->alignment;
		__entry->policy = req->page_policy;
		__entry->carveouts = req->carveouts;
		__entry->free = req->free_bytes;
		__entry->largest = req->largest_run;
		__entry->error = error;
	),
	TP_printk("accmem%u context=%llu length=%llu alignment=%llu policy=%u carveouts=%#x free=%llu largest=%llu error=%d",
		  __entry->device, __entry->context, __entry->length,
		  __entry->alignment, __entry->policy, __entry->carveouts,
		  __entry->free, __entry->largest, __entry->error)
);

#endif /* ACCMEM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH trace
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
