#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The driver for nodes of the device tree: devices and their ranges, unbind and bind with
# users of the memory, and nodes that are refused. The test runs in the machine that
# lane_debug-2 in tools/lanes starts with the device tree helpers/devicetree.dts.

set -euo pipefail
# shellcheck source=selftests/device/helpers/module.sh
. "$(dirname "$0")/helpers/module.sh"

bus=/sys/bus/platform
driver=$bus/drivers/accmem-devicetree
nodes=/sys/firmware/devicetree/base

# bind NAME: on failure, print the error
bind()
{
	{ echo "$1" >"$driver/bind"; } 2>&1 && find_accmem "$1"
}

# Bind again and again: the memory is in use until the last program that had it has ended.
bind_soon()
{
	within bind "$1" >/dev/null
}

unbind()
{
	echo "$1" >"$driver/unbind"
}

# has NAME NUMBER KIB: carveout NUMBER of a device has KIB kibibytes
has()
{
	local size

	read -r size <"$bus/devices/$1/accmem/${accmem#/dev/}/carveout$2/capacity"
	[ "$size" = $(($3 << 10)) ] || why "carveout $2: $size bytes"
}

# claimed START LAST: accmem has claimed a range
claimed()
{
	grep -q "$1-$2 : accmem\$" /proc/iomem || why "$(</proc/iomem)"
}

two()
{
	find_accmem accmem-two && has accmem-two 0 32768 &&
		has accmem-two 1 16384 && claimed 10000000 11ffffff &&
		claimed 12000000 12ffffff
}

eight()
{
	local i

	find_accmem accmem-eight || return
	for i in {0..7}; do
		has accmem-eight "$i" 2048 || return
	done
	claimed 13000000 131fffff && claimed 13e00000 13ffffff
}

# Only memory without page structures may be write-combining, only memory with them can be
# pinned. accmem-two has one range of each kind.
kinds()
{
	local holder status=0

	find_accmem accmem-two || return
	"$helpers/hold" uncached "$accmem" $((16 << 20)) >/dev/null ||
		why "not write-combining" || return
	! "$helpers/hold" uncached "$accmem" $((18 << 20)) >/dev/null ||
		why "both are write-combining" || return
	coproc holder { "$helpers/hold" pinned "$accmem"; }
	read -r _ <&"${holder[0]}" || status=$?
	eval "exec ${holder[1]}>&-"
	# shellcheck disable=SC2154 # coproc sets it
	wait "$holder_PID" || status=$?
	return "$status"
}

# usable NAME BYTES: one program after another can allocate the memory, and access it
usable()
{
	local said _

	find_accmem "$1" || return
	for _ in 1 2; do
		said=$("$helpers/hold" touch "$accmem" "$2")
		[ "$said" = "$2 0" ] || why "$said" || return
	done
}

reset()
{
	echo 1 >"$bus/devices/accmem-one/accmem/${accmem#/dev/}/reset"
}

# refused NAME ERROR TEXT: bind fails with the error, and the kernel log says why
refused()
{
	local said

	dmesg -c >/dev/null
	! said=$(bind "$1") || why "it was bound" || return
	[[ $said = *": $2" ]] || why "$said" || return
	said=$(dmesg -c)
	grep -q "accmem-devicetree $1: .*$3" <<<"$said" || why "$said"
}

# While a program keeps memory of an unbound device, no other device gets the memory.
stays_held()
{
	local holder status=0

	find_accmem accmem-two || return
	coproc holder { "$helpers/hold" mapped "$accmem"; }
	read -r _ <&"${holder[0]}"
	unbind accmem-two &&
		refused accmem-two "Device or resource busy" "in use" ||
		status=$?
	eval "exec ${holder[1]}>&-"
	wait "$holder_PID" || true
	bind_soon accmem-two || return
	return "$status"
}

again()
{
	local i

	for ((i = 0; i < (ACCMEM_SCALE + 9) / 10; i++)); do
		user gone unbind accmem-one && bind_soon accmem-one || return
	done
}

# udev loads the module for a node.
alias_matches()
{
	local alias

	alias=$(modinfo -F alias "$ACCMEM_KO" | grep '^of:.*carveout$')
	# shellcheck disable=SC2053 # a pattern
	[[ $(<"$bus/devices/accmem-two/modalias") = $alias ]]
}

is_off()
{
	[ -d $nodes/accmem-off ] && [ ! -e "$bus/devices/accmem-off" ]
}

if [ ! -d $nodes/accmem-two ]; then
	echo "1..1"
	echo "ok 1 # SKIP needs the device tree of the lane debug-2"
	exit
fi
: "${ACCMEM_SCALE:=100}"

check "two ranges" two
check "eight ranges" eight
check "a disabled node is no device" is_off
check "the alias of the module" alias_matches
check "with page structures and without" kinds
check "all memory of a range" usable accmem-two $((32 << 20))
check "one range" find_accmem accmem-one
check "reset" user reset reset
check "unbind" user gone unbind accmem-one
check "bind" bind_soon accmem-one
check "unbind and bind, again and again" again
check "a user that stays" stays_held
check "the module, again" reload "${good[@]}"
check "two ranges, again" two

invalid="Invalid argument"
check "no memory-region" refused bad-none "$invalid" "no memory-region"
check "an empty memory-region" refused bad-no-region "$invalid" "no memory-region"
check "nine regions" refused bad-nine "Argument list too long" "9 regions"
check "no such node" refused bad-phandle "$invalid" "memory-region 1.*no such node"
check "a disabled region" refused bad-disabled "$invalid" \
	"memory-region 0, /reserved-memory/disabled@15c00000: .* disabled"
check "an empty region" refused bad-empty "$invalid" "empty@15e00000: no reserved memory"
check "a region without address" refused bad-nowhere "$invalid" "nowhere: no reserved memory"
check "a size that is not aligned" refused bad-odd "$invalid" "multiple of 2 MiB"
check "System RAM" refused bad-ram "$invalid" "System RAM"
check "no memory" refused bad-nothing "No such device or address" "without memory"
check "a region that wraps around" refused bad-wraps "$invalid" "wraps around"
check "more than 16 TiB" refused bad-huge "Argument list too long" "16 TiB"
check "a region twice" refused bad-twice "Device or resource busy" "in use"
check "regions that overlap" refused bad-overlap "Device or resource busy" "in use"
check "a region of another device" refused bad-in-use "Device or resource busy" "in use"
finish
