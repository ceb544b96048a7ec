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
	local name=$1 said

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

# says NAME TEXT ARGUMENTS...: a load that is refused with this text in the kernel log,
# and without an unknown parameter.
says()
{
	sample "$1" refused_with "${@:2}"
}

refused_with()
{
	local said

	refused "${@:2}" || return
	[[ $said != *"unknown parameter"* ]] || why "$said" || return
	[[ $said = *accmem*"$1"* ]] || why "not '$1' but $said"
}

# Is a load with these parameters refused, with a message, without a trace? Its caller may
# have the variable said, for the message.
refused()
{
	local before

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
			"phys=68M@$((start - 66 * 1048576))$pages"
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

# The message names the parameter, its value, the wrong word, and what is allowed.
bad_words()
{
	local size="a number, with a suffix K, M, G or T or without one"
	local value=emulated=4M+8M

	says "message: an option" "$value/fast: 'fast' is not an option: /high or /low" \
		"$value/fast"
	says "message: an option twice" "$value/low/low: 'low' is not an option" \
		"$value/low/low"
	says "message: a node" "$value/node999: 'node999' is not an option" \
		"$value/node999"
	says "message: a size" \
		"emulated=4M+1Q: '1Q' is not a size in multiples of 4096, up to 16T a device: $size" \
		emulated=4M+1Q
	says "message: the second device" "emulated=5: '5' is not a size" emulated=4M,5
	says "message: an address" "phys=2M@x: '2M@x' is not SIZE@ADDRESS or" "phys=2M@x"
	says "message: host memory" "host=1Q: '1Q' is not a size" host=1Q
	says "message: too many carveouts" \
		"emulated=1M+1M+1M+1M+1M+1M+1M+1M+1M: at most 16 devices, and 8 carveouts" \
		emulated=1M+1M+1M+1M+1M+1M+1M+1M+1M
	says "message: a limit" "max_bytes_per_user=1Q: not $size" max_bytes_per_user=1Q
}

# Where there is no memory, with page structures and without.
bad_memory()
{
	local pages window empty='' item

	# the last window is large, and lies behind the memory
	window=$(grep ': PCI Bus 0000:00' /proc/iomem | tail -n 1)
	window=0x${window%%-*}
	for item in $(</proc/cmdline); do
		[[ $item != memmap=16M* ]] || empty=0x${item#*0x}
	done
	says "message: System RAM" "2097152 bytes at 0x0000000001000000: a range that overlaps System RAM" \
		phys=2M@16M
	says "message: half a reservation" \
		"$((size + 2097152)) bytes at" "phys=$((size + 2097152))@$start"
	for pages in "" :nopages; do
		says "phys: a window of PCI$pages" \
			": a range that is not all Reserved" \
			"phys=2M@$((window + 2097152))$pages"
		says "phys: addresses of nothing$pages" \
			"67108864 bytes at 0x0000000800000000: a range that is not all Reserved" \
			"phys=64M@32G$pages"
		if [ -n "$empty" ]; then
			says "phys: a reservation without memory$pages" \
				": a range without memory" \
				"phys=16M@$empty$pages"
		else
			check "phys: a reservation without memory$pages" exit_of 77
		fi
	done
}

exit_of()
{
	return "$1"
}

# becomes PARAMETER TEXT NUMBER: write the text to a parameter; add it to the variable
# wrong if the parameter is not NUMBER then
becomes()
{
	local number

	echo "$2" 2>/dev/null >"/sys/module/accmem/parameters/$1" || true
	read -r number <"/sys/module/accmem/parameters/$1"
	[ "$number" = "$3" ] || wrong+=" $1: $number"
}

# Limits take the suffixes that sizes take, at a load and afterwards.
limits_have_suffixes()
{
	local wrong=''

	load emulated=4M max_bytes_per_user=1G max_contexts_per_user=2K \
		max_resident_bytes=3M max_resident_bytes_per_user=2M \
		max_buffers_per_user=1M || return
	becomes max_bytes_per_user x $((1 << 30))
	becomes max_contexts_per_user 1k 2048
	becomes max_resident_bytes 0x10M $((16 << 20))
	becomes max_resident_bytes_per_user 1.5M $((2 << 20))
	becomes max_resident_bytes_per_user 5M $((5 << 20))
	becomes max_bytes_per_context 1T $((1 << 40))
	becomes max_buffers_per_user 7 7
	unload
	[ -z "$wrong" ] || why "$wrong"
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
	loaded || load "${small[@]}" || status=1
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
	loaded || load "${small[@]}" || status=1
	return "$status"
}

good_again()
{
	load "${small[@]}" || why "cannot be loaded" || return
	[ -e /dev/accmem0 ] || why "no device"
}

# Many loads and unloads in a row.
again_and_again()
{
	local _

	for _ in {1..5}; do
		unload || why "rmmod" || return
		[ -z "$(traces)" ] || why "left behind: $(traces)" || return
		load "${small[@]}" || why "insmod" || return
	done
}

reserved_range
# The devices of the good parameters with 16 MiB each: a load takes a kernel with checkers
# a second for each 256 MiB.
mapfile -t small < <(printf '%s\n' "${good[@]}" |
	sed 's/\(emulated=\)[^/+, ]*/\116M/; s/[^=,]*@/16M@/g')
unload || true
check "nothing is left after an unload" test -z "$(traces)"
dmesg -c >/dev/null
bad_emulated
bad_phys_text
bad_phys_place
bad_host
bad_last
said=''
bad_words
bad_memory
check "limits have suffixes" limits_have_suffixes
check "a good load afterwards" good_again
for device in /dev/accmem0 /dev/accmem1 /dev/accmem2; do
	check "$device: kept while open" is_kept open "$device"
	check "$device: kept while mapped" is_kept mapped "$device"
done
for device in /dev/accmem0 /dev/accmem1; do
	check "$device: kept while a page is in a pipe" is_kept_long "$device"
done
check "loaded and unloaded again and again" again_and_again
reload "${good[@]}" || true
finish
