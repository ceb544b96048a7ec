#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The command accmem tmem, as root and as a user without privilege: tmem.py.

set -euo pipefail

exec /usr/bin/python3 -B -E -s "$(dirname "$0")/tmem.py"
