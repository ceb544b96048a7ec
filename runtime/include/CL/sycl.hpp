/* SPDX-License-Identifier: MIT */
/* The header and the namespace of SYCL 1.2.1, which SYCL 2020 keeps. */
#ifndef ACCMEM_COMPAT_CL_SYCL_HPP
#define ACCMEM_COMPAT_CL_SYCL_HPP

#include <sycl/sycl.hpp>

namespace accmem {
namespace sycl {

/* Base class of programs' selectors; later versions of SYCL accept any callable. */
class device_selector {
public:
	virtual ~device_selector() = default;
	virtual int operator()(const device &dev) const = 0;
};

} // namespace sycl
} // namespace accmem

namespace cl {
namespace sycl = accmem::sycl;
}

#endif // ACCMEM_COMPAT_CL_SYCL_HPP
