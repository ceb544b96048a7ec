#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# accmem run: the tests of the preload library on each device, or the one that
# ACCMEM_BACKING says, and what the command does with programs that it leaves alone.

set -euo pipefail

host=$(cd "$(dirname "$0")/../.." && pwd -P)/build/host
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
status=0

# check NAME COMMAND...: one test.
check()
{
	local name=$1

	shift
	number=$((number + 1))
	if "$@"; then
		echo "ok $number preload.$name"
	else
		echo "not ok $number preload.$name"
		status=1
	fi
}

# tests_on DEVICE [OPTION...]: the tests of the program, numbered as this one's.
tests_on()
{
	local line

	"$host/accmem" run --device "$@" --threshold 1M --stats="$work/stats" \
		"$host/preload_test" >"$work/out" 2>&1 ||
		echo "not ok 0 the program ends with $?" >>"$work/out"
	grep -q '^ok' "$work/out" || echo "not ok 0 $1: no test ran" >>"$work/out"
	while read -r line; do
		case $line in
		ok\ * | not\ ok\ *)
			number=$((number + 1))
			[[ $line == ok* ]] || status=1
			echo "${line%%[0-9]*}$number preload.$1: ${line#*[0-9] }"
			;;
		\#*) echo "$line" ;;
		esac
	done <"$work/out"
}

# What lived on the device, of the process that had most.
peak()
{
	# shellcheck disable=SC2317 # check() calls it
	sed -n 's/.* peak=\([0-9]*\) .*/\1/p' "$work/stats" | sort -n | tail -n 1
}

# shellcheck disable=SC2317 # check() calls it
something_was_there()
{
	echo "# peak $(peak) bytes"
	[ "$(peak)" -ge 1048576 ]
}

# says TEXT STATUS COMMAND...: it ends with the status, and says the text.
# shellcheck disable=SC2317 # check() calls it
says()
{
	local text=$1 want=$2 got=0 output

	shift 2
	output=$("$@" 2>&1) || got=$?
	[ "$got" = "$want" ] && [[ $output = *"$text"* ]] && return
	echo "# status $got: $output"
	return 1
}

# The programs of a run add their lines to one file, also those in other directories.
# shellcheck disable=SC2317 # check() calls it
stats_are_in_one_file()
{
	mkdir -p "$work/sub"
	(cd "$work" && "${run[@]}" --stats=all /bin/bash -c \
		'cd sub && /bin/true; exit 0' >/dev/null 2>&1) || return
	[ ! -e "$work/sub/all" ] && [ "$(grep -c '^accmem-run:' "$work/all")" = 2 ]
}

# shellcheck disable=SC2317 # check() calls it
stats_go_to_a_pipe()
{
	local lines

	lines=$("${run[@]}" --stats=/dev/stderr /bin/true 2>&1 >/dev/null | grep -c '^accmem-run:')
	[ "$lines" = 1 ]
}

# shellcheck disable=SC2317 # check() calls it
a_name_is_one_word()
{
	cp /bin/true "$work/a"$'\n'"b"
	"${run[@]}" --stats="$work/names" "$work/a"$'\n'"b" >/dev/null 2>&1 || return
	[ "$(wc -l <"$work/names")" = 1 ] && grep -q ' program=a?b ' "$work/names"
}

run=("$host/accmem" run)
echo "TAP version 13"
case ${ACCMEM_BACKING-} in
'') devices=(/dev/accmem{0,1,2}) ;;
emulated) devices=(/dev/accmem0) ;;
phys) devices=(/dev/accmem1) ;;
nopages) devices=(/dev/accmem2) ;;
esac
# The last one is small enough to be filled.
for device in "${devices[@]}"; do
	if [ ! -e "$device" ]; then
		number=$((number + 1))
		echo "ok $number preload # SKIP needs $device"
		continue
	fi
	limit=()
	[ "$device" = /dev/accmem2 ] || limit=(--limit 64M)
	: >"$work/stats"
	tests_on "$device" "${limit[@]}"
	check "$device: memory was on it" something_was_there
done
cp /bin/true "$work/setuid"
chmod 4755 "$work/setuid"
check "setuid program is left alone" says "setuid" 0 "${run[@]}" "$work/setuid"
check "static program is left alone" says "statically linked" 0 \
	"${run[@]}" "${ACCMEM_BUSYBOX:-$(command -v busybox)}" true
check "no device: the ordinary heap" says "the ordinary heap is used" 0 \
	"${run[@]}" --device /dev/accmem99 /bin/true
check "no program" says "No such file" 127 "${run[@]}" "$work/none"
check "no size" says "1X is no size" 125 "${run[@]}" --limit 1X /bin/true
check "no file of statistics" says "Not a directory" 125 "${run[@]}" --stats=/dev/null/x /bin/true
check "statistics of programs in several directories" stats_are_in_one_file
check "statistics to a pipe" stats_go_to_a_pipe
check "the name of a program is one word" a_name_is_one_word
check "no number in the environment" says "16M is no number" 0 \
	env ACCMEM_RUN_THRESHOLD=16M "${run[@]}" /bin/true
mkdir "$work/with blank"
cp "$host/accmem" "$host/libaccmem_preload.so" "$work/with blank"
check "a library with a blank in its path" says "cannot be preloaded" 125 \
	"$work/with blank/accmem" run /bin/true
check "the program's status" says "" 1 "${run[@]}" /bin/false
echo "1..$number"
exit "$status"
