// SPDX-License-Identifier: GPL-2.0
/*
 * Programs use every feature of a device, while the device is reset, removed and added in a
 * loop. For revoke.sh. All memory is free at the end.
 */
#include "storm.h"

FIXTURE(storm)
{
	struct target target;
	uint64_t capacity;
};

ACCMEM_VARIANTS(storm);

FIXTURE_SETUP(storm)
{
	target_find(&self->target, variant->path);
	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	self->capacity = accmem_sysfs(variant->path, "capacity");
}

FIXTURE_TEARDOWN(storm)
{
	EXPECT_TRUE(target_restore(&self->target));
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	EXPECT_EQ(self->capacity, accmem_sysfs(variant->path, "free_bytes"));
}

static void storm(struct __test_metadata *_metadata, struct target *target,
		  unsigned int loops, bool goes)
{
	uint64_t end = accmem_ms() + 60000;
	struct worker w[THREADS] = {};
	atomic_int stop = 0;
	uint64_t seed = accmem_seed();
	char directory[128], path[64];
	unsigned int i;

	target_directory(target, directory, sizeof(directory));
	storm_start(w, directory, &stop);
	/* a thread may not run for a while */
	for (i = 0; i < loops || (!storm_is_seen(w) && accmem_ms() < end);
	     i++) {
		usleep(accmem_random(&seed) % 30000);
		if (goes && i % 2) {
			target_unbind(target);
			target_bind(target);
		} else if (target_node(target, path, sizeof(path))) {
			device_reset(path);
		}
	}
	EXPECT_TRUE(storm_end(w, &stop));
}

TEST_F_TIMEOUT(storm, resets, 300)
{
	storm(_metadata, &self->target, accmem_scale(200), false);
}

TEST_F_TIMEOUT(storm, resets_and_ends, 300)
{
	storm(_metadata, &self->target, accmem_scale(200), true);
}

ACCMEM_HARNESS_MAIN
