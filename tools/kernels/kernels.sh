# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The kernels that tools/vm can boot, and the paths of their parts. Stock kernels, and that
# of arm64, are packages of Debian. tools/kernels/build builds the others from Debian's source and the
# fragments beside this file. An absolute path is the root directory of a system, and
# stands for the newest kernel that is installed there. Sourced after common.sh.

kernels_all=(stock-6.1 stock-6.12 stock-7.3 arm64-6.12 debug-6.12 kcsan-6.12)

kernel_is_known()
{
	[[ " ${kernels_all[*]} " = *" $1 "* ]] || compgen -G "$1/boot/vmlinuz-*" >/dev/null
}

kernel_release()
{
	echo "${1#*-}"
}

# kernel_dir NAME: print the build directory of a kernel with checkers. Its name has the
# version of the source and a hash of the configuration, so that a change of either
# creates a new kernel
kernel_dir()
{
	local source hash

	source=$("$ACCMEM_ROOT/tools/deps" path "source-$(kernel_release "$1")")
	hash=$(grep -hE '^(# )?CONFIG_' \
		"$ACCMEM_ROOT/tools/kernels/"{base,"${1%%-*}"}.config |
		sha256sum)
	source=${source%/tree}
	echo "$ACCMEM_CACHE/kernels/$1-${source##*"$(kernel_release "$1")"-}-${hash:0:12}"
}

# installed_path ROOT image|headers|modules: print the path of a part of the newest kernel
installed_path()
{
	local image

	image=$(compgen -G "$1/boot/vmlinuz-*" | sort -V | tail -n 1)
	case $2 in
	image) echo "$image" ;;
	headers) echo "$1/usr/src/linux-headers-${image##*/vmlinuz-}" ;;
	modules) echo "$1/lib/modules/${image##*/vmlinuz-}" ;;
	esac
}

# kernel_is_arm64 NAME: return true if the kernel is of another architecture than the host,
# which is arm64
kernel_is_arm64()
{
	[[ $1 = arm64-* ]]
}

# kernel_path NAME image|headers|modules|guest: print the path of a part of a kernel;
# guest is the programs of a guest of arm64
kernel_path()
{
	local dir

	case $1 in
	stock-*)
		"$ACCMEM_ROOT/tools/deps" path "$2-$(kernel_release "$1")"
		return
		;;
	arm64-*)
		"$ACCMEM_ROOT/tools/deps" path "$2-$1"
		return
		;;
	/*)
		installed_path "$1" "$2"
		return
		;;
	esac
	dir=$(kernel_dir "$1")
	case $2 in
	image) echo "$dir/arch/x86/boot/bzImage" ;;
	headers) echo "$dir" ;;
	modules) ;; # all built in
	esac
}

# kernel_is_ready NAME: return true if the kernel need not be fetched or built
kernel_is_ready()
{
	local source

	case $1 in
	stock-* | arm64-*)
		[ -e "$ACCMEM_CACHE/current/$1" ]
		;;
	/*) ;;
	*)
		source=$ACCMEM_CACHE/current/source-$(kernel_release "$1")
		[ -e "$source" ] && [ -e "$(kernel_dir "$1")/.accmem-done" ]
		;;
	esac
}

# kernel_prepare NAME: fetch or build a kernel that is not ready
kernel_prepare()
{
	kernel_is_ready "$1" && return
	case $1 in
	stock-* | arm64-*) kernel_path "$1" image >/dev/null ;;
	*) "$ACCMEM_ROOT/tools/kernels/build" "$1" ;;
	esac
}
