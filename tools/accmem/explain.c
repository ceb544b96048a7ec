// SPDX-License-Identifier: GPL-2.0
/*
 * accmem explain: would an ALLOC succeed now, in a program that opens the device for it?
 *
 * The command makes the checks of the driver in the driver's order, with the numbers that
 * the caller may read. It opens the device for a moment for ACCMEM_IOC_INFO, whose numbers
 * are those of a new context: they include cached memory, and on devices whose 2 MiB pages
 * belong to one context they leave out what a new context cannot get. Nothing is
 * allocated. lib/layout computes the size, as in the driver.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "explain.h"
#include "lib/layout/layout.h"

#define CAP_SYS_RESOURCE_BIT 24
#define WAITERS_MOST 256 /* of a user */

/* The largest of several errors is that of the call, as in the driver. */
static int rank(int err)
{
	switch (err) {
	case 0:
		return 0;
	case EDQUOT:
		return 4;
	case ENOSPC:
		return 3;
	case ENOMEM:
		return 2;
	default:
		return 1;
	}
}

static uint64_t limit(const struct explanation *e, const char *name)
{
	size_t i;

	for (i = 0; i < NR_LIMITS; i++) {
		if (!strcmp(limit_names[i], name) && e->s->limits[i] != UNKNOWN)
			return e->s->limits[i];
	}
	return 0;
}

static bool exceeds(uint64_t used, uint64_t more, uint64_t max)
{
	return max && (used > max || more > max - used);
}

static void refuse(struct place *p, int err, enum reason reason)
{
	p->err = err;
	p->reason = reason;
}

/* Check the limits on bytes for a charge. */
static bool within_limits(const struct explanation *e, struct place *p,
			  uint64_t charge)
{
	if (exceeds(0, charge, limit(e, "max_bytes_per_context")))
		refuse(p, EDQUOT, REASON_CONTEXT_BYTES);
	else if (!e->exempt &&
		 exceeds(e->charged, charge, limit(e, "max_bytes_per_user")))
		refuse(p, EDQUOT, REASON_USER_BYTES);
	return !p->err;
}

/* Would the request take memory that is held for a request that waits? */
static void check_reservation(const struct explanation *e, struct place *p)
{
	uint64_t free_bytes = p->info.free_bytes;

	if (!e->device->held || free_bytes < p->footprint ||
	    free_bytes - p->footprint >= e->device->held)
		return;
	/* The file does not say in which carveouts. */
	p->doubt = p->info.nr_carveouts > 1;
	refuse(p, ENOSPC, REASON_RESERVED);
}

/* Return the bytes of a hole from its first aligned offset on. */
static uint64_t aligned_bytes(const struct hole *h, uint64_t alignment)
{
	uint64_t skip = (alignment - h->offset % alignment) % alignment;

	return h->size > skip ? h->size - skip : 0;
}

static void find_holes(const struct explanation *e, struct place *p,
		       unsigned int carveout)
{
	bool owned = p->info.backing == ACCMEM_BACKING_PHYS &&
		     p->info.features & ACCMEM_FEATURE_PIN;
	const struct hole *h;

	if (!e->has_runs)
		return;
	p->holes = holes_of(e->runs, e->nr_runs, carveout, p->info.capacity,
			    owned ? FOLIO : 1, &p->nr_holes);
	for (h = p->holes; h < p->holes + p->nr_holes; h++) {
		if (!p->best || aligned_bytes(h, p->alignment) >
					aligned_bytes(p->best, p->alignment))
			p->best = h;
	}
}

/* Without `runs`: the largest run has room for any alignment, or it may not. */
static void check_alignment_unknown(struct place *p)
{
	if (p->info.largest_run >=
	    p->footprint + p->alignment - p->info.granule)
		return;
	p->doubt = true;
	refuse(p, ENOSPC, REASON_ALIGNMENT);
}

static void check_one_run(const struct explanation *e, struct place *p)
{
	if (p->info.largest_run < p->footprint)
		refuse(p, ENOSPC,
		       p->info.free_bytes < p->footprint ? REASON_FREE :
							   REASON_RUN);
	else if (p->alignment <= p->info.granule)
		return;
	else if (!e->has_runs)
		check_alignment_unknown(p);
	else if (!p->best ||
		 aligned_bytes(p->best, p->alignment) < p->footprint)
		refuse(p, ENOSPC, REASON_ALIGNMENT);
}

static void check_scattered(const struct explanation *e, struct place *p)
{
	uint64_t bytes = 0;
	const struct hole *h;

	if (p->info.free_bytes < p->footprint) {
		refuse(p, ENOSPC, REASON_FREE);
		return;
	}
	if (p->alignment <= p->info.granule)
		return;
	if (!e->has_runs) {
		check_alignment_unknown(p);
		return;
	}
	for (h = p->holes; h < p->holes + p->nr_holes; h++)
		bytes += aligned_bytes(h, p->alignment) / p->alignment *
			 p->alignment;
	if (bytes < p->footprint)
		refuse(p, ENOSPC, REASON_ALIGNMENT);
}

/* Check the limits on the host's memory, and the host's memory, for populated pages. */
static void check_resident(const struct explanation *e, struct place *p,
			   uint64_t bytes)
{
	uint64_t most = limit(e, "max_resident_bytes");
	uint64_t share = limit(e, "max_resident_bytes_per_user");
	char *text, *at;

	if (!most)
		most = (uint64_t)sysconf(_SC_PHYS_PAGES) *
		       sysconf(_SC_PAGESIZE) / 2;
	if (!share)
		share = most / 2;
	if (!e->exempt && exceeds(e->user_resident, bytes, share)) {
		refuse(p, ENOMEM, REASON_USER_RESIDENT);
	} else if (exceeds(e->resident, bytes, most)) {
		refuse(p, ENOMEM, REASON_RESIDENT);
	} else {
		text = read_text("/proc/meminfo");
		at = text ? strstr(text, "MemAvailable:") : NULL;
		p->doubt = at && strtoull(at + 13, NULL, 10) * 1024 < bytes;
		if (p->doubt)
			refuse(p, ENOMEM, REASON_HOST_RAM);
		free(text);
	}
}

static bool is_populated(const struct accmem_alloc *a, const struct place *p)
{
	return a->kind == ACCMEM_KIND_HOST ||
	       (a->flags & ACCMEM_ALLOC_POPULATE &&
		p->info.features & ACCMEM_FEATURE_FIRST_TOUCH);
}

/* The checks of a layout, in the order in which the driver's errors take precedence. */
static void check_layout(const struct explanation *e, struct place *p,
			 const struct accmem_layout *layout)
{
	const struct accmem_alloc *a = &e->req->alloc;

	if (!within_limits(e, p, layout->footprint))
		return;
	if (p->footprint > p->info.capacity)
		refuse(p, ENOSPC, REASON_CAPACITY);
	else
		check_reservation(e, p);
	if (p->err)
		return;
	if (!e->exempt &&
	    exceeds(e->buffers, 1, limit(e, "max_buffers_per_user")))
		refuse(p, EDQUOT, REASON_BUFFERS);
	else if (p->one_run)
		check_one_run(e, p);
	else
		check_scattered(e, p);
	if (!p->err && within_limits(e, p, p->charge) && is_populated(a, p))
		check_resident(e, p, p->footprint);
}

static uint64_t alignment_of(const struct accmem_alloc *a)
{
	uint64_t least = 0;

	if (a->kind == ACCMEM_KIND_SHARED && a->length >= FOLIO)
		least = FOLIO;
	else if (a->kind == ACCMEM_KIND_SHARED || a->reserve)
		least = ACCMEM_GRANULE;
	return a->alignment & (a->alignment - 1) || a->alignment > least ?
		       a->alignment :
		       least;
}

/* Fill in what a layout needs in a place. */
static void set_needs(const struct explanation *e, struct place *p,
		      unsigned int carveout, const struct accmem_layout *layout)
{
	bool identity = p->info.translation == ACCMEM_TRANSLATION_IDENTITY;

	p->footprint = layout->small ? ACCMEM_GRANULE : layout->footprint;
	p->charge = p->footprint;
	if (p->info.backing == ACCMEM_BACKING_PHYS &&
	    p->info.features & ACCMEM_FEATURE_PIN)
		p->charge = (p->charge + FOLIO - 1) / FOLIO * FOLIO;
	if (e->req->alloc.kind == ACCMEM_KIND_SHARED)
		p->charge += p->footprint;
	p->one_run = identity || layout->small ||
		     e->req->alloc.flags & ACCMEM_ALLOC_CONTIGUOUS;
	p->alignment = layout->page_size;
	if (identity && !layout->small && layout->alignment > p->alignment)
		p->alignment = layout->alignment;
	free(p->holes);
	p->holes = NULL;
	p->best = NULL;
	if (strcmp(p->name, "host"))
		find_holes(e, p, carveout);
}

/* Return true if the error is not about room, so that no other carveout changes it. */
static bool check_policy(const struct explanation *e, struct place *p,
			 unsigned int carveout, unsigned int policy,
			 bool *may_fall_back)
{
	const struct accmem_alloc *a = &e->req->alloc;
	const struct accmem_layout_request wanted = {
		.length = a->length,
		.alignment = alignment_of(a),
		.page_policy = policy,
		.flags = a->flags,
	};
	const struct accmem_layout_caps caps = {
		.page_sizes = p->info.page_sizes,
		.max_alignment = p->info.max_alignment,
	};
	unsigned int mode = a->cache_mode;
	struct accmem_layout layout;
	int err;

	*may_fall_back = false;
	refuse(p, 0, NO_REASON);
	p->doubt = false;
	if (mode == ACCMEM_CACHE_WB &&
	    !(p->info.cache_modes & 1 << ACCMEM_CACHE_WB))
		mode = ACCMEM_CACHE_WC;
	if (!(p->info.cache_modes & 1 << mode)) {
		refuse(p, EOPNOTSUPP, REASON_UNSUPPORTED);
		return false;
	}
	err = -accmem_layout(&wanted, &caps, &layout);
	if (err) {
		refuse(p, err,
		       err == EOPNOTSUPP ? REASON_UNSUPPORTED : REASON_INVALID);
		return err != EOPNOTSUPP;
	}
	*may_fall_back = layout.may_fall_back;
	set_needs(e, p, carveout, &layout);
	check_layout(e, p, &layout);
	return false;
}

/* The host's side of shared memory */
static void check_host_side(const struct explanation *e, struct place *p,
			    const struct place *host)
{
	if (p->err || e->req->alloc.kind != ACCMEM_KIND_SHARED)
		return;
	if (p->footprint > host->info.free_bytes)
		refuse(p, ENOMEM, REASON_HOST_FREE);
}

static void check_place(const struct explanation *e, struct place *p,
			unsigned int carveout, const struct place *host,
			bool *final)
{
	bool may_fall_back;

	*final = check_policy(e, p, carveout, e->req->alloc.page_policy,
			      &may_fall_back);
	check_host_side(e, p, host);
	if (rank(p->err) > 1 && may_fall_back) {
		check_policy(e, p, carveout, ACCMEM_PAGE_NORMAL_ONLY,
			     &may_fall_back);
		check_host_side(e, p, host);
	}
}

static void conclude(struct explanation *e, enum verdict v, int err,
		     enum reason reason)
{
	e->verdict = v;
	e->err = err;
	e->reason = reason;
}

/* The checks that the driver makes before it looks for memory */
static bool is_valid(struct explanation *e, unsigned int nr_carveouts,
		     uint64_t features, uint64_t span)
{
	const struct accmem_alloc *a = &e->req->alloc;
	const unsigned int classes = ACCMEM_ALLOC_HIGH_BANDWIDTH |
				     ACCMEM_ALLOC_LOW_BANDWIDTH;
	int err = 0;

	if ((a->flags & classes) == classes)
		err = EINVAL;
	else if (a->kind != ACCMEM_KIND_DEVICE &&
		 !(features & ACCMEM_FEATURE_HOST))
		err = EOPNOTSUPP;
	else if (a->kind == ACCMEM_KIND_SHARED &&
		 (a->flags & ACCMEM_ALLOC_RESIZABLE || a->reserve ||
		  a->cache_mode != ACCMEM_CACHE_WB))
		err = EOPNOTSUPP;
	else if (a->kind == ACCMEM_KIND_HOST &&
		 (a->carveout || a->flags & (classes | ACCMEM_ALLOC_CARVEOUT)))
		err = EINVAL;
	else if (a->carveout >= nr_carveouts)
		err = EINVAL;
	else if (a->reserve && (!(a->flags & ACCMEM_ALLOC_RESIZABLE) ||
				a->reserve < a->length || a->reserve > span))
		err = EINVAL;
	if (err)
		conclude(e, FAILS, err,
			 err == EINVAL ? REASON_INVALID : REASON_UNSUPPORTED);
	return !err;
}

static bool add_place(struct explanation *e, int fd, bool host,
		      unsigned int carveout)
{
	struct place *p;

	e->places = grow(e->places, e->nr_places, sizeof(*e->places));
	p = &e->places[e->nr_places];
	p->info.size = sizeof(p->info);
	p->info.flags = host ? ACCMEM_INFO_HOST : 0;
	p->info.carveout = carveout;
	snprintf(p->name, sizeof(p->name), host ? "host" : "carveout%u",
		 carveout);
	if (ioctl(fd, ACCMEM_IOC_INFO, &p->info))
		return false;
	e->nr_places++;
	return true;
}

/* Open the device, and describe its memory. Return false with the verdict. */
static bool read_places(struct explanation *e)
{
	char *path = path_of("/dev/%s", e->device->name);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	unsigned int i;
	bool good;

	free(path);
	if (fd < 0) {
		conclude(e, FAILS, errno,
			 errno == EMFILE ? REASON_CONTEXTS :
			 errno == EACCES ? REASON_ACCESS :
					   REASON_REVOKED);
		return false;
	}
	good = add_place(e, fd, false, 0);
	for (i = 1; good && i < e->places[0].info.nr_carveouts; i++)
		good = add_place(e, fd, false, i);
	if (good && e->places[0].info.features & ACCMEM_FEATURE_HOST)
		good = add_place(e, fd, true, 0);
	if (!good)
		conclude(e, FAILS, errno, REASON_REVOKED);
	close(fd);
	return good;
}

/* Does the result in a place say more than the verdict so far? */
static bool is_better(const struct explanation *e, const struct place *p,
		      enum verdict v)
{
	if (v == SUCCEEDS || e->verdict == SUCCEEDS)
		return e->verdict != SUCCEEDS;
	if (v == CANNOT_TELL || e->verdict == CANNOT_TELL)
		return e->verdict != CANNOT_TELL;
	if (rank(p->err) != rank(e->err))
		return rank(p->err) > rank(e->err);
	return e->reason == REASON_CAPACITY && p->reason != REASON_CAPACITY;
}

/* The verdict is that of the best place; else that of the error with the highest rank. */
static void choose(struct explanation *e, const struct place *p, bool final)
{
	enum verdict v = !p->err ? SUCCEEDS : p->doubt ? CANNOT_TELL : FAILS;

	if (e->place && !final && !is_better(e, p, v))
		return;
	e->place = p;
	conclude(e, v, p->err, p->reason);
}

static void check_places(struct explanation *e)
{
	const struct accmem_alloc *a = &e->req->alloc;
	unsigned int nr = e->places[0].info.nr_carveouts, i;
	const struct place *host = nr < e->nr_places ? &e->places[nr] : NULL;
	uint64_t span = 0;
	bool wants_host = a->kind == ACCMEM_KIND_HOST;
	bool final = false;

	for (i = 0; i < nr; i++) {
		if (e->places[i].info.address_span > span)
			span = e->places[i].info.address_span;
	}
	if (!is_valid(e, nr, e->places[0].info.features, span))
		return;
	for (i = 0; i < e->nr_places && !final; i++) {
		bool is_host = i >= nr;

		if (is_host != wants_host ||
		    (a->flags & ACCMEM_ALLOC_CARVEOUT && i != a->carveout))
			continue;
		check_place(e, &e->places[i], i, host, &final);
		choose(e, &e->places[i], final);
	}
}

/* With WAIT the call sleeps, unless waiting cannot help. */
static void check_wait(struct explanation *e)
{
	uint64_t waiting = 0;
	size_t i;

	if (!(e->req->alloc.flags & ACCMEM_ALLOC_WAIT) || !e->place)
		return;
	for (i = 0; i < e->s->nr_contexts; i++) {
		if (e->s->contexts[i].uid == e->uid &&
		    e->s->contexts[i].use[USE_WAITING] != UNKNOWN)
			waiting += e->s->contexts[i].use[USE_WAITING];
	}
	if (e->verdict == SUCCEEDS && e->device->nr_waiting != UNKNOWN &&
	    e->device->nr_waiting)
		conclude(e, WAITS, 0, REASON_QUEUE);
	if (e->verdict != FAILS || (e->err != ENOSPC && e->err != EDQUOT) ||
	    e->reason == REASON_CAPACITY || e->reason == REASON_CONTEXT_BYTES ||
	    (e->reason == REASON_USER_BYTES &&
	     exceeds(0, e->place->charge, limit(e, "max_bytes_per_user"))))
		return;
	if (waiting >= WAITERS_MOST)
		conclude(e, FAILS, EAGAIN, REASON_WAITS);
	else
		conclude(e, WAITS, e->err, e->reason);
}

/* Add up what the user is charged for. Buffers in caches do not count. */
static void read_charges(struct explanation *e)
{
	size_t i, j;

	for (i = 0; i < e->s->nr_contexts; i++) {
		const struct context *c = &e->s->contexts[i];

		if (c->uid == e->uid && c->use[USE_CHARGED] != UNKNOWN)
			e->charged += c->use[USE_CHARGED];
	}
	for (i = 0; i < e->s->nr_users; i++) {
		const struct user *u = &e->s->users[i];

		if (u->uid != e->uid)
			continue;
		e->buffers = u->charge[CHARGE_BUFFERS];
		if (u->charge[CHARGE_RESIDENT] != UNKNOWN)
			e->user_resident = u->charge[CHARGE_RESIDENT];
	}
	for (i = 0; i < e->nr_runs; i++) {
		if (e->runs[i].state == RUN_CACHED &&
		    e->runs[i].uid == e->uid && e->buffers)
			e->buffers--;
	}
	for (i = 0; i < e->s->nr_devices; i++) {
		const struct device *d = &e->s->devices[i];

		for (j = 0; j < d->nr_memories; j++) {
			if (d->memories[j].value[RESIDENT] != UNKNOWN)
				e->resident += d->memories[j].value[RESIDENT];
		}
	}
}

/* The driver asks for the capability in the first user namespace. */
static bool is_first_namespace(void)
{
	char *text = read_text("/proc/self/uid_map");
	unsigned long long ids;
	bool first = text && sscanf(text, "%*u %*u %llu", &ids) == 1 &&
		     ids == UINT32_MAX;

	free(text);
	return first;
}

static bool has_sys_resource(void)
{
	char *text = read_text("/proc/self/status");
	char *at = text ? strstr(text, "CapEff:") : NULL;
	uint64_t caps = at ? strtoull(at + 7, NULL, 16) : 0;

	free(text);
	return caps >> CAP_SYS_RESOURCE_BIT & 1 && is_first_namespace();
}

/* Find the verdict. The caller has set the request, the snapshot and the device. */
void explain(struct explanation *e)
{
	e->uid = getuid();
	e->exempt = has_sys_resource();
	e->has_runs = runs_read(&e->runs, &e->nr_runs, e->device->name);
	read_charges(e);
	if (!read_places(e))
		return;
	check_places(e);
	check_wait(e);
	if (e->err == ENOSPC)
		e->err = ENOMEM;
}

void explain_free(struct explanation *e)
{
	size_t i;

	for (i = 0; i < e->nr_places; i++)
		free(e->places[i].holes);
	free(e->places);
	free(e->runs);
}
