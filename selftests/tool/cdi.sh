#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# accmem cdi generate: cdi.py.

set -euo pipefail

exec /usr/bin/python3 -B -E -s "$(dirname "$0")/cdi.py"
