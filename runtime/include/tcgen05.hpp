/* SPDX-License-Identifier: MIT */
/*
 * Tensor Memory in C++17: contexts, launches, CTAs, their columns, warps, and the map
 * of whose columns are, each an object that ends what it stands for.
 *
 * Objects can be moved, not copied. One that was moved from, or is empty, can be
 * destroyed and assigned to, and nothing else. Functions throw std::system_error with
 * the errno values of <tcgen05.h>, except where they say otherwise; destructors do not.
 * Thread safety is that of <tcgen05.h>.
 */
#ifndef TCGEN05_HPP
#define TCGEN05_HPP

#include <tcgen05.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace tcgen05
{

/* Throws what a call of the C library returned, unless it is 0. */
inline void check(int result, const char *call)
{
	if (result)
		throw std::system_error(-result, std::generic_category(), call);
}

namespace detail
{
template <auto end> struct Ender {
	template <class T> void operator()(T *object) const noexcept
	{
		end(object);
	}
};

template <class T, auto end> using Handle = std::unique_ptr<T, Ender<end>>;
} /* namespace detail */

/**
 * class Context - an open device, and its SMs
 *
 * Ends after everything that was made of it.
 */
class Context {
    public:
	/* A device node, or nullptr: see accmem_open(). One SM of 512 columns. */
	explicit Context(const char *device = nullptr)
	{
		accmem_context *opened = nullptr;

		check(accmem_open(device, &opened), "accmem_open");
		handle.reset(opened);
	}

	Context(const char *device, const tcgen05_config &config)
		: Context(device)
	{
		check(tcgen05_setup(get(), &config), "tcgen05_setup");
	}

	accmem_context *get() const noexcept
	{
		return handle.get();
	}

    private:
	detail::Handle<accmem_context, accmem_close> handle;
};

/**
 * class Columns - what an alloc has got, until it is destroyed
 *
 * The CTA must not have ended. In a pair the destructor waits for the peer's, signals or
 * not; what it cannot give back, the CTA's exit takes, and reports (P5).
 */
class Columns {
    public:
	Columns() noexcept = default;

	Columns(tcgen05_cta *cta, uint32_t address, uint32_t count) noexcept
		: cta(cta), start(address), number(count)
	{
	}

	Columns(Columns &&other) noexcept
		: cta(std::exchange(other.cta, nullptr)), start(other.start),
		  number(other.number)
	{
	}

	Columns &operator=(Columns &&other) noexcept
	{
		if (this != &other) {
			end();
			cta = std::exchange(other.cta, nullptr);
			start = other.start;
			number = other.number;
		}
		return *this;
	}

	~Columns()
	{
		end();
	}

	explicit operator bool() const noexcept
	{
		return cta != nullptr;
	}

	/* Tensor Memory address: lane << 16 | column */
	uint32_t address() const noexcept
	{
		return start;
	}

	uint32_t column() const noexcept
	{
		return tcgen05_column(start);
	}

	uint32_t count() const noexcept
	{
		return number;
	}

	/* Now, with the errors of tcgen05_dealloc(), after which they are held still. */
	void dealloc()
	{
		if (!cta)
			return;
		check(tcgen05_dealloc(cta, start, number), "tcgen05_dealloc");
		cta = nullptr;
	}

	/* Somebody else gives them back: the address. */
	uint32_t release() noexcept
	{
		cta = nullptr;
		return start;
	}

    private:
	/* Nobody could try again after a signal. */
	void end() noexcept
	{
		while (cta && tcgen05_dealloc(cta, start, number) == -EINTR)
			;
	}

	tcgen05_cta *cta = nullptr;
	uint32_t start = 0;
	uint32_t number = 0;
};

/**
 * class Cta - a CTA, from its launch to its exit
 *
 * Ends after its Columns and Warps.
 */
class Cta {
    public:
	Cta() noexcept = default;

	Cta(const Context &context, const tcgen05_place &place)
	{
		tcgen05_cta *launched = nullptr;

		check(tcgen05_launch(context.get(), &place, &launched),
		      "tcgen05_launch");
		handle.reset(launched);
	}

	/* Takes over what the C library has made. */
	explicit Cta(tcgen05_cta *cta) noexcept : handle(cta)
	{
	}

	tcgen05_cta *get() const noexcept
	{
		return handle.get();
	}

	int fd() const noexcept
	{
		return tcgen05_fd(get());
	}

	/*
	 * Waits until there are so many; a deadline of 0 is none. Of a CTA that has a
	 * window, the other form, with a destination in it (P10).
	 */
	Columns alloc(uint32_t columns, uint64_t deadline_ns = 0)
	{
		uint32_t address;

		return alloc(&address, columns, deadline_ns);
	}

	/* The address is stored at @destination as well. */
	Columns alloc(uint32_t *destination, uint32_t columns,
		      uint64_t deadline_ns = 0)
	{
		check(tcgen05_alloc_until(get(), destination, columns,
					  deadline_ns),
		      "tcgen05_alloc");
		return Columns(get(), *destination, columns);
	}

	/* Nothing where alloc() would wait; of a CTA without a window. */
	std::optional<Columns> try_alloc(uint32_t columns)
	{
		uint32_t address;
		const int result = tcgen05_try_alloc(get(), &address, columns);

		if (result == -EAGAIN)
			return std::nullopt;
		check(result, "tcgen05_try_alloc");
		return Columns(get(), address, columns);
	}

	void relinquish_alloc_permit()
	{
		check(tcgen05_relinquish_alloc_permit(get()),
		      "tcgen05_relinquish_alloc_permit");
	}

	accmem_cta_query query() const
	{
		accmem_cta_query result;

		check(tcgen05_query(get(), &result), "tcgen05_query");
		return result;
	}

    private:
	detail::Handle<tcgen05_cta, tcgen05_exit> handle;
};

/**
 * class Launch - CTAs of one launch, which share its cta_group (P13)
 *
 * Does not own them; the context stays where it is meanwhile.
 */
class Launch {
    public:
	Launch(const Context &context, uint64_t id,
	       uint32_t cta_group = 1) noexcept
		: context(&context), id(id), cta_group(cta_group)
	{
	}

	tcgen05_place place(uint32_t sm, uint32_t cluster = 0,
			    uint32_t rank = 0) const noexcept
	{
		tcgen05_place place = {};

		place.launch = id;
		place.cluster = cluster;
		place.rank = rank;
		place.sm = sm;
		place.cta_group = cta_group;
		return place;
	}

	Cta cta(uint32_t sm, uint32_t cluster = 0, uint32_t rank = 0) const
	{
		return Cta(*context, place(sm, cluster, rank));
	}

	/* All CTAs of a cluster or none, by rank, each on the SM that is said. */
	std::vector<Cta> cluster(uint32_t number,
				 const std::vector<uint32_t> &sms) const
	{
		std::vector<tcgen05_place> places;
		std::vector<tcgen05_cta *> launched(sms.size());
		std::vector<Cta> ctas;

		for (const uint32_t sm : sms)
			places.push_back(place(
				sm, number,
				static_cast<uint32_t>(places.size())));
		ctas.reserve(sms.size());
		check(tcgen05_launch_cluster(
			      context->get(), places.data(),
			      static_cast<unsigned int>(places.size()),
			      launched.data()),
		      "tcgen05_launch_cluster");
		for (tcgen05_cta *each : launched)
			ctas.emplace_back(each);
		return ctas;
	}

    private:
	const Context *context;
	uint64_t id;
	uint32_t cta_group;
};

/**
 * class Warp - threads of a CTA that call together (P14 to P16)
 *
 * Each lane makes each call, with the same operands, and gets the same result or the
 * same exception. The calls that end in _all are made by one thread for all lanes.
 */
class Warp {
    public:
	explicit Warp(const Cta &cta, unsigned int lanes = TCGEN05_WARP_LANES,
		      uint32_t number = 0)
		: lanes(lanes)
	{
		tcgen05_warp *created = nullptr;

		check(tcgen05_warp_create(cta.get(), lanes, &created),
		      "tcgen05_warp_create");
		handle.reset(created);
		tcgen05_warp_set_number(created, number);
	}

	tcgen05_warp *get() const noexcept
	{
		return handle.get();
	}

	void leave(unsigned int lane) noexcept
	{
		tcgen05_warp_leave(get(), lane);
	}

	void alloc(unsigned int lane, uint32_t *destination, uint32_t columns)
	{
		check(tcgen05_warp_alloc(get(), lane, destination, columns),
		      "tcgen05_warp_alloc");
	}

	void dealloc(unsigned int lane, uint32_t address, uint32_t columns)
	{
		check(tcgen05_warp_dealloc(get(), lane, address, columns),
		      "tcgen05_warp_dealloc");
	}

	void relinquish_alloc_permit(unsigned int lane)
	{
		check(tcgen05_warp_relinquish_alloc_permit(get(), lane),
		      "tcgen05_warp_relinquish_alloc_permit");
	}

	void alloc_all(uint32_t *destination, uint32_t columns)
	{
		check(tcgen05_warp_alloc_all(get(), all(),
					     same(destination).data(),
					     same(columns).data()),
		      "tcgen05_warp_alloc_all");
	}

	void dealloc_all(uint32_t address, uint32_t columns)
	{
		check(tcgen05_warp_dealloc_all(get(), all(),
					       same(address).data(),
					       same(columns).data()),
		      "tcgen05_warp_dealloc_all");
	}

	void relinquish_all()
	{
		check(tcgen05_warp_relinquish_all(get(), all()),
		      "tcgen05_warp_relinquish_all");
	}

    private:
	/* the registers of a warp that hold the same in each lane */
	template <class T>
	static std::array<T, TCGEN05_WARP_LANES> same(T value) noexcept
	{
		std::array<T, TCGEN05_WARP_LANES> result;

		result.fill(value);
		return result;
	}

	uint32_t all() const noexcept
	{
		return 0xffffffffu >> (TCGEN05_WARP_LANES - lanes);
	}

	unsigned int lanes;
	detail::Handle<tcgen05_warp, tcgen05_warp_destroy> handle;
};

/**
 * class Map - whose the columns of a CTA's SM are
 *
 * Outlives the CTA and the context. Its questions are no calls of the kernel.
 */
class Map {
    public:
	explicit Map(const Cta &cta)
	{
		const accmem_tmem_map *mapped = nullptr;

		check(tcgen05_map(cta.get(), &mapped), "tcgen05_map");
		handle.reset(mapped);
	}

	const accmem_tmem_map *get() const noexcept
	{
		return handle.get();
	}

	/* accmem_cta_query.id, or 0 */
	uint64_t owner(uint32_t column) const noexcept
	{
		return tcgen05_owner(get(), column);
	}

	/* Bits of TCGEN05_SELF, TCGEN05_OTHER, TCGEN05_NOBODY. */
	unsigned int owners(uint64_t id, uint32_t column,
			    uint32_t columns) const noexcept
	{
		return tcgen05_owners(get(), id, column, columns);
	}

    private:
	detail::Handle<const accmem_tmem_map, tcgen05_unmap> handle;
};

} /* namespace tcgen05 */

#endif /* TCGEN05_HPP */
