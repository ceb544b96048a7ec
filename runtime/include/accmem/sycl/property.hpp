/* SPDX-License-Identifier: MIT */
/*
 * SYCL on accmem: property_list. Every call with a list accepts all properties. Queues
 * use theirs; allocations have no property with an effect.
 */
#ifndef ACCMEM_SYCL_PROPERTY_HPP
#define ACCMEM_SYCL_PROPERTY_HPP

#include <accmem/sycl/exception.hpp>

#include <any>
#include <type_traits>
#include <utility>

namespace accmem {
namespace sycl {

template <typename T>
struct is_property : std::false_type {};
template <typename T>
inline constexpr bool is_property_v = is_property<T>::value;

template <typename Property, typename Object>
struct is_property_of : std::false_type {};
template <typename Property, typename Object>
inline constexpr bool is_property_of_v =
	is_property_of<Property, Object>::value;

class queue;

namespace property {
namespace queue {
class in_order {};
class enable_profiling {};
} // namespace queue
} // namespace property

template <>
struct is_property<property::queue::in_order> : std::true_type {};
template <>
struct is_property<property::queue::enable_profiling> : std::true_type {};
template <>
struct is_property_of<property::queue::in_order, queue> : std::true_type {};
template <>
struct is_property_of<property::queue::enable_profiling, queue>
	: std::true_type {};

class property_list {
public:
	template <typename... Properties,
		  typename = std::enable_if_t<
			  (is_property_v<std::decay_t<Properties>> && ...)>>
	property_list(Properties... properties)
	{
		(list_.emplace_back(std::move(properties)), ...);
	}

	template <typename Property>
	bool has_property() const noexcept
	{
		return find<Property>() != nullptr;
	}

	template <typename Property>
	Property get_property() const
	{
		const Property *found = find<Property>();

		if (!found)
			detail::fail(errc::invalid,
				     "the list has no such property");
		return *found;
	}

private:
	template <typename Property>
	const Property *find() const noexcept
	{
		for (const std::any &entry : list_)
			if (const auto *p = std::any_cast<Property>(&entry))
				return p;
		return nullptr;
	}

	std::vector<std::any> list_;
};

} // namespace sycl
} // namespace accmem

#endif // ACCMEM_SYCL_PROPERTY_HPP
