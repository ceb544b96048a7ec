/* SPDX-License-Identifier: MIT */
/*
 * For SYCL programs that use unified shared memory only: accmem_sycl.hpp as sycl, and
 * the headers of C++ that programs expect to come with it.
 */
#ifndef ACCMEM_COMPAT_SYCL_HPP
#define ACCMEM_COMPAT_SYCL_HPP

#include <accmem_sycl.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <iostream>
#include <numeric>
#include <tuple>

#ifndef SYCL_LANGUAGE_VERSION
#define SYCL_LANGUAGE_VERSION 202012L
#endif

namespace sycl = accmem::sycl;

#endif // ACCMEM_COMPAT_SYCL_HPP
