/* SPDX-License-Identifier: MIT */
/*
 * Tensor Memory, by the names of the PTX instructions tcgen05.alloc, tcgen05.dealloc and
 * tcgen05.relinquish_alloc_permit, on a context of accmem.
 *
 * A context has SMs, and each SM has columns. A CTA runs on an SM and allocates columns
 * of it. The rows P1 to P20 of the conformance table are the rules of PTX.
 *
 * The functions return 0 or a negative errno value of the table in <linux/accmem.h>. After an
 * error of a launch, alloc, dealloc or relinquish, other than -EAGAIN and -EINTR,
 * accmem_last_error() names the rule that was broken. They are thread-safe, except that the
 * call that ends a CTA or a warp must be the last call on it.
 */
#ifndef TCGEN05_H
#define TCGEN05_H

#include <accmem.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A CTA: an open file of the driver. */
struct tcgen05_cta;

/* A warp: lanes that make calls of a CTA together. */
struct tcgen05_warp;

/**
 * struct tcgen05_config - the SMs of a context
 * @nr_sms: number of SMs, 1 to 256
 * @columns: number of columns of an SM, a multiple of 32 up to 2048; 0 for 512
 * @exclusive: 0: a request waits for columns only; 1: one CTA of an SM allocates at a
 *	time
 * @bypass_bound: how often later requests may overtake a request that waits
 * @strict: 1: report errors that are harmless here, but not on hardware
 */
struct tcgen05_config {
	uint32_t nr_sms;
	uint32_t columns;
	uint32_t exclusive;
	uint32_t bypass_bound;
	uint32_t strict;
};

/**
 * struct tcgen05_place - identity and place of a CTA
 * @launch: number of the launch (a kernel, in the words of PTX)
 * @cluster: number of the cluster in its launch
 * @rank: number of the CTA in its cluster; the rank of its peer is @rank xor 1
 * @sm: number of the SM that the CTA runs on
 * @cta_group: 1, or 2 for pairs; the same for all CTAs of a launch
 * @window: the CTA's shared::cta window, or NULL
 * @window_length: bytes of the window; an alloc may store its address only there (P10).
 *	0 for no window: an alloc may store its address anywhere
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
 * tcgen05_setup() - configure the SMs of a context
 * @ctx: the context, without a configuration and without CTAs
 * @config: the configuration
 *
 * Without this call a context has one SM of 512 columns, shared, with a bypass bound of
 * 64.
 *
 * Return: 0; -EINVAL for a member out of range; -EBUSY for a second call, and after a
 * launch, even one that failed; -ENOMEM.
 */
int tcgen05_setup(struct accmem_context *ctx,
		  const struct tcgen05_config *config);

/**
 * tcgen05_launch() - start a CTA
 * @ctx: the context, which may have 8,192 CTAs
 * @place: identity and place of the CTA
 * @cta: out: the CTA
 *
 * Return: 0; -EINVAL; -ENXIO, -EPROTOTYPE, -EEXIST, -EADDRINUSE for an invalid place
 * (P13, P19); -EOVERFLOW for an invalid window; -EUSERS for too many CTAs; -EMFILE,
 * -ENFILE, -ENOMEM.
 */
int tcgen05_launch(struct accmem_context *ctx,
		   const struct tcgen05_place *place,
		   struct tcgen05_cta **cta);

/**
 * tcgen05_launch_cluster() - start all CTAs of a cluster, or none
 * @ctx: the context
 * @places: places of the CTAs, with the same launch, cluster and cta_group
 * @count: number of CTAs, 1 to 64; with cta_group 2, both CTAs of each pair
 * @ctas: out: the CTAs, in the order of @places
 *
 * No CTA can be launched into the cluster after this call, so no CTA waits for a peer
 * that will not start.
 *
 * Return: 0; -EINVAL for a count out of range, places of different clusters, or one CTA
 * of a pair; -EEXIST also if the cluster has CTAs; otherwise as tcgen05_launch().
 */
int tcgen05_launch_cluster(struct accmem_context *ctx,
			   const struct tcgen05_place *places,
			   unsigned int count, struct tcgen05_cta **ctas);

/**
 * tcgen05_exit() - end a CTA
 * @cta: the CTA, on which no other call is in progress, or NULL
 *
 * Columns that the CTA still has are reported and freed (P5). If another process has the
 * file open, for example a child, the CTA ends when the last of them closes it.
 */
void tcgen05_exit(struct tcgen05_cta *cta);

/**
 * tcgen05_fd() - get the file descriptor, for poll(2) and for other ioctls
 * @cta: the CTA, which owns the descriptor
 *
 * The descriptor is readable if there is a completion. If no call is queued, it is readable
 * while an alloc could be granted: the last one that failed with -EAGAIN or, before such a
 * failure, an alloc of 32 columns. So a level-triggered event loop removes the descriptor
 * while no call is queued, or uses EPOLLET or tcgen05_set_eventfd(). POLLHUP stays set after
 * the exit of the peer, until the CTA exits as well.
 *
 * Return: the descriptor.
 */
int tcgen05_fd(const struct tcgen05_cta *cta);

/**
 * tcgen05_alloc() - tcgen05.alloc
 * @cta: the CTA
 * @destination: where the call stores the address before it returns (P17)
 * @columns: number of columns: a power of two in [32, 512], not more than in the alloc
 *	before (P7, P8); in a pair the same for both CTAs and on both SMs (P12)
 *
 * Waits until the columns are free, and in a pair for the peer's call.
 *
 * Return: 0; -EDOM, -ENOSPC, -ERANGE, -EPERM, -EFAULT, -EBUSY, -EPIPE, -EPROTO, -EBADR,
 * -EDEADLK if the call breaks a rule; -ECANCELED, -ECONNRESET, -EINTR if the wait was
 * ended. <linux/accmem.h> has the rules.
 */
int tcgen05_alloc(struct tcgen05_cta *cta, uint32_t *destination,
		  uint32_t columns);

/**
 * tcgen05_alloc_until() - tcgen05.alloc with a deadline
 * @cta: the CTA
 * @destination: as in tcgen05_alloc()
 * @columns: as in tcgen05_alloc()
 * @deadline_ns: time on CLOCK_MONOTONIC, in nanoseconds; 0 for none. With a deadline in
 *	the past the call tries once.
 *
 * Return: as tcgen05_alloc(); -ETIMEDOUT.
 */
int tcgen05_alloc_until(struct tcgen05_cta *cta, uint32_t *destination,
			uint32_t columns, uint64_t deadline_ns);

/**
 * tcgen05_try_alloc() - tcgen05.alloc without waiting
 * @cta: the CTA
 * @destination: as in tcgen05_alloc()
 * @columns: as in tcgen05_alloc()
 *
 * The first of two peers to call would wait for the other, so two peers that both call
 * this function never meet. One of them has to wait, or to queue its call:
 * tcgen05_queue_alloc().
 *
 * Return: as tcgen05_alloc(); -EAGAIN if the call would wait.
 */
int tcgen05_try_alloc(struct tcgen05_cta *cta, uint32_t *destination,
		      uint32_t columns);

/**
 * tcgen05_dealloc() - tcgen05.dealloc
 * @cta: the CTA
 * @address: address that an alloc has stored (P3)
 * @columns: number of columns of that alloc (P18)
 *
 * In a pair the call waits for the peer's call.
 *
 * Return: 0; -ENXIO, -ENOENT, -EACCES, -EADDRNOTAVAIL, -EMSGSIZE, -EBUSY, -EPIPE,
 * -EPROTO, -EBADR if the call breaks a rule; -ECANCELED, -ECONNRESET, -EINTR if the wait
 * was ended.
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
 * tcgen05_relinquish_alloc_permit() - tcgen05.relinquish_alloc_permit (P9)
 * @cta: the CTA, which may not allocate afterwards; an alloc of the CTA that waits ends
 *
 * Return: 0, also for a second call; -EPROTO if the peer waits in alloc; -ECONNRESET.
 */
int tcgen05_relinquish_alloc_permit(struct tcgen05_cta *cta);

/*
 * Calls with the .cta_group of their instruction.
 *
 * A value other than the cta_group of the launch fails with -EPROTOTYPE (P13), and a value
 * above 2 with -EINVAL. With 0 the calls are those without _group.
 */

/**
 * tcgen05_alloc_group() - tcgen05.alloc.cta_group
 * @cta: the CTA
 * @cta_group: 1 or 2
 * @destination: as in tcgen05_alloc()
 * @columns: as in tcgen05_alloc()
 * @deadline_ns: as in tcgen05_alloc_until()
 *
 * Return: as tcgen05_alloc_until(); -EPROTOTYPE.
 */
int tcgen05_alloc_group(struct tcgen05_cta *cta, uint32_t cta_group,
			uint32_t *destination, uint32_t columns,
			uint64_t deadline_ns);

/**
 * tcgen05_dealloc_group() - tcgen05.dealloc.cta_group
 * @cta: the CTA
 * @cta_group: 1 or 2
 * @address: as in tcgen05_dealloc()
 * @columns: as in tcgen05_dealloc()
 * @deadline_ns: as in tcgen05_alloc_until()
 *
 * Return: as tcgen05_dealloc_until(); -EPROTOTYPE.
 */
int tcgen05_dealloc_group(struct tcgen05_cta *cta, uint32_t cta_group,
			  uint32_t address, uint32_t columns,
			  uint64_t deadline_ns);

/**
 * tcgen05_relinquish_group() - tcgen05.relinquish_alloc_permit.cta_group
 * @cta: the CTA
 * @cta_group: 1 or 2
 *
 * Return: as tcgen05_relinquish_alloc_permit(); -EPROTOTYPE, and the CTA may still
 * allocate.
 */
int tcgen05_relinquish_group(struct tcgen05_cta *cta, uint32_t cta_group);

/**
 * tcgen05_query() - ACCMEM_IOC_CTA_QUERY
 * @cta: the CTA
 * @query: out: state of the CTA and its SM; needs no initialisation
 *
 * Return: 0, also after the end of the context.
 */
int tcgen05_query(struct tcgen05_cta *cta, struct accmem_cta_query *query);

/*
 * Queued calls.
 *
 * A queued call waits without a thread, in the same queue as other calls, so a program of
 * one thread can have thousands of CTAs. The program reads the result of a queued call
 * as a completion. Until then any other alloc or dealloc of the CTA fails with -EBUSY.
 */

/**
 * tcgen05_queue_alloc() - tcgen05.alloc that ends with a completion
 * @cta: the CTA
 * @columns: as in tcgen05_alloc()
 * @deadline_ns: as in tcgen05_alloc_until()
 * @user_data: copied to the completion, which also has the address
 *
 * Return: 0 if there will be a completion. After an error there will be none: the errors
 * of tcgen05_alloc_until() that need no wait.
 */
int tcgen05_queue_alloc(struct tcgen05_cta *cta, uint32_t columns,
			uint64_t deadline_ns, uint64_t user_data);

/**
 * tcgen05_queue_dealloc() - tcgen05.dealloc that ends with a completion
 * @cta: the CTA
 * @address: as in tcgen05_dealloc()
 * @columns: as in tcgen05_dealloc()
 * @deadline_ns: as in tcgen05_alloc_until()
 * @user_data: copied to the completion
 *
 * Return: as tcgen05_queue_alloc(), with the errors of tcgen05_dealloc_until().
 */
int tcgen05_queue_dealloc(struct tcgen05_cta *cta, uint32_t address,
			  uint32_t columns, uint64_t deadline_ns,
			  uint64_t user_data);

/**
 * tcgen05_next_completion() - read the completion of the queued call
 * @cta: the CTA
 * @completion: out: the completion, whose result is 0 or a negative errno value, and whose
 *	call is _IOC_NR(ACCMEM_IOC_CTA_ALLOC) or _IOC_NR(ACCMEM_IOC_CTA_DEALLOC)
 *
 * Waits for the completion, unless the descriptor of tcgen05_fd() is O_NONBLOCK.
 *
 * Return: 0; -EAGAIN if the call would wait; -ENODATA if no call is queued; -EINTR;
 * -ECANCELED if the process has closed the CTA in the meantime.
 */
int tcgen05_next_completion(struct tcgen05_cta *cta,
			    struct accmem_cta_completion *completion);

/**
 * tcgen05_cancel() - cancel the queued call
 * @cta: the CTA
 *
 * Return: 0, and the completion has the result -ECANCELED; -ENOENT if no call is queued,
 * or the call has ended.
 */
int tcgen05_cancel(struct tcgen05_cta *cta);

/**
 * tcgen05_set_eventfd() - count completions in an eventfd
 * @cta: the CTA
 * @fd: an eventfd, to which each completion adds 1; it replaces the eventfd before. -1
 *	for none. Several CTAs may use the same eventfd.
 *
 * Return: 0; -EBADF; -EINVAL if @fd is no eventfd.
 */
int tcgen05_set_eventfd(struct tcgen05_cta *cta, int fd);

/**
 * tcgen05_map() - map the page with the owners of the columns of the CTA's SM
 * @cta: the CTA
 * @map: out: the page, which the driver updates until tcgen05_unmap()
 *
 * The page outlives the CTA and the context. One page for each SM is enough.
 *
 * Return: 0; -ENOMEM, -ENFILE.
 */
int tcgen05_map(struct tcgen05_cta *cta, const struct accmem_tmem_map **map);

/**
 * tcgen05_unmap() - unmap a page of tcgen05_map()
 * @map: the page, or NULL
 */
void tcgen05_unmap(const struct accmem_tmem_map *map);

/**
 * tcgen05_owner() - get the CTA that has a column
 * @map: page of the SM
 * @column: the column
 *
 * No system call: an emulator may use the function for each access.
 *
 * Return: accmem_cta_query.id of the CTA; 0 if no CTA has the column, or the SM has no
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

/* Owners of columns: bits of the result of tcgen05_owners(). */
#define TCGEN05_SELF 1u
#define TCGEN05_OTHER 2u
#define TCGEN05_NOBODY 4u

/**
 * tcgen05_owners() - get the owners of a range of columns, at one moment
 * @map: page of the SM
 * @id: accmem_cta_query.id of a CTA
 * @column: the first column
 * @columns: number of columns, at least 1
 *
 * Return: the bits of all owners: TCGEN05_SELF alone if CTA @id has all columns; 0 if the
 * SM does not have these columns.
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

/* The column and the lane of an address. */
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
 * Calls of a warp (.sync.aligned).
 *
 * Every lane of the warp, 0 to @lanes - 1, makes the same call from a thread of its own.
 * When the last lane has arrived, the call is made once, and all lanes return its result.
 *
 * The calls have the errors of the call itself, and these:
 *
 *   -EILSEQ to all lanes: two lanes are in different calls, or their operands differ
 *	     (P15)
 *   -ESRCH  to all lanes: a lane has left the warp (P16), and the others agree so far
 *   -EBUSY  the lane is in a call already
 *   -EINVAL there is no such lane
 *
 * A warp belongs to its process: a child of fork() must not use it.
 */

/**
 * tcgen05_warp_create() - create a warp of a CTA
 * @cta: the CTA, which must exist as long as the warp
 * @lanes: number of lanes, 1 to TCGEN05_WARP_LANES
 * @warp: out: the warp
 *
 * Return: 0, -EINVAL, -ENOMEM.
 */
int tcgen05_warp_create(struct tcgen05_cta *cta, unsigned int lanes,
			struct tcgen05_warp **warp);

/**
 * tcgen05_warp_set_number() - set the number of a warp in its CTA
 * @warp: the warp
 * @number: number of the warp, at least 1; 0 for unknown
 *
 * A strict context reports each later alloc or dealloc by a warp other than the warp of the
 * CTA's first granted alloc (P11).
 *
 * Return: 0; -EBUSY if a lane is in a call, and the number is unchanged.
 */
int tcgen05_warp_set_number(struct tcgen05_warp *warp, uint32_t number);

/**
 * tcgen05_warp_destroy() - destroy a warp
 * @warp: the warp, or NULL
 *
 * No lane may begin a call any more.
 *
 * Return: 0; -EBUSY if a lane is in a call, and the warp still exists.
 */
int tcgen05_warp_destroy(struct tcgen05_warp *warp);

/**
 * tcgen05_warp_leave() - remove a lane that ends, or makes no more calls
 * @warp: the warp, which can make no call afterwards
 * @lane: the lane
 */
void tcgen05_warp_leave(struct tcgen05_warp *warp, unsigned int lane);

/**
 * tcgen05_warp_alloc() - tcgen05_alloc() by all lanes (P14)
 * @warp: the warp
 * @lane: lane of the caller
 * @destination: as in tcgen05_alloc()
 * @columns: as in tcgen05_alloc()
 *
 * Return: as tcgen05_alloc(), and the errors of calls of a warp.
 */
int tcgen05_warp_alloc(struct tcgen05_warp *warp, unsigned int lane,
		       uint32_t *destination, uint32_t columns);

/**
 * tcgen05_warp_dealloc() - tcgen05_dealloc() by all lanes (P14)
 * @warp: the warp
 * @lane: lane of the caller
 * @address: as in tcgen05_dealloc()
 * @columns: as in tcgen05_dealloc()
 *
 * Return: as tcgen05_dealloc(), and the errors of calls of a warp.
 */
int tcgen05_warp_dealloc(struct tcgen05_warp *warp, unsigned int lane,
			 uint32_t address, uint32_t columns);

/**
 * tcgen05_warp_relinquish_alloc_permit() - the permit's end, by all lanes (P14)
 * @warp: the warp
 * @lane: lane of the caller
 *
 * Return: as tcgen05_relinquish_alloc_permit(), and the errors of calls of a warp.
 */
int tcgen05_warp_relinquish_alloc_permit(struct tcgen05_warp *warp,
					 unsigned int lane);

/*
 * Calls of a warp from one thread.
 *
 * One thread makes the call for all lanes. @active has a bit for each lane that takes
 * part, and each array has an operand for each lane; the operands of other lanes are
 * ignored. The calls have the errors of the call itself, and these:
 *
 *   -EILSEQ  operands of active lanes differ (P15)
 *   -ESRCH   a lane of the warp is not active, or has left the warp (P16), and the
 *            operands agree
 *   -EBUSY   lanes are in a call
 *   -EINVAL  @active is 0, or names a lane that the warp does not have
 */

/**
 * tcgen05_warp_alloc_all() - tcgen05_alloc() for all lanes
 * @warp: the warp
 * @active: lanes that take part
 * @destinations: destination of each lane
 * @columns: number of columns of each lane
 *
 * Return: as tcgen05_alloc(), and the errors of calls from one thread.
 */
int tcgen05_warp_alloc_all(struct tcgen05_warp *warp, uint32_t active,
			   uint32_t *const destinations[TCGEN05_WARP_LANES],
			   const uint32_t columns[TCGEN05_WARP_LANES]);

/**
 * tcgen05_warp_dealloc_all() - tcgen05_dealloc() for all lanes
 * @warp: the warp
 * @active: lanes that take part
 * @addresses: address of each lane
 * @columns: number of columns of each lane
 *
 * Return: as tcgen05_dealloc(), and the errors of calls from one thread.
 */
int tcgen05_warp_dealloc_all(struct tcgen05_warp *warp, uint32_t active,
			     const uint32_t addresses[TCGEN05_WARP_LANES],
			     const uint32_t columns[TCGEN05_WARP_LANES]);

/**
 * tcgen05_warp_queue_alloc_all() - tcgen05_queue_alloc() for all lanes
 * @warp: the warp
 * @active: lanes that take part
 * @columns: number of columns of each lane
 * @deadline_ns: as in tcgen05_queue_alloc()
 * @user_data: as in tcgen05_queue_alloc()
 *
 * Return: as tcgen05_queue_alloc(), and the errors of calls from one thread.
 */
int tcgen05_warp_queue_alloc_all(struct tcgen05_warp *warp, uint32_t active,
				 const uint32_t columns[TCGEN05_WARP_LANES],
				 uint64_t deadline_ns, uint64_t user_data);

/**
 * tcgen05_warp_queue_dealloc_all() - tcgen05_queue_dealloc() for all lanes
 * @warp: the warp
 * @active: lanes that take part
 * @addresses: address of each lane
 * @columns: number of columns of each lane
 * @deadline_ns: as in tcgen05_queue_dealloc()
 * @user_data: as in tcgen05_queue_dealloc()
 *
 * Return: as tcgen05_queue_dealloc(), and the errors of calls from one thread.
 */
int tcgen05_warp_queue_dealloc_all(struct tcgen05_warp *warp, uint32_t active,
				   const uint32_t addresses[TCGEN05_WARP_LANES],
				   const uint32_t columns[TCGEN05_WARP_LANES],
				   uint64_t deadline_ns, uint64_t user_data);

/**
 * tcgen05_warp_relinquish_all() - the permit's end, for all lanes
 * @warp: the warp
 * @active: lanes that take part
 *
 * Return: as tcgen05_relinquish_alloc_permit(), and the errors of calls from one thread.
 */
int tcgen05_warp_relinquish_all(struct tcgen05_warp *warp, uint32_t active);

#ifdef __cplusplus
}
#endif

#endif /* TCGEN05_H */
