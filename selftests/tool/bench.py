# SPDX-License-Identifier: GPL-2.0
"""Tests of accmem bench: the command makes the calls whose times it prints.

Times are compared only where one operation contains the other, or moves 500 times the bytes.
"""
from common import CLASS, MIB, accmem, added, idle, main, need, parsed, read, same, test

KIB = 1024
OF_A_SIZE = ["allocate", "use", "write", "read"]


def bench(*arguments):
    """Return the times by operation and size (0: no buffer), as (device, ordinary) in ns."""
    found = parsed(accmem("bench", "--json", *arguments), "bench")
    same(found["device"], arguments[-1].split("/")[0], "device")
    return {(r["operation"], r.get("size", 0)): (r["device_ns"], r["ordinary_ns"])
            for r in found["results"]}


def counts(name, carveout=0):
    directory = f"{CLASS}/{name}/carveout{carveout}"
    return int(read(directory + "/allocs")), int(read(directory + "/frees"))


@test
def a_size_is_measured_on_each_backing(name):
    before = counts(name)
    found = bench("64K", name)
    same(sorted(found), sorted([("call", 0)] + [(o, 64 * KIB) for o in OF_A_SIZE]), "rows")
    need(min(min(times) for times in found.values()) > 0, found)
    if found["use", 64 * KIB][0] <= found["allocate", 64 * KIB][0]:
        found = bench("64K", name)  # the machine may have paused
    need(found["use", 64 * KIB][0] > found["allocate", 64 * KIB][0], found)
    allocs, frees = (after - old for after, old in zip(counts(name), before))
    need(allocs > 100 and allocs == frees, f"{allocs} allocations, {frees} frees")
    idle(name)


@test
def the_sizes_are_those_that_fit(_name):
    with added("16M") as small:
        found = bench(small)
        same(sorted({size for _, size in found}), [0, 4 * KIB, 64 * KIB, 2 * MIB], "sizes")
        for operation in "write", "read":
            for i in range(2):
                need(found[operation, 2 * MIB][i] > 10 * found[operation, 4 * KIB][i], found)
        idle(small)


@test
def the_sizes_are_those_of_the_carveout(_name):
    with added("128M+16M") as two:
        found = bench(f"{two}/carveout1")
        same(sorted({size for _, size in found}), [0, 4 * KIB, 64 * KIB, 2 * MIB], "sizes")
        need(accmem("bench", "ALIGN=3", two, status=1, output=True).startswith("OPERATION"),
             "no results before the error")
        idle(two)


@test
def the_words_are_those_of_the_request(_name):
    with added("16M+16M") as two:
        bench("64K", "WC", "POPULATE", f"{two}/carveout1")
        same(counts(two), (0, 0), "calls in carveout0")
        need(counts(two, 1)[0] > 10, "no calls in carveout1")
        message = accmem("bench", "4096", "HUGE_ONLY", "ALIGN=3", two, status=1)
        need("4.00K: Invalid argument" in message, message)
        message = accmem("bench", "32M", two, status=1)
        need("32.0M: Cannot allocate memory (accmem explain gives the reason)" in message, message)
        message = accmem("bench", "0", two, status=1)
        need("Invalid argument" in message, message)
        message = accmem("bench", "1T", two, status=1)
        need("1.00T: more than a quarter" in message, message)
        idle(two)


@test
def a_user_needs_the_device_file(name):
    message = accmem("bench", "64K", name, user=True, status=1)
    need(f"/dev/{name}: Permission denied" in message, message)


@test
def the_table_fits_a_terminal(name):
    lines = accmem("bench", "64K", name, columns=80).splitlines()
    same(lines[0].split(), ["OPERATION", "SIZE", "DEVICE", "ORDINARY", "TIMES"], "titles")
    same(len(lines), 2 + len(OF_A_SIZE), "lines")
    need(max(map(len, lines)) <= 80, "a long line")
    need("/s" in lines[-1], lines[-1])


main("bench")
