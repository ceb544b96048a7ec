#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The host memory behind an emulated device: capped by max_resident_bytes,
# charged to the memory cgroup of who touches it. A touch that cannot be served
# is SIGBUS, ALLOC with POPULATE is ENOMEM; neither leaves anything behind.

set -euo pipefail
# shellcheck source=selftests/device/helpers/module.sh
. "$(dirname "$0")/helpers/module.sh"
device=/dev/accmem0
sys=/sys/class/accmem/accmem0
group=/sys/fs/cgroup/accmem-test
mib=$((1024 * 1024))

# All of it free, and nothing resident.
is_idle()
{
	local _ free capacity resident

	read -r capacity <$sys/capacity
	for _ in {1..100}; do
		read -r free <$sys/free_bytes
		read -r resident <$sys/resident_bytes
		[ "$free" != "$capacity" ] || [ "$resident" != 0 ] || return 0
		sleep 0.1
	done
	why "free $free resident $resident"
}

touch_within()
{
	local bytes signal

	read -r bytes signal < <("$helpers/hold" touch $device $((48 * mib)))
	[ "$bytes $signal" = "$((48 * mib)) 0" ] ||
		why "touched $bytes, signal $signal" || return
	is_idle
}

# SIGBUS comes at the cap: not before the last large page, not after it.
touch_beyond()
{
	local bytes signal

	read -r bytes signal < <("$helpers/hold" touch $device $((128 * mib)))
	[ "$signal" = 7 ] || why "touched $bytes, signal $signal" || return
	[ "$bytes" -le $((64 * mib)) ] && [ "$bytes" -ge $((62 * mib)) ] ||
		why "SIGBUS after $bytes" || return
	is_idle
}

populate_within()
{
	[ "$("$helpers/hold" populate $device $((48 * mib)))" = 0 ] && is_idle
}

populate_beyond()
{
	local error

	error=$("$helpers/hold" populate $device $((128 * mib))) || true
	[ "$error" = 12 ] || why "error $error" || return
	is_idle
}

# Two devices share the cap: memory of the host is one.
cap_is_shared()
{
	local first second status=0

	coproc holder { exec "$helpers/hold" open /dev/accmem1 $((40 * mib)); }
	# shellcheck disable=SC2154 # set by coproc
	local pid=$holder_PID in=${holder[1]}

	read -r first <&"${holder[0]}" || first=""
	read -r second _ < <("$helpers/hold" touch $device $((40 * mib)))
	[ "$first" = held ] && [ "$second" -le $((24 * mib)) ] ||
		why "'$first', and $second bytes beside it" || status=1
	exec {in}>&-
	wait "$pid" || true
	is_idle || status=1
	return "$status"
}

cgroup_make()
{
	grep -qw memory /sys/fs/cgroup/cgroup.controllers 2>/dev/null ||
		return 77
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir -p $group
}

cgroup_run()
{
	# shellcheck disable=SC2016 # $$ of the new shell
	bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' - $group "$@"
}

# What is touched is charged to the cgroup of who touches it.
is_charged()
{
	local peak

	cgroup_make || return
	echo max >$group/memory.max
	cgroup_run "$helpers/hold" touch $device $((32 * mib)) >/dev/null
	peak=$(cat $group/memory.peak)
	[ "$peak" -ge $((32 * mib)) ] || why "peak $peak" || return
	is_idle && within rmdir $group 2>/dev/null
}

# Beyond the cgroup's limit: SIGBUS, or the end of whoever touched.
is_limited()
{
	local out status=0

	cgroup_make || return
	echo $((24 * mib)) >$group/memory.max
	[ ! -e $group/memory.swap.max ] || echo 0 >$group/memory.swap.max
	out=$(cgroup_run "$helpers/hold" touch $device $((48 * mib))) || status=$?
	[ "$status" = 137 ] || [[ $out = *" 7" ]] ||
		why "status $status: $out" || return
	is_idle && within rmdir $group 2>/dev/null
}

# The same for memory that ALLOC makes present.
populate_is_limited()
{
	local out status=0

	cgroup_make || return
	echo $((24 * mib)) >$group/memory.max
	out=$(cgroup_run "$helpers/hold" populate $device $((48 * mib))) || status=$?
	[ "$status" = 137 ] || [ "$out" = 12 ] ||
		why "status $status: $out" || return
	is_idle && within rmdir $group 2>/dev/null
}

# The kernel's own mapping of the pages would be split: no page is allocated.
uncached_is_refused()
{
	local out

	out=$("$helpers/hold" uncached $device 4096) || true
	[ "$out" = 95 ] || why "errno $out" || return
	is_idle
}

uncached_is_allowed()
{
	local out

	out=$("$helpers/hold" uncached $device 4096) || true
	[ "$out" = 0 ] || why "errno $out" || return
	is_idle
}

reload emulated=256M,256M max_resident_bytes=$((64 * mib))
check "touches below the cap" touch_within
check "a touch above the cap is SIGBUS" touch_beyond
check "touches below the cap again" touch_within
check "POPULATE below the cap" populate_within
check "POPULATE above the cap is ENOMEM" populate_beyond
check "POPULATE below the cap again" populate_within
check "two devices share the cap" cap_is_shared
reload emulated=256M emulated_uncached=1
check "write-combining memory where the administrator allows it" uncached_is_allowed
reload emulated=256M
check "no write-combining memory by default" uncached_is_refused
check "charged to the memory cgroup" is_charged
check "a touch above memory.max" is_limited
check "POPULATE above memory.max" populate_is_limited
reload "${good[@]}"
finish
