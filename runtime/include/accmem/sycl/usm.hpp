/* SPDX-License-Identifier: MIT */
/*
 * SYCL on accmem: unified shared memory. Rows S1 to S9, S14 and S15 of
 * Documentation/conformance.rst.
 *
 * Allocations return nullptr if resources are short (S2), and for an alignment that is no
 * power of two or larger than the device supports (S3); accmem_last_error() describes the
 * error. An alignment of 0 is the default of 64 bytes, or the alignment of the type if
 * that is larger. Allocations throw feature_not_supported if the device lacks the kind
 * (S5, S6), and invalid if the device is not in the context. An allocation of 0 bytes is
 * valid, and none of its bytes may be used (S4).
 *
 * All memory is mapped, also that of kind device, because kernels run on the host.
 */
#ifndef ACCMEM_SYCL_USM_HPP
#define ACCMEM_SYCL_USM_HPP

#include <accmem/sycl/queue.hpp>

namespace accmem {
namespace sycl {
namespace detail {

/* The device that serves a request. Throws if the rules refuse the request. */
inline const unit &unit_for(usm::alloc kind, const device &dev,
			    const context_impl &ctx)
{
	const unit *u = ctx.find(dev);

	if (!u)
		fail(errc::invalid, "the device is not in the context");
	if (!dev.has(aspect_of(kind)))
		fail(errc::feature_not_supported,
		     "the device has not allocations of this kind");
	return *u;
}

/* Throws if no device of the context has host allocations. */
inline void check_host(const context_impl &ctx)
{
	for (const unit &u : ctx.units())
		if (u.device.has(aspect_of(usm::alloc::host)))
			return;
	fail(errc::feature_not_supported,
	     "no device of the context has host allocations");
}

/* Throws if all requests of a kind would be refused. The device is not that of host memory. */
inline void check_kind(usm::alloc kind, const device &dev,
		       const context_impl &ctx)
{
	if (kind == usm::alloc::host)
		check_host(ctx);
	else
		unit_for(kind, dev, ctx);
}

inline void *allocate(const unit &u, usm::alloc kind, std::size_t alignment,
		      std::size_t bytes)
{
	accmem_pool_request req{};

	req.length = bytes ? bytes : 1;
	req.alignment = alignment;
	req.kind = kernel_kind(kind);
	req.mapped = 1;
	return accmem_pool_allocate(u.pool.get(), &req) ? nullptr : req.pointer;
}

/* From the first device that has host memory left (S6). Throws if none can have any. */
inline void *allocate_host(std::size_t alignment, std::size_t bytes,
			   const context_impl &ctx)
{
	check_host(ctx);
	for (const unit &u : ctx.units()) {
		if (!u.device.has(aspect_of(usm::alloc::host)))
			continue;
		if (void *p = allocate(u, usm::alloc::host, alignment, bytes))
			return p;
	}
	return nullptr;
}

inline void *allocate(usm::alloc kind, std::size_t alignment,
		      std::size_t bytes, const device &dev, const context &ctx)
{
	if (kind == usm::alloc::unknown)
		return nullptr;
	if (kind == usm::alloc::host)
		return allocate_host(alignment, bytes, *ctx.impl());
	return allocate(unit_for(kind, dev, *ctx.impl()), kind, alignment,
			bytes);
}

/* The larger alignment. No power of two: passed on, and refused later. */
template <typename T>
std::size_t alignment_for(std::size_t alignment)
{
	if (alignment & (alignment - 1))
		return alignment;
	return alignment > alignof(T) ? alignment : alignof(T);
}

/* The product, or if it overflows a size that no device has. */
template <typename T>
std::size_t bytes_for(std::size_t count)
{
	return bytes_of(count, sizeof(T));
}

} // namespace detail

/* Kind device or shared: by device and context, or by queue. */
#define ACCMEM_SYCL_KIND(kind)                                                \
	inline void *aligned_alloc_##kind(std::size_t alignment,              \
					  std::size_t bytes,                  \
					  const device &dev,                  \
					  const context &ctx,                 \
					  const property_list & = {})         \
	{                                                                     \
		return detail::allocate(usm::alloc::kind, alignment, bytes,   \
					dev, ctx);                            \
	}                                                                     \
	template <typename T>                                                 \
	T *aligned_alloc_##kind(std::size_t alignment, std::size_t count,     \
				const device &dev, const context &ctx,        \
				const property_list &list = {})               \
	{                                                                     \
		return static_cast<T *>(aligned_alloc_##kind(                 \
			detail::alignment_for<T>(alignment),                  \
			detail::bytes_for<T>(count), dev, ctx, list));        \
	}                                                                     \
	inline void *aligned_alloc_##kind(std::size_t alignment,              \
					  std::size_t bytes, const queue &q,  \
					  const property_list &list = {})     \
	{                                                                     \
		return aligned_alloc_##kind(alignment, bytes, q.get_device(), \
					    q.get_context(), list);           \
	}                                                                     \
	template <typename T>                                                 \
	T *aligned_alloc_##kind(std::size_t alignment, std::size_t count,     \
				const queue &q,                               \
				const property_list &list = {})               \
	{                                                                     \
		return aligned_alloc_##kind<T>(alignment, count,              \
					       q.get_device(),                \
					       q.get_context(), list);        \
	}                                                                     \
	inline void *malloc_##kind(std::size_t bytes, const device &dev,      \
				   const context &ctx,                        \
				   const property_list &list = {})            \
	{                                                                     \
		return aligned_alloc_##kind(0, bytes, dev, ctx, list);        \
	}                                                                     \
	template <typename T>                                                 \
	T *malloc_##kind(std::size_t count, const device &dev,                \
			 const context &ctx, const property_list &list = {})  \
	{                                                                     \
		return aligned_alloc_##kind<T>(0, count, dev, ctx, list);     \
	}                                                                     \
	inline void *malloc_##kind(std::size_t bytes, const queue &q,         \
				   const property_list &list = {})            \
	{                                                                     \
		return aligned_alloc_##kind(0, bytes, q, list);               \
	}                                                                     \
	template <typename T>                                                 \
	T *malloc_##kind(std::size_t count, const queue &q,                   \
			 const property_list &list = {})                      \
	{                                                                     \
		return aligned_alloc_##kind<T>(0, count, q, list);            \
	}

ACCMEM_SYCL_KIND(device)
ACCMEM_SYCL_KIND(shared)

#undef ACCMEM_SYCL_KIND

/* Kind host: by context, or by queue. */
inline void *aligned_alloc_host(std::size_t alignment, std::size_t bytes,
				const context &ctx, const property_list & = {})
{
	return detail::allocate_host(alignment, bytes, *ctx.impl());
}

template <typename T>
T *aligned_alloc_host(std::size_t alignment, std::size_t count,
		      const context &ctx, const property_list &list = {})
{
	return static_cast<T *>(
		aligned_alloc_host(detail::alignment_for<T>(alignment),
				   detail::bytes_for<T>(count), ctx, list));
}

inline void *aligned_alloc_host(std::size_t alignment, std::size_t bytes,
				const queue &q, const property_list &list = {})
{
	return aligned_alloc_host(alignment, bytes, q.get_context(), list);
}

template <typename T>
T *aligned_alloc_host(std::size_t alignment, std::size_t count, const queue &q,
		      const property_list &list = {})
{
	return aligned_alloc_host<T>(alignment, count, q.get_context(), list);
}

inline void *malloc_host(std::size_t bytes, const context &ctx,
			 const property_list &list = {})
{
	return aligned_alloc_host(0, bytes, ctx, list);
}

template <typename T>
T *malloc_host(std::size_t count, const context &ctx,
	       const property_list &list = {})
{
	return aligned_alloc_host<T>(0, count, ctx, list);
}

inline void *malloc_host(std::size_t bytes, const queue &q,
			 const property_list &list = {})
{
	return aligned_alloc_host(0, bytes, q, list);
}

template <typename T>
T *malloc_host(std::size_t count, const queue &q,
	       const property_list &list = {})
{
	return aligned_alloc_host<T>(0, count, q, list);
}

/* The kind is an argument. The device is ignored for kind host. */
inline void *aligned_alloc(std::size_t alignment, std::size_t bytes,
			   const device &dev, const context &ctx,
			   usm::alloc kind, const property_list & = {})
{
	return detail::allocate(kind, alignment, bytes, dev, ctx);
}

template <typename T>
T *aligned_alloc(std::size_t alignment, std::size_t count, const device &dev,
		 const context &ctx, usm::alloc kind,
		 const property_list &list = {})
{
	return static_cast<T *>(
		aligned_alloc(detail::alignment_for<T>(alignment),
			      detail::bytes_for<T>(count), dev, ctx, kind,
			      list));
}

inline void *aligned_alloc(std::size_t alignment, std::size_t bytes,
			   const queue &q, usm::alloc kind,
			   const property_list &list = {})
{
	return aligned_alloc(alignment, bytes, q.get_device(), q.get_context(),
			     kind, list);
}

template <typename T>
T *aligned_alloc(std::size_t alignment, std::size_t count, const queue &q,
		 usm::alloc kind, const property_list &list = {})
{
	return aligned_alloc<T>(alignment, count, q.get_device(),
				q.get_context(), kind, list);
}

inline void *malloc(std::size_t bytes, const device &dev, const context &ctx,
		    usm::alloc kind, const property_list &list = {})
{
	return aligned_alloc(0, bytes, dev, ctx, kind, list);
}

template <typename T>
T *malloc(std::size_t count, const device &dev, const context &ctx,
	  usm::alloc kind, const property_list &list = {})
{
	return aligned_alloc<T>(0, count, dev, ctx, kind, list);
}

inline void *malloc(std::size_t bytes, const queue &q, usm::alloc kind,
		    const property_list &list = {})
{
	return aligned_alloc(0, bytes, q, kind, list);
}

template <typename T>
T *malloc(std::size_t count, const queue &q, usm::alloc kind,
	  const property_list &list = {})
{
	return aligned_alloc<T>(0, count, q, kind, list);
}

/*
 * Free memory of the context at once, even if commands use it (S7). Does nothing for
 * nullptr (S9). Throws invalid for a pointer that is not the first byte of an allocation
 * of this context, or was freed before. Memory of a device that is gone can be freed as
 * well.
 */
inline void free(void *pointer, const context &ctx)
{
	int ret = -ENOENT;

	if (!pointer)
		return;
	for (const detail::unit &u : ctx.impl()->units()) {
		ret = accmem_pool_release(u.pool.get(), pointer);
		if (ret != -ENOENT)
			break;
	}
	if (ret && ret != -ENODEV)
		throw exception(ctx,
				make_error_code(ret == -ENOENT ||
								ret == -EINVAL ?
							errc::invalid :
							errc::runtime),
				accmem_last_error());
}

inline void free(void *pointer, const queue &q)
{
	free(pointer, q.get_context());
}

/* The kind of memory at any pointer, also inside an allocation. */
inline usm::alloc get_pointer_type(const void *pointer, const context &ctx)
{
	accmem_pool_block block;

	if (!ctx.impl()->owner(pointer, &block))
		return usm::alloc::unknown;
	return detail::kind_of(block);
}

/* For kind host, the first device of the context. Throws invalid for other memory. */
inline device get_pointer_device(const void *pointer, const context &ctx)
{
	accmem_pool_block block;
	const detail::unit *u = ctx.impl()->owner(pointer, &block);

	if (!u)
		throw exception(ctx, make_error_code(errc::invalid),
				"no allocation of the context is there");
	if (detail::kind_of(block) == usm::alloc::host)
		return ctx.impl()->units()[0].device;
	return u->device;
}

} // namespace sycl
} // namespace accmem

#endif // ACCMEM_SYCL_USM_HPP
