/* SPDX-License-Identifier: MIT */
/*
 * SYCL on accmem: devices, their platform, and selectors.
 *
 * A device is a node: /dev/accmemN, or the node that $ACCMEM_DEVICE names, which is the
 * default device then. Two device objects are equal if they have the same node. All
 * devices are of the type that $ACCMEM_SYCL_DEVICE_TYPE names, by default accelerators.
 */
#ifndef ACCMEM_SYCL_DEVICE_HPP
#define ACCMEM_SYCL_DEVICE_HPP

#include <accmem/sycl/fork.hpp>
#include <accmem/sycl/index.hpp>
#include <accmem/sycl/property.hpp>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <dirent.h>

namespace accmem {
namespace sycl {

enum class aspect {
	cpu,
	gpu,
	accelerator,
	custom,
	emulated,
	host_debuggable,
	fp16,
	fp64,
	atomic64,
	image,
	online_compiler,
	online_linker,
	queue_profiling,
	usm_device_allocations,
	usm_host_allocations,
	usm_atomic_host_allocations,
	usm_shared_allocations,
	usm_atomic_shared_allocations,
	usm_system_allocations,
};

enum class backend { accmem };

class platform;

namespace info {

enum class device_type { cpu, gpu, accelerator, custom, automatic, host, all };

enum class local_mem_type { none, local, global };

namespace platform {
struct name { using return_type = std::string; };
struct vendor { using return_type = std::string; };
struct version { using return_type = std::string; };
struct profile { using return_type = std::string; };
} // namespace platform

namespace device {
struct device_type { using return_type = info::device_type; };
struct name { using return_type = std::string; };
struct vendor { using return_type = std::string; };
struct version { using return_type = std::string; };
struct driver_version { using return_type = std::string; };
struct global_mem_size { using return_type = std::uint64_t; };
struct max_mem_alloc_size { using return_type = std::uint64_t; };
struct max_compute_units { using return_type = std::uint32_t; };
struct max_work_item_dimensions { using return_type = std::uint32_t; };
struct max_work_group_size { using return_type = std::size_t; };
template <int D = 3>
struct max_work_item_sizes { using return_type = sycl::range<D>; };
struct max_num_sub_groups { using return_type = std::uint32_t; };
struct sub_group_sizes { using return_type = std::vector<std::size_t>; };
struct local_mem_size { using return_type = std::uint64_t; };
struct local_mem_type { using return_type = info::local_mem_type; };
struct global_mem_cache_size { using return_type = std::uint64_t; };
struct mem_base_addr_align { using return_type = std::uint32_t; };
struct max_clock_frequency { using return_type = std::uint32_t; };
struct partition_max_sub_devices { using return_type = std::uint32_t; };
struct profiling_timer_resolution { using return_type = std::size_t; };
struct error_correction_support { using return_type = bool; };
struct vendor_id { using return_type = std::uint32_t; };
struct platform { using return_type = sycl::platform; };
struct is_available { using return_type = bool; };
struct aspects { using return_type = std::vector<sycl::aspect>; };
struct usm_device_allocations { using return_type = bool; };
struct usm_host_allocations { using return_type = bool; };
struct usm_shared_allocations { using return_type = bool; };
} // namespace device

} // namespace info

namespace detail {

/**
 * struct device_facts - constant properties of a device
 * @features: enum accmem_feature bits
 * @capacity: bytes of all carveouts
 * @largest: bytes of the largest carveout; no allocation has more
 */
struct device_facts {
	std::uint64_t features = 0;
	std::uint64_t capacity = 0;
	std::uint64_t largest = 0;
};

/* Query a device through an open context. */
inline int ask_context(accmem_context *ctx, device_facts &facts)
{
	accmem_info info{};

	info.nr_carveouts = 1;
	for (std::uint32_t i = 0; i < info.nr_carveouts; i++) {
		if (int ret = accmem_get_info(ctx, i, &info))
			return ret;
		facts.features |= info.features;
		facts.capacity += info.capacity;
		facts.largest = std::max<std::uint64_t>(facts.largest,
							info.capacity);
	}
	return 0;
}

/* Query a device through a context that is opened for the query only. */
inline device_facts ask_device(const std::string &path)
{
	accmem_context *ctx;
	device_facts facts;
	int ret = accmem_open(path.c_str(), &ctx);

	if (ret)
		fail_errno(errc::runtime, path, ret);
	ret = ask_context(ctx, facts);
	accmem_close(ctx);
	if (ret)
		fail_errno(errc::runtime, path, ret);
	return facts;
}

/**
 * class device_impl - a node
 *
 * Constant properties of the device are queried when they are first needed.
 */
class device_impl {
public:
	explicit device_impl(std::string path) : path_(std::move(path)) {}

	const std::string &path() const { return path_; }
	std::uint64_t features() { return ask().features; }
	std::uint64_t capacity() { return ask().capacity; }
	std::uint64_t largest() { return ask().largest; }

	/* @facts are those of a context that was opened for another reason. */
	void learn(const device_facts &facts)
	{
		common_guard guard;

		facts_ = facts;
		known_ = true;
	}

private:
	bool look_up(device_facts &facts)
	{
		common_guard guard;

		facts = facts_;
		return known_;
	}

	device_facts ask()
	{
		device_facts facts;

		if (!look_up(facts)) {
			facts = ask_device(path_);
			learn(facts);
		}
		return facts;
	}

	const std::string path_;
	/* under the common lock */
	bool known_ = false;
	device_facts facts_;
};

/* accmem_open() ignores the variable in a set-user-ID program. */
inline std::string default_path()
{
	const char *path = secure_getenv("ACCMEM_DEVICE");

	return path && *path ? path : "/dev/accmem0";
}

/* The number N of a name accmemN, or -1. */
inline long node_number(const char *name)
{
	const char *digits = name + 6;

	if (std::strncmp(name, "accmem", 6) || !*digits ||
	    std::strlen(digits) > 9)
		return -1;
	for (const char *c = digits; *c; c++)
		if (!std::isdigit(static_cast<unsigned char>(*c)))
			return -1;
	return std::strtol(digits, nullptr, 10);
}

inline std::vector<std::string> node_paths()
{
	std::vector<long> numbers;
	std::vector<std::string> paths{ default_path() };

	if (DIR *dir = opendir("/dev")) {
		while (const dirent *entry = readdir(dir))
			if (node_number(entry->d_name) >= 0)
				numbers.push_back(node_number(entry->d_name));
		closedir(dir);
	}
	std::sort(numbers.begin(), numbers.end());
	for (long number : numbers) {
		std::string path = "/dev/accmem" + std::to_string(number);

		if (path != paths[0])
			paths.push_back(std::move(path));
	}
	return paths;
}

/* The type that all devices claim to be. Throws invalid if the variable names none. */
inline info::device_type type_of_devices()
{
	static const info::device_type type = [] {
		const char *name = secure_getenv("ACCMEM_SYCL_DEVICE_TYPE");
		const std::string text = name ? name : "accelerator";

		if (text == "accelerator")
			return info::device_type::accelerator;
		if (text == "gpu")
			return info::device_type::gpu;
		if (text == "cpu")
			return info::device_type::cpu;
		fail(errc::invalid, "ACCMEM_SYCL_DEVICE_TYPE: no type " + text);
	}();

	return type;
}

} // namespace detail

class device {
public:
	/* The default device. Throws runtime if there is none. */
	device();
	template <typename Selector,
		  typename = std::enable_if_t<std::is_invocable_r_v<
			  int, const Selector &, const device &>>>
	explicit device(const Selector &selector);

	/* Extension of accmem: the device of a node, opened when it is first used. */
	static device from_path(const std::string &path)
	{
		return device(std::make_shared<detail::device_impl>(path));
	}

	static std::vector<device>
	get_devices(info::device_type type = info::device_type::all);

	bool is_cpu() const
	{
		return is(info::device_type::cpu);
	}
	bool is_gpu() const
	{
		return is(info::device_type::gpu);
	}
	bool is_accelerator() const
	{
		return is(info::device_type::accelerator);
	}
	backend get_backend() const noexcept { return backend::accmem; }
	platform get_platform() const;

	bool has(aspect which) const
	{
		switch (which) {
		case aspect::cpu:
			return is_cpu();
		case aspect::gpu:
			return is_gpu();
		case aspect::accelerator:
			return is_accelerator();
		case aspect::queue_profiling:
		case aspect::usm_device_allocations:
		case aspect::fp64:
		case aspect::atomic64:
		case aspect::host_debuggable:
			return true;
		case aspect::usm_host_allocations:
		case aspect::usm_atomic_host_allocations:
			return impl_->features() & ACCMEM_FEATURE_HOST;
		case aspect::usm_shared_allocations:
		case aspect::usm_atomic_shared_allocations:
			return impl_->features() & ACCMEM_FEATURE_SHARED;
		default:
			return false;
		}
	}

	template <typename Parameter>
	typename Parameter::return_type get_info() const
	{
		return answer(Parameter{});
	}

	friend bool operator==(const device &a, const device &b)
	{
		return a.impl_->path() == b.impl_->path();
	}
	friend bool operator!=(const device &a, const device &b)
	{
		return !(a == b);
	}

	const std::shared_ptr<detail::device_impl> &impl() const
	{
		return impl_;
	}

private:
	explicit device(std::shared_ptr<detail::device_impl> impl)
		: impl_(std::move(impl))
	{
	}

	static bool is(info::device_type type)
	{
		return detail::type_of_devices() == type;
	}

	info::device_type answer(info::device::device_type) const
	{
		return detail::type_of_devices();
	}
	std::string answer(info::device::name) const
	{
		return "accmem " + impl_->path();
	}
	std::string answer(info::device::vendor) const { return "accmem"; }
	std::string answer(info::device::version) const { return "2020"; }
	std::string answer(info::device::driver_version) const { return "1"; }
	std::uint64_t answer(info::device::global_mem_size) const
	{
		return impl_->capacity();
	}
	std::uint64_t answer(info::device::max_mem_alloc_size) const
	{
		return impl_->largest();
	}
	std::uint32_t answer(info::device::max_compute_units) const
	{
		return 1; /* a queue runs its kernels one after the other */
	}
	std::uint32_t answer(info::device::max_work_item_dimensions) const
	{
		return 3;
	}
	std::size_t answer(info::device::max_work_group_size) const
	{
		return 1024;
	}
	template <int D>
	range<D> answer(info::device::max_work_item_sizes<D>) const
	{
		range<D> most;

		for (int i = 0; i < D; i++)
			most[i] = answer(info::device::max_work_group_size{});
		return most;
	}
	std::uint32_t answer(info::device::max_num_sub_groups) const
	{
		return answer(info::device::max_work_group_size{});
	}
	std::vector<std::size_t> answer(info::device::sub_group_sizes) const
	{
		return { 1 };
	}
	std::uint64_t answer(info::device::local_mem_size) const
	{
		return 0;
	}
	info::local_mem_type answer(info::device::local_mem_type) const
	{
		return info::local_mem_type::none;
	}
	std::uint64_t answer(info::device::global_mem_cache_size) const
	{
		return 0;
	}
	std::uint32_t answer(info::device::mem_base_addr_align) const
	{
		return 64 * 8; /* in bits */
	}
	std::uint32_t answer(info::device::max_clock_frequency) const
	{
		return 0; /* unknown */
	}
	std::uint32_t answer(info::device::partition_max_sub_devices) const
	{
		return 0;
	}
	std::size_t answer(info::device::profiling_timer_resolution) const
	{
		return 1;
	}
	bool answer(info::device::error_correction_support) const
	{
		return false;
	}
	std::uint32_t answer(info::device::vendor_id) const { return 0; }
	sycl::platform answer(info::device::platform) const;
	bool answer(info::device::is_available) const
	{
		accmem_context *ctx;

		if (accmem_open(impl_->path().c_str(), &ctx))
			return false;
		accmem_close(ctx);
		return true;
	}
	std::vector<aspect> answer(info::device::aspects) const
	{
		std::vector<aspect> list;

		for (int i = 0; i <= int(aspect::usm_system_allocations); i++)
			if (has(aspect(i)))
				list.push_back(aspect(i));
		return list;
	}
	bool answer(info::device::usm_device_allocations) const
	{
		return has(aspect::usm_device_allocations);
	}
	bool answer(info::device::usm_host_allocations) const
	{
		return has(aspect::usm_host_allocations);
	}
	bool answer(info::device::usm_shared_allocations) const
	{
		return has(aspect::usm_shared_allocations);
	}

	std::shared_ptr<detail::device_impl> impl_;
};

/* The only platform, which has all devices. */
class platform {
public:
	platform() = default;
	/* Throws runtime if the selector accepts no device. */
	template <typename Selector,
		  typename = std::enable_if_t<std::is_invocable_r_v<
			  int, const Selector &, const device &>>>
	explicit platform(const Selector &selector);

	static std::vector<platform> get_platforms() { return { {} }; }
	std::vector<device>
	get_devices(info::device_type type = info::device_type::all) const
	{
		return device::get_devices(type);
	}
	backend get_backend() const noexcept { return backend::accmem; }

	bool has(aspect which) const
	{
		for (const device &dev : get_devices())
			if (!dev.has(which))
				return false;
		return true;
	}

	template <typename Parameter>
	typename Parameter::return_type get_info() const
	{
		if constexpr (std::is_same_v<Parameter,
					     info::platform::version>)
			return "2020";
		else if constexpr (std::is_same_v<Parameter,
						  info::platform::profile>)
			return "FULL_PROFILE";
		else
			return "accmem";
	}

	friend bool operator==(const platform &, const platform &)
	{
		return true;
	}
	friend bool operator!=(const platform &, const platform &)
	{
		return false;
	}
};

inline platform device::get_platform() const
{
	return {};
}
inline platform device::answer(info::device::platform) const
{
	return get_platform();
}

/* All devices that can be opened. */
inline std::vector<device> device::get_devices(info::device_type type)
{
	std::vector<device> list;

	if (type != info::device_type::all &&
	    type != info::device_type::automatic &&
	    type != detail::type_of_devices())
		return list;
	for (const std::string &path : detail::node_paths()) {
		device dev = from_path(path);

		if (dev.get_info<info::device::is_available>())
			list.push_back(std::move(dev));
	}
	return list;
}

/*
 * Selectors: callables that return a score for a device. The device with the highest
 * score is chosen, and the first of several. A device with a negative score is never
 * chosen.
 */
struct default_selector {
	int operator()(const device &) const { return 1; }
};
struct accelerator_selector {
	int operator()(const device &dev) const
	{
		return dev.is_accelerator() ? 1 : -1;
	}
};
struct cpu_selector {
	int operator()(const device &dev) const { return dev.is_cpu() ? 1 : -1; }
};
struct gpu_selector {
	int operator()(const device &dev) const { return dev.is_gpu() ? 1 : -1; }
};

inline constexpr default_selector default_selector_v{};
inline constexpr accelerator_selector accelerator_selector_v{};
inline constexpr cpu_selector cpu_selector_v{};
inline constexpr gpu_selector gpu_selector_v{};

/* Selects a device with all aspects of the first list and none of the second. */
inline auto aspect_selector(const std::vector<aspect> &wanted,
			    const std::vector<aspect> &denied = {})
{
	return [wanted, denied](const device &dev) {
		for (aspect a : wanted)
			if (!dev.has(a))
				return -1;
		for (aspect a : denied)
			if (dev.has(a))
				return -1;
		return 1;
	};
}

template <typename... Aspects,
	  typename = std::enable_if_t<
		  (std::is_same_v<Aspects, aspect> && ...)>>
auto aspect_selector(Aspects... wanted)
{
	return aspect_selector(std::vector<aspect>{ wanted... });
}

template <aspect... Wanted>
auto aspect_selector()
{
	return aspect_selector(std::vector<aspect>{ Wanted... });
}

namespace detail {

template <typename Selector>
device select(const Selector &selector)
{
	std::vector<device> devices = device::get_devices();
	const device *best = nullptr;
	int best_score = -1;

	for (const device &dev : devices) {
		int score = selector(dev);

		if (score > best_score) {
			best = &dev;
			best_score = score;
		}
	}
	/* no device can be opened: opening the default one says why */
	if (devices.empty())
		ask_device(default_path());
	if (!best)
		fail(errc::runtime, "no device that the selector takes");
	return *best;
}

} // namespace detail

template <typename Selector, typename>
platform::platform(const Selector &selector)
{
	detail::select(selector);
}

/* The default node, or any other device if the node does not exist. */
inline device::device() : device(from_path(detail::default_path()))
{
	if (!get_info<info::device::is_available>())
		*this = device(default_selector_v);
}

template <typename Selector, typename>
device::device(const Selector &selector)
	: device(detail::select(selector))
{
}

} // namespace sycl
} // namespace accmem

namespace std {
template <>
struct hash<accmem::sycl::device> {
	size_t operator()(const accmem::sycl::device &dev) const
	{
		return hash<string>()(dev.impl()->path());
	}
};
template <>
struct hash<accmem::sycl::platform> {
	size_t operator()(const accmem::sycl::platform &) const { return 0; }
};
} // namespace std

#endif // ACCMEM_SYCL_DEVICE_HPP
