# SPDX-License-Identifier: MIT
"""TensorRT's allocator interface on accmem, over libaccmem with ctypes alone.

Allocator has the five methods that TensorRT calls, and works without TensorRT.
With it, GpuAllocator is one that runtimes and builders take:

    import accmem_tensorrt
    runtime.gpu_allocator = accmem_tensorrt.GpuAllocator()

and so is a class of one's own that names Allocator before the interface:

    class Mine(accmem_tensorrt.Allocator, trt.IGpuAsyncAllocator):
        ...

Addresses are integers. The library is libaccmem.so.0, or what ACCMEM_LIBRARY
names. Every method is thread-safe but close().
"""

import ctypes
import errno
import operator
import os

__all__ = ["Allocator", "RESIZABLE", "UNMAPPED", "adapt", "last_error"]

RESIZABLE = 1 << 0
UNMAPPED = 1 << 0

_U64 = (1 << 64) - 1
_U32_MAX = (1 << 32) - 1
_INT_MAX = (1 << 31) - 1
# No handle of a stream that is an address is less: nothing is mapped there.
_PAGE = 4096


class _Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("reserve_bytes", ctypes.c_uint64),
        ("carveout", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class _Stats(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("reserved", ctypes.c_uint32)] + [
        (name, ctypes.c_uint64)
        for name in ("allocations", "releases", "failures", "live_bytes",
                     "peak_live_bytes", "reserved_bytes",
                     "peak_reserved_bytes", "pending_bytes", "kernel_calls",
                     "kernel_buffers", "yielded_bytes", "copied_bytes")
    ]


_P, _INT, _U32, _U64_T = (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32,
                          ctypes.c_uint64)

# result, then arguments
_CALLS = {
    "accmem_tensorrt_open": (_INT, ctypes.c_char_p, ctypes.POINTER(_Options),
                             ctypes.POINTER(_P)),
    "accmem_tensorrt_destroy": (None, _P),
    "accmem_tensorrt_pool": (_P, _P),
    "accmem_tensorrt_streams": (_P, _P),
    "accmem_tensorrt_allocate": (_P, _P, _U64_T, _U64_T, _U32),
    "accmem_tensorrt_reallocate": (_P, _P, _P, _U64_T, _U64_T),
    "accmem_tensorrt_deallocate": (ctypes.c_bool, _P, _P),
    "accmem_tensorrt_allocate_async": (_P, _P, _U64_T, _U64_T, _U32, _P),
    "accmem_tensorrt_deallocate_async": (ctypes.c_bool, _P, _P, _P),
    "accmem_streams_bind": (_INT, _P, _P, _INT, _U64_T),
    "accmem_streams_mark": (_INT, _P, _P, ctypes.POINTER(_U64_T)),
    "accmem_streams_reach": (_INT, _P, _P, _U64_T),
    "accmem_streams_forget": (_INT, _P, _P),
    "accmem_pool_get_stats": (None, _P, ctypes.POINTER(_Stats)),
    "accmem_last_error": (ctypes.c_char_p,),
    "accmem_set_last_error": (None, ctypes.c_char_p, ctypes.c_char_p),
}

_loaded = None


def _library():
    global _loaded
    if _loaded is None:
        library = ctypes.CDLL(os.environ.get("ACCMEM_LIBRARY")
                              or "libaccmem.so.0")
        for name, (result, *arguments) in _CALLS.items():
            call = getattr(library, name)
            call.restype = result
            call.argtypes = arguments
        _loaded = library
    return _loaded


def last_error():
    """What went wrong in the calling thread, in words."""
    return _library().accmem_last_error().decode(errors="replace")


def _capsule_address(capsule):
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype = ctypes.c_char_p
    name.argtypes = [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name(capsule))


def _address(memory):
    """Of an integer, of None, which is 0, or of a capsule."""
    if memory is None:
        return 0
    if type(memory).__name__ == "PyCapsule":
        return _capsule_address(memory)
    return operator.index(memory)


def _stream_first(stream, flags):
    """Both arguments of allocate_async(), if the caller has swapped them too.

    TensorRT's bindings pass the stream before the flags, and their
    documentation has the flags first. No flag has the value of an address.
    """
    swapped = flags is None
    stream, flags = _address(stream), _address(flags)
    return (flags, stream) if swapped or flags >= _PAGE else (stream, flags)


def _fit(*numbers):
    """ctypes would cut off what 64 bits do not hold."""
    return all(0 <= number <= _U64 for number in numbers)


def _checked(name, number, most=_U64):
    """The number, or OSError if ctypes would cut it off."""
    if not 0 <= operator.index(number) <= most:
        raise OSError(errno.EINVAL, f"{name} {number} is not in 0..{most}")
    return number


def _handle(stream):
    """Of a stream. Cut off, it would be the handle of another stream."""
    return _checked("stream", _address(stream))


class Allocator:
    """The five methods of IGpuAllocator, on a device of accmem.

    device is a path, or None for $ACCMEM_DEVICE or /dev/accmem0; reserve_bytes
    is what a RESIZABLE allocation is expected to grow to, 0 for the default;
    flags is UNMAPPED for memory that the CPU does not reach. OSError when the
    device cannot be opened.
    """

    def __init__(self, device=None, *, reserve_bytes=0, flags=0, carveout=0):
        self._accmem = None
        # The interface's own, where there is one behind this class: without it
        # TensorRT's bindings have no object to call.
        super().__init__()
        options = _Options(ctypes.sizeof(_Options),
                           _checked("flags", flags, _U32_MAX),
                           _checked("reserve_bytes", reserve_bytes),
                           _checked("carveout", carveout, _U32_MAX), 0)
        handle = ctypes.c_void_p()
        error = _library().accmem_tensorrt_open(
            None if device is None else os.fsencode(device),
            ctypes.byref(options), ctypes.byref(handle))
        if error:
            raise OSError(-error, last_error() or os.strerror(-error))
        self._accmem = handle

    def close(self):
        """Give everything back. Nothing is allocated after that."""
        handle, self._accmem = self._accmem, None
        if handle:
            _library().accmem_tensorrt_destroy(handle)

    def __reduce__(self):
        raise TypeError("an allocator cannot be copied")

    def __del__(self):
        if getattr(self, "_accmem", None):
            self.close()

    def _takes(self, *numbers):
        """Is the allocator open, and do its functions take the numbers?"""
        if not self._accmem:
            reason = b"the allocator is closed"
        elif not _fit(*numbers):
            reason = b"a number is negative or too large"
        else:
            return True
        _library().accmem_set_last_error(b"%s", reason)
        return False

    def allocate(self, size, alignment, flags):
        """An address, or None."""
        flags = int(flags)
        if not self._takes(size, alignment, flags << 32):
            return None
        return _library().accmem_tensorrt_allocate(self._accmem, size,
                                                   alignment, flags)

    def reallocate(self, address, alignment, new_size):
        """Where the memory is now, or None, and then it is what it was."""
        address = _address(address)
        if not self._takes(address, alignment, new_size):
            return None
        return _library().accmem_tensorrt_reallocate(self._accmem, address,
                                                     alignment, new_size)

    def deallocate(self, memory):
        """True if it has been released, and for None and 0."""
        memory = _address(memory)
        if not memory:
            return True
        if not self._takes(memory):
            return False
        return _library().accmem_tensorrt_deallocate(self._accmem, memory)

    def allocate_async(self, size, alignment, stream, flags):
        """As allocate(), for work on a stream.

        The order is that in which TensorRT's bindings call the method. The
        order of their documentation, flags before stream, works too if the
        stream is None, a capsule or an address.
        """
        stream, flags = _stream_first(stream, flags)
        if not self._takes(size, alignment, flags << 32, stream):
            return None
        return _library().accmem_tensorrt_allocate_async(
            self._accmem, size, alignment, flags, stream)

    def deallocate_async(self, memory, stream):
        """As deallocate(), when the work on the stream is done."""
        memory, stream = _address(memory), _address(stream)
        if not memory:
            return True
        if not self._takes(memory, stream):
            return False
        return _library().accmem_tensorrt_deallocate_async(self._accmem,
                                                           memory, stream)

    def mark(self, stream):
        """The point that the work on a stream has come to, for reach()."""
        position = ctypes.c_uint64()
        self._check(_library().accmem_streams_mark(
            self._streams(), _handle(stream), ctypes.byref(position)))
        return position.value

    def reach(self, stream, position):
        """The work on a stream is done up to a point."""
        self._check(_library().accmem_streams_reach(
            self._streams(), _handle(stream),
            _checked("position", position)))

    def bind(self, stream, descriptor, position):
        """Releases at a stream are at a position of one of the context's."""
        self._check(_library().accmem_streams_bind(
            self._streams(), _handle(stream),
            _checked("descriptor", descriptor, _INT_MAX),
            _checked("position", position)))

    def forget(self, stream):
        """The stream is gone, and its work done."""
        self._check(_library().accmem_streams_forget(
            self._streams(), _handle(stream)))

    def stats(self):
        """What the pool under the allocator has done, as a dictionary."""
        stats = _Stats()
        _library().accmem_pool_get_stats(
            _library().accmem_tensorrt_pool(self._open()),
            ctypes.byref(stats))
        return {name: getattr(stats, name) for name, _ in _Stats._fields_[2:]}

    @staticmethod
    def _check(error):
        if error:
            raise OSError(-error, os.strerror(-error))

    def _open(self):
        if not self._accmem:
            raise ValueError("the allocator is closed")
        return self._accmem

    def _streams(self):
        return _library().accmem_tensorrt_streams(self._open())


def adapt(interface):
    """A class over trt.IGpuAllocator, or over another of the kind."""
    return type("Accmem" + interface.__name__, (Allocator, interface), {
        "__doc__": f"{interface.__name__} on a device of accmem."})


def __getattr__(name):
    """GpuAllocator and GpuAsyncAllocator, where TensorRT is installed."""
    if name in ("GpuAllocator", "GpuAsyncAllocator"):
        import tensorrt
        made = adapt(getattr(tensorrt, "I" + name))
        globals()[name] = made
        return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
