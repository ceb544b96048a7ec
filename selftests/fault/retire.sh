#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Failed memory. Memory that was retired stays retired until the module is unloaded, so
# the module is loaded anew, with small devices: one of each backing. The helpers retire
# and poison have the tests of the devices. The parameter retired is tested here.

set -euo pipefail
# shellcheck source=selftests/device/helpers/module.sh
. "$(dirname "$0")/../device/helpers/module.sh"

reserved_range
pages=$start nopages=$((start + 32 * 1048576))
devices=(emulated=32M host=128M "phys=32M@$pages,32M@$nopages:nopages")
sysfs=/sys/class/accmem parameter=/sys/module/accmem/parameters/retired

# helper NAME: the tests of a helper, on newly loaded devices
helper()
{
	local status=0

	reload "${devices[@]}" || status=1
	[ "$status" != 0 ] || "$helpers/$1" || status=$?
	check "the module is unloaded after $1" unload
	check "the tests of $1 pass" test "$status" = 0
}

# lists DEVICE LINE: is this a line of the file retired?
lists()
{
	local line

	while read -r line; do
		[ "$line" != "$2" ] || return 0
	done <"$sysfs/$1/carveout0/retired"
	why "no '$2' in" "$(<"$sysfs/$1/carveout0/retired")"
}

# retired DEVICE BYTES
retired()
{
	local bytes

	read -r bytes <"$sysfs/$1/carveout0/retired_bytes"
	[ "$bytes" = "$2" ] || why "$bytes bytes are retired"
}

hex()
{
	printf '%#x' "$1"
}

# What a load names by physical address is retired from the start. The parameter has all of
# it, also what is in no carveout.
named()
{
	local list

	reload "${devices[@]}" \
		"retired=$((pages + 5 * 4096)),8K@$((nopages + 4095)),4096@0,1G@$((nopages + 31 * 1048576))" ||
		why "the load failed" || return
	retired accmem1 4096 &&
		lists accmem1 "0x5000 0x1000 retired listed $(hex $((pages + 0x5000)))" &&
		retired accmem2 $((3 * 4096 + 1048576)) &&
		lists accmem2 "0x0 0x3000 retired listed $(hex "$nopages")" &&
		retired accmem0 0 || return
	list="0x1000@$(hex $((pages + 5 * 4096))),0x3000@$(hex "$nopages"),0x1000@0x0"
	list+=",0x40000000@$(hex $((nopages + 31 * 1048576)))"
	[ "$(cat "$parameter")" = "$list" ] || why "$(cat "$parameter")"
}

# The list of one load, given back to the next, retires the same memory.
given_back()
{
	local before list

	echo "64K 4K" >$sysfs/accmem1/carveout0/retire
	echo "1M 1" >$sysfs/accmem2/carveout0/retire
	before=$(cat $sysfs/accmem[12]/carveout0/retired)
	list=$(cat "$parameter") || return
	reload "${devices[@]}" "retired=$list" || return
	[ "$(cat $sysfs/accmem[12]/carveout0/retired)" = "${before//admin/listed}" ] ||
		why "$before, but now $(cat $sysfs/accmem[12]/carveout0/retired)"
}

# A list that is longer than a page, and than a parameter of the kernel's own types may be
long_list()
{
	local list='' i lines said

	for ((i = 0; i < 2000; i++)); do
		list+=${list:+,}$((pages + i * 8192))
	done
	unload || return
	said=$("$helpers/load" "$ACCMEM_KO" "${devices[@]}" "retired=$list" 2>&1) ||
		why "$said" || return
	mapfile -t lines <$sysfs/accmem1/carveout0/retired
	[ "${#lines[@]}" = 2000 ] || why "${#lines[@]} lines" || return
	[ "${lines[1999]}" = \
		"$(hex $((1999 * 8192))) 0x1000 retired listed $(hex $((pages + 1999 * 8192)))" ] ||
		why "${lines[1999]}" || return
	retired accmem1 $((2000 * 4096)) || return
	! said=$(cat "$parameter" 2>&1) || why "the parameter: ${#said} bytes" || return
	[[ $said = *"File too large"* ]] || why "$said"
}

refused()
{
	local said

	dmesg -c >/dev/null
	unload || return
	! load "${devices[@]}" "retired=$1" || why "the load worked" || return
	said=$(dmesg)
	[[ $said = *"accmem: retired: "* ]] || why "not in the log: $said"
}

# Only root may write, and only a pair of numbers.
written_badly()
{
	local text file=$sysfs/accmem1/carveout0/retire

	[ "$(stat -c %a "$file")" = 200 ] || why "the mode of retire" || return
	[ "$(stat -c %a "$sysfs/accmem1/carveout0/retired" "$parameter" | uniq)" = 400 ] ||
		why "the mode of retired" || return
	for text in "" 4096 "4096 " "x 4096" "4096 x" "-1 4096" "0 1 2" "0  1" \
		"0 4096@0" "0,4096"; do
		! echo "$text" 2>/dev/null >"$file" ||
			why "'$text' was taken" || return
	done
	retired accmem1 $((2000 * 4096))
}

helper retire
# Not all kernels can be told that memory has failed.
[ ! -e /proc/sys/vm/memory_failure_early_kill ] || helper poison
check "memory that a load names is retired" named
check "the list of one load can be given to the next" given_back
check "a list may be long" long_list
check "the file retire takes a pair of numbers of root" written_badly
for word in x 1G@ @1G 4K@x 0@4096 18446744073709551615 4096,,8192 \
	4K@18446744073709547520; do
	sample "retired=$word is refused" refused "$word"
done
check "the module is loaded as before" reload "${good[@]}"
finish
