/* SPDX-License-Identifier: MIT */
/*
 * SYCL on accmem: contexts. A context has a context of libaccmem and a pool on each of
 * its devices. An allocation belongs to the context that it was made in, and to no
 * other.
 */
#ifndef ACCMEM_SYCL_CONTEXT_HPP
#define ACCMEM_SYCL_CONTEXT_HPP

#include <accmem/sycl/device.hpp>

#include <map>
#include <optional>

namespace accmem {
namespace sycl {
namespace info {
namespace context {
struct platform { using return_type = sycl::platform; };
struct devices { using return_type = std::vector<sycl::device>; };
} // namespace context
} // namespace info

namespace usm {
enum class alloc { host, device, shared, unknown };
}

namespace detail {

/* A device that a context has open. */
struct unit {
	sycl::device device;
	std::unique_ptr<accmem_context, void (*)(accmem_context *)> ctx;
	std::unique_ptr<accmem_pool, void (*)(accmem_pool *)> pool;
};

inline unit open_unit(const device &dev)
{
	const std::string &path = dev.impl()->path();
	accmem_context *ctx;
	accmem_pool *pool;
	device_facts facts;
	int ret = accmem_open(path.c_str(), &ctx);

	if (ret)
		fail_errno(errc::runtime, path, ret);
	ret = ask_context(ctx, facts);
	if (!ret)
		ret = accmem_pool_create(ctx, nullptr, &pool);
	if (ret) {
		accmem_close(ctx);
		fail_errno(errc::runtime, path, ret);
	}
	dev.impl()->learn(facts);
	return { dev, { ctx, accmem_close }, { pool, accmem_pool_destroy } };
}

inline std::uint32_t kernel_kind(usm::alloc kind)
{
	if (kind == usm::alloc::host)
		return ACCMEM_KIND_HOST;
	return kind == usm::alloc::shared ? ACCMEM_KIND_SHARED :
					    ACCMEM_KIND_DEVICE;
}

inline usm::alloc kind_of(const accmem_pool_block &block)
{
	switch (block.kind) {
	case ACCMEM_KIND_HOST:
		return usm::alloc::host;
	case ACCMEM_KIND_SHARED:
		return usm::alloc::shared;
	default:
		return usm::alloc::device;
	}
}

inline aspect aspect_of(usm::alloc kind)
{
	if (kind == usm::alloc::host)
		return aspect::usm_host_allocations;
	return kind == usm::alloc::shared ? aspect::usm_shared_allocations :
					    aspect::usm_device_allocations;
}

/**
 * class context_impl - the devices of a context
 *
 * The object does not change after construction, and so needs no lock; pools have locks
 * of their own.
 */
class context_impl {
public:
	explicit context_impl(const std::vector<device> &devices)
	{
		if (devices.empty())
			fail(errc::invalid, "a context of no device");
		for (const device &dev : devices)
			if (!find(dev))
				units_.push_back(open_unit(dev));
	}

	const std::vector<unit> &units() const { return units_; }

	const unit *find(const device &dev) const
	{
		for (const unit &u : units_)
			if (u.device == dev)
				return &u;
		return nullptr;
	}

	/* The device with the allocation that @pointer points into, or NULL. */
	const unit *owner(const void *pointer, accmem_pool_block *block) const
	{
		for (const unit &u : units_)
			if (!accmem_pool_lookup(u.pool.get(), pointer, block))
				return &u;
		return nullptr;
	}

	/* Is @pointer in the addresses of a device, allocated or not? */
	bool covers(const void *pointer) const
	{
		for (const unit &u : units_)
			if (accmem_pool_address(u.pool.get(), pointer))
				return true;
		return false;
	}

private:
	std::vector<unit> units_;
};

} // namespace detail

class context {
public:
	explicit context(const property_list &list = {})
		: context(device(), list)
	{
	}
	explicit context(async_handler handler, const property_list &list = {})
		: context(device(), std::move(handler), list)
	{
	}
	explicit context(const device &dev, const property_list &list = {})
		: context(std::vector<device>{ dev }, list)
	{
	}
	context(const device &dev, async_handler handler,
		const property_list &list = {})
		: context(std::vector<device>{ dev }, std::move(handler), list)
	{
	}
	explicit context(const platform &plt, const property_list &list = {})
		: context(plt.get_devices(), list)
	{
	}
	context(const platform &plt, async_handler handler,
		const property_list &list = {})
		: context(plt.get_devices(), std::move(handler), list)
	{
	}
	/* Throws invalid for an empty list, runtime for a device that cannot be opened. */
	explicit context(const std::vector<device> &devices,
			 const property_list &list = {})
		: context(devices, async_handler{}, list)
	{
	}
	context(const std::vector<device> &devices, async_handler handler,
		const property_list & = {})
		: impl_(std::make_shared<detail::context_impl>(devices)),
		  handler_(std::make_shared<async_handler>(std::move(handler)))
	{
	}

	std::vector<device> get_devices() const
	{
		std::vector<device> list;

		for (const detail::unit &u : impl_->units())
			list.push_back(u.device);
		return list;
	}
	platform get_platform() const { return {}; }
	template <typename Parameter>
	typename Parameter::return_type get_info() const
	{
		return answer(Parameter{});
	}
	backend get_backend() const noexcept { return backend::accmem; }

	/*
	 * Extension of accmem: the pool of a device, for calls of accmem_pool.h; NULL if
	 * the context does not have the device.
	 */
	accmem_pool *get_pool(const device &dev) const
	{
		const detail::unit *u = impl_->find(dev);

		return u ? u->pool.get() : nullptr;
	}

	friend bool operator==(const context &a, const context &b)
	{
		return a.impl_ == b.impl_;
	}
	friend bool operator!=(const context &a, const context &b)
	{
		return !(a == b);
	}

	const std::shared_ptr<detail::context_impl> &impl() const
	{
		return impl_;
	}
	const async_handler &handler() const { return *handler_; }

	/* The context of queues that were given none. Each device has one, until exit. */
	static context default_of(const device &dev);

private:
	friend class exception;

	platform answer(info::context::platform) const
	{
		return get_platform();
	}
	std::vector<device> answer(info::context::devices) const
	{
		return get_devices();
	}

	explicit context(std::shared_ptr<detail::context_impl> impl)
		: impl_(std::move(impl)),
		  handler_(std::make_shared<async_handler>())
	{
	}

	std::shared_ptr<detail::context_impl> impl_;
	std::shared_ptr<async_handler> handler_;
};

namespace detail {

/*
 * The table is never destroyed, so that destructors of static objects may use it. Its
 * contexts are released at exit.
 */
class default_contexts {
public:
	static std::optional<context> find(const std::string &path)
	{
		common_guard guard;
		contexts &table = get();
		auto found = table.find(path);

		if (found == table.end())
			return {};
		return found->second;
	}

	/* The context that the table has already, or @fresh. */
	static context add(const std::string &path, const context &fresh)
	{
		common_guard guard;

		return get().emplace(path, fresh).first->second;
	}

private:
	using contexts = std::map<std::string, context>;

	static void give_up()
	{
		contexts ended; /* destroyed without the lock */
		common_guard guard;

		ended.swap(*table_);
	}

	/*
	 * The caller holds the common lock. The first caller may be the
	 * constructor of a static object in a file without this header, which
	 * runs before the constructors of this header's objects.
	 */
	static contexts &get()
	{
		if (!table_) {
			table_ = new contexts;
			std::atexit(give_up);
		}
		return *table_;
	}

	/* under the common lock */
	static inline contexts *table_ = nullptr;
};

} // namespace detail

inline context context::default_of(const device &dev)
{
	const std::string &path = dev.impl()->path();
	std::optional<context> found = detail::default_contexts::find(path);

	return found ? *found :
		       detail::default_contexts::add(path, context(dev));
}

inline exception::exception(const context &ctx, std::error_code code,
			    const std::string &what)
	: exception(ctx.impl(), code, &what)
{
}
inline exception::exception(const context &ctx, std::error_code code,
			    const char *what)
	: exception(ctx, code, std::string(what))
{
}
inline exception::exception(const context &ctx, std::error_code code)
	: exception(ctx.impl(), code, nullptr)
{
}
inline exception::exception(const context &ctx, int value,
			    const std::error_category &category,
			    const std::string &what)
	: exception(ctx, std::error_code(value, category), what)
{
}
inline exception::exception(const context &ctx, int value,
			    const std::error_category &category,
			    const char *what)
	: exception(ctx, std::error_code(value, category), what)
{
}
inline exception::exception(const context &ctx, int value,
			    const std::error_category &category)
	: exception(ctx, std::error_code(value, category))
{
}

inline context exception::get_context() const
{
	if (!context_)
		detail::fail(errc::invalid, "the exception has no context");
	return context(context_);
}

} // namespace sycl
} // namespace accmem

namespace std {
template <>
struct hash<accmem::sycl::context> {
	size_t operator()(const accmem::sycl::context &ctx) const
	{
		return hash<shared_ptr<accmem::sycl::detail::context_impl>>()(
			ctx.impl());
	}
};
} // namespace std

#endif // ACCMEM_SYCL_CONTEXT_HPP
