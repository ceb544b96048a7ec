#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""libaccmem_torch by the two names that PyTorch looks up.

usage: torch_test.py LIBRARY
"""

import ctypes
import sys


def torch_names():
    library = ctypes.CDLL(sys.argv[1])
    alloc, free = library.alloc, library.free
    alloc.restype = ctypes.c_void_p
    alloc.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    free.restype = None
    free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int,
                     ctypes.c_void_p]
    bad = library.accmem_torch_bad_frees
    bad.restype = ctypes.c_uint64
    address = alloc(1 << 20, 0, None)
    assert address
    ctypes.memset(address, 1, 1 << 20)
    assert alloc(0, 0, None) is None
    free(address, 1 << 20, 0, None)
    free(None, 0, 0, None)
    assert bad() == 0
    free(address, 1 << 20, 0, None)
    assert bad() == 1
    # the C library's is another
    assert ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p).value != \
        ctypes.cast(free, ctypes.c_void_p).value


print("TAP version 13\n1..1")
try:
    torch_names()
    print("ok 1 torch_names\n1 passed, 0 failed")
except Exception as error:
    print(f"# {error!r}\nnot ok 1 torch_names\n0 passed, 1 failed")
    sys.exit(1)
