#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The examples of the library work on a device, and say what they should.

set -euo pipefail

host=$(cd "$(dirname "$0")/../.." && pwd -P)/build/host
number=0
status=0

# example NAME LINES LAST: it succeeds, with so many lines, and one is LAST. It finds the
# environment of the caller.
example()
{
	local output lines

	number=$((number + 1))
	output=$("$host/accmem-$1" /dev/accmem0 2>&1) || output+=$'\n'"status $?"
	lines=$(wc -l <<<"$output")
	if [ "$lines" = "$2" ] && grep -qxE "$3" <<<"$output"; then
		echo "ok $number examples.$1"
		return
	fi
	echo "# ${output//$'\n'/$'\n'# }"
	echo "not ok $number examples.$1"
	status=1
}

echo "TAP version 13"
echo "1..9"
example turns 8 "CTA 1: 512 columns at column 0, [01] waiting"
example events 7 "CTA 5: 256 columns at column (0|256) of SM 1"
example pool 3 "the same memory before position 1: yes"
example loop 6 "stream 1, job 3: 335839500"
# each release of a pool without caches unmaps the memory at once
ACCMEM_POOL=direct example loop 6 "stream 1, job 3: 335839500"
example acl 1 "2144 bytes of two segments: a then b"
example tensorrt 2 "100 steps: address kept, 0 bytes copied"
example tcgen05 5 "CTA 1 of SM 1: 256 columns at column 0, all its own"
example sycl 3 "shared memory: (5000050000|this device has none)"
exit "$status"
