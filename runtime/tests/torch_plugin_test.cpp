// SPDX-License-Identifier: MIT
/*
 * libaccmem_torch as PyTorch uses it: the functions are looked up by name, called by the
 * types that CUDAPluggableAllocator has for them, and their results are not looked at.
 * The class below is what PyTorch does with them.
 *
 * usage: torch_plugin_test LIBRARY
 */
#include <accmem_torch.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

namespace
{

constexpr size_t MIB = 1048576;
void *library;
int passed, failed;

template <class Function> std::function<Function> find(const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol)
		throw std::runtime_error(std::string("no ") + name);
	return reinterpret_cast<Function *>(symbol);
}

void check(bool condition, const char *what)
{
	if (!condition)
		throw std::runtime_error(what);
}

/* A map from pointers to the stream of the allocation, and no look at a result. */
class PluggableAllocator {
    public:
	void *malloc(size_t size, int device, void *stream)
	{
		void *pointer = alloc(size, device, stream);

		streams.emplace(pointer, stream);
		return pointer;
	}

	void raw_delete(void *pointer, size_t size, int device)
	{
		void *stream = streams.at(pointer);

		streams.erase(pointer);
		release(pointer, size, device, stream);
	}

	std::function<void()> emptyCache = find<void()>("reset");
	std::function<void(double, int)> setMemoryFraction =
		find<void(double, int)>("memory_fraction");
	std::function<void *(void *, size_t *)> getBaseAllocation =
		find<void *(void *, size_t *)>("base_alloc");
	std::function<void(void *, void *)> recordStream =
		find<void(void *, void *)>("record_stream");
	size_t allocations() const
	{
		return streams.size();
	}

    private:
	std::function<void *(size_t, int, void *)> alloc =
		find<void *(size_t, int, void *)>("alloc");
	std::function<void(void *, size_t, int, void *)> release =
		find<void(void *, size_t, int, void *)>("free");
	std::map<void *, void *> streams;
};

/* The text of the exception, or "" if there is none. */
std::string error_of(const std::function<void()> &call)
{
	try {
		call();
	} catch (const std::runtime_error &error) {
		return error.what();
	}
	return "";
}

bool has(const std::string &text, const char *part)
{
	return text.find(part) != std::string::npos;
}

accmem_pool_stats stats()
{
	accmem_pool_stats now = {};

	find<int(int, accmem_pool_stats *)>("accmem_torch_get_stats")(0, &now);
	return now;
}

void torch_alloc_throws_when_memory_is_short()
{
	PluggableAllocator a;
	std::string text =
		error_of([&] { a.malloc(size_t(1) << 50, 0, nullptr); });

	check(has(text, "out of memory"), "no text of PyTorch's");
	check(has(text, "1125899906842624 bytes"), "no text of accmem's");
	check(!a.allocations(), "a tensor at address 0");
	check(!error_of([&] { a.malloc(64, 63, nullptr); }).empty(),
	      "no such device");
	check(!error_of([&] { a.malloc(size_t(-1), 0, nullptr); }).empty(),
	      "no such size");
	check(!a.malloc(0, 0, nullptr), "an empty tensor has no memory");
}

void torch_tensors_are_allocated_and_freed()
{
	PluggableAllocator a;
	void *p = a.malloc(MIB, 0, nullptr);
	size_t size = 0;

	std::memset(p, 1, MIB);
	check(a.getBaseAllocation(static_cast<char *>(p) + 100, &size) == p &&
		      size == MIB,
	      "base of an allocation");
	check(!error_of([&] { a.getBaseAllocation(&size, &size); }).empty(),
	      "base of nothing");
	a.raw_delete(p, MIB, 0);
	a.emptyCache();
	check(stats().live_bytes == 0 && stats().reserved_bytes == 0,
	      "memory remains");
}

void torch_memory_fraction_throws()
{
	PluggableAllocator a;

	a.setMemoryFraction(0, 0);
	check(has(error_of([&] { a.malloc(MIB, 0, nullptr); }),
		  "out of memory"),
	      "no limit");
	a.setMemoryFraction(1, 0);
	a.raw_delete(a.malloc(MIB, 0, nullptr), MIB, 0);
	check(!error_of([&] { a.setMemoryFraction(2, 0); }).empty(),
	      "no such fraction");
}

void torch_recorded_stream_keeps_the_memory()
{
	PluggableAllocator a;
	int other = 0;
	void *p = a.malloc(3 * MIB, 0, nullptr);
	void *q;

	a.recordStream(p, &other);
	a.recordStream(nullptr, &other);
	/* of another allocator, as PyTorch has them */
	a.recordStream(&other, &other);
	a.raw_delete(p, 3 * MIB, 0);
	q = a.malloc(3 * MIB, 0, nullptr);
	check(q != p, "the memory is reused while the other stream uses it");
	a.raw_delete(q, 3 * MIB, 0);
}

void run(const char *name, void (*test)())
{
	const std::string text = error_of(test);

	if (text.empty()) {
		std::printf("ok %d %s\n", ++passed + failed, name);
		return;
	}
	std::printf("# %s\nnot ok %d %s\n", text.c_str(), passed + ++failed,
		    name);
}

} /* namespace */

int main(int argc, char **argv)
{
	library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
	if (!library) {
		std::printf("Bail out! %s\n", argc == 2 ? dlerror() : "usage");
		return 1;
	}
	std::printf("TAP version 13\n1..4\n");
	run("torch_alloc_throws_when_memory_is_short",
	    torch_alloc_throws_when_memory_is_short);
	run("torch_tensors_are_allocated_and_freed",
	    torch_tensors_are_allocated_and_freed);
	run("torch_memory_fraction_throws", torch_memory_fraction_throws);
	run("torch_recorded_stream_keeps_the_memory",
	    torch_recorded_stream_keeps_the_memory);
	std::printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
