// SPDX-License-Identifier: GPL-2.0
/*
 * Definitions of the trace events of Tensor Memory.
 *
 * CREATE_TRACE_POINTS makes tmem_trace.h emit the code of each event. No other file may
 * define it for that header.
 */
#define CREATE_TRACE_POINTS
#include "trace/tmem_trace.h"
