#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The sample accelerator samples/accmem-edu, on QEMU's devices edu and ivshmem, as the lane
# "pci" in tools/lanes has them: helpers/edu uses it, and the device goes away while the
# engine works. Without the devices the script is skipped.

set -euo pipefail
# shellcheck source=selftests/device/helpers/module.sh
. "$(dirname "$0")/helpers/module.sh"
bus=/sys/bus/pci
edu=$(find_pci 0x1234:0x11e8) || true
memory=$(find_pci 0x1af4:0x1110) || true
if [ -z "$edu" ] || [ -z "$memory" ]; then
	echo "1..1"
	echo "ok 1 # SKIP needs QEMU's edu and ivshmem"
	exit
fi

# The memory belongs to accmem-pci while the other tests run.
take_memory()
{
	[ ! -e "$bus/drivers/accmem-pci/$memory" ] ||
		echo "$memory" >"$bus/drivers/accmem-pci/unbind"
}

give_memory()
{
	echo "$memory" >"$bus/drivers/accmem-pci/bind"
}

load_driver()
{
	local dir

	"$helpers/load" "${ACCMEM_KO%/*}/accmem_edu.ko" 2>/dev/null || return
	for dir in "$bus/devices/$edu"/accmem/accmem*; do
		export ACCMEM_EDU=/dev/${dir##*/}
	done
	[ -c "${ACCMEM_EDU-}" ] || why "no device"
}

use()
{
	local out

	out=$("$helpers/edu" 2>&1) || why "$out"
}

# A process has the device open: a test runs in a child of its program.
is_used()
{
	local fd

	for fd in /proc/[0-9]*/fd/*; do
		[ ! "$fd" -ef "$ACCMEM_EDU" ] || return 0
	done
	return 1
}

# goes N: N times, unbind the device while programs use it
goes()
{
	local i user

	for ((i = 0; i < $1; i++)); do
		"$helpers/edu" >/dev/null 2>&1 &
		user=$!
		within is_used || return
		sleep 0.2
		echo "$edu" >$bus/drivers/accmem-edu/unbind || return
		wait $user || true
		echo "$edu" >$bus/drivers/accmem-edu/bind || return
	done
}

unload_driver()
{
	local _

	for _ in {1..50}; do
		rmmod accmem_edu 2>/dev/null && return
		sleep 0.1
	done
	return 1
}

check "the memory is given up" take_memory
check "the driver finds both devices" load_driver
check "a program streams through the engine" use
check "the device goes while the engine works" goes 5
check "a program uses it again" use
check "the driver is unloaded" unload_driver
check "the memory is given back" give_memory
finish
