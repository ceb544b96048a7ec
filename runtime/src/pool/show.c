// SPDX-License-Identifier: MIT
/*
 * Reports on a pool: the snapshot that PyTorch's tools display, the list of leaks, and the
 * memory that it keeps.
 *
 * A report is collected in memory with the pool's locks held. Without the locks, names
 * replace the call sites, and the report is written. dladdr() takes the lock of the
 * dynamic loader, which a thread may hold while a constructor in dlopen() allocates.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pool/base.h"
#include "pool/direct_tree.h"
#include "pool/history.h"
#include "pool/pending.h"
#include "pool/pool.h"

/**
 * struct show - a report
 * @pool: pool that the report is about
 * @out: text so far
 * @blocks: number of blocks in the segment so far
 * @segments: number of segments so far
 * @found: number of allocations so far
 * @idle: bytes so far that no allocation has
 * @pending: offsets of the pieces that wait for a stream, sorted; NULL if they are not told
 *	apart
 * @nr_pending: number of @pending
 * @visit: called with each allocation, and with each gap and a length of 0
 * @name: writes the name of a call site
 */
struct show {
	struct accmem_pool *pool;
	FILE *out;
	uint64_t blocks;
	uint64_t segments;
	long found;
	uint64_t idle;
	uint64_t *pending;
	size_t nr_pending;
	void (*visit)(struct show *show, uint64_t offset, uint64_t size,
		      uint64_t length);
	void (*name)(FILE *out, const void *site);
};

static bool is_pending(const struct show *show, uint64_t offset)
{
	return show->pending &&
	       bsearch(&offset, show->pending, show->nr_pending, sizeof(offset),
		       accmem_pool_compare_offsets);
}

/* Visit the blocks of a slab. Adjacent free blocks are one gap; a pending block is its own. */
static void visit_slab(struct show *show, const struct pool_slab *slab)
{
	uint64_t gap = slab->start, at = gap;
	uint16_t length;
	uint32_t i;

	for (i = 0; i < slab->count; i++, at += slab->size) {
		length = __atomic_load_n(&slab->length[i], __ATOMIC_RELAXED);
		if (!length && !is_pending(show, at))
			continue;
		if (gap < at)
			show->visit(show, gap, at - gap, 0);
		gap = at + slab->size;
		show->visit(show, at, slab->size, length & ~POOL_EARLY16);
	}
	show->visit(show, gap, slab->start + POOL_SLAB_BYTES - gap, 0);
}

static void visit_region(struct show *show, const struct pool_region *region)
{
	uint32_t page = region->first, end = page + region->pages, pages;
	const struct pool_page *entry;
	uint64_t tag, offset;

	while (page < end) {
		entry = &show->pool->table[page];
		tag = pool_load(&entry->tag);
		offset = (uint64_t)page << POOL_PAGE_SHIFT;
		if (pool_tag_type(tag) == POOL_PAGE_SLAB) {
			visit_slab(show, pool_tag_slab(tag));
			page += POOL_SLAB_PAGES;
			continue;
		}
		/* the last page of a region has no tag */
		pages = pool_tag_type(tag) ? pool_tag_pages(tag) : 1;
		show->visit(show, offset, pages * POOL_PAGE,
			    pool_tag_type(tag) == POOL_PAGE_SPAN ?
				    pool_load(&entry->value) & ~POOL_EARLY64 :
				    0);
		page += pages;
	}
}

/* Print a call site as a zero byte, which the text has nowhere else, and its address. */
static void print_site(struct show *show, const void *site)
{
	fputc(0, show->out);
	fwrite(&site, sizeof(site), 1, show->out);
}

/* Find the object and the symbol of a call site. NULL: not known. */
static const char *find_site(const void *site, const char **symbol,
			     uintptr_t *offset)
{
	Dl_info info;

	if (!dladdr(site, &info) || !info.dli_fname)
		return NULL;
	*symbol = info.dli_sname ? info.dli_sname : "";
	*offset = (uintptr_t)site -
		  (uintptr_t)(info.dli_sname ? info.dli_saddr : info.dli_fbase);
	return info.dli_fname;
}

/* Print @text as a part of a JSON string. */
static void name_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < ' ')
			fprintf(out, "\\u%04x", *text);
		else
			fputc(*text, out);
	}
}

static void name_frame(FILE *out, const void *site)
{
	const char *symbol, *file;
	uintptr_t offset;

	file = find_site(site, &symbol, &offset);
	fprintf(out, "{\"name\": \"");
	if (file) {
		name_text(out, symbol);
		fprintf(out, "+%#" PRIxPTR, offset);
	} else {
		fprintf(out, "%p", site);
	}
	fprintf(out, "\", \"filename\": \"");
	name_text(out, file ? file : "");
	fprintf(out, "\", \"line\": 0}");
}

static void name_caller(FILE *out, const void *site)
{
	const char *symbol, *file;
	uintptr_t offset;

	file = find_site(site, &symbol, &offset);
	if (file)
		fprintf(out, "%s(%s+%#" PRIxPTR ")", file, symbol, offset);
	else
		fprintf(out, "%p", site);
}

static void print_frames(struct show *show, const void *site)
{
	fprintf(show->out, "\"frames\": [");
	if (site)
		print_site(show, site);
	fprintf(show->out, "]");
}

static void print_block(struct show *show, uint64_t offset, uint64_t size,
			uint64_t length)
{
	struct accmem_pool *pool = show->pool;
	const void *site;

	if (!size)
		return;
	fprintf(show->out,
		"%s{\"address\": %" PRIu64 ", \"size\": %" PRIu64
		", \"requested_size\": %" PRIu64 ", \"state\": \"%s\", ",
		show->blocks++ ? ", " : "", pool->base + offset, size, length,
		length			 ? "active_allocated" :
		is_pending(show, offset) ? "active_awaiting_free" :
					   "inactive");
	site = accmem_pool_history_site(pool, pool->window + offset);
	print_frames(show, site);
	/* PyTorch 1.13 looks for the frames here */
	if (site) {
		fprintf(show->out,
			", \"history\": [{\"addr\": %" PRIu64
			", \"real_size\": %" PRIu64 ", ",
			pool->base + offset, length);
		print_frames(show, site);
		fprintf(show->out, "}]");
	}
	fprintf(show->out, "}");
}

static void count_block(struct show *show, uint64_t offset, uint64_t size,
			uint64_t length)
{
	(void)offset;
	show->blocks += length ? size : 0;
	show->found += length;
}

static void print_segment(struct show *show, uint64_t address, uint64_t total,
			  uint64_t active, uint64_t requested)
{
	fprintf(show->out,
		"%s{\"device\": 0, \"address\": %" PRIu64
		", \"total_size\": %" PRIu64 ", \"allocated_size\": %" PRIu64
		", \"active_size\": %" PRIu64 ", \"requested_size\": %" PRIu64
		", \"stream\": 0, \"segment_type\": \"large\", \"frames\": [], \"blocks\": [",
		show->segments++ ? ",\n" : "", address, total, active, active,
		requested);
}

static void print_region(struct show *show, const struct pool_region *region)
{
	struct show sum = { .pool = show->pool, .visit = count_block };

	visit_region(&sum, region);
	print_segment(show, region->address, region->pages * POOL_PAGE,
		      sum.blocks, sum.found);
	show->blocks = 0;
	visit_region(show, region);
	fprintf(show->out, "]}");
}

static void print_direct(void *argument, const struct accmem_pool_block *block)
{
	struct show *show = argument;

	print_segment(show, block->address, block->usable, block->usable,
		      block->length);
	show->blocks = 0;
	print_block(show, block->address - show->pool->base, block->usable,
		    block->length);
	fprintf(show->out, "]}");
}

static void print_events(struct show *show)
{
	const struct pool_event *event;
	uint64_t i;

	for (i = 0; (event = accmem_pool_history_event(show->pool, i)); i++) {
		fprintf(show->out,
			"%s{\"action\": \"%s\", \"addr\": %" PRIu64
			", \"size\": %" PRIu64
			", \"stream\": %d, \"time_us\": %" PRIu64 ", ",
			i ? ",\n" : "",
			event->released ? "free_completed" : "alloc",
			accmem_pool_address(show->pool, event->pointer),
			event->length, event->stream, event->time_us);
		print_frames(show, event->site);
		fprintf(show->out, "}");
	}
}

static void each_region(struct show *show,
			void (*what)(struct show *show,
				     const struct pool_region *region))
{
	const struct pool_region *region;
	uint32_t i;

	for (i = 0; i < POOL_NR_HEAPS; i++)
		for (region = show->pool->heaps[i].regions; region;
		     region = region->next)
			what(show, region);
}

static int write_all(int fd, const char *text, size_t size)
{
	ssize_t done;

	while (size) {
		done = write(fd, text, size);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		text += done;
		size -= done;
	}
	return 0;
}

static void snapshot(struct show *show)
{
	show->visit = print_block;
	show->name = name_frame;
	show->pending =
		accmem_pool_pending_offsets(show->pool, &show->nr_pending);
	fprintf(show->out, "{\"segments\": [");
	each_region(show, print_region);
	accmem_pool_direct_visit(show->pool, print_direct, show);
	fprintf(show->out, "],\n\"device_traces\": [[");
	print_events(show);
	fprintf(show->out, "]],\n\"allocator_settings\": {}}\n");
	free(show->pending);
}

static void print_leak(struct show *show, uint64_t offset, uint64_t size,
		       uint64_t length)
{
	struct accmem_pool *pool = show->pool;
	const void *pointer = pool->window + offset, *site;

	(void)size;
	if (!length)
		return;
	show->found++;
	site = accmem_pool_history_site(pool, pointer);
	fprintf(show->out, "accmem: %p: %" PRIu64 " bytes not released",
		pointer, length);
	if (site) {
		fprintf(show->out, ", allocated by ");
		print_site(show, site);
	}
	fprintf(show->out, "\n");
}

static void print_direct_leak(void *argument,
			      const struct accmem_pool_block *block)
{
	struct show *show = argument;

	print_leak(show, block->address - show->pool->base, block->usable,
		   block->length);
}

static void leaks(struct show *show)
{
	show->visit = print_leak;
	show->name = name_caller;
	each_region(show, visit_region);
	accmem_pool_direct_visit(show->pool, print_direct_leak, show);
}

/* Run @what with the pool's locks held. */
static void collect(struct show *show, void (*what)(struct show *show))
{
	pthread_mutex_lock(&show->pool->lock);
	accmem_pool_lock_arenas(show->pool);
	what(show);
	accmem_pool_unlock_arenas(show->pool);
	pthread_mutex_unlock(&show->pool->lock);
}

static void name_sites(const struct show *show, FILE *out, const char *text,
		       size_t size)
{
	const char *end = text + size, *mark;
	const void *site;

	/* a text that was cut for want of memory may end inside a call site */
	while ((mark = memchr(text, 0, end - text)) &&
	       (size_t)(end - mark) > sizeof(site)) {
		fwrite(text, 1, mark - text, out);
		memcpy(&site, mark + 1, sizeof(site));
		show->name(out, site);
		text = mark + 1 + sizeof(site);
	}
	fwrite(text, 1, end - text, out);
}

static int write_named(const struct show *show, const char *text, size_t size,
		       int fd)
{
	char *named = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&named, &length);
	int ret = -ENOMEM;

	if (!out)
		return ret;
	name_sites(show, out, text, size);
	if (!fclose(out))
		ret = write_all(fd, named, length);
	free(named);
	return ret;
}

static int make(struct show *show, void (*what)(struct show *show), int fd)
{
	char *text = NULL;
	size_t size = 0;
	int ret = -ENOMEM;

	show->out = open_memstream(&text, &size);
	if (!show->out)
		return ret;
	collect(show, what);
	if (!fclose(show->out))
		ret = write_named(show, text, size, fd);
	free(text);
	return ret;
}

static int write_show(struct show *show, void (*what)(struct show *show),
		      int fd)
{
	int ret = make(show, what, fd);

	if (ret)
		accmem_set_last_error("what is in the pool, to file %d: %s", fd,
				      strerror(-ret));
	return ret;
}

int accmem_pool_snapshot(struct accmem_pool *pool, int fd)
{
	struct show show = { .pool = pool };

	return write_show(&show, snapshot, fd);
}

long accmem_pool_report_leaks(struct accmem_pool *pool, int fd)
{
	struct show show = { .pool = pool };
	int ret = write_show(&show, leaks, fd);

	return ret ? ret : show.found;
}

static void count_idle(struct show *show, uint64_t offset, uint64_t size,
		       uint64_t length)
{
	(void)offset;
	if (!length)
		show->idle += size;
}

/* Sum up the idle bytes of those regions of a heap that lie in a range of addresses. */
static uint64_t heap_idle(struct accmem_pool *pool,
			  const struct pool_heap *heap, uint64_t address,
			  uint64_t span)
{
	struct show show = { .pool = pool, .visit = count_idle };
	const struct pool_region *region;

	for (region = heap->regions; region; region = region->next)
		if (region->address - address < span)
			visit_region(&show, region);
	return show.idle;
}

void accmem_pool_get_idle(struct accmem_pool *pool, uint64_t address,
			  uint64_t span, uint64_t *idle, uint64_t *shared)
{
	uint64_t bytes;
	uint32_t i;

	*idle = 0;
	*shared = 0;
	pthread_mutex_lock(&pool->lock);
	accmem_pool_lock_arenas(pool);
	for (i = 0; i < POOL_NR_HEAPS; i++) {
		bytes = heap_idle(pool, &pool->heaps[i], address, span);
		*idle += bytes;
		if (i % POOL_NR_SORTS == POOL_SHARED)
			*shared += bytes;
	}
	accmem_pool_unlock_arenas(pool);
	pthread_mutex_unlock(&pool->lock);
}
