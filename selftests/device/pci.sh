#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The driver of PCI devices: binding, the choice of the BAR, and how a user of the memory
# sees the device go away or be reset. The devices are those of the lane "pci" in
# tools/lanes: ivshmem (a BAR that is memory, behind a port with hotplug), nvme (a BAR that
# is memory, and function level reset), pci-testdev (a BAR without memory), and a port
# without room.

set -euo pipefail
# shellcheck source=selftests/device/helpers/module.sh
. "$(dirname "$0")/helpers/module.sh"

bus=/sys/bus/pci
driver=$bus/drivers/accmem-pci
memory='' plugged=0

is_absent()
{
	[ ! -e "$bus/devices/$1" ]
}

unbind()
{
	echo "$1" >"$driver/unbind"
}

# refused ADDRESS TEXT: the device is not bound, and the kernel log says why, once
refused()
{
	local said

	dmesg -c >/dev/null
	if bind_pci "$1"; then
		unbind "$1"
		why "the device was bound"
		return
	fi
	said=$(dmesg -c)
	[ "$(grep -c "accmem-pci $1: .*$2" <<<"$said")" = 1 ] || why "$said"
}

# refused_bar NUMBER TEXT: likewise, with a BAR that root chooses
refused_bar()
{
	local status=0

	echo "$1" >/sys/module/accmem/parameters/pci_bar
	refused "$iv" "$2" || status=$?
	echo -1 >/sys/module/accmem/parameters/pci_bar
	return "$status"
}

# What a program stores through its mapping is in the memory of the device.
is_in_bar()
{
	echo 1 >/proc/sys/vm/drop_caches
	grep -qa "memory of a PCI device" "$ACCMEM_RUN/bar" || return
	unbind "$iv"
}

# The memory of a user that has gone is not given to the next one.
is_cleared()
{
	local at

	bind_pci "$iv" || return
	at=$("$helpers/hold" zero "$accmem" $((32 << 20))) || why "byte $at of the last user"
}

take_away()
{
	echo 1 >"$bus/devices/$iv/remove"
}

rescan()
{
	echo 1 >"$bus/rescan"
	[ -e "$bus/devices/$iv" ] && bind_pci "$iv"
}

unplug()
{
	"$ACCMEM_MONITOR" device_del iv && within is_absent "$iv"
}

# QEMU does not let a device have an object that another has had.
plug()
{
	memory=$1
	"$ACCMEM_MONITOR" object_add "memory-backend-ram,id=$1,size=64M" &&
		"$ACCMEM_MONITOR" device_add \
			"ivshmem-plain,id=iv,memdev=$1,bus=$2" &&
		within find_pci 0x1af4:0x1110 >/dev/null
}

reset_by()
{
	echo "$2" >"$bus/devices/$1/reset_method" &&
		echo 1 >"$bus/devices/$1/reset"
}

# Make the kernel's calls for suspend and resume.
sleep_and_wake()
{
	local pm=/sys/module/accmem_test_pm/parameters/call

	[ -e "$pm" ] || "$helpers/load" "${ACCMEM_KO%/*}/accmem_test_pm.ko" || return
	echo "pci $iv suspend" >"$pm" && sleep 0.5 && echo "pci $iv resume" >"$pm"
}

# A fatal error of the port resets what is behind it.
fatal_error()
{
	"$ACCMEM_MONITOR" pcie_aer_inject_error rp MALF_TLP >/dev/null
}

harmless_error()
{
	"$ACCMEM_MONITOR" pcie_aer_inject_error rp COMP_TIME >/dev/null || return
	sleep 1
	"$helpers/hold" populate "$accmem" $((4 << 20)) >/dev/null
}

# again COMMAND...: the command succeeds again and again; 200 times with ACCMEM_SCALE=2000
again()
{
	local i

	for ((i = 0; i < (ACCMEM_SCALE + 9) / 10; i++)); do
		"$@" || why "at $i" || return
	done
}

bind_and_unbind()
{
	bind_pci "$iv" && user gone unbind "$iv"
}

remove_and_rescan()
{
	user gone take_away && rescan
}

unplug_and_plug()
{
	user gone unplug && "$ACCMEM_MONITOR" object_del "$memory" || return
	plugged=$((plugged + 1))
	plug "again$plugged" rp || return
	iv=$(find_pci 0x1af4:0x1110) && bind_pci "$iv"
}

# beside_load DEVICE COMMAND...: the command succeeds again and again while programs use every
# feature of the device. At the end all memory is free.
beside_load()
{
	local device=$1 load out line='' status=0

	shift
	exec {out}< <("$helpers/storm" "$bus/devices/$device" 2>&1)
	load=$!
	while [ "$line" != held ]; do
		read -r line <&"$out" || why "no load" || return
		[ "$line" = held ] || echo "$line"
	done
	again "$@" || status=1
	kill "$load" || status=1
	while read -r line <&"$out"; do
		echo "$line"
	done
	exec {out}<&-
	wait "$load" || status=1
	within all_is_free "$device" || status=1
	return "$status"
}

all_is_free()
{
	local dir free capacity

	find_accmem "$1" || return
	dir=/sys/class/accmem/${accmem##*/}
	read -r free <"$dir/free_bytes"
	read -r capacity <"$dir/capacity"
	[ "$free" = "$capacity" ]
}

unbind_and_bind()
{
	unbind "$1" && bind_pci "$1"
}

take_away_and_rescan()
{
	take_away && rescan
}

# stays_held HOW: users stay while the device comes and goes, and free what they hold at last.
stays_held()
{
	local holder line status=0

	coproc holder { "$helpers/hold" "$1" "$accmem"; }
	read -r line <&"${holder[0]}" || line=""
	[ "$line" = held ] || why "the holder says '$line'" || status=1
	unbind "$iv" && bind_pci "$iv" || status=$?
	"$helpers/hold" populate "$accmem" $((32 << 20)) >/dev/null ||
		status=$?
	eval "exec ${holder[1]}>&-"
	# shellcheck disable=SC2154 # coproc sets it
	wait "$holder_PID" || true
	return "$status"
}

# Memory that another device uses by DMA is not given to new users.
stays_used()
{
	local status=0 text="another device still uses it"

	coproc holder { "$helpers/hold" used "$accmem"; }
	read -r _ <&"${holder[0]}"
	unbind "$iv" && refused "$iv" "$text" || status=$?
	eval "exec ${holder[1]}>&-"
	# shellcheck disable=SC2154 # coproc sets it
	wait "$holder_PID" || true
	within bind_pci "$iv" || status=$?
	return "$status"
}

if ! iv=$(find_pci 0x1af4:0x1110); then
	echo "1..1"
	echo "ok 1 # SKIP needs the devices of the lane pci"
	exit
fi
: "${ACCMEM_SCALE:=100}"
find_accmem "$iv" && unbind "$iv"

for number in 0 5 6 64 2147483647; do
	check "BAR $number" refused_bar "$number" "BAR $number: "
done
check "a device is bound" bind_pci "$iv"
check "the BAR is claimed" grep -q 'accmem$' /proc/iomem
check "unbind; stores were in the BAR" user gone is_in_bar
check "bind again, with other memory" is_cleared
check "remove" user gone take_away
check "rescan" rescan
check "bus reset" user reset reset_by "$iv" bus
check "suspend and resume" user reset sleep_and_wake
check "an error that is not fatal" harmless_error
check "a fatal error of the port" user reset fatal_error
check "a user that stays" stays_held mapped
check "a user that stays, with memory of two cache modes" stays_held modes
check "a device that imports, and stays" stays_used
check "bus resets, again and again" again user reset reset_by "$iv" bus
check "remove and rescan, again and again" again remove_and_rescan
check "bus resets beside a load" beside_load "$iv" reset_by "$iv" bus
check "unbind and bind beside a load" beside_load "$iv" unbind_and_bind "$iv"
check "remove and rescan beside a load" beside_load "$iv" take_away_and_rescan
check "unplug" user gone unplug
check "plug" plug bar1 rp
iv=$(find_pci 0x1af4:0x1110)
check "bind what was plugged" bind_pci "$iv"
check "unbind" user gone unbind "$iv"
check "bind and unbind, again and again" again bind_and_unbind
check "bind what was plugged again" bind_pci "$iv"
check "unplug and plug, again and again" again unplug_and_plug
unplug || true
check "plug into a port without room" plug bar2 rp2
iv=$(find_pci 0x1af4:0x1110)
check "no room" refused "$iv" "no room"
nv=$(find_pci 0x1b36:0x0010)
check "another device" bind_pci "$nv"
check "function level reset" user reset reset_by "$nv" flr
check "function level resets, again and again" again user reset reset_by "$nv" flr
check "function level resets beside a load" beside_load "$nv" reset_by "$nv" flr
check "unbind another device" user gone unbind "$nv"
test=$(find_pci 0x1b36:0x0005)
check "a BAR without memory" refused "$test" "without memory"
finish
