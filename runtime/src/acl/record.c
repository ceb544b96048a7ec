// SPDX-License-Identifier: MIT
/*
 * Records about allocations, in three trees: allocations that a stream holds, allocations
 * that the CPU may not write, and host memory. Host memory is allocated or registered; no
 * two of its records overlap.
 *
 * A stream holds memory that its queued work uses. A free of held memory ends the name at
 * once, and the last release of the holds frees the memory.
 *
 * Locking: accmem_acl_memory_lock protects the trees, and comes before the locks of the
 * pools. A call takes the lock only if the tree that it searches has records.
 */
#define _GNU_SOURCE
#include <search.h>
#include <stdlib.h>

#include "acl/error.h"
#include "acl/locks.h"
#include "acl/record.h"
#include "core/walk.h"

static void *held, *read_only, *host;
/* Signalled when a record of @held is removed. */
static pthread_cond_t held_change = PTHREAD_COND_INITIALIZER;
/* Number of records in @held and @read_only, and number of records in @host. */
unsigned int accmem_acl_record_count, accmem_acl_record_host_count;
bool accmem_acl_record_inherited;

static int compare(const void *left, const void *right)
{
	const struct acl_record *a = left, *b = right;

	return ((uintptr_t)a->pointer > (uintptr_t)b->pointer) -
	       ((uintptr_t)a->pointer < (uintptr_t)b->pointer);
}

static struct acl_record *find(void *const *root, const void *pointer)
{
	const struct acl_record key = { .pointer = (void *)pointer };
	void *node = tfind(&key, root, compare);

	return node ? *(struct acl_record **)node : NULL;
}

static struct acl_record *add(void **root, void *pointer,
			      struct accmem_pool *pool)
{
	struct acl_record *record = calloc(1, sizeof(*record));

	if (!record)
		return NULL;
	record->pointer = pointer;
	record->pool = pool;
	if (!tsearch(record, root, compare)) {
		free(record);
		return NULL;
	}
	__atomic_fetch_add(root == &host ? &accmem_acl_record_host_count :
					   &accmem_acl_record_count,
			   1, __ATOMIC_RELEASE);
	return record;
}

static void drop(void **root, struct acl_record *record)
{
	tdelete(record, root, compare);
	free(record);
	__atomic_fetch_sub(root == &host ? &accmem_acl_record_host_count :
					   &accmem_acl_record_count,
			   1, __ATOMIC_RELEASE);
}

/* Records that overlap are equal. */
static int compare_ranges(const void *left, const void *right)
{
	const struct acl_record *a = left, *b = right;

	if ((uintptr_t)a->pointer - (uintptr_t)b->pointer < b->size ||
	    (uintptr_t)b->pointer - (uintptr_t)a->pointer < a->size)
		return 0;
	return compare(left, right);
}

/* Return a record of host memory that overlaps the range. The caller holds the lock. */
static struct acl_record *host_find(const void *pointer, size_t size)
{
	const struct acl_record key = { .pointer = (void *)pointer,
					.size = size };
	void *node = tfind(&key, &host, compare_ranges);

	return node ? *(struct acl_record **)node : NULL;
}

bool accmem_acl_record_find_host_start(const void *pointer)
{
	bool yes;

	pthread_mutex_lock(&accmem_acl_memory_lock);
	yes = find(&host, pointer);
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return yes;
}

bool accmem_acl_record_find_host(const void *pointer, size_t *room,
				 bool *registered)
{
	struct acl_record *record;

	pthread_mutex_lock(&accmem_acl_memory_lock);
	record = host_find(pointer, 1);
	if (record) {
		*room = record->size - ((const unsigned char *)pointer -
					(unsigned char *)record->pointer);
		*registered = record->registered;
	}
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return record;
}

bool accmem_acl_record_find_registered(const void *pointer)
{
	struct acl_record *record;
	bool yes;

	pthread_mutex_lock(&accmem_acl_memory_lock);
	record = host_find(pointer, 1);
	yes = record && record->registered;
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return yes;
}

aclError accmem_acl_record_hold(struct acl_side *side)
{
	struct acl_record *record;

	if (!side->block.pool)
		return ACL_SUCCESS;
	pthread_mutex_lock(&accmem_acl_memory_lock);
	record = find(&held, side->block.pointer);
	if (!record)
		record = add(&held, side->block.pointer, side->block.pool);
	if (record) {
		record->holds++;
		side->held = true;
	}
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return record ? ACL_SUCCESS :
			accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
}

void accmem_acl_record_release(struct acl_side *side)
{
	struct acl_record *record;

	if (!side->held)
		return;
	side->held = false;
	pthread_mutex_lock(&accmem_acl_memory_lock);
	record = find(&held, side->block.pointer);
	if (record && !--record->holds) {
		if (record->freed)
			accmem_pool_release(record->pool, record->pointer);
		drop(&held, record);
		pthread_cond_broadcast(&held_change);
	}
	pthread_mutex_unlock(&accmem_acl_memory_lock);
}

bool accmem_acl_record_is_freed(const void *pointer)
{
	struct acl_record *record;
	bool freed;

	if (!acl_has_records())
		return false;
	pthread_mutex_lock(&accmem_acl_memory_lock);
	record = find(&held, pointer);
	freed = record && record->freed;
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return freed;
}

bool accmem_acl_record_is_read_only(const void *pointer)
{
	bool yes;

	if (!acl_has_records())
		return false;
	pthread_mutex_lock(&accmem_acl_memory_lock);
	yes = find(&read_only, pointer);
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return yes;
}

bool accmem_acl_record_add_read_only(void *pointer, struct accmem_pool *pool)
{
	struct acl_record *record;

	pthread_mutex_lock(&accmem_acl_memory_lock);
	record = find(&read_only, pointer);
	if (!record)
		record = add(&read_only, pointer, pool);
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return record;
}

bool accmem_acl_record_add_host(void *pointer, size_t size,
				struct accmem_pool *pool)
{
	struct acl_record *record;

	pthread_mutex_lock(&accmem_acl_memory_lock);
	/* the program has unmapped registered memory that was there */
	while ((record = host_find(pointer, size)))
		drop(&host, record);
	record = add(&host, pointer, pool);
	if (record)
		record->size = size;
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return record;
}

/* A new allocation has this address, so the parent has freed an inherited one there. */
void accmem_acl_record_drop_inherited(const void *pointer)
{
	struct acl_record *record;

	pthread_mutex_lock(&accmem_acl_memory_lock);
	record = find(&read_only, pointer);
	if (record)
		drop(&read_only, record);
	record = find(&host, pointer);
	if (record)
		drop(&host, record);
	pthread_mutex_unlock(&accmem_acl_memory_lock);
}

/* 1: @pointer is held, and its last release frees it; -1: it was freed before. */
int accmem_acl_record_free_held(void *pointer)
{
	struct acl_record *record;
	int ret = 0;

	pthread_mutex_lock(&accmem_acl_memory_lock);
	record = find(&held, pointer);
	if (record) {
		ret = record->freed ? -1 : 1;
		record->freed = true;
	}
	if (ret >= 0) {
		struct acl_record *other = find(&read_only, pointer);

		if (other)
			drop(&read_only, other);
	}
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return ret;
}

struct acl_record accmem_acl_record_take_host(void *pointer, bool of_process)
{
	struct acl_record *record, found = {};

	pthread_mutex_lock(&accmem_acl_memory_lock);
	record = find(&host, pointer);
	if (record && !record->registered) {
		found = *record;
		if (!record->pool == of_process)
			drop(&host, record);
	}
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return found;
}

aclError accmem_acl_record_register(void *pointer, size_t size)
{
	struct acl_record *record = NULL;
	bool known;

	pthread_mutex_lock(&accmem_acl_memory_lock);
	known = host_find(pointer, size);
	if (!known)
		record = add(&host, pointer, NULL);
	if (record) {
		record->size = size;
		record->registered = true;
	}
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	if (known)
		return accmem_acl_fail(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
				       "a part is registered, or allocated");
	return record ? ACL_SUCCESS :
			accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
}

aclError accmem_acl_record_unregister(void *pointer)
{
	struct acl_record *record;
	bool known;

	pthread_mutex_lock(&accmem_acl_memory_lock);
	record = find(&host, pointer);
	known = record && record->registered;
	if (known)
		drop(&host, record);
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return known ? ACL_SUCCESS :
		       accmem_acl_fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED,
				       "no registered memory begins there");
}

/**
 * struct search - argument of find_of_pool()
 * @pool: pool of the record to find
 * @record: result, or NULL
 */
struct search {
	struct accmem_pool *pool;
	struct acl_record *record;
};

static void find_of_pool(void *record, void *argument)
{
	const struct acl_record *candidate = record;
	struct search *search = argument;

	if (candidate->pool == search->pool)
		search->record = record;
}

static void drop_pool(void **root, struct accmem_pool *pool)
{
	struct search search = { .pool = pool };

	do {
		search.record = NULL;
		accmem_walk(*root, find_of_pool, &search);
		if (search.record)
			drop(root, search.record);
	} while (search.record);
}

static bool is_held_locked(struct accmem_pool *pool)
{
	struct search search = { .pool = pool };

	accmem_walk(held, find_of_pool, &search);
	return search.record;
}

bool accmem_acl_record_is_held(struct acl_device *device)
{
	bool is_held;

	pthread_mutex_lock(&accmem_acl_memory_lock);
	is_held = is_held_locked(device->pool);
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return is_held;
}

void accmem_acl_record_wait(struct acl_device *device)
{
	pthread_mutex_lock(&accmem_acl_memory_lock);
	while (is_held_locked(device->pool))
		pthread_cond_wait(&held_change, &accmem_acl_memory_lock);
	pthread_mutex_unlock(&accmem_acl_memory_lock);
}

void accmem_acl_record_drop_device(struct acl_device *device)
{
	pthread_mutex_lock(&accmem_acl_memory_lock);
	drop_pool(&read_only, device->pool);
	drop_pool(&host, device->pool);
	pthread_mutex_unlock(&accmem_acl_memory_lock);
}

void accmem_acl_record_disown(void)
{
	struct acl_record *record;

	while (held) {
		record = *(struct acl_record **)held;
		if (record->freed)
			accmem_pool_release(record->pool, record->pointer);
		drop(&held, record);
	}
	accmem_acl_record_inherited = read_only || host;
	/* the threads that wait are the parent's */
	held_change = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}
