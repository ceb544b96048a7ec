/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What every test program includes: the headers of the system that many tests use, the
 * harness and the helpers.
 */
#ifndef ACCMEM_TEST_H
#define ACCMEM_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "accmem_util.h"

#define RW (PROT_READ | PROT_WRITE)

#endif /* ACCMEM_TEST_H */
