/* SPDX-License-Identifier: MIT */
/*
 * The allocators of TensorRT as NVINFER_VERSION of it declares them: what has to be
 * overridden, what has a body, what is inherited. Of nothing else of it is there
 * anything here.
 */
#ifndef ACCMEM_RUNTIME_NVINFER_H
#define ACCMEM_RUNTIME_NVINFER_H

#include <cstdint>
#include <cuda_runtime_api.h>

#define NV_TENSORRT_MAJOR NVINFER_VERSION

#if __cplusplus >= 201402L
#define TRT_DEPRECATED [[deprecated]]
#else
#define TRT_DEPRECATED __attribute__((deprecated))
#endif

namespace nvinfer1
{

enum class AllocatorFlag : int32_t {
	kRESIZABLE = 0,
};

using AllocatorFlags = uint32_t;

#if NVINFER_VERSION < 10

class IGpuAllocator {
    public:
	virtual void *allocate(uint64_t const size, uint64_t const alignment,
			       AllocatorFlags const flags) noexcept = 0;
	TRT_DEPRECATED virtual void free(void *const memory) noexcept = 0;
	virtual ~IGpuAllocator() = default;
	IGpuAllocator() = default;
	virtual void *reallocate(void *, uint64_t, uint64_t) noexcept
	{
		return nullptr;
	}
	virtual bool deallocate(void *const memory) noexcept
	{
		this->free(memory);
		return true;
	}

    protected:
	IGpuAllocator(IGpuAllocator const &) = default;
	IGpuAllocator(IGpuAllocator &&) = default;
	IGpuAllocator &operator=(IGpuAllocator const &) & = default;
	IGpuAllocator &operator=(IGpuAllocator &&) & = default;
};

#else

struct InterfaceInfo {
	char const *kind;
	int32_t major;
	int32_t minor;
};

enum class APILanguage : int32_t {
	kCPP = 0,
	kPYTHON = 1,
};

class IVersionedInterface {
    public:
	virtual InterfaceInfo getInterfaceInfo() const noexcept = 0;
	virtual APILanguage getAPILanguage() const noexcept
	{
		return APILanguage::kCPP;
	}
	virtual ~IVersionedInterface() noexcept = default;

    protected:
	IVersionedInterface() = default;
	IVersionedInterface(IVersionedInterface const &) = default;
	IVersionedInterface(IVersionedInterface &&) = default;
	IVersionedInterface &operator=(IVersionedInterface const &) & = default;
	IVersionedInterface &operator=(IVersionedInterface &&) & = default;
};

namespace v_1_0
{

class IGpuAllocator : public IVersionedInterface {
    public:
	TRT_DEPRECATED virtual void *
	allocate(uint64_t const size, uint64_t const alignment,
		 AllocatorFlags const flags) noexcept = 0;
	~IGpuAllocator() override = default;
	IGpuAllocator() = default;
	virtual void *reallocate(void *const, uint64_t, uint64_t) noexcept
	{
		return nullptr;
	}
	TRT_DEPRECATED virtual bool deallocate(void *const memory) noexcept = 0;
	virtual void *allocateAsync(uint64_t const size,
				    uint64_t const alignment,
				    AllocatorFlags const flags,
				    cudaStream_t) noexcept
	{
		return allocate(size, alignment, flags);
	}
	virtual bool deallocateAsync(void *const memory, cudaStream_t) noexcept
	{
		return deallocate(memory);
	}
	InterfaceInfo getInterfaceInfo() const noexcept override
	{
		return { "IGpuAllocator", 1, 0 };
	}

    protected:
	IGpuAllocator(IGpuAllocator const &) = default;
	IGpuAllocator(IGpuAllocator &&) = default;
	IGpuAllocator &operator=(IGpuAllocator const &) & = default;
	IGpuAllocator &operator=(IGpuAllocator &&) & = default;
};

class IGpuAsyncAllocator : public IGpuAllocator {
    public:
	IGpuAsyncAllocator() = default;
	~IGpuAsyncAllocator() override = default;
	void *allocateAsync(uint64_t const size, uint64_t const alignment,
			    AllocatorFlags const flags,
			    cudaStream_t) noexcept override = 0;
	bool deallocateAsync(void *const memory,
			     cudaStream_t) noexcept override = 0;
	TRT_DEPRECATED bool deallocate(void *const memory) noexcept override
	{
		return deallocateAsync(memory, nullptr);
	}
	TRT_DEPRECATED void *
	allocate(uint64_t const size, uint64_t const alignment,
		 AllocatorFlags const flags) noexcept override
	{
		return allocateAsync(size, alignment, flags, nullptr);
	}
	InterfaceInfo getInterfaceInfo() const noexcept override
	{
		return { "IGpuAllocator", 1, 0 };
	}
};

} /* namespace v_1_0 */

using IGpuAllocator = v_1_0::IGpuAllocator;
using IGpuAsyncAllocator = v_1_0::IGpuAsyncAllocator;

#endif

} /* namespace nvinfer1 */

#endif /* ACCMEM_RUNTIME_NVINFER_H */
