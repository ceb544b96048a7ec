/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of Tensor Memory.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM accmem

#if !defined(ACCMEM_TMEM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define ACCMEM_TMEM_TRACE_H

#include <linux/tracepoint.h>

#include "types/tmem_types.h"

TRACE_EVENT(accmem_tmem_launch,
	TP_PROTO(const struct accmem_cta *cta),
	TP_ARGS(cta),
	TP_STRUCT__entry(
		__field(u64, context)
		__field(u64, cta)
		__field(u64, launch)
		__field(u32, cluster)
		__field(u32, rank)
		__field(u32, sm)
		__field(u32, group)
	),
	TP_fast_assign(
		__entry->context = cta->tmem->context;
		__entry->cta = cta->id;
		__entry->launch = cta->c.launch;
		__entry->cluster = cta->c.cluster;
		__entry->rank = cta->c.rank;
		__entry->sm = cta->c.sm;
		__entry->group = cta->c.group;
	),
	TP_printk("context=%llu cta=%llu launch=%#llx cluster=%u rank=%u sm=%u cta_group=%u",
		  __entry->context, __entry->cta, __entry->launch,
		  __entry->cluster, __entry->rank, __entry->sm, __entry->group)
);

/* what a CTA asks for, or held */
DECLARE_EVENT_CLASS(accmem_tmem_number,
	TP_PROTO(const struct accmem_cta *cta, u32 columns),
	TP_ARGS(cta, columns),
	TP_STRUCT__entry(
		__field(u64, context)
		__field(u64, cta)
		__field(u32, sm)
		__field(u32, columns)
	),
	TP_fast_assign(
		__entry->context = cta->tmem->context;
		__entry->cta = cta->id;
		__entry->sm = cta->c.sm;
		__entry->columns = columns;
	),
	TP_printk("context=%llu cta=%llu sm=%u columns=%u", __entry->context,
		  __entry->cta, __entry->sm, __entry->columns)
);

/* an alloc begins; one that a signal has interrupted, and that goes on, has begun */
DEFINE_EVENT(accmem_tmem_number, accmem_tmem_request,
	TP_PROTO(const struct accmem_cta *cta, u32 columns),
	TP_ARGS(cta, columns)
);

/* a CTA will allocate no more; columns: what it holds */
DEFINE_EVENT(accmem_tmem_number, accmem_tmem_relinquish,
	TP_PROTO(const struct accmem_cta *cta, u32 columns),
	TP_ARGS(cta, columns)
);

/* a CTA exits; columns: what it held */
DEFINE_EVENT(accmem_tmem_number, accmem_tmem_exit,
	TP_PROTO(const struct accmem_cta *cta, u32 columns),
	TP_ARGS(cta, columns)
);

/* a grant passed older requests; passed: how many */
TRACE_EVENT(accmem_tmem_bypass,
	TP_PROTO(const struct accmem_cta *cta, u32 passed),
	TP_ARGS(cta, passed),
	TP_STRUCT__entry(
		__field(u64, context)
		__field(u64, cta)
		__field(u32, sm)
		__field(u32, bypassed)
	),
	TP_fast_assign(
		__entry->context = cta->tmem->context;
		__entry->cta = cta->id;
		__entry->sm = cta->c.sm;
		__entry->bypassed = passed;
	),
	TP_printk("context=%llu cta=%llu sm=%u bypassed=%u", __entry->context,
		  __entry->cta, __entry->sm, __entry->bypassed)
);

/* columns come or go; waited: for them, or for the peer, in ns */
DECLARE_EVENT_CLASS(accmem_tmem_columns,
	TP_PROTO(const struct accmem_cta *cta, u32 columns, u32 address,
		 u64 waited),
	TP_ARGS(cta, columns, address, waited),
	TP_STRUCT__entry(
		__field(u64, context)
		__field(u64, cta)
		__field(u32, sm)
		__field(u32, columns)
		__field(u32, address)
		__field(u64, waited)
	),
	TP_fast_assign(
		__entry->context = cta->tmem->context;
		__entry->cta = cta->id;
		__entry->sm = cta->c.sm;
		__entry->columns = columns;
		__entry->address = address;
		__entry->waited = waited;
	),
	TP_printk("context=%llu cta=%llu sm=%u columns=%u address=%#x waited=%llu ns",
		  __entry->context, __entry->cta, __entry->sm,
		  __entry->columns, __entry->address, __entry->waited)
);

DEFINE_EVENT(accmem_tmem_columns, accmem_tmem_grant,
	TP_PROTO(const struct accmem_cta *cta, u32 columns, u32 address,
		 u64 waited),
	TP_ARGS(cta, columns, address, waited)
);

DEFINE_EVENT(accmem_tmem_columns, accmem_tmem_dealloc,
	TP_PROTO(const struct accmem_cta *cta, u32 columns, u32 address,
		 u64 waited),
	TP_ARGS(cta, columns, address, waited)
);

/* an alloc or a dealloc gave up at its deadline */
DEFINE_EVENT(accmem_tmem_columns, accmem_tmem_timeout,
	TP_PROTO(const struct accmem_cta *cta, u32 columns, u32 address,
		 u64 waited),
	TP_ARGS(cta, columns, address, waited)
);

/* an alloc or a dealloc failed, for another reason */
TRACE_EVENT(accmem_tmem_fail,
	TP_PROTO(const struct accmem_cta *cta, u32 columns, int error),
	TP_ARGS(cta, columns, error),
	TP_STRUCT__entry(
		__field(u64, context)
		__field(u64, cta)
		__field(u32, sm)
		__field(u32, columns)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->context = cta->tmem->context;
		__entry->cta = cta->id;
		__entry->sm = cta->c.sm;
		__entry->columns = columns;
		__entry->error = error;
	),
	TP_printk("context=%llu cta=%llu sm=%u columns=%u error=%d",
		  __entry->context, __entry->cta, __entry->sm,
		  __entry->columns, __entry->error)
);

/* strict mode has found what hardware would not survive */
TRACE_EVENT(accmem_tmem_strict,
	TP_PROTO(const struct accmem_cta *cta, u32 hazard),
	TP_ARGS(cta, hazard),
	TP_STRUCT__entry(
		__field(u64, context)
		__field(u64, cta)
		__field(u32, sm)
		__field(u32, hazard)
	),
	TP_fast_assign(
		__entry->context = cta->tmem->context;
		__entry->cta = cta->id;
		__entry->sm = cta->c.sm;
		__entry->hazard = hazard;
	),
	TP_printk("context=%llu cta=%llu sm=%u hazard=%s", __entry->context,
		  __entry->cta, __entry->sm,
		  __print_symbolic(__entry->hazard,
				   { ACCMEM_HAZARD_PEER, "peer" },
				   { ACCMEM_HAZARD_PERMIT, "permit" },
				   { ACCMEM_HAZARD_WARP, "warp" }))
);

#endif /* ACCMEM_TMEM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH trace
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE tmem_trace
#include <trace/define_trace.h>
