# SPDX-License-Identifier: MIT
"""Print where an installation under a prefix puts a module for this interpreter.

usage: install_dir.py PREFIX

The directory is one that the interpreter searches, if there is one under
the prefix.
"""

import site
import sys
import sysconfig

prefix = sys.argv[1].rstrip("/")
for path in site.getsitepackages():
    if path.startswith(prefix + "/lib"):
        break
else:
    path = sysconfig.get_path("purelib", "posix_prefix", {"base": prefix})
    print(f"{sys.executable} does not search {path}: set PYTHONPATH, "
          "or install with PYTHON=... or PYTHONDIR=...", file=sys.stderr)
print(path)
