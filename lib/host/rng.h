/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The random numbers of the tests of all cores. */
#ifndef ACCMEM_HOST_RNG_H
#define ACCMEM_HOST_RNG_H

#include <linux/types.h>

/*
 * Where numbers come from: the same generator everywhere, so that a seed names
 * one run of events, or a fuzzer's input while it lasts.
 */
struct rng {
	u64 state;
	const u8 *input;
	size_t left;
	bool spent;
};

static inline u64 rng_next(struct rng *r)
{
	u64 z;

	if (r->input) {
		r->spent = r->left < 2;
		if (r->spent)
			return 0;
		z = r->input[0] | (u64)r->input[1] << 8;
		r->input += 2;
		r->left -= 2;
		return z;
	}
	z = r->state += 0x9e3779b97f4a7c15ull;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static inline u64 rng_below(struct rng *r, u64 n)
{
	return rng_next(r) % n;
}

static inline bool rng_is_spent(const struct rng *r)
{
	return r->spent;
}

#endif /* ACCMEM_HOST_RNG_H */
