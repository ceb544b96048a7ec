/* SPDX-License-Identifier: MIT */
/*
 * The unified shared memory of SYCL 2020 on devices of accmem, for C++17 and later; link
 * with -laccmem -pthread.
 *
 * Namespace accmem::sycl has the names of namespace sycl that concern memory: devices,
 * contexts, queues, events, the allocation functions, usm_allocator, the queries of
 * pointers, and the memory operations of queues. Kernels run on the host. There are no
 * buffers, accessors, images, reductions or barriers.
 *
 * <sycl/sycl.hpp> includes this header and adds the alias namespace sycl, so that
 * programs compile unchanged. Documentation/userspace-api/sycl.rst has the details.
 */
#ifndef ACCMEM_SYCL_HPP
#define ACCMEM_SYCL_HPP

#include <accmem/sycl/context.hpp>
#include <accmem/sycl/device.hpp>
#include <accmem/sycl/event.hpp>
#include <accmem/sycl/exception.hpp>
#include <accmem/sycl/handler.hpp>
#include <accmem/sycl/index.hpp>
#include <accmem/sycl/property.hpp>
#include <accmem/sycl/queue.hpp>
#include <accmem/sycl/usm.hpp>
#include <accmem/sycl/usm_allocator.hpp>

#endif // ACCMEM_SYCL_HPP
