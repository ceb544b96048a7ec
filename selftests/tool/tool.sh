#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The command accmem, as root and as a user without privilege: tool.py.

set -euo pipefail

exec /usr/bin/python3 -B -E -s "$(dirname "$0")/tool.py"
