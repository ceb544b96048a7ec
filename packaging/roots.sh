# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Root directories of Debian, for tests of what is installed there. Sourced after
# tools/common.sh by a script that sets work, the directory of the roots.
#
# A root is unpacked from a tar file in the cache. mmdebstrap makes the tar file of packages
# from the Debian archive that the machine uses; nothing but mmdebstrap is installed on the
# machine. The scripts run as root, since they make mounts: in a mount namespace of their
# own, so that the mounts end with the script.

passed=0 failed=0
work=${work:-$ACCMEM_BUILD/roots}

# start_inside ARGUMENT...: run the script again in a mount namespace, with --inside before
# the arguments
start_inside()
{
	[ "${1-}" != --inside ] || return 0
	[ "$(id -u)" = 0 ] || die "root is needed, for mounts and chroot"
	"$ACCMEM_ROOT/tools/deps" check-deb
	exec unshare --mount --propagation private "$0" --inside "$@"
}

# check NAME COMMAND...: run a test, with its output in the log of the suite
check()
{
	local name="$suite: $1"

	shift
	echo "--- $name" >>"$log"
	if "$@" >>"$log" 2>&1; then
		passed=$((passed + 1))
		echo "ok $((passed + failed)) $name"
	else
		failed=$((failed + 1))
		tail -n 20 "$log" | sed 's/^/# /'
		echo "not ok $((passed + failed)) $name"
	fi
}

# Print the sources of apt for the suite.
apt_sources()
{
	local uri

	uri=$("$ACCMEM_ROOT/tools/deps" mirror)
	uri=${uri%/}
	echo "deb $uri $suite main"
	[ "$suite" = sid ] || echo "deb $uri-security $suite-security main"
}

# Print whether apt of the machine refuses an archive that is not up to date.
valid_until()
{
	apt-config shell value Acquire::Check-Valid-Until |
		grep -o 'true\|false' || echo true
}

make_archive()
{
	[ ! -e "$archive" ] || return 0
	say "fetching a bare $suite"
	mkdir -p "${archive%/*}/packages/partial"
	apt_sources >"${archive%/*}/sources.list"
	logged "${archive%/*}/log" mmdebstrap --variant=apt --format=tar \
		--aptopt="Acquire::Check-Valid-Until \"$(valid_until)\"" "$suite" \
		"$archive.new" "${archive%/*}/sources.list"
	mv "$archive.new" "$archive"
}

# in_root COMMAND...: run a command in the root
in_root()
{
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive INITRD=No chroot "$root" "$@" </dev/null
}

apt()
{
	in_root apt-get -q -y --no-install-recommends \
		-o Binary::apt-get::APT::Keep-Downloaded-Packages=true "$@"
}

# make_root PACKAGE...: make the root of the suite, with these packages
make_root()
{
	local dir

	rm -rf --one-file-system "$root"
	mkdir -p "$root"
	tar -C "$root" -xf "$archive"
	for dir in proc sys dev; do
		mount --rbind "/$dir" "$root/$dir"
	done
	mount --bind "${archive%/*}/packages" "$root/var/cache/apt/archives"
	cp -L /etc/resolv.conf "$root/etc/resolv.conf"
	echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/accmem-check"
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod +x "$root/usr/sbin/policy-rc.d"
	apt update
	apt install "$@"
}

# begin_suite SUITE PACKAGE...: make the root of a suite, and set suite, log, root and archive
begin_suite()
{
	mkdir -p "$work"
	suite=$1 log=$work/$1.log root=$work/$1
	archive=$ACCMEM_CACHE/debian/$suite/root.tar
	shift
	with_lock "$ACCMEM_CACHE/lock/debian-$suite" make_archive
	: >"$log"
	say "$suite: a root, in $root"
	make_root "$@" >>"$log" 2>&1
}
