/* SPDX-License-Identifier: MIT */
/*
 * SYCL on accmem: commands. The functions here make a command into a function for the
 * queue's thread, and throw at once for arguments that are wrong.
 *
 * Kernels run on the host, and access memory of the device that is mapped.
 */
#ifndef ACCMEM_SYCL_HANDLER_HPP
#define ACCMEM_SYCL_HANDLER_HPP

#include <accmem/sycl/event.hpp>
#include <accmem/sycl/index.hpp>

#include <initializer_list>

namespace accmem {
namespace sycl {
namespace detail {

using action = std::function<void()>;

/* The dependencies of a command, in each form that SYCL has. */
struct dependencies {
	std::vector<event> list;

	dependencies() = default;
	dependencies(const event &e) : list{ e } {}
	dependencies(const std::vector<event> &events) : list(events) {}
	dependencies(std::initializer_list<event> events) : list(events) {}
};

/*
 * Throws invalid for a null pointer, and for a range of device addresses of the context
 * that is not inside one allocation. Other memory of the process is not checked.
 */
inline void check_range(const context_impl &ctx, const void *pointer,
			std::size_t bytes, const char *what)
{
	accmem_pool_block block;

	if (!bytes)
		return;
	if (!pointer)
		fail(errc::invalid, std::string(what) + ": null pointer");
	if (!ctx.owner(pointer, &block)) {
		if (ctx.covers(pointer))
			fail(errc::invalid, std::string(what) +
						    ": nothing is allocated "
						    "at the pointer");
		return;
	}
	const std::size_t before = static_cast<const char *>(pointer) -
				   static_cast<const char *>(block.pointer);

	/* the pool has more bytes there, which the program has not requested */
	if (before > block.length || bytes > block.length - before)
		fail(errc::invalid, std::string(what) +
					    ": beyond the end of the allocation");
}

inline action copy_action(const context_impl &ctx, void *to, const void *from,
			  std::size_t bytes)
{
	check_range(ctx, to, bytes, "copy to");
	check_range(ctx, from, bytes, "copy from");
	return [=] {
		if (bytes)
			std::memmove(to, from, bytes);
	};
}

inline action set_action(const context_impl &ctx, void *to, int value,
			 std::size_t bytes)
{
	check_range(ctx, to, bytes, "memset");
	return [=] {
		if (bytes)
			std::memset(to, value, bytes);
	};
}

inline std::size_t bytes_of(std::size_t count, std::size_t size)
{
	return count > SIZE_MAX / size ? SIZE_MAX : count * size;
}

template <typename T>
action fill_action(const context_impl &ctx, void *to, const T &pattern,
		   std::size_t count)
{
	static_assert(std::is_trivially_copyable_v<T>,
		      "a pattern is copied byte by byte");
	check_range(ctx, to, bytes_of(count, sizeof(T)), "fill");
	return [=] {
		char *next = static_cast<char *>(to);

		for (std::size_t i = 0; i < count; i++, next += sizeof(T))
			std::memcpy(next, &pattern, sizeof(T));
	};
}

/* Shared memory that a hint is about; for memory of another kind, without a pool. */
struct hinted {
	accmem_pool *pool;
	std::uint64_t address;
	std::size_t bytes;
};

/* Check a hint. Throws invalid for memory that is not the context's. */
inline hinted check_hint(const context_impl &ctx, const void *pointer,
			 std::size_t bytes, const char *what)
{
	accmem_pool_block block;

	check_range(ctx, pointer, bytes, what);
	if (!bytes)
		return {};
	if (!ctx.owner(pointer, &block))
		fail(errc::invalid, std::string(what) +
					    ": no memory of the context");
	if (block.kind != ACCMEM_KIND_SHARED)
		return {};
	return { block.pool, accmem_pool_address(block.pool, pointer), bytes };
}

/* A hint that fails is no error, because the memory stays accessible. */
inline action prefetch_action(const context_impl &ctx, const void *pointer,
			      std::size_t bytes)
{
	const hinted hint = check_hint(ctx, pointer, bytes, "prefetch");

	return [hint] {
		if (hint.pool)
			accmem_prefetch_shared(accmem_pool_context(hint.pool),
					hint.address, hint.bytes, 0);
	};
}

inline action advise_action(const context_impl &ctx, const void *pointer,
			    std::size_t bytes, int advice)
{
	const hinted hint = check_hint(ctx, pointer, bytes, "mem_advise");

	if (advice != ACCMEM_ADVICE_MOVE && advice != ACCMEM_ADVICE_STAY)
		return [] {};
	return [hint, advice] {
		if (hint.pool)
			accmem_advise_shared(accmem_pool_context(hint.pool),
				      hint.address, hint.bytes, advice);
	};
}

/* Advance to the point after @point. False: it was the last point. */
template <int D>
bool advance(id<D> &point, const range<D> &space)
{
	for (int i = D - 1; i >= 0; i--) {
		if (++point[i] < space[i])
			return true;
		point[i] = 0;
	}
	return false;
}

template <int D, typename Kernel>
action kernel_action(const range<D> &space, const Kernel &kernel)
{
	return [space, kernel] {
		id<D> point;

		if (!space.size())
			return;
		do {
			if constexpr (std::is_invocable_v<const Kernel &,
							  item<D>>)
				kernel(item<D>(point, space));
			else
				kernel(point);
		} while (advance(point, space));
	};
}

template <int D, typename Kernel>
action kernel_action(const nd_range<D> &space, const Kernel &kernel)
{
	for (int i = 0; i < D; i++)
		if (!space.get_local_range()[i] ||
		    space.get_global_range()[i] % space.get_local_range()[i])
			fail(errc::nd_range,
			     "the local range does not divide the global one");
	return [space, kernel] {
		const range<D> groups = space.get_group_range();
		const range<D> local = space.get_local_range();
		id<D> group, point;

		if (!groups.size())
			return;
		do {
			do
				kernel(nd_item<D>(group * id<D>(local) + point,
						  space));
			while (advance(point, local));
		} while (advance(group, groups));
	};
}

} // namespace detail

class handler {
public:
	/* Only for accmem itself: queue::submit() makes the object. */
	explicit handler(const std::shared_ptr<detail::context_impl> &ctx)
		: ctx_(ctx)
	{
	}
	handler(const handler &) = delete;
	handler &operator=(const handler &) = delete;

	void depends_on(const event &e) { after_.push_back(e); }
	void depends_on(const std::vector<event> &events)
	{
		after_.insert(after_.end(), events.begin(), events.end());
	}

	void memcpy(void *to, const void *from, std::size_t bytes)
	{
		set(detail::copy_action(*ctx_, to, from, bytes));
	}
	template <typename T>
	void copy(const T *from, T *to, std::size_t count)
	{
		memcpy(to, from, detail::bytes_of(count, sizeof(T)));
	}
	void memset(void *to, int value, std::size_t bytes)
	{
		set(detail::set_action(*ctx_, to, value, bytes));
	}
	template <typename T>
	void fill(void *to, const T &pattern, std::size_t count)
	{
		set(detail::fill_action(*ctx_, to, pattern, count));
	}
	void prefetch(void *pointer, std::size_t bytes)
	{
		set(detail::prefetch_action(*ctx_, pointer, bytes));
	}
	void mem_advise(const void *pointer, std::size_t bytes, int advice)
	{
		set(detail::advise_action(*ctx_, pointer, bytes, advice));
	}

	template <typename Name = void, typename Kernel>
	void single_task(const Kernel &kernel)
	{
		set(detail::action(kernel));
	}
	template <typename Task>
	void host_task(const Task &task)
	{
		set(detail::action(task));
	}

	/* The range may also be a number, or {a, b, c}. */
	template <typename Name = void, typename Kernel>
	void parallel_for(range<1> space, const Kernel &kernel)
	{
		set(detail::kernel_action(space, kernel));
	}
	template <typename Name = void, typename Kernel>
	void parallel_for(range<2> space, const Kernel &kernel)
	{
		set(detail::kernel_action(space, kernel));
	}
	template <typename Name = void, typename Kernel>
	void parallel_for(range<3> space, const Kernel &kernel)
	{
		set(detail::kernel_action(space, kernel));
	}
	template <typename Name = void, int D, typename Kernel>
	void parallel_for(nd_range<D> space, const Kernel &kernel)
	{
		set(detail::kernel_action(space, kernel));
	}

private:
	friend class queue;

	void set(detail::action run)
	{
		if (run_)
			detail::fail(errc::invalid,
				     "a command group has one command");
		run_ = std::move(run);
	}

	const std::shared_ptr<detail::context_impl> ctx_;
	std::vector<event> after_;
	detail::action run_;
};

} // namespace sycl
} // namespace accmem

#endif // ACCMEM_SYCL_HANDLER_HPP
