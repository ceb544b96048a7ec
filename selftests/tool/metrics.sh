#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# accmem metrics: metrics.py.

set -euo pipefail

exec /usr/bin/python3 -B -E -s "$(dirname "$0")/metrics.py"
