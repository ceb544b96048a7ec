/* SPDX-License-Identifier: MIT */
/* SYCL on accmem: error codes, exceptions, and the list of a queue's exceptions. */
#ifndef ACCMEM_SYCL_EXCEPTION_HPP
#define ACCMEM_SYCL_EXCEPTION_HPP

#include <accmem_pool.h>

#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace accmem {
namespace sycl {

class context;

namespace detail {
class context_impl;
}

enum class errc : unsigned int {
	success = 0,
	runtime = 1,
	kernel = 2,
	accessor = 3,
	nd_range = 4,
	event = 5,
	kernel_argument = 6,
	build = 7,
	invalid = 8,
	memory_allocation = 9,
	platform = 10,
	profiling = 11,
	feature_not_supported = 12,
	kernel_not_supported = 13,
	backend_mismatch = 14,
};

} // namespace sycl
} // namespace accmem

namespace std {
template <>
struct is_error_code_enum<accmem::sycl::errc> : true_type {};
} // namespace std

namespace accmem {
namespace sycl {
namespace detail {

class category : public std::error_category {
public:
	const char *name() const noexcept override { return "sycl"; }

	std::string message(int value) const override
	{
		static const char *const texts[] = {
			"success",
			"runtime error",
			"kernel error",
			"accessor error",
			"nd_range error",
			"event error",
			"kernel argument error",
			"build error",
			"invalid argument",
			"memory allocation failed",
			"platform error",
			"profiling error",
			"feature not supported",
			"kernel not supported",
			"backend mismatch",
		};
		const int count = sizeof(texts) / sizeof(texts[0]);

		return value >= 0 && value < count ? texts[value] :
						     "unknown error";
	}
};

} // namespace detail

inline const std::error_category &sycl_category() noexcept
{
	static const detail::category instance;

	return instance;
}

inline std::error_code make_error_code(errc code) noexcept
{
	return { static_cast<int>(code), sycl_category() };
}

class exception : public virtual std::exception {
public:
	exception(std::error_code code, const std::string &what)
		: exception(nullptr, code, &what)
	{
	}
	exception(std::error_code code, const char *what)
		: exception(code, std::string(what))
	{
	}
	explicit exception(std::error_code code)
		: exception(nullptr, code, nullptr)
	{
	}
	exception(int value, const std::error_category &category,
		  const std::string &what)
		: exception(std::error_code(value, category), what)
	{
	}
	exception(int value, const std::error_category &category,
		  const char *what)
		: exception(std::error_code(value, category), what)
	{
	}
	exception(int value, const std::error_category &category)
		: exception(std::error_code(value, category))
	{
	}
	exception(const context &ctx, std::error_code code,
		  const std::string &what);
	exception(const context &ctx, std::error_code code, const char *what);
	exception(const context &ctx, std::error_code code);
	exception(const context &ctx, int value,
		  const std::error_category &category, const std::string &what);
	exception(const context &ctx, int value,
		  const std::error_category &category, const char *what);
	exception(const context &ctx, int value,
		  const std::error_category &category);

	const std::error_code &code() const noexcept { return code_; }
	const std::error_category &category() const noexcept
	{
		return code_.category();
	}
	const char *what() const noexcept override { return what_->c_str(); }
	bool has_context() const noexcept { return context_ != nullptr; }
	context get_context() const;

private:
	/* A copy does not throw, because the text is shared. */
	exception(std::shared_ptr<detail::context_impl> ctx,
		  std::error_code code, const std::string *what)
		: code_(code), what_(std::make_shared<const std::string>(
				       what ? *what : code.message())),
		  context_(std::move(ctx))
	{
	}

	std::error_code code_;
	std::shared_ptr<const std::string> what_;
	std::shared_ptr<detail::context_impl> context_;
};

/* The exceptions of a queue's commands. */
class exception_list {
public:
	using value_type = std::exception_ptr;
	using reference = value_type &;
	using const_reference = const value_type &;
	using size_type = std::size_t;
	using iterator = std::vector<std::exception_ptr>::const_iterator;
	using const_iterator = iterator;

	exception_list() = default;
	explicit exception_list(std::vector<std::exception_ptr> list)
		: list_(std::move(list))
	{
	}

	size_type size() const { return list_.size(); }
	iterator begin() const { return list_.begin(); }
	iterator end() const { return list_.end(); }

private:
	std::vector<std::exception_ptr> list_;
};

using async_handler = std::function<void(exception_list)>;

namespace detail {

[[noreturn]] inline void fail(errc code, const std::string &what)
{
	throw exception(make_error_code(code), what);
}

/* @error is a negative errno value. accmem_last_error() may add to the text. */
[[noreturn]] inline void fail_errno(errc code, const std::string &what,
				    int error)
{
	fail(code, what + ": " + std::strerror(-error));
}

} // namespace detail
} // namespace sycl
} // namespace accmem

#endif // ACCMEM_SYCL_EXCEPTION_HPP
