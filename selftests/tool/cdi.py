# SPDX-License-Identifier: GPL-2.0
"""Tests of accmem cdi generate.

The output is checked against the rules of the CDI specification, cdi.schema.json. Prints
TAP. Runs as root, in the guest of tools/vm.
"""
import json
import os
import tempfile

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
    return {"path": "/dev/" + name, "permissions": "rw"}


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
def a_file(name):
    with tempfile.TemporaryDirectory() as directory:
        path = directory + "/accmem.json"
        for names in [], [name]:
            same(accmem("cdi", "generate", "-o", path, *names), "", "the output")
            with open(path, encoding="utf-8") as f:
                same(f.read(), accmem("cdi", "generate", *names), "the file")


@test
def a_file_stays_if_the_command_fails(name):
    with tempfile.TemporaryDirectory() as directory:
        path = directory + "/accmem.json"
        accmem("cdi", "generate", "-o", path, name)
        accmem("cdi", "generate", "-o", path, "accmem99", status=3)
        with open(path, encoding="utf-8") as f:
            same(f.read(), accmem("cdi", "generate", name), "the file")
        same(os.listdir(directory), ["accmem.json"], "files")
        need("not a regular file" in
             accmem("cdi", "generate", "-o", directory, status=1), "a directory")


main("cdi")
