/* SPDX-License-Identifier: MIT */
/* SYCL on accmem: usm_allocator, an Allocator of the C++ library. Rows S10 to S13. */
#ifndef ACCMEM_SYCL_USM_ALLOCATOR_HPP
#define ACCMEM_SYCL_USM_ALLOCATOR_HPP

#include <accmem/sycl/usm.hpp>

namespace accmem {
namespace sycl {

/* Not for usm::alloc::device: the host must be able to use an Allocator's memory. */
template <typename T, usm::alloc Kind, std::size_t Alignment = 0>
class usm_allocator;

namespace detail {

template <typename T, usm::alloc Kind, std::size_t Alignment>
class basic_allocator {
	static_assert(!(Alignment & (Alignment - 1)),
		      "an alignment is a power of two");

public:
	using value_type = T;
	using propagate_on_container_copy_assignment = std::true_type;
	using propagate_on_container_move_assignment = std::true_type;
	using propagate_on_container_swap = std::true_type;

	template <typename U>
	struct rebind {
		using other = usm_allocator<U, Kind, Alignment>;
	};

	/*
	 * Throws invalid if the device is not in the context (S12), and
	 * feature_not_supported if the device lacks the kind; for kind host, if
	 * all devices of the context lack it (S13).
	 */
	basic_allocator(const context &ctx, const device &dev,
			const property_list & = {})
		: ctx_(ctx), device_(dev)
	{
		if (!ctx.impl()->find(dev))
			fail(errc::invalid, "the device is not in the context");
		check_kind(Kind, dev, *ctx.impl());
	}
	basic_allocator(const queue &q, const property_list &list = {})
		: basic_allocator(q.get_context(), q.get_device(), list)
	{
	}
	basic_allocator(const basic_allocator &) noexcept = default;
	basic_allocator &operator=(const basic_allocator &) noexcept = default;
	template <typename U>
	basic_allocator(
		const basic_allocator<U, Kind, Alignment> &other) noexcept
		: ctx_(other.ctx_), device_(other.device_)
	{
	}

	/* Throws memory_allocation. */
	T *allocate(std::size_t count)
	{
		T *memory = sycl::aligned_alloc<T>(Alignment, count, device_,
						   ctx_, Kind);

		if (!memory)
			throw exception(ctx_,
					make_error_code(errc::memory_allocation),
					accmem_last_error());
		return memory;
	}

	void deallocate(T *memory, std::size_t) { sycl::free(memory, ctx_); }

	template <typename U, usm::alloc OtherKind, std::size_t OtherAlignment>
	bool equals(const basic_allocator<U, OtherKind, OtherAlignment> &other)
		const noexcept
	{
		return Kind == OtherKind && Alignment == OtherAlignment &&
		       ctx_ == other.ctx_ && device_ == other.device_;
	}

private:
	template <typename, usm::alloc, std::size_t>
	friend class basic_allocator;

	context ctx_;
	device device_;
};

} // namespace detail

template <typename T, std::size_t Alignment>
class usm_allocator<T, usm::alloc::host, Alignment>
	: public detail::basic_allocator<T, usm::alloc::host, Alignment> {
public:
	using detail::basic_allocator<T, usm::alloc::host,
				      Alignment>::basic_allocator;
};

template <typename T, std::size_t Alignment>
class usm_allocator<T, usm::alloc::shared, Alignment>
	: public detail::basic_allocator<T, usm::alloc::shared, Alignment> {
public:
	using detail::basic_allocator<T, usm::alloc::shared,
				      Alignment>::basic_allocator;
};

/* Equal if kind, alignment, context and device are equal (S15). */
template <typename T, usm::alloc KindT, std::size_t AlignmentT, typename U,
	  usm::alloc KindU, std::size_t AlignmentU>
bool operator==(const usm_allocator<T, KindT, AlignmentT> &a,
		const usm_allocator<U, KindU, AlignmentU> &b) noexcept
{
	return a.equals(b);
}

template <typename T, usm::alloc KindT, std::size_t AlignmentT, typename U,
	  usm::alloc KindU, std::size_t AlignmentU>
bool operator!=(const usm_allocator<T, KindT, AlignmentT> &a,
		const usm_allocator<U, KindU, AlignmentU> &b) noexcept
{
	return !a.equals(b);
}

} // namespace sycl
} // namespace accmem

#endif // ACCMEM_SYCL_USM_ALLOCATOR_HPP
