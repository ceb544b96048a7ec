# SPDX-License-Identifier: GPL-2.0
"""Tests of accmem metrics.

The output is read by openmetrics.py, and its numbers are compared with sysfs, debugfs and
the limits. Prints TAP. Runs as root, in the guest of tools/vm.
"""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading

import openmetrics
from common import (CLASS, DEBUGFS, MIB, NOBODY, PARAMETERS, ROOT, TOOL, WORK, accmem, added,
                    held, idle, main, need, read, same, test)

VALUES = {"accmem_capacity_bytes": "capacity", "accmem_free_bytes": "free_bytes",
          "accmem_largest_free_run_bytes": "largest_free_run",
          "accmem_dirty_bytes": "dirty_bytes", "accmem_resident_bytes": "resident_bytes",
          "accmem_retired_bytes": "retired_bytes",
          "accmem_retire_pending_bytes": "retire_pending_bytes",
          "accmem_retire_failed_bytes": "retire_failed_bytes", "accmem_buffers": "buffers",
          "accmem_allocs_total": "allocs", "accmem_frees_total": "frees",
          "accmem_alloc_failures_total": "failures"}
STATES = ["live", "detached", "pending", "quarantined", "retired"]
MOST_USERS = 32


def metrics(**options):
    """Return the values by the name of the sample and its labels."""
    families = openmetrics.parse(accmem("metrics", **options))
    return {key: value for f in families.values() for key, value in f.samples.items()}


def value(found, name, **labels):
    key = (name, tuple(sorted(labels.items())))
    need(key in found, f"no {key}")
    return found[key]


def memories(name):
    return [d for d in os.listdir(f"{CLASS}/{name}") if re.fullmatch(r"carveout\d+|host", d)]


@contextlib.contextmanager
def for_all_users(name):
    path = "/dev/" + name
    mode = os.stat(path).st_mode & 0o777
    os.chmod(path, 0o666)
    try:
        yield
    finally:
        os.chmod(path, mode)


@test
def numbers_agree_with_sysfs(name):
    with held("open", "/dev/" + name, 6 * MIB):
        found = metrics()
        for memory in memories(name):
            for metric, file in VALUES.items():
                same(value(found, metric, device=name, memory=memory),
                     int(read(f"{CLASS}/{name}/{memory}/{file}")), f"{memory} {metric}")
        same(value(found, "accmem_contexts", device=name), int(read(f"{CLASS}/{name}/contexts")),
             "contexts")
        same(value(found, "accmem_module_info", version=read("/sys/module/accmem/version")), 1,
             "module")
        parent = os.path.basename(os.path.realpath(f"{CLASS}/{name}/device"))
        driver = os.path.basename(os.path.realpath(f"{CLASS}/{name}/device/driver"))
        same(value(found, "accmem_device_info", device=name, parent=parent, driver=driver), 1,
             "device")
    idle(name)


@test
def states_add_up(name):
    path = "/dev/" + name
    with contextlib.ExitStack() as stack:
        stack.enter_context(held("open", path, 6 * MIB))
        stack.enter_context(held("mapped", path, 4 * MIB))
        stack.enter_context(held("pending", path, 8 * MIB))
        found = metrics()
        for memory in memories(name):
            states = [value(found, "accmem_state_bytes", device=name, memory=memory, state=s)
                      for s in STATES]
            same(sum(states) + value(found, "accmem_free_bytes", device=name, memory=memory),
                 value(found, "accmem_capacity_bytes", device=name, memory=memory), memory)
        same([value(found, "accmem_state_bytes", device=name, memory="carveout0", state=s)
              for s in STATES[:3]], [6 * MIB, 4 * MIB, 8 * MIB], "states")
    idle(name)


def wait_times(name):
    lines = [line.split() for line in read(f"{DEBUGFS}/{name}/wait_times").splitlines()]
    return [int(nr) for _, nr in lines[:-1]], int(lines[-1][1])


@test
def waits_are_in_the_histogram(name):
    path, capacity = "/dev/" + name, int(read(f"{CLASS}/{name}/capacity"))
    with held("open", path, 2 * MIB) as holder:
        with held("waiting", path, capacity):
            found = metrics()
            same(value(found, "accmem_waiting", device=name), 1, "waiting")
            need(value(found, "accmem_longest_wait_seconds", device=name) > 0, "no time")
            holder.kill()
    found = metrics()
    same(value(found, "accmem_waiting", device=name), 0, "waiting")
    counts, ns = wait_times(name)
    need(sum(counts) > 0, "nothing was counted")
    for i, nr in enumerate(counts):
        bound = f"{4 ** i / 1000:.3f}" if i < len(counts) - 1 else "+Inf"
        bucket = value(found, "accmem_wait_seconds_bucket", device=name, le=bound)
        same(bucket, sum(counts[:i]) + nr, bound)
    same(value(found, "accmem_wait_seconds_count", device=name), sum(counts), "count")
    same(round(value(found, "accmem_wait_seconds_sum", device=name) * 1e9), ns, "sum")
    idle(name)


@test
def users_agree_with_debugfs(name):
    columns = ["contexts", "buffers", "charged_bytes", "pending_frees", "fences", "stream_waits",
               "resident_bytes", "exports"]
    path = "/dev/" + name
    with for_all_users(name), held("open", path, 6 * MIB), held("open", path, MIB, user=True):
        found = metrics()
        lines = read(DEBUGFS + "/users").splitlines()[1:]
        need(len(lines) >= 2, lines)
        for uid, *numbers in (line.split() for line in lines):
            user = {"0": "root", "65534": "nobody"}[uid]
            for column, number in zip(columns, numbers):
                same(value(found, "accmem_user_" + column, uid=uid, user=user), int(number),
                     f"{user} {column}")
    idle(name)


def opened_by(uid, path):
    """Start a process of a user that has the file open; return its number."""
    ready, done = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setresuid(uid, uid, uid)
            os.open(path, os.O_RDWR)
            os.write(done, b"x")
            signal.pause()
        finally:
            os._exit(1)
    os.close(done)
    same(os.read(ready, 1), b"x", f"open by {uid}")
    os.close(ready)
    return child


@test
def many_users_are_one_sample(name):
    children = []
    try:
        with for_all_users(name):
            for i in range(MOST_USERS + 8):
                children.append(opened_by(70000 + i, "/dev/" + name))
        found = metrics()
        users = {dict(labels)["uid"]: v for (metric, labels), v in found.items()
                 if metric == "accmem_user_contexts"}
        same(len(users), MOST_USERS + 1, "samples")
        total = sum(int(line.split()[1]) for line in read(DEBUGFS + "/users").splitlines()[1:])
        same(sum(users.values()), total, "contexts of all users")
        need(users["other"] >= 8, users)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


@test
def limits_agree_with_the_parameters(_name):
    found = metrics()
    for file in os.listdir(PARAMETERS):
        if not file.startswith("max_") and file not in ("overdue_ms", "waiter_reserve_ms"):
            continue
        number = int(read(f"{PARAMETERS}/{file}"))
        if file.endswith("_ms"):
            same(value(found, "accmem_limit_seconds", limit=file[:-3]), number / 1000, file)
        else:
            same(value(found, "accmem_limit" + ("_bytes" if "_bytes" in file else ""),
                       limit=file), number, file)


@test
def a_user_without_privilege(name):
    with for_all_users(name), held("open", "/dev/" + name, 6 * MIB, user=True):
        found = metrics(user=True)
        names = {metric for metric, _ in found}
        need({"accmem_capacity_bytes", "accmem_free_bytes", "accmem_limit"} <= names, names)
        need(not {"accmem_waiting", "accmem_wait_seconds_bucket", "accmem_contexts"} & names,
             names)
        same({dict(labels)["state"] for metric, labels in found
              if metric == "accmem_state_bytes"}, {"retired"}, "states")
    idle(name)


@test
def a_device_that_is_added(_name):
    with added("4M+4M") as name:
        found = metrics()
        same([value(found, "accmem_capacity_bytes", device=name, memory=m)
              for m in ("carveout0", "carveout1")], [4 * MIB, 4 * MIB], "capacity")
    need(not any(dict(labels).get("device") == name for _, labels in metrics()), "still there")


@test
def the_file_is_replaced_in_one_step(name):
    path, found, stop = WORK + "/accmem.prom", [], threading.Event()

    def look():
        while not stop.is_set():
            found.append(read(path))

    accmem("metrics", "-o", path)
    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(10):
            accmem("metrics", "--output", path)
    finally:
        stop.set()
        thread.join()
    need(len(found) > 1 and all(text.endswith("# EOF") for text in found), "incomplete")
    need(f'device="{name}"' in read(path), "another file")
    same([f for f in os.listdir(WORK) if f.startswith("accmem.prom")], ["accmem.prom"], "files")
    os.unlink(path)


@test
def the_file_has_the_mode_of_a_new_file(_name):
    path = WORK + "/accmem.prom"
    for mask, mode in (0o022, 0o644), (0o027, 0o640):
        before = os.umask(mask)
        accmem("metrics", "-o", path)
        os.umask(before)
        same(oct(os.stat(path).st_mode & 0o777), oct(mode), "mode")
    os.unlink(path)


@test
def a_file_that_is_not_regular_stays(_name):
    for path in "/dev/null", WORK + "/link":
        if path != "/dev/null":
            os.symlink("target", path)
        before = os.lstat(path)
        need("not a regular file" in accmem("metrics", "-o", path, status=1), path)
        same(os.lstat(path).st_ino, before.st_ino, path)
    os.unlink(WORK + "/link")


@test
def a_file_that_cannot_be_written(_name):
    need("No such file" in accmem("metrics", "-o", WORK + "/none/x", status=1), "no directory")
    directory = WORK + "/small"
    os.mkdir(directory)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", directory], check=True)
    try:
        with open(directory + "/x", "w", encoding="utf-8") as file:
            file.write("old")
        need("No space" in accmem("metrics", "-o", directory + "/x", status=1), "full")
        same(read(directory + "/x"), "old", "the file")
        same(os.listdir(directory), ["x"], "files")
    finally:
        subprocess.run(["umount", directory], check=True)
        os.rmdir(directory)


@test
def the_capabilities_of_the_service_are_enough(_name):
    service = read(ROOT + "/packaging/systemd/accmem-metrics.service.in")
    capability = re.search(r"^CapabilityBoundingSet=CAP_(\w+)$", service, re.MULTILINE)[1].lower()
    directory = WORK + "/exporter"
    os.mkdir(directory)
    os.chown(directory, NOBODY, NOBODY)
    subprocess.run(["setpriv", "--no-new-privs", "--bounding-set=-all,+" + capability, TOOL,
                    "metrics", "-o", directory + "/x"], check=True)
    found = openmetrics.parse(read(directory + "/x") + "\n")
    same({key for f in found.values() for key in f.samples}, set(metrics()), "samples")
    shutil.rmtree(directory)


main("metrics")
