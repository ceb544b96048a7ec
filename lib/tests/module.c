// SPDX-License-Identifier: GPL-2.0
/*
 * The cores under test, compiled once more into the test module: they export
 * nothing, and accmem.ko need not be loaded for the suites to run.
 */
#include <linux/module.h>

#include "lib/buddy/buddy.c"

#include "lib/layout/layout.c"

MODULE_DESCRIPTION("KUnit tests of accmem's cores");
MODULE_LICENSE("GPL");
