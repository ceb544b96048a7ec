/* SPDX-License-Identifier: MIT */
/*
 * Tensor Memory in C++17: classes for contexts, launches, CTAs, their columns, warps, and
 * the map of the columns' owners. The destructor of an object ends what the object owns.
 *
 * Objects can be moved, but not copied. An object that is empty, or was moved from, can
 * only be destroyed and assigned to. Functions throw std::system_error with the errno
 * values of <tcgen05.h>, unless their comment says otherwise; destructors do not throw.
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

/* Throw the error that a call of the C library has returned, unless it is 0. */
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
 * class Context - an open device and its SMs
 *
 * A context must be destroyed after all objects that were made of it. Without a
 * configuration it has one SM of 512 columns.
 */
class Context {
    public:
	/* Opens a device node, or with nullptr the default: see accmem_open(). */
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
 * class Columns - the columns of an alloc, until the object is destroyed
 *
 * The object must be destroyed before the CTA ends. In a pair the destructor waits for
 * the peer's call, and signals do not end that wait. Columns that the destructor cannot
 * free are freed and reported at the CTA's exit (P5).
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

	/*
	 * Free the columns now; a deadline of 0 is none. After an error the object
	 * still has them. A cta_group other than 0 is that of the instruction (P13).
	 */
	void dealloc(uint64_t deadline_ns = 0, uint32_t cta_group = 0)
	{
		if (!cta)
			return;
		check(tcgen05_dealloc_group(cta, cta_group, start, number,
					    deadline_ns),
		      "tcgen05_dealloc");
		cta = nullptr;
	}

	/*
	 * Free the columns by a queued call, whose completion the CTA reads. If the
	 * completion has an error, Cta::take() returns the columns.
	 */
	void queue_dealloc(uint64_t deadline_ns = 0, uint64_t user_data = 0)
	{
		if (!cta)
			return;
		check(tcgen05_queue_dealloc(cta, start, number, deadline_ns,
					    user_data),
		      "tcgen05_queue_dealloc");
		cta = nullptr;
	}

	/* Return the address. The caller frees the columns. */
	uint32_t release() noexcept
	{
		cta = nullptr;
		return start;
	}

    private:
	/* Repeats after a signal, since a destructor's caller could not. */
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
 * A CTA must be destroyed after its Columns and Warps.
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

	/* Take over a CTA of the C library. */
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
	 * Wait until the columns are free; a deadline of 0 is none. For a CTA
	 * without a window: with a window, the destination must be in it (P10).
	 */
	Columns alloc(uint32_t columns, uint64_t deadline_ns = 0)
	{
		uint32_t address;

		return alloc(&address, columns, deadline_ns);
	}

	/*
	 * The address is stored at @destination as well. A cta_group other than 0 is
	 * that of the instruction (P13).
	 */
	Columns alloc(uint32_t *destination, uint32_t columns,
		      uint64_t deadline_ns = 0, uint32_t cta_group = 0)
	{
		check(tcgen05_alloc_group(get(), cta_group, destination,
					  columns, deadline_ns),
		      "tcgen05_alloc");
		return Columns(get(), *destination, columns);
	}

	/* Returns nothing if alloc() would wait. For a CTA without a window. */
	std::optional<Columns> try_alloc(uint32_t columns)
	{
		uint32_t address;
		const int result = tcgen05_try_alloc(get(), &address, columns);

		if (result == -EAGAIN)
			return std::nullopt;
		check(result, "tcgen05_try_alloc");
		return Columns(get(), address, columns);
	}

	void relinquish_alloc_permit(uint32_t cta_group = 0)
	{
		check(tcgen05_relinquish_group(get(), cta_group),
		      "tcgen05_relinquish_alloc_permit");
	}

	/* Queued calls: next_completion() returns the result. */
	void queue_alloc(uint32_t columns, uint64_t deadline_ns = 0,
			 uint64_t user_data = 0)
	{
		check(tcgen05_queue_alloc(get(), columns, deadline_ns,
					  user_data),
		      "tcgen05_queue_alloc");
	}

	/* Returns nothing if it would wait and the descriptor is O_NONBLOCK. */
	std::optional<accmem_cta_completion> next_completion()
	{
		accmem_cta_completion completion;
		const int result = tcgen05_next_completion(get(), &completion);

		if (result == -EAGAIN)
			return std::nullopt;
		check(result, "tcgen05_next_completion");
		return completion;
	}

	/*
	 * The columns of a completion: of an alloc that was granted, or of a dealloc
	 * that has failed.
	 */
	Columns take(const accmem_cta_completion &completion) noexcept
	{
		return Columns(get(), completion.address, completion.columns);
	}

	/* Returns false if no call is queued, or the call has ended. */
	bool cancel()
	{
		const int result = tcgen05_cancel(get());

		if (result == -ENOENT)
			return false;
		check(result, "tcgen05_cancel");
		return true;
	}

	/* Count completions in an eventfd; -1 for none. */
	void set_eventfd(int eventfd)
	{
		check(tcgen05_set_eventfd(get(), eventfd),
		      "tcgen05_set_eventfd");
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
 * class Launch - CTAs of one launch, which have the same cta_group (P13)
 *
 * The object does not own the CTAs. Its context must not be moved while it exists.
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

	/* Start all CTAs of a cluster, or none: the CTA of each rank on its SM. */
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
 * Each lane makes each call with the same operands, and all get the same result or the
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

	void queue_alloc_all(uint32_t columns, uint64_t deadline_ns = 0,
			     uint64_t user_data = 0)
	{
		check(tcgen05_warp_queue_alloc_all(get(), all(),
						   same(columns).data(),
						   deadline_ns, user_data),
		      "tcgen05_warp_queue_alloc_all");
	}

	void queue_dealloc_all(uint32_t address, uint32_t columns,
			       uint64_t deadline_ns = 0, uint64_t user_data = 0)
	{
		check(tcgen05_warp_queue_dealloc_all(get(), all(),
						     same(address).data(),
						     same(columns).data(),
						     deadline_ns, user_data),
		      "tcgen05_warp_queue_dealloc_all");
	}

	void relinquish_all()
	{
		check(tcgen05_warp_relinquish_all(get(), all()),
		      "tcgen05_warp_relinquish_all");
	}

    private:
	/* registers of a warp with the same value in each lane */
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
 * class Map - the owners of the columns of a CTA's SM
 *
 * A map outlives the CTA and the context. Its queries are no system calls.
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

	/* accmem_cta_query.id of the owner, or 0 */
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
