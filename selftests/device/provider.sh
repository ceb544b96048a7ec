#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The provider API, called by the driver accmem_test_provider.ko: calls that must fail,
# clearing and copying by the engine of the device, memory that is revoked for a reset and
# resumed, pins, and the end of the driver while programs hold its memory. helpers/provider
# has the programs.

set -euo pipefail
# shellcheck source=selftests/device/helpers/module.sh
. "$(dirname "$0")/helpers/module.sh"
sys=/sys/class/accmem
module=${ACCMEM_KO%/*}/accmem_test_provider.ko

# with ENGINE DELAY: the device, of two ranges of 8 MiB
with()
{
	without || true
	"$helpers/load" "$module" "ranges=8M@$start,8M@$((start + (32 << 20)))" \
		"engine=$1" "delay_ms=$2" 2>/dev/null
}

without()
{
	local _

	for _ in {1..50}; do
		[ -d /sys/module/accmem_test_provider ] || return 0
		rmmod accmem_test_provider 2>/dev/null && return
		sleep 0.1
	done
	return 1
}

# tests ENGINE DELAY NAME...: these tests of helpers/provider on this device
tests()
{
	local name

	check "a device whose engine $1, after $2 ms" with "$1" "$2"
	for name in "${@:3}"; do
		check "$name, engine $1" program "$name"
	done
}

program()
{
	local out

	out=$("$helpers/provider" -t "$1" 2>&1) || why "$out"
}

reserved_range
check "a device of ordinary memory beside it" reload emulated=16M host=16M
tests none 0 no_old_bytes copied kept lost wait_ends pin_holds \
	pin_ends_with_its_fence pin_of_many_parts pin_all_parts_or_none \
	pin_of_most_parts pin_limit pin_refused pin_outlives_the_program
tests works 0 no_old_bytes copied engine_was_used kept lost
tests refuses 0 no_old_bytes copied
tests fails 0 no_old_bytes copied
tests works 200 no_old_bytes revoked_while_it_clears
check "the driver goes while a program maps its memory" program driver_goes
check "the driver comes again" with none 0
check "no operation after a revocation" \
	[ "$(cat /sys/module/accmem_test_provider/parameters/late)" = 0 ]
check "the driver goes" without
# sample_driver: load the sample driver, and use its device
sample_driver()
{
	"$helpers/load" "${ACCMEM_KO%/*}/accmem_carveout.ko" "start=$start" \
		size=$((8 << 20)) 2>/dev/null || why "not loaded" || return
	[ "$(<$sys/accmem1/capacity)" = $((8 << 20)) ] || why "no device" || return
	"$helpers/hold" zero /dev/accmem1 $((4 << 20)) >/dev/null || why "no memory" || return
	rmmod accmem_carveout && [ ! -e /dev/accmem1 ]
}

check "the sample driver" sample_driver
check "the module as it was" reload "${good[@]}"
finish
