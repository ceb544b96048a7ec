/* SPDX-License-Identifier: MIT */
/*
 * TensorRT's allocators on accmem, for C++11 and later.
 *
 * accmem::tensorrt::Allocator is the allocator; it does not need TensorRT. If the
 * compiler finds NvInferRuntime.h, two adaptors make an Allocator usable for
 * setGpuAllocator(): GpuAllocator is an nvinfer1::IGpuAllocator, of TensorRT 8 to 11,
 * and GpuAsyncAllocator is an nvinfer1::IGpuAsyncAllocator, of TensorRT 10 and 11.
 *
 * Only constructors whose comment says so throw; without exceptions they abort. Link with
 * -laccmem.
 *
 * A program may define ACCMEM_TENSORRT_ADAPTORS before the include: 0 for no adaptors, 1
 * for GpuAllocator, 2 for both.
 */
#ifndef ACCMEM_TENSORRT_HPP
#define ACCMEM_TENSORRT_HPP

#include <accmem_tensorrt.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace accmem
{
namespace tensorrt
{

using AllocatorFlags = uint32_t;
constexpr AllocatorFlags kRESIZABLE = ACCMEM_TENSORRT_RESIZABLE;

/**
 * class Allocator - an allocator, and its memory if it owns that
 *
 * An object can be moved, but not copied. An empty allocator allocates nothing. The calls
 * are those of <accmem_tensorrt.h>, and are all thread-safe.
 */
class Allocator {
    public:
	using Options = accmem_tensorrt_options;

	/* The default options, for changes. */
	static Options defaults() noexcept
	{
		Options options = Options();

		options.size = sizeof(options);
		return options;
	}

	/* Opens a device (accmem_tensorrt_open()). Throws std::system_error. */
	explicit Allocator(const char *device = nullptr,
			   const Options &options = defaults())
		: core(nullptr)
	{
		check(open(device, options));
	}

	/* Uses a pool, which must exist as long. Throws std::system_error. */
	explicit Allocator(accmem_pool &pool,
			   const Options &options = defaults())
		: core(nullptr)
	{
		check(accmem_tensorrt_create(&pool, &options, &core));
	}

	/* An empty allocator, for open(). */
	static Allocator closed() noexcept
	{
		return Allocator(Closed());
	}

	Allocator(Allocator &&other) noexcept : core(other.core)
	{
		other.core = nullptr;
	}

	Allocator &operator=(Allocator &&other) noexcept
	{
		std::swap(core, other.core);
		return *this;
	}

	Allocator(const Allocator &) = delete;
	Allocator &operator=(const Allocator &) = delete;

	~Allocator()
	{
		accmem_tensorrt_destroy(core);
	}

	/* For programs without exceptions: 0, or a negative errno value. */
	int open(const char *device = nullptr,
		 const Options &options = defaults()) noexcept
	{
		accmem_tensorrt *opened = nullptr;
		const int ret =
			accmem_tensorrt_open(device, &options, &opened);

		if (!ret) {
			accmem_tensorrt_destroy(core);
			core = opened;
		}
		return ret;
	}

	explicit operator bool() const noexcept
	{
		return core != nullptr;
	}

	void *allocate(uint64_t size, uint64_t alignment,
		       AllocatorFlags flags) noexcept
	{
		return core ? accmem_tensorrt_allocate(core, size, alignment,
						       flags) :
			      nullptr;
	}

	void *reallocate(void *base, uint64_t alignment,
			 uint64_t newSize) noexcept
	{
		return core ? accmem_tensorrt_reallocate(core, base, alignment,
							 newSize) :
			      nullptr;
	}

	bool deallocate(void *memory) noexcept
	{
		return core ? accmem_tensorrt_deallocate(core, memory) :
			      !memory;
	}

	void *allocateAsync(uint64_t size, uint64_t alignment,
			    AllocatorFlags flags, void *stream) noexcept
	{
		return core ? accmem_tensorrt_allocate_async(
				      core, size, alignment, flags, stream) :
			      nullptr;
	}

	bool deallocateAsync(void *memory, void *stream) noexcept
	{
		return core ? accmem_tensorrt_deallocate_async(core, memory,
							       stream) :
			      !memory;
	}

	/* NULL for an empty allocator. */
	accmem_pool *pool() const noexcept
	{
		return core ? accmem_tensorrt_pool(core) : nullptr;
	}

	/* The stream handles (T10); NULL for an empty allocator. */
	accmem_streams *streams() const noexcept
	{
		return core ? accmem_tensorrt_streams(core) : nullptr;
	}

    private:
	struct Closed {
	};

	explicit Allocator(Closed) noexcept : core(nullptr)
	{
	}

	static void check(int ret)
	{
		if (!ret)
			return;
#ifdef __cpp_exceptions
		/* system_error adds the text of the error, which may be there */
		const std::error_code code(-ret, std::generic_category());
		const std::string end = ": " + code.message();
		std::string text = accmem_last_error();

		if (text.size() > end.size() &&
		    !text.compare(text.size() - end.size(), end.size(), end))
			text.resize(text.size() - end.size());
		throw std::system_error(code, text);
#else
		std::abort();
#endif
	}

	accmem_tensorrt *core;
};

/**
 * class Adaptor - an allocator with one of TensorRT's interfaces
 *
 * Base is the interface, and Stream its cudaStream_t. No function is marked `override`,
 * because each version of the interface lacks some of them; a test instantiates the class
 * over each version.
 */
template <class Base, class Stream> class Adaptor : public Base {
    public:
	/* Opens a device. Throws std::system_error, std::bad_alloc. */
	explicit Adaptor(const char *device = nullptr)
		: shared(std::make_shared<Allocator>(device))
	{
	}

	/* Shares an allocator. */
	explicit Adaptor(std::shared_ptr<Allocator> allocator) noexcept
		: shared(std::move(allocator))
	{
	}

	Allocator &allocator() const noexcept
	{
		return *shared;
	}

	void *allocate(uint64_t const size, uint64_t const alignment,
		       AllocatorFlags const flags) noexcept
	{
		return shared->allocate(size, alignment, flags);
	}

	void *reallocate(void *const baseAddr, uint64_t alignment,
			 uint64_t newSize) noexcept
	{
		return shared->reallocate(baseAddr, alignment, newSize);
	}

	bool deallocate(void *const memory) noexcept
	{
		return shared->deallocate(memory);
	}

	/* pure virtual in TensorRT 8, and absent in later versions */
	void free(void *const memory) noexcept
	{
		shared->deallocate(memory);
	}

	void *allocateAsync(uint64_t const size, uint64_t const alignment,
			    AllocatorFlags const flags, Stream stream) noexcept
	{
		return shared->allocateAsync(size, alignment, flags,
					     static_cast<void *>(stream));
	}

	bool deallocateAsync(void *const memory, Stream stream) noexcept
	{
		return shared->deallocateAsync(memory, static_cast<void *>(stream));
	}

    private:
	std::shared_ptr<Allocator> shared;
};

} /* namespace tensorrt */
} /* namespace accmem */

#ifndef ACCMEM_TENSORRT_ADAPTORS
#ifdef __has_include
#if __has_include(<NvInferRuntime.h>) && __has_include(<cuda_runtime_api.h>)
#include <NvInferRuntime.h>
#if NV_TENSORRT_MAJOR >= 10 || defined(TRT_MAJOR_RTX)
#define ACCMEM_TENSORRT_ADAPTORS 2
#else
#define ACCMEM_TENSORRT_ADAPTORS 1
#endif
#endif
#endif
#endif
#ifndef ACCMEM_TENSORRT_ADAPTORS
#define ACCMEM_TENSORRT_ADAPTORS 0
#endif

#if ACCMEM_TENSORRT_ADAPTORS
#include <NvInferRuntime.h>

namespace accmem
{
namespace tensorrt
{

using GpuAllocator = Adaptor<nvinfer1::IGpuAllocator, cudaStream_t>;

static_assert(kRESIZABLE ==
		      1u << static_cast<uint32_t>(
			      nvinfer1::AllocatorFlag::kRESIZABLE),
	      "AllocatorFlag is the number of a bit");
static_assert(!std::is_abstract<GpuAllocator>::value,
	      "a version of IGpuAllocator that is not known");

#if ACCMEM_TENSORRT_ADAPTORS >= 2
using GpuAsyncAllocator = Adaptor<nvinfer1::IGpuAsyncAllocator, cudaStream_t>;

static_assert(!std::is_abstract<GpuAsyncAllocator>::value,
	      "a version of IGpuAsyncAllocator that is not known");
#endif

} /* namespace tensorrt */
} /* namespace accmem */
#endif

#endif /* ACCMEM_TENSORRT_HPP */
