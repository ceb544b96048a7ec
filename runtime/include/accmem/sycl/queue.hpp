/* SPDX-License-Identifier: MIT */
/* SYCL on accmem: queues. A queue has a device, and a thread for its commands. */
#ifndef ACCMEM_SYCL_QUEUE_HPP
#define ACCMEM_SYCL_QUEUE_HPP

#include <accmem/sycl/handler.hpp>

namespace accmem {
namespace sycl {
namespace info {
namespace queue {
struct context { using return_type = sycl::context; };
struct device { using return_type = sycl::device; };
} // namespace queue
} // namespace info

namespace detail {

/**
 * struct lane - the thread of a queue in one process
 * @born: generation of the process
 * @store: errors of the commands
 * @lock: protects @last
 * @last: command that was submitted last
 */
struct lane {
	explicit lane(const async_handler &handler)
		: store(std::make_shared<error_store>(handler))
	{
	}

	const unsigned int born = generation();
	const std::shared_ptr<error_store> store;
	const std::shared_ptr<detail::worker> worker =
		std::make_shared<detail::worker>();
	std::mutex lock;
	std::shared_ptr<event_state> last;

	/* In a child: keep the parent's lane, whose locks may be held, for ever. */
	static void abandon(lane *parents)
	{
		static auto *all = new std::vector<lane *>;
		common_guard guard;

		all->push_back(parents);
	}
};

class queue_impl {
public:
	queue_impl(const context &ctx, const device &dev, async_handler handler,
		   const property_list &list)
		: ctx_(ctx), device_(dev), properties_(list),
		  handler_(handler ? std::move(handler) : ctx.handler())
	{
		if (!ctx.impl()->find(dev))
			fail(errc::invalid, "the device is not in the context");
		lane_ = new lane(handler_);
	}
	queue_impl(const queue_impl &) = delete;
	queue_impl &operator=(const queue_impl &) = delete;

	/* Waits for all commands, and passes their errors to a handler. */
	~queue_impl()
	{
		lane *last = lane_;

		if (last->born != generation()) {
			lane::abandon(last);
			return;
		}
		last->worker->finish(ctx_.impl());
		if (handler_)
			report(*last->store);
		delete last;
	}

	const context &ctx() const { return ctx_; }
	const device &dev() const { return device_; }
	const property_list &properties() const { return properties_; }
	error_store &store() { return *current().store; }

	event submit(action run, const std::vector<event> &after)
	{
		lane &here = current();
		event_state::list states;

		for (const event &e : after)
			if (e.state())
				states.push_back(e.state());
		auto state = std::make_shared<event_state>(
			here.store,
			properties_.has_property<
				property::queue::enable_profiling>(),
			std::move(states));
		std::lock_guard<std::mutex> guard(here.lock);

		here.worker->submit({ std::move(run), state });
		here.last = state;
		return event(state);
	}

	void wait()
	{
		lane &here = current();
		std::shared_ptr<event_state> last;
		{
			std::lock_guard<std::mutex> guard(here.lock);

			last = here.last;
		}
		if (last)
			last->wait();
	}

private:
	/* A destructor cannot pass on what a handler throws. */
	static void report(error_store &store) noexcept
	{
		try {
			store.report();
		} catch (...) {
		}
	}
	lane &current()
	{
		lane *found = lane_;

		if (found->born == generation())
			return *found;
		lane *fresh = new lane(handler_);

		if (lane_.compare_exchange_strong(found, fresh)) {
			lane::abandon(found);
			return *fresh;
		}
		delete fresh; /* another thread has created the lane */
		return *found;
	}

	const context ctx_;
	const device device_;
	const property_list properties_;
	const async_handler handler_;
	std::atomic<lane *> lane_;
};

template <typename Selector>
using if_selector = std::enable_if_t<
	std::is_invocable_r_v<int, const Selector &, const device &>>;

} // namespace detail

class queue {
public:
	explicit queue(const property_list &list = {})
		: queue(device(), async_handler{}, list)
	{
	}
	/* A single property in braces would also convert to a list or a queue. */
	template <typename Property,
		  typename = std::enable_if_t<is_property_v<Property>>>
	explicit queue(std::initializer_list<Property> list)
		: queue(property_list(*list.begin()))
	{
	}
	explicit queue(const async_handler &handler,
		       const property_list &list = {})
		: queue(device(), handler, list)
	{
	}
	template <typename Selector, typename = detail::if_selector<Selector>>
	explicit queue(const Selector &selector, const property_list &list = {})
		: queue(device(selector), async_handler{}, list)
	{
	}
	template <typename Selector, typename = detail::if_selector<Selector>>
	queue(const Selector &selector, const async_handler &handler,
	      const property_list &list = {})
		: queue(device(selector), handler, list)
	{
	}
	explicit queue(const device &dev, const property_list &list = {})
		: queue(dev, async_handler{}, list)
	{
	}
	queue(const device &dev, const async_handler &handler,
	      const property_list &list = {})
		: queue(context::default_of(dev), dev, handler, list)
	{
	}
	template <typename Selector, typename = detail::if_selector<Selector>>
	queue(const context &ctx, const Selector &selector,
	      const property_list &list = {})
		: queue(ctx, selector, async_handler{}, list)
	{
	}
	template <typename Selector, typename = detail::if_selector<Selector>>
	queue(const context &ctx, const Selector &selector,
	      const async_handler &handler, const property_list &list = {})
		: queue(ctx, device(selector), handler, list)
	{
	}
	queue(const context &ctx, const device &dev,
	      const property_list &list = {})
		: queue(ctx, dev, async_handler{}, list)
	{
	}
	/* Throws invalid if the device is not in the context. */
	queue(const context &ctx, const device &dev,
	      const async_handler &handler, const property_list &list = {})
		: impl_(std::make_shared<detail::queue_impl>(ctx, dev, handler,
							     list))
	{
	}

	context get_context() const { return impl_->ctx(); }
	device get_device() const { return impl_->dev(); }
	backend get_backend() const noexcept { return backend::accmem; }
	bool is_in_order() const
	{
		return has_property<property::queue::in_order>();
	}
	template <typename Parameter>
	typename Parameter::return_type get_info() const
	{
		return answer(Parameter{});
	}
	template <typename Property>
	bool has_property() const noexcept
	{
		return impl_->properties().has_property<Property>();
	}
	template <typename Property>
	Property get_property() const
	{
		return impl_->properties().get_property<Property>();
	}

	void wait() { impl_->wait(); }
	void wait_and_throw()
	{
		wait();
		throw_asynchronous();
	}
	void throw_asynchronous() { impl_->store().report(); }

	template <typename Group>
	event submit(Group group)
	{
		handler h(impl_->ctx().impl());

		group(h);
		if (!h.run_)
			h.run_ = [] {};
		return impl_->submit(std::move(h.run_), std::move(h.after_));
	}

	event memcpy(void *to, const void *from, std::size_t bytes,
		     const detail::dependencies &after = {})
	{
		return impl_->submit(
			detail::copy_action(ctx(), to, from, bytes),
			after.list);
	}
	template <typename T>
	event copy(const T *from, T *to, std::size_t count,
		   const detail::dependencies &after = {})
	{
		return memcpy(to, from, detail::bytes_of(count, sizeof(T)),
			      after);
	}
	event memset(void *to, int value, std::size_t bytes,
		     const detail::dependencies &after = {})
	{
		return impl_->submit(
			detail::set_action(ctx(), to, value, bytes),
			after.list);
	}
	template <typename T>
	event fill(void *to, const T &pattern, std::size_t count,
		   const detail::dependencies &after = {})
	{
		return impl_->submit(
			detail::fill_action(ctx(), to, pattern, count),
			after.list);
	}
	event prefetch(void *pointer, std::size_t bytes,
		       const detail::dependencies &after = {})
	{
		return impl_->submit(detail::prefetch_action(ctx(), pointer,
							     bytes),
				     after.list);
	}
	event mem_advise(const void *pointer, std::size_t bytes, int advice,
			 const detail::dependencies &after = {})
	{
		return impl_->submit(detail::advise_action(ctx(), pointer,
							   bytes, advice),
				     after.list);
	}

	template <typename Name = void, typename Kernel>
	event single_task(const Kernel &kernel)
	{
		return impl_->submit(detail::action(kernel), {});
	}
	template <typename Name = void, typename Kernel>
	event single_task(const detail::dependencies &after,
			  const Kernel &kernel)
	{
		return impl_->submit(detail::action(kernel), after.list);
	}

	/*
	 * (space, kernel) or (space, events, kernel); the space may be a number or
	 * {a, b, c}.
	 */
	template <typename Name = void, typename Kernel>
	event parallel_for(range<1> space, const Kernel &kernel)
	{
		return run(space, {}, kernel);
	}
	template <typename Name = void, typename Kernel>
	event parallel_for(range<1> space, const detail::dependencies &after,
			   const Kernel &kernel)
	{
		return run(space, after, kernel);
	}
	template <typename Name = void, typename Kernel>
	event parallel_for(range<2> space, const Kernel &kernel)
	{
		return run(space, {}, kernel);
	}
	template <typename Name = void, typename Kernel>
	event parallel_for(range<2> space, const detail::dependencies &after,
			   const Kernel &kernel)
	{
		return run(space, after, kernel);
	}
	template <typename Name = void, typename Kernel>
	event parallel_for(range<3> space, const Kernel &kernel)
	{
		return run(space, {}, kernel);
	}
	template <typename Name = void, typename Kernel>
	event parallel_for(range<3> space, const detail::dependencies &after,
			   const Kernel &kernel)
	{
		return run(space, after, kernel);
	}
	template <typename Name = void, int D, typename Kernel>
	event parallel_for(nd_range<D> space, const Kernel &kernel)
	{
		return run(space, {}, kernel);
	}
	template <typename Name = void, int D, typename Kernel>
	event parallel_for(nd_range<D> space, const detail::dependencies &after,
			   const Kernel &kernel)
	{
		return run(space, after, kernel);
	}

	friend bool operator==(const queue &a, const queue &b)
	{
		return a.impl_ == b.impl_;
	}
	friend bool operator!=(const queue &a, const queue &b)
	{
		return !(a == b);
	}

	const std::shared_ptr<detail::queue_impl> &impl() const { return impl_; }

private:
	context answer(info::queue::context) const { return get_context(); }
	device answer(info::queue::device) const { return get_device(); }
	const detail::context_impl &ctx() const { return *impl_->ctx().impl(); }

	template <typename Space, typename Kernel>
	event run(const Space &space, const detail::dependencies &after,
		  const Kernel &kernel)
	{
		return impl_->submit(detail::kernel_action(space, kernel),
				     after.list);
	}

	std::shared_ptr<detail::queue_impl> impl_;
};

} // namespace sycl
} // namespace accmem

namespace std {
template <>
struct hash<accmem::sycl::queue> {
	size_t operator()(const accmem::sycl::queue &q) const
	{
		return hash<shared_ptr<accmem::sycl::detail::queue_impl>>()(
			q.impl());
	}
};
} // namespace std

#endif // ACCMEM_SYCL_QUEUE_HPP
