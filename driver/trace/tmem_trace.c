// SPDX-License-Identifier: GPL-2.0
/*
 * The one place where the trace events of Tensor Memory are made.
 */
#define CREATE_TRACE_POINTS
#include "trace/tmem_trace.h"
