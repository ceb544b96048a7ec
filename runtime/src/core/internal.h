/* SPDX-License-Identifier: MIT */
/* What the files of libaccmem share; nothing here is installed. */
#ifndef ACCMEM_RUNTIME_INTERNAL_H
#define ACCMEM_RUNTIME_INTERNAL_H

#include <accmem.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/**
 * struct accmem_context - see accmem.h
 * @fd: the open device
 * @address_base: lowest device address of all carveouts
 * @address_span: bytes of device addresses from there to the end of the last
 * @window: host address that stands for @address_base, or NULL
 * @window_size: bytes of host addresses reserved from @window on
 * @lock: protects @mappings and the host addresses inside the window, and
 *	keeps an unmap and the FREE after it together
 * @mappings: tsearch() tree of struct mapping, disjoint ranges
 * @parent_told: in a child: of what others wait for, a pool of the parent is told, or
 *	will be; set when the child begins
 * @next: next context of the process, under the registry's lock
 *
 * @fd, @window and @window_size do not change between open and close.
 */
struct accmem_context {
	int fd;
	uint64_t address_base;
	uint64_t address_span;
	unsigned char *window;
	size_t window_size;
	pthread_mutex_t lock;
	void *mappings;
	bool parent_told;
	struct accmem_context *next;
};

/*
 * Between these two there is no cancellation point: who has a lock, or is waited for, is
 * not cancelled. The second takes what the first returned.
 */
static inline int accmem_cancel_off(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void accmem_cancel_restore(int state)
{
	pthread_setcancelstate(state, NULL);
}

/* close() for who has a lock, or has to go on */
static inline void accmem_close_locked(int fd)
{
	int state = accmem_cancel_off();

	close(fd);
	accmem_cancel_restore(state);
}

/*
 * The fork handlers of contexts, and of pools after them: who has locks of his own that he
 * holds over calls registers his after these. 0 or a negative errno value.
 */
int accmem_watch_fork(void);
int accmem_pool_watch_fork(void);

/* A new stream has this descriptor: in all pools, nothing waits for the one that had it. */
void accmem_pools_end_stream(int stream);

/* One ioctl: 0 or a negative errno value. */
int accmem_call(const struct accmem_context *ctx, unsigned long command,
		void *argument);

/*
 * INFO of all carveouts together: addresses from the lowest to the highest, bytes added
 * up, the longest run of any.
 */
int accmem_sum_info(struct accmem_context *ctx, struct accmem_info *sum);

/* ALLOC: accmem_allocate(), of the version at hand. */
int accmem_allocate_now(struct accmem_context *ctx, struct accmem_alloc *req);
int accmem_allocate_on_stream(struct accmem_context *ctx,
			      struct accmem_alloc *req, int stream);

/* Its versions in the shared library; @old is the structure of the first one. */
int accmem_allocate_0_1(struct accmem_context *ctx, void *old);
int accmem_allocate_0_2(struct accmem_context *ctx, void *old);
int accmem_allocate_0_3(struct accmem_context *ctx, struct accmem_alloc *req);
int accmem_allocate_on_0_2(struct accmem_context *ctx, int stream, void *old);
int accmem_allocate_on_0_3(struct accmem_context *ctx, int stream,
			   struct accmem_alloc *req);

/* FREE, after what is mapped of the buffer has been unmapped. */
int accmem_free_unmapped(struct accmem_context *ctx, struct accmem_free *req);

/* Reserve the window for @span bytes, or leave the context without one. */
void accmem_window_reserve(struct accmem_context *ctx, uint64_t span);

/* Unmap every buffer and give the window back. */
void accmem_window_destroy(struct accmem_context *ctx);

/*
 * Unmap whatever is mapped of [@address, @address + @length); with the lock
 * held. 0, also when nothing was mapped.
 */
int accmem_unmap_range(struct accmem_context *ctx, uint64_t address,
		       uint64_t length);

/*
 * Unmap the buffer at @address; with the lock held. -ENOENT when nothing is
 * mapped there, -EINVAL for an address inside a mapped buffer.
 */
int accmem_unmap_locked(struct accmem_context *ctx, uint64_t address);

/*
 * The buffer at @address has got @footprint bytes there: what is mapped of it ends
 * with it, and what is mapped beyond its old end is of no buffer; with the lock
 * held.
 */
void accmem_trim_locked(struct accmem_context *ctx, uint64_t address,
			uint64_t footprint);

struct tcgen05_cta;

/* An alloc or dealloc of a CTA; the command's structure but for its size. */
int tcgen05_call_alloc(struct tcgen05_cta *cta, struct accmem_cta_alloc req);
int tcgen05_call_dealloc(struct tcgen05_cta *cta,
			 struct accmem_cta_dealloc req);

#endif /* ACCMEM_RUNTIME_INTERNAL_H */
