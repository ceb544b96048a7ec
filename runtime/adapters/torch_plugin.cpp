// SPDX-License-Identifier: MIT
/*
 * The functions that PyTorch's pluggable allocator is given, with the types that it
 * calls them by. It uses their results without a look, so they throw instead:
 * PyTorch makes a RuntimeError of that. The linker gives them their short names.
 */
#include <cerrno>
#include <stdexcept>
#include <string>

#include "torch.h"

/* "out of memory" is what programs look for in the text of a RuntimeError. */
[[noreturn]] static void torch_throw(int error)
{
	throw std::runtime_error(std::string("accmem: ") +
				 (error == -ENOMEM || error == -EDQUOT ?
					  "out of memory: " :
					  "") +
				 accmem_last_error());
}

extern "C" {

void *accmem_torch_plugin_alloc(ssize_t size, int device, void *stream)
{
	void *pointer;
	const int ret = accmem_torch_try(size, device, stream, &pointer);

	if (ret)
		torch_throw(ret);
	return pointer;
}

void accmem_torch_plugin_reset()
{
	accmem_torch_empty_cache();
}

void accmem_torch_plugin_memory_fraction(double fraction, int device)
{
	const int ret = accmem_torch_set_memory_fraction(fraction, device);

	if (ret)
		torch_throw(ret);
}

void *accmem_torch_plugin_base_alloc(void *pointer, size_t *size)
{
	void *base = accmem_torch_base_alloc(pointer, size);

	if (!base)
		torch_throw(-ENOENT);
	return base;
}

/* A tensor may use memory of others, of which another allocator takes care. */
void accmem_torch_plugin_record_stream(void *pointer, void *stream)
{
	const int ret = accmem_torch_record_stream(pointer, stream);

	if (ret && ret != -ENOENT)
		torch_throw(ret);
}
}
