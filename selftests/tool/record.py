# SPDX-License-Identifier: GPL-2.0
"""Tests of accmem record, on each device.

Programs are recorded, and the traces are compared with the counters of sysfs, with the
statistics of accmem run, with the trace that a replay has replayed, and with their own
replay. Prints TAP. Runs as root, in the guest of tools/vm.
"""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from common import (BUILT, CLASS, MIB, ROOT, TOOL, WORK, accmem, added, idle, main, need, read,
                    same, test, write)

TRACE = WORK + "/out.trace"
INSTANCES = "/sys/kernel/tracing/instances"
PYTHON = "/usr/bin/python3"
SERVANT = "import sys\nfor line in sys.stdin: exec(line); print('done', flush=True)"
SQLITE = """import sqlite3
db = sqlite3.connect(':memory:')
db.execute('CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT)')
for n in range(40):
    db.executemany('INSERT INTO t (v) VALUES (?)', [('x' * 900,) for i in range(40)])
    db.execute('DELETE FROM t WHERE k % 3 = 0')
print(db.execute('SELECT count(*) FROM t').fetchone()[0], len(b''.join([b'y' * 300000] * 9)))
"""
SHRINK = """import ctypes
lib, ctx = ctypes.CDLL('{library}'), ctypes.c_void_p()
alloc, realloc = (ctypes.c_uint64 * 64)(), (ctypes.c_uint64 * 64)()
assert not lib.accmem_open(b'{path}', ctypes.byref(ctx))
alloc[0], alloc[1] = 0x200 << 32, 4 << 20  # ACCMEM_ALLOC_RESIZABLE
assert not lib.accmem_allocate(ctx, alloc)
realloc[1], realloc[2] = alloc[5], 1 << 20
assert not lib.accmem_reallocate(ctx, realloc)
assert realloc[1] == alloc[5]
assert not lib.accmem_release(ctx, ctypes.c_uint64(realloc[1]))
"""


def counts(name):
    return [int(read(f"{CLASS}/{name}/{what}")) for what in ("allocs", "frees")]


def counted(name, before, wanted, what):
    """The counters of sysfs have risen so much. Closed files free their buffers later."""
    for _ in range(200):
        if [a - b for a, b in zip(counts(name), before)] == wanted:
            return
        time.sleep(0.1)
    same([a - b for a, b in zip(counts(name), before)], wanted, f"the counters of sysfs {what}")


def summary(path=TRACE):
    """Return allocations, frees, peak and lost events of the last line of a trace."""
    last = read(path).splitlines()[-1]
    found = re.fullmatch(r"# (\d+) allocations, (\d+) frees, peak (\d+), lost events (\d+)", last)
    need(found, f"the last line is {last!r}")
    return [int(n) for n in found.groups()]


def canonical(path):
    """The events of a trace, with the number of the allocation in place of the id."""
    events, ids, number = [], {}, 0
    for line in read(path).splitlines():
        word, *fields = line.split()
        if word == "a":
            need(fields[0] not in ids, f"{line}: this id is live")
            ids[fields[0]], number = number, number + 1
            events.append(("a", int(fields[1])))
        elif word == "f":
            events.append(("f", ids.pop(fields[0])))
    return events


def replay(path=TRACE, *options):
    line = accmem("replay", *options, path)
    return {k: v for k, v in (field.split("=") for field in line.split())}


def no_instance():
    need(not [n for n in os.listdir(INSTANCES) if n.startswith("accmem-record-")],
         "an instance is left in tracefs")


def small_trace(count=2000, most=4 * MIB):
    """The beginning of a recorded model, with the buffers that most bytes have room for."""
    live, sizes, lines = 0, {}, []
    with open(ROOT + "/traces/gpt.trace", encoding="utf-8") as rows:
        for row in rows:
            word, ident, *size = row.split()
            if word == "a" and live + int(size[0]) <= most:
                sizes[ident] = int(size[0])
                live += sizes[ident]
                lines.append(row)
            elif word == "f" and ident in sizes:
                live -= sizes.pop(ident)
                lines.append(row)
            if len(lines) >= count:
                break
    write(WORK + "/small.trace", "".join(lines))
    return WORK + "/small.trace"


def in_run(name, *options):
    return [BUILT, "run", "--device", "/dev/" + name, *options]


@contextlib.contextmanager
def servant(name):
    """A process whose large allocations are on the device; send it lines of Python."""
    process = subprocess.Popen([*in_run(name, "--threshold", "256K"), PYTHON, "-c", SERVANT],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def order(line):
        process.stdin.write(line + "\n")
        process.stdin.flush()
        same(process.stdout.readline(), "done\n", line)
    process.order = order
    try:
        order("pass")
        yield process
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


@contextlib.contextmanager
def recording(*options, ends=signal.SIGINT, status=0):
    """A recording that is under way; a signal ends it."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(TRACE)
    process = subprocess.Popen([TOOL, "record", "-o", TRACE, *options], stderr=subprocess.PIPE,
                               text=True)
    for _ in range(600):
        if os.path.exists(TRACE) and read(TRACE):
            break
        need(process.poll() is None, "accmem record has ended")
        time.sleep(0.1)
    yield process
    if ends:
        process.send_signal(ends)
    errors = process.communicate()[1]
    same(process.returncode, status, f"status of accmem record, which says {errors!r}")


@test
def a_replay_is_recorded_as_its_trace(name):
    idle(name)
    path = small_trace()
    before = counts(name)
    accmem("record", "-o", TRACE, "--device", name, "--", TOOL, "replay", "--device",
           "/dev/" + name, path)
    allocs, frees, peak, lost = summary()
    counted(name, before, [allocs, frees], "while recorded")
    events = canonical(TRACE)
    wanted = canonical(path)
    same(events[:len(wanted)], wanted, "the events")
    need(all(e[0] == "f" for e in events[len(wanted):]), "allocations after the trace")
    same([allocs, lost], [sum(e[0] == "a" for e in wanted), 0], "allocations, lost events")
    same(str(peak), replay(path)["peak"], "the peak")
    no_instance()


@test
def a_real_program_is_replayed_to_the_same_peak(name):
    idle(name)
    before = counts(name)
    stats = WORK + "/stats"
    accmem("record", "-o", TRACE, "--", *in_run(name, "--threshold", "4K", f"--stats={stats}"),
           PYTHON, "-c", SQLITE)
    allocs, frees, peak, lost = summary()
    need(allocs > 200, f"only {allocs} allocations")
    counted(name, before, [allocs, frees], "while recorded")
    before = counts(name)
    again = replay(TRACE, "--device", "/dev/" + name)
    counted(name, before, [allocs, allocs], "while replayed")
    print(f"# {name}: {allocs} allocations, {frees} frees, peak {peak};", read(stats), again)
    same(lost, 0, "lost events")
    same([again["peak"], again["failures"], again["corrupt"]], [str(peak), "0", "0"], "the replay")
    same(again["footprint"], str(peak), "the bytes of the device at the peak")
    had = int(re.search(r"peak=(\d+)", read(stats)).group(1))
    need(had <= peak < had + 4096 * (allocs + 1), f"{had} bytes were on the device")
    os.remove(stats)


@test
def children_of_a_command_are_recorded(name):
    idle(name)
    command = " ".join([*in_run(name, "--threshold", "256K"), PYTHON, "-c", "'bytearray(1 << 20)'"])
    with servant(name) as other:
        other.order("b = bytearray(3 << 20)")
        before = counts(name)
        process = subprocess.Popen(
            [TOOL, "record", "-o", TRACE, "sh", "-c", f"{command} & wait; {command}"])
        while process.poll() is None:
            other.order("b = bytearray(5 << 20)")
            other.order("del b")
            time.sleep(0.1)
        same(process.returncode, 0, "the status")
    events = canonical(TRACE)
    sizes = [e[1] for e in events if e[0] == "a"]
    need(sum(MIB <= s < 2 * MIB for s in sizes) == 2 and max(sizes) < 2 * MIB, sizes)
    need(counts(name)[0] - before[0] > summary()[0], "the other process made no allocation")


@test
def a_process_is_recorded_alone(name):
    with servant(name) as one, servant(name) as two:
        one.order("old = bytearray(1 << 20)")
        with recording("--pid", str(one.pid)):
            two.order("b = bytearray(3 << 20)")
            one.order("b = bytearray(5 << 20)")
            two.order("del b")
            one.order("del b")
            one.order("del old")
        sizes = [e[1] // MIB for e in canonical(TRACE) if e[0] == "a"]
        same([sizes, summary()[:2]], [[5], [1, 1]], "the allocations")


@test
def the_end_of_a_process_ends_the_recording(name):
    with servant(name) as one, recording("--pid", str(one.pid), ends=None):
        one.order("b = bytearray(5 << 20)")
        one.stdin.close()
    same(summary()[:2], [1, 1], "allocations and frees")


@test
def a_device_is_recorded_alone(name):
    with added() as other, servant(name) as one, servant(other) as two:
        for options, wanted in [(["--device", name], [5]), (["--device", other], [3]),
                                ([], [3, 5])]:
            with recording(*options):
                two.order("b = bytearray(3 << 20)")
                one.order("b = bytearray(5 << 20)")
                two.order("del b")
                one.order("del b")
            sizes = [e[1] // MIB for e in canonical(TRACE) if e[0] == "a"]
            same(sizes, wanted, f"the allocations with {options}")


@test
def reallocations_are_recorded(name):
    shrink = SHRINK.format(library=ROOT + "/build/host/libaccmem.so", path="/dev/" + name)
    accmem("record", "-o", TRACE, "--", PYTHON, "-c", shrink)
    same(canonical(TRACE), [("a", 4 * MIB), ("f", 0), ("a", MIB), ("f", 1)], "in place")
    with servant(name) as one, recording("--device", name):
        one.order("b = bytearray(1 << 20)")
        one.order("for n in range(30): b.extend(bytes(200000))")
        one.order("del b")
    live = most = 0
    sizes = []
    for word, value in canonical(TRACE):
        if word == "a":
            sizes.append(value)
            live += value
        else:
            live -= sizes[value]
        most = max(most, live)
    need(len(sizes) > 5 and most > 6 * MIB, f"{sizes}")
    same(live, 0, "the bytes that are live at the end")


@test
def lost_events_are_reported(name):
    path = small_trace(6000)
    errors = accmem("record", "-o", TRACE, "--buffer", "4K", "--", TOOL, "replay", "--device",
                    "/dev/" + name, path, status=1)
    need("events were lost: the trace is not complete" in errors, errors)
    need(summary()[3] > 0, "no lost events in the trace")
    canonical(TRACE)
    replay()


@test
def signals_end_the_recording_and_the_command(name):
    for number in signal.SIGTERM, signal.SIGHUP, signal.SIGINT:
        with recording("--device", name, "sh", "-c", "exec sleep 1000", ends=number):
            pass
        no_instance()
        need(subprocess.run(["pgrep", "-x", "sleep"], check=False).returncode, "sleep runs")


@test
def the_next_recording_removes_the_instance_of_a_killed_one(name):
    with recording("--device", name, ends=signal.SIGKILL, status=-signal.SIGKILL) as process:
        pass
    need(os.path.exists(f"{INSTANCES}/accmem-record-{process.pid}"), "there is no instance")
    with recording("--device", name):
        need(not os.path.exists(f"{INSTANCES}/accmem-record-{process.pid}"), "it is there")
    no_instance()


@test
def what_cannot_be_recorded_is_refused(name):
    os.chmod(WORK, 0o777)
    for text, status, user, options in [
            ("trace events are for root", 1, True, []),
            ("there is no device accmem77", 3, False, ["--device", "accmem77"]),
            ("there is no process 4000000", 1, False, ["--pid", "4000000"]),
            ("/nowhere: No such file or directory", 1, False, ["/nowhere"]),
            ("usage: accmem record", 2, False, ["--pid", "1", "true"]),
            ("usage: accmem record", 2, False, ["--pid", "0"]),
            ("usage: accmem record", 2, False, ["--buffer", "4095"]),
            ("usage: accmem record", 2, False, ["--context", "1"])]:
        errors = accmem("record", "-o", TRACE, *options, status=status, user=user)
        need(text in errors, f"{options}: {errors!r}")
        no_instance()
    errors = accmem("record", "-o", "/nowhere/trace", "--device", name, status=1)
    need("/nowhere/trace: No such file or directory" in errors, errors)
    errors = accmem("record", "-o", "/dev/full", "true", status=1)
    need("/dev/full: No space left on device" in errors, errors)
    no_instance()


@test
def a_refused_recording_leaves_the_trace_as_it_is(_name):
    write(TRACE, "old")
    accmem("record", "-o", TRACE, "/nowhere", status=1)
    accmem("record", "-o", TRACE, "--pid", "4000000", status=1)
    same(read(TRACE), "old", "the trace")


@test
def the_default_name_is_not_followed(_name):
    directory = tempfile.mkdtemp()
    write(directory + "/other", "old")
    os.symlink("other", directory + "/accmem.trace")
    done = subprocess.run([TOOL, "record", "true"], cwd=directory, stderr=subprocess.PIPE,
                          text=True, check=False)
    need("accmem.trace: Too many levels of symbolic links" in done.stderr, done.stderr)
    same(read(directory + "/other"), "old", "the other file")
    shutil.rmtree(directory)


@test
def a_program_that_goes_on_unrecorded_is_named(_name):
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        done = subprocess.run([TOOL, "record", "-o", "/dev/full", "sleep", "30"],
                              stderr=said, check=False)
        said.seek(0)
        text = said.read()
    same(done.returncode, 1, "the status")
    found = re.search(r"sleep: process (\d+).*goes on", text)
    need(found, text)
    os.kill(int(found[1]), signal.SIGKILL)


@test
def a_signal_that_is_ignored_stays_ignored(_name):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with recording("sleep", "60") as process:
            process.send_signal(signal.SIGHUP)
            time.sleep(0.5)
            need(process.poll() is None, "SIGHUP ends the recording")
    finally:
        signal.signal(signal.SIGHUP, before)


@test
def the_status_of_the_command_is_reported(name):
    for text, script in [("sh: ended with status 7", "exit 7"),
                         ("sh: ended by signal 9", "kill -9 $$")]:
        done = subprocess.run([TOOL, "record", "-o", TRACE, "--device", name, "sh", "-c", script],
                              stderr=subprocess.PIPE, text=True, check=False)
        same(done.returncode, 0, "the status")
        need(text in done.stderr, done.stderr)


if __name__ == "__main__":
    if not os.path.exists("/sys/kernel/tracing/events/accmem"):
        print("TAP version 13\nok 1 record # SKIP the kernel has no trace events\n1..1")
        sys.exit(0)
    main("record")
