# SPDX-License-Identifier: GPL-2.0
"""Tests of accmem explain, on devices in states made on purpose.

Each test brings a device into a state, asks the command about requests, and compares the
answer with the result of ALLOC, which a process with a context of its own calls.
"""
import contextlib
import errno
import fcntl
import os
import struct
import subprocess
import time

from common import (CLASS, DEBUGFS, MIB, PARAMETERS, TOOL, accmem, added, become_nobody, held, idle,
                    main, need, parsed, read, same, test, write)

ALLOC, FREE = 0xBC01, 0xBC02
FLAGS = {"ROUND32": 1, "TAIL32": 2, "POPULATE": 4, "CONTIGUOUS": 8, "TOP_DOWN": 0x10,
         "RESIZABLE": 0x200, "WAIT": 0x400, "HIGH_BANDWIDTH": 0x800, "LOW_BANDWIDTH": 0x1000,
         "CARVEOUT": 0x2000}
POLICIES = ["ANY", "HUGE_FIRST", "HUGE_ONLY", "NORMAL_ONLY", "HUGE1G_ONLY"]
CACHES = ["WB", "WC", "UC"]
KINDS = ["DEVICE", "HOST", "SHARED"]
FIELDS = "IIQQIIIIQQQQQQIIiIQQQ"
STATUS = {"succeeds": 0, "fails": 1, "waits": 4, "unknown": 5}


def request_of(length, words):
    """The structure of ALLOC. A request that waits has a deadline in the past."""
    flags = policy = cache = kind = carveout = alignment = reserve = 0
    for word in words:
        if word in FLAGS:
            flags |= FLAGS[word]
        elif word in POLICIES:
            policy = POLICIES.index(word)
        elif word in CACHES:
            cache = CACHES.index(word)
        elif word in KINDS:
            kind = KINDS.index(word)
        elif word.startswith("ALIGN="):
            alignment = int(word[6:])
        elif word.startswith("RESERVE="):
            reserve = int(word[8:])
        else:
            carveout = int(word.split("/carveout")[1])
            flags |= FLAGS["CARVEOUT"]
    return bytearray(struct.pack(FIELDS, struct.calcsize(FIELDS), flags, length, alignment,
                                 policy, cache, carveout, kind, *[0] * 11, reserve,
                                 1 if flags & FLAGS["WAIT"] else 0))


def call(fd, length, *words):
    """Allocate; return the address."""
    request = request_of(length, words)
    fcntl.ioctl(fd, ALLOC, request)
    return struct.unpack(FIELDS, request)[8]


def free(fd, address):
    fcntl.ioctl(fd, FREE, struct.pack("IIQQiIQ", 40, 0, address, 0, 0, 0, 0))


def result(name, length, words, user):
    """The errno value of ALLOC in a process of its own, or 0."""
    child = os.fork()
    if not child:
        status = 0
        try:
            if user:
                become_nobody()
            fd = os.open("/dev/" + name, os.O_RDWR)
            call(fd, length, *words)
        except OSError as error:
            status = error.errno
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def answer(name, length, words, user=False):
    if not any("/" in word for word in words):
        words = [*words, name]
    done = subprocess.run([TOOL, "explain", "--json", str(length), *words],
                          capture_output=True, text=True, check=False,
                          preexec_fn=become_nobody if user else None)
    need(done.stdout, f"no answer: {done.stderr}")
    found = parsed(done.stdout, "explanation")
    same(done.returncode, STATUS[found["verdict"]], "status")
    return found


def compare(name, length, *words, user=False):
    """The answer is the result of ALLOC."""
    found = answer(name, length, words, user)
    wanted = {"succeeds": 0, "waits": errno.ETIMEDOUT}.get(found["verdict"])
    if wanted is None:
        wanted = getattr(errno, found["errno"])
    same(result(name, length, words, user), wanted,
         f"errno of {length:#x} {' '.join(words)} on {name}: {found}")
    return found


def agree(name, reason, length, *words, user=False, verdict=None):
    """The answer is the result of ALLOC, for this reason."""
    found = compare(name, length, *words, user=user)
    same(found["reason"], reason or "none", f"reason: {found}")
    same(found["verdict"], verdict or ("fails" if reason else "succeeds"), f"verdict: {found}")
    return found


def free_bytes(name):
    return int(read(f"{CLASS}/{name}/free_bytes"))


def capacity(name):
    return int(read(f"{CLASS}/{name}/capacity"))


def scatters(name):
    """Can a buffer have several runs? Only devices of the driver accmem-emulated can."""
    return os.readlink(f"{CLASS}/{name}/device/driver").endswith("emulated")


@contextlib.contextmanager
def limit(name, value):
    before = read(f"{PARAMETERS}/{name}")
    write(f"{PARAMETERS}/{name}", str(value))
    try:
        yield
    finally:
        write(f"{PARAMETERS}/{name}", before)


@contextlib.contextmanager
def open_to_all(name):
    mode = os.stat("/dev/" + name).st_mode & 0o777
    os.chmod("/dev/" + name, 0o666)
    try:
        yield
    finally:
        os.chmod("/dev/" + name, mode)


@contextlib.contextmanager
def context(name):
    fd = os.open("/dev/" + name, os.O_RDWR)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def taken(name, size):
    """A buffer of this process that nobody touches."""
    with context(name) as fd:
        call(fd, size)
        yield
    idle(name)


def fill(fd, size, left=0, name=None):
    """Allocate buffers of a size until less than a size, and what is left, is free."""
    addresses = []
    while count := max(free_bytes(name) - left, 0) // size:
        addresses += [call(fd, size, "CONTIGUOUS") for _ in range(count)]
    return addresses


@contextlib.contextmanager
def fragmented(name, size):
    """Used and free parts of a size in turn, in all the memory; the first part is used."""
    with context(name) as fd:
        addresses = fill(fd, size, name=name)
        for address in addresses[::2] if scatters(name) else \
                [a for a in addresses if a // size % 2]:
            free(fd, address)
        yield
    idle(name)


@test
def free_memory(name):
    idle(name)
    for size in 1, 64, 4096, 4 * MIB, capacity(name):
        agree(name, None, size)
    agree(name, None, 2 * MIB, "CONTIGUOUS", "TOP_DOWN", "ROUND32", "TAIL32")
    agree(name, None, 2 * MIB, "RESIZABLE", f"RESERVE={4 * MIB}")
    need("would succeed" in accmem("explain", "4M", name), "no words")


@test
def larger_than_the_memory(name):
    agree(name, "capacity", capacity(name) + 1)
    agree(name, "capacity", 1 << 50, "CONTIGUOUS")
    agree(name, "capacity", capacity(name) + 1, "WAIT")


@test
def invalid_requests(name):
    for length, *words in (
            (0,), (4096, "ALIGN=3"), (4096, f"ALIGN={2 << 30}"), (4096, "TAIL32"),
            (4096, "HIGH_BANDWIDTH", "LOW_BANDWIDTH"), (4096, "RESERVE=8192"),
            (4096, "RESIZABLE", "RESERVE=1"), (4096, "RESIZABLE", f"RESERVE={1 << 60}"),
            (4096, name + "/carveout7"), (4096, "HOST", "CARVEOUT"),
            (2**64 - 1,), (2**64 - 4096, "ROUND32", "TAIL32")):
        agree(name, "invalid", length, *words)


@test
def unsupported_requests(name):
    agree(name, "unsupported", 4096, "SHARED", "RESIZABLE")
    agree(name, "unsupported", 4096, "SHARED", "WC")
    for word in "HUGE1G_ONLY", "WC", "UC", "HUGE_ONLY":
        compare(name, 4096, word)


@test
def less_memory_is_free(name):
    all_bytes = capacity(name)
    with taken(name, all_bytes - 8 * MIB):
        found = agree(name, "free_bytes", 16 * MIB)
        need(any(f"pid {os.getpid()}" in hint for hint in found["hints"]), found)
        need(any("8.00M would fit" in hint for hint in found["hints"]), found)
        agree(name, None, 8 * MIB)
        agree(name, "free_bytes", 16 * MIB, "CONTIGUOUS", "WAIT", verdict="waits")
        text = subprocess.run([TOOL, "explain", "16M", name], capture_output=True, text=True,
                              check=False).stdout
        need("would fail now: ENOMEM" in text and f"pid {os.getpid()}" in text, text)


@test
def no_memory_is_free(name):
    with taken(name, capacity(name)):
        for size in 1, 4096, MIB:
            agree(name, "free_bytes", size)


@test
def freed_memory_that_is_not_free(name):
    states = ["detached", "pending", "mapped"]
    if name != "accmem2":
        states.append("pinned")
    most = min(capacity(name), 64 * MIB)
    with contextlib.ExitStack() as stack:
        if capacity(name) > most:
            stack.enter_context(taken(name, capacity(name) - most))
        for state in states:
            stack.enter_context(held(state, "/dev/" + name, 8 * MIB))
        rest = most - 8 * MIB * len(states)
        found = agree(name, "free_bytes", rest + 4096)
        for word in "detached", "pending":
            need(any(word in hint for hint in found["hints"]), found)
        need(name == "accmem2" or any("quarantined" in hint for hint in found["hints"]), found)
        agree(name, None, rest)
    idle(name)


@test
def fragmented_memory(name):
    with fragmented(name, 4 * MIB):
        found = agree(name, "largest_run", 6 * MIB, "CONTIGUOUS")
        same(found["memory"]["best_hole"]["size"], 4 * MIB, "best hole")
        need({"before", "after"} & set(found["memory"]["best_hole"]), found)
        agree(name, None, 4 * MIB, "CONTIGUOUS")
        agree(name, None if scatters(name) else "largest_run", 6 * MIB)
        agree(name, "largest_run", 6 * MIB, "CONTIGUOUS", "WAIT", verdict="waits")
        if scatters(name):
            need(any("without CONTIGUOUS" in hint for hint in found["hints"]), found)


@test
def no_aligned_hole(name):
    with fragmented(name, 4 * MIB):
        agree(name, None, 2 * MIB, "HUGE_ONLY")
        agree(name, None, 4 * MIB, "HUGE_ONLY", "CONTIGUOUS")
        agree(name, None if scatters(name) else "alignment", 4 * MIB, f"ALIGN={16 * MIB}")
    with fragmented(name, MIB):
        for words in ["HUGE_ONLY"], ["HUGE_ONLY", "CONTIGUOUS"]:
            same(compare(name, 2 * MIB, *words)["verdict"], "fails", words)
        found = compare(name, 2 * MIB, "HUGE_FIRST")
        same(found["verdict"], "succeeds" if scatters(name) else "fails", "HUGE_FIRST")


@test
def holes_of_another_context(name):
    """On accmem1 a 2 MiB page belongs to one context, so that its holes are of no use."""
    with fragmented(name, 512 * 1024):
        found = compare(name, 512 * 1024)
        same(found["verdict"], "fails" if name == "accmem1" else "succeeds", "verdict")


@test
def cached_memory_counts_as_free(name):
    with context(name) as fd:
        for address in [call(fd, 65536) for _ in range(16)]:
            free(fd, address)
        agree(name, None, capacity(name))
        agree(name, None, capacity(name), "CONTIGUOUS")
    idle(name)


@test
def retired_memory(_name):
    with added("64M") as name:
        accmem("retire", name, "16M", "4K")
        accmem("retire", name, "40M", "4K")
        agree(name, "largest_run", 32 * MIB, "CONTIGUOUS")
        agree(name, "free_bytes", 64 * MIB)
        agree(name, None, 60 * MIB)
        found = answer(name, 32 * MIB, ["CONTIGUOUS"])
        same(found["memory"]["best_hole"]["after"]["state"], "retired", "after")
        agree(name, None, 60 * MIB, "HUGE_ONLY")
        agree(name, "alignment", 62 * MIB, "HUGE_ONLY")


@test
def several_carveouts(_name):
    with added("16M+32M/high") as name:
        agree(name, None, 32 * MIB)
        agree(name, "capacity", 40 * MIB)
        agree(name, "capacity", 32 * MIB, name + "/carveout0")
        agree(name, None, 32 * MIB, name + "/carveout1")
        with context(name) as fd:
            call(fd, 24 * MIB, name + "/carveout1")
            agree(name, "free_bytes", 16 * MIB, name + "/carveout1")
            agree(name, None, 16 * MIB, "HIGH_BANDWIDTH")
            agree(name, "free_bytes", 24 * MIB)


@test
def limits_on_bytes(name):
    with open_to_all(name), limit("max_bytes_per_user", 16 * MIB):
        with held("open", "/dev/" + name, 8 * MIB, user=True):
            agree(name, "user_bytes", 10 * MIB, user=True)
            agree(name, None, 8 * MIB, user=True)
            agree(name, "user_bytes", 10 * MIB, "WAIT", user=True, verdict="waits")
            agree(name, "user_bytes", 20 * MIB, "WAIT", user=True)
            agree(name, None, 20 * MIB)
            agree(name, "user_bytes", capacity(name) * 2, user=True)
    with limit("max_bytes_per_context", 16 * MIB):
        agree(name, "context_bytes", 18 * MIB)
        agree(name, "context_bytes", 18 * MIB, "WAIT")
        agree(name, None, 16 * MIB)
    with limit("max_bytes_per_context", 6 * MIB + 4096):
        found = compare(name, 6 * MIB + 4096)
        same(found["verdict"], "fails" if name == "accmem1" else "succeeds", "folios")
    idle(name)


@test
def limits_on_buffers_and_contexts(name):
    with open_to_all(name), held("open", "/dev/" + name, 8 * MIB, user=True):
        with limit("max_buffers_per_user", 1):
            agree(name, "buffers", 4096, user=True)
            agree(name, None, 4096)
        with limit("max_contexts_per_user", 1):
            agree(name, "contexts", 4096, user=True)
            agree(name, None, 4096)
    idle(name)


@test
def the_right_to_open_the_device(name):
    agree(name, "access", 4096, user=True)


@test
def host_memory(name):
    agree(name, None, 4 * MIB, "HOST")
    agree(name, "capacity", 1 << 45, "HOST")
    with context(name) as fd:
        call(fd, 8 * MIB, "HOST")
        agree(name, None, 4 * MIB, "HOST")
        with limit("max_resident_bytes", 16 * MIB):
            agree(name, "resident_bytes", 12 * MIB, "HOST")
            agree(name, None, 8 * MIB, "HOST")
    with open_to_all(name), limit("max_resident_bytes_per_user", 16 * MIB):
        agree(name, "user_resident_bytes", 20 * MIB, "HOST", user=True)
        agree(name, None, 20 * MIB, "HOST")
    idle(name)


@test
def populated_memory(name):
    first_touch = scatters(name)
    with limit("max_resident_bytes", 16 * MIB):
        agree(name, "resident_bytes" if first_touch else None, 20 * MIB, "POPULATE")
        agree(name, None, 12 * MIB, "POPULATE")
        agree(name, None, 20 * MIB)
    idle(name)


@test
def shared_memory(name):
    agree(name, None, 4 * MIB, "SHARED")
    with limit("max_bytes_per_context", 6 * MIB):
        agree(name, "context_bytes", 4 * MIB, "SHARED")
        agree(name, None, 2 * MIB, "SHARED")
    with taken(name, capacity(name) - 2 * MIB):
        agree(name, "free_bytes", 4 * MIB, "SHARED")


@test
def others_wait_already(name):
    with taken(name, capacity(name) - 8 * MIB), \
            held("waiting", "/dev/" + name, 16 * MIB):
        agree(name, None, 4 * MIB)
        agree(name, "free_bytes", 16 * MIB)
        agree(name, "free_bytes", 16 * MIB, "WAIT", verdict="waits")


@test
def a_reservation(name):
    # a reservation that is of no use ends after 1/200 of the time
    with limit("waiter_reserve_ms", 6000000), context(name) as fd, open_to_all(name), \
            taken(name, capacity(name) - 12 * MIB):
        buffer = call(fd, 4 * MIB)
        with held("waiting", "/dev/" + name, 16 * MIB, user=True):
            end = time.monotonic() + 60
            while "reserved" not in read(f"{DEBUGFS}/{name}/waiting"):
                need(time.monotonic() < end, "no reservation")
                free(fd, call(fd, 2 * 65536))
            free(fd, buffer)
            found = agree(name, "reserved", 10 * MIB)
            need(any("waits" in hint for hint in found["hints"]), found)
            agree(name, None, 6 * MIB)
            agree(name, "free_bytes", 14 * MIB)


@test
def a_user_knows_less(name):
    with open_to_all(name), taken(name, capacity(name) - 8 * MIB):
        found = agree(name, "free_bytes", 16 * MIB, user=True)
        need(found["unknown"], "nothing is unknown")
        need(not any(str(os.getpid()) in hint for hint in found["hints"]), found)
        need("best_hole" not in found["memory"], found)
        agree(name, None, 4 * MIB, user=True)
    with open_to_all(name), fragmented(name, MIB):
        found = answer(name, 2 * MIB, ["HUGE_ONLY"], user=True)
        need(found["verdict"] in ("fails", "unknown"), found)
    idle(name)


@test
def wrong_usage(name):
    for words in (), ("x",), ("4M", "FIXED"), ("4M", "contiguous"), ("4M", name, name), \
            ("-1",), ("4M", name + "/carveout"), ("4M", "ALIGN=x"), ("99999999999999999999",), \
            ("4M", "ALIGN="), ("4M", name + "/carveout1x"):
        need("usage" in accmem("explain", *words, status=2), words)
    accmem("explain", "4M", "accmem99", status=3)


main("explain")
