#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Devices with several carveouts: what parameters make them, and what are refused;
# then helpers/carveouts, on a device of ordinary memory and on one of a reserved
# range, with page structures and without.
#
# Runs as root in the guest of tools/vm: ACCMEM_KO is the module,
# ACCMEM_MODULE_ARGS what it is loaded with before and afterwards.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
helpers=${ACCMEM_BUILD:-$here/../build}/selftests/helpers
good=()
# Quotes in the arguments mean what they mean in a shell.
eval "good=(${ACCMEM_MODULE_ARGS-})"
: "${ACCMEM_KO:?is not set}"
sys=/sys/class/accmem
tests=0 failed=0

# check NAME COMMAND...: one test.
check()
{
	local name=$1

	shift
	tests=$((tests + 1))
	if "$@"; then
		echo "ok $tests $name"
	else
		failed=$((failed + 1))
		echo "not ok $tests $name"
	fi
}

unload()
{
	local _

	for _ in {1..100}; do
		[ -d /sys/module/accmem ] || return 0
		rmmod accmem 2>/dev/null && return
		sleep 0.1
	done
	return 1
}

load()
{
	unload && insmod "$ACCMEM_KO" "$@" 2>/dev/null
}

refused()
{
	! load "$@" && [ ! -e /dev/accmem0 ] && [ ! -d "$sys" ]
}

# has NUMBER CLASS SIZE NODE: carveout NUMBER of accmem0
has()
{
	local dir=$sys/accmem0/carveout$1

	[ "$(cat "$dir/bandwidth") $(cat "$dir/capacity") $(cat "$dir/numa_node")" = \
		"$2 $3 $4" ]
}

several()
{
	load emulated=8M/high+16M/low/node0+4096,32M || return
	has 0 high $((8 << 20)) -1 && has 1 low $((16 << 20)) 0 &&
		has 2 unknown 4096 -1 && [ ! -e $sys/accmem0/carveout3 ] &&
		[ "$(cat $sys/accmem0/capacity)" = $(((24 << 20) + 4096)) ] &&
		[ "$(cat $sys/accmem1/capacity)" = $((32 << 20)) ] &&
		[ ! -e $sys/accmem2 ]
}

# The first reserved range of the good parameters, as SIZE and START.
[[ " ${good[*]} " =~ phys=([^,: ]*)@([^,: ]*) ]]
start=$((BASH_REMATCH[2]))
second=$((start + (64 << 20)))

check "carveouts of a device" several
check "as many as there may be" load emulated=4K+4K+4K+4K+4K+4K+4K+4K
for value in + 1M+ +1M 1M++1M 1M/ 1M/fast 1M/high/low 1M/high/high 1M/high/ \
	1M/node 1M/node-1 1M/nodex 1M/node99999 1M/node0/node0 1M/node4294967296 \
	/high 1M+0 1M+4097 1M+1M/ 1M,1M+ \
	4K+4K+4K+4K+4K+4K+4K+4K+4K 1M+16T 1M+1M+16383G; do
	check "emulated=$value" refused "emulated=$value"
done
for value in "2M@$start+2M@$start" "4M@$start+4M@$((start + (2 << 20)))" \
	"2M@$start+2M@$start:nopages" "2M@$start+2M@16M" "2M@$start+2M" \
	"2M@$start/high:nopages" "2M@$start:nopages/fast" "2M@$start+" \
	"2M@$start+3M@$second"; do
	check "phys=$value" refused "phys=$value"
done

if load emulated=64M/high+64M/low \
	phys="64M@$start/high+64M@$second:nopages/low"; then
	"$helpers/carveouts" || failed=$((failed + 1))
else
	check "carveouts to test" false
fi
check "the module as it was" load "${good[@]}"
echo "1..$tests"
[ "$failed" = 0 ]
