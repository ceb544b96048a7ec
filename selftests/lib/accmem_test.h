/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What every test program includes: the harness, the helpers, the headers of the system
 * that many tests use, and fixtures with a variant for each device.
 *
 * Environment:
 *   ACCMEM_BACKING	emulated, phys or nopages: a fixture with variants on this
 *			backing runs only these
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

/*
 * Fixture variants. Each variant is a device, whose path is in variant->path. Every
 * lane has the three devices, so a missing device fails the test. The devices "with
 * pages" have memory that can be pinned. On the "reserved" devices a device address
 * is the place in the carveout.
 */
#define ACCMEM_VARIANTS_WITH_PAGES(fixture)           \
	FIXTURE_VARIANT(fixture)                      \
	{                                             \
		const char *path;                     \
	};                                            \
	FIXTURE_VARIANT_ADD(fixture, emulated)        \
	{                                             \
		.path = ACCMEM_DEV_EMULATED,          \
	};                                            \
	FIXTURE_VARIANT_ADD(fixture, phys)            \
	{                                             \
		.path = ACCMEM_DEV_PHYS,              \
	}

#define ACCMEM_VARIANTS(fixture)                      \
	ACCMEM_VARIANTS_WITH_PAGES(fixture);          \
	FIXTURE_VARIANT_ADD(fixture, nopages)         \
	{                                             \
		.path = ACCMEM_DEV_NOPAGES,           \
	}

#define ACCMEM_VARIANTS_RESERVED(fixture)             \
	FIXTURE_VARIANT(fixture)                      \
	{                                             \
		const char *path;                     \
	};                                            \
	FIXTURE_VARIANT_ADD(fixture, phys)            \
	{                                             \
		.path = ACCMEM_DEV_PHYS,              \
	};                                            \
	FIXTURE_VARIANT_ADD(fixture, nopages)         \
	{                                             \
		.path = ACCMEM_DEV_NOPAGES,           \
	}

/*
 * A fixture with a context of an idle device. The device must be idle after the test,
 * too. The test may use @a for a buffer.
 */
#define ACCMEM_FIXTURE(fixture)                                         \
	FIXTURE(fixture)                                                \
	{                                                               \
		int fd;                                                 \
		struct accmem_info info;                                \
		struct accmem_alloc a;                                  \
	};                                                              \
	ACCMEM_VARIANTS(fixture);                                       \
	FIXTURE_SETUP(fixture)                                          \
	{                                                               \
		ASSERT_TRUE(accmem_is_idle(variant->path, 20000));      \
		self->fd = accmem_opened(variant->path);      \
		ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info)); \
	}                                                               \
	FIXTURE_TEARDOWN(fixture)                                       \
	{                                                               \
		close(self->fd);                                        \
		EXPECT_TRUE(accmem_is_idle(variant->path, 20000));      \
	}

/*
 * The default of 30 s is too short for an emulated machine with sanitizers. A test
 * with a hundred times the counts needs a hundred times as long.
 */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 240

static inline void accmem_harness_select(struct __fixture_metadata *f,
					 const char *backing)
{
	struct __fixture_variant_metadata *all = f->variant, *v, *next;

	for (v = all; v && !accmem_is_on(v->name, backing); v = v->next)
		;
	if (!v)
		return;
	f->variant = NULL;
	for (v = all; v; v = next) {
		next = v->next;
		if (accmem_is_on(v->name, backing))
			__register_fixture_variant(f, v);
	}
}

static inline int accmem_harness_main(int argc, char **argv)
{
	const char *backing = getenv("ACCMEM_BACKING");
	struct __fixture_metadata *f;
	struct __test_metadata *t;

	for (f = __fixture_list; f; f = f->next) {
		if (backing)
			accmem_harness_select(f, backing);
		for (t = f->tests; t; t = t->next) {
			if (accmem_scale(100) > 100)
				t->timeout = accmem_scale(t->timeout);
		}
	}
	return test_harness_run(argc, argv);
}

#define ACCMEM_HARNESS_MAIN                             \
	int main(int argc, char **argv)                 \
	{                                               \
		return accmem_harness_main(argc, argv); \
	}

#endif /* ACCMEM_TEST_H */
