// SPDX-License-Identifier: MIT
/*
 * aclrtMalloc and its kin, aclrtFree, and memory of the host.
 *
 * Memory that a stream is going to work on is held: a free of it takes its name away
 * at once, and its memory when the last work is done. Holds, the pointers to memory
 * that the CPU may not write, and those to memory of the host are each a short list
 * or a tree of their own under one lock, which a free takes only if there are any.
 *
 * Lock: accmem_acl_memory_lock, before those of the pools.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "acl/internal.h"

#define HINTS                                                         \
	(ACL_MEM_TYPE_LOW_BAND_WIDTH | ACL_MEM_TYPE_HIGH_BAND_WIDTH | \
	 ACL_MEM_ACCESS_USER_SPACE_READONLY)

/**
 * struct record - something about an allocation
 * @pointer: its first byte
 * @size: bytes, of memory of the process's own; 0 for what is from a pool
 * @pool: whose it is, or NULL
 * @holds: how many there are
 * @freed: by the program, and held by streams
 */
struct record {
	void *pointer;
	size_t size;
	struct accmem_pool *pool;
	unsigned int holds;
	bool freed;
};

/* Protects all that follows. */
pthread_mutex_t accmem_acl_memory_lock = PTHREAD_MUTEX_INITIALIZER;
static void *held, *read_only, *host;
/* Something is held no more. */
static pthread_cond_t held_change = PTHREAD_COND_INITIALIZER;
/* Records in @held and @read_only, read without the lock: none is the usual case. */
static unsigned int nr_records;
/* Likewise in @host. */
static unsigned int nr_hosts;
/* A child's are its parent's, too; set when it begins. */
static bool inherits;

static int compare(const void *left, const void *right)
{
	const struct record *a = left, *b = right;

	return ((uintptr_t)a->pointer > (uintptr_t)b->pointer) -
	       ((uintptr_t)a->pointer < (uintptr_t)b->pointer);
}

static struct record *find(void *const *root, const void *pointer)
{
	const struct record key = { .pointer = (void *)pointer };
	void *node = tfind(&key, root, compare);

	return node ? *(struct record **)node : NULL;
}

static struct record *add(void **root, void *pointer, struct accmem_pool *pool)
{
	struct record *record = calloc(1, sizeof(*record));

	if (!record)
		return NULL;
	record->pointer = pointer;
	record->pool = pool;
	if (!tsearch(record, root, compare)) {
		free(record);
		return NULL;
	}
	__atomic_fetch_add(root == &host ? &nr_hosts : &nr_records, 1,
			   __ATOMIC_RELEASE);
	return record;
}

static void drop(void **root, struct record *record)
{
	tdelete(record, root, compare);
	free(record);
	__atomic_fetch_sub(root == &host ? &nr_hosts : &nr_records, 1,
			   __ATOMIC_RELEASE);
}

static bool host_has(const void *pointer,
		     int (*order)(const void *left, const void *right))
{
	const struct record key = { .pointer = (void *)pointer };
	bool yes;

	if (!__atomic_load_n(&nr_hosts, __ATOMIC_ACQUIRE))
		return false;
	pthread_mutex_lock(&accmem_acl_memory_lock);
	yes = tfind(&key, &host, order);
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return yes;
}

/* Is it for aclrtFreeHost()? */
static bool is_host(const void *pointer)
{
	return host_has(pointer, compare);
}

static int compare_inside(const void *left, const void *right)
{
	const struct record *a = left, *b = right;

	if ((uintptr_t)a->pointer - (uintptr_t)b->pointer < b->size)
		return 0;
	return compare(left, right);
}

bool accmem_acl_is_host(const void *pointer)
{
	return host_has(pointer, compare_inside);
}

static bool has_records(void)
{
	return __atomic_load_n(&nr_records, __ATOMIC_ACQUIRE);
}

aclError accmem_acl_hold(struct acl_side *side)
{
	struct record *record;

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

void accmem_acl_release(struct acl_side *side)
{
	struct record *record;

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

bool accmem_acl_is_freed(const void *pointer)
{
	struct record *record;
	bool freed;

	if (!has_records())
		return false;
	pthread_mutex_lock(&accmem_acl_memory_lock);
	record = find(&held, pointer);
	freed = record && record->freed;
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return freed;
}

bool accmem_acl_is_read_only(const void *pointer)
{
	bool yes;

	if (!has_records())
		return false;
	pthread_mutex_lock(&accmem_acl_memory_lock);
	yes = find(&read_only, pointer);
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return yes;
}

/* A5, A13: the kernel's policy for one of this interface's. */
static void set_policy(struct accmem_pool_request *req, uint32_t policy)
{
	const uint32_t bands = ACL_MEM_TYPE_LOW_BAND_WIDTH |
			       ACL_MEM_TYPE_HIGH_BAND_WIDTH;

	/* both hints at once is no value of the enumeration */
	if ((policy & bands) != bands)
		policy &= ~(uint32_t)HINTS;
	switch (policy) {
	case ACL_MEM_MALLOC_HUGE_FIRST:
	case ACL_MEM_MALLOC_HUGE_FIRST_P2P:
		req->page_policy = ACCMEM_PAGE_HUGE_FIRST;
		break;
	case ACL_MEM_MALLOC_HUGE_ONLY:
	case ACL_MEM_MALLOC_HUGE_ONLY_P2P:
		/* that there are none is an error here, not a signal later */
		req->page_policy = ACCMEM_PAGE_HUGE_ONLY;
		req->flags |= ACCMEM_ALLOC_POPULATE;
		break;
	case ACL_MEM_MALLOC_NORMAL_ONLY:
	case ACL_MEM_MALLOC_NORMAL_ONLY_P2P:
		req->page_policy = ACCMEM_PAGE_NORMAL_ONLY;
		break;
	case ACL_MEM_MALLOC_HUGE1G_ONLY:
	case ACL_MEM_MALLOC_HUGE1G_ONLY_P2P:
		req->page_policy = ACCMEM_PAGE_HUGE1G_ONLY;
		req->flags |= ACCMEM_ALLOC_POPULATE;
		break;
	default:
		req->page_policy = req->length >= ACL_HUGE_PAGE ?
					   ACCMEM_PAGE_HUGE_FIRST :
					   ACCMEM_PAGE_NORMAL_ONLY;
	}
}

/* Of a new allocation: what a child has inherited there, its parent has freed. */
static void forget_before(const void *pointer)
{
	struct record *record;

	if (!inherits)
		return;
	pthread_mutex_lock(&accmem_acl_memory_lock);
	record = find(&read_only, pointer);
	if (record)
		drop(&read_only, record);
	record = find(&host, pointer);
	if (record)
		drop(&host, record);
	pthread_mutex_unlock(&accmem_acl_memory_lock);
}

static aclError enter_read_only(struct acl_device *device, void *pointer)
{
	struct record *record;

	pthread_mutex_lock(&accmem_acl_memory_lock);
	record = find(&read_only, pointer);
	if (!record)
		record = add(&read_only, pointer, device->pool);
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	if (record)
		return ACL_SUCCESS;
	accmem_pool_release(device->pool, pointer);
	return accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
}

/* A hint is for a device that has a choice; others are as fast without a look at it. */
static void set_hint(const struct acl_device *device,
		     struct accmem_pool_request *req, uint32_t policy)
{
	const uint32_t low = policy & ACL_MEM_TYPE_LOW_BAND_WIDTH;
	const uint32_t high = policy & ACL_MEM_TYPE_HIGH_BAND_WIDTH;

	if (device->nr_carveouts < 2 || !low == !high)
		return;
	req->flags |= low ? ACCMEM_ALLOC_LOW_BANDWIDTH :
			    ACCMEM_ALLOC_HIGH_BANDWIDTH;
}

static aclError allocate_on(struct acl_device *device, void **devPtr,
			    size_t size, uint32_t policy, uint32_t flags)
{
	struct accmem_pool_request req = { .length = size, .flags = flags };
	aclError error;
	int ret;

	set_policy(&req, policy);
	set_hint(device, &req, policy);
	/* pages of its own, which nothing else makes writable */
	if (policy & ACL_MEM_ACCESS_USER_SPACE_READONLY)
		req.alignment = ACL_PAGE;
	if (policy & ACL_MEM_ACCESS_USER_SPACE_READONLY)
		req.flags |= ACCMEM_ALLOC_CONTIGUOUS;
	ret = accmem_pool_allocate(device->pool, &req);
	if (ret)
		return accmem_acl_error(ret);
	forget_before(req.pointer);
	if (policy & ACL_MEM_ACCESS_USER_SPACE_READONLY) {
		error = enter_read_only(device, req.pointer);
		if (error)
			return error;
	}
	*devPtr = req.pointer;
	return ACL_SUCCESS;
}

static aclError allocate(void **devPtr, size_t size, uint32_t policy,
			 uint32_t flags)
{
	struct acl_device *device;
	aclError error;

	if (!devPtr || !size)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       devPtr ? "size is 0" : "devPtr is NULL");
	accmem_acl_call_begin();
	device = accmem_acl_device_current(&error);
	if (device)
		error = allocate_on(device, devPtr, size, policy, flags);
	accmem_acl_call_end();
	return error;
}

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	return allocate(devPtr, size, policy,
			ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32);
}

aclError aclrtMallocAlign32(void **devPtr, size_t size,
			    aclrtMemMallocPolicy policy)
{
	return allocate(devPtr, size, policy, ACCMEM_ALLOC_ROUND32);
}

aclError aclrtMallocCached(void **devPtr, size_t size,
			   aclrtMemMallocPolicy policy)
{
	return aclrtMalloc(devPtr, size, policy);
}

/* 1 if @pointer is held and is gone when that ends, -1 if that was so before. */
static int free_held(void *pointer)
{
	struct record *record;
	int ret = 0;

	pthread_mutex_lock(&accmem_acl_memory_lock);
	record = find(&held, pointer);
	if (record) {
		ret = record->freed ? -1 : 1;
		record->freed = true;
	}
	if (ret >= 0) {
		struct record *other = find(&read_only, pointer);

		if (other)
			drop(&read_only, other);
	}
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return ret;
}

static aclError free_in(struct accmem_pool *pool, void *pointer)
{
	return accmem_pool_release(pool, pointer) ? ACL_ERROR_RT_PARAM_INVALID :
						    ACL_SUCCESS;
}

static aclError free_device(void *devPtr)
{
	struct accmem_pool_block block;
	struct acl_device *device;
	aclError error;
	int ret;

	if (is_host(devPtr))
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "memory of the host");
	ret = has_records() ? free_held(devPtr) : 0;
	if (ret)
		return ret > 0 ? ACL_SUCCESS :
				 accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
						 "freed already");
	device = accmem_acl_device_current(&error);
	if (device && accmem_pool_address(device->pool, devPtr))
		return free_in(device->pool, devPtr);
	if (accmem_pool_find(devPtr, &block))
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "no allocation is there");
	return free_in(block.pool, devPtr);
}

aclError aclrtFree(void *devPtr)
{
	aclError error;

	if (!devPtr)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "devPtr is NULL");
	accmem_acl_call_begin();
	error = free_device(devPtr);
	accmem_acl_call_end();
	return error;
}

/* Memory of the process's own, where the device has none for the host. */
static int host_map(void **pointer, size_t size)
{
	if (size > SIZE_MAX - ACL_PAGE)
		return -ENOMEM;
	*pointer = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return *pointer == MAP_FAILED ? -ENOMEM : 0;
}

static int host_allocate(struct accmem_pool_request *req, void **pointer,
			 struct accmem_pool **pool)
{
	struct acl_device *device;
	aclError error;
	int ret;

	device = accmem_acl_device_current(&error);
	if (device && device->has_host) {
		ret = accmem_pool_allocate(device->pool, req);
		*pointer = req->pointer;
		*pool = device->pool;
		if (ret != -EOPNOTSUPP)
			return ret;
	}
	*pool = NULL;
	ret = host_map(pointer, req->length);
	if (ret)
		accmem_set_last_error("no memory of the host");
	return ret;
}

static void host_free(void *pointer, size_t size, struct accmem_pool *pool)
{
	if (pool)
		accmem_pool_release(pool, pointer);
	else
		munmap(pointer, size);
}

static aclError allocate_host(void **hostPtr, size_t size)
{
	struct accmem_pool_request req = { .length = size,
					   .alignment = ACL_PAGE,
					   .kind = ACCMEM_KIND_HOST,
					   .mapped = 1 };
	struct accmem_pool *pool;
	struct record *record;
	void *pointer;
	int ret;

	ret = host_allocate(&req, &pointer, &pool);
	if (ret)
		return accmem_acl_error(ret);
	forget_before(pointer);
	pthread_mutex_lock(&accmem_acl_memory_lock);
	record = add(&host, pointer, pool);
	if (record)
		record->size = size;
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	if (!record) {
		host_free(pointer, size, pool);
		return accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
	}
	*hostPtr = pointer;
	return ACL_SUCCESS;
}

aclError aclrtMallocHost(void **hostPtr, size_t size)
{
	aclError error;

	if (!hostPtr || !size)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       hostPtr ? "size is 0" :
						 "hostPtr is NULL");
	accmem_acl_call_begin();
	error = allocate_host(hostPtr, size);
	accmem_acl_call_end();
	return error;
}

/* What is known of it, which is forgotten. */
static struct record take_host(void *pointer)
{
	struct record *record, found = {};

	pthread_mutex_lock(&accmem_acl_memory_lock);
	record = find(&host, pointer);
	if (record) {
		found = *record;
		drop(&host, record);
	}
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return found;
}

aclError aclrtFreeHost(void *hostPtr)
{
	struct record found;

	if (!hostPtr)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "hostPtr is NULL");
	accmem_acl_call_begin();
	found = take_host(hostPtr);
	if (found.pool && free_held(hostPtr) <= 0)
		accmem_pool_release(found.pool, hostPtr);
	accmem_acl_call_end();
	if (!found.pointer)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "no memory of the host is there");
	if (found.pool)
		return ACL_SUCCESS;
	/* the process's own memory is not held, so nothing may be left to do with it */
	accmem_acl_streams_wait(NULL);
	munmap(hostPtr, found.size);
	return ACL_SUCCESS;
}

/**
 * struct wanted - a record that is looked for
 * @pool: whose it is
 * @record: it, or NULL
 */
struct wanted {
	struct accmem_pool *pool;
	struct record *record;
};

static void find_of_pool(const void *node, VISIT visit, void *argument)
{
	struct record *record = *(struct record *const *)node;
	struct wanted *wanted = argument;

	if ((visit == postorder || visit == leaf) &&
	    record->pool == wanted->pool)
		wanted->record = record;
}

static void forget_in(void **root, struct accmem_pool *pool)
{
	struct wanted wanted = { .pool = pool };

	do {
		wanted.record = NULL;
		twalk_r(*root, find_of_pool, &wanted);
		if (wanted.record)
			drop(root, wanted.record);
	} while (wanted.record);
}

static bool is_held_locked(struct accmem_pool *pool)
{
	struct wanted wanted = { .pool = pool };

	twalk_r(held, find_of_pool, &wanted);
	return wanted.record;
}

bool accmem_acl_memory_is_held(struct acl_device *device)
{
	bool is_held;

	pthread_mutex_lock(&accmem_acl_memory_lock);
	is_held = is_held_locked(device->pool);
	pthread_mutex_unlock(&accmem_acl_memory_lock);
	return is_held;
}

void accmem_acl_memory_wait(struct acl_device *device)
{
	pthread_mutex_lock(&accmem_acl_memory_lock);
	while (is_held_locked(device->pool))
		pthread_cond_wait(&held_change, &accmem_acl_memory_lock);
	pthread_mutex_unlock(&accmem_acl_memory_lock);
}

void accmem_acl_memory_forget(struct acl_device *device)
{
	pthread_mutex_lock(&accmem_acl_memory_lock);
	forget_in(&read_only, device->pool);
	forget_in(&host, device->pool);
	pthread_mutex_unlock(&accmem_acl_memory_lock);
}

void accmem_acl_memory_disown(void)
{
	struct record *record;

	while (held) {
		record = *(struct record **)held;
		if (record->freed)
			accmem_pool_release(record->pool, record->pointer);
		drop(&held, record);
	}
	inherits = read_only || host;
	/* those who wait are the parent's */
	held_change = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}
