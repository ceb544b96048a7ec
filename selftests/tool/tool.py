# SPDX-License-Identifier: GPL-2.0
"""Tests of the command accmem, on devices in states made on purpose.

The JSON of the command is compared with sysfs, with debugfs and with the sizes of the
buffers that helpers/hold has. Prints TAP. Runs as root, in the guest of tools/vm.
"""
import contextlib
import ctypes
import glob
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import jsonschema

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
BUILT = ROOT + "/build/host/accmem"
HOLD = ROOT + "/build/selftests/helpers/hold"
SCHEMA = ROOT + "/tools/accmem/accmem.schema.json"
CLASS = "/sys/class/accmem"
DEBUGFS = "/sys/kernel/debug/accmem"
PARAMETERS = "/sys/module/accmem/parameters"
DEVICES = {"emulated": "accmem0", "phys": "accmem1", "nopages": "accmem2"}
MIB = 1 << 20
NOBODY = 65534
VALUES = """capacity free_bytes live_bytes detached_bytes pending_bytes quarantined_bytes
    retired_bytes retire_pending_bytes retire_failed_bytes largest_free_run dirty_bytes
    resident_bytes buffers allocs frees failures""".split()
STATES = ["live_bytes", "detached_bytes", "pending_bytes", "quarantined_bytes"]
TESTS = []
WORK = tempfile.mkdtemp()
TOOL = WORK + "/accmem"


def test(function):
    TESTS.append(function)
    return function


def need(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


def same(got, wanted, what):
    need(got == wanted, f"{what}: {got}, not {wanted}")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def copy_tool():
    """Copy the command and its libraries: the guest reads each file of the host slowly."""
    libraries = subprocess.run(["ldd", BUILT], capture_output=True, text=True, check=True)
    for path in [BUILT] + re.findall(r"=> (/\S+)", libraries.stdout):
        shutil.copy(path, WORK)
    os.chmod(WORK, 0o755)
    os.environ["LD_LIBRARY_PATH"] = WORK


def become_nobody():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def accmem(*arguments, status=0, user=False, columns=None, **environment):
    """Run the command; return its output and its errors."""
    variables = dict(os.environ, **environment)
    if columns:
        variables["COLUMNS"] = str(columns)
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, env=variables,
                          preexec_fn=become_nobody if user else None, check=False)
    same(done.returncode, status, f"status of {arguments}, which says {done.stderr!r}")
    return done.stdout if status == 0 else done.stderr


def snapshot(**options):
    found = json.loads(accmem("--json", **options))
    with open(SCHEMA, encoding="utf-8") as file:
        jsonschema.validate(found, json.load(file))
    return found


def device_of(found, name):
    return next(d for d in found["devices"] if d["name"] == name)


@contextlib.contextmanager
def held(*arguments, user=False):
    """A process of helpers/hold; its output can be read after the block."""
    process = subprocess.Popen([HOLD, *map(str, arguments)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True,
                               preexec_fn=become_nobody if user else None)
    try:
        same(process.stdout.readline(), "held\n", f"hold {arguments}")
        yield process
    finally:
        process.stdin.close()
        process.last = process.stdout.read()
        process.stdout.close()
        process.wait()


def idle(name):
    """Wait until the device's memory is free."""
    for _ in range(200):
        if read(f"{CLASS}/{name}/free_bytes") == read(f"{CLASS}/{name}/capacity"):
            return
        time.sleep(0.1)
    raise AssertionError(f"{name} is not free again")


@contextlib.contextmanager
def added(description="64M"):
    """A device that root adds, since retired memory stays retired."""
    name = accmem("devices", "add", "emulated", description).strip()
    try:
        need(re.fullmatch(r"accmem\d+", name), f"'{name}' was added")
        yield name
    finally:
        if os.path.exists(f"{CLASS}/{name}"):
            accmem("devices", "remove", "--force", name)


def agree(found, name):
    """Each number of the JSON is that of the file in sysfs."""
    device = device_of(found, name)
    for where, values in [(".", device)] + [(m["name"], m) for m in device["memories"]]:
        for value in VALUES:
            same(str(values[value]), read(f"{CLASS}/{name}/{where}/{value}"),
                 f"{name}/{where}/{value}")
    same(str(device["contexts"]), read(f"{CLASS}/{name}/contexts"), "contexts")
    for memory in device["memories"]:
        directory = f"{CLASS}/{name}/{memory['name']}"
        same(memory["bandwidth"], read(directory + "/bandwidth"), "bandwidth")
        same(str(memory["numa_node"]), read(directory + "/numa_node"), "numa_node")


@test
def free_devices_agree_with_sysfs(name):
    idle(name)
    found = snapshot()
    need(found["complete"])
    names = [os.path.basename(d) for d in glob.glob(CLASS + "/accmem*")]
    same(sorted(d["name"] for d in found["devices"]), sorted(names), "devices")
    for each in names:
        agree(found, each)
    need(name in accmem())


@test
def states_agree_with_sysfs(name):
    path, pinned = "/dev/" + name, read(f"{DEBUGFS}/{name}/usage") and name != "accmem2"
    with contextlib.ExitStack() as stack:
        stack.enter_context(held("open", path, 6 * MIB))
        stack.enter_context(held("detached", path, 2 * MIB))
        stack.enter_context(held("mapped", path, 4 * MIB))
        stack.enter_context(held("pending", path, 8 * MIB))
        wanted = [6 * MIB, 6 * MIB, 8 * MIB, 0]
        if pinned:
            stack.enter_context(held("pinned", path, 2 * MIB))
            wanted[3] = 2 * MIB
        found = snapshot()
        agree(found, name)
        device = device_of(found, name)
        same([device[s] for s in STATES], wanted, "states")
        same(device["free_bytes"], device["capacity"] - sum(wanted), "free")
        text = accmem(columns=80)
        for letter in "# live 6.00M", "d detached 6.00M", "p pending 8.00M":
            need(letter in text, f"no '{letter}' in {text}")
    idle(name)


@test
def contexts_have_their_processes_and_bytes(name):
    path = "/dev/" + name
    with held("open", path, 6 * MIB) as one, held("pending", path, 2 * MIB) as two, \
            held("mapped", path, 4 * MIB) as three:
        found = [c for c in snapshot()["contexts"] if c["device"] == name]
        by_pid = {c["pids"][0]: c for c in found}
        same(sorted(by_pid), sorted([one.pid, two.pid, three.pid]), "processes")
        context = by_pid[one.pid]
        same([context[k] for k in ("buffers", "live_bytes", "pending_bytes",
                                   "waiting", "uid", "command", "open")],
             [1, 6 * MIB, 0, 0, 0, "hold", True], "the live one")
        same([by_pid[two.pid][k] for k in ("buffers", "live_bytes", "pending_bytes")],
             [0, 0, 2 * MIB], "the pending one")
        same([by_pid[three.pid][k] for k in ("open", "charged_bytes")],
             [False, 4 * MIB], "the closed one")
        line = next(l for l in accmem(columns=200).splitlines()
                    if f" {three.pid} " in l)
        need(line.endswith("closed"), line)
    idle(name)


@test
def a_context_of_two_processes_is_counted_once(name):
    fd = os.open("/dev/" + name, os.O_RDWR)
    child = os.fork()
    if not child:
        signal.pause()
    copy = os.dup(fd)
    try:
        found = [c for c in snapshot()["contexts"] if c["device"] == name]
        same([sorted(c["pids"]) for c in found], [sorted([os.getpid(), child])], "pids")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(copy)
        os.close(fd)


@test
def users_agree_with_debugfs(name):
    with held("open", "/dev/" + name, 6 * MIB):
        users = {u["uid"]: u for u in snapshot()["users"]}
        for line in read(DEBUGFS + "/users").splitlines()[1:]:
            uid, contexts, buffers, charged, *_ = map(int, line.split())
            same([users[uid][k] for k in ("contexts", "buffers", "charged_bytes")],
                 [contexts, buffers, charged], f"user {uid}")
        same(users[0]["charged_bytes"], 6 * MIB, "root")
    idle(name)


@test
def waiters_are_shown_in_their_order(name):
    path, capacity = "/dev/" + name, int(read(f"{CLASS}/{name}/capacity"))
    with held("open", path, 2 * MIB), held("waiting", path, capacity) as first, \
            held("waiting", path, capacity - MIB) as second:
        found = snapshot()
        device = device_of(found, name)
        same(device["waiting"], 2, "waiting")
        same([w["bytes"] for w in device["waiters"]], [capacity, capacity - MIB], "bytes")
        waiting = [c for c in found["contexts"] if c.get("waiting")]
        same([c["pids"] for c in waiting], [[first.pid], [second.pid]], "who waits")
        need("WAITS FOR" in accmem(), "no table")
        first.kill()
        second.kill()
    idle(name)


@test
def limits_are_shown_and_set(name):
    file = PARAMETERS + "/max_bytes_per_user"
    before = read(file)
    try:
        same(accmem("limits", "max_bytes_per_user=3G"),
             f"max_bytes_per_user={3 << 30}\n", "output")
        same(read(file), str(3 << 30), "value")
        same(json.loads(accmem("limits", "--json"))["max_bytes_per_user"], 3 << 30, "json")
        need(re.search(rf"max_bytes_per_user +{3 << 30}\n", accmem("limits")), "no line")
        for value in "x", "", "-1", "1.5G", "1\n2", "99999999999999999999":
            accmem("limits", "max_bytes_per_user=" + value, status=1)
            same(read(file), str(3 << 30), f"after '{value}'")
        for other in "max_bytes", "emulated=1G", "../uevent=1", "=1", "max_bytes_per_user":
            accmem("limits", "max_bytes_per_user=1", other, status=2)
            same(read(file), str(3 << 30), f"after '{other}'")
        for key, value in json.loads(accmem("limits", "--json")).items():
            same(str(value), read(f"{PARAMETERS}/{key}"), key)
    finally:
        write(file, before)


@test
def who_finds_processes_and_addresses(name):
    with held("open", "/dev/" + name, 6 * MIB) as one:
        found = json.loads(accmem("who", "--json", str(one.pid)))
        same([c["pids"] for c in found["contexts"]], [[one.pid]], "contexts")
        same([b["length"] for b in found["buffers"]], [6 * MIB], "buffers")
        buffer = found["buffers"][0]
        need(f" {buffer['address']:#x} {buffer['length']} " in
             read(f"{DEBUGFS}/{name}/buffers"), "the address is not in debugfs")
        for address in buffer["address"], buffer["address"] + 6 * MIB - 1:
            by_address = json.loads(accmem("who", "--json", hex(address)))
            same(by_address, found, hex(address))
        need(str(one.pid) in accmem("who", hex(buffer["address"])), "no process")
        for address in buffer["address"] - 1, buffer["address"] + 6 * MIB, 0, 2**64 - 1:
            need("no buffer has" in accmem("who", hex(address), status=1))
        need("may not see" in accmem("who", "1", status=1))
    for wrong in "", "x", "0x", "-1", "1x", "0x1g", "99999999999999999999":
        accmem("who", wrong, status=2)
    idle(name)


@test
def devices_are_added_and_removed(_name):
    before = sorted(glob.glob("/dev/accmem*"))
    with added("4M+8M/high") as name:
        need(os.path.exists("/dev/" + name), "no node")
        device = next(d for d in json.loads(accmem("devices", "--json"))
                      if d["name"] == name)
        same([m["capacity"] for m in device["memories"] if m["name"] != "host"],
             [4 * MIB, 8 * MIB], "carveouts")
        need(re.search(rf"^{name} +12.0M +2 ", accmem("devices"), re.M), "no line")
        with held("open", "/dev/" + name) as one:
            need("--force" in accmem("devices", "remove", name, status=1))
            need(os.path.exists("/dev/" + name), "it is gone")
            accmem("devices", "remove", "--force", name)
            need(not os.path.exists("/dev/" + name), "it stays")
        same(one.last, "lost\n", "its program")
        accmem("devices", "remove", name, status=3)
    same(sorted(glob.glob("/dev/accmem*")), before, "nodes")
    for text in "", "x", "1M,1M":
        accmem("devices", "add", "emulated", text, status=1)
    for words in ("add",), ("add", "pci", "1M"), ("remove",), ("move", "accmem0"):
        accmem("devices", *words, status=2)
    same(sorted(glob.glob("/dev/accmem*")), before, "nodes")


@test
def reset_takes_the_memory(_name):
    with added() as name:
        with held("open", "/dev/" + name) as one:
            need("--force" in accmem("reset", name, status=1))
        same(one.last, "kept\n", "without --force")
        with held("open", "/dev/" + name) as one:
            accmem("reset", "--force", name)
        same(one.last, "lost\n", "with --force")
        accmem("reset", name)
    for wrong in name, "accmem", "../accmem0", "":
        accmem("reset", wrong, status=3)
    accmem("reset", status=2)


@test
def retire_lists_and_retires(_name):
    with added("64M+64M") as name:
        accmem("retire", name, "0x10000", "8K")
        accmem("retire", name + "/carveout1", "1M", "1")
        same(read(f"{CLASS}/{name}/carveout0/retired_bytes"), "8192", "carveout0")
        same(read(f"{CLASS}/{name}/carveout1/retired_bytes"), "4096", "carveout1")
        same(accmem("retire", name).splitlines()[1].split(),
             ["0x10000", "0x2000", "retired", "admin"], "list")
        agree(snapshot(), name)
        for words in ("x", "1"), ("0", "0"), ("64M", "1"), ("0", "1 2"), ("0", "1\n"):
            accmem("retire", name, *words, status=1)
        same(read(f"{CLASS}/{name}/retired_bytes"), "12288", "afterwards")
        lines = accmem("map", name, columns=80).splitlines()
        cells = [l.split()[1] for l in lines if re.match(r" *0x", l) or re.match(r" +0 ", l)]
        same(sum(row.count("x") for row in cells), 2, "cells with retired memory")
        accmem("retire", name, "1", status=2)
    for wrong in name, "accmem0/carveout99", "../../kernel/mm", "accmem0/..":
        accmem("retire", wrong, status=3)


@test
def map_has_the_cells_of_occupancy(name):
    with held("open", "/dev/" + name, 8 * MIB):
        for columns, row in (80, 64), (200, 128):
            lines = accmem("map", name, columns=columns).splitlines()
            cells = "".join(l.split()[1] for l in lines[1:-1])
            need(max(len(l.split()[1]) for l in lines[1:-1]) <= row, "too wide")
            occupancy = read(f"{DEBUGFS}/{name}/occupancy").splitlines()
            same(cells, "".join(l.split()[1] for l in occupancy if l[0] != "#"), "cells")
            need("#" in cells and "." in cells, cells)
    accmem("map", "accmem99", status=3)
    idle(name)


@test
def a_user_sees_capacities_and_own_contexts(name):
    path = "/dev/" + name
    mode = os.stat(path).st_mode & 0o777
    with held("open", path, 6 * MIB) as one:
        found = snapshot(user=True)
        device = device_of(found, name)
        need(not found["complete"])
        same(found["contexts"], [], "contexts")
        same(found["users"], [], "users")
        same([v for v in VALUES + ["contexts", "waiting"] if v in device], ["capacity"],
             "values without the right to open the device")
        same(device["capacity"], int(read(f"{CLASS}/{name}/capacity")), "capacity")
        same(found["limits"], snapshot()["limits"], "limits")
        need(name in accmem(user=True))
        os.chmod(path, 0o666)
        try:
            with held("open", path, 2 * MIB, user=True) as own:
                found = snapshot(user=True)
                same([c["pids"] for c in found["contexts"]], [[own.pid]], "contexts")
                same(found["contexts"][0]["live_bytes"], 2 * MIB, "live")
                same([u["uid"] for u in found["users"]], [NOBODY], "users")
                device = device_of(found, name)
                same(device["free_bytes"], device["capacity"] - 8 * MIB, "free")
                need("live_bytes" not in device and "waiters" not in device)
                need("root" not in accmem(user=True).replace("Root", ""), "root is shown")
                need(str(own.pid) in accmem("who", str(own.pid), user=True))
                accmem("who", str(one.pid), user=True, status=1)
        finally:
            os.chmod(path, mode)
    idle(name)


@test
def a_user_changes_nothing(name):
    before = snapshot()["limits"]
    with held("open", "/dev/" + name) as one:
        for words in ("who", "0x1000"), ("limits", "overdue_ms=1"), ("map",), \
                ("reset", name), ("reset", "--force", name), ("retire", name), \
                ("retire", name, "0", "4096"), ("devices", "add", "emulated", "4M"), \
                ("devices", "remove", "--force", name):
            need(accmem(*words, user=True, status=1).startswith("accmem: "), words)
        accmem("devices", user=True)
        accmem("limits", user=True)
    same(one.last, "kept\n", "the program")
    same(snapshot()["limits"], before, "limits")
    same(read(f"{CLASS}/{name}/retired_bytes"), "0", "retired")
    idle(name)


def on_terminal(*arguments, keys=b"", seconds=0.5, **environment):
    """Run the command on a terminal of 80 columns; return what it draws."""
    pid, fd = pty.fork()
    if not pid:
        os.environ.update({"TERM": "xterm", **environment})
        os.execv(TOOL, [TOOL, *arguments])
    drawn, end = b"", time.monotonic() + 60
    quiet = None  # a key before the end of a picture would suppress the rest
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.2)[0]:
            try:
                chunk = os.read(fd, 65536)
            except OSError:
                break
            if not chunk:
                break
            drawn += chunk
            quiet = time.monotonic() + seconds
        if keys and quiet and time.monotonic() > quiet:
            os.write(fd, keys[:1])
            keys, quiet = keys[1:], time.monotonic() + seconds
    os.close(fd)
    same(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, f"status of {arguments}")
    return drawn.decode()


@test
def colors_are_for_terminals(name):
    with held("open", "/dev/" + name, 8 * MIB):
        need("\033[32m#" in on_terminal(), "no color on a terminal")
        need("\033" not in on_terminal(NO_COLOR="1"), "a color in spite of NO_COLOR")
        need("\033" not in on_terminal(TERM="dumb"), "a color on a dumb terminal")
        need("\033" not in accmem() + accmem("map"), "a color in a file")
    idle(name)


@test
def top_shows_processes_and_their_buffers(name):
    with held("pending", "/dev/" + name):
        drawn = on_terminal("top", keys=b"\rq", seconds=1, TERM="vt100")
        need("stream 1 at 0, claimed up to 0, pending buffers 1" in drawn, drawn)
    idle(name)
    with held("open", "/dev/" + name, 8 * MIB) as one:
        address = json.loads(accmem("who", "--json", str(one.pid)))["buffers"][0]["address"]
        drawn = on_terminal("top", keys=b"wlcpq", seconds=1, TERM="vt100")
        need(str(one.pid) in drawn and "COMMAND" in drawn, drawn)
        drawn = on_terminal("top", keys=b"l\rq", seconds=1, TERM="vt100")
        need(f"buffer {address:#x} of 8.00M" in drawn, drawn)
    idle(name)
    with held("open", "/dev/" + name, int(read(f"{CLASS}/{name}/capacity")) // 4):
        need("\033[32m#" in on_terminal("top", keys=b"q"), "no color")
        need("\033[32m" not in on_terminal("top", keys=b"q", NO_COLOR="1"), "a color")
    need("needs a terminal" in accmem("top", status=1))
    idle(name)


@test
def no_line_is_wider_than_the_terminal(name):
    with held("open", "/dev/" + name, 8 * MIB) as one, held("pending", "/dev/" + name):
        for columns in 80, 200:
            for words in (), ("map",), ("devices",), ("who", str(one.pid)):
                text = accmem(*words, columns=columns)
                longest = max(text.splitlines(), key=len)
                need(len(longest) <= columns, f"{columns}: {longest}")
    idle(name)


@test
def a_name_cannot_change_the_terminal(name):
    libc = ctypes.CDLL(None)
    child = os.fork()
    if not child:
        libc.prctl(15, b"\033[2J\n\t\"\\\xff", 0, 0, 0)
        os.open("/dev/" + name, os.O_RDWR)
        signal.pause()
    try:
        for _ in range(100):
            found = [c for c in snapshot()["contexts"] if c["pids"] == [child]]
            if found:
                break
        same(found[0]["command"], "?[2J", "the name")
        text = accmem(columns=200)
        need("\033" not in text and "?[2J" in text, text)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@test
def watch_repeats(name):
    with subprocess.Popen([TOOL, "--json", "--watch=0.2"], stdout=subprocess.PIPE,
                          text=True) as process:
        first = json.loads(process.stdout.readline())
        with held("open", "/dev/" + name, 6 * MIB):
            for _ in range(20):
                later = json.loads(process.stdout.readline())
                if device_of(later, name)["live_bytes"] == 6 * MIB:
                    break
            same(device_of(later, name)["live_bytes"], 6 * MIB, "live")
        process.kill()
    same(device_of(first, name)["live_bytes"], 0, "live at first")
    for seconds in "0", "x", "-1", "1e9", "nan", "inf":
        accmem("--watch=" + seconds, status=2)
    idle(name)


def main():
    backing = os.environ.get("ACCMEM_BACKING")
    names = [DEVICES[backing]] if backing else list(DEVICES.values())
    failed, number = 0, 0
    os.environ.pop("COLUMNS", None)
    copy_tool()
    print("TAP version 13")
    for name in names:
        for function in TESTS:
            number += 1
            title = f"{number} tool.{name}.{function.__name__}"
            if not os.path.exists("/dev/" + name):
                print(f"ok {title} # SKIP needs /dev/{name}", flush=True)
                continue
            try:
                function(name)
                print("ok", title, flush=True)
            except Exception as error:  # pylint: disable=broad-except
                failed += 1
                for line in f"{type(error).__name__}: {error}".splitlines():
                    print("#", line.replace("\033", "<ESC>"))
                print("not ok", title, flush=True)
    shutil.rmtree(WORK)
    print(f"1..{number}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
