#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Devices with several carveouts: what parameters make them, and what are refused;
# then helpers/carveouts, on a device of ordinary memory and on one of a reserved
# range, with page structures and without.

set -euo pipefail
# shellcheck source=selftests/device/helpers/module.sh
. "$(dirname "$0")/helpers/module.sh"
sys=/sys/class/accmem

refused()
{
	! reload "$@" && [ ! -e /dev/accmem0 ] && [ ! -d "$sys" ]
}

# has NUMBER CLASS SIZE NODE: carveout NUMBER of accmem0
has()
{
	local dir=$sys/accmem0/carveout$1 class size node

	read -r class <"$dir/bandwidth"
	read -r size <"$dir/capacity"
	read -r node <"$dir/numa_node"
	[ "$class $size $node" = "$2 $3 $4" ]
}

several()
{
	reload emulated=8M/high+16M/low/node0+4096,32M || return
	has 0 high $((8 << 20)) -1 && has 1 low $((16 << 20)) 0 &&
		has 2 unknown 4096 -1 && [ ! -e $sys/accmem0/carveout3 ] &&
		[ "$(<$sys/accmem0/capacity)" = $(((24 << 20) + 4096)) ] &&
		[ "$(<$sys/accmem1/capacity)" = $((32 << 20)) ] &&
		[ ! -e $sys/accmem2 ]
}

# A program with its heap on a device, which fills all of its carveouts.
program()
{
	local work

	reload emulated=32M+96M || return
	work=$(mktemp -d)
	"$helpers/../../host/accmem" run --device /dev/accmem0 --threshold 1M \
		--stats="$work/stats" "$helpers/../../host/preload_test" \
		"what does not fit falls back" >"$work/out" 2>&1 || why "$(cat "$work/out")" || return
	grep -q '^ok' "$work/out" || why "no test ran" || return
	# what lived on the device, of the process that had most
	sed -n 's/.* peak=\([0-9]*\) .*/\1/p' "$work/stats" | sort -n >"$work/peaks"
	[ "$(tail -n 1 "$work/peaks")" -gt $((32 << 20)) ] ||
		why "peak $(tail -n 1 "$work/peaks")" || return
	rm -rf "$work"
}

# What libaccmem says of such a device, with little host memory.
library()
{
	local out

	reload emulated=64M/high+256M/low host=64M || return
	out=$("$helpers/../carveouts_test") || why "$out"
}

reserved_range
second=$((start + (64 << 20)))

check "carveouts of a device" several
check "accmem run uses all of them" program
check "libaccmem counts all of them" library
check "as many as there may be" reload emulated=4K+4K+4K+4K+4K+4K+4K+4K
for value in + 1M+ +1M 1M++1M 1M/ 1M/fast 1M/high/low 1M/high/high 1M/high/ \
	1M/node 1M/node-1 1M/nodex 1M/node99999 1M/node0/node0 1M/node4294967296 \
	/high 1M+0 1M+4097 1M+1M/ 1M,1M+ \
	4K+4K+4K+4K+4K+4K+4K+4K+4K 1M+16T 1M+1M+16383G; do
	sample "emulated=$value" refused "emulated=$value"
done
for value in "2M@$start+2M@$start" "4M@$start+4M@$((start + (2 << 20)))" \
	"2M@$start+2M@$start:nopages" "2M@$start+2M@16M" "2M@$start+2M" \
	"2M@$start/high:nopages" "2M@$start:nopages/fast" "2M@$start+" \
	"2M@$start+3M@$second"; do
	sample "phys=$value" refused "phys=$value"
done

if reload emulated=16M/high+16M/low \
	phys="16M@$start/high+16M@$second:nopages/low"; then
	"$helpers/carveouts" || failed=$((failed + 1))
else
	check "carveouts to test" false
fi
check "the module as it was" reload "${good[@]}"
finish
