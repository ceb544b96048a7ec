# SPDX-License-Identifier: GPL-2.0
"""Faults that accmem check finds, as changes of the files that the command reads.

The files are in a directory, which ACCMEM_SYSROOT names, and have a device without a fault.
"""
import contextlib
import glob
import re

from common import CLASS, DEBUGFS, PARAMETERS, accmem, need, parsed, write

MODULE = PARAMETERS.rsplit("/", 1)[0]


def check(*arguments, status=0, **options):
    """Run accmem check; return its findings and what it has not checked."""
    found = parsed(accmem("check", "--json", *arguments, status=status, output=True, **options),
                   "check")
    need(bool(found["findings"]) == (status == 1), found)
    return found["findings"], found["not_checked"]


def names(findings):
    return sorted({f["check"] for f in findings})


class Tree:
    """A directory with the files of the device NAME."""

    def __init__(self, root, name):
        self.root = root
        self.name = name

    def check(self, status=1):
        return check(status=status, ACCMEM_SYSROOT=self.root)[0]

    def path(self, file):
        """The path of the first file that the pattern names."""
        return sorted(glob.glob(self.root + file.replace("NAME", self.name)))[0]

    @contextlib.contextmanager
    def planted(self, fault):
        """Replace the first match in a file for the time of the block."""
        _, file, pattern, replacement = FAULTS[fault]
        path = self.path(file)
        with open(path, encoding="utf-8") as old:
            text = old.read()
        new = re.sub(pattern, replacement, text, count=1, flags=re.M)
        need(new != text, f"{fault}: {pattern} does not change {file}: {text}")
        write(path, new)
        try:
            yield
        finally:
            write(path, text)


def plus(number):
    """Replace a number by one that is greater."""
    return lambda match: match[1] + str(int(match[2]) + number)


DEBUG = DEBUGFS + "/NAME/"
SYS = CLASS + "/NAME/"
FDINFO = "/proc/*/fdinfo/3"
WARNING = "4,9,9,-;WARNING: CPU: 0 PID: 1 at driver/core/carveout.c:1 accmem_x+0x1/0x2 [accmem]\n"

# name of the check, file, pattern, replacement
FAULTS = {
    "live bytes that nobody has": ("equation", DEBUG + "usage", r"^(live )(\d+)", plus(4096)),
    "lost free bytes": ("equation", DEBUG + "usage", r"^(free )(\d+)", plus(-4096)),
    "another capacity": ("capacity", SYS + "carveout0/capacity", r"^()(\d+)", plus(4096)),
    "a run longer than the free memory": ("largest", SYS + "carveout0/largest_free_run",
                                          r"^()(\d+)", plus(1 << 40)),
    "a buffer that is not counted": ("context", DEBUG + "buffers", r"^\d.*\n", ""),
    "a footprint that fdinfo does not count": (
        "context", DEBUG + "buffers", r"^(\d+ \S+ \d+ )(\d+)", plus(4096)),
    "fdinfo with other buffers": ("context", FDINFO, r"^(accmem-buffers:\t)(\d+)", plus(1)),
    "fdinfo with other charges": ("context", FDINFO, r"^(accmem-charged:\t)(\d+)", plus(4096)),
    "charges without memory": ("charges", DEBUG + "contexts",
                               r"^(\d+ \d+ \S+ \d+ \d+ )(\d+)", plus(4096)),
    "a context that sysfs does not count": ("contexts", SYS + "contexts", r"^()(\d+)", plus(-1)),
    "a user without a context": ("user", DEBUGFS + "/users", r"^(\d+ )(\d+)", plus(1)),
    "a user with fewer bytes": ("user", DEBUGFS + "/users", r"^(\d+ \d+ \d+ )(\d+)", plus(-4096)),
    "buffers that overlap": ("overlap", DEBUG + "buffers", r"^((\d+) 0x\w+ )\d+( .*\n\2 0x.*)",
                             rf"\g<1>{1 << 50}\3"),
    "a buffer in no carveout": ("buffer", DEBUG + "buffers", r"^(\d+ \S+ \d+ \d+ \d+ \d+ )(\d+)",
                                plus(9)),
    "a buffer larger than its carveout": ("buffer", DEBUG + "buffers", r"^(\d+ \S+ \d+ )(\d+)",
                                          plus(1 << 50)),
    "retired memory that is not counted": ("retired", SYS + "carveout0/retired", r"^",
                                           "0x0 0x1000 retired admin\n"),
    "retired memory outside": ("retired", SYS + "carveout0/retired", r"^",
                               f"{1 << 50:#x} 0x1000 retired admin\n"),
    "memory that failed in use": ("failed", SYS + "carveout0/retire_failed_bytes", r"^0", "4096"),
    "pinned memory": ("quarantine", DEBUG + "usage", r"^(live )(\d+)([^#]*quarantined )0",
                      lambda m: f"{m[1]}{int(m[2]) - 4096}{m[3]}4096"),
    "overdue memory": ("overdue", FDINFO, r"^(accmem-overdue:\t)(\d+)", plus(4096)),
    "a waiter that nothing stops": ("waiter", DEBUG + "waiting", r"\Z",
                                    "7 0 4096 asleep 0 5000\n"),
    "Tensor Memory that nobody holds": ("tmem", DEBUG + "tmem", r"\A",
                                        "context 1: shared, bypass bound 64\n"
                                        "SM 0 |aa..............| 448 of 512 columns free\n"
                                        "  a CTA 1 launch 0x1 cluster 0 rank 0 holds 32 columns\n"),
    "a module of another version": ("version", MODULE + "/version", r"$", "9"),
    "a module loaded by force": ("taint", MODULE + "/taint", r"$", "F"),
    "a warning of the kernel": ("log", "/dev/kmsg", r"\Z", WARNING),
}
