#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# accmem bench: bench.py.

set -euo pipefail

exec /usr/bin/python3 -B -E -s "$(dirname "$0")/bench.py"
