#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Recorded models through a device of emulated memory and one of reserved memory, both at a
# time, or the one that ACCMEM_BACKING says: every allocation is served, and every buffer
# holds its pattern until it is freed. A run that has one backing has one model, by chance.
# Where counts are scaled down, and devices may be small, the beginning of the shortest trace
# stands for all, with as many of its buffers as there is room for.

set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
traces=("$root"/traces/*.trace)
if [ "${ACCMEM_SCALE:-100}" -le 100 ] && [ -n "${ACCMEM_BACKING-}" ]; then
	traces=("${traces[RANDOM % ${#traces[@]}]}")
fi
if [ "${ACCMEM_SCALE:-100}" -lt 100 ]; then
	lines=$(wc -l <"$root/traces/gpt.trace")
	capacity=$(</sys/class/accmem/accmem0/capacity)
	head -n $((lines * ACCMEM_SCALE / 100)) "$root/traces/gpt.trace" |
		awk -v room=$((capacity / 2)) '
			$1 == "a" && live + $3 <= room {
				live += size[$2] = $3
				print
			}
			$1 == "f" && $2 in size {
				live -= size[$2]
				delete size[$2]
				print
			}' >"$work/gpt.trace"
	traces=("$work/gpt.trace")
fi

# play DEVICE: a line for each trace in a file
play()
{
	local trace

	for trace in "${traces[@]}"; do
		"$root/build/host/accmem" replay --device "/dev/$1" "$trace" \
			>"$work/$1.${trace##*/}" 2>&1 || true
	done
}

# the device without page structures is too small for a model
case ${ACCMEM_BACKING-} in
'') devices=(accmem0 accmem1) ;;
emulated) devices=(accmem0) ;;
*) devices=(accmem1) ;;
esac
for device in "${devices[@]}"; do
	play "$device" &
done
wait
number=0
status=0
echo "TAP version 13"
echo "1..$((${#devices[@]} * ${#traces[@]}))"
for device in "${devices[@]}"; do
	for trace in "${traces[@]}"; do
		number=$((number + 1))
		line=$(grep ^trace= "$work/$device.${trace##*/}") ||
			line=$(tail -n 1 "$work/$device.${trace##*/}")
		echo "# $device: $line"
		if [[ "$line " = *" failures=0 corrupt=0 "* ]]; then
			echo "ok $number replay.$device.${trace##*/}"
		elif [ ! -e "/dev/$device" ]; then
			echo "ok $number replay # SKIP needs /dev/$device"
		else
			echo "not ok $number replay.$device.${trace##*/}"
			status=1
		fi
	done
done
exit "$status"
