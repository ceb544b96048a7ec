/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SHIM_MINMAX_H
#define ACCMEM_SHIM_MINMAX_H

/* As strict as the kernel's: operands of two types do not compile. */
#define SHIM_PICK(a, op, b)                         \
	({                                          \
		__typeof__(a) pick_a = (a);         \
		__typeof__(b) pick_b = (b);         \
		(void)(&pick_a == &pick_b);         \
		pick_a op pick_b ? pick_a : pick_b; \
	})

#define min(a, b) SHIM_PICK(a, <, b)
#define max(a, b) SHIM_PICK(a, >, b)
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define clamp(a, lo, hi) min(max(a, lo), hi)
#define clamp_t(type, a, lo, hi) clamp((type)(a), (type)(lo), (type)(hi))

#define swap(a, b)                          \
	do {                                \
		__typeof__(a) swap_a = (a); \
		(a) = (b);                  \
		(b) = swap_a;               \
	} while (0)

#endif
