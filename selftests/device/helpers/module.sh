# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the scripts share that load the module with parameters of their own, or bind
# devices to it: tests, loading, and users of a device. Sourced, never run.
#
# They run as root in the guest of tools/vm: ACCMEM_KO is the module,
# ACCMEM_MODULE_ARGS what it is loaded with before and afterwards. ACCMEM_SCALE and
# ACCMEM_SEED are as for selftests/run.

: "${ACCMEM_KO:?is not set}"
helpers=${ACCMEM_BUILD:-$(cd "$(dirname "$0")/../.." && pwd -P)/build}/selftests/helpers
good=()
# Quotes in the arguments mean what they mean in a shell.
eval "good=(${ACCMEM_MODULE_ARGS-})"
tests=0 failed=0
every=$((100 / ${ACCMEM_SCALE:-100}))
((every > 0)) || every=1
sampled=$((${ACCMEM_SEED:-0} % every))
bus='' accmem=''

# check NAME COMMAND...: one test. 77 is "the kernel cannot".
check()
{
	local name=$1 status=0

	shift
	tests=$((tests + 1))
	"$@" || status=$?
	case $status in
	0) echo "ok $tests $name" ;;
	77) echo "ok $tests $name # SKIP not in this kernel" ;;
	*) failed=$((failed + 1)) && echo "not ok $tests $name" ;;
	esac
}

# sample NAME COMMAND...: a test, of which one of so many is made where counts are
# scaled down, other ones each time: a kernel that checks itself loads slowly.
sample()
{
	sampled=$((sampled + 1))
	((sampled % every)) || check "$@"
}

# The end of the script: its plan, and whether it succeeds.
finish()
{
	echo "1..$tests"
	[ "$failed" = 0 ]
}

why()
{
	echo "# $*"
	return 1
}

# within COMMAND...: the command succeeds within 20 seconds
within()
{
	local _

	for _ in {1..200}; do
		! "$@" || return 0
		sleep 0.1
	done
	why "not within 20 s: $*"
}

# find_pci VENDOR:DEVICE: print the addresses of the PCI devices with these numbers; fail if
# there is none
find_pci()
{
	local dir vendor device status=1

	for dir in /sys/bus/pci/devices/*; do
		read -r vendor <"$dir/vendor"
		read -r device <"$dir/device"
		[ "$vendor:$device" = "$1" ] || continue
		echo "${dir##*/}"
		status=0
	done
	return "$status"
}

# bind_pci ADDRESS: bind a PCI device to accmem-pci
bind_pci()
{
	local pci=/sys/bus/pci

	echo accmem-pci >"$pci/devices/$1/driver_override"
	echo "$1" 2>/dev/null >"$pci/drivers/accmem-pci/bind" && find_accmem "$1"
}

# find_accmem NAME: set $accmem to the name in /dev of a device of the bus $bus
find_accmem()
{
	local dir

	for dir in "$bus/devices/$1"/accmem/accmem*; do
		accmem=/dev/${dir##*/}
		[ ! -c "$accmem" ] || return 0
	done
	return 1
}

# user gone|reset COMMAND...: a user of the memory of $accmem sees what the command does
user()
{
	local kind=$1 out result='' status=0

	shift
	exec {out}< <("$helpers/revoked" "$kind" "$accmem")
	read -r result <&"$out" || true
	[ "$result" = held ] || why "no user: $result" || return
	"$@" || why "$* failed" || status=1
	read -r -t 100 result <&"$out" || true
	exec {out}<&-
	[ "$result $status" = "ok 0" ]
}

loaded()
{
	[ -d /sys/module/accmem ]
}

# The module refuses to go while pages that it freed are on their way home:
# "no" within this time means no.
unload()
{
	local _

	for _ in {1..100}; do
		loaded || return 0
		rmmod accmem 2>/dev/null && return
		sleep 0.1
	done
	return 1
}

load()
{
	"$helpers/load" "$ACCMEM_KO" "$@" 2>/dev/null
}

reload()
{
	unload && load "$@"
}

# The first reserved range of the good parameters, as decimal SIZE and START. Without one,
# the script is skipped.
reserved_range()
{
	local item

	if [[ ! " ${good[*]} " =~ phys=([^,: ]*) ]]; then
		echo "1..1"
		echo "ok 1 # SKIP needs a physical range: phys= among the module's parameters"
		exit
	fi
	item=${BASH_REMATCH[1]}
	# shellcheck disable=SC2034 # for who sources this
	size=$(numfmt --from=iec "$(decimal "${item%@*}")")
	# shellcheck disable=SC2034
	start=$(numfmt --from=iec "$(decimal "${item#*@}")")
}

decimal()
{
	case $1 in
	0x*) echo $(($1)) ;;
	*) echo "$1" ;;
	esac
}
