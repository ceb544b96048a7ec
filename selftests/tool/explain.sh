#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# accmem explain, compared with what ALLOC does: explain.py.

set -euo pipefail

exec /usr/bin/python3 -B -E -s "$(dirname "$0")/explain.py"
