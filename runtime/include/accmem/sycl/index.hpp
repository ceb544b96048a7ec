/* SPDX-License-Identifier: MIT */
/* SYCL on accmem: index spaces of kernels, and the points in them. */
#ifndef ACCMEM_SYCL_INDEX_HPP
#define ACCMEM_SYCL_INDEX_HPP

#include <array>
#include <cstddef>
#include <type_traits>

namespace accmem {
namespace sycl {
namespace detail {

#define ACCMEM_SYCL_OPERATOR(op)                                              \
	friend Self operator op(const Self &a, const Self &b)                 \
	{                                                                     \
		Self result = a;                                              \
		for (int i = 0; i < D; i++)                                   \
			result.values_[i] = a.values_[i] op b.values_[i];     \
		return result;                                                \
	}                                                                     \
	template <typename T,                                                 \
		  typename = std::enable_if_t<std::is_integral_v<T>>>         \
	friend Self operator op(const Self &a, T b)                           \
	{                                                                     \
		Self result = a;                                              \
		for (int i = 0; i < D; i++)                                   \
			result.values_[i] = a.values_[i] op std::size_t(b);   \
		return result;                                                \
	}                                                                     \
	template <typename T,                                                 \
		  typename = std::enable_if_t<std::is_integral_v<T>>>         \
	friend Self operator op(T a, const Self &b)                           \
	{                                                                     \
		Self result = b;                                              \
		for (int i = 0; i < D; i++)                                   \
			result.values_[i] = std::size_t(a) op b.values_[i];   \
		return result;                                                \
	}                                                                     \
	friend Self &operator op##=(Self & a, const Self &b)                  \
	{                                                                     \
		return a = a op b;                                            \
	}                                                                     \
	template <typename T,                                                 \
		  typename = std::enable_if_t<std::is_integral_v<T>>>         \
	friend Self &operator op##=(Self & a, T b)                            \
	{                                                                     \
		return a = a op b;                                            \
	}

/* Common members of id and range. The right-most dimension varies fastest. */
template <typename Self, int D>
class coordinates {
	static_assert(D >= 1 && D <= 3, "one to three dimensions");

public:
	static constexpr int dimensions = D;

	std::size_t get(int dimension) const { return values_[dimension]; }
	std::size_t &operator[](int dimension) { return values_[dimension]; }
	std::size_t operator[](int dimension) const
	{
		return values_[dimension];
	}

	ACCMEM_SYCL_OPERATOR(+)
	ACCMEM_SYCL_OPERATOR(-)
	ACCMEM_SYCL_OPERATOR(*)
	ACCMEM_SYCL_OPERATOR(/)
	ACCMEM_SYCL_OPERATOR(%)

	friend bool operator==(const Self &a, const Self &b)
	{
		return a.values_ == b.values_;
	}
	friend bool operator!=(const Self &a, const Self &b)
	{
		return !(a == b);
	}

protected:
	std::array<std::size_t, D> values_{};
};

#undef ACCMEM_SYCL_OPERATOR

/*
 * A point of one dimension converts to a number. The conversion is in a class of its own,
 * since the result of a template could not be converted again, to the type of a subscript
 * for example.
 */
template <typename Self, int D>
class number {};

template <typename Self>
class number<Self, 1> {
public:
	operator std::size_t() const
	{
		return static_cast<const Self &>(*this)[0];
	}
};

} // namespace detail

template <int D = 1>
class range : public detail::coordinates<range<D>, D> {
	friend class detail::coordinates<range<D>, D>;

public:
	range() = default;
	template <int E = D, typename = std::enable_if_t<E == 1>>
	range(std::size_t a)
	{
		this->values_[0] = a;
	}
	template <int E = D, typename = std::enable_if_t<E == 2>>
	range(std::size_t a, std::size_t b)
	{
		this->values_[0] = a;
		this->values_[1] = b;
	}
	template <int E = D, typename = std::enable_if_t<E == 3>>
	range(std::size_t a, std::size_t b, std::size_t c)
	{
		this->values_[0] = a;
		this->values_[1] = b;
		this->values_[2] = c;
	}

	std::size_t size() const
	{
		std::size_t product = 1;

		for (std::size_t value : this->values_)
			product *= value;
		return product;
	}
};

range(std::size_t) -> range<1>;
range(std::size_t, std::size_t) -> range<2>;
range(std::size_t, std::size_t, std::size_t) -> range<3>;

template <int D = 1>
class item;

template <int D = 1>
class id : public detail::coordinates<id<D>, D>,
	   public detail::number<id<D>, D> {
	friend class detail::coordinates<id<D>, D>;

public:
	id() = default;
	template <int E = D, typename = std::enable_if_t<E == 1>>
	id(std::size_t a)
	{
		this->values_[0] = a;
	}
	template <int E = D, typename = std::enable_if_t<E == 2>>
	id(std::size_t a, std::size_t b)
	{
		this->values_[0] = a;
		this->values_[1] = b;
	}
	template <int E = D, typename = std::enable_if_t<E == 3>>
	id(std::size_t a, std::size_t b, std::size_t c)
	{
		this->values_[0] = a;
		this->values_[1] = b;
		this->values_[2] = c;
	}
	id(const range<D> &r)
	{
		for (int i = 0; i < D; i++)
			this->values_[i] = r[i];
	}
	id(const item<D> &it);

	/* With an integer, since an id<1> and an integer convert to each other. */
	template <typename T,
		  typename = std::enable_if_t<D == 1 && std::is_integral_v<T>>>
	friend bool operator==(const id &a, T b)
	{
		return a[0] == std::size_t(b);
	}
	template <typename T,
		  typename = std::enable_if_t<D == 1 && std::is_integral_v<T>>>
	friend bool operator!=(const id &a, T b)
	{
		return a[0] != std::size_t(b);
	}
	template <typename T,
		  typename = std::enable_if_t<D == 1 && std::is_integral_v<T>>>
	friend bool operator==(T a, const id &b)
	{
		return b[0] == std::size_t(a);
	}
	template <typename T,
		  typename = std::enable_if_t<D == 1 && std::is_integral_v<T>>>
	friend bool operator!=(T a, const id &b)
	{
		return b[0] != std::size_t(a);
	}
};

id(std::size_t) -> id<1>;
id(std::size_t, std::size_t) -> id<2>;
id(std::size_t, std::size_t, std::size_t) -> id<3>;

namespace detail {

template <int D>
std::size_t linear(const id<D> &point, const range<D> &space)
{
	std::size_t result = 0;

	for (int i = 0; i < D; i++)
		result = result * space[i] + point[i];
	return result;
}

template <int D>
id<D> from_linear(std::size_t number, const range<D> &space)
{
	id<D> point;

	for (int i = D - 1; i >= 0; i--) {
		point[i] = number % space[i];
		number /= space[i];
	}
	return point;
}

} // namespace detail

template <int D>
class item : public detail::number<item<D>, D> {
public:
	static constexpr int dimensions = D;

	/* Only for accmem itself. */
	item(const id<D> &point, const range<D> &space)
		: point_(point), space_(space)
	{
	}

	id<D> get_id() const { return point_; }
	std::size_t get_id(int dimension) const { return point_[dimension]; }
	std::size_t operator[](int dimension) const
	{
		return point_[dimension];
	}
	range<D> get_range() const { return space_; }
	std::size_t get_range(int dimension) const { return space_[dimension]; }
	std::size_t get_linear_id() const
	{
		return detail::linear(point_, space_);
	}

private:
	id<D> point_;
	range<D> space_;
};

template <int D>
id<D>::id(const item<D> &it) : id(it.get_id())
{
}

template <int D = 1>
class nd_range {
public:
	nd_range(range<D> global, range<D> local)
		: global_(global), local_(local)
	{
	}

	range<D> get_global_range() const { return global_; }
	range<D> get_local_range() const { return local_; }
	range<D> get_group_range() const { return global_ / local_; }

private:
	range<D> global_, local_;
};

/* A group, as one of its items sees it. */
template <int D = 1>
class group {
public:
	using id_type = id<D>;
	using range_type = range<D>;
	using linear_id_type = std::size_t;
	static constexpr int dimensions = D;

	/* Only for accmem itself: the group of the item at @point. */
	group(const id<D> &point, const nd_range<D> &space)
		: point_(point), space_(space)
	{
	}

	id<D> get_group_id() const
	{
		return point_ / id<D>(space_.get_local_range());
	}
	std::size_t get_group_id(int d) const { return get_group_id()[d]; }
	std::size_t operator[](int d) const { return get_group_id()[d]; }
	std::size_t get_group_linear_id() const
	{
		return detail::linear(get_group_id(), get_group_range());
	}
	range<D> get_group_range() const { return space_.get_group_range(); }
	std::size_t get_group_range(int d) const { return get_group_range()[d]; }
	std::size_t get_group_linear_range() const
	{
		return get_group_range().size();
	}

	id<D> get_local_id() const
	{
		return point_ % id<D>(space_.get_local_range());
	}
	std::size_t get_local_id(int d) const { return get_local_id()[d]; }
	std::size_t get_local_linear_id() const
	{
		return detail::linear(get_local_id(), get_local_range());
	}
	range<D> get_local_range() const { return space_.get_local_range(); }
	std::size_t get_local_range(int d) const { return get_local_range()[d]; }
	std::size_t get_local_linear_range() const
	{
		return get_local_range().size();
	}
	range<D> get_max_local_range() const { return get_local_range(); }
	bool leader() const { return get_local_linear_id() == 0; }

	/* Are both the same group? */
	friend bool operator==(const group &a, const group &b)
	{
		return a.get_group_id() == b.get_group_id() &&
		       a.get_group_range() == b.get_group_range() &&
		       a.get_local_range() == b.get_local_range();
	}
	friend bool operator!=(const group &a, const group &b)
	{
		return !(a == b);
	}

private:
	id<D> point_;
	nd_range<D> space_;
};

/* The items of a group run one after the other, so there are no barriers. */
template <int D = 1>
class nd_item {
public:
	static constexpr int dimensions = D;

	/* Only for accmem itself. */
	nd_item(const id<D> &point, const nd_range<D> &space)
		: point_(point), space_(space)
	{
	}

	id<D> get_global_id() const { return point_; }
	std::size_t get_global_id(int d) const { return point_[d]; }
	std::size_t get_global_linear_id() const
	{
		return detail::linear(point_, space_.get_global_range());
	}
	id<D> get_local_id() const { return get_group().get_local_id(); }
	std::size_t get_local_id(int d) const { return get_local_id()[d]; }
	std::size_t get_local_linear_id() const
	{
		return get_group().get_local_linear_id();
	}
	group<D> get_group() const { return { point_, space_ }; }
	std::size_t get_group(int d) const { return get_group()[d]; }
	std::size_t get_group_linear_id() const
	{
		return get_group().get_group_linear_id();
	}
	range<D> get_group_range() const { return space_.get_group_range(); }
	std::size_t get_group_range(int d) const { return get_group_range()[d]; }
	range<D> get_global_range() const { return space_.get_global_range(); }
	std::size_t get_global_range(int d) const
	{
		return get_global_range()[d];
	}
	range<D> get_local_range() const { return space_.get_local_range(); }
	std::size_t get_local_range(int d) const { return get_local_range()[d]; }
	nd_range<D> get_nd_range() const { return space_; }

private:
	id<D> point_;
	nd_range<D> space_;
};

} // namespace sycl
} // namespace accmem

#endif // ACCMEM_SYCL_INDEX_HPP
