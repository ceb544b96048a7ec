#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Each recorded model through a device of emulated memory and one of reserved
# memory, both at a time: every allocation is served, and every buffer holds its
# pattern until it is freed. Where counts are scaled down, and devices may be
# small, the beginning of the shortest trace stands for all, with as many of its
# buffers as there is room for.

set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
traces=("$root"/traces/*.trace)
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
		"$root/build/host/accmem-replay" --device "/dev/$1" "$trace" \
			>"$work/$1.${trace##*/}" 2>&1 || true
	done
}

play accmem0 &
play accmem1 &
wait
number=0
status=0
echo "TAP version 13"
echo "1..$((2 * ${#traces[@]}))"
for device in accmem0 accmem1; do
	for trace in "${traces[@]}"; do
		number=$((number + 1))
		line=$(grep ^trace= "$work/$device.${trace##*/}") ||
			line=$(tail -n 1 "$work/$device.${trace##*/}")
		echo "# $device: $line"
		if [[ "$line " = *" failures=0 corrupt=0 "* ]]; then
			echo "ok $number replay.$device.${trace##*/}"
		else
			echo "not ok $number replay.$device.${trace##*/}"
			status=1
		fi
	done
done
exit "$status"
