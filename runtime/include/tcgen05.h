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
 * @nr_sms: how many, 1 to 256
 * @columns: columns an SM, a multiple of 32 up to 2048; 0 for 512
 * @exclusive: 0: only capacity blocks; 1: one CTA an SM allocates at a time
 * @bypass_bound: how often younger requests may pass one that waits
 * @strict: 1: what is harmless here and would not be on hardware is reported
 */
struct tcgen05_config {
	uint32_t nr_sms;
	uint32_t columns;
	uint32_t exclusive;
	uint32_t bypass_bound;
	uint32_t strict;
};

/**
 * struct tcgen05_place - where and as what a CTA runs
 * @launch: the launch (the kernel, in the words of PTX)
 * @cluster: its cluster in the launch
 * @rank: in the cluster; the peer's is rank xor 1
 * @sm: where it runs
 * @cta_group: 1, or 2 for pairs; one value in all of a launch
 * @window: the CTA's shared::cta window, or NULL
 * @window_length: bytes of it; an alloc stores its address nowhere else (P10).
 *	0 for no window: then it may be stored anywhere
 */
struct tcgen05_place {
	uint64_t launch;
	uint32_t cluster;
	uint32_t rank;
	uint32_t sm;
	uint32_t cta_group;
	void *window;
	uint64_t window_length;
};

/**
 * tcgen05_setup() - give a context its SMs
 * @ctx: the context, which has none and no CTA
 * @config: which
 *
 * Without it a context has one SM of 512 columns, shared, bypass bound 64.
 *
 * Return: 0; -EINVAL for a member out of range, -EBUSY for a second time or after a
 * launch, which may have failed, -ENOMEM.
 */
int tcgen05_setup(struct accmem_context *ctx,
		  const struct tcgen05_config *config);

/**
 * tcgen05_launch() - start a CTA
 * @ctx: the context, which may have 2,048 CTAs
 * @place: where, and as what
 * @cta: out: the CTA
 *
 * Return: 0; -EINVAL; -ENXIO, -EPROTOTYPE, -EEXIST, -EADDRINUSE for a place that
 * cannot be (P13, P19); -EOVERFLOW for such a window; -EMFILE, -ENFILE, -ENOMEM.
 */
int tcgen05_launch(struct accmem_context *ctx,
		   const struct tcgen05_place *place,
		   struct tcgen05_cta **cta);

/**
 * tcgen05_launch_cluster() - start the CTAs of a cluster, all or none
 * @ctx: the context
 * @places: of each of them; launch, cluster and cta_group are the same in all
 * @count: how many, 1 to 64; of cta_group 2, both of each pair
 * @ctas: out: as many CTAs, in the order of their places
 *
 * No CTA can be launched into the cluster after that, so none waits for a peer
 * that does not come.
 *
 * Return: 0; -EINVAL for a count that is out of range, for places that are not of
 * one cluster, for half a pair; -EEXIST also where the cluster has CTAs; otherwise
 * as tcgen05_launch().
 */
int tcgen05_launch_cluster(struct accmem_context *ctx,
			   const struct tcgen05_place *places,
			   unsigned int count, struct tcgen05_cta **ctas);

/**
 * tcgen05_exit() - the exit of the CTA
 * @cta: the CTA, on which no other call is in progress, or NULL
 *
 * What it has not given back is reported and taken (P5). Where another process
 * has the file, a child for example, the CTA exits with the last one.
 */
void tcgen05_exit(struct tcgen05_cta *cta);

/**
 * tcgen05_fd() - the file, for poll() and for ioctls of one's own
 * @cta: the CTA, which keeps it
 *
 * It is readable when there is a completion, or, where no call is queued, when
 * the tcgen05_try_alloc() that failed would succeed now.
 *
 * Return: the descriptor.
 */
int tcgen05_fd(const struct tcgen05_cta *cta);

/**
 * tcgen05_alloc() - tcgen05.alloc
 * @cta: the CTA
 * @destination: where the address is stored before the call returns (P17)
 * @columns: a power of two in [32, 512], no more than in the alloc before (P7,
 *	P8); in a pair the same for both, and on both SMs (P12)
 *
 * Waits until there are so many, and in a pair for the peer.
 *
 * Return: 0; -EDOM, -ENOSPC, -ERANGE, -EPERM, -EFAULT, -EBUSY, -EPIPE, -EPROTO,
 * -EBADR, -EDEADLK where a rule was broken; -ECANCELED, -ECONNRESET, -EINTR where
 * the wait was ended. <linux/accmem.h> has the rules.
 */
int tcgen05_alloc(struct tcgen05_cta *cta, uint32_t *destination,
		  uint32_t columns);

/**
 * tcgen05_alloc_until() - tcgen05.alloc with a deadline
 * @cta: the CTA
 * @destination: where the address is stored
 * @columns: as in tcgen05_alloc()
 * @deadline_ns: on CLOCK_MONOTONIC, in nanoseconds; 0 for none. One that has
 *	passed is one try.
 *
 * Return: as tcgen05_alloc(); -ETIMEDOUT.
 */
int tcgen05_alloc_until(struct tcgen05_cta *cta, uint32_t *destination,
			uint32_t columns, uint64_t deadline_ns);

/**
 * tcgen05_try_alloc() - tcgen05.alloc without waiting
 * @cta: the CTA
 * @destination: where the address is stored
 * @columns: as in tcgen05_alloc()
 *
 * Return: as tcgen05_alloc(); -EAGAIN where that would wait.
 */
int tcgen05_try_alloc(struct tcgen05_cta *cta, uint32_t *destination,
		      uint32_t columns);

/**
 * tcgen05_dealloc() - tcgen05.dealloc
 * @cta: the CTA
 * @address: what an alloc stored (P3)
 * @columns: what that alloc asked for (P18)
 *
 * In a pair it waits for the peer's.
 *
 * Return: 0; -ENXIO, -ENOENT, -EACCES, -EADDRNOTAVAIL, -EMSGSIZE, -EBUSY, -EPIPE,
 * -EPROTO, -EBADR where a rule was broken; -ECANCELED, -ECONNRESET, -EINTR where
 * the wait was ended.
 */
int tcgen05_dealloc(struct tcgen05_cta *cta, uint32_t address,
		    uint32_t columns);

/**
 * tcgen05_dealloc_until() - tcgen05.dealloc with a deadline
 * @cta: the CTA
 * @address: as in tcgen05_dealloc()
 * @columns: as in tcgen05_dealloc()
 * @deadline_ns: as in tcgen05_alloc_until()
 *
 * Return: as tcgen05_dealloc(); -ETIMEDOUT.
 */
int tcgen05_dealloc_until(struct tcgen05_cta *cta, uint32_t address,
			  uint32_t columns, uint64_t deadline_ns);

/**
 * tcgen05_relinquish_alloc_permit() - the instruction of that name (P9)
 * @cta: the CTA, which allocates no more; an alloc of it that waits ends
 *
 * Return: 0, also for a second time; -EPROTO where the peer waits in alloc,
 * -ECONNRESET.
 */
int tcgen05_relinquish_alloc_permit(struct tcgen05_cta *cta);

/**
 * tcgen05_query() - ACCMEM_IOC_CTA_QUERY
 * @cta: the CTA
 * @query: out: it and its SM; needs no preparation
 *
 * Return: 0, also when the context has ended.
 */
int tcgen05_query(struct tcgen05_cta *cta, struct accmem_cta_query *query);

/*
 * Queued calls wait without a thread, in the same queue as others: a program of
 * one thread can have thousands of CTAs. What became of a call is a completion,
 * which is read; until then the CTA can make no other alloc or dealloc (-EBUSY).
 */

/**
 * tcgen05_queue_alloc() - tcgen05.alloc whose end is a completion
 * @cta: the CTA
 * @columns: as in tcgen05_alloc()
 * @deadline_ns: as in tcgen05_alloc_until()
 * @user_data: comes back in the completion, which has the address, too
 *
 * Return: 0 if there will be a completion. An error that needs no wait, as
 * tcgen05_alloc_until() has it: then there will be none.
 */
int tcgen05_queue_alloc(struct tcgen05_cta *cta, uint32_t columns,
			uint64_t deadline_ns, uint64_t user_data);

/**
 * tcgen05_queue_dealloc() - tcgen05.dealloc whose end is a completion
 * @cta: the CTA
 * @address: as in tcgen05_dealloc()
 * @columns: as in tcgen05_dealloc()
 * @deadline_ns: as in tcgen05_alloc_until()
 * @user_data: comes back in the completion
 *
 * Return: as tcgen05_queue_alloc(), with the errors of tcgen05_dealloc_until().
 */
int tcgen05_queue_dealloc(struct tcgen05_cta *cta, uint32_t address,
			  uint32_t columns, uint64_t deadline_ns,
			  uint64_t user_data);

/**
 * tcgen05_next_completion() - what became of the queued call
 * @cta: the CTA
 * @completion: out: it; its result is 0 or a negative errno value
 *
 * Waits for it, unless tcgen05_fd() was made O_NONBLOCK.
 *
 * Return: 0; -EAGAIN where it would wait, -ENODATA if no call is queued, -EINTR;
 * -ECANCELED when the process has closed the CTA meanwhile.
 */
int tcgen05_next_completion(struct tcgen05_cta *cta,
			    struct accmem_cta_completion *completion);

/**
 * tcgen05_cancel() - end a queued call
 * @cta: the CTA
 *
 * Return: 0: its completion says -ECANCELED. -ENOENT: no call is queued, or it has
 * ended.
 */
int tcgen05_cancel(struct tcgen05_cta *cta);

/**
 * tcgen05_set_eventfd() - count completions
 * @cta: the CTA
 * @fd: an eventfd, to which each completion adds 1, in place of the one before; -1
 *	for none. Many CTAs may have the same.
 *
 * Return: 0; -EBADF, -EINVAL if it is none.
 */
int tcgen05_set_eventfd(struct tcgen05_cta *cta, int fd);

/**
 * tcgen05_map() - map the page that says whose the columns of the CTA's SM are
 * @cta: the CTA
 * @map: out: the page, which changes as columns change hands, until tcgen05_unmap()
 *
 * It outlives the CTA and the context. One for each SM is enough.
 *
 * Return: 0; -ENOMEM, -ENFILE.
 */
int tcgen05_map(struct tcgen05_cta *cta, const struct accmem_tmem_map **map);

/**
 * tcgen05_unmap() - give such a page back
 * @map: the page, or NULL
 */
void tcgen05_unmap(const struct accmem_tmem_map *map);

/**
 * tcgen05_owner() - which CTA holds a column
 * @map: the page of its SM
 * @column: the column
 *
 * No call: for each access of an emulator.
 *
 * Return: accmem_cta_query.id of the CTA; 0 if no CTA holds it, or the SM has no
 * such column.
 */
static inline uint64_t tcgen05_owner(const struct accmem_tmem_map *map,
				     uint32_t column)
{
	const uint32_t unit = column / ACCMEM_TMEM_UNIT;
	uint32_t sequence;
	uint64_t owner;

	if (unit >= ACCMEM_TMEM_COLUMNS_MAX / ACCMEM_TMEM_UNIT)
		return 0;
	do {
		sequence = __atomic_load_n(&map->sequence, __ATOMIC_ACQUIRE);
		owner = *(const volatile __u64 *)&map->owner[unit];
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (sequence % 2 ||
		 sequence != __atomic_load_n(&map->sequence, __ATOMIC_RELAXED));
	return owner;
}

/* Whose columns are: bits of tcgen05_owners(). */
#define TCGEN05_SELF 1u
#define TCGEN05_OTHER 2u
#define TCGEN05_NOBODY 4u

/**
 * tcgen05_owners() - whose a range of columns is, at one moment
 * @map: the page of their SM
 * @id: accmem_cta_query.id of the CTA that asks
 * @column: the first
 * @columns: how many, from 1 on
 *
 * Return: the bits of all to whom a part of them belongs, so TCGEN05_SELF alone if
 * all are @id's. 0: they are not columns of the SM.
 */
static inline unsigned int tcgen05_owners(const struct accmem_tmem_map *map,
					  uint64_t id, uint32_t column,
					  uint32_t columns)
{
	const uint32_t first = column / ACCMEM_TMEM_UNIT;
	const uint64_t last =
		((uint64_t)column + columns - 1) / ACCMEM_TMEM_UNIT;
	uint32_t sequence, unit;
	unsigned int found;
	uint64_t owner;

	if (!columns || last >= map->nr_units ||
	    last >= ACCMEM_TMEM_COLUMNS_MAX / ACCMEM_TMEM_UNIT)
		return 0;
	do {
		found = 0;
		sequence = __atomic_load_n(&map->sequence, __ATOMIC_ACQUIRE);
		for (unit = first; unit <= last; unit++) {
			owner = *(const volatile __u64 *)&map->owner[unit];
			found |= owner == id ? TCGEN05_SELF :
				 owner	     ? TCGEN05_OTHER :
					       TCGEN05_NOBODY;
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (sequence % 2 ||
		 sequence != __atomic_load_n(&map->sequence, __ATOMIC_RELAXED));
	return found;
}

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
 * Besides those of the call itself, its errors are
 *
 *   -EILSEQ to all, whichever of them is the odd one: the lanes are in different
 *	     calls, or their operands differ (P15)
 *   -ESRCH  to all: a lane has left the warp (P16), and the others agree so far
 *   -EBUSY  this lane is in a call already
 *   -EINVAL no such lane
 *
 * A warp is its process's: in a child of fork() it must not be used.
 */

/**
 * tcgen05_warp_create() - make a warp of a CTA
 * @cta: the CTA, which has to stay as long
 * @lanes: 1 to TCGEN05_WARP_LANES
 * @warp: out: the warp
 *
 * Return: 0, -EINVAL, -ENOMEM.
 */
int tcgen05_warp_create(struct tcgen05_cta *cta, unsigned int lanes,
			struct tcgen05_warp **warp);

/**
 * tcgen05_warp_set_number() - tell which warp of the CTA it is
 * @warp: the warp, in which no lane is
 * @number: its number, from 1 on; 0 is not telling
 *
 * With a strict context, an alloc by a warp other than the one that has to free is
 * reported (P11).
 */
void tcgen05_warp_set_number(struct tcgen05_warp *warp, uint32_t number);

/**
 * tcgen05_warp_destroy() - forget a warp
 * @warp: the warp, in which no lane is, or NULL
 */
void tcgen05_warp_destroy(struct tcgen05_warp *warp);

/**
 * tcgen05_warp_leave() - a lane's thread ends, or will not call any more
 * @warp: the warp, which can make no call after that
 * @lane: the lane
 */
void tcgen05_warp_leave(struct tcgen05_warp *warp, unsigned int lane);

/**
 * tcgen05_warp_alloc() - tcgen05_alloc() by all lanes (P14)
 * @warp: the warp
 * @lane: the caller's
 * @destination: as in tcgen05_alloc()
 * @columns: as in tcgen05_alloc()
 *
 * Return: as tcgen05_alloc(), and those above.
 */
int tcgen05_warp_alloc(struct tcgen05_warp *warp, unsigned int lane,
		       uint32_t *destination, uint32_t columns);

/**
 * tcgen05_warp_dealloc() - tcgen05_dealloc() by all lanes (P14)
 * @warp: the warp
 * @lane: the caller's
 * @address: as in tcgen05_dealloc()
 * @columns: as in tcgen05_dealloc()
 *
 * Return: as tcgen05_dealloc(), and those above.
 */
int tcgen05_warp_dealloc(struct tcgen05_warp *warp, unsigned int lane,
			 uint32_t address, uint32_t columns);

/**
 * tcgen05_warp_relinquish_alloc_permit() - the same by all lanes (P14)
 * @warp: the warp
 * @lane: the caller's
 *
 * Return: as tcgen05_relinquish_alloc_permit(), and those above.
 */
int tcgen05_warp_relinquish_alloc_permit(struct tcgen05_warp *warp,
					 unsigned int lane);

/*
 * The same for all lanes from one thread: @active has a bit for each lane that
 * makes the call, and each array the operand of each lane, of which those of the
 * active lanes are looked at. Besides those of the call itself, their errors are
 *
 *   -EILSEQ operands of active lanes differ (P15)
 *   -ESRCH  a lane of the warp is not active, or has left it (P16), and the others
 *	     agree
 *   -EBUSY  lanes are in a call
 *   -EINVAL @active is 0, or has a lane that the warp has not
 */

/**
 * tcgen05_warp_alloc_all() - tcgen05_alloc() for all lanes
 * @warp: the warp
 * @active: which lanes call
 * @destinations: of each lane
 * @columns: of each lane
 *
 * Return: as tcgen05_alloc(), and those above.
 */
int tcgen05_warp_alloc_all(struct tcgen05_warp *warp, uint32_t active,
			   uint32_t *const destinations[TCGEN05_WARP_LANES],
			   const uint32_t columns[TCGEN05_WARP_LANES]);

/**
 * tcgen05_warp_dealloc_all() - tcgen05_dealloc() for all lanes
 * @warp: the warp
 * @active: which lanes call
 * @addresses: of each lane
 * @columns: of each lane
 *
 * Return: as tcgen05_dealloc(), and those above.
 */
int tcgen05_warp_dealloc_all(struct tcgen05_warp *warp, uint32_t active,
			     const uint32_t addresses[TCGEN05_WARP_LANES],
			     const uint32_t columns[TCGEN05_WARP_LANES]);

/**
 * tcgen05_warp_queue_alloc_all() - tcgen05_queue_alloc() for all lanes
 * @warp: the warp
 * @active: which lanes call
 * @columns: of each lane
 * @deadline_ns: as in tcgen05_queue_alloc()
 * @user_data: as in tcgen05_queue_alloc()
 *
 * Return: as tcgen05_queue_alloc(), and those above.
 */
int tcgen05_warp_queue_alloc_all(struct tcgen05_warp *warp, uint32_t active,
				 const uint32_t columns[TCGEN05_WARP_LANES],
				 uint64_t deadline_ns, uint64_t user_data);

/**
 * tcgen05_warp_queue_dealloc_all() - tcgen05_queue_dealloc() for all lanes
 * @warp: the warp
 * @active: which lanes call
 * @addresses: of each lane
 * @columns: of each lane
 * @deadline_ns: as in tcgen05_queue_dealloc()
 * @user_data: as in tcgen05_queue_dealloc()
 *
 * Return: as tcgen05_queue_dealloc(), and those above.
 */
int tcgen05_warp_queue_dealloc_all(struct tcgen05_warp *warp, uint32_t active,
				   const uint32_t addresses[TCGEN05_WARP_LANES],
				   const uint32_t columns[TCGEN05_WARP_LANES],
				   uint64_t deadline_ns, uint64_t user_data);

/**
 * tcgen05_warp_relinquish_all() - the same of the permit
 * @warp: the warp
 * @active: which lanes call
 *
 * Return: as tcgen05_relinquish_alloc_permit(), and those above.
 */
int tcgen05_warp_relinquish_all(struct tcgen05_warp *warp, uint32_t active);

#ifdef __cplusplus
}
#endif

#endif /* TCGEN05_H */
