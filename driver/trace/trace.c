// SPDX-License-Identifier: GPL-2.0
/*
 * Definitions of the trace events, except those of Tensor Memory.
 *
 * CREATE_TRACE_POINTS makes trace.h emit the code of each event. No other file may
 * define it for that header.
 */
#define CREATE_TRACE_POINTS
#include "trace/trace.h"
