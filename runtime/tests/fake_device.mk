# SPDX-License-Identifier: MIT
#
# How a program is linked with fake_device.c, which takes the place of calls that the
# C library's headers may know by other names.

WRAP := $(foreach call,access close dladdr ioctl mmap64 mremap open64 \
	pthread_create,-Wl,--wrap=$(call))
