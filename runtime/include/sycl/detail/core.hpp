/* SPDX-License-Identifier: MIT */
/* A part of SYCL that other implementations have in a header of its own. */
#include <sycl/sycl.hpp>
