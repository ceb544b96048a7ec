// SPDX-License-Identifier: MIT
/*
 * Host addresses: the window, and what is mapped in it.
 *
 * The window is one reservation of inaccessible host addresses, as long as
 * the device's addresses and congruent to them modulo 1 GiB, so that
 *
 *	pointer = window + (device address - address_base)
 *
 * and large pages line up. No part of it is ever left unmapped: the C library
 * or another thread could be given that part, and a later mapping of ours
 * would go over it. Hence a buffer is mapped elsewhere and moved in (a failed
 * mmap with MAP_FIXED may leave a hole behind), and moved out by mapping the
 * reservation over it.
 *
 * Buffers of at most half a granule share granules, and a granule is what can
 * be mapped: it stays mapped as long as one of them is.
 *
 * Locking: accmem_context.lock, held by the caller of everything static.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/call.h"
#include "core/internal.h"

#define KNOWN_PROT (PROT_READ | PROT_WRITE)
#define RESERVED_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
#define MIB 1048576ull
#define GRANULE 4096ull
#define UNIT 64ull

/**
 * struct mapping - what is mapped in one piece, or a range to look one up
 * @address: device address
 * @length: bytes, of the device and of the host
 * @pointer: where it is mapped
 * @prot: PROT_* it is mapped with
 * @small: it is a granule that buffers share
 * @starts: these buffers: units of 64 bytes at which one starts
 * @covered: units that they take
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

/* Units that [@address, @address + @length) takes of a shared granule. */
static uint64_t units_of(uint64_t address, uint64_t length)
{
	uint64_t first = address % GRANULE / UNIT;
	uint64_t count = (length + UNIT - 1) / UNIT;

	return (UINT64_MAX >> (64 - count)) << first;
}

static uint64_t unit_bit(uint64_t address)
{
	return 1ull << (address % GRANULE / UNIT);
}

/* Overlapping ranges are equal: those in the tree are disjoint. */
static int compare(const void *left, const void *right)
{
	const struct mapping *a = left, *b = right;

	if (a->address + (a->length - 1) < b->address)
		return -1;
	return b->address + (b->length - 1) < a->address;
}

/* Any mapping that overlaps the range. */
static struct mapping *find_mapping(struct accmem_context *ctx,
				    uint64_t address, uint64_t length)
{
	const struct mapping key = { .address = address, .length = length };
	void *node = tfind(&key, &ctx->mappings, compare);

	return node ? *(struct mapping **)node : NULL;
}

/* Is there room in the window for @length bytes at @offset? */
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

/* The buffers of a shared granule in @units are mapped no more. */
static int unmap_units(struct accmem_context *ctx, struct mapping *m,
		       uint64_t units)
{
	if (!(m->starts & ~units))
		return unmap_mapping(ctx, m);
	m->starts &= ~units;
	m->covered &= ~units;
	return 0;
}

/* The units of the buffer that starts at the only bit of @start. */
static uint64_t units_from(const struct mapping *m, uint64_t start)
{
	/* Up to the next start, or the next unit that nobody takes. */
	uint64_t ends = (m->starts | ~m->covered) & ~(start | (start - 1));

	return (ends ? (ends & -ends) - 1 : UINT64_MAX) & ~(start - 1);
}

/* As much of @m as @length bytes; all of it stays where that cannot be. */
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
		if (footprint < GRANULE && m->starts & unit_bit(address))
			m->covered &= ~units_from(m, unit_bit(address)) |
				      units_of(address, footprint);
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
		return unmap_units(ctx, m, units_of(address, length));
	while ((m = find_mapping(ctx, address, length))) {
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
		if (address % UNIT || !(m->starts & unit_bit(address)))
			return m->covered & unit_bit(address) ? -EINVAL :
								-ENOENT;
		return unmap_units(ctx, m, units_from(m, unit_bit(address)));
	}
	return m->address == address ? unmap_mapping(ctx, m) : -EINVAL;
}

/* Trims what @align cost, and the second half: see accmem_window_reserve(). */
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
	/* A failure here only leaves more reserved than is needed. */
	if (head)
		munmap(all, head);
	munmap(start + size, total - head - size);
	return start;
}

/*
 * A buffer is mapped beside the window before it is moved in, so as much
 * again must be left: a process with little address space (RLIMIT_AS, 32
 * bits) is better off without a window.
 */
void accmem_window_reserve(struct accmem_context *ctx, uint64_t span)
{
	ctx->window = reserve(span, 1024 * MIB);
	if (!ctx->window)
		ctx->window = reserve(span, 2 * MIB);
	if (ctx->window)
		ctx->window_size = span;
}

/* The window goes in one piece, for the reason at the head of this file. */
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

/* Moves a fresh mapping to its place in the window. */
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
	 * Almost every failure comes before the target is touched, and then
	 * this fails as well, as it should.
	 */
	mmap(target, m->length, PROT_NONE, RESERVED_FLAGS | MAP_FIXED_NOREPLACE,
	     -1, 0);
	return ret;
}

/* Only what shares a granule takes less than one. */
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
		m->starts = unit_bit(query->base);
		m->covered = units_of(query->base, query->footprint);
	}

	ret = map_pages(ctx, m, query->mmap_offset);
	if (ret) {
		free(m);
		return ret;
	}
	if (!tsearch(m, &ctx->mappings, compare)) {
		/* Not in the tree, so that tdelete() has nothing to find. */
		unmap_mapping(ctx, m);
		return -ENOMEM;
	}
	*pointer = m->pointer + (query->base - m->address);
	return 0;
}

/* Rights are added, never taken: the first caller may still rely on his. */
static int map_again(struct mapping *m, const struct accmem_query *query,
		     int prot, void **pointer)
{
	prot |= m->prot;
	if (prot != m->prot && mprotect(m->pointer, m->length, prot))
		return -errno;
	m->prot = prot;
	if (m->small) {
		m->starts |= unit_bit(query->base);
		m->covered |= units_of(query->base, query->footprint);
	}
	*pointer = m->pointer + (query->base - m->address);
	return 0;
}

/*
 * @m is of a buffer that has grown at its place: what is new of it is mapped beside
 * what is in use.
 */
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

/* Is @m the beginning of this buffer, in the window, where the rest has its place? */
static bool is_beginning_of(const struct accmem_context *ctx,
			    const struct mapping *m,
			    const struct accmem_query *query)
{
	return !m->small && !is_small(query) && m->address == query->base &&
	       m->length < query->footprint && in_window(ctx, m) &&
	       fits_window(ctx, query->mmap_offset, query->footprint);
}

/* Is @m a mapping of this buffer, or of the granule that it shares? */
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

	ret = accmem_get_query(ctx, address, &query);
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

	/* Left by a buffer freed behind our back: see accmem_allocate(). */
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

	if (prot & ~KNOWN_PROT)
		return -EINVAL;
	pthread_mutex_lock(&ctx->lock);
	ret = map_locked(ctx, address, prot, pointer);
	pthread_mutex_unlock(&ctx->lock);
	return ret;
}

int accmem_unmap(struct accmem_context *ctx, uint64_t address)
{
	int ret;

	pthread_mutex_lock(&ctx->lock);
	ret = accmem_unmap_locked(ctx, address);
	pthread_mutex_unlock(&ctx->lock);
	return ret;
}
