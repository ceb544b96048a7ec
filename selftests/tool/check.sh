#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The command accmem check, beside planted faults and beside load: check.py.

set -euo pipefail

exec /usr/bin/python3 -B -E -s "$(dirname "$0")/check.py"
