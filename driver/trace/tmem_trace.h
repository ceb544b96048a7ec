/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events of Tensor Memory.
 *
 * Each event names the device, the context, the CTA and the SM. Sizes and addresses are in
 * columns.
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
		__array(char, device, 16)
		__field(u64, context)
		__field(u64, cta)
		__field(u64, launch)
		__field(u32, cluster)
		__field(u32, rank)
		__field(u32, sm)
		__field(u32, group)
	),
	TP_fast_assign(
		strscpy(__entry->device, cta->tmem->device,
			sizeof(__entry->device));
		__entry->context = cta->tmem->context;
		__entry->cta = cta->id;
		__entry->launch = cta->c.launch;
		__entry->cluster = cta->c.cluster;
		__entry->rank = cta->c.rank;
		__entry->sm = cta->c.sm;
		__entry->group = cta->c.group;
	),
	TP_printk("%s context=%llu cta=%llu launch=%#llx cluster=%u rank=%u sm=%u cta_group=%u",
		  __entry->device, __entry->context,
		  __entry->cta, __entry->launch,
		  __entry->cluster, __entry->rank, __entry->sm, __entry->group)
);

/* Class of events with a number of columns. */
DECLARE_EVENT_CLASS(accmem_tmem_number,
	TP_PROTO(const struct accmem_cta *cta, u32 columns),
	TP_ARGS(cta, columns),
	TP_STRUCT__entry(
		__array(char, device, 16)
		__field(u64, context)
		__field(u64, cta)
		__field(u32, sm)
		__field(u32, columns)
	),
	TP_fast_assign(
		strscpy(__entry->device, cta->tmem->device,
			sizeof(__entry->device));
		__entry->context = cta->tmem->context;
		__entry->cta = cta->id;
		__entry->sm = cta->c.sm;
		__entry->columns = columns;
	),
	TP_printk("%s context=%llu cta=%llu sm=%u columns=%u",
		  __entry->device, __entry->context,
		  __entry->cta, __entry->sm, __entry->columns)
);

/*
 * An alloc begins. A system call that resumes an interrupted alloc has no such
 * event.
 */
DEFINE_EVENT(accmem_tmem_number, accmem_tmem_request,
	TP_PROTO(const struct accmem_cta *cta, u32 columns),
	TP_ARGS(cta, columns)
);

/* A CTA relinquishes its permit; columns: the number that the CTA holds. */
DEFINE_EVENT(accmem_tmem_number, accmem_tmem_relinquish,
	TP_PROTO(const struct accmem_cta *cta, u32 columns),
	TP_ARGS(cta, columns)
);

/* A CTA exits; columns: the number that the CTA held. */
DEFINE_EVENT(accmem_tmem_number, accmem_tmem_exit,
	TP_PROTO(const struct accmem_cta *cta, u32 columns),
	TP_ARGS(cta, columns)
);

/* The context has ended: the columns that CTAs held are free now. */
TRACE_EVENT(accmem_tmem_reset,
	TP_PROTO(const struct accmem_tmem *tmem, u32 ctas, u32 columns),
	TP_ARGS(tmem, ctas, columns),
	TP_STRUCT__entry(
		__array(char, device, 16)
		__field(u64, context)
		__field(u32, ctas)
		__field(u32, columns)
	),
	TP_fast_assign(
		strscpy(__entry->device, tmem->device,
			sizeof(__entry->device));
		__entry->context = tmem->context;
		__entry->ctas = ctas;
		__entry->columns = columns;
	),
	TP_printk("%s context=%llu ctas=%u columns=%u",
		  __entry->device, __entry->context,
		  __entry->ctas, __entry->columns)
);

/* A grant has passed older requests; bypassed: the number of these. */
TRACE_EVENT(accmem_tmem_bypass,
	TP_PROTO(const struct accmem_cta *cta, u32 passed),
	TP_ARGS(cta, passed),
	TP_STRUCT__entry(
		__array(char, device, 16)
		__field(u64, context)
		__field(u64, cta)
		__field(u32, sm)
		__field(u32, bypassed)
	),
	TP_fast_assign(
		strscpy(__entry->device, cta->tmem->device,
			sizeof(__entry->device));
		__entry->context = cta->tmem->context;
		__entry->cta = cta->id;
		__entry->sm = cta->c.sm;
		__entry->bypassed = passed;
	),
	TP_printk("%s context=%llu cta=%llu sm=%u bypassed=%u",
		  __entry->device, __entry->context,
		  __entry->cta, __entry->sm, __entry->bypassed)
);

/*
 * Class of events at the end of an alloc or dealloc; waited: ns that the call waited
 * for columns or for the peer.
 */
DECLARE_EVENT_CLASS(accmem_tmem_columns,
	TP_PROTO(const struct accmem_cta *cta, u32 columns, u32 address,
		 u64 waited),
	TP_ARGS(cta, columns, address, waited),
	TP_STRUCT__entry(
		__array(char, device, 16)
		__field(u64, context)
		__field(u64, cta)
		__field(u32, sm)
		__field(u32, columns)
		__field(u32, address)
		__field(u64, waited)
	),
	TP_fast_assign(
		strscpy(__entry->device, cta->tmem->device,
			sizeof(__entry->device));
		__entry->context = cta->tmem->context;
		__entry->cta = cta->id;
		__entry->sm = cta->c.sm;
		__entry->columns = columns;
		__entry->address = address;
		__entry->waited = waited;
	),
	TP_printk("%s context=%llu cta=%llu sm=%u columns=%u address=%#x waited=%llu ns",
		  __entry->device, __entry->context,
		  __entry->cta, __entry->sm,
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

/* An alloc or a dealloc has timed out. */
DEFINE_EVENT(accmem_tmem_columns, accmem_tmem_timeout,
	TP_PROTO(const struct accmem_cta *cta, u32 columns, u32 address,
		 u64 waited),
	TP_ARGS(cta, columns, address, waited)
);

/* An alloc or a dealloc has failed with an error other than ETIMEDOUT. */
TRACE_EVENT(accmem_tmem_fail,
	TP_PROTO(const struct accmem_cta *cta, u32 columns, int error),
	TP_ARGS(cta, columns, error),
	TP_STRUCT__entry(
		__array(char, device, 16)
		__field(u64, context)
		__field(u64, cta)
		__field(u32, sm)
		__field(u32, columns)
		__field(int, error)
	),
	TP_fast_assign(
		strscpy(__entry->device, cta->tmem->device,
			sizeof(__entry->device));
		__entry->context = cta->tmem->context;
		__entry->cta = cta->id;
		__entry->sm = cta->c.sm;
		__entry->columns = columns;
		__entry->error = error;
	),
	TP_printk("%s context=%llu cta=%llu sm=%u columns=%u error=%d",
		  __entry->device, __entry->context,
		  __entry->cta, __entry->sm,
		  __entry->columns, __entry->error)
);

/* Strict mode has found a hazard. */
TRACE_EVENT(accmem_tmem_strict,
	TP_PROTO(const struct accmem_cta *cta, u32 hazard),
	TP_ARGS(cta, hazard),
	TP_STRUCT__entry(
		__array(char, device, 16)
		__field(u64, context)
		__field(u64, cta)
		__field(u32, sm)
		__field(u32, hazard)
	),
	TP_fast_assign(
		strscpy(__entry->device, cta->tmem->device,
			sizeof(__entry->device));
		__entry->context = cta->tmem->context;
		__entry->cta = cta->id;
		__entry->sm = cta->c.sm;
		__entry->hazard = hazard;
	),
	TP_printk("%s context=%llu cta=%llu sm=%u hazard=%s",
		  __entry->device, __entry->context,
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
