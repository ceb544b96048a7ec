/* SPDX-License-Identifier: MIT */
/*
 * Tensor Memory by the names of the PTX instructions tcgen05.alloc, dealloc
 * and relinquish_alloc_permit, on an accmem context.
 *
 * Functions return 0 or a negative errno value, those of the table in
 * <linux/accmem.h>, and are thread-safe, except that the calls that end a CTA
 * or a warp must be the last on it.
 */
#ifndef TCGEN05_H
#define TCGEN05_H

#include <accmem.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A CTA: one open file. */
struct tcgen05_cta;

/* The threads of a warp that call together. */
struct tcgen05_warp;

/**
 * struct tcgen05_config - the SMs of a context
 * @nr_sms: how many, at least 1
 * @columns: columns an SM, 0 for 512
 * @exclusive: 0: only capacity blocks; 1: one CTA an SM allocates at a time
 * @bypass_bound: how often a request that waits may be passed
 */
struct tcgen05_config {
	uint32_t nr_sms;
	uint32_t columns;
	uint32_t exclusive;
	uint32_t bypass_bound;
};

/**
 * struct tcgen05_place - where and as what a CTA runs
 * @launch: the launch (the kernel, in the words of PTX)
 * @cluster: its cluster in the launch
 * @rank: in the cluster; the peer's is rank xor 1
 * @sm: where it runs
 * @cta_group: 1, or 2 for pairs; one value in all of a launch
 */
struct tcgen05_place {
	uint64_t launch;
	uint32_t cluster;
	uint32_t rank;
	uint32_t sm;
	uint32_t cta_group;
};

/* Once, before the first CTA; without it one SM of 512 columns, shared. */
int tcgen05_setup(struct accmem_context *ctx,
		  const struct tcgen05_config *config);

int tcgen05_launch(struct accmem_context *ctx,
		   const struct tcgen05_place *place,
		   struct tcgen05_cta **cta);

/* The exit of the CTA; what it has not given back is reported and taken. */
void tcgen05_exit(struct tcgen05_cta *cta);

/*
 * The file: for poll (readable when the tcgen05_try_alloc() that failed would
 * succeed now) and for ioctls of one's own.
 */
int tcgen05_fd(const struct tcgen05_cta *cta);

/*
 * tcgen05.alloc: waits until @columns (a power of two in [32, 512]) are there
 * and stores their address at @destination.
 */
int tcgen05_alloc(struct tcgen05_cta *cta, uint32_t *destination,
		  uint32_t columns);
/* -ETIMEDOUT at @deadline_ns on CLOCK_MONOTONIC; 0 is none */
int tcgen05_alloc_until(struct tcgen05_cta *cta, uint32_t *destination,
			uint32_t columns, uint64_t deadline_ns);
/* -EAGAIN instead of waiting */
int tcgen05_try_alloc(struct tcgen05_cta *cta, uint32_t *destination,
		      uint32_t columns);

/* tcgen05.dealloc; in a pair it waits for the peer's */
int tcgen05_dealloc(struct tcgen05_cta *cta, uint32_t address,
		    uint32_t columns);
int tcgen05_dealloc_until(struct tcgen05_cta *cta, uint32_t address,
			  uint32_t columns, uint64_t deadline_ns);

/* tcgen05.relinquish_alloc_permit */
int tcgen05_relinquish_alloc_permit(struct tcgen05_cta *cta);

/* As ACCMEM_IOC_CTA_QUERY; @query needs no preparation. */
int tcgen05_query(struct tcgen05_cta *cta, struct accmem_cta_query *query);

/* The parts of an address. */
static inline uint32_t tcgen05_column(uint32_t address)
{
	return address & 0xffff;
}

static inline uint32_t tcgen05_lane(uint32_t address)
{
	return address >> 16;
}

#define TCGEN05_WARP_LANES 32

/*
 * The warp-collective form (.sync.aligned): every lane of the warp, 0 to
 * @lanes - 1, makes the same call from a thread of its own. The call is made
 * once, and returns to all lanes, with one result, after the last has come.
 *
 * -EILSEQ to all: the lanes are in different calls, or their operands differ.
 * -ESRCH to all: a lane has left the warp.
 * -EBUSY: this lane is in a call already.
 */
int tcgen05_warp_create(struct tcgen05_cta *cta, unsigned int lanes,
			struct tcgen05_warp **warp);
void tcgen05_warp_destroy(struct tcgen05_warp *warp);
/* The lane's thread ends, or will not call any more. */
void tcgen05_warp_leave(struct tcgen05_warp *warp, unsigned int lane);
int tcgen05_warp_alloc(struct tcgen05_warp *warp, unsigned int lane,
		       uint32_t *destination, uint32_t columns);
int tcgen05_warp_dealloc(struct tcgen05_warp *warp, unsigned int lane,
			 uint32_t address, uint32_t columns);
int tcgen05_warp_relinquish_alloc_permit(struct tcgen05_warp *warp,
					 unsigned int lane);

#ifdef __cplusplus
}
#endif

#endif /* TCGEN05_H */
