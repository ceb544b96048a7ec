#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Page table entries of 1 GiB, on a range without page structures; and a range that is too
# small for them.

set -euo pipefail
# shellcheck source=selftests/device/helpers/module.sh
. "$(dirname "$0")/helpers/module.sh"

reserved_range
if ((size >= 1 << 30 && start % (1 << 30) == 0)); then
	check "a device of 1 GiB" reload "phys=1G@$start:nopages"
	"$helpers/huge_1g" || failed=$((failed + 1))
else
	check "a device of less than 1 GiB" reload "phys=$size@$start:nopages"
fi
check "the module as it was" reload "${good[@]}"
finish
