# SPDX-License-Identifier: GPL-2.0
"""Tests of accmem tmem and of the Tensor Memory in accmem top.

helpers/hold_tmem has a context in which CTAs hold columns and wait for columns. Prints TAP.
Runs as root, in the guest of tools/vm.
"""
import contextlib
import json
import os
import re
import subprocess
import time

from common import (DEBUGFS, HOLD, TOOL, accmem, held, main, need, on_terminal, parsed, read,
                    same, test)

HOLD_TMEM = HOLD + "_tmem"


@contextlib.contextmanager
def tensor_memory(name, sms=4, **options):
    with held("/dev/" + name, sms, helper=HOLD_TMEM, **options) as process:
        yield process


def contexts(name, **options):
    """The contexts of a device with Tensor Memory."""
    return parsed(accmem("tmem", "--json", name, **options), "tmem")["contexts"]


@test
def holders_and_waiters_are_those_of_the_program(name):
    with tensor_memory(name) as one:
        context, = contexts(name)
        same([context[k] for k in ("pids", "uid", "discipline", "bypass_bound", "strict")],
             [[one.pid], 0, "shared", 8, False], "context")
        same([s["sm"] for s in context["sms"]], [0, 1, 2, 3], "SMs")
        first, _, idle, last = context["sms"]
        same([(c["cta"], c["columns"], c["letter"]) for c in first["holders"]],
             [(1, 256, "a"), (2, 64, "b")], "holders of SM 0")
        same([(c["cta"], c["columns"]) for c in first["queue"]], [(3, 512), (4, 256)],
             "queue of SM 0")
        need(all(c["microseconds"] > 0 for c in first["queue"]), first["queue"])
        same((first["units"], first["free"]), ("aaaaaaaabb......", 192), "SM 0")
        same((idle["units"], idle["holders"], idle["queue"]), ("." * 16, [], []), "SM 2")
        same([(c["cta"], c["columns"]) for c in last["holders"]], [(5, 32)], "SM 3")
    same(contexts(name), [], "afterwards")
    need("No context has Tensor Memory" in accmem("tmem", name))


@test
def the_picture_is_that_of_debugfs(name):
    with tensor_memory(name) as one:
        text = accmem("tmem", name, columns=200)
        units = re.findall(r"^SM \d+ \|([^|]*)\|", read(f"{DEBUGFS}/{name}/tmem"), re.M)
        lines = [l.split()[1:] for l in text.splitlines() if re.match(r" *\d+-\d+ ", l)]
        same(["".join(column) for column in zip(*lines)], units, "the picture")
        need(f"hold_tmem[{one.pid}], user root, shared, bypass bound 8" in text, text)
        need(re.search(r"^ 0 +a +1 +0x1 +0 +0 +256 +0-255 +holds", text, re.M), text)
        need(re.search(r"^ 0 +b +2 .* 256-319 +holds", text, re.M), text)
        need(re.search(r"^ 0 +\? +3 .* waits, 1 of queue +0 of 8 +\d+\.\d+ s", text, re.M), text)
        need(re.search(r"^ 0 +\? +4 .* waits, 2 of queue", text, re.M), text)


@test
def many_sms_are_rows(name):
    with tensor_memory(name, 132):
        for columns in 80, 200:
            text = accmem("tmem", name, columns=columns)
            rows = re.findall(r"(\d+) \|([a.]{16}|a{8}b{2}\.{6})\| +(\d+)", text)
            same([int(r[0]) for r in rows], list(range(132)), f"SMs at {columns} columns")
            same(sum(int(r[2]) for r in rows), 132 * 512 - 256 - 64 - 32, "free columns")
    for sms in 17, 18:
        with tensor_memory(name, sms):
            for columns in 80, 200:
                longest = max(accmem("tmem", name, columns=columns).splitlines(), key=len)
                need(len(longest) <= columns, f"{columns}: {longest}")


@test
def a_user_sees_the_columns_of_own_ctas(name):
    path = "/dev/" + name
    mode = os.stat(path).st_mode & 0o777
    os.chmod(path, 0o666)
    try:
        with tensor_memory(name), tensor_memory(name, user=True) as own:
            context, = contexts(name, user=True)
            same(context["pids"], [own.pid], "pids")
            need("discipline" not in context and "units" not in context["sms"][0], context)
            held_by = {c["cta"]: (s["sm"], c["columns"]) for s in context["sms"]
                       for c in s["holders"]}
            same(held_by, {1: (0, 256), 2: (0, 64), 3: (0, 0), 4: (0, 0), 5: (3, 32)}, "CTAs")
            text = accmem("tmem", name, user=True)
            need("user root" not in text and str(own.pid) in text, text)
    finally:
        os.chmod(path, mode)


@test
def top_shows_the_tensor_memory_of_a_process(name):
    with tensor_memory(name):
        drawn = on_terminal("top", keys=b"tq", seconds=1, TERM="vt100")
        need("aaaaaaaabb......" in drawn and "CTA 3 waits for 512 columns" in drawn, drawn)
        drawn = on_terminal("top", keys=b"\rq", seconds=1, TERM="vt100")
        need("aaaaaaaabb" not in drawn, drawn)


@test
def watch_repeats(name):
    with subprocess.Popen([TOOL, "tmem", "--json", "--watch=0.2", name],
                          stdout=subprocess.PIPE, text=True) as process:
        same(json.loads(process.stdout.readline())["contexts"], [], "at first")
        with tensor_memory(name):
            # the lines of the time before
            end, found = time.monotonic() + 60, []
            while not found and time.monotonic() < end:
                found = json.loads(process.stdout.readline())["contexts"]
            same(len(found), 1, "contexts")
        process.kill()


@test
def colors_are_for_terminals(name):
    with tensor_memory(name):
        need("\033[" in on_terminal("tmem"), "no color on a terminal")
        need("\033" not in on_terminal("tmem", NO_COLOR="1"), "a color in spite of NO_COLOR")


@test
def wrong_usage_is_refused(_name):
    accmem("tmem", "accmem99", status=3)
    for words in ("a", "b"), ("--force",), ("--report",):
        accmem("tmem", *words, status=2)


main("tmem")
