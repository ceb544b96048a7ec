#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Loading and unloading. Parameters that make no sense: the load fails, the
# kernel log says why, and nothing half-made stays. A module that somebody
# uses, by a file, a mapping or a pinned page, stays.

set -euo pipefail
# shellcheck source=selftests/device/helpers/module.sh
. "$(dirname "$0")/helpers/module.sh"

# bad NAME ARGUMENTS...: a load that must be refused.
bad()
{
	local name=$1

	shift
	sample "$name" refused "$@"
}

# What a load leaves in the system. Starts no program, each of which takes a
# while in an emulated machine.
traces()
{
	local text

	compgen -G "/dev/accmem*" || true
	compgen -G "/sys/class/accmem" || true
	compgen -G "/sys/class/accmem/accmem*" || true
	compgen -G "/sys/kernel/debug/accmem" || true
	compgen -G "/sys/kernel/tracing/events/accmem" || true
	text=$(</proc/devices)$(</proc/misc)$(</proc/iomem)
	[[ $text != *accmem* ]] ||
		echo "/proc/devices, /proc/misc or /proc/iomem"
}

# Is a load with these parameters refused, with a message, without a trace?
refused()
{
	local before said

	before=$(</proc/iomem)
	if load "$@"; then
		unload || true
		why "the load worked"
		return
	fi
	! loaded || why "the module is there" || return
	# since the last time; the console has all of it
	said=$(dmesg -c)
	[[ $said != *accmem0:*bytes* ]] || why "a device was there" || return
	[ -z "$(traces)" ] || why "left behind: $(traces)" || return
	[ "$before" = "$(</proc/iomem)" ] || why "iomem changed" || return
	[[ $said = *accmem* ]] || why "the kernel log says nothing"
}

# The start of the 2 MiB in which a resource of that name lies.
claimed()
{
	local line

	line=$(grep -m1 -E "$1" /proc/iomem) || return 1
	line=${line%%-*}
	echo $((0x${line// /} / 2097152 * 2097152))
}

bad_emulated()
{
	local value

	for value in 0 1 4095 4097 0K 1G1 1Q x -1 -1G 0x 1.5G ' 1G' \
		17T 16E 18446744073709551615 18446744073709551616 \
		99999999999999999999999999 17179869184G 1G,,1G 1G,0 \
		1M,1M,1M,1M,1M,1M,1M,1M,1M,1M,1M,1M,1M,1M,1M,1M,1M; do
		bad "emulated=$value" "emulated=$value"
	done
}

bad_phys_text()
{
	local value

	for value in "" 1G @ 1G@ "@$start" "x@$start" "2M@x" "2M@$start:" \
		"2M@$start:pages" "2M@$start:nopages:nopages" "2M@$start@0" \
		"2M:nopages" "-2M@$start" "2M@-$start"; do
		bad "phys=$value" "phys=$value"
	done
}

# What is wrong is where the range lies, with page structures and without.
bad_phys_place()
{
	local pages bar

	bar=$(claimed ': (0000:00:|virtio)') || bar=''
	check "there is a claimed resource" test -n "$bar"
	for pages in "" :nopages; do
		bad "phys: no bytes$pages" "phys=0@$start$pages"
		bad "phys: size is no multiple of 2 MiB$pages" \
			"phys=3M@$start$pages"
		bad "phys: start is no multiple of 2 MiB$pages" \
			"phys=2M@$((start + 4096))$pages"
		bad "phys: System RAM$pages" "phys=2M@16M$pages"
		bad "phys: the first megabyte$pages" "phys=2M@0$pages"
		bad "phys: the end lies in System RAM$pages" \
			"phys=$((size + 64 * 1048576))@$start$pages"
		bad "phys: the start lies in System RAM$pages" \
			"phys=4M@$((start - 2097152))$pages"
		bad "phys: wraps$pages" \
			"phys=4M@18446744073707454464$pages"
		bad "phys: ends at 2^64$pages" \
			"phys=2M@18446744073707454464$pages"
		bad "phys: beyond the address bits$pages" \
			"phys=2M@0x10000000000000$pages"
		bad "phys: size wraps$pages" \
			"phys=0xffffffffffe00000@$start$pages"
		bad "phys: too large$pages" "phys=32T@$start$pages"
		bad "phys: the same range twice$pages" \
			"phys=2M@$start$pages,2M@$start"
		bad "phys: overlapping by half$pages" \
			"phys=4M@$start$pages,4M@$((start + 2097152))"
		bad "phys: one inside the other$pages" \
			"phys=8M@$start$pages,2M@$((start + 2097152))"
		bad "phys: a claimed resource$pages" \
			"phys=2M@$bar$pages"
	done
}

bad_host()
{
	local value

	for value in x 1 4097 -1 1G/high 1G+1G 17T 18446744073709551616; do
		bad "host=$value" "host=$value" emulated=4M
	done
}

# The last device is wrong: those before it go again.
bad_last()
{
	bad "good ones, then a bad one" \
		emulated=64M,64M "phys=2M@$start,2M@16M"
	bad "good phys, then a bad one" \
		"phys=2M@$start,2M@$((start + 2097152)):nopages,2M@0"
	bad "limit that is no number" max_bytes_per_user=many
	bad "resident limit that is no number" max_resident_bytes=-1
}

# --- unloading --------------------------------------------------------------

# is_kept HOW DEVICE: rmmod is refused while it is held, and works afterwards.
is_kept()
{
	local line status=0

	coproc holder { exec "$helpers/hold" "$1" "$2"; }
	# shellcheck disable=SC2154 # set by coproc
	local pid=$holder_PID in=${holder[1]}

	read -r line <&"${holder[0]}" || line=""
	if [ "$line" != held ]; then
		why "the holder says '$line'" || status=1
	elif rmmod accmem 2>/dev/null; then
		why "rmmod worked" || status=1
	fi
	exec {in}>&-
	wait "$pid" || true
	[ "$status" = 0 ] && ! unload && why "rmmod is refused afterwards" &&
		status=1
	loaded || load "${good[@]}" || status=1
	return "$status"
}

# With a page in a pipe, for longer than the driver looks after it at once: it
# does so after ever longer times, of a second at most. A module that may go once may
# go from then on.
is_kept_long()
{
	local line status=0 end

	coproc holder { exec "$helpers/hold" pinned "$1"; }
	local pid=$holder_PID in=${holder[1]}

	read -r line <&"${holder[0]}" || line=""
	[ "$line" = held ] || why "the holder says '$line'" || status=1
	end=$((SECONDS + 4))
	while ((SECONDS < end && status == 0)); do
		! rmmod accmem 2>/dev/null || why "rmmod worked" || status=1
		sleep 0.5
	done
	exec {in}>&-
	wait "$pid" || true
	unload || why "rmmod is refused afterwards" || status=1
	loaded || load "${good[@]}" || status=1
	return "$status"
}

good_again()
{
	load "${good[@]}" || why "cannot be loaded" || return
	[ -e /dev/accmem0 ] || why "no device"
}

# Many loads and unloads in a row.
again_and_again()
{
	local _

	for _ in {1..5}; do
		unload || why "rmmod" || return
		[ -z "$(traces)" ] || why "left behind: $(traces)" || return
		load "${good[@]}" || why "insmod" || return
	done
}

unload || true
if ! reserved_range; then
	echo "1..1"
	echo "not ok 1 ACCMEM_MODULE_ARGS has no phys range to try things on"
	exit 1
fi
check "nothing is left after an unload" test -z "$(traces)"
dmesg -c >/dev/null
bad_emulated
bad_phys_text
bad_phys_place
bad_host
bad_last
check "a good load afterwards" good_again
for device in /dev/accmem0 /dev/accmem1 /dev/accmem2; do
	check "$device: kept while open" is_kept open "$device"
	check "$device: kept while mapped" is_kept mapped "$device"
done
for device in /dev/accmem0 /dev/accmem1; do
	check "$device: kept while a page is in a pipe" is_kept_long "$device"
done
check "loaded and unloaded again and again" again_and_again
loaded || load "${good[@]}" || true
finish
