/* SPDX-License-Identifier: MIT */
/* What the tests of the SYCL front-end share. */
#ifndef ACCMEM_RUNTIME_SYCL_TEST_HPP
#define ACCMEM_RUNTIME_SYCL_TEST_HPP

#include <sycl/sycl.hpp>

#include <chrono>
#include <cstdlib>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "test.h"

#ifdef FAKE_DEVICE
extern "C" {
#include "fake_device.h"
}
#endif

namespace {

using sycl::usm::alloc;

const alloc kinds[] = { alloc::device, alloc::host, alloc::shared };

/* The fake device has all kinds, but for tests that are about the lack of them. */
[[maybe_unused]] void use_kinds(bool kinds)
{
	(void)kinds;
#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
	fake_kinds = kinds;
#endif
}

[[maybe_unused]] bool has(const sycl::queue &q, alloc kind)
{
	return q.get_device().has(sycl::detail::aspect_of(kind));
}

/* A device that is none, so that it is in no context. */
[[maybe_unused]] sycl::device stranger()
{
	return sycl::device::from_path("/dev/accmem-of-nobody");
}

/* The code that the call throws; success if it throws nothing. */
template <typename Call>
sycl::errc thrown(Call call)
{
	try {
		call();
	} catch (const sycl::exception &e) {
		CHECK(e.code().category() == sycl::sycl_category());
		CHECK(*e.what() != 0);
		return static_cast<sycl::errc>(e.code().value());
	}
	return sycl::errc::success;
}

#define CHECK_THROWS(expression, error) \
	CHECK_EQ(thrown([&] { (void)(expression); }), sycl::errc::error)

/* Runs @call in a child of fork(), which has to succeed. */
template <typename Call>
void in_child(Call call)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		call();
		fflush(stdout);
		_exit(0);
	}
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

} // namespace

#endif // ACCMEM_RUNTIME_SYCL_TEST_HPP
