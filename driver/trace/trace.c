// SPDX-License-Identifier: GPL-2.0
/*
 * The one place where the trace events are made.
 */
#define CREATE_TRACE_POINTS
#include "trace/trace.h"
