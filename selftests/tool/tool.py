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
import re
import signal
import subprocess
import time
import xml.etree.ElementTree

from common import (CLASS, DEBUGFS, MIB, NOBODY, PARAMETERS, TOOL, accmem, added, device_of,
                    held, idle, main, need, on_terminal, read, same, snapshot, test, write)

VALUES = """capacity free_bytes live_bytes detached_bytes pending_bytes quarantined_bytes
    retired_bytes retire_pending_bytes retire_failed_bytes largest_free_run dirty_bytes
    resident_bytes buffers allocs frees failures""".split()
STATES = ["live_bytes", "detached_bytes", "pending_bytes", "quarantined_bytes"]


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
        accmem("limits", f"max_bytes_per_user={(1 << 64) - 1}")
        need(re.search(rf"max_bytes_per_user +{(1 << 64) - 1}\n", accmem("limits")), "no line")
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
def map_shows_owners(name):
    with held("open", "/dev/" + name, 8 * MIB) as one, \
            held("mapped", "/dev/" + name, 6 * MIB) as two:
        for columns, row in (80, 64), (200, 128):
            lines = accmem("map", "--owners", name, columns=columns).splitlines()
            rows = [l.split()[1] for l in lines if re.match(r" *(0x[0-9a-f]+|0) ", l)]
            cells = "".join(rows)
            need(max(map(len, rows)) <= row, "too wide")
            size = int(read(f"{CLASS}/{name}/capacity")) // len(cells)
            need(6 * MIB // size <= cells.count("A") <= 8 * MIB // size + 2, lines)
            need(4 * MIB // size <= cells.count("B") <= 6 * MIB // size + 2, lines)
            same(cells.count(".") + cells.count("A") + cells.count("B"), len(cells), "cells")
            need(any(re.match(rf"A 8.00M: context \d+, pid {one.pid}, hold, root", l)
                     for l in lines), lines)
            need(any(re.match(rf"B 6.00M: context \d+, pid {two.pid}, hold, root", l)
                     for l in lines), lines)
    idle(name)


@test
def map_shows_states(name):
    with held("open", "/dev/" + name, 8 * MIB), held("detached", "/dev/" + name, 6 * MIB), \
            held("pending", "/dev/" + name, 4 * MIB):
        lines = accmem("map", "--states", name, columns=80).splitlines()
        cells = "".join(l.split()[1] for l in lines if re.match(r" *(0x[0-9a-f]+|0) ", l))
        size = int(read(f"{CLASS}/{name}/capacity")) // len(cells)
        for letter, held_bytes in ("#", 8 * MIB), ("d", 6 * MIB), ("p", 4 * MIB):
            need(abs(cells.count(letter) - held_bytes // size) <= 2, letter, lines)
        same(set(cells), set("#dp."), "letters")
    accmem("map", "--states", "--svg", status=2)
    idle(name)


@test
def map_draws_svg(name):
    with held("open", "/dev/" + name, 8 * MIB) as one, held("pending", "/dev/" + name, 6 * MIB):
        svg = xml.etree.ElementTree.fromstring(accmem("map", "--svg", name))
        tag = "{http://www.w3.org/2000/svg}"
        same(svg.tag, tag + "svg", "root")
        texts = [t.text for t in svg.iter(tag + "text")]
        need(any(t.startswith("8.00M: context ") and f"pid {one.pid}, hold" in t
                 for t in texts), texts)
        need({"live", "pending", "free", "retired"} <= set(texts), texts)
        capacity, drawn = int(read(f"{CLASS}/{name}/capacity")), {}
        for rect in svg.iter(tag + "rect"):
            if rect.get("height") in ("6", "16"):
                bar = drawn.setdefault(rect.get("height"), {})
                bar[rect.get("fill")] = bar.get(rect.get("fill"), 0) + int(rect.get("width"))
        cell = capacity / sum(drawn["6"].values())
        for color, size in ("#2e7d32", 8 * MIB), ("#f9a825", 6 * MIB):
            need(abs(drawn["6"][color] * cell - size) <= 3 * cell, color, drawn)
        need(abs(drawn["16"]["#4e79a7"] * cell - 8 * MIB) <= 3 * cell, drawn)
    accmem("map", "--svg", "--owners", status=2)
    accmem("map", "--svg", "--watch", status=2)
    accmem("map", "--svg", "accmem99", status=3)
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
                ("map", "--owners"), ("map", "--svg"), \
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
            # the lines of the time before
            end, live = time.monotonic() + 60, 0
            while live != 6 * MIB and time.monotonic() < end:
                live = device_of(json.loads(process.stdout.readline()), name)["live_bytes"]
            same(live, 6 * MIB, "live")
        process.kill()
    same(device_of(first, name)["live_bytes"], 0, "live at first")
    for seconds in "0", "x", "-1", "1e9", "nan", "inf":
        accmem("--watch=" + seconds, status=2)
    idle(name)


main("tool")
