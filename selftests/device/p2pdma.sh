#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Exports of a BAR to other PCI devices: helpers/p2pdma, on the devices that the lane
# "stock-7.3" of tools/lanes has: ivshmem and pci-testdev below a switch, and another
# pci-testdev elsewhere. Without these devices the script is skipped.

set -euo pipefail
# shellcheck source=selftests/device/helpers/module.sh
. "$(dirname "$0")/helpers/module.sh"
bus=/sys/bus/pci
memory=$(find_pci 0x1af4:0x1110) || true
mapfile -t testdevs < <(find_pci 0x1b36:0x0005)
if [ -z "$memory" ] || [ ${#testdevs[@]} != 2 ]; then
	echo "1..1"
	echo "ok 1 # SKIP needs the devices of the lane stock-7.3"
	exit
fi

use()
{
	local out

	out=$("$helpers/p2pdma" 2>&1) || why "$out"
}

bind()
{
	bind_pci "$memory" && export ACCMEM_BAR=$accmem
}

# The next load of the module would bind the device again, before the devices of later tests.
unbind()
{
	echo "$memory" >"$bus/drivers/accmem-pci/unbind"
	echo >"$bus/devices/$memory/driver_override"
}

check "the BAR is bound" bind
check "other PCI devices import the memory if they can reach the BAR" use
check "the BAR is unbound" unbind
finish
