// SPDX-License-Identifier: MIT
/*
 * Mappings: host addresses for buffers.
 *
 * A context has a window: one reservation of inaccessible host addresses, as long as the
 * device's addresses and congruent to them modulo 1 GiB. A buffer is mapped at
 *
 *	pointer = window + (device address - address_base)
 *
 * so that large pages line up. A buffer outside of the window is mapped where the kernel
 * chooses.
 *
 * No part of the window is ever unmapped. The C library or another thread could be given
 * the hole, and a later mapping of the window would overwrite it. Therefore a buffer is
 * mapped beside the window and moved in with mremap() (a failed mmap() with MAP_FIXED may
 * leave a hole), and it is removed by mapping the reservation over it.
 *
 * Buffers of at most half a granule share granules. A granule is the unit of mapping, and
 * stays mapped as long as the mapping of any buffer in it is in use.
 *
 * Locking: accmem_context.lock, held by the callers of all static functions.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/call.h"
#include "core/error.h"
#include "core/internal.h"

#define KNOWN_PROT (PROT_READ | PROT_WRITE)
#define RESERVED_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
#define MIB 1048576ull
#define GRANULE 4096ull
#define SLOT 64ull

/**
 * struct mapping - a mapping, or the key of a lookup
 * @address: device address
 * @length: bytes, the same on the device and in the process
 * @pointer: host address
 * @prot: PROT_* of the mapping
 * @small: the mapping is a granule that several buffers share
 * @starts: of a small mapping, bits of the 64-byte slots where a mapped buffer starts
 * @covered: of a small mapping, bits of the slots that mapped buffers cover
 */
struct mapping {
	uint64_t address;
	uint64_t length;
	unsigned char *pointer;
	int prot;
	bool small;
	uint64_t starts;
	uint64_t covered;
};

/* Bits of the slots of a shared granule that [@address, @address + @length) covers. */
static uint64_t slots_of(uint64_t address, uint64_t length)
{
	uint64_t first = address % GRANULE / SLOT;
	uint64_t count = (length + SLOT - 1) / SLOT;

	return (UINT64_MAX >> (64 - count)) << first;
}

static uint64_t slot_bit(uint64_t address)
{
	return 1ull << (address % GRANULE / SLOT);
}

/* Overlapping ranges compare as equal. Mappings in the tree do not overlap. */
static int compare(const void *left, const void *right)
{
	const struct mapping *a = left, *b = right;

	if (a->address + (a->length - 1) < b->address)
		return -1;
	return b->address + (b->length - 1) < a->address;
}

/* Return any mapping that overlaps the range, or NULL. */
static struct mapping *find_mapping(struct accmem_context *ctx,
				    uint64_t address, uint64_t length)
{
	const struct mapping key = { .address = address, .length = length };
	void *node = tfind(&key, &ctx->mappings, compare);

	return node ? *(struct mapping **)node : NULL;
}

/* Does the window contain @length bytes at @offset? */
static bool fits_window(const struct accmem_context *ctx, uint64_t offset,
			uint64_t length)
{
	return ctx->window && offset <= ctx->window_size &&
	       length <= ctx->window_size - offset;
}

static bool in_window(const struct accmem_context *ctx, const struct mapping *m)
{
	return fits_window(ctx, (uintptr_t)m->pointer - (uintptr_t)ctx->window,
			   m->length);
}

static void remove_mapping(struct accmem_context *ctx, struct mapping *m)
{
	tdelete(m, &ctx->mappings, compare);
	free(m);
}

static int unmap_mapping(struct accmem_context *ctx, struct mapping *m)
{
	if (in_window(ctx, m)) {
		if (mmap(m->pointer, m->length, PROT_NONE,
			 RESERVED_FLAGS | MAP_FIXED, -1, 0) == MAP_FAILED)
			return -errno;
	} else if (munmap(m->pointer, m->length)) {
		return -errno;
	}
	remove_mapping(ctx, m);
	return 0;
}

/* Clear the buffers in @slots; the last buffer of a granule takes its mapping along. */
static int unmap_slots(struct accmem_context *ctx, struct mapping *m,
		       uint64_t slots)
{
	if (!(m->starts & ~slots))
		return unmap_mapping(ctx, m);
	m->starts &= ~slots;
	m->covered &= ~slots;
	return 0;
}

/* Bits of the slots of the buffer that starts at the single bit of @start. */
static uint64_t slots_from(const struct mapping *m, uint64_t start)
{
	/* the buffer ends before the next start and the next uncovered slot */
	uint64_t ends = (m->starts | ~m->covered) & ~(start | (start - 1));

	return (ends ? (ends & -ends) - 1 : UINT64_MAX) & ~(start - 1);
}

/* Unmap all of @m but its first @length bytes. On failure @m keeps its length. */
static void truncate_mapping(struct accmem_context *ctx, struct mapping *m,
			     uint64_t length)
{
	unsigned char *tail = m->pointer + length;

	if (in_window(ctx, m)) {
		if (mmap(tail, m->length - length, PROT_NONE,
			 RESERVED_FLAGS | MAP_FIXED, -1, 0) == MAP_FAILED)
			return;
	} else if (munmap(tail, m->length - length)) {
		return;
	}
	m->length = length;
}

void accmem_trim_locked(struct accmem_context *ctx, uint64_t address,
			uint64_t footprint)
{
	struct mapping *m = find_mapping(ctx, address, 1);
	uint64_t end = address + footprint;

	if (m && m->small) {
		if (footprint < GRANULE && m->starts & slot_bit(address))
			m->covered &= ~slots_from(m, slot_bit(address)) |
				      slots_of(address, footprint);
		return;
	}
	if (m && m->length > footprint)
		truncate_mapping(ctx, m, footprint);
	if (m)
		address = m->address + m->length;
	if (address < end)
		accmem_unmap_range(ctx, address, end - address);
}

int accmem_unmap_range(struct accmem_context *ctx, uint64_t address,
		       uint64_t length)
{
	struct mapping *m;
	int ret;

	m = find_mapping(ctx, address, length);
	if (m && m->small && length <= GRANULE - address % GRANULE)
		return unmap_slots(ctx, m, slots_of(address, length));
	while ((m = find_mapping(ctx, address, length))) {
		/* A buffer that has become shorter may still be before the range. */
		if (!m->small && m->address < address)
			truncate_mapping(ctx, m, address - m->address);
		if (m->address + m->length <= address)
			continue;
		ret = unmap_mapping(ctx, m);
		if (ret)
			return ret;
	}
	return 0;
}

int accmem_unmap_locked(struct accmem_context *ctx, uint64_t address)
{
	struct mapping *m = find_mapping(ctx, address, 1);

	if (!m)
		return -ENOENT;
	if (m->small) {
		if (address % SLOT || !(m->starts & slot_bit(address)))
			return m->covered & slot_bit(address) ? -EINVAL :
								-ENOENT;
		return unmap_slots(ctx, m, slots_from(m, slot_bit(address)));
	}
	return m->address == address ? unmap_mapping(ctx, m) : -EINVAL;
}

/*
 * Reserve @size aligned bytes. Twice as much must be available, and is released again:
 * accmem_window_reserve() says why.
 */
static unsigned char *reserve(uint64_t size, uint64_t align)
{
	unsigned char *all, *start;
	uint64_t total, head;

	if (__builtin_mul_overflow(size, 2, &total) ||
	    __builtin_add_overflow(total, align, &total) || total > SIZE_MAX)
		return NULL;
	all = mmap(NULL, total, PROT_NONE, RESERVED_FLAGS, -1, 0);
	if (all == MAP_FAILED)
		return NULL;

	head = -(uintptr_t)all & (align - 1);
	start = all + head;
	/* if munmap() fails, the reservation is only larger than needed */
	if (head)
		munmap(all, head);
	munmap(start + size, total - head - size);
	return start;
}

/*
 * A buffer is mapped beside the window before it is moved in, so address space of the same
 * size must be left. A process with little address space (RLIMIT_AS, 32 bits) has no
 * window.
 */
void accmem_window_reserve(struct accmem_context *ctx, uint64_t span)
{
	ctx->window = reserve(span, 1024 * MIB);
	if (!ctx->window)
		ctx->window = reserve(span, 2 * MIB);
	if (ctx->window)
		ctx->window_size = span;
}

/* Unmap the window in one piece, since a hole in it could be reused by another thread. */
void accmem_window_destroy(struct accmem_context *ctx)
{
	struct mapping *m;

	while ((m = find_mapping(ctx, 0, UINT64_MAX))) {
		if (!in_window(ctx, m))
			munmap(m->pointer, m->length);
		remove_mapping(ctx, m);
	}
	if (ctx->window)
		munmap(ctx->window, ctx->window_size);
}

/* Move a new mapping to its place in the window. */
static int move_in(struct accmem_context *ctx, struct mapping *m,
		   uint64_t offset)
{
	unsigned char *target = ctx->window + offset;
	int ret;

	if (mremap(m->pointer, m->length, m->length,
		   MREMAP_MAYMOVE | MREMAP_FIXED, target) != MAP_FAILED) {
		m->pointer = target;
		return 0;
	}
	ret = -errno;
	munmap(m->pointer, m->length);
	/*
	 * mremap() may have unmapped the target: reserve it again. In most
	 * cases the target is intact, and MAP_FIXED_NOREPLACE fails.
	 */
	mmap(target, m->length, PROT_NONE, RESERVED_FLAGS | MAP_FIXED_NOREPLACE,
	     -1, 0);
	return ret;
}

/* A buffer that shares a granule has a footprint of less than a granule. */
static bool is_small(const struct accmem_query *query)
{
	return query->footprint < GRANULE;
}

static int map_pages(struct accmem_context *ctx, struct mapping *m,
		     uint64_t offset)
{
	if (m->length > SIZE_MAX)
		return -ENOMEM;
	m->pointer =
		mmap(NULL, m->length, m->prot, MAP_SHARED, ctx->fd, offset);
	if (m->pointer == MAP_FAILED)
		return -errno;
	return fits_window(ctx, offset, m->length) ? move_in(ctx, m, offset) :
						     0;
}

static int map_new(struct accmem_context *ctx, const struct accmem_query *query,
		   int prot, void **pointer)
{
	struct mapping *m;
	int ret;

	m = malloc(sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->address = query->base;
	m->length = query->footprint;
	m->prot = prot;
	m->small = is_small(query);
	m->starts = 0;
	m->covered = 0;
	if (m->small) {
		m->address -= m->address % GRANULE;
		m->length = GRANULE;
		m->starts = slot_bit(query->base);
		m->covered = slots_of(query->base, query->footprint);
	}

	ret = map_pages(ctx, m, query->mmap_offset);
	if (ret) {
		free(m);
		return ret;
	}
	if (!tsearch(m, &ctx->mappings, compare)) {
		/* tdelete() finds nothing, because the tree has no such node */
		unmap_mapping(ctx, m);
		return -ENOMEM;
	}
	*pointer = m->pointer + (query->base - m->address);
	return 0;
}

/* Access rights only grow: an earlier caller may still use the rights it asked for. */
static int map_again(struct mapping *m, const struct accmem_query *query,
		     int prot, void **pointer)
{
	prot |= m->prot;
	if (prot != m->prot && mprotect(m->pointer, m->length, prot))
		return -errno;
	m->prot = prot;
	if (m->small) {
		m->starts |= slot_bit(query->base);
		m->covered |= slots_of(query->base, query->footprint);
	}
	*pointer = m->pointer + (query->base - m->address);
	return 0;
}

/* The buffer of @m has grown in place. Map its new part behind @m. */
static int extend_mapping(struct accmem_context *ctx, struct mapping *m,
			  const struct accmem_query *query)
{
	struct mapping tail = { .address = m->address + m->length,
				.length = query->footprint - m->length,
				.prot = m->prot };
	uint64_t offset = query->mmap_offset + m->length;
	struct mapping *stale;
	int ret;

	while ((stale = find_mapping(ctx, tail.address, tail.length))) {
		ret = unmap_mapping(ctx, stale);
		if (ret)
			return ret;
	}
	ret = map_pages(ctx, &tail, offset);
	if (!ret)
		m->length = query->footprint;
	return ret;
}

/* Is @m a mapping in the window of the first part of a buffer that has grown? */
static bool is_beginning_of(const struct accmem_context *ctx,
			    const struct mapping *m,
			    const struct accmem_query *query)
{
	return !m->small && !is_small(query) && m->address == query->base &&
	       m->length < query->footprint && in_window(ctx, m) &&
	       fits_window(ctx, query->mmap_offset, query->footprint);
}

/* Is @m the mapping of this buffer, or of the granule that the buffer shares? */
static bool is_mapping_of(const struct mapping *m,
			  const struct accmem_query *query)
{
	if (is_small(query))
		return m->small;
	return m->address == query->base && m->length == query->footprint;
}

static int map_locked(struct accmem_context *ctx, uint64_t address, int prot,
		      void **pointer)
{
	struct accmem_query query;
	struct mapping *m;
	int ret;

	ret = accmem_query_address(ctx, address, &query);
	if (ret)
		return ret;
	if (query.offset)
		return -EINVAL;

	m = find_mapping(ctx, query.base, query.footprint);
	if (m && is_mapping_of(m, &query))
		return map_again(m, &query, prot, pointer);
	if (m && is_beginning_of(ctx, m, &query)) {
		ret = extend_mapping(ctx, m, &query);
		return ret ? ret : map_again(m, &query, prot, pointer);
	}

	/* stale mappings: their buffers were freed by another process or an ioctl */
	while (m) {
		ret = unmap_mapping(ctx, m);
		if (ret)
			return ret;
		m = find_mapping(ctx, query.base, query.footprint);
	}
	return map_new(ctx, &query, prot, pointer);
}

int accmem_map(struct accmem_context *ctx, uint64_t address, int prot,
	       void **pointer)
{
	int ret;

	if (!prot || prot & ~KNOWN_PROT)
		return accmem_fail(-EINVAL,
				   "map of address %#" PRIx64
				   " with access rights %#x",
				   address, (unsigned int)prot);
	pthread_mutex_lock(&ctx->lock);
	ret = map_locked(ctx, address, prot, pointer);
	pthread_mutex_unlock(&ctx->lock);
	return accmem_fail_at(ret, "map", address);
}

int accmem_unmap(struct accmem_context *ctx, uint64_t address)
{
	int ret;

	pthread_mutex_lock(&ctx->lock);
	ret = accmem_unmap_locked(ctx, address);
	pthread_mutex_unlock(&ctx->lock);
	return accmem_fail_at(ret, "unmap", address);
}
