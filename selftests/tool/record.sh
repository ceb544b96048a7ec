#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# accmem record, and accmem replay of what it has recorded: record.py.

set -euo pipefail

exec /usr/bin/python3 -B -E -s "$(dirname "$0")/record.py"
