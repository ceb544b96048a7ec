/* SPDX-License-Identifier: MIT */
/* What the sources of preload_test share. */
#ifndef PRELOAD_TESTS_H
#define PRELOAD_TESTS_H

#include <stdbool.h>
#include <stddef.h>

#include "test.h"

#define KIB 1024ul
#define MIB (1024 * KIB)

/* Is it a mapping of the device, shared, as the kernel tells it? */
bool is_on_device(const void *pointer);
void fill(char *p, size_t size, unsigned int seed);
bool is_filled(const char *p, size_t size, unsigned int seed);
/* Forks; the child ends with what @check says. Return its status. */
int status_of_fork(bool (*check)(char *p), char *p);
/* Does a child have a heap on the device? */
bool allocates(char *p);

/* preload_fork.c */
void fork_without_handlers(void);
void fork_with_shared_descriptors(void);
void forks_that_fail(void);
void handlers_of_a_fork(void);
void fork_beside_files(void);
void fork_in_a_signal_handler(void);

#endif /* PRELOAD_TESTS_H */
