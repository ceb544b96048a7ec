#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Devices that are reset or go away while programs use them: helpers/revoke*, on a device of
# each backing. Devices that root adds and deletes at run time. References of programs to the
# module.

set -euo pipefail
# shellcheck source=selftests/device/helpers/module.sh
. "$(dirname "$0")/helpers/module.sh"
drivers=/sys/bus/platform/drivers
emulated=$drivers/accmem-emulated
phys=$drivers/accmem-phys

# The functions below start no program and no subshell: on a kernel with checkers, the start
# of a process takes longer than all that the module does for a device.

# write FILE TEXT: can the text, which is not empty and one line, be written?
write()
{
	{ printf '%s' "$2" >"$1"; } 2>/dev/null
}

# Set $nodes to the number of devices.
count_nodes()
{
	local paths=(/dev/accmem*)

	nodes=${#paths[@]}
	[ -e "${paths[0]}" ] || nodes=0
}

# find_bound DRIVER: set $oldest and $newest to the names of the first and the last platform
# device that the driver has made, which may be the same.
find_bound()
{
	local dir id first='' last=''

	oldest='' newest=''
	for dir in "$1"/accmem-*.auto; do
		[ -e "$dir" ] || continue
		id=${dir%.auto} id=${id##*.}
		if [ -z "$first" ] || ((id < first)); then
			first=$id oldest=${dir##*/}
		fi
		if [ -z "$last" ] || ((id > last)); then
			last=$id newest=${dir##*/}
		fi
	done
}

delete_newest()
{
	find_bound "$1"
	write "$1/delete_device" "$newest"
}

refuses()
{
	local before

	count_nodes
	before=$nodes
	! write "$1/new_device" "$2" || why "'$2' was taken" || return
	count_nodes
	[ "$nodes" = "$before" ] || why "'$2' left a device"
}

makes_and_deletes()
{
	write "$1/new_device" "$2" || why "'$2' was refused" || return
	[ -e /dev/accmem3 ] || why "no device" || return
	delete_newest "$1" || why "$newest stays" || return
	[ ! -e /dev/accmem3 ] || why "the node stays" || return
	! write "$1/delete_device" "$newest" || why "$newest was deleted twice"
}

deletes_by_name_only()
{
	local name

	find_bound "$phys"
	for name in $'\n' 0 accmem0 accmem-emulated "accmem-emulated.99999.auto" \
		"$oldest"; do
		! write "$emulated/delete_device" "$name" ||
			why "'$name' was deleted" || return
	done
	count_nodes
	[ "$nodes" = 3 ]
}

# The module stays as long as a program holds a device that is gone.
is_kept_by_zombie()
{
	local status=0 driver=$emulated dirs name line

	[ "$2" = /dev/accmem0 ] || driver=$phys
	dirs=("$driver"/accmem-*.auto/accmem/"${2##*/}")
	name=${dirs[0]%/accmem/*} name=${name##*/}
	coproc holder { exec "$helpers/hold" "$1" "$2"; }
	# shellcheck disable=SC2154 # set by coproc
	local pid=$holder_PID in=${holder[1]}

	read -r line <&"${holder[0]}" || line=''
	[ "$line" = held ] || why "the holder says '$line'" || status=1
	write "$driver/delete_device" "$name" || why "cannot be deleted" ||
		status=1
	[ ! -e "$2" ] || why "the node stays" || status=1
	! rmmod accmem 2>/dev/null || why "rmmod worked" || status=1
	exec {in}>&-
	wait "$pid" || true
	unload || why "rmmod is refused afterwards" || status=1
	loaded || load "${three[@]}" || status=1
	return "$status"
}

# Numbers of devices that programs still hold are taken: there are 16 of them.
sixteen()
{
	local i fd fds=() status=0

	for i in {0..20}; do
		write "$emulated/new_device" 4K || break
		exec {fd}</dev/accmem$((i + 3)) || why "open $i" || status=1
		fds+=("$fd")
		delete_newest "$emulated" || why "delete $i" || status=1
	done
	[ "$i" = 13 ] || why "$i devices more" || status=1
	count_nodes
	[ "$nodes" = 3 ] || why "$nodes nodes" || status=1
	refuses "$emulated" 4K || status=1
	refuses "$phys" "2M@$free" || status=1
	# one goes, one may come
	fd=${fds[5]}
	exec {fd}>&-
	for i in {1..200}; do
		! write "$emulated/new_device" 4K || break
		sleep 0.1
	done
	[ -e /dev/accmem8 ] || why "not number 8" || status=1
	delete_newest "$emulated" || status=1
	for fd in "${fds[@]}"; do
		exec {fd}>&-
	done
	return "$status"
}

opens()
{
	while [ ! -e "$1" ]; do
		{ : </dev/accmem0; } 2>/dev/null || true
	done
}

# A device comes and goes while programs open it in a loop.
against_opens()
{
	local stop i opener openers=() name status=0

	stop=$(mktemp -u)
	find_bound "$emulated"
	name=$oldest
	for i in 1 2; do
		opens "$stop" &
		openers+=("$!")
	done
	for ((i = 0; i < 20 * ${ACCMEM_SCALE:-100} / 100 + 1; i++)); do
		write "$emulated/unbind" "$name" || why "unbind $i" || status=1
		write "$emulated/bind" "$name" || why "bind $i" || status=1
	done
	: >"$stop"
	for opener in "${openers[@]}"; do
		wait "$opener" || true
	done
	rm -f "$stop"
	# a device that was held at the time has another number now
	for i in {1..50}; do
		[ ! -e /dev/accmem0 ] || break
		write "$emulated/unbind" "$name" || true
		sleep 0.1
		write "$emulated/bind" "$name" || true
	done
	[ -e /dev/accmem0 ] || why "no device" || status=1
	return "$status"
}

# Readers of sysfs and debugfs while the device goes.
against_readers()
{
	local i readers=() reader stop name status=0

	stop=$(mktemp -u)
	find_bound "$emulated"
	name=$oldest
	for i in 1 2; do
		while [ ! -e "$stop" ]; do
			cat /sys/class/accmem/accmem0/* \
				/sys/kernel/debug/accmem/accmem0/* || true
		done >/dev/null 2>&1 &
		readers+=("$!")
	done
	for ((i = 0; i < 10 * ${ACCMEM_SCALE:-100} / 100 + 1; i++)); do
		write "$emulated/unbind" "$name" || why "unbind $i" || status=1
		write "$emulated/bind" "$name" || why "bind $i" || status=1
	done
	: >"$stop"
	for reader in "${readers[@]}"; do
		wait "$reader" || true
	done
	rm -f "$stop"
	[ -e /dev/accmem0 ] || why "no device" || status=1
	return "$status"
}

reserved_range
three=(emulated=16M host=64M
	"phys=16M@$start,16M@$((start + (16 << 20))):nopages")
free=$((start + (32 << 20)))

if reload "${three[@]}"; then
	for program in revoke revoke_users revoke_storm; do
		"$helpers/$program" || failed=$((failed + 1))
	done
else
	check "devices to test" false
fi
for value in $'\n' " " 0 1 4097 -1 x 1Q 1M+ 1M/fast 1M,1M "1M 1M" 17T \
	4K+4K+4K+4K+4K+4K+4K+4K+4K "$(printf '%4000s' 1M+)"; do
	check "new_device: emulated '${value:0:20}'" refuses "$emulated" "$value"
done
for value in $'\n' 1M "2M@" "@$free" "2M@x" "3M@$free" "2M@$free:pages" \
	"2M@16M" "2M@$start" "2M@$start:nopages" "2M@$free+2M@$free"; do
	check "new_device: phys '$value'" refuses "$phys" "$value"
done
check "new_device: emulated" makes_and_deletes "$emulated" 4M+8M/high
check "new_device: with blanks" makes_and_deletes "$emulated" $' 4M \n'
check "new_device: phys" makes_and_deletes "$phys" "2M@$free"
check "new_device: the same again" makes_and_deletes "$phys" "2M@$free:nopages"
check "delete_device: names" deletes_by_name_only
check "at most 16 devices, with those that are held" sixteen
check "a device that comes and goes while it is opened" against_opens
check "a device that comes and goes while it is read" against_readers
for device in /dev/accmem0 /dev/accmem1 /dev/accmem2; do
	for how in open mapped pinned; do
		[ "$how$device" != pinned/dev/accmem2 ] || continue
		check "$device that is gone: $how" is_kept_by_zombie $how $device
	done
done
check "the module as it was" reload "${good[@]}"
finish
