#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What kernels do with Tensor Memory, replayed in both disciplines: no call fails,
# every alloc is granted, in order of arrival, with the figures that
# traces/tmem/README.md has; and a recorded replay, replayed, grants in the same
# order. tools/accmem/tmem/check has the tests that need no device.

set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd -P)
tool=$root/build/host/accmem
tracing=/sys/kernel/tracing
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
traces=("$root"/traces/tmem/*.trace)
tests=0 failed=0

# check NAME COMMAND...: one test.
check()
{
	local name=$1

	shift
	tests=$((tests + 1))
	if "$@" >"$work/said" 2>&1; then
		echo "ok $tests $name"
	else
		failed=$((failed + 1))
		sed 's/^/# /' "$work/said"
		echo "not ok $tests $name"
	fi
}

# --- the traces of the project ----------------------------------------------

table_is_documented()
{
	diff <(sed -n '/^trace  /,/^```/p' "$root/traces/tmem/README.md" |
		grep -v '^```') "$work/table"
}

# The longer CTAs keep the permit, the longer others wait, for columns that are
# free; where only capacity blocks they wait least.
is_ordered()
{
	awk -v name="$1" '
		NR == 1 {
			for (i = 1; i <= NF; i++)
				at[$i] = i
		}
		$1 == name {
			nr++
			ready[nr] = $at["ready"]
			idle[nr] = $at["idle"]
			total[nr] = $at["total"]
			order = order " " $2 "-" $3
		}
		END {
			if (order != " shared-trace exclusive-early exclusive-trace exclusive-never")
				exit 1
			for (i = 2; i <= nr; i++)
				if (ready[i] < ready[i - 1] ||
				    idle[i] < idle[i - 1] ||
				    total[i] < total[i - 1])
					exit 1
		}' "$work/table"
}

all_granted()
{
	awk -v name="$1" '
		FNR == NR {
			allocs += $1 == "alloc"
			next
		}
		$1 == name && $4 == allocs && $NF == 0 { nr++ }
		END { exit nr != 4 }' "$root/traces/tmem/$1.trace" "$work/table"
}

# All CTAs of a trace want as many columns: none of an SM passes another. A pair has asked
# when both of its CTAs have.
is_fifo()
{
	"$tool" replay "$2" --grants "$root/traces/tmem/$1.trace" |
		awk '$1 == "grant" {
			split($3, asked, "=")
			sm[++n] = $7
			cluster[n] = $2 $4 $5
			if (asked[2] + 0 > since[cluster[n]])
				since[cluster[n]] = asked[2] + 0
		}
		END {
			for (i = 1; i <= n; i++) {
				passed += since[cluster[i]] < last[sm[i]]
				last[sm[i]] = since[cluster[i]]
			}
			exit passed || !n
		}'
}

# --- recording --------------------------------------------------------------

# who: who was granted what, without the times
who()
{
	sed -n 's/^grant .* launch=/launch=/p'
}

# goes_round TRACE OPTION: the driver's events of a replay are a trace that grants
# in the same order.
goes_round()
{
	: >$tracing/trace
	echo 1 >$tracing/tracing_on
	"$tool" replay "$2" --grants "$root/traces/tmem/$1.trace" | who >"$work/first"
	echo 0 >$tracing/tracing_on
	"$tool" record --tmem <$tracing/trace >"$work/again.trace" || return
	"$tool" replay "$2" --grants "$work/again.trace" | who >"$work/second"
	[ -s "$work/first" ] && diff "$work/first" "$work/second"
}

# --- traces that fail ---------------------------------------------------------

# ends STATUS LINE...: what a replay of these lines ends with.
ends()
{
	local expected=$1 status=0

	shift
	printf '%s\n' "$@" >"$work/lines.trace"
	"$tool" replay --shared "$work/lines.trace" || status=$?
	[ "$status" = "$expected" ]
}

failures()
{
	local sms="sms 1 512 0" cta="launch 1 0 0 1 1 0 0" exit="exit 1 0"

	check "a CTA that does nothing" ends 0 "$sms" "$cta" "$exit"
	check "a call that fails" ends 1 "$sms" "$cta" "relinquish 1 0" \
		"alloc 1 0 32" "$exit"
	check "columns that are given back twice" ends 1 "$sms" "$cta" \
		"alloc 1 0 32" "dealloc 1 0 0" "dealloc 1 0 0" "$exit"
	check "a CTA that waits for ever" ends 1 "$sms" \
		"launch 1 0 0 1 2 0 0" "alloc 1 0 32" "$exit"
}

echo "TAP version 13"
status=0
"$tool" replay "${traces[@]}" >"$work/table" 2>"$work/errors" || status=$?
sed 's/^/# /' "$work/errors" "$work/table"
check "no failure" test "$status" = 0
check "the figures are those of the documentation" table_is_documented
for trace in "${traces[@]}"; do
	trace=$(basename "$trace" .trace)
	check "$trace: every alloc is granted" all_granted "$trace"
	check "$trace: who keeps the permit longer makes others wait" \
		is_ordered "$trace"
	for option in --shared --exclusive; do
		check "$trace $option: in order of arrival" is_fifo "$trace" \
			$option
	done
done
failures
if [ -e $tracing/events/accmem ]; then
	enabled=$(<$tracing/events/accmem/enable)
	[ "$enabled" = 1 ] || echo 1 >$tracing/events/accmem/enable
	# where there is more to wait for
	for trace in "${traces[@]}"; do
		trace=$(basename "$trace" .trace)
		check "$trace: recorded and replayed" goes_round "$trace" \
			--exclusive
	done
	[ "$enabled" = 1 ] || echo 0 >$tracing/events/accmem/enable
else
	tests=$((tests + 1))
	echo "ok $tests record # SKIP no tracefs in this kernel"
fi
echo "1..$tests"
echo "# $((tests - failed)) passed, $failed failed"
[ "$failed" = 0 ]
