#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The commands of the tutorials and of the FAQ that run in the guest:
# Documentation/check-commands. The module is loaded as it is in the machine of the
# tutorials, and events are recorded, as after a boot. The driver of the tutorial about
# providers gets the range that this machine has reserved.

set -euo pipefail
# shellcheck source=selftests/device/helpers/module.sh
. "$(dirname "$0")/../device/helpers/module.sh"
documentation=$(cd "$(dirname "$0")/../../Documentation" && pwd -P)
PATH=$documentation/../build/host:$PATH

# until_live OPTION: print a command that waits until the live bytes are 0 (-x), or are not
# (-xv), since a pause of the tutorials may be too short here
until_live()
{
	echo "for _ in {1..200}; do" \
		"grep -q $1 0 /sys/class/accmem/accmem0/live_bytes && break; sleep 0.1; done"
}

commands()
{
	local out

	out=$("$documentation/check-commands" guest \
		--replace "0x70000000=$start" \
		--replace "sleep 1=$(until_live -x)" \
		--replace "sleep 2=$(until_live -xv); sleep 2" \
		--replace "build/modules/stock-6.12=${ACCMEM_KO%/*}" \
		"$documentation/$1" 2>&1) || why "$out"
}

echo 1 >/sys/kernel/tracing/tracing_on
reserved_range
check "the machine of the tutorials" reload emulated=1G
cd "$documentation"
mapfile -t pages < <(grep -l '^ *# ' tutorials/*.rst faq.rst)
for page in "${pages[@]}"; do
	check "the commands of $page" commands "$page"
done
check "the module as it was" reload "${good[@]}"
echo 0 >/sys/kernel/tracing/tracing_on
finish
