# SPDX-License-Identifier: GPL-2.0
"""Tests of accmem cdi generate.

The output is checked against the rules of the CDI specification, cdi.schema.json, and
against the device files. Prints TAP. Runs as root, in the guest of tools/vm.
"""
import contextlib
import json
import os
import stat

import jsonschema

from common import accmem, added, main, need, same, test

with open(os.path.dirname(os.path.realpath(__file__)) + "/cdi.schema.json",
          encoding="utf-8") as file:
    RULES = json.load(file)


def generate(*arguments, **options):
    """Return the specification, and the nodes of each device by its name."""
    found = json.loads(accmem("cdi", "generate", *arguments, **options))
    jsonschema.validate(found, RULES)
    return found, {d["name"]: d["containerEdits"]["deviceNodes"] for d in found["devices"]}


def node(name):
    number = os.stat("/dev/" + name).st_rdev
    return {"path": "/dev/" + name, "type": "c", "major": os.major(number),
            "minor": os.minor(number), "permissions": "rw"}


@contextlib.contextmanager
def replaced(name, mode=None, number=0):
    """Another file, or none, in the place of the device file."""
    path = "/dev/" + name
    os.rename(path, path + ".saved")
    try:
        if mode is not None:
            os.mknod(path, mode | 0o600, number)
        yield
    finally:
        if mode is not None:
            os.unlink(path)
        os.rename(path + ".saved", path)


@test
def one_device(name):
    found, nodes = generate(name)
    same(found["cdiVersion"], "0.5.0", "version")
    same(found["kind"], "accmem/memory", "kind")
    same(nodes, {name: [node(name)], "all": [node(name)]}, "devices")


@test
def all_devices_in_order(_name):
    with added("4M"):
        names = sorted(os.listdir("/sys/class/accmem"), key=lambda n: int(n[6:]))
        _, nodes = generate()
        same(list(nodes), names + ["all"], "names")
        same(nodes["all"], [node(n) for n in names], "all")
        for each in names:
            same(nodes[each], [node(each)], each)


@test
def a_device_that_is_named_twice(name):
    with added("4M") as other:
        _, nodes = generate(other, name, other)
        same(list(nodes), [other, name, "all"], "names")
        same(nodes["all"], [node(other), node(name)], "all")


@test
def other_versions(name):
    for version in "0.6.0", "1.1.0":
        same(generate("--cdi-version", version, name)[0]["cdiVersion"], version, "version")


@test
def a_user_without_privilege(name):
    same(generate(name, user=True), generate(name), "the output")


@test
def devices_that_do_not_exist(name):
    for arguments in ["accmem99"], [name, "accmem99"], ["../" + name], [""]:
        same(accmem("cdi", "generate", *arguments, status=3),
             f"accmem: there is no device {arguments[-1]}\n", "the error")


@test
def a_file_that_is_not_the_device(name):
    number = os.stat("/dev/" + name).st_rdev
    other = os.stat("/dev/null").st_rdev
    for mode, device in (stat.S_IFREG, 0), (stat.S_IFCHR, other), (stat.S_IFBLK, number):
        with replaced(name, mode, device):
            need("is not the file of the device" in
                 accmem("cdi", "generate", name, status=1), mode)
    with replaced(name):
        need("No such file" in accmem("cdi", "generate", status=1), "no file")


main("cdi")
