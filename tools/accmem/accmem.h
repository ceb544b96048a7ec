/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The commands of accmem. A command gets its own name as argv[0], and returns the exit
 * status.
 */
#ifndef ACCMEM_TOOL_H
#define ACCMEM_TOOL_H

int command_run(int argc, char **argv);

#endif /* ACCMEM_TOOL_H */
