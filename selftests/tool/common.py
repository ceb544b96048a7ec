# SPDX-License-Identifier: GPL-2.0
"""What the tests of the command accmem share: the command, held memory, and TAP.

A test is a function with the decorator test and the name of a device as its argument.
"""
import contextlib
import functools
import json
import os
import pty
import re
import select
import shutil
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
SORTS = b"lcwp"  # keys of accmem top, which may change nothing in the picture
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


def accmem(*arguments, status=0, user=False, columns=None, output=False, **environment):
    """Run the command; return its output, or its errors unless its status is 0 or output is set."""
    variables = dict(os.environ, **environment)
    if columns:
        variables["COLUMNS"] = str(columns)
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, env=variables,
                          preexec_fn=become_nobody if user else None, check=False)
    same(done.returncode, status,
         f"status of {arguments}, which prints {done.stdout!r} and {done.stderr!r}")
    return done.stdout if status == 0 or output else done.stderr


@functools.cache
def schema_of(kind):
    """The checker of what --json prints: of a command, or of accmem alone."""
    with open(SCHEMA, encoding="utf-8") as file:
        schema = json.load(file)
    if kind:
        schema = {"$defs": schema["$defs"], "$ref": "#/$defs/" + kind}
    checker = jsonschema.validators.validator_for(schema)
    checker.check_schema(schema)
    return checker(schema)


def parsed(text, kind=None):
    """What --json has printed, which must be as the schema says."""
    found = json.loads(text)
    schema_of(kind).validate(found)
    return found


def snapshot(**options):
    return parsed(accmem("--json", **options))


def device_of(found, name):
    return next(d for d in found["devices"] if d["name"] == name)


@contextlib.contextmanager
def held(*arguments, user=False, helper=HOLD):
    """A process of helpers/hold; its output can be read after the block."""
    process = subprocess.Popen([helper, *map(str, arguments)], stdin=subprocess.PIPE,
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
            wait = seconds if keys[:1] in SORTS else 20
            keys, quiet = keys[1:], time.monotonic() + wait
    os.close(fd)
    same(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, f"status of {arguments}")
    return drawn.decode()


def main(program):
    """Run the tests on the backing of the environment, or on all; exit."""
    backing = os.environ.get("ACCMEM_BACKING")
    names = [DEVICES[backing]] if backing else list(DEVICES.values())
    failed, number = 0, 0
    os.environ.pop("COLUMNS", None)
    copy_tool()
    print("TAP version 13")
    for name in names:
        for function in TESTS:
            number += 1
            title = f"{number} {program}.{name}.{function.__name__}"
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
    sys.exit(failed != 0)
