#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The module accmem_tensorrt on a device, without TensorRT (row T12).

usage: tensorrt_test.py MODULE_DIRECTORY

ACCMEM_LIBRARY names the library, ACCMEM_DEVICE the device. TAP on stdout.
"""

import copy
import ctypes
import gc
import pickle
import sys
import threading
import traceback
import types

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True

import accmem_tensorrt as module  # noqa: E402
from accmem_tensorrt import RESIZABLE, Allocator  # noqa: E402

METHODS = ("allocate", "reallocate", "deallocate", "allocate_async",
           "deallocate_async")
MIB = 1 << 20
STREAM = 0x1000


class Bound(type):
    """As pybind11: an object whose own __init__ was not called is refused."""

    def __call__(cls, *arguments, **names):
        made = super().__call__(*arguments, **names)
        if not getattr(made, "bound", False):
            raise TypeError("__init__() must be called when overriding it")
        return made


def missing(name):
    def method(self, *arguments):
        raise RuntimeError(f"pure virtual {name}()")
    return method


class IGpuAllocator(metaclass=Bound):
    """TensorRT's interface, as Python sees it."""

    def __init__(self):
        self.bound = True

    for _name in METHODS:
        locals()[_name] = missing(_name)


class IGpuAsyncAllocator(IGpuAllocator):
    """The same, for TensorRT 10 and later."""


def refused(errors, call):
    try:
        call()
    except errors:
        return
    raise AssertionError("no error")


def trampoline(allocator, size, stream, flags):
    """The call of TensorRT's bindings when allocateAsync() is overridden.

    They pass the stream before the flags, by position and as integers, in all
    releases from 10.0 to 11.1, and make a pointer of an integer result.
    """
    result = allocator.allocate_async(size, 256, stream, flags)
    return result if isinstance(result, int) else 0


def fill(address, size, value):
    ctypes.memset(address, value, size)


def byte(address):
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_ubyte))[0]


def t12_base_is_initialised_and_all_five_are_overridden():
    class Forgets(IGpuAllocator):
        def __init__(self):
            pass

    try:
        Forgets()
        raise AssertionError("the interface of this test takes anything")
    except TypeError:
        pass
    made = module.adapt(IGpuAllocator)
    allocator = made()
    assert isinstance(allocator, IGpuAllocator) and allocator.bound
    for name in METHODS:
        assert getattr(made, name) is getattr(Allocator, name), name
    a = allocator.allocate(100, 256, 0)
    a = allocator.deallocate(a)
    assert a is True
    a = trampoline(allocator, 100, STREAM, RESIZABLE)
    a = allocator.reallocate(a, 256, 200)
    assert allocator.deallocate_async(a, STREAM) is True


def on_stream(allocator, allocate, stream):
    """Is it the stream's memory that this allocates, the one freed last?"""
    first = allocate(allocator)
    assert first and allocator.deallocate_async(first, stream) is True
    again = allocate(allocator)
    assert allocator.deallocate_async(again, stream) is True
    return again == first


def t12_async_takes_the_order_of_the_bindings():
    for cls in module.adapt(IGpuAsyncAllocator), Allocator:
        allocator = cls()
        for stream in 2, STREAM, 1 << 47:
            # the wrong stream's memory would not come back at this one
            assert on_stream(
                allocator, lambda a: trampoline(a, MIB, stream, 0), stream)
        for stream in 0, 1, 2, STREAM:
            for flags in 0, RESIZABLE:
                a = trampoline(allocator, MIB, stream, flags)
                assert a
                b = allocator.reallocate(a, 256, 2 * MIB)
                assert bool(b) == bool(flags), (stream, flags)
                assert allocator.deallocate(b or a) is True
        assert trampoline(allocator, MIB, STREAM, 2) == 0
        assert "flags 0x2" in module.last_error()


def t12_async_of_a_class_that_names_them_as_documented():
    class Mine(Allocator, IGpuAsyncAllocator):
        def allocate_async(self, size, alignment, flags, stream):
            return super().allocate_async(size, alignment, flags=flags,
                                          stream=stream)

    mine = Mine()
    assert on_stream(mine, lambda a: trampoline(a, MIB, STREAM, 0), STREAM)
    a = trampoline(mine, MIB, STREAM, RESIZABLE)
    a = mine.reallocate(a, 256, 2 * MIB)
    assert a and mine.deallocate(a) is True


def t12_async_takes_the_order_of_the_documentation():
    a = Allocator()
    assert on_stream(a, lambda a: a.allocate_async(MIB, 0, 0, STREAM), STREAM)
    assert on_stream(
        a, lambda a: a.allocate_async(MIB, 0, flags=0, stream=STREAM), STREAM)
    for address in (a.allocate_async(MIB, 0, RESIZABLE, STREAM),
                    a.allocate_async(MIB, 0, RESIZABLE, None),
                    a.allocate_async(MIB, 0, flags=RESIZABLE, stream=0)):
        assert address
        address = a.reallocate(address, 0, 2 * MIB)
        assert address and a.deallocate(address)
    assert a.allocate_async(MIB, 0, 2, STREAM) is None
    assert a.allocate_async(MIB, 0, STREAM, STREAM) is None


def t12_a_class_of_ones_own():
    class Mine(Allocator, IGpuAllocator):
        def __init__(self):
            super().__init__()
            self.count = 0

        def allocate(self, size, alignment, flags):
            self.count += 1
            return super().allocate(size, alignment, flags)

    mine = Mine()
    assert mine.deallocate(mine.allocate(64, 0, 0))
    assert mine.count == 1


def t12_adaptors_come_with_tensorrt():
    try:
        import tensorrt  # noqa: F401
        return
    except ImportError:
        pass
    try:
        module.GpuAllocator
        raise AssertionError("made of nothing")
    except ImportError:
        pass
    sys.modules["tensorrt"] = types.SimpleNamespace(
        IGpuAllocator=IGpuAllocator, IGpuAsyncAllocator=IGpuAsyncAllocator)
    try:
        allocator = module.GpuAllocator()
        assert allocator.bound and module.GpuAllocator is type(allocator)
        allocator = module.GpuAsyncAllocator()
        assert isinstance(allocator, IGpuAsyncAllocator)
    finally:
        del sys.modules["tensorrt"]


def t12_values_are_addresses_or_none():
    a = Allocator()
    address = a.allocate(5000, 512, 0)
    assert isinstance(address, int) and address % 512 == 0
    fill(address, 5000, 3)
    assert byte(address + 4999) == 3
    assert a.allocate(0, 0, 0) is None
    assert a.allocate_async(0, 0, 0, STREAM) is None
    assert a.allocate(100, 3, 0) is None
    assert a.allocate(1 << 62, 0, 0) is None
    assert "bytes" in module.last_error()
    assert a.allocate(-1, 0, 0) is None
    assert "negative" in module.last_error()
    for size in (-1, 1 << 64, (1 << 64) + 5):
        assert a.allocate(size, 0, 0) is None
        assert a.allocate_async(size, 0, 0, STREAM) is None
        assert a.reallocate(address, 0, size) is None
    assert a.allocate(100, 0, 1 << 32) is None
    assert a.allocate(100, 0, -1) is None
    assert a.reallocate(address, 0, 6000) is None
    assert a.deallocate(None) is True and a.deallocate(0) is True
    for bad in (address + 64, 64, (1 << 64) - 64, 1 << 64, -address):
        assert a.deallocate(bad) is False
        assert a.deallocate_async(bad, STREAM) is False
    assert a.deallocate(address) is True
    assert a.deallocate(address) is False


def t12_capsules_are_addresses():
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    a = Allocator()
    assert a.deallocate(new(a.allocate(100, 0, 0), None, None)) is True
    assert a.deallocate(new(a.allocate(100, 0, 0), b"name", None)) is True
    for wrong in ("x", "4096", 4096.7, 1.5j, object()):
        refused((TypeError,), lambda wrong=wrong: a.deallocate(wrong))


def t12_growth_copies_nothing():
    a = Allocator()
    first = address = a.allocate(65536, 256, RESIZABLE)
    for step in range(2, 200):
        fill(address + 65536 * (step - 1) - 1, 1, step)
        address = a.reallocate(address, 256, 65536 * step)
        assert address == first
    assert byte(address + 65535) == 2
    assert a.stats()["copied_bytes"] == 0
    assert a.deallocate(address)


def t12_release_waits_for_the_stream():
    a = Allocator()
    assert a.deallocate_async(a.allocate(MIB, 0, 0), STREAM)
    position = a.mark(STREAM)
    a.reach(STREAM, position)
    for call in (lambda: a.reach(STREAM, position + 1),
                 lambda: a.reach(STREAM, position + (1 << 64)),
                 lambda: a.reach(STREAM + (1 << 64), position),
                 lambda: a.mark(-1), lambda: a.mark(STREAM + (1 << 64)),
                 lambda: a.bind(STREAM + 2, 0, 1 << 64),
                 lambda: a.bind(STREAM, 1 << 32, 1),
                 lambda: a.bind(STREAM, 0, 1), lambda: a.forget(STREAM + 1),
                 lambda: a.forget(STREAM + (1 << 64))):
        refused(OSError, call)
    a.forget(STREAM)


def t12_options_are_not_cut_off():
    for options in ({"flags": 1 << 32}, {"carveout": 1 << 32},
                    {"reserve_bytes": 1 << 64}, {"reserve_bytes": -1}):
        refused(OSError, lambda options=options: Allocator(**options))


def t12_an_allocator_is_not_copied():
    a = Allocator()
    for call in (copy.copy, copy.deepcopy, pickle.dumps):
        refused(TypeError, lambda call=call: call(a))
    assert a.deallocate(a.allocate(100, 0, 0)) is True


def t12_closed_allocates_nothing():
    a = Allocator()
    address = a.allocate(100, 0, 0)
    a.close()
    a.close()
    assert a.allocate(100, 0, 0) is None
    assert "closed" in module.last_error()
    assert a.reallocate(address, 0, 100) is None
    assert a.allocate_async(100, 0, 0, None) is None
    assert a.deallocate(address) is False
    assert a.deallocate_async(address, None) is False
    assert a.deallocate(None) is True
    try:
        a.stats()
        raise AssertionError("statistics of nothing")
    except ValueError:
        pass
    try:
        Allocator("/dev/null/nothing")
        raise AssertionError("no such device")
    except NotADirectoryError:
        pass
    del a
    gc.collect()


def t12_threads():
    a = Allocator()
    problems = []

    def work(seed):
        for size in range(1, 60):
            address = a.allocate_async(size * 100, 64, 0, STREAM + seed)
            fill(address, size * 100, seed)
            if byte(address + size * 100 - 1) != seed:
                problems.append(seed)
            if not a.deallocate(address):
                problems.append(address)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not problems
    assert a.stats()["live_bytes"] == 0


def main():
    tests = [test for name, test in sorted(globals().items())
             if name.startswith("t12_")]
    failed = 0
    print(f"TAP version 13\n1..{len(tests)}")
    for number, test in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} {test.__name__}", flush=True)
        except Exception:
            failed += 1
            for line in traceback.format_exc().splitlines():
                print(f"# {line}")
            print(f"not ok {number} {test.__name__}", flush=True)
    print(f"{len(tests) - failed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
