// SPDX-License-Identifier: GPL-2.0
/* Definitions of the trace events, except those of Tensor Memory. */
#define CREATE_TRACE_POINTS
#include "trace/trace.h"
